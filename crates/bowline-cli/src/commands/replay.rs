//! `bowline replay`: a recording as a server, or said again to one.

use crate::{
    context::Context,
    failure::{Code, Failure},
    screen::Tone,
    target::{Target, duration},
};
use bowline_client::Command;
use bowline_proto::lines::{Line, Lines};
use bowline_testing::{
    Peer, Transcript,
    transcript::{Difference, Ignore, Mock},
};
use bowline_types::error_code;
use clap::Args;
use serde_json::{Value, json};
use std::{ffi::OsString, path::PathBuf, time::Duration};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The longest frame a client may send.
const LONGEST: usize = 64 * 1024 * 1024;

/// Serves a recording on standard input and output, or says its client's side to a program and compares the answers
///
/// As a server it answers what was recorded with what was recorded, whatever the ids; anything else is an error. With a
/// program it prints every difference and ends with 8 when there is one.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The recording
    file: PathBuf,
    /// The program to say it to: a name of the configuration
    #[arg(value_name = "NAME", conflicts_with = "program")]
    name: Option<String>,
    /// A program to start, with its arguments, and to say it to
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
    /// Wait no longer than this for an answer: `500ms`, `10s`, `5m`
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Do not compare this part of the answers: a JSON pointer in which `*` stands for any member; may be repeated
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
            "a recording can be said to a program only, and `{}` is none",
            target.name
        ))
        .advise("name a program of the configuration, or write one behind `--`"));
    };
    let found =
        compare(&transcript, program, &ignore, arguments.timeout.or(target.timeout).unwrap_or(TIMEOUT))
            .await?;
    tell(&name, &found, context)
}

/// Answers a client with what was recorded.
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
                "error": { "code": error_code::PARSE_ERROR, "message": "this is no JSON" },
            })],
        };
    }
    if mock.complaints().is_empty() {
        return Ok(());
    }
    for complaint in mock.complaints() {
        context.screen.note(complaint);
    }
    Err(Failure::new(Code::Found, "the client did not say what was recorded"))
}

/// Says the client's side to a program.
async fn compare(
    transcript: &Transcript,
    program: &Command,
    ignore: &Ignore,
    timeout: Duration,
) -> Result<Vec<Difference>, Failure> {
    let unreachable = |error: String| Failure::new(Code::Unreachable, error);
    let mut child = program.spawn().map_err(|error| unreachable(error.to_string()))?;
    let (Some(write), Some(read)) = (child.take_stdin(), child.take_stdout()) else {
        return Err(unreachable("the program was started without pipes".into()));
    };
    let peer = Peer::over(read, write).deadline(timeout);
    let found = transcript.replay(peer, ignore).await;
    child.shutdown().await;
    found.map_err(|error| {
        let code = if error.is_timeout() { Code::TimedOut } else { Code::Protocol };
        Failure::new(code, error.to_string())
    })
}

fn tell(name: &str, found: &[Difference], context: &Context) -> Result<(), Failure> {
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
        [] => return screen.line("every answer is as recorded"),
        [_] => "one answer is not as recorded".to_owned(),
        many => format!("{} answers are not as recorded", many.len()),
    };
    Err(Failure::new(Code::Found, sentence))
}
