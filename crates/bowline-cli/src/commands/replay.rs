//! `bowline replay`: serves a recording, or replays it against a server.

use crate::{
    context::Context,
    failure::{Code, Failure},
    screen::Tone,
    stdio_peer::StdioPeer,
    target::{Target, duration},
};
use bowline_client::Command;
use bowline_proto::lines::{Line, Lines};
use bowline_transcript::{Difference, Ignore, Mock, Transcript};
use bowline_types::error_code;
use clap::Args;
use serde_json::{Value, json};
use std::{ffi::OsString, path::PathBuf, time::Duration};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How long to wait for a response.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The maximum length of a client frame.
const LONGEST: usize = 64 * 1024 * 1024;

/// Serves a recording over stdio, or replays it against a server and compares the responses
///
/// Without a server, acts as the recorded server: recorded requests get the recorded responses, anything else gets an error. With a
/// server, sends the recorded client messages, prints every difference, and exits with 8 if there are any.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The recording
    file: PathBuf,
    /// A configured stdio server to replay against
    #[arg(value_name = "NAME", conflicts_with = "program")]
    name: Option<String>,
    /// A program to start and replay against, with its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
    /// How long to wait for a response: `500ms`, `10s`, `5m`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Ignore this part of the responses: a JSON pointer, with `*` for any member or element; can be repeated
    #[arg(long, value_name = "POINTER")]
    ignore: Vec<String>,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let name = arguments.file.display().to_string();
    let text = std::fs::read_to_string(&arguments.file)
        .map_err(|error| Failure::new(Code::Failed, format!("cannot read `{name}`: {error}")))?;
    let transcript =
        Transcript::parse(&name, &text).map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
    let target = match (Target::from_command_line(&arguments.program), &arguments.name) {
        (Some(target), _) => target,
        (None, Some(name)) => Target::named(name, context)?,
        (None, None) => {
            return serve(Mock::new(&transcript), tokio::io::stdin(), tokio::io::stdout(), context).await;
        }
    };
    let ignore = Ignore::parse(&arguments.ignore).map_err(Failure::misused)?;
    let Some(program) = target.program() else {
        return Err(Failure::misused(format!(
            "cannot replay against `{}`: only stdio servers are supported",
            target.name
        ))
        .advise("name a configured stdio server, or put a program after `--`"));
    };
    let found =
        compare(&transcript, program, &ignore, arguments.timeout.or(target.timeout).unwrap_or(TIMEOUT))
            .await?;
    print_differences(&name, &found, context)
}

/// Serves a client from the recording.
async fn serve(
    mut mock: Mock,
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    context: &Context,
) -> Result<(), Failure> {
    let mut lines = Lines::new(LONGEST);
    let mut said = mock.open();
    loop {
        for frame in said.drain(..) {
            output.write_all(format!("{frame}\n").as_bytes()).await?;
        }
        output.flush().await?;
        let line = loop {
            if let Some(line) = lines.next_line() {
                break Some(line);
            }
            if input.read_buf(lines.space()).await? == 0 {
                break lines.rest();
            }
        };
        let Some(line) = line else { break };
        let frame = match line {
            Line::Frame(frame) => serde_json::from_slice::<Value>(&frame).ok(),
            Line::TooLong => None,
        };
        said = match frame {
            Some(frame) => mock.accept(&frame),
            None => vec![json!({
                "jsonrpc": "2.0",
                "id": null,
                "error": { "code": error_code::PARSE_ERROR, "message": "invalid JSON" },
            })],
        };
    }
    if mock.complaints().is_empty() {
        return Ok(());
    }
    for complaint in mock.complaints() {
        context.screen.note(complaint);
    }
    Err(Failure::new(Code::Found, "the client did not send the recorded messages"))
}

/// Replays the client side against a program.
async fn compare(
    transcript: &Transcript,
    program: &Command,
    ignore: &Ignore,
    timeout: Duration,
) -> Result<Vec<Difference>, Failure> {
    let unreachable = |error: String| Failure::new(Code::Unreachable, error);
    let mut child = program.spawn().map_err(|error| unreachable(error.to_string()))?;
    let (Some(write), Some(read)) = (child.take_stdin(), child.take_stdout()) else {
        return Err(unreachable("cannot open pipes to the program".into()));
    };
    let peer = StdioPeer::new(read, write, timeout);
    let found = transcript.replay(peer, ignore).await;
    child.shutdown().await;
    found.map_err(|error| {
        let code = if error.is_timeout() { Code::TimedOut } else { Code::Protocol };
        Failure::new(code, error.to_string())
    })
}

fn print_differences(name: &str, found: &[Difference], context: &Context) -> Result<(), Failure> {
    let screen = context.screen;
    if context.json() {
        let differences: Vec<Value> = found
            .iter()
            .map(|difference| {
                json!({
                    "line": difference.line,
                    "about": difference.about,
                    "recorded": difference.recorded,
                    "came": difference.came,
                    "places": difference.places,
                })
            })
            .collect();
        screen.json(&json!({ "file": name, "differences": differences }))?;
    } else {
        for difference in found {
            let place = screen.paint(Tone::Name, &format!("{name}:{}:", difference.line));
            screen.line(&format!("{place} {difference}"))?;
        }
    }
    let sentence = match found {
        [] if context.json() => return Ok(()),
        [] => return screen.line("all responses match the recording"),
        [_] => "1 response differs from the recording".to_owned(),
        many => format!("{} responses differ from the recording", many.len()),
    };
    Err(Failure::new(Code::Found, sentence))
}
