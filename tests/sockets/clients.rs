//! Many clients at once, each on sockets of its own.

use crate::Result;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    task::JoinSet,
};

/// How many are at it at the same time.
const HANDS: usize = 16;

/// One connection. Dropping it closes it.
pub(crate) struct Connection {
    address: String,
    stream: BufReader<TcpStream>,
}

/// The head of a reply.
#[derive(Default)]
struct Head {
    status: String,
    session: Option<String>,
    length: usize,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        // Sixteen thousand of them are to fit.
        Ok(Self { address: address.to_owned(), stream: BufReader::with_capacity(512, stream) })
    }

    async fn send(&mut self, method: &str, headers: &str, body: &str) -> Result<Head> {
        let (address, length) = (&self.address, body.len());
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await?;
        let mut head = Head { status: self.line().await?, ..Head::default() };
        loop {
            let line = self.line().await?;
            match line.split_once(": ") {
                None => break,
                Some(("mcp-session-id", id)) => head.session = Some(id.to_owned()),
                Some(("content-length", length)) => head.length = length.parse()?,
                Some(_) => {}
            }
        }
        Ok(head)
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err("the server closed the connection".into());
        }
        Ok(line.trim_end().to_owned())
    }

    async fn whole(&mut self, head: &Head) -> Result<Vec<u8>> {
        let mut body = vec![0; head.length];
        self.stream.read_exact(&mut body).await?;
        Ok(body)
    }

    /// Sends a self-describing request and reads the head of its reply.
    async fn describe(&mut self, method: &str, name: Option<&str>, mut params: Value) -> Result<Head> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
        let headers = format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}");
        self.send("POST", &headers, &body).await
    }

    /// Sends a self-describing request whose reply is one message.
    pub(crate) async fn modern(&mut self, method: &str, name: Option<&str>, params: Value) -> Result<Value> {
        let head = self.describe(method, name, params).await?;
        Ok(serde_json::from_slice(&self.whole(&head).await?)?)
    }

    async fn initialize(&mut self) -> Result<String> {
        let client = json!({ "name": "crowd", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let head = self.send("POST", "", &hello.to_string()).await?;
        self.whole(&head).await?;
        let id = head.session.ok_or_else(|| format!("no session: {}", head.status))?;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let head = self.send("POST", &of(&id), &ready.to_string()).await?;
        self.whole(&head).await?;
        Ok(id)
    }
}

fn of(id: &str) -> String {
    format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {id}\r\n")
}

/// Splits work among hands that go on at the same time, and gathers what each has made.
async fn by_hands<I, T, F, Fut>(items: &[I], work: F) -> Result<Vec<T>>
where
    I: Clone + Send + 'static,
    T: Send + 'static,
    F: Fn(Vec<I>) -> Fut,
    Fut: Future<Output = Result<Vec<T>>> + Send + 'static,
{
    let mut hands = JoinSet::new();
    for part in items.chunks(items.len().div_ceil(HANDS).max(1)) {
        hands.spawn(work(part.to_vec()));
    }
    let mut made = Vec::new();
    while let Some(hand) = hands.join_next().await {
        made.extend(hand??);
    }
    Ok(made)
}

/// Opens so many sessions; their ids.
pub(crate) async fn open_sessions(address: &str, count: usize) -> Result<Vec<String>> {
    by_hands(&vec![(); count], |part| {
        let address = address.to_owned();
        async move {
            let mut connection = Connection::open(&address).await?;
            let mut ids = Vec::new();
            for () in part {
                ids.push(connection.initialize().await?);
            }
            Ok(ids)
        }
    })
    .await
}

/// Opens the standing stream of each session, up to its first event.
pub(crate) async fn open_streams(address: &str, ids: &[String]) -> Result<Vec<Connection>> {
    by_hands(ids, |part| {
        let address = address.to_owned();
        async move {
            let mut streams = Vec::new();
            for id in part {
                let mut connection = Connection::open(&address).await?;
                let head = connection.send("GET", &of(&id), "").await?;
                read_event(&mut connection, &head).await?;
                streams.push(connection);
            }
            Ok(streams)
        }
    })
    .await
}

/// Opens streams of changes, up to their acknowledgment.
pub(crate) async fn open_listens(address: &str, count: usize) -> Result<Vec<Connection>> {
    by_hands(&vec![(); count], |part| {
        let address = address.to_owned();
        async move {
            let mut streams = Vec::new();
            for () in part {
                let mut connection = Connection::open(&address).await?;
                let filter = json!({ "notifications": { "toolsListChanged": true } });
                let head = connection.describe("subscriptions/listen", None, filter).await?;
                read_event(&mut connection, &head).await?;
                streams.push(connection);
            }
            Ok(streams)
        }
    })
    .await
}

async fn read_event(connection: &mut Connection, head: &Head) -> Result<()> {
    if !head.status.contains(" 200 ") {
        return Err(format!("no stream: {}", head.status).into());
    }
    // An event ends with an empty line.
    while !connection.line().await?.is_empty() {}
    Ok(())
}

/// Says good-bye to sessions.
pub(crate) async fn end_sessions(address: &str, ids: &[String]) -> Result<()> {
    by_hands(ids, |part| {
        let address = address.to_owned();
        async move {
            let mut connection = Connection::open(&address).await?;
            for id in part {
                let head = connection.send("DELETE", &of(&id), "").await?;
                if !head.status.contains(" 204 ") {
                    return Err(format!("a session does not end: {}", head.status).into());
                }
            }
            Ok(Vec::<()>::new())
        }
    })
    .await?;
    Ok(())
}
