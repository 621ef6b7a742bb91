//! Asks questions at the terminal, one at a time, with the status area hidden.

use super::status_area::StatusArea;
use bowline_policy::{Gate, Question, Terminal, Verdict};
use bowline_proto::service::BoxFuture;
use tokio::{
    io::{BufReader, Stderr, Stdin},
    sync::Mutex,
};

/// Asks the user at the terminal.
#[derive(Debug)]
pub(super) struct TerminalGate {
    area: StatusArea,
    terminal: Terminal<BufReader<Stdin>, Stderr>,
    turn: Mutex<()>,
}

impl TerminalGate {
    pub(super) fn new(area: StatusArea) -> Self {
        let terminal = Terminal::new(BufReader::new(tokio::io::stdin()), tokio::io::stderr());
        Self { area, terminal, turn: Mutex::default() }
    }
}

impl Gate for TerminalGate {
    fn ask(&self, question: Question) -> BoxFuture<'_, Verdict> {
        Box::pin(async move {
            let _turn = self.turn.lock().await;
            let _pause = self.area.pause();
            discard_input();
            self.terminal.ask(question).await
        })
    }
}

/// Discards input that was typed before the question.
fn discard_input() {
    #[cfg(unix)]
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}
