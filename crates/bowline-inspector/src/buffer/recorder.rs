//! Records what happens in a host: assigns messages to calls, and calls to the calls that caused them.

use super::{
    ring::{Ring, Stored, Window},
    wire::{self, Parts},
};
use crate::{
    events::{Changed, Direction, Head, Kind, Leg, Status},
    query::{BufferState, ClientSummary, Progress},
    render::Shown,
};
use bowline_host::{Health, ServerMessage, Tap, TapEvent};
use bowline_policy::audit::Redactor;
use bowline_server::{CallOrigin, MessageDirection, ObservedMessage};
use bowline_types::Id;
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use tokio::sync::Notify;

/// How many calls, connections and finished calls are known at most. Beyond it the oldest are forgotten.
const MAX_OPEN: usize = 10_000;
const MAX_CONNECTIONS: usize = 4096;
const MAX_CLIENTS: usize = 64;
/// How many lines of output are kept per server, and for how many servers.
const MAX_OUTPUT: usize = 200;
const MAX_SERVERS: usize = 1000;

/// The name of the page among clients.
pub(crate) const PAGE: &str = "page";

/// Records messages. Clones share everything.
#[derive(Clone)]
pub(crate) struct Recorder {
    state: Arc<Mutex<State>>,
    news: Arc<Notify>,
}

struct State {
    ring: Ring,
    /// Masks what heads repeat. Bodies are masked when they are shown.
    redactor: Redactor,
    changed: Changed,
    open: HashMap<CallKey, OpenCall>,
    order: VecDeque<CallKey>,
    /// Requests of clients by origin, also after their end, because later rounds and questions refer to them.
    origins: HashMap<(u64, String), u64>,
    origin_order: VecDeque<(u64, String)>,
    connections: HashMap<u64, Connection>,
    connection_order: VecDeque<u64>,
    clients: HashMap<String, ClientSummary>,
    output: HashMap<String, VecDeque<String>>,
    /// The latest progress of calls that run.
    progress: HashMap<u64, Progress>,
}

/// A request that waits for its response: the connection, who sent it, its id.
type CallKey = (u64, Direction, String);

struct OpenCall {
    seq: u64,
    started: Instant,
    method: String,
    name: Option<String>,
    parent: Option<u64>,
}

#[derive(Clone, Default)]
struct Connection {
    peer: String,
    revision: Option<String>,
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
        let state = State {
            ring: Ring::new(limit, bodies),
            redactor,
            changed: Changed::default(),
            open: HashMap::new(),
            order: VecDeque::new(),
            origins: HashMap::new(),
            origin_order: VecDeque::new(),
            connections: HashMap::new(),
            connection_order: VecDeque::new(),
            clients: HashMap::new(),
            output: HashMap::new(),
            progress: HashMap::new(),
        };
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

/// A message that passes the host.
struct Passing<'a> {
    connection: u64,
    leg: Leg,
    direction: Direction,
    peer: &'a str,
    frame: &'a [u8],
    /// The call that it was sent for.
    parent: Option<u64>,
    /// The request of the peer that a sent message belongs to.
    about: Option<&'a str>,
}

impl State {
    fn connect(&mut self, number: u64, connection: Connection) {
        if self.connections.insert(number, connection).is_none() {
            self.connection_order.push_back(number);
        }
        while self.connections.len() > MAX_CONNECTIONS
            && let Some(oldest) = self.connection_order.pop_front()
        {
            self.connections.remove(&oldest);
        }
    }

    fn origin(&self, call: &CallOrigin) -> Option<u64> {
        self.origins.get(&(call.connection, id_text(&call.id))).copied()
    }

