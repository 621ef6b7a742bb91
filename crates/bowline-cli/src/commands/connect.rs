//! `bowline connect`: connects a stdio client to the user's running gateway.
//!
//! Messages pass unchanged in both directions and both eras. If the gateway restarts, pending requests fail and the session of a
//! legacy client is reopened.

mod link;

use crate::{
    context::{Context, Frames},
    failure::{Code, Failure},
    running_gateway::{self, RunningGateway},
    signals::ShutdownSignals,
};
use bowline_client::{CancelWay, Direction, Outgoing, OutgoingKind};
use bowline_proto::{
    encode,
    envelope::{self, Message},
    lines::{self, Line, Lines},
};
use bowline_types::{CancelledParams, Era, Id, Method, RawJson, Revision, RpcError, error_code};
use bytes::Bytes;
use clap::Args;
use link::{Link, ProcessExit, Received, Waiting};
use serde_json::value::RawValue;
use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Stdin},
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

/// The maximum length of a message.
const MAX_FRAME: usize = 64 << 20;
/// The maximum number of bytes queued for a client that does not read.
const MAX_QUEUED: usize = 128 << 20;
/// The maximum number of subscriptions that are restored.
const MAX_SUBSCRIPTIONS: usize = 10_000;
/// How long a message waits for a restarting gateway.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often to look for a missing gateway.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(200);
/// How long to wait for pending responses after the client closed its end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Connects a stdio client to your running gateway
///
/// For clients that can only start servers over stdio, such as Claude Desktop. Sends your token and reconnects when the gateway
/// restarts.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The port of the gateway [default: 7337 if a gateway runs there, otherwise the gateway started last]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let signals = ShutdownSignals::listen()?;
    let (output, writer) = Output::start(context.frames());
    let mut bridge = Bridge {
        context,
        port: arguments.port,
        output,
        client: ClientState::default(),
        link: None,
        lost_since: None,
        watched: None,
    };
    if !bridge.try_connect().await? {
        return Err(not_running(arguments.port));
    }
    let ended = tokio::select! {
        ended = bridge.pass() => ended,
        () = signals.received(1) => Ok(()),
    };
    tokio::select! {
        () = bridge.close() => {}
        () = signals.received(2) => {}
    }
    drop(bridge);
    // Let the client read what is already queued.
    let _ = timeout(CLOSE_TIMEOUT, writer).await;
    ended
}

fn not_running(port: Option<u16>) -> Failure {
    match port {
        Some(port) => Failure::new(Code::Unreachable, format!("your gateway is not running on port {port}"))
            .advise(format!("start it with `bowline up --port {port}`")),
        None => Failure::new(Code::Unreachable, "your gateway is not running")
            .advise("start it with `bowline up` or `bowline gateway`, as the same user"),
    }
}

/// Relays messages between the client and the gateway.
struct Bridge<'a> {
    context: &'a Context,
    port: Option<u16>,
    output: Arc<Output>,
    client: ClientState,
    link: Option<Link>,
    /// When the gateway was lost. Later messages do not wait again.
    lost_since: Option<Instant>,
    /// The gateway found last, and whether its process has exited.
    watched: Option<(RunningGateway, Arc<ProcessExit>)>,
}

/// The messages of a legacy client that define its session.
#[derive(Default)]
struct ClientState {
    initialize: Option<(Id, Outgoing)>,
    initialized: Option<Outgoing>,
    level: Option<(Id, Outgoing)>,
    subscriptions: BTreeMap<String, (Id, Outgoing)>,
    revision: Option<Revision>,
}

