//! Runs [transcripts](bowline_transcript) as tests.
//!
//! Over HTTP, where a conversation has several streams, the frames of a server section keep their order within each stream.
//!
//! With an [`Oracle`], every frame of the server is also validated against the schema of its revision.

mod interleave;
mod run;

pub use bowline_transcript::{Difference, Ignore, Mock, Recorder, Side};

use crate::{Result, oracle::Oracle, peer::Peer};
use bowline_transcript::ReplayPeer;
use serde_json::Value;
use std::ops::Deref;

/// A conversation, parsed from a file, that can be run as a test.
#[derive(Clone, Debug)]
pub struct Transcript(bowline_transcript::Transcript);

impl Transcript {
    /// Parses a transcript. `name` is used in errors, usually the path of the file.
    ///
    /// Fails with the line that violates the [format](bowline_transcript).
    pub fn parse(name: impl Into<String>, text: &str) -> Result<Self> {
        bowline_transcript::Transcript::parse(name, text).map(Self)
    }

    /// Restricts the conversation to the revisions that work over HTTP, or returns the reason why none does.
    pub fn over_http(&self) -> Result<Self, String> {
        self.0.over_http().map(Self)
    }

    /// Runs the conversation once per revision, each time with a new peer.
    ///
    /// Fails at the first frame that differs, with its line, the differences and the conversation so far.
    pub async fn run(&self, oracle: Option<&Oracle>, mut connect: impl FnMut() -> Result<Peer>) -> Result {
        if self.revisions().is_empty() {
            return run::run(self, None, oracle, connect()?).await;
        }
        for revision in self.revisions() {
            run::run(self, Some(*revision), oracle, connect()?).await?;
        }
        Ok(())
    }
}

impl Deref for Transcript {
    type Target = bowline_transcript::Transcript;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl ReplayPeer for Peer {
    async fn send_raw(&mut self, bytes: &[u8]) -> Result {
        Self::send_raw(self, bytes).await
    }

    async fn recv(&mut self) -> Result<Value> {
        Self::recv(self).await
    }

    async fn recv_method(&mut self, method: &str) -> Result<Value> {
        Self::recv_method(self, method).await
    }

    async fn response(&mut self, id: &Value) -> Result<Value> {
        Self::response(self, id).await
    }

    async fn close_sending(&mut self) {
        Self::close_sending(self).await;
    }

    async fn close(&mut self) -> Result<Vec<Value>> {
        Self::close(self).await
    }
}
