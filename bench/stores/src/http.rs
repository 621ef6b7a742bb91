//! Just enough HTTP to call a server of 2026-07-28 over a connection that stays open.

use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A connection to a server on this machine.
pub(crate) struct Caller {
    port: u16,
    stream: BufReader<TcpStream>,
    count: u64,
}

impl Caller {
    pub(crate) async fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { port, stream: BufReader::new(stream), count: 0 })
    }

    /// Sends a request and returns its result.
    pub(crate) async fn call(&mut self, method: &str, name: &str, mut params: Value) -> io::Result<Value> {
        self.count += 1;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "bench-stores", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } },
        });
        let body =
            json!({ "jsonrpc": "2.0", "id": self.count, "method": method, "params": params }).to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n\
             Mcp-Name: {name}\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        self.stream.get_mut().write_all(format!("{head}{body}").as_bytes()).await?;
        let text = self.body().await?;
        // The last message of a stream is the response.
        let message = text.lines().filter_map(|line| line.strip_prefix("data:")).next_back().unwrap_or(&text);
        let mut reply: Value = serde_json::from_str(message).map_err(|_| io::Error::other(text.clone()))?;
        match reply.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(io::Error::other(text)),
        }
    }

    async fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim().to_owned())
    }

    async fn body(&mut self) -> io::Result<String> {
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line().await?.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            is_chunked |= line.starts_with("transfer-encoding:") && line.ends_with("chunked");
            if line.is_empty() {
                break;
            }
        }
        let mut body = Vec::new();
        loop {
            if is_chunked {
                length = usize::from_str_radix(&self.line().await?, 16).map_err(io::Error::other)?;
            }
            let mut piece = vec![0; length];
            self.stream.read_exact(&mut piece).await?;
            body.extend_from_slice(&piece);
            if !is_chunked {
                break;
            }
            self.line().await?;
            if length == 0 {
                break;
            }
        }
        String::from_utf8(body).map_err(io::Error::other)
    }
}
