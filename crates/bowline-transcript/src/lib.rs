//! Transcripts of conversations: one intent, then the frames of both sides, as a text file.
//!
//! A transcript is a [txtar](https://pkg.go.dev/golang.org/x/tools/txtar) archive whose files are the turns of a conversation:
//!
//! ```text
//! A ping is answered before the handshake is complete.
//!
//! server: bare
//!
//! -- client --
//! {"jsonrpc":"2.0","id":1,"method":"ping"}
//! -- server --
//! {"jsonrpc":"2.0","id":1,"result":{}}
//! ```
//!
//! The first paragraph says what the conversation shows. Header lines follow:
//!
//! | Header | Meaning |
//! | --- | --- |
//! | `server: NAME` | the server to talk to; the runner's caller knows the names. Required. |
//! | `proves: ID ID` | the requirements that the frames prove |
//! | `revision: DATE DATE` | runs the conversation once per revision; `legacy` means the four with a handshake |
//! | `capabilities: JSON` | the client capabilities that the runner declares; `{}` by default |
//! | `transport: stdio (REASON)` | why this does not work over HTTP; revisions before the reason limit it to those |
//!
//! With `revision:` the runner opens the conversation: for a legacy revision it sends `initialize` and
//! `notifications/initialized` and takes the response, for 2026-07-28 it adds version and capabilities to the `_meta` of
//! every request that lacks them. Without it, the conversation starts with the first section.
//!
//! | Section | Meaning |
//! | --- | --- |
//! | `-- client --` | frames to send, all at once |
//! | `-- client raw --` | lines to send verbatim, except `\xNN` (a byte), `<repeat:N:text>` and, at the end of a line, `<no newline>` |
//! | `-- client closes --` | closes the client's side; has no lines |
//! | `-- server --` | the frames that must come next, in this order |
//! | `-- server unordered --` | the frames that must come next, in any order |
//!
//! A frame is one line of JSON; a line that starts with a blank continues the previous one. Blank lines and lines that start with
//! `#` are skipped. After the last section the client's side is closed, and nothing more may come.
//!
//! Server frames must match exactly, except:
//!
//! | Text | Matches |
//! | --- | --- |
//! | `"<any>"`, `"<string>"`, `"<number>"`, `"<object>"`, `"<array>"` | any value, or any value of this type |
//! | `<masked>`, also inside a longer text | anything: the recording had a secret there |
//! | `"<capture:NAME>"` | any value, and keeps it |
//! | `"<use:NAME>"` | the value kept before |
//! | member `"...": "..."` | any further members of this object |
//!
//! In client frames `"<use:NAME>"` inserts a kept value, and `"<tamper:NAME>"` a kept text with one character changed; both also
//! work inside a longer text. `<use:revision>` is the date of the current revision. The member `"<modern>": {..}` of a `_meta` stands
//! for the version and the given capabilities of 2026-07-28; `"_meta": "<modern>"` is short for the same without capabilities.
//!
//! A [`Recorder`] writes a transcript. [`Transcript::replay`] sends the recorded client frames to a server and returns the
//! differences, and a [`Mock`] plays the server's side. Texts of a recording that look like a placeholder act as one.

mod error;
pub mod matching;
mod mock;
mod parse;
mod raw;
mod record;
mod replay;

pub use error::Error;
pub use mock::Mock;
pub use record::Recorder;
pub use replay::{Difference, Ignore, ReplayPeer};

use bowline_types::Revision;
use serde_json::Value;

/// The result of a conversation.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// A conversation, parsed from a file.
#[derive(Clone, Debug)]
pub struct Transcript {
    name: String,
    intent: String,
    proves: Vec<String>,
    server: String,
    revisions: Vec<Revision>,
    capabilities: Value,
    stdio_only: Option<StdioOnly>,
    steps: Vec<Step>,
}

/// Why a conversation does not work over HTTP.
#[derive(Clone, Debug)]
struct StdioOnly {
    /// The affected revisions; all if empty.
    revisions: Vec<Revision>,
    reason: String,
}

/// A section of a transcript.
#[derive(Clone, Debug)]
pub enum Step {
    /// The client sends frames, all at once.
    Send(Vec<Frame>),
    /// The client sends bytes.
    SendRaw(Vec<u8>),
    /// The client closes its side.
    Close,
    /// The server sends frames.
    Expect {
        /// The frames.
        frames: Vec<Frame>,
        /// Their order.
        order: Order,
    },
}

/// The order in which expected frames come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they are written.
    AsWritten,
    /// Any.
    Any,
}

/// A frame and the line it starts on.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The line in the file, counted from 1.
    pub line: usize,
    /// The frame, possibly with placeholders.
    pub value: Value,
}

/// Who sent a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

impl Transcript {
    /// Parses a transcript. `name` is used in errors, usually the path of the file.
    ///
    /// Fails with the line that violates the [format](self).
    pub fn parse(name: impl Into<String>, text: &str) -> Result<Self> {
        parse::parse(name.into(), text)
    }

    /// Returns the name used in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what the conversation shows.
    pub fn intent(&self) -> &str {
        &self.intent
    }

    /// Returns the requirements that the conversation proves.
    pub fn proves(&self) -> &[String] {
        &self.proves
    }

    /// Returns the name of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the revisions to run; empty if the conversation contains its own handshake.
    pub fn revisions(&self) -> &[Revision] {
        &self.revisions
    }

    /// Restricts the conversation to the revisions that work over HTTP, or returns the reason why none does.
    pub fn over_http(&self) -> Result<Self, String> {
        let Some(StdioOnly { revisions, reason }) = &self.stdio_only else { return Ok(self.clone()) };
        let mut left = self.clone();
        left.revisions.retain(|revision| !revisions.contains(revision));
        if revisions.is_empty() || left.revisions.is_empty() {
            return Err(reason.clone());
        }
        Ok(left)
    }

    /// Returns the sections in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the client capabilities to declare.
    pub fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    /// Sends the recorded client frames to a server, and returns where its frames differ.
    ///
    /// Ids of the server's requests and opaque values (`requestState`, `nextCursor`, `taskId`) may differ: the client frames get the
    /// values of this conversation. A message is matched by its method, a response by its id, whatever comes in between. Placeholders
    /// in client frames are not filled in.
    ///
    /// Fails if the server sends something that is not a frame, or does not end.
    pub async fn replay(&self, peer: impl ReplayPeer, ignore: &Ignore) -> Result<Vec<Difference>> {
        replay::replay(self, peer, ignore).await
    }

    /// Returns the messages of both sides in order. Batches are split.
    fn messages(&self) -> impl Iterator<Item = (Side, &Frame, &Value)> {
        let sections = self.steps.iter().filter_map(|step| match step {
            Step::Send(frames) => Some((Side::Client, frames)),
            Step::Expect { frames, .. } => Some((Side::Server, frames)),
            Step::SendRaw(_) | Step::Close => None,
        });
        sections.flat_map(|(side, frames)| frames.iter().map(move |frame| (side, frame))).flat_map(
            |(side, frame)| {
                let messages = match &frame.value {
                    Value::Array(messages) => messages.as_slice(),
                    message => std::slice::from_ref(message),
                };
                messages.iter().map(move |message| (side, frame, message))
            },
        )
    }
}
