//! What the recorder knows about calls: assigns messages to calls, and calls to the calls that caused them.

use super::{
    connections::Connection,
    http,
    ring::Ring,
    tasks::TaskCalls,
    wire::{self, Parts},
};
use crate::{
    events::{Changed, Direction, Head, Kind, Leg, Status},
    query::{ClientSummary, Progress},
    render::Shown,
};
use bowline_client::ResponseHead;
use bowline_host::ServerMessage;
use bowline_policy::audit::Redactor;
use bowline_server::{CallOrigin, MessageDirection, ObservedMessage};
use bowline_types::Id;
use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// How many calls and finished calls are known at most. Beyond it the oldest are forgotten.
const MAX_OPEN: usize = 10_000;

pub(super) struct State {
    pub(super) ring: Ring,
    /// Masks what heads repeat. Bodies are masked when they are shown.
    pub(super) redactor: Redactor,
    pub(super) changed: Changed,
    pub(super) open: HashMap<CallKey, OpenCall>,
    pub(super) order: VecDeque<CallKey>,
    /// Requests of clients by origin, also after their end, because later rounds and questions refer to them.
    pub(super) origins: HashMap<(u64, String), u64>,
    pub(super) origin_order: VecDeque<(u64, String)>,
    pub(super) connections: HashMap<u64, Connection>,
    pub(super) connection_order: VecDeque<u64>,
    pub(super) clients: HashMap<String, ClientSummary>,
    pub(super) output: HashMap<String, VecDeque<String>>,
    /// The latest progress of calls that run.
    pub(super) progress: HashMap<u64, Progress>,
    pub(super) tasks: TaskCalls,
}

/// A request that waits for its response: the connection, who sent it, its id.
pub(super) type CallKey = (u64, Direction, String);

pub(super) struct OpenCall {
    pub(super) seq: u64,
    pub(super) started: Instant,
    pub(super) method: String,
    pub(super) name: Option<String>,
    pub(super) parent: Option<u64>,
    /// Status and headers of the HTTP response that arrives.
    pub(super) http: Option<Box<str>>,
}

/// A message that passes the host.
pub(super) struct Passing<'a> {
    pub(super) connection: u64,
    pub(super) leg: Leg,
    pub(super) direction: Direction,
    pub(super) peer: &'a str,
    pub(super) frame: &'a [u8],
    /// The call that it was sent for.
    pub(super) parent: Option<u64>,
    /// The request of the peer that a sent message belongs to.
    pub(super) about: Option<&'a str>,
}

impl State {
    pub(super) fn new(ring: Ring, redactor: Redactor) -> Self {
        Self {
            ring,
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
            tasks: TaskCalls::default(),
        }
    }

    pub(super) fn origin(&self, call: &CallOrigin) -> Option<u64> {
        self.origins.get(&(call.connection, id_text(&call.id))).copied()
    }

    pub(super) fn open(&mut self, key: CallKey, call: OpenCall) {
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
        // An id that is used again hides the call before.
        if let Some(hidden) = self.open.insert(key.clone(), call) {
            self.progress.remove(&hidden.seq);
        }
        self.order.push_back(key);
        while self.order.len() > MAX_OPEN
            && let Some(oldest) = self.order.pop_front()
        {
            if let Some(call) = self.open.remove(&oldest) {
                self.progress.remove(&call.seq);
            }
        }
    }

    pub(super) fn end(&mut self, key: &CallKey) -> Option<OpenCall> {
        let call = self.open.remove(key)?;
        self.progress.remove(&call.seq);
        // Few calls are open at a time, so that the ends of the queue are ended calls mostly.
        while self.order.front().is_some_and(|key| !self.open.contains_key(key)) {
            self.order.pop_front();
        }
        Some(call)
    }

    /// Returns the only call that the host has open at a server.
    pub(super) fn only_open(&self, connection: u64) -> Option<(u64, Option<u64>)> {
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
    pub(super) fn message(&mut self, passing: &Passing<'_>) -> u64 {
        let Parts { kind, id, method, name, about, status, code, client, task } =
            wire::read(passing.frame, &self.redactor);
        let (connection, direction, leg) = (passing.connection, passing.direction, passing.leg);
        let seq = self.ring.next();
        if let Some((name, version, revision)) = client
            && leg == Leg::Client
            && direction == Direction::In
        {
            self.introduce(connection, name, version, revision);
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
            task: None,
        };
        let other = match direction {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        };
        let mut http = None;
        match kind {
            Kind::Request => {
                if let Some((task, _)) = task {
                    head.parent = head.parent.or_else(|| self.tasks.call(&head, &task));
                    head.name = head.name.or_else(|| Some(task.id.clone()));
                    head.task = Some(task);
                }
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
                    http: None,
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
                    let is_about_task = call.method.starts_with("tasks/");
                    head.method = Some(call.method);
                    head.name = call.name;
                    http = call.http;
                    // Other results may have members of these names.
                    head.task = task.filter(|(_, is_new)| *is_new || is_about_task).map(|(task, _)| task);
                    if let Some(task) = head.task.as_ref().filter(|_| !is_about_task) {
                        self.tasks.insert(&head, task, call.seq);
                    }
                }
                head.status = status;
            }
            Kind::Notification => {
                head.task = task.map(|(task, _)| task);
                self.assign_notification(&mut head, passing, about.as_deref(), other);
            }
            _ => {}
        }
        self.ring.push_with(head, Some(passing.frame), http);
        seq
    }

