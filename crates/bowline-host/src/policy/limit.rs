//! How many questions a server may cause: so many a minute, so many at once.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

const MINUTE: Duration = Duration::from_secs(60);

/// How many questions one server may cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionLimit {
    /// Within any minute.
    pub per_minute: usize,
    /// Unanswered at once.
    pub waiting: usize,
}

impl Default for QuestionLimit {
    /// Ten a minute, three at once.
    fn default() -> Self {
        Self { per_minute: 10, waiting: 3 }
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
    asked: VecDeque<SystemTime>,
    waiting: usize,
    declined: u64,
}

/// A question that is being asked; dropping it ends that.
#[derive(Debug)]
pub(crate) struct Ticket {
    server: String,
    servers: Arc<Mutex<HashMap<String, Load>>>,
}

impl Questions {
    pub(crate) fn new(limit: QuestionLimit) -> Self {
        Self { limit, servers: Arc::default() }
    }

    /// Lets a question of a server be asked, or says why not.
    pub(crate) fn admit(&self, server: &str, now: SystemTime) -> Result<Ticket, String> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let load = servers.entry(server.to_owned()).or_default();
        // A clock that was set back makes the past look like the future; that counts as long ago.
        load.asked.retain(|then| now.duration_since(*then).is_ok_and(|age| age < MINUTE));
        let reason = if load.waiting >= self.limit.waiting {
            format!("{} questions of this server are waiting for an answer already", load.waiting)
        } else if load.asked.len() >= self.limit.per_minute {
            format!("this server has caused {} questions within a minute; try again later", load.asked.len())
        } else {
            load.asked.push_back(now);
            load.waiting += 1;
            return Ok(Ticket { server: server.to_owned(), servers: Arc::clone(&self.servers) });
        };
        load.declined += 1;
        Err(reason)
    }

    /// How many questions of a server were not asked.
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn so_many_a_minute_and_no_more() {
        // V-103
        let questions = Questions::new(QuestionLimit { per_minute: 2, waiting: 9 });
        let at = |second: u64| UNIX_EPOCH + Duration::from_secs(1000 + second);
        assert!(questions.admit("a", at(0)).is_ok());
        assert!(questions.admit("a", at(30)).is_ok());
        assert_eq!(
            questions.admit("a", at(59)).unwrap_err(),
            "this server has caused 2 questions within a minute; try again later"
        );
        assert!(questions.admit("b", at(59)).is_ok());
        assert!(questions.admit("a", at(60)).is_ok());
        assert!(questions.admit("a", at(61)).is_err());
        assert_eq!((questions.declined("a"), questions.declined("b")), (2, 0));
        // The clock was set back.
        assert!(questions.admit("a", UNIX_EPOCH).is_ok());
    }

    #[test]
    fn so_many_at_once_and_no_more() {
        let questions = Questions::new(QuestionLimit { per_minute: 100, waiting: 2 });
        let first = questions.admit("a", UNIX_EPOCH).unwrap();
        let _second = questions.admit("a", UNIX_EPOCH).unwrap();
        assert_eq!(
            questions.admit("a", UNIX_EPOCH).unwrap_err(),
            "2 questions of this server are waiting for an answer already"
        );
        drop(first);
        assert!(questions.admit("a", UNIX_EPOCH).is_ok());
    }
}