    fn open(&mut self, key: CallKey, call: OpenCall) {
        if key.1 == Direction::In {
            let origin = (key.0, key.2.clone());
            self.origins.insert(origin.clone(), call.seq);
            self.origin_order.push_back(origin);
            while self.origin_order.len() > MAX_OPEN
                && let Some(oldest) = self.origin_order.pop_front()
            {
                self.origins.remove(&oldest);
            }
        }
        self.open.insert(key.clone(), call);
        self.order.push_back(key);
        while self.order.len() > MAX_OPEN
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some(call) = self.open.remove(&oldest) {
                self.progress.remove(&call.seq);
            }
        }
    }

    fn end(&mut self, key: &CallKey) -> Option<OpenCall> {
        let call = self.open.remove(key)?;
        self.progress.remove(&call.seq);
        // Few calls are open at a time, so that the ends of the queue are ended calls mostly.
        while self.order.front().is_some_and(|key| !self.open.contains_key(key)) {
            self.order.pop_front();
        }
        Some(call)
    }

    /// Returns the only call that the host has open at a server.
    fn only_open(&self, connection: u64) -> Option<(u64, Option<u64>)> {
        let mut open = self
            .open
            .iter()
            .filter(|((at, direction, _), _)| *at == connection && *direction == Direction::Out);
        match (open.next(), open.next()) {
            (Some((_, call)), None) => Some((call.seq, call.parent)),
            _ => None,
        }
    }

    /// Adds a message and returns its number.
    fn message(&mut self, passing: &Passing<'_>) -> u64 {
        let Parts { kind, id, method, name, about, status, code, client } =
            wire::read(passing.frame, &self.redactor);
        let (connection, direction, leg) = (passing.connection, passing.direction, passing.leg);
        let seq = self.ring.next();
        if let Some((name, version, revision)) = client
            && leg == Leg::Client
            && direction == Direction::In
        {
            self.meet(&name, version, revision.clone());
            self.connect(connection, Connection { peer: name, revision });
        }
        let known = self.connections.get(&connection).cloned().unwrap_or_default();
        let peer = if known.peer.is_empty() { passing.peer.to_owned() } else { known.peer };
        let mut head = Head {
            seq,
            at: now(),
            connection,
            peer,
            leg,
            direction,
            kind,
            method,
            name,
            id,
            call: None,
            parent: passing.parent,
            size: passing.frame.len() as u64,
            status: None,
            code,
            took: None,
            revision: known.revision,
        };
        let other = match direction {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        };
        match kind {
            Kind::Request => {
                if head.parent.is_none() {
                    head.parent = match (leg, direction) {
                        (Leg::Client, Direction::Out) => passing
                            .about
                            .and_then(|about| self.open.get(&(connection, Direction::In, about.to_owned())))
                            .map(|call| call.seq),
                        (Leg::Server, Direction::In) => self.only_open(connection).map(|(seq, _)| seq),
                        _ => None,
                    };
                }
                head.call = Some(seq);
                let call = OpenCall {
                    seq,
                    started: Instant::now(),
                    method: head.method.clone().unwrap_or_default(),
                    name: head.name.clone(),
                    parent: head.parent,
                };
                if let Some(client) = self.clients.get_mut(&head.peer).filter(|_| leg == Leg::Client) {
                    client.latest = head.at;
                    client.calls += u64::from(call.method == "tools/call");
                    // The first call and the first message after a pause are noticed.
                    if client.calls == 1 {
                        self.changed.clients += 1;
                    }
                }
                self.open((connection, direction, head.id.clone().unwrap_or_default()), call);
            }
            Kind::Response => {
                let key = (connection, other, head.id.clone().unwrap_or_default());
                if let Some(call) = self.end(&key) {
                    head.call = Some(call.seq);
                    head.parent = call.parent;
                    head.took = Some(call.started.elapsed().as_secs_f64() * 1000.0);
                    head.method = Some(call.method);
                    head.name = call.name;
                }
                head.status = status;
            }
            Kind::Notification => {
                self.assign_notification(&mut head, passing, about.as_deref(), other);
            }
            _ => {}
        }
        self.ring.push(head, Some(passing.frame));
        seq
    }

    /// Finds the call of a notification.
    fn assign_notification(
        &mut self,
        head: &mut Head,
        passing: &Passing<'_>,
        about: Option<&str>,
        other: Direction,
    ) {
        let connection = passing.connection;
        let method = head.method.clone().unwrap_or_default();
        let call = match (method.as_str(), about, passing.about) {
            ("notifications/cancelled", Some(about), _) => {
                let key = (connection, passing.direction, about.to_owned());
                if let Some(call) = self.end(&key) {
                    head.status = Some(Status::Cancelled);
                    head.took = Some(call.started.elapsed().as_secs_f64() * 1000.0);
                    head.name = head.name.take().or(call.name);
                    Some((call.seq, call.parent))
                } else {
                    None
                }
            }
            (_, _, Some(about)) => {
                let call = self.open.get(&(connection, Direction::In, about.to_owned()));
                call.map(|call| (call.seq, call.parent))
            }
            ("notifications/progress", Some(about), None) => {
                let call = self.open.get(&(connection, other, about.to_owned()));
                call.map(|call| (call.seq, call.parent))
            }
            ("notifications/message", ..) if passing.leg == Leg::Server => self.only_open(connection),
            _ => None,
        };
        if let Some((call, parent)) = call {
            (head.call, head.parent) = (Some(call), parent);
            if method == "notifications/progress"
                && let Some(progress) = progress_of(passing.frame, &self.redactor)
            {
                // The caller's call shows the progress of the server's.
                for call in [Some(call), parent].into_iter().flatten() {
                    self.progress.insert(call, progress.clone());
                }
            }
        }
    }

    /// Notes a client that introduces itself.
    fn meet(&mut self, name: &str, version: Option<String>, revision: Option<String>) {
        if name == PAGE {
            return;
        }
        let at = now();
        let is_new = !self.clients.contains_key(name);
        if is_new && self.clients.len() >= MAX_CLIENTS {
            return;
        }
        let client = self.clients.entry(name.to_owned()).or_insert_with(|| ClientSummary {
            name: name.to_owned(),
            version: None,
            revision: None,
            since: at,
            latest: at,
            calls: 0,
        });
        (client.version, client.revision, client.latest) = (version, revision, at);
        if is_new {
            self.changed.clients += 1;
        }
    }

    /// Adds something that is not a message.
    fn note(
        &mut self,
        kind: Kind,
        peer: &str,
        text: &str,
        parent: Option<u64>,
        end: Option<(Status, Duration)>,
        call: Option<u64>,
    ) -> u64 {
        // Masked before it is cut, because a part of a secret would not be recognized.
        let text = self.redactor.text(text);
        let seq = self.ring.next();
        let is_step = matches!(kind, Kind::Policy | Kind::Question | Kind::Model);
        let head = Head {
            seq,
            at: now(),
            connection: 0,
            peer: peer.to_owned(),
            leg: Leg::Host,
            direction: Direction::In,
            kind,
            method: None,
            name: Some(wire::cut(&text)),
            id: None,
            call: call.or_else(|| is_step.then_some(seq)),
            parent,
            size: text.len() as u64,
            status: end.map(|(status, _)| status),
            code: None,
            took: end.map(|(_, took)| took.as_secs_f64() * 1000.0).filter(|_| is_step),
            revision: None,
        };
        self.ring.push(head, Some(text.as_bytes()));
        seq
    }

    fn client_message(&mut self, message: &ObservedMessage<'_>) {
        let info = message.client.and_then(|client| Some((client.info()?, client.revision)));
        if let Some((info, revision)) = info
            && !self.connections.contains_key(&message.connection)
        {
            let (name, revision) = (wire::cut(&info.name), revision.as_str().to_owned());
            self.meet(&name, Some(wire::cut(&info.version)), Some(revision.clone()));
            self.connect(message.connection, Connection { peer: name, revision: Some(revision) });
        }
        let about = message.about.map(id_text);
        self.message(&Passing {
            connection: message.connection,
            leg: Leg::Client,
            direction: match message.direction {
                MessageDirection::Received => Direction::In,
                MessageDirection::Sent => Direction::Out,
            },
            peer: "client",
            frame: message.frame,
            parent: None,
            about: about.as_deref(),
        });
    }

    fn server_message(&mut self, message: &ServerMessage<'_>) {
        if !self.connections.contains_key(&message.connection) {
            self.connect(message.connection, Connection { peer: message.server.to_owned(), revision: None });
        }
        let direction = match message.direction {
            bowline_client::Direction::Sent => Direction::Out,
            bowline_client::Direction::Received => Direction::In,
        };
        // A received message is read by the task of the connection, whichever call that task serves.
        let call = message.call.filter(|_| direction == Direction::Out);
        let parent = call.and_then(|call| self.origin(call));
        let (connection, peer, frame) = (message.connection, message.server, message.frame);
        self.message(&Passing { connection, leg: Leg::Server, direction, peer, frame, parent, about: None });
    }

    /// Sets the parent of a request, and of its later response.
    fn adopt(&mut self, seq: u64, parent: u64) {
        if let Some(call) = self.open.values_mut().find(|call| call.seq == seq) {
            call.parent = Some(parent);
        }
        if self.ring.get(seq).is_some_and(|stored| stored.head.parent != Some(parent)) {
            self.ring.update(seq, |head| head.parent = Some(parent));
        }
    }

    fn attribute(&mut self, connection: u64, method: &str, call: &CallOrigin) {
        let Some(client_call) = self.origin(call) else { return };
        // The server's call that belongs to the client's call.
        let upstream = self.open.iter().find(|((at, direction, _), open)| {
            *at == connection && *direction == Direction::Out && open.parent == Some(client_call)
        });
        let parent = upstream.map_or(client_call, |(_, open)| open.seq);
        let asked = self.open.iter().filter(|((at, direction, _), open)| {
            *at == connection && *direction == Direction::In && open.method == method
        });
        if let Some(seq) = asked.map(|(_, open)| open.seq).max() {
            self.adopt(seq, parent);
        }
    }
}

impl Tap for Recorder {
    fn event(&self, event: &TapEvent<'_>) {
        let mut state = self.state();
        match event {
            TapEvent::Client(message) => state.client_message(message),
            TapEvent::Server(message) => state.server_message(message),
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
                    state.connect(*connection, Connection { peer: (*server).to_owned(), revision });
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

/// Returns an id as JSON text.
fn id_text(id: &Id) -> String {
    serde_json::to_string(id).map(|text| wire::cut(&text)).unwrap_or_default()
}

fn progress_of(frame: &[u8], redactor: &Redactor) -> Option<Progress> {
    #[derive(serde::Deserialize)]
    struct Message {
        params: Params,
    }
    #[derive(serde::Deserialize)]
    struct Params {
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    }
    let Params { progress, total, message } = serde_json::from_slice::<Message>(frame).ok()?.params;
    let message = message.map(|message| Shown::line(&redactor.text(&message)));
    Some(Progress { progress, total, message })
}

/// Milliseconds since 1970.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1000.0)
}

/// Returns whether a stored message belongs to a call.
pub(super) fn is_of(stored: &Stored, call: u64) -> bool {
    stored.head.call == Some(call)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
