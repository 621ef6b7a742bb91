//! The client side: turns frames into HTTP requests, and replies into frames.

use super::{
    ENDPOINT, STREAM_2024,
    client_frame::ClientFrame,
    reader::{Reader, ReceivedFrame},
    request::{Outgoing, Reply},
    session::{Session, resolve},
};
use crate::peer::{history::History, link::Inbox};
use bowline_http::HttpService;
use bowline_types::Revision;
use serde_json::Value;
use std::{collections::HashMap, io, net::SocketAddr};
use tokio::{
    sync::{mpsc, oneshot},
    task::{AbortHandle, JoinSet},
};

/// The number of received frames after which streams are no longer read.
const WAITING: usize = 256;

/// The client side of a conversation over HTTP.
pub(in crate::peer) struct Http {
    to: SocketAddr,
    service: HttpService,
    session: Session,
    /// The streams of 2026-07-28 by request id. Closing a stream cancels its request.
    streams: HashMap<String, AbortHandle>,
    readers: JoinSet<()>,
    next_stream: u64,
    received: mpsc::Receiver<ReceivedFrame>,
    /// `None` after the client side was closed.
    sender: Option<mpsc::Sender<ReceivedFrame>>,
    /// Completes when the stream for messages without a request is open.
    get_stream: Option<oneshot::Receiver<()>>,
}

impl Http {
    pub(super) fn new(to: SocketAddr, service: HttpService) -> Self {
        let (sender, received) = mpsc::channel(WAITING);
        Self {
            to,
            service,
            session: Session::None,
            streams: HashMap::new(),
            readers: JoinSet::new(),
            next_stream: 1,
            received,
            sender: Some(sender),
            get_stream: None,
        }
    }

    /// Sends each line as its own request.
    pub(in crate::peer) async fn send(
        &mut self,
        bytes: &[u8],
        inbox: &mut Inbox,
        history: &mut History,
    ) -> io::Result<()> {
        let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        for line in lines.filter(|line| !line.is_empty()) {
            let frame = ClientFrame::read(line);
            let answer = self.post(&frame, line, history).await?;
            while let Ok(received) = self.received.try_recv() {
                inbox.arrive(received.stream, received.text.as_bytes(), history);
            }
            if let Some(answer) = answer {
                inbox.arrive(answer.stream, answer.text.as_bytes(), history);
            }
        }
        Ok(())
    }

    pub(in crate::peer) async fn more(&mut self, inbox: &mut Inbox, history: &mut History) -> bool {
        let Some(received) = self.received.recv().await else { return false };
        inbox.arrive(received.stream, received.text.as_bytes(), history);
        true
    }

    /// Ends the server, so that it cannot send anything afterwards. Then the session ends.
    pub(in crate::peer) fn close_sending(&mut self) {
        let Some(sender) = self.sender.take() else { return };
        self.service.end();
        let get_stream = self.get_stream.take();
        let session = self.session.clone();
        let (to, stream) = (self.to, self.number());
        self.readers.spawn(async move {
            if let Some(get_stream) = get_stream {
                // A dropped sender counts as completed.
                let _ = get_stream.await;
            }
            let Session::Named { .. } = session else { return };
            let ended = session.own(Outgoing::delete(ENDPOINT)).send(to, b"").await;
            let text = match ended {
                Ok(reply) if reply.status.is_success() => return,
                Ok(reply) => format!("DELETE: HTTP {}", reply.status),
                Err(error) => format!("DELETE: {error}"),
            };
            // The peer may be gone.
            let _ = sender.send(ReceivedFrame { stream, text }).await;
        });
    }

    fn number(&mut self) -> u64 {
        self.next_stream += 1;
        self.next_stream
    }