    /// Notes the HTTP response to a request. A refusal ends the call, because no message follows.
    pub(super) fn response_head(&mut self, connection: u64, server: &str, response: &ResponseHead<'_>) {
        let Some(id) = response.request.map(id_text) else { return };
        let key = (connection, Direction::Out, id);
        let text = http::text(response, &self.redactor);
        if response.status < 400 {
            if let Some(call) = self.open.get_mut(&key) {
                call.http = Some(text.into());
            }
            return;
        }
        let Some(call) = self.end(&key) else { return };
        let known = self.connections.get(&connection).cloned().unwrap_or_default();
        let head = Head {
            seq: self.ring.next(),
            at: now(),
            connection,
            peer: server.to_owned(),
            leg: Leg::Server,
            direction: Direction::In,
            kind: Kind::Other,
            method: Some(call.method),
            name: Some(http::status(response.status)),
            id: Some(key.2),
            call: Some(call.seq),
            parent: call.parent,
            size: text.len() as u64,
            status: Some(Status::NoAnswer),
            code: Some(response.status.into()),
            took: Some(call.started.elapsed().as_secs_f64() * 1000.0),
            revision: known.revision,
            task: None,
        };
        self.ring.push_with(head, Some(text.as_bytes()), Some(text.as_str().into()));
    }

    /// Finds the call of a notification.
    pub(super) fn assign_notification(
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
            ("notifications/tasks" | "notifications/tasks/status", ..) => {
                let call = head.task.as_ref().and_then(|task| self.tasks.call(head, task));
                call.map(|call| (call, self.ring.get(call).and_then(|stored| stored.head.parent)))
            }
            ("notifications/message", ..) if passing.leg == Leg::Server => self.only_open(connection),
            _ => None,
        };
        if let Some((call, parent)) = call {
            (head.call, head.parent) = (Some(call), parent);
            if method == "notifications/progress"
                && let Some(progress) = progress_of(passing.frame, &self.redactor)
            {
                // The caller's call shows the progress of the server's, unless it has ended before.
                let parent = parent.filter(|parent| self.open.values().any(|open| open.seq == *parent));
                for call in [Some(call), parent].into_iter().flatten() {
                    self.progress.insert(call, progress.clone());
                }
            }
        }
    }

    /// Adds an entry that is not a message, such as a line of standard error.
    pub(super) fn note(
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
            task: None,
        };
        self.ring.push(head, Some(text.as_bytes()));
        seq
    }

    pub(super) fn client_message(&mut self, message: &ObservedMessage<'_>) {
        let info = message.client.and_then(|client| Some((client.info()?, client.revision)));
        if let Some((info, revision)) = info
            && self.connections.get(&message.connection).is_none_or(|known| known.revision.is_none())
        {
            let (name, version) = (wire::cut(&info.name), wire::cut(&info.version));
            self.introduce(message.connection, name, Some(version), Some(revision.as_str().to_owned()));
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

    pub(super) fn server_message(&mut self, message: &ServerMessage<'_>) {
        // A received message is read by the task of the connection, whichever call that task serves.
        let call = message.call.filter(|_| message.direction == bowline_client::Direction::Sent);
        let parent = call.and_then(|call| self.origin(call));
        self.server_frame(message.connection, message.server, message.direction, message.frame, parent);
    }

    pub(super) fn server_frame(
        &mut self,
        connection: u64,
        peer: &str,
        direction: bowline_client::Direction,
        frame: &[u8],
        parent: Option<u64>,
    ) -> u64 {
        if !self.connections.contains_key(&connection) {
            self.connect(connection, Connection::of_server(peer, None));
        }
        let direction = match direction {
            bowline_client::Direction::Sent => Direction::Out,
            bowline_client::Direction::Received => Direction::In,
        };
        self.message(&Passing { connection, leg: Leg::Server, direction, peer, frame, parent, about: None })
    }

    /// Sets the parent of a request, and of its later response.
    pub(super) fn adopt(&mut self, seq: u64, parent: u64) {
        if let Some(call) = self.open.values_mut().find(|call| call.seq == seq) {
            call.parent = Some(parent);
        }
        if self.ring.get(seq).is_some_and(|stored| stored.head.parent != Some(parent)) {
            self.ring.update(seq, |head| head.parent = Some(parent));
        }
    }

    pub(super) fn attribute(&mut self, connection: u64, method: &str, call: &CallOrigin) {
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

/// Returns an id as JSON text.
pub(super) fn id_text(id: &Id) -> String {
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
