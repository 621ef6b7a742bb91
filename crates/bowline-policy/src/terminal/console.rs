//! Reads and writes lines of the terminal.

use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

use super::show::Shown;

/// The maximum length of a line.
const MAX_LINE: usize = 1 << 20;

/// Asks one question at a time.
pub(super) struct Console<R, W> {
    input: R,
    output: W,
    /// The part of a line that was read so far.
    line: Vec<u8>,
    /// Whether a question was started and not ended.
    is_open: bool,
    /// Whether the next line may be meant for a question that was withdrawn.
    discards_line: bool,
    /// The prompt before every answer: the server, so that no text can scroll its name off the screen.
    prompt: String,
}

impl<R, W> Console<R, W> {
    pub(super) fn new(input: R, output: W) -> Self {
        Self { input, output, line: Vec::new(), is_open: false, discards_line: false, prompt: String::new() }
    }

    pub(super) fn into_inner(self) -> (R, W) {
        (self.input, self.output)
    }

    pub(super) fn close(&mut self) {
        self.is_open = false;
    }
}

impl<R, W> Console<R, W>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    /// Starts a question of a server.
    pub(super) async fn open(&mut self, server: &str) -> io::Result<()> {
        self.open_with(&format!("{}> ", bowline_text::visible(server))).await
    }

    /// Starts a question with this prompt.
    pub(super) async fn open_with(&mut self, prompt: &str) -> io::Result<()> {
        if self.is_open {
            // The line is read after the next question is shown, which otherwise nobody would notice.
            self.discards_line = true;
            self.write("\nThe question above was withdrawn. This is the next one:\n").await?;
        }
        self.is_open = true;
        prompt.clone_into(&mut self.prompt);
        Ok(())
    }

    pub(super) async fn show(&mut self, shown: &Shown) -> io::Result<()> {
        self.write(shown.as_str()).await
    }

    pub(super) async fn show_error(&mut self, reason: &str) -> io::Result<()> {
        let mut shown = Shown::default();
        shown.line(&format!("  ! {}", bowline_text::visible(reason)));
        self.show(&shown).await
    }

    /// Reads a line, trimmed.
    pub(super) async fn prompt(&mut self) -> io::Result<String> {
        if self.discards_line {
            self.write("Press Enter to answer. What was typed for the withdrawn question is discarded.\n")
                .await?;
            self.line().await?;
            self.discards_line = false;
        }
        let prompt = self.prompt.clone();
        self.write(&prompt).await?;
        let line = self.line().await?;
        Ok(line.trim().to_owned())
    }

    /// Reads lines until a line with a single dot.
    pub(super) async fn text(&mut self) -> io::Result<String> {
        let mut lines = Vec::new();
        loop {
            self.write(". ").await?;
            let line = self.line().await?;
            if line == "." {
                return Ok(lines.join("\n"));
            }
            lines.push(line);
        }
    }

    async fn write(&mut self, text: &str) -> io::Result<()> {
        self.output.write_all(text.as_bytes()).await?;
        self.output.flush().await
    }

    /// Reads the next line. If the future is dropped, the part that was read is kept for the next call.
    async fn line(&mut self) -> io::Result<String> {
        loop {
            let read = self.input.fill_buf().await?;
            if read.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(read.len(), |end| end + 1);
            self.line.extend_from_slice(read.get(..taken).unwrap_or_default());
            self.input.consume(taken);
            if self.line.len() > MAX_LINE {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "expected a line of at most 1 MiB"));
            }
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                let line = String::from_utf8_lossy(&line);
                return Ok(line.trim_end_matches(['\n', '\r']).to_owned());
            }
        }
    }
}
