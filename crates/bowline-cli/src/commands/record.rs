//! `bowline record`: relays messages between a client and a server and records them.

use crate::{
    context::Context,
    failure::{Code, Failure},
    recording::Recording,
    signals::ShutdownSignals,
};
use bowline_client::{Child, Command, Environment, Exit, StderrMode};
use bowline_proto::lines::{Line, Lines};
use bowline_transcript::Side;
use bytes::BytesMut;
use clap::Args;
use std::{ffi::OsString, io, path::PathBuf};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The maximum length of a recorded frame. Longer frames are relayed only.
const LONGEST: usize = 64 * 1024 * 1024;
/// The size of the relay buffer.
const CHUNK: usize = 16 * 1024;

/// Records the messages between a client and a stdio server
///
/// Configure it in the client in place of the server. All bytes pass through unchanged. The transcript in FILE is updated
/// immediately and can be played back with `bowline replay`; values that look like secrets are masked. To record servers with a
/// URL, use `--record FILE` with another command.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The file to write; if it exists, a number is added to the name
    file: PathBuf,
    /// The server to start, with its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let Some((program, rest)) = arguments.program.split_first() else {
        return Err(Failure::misused("missing program after `--`"));
    };
    let command =
        Command::new(program).args(rest).environment(Environment::Inherit).stderr(StderrMode::Inherit);
    let recording = context.recording(&arguments.file, &program.to_string_lossy())?;
    let mut child = command.spawn().map_err(|error| Failure::new(Code::Unreachable, error.to_string()))?;
    let ended = pass(&mut child, &recording, context).await;
    let exit = child.shutdown().await;
    ended?;
    match exit {
        exit if exit.is_success() => Ok(()),
        // We or our supervisor terminated it.
        Exit::Signal(_) => Ok(()),
        exit => Err(Failure::new(Code::Failed, format!("the server {exit}"))),
    }
}

/// Relays until the server closes its output or a signal is received.
async fn pass(child: &mut Child, recording: &Recording, context: &Context) -> Result<(), Failure> {
    let signals = ShutdownSignals::listen()?;
    let (Some(to_server), Some(from_server)) = (child.take_stdin(), child.take_stdout()) else {
        return Err(Failure::new(Code::Unreachable, "cannot open pipes to the program"));
    };
    let (from_client, to_client) = (tokio::io::stdin(), tokio::io::stdout());
    let note = |side| {
        move |frame: &[u8]| {
            if let Err(error) = recording.frame(side, frame) {
                context.screen.note(&format!("recording stopped: {error}"));
            }
        }
    };
    let asked = async {
        // If this direction fails, the other one decides how the command ends.
        let _: io::Result<()> = carry(from_client, to_server, note(Side::Client)).await;
        std::future::pending::<()>().await;
    };
    let answered = carry(from_server, to_client, note(Side::Server));
    tokio::select! {
        ended = answered => Ok(ended?),
        () = asked => Ok(()),
        () = signals.received(1) => Ok(()),
    }
}

/// Copies bytes and records each line before it is delivered, so that a request is recorded before its response.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    show: impl Fn(&[u8]),
) -> io::Result<()> {
    let mut lines = Lines::new(LONGEST);
    let mut chunk = BytesMut::with_capacity(CHUNK);
    let show_line = |line| match line {
        Line::Frame(frame) => show(&frame),
        Line::TooLong => show(b"(line too long to record)"),
    };
    loop {
        chunk.clear();
        if from.read_buf(&mut chunk).await? == 0 {
            break;
        }
        lines.space().extend_from_slice(&chunk);
        while let Some(line) = lines.next_line() {
            show_line(line);
        }
        to.write_all(&chunk).await?;
        to.flush().await?;
    }
    if let Some(line) = lines.rest() {
        show_line(line);
    }
    to.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[tokio::test]
    async fn bytes_pass_unchanged_and_lines_are_recorded() {
        let (sent, shown) = (&b"{\"a\":1}\r\n\n  x\nrest"[..], RefCell::new(Vec::new()));
        let mut got = Vec::new();
        carry(sent, &mut got, |line| shown.borrow_mut().push(line.to_vec())).await.unwrap();
        assert_eq!(got, sent);
        assert_eq!(shown.into_inner(), [&b"{\"a\":1}"[..], b"x", b"rest"]);
    }
}
