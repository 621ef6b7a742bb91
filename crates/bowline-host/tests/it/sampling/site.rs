//! A provider that answers as a test tells it, on a socket.

use bowline_http::Poster;
use bowline_models::{Broker, Model, Provider, RequestSettings, SampleError, Secret, Settings};
use bowline_types::{CreateMessageParams, CreateMessageResult};
use serde_json::Value;
use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};

/// The key that no text may hold.
pub(crate) const KEY: &str = "sk-test-the-key-nobody-knows-0123456789";

/// What a provider does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Answers.
    Answer { status: u16, headers: Vec<(&'static str, String)>, body: String },
    /// Sends these bytes and closes the connection.
    Bytes(Vec<u8>),
    /// Says nothing until the other side hangs up.
    Silence,
}

pub(crate) fn reply(status: u16, body: impl Into<String>) -> Reply {
    Reply::Answer { status, headers: Vec::new(), body: body.into() }
}

impl Reply {
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name, value.into()));
        }
        self
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

#[derive(Default)]
struct State {
    script: Mutex<VecDeque<Reply>>,
    seen: Mutex<Vec<Seen>>,
    arrived: Notify,
    hung_up: Notify,
}

pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    serving: JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Site {
    pub(crate) async fn new(script: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State { script: Mutex::new(script.into_iter().collect()), ..State::default() });
        let shared = Arc::clone(&state);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { address, state, serving }
    }

    pub(crate) fn open_ai(&self) -> Provider {
        Provider::open_ai("prov").base_url(format!("http://{}/v1", self.address)).key(Secret::new(KEY))
    }

    pub(crate) fn anthropic(&self) -> Provider {
        Provider::anthropic("prov").base_url(format!("http://{}", self.address)).key(Secret::new(KEY))
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.seen().iter().map(Seen::json).collect()
    }

    /// Waits until a request has come.
    pub(crate) async fn arrived(&self) {
        self.state.arrived.notified().await;
    }

    /// Waits until a request that gets no answer was given up.
    pub(crate) async fn hung_up(&self) {
        self.state.hung_up.notified().await;
    }
}

async fn serve(mut stream: TcpStream, state: Arc<State>) {
    let mut buffer = Vec::new();
    while let Some(seen) = request(&mut stream, &mut buffer).await {
        state.seen.lock().unwrap().push(seen);
        let reply = state.script.lock().unwrap().pop_front().expect("the test expects no further request");
        state.arrived.notify_one();
        match reply {
            Reply::Answer { status, headers, body } => {
                let mut head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    head.extend([name, ": ", &value, "\r\n"]);
                }
                let message = format!("{head}\r\n{body}");
                if stream.write_all(message.as_bytes()).await.is_err() {
                    return;
                }
            }
            Reply::Bytes(bytes) => {
                drop(stream.write_all(&bytes).await);
                return;
            }
            Reply::Silence => {
                let mut rest = [0; 1];
                while matches!(stream.read(&mut rest).await, Ok(count) if count > 0) {}
                state.hung_up.notify_one();
                return;
            }
        }
    }
}

async fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
            let mut lines = head.split("\r\n");
            let path = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
            let headers: Vec<(String, String)> = lines
                .map(|line| line.split_once(':').unwrap())
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                .collect();
            let length = headers
                .iter()
                .find(|(name, _)| name == "content-length")
                .unwrap()
                .1
                .parse::<usize>()
                .unwrap();
            while buffer.len() < end + 4 + length {
                stream.read_buf(buffer).await.ok().filter(|count| *count > 0)?;
            }
            let body = String::from_utf8(buffer[end + 4..end + 4 + length].to_vec()).unwrap();
            buffer.drain(..end + 4 + length);
            return Some(Seen { path, headers, body });
        }
        stream.read_buf(buffer).await.ok().filter(|count| *count > 0)?;
    }
}

/// A broker for one model of a provider, which waits for nothing.
pub(crate) fn broker(provider: Provider) -> Broker {
    with(Settings::new().provider(provider).model(Model::new("prov", "m-1")))
}

pub(crate) fn with(settings: Settings) -> Broker {
    let settings = settings.request_settings(RequestSettings::new().timeout(Duration::from_secs(30)));
    Broker::with_random(settings, Poster::new().max_answer(64 * 1024), || 0).unwrap().unwrap()
}

pub(crate) fn params(text: &str) -> CreateMessageParams {
    serde_json::from_str(text).unwrap()
}

pub(crate) fn hello() -> CreateMessageParams {
    params(r#"{"messages":[{"role":"user","content":{"type":"text","text":"hello"}}],"maxTokens":100}"#)
}

/// An answer as OpenAI writes it.
pub(crate) fn completion(message: &str, finish_reason: &str) -> String {
    format!(
        r#"{{"id":"chatcmpl-B9","object":"chat.completion","created":1741569952,"model":"m-1-2025","choices":[{{"index":0,"message":{message},"logprobs":null,"finish_reason":"{finish_reason}"}}],"usage":{{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{{"cached_tokens":0,"audio_tokens":0}},"completion_tokens_details":{{"reasoning_tokens":0}}}},"service_tier":"default","system_fingerprint":null}}"#
    )
}

pub(crate) fn said(text: &str) -> String {
    completion(
        &format!(r#"{{"role":"assistant","content":"{text}","refusal":null,"annotations":[]}}"#),
        "stop",
    )
}

/// An answer as Anthropic writes it.
pub(crate) fn message(content: &str, stop_reason: &str) -> String {
    format!(
        r#"{{"id":"msg_013Zva2CMHLNnXjNJJKqJ2EF","type":"message","role":"assistant","model":"m-1-2025","content":{content},"stop_reason":"{stop_reason}","stop_sequence":null,"usage":{{"input_tokens":20,"cache_creation_input_tokens":3,"cache_read_input_tokens":4,"output_tokens":5,"service_tier":"standard"}}}}"#
    )
}

pub(crate) fn message_said(text: &str) -> String {
    message(&format!(r#"[{{"type":"text","text":"{text}"}}]"#), "end_turn")
}

pub(crate) async fn sample(
    broker: &Broker,
    params: CreateMessageParams,
) -> Result<CreateMessageResult, SampleError> {
    broker.sample("tickets", params).await
}
