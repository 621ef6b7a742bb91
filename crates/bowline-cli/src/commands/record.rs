//! `bowline record`: between a client and a server, every frame that passes is written down.

use crate::{
    context::Context,
    failure::{Code, Failure},
    recording::Recording,
    signals::ShutdownSignals,
};
use bowline_client::{Child, Command, Environment, Exit, StderrMode};
use bowline_proto::lines::{Line, Lines};
use bowline_testing::transcript::Side;
use bytes::BytesMut;
use clap::Args;
use std::{ffi::OsString, io, path::PathBuf};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The longest frame that is written down; longer ones only pass.
const LONGEST: usize = 64 * 1024 * 1024;
/// How much is carried at once.
const CHUNK: usize = 16 * 1024;

/// Stands between a client and a server that is a program: give it to the client in place of the server
///
/// Every byte passes as it is. What was said is in FILE at once, as a transcript that `bowline replay` understands; what
/// looks like a secret is masked there. For servers behind a URL, other commands have `--record FILE`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The file to write; one that is there already is kept, and the new one gets a number
    file: PathBuf,
    /// The server, with its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let Some((program, rest)) = arguments.program.split_first() else {
        return Err(Failure::misused("expected a program behind `--`"));
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
        // It was told to end, by us or by whoever told us.
        Exit::Signal(_) => Ok(()),
        exit => Err(Failure::new(Code::Failed, format!("the server {exit}"))),
    }
}

/// Passes on everything until the server closes its output, or this process is told to end.
async fn pass(child: &mut Child, recording: &Recording, context: &Context) -> Result<(), Failure> {
    let signals = ShutdownSignals::listen()?;
    let (Some(to_server), Some(from_server)) = (child.take_stdin(), child.take_stdout()) else {
        return Err(Failure::new(Code::Unreachable, "the program was started without pipes"));
    };
    let (from_client, to_client) = (tokio::io::stdin(), tokio::io::stdout());
    let note = |side| {
        move |frame: &[u8]| {
            if let Err(error) = recording.frame(side, frame) {
                context.screen.note(&format!("the recording ends here: {error}"));
            }
        }
    };
    let asked = async {
        // A client that is gone, or a server that no longer listens: the other direction says how it ends.
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

/// Carries bytes from one to the other, and shows each line before its end gets there: what answers it comes later.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    show: impl Fn(&[u8]),
) -> io::Result<()> {
    let mut lines = Lines::new(LONGEST);
    let mut chunk = BytesMut::with_capacity(CHUNK);
    let tell = |line| match line {
        Line::Frame(frame) => show(&frame),
        Line::TooLong => show(b"a line that is too long to be kept"),
    };
    loop {
        chunk.clear();
        if from.read_buf(&mut chunk).await? == 0 {
            break;
        }
        lines.space().extend_from_slice(&chunk);
        while let Some(line) = lines.next_line() {
            tell(line);
        }
        to.write_all(&chunk).await?;
        to.flush().await?;
    }
    if let Some(line) = lines.rest() {
        tell(line);
    }
    to.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[tokio::test]
    async fn bytes_pass_as_they_are_and_lines_are_shown() {
        let (sent, shown) = (&b"{\"a\":1}\r\n\n  x\nrest"[..], RefCell::new(Vec::new()));
        let mut got = Vec::new();
        carry(sent, &mut got, |line| shown.borrow_mut().push(line.to_vec())).await.unwrap();
        assert_eq!(got, sent);
        assert_eq!(shown.into_inner(), [&b"{\"a\":1}"[..], b"x", b"rest"]);
    }
}