impl Bridge<'_> {
    /// Relays messages until the client closes its end.
    async fn pass(&mut self) -> Result<(), Failure> {
        let mut input = Input { stdin: tokio::io::stdin(), lines: Lines::new(MAX_FRAME) };
        let output = Arc::clone(&self.output);
        loop {
            tokio::select! {
                line = input.next() => match line? {
                    Some(Line::Frame(frame)) => self.take(&frame).await?,
                    Some(Line::TooLong) => {
                        let error = RpcError::invalid_request(format!("message exceeds {MAX_FRAME} bytes"));
                        self.output.write(&encode::failure(None, &error));
                    }
                    None => return Ok(()),
                },
                () = Link::over(self.link.as_ref()) => self.disconnect(),
                () = sleep(RECONNECT_INTERVAL), if self.link.is_none() => {
                    self.try_connect().await?;
                }
                () = output.overflow.notified() => {
                    return Err(Failure::new(Code::Failed, format!("the client does not read: {MAX_QUEUED} bytes are queued")));
                }
            }
        }
    }

    /// Handles a frame of the client.
    async fn take(&mut self, frame: &Bytes) -> Result<(), Failure> {
        self.output.frames.show(Direction::Sent, frame);
        if frame.first() == Some(&b'[') {
            // Only 2025-03-26 has batches; their messages are relayed one by one.
            let parts = serde_json::from_slice::<Vec<Box<RawValue>>>(frame).unwrap_or_default();
            if parts.is_empty() {
                let error = RpcError::invalid_request("the batch is empty");
                self.output.write(&encode::failure(None, &error));
            }
            for part in parts {
                self.take_one(&Bytes::from(part.get().to_owned())).await?;
            }
            return Ok(());
        }
        self.take_one(frame).await
    }

    async fn take_one(&mut self, frame: &Bytes) -> Result<(), Failure> {
        let message = match envelope::parse(frame) {
            envelope::Frame::Single(Ok(message)) => message,
            envelope::Frame::Single(Err(rejected)) => {
                if let Some(reply) = rejected.reply() {
                    self.output.write(&reply);
                }
                return Ok(());
            }
            envelope::Frame::Batch(_) => return Ok(()),
        };
        let is_there = self.reconnect().await?;
        let Some(link) = self.link.as_ref().filter(|_| is_there) else {
            if let Message::Request { id, .. } = message {
                let error = RpcError::new(error_code::INTERNAL_ERROR, not_running(self.port).sentence);
                self.output.write(&encode::failure(Some(&id), &error));
            }
            return Ok(());
        };
        let frame = frame.clone();
        match message {
            Message::Request { id, method, params } => {
                let params = params.map_or_else(RawJson::empty_object, |params| params.raw().clone());
                let era = if is_modern(&params) { Era::Modern } else { Era::Legacy };
                let kind = OutgoingKind::Request { id: id.clone(), method: method.as_str().into(), params };
                let outgoing = Outgoing { frame, kind };
                if era == Era::Legacy {
                    self.client.note_request(&id, method.as_str(), &outgoing);
                }
                if method.as_str() == Method::Initialize.as_str() {
                    link.received.state().initialize = Some(id.clone());
                }
                link.received.state().pending.insert(id, Waiting::Client(era));
                let transport = link.transport(era);
                transport.ready().await;
                transport.send(outgoing);
            }
            Message::Notification { method, params } if method.as_str() == Method::Cancelled.as_str() => {
                let cancelled = params.and_then(|params| params.raw().decode::<CancelledParams>().ok());
                let Some(id) = cancelled.and_then(|cancelled| cancelled.request_id) else { return Ok(()) };
                let Some(Waiting::Client(era)) = link.received.state().pending.remove(&id) else {
                    return Ok(());
                };
                let transport = link.transport(era);
                if transport.cancel(&id) == CancelWay::Notify {
                    let kind = OutgoingKind::Notification { method: method.as_str().into() };
                    transport.send(Outgoing { frame, kind });
                }
            }
            Message::Notification { method, .. } => {
                let kind = OutgoingKind::Notification { method: method.as_str().into() };
                let outgoing = Outgoing { frame, kind };
                if method.as_str() == Method::Initialized.as_str() {
                    self.client.initialized = Some(outgoing.clone());
                }
                let era = if self.client.initialize.is_some() { Era::Legacy } else { Era::Modern };
                link.transport(era).send(outgoing);
            }
            Message::Response { id, .. } => {
                link.legacy.send(Outgoing { frame, kind: OutgoingKind::Response { id: Some(id) } });
            }
            Message::Failure { id, .. } => {
                link.legacy.send(Outgoing { frame, kind: OutgoingKind::Response { id } });
            }
        }
        Ok(())
    }

    /// Drops the connection and fails all pending requests.
    fn disconnect(&mut self) {
        let Some(link) = self.link.take() else { return };
        let error = RpcError::new(error_code::INTERNAL_ERROR, "the gateway exited before it responded");
        link.received.fail_all(&error);
        self.client.revision = self.client.revision.or(link.received.state().revision);
    }

    /// Waits for a restarting gateway and returns whether there is a connection.
    async fn reconnect(&mut self) -> Result<bool, Failure> {
        if self.link.as_ref().is_some_and(Link::is_over) {
            self.disconnect();
        }
        let deadline = *self.lost_since.get_or_insert_with(Instant::now) + RECONNECT_TIMEOUT;
        loop {
            if self.link.is_some() || self.try_connect().await? {
                self.lost_since = None;
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            sleep(RECONNECT_INTERVAL).await;
        }
    }

    /// Connects to the gateway, if it is running, and reopens the session of the client.
    async fn try_connect(&mut self) -> Result<bool, Failure> {
        let Some((running, lock)) = running_gateway::attach(&self.context.environment, self.port) else {
            return Ok(false);
        };
        let known = self.watched.take().filter(|(watched, ended)| *watched == running && !ended.is_ended());
        let ended = known.map_or_else(|| ProcessExit::watch(lock), |(_, ended)| ended);
        self.watched = Some((running.clone(), Arc::clone(&ended)));
        let received = Arc::new(Received::new(Arc::clone(&self.output)));
        let link = match Link::open(&running, received, ended).await {
            Ok(link) => link,
            Err(error) if error.is_unreachable() => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        match self.client.replay(&link, &self.output).await {
            Ok(()) => {
                self.link = Some(link);
                self.lost_since = None;
                Ok(true)
            }
            // The gateway exited in the meantime.
            Err(ReopenError::GatewayExited) => Ok(false),
            Err(ReopenError::Incompatible(sentence)) => Err(Failure::new(Code::Protocol, sentence)),
        }
    }

    /// Waits briefly for pending responses and closes the session.
    async fn close(&mut self) {
        let Some(link) = &self.link else { return };
        let _ = timeout(CLOSE_TIMEOUT, link.received.all_answered()).await;
        tokio::join!(link.legacy.close(), link.modern.close());
    }
}

/// Why a session was not reopened.
enum ReopenError {
    /// The gateway exited; another one may start.
    GatewayExited,
    /// The new gateway is incompatible with the session.
    Incompatible(String),
}

impl ClientState {
    /// Remembers requests that define the session.
    fn note_request(&mut self, id: &Id, method: &str, outgoing: &Outgoing) {
        let said = || (id.clone(), outgoing.clone());
        match Method::parse(method) {
            Some(Method::Initialize) => *self = Self { initialize: Some(said()), ..Self::default() },
            Some(Method::SetLevel) => self.level = Some(said()),
            Some(Method::Subscribe) => {
                if let Some(uri) = uri(outgoing).filter(|_| self.subscriptions.len() < MAX_SUBSCRIPTIONS) {
                    self.subscriptions.insert(uri, said());
                }
            }
            Some(Method::Unsubscribe) => {
                if let Some(uri) = uri(outgoing) {
                    self.subscriptions.remove(&uri);
                }
            }
            _ => {}
        }
    }

    /// Reopens the session of a legacy client, and notifies the client that every list may have changed.
    async fn replay(&self, link: &Link, output: &Output) -> Result<(), ReopenError> {
        let Some((id, initialize)) = &self.initialize else { return Ok(()) };
        link.received.state().initialize = Some(id.clone());
        let opened = link.ask(id, initialize).await.map_err(|_| ReopenError::GatewayExited)?;
        if link.is_over() {
            return Err(ReopenError::GatewayExited);
        }
        let Some(opened) = opened else {
            return Err(ReopenError::Incompatible(
                "the restarted gateway refused to reopen the session".to_owned(),
            ));
        };
        let revision = link.received.state().revision;
        if self.revision.is_some() && revision != self.revision {
            return Err(ReopenError::Incompatible(
                "the restarted gateway uses a different protocol revision".to_owned(),
            ));
        }
        let Some(initialized) = &self.initialized else { return Ok(()) };
        link.legacy.send(initialized.clone());
        for (id, outgoing) in self.level.iter().chain(self.subscriptions.values()) {
            // The client already has the response.
            drop(link.ask(id, outgoing).await.map_err(|_| ReopenError::GatewayExited)?);
        }
        let opened = opened.to_value().unwrap_or_default();
        for (list, method) in [
            ("tools", Method::ToolsListChanged),
            ("prompts", Method::PromptsListChanged),
            ("resources", Method::ResourcesListChanged),
        ] {
            if opened.pointer(&format!("/capabilities/{list}/listChanged")) == Some(&true.into()) {
                output.write(&encode::notification(method, None));
            }
        }
        Ok(())
    }
}

/// Returns the URI of a subscription.
fn uri(outgoing: &Outgoing) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Seen {
        uri: String,
    }
    let OutgoingKind::Request { params, .. } = &outgoing.kind else { return None };
    params.decode::<Seen>().ok().map(|seen| seen.uri)
}

