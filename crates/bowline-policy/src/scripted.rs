//! A gate for tests, which answers from a script and records the questions.

use bowline_proto::service::BoxFuture;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::gate::{Gate, Question, Verdict};

/// Gives prepared verdicts in order, cancels when there are none left, and records every question.
#[derive(Debug, Default)]
pub struct Scripted {
    verdicts: Mutex<VecDeque<Verdict>>,
    asked: Mutex<Vec<Question>>,
}

impl Scripted {
    /// A gate that will give these verdicts.
    pub fn new(verdicts: impl IntoIterator<Item = Verdict>) -> Self {
        Self { verdicts: Mutex::new(verdicts.into_iter().collect()), asked: Mutex::default() }
    }

    /// Adds a verdict behind those that are left.
    pub fn push(&self, verdict: Verdict) {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner).push_back(verdict);
    }

    /// Takes the questions asked since the last time.
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
