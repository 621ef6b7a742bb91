//! Limits the number of open questions per server.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// How long an unanswered question counts.
const MINUTE: Duration = Duration::from_secs(60);

/// The limit on unanswered questions per server: open ones, and those that ended without an answer within the last
/// minute. Answered questions do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionLimit {
    /// The maximum number of unanswered questions per server.
    pub unanswered: usize,
}

impl Default for QuestionLimit {
    /// Ten.
    fn default() -> Self {
        Self { unanswered: 10 }
    }
}

/// The questions of all servers.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    limit: QuestionLimit,
    servers: Arc<Mutex<HashMap<String, Load>>>,
}

#[derive(Debug, Default)]
struct Load {
    /// The times of questions that ended without an answer.
    unanswered: VecDeque<SystemTime>,
    waiting: usize,
    declined: u64,
    /// When reaching the limit was last logged.
    reported: Option<SystemTime>,
}

/// An open question. Dropping it counts the question as unanswered.
#[derive(Debug)]
pub(crate) struct Ticket {
    server: String,
    asked: SystemTime,
    answered: bool,
    servers: Arc<Mutex<HashMap<String, Load>>>,
}

impl Ticket {
    /// Marks the question as answered, so that it no longer counts.
    pub(crate) fn answered(mut self) {
        self.answered = true;
    }
}

impl Questions {
    pub(crate) fn new(limit: QuestionLimit) -> Self {
        Self { limit, servers: Arc::default() }
    }

    /// Admits a question of a server, or returns why not.
    pub(crate) fn admit(&self, server: &str, now: SystemTime) -> Result<Ticket, String> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let load = servers.entry(server.to_owned()).or_default();
        // If the clock was set back, times in the future count as long ago.
        let is_recent = |then: &SystemTime| now.duration_since(*then).is_ok_and(|age| age < MINUTE);
        load.unanswered.retain(is_recent);
        let unanswered = load.waiting + load.unanswered.len();
        if unanswered < self.limit.unanswered {
            load.waiting += 1;
            let (server, servers) = (server.to_owned(), Arc::clone(&self.servers));
            return Ok(Ticket { server, asked: now, answered: false, servers });
        }
        load.declined += 1;
        if !load.reported.as_ref().is_some_and(is_recent) {
            load.reported = Some(now);
            tracing::warn!(
                server,
                unanswered,
                "too many questions of this server are unanswered; more are refused for up to a minute \
                 (`max_questions` in `[gateway]`)"
            );
        }
        let (are, them) = if unanswered == 1 {
            ("question of this server is", "it")
        } else {
            ("questions of this server are", "them")
        };
        Err(format!(
            "{unanswered} {are} unanswered; answer {them}, wait a minute, or raise `max_questions` in `[gateway]`"
        ))
    }

    /// Returns the number of questions of a server that were not asked.
    pub(crate) fn declined(&self, server: &str) -> u64 {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.get(server).map_or(0, |load| load.declined)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(load) = servers.get_mut(&self.server) {
            load.waiting = load.waiting.saturating_sub(1);
            if !self.answered {
                load.unanswered.push_back(self.asked);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    fn at(second: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1000 + second)
    }

    #[test]
    fn answered_questions_do_not_count() {
        let questions = Questions::new(QuestionLimit { unanswered: 2 });
        for _ in 0..100 {
            questions.admit("a", at(0)).unwrap().answered();
        }
        assert_eq!(questions.declined("a"), 0);
    }

    #[test]
    fn unanswered_questions_count_for_a_minute() {
        // V-103
        let questions = Questions::new(QuestionLimit { unanswered: 2 });
        drop(questions.admit("a", at(0)).unwrap());
        drop(questions.admit("a", at(30)).unwrap());
        assert_eq!(
            questions.admit("a", at(59)).unwrap_err(),
            "2 questions of this server are unanswered; answer them, wait a minute, or raise `max_questions` in \
             `[gateway]`"
        );
        assert!(questions.admit("b", at(59)).is_ok());
        drop(questions.admit("a", at(60)).unwrap());
        assert!(questions.admit("a", at(61)).is_err());
        assert_eq!((questions.declined("a"), questions.declined("b")), (2, 0));
        // The clock was set back.
        assert!(questions.admit("a", UNIX_EPOCH).is_ok());
    }

    #[test]
    fn waiting_questions_count_until_they_are_answered() {
        let questions = Questions::new(QuestionLimit { unanswered: 2 });
        let first = questions.admit("a", at(0)).unwrap();
        let _second = questions.admit("a", at(0)).unwrap();
        assert!(questions.admit("a", at(0)).is_err());
        first.answered();
        assert!(questions.admit("a", at(0)).is_ok());
    }
}