    async fn post(
        &mut self,
        frame: &ClientFrame,
        line: &[u8],
        history: &mut History,
    ) -> io::Result<Option<ReceivedFrame>> {
        if self.sender.is_none() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let cancelled = frame.cancels().and_then(|id| self.streams.remove(&id.to_string()));
        if let Some(stream) = cancelled.filter(|stream| !stream.is_finished()) {
            stream.abort();
            return Ok(None);
        }
        let opens = frame.opens().filter(|_| matches!(self.session, Session::None));
        if opens == Some(Revision::V2024_11_05.as_str()) {
            self.open_two_endpoints().await?;
        }
        let is_modern = frame.describes_itself() || matches!(self.session, Session::None) && opens.is_none();
        let request = match &self.session {
            _ if is_modern => frame.mirror(Outgoing::post(ENDPOINT)),
            Session::TwoEndpoints { path } => Outgoing::post(path),
            session => session.own(Outgoing::post(ENDPOINT)),
        };
        let reply = request.send(self.to, line).await?;
        if reply.is_stream() {
            let back = if is_modern { Session::None } else { self.session.clone() };
            let reader = self.read(reply, back);
            if let Some(id) = frame.id().filter(|_| is_modern) {
                self.streams.insert(id.to_string(), reader);
            }
            return Ok(None);
        }
        let id = reply.headers.get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        let status = reply.status;
        let body = String::from_utf8_lossy(&reply.whole().await?).into_owned();
        if opens.is_some() {
            self.open_session(id, &body);
        }
        if frame.method() == Some("notifications/initialized") && !is_modern {
            self.open_get_stream().await?;
        }
        if body.is_empty() && status.is_success() {
            return Ok(None);
        }
        if frame.is_final() && status.is_client_error() {
            // There is no frame for this on a byte stream.
            history.received(&format!("(HTTP {status}) {body}"));
            return Ok(None);
        }
        let is_result = serde_json::from_str::<Value>(&body).is_ok_and(|body| body.get("result").is_some());
        let text = match (body.is_empty(), status.is_success()) {
            (true, _) => format!("HTTP {status} without a body"),
            (false, false) if is_result => format!("HTTP {status} with a result: {body}"),
            (false, _) => body,
        };
        Ok(Some(ReceivedFrame { stream: self.number(), text }))
    }

    fn open_session(&mut self, id: Option<String>, body: &str) {
        let answer: Value = serde_json::from_str(body).unwrap_or_default();
        let revision = answer.pointer("/result/protocolVersion").and_then(Value::as_str);
        if let (Some(id), Session::None) = (id, &self.session) {
            self.session = Session::Named { id, revision: revision.and_then(Revision::parse) };
        }
    }

    /// Opens the stream for messages that belong to no request.
    async fn open_get_stream(&mut self) -> io::Result<()> {
        let Session::Named { .. } = &self.session else { return Ok(()) };
        if self.get_stream.is_some() {
            return Ok(());
        }
        let reply = self.session.own(Outgoing::get(ENDPOINT)).send(self.to, b"").await?;
        if !reply.is_stream() {
            return Err(io::Error::other(format!("GET: HTTP {}", reply.status)));
        }
        let (ended, get_stream) = oneshot::channel::<()>();
        self.get_stream = Some(get_stream);
        let (stream, sender) = (self.number(), self.sender.clone());
        self.readers.spawn(async move {
            if let Some(sender) = sender {
                Reader { reply, stream, sender }.run(None).await;
            }
            drop(ended);
        });
        Ok(())
    }

    async fn open_two_endpoints(&mut self) -> io::Result<()> {
        let mut reply = Outgoing::get(STREAM_2024).send(self.to, b"").await?;
        let first = reply.event().await?.filter(|event| event.name.as_deref() == Some("endpoint"));
        let Some(endpoint) = first else {
            return Err(io::Error::other("the stream does not begin with its endpoint"));
        };
        self.session = Session::TwoEndpoints { path: resolve(&endpoint.data) };
        self.read(reply, Session::None);
        Ok(())
    }

    /// Reads a stream. `back` is the session in which an interrupted stream can be resumed.
    fn read(&mut self, reply: Reply, back: Session) -> AbortHandle {
        let (stream, sender, to) = (self.number(), self.sender.clone(), self.to);
        self.readers.spawn(async move {
            if let Some(sender) = sender {
                Reader { reply, stream, sender }.run(Some((to, back))).await;
            }
        })
    }
}
