//! What a check has to say about one line of the repository.

use std::fmt;

/// One sentence about one line; `Display` is the form that editors can jump to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    sentence: String,
}

impl Finding {
    /// Creates a finding. `path` is relative to the root of the repository, `line` counts from one.
    pub(crate) fn new(path: impl Into<String>, line: usize, sentence: impl Into<String>) -> Self {
        Self { path: path.into(), line, sentence: sentence.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.sentence)
    }
}
