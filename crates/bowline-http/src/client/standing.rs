//! The standing stream of a session: what the server says of its own accord.

use super::{
    legacy::resuming,
    line::Line,
    pace::Pace,
    reply::{Events, Media, Next, Reply, message},
};
use http::StatusCode;
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What becomes of the stream after a reply.
enum Verdict {
    /// It is open.
    Open(Box<Events>),
    /// It may open later.
    Later(Option<Duration>),
    /// What followed the last event is gone; what comes from now on is not.
    Anew,
    /// The server has none.
    Never,
    /// The server does not know the session any more.
    Gone,
}

/// Keeps the stream open for as long as the session lasts, unless the server has none.
pub(super) async fn keep(line: Arc<Line>) {
    let mut pace = Pace::new(LONGEST_PAUSE);
    let mut last: Option<String> = None;
    let mut has_worked = false;
    let mut is_first = true;
    loop {
        let headers = match &last {
            Some(last) => resuming(&line, last).unwrap_or_else(|_| line.session_headers()),
            None => line.session_headers(),
        };
        match line.get(headers).await.map(|reply| judge(&line, reply, last.is_some(), has_worked)) {
            Ok(Verdict::Open(mut events)) => {
                has_worked = true;
                // An earlier stream may have broken off after the server had told something, and before an event came by
                // which to ask for it again.
                if !is_first && last.is_none() {
                    line.inbox.missed_news();
                }
                read(&line, &mut events, &mut last, &mut pace).await;
            }
            Ok(Verdict::Later(delay)) => sleep(delay.unwrap_or_default()).await,
            Ok(Verdict::Anew) => last = None,
            Ok(Verdict::Never) => return,
            Ok(Verdict::Gone) => return drop(line.expire()),
            Err(error) => tracing::debug!(%error, "the standing stream cannot be opened"),
        }
        is_first = false;
        sleep(pace.next()).await;
    }
}

fn judge(line: &Line, reply: Reply, resumes: bool, has_worked: bool) -> Verdict {
    let status = reply.status;
    if status.is_success() && reply.media() == Media::Events {
        return Verdict::Open(Box::new(reply.events()));
    }
    tracing::debug!(status = status.as_u16(), "the server opens no standing stream");
    match status {
        StatusCode::TOO_MANY_REQUESTS => Verdict::Later(reply.retry_after()),
        _ if status.is_server_error() => Verdict::Later(reply.retry_after()),
        // Either the events behind the last one are gone, or the session is.
        StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST if resumes => Verdict::Anew,
        // Where there never was a stream, this may also be how a server without one says so.
        StatusCode::NOT_FOUND if has_worked && line.session().is_some() => Verdict::Gone,
        _ => Verdict::Never,
    }
}

async fn read(line: &Line, events: &mut Events, last: &mut Option<String>, pace: &mut Pace) {
    loop {
        match events.next().await {
            Next::Event(event) => {
                if let Some(id) = &event.id {
                    *last = Some(id.clone()).filter(|id| !id.is_empty());
                }
                if let Some(delay) = event.retry {
                    pace.ask(delay);
                }
                if let Some(frame) = message(event) {
                    pace.succeeded();
                    line.inbox.accept(&frame);
                }
            }
            Next::TooLong => line.inbox.noise(b"an event longer than allowed"),
            Next::End(reason) => {
                tracing::debug!(?reason, "the standing stream ended");
                return;
            }
        }
    }
}
