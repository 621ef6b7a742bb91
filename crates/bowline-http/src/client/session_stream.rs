//! The stream of a session for messages that belong to no request.

use super::{
    backoff::Backoff,
    connection::Connection,
    legacy::resuming,
    reply::{Events, Media, Next, Reply, message},
};
use http::StatusCode;
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How to continue after a response.
enum Verdict {
    /// It is open.
    Open(Box<Events>),
    /// It may open later.
    Later(Option<Duration>),
    /// The events after the last one are lost; open a new stream.
    Anew,
    /// The server has no such stream.
    Never,
    /// The server no longer knows the session.
    Gone,
}

/// Keeps the stream open during the session, unless the server has none.
pub(super) async fn keep(connection: Arc<Connection>) {
    let mut backoff = Backoff::new(LONGEST_PAUSE);
    let mut last: Option<String> = None;
    let mut has_worked = false;
    let mut is_first = true;
    loop {
        let headers = match &last {
            Some(last) => resuming(&connection, last).unwrap_or_else(|_| connection.session_headers()),
            None => connection.session_headers(),
        };
        match connection
            .get(headers)
            .await
            .map(|reply| evaluate(&connection, reply, last.is_some(), has_worked))
        {
            Ok(Verdict::Open(mut events)) => {
                has_worked = true;
                // An earlier stream may have ended after the server sent something, but before an event had an id to
                // resume from.
                if !is_first && last.is_none() {
                    connection.inbox.notifications_lost();
                }
                read(&connection, &mut events, &mut last, &mut backoff).await;
            }
            Ok(Verdict::Later(delay)) => sleep(delay.unwrap_or_default()).await,
            Ok(Verdict::Anew) => last = None,
            Ok(Verdict::Never) => return,
            Ok(Verdict::Gone) => return drop(connection.expire()),
            Err(error) => tracing::debug!(%error, "cannot open the session stream"),
        }
        is_first = false;
        sleep(backoff.next()).await;
    }
}

fn evaluate(connection: &Connection, reply: Reply, resumes: bool, has_worked: bool) -> Verdict {
    let status = reply.status;
    if status.is_success() && reply.media() == Media::Events {
        return Verdict::Open(Box::new(reply.events()));
    }
    tracing::debug!(status = status.as_u16(), "the server did not open a session stream");
    match status {
        StatusCode::TOO_MANY_REQUESTS => Verdict::Later(reply.retry_after()),
        _ if status.is_server_error() => Verdict::Later(reply.retry_after()),
        // Either the events after the last one are lost, or the session is.
        StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST if resumes => Verdict::Anew,
        // Before any stream worked, a server without streams may respond like this.
        StatusCode::NOT_FOUND if has_worked && connection.session().is_some() => Verdict::Gone,
        _ => Verdict::Never,
    }
}

async fn read(
    connection: &Connection,
    events: &mut Events,
    last: &mut Option<String>,
    backoff: &mut Backoff,
) {
    loop {
        match events.next().await {
            Next::Event(event) => {
                if let Some(id) = &event.id {
                    *last = Some(id.clone()).filter(|id| !id.is_empty());
                }
                if let Some(delay) = event.retry {
                    backoff.ask(delay);
                }
                if let Some(frame) = message(event) {
                    backoff.succeeded();
                    connection.inbox.accept(&frame);
                }
            }
            Next::TooLong => connection.inbox.noise(b"an event longer than allowed"),
            Next::End(reason) => {
                tracing::debug!(?reason, "the session stream ended");
                return;
            }
        }
    }
}