/// Returns whether a request declares a modern revision.
fn is_modern(params: &RawJson) -> bool {
    #[derive(serde::Deserialize)]
    struct Seen {
        #[serde(rename = "_meta")]
        meta: HashMap<String, serde_json::Value>,
    }
    let seen = params.decode::<Seen>().ok();
    let version = seen.as_ref().and_then(|seen| seen.meta.get(bowline_types::meta::key::PROTOCOL_VERSION));
    version.and_then(|version| version.as_str()?.parse::<Revision>().ok()).is_some_and(Revision::is_modern)
}

/// Reads messages of the client.
struct Input {
    stdin: Stdin,
    lines: Lines,
}

impl Input {
    /// Returns the next line. Cancel safe.
    async fn next(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.lines.next_line() {
                return Ok(Some(line));
            }
            if self.stdin.read_buf(self.lines.space()).await? == 0 {
                return Ok(self.lines.rest());
            }
        }
    }
}

/// Writes messages to the client.
struct Output {
    queue: mpsc::UnboundedSender<Bytes>,
    queued: Arc<AtomicUsize>,
    overflow: Notify,
    frames: Frames,
}

impl Output {
    /// Starts the task that writes to standard output.
    fn start(frames: Frames) -> (Arc<Self>, JoinHandle<()>) {
        let (queue, mut waiting) = mpsc::unbounded_channel::<Bytes>();
        let queued = Arc::new(AtomicUsize::new(0));
        let written = Arc::clone(&queued);
        let writer = tokio::spawn(async move {
            let mut stdout = tokio::io::stdout();
            while let Some(frame) = waiting.recv().await {
                written.fetch_sub(frame.len(), Ordering::Relaxed);
                // A client that is gone also closes our standard input, which ends the program.
                if stdout.write_all(&frame).await.is_err() || stdout.flush().await.is_err() {
                    return;
                }
            }
        });
        (Arc::new(Self { queue, queued, overflow: Notify::new(), frames }), writer)
    }

    fn write(&self, frame: &Bytes) {
        self.frames.show(Direction::Received, frame);
        let mut line = frame.to_vec();
        lines::join(&mut line);
        line.push(b'\n');
        if self.queued.fetch_add(line.len(), Ordering::Relaxed) + line.len() > MAX_QUEUED {
            self.overflow.notify_one();
            return;
        }
        // Fails only if the client is gone.
        drop(self.queue.send(line.into()));
    }
}

impl fmt::Debug for Bridge<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").field("port", &self.port).finish_non_exhaustive()
    }
}
