//! The client's end of a connection to a stdio server, for replaying recordings.

use bowline_proto::lines::{Line, Lines};
use bowline_transcript::{Error, ReplayPeer, Result};
use serde_json::Value;
use std::{collections::VecDeque, io, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::{Instant, timeout_at},
};

/// The maximum length of a frame.
const MAX_FRAME: usize = 64 * 1024 * 1024;
/// The maximum number of frames that are kept for later.
const MAX_KEPT: usize = 100_000;

/// Sends and receives frames over a pair of byte streams.
pub(crate) struct StdioPeer<R, W> {
    /// `None` after the sending side was closed.
    writer: Option<W>,
    incoming: Incoming<R>,
    timeout: Duration,
}

struct Incoming<R> {
    reader: R,
    lines: Lines,
    /// The frames that were received and not taken yet; `Err` for a line that is not JSON.
    kept: VecDeque<std::result::Result<Value, String>>,
    is_closed: bool,
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin> StdioPeer<R, W> {
    pub(crate) fn new(reader: R, writer: W, timeout: Duration) -> Self {
        let incoming =
            Incoming { reader, lines: Lines::new(MAX_FRAME), kept: VecDeque::new(), is_closed: false };
        Self { writer: Some(writer), incoming, timeout }
    }

    /// Takes the first frame that is wanted. A line that is not JSON is an error for everyone.
    async fn take(&mut self, wanted: impl Fn(&Value) -> bool + Send, what: &str) -> Result<Value> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let is_wanted = |frame: &std::result::Result<Value, String>| frame.as_ref().map_or(true, &wanted);
            if let Some(position) = self.incoming.kept.iter().position(is_wanted) {
                let frame = self.incoming.kept.remove(position).unwrap_or_else(|| Ok(Value::Null));
                return frame.map_err(|line| Error::unexpected(format!("expected JSON, got `{line}`")));
            }
            if self.incoming.is_closed {
                return Err(Error::closed(format!("expected {what}, but the connection was closed")));
            }
            match timeout_at(deadline, self.incoming.read()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(Error::closed(format!("cannot read from the server: {error}"))),
                Err(_) => {
                    return Err(Error::timeout(format!(
                        "expected {what}, got nothing within {:?}",
                        self.timeout
                    )));
                }
            }
        }
    }
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    /// Reads until there is something new. Cancel safe.
    async fn read(&mut self) -> io::Result<()> {
        if self.is_closed {
            return std::future::pending().await;
        }
        let count = self.reader.read_buf(self.lines.space()).await?;
        while let Some(line) = self.lines.next_line() {
            self.keep(line)?;
        }
        if count == 0 {
            self.is_closed = true;
            if let Some(line) = self.lines.rest() {
                self.keep(line)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, line: Line) -> io::Result<()> {
        let Line::Frame(frame) = line else {
            return Err(io::Error::other(format!("the server sent a line of more than {MAX_FRAME} bytes")));
        };
        if self.kept.len() >= MAX_KEPT {
            return Err(io::Error::other(format!("the server sent more than {MAX_KEPT} unexpected frames")));
        }
        let read = serde_json::from_slice(&frame);
        self.kept.push_back(read.map_err(|_| String::from_utf8_lossy(frame.trim_ascii()).into_owned()));
        Ok(())
    }
}

impl<R: AsyncRead + Send + Unpin, W: AsyncWrite + Send + Unpin> ReplayPeer for StdioPeer<R, W> {
    /// Sends bytes, and reads at the same time, so that the server never blocks on its output.
    async fn send_raw(&mut self, bytes: &[u8]) -> Result {
        let Some(writer) = &mut self.writer else {
            return Err(Error::closed("cannot send: the sending side is closed"));
        };
        let deadline = Instant::now() + self.timeout;
        let incoming = &mut self.incoming;
        let mut write = std::pin::pin!(async {
            writer.write_all(bytes).await?;
            writer.flush().await
        });
        let sending = async {
            loop {
                tokio::select! {
                    sent = &mut write => return sent,
                    read = incoming.read() => read?,
                }
            }
        };
        match timeout_at(deadline, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Error::closed(format!("cannot send: {error}"))),
            Err(_) => Err(Error::timeout("the server does not read its input")),
        }
    }

    async fn recv(&mut self) -> Result<Value> {
        self.take(|_| true, "a frame").await
    }

    async fn recv_method(&mut self, method: &str) -> Result<Value> {
        let wanted = |frame: &Value| frame.get("method").is_some_and(|known| known == method);
        self.take(wanted, &format!("`{method}`")).await
    }

    async fn response(&mut self, id: &Value) -> Result<Value> {
        let wanted = |frame: &Value| frame.get("method").is_none() && frame.get("id") == Some(id);
        self.take(wanted, &format!("the response to request {id}")).await
    }

    async fn close_sending(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            // The server may be gone already.
            let _: io::Result<()> = writer.shutdown().await;
        }
    }

    async fn close(&mut self) -> Result<Vec<Value>> {
        self.close_sending().await;
        let deadline = Instant::now() + self.timeout;
        while !self.incoming.is_closed {
            match timeout_at(deadline, self.incoming.read()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    return Err(Error::unexpected(format!("cannot read from the server: {error}")));
                }
                Err(_) => return Err(Error::timeout("the server keeps its output open")),
            }
        }
        let rest = self.incoming.kept.drain(..);
        rest.map(|frame| frame.map_err(|line| Error::unexpected(format!("expected JSON, got `{line}`"))))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn peers()
    -> (StdioPeer<impl AsyncRead + Send + Unpin, impl AsyncWrite + Send + Unpin>, tokio::io::DuplexStream)
    {
        let (ours, theirs) = tokio::io::duplex(64);
        let (reader, writer) = tokio::io::split(ours);
        (StdioPeer::new(reader, writer, Duration::from_secs(60)), theirs)
    }

    #[tokio::test]
    async fn frames_are_selected_by_method_or_id() {
        let (mut peer, mut server) = peers();
        let said = b"{\"id\":1}\n{\"method\":\"a\"}\n{\"id\":2}\n";
        server.write_all(said).await.unwrap();
        drop(server);
        assert_eq!(peer.response(&json!(2)).await.unwrap(), json!({ "id": 2 }));
        assert_eq!(peer.recv_method("a").await.unwrap(), json!({ "method": "a" }));
        assert!(peer.recv_method("b").await.unwrap_err().is_closed());
        assert_eq!(peer.close().await.unwrap(), [json!({ "id": 1 })]);
    }

    #[tokio::test]
    async fn a_server_that_writes_first_does_not_block_sending() {
        let (mut peer, mut server) = peers();
        let frame = format!("{{\"method\":\"{}\"}}\n", "x".repeat(1000));
        let echo = tokio::spawn(async move {
            // Both directions are larger than the pipe.
            server.write_all(frame.as_bytes()).await.unwrap();
            let mut read = vec![0; 1000];
            server.read_exact(&mut read).await.unwrap();
        });
        peer.send_raw(&[b' '; 1000]).await.unwrap();
        echo.await.unwrap();
        assert!(peer.recv().await.is_ok());
    }

    #[tokio::test]
    async fn text_that_is_not_json_is_an_error() {
        let (mut peer, mut server) = peers();
        server.write_all(b"Listening\n").await.unwrap();
        drop(server);
        let error = peer.response(&json!(1)).await.unwrap_err();
        assert_eq!(error.to_string(), "expected JSON, got `Listening`");
    }
}
