//! Runs a transcript with a peer.

use super::interleave::{Streams, interleave};
use crate::{
    Error, Result,
    oracle::{Conversation, Oracle},
    peer::Peer,
};
use bowline_transcript::{
    Frame, Order, Step, Transcript,
    matching::{Kept, compare, describe, fill},
};
use bowline_types::Revision;
use serde_json::{Value, json};

pub(super) async fn run(
    transcript: &Transcript,
    revision: Option<Revision>,
    oracle: Option<&Oracle>,
    peer: Peer,
) -> Result {
    let mut kept = Kept::new();
    if let Some(revision) = revision {
        kept.insert("revision".into(), revision.as_str().into());
    }
    let mut run = Run { transcript, revision, peer, kept, conversation: Conversation::new(oracle) };
    if let Some(revision) = revision.filter(|revision| revision.is_legacy()) {
        run.open(revision).await?;
    }
    for step in transcript.steps() {
        run.step(step).await?;
    }
    run.end().await
}

struct Run<'a> {
    transcript: &'a Transcript,
    revision: Option<Revision>,
    peer: Peer,
    kept: Kept,
    conversation: Conversation<'a>,
}

impl Run<'_> {
    async fn open(&mut self, revision: Revision) -> Result {
        let initialize = json!({
            "jsonrpc": "2.0",
            "id": "initialize",
            "method": "initialize",
            "params": {
                "protocolVersion": revision.as_str(),
                "capabilities": self.transcript.capabilities(),
                "clientInfo": { "name": "transcript", "version": "1" },
            },
        });
        self.conversation.sent(&initialize);
        self.peer.send(initialize).await.map_err(|error| self.place(1, error))?;
        let expected = json!({
            "jsonrpc": "2.0",
            "id": "initialize",
            "result": { "protocolVersion": revision.as_str(), "...": "..." },
        });
        self.expect_one(&Frame { line: 1, value: expected }).await?;
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.peer.send(initialized).await.map_err(|error| self.place(1, error))
    }

    async fn step(&mut self, step: &Step) -> Result {
        match step {
            Step::Send(frames) => self.send(frames).await,
            Step::SendRaw(bytes) => {
                for line in bytes.split(|byte| *byte == b'\n') {
                    if let Ok(frame) = serde_json::from_slice(line) {
                        self.conversation.sent(&frame);
                    }
                }
                self.peer.send_raw(bytes).await.map_err(|error| self.place(1, error))
            }
            Step::Close => {
                self.peer.close_sending().await;
                Ok(())
            }
            Step::Expect { frames, order: Order::AsWritten } if self.peer.is_one_stream() => {
                for frame in frames {
                    self.expect_one(frame).await?;
                }
                Ok(())
            }
            Step::Expect { frames, order: Order::AsWritten } => self.expect_streams(frames).await,
            Step::Expect { frames, order: Order::Any } => self.expect_all(frames).await,
        }
    }

    async fn send(&mut self, frames: &[Frame]) -> Result {
        let mut bytes = Vec::new();
        for frame in frames {
            let mut value = fill(&frame.value, &self.kept)
                .map_err(|reason| self.place(frame.line, Error::unexpected(reason)))?;
            self.make_modern(&mut value);
            self.conversation.sent(&value);
            bytes.extend_from_slice(format!("{value}\n").as_bytes());
        }
        let line = frames.first().map_or(1, |frame| frame.line);
        self.peer.send_raw(bytes).await.map_err(|error| self.place(line, error))
    }

    /// Adds the description to requests if the file says that all of them are of 2026-07-28.
    fn make_modern(&self, frame: &mut Value) {
        let is_request = frame.get("method").is_some() && frame.get("id").is_some();
        if let (true, Some(Revision::V2026_07_28), Some(members)) =
            (is_request, self.revision, frame.as_object_mut())
        {
            let params = members.entry("params").or_insert_with(|| json!({}));
            describe(params, self.transcript.capabilities());
        }
    }

    async fn receive(&mut self, line: usize, expected: &Value) -> Result<(u64, Value)> {
        let received = self.peer.recv_from().await;
        let (stream, frame) = received.map_err(|error| {
            self.place(line, error.map(|message| format!("waiting for {expected}\n{message}")))
        })?;
        self.conversation.received(&frame).map_err(|reason| {
            let reason = format!("the server's frame breaks the schema: {reason}\n  frame {frame}");
            self.differs(line, &reason)
        })?;
        Ok((stream, frame))
    }

    async fn expect_one(&mut self, expected: &Frame) -> Result {
        let (_, frame) = self.receive(expected.line, &expected.value).await?;
        compare(&expected.value, &frame, &mut self.kept).map_err(|differences| {
            let reason = format!(
                "the server's frame differs:\n    {}\n  expected {}\n  got      {frame}",
                differences.join("\n    "),
                expected.value
            );
            self.differs(expected.line, &reason)
        })
    }

    /// Receives as many frames as are expected, on any stream, in the order of each stream.
    async fn expect_streams(&mut self, frames: &[Frame]) -> Result {
        let mut streams = Streams::new();
        for next in frames {
            let (stream, frame) = self.receive(next.line, &next.value).await?;
            let fits = |expected: &Frame| compare(&expected.value, &frame, &mut self.kept.clone()).is_ok();
            if !frames.iter().any(fits) {
                return Err(self.fits_none(&frames.iter().collect::<Vec<_>>(), &frame));
            }
            streams.entry(stream).or_default().push(frame);
        }
        let expected: Vec<&Value> = frames.iter().map(|frame| &frame.value).collect();
        let Some(kept) = interleave(&expected, &streams, &self.kept) else {
            let line = frames.first().map_or(1, |frame| frame.line);
            return Err(
                self.differs(line, &format!("the streams of the server are not in order: {streams:#?}"))
            );
        };
        self.kept = kept;
        Ok(())
    }

    fn fits_none(&self, open: &[&Frame], frame: &Value) -> Error {
        let wanted: Vec<String> = open
            .iter()
            .map(|expected| {
                let differences = compare(&expected.value, frame, &mut self.kept.clone());
                let differences = differences.err().unwrap_or_default().join("\n      ");
                format!("  line {}: {}\n      {differences}", expected.line, expected.value)
            })
            .collect();
        let line = open.first().map_or(1, |frame| frame.line);
        let reason =
            format!("the server's frame matches none of the expected ones: {frame}\n{}", wanted.join("\n"));
        self.differs(line, &reason)
    }

    async fn expect_all(&mut self, frames: &[Frame]) -> Result {
        let mut open: Vec<&Frame> = frames.iter().collect();
        while let Some(first) = open.first() {
            let (line, value) = (first.line, first.value.clone());
            let (_, frame) = self.receive(line, &value).await?;
            let fits = open.iter().position(|expected| {
                let mut kept = self.kept.clone();
                let fits = compare(&expected.value, &frame, &mut kept).is_ok();
                if fits {
                    self.kept = kept;
                }
                fits
            });
            let Some(position) = fits else { return Err(self.fits_none(&open, &frame)) };
            open.remove(position);
        }
        Ok(())
    }

    async fn end(&mut self) -> Result {
        let rest = self.peer.close().await.map_err(|error| self.place_at_end(error))?;
        if rest.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = rest.iter().map(|frame| format!("\n    {frame}")).collect();
        let reason = format!("unexpected frames from the server:{}", lines.concat());
        Err(self.place_at_end(Error::unexpected(self.with_history(&reason))))
    }

    fn differs(&self, line: usize, reason: &str) -> Error {
        self.place(line, Error::unexpected(self.with_history(reason)))
    }

    fn with_history(&self, reason: &str) -> String {
        format!("{reason}\nthe conversation so far:\n{}", self.peer.transcript())
    }

    fn place(&self, line: usize, error: Error) -> Error {
        error.map(|message| format!("{}:{line}: {}{message}", self.transcript.name(), self.revision_prefix()))
    }

    fn place_at_end(&self, error: Error) -> Error {
        error.map(|message| {
            format!("{}: {}at the end: {message}", self.transcript.name(), self.revision_prefix())
        })
    }

    fn revision_prefix(&self) -> String {
        self.revision.map(|revision| format!("in {revision}: ")).unwrap_or_default()
    }
}
