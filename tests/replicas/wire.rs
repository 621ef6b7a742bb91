//! Just enough HTTP to break connections where a test wants to.

use serde_json::Value;
use std::{io, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

/// How long anything may take. A loaded machine is slow; what takes longer never comes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// A response whose body is read piece by piece.
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    stream: BufReader<TcpStream>,
    is_chunked: bool,
    rest: Vec<u8>,
    has_ended: bool,
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was cut")
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// Reads more of the body. False at its end; an error if the connection was cut before.
    async fn more(&mut self) -> io::Result<bool> {
        if self.has_ended {
            return Ok(false);
        }
        if self.is_chunked {
            let mut line = String::new();
            if self.stream.read_line(&mut line).await? == 0 {
                return Err(cut());
            }
            let length = usize::from_str_radix(line.trim(), 16).map_err(|_| cut())?;
            let mut chunk = vec![0; length + 2];
            self.stream.read_exact(&mut chunk).await?;
            self.rest.extend_from_slice(&chunk[..length]);
            self.has_ended = length == 0;
        } else {
            let length = self.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            self.stream.read_exact(&mut body).await?;
            self.rest.extend_from_slice(&body);
            self.has_ended = true;
        }
        Ok(true)
    }

    /// Reads the whole body as JSON.
    pub(crate) async fn json(mut self) -> io::Result<Value> {
        timeout(PATIENCE, async {
            while self.more().await? {}
            Ok(serde_json::from_slice(&self.rest).unwrap_or(Value::Null))
        })
        .await?
    }

    /// Reads the response, whether it is the body or the last message of a stream.
    pub(crate) async fn message(mut self) -> io::Result<Value> {
        if !self.is_stream() {
            return self.json().await;
        }
        loop {
            match self.event().await? {
                Some((_, message)) if message.get("result").is_some() || message.get("error").is_some() => {
                    return Ok(message);
                }
                Some(_) => {}
                None => return Err(cut()),
            }
        }
    }

    /// Reads the next event: its id and its message. `None` at the end of the stream.
    pub(crate) async fn event(&mut self) -> io::Result<Option<(Option<String>, Value)>> {
        timeout(PATIENCE, async {
            loop {
                if let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
                    let event: Vec<u8> = self.rest.drain(..end + 2).collect();
                    let event = String::from_utf8_lossy(&event);
                    let field =
                        |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                    let id = field("id:").map(str::to_owned);
                    if id.is_some() || field("data:").is_some() {
                        let data = field("data:").and_then(|data| serde_json::from_str(data).ok());
                        return Ok(Some((id, data.unwrap_or(Value::Null))));
                    }
                    continue;
                }
                if !self.more().await? {
                    return Ok(None);
                }
            }
        })
        .await?
    }
}

/// Sends a request on a connection of its own.
pub(crate) async fn send(
    port: u16,
    method: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> io::Result<Reply> {
    timeout(PATIENCE, async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let body = body.map(ToString::to_string).unwrap_or_default();
        let mut head = format!("{method} /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        if method == "POST" {
            let length = body.len().to_string();
            head.extend(["Content-Type: application/json\r\nContent-Length: ", &length, "\r\n"]);
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await?;
        let mut stream = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Err(cut());
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        let status = lines.first().and_then(|line| line.split(' ').nth(1)?.parse().ok()).ok_or_else(cut)?;
        let header = |line: &String| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers: Vec<_> = lines.iter().skip(1).filter_map(header).collect();
        let is_chunked =
            headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        Ok(Reply { status, headers, stream, is_chunked, rest: Vec::new(), has_ended: false })
    })
    .await?
}
