//! A gate for tests, which answers from a script and records the questions.

use bowline_proto::service::BoxFuture;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::gate::{Gate, Question, Verdict};

/// Returns scripted verdicts in order, then cancels. Records every question.
///
/// ```
/// use bowline_policy::{CallFacts, Definition, Facts, Guard, Question, Scripted, Verdict};
/// use bowline_types::{RawJson, Tool};
/// use std::sync::Arc;
///
/// # async fn run() {
/// let gate = Arc::new(Scripted::new([Verdict::allow()]));
/// let guard = Guard::builder().gate(Arc::clone(&gate)).build();
///
/// let tool = Definition::of(&Tool::new("write", RawJson::empty_object()));
/// let facts = Facts { server: "files", ..Facts::default() };
/// let arguments = RawJson::empty_object();
/// assert!(guard.check(&CallFacts { facts, definition: &tool, arguments: &arguments }).await.is_ok());
/// assert!(matches!(gate.take_asked().as_slice(), [Question::Call { .. }]));
/// # }
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run());
/// ```
#[derive(Debug, Default)]
pub struct Scripted {
    verdicts: Mutex<VecDeque<Verdict>>,
    asked: Mutex<Vec<Question>>,
}

impl Scripted {
    /// Creates a gate that returns these verdicts.
    pub fn new(verdicts: impl IntoIterator<Item = Verdict>) -> Self {
        Self { verdicts: Mutex::new(verdicts.into_iter().collect()), asked: Mutex::default() }
    }

    /// Appends a verdict.
    pub fn push(&self, verdict: Verdict) {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner).push_back(verdict);
    }

    /// Takes the recorded questions.
    pub fn take_asked(&self) -> Vec<Question> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Gate for Scripted {
    fn ask(&self, question: Question) -> BoxFuture<'_, Verdict> {
        Box::pin(async move {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(question);
            let verdict = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            verdict.unwrap_or(Verdict::Cancel)
        })
    }
}
