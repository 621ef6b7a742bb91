//! HTTP/1.1 on a bare socket, so that one reply is one connection and nothing is done behind one's back.

use crate::Result;
use std::fmt::Write;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// One connection, and the reply that is read from it.
pub(crate) struct Raw {
    stream: BufReader<TcpStream>,
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    framing: Framing,
    /// What came of the body and was not looked at yet.
    unread: String,
}

/// How the body of a reply is delimited.
enum Framing {
    Chunked,
    Length(usize),
    UntilClosed,
}

impl Raw {
    pub(crate) async fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (headers, framing) = (Vec::new(), Framing::Length(0));
        Ok(Self { stream: BufReader::new(stream), status: 0, headers, framing, unread: String::new() })
    }

    /// Sends a request and reads the head of its reply.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        address: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<()> {
        let mut request = format!("{method} /mcp HTTP/1.1\r\nHost: {address}\r\n");
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n")?;
        }
        write!(request, "Content-Length: {}\r\n\r\n{body}", body.len())?;
        self.stream.write_all(request.as_bytes()).await?;

        let status = self.line().await?;
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        self.status = code.ok_or_else(|| format!("expected a status, got `{status}`"))?;
        self.headers.clear();
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(':') else { break };
            self.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        self.framing = match (self.header("transfer-encoding"), self.header("content-length")) {
            (Some("chunked"), _) => Framing::Chunked,
            (_, Some(length)) => Framing::Length(length.parse()?),
            _ if self.status == 204 => Framing::Length(0),
            _ => Framing::UntilClosed,
        };
        self.unread.clear();
        Ok(())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body up to and with the next event, or the rest of a body that has none.
    pub(crate) async fn event(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(end) = self.unread.find("\n\n") {
                let rest = self.unread.split_off(end + 2);
                return Ok(Some(std::mem::replace(&mut self.unread, rest)));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    /// Reads events until one holds `needle`; gives it, and how many comments came before.
    pub(crate) async fn event_with(&mut self, needle: &str) -> Result<(String, usize)> {
        let mut comments = 0;
        while let Some(event) = self.event().await? {
            if event.contains(needle) {
                return Ok((event, comments));
            }
            comments += usize::from(event.starts_with(':'));
        }
        Err(format!("the stream ended before `{needle}`, after {comments} comments").into())
    }

    /// The body to its end.
    pub(crate) async fn whole(&mut self) -> Result<String> {
        while self.more().await? {}
        Ok(std::mem::take(&mut self.unread))
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err("the connection was closed".into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// Reads one more piece of the body; false at its end.
    async fn more(&mut self) -> Result<bool> {
        let piece = match self.framing {
            Framing::Length(0) => Vec::new(),
            Framing::Length(length) => {
                self.framing = Framing::Length(0);
                self.exactly(length).await?
            }
            Framing::Chunked => {
                let length = self.line().await?;
                let length = usize::from_str_radix(&length, 16)?;
                let piece = self.exactly(length).await?;
                self.line().await?;
                piece
            }
            Framing::UntilClosed => {
                let mut piece = vec![0; 4096];
                let length = self.stream.read(&mut piece).await?;
                piece.truncate(length);
                piece
            }
        };
        if piece.is_empty() {
            self.framing = Framing::Length(0);
            return Ok(false);
        }
        self.unread += &String::from_utf8(piece)?;
        Ok(true)
    }

    async fn exactly(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut piece = vec![0; length];
        self.stream.read_exact(&mut piece).await?;
        Ok(piece)
    }
}
