//! Records what happens in a host, and shows it.

use super::{
    connections::{Connection, PAGE},
    ring::{Ring, Stored, Window},
    state::State,
};
use crate::{
    events::{Changed, Head, Kind, Status},
    query::{BufferState, ClientSummary, Progress},
};
use bowline_host::{Health, Tap, TapEvent};
use bowline_policy::audit::Redactor;
use bowline_server::CallOrigin;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::Notify;

/// How many lines of output are kept per server, and for how many servers.
const MAX_OUTPUT: usize = 200;
const MAX_SERVERS: usize = 1000;

/// Records messages. Clones share everything.
#[derive(Clone)]
pub(crate) struct Recorder {
    state: Arc<Mutex<State>>,
    news: Arc<Notify>,
}

/// How a question ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuestionEnd {
    pub(crate) seq: u64,
    pub(crate) started: Instant,
    pub(crate) status: Status,
}

impl Recorder {
    pub(crate) fn new(limit: usize, bodies: bool, redactor: Redactor) -> Self {
        let state = State::new(Ring::new(limit, bodies), redactor);
        Self { state: Arc::new(Mutex::new(state)), news: Arc::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes readers of the stream. Register with it before reading.
    pub(crate) fn news(&self) -> &Notify {
        &self.news
    }

    pub(crate) fn changed(&self) -> Changed {
        self.state().changed
    }

    /// Reads the ring.
    pub(crate) fn with_ring<T>(&self, read: impl FnOnce(&Ring) -> T) -> T {
        read(&self.state().ring)
    }

    pub(crate) fn window(&self, seq: u64, updated: u64, limit: usize) -> (Window, u64) {
        let state = self.state();
        (state.ring.window(seq, updated, limit), state.ring.updated())
    }

    pub(crate) fn buffer(&self) -> BufferState {
        let state = self.state();
        let ring = &state.ring;
        let is_empty = ring.first() == ring.next();
        BufferState {
            limit: ring.limit() as u64,
            used: ring.used() as u64,
            bodies: ring.keeps_bodies(),
            first: if is_empty { 0 } else { ring.first() },
            last: if is_empty { 0 } else { ring.next() - 1 },
            since: ring.iter().next().map(|stored| stored.head.at),
            dropped: ring.dropped(),
        }
    }

    pub(crate) fn clear(&self) {
        let mut state = self.state();
        state.ring.clear();
        state.changed.cleared += 1;
        drop(state);
        self.news.notify_waiters();
    }

    pub(crate) fn clients(&self) -> Vec<ClientSummary> {
        let mut clients: Vec<_> = self.state().clients.values().cloned().collect();
        clients.sort_by(|one, other| other.latest.total_cmp(&one.latest));
        clients
    }

    /// Returns the last lines that a server wrote.
    pub(crate) fn output(&self, server: &str) -> Vec<String> {
        self.state().output.get(server).map(|lines| lines.iter().cloned().collect()).unwrap_or_default()
    }

    pub(crate) fn progress(&self, call: u64) -> Option<Progress> {
        self.state().progress.get(&call).cloned()
    }

    /// Returns whether a call has not ended.
    pub(crate) fn is_open(&self, call: u64) -> bool {
        self.state().open.values().any(|open| open.seq == call)
    }

    /// Returns the number of a client's request.
    pub(crate) fn call_of(&self, origin: &CallOrigin) -> Option<u64> {
        self.state().origin(origin)
    }

    /// Marks a connection of the page, before its first message.
    pub(crate) fn is_page(&self, connection: u64) {
        let page = Connection { peer: PAGE.to_owned(), revision: None, is_page: true };
        self.state().connect(connection, page);
    }

    /// Records that what servers offer is to be shown differently.
    pub(crate) fn entries_changed(&self) {
        self.state().changed.entries += 1;
        self.news.notify_waiters();
    }

    /// Records a message of a connection that the host does not have, and returns its number.
    pub(crate) fn record(
        &self,
        connection: u64,
        server: &str,
        direction: bowline_client::Direction,
        frame: &[u8],
    ) -> u64 {
        let seq = self.state().server_frame(connection, server, direction, frame, None);
        self.news.notify_waiters();
        seq
    }

    /// Adds a message of an earlier launch. Its number must be the next one.
    pub(crate) fn restore(&self, head: Head, text: Option<&str>, http: Option<String>) {
        let mut state = self.state();
        if head.seq == state.ring.next() {
            state.ring.push_with(head, text.map(str::as_bytes), http.map(Into::into));
        }
    }

    /// Records that checks began or ended.
    pub(crate) fn checks_changed(&self) {
        self.state().changed.checks += 1;
        self.news.notify_waiters();
    }

    /// Records that a key may do more.
    pub(crate) fn access_changed(&self) {
        self.state().changed.access += 1;
        self.news.notify_waiters();
    }

    /// Records that a person is asked. Returns the number of the question and its call.
    pub(crate) fn asked(&self, server: &str, what: &str, call: Option<&CallOrigin>) -> (u64, Option<u64>) {
        let mut state = self.state();
        let parent = call.and_then(|call| state.origin(call));
        let seq = state.note(Kind::Question, server, what, parent, None, None);
        state.changed.inbox += 1;
        drop(state);
        self.news.notify_waiters();
        (seq, parent)
    }

    /// Records the end of a question.
    pub(crate) fn answered(&self, server: &str, what: &str, end: QuestionEnd) {
        let mut state = self.state();
        let parent = state.ring.get(end.seq).and_then(|stored| stored.head.parent);
        let took = end.started.elapsed();
        state.note(Kind::Question, server, what, parent, Some((end.status, took)), Some(end.seq));
        state.changed.inbox += 1;
        drop(state);
        self.news.notify_waiters();
    }
}

impl Tap for Recorder {
    fn event(&self, event: &TapEvent<'_>) {
        let mut state = self.state();
        match event {
            TapEvent::Client(message) => state.client_message(message),
            TapEvent::Server(message) => state.server_message(message),
            TapEvent::Response { connection, server, head } => {
                state.response_head(*connection, server, head);
            }
            TapEvent::Attributed { connection, method, call } => state.attribute(*connection, method, call),
            TapEvent::Continued { call, earlier } => {
                if let (Some(call), Some(earlier)) = (state.origin(call), state.origin(earlier)) {
                    let first =
                        state.ring.get(earlier).and_then(|stored| stored.head.parent).unwrap_or(earlier);
                    state.adopt(call, first);
                }
            }
            TapEvent::Decided { call, server, allowed, reason, took } => {
                let parent = state.origin(call);
                let status = if *allowed { Status::Allowed } else { Status::Denied };
                state.note(Kind::Policy, server, reason, parent, Some((status, *took)), None);
            }
            TapEvent::Model { call, server, error, took } => {
                let parent = call.and_then(|call| state.origin(call));
                let status = if error.is_some() { Status::Failed } else { Status::Done };
                let text = error.unwrap_or("sampling/createMessage");
                state.note(Kind::Model, server, text, parent, Some((status, *took)), None);
            }
            TapEvent::Output { server, line } => {
                if state.output.len() < MAX_SERVERS || state.output.contains_key(*server) {
                    let lines = state.output.entry((*server).to_owned()).or_default();
                    lines.push_back((*line).to_owned());
                    if lines.len() > MAX_OUTPUT {
                        lines.pop_front();
                    }
                }
                state.note(Kind::Output, server, line, None, None, None);
            }
            TapEvent::State { server, health, connection } => {
                if let Some((connection, revision)) = connection {
                    let revision = Some(revision.as_str().to_owned());
                    state.connect(*connection, Connection::of_server(server, revision));
                }
                let (text, status) = match health {
                    Health::Ready => ("ready", Some(Status::Ready)),
                    Health::Failed(reason) => (reason.as_str(), Some(Status::Failed)),
                    Health::Idle => ("stopped", Some(Status::Stopped)),
                    Health::Starting => ("starting", None),
                };
                let end = status.map(|status| (status, Duration::ZERO));
                state.note(Kind::State, server, text, None, end, None);
                state.changed.servers += 1;
            }
            TapEvent::Connected { connection, server, revision } => {
                let revision = Some(revision.as_str().to_owned());
                state.connect(*connection, Connection::of_server(server, revision));
            }
            TapEvent::ListsChanged => {
                state.changed.entries += 1;
                state.changed.servers += 1;
            }
            _ => {}
        }
        drop(state);
        self.news.notify_waiters();
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("buffer", &self.buffer()).finish_non_exhaustive()
    }
}

/// Returns whether a stored message belongs to a call.
pub(super) fn is_of(stored: &Stored, call: u64) -> bool {
    stored.head.call == Some(call)
}

#[cfg(test)]
mod tests {
    use super::{super::state::Passing, *};
    use crate::events::{Direction, Leg};

    #[test]
    fn heads_and_progress_are_masked_before_they_are_cut() {
        let secret = "hunter2-secret".to_owned();
        let recorder = Recorder::new(1_000_000, true, Redactor::new(vec![secret.clone()]));
        // The cut at 200 bytes would leave the beginning of the secret.
        let line = format!("{}{secret}", "x".repeat(195));
        recorder.event(&TapEvent::Output { server: "demo", line: &line });
        let health = Health::Failed(format!("exited: {secret}"));
        recorder.event(&TapEvent::State { server: "demo", health: &health, connection: None });
        let send = |frame: &str| {
            recorder.state().message(&Passing {
                connection: 1,
                leg: Leg::Client,
                direction: if frame.contains("progress\"") { Direction::Out } else { Direction::In },
                peer: "client",
                frame: frame.as_bytes(),
                parent: None,
                about: None,
            })
        };
        let uri = "https://u:p@a.example/x?access_token=abcdef";
        let call = send(&format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{{"uri":"{uri}"}}}}"#
        ));
        send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":7,"progress":1,"message":"at {secret}"}}}}"#
        ));
        let names: Vec<_> = recorder.with_ring(|ring| {
            ring.iter().map(|stored| stored.head.name.clone().unwrap_or_default()).collect()
        });
        let masked = format!("{}***", "x".repeat(195));
        assert_eq!(names[..3], [masked.as_str(), "exited: ***", "https://***@a.example/x?access_token=***"]);
        let message = recorder.progress(call).and_then(|progress| progress.message);
        assert_eq!(message.map(|message| message.text), Some("at ***".to_owned()));
    }

    #[test]
    fn progress_is_kept_only_for_calls_that_run() {
        let recorder = Recorder::new(1_000_000, true, Redactor::new(Vec::new()));
        let pass = |connection, direction, parent, frame: &str| {
            let (leg, peer) = if connection == 1 { (Leg::Client, "client") } else { (Leg::Server, "server") };
            let frame = frame.as_bytes();
            recorder.state().message(&Passing {
                connection,
                leg,
                direction,
                peer,
                frame,
                parent,
                about: None,
            })
        };
        let request = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}"#;
        let response = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#;
        let caller = pass(1, Direction::In, None, request);
        let call = pass(2, Direction::Out, Some(caller), request);
        pass(2, Direction::In, None, progress);
        assert!(recorder.progress(caller).is_some() && recorder.progress(call).is_some());
        // The caller's round ends with a question, while the server's call goes on.
        pass(1, Direction::Out, None, response);
        pass(2, Direction::In, None, progress);
        assert!(recorder.progress(caller).is_none() && recorder.progress(call).is_some());
        pass(2, Direction::In, None, response);
        assert!(recorder.state().progress.is_empty());
        // The same id again, without a response.
        pass(1, Direction::In, None, request);
        pass(1, Direction::Out, None, progress);
        pass(1, Direction::In, None, request);
        assert!(recorder.state().progress.is_empty());
    }
}
