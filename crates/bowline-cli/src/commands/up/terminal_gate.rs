//! Questions at the terminal where the area is: one at a time, with the area out of the way.

use super::status_area::StatusArea;
use bowline_policy::{Gate, Question, Terminal, Verdict};
use bowline_proto::service::BoxFuture;
use tokio::{
    io::{BufReader, Stderr, Stdin},
    sync::Mutex,
};

/// Asks whoever sits at the terminal.
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
            forget_typed();
            self.terminal.ask(question).await
        })
    }
}

/// What was typed before there was a question is no answer to it.
fn forget_typed() {
    #[cfg(unix)]
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}
