//! Records the conversation for the message of a failing test.

use std::fmt;

/// The number of bytes shown per frame.
const SHOWN: usize = 600;

/// The lines of a conversation.
#[derive(Debug, Default)]
pub(super) struct History(Vec<(char, String)>);

impl History {
    pub(super) fn sent(&mut self, bytes: &[u8]) {
        for line in String::from_utf8_lossy(bytes).lines() {
            self.0.push(('>', shortened(line)));
        }
    }

    pub(super) fn received(&mut self, line: &str) {
        self.0.push(('<', shortened(line)));
    }

    pub(super) fn closed(&mut self) {
        self.0.push(('>', "(closed)".into()));
    }
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(SHOWN) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}… ({} bytes)", &line[..end], line.len()),
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (direction, line) in &self.0 {
            writeln!(f, "  {direction} {line}")?;
        }
        Ok(())
    }
}
