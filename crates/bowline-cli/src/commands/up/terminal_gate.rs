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
            let mut asked = Asked { area: &self.area, is_answered: false };
            let verdict = self.terminal.ask(question).await;
            asked.is_answered = true;
            verdict
        })
    }
}

/// Says that a question no longer waits, if it is dropped unanswered.
struct Asked<'a> {
    area: &'a StatusArea,
    is_answered: bool,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            // The cursor is behind the prompt.
            self.area.write("\nThis question was answered in the inspector, or its call has ended.\n");
        }
    }
}

/// Discards input that was typed before the question.
fn discard_input() {
    #[cfg(unix)]
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
}
