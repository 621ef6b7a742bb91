//! Transcripts: one intent, then the frames of both sides, as a text file.
//!
//! A transcript is a [txtar](https://pkg.go.dev/golang.org/x/tools/txtar) archive whose files are the turns of a
//! conversation:
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
//! First comes a paragraph that says what the conversation shows, then header lines:
//!
//! | Header | Meaning |
//! | --- | --- |
//! | `server: NAME` | whom to talk to; the runner's caller knows the names. Required. |
//! | `proves: ID ID` | the requirements the frames show |
//! | `revision: DATE DATE` | runs the conversation once per revision; `legacy` stands for the four with a handshake |
//! | `capabilities: JSON` | what the client declares where the runner speaks for it; `{}` unless told |
//! | `transport: stdio (REASON)` | why this cannot be said over HTTP; revisions before the reason limit it to those |
//!
//! With `revision:` the runner opens the conversation: for a legacy revision it sends `initialize` and
//! `notifications/initialized` and takes the answer, for 2026-07-28 it adds version and capabilities to the `_meta` of
//! every request that lacks them. Without, the conversation begins with the first section.
//!
//! | Section | Meaning |
//! | --- | --- |
//! | `-- client --` | frames to send, all at once |
//! | `-- client raw --` | lines to send verbatim, except `\xNN` (a byte), `<repeat:N:text>` and, at the end of a line, `<no newline>` |
//! | `-- client closes --` | closes the client's side; has no lines |
//! | `-- server --` | the frames that have to come next, in this order |
//! | `-- server unordered --` | the frames that have to come next, in any order |
//!
//! A frame is one line of JSON; a line that begins with a blank continues the one before. Blank lines and lines that
//! begin with `#` are skipped. When the last section is done the client's side is closed, and nothing more may come.
//!
//! Server frames match exactly, except:
//!
//! | Text | Matches |
//! | --- | --- |
//! | `"<any>"`, `"<string>"`, `"<number>"`, `"<object>"`, `"<array>"` | any value, or any of this kind |
//! | `<masked>`, also inside a longer text | anything in its place: a recording had a secret there |
//! | `"<capture:NAME>"` | any value, and keeps it |
//! | `"<use:NAME>"` | the value kept before |
//! | member `"...": "..."` | any further members of this object |
//!
//! In client frames `"<use:NAME>"` inserts a kept value, and `"<tamper:NAME>"` a kept text with one character changed; both
//! also work inside a longer text. `<use:revision>` is the date of the revision at hand. The member `"<modern>": {..}` of
//! a `_meta` stands for the version and the given capabilities of 2026-07-28; `"_meta": "<modern>"` is short for the same
//! without capabilities.
//!
//! Over HTTP, where a conversation has several streams, the frames of a server section keep their order within each
//! stream: what is written has to be what came, interleaved in some way.
//!
//! Every frame of the server is also held against the schema of its revision, when an [`Oracle`] is given.
//!
//! A [`Recorder`] writes a conversation down as it is held. What was recorded is said again to a server by
//! [`Transcript::replay`], which tells every difference of the answers, and a [`Mock`] says the server's side to a client.
//! Texts of a recording that look like one of the placeholders above act as such.

mod interleave;
mod matching;
mod mock;
mod parse;
mod raw;
mod record;
mod replay;
mod run;

pub use mock::Mock;
pub use record::Recorder;
pub use replay::{Difference, Ignore};

use crate::{Result, oracle::Oracle, peer::Peer};
use bowline_types::Revision;
use serde_json::Value;

/// A conversation read from a file.
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

/// Why a conversation has no meaning over HTTP.
#[derive(Clone, Debug)]
struct StdioOnly {
    /// Where this is so; everywhere when there are none.
    revisions: Vec<Revision>,
    reason: String,
}

/// One section of a transcript.
#[derive(Clone, Debug)]
enum Step {
    Send(Vec<Frame>),
    SendRaw(Vec<u8>),
    Close,
    Expect { frames: Vec<Frame>, order: Order },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    AsWritten,
    Any,
}

/// A frame and the line it begins on.
#[derive(Clone, Debug)]
struct Frame {
    line: usize,
    value: Value,
}

/// Who said a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

impl Transcript {
    /// Reads a transcript. `name` is how its errors call it, usually the path of its file.
    ///
    /// Fails with the line that is not as the [format](self) wants it.
    pub fn parse(name: impl Into<String>, text: &str) -> Result<Self> {
        parse::parse(name.into(), text)
    }

    /// How errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the conversation shows, in words.
    pub fn intent(&self) -> &str {
        &self.intent
    }

    /// The requirements the conversation shows.
    pub fn proves(&self) -> &[String] {
        &self.proves
    }

    /// The server to talk to.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The revisions the conversation is held in; none when it opens itself.
    pub fn revisions(&self) -> &[Revision] {
        &self.revisions
    }

    /// The conversation as far as it has a meaning over HTTP, or the reason why it has none.
    pub fn over_http(&self) -> Result<Self, String> {
        let Some(StdioOnly { revisions, reason }) = &self.stdio_only else { return Ok(self.clone()) };
        let mut left = self.clone();
        left.revisions.retain(|revision| !revisions.contains(revision));
        if revisions.is_empty() || left.revisions.is_empty() {
            return Err(reason.clone());
        }
        Ok(left)
    }

    /// Says the client's side to a server as it was recorded, and gives what the server says differently.
    ///
    /// Ids of the server's questions and what only the server understands (`requestState`, `nextCursor`, `taskId`) may
    /// differ: the client's frames get those of this conversation. A message is looked for by its method, an answer by its
    /// id, whatever comes in between. Placeholders of client frames are not filled in.
    ///
    /// Fails when what came is no frame, or the server does not end.
    pub async fn replay(&self, peer: Peer, ignore: &Ignore) -> Result<Vec<Difference>> {
        replay::replay(self, peer, ignore).await
    }

    /// The frames of both sides in their order; a batch is taken apart.
    fn said(&self) -> impl Iterator<Item = (Side, &Frame, &Value)> {
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

    /// Holds the conversation, once per revision, each time with a new peer.
    ///
    /// Fails at the first frame that differs, with its line, the differences, and what was said so far.
    pub async fn run(&self, oracle: Option<&Oracle>, mut connect: impl FnMut() -> Result<Peer>) -> Result {
        if self.revisions.is_empty() {
            return run::run(self, None, oracle, connect()?).await;
        }
        for revision in &self.revisions {
            run::run(self, Some(*revision), oracle, connect()?).await?;
        }
        Ok(())
    }
}
