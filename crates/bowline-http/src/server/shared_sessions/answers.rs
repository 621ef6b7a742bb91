//! Answers to questions of running calls, whichever process they reach.

use super::{node::Node, record::question_key};
use bowline_proto::replay::Answer;
use bowline_server::{BoxFuture, transport::RemoteAnswers};
use bowline_store::{Key, Put, PutError, StoreError};
use bowline_types::{Id, RawJson, RpcError};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

/// How long a question is kept after its call stopped waiting.
const MARGIN: Duration = Duration::from_secs(60);

/// The value of a question that is not answered.
const OPEN: &[u8] = b"{}";

/// The questions of one session.
pub(super) struct Answers {
    pub(super) node: Arc<Node>,
    pub(super) session: Arc<str>,
    /// How long a client may take.
    pub(super) limit: Duration,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredAnswer {
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

impl Answers {
    fn key(&self, id: &Id) -> Option<Key> {
        key(&self.session, id)
    }
}

/// The key of a question, if its id is one that a process of ours chose.
fn key(session: &str, id: &Id) -> Option<Key> {
    let Id::String(id) = id else { return None };
    let is_ours =
        id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'-' | b'.'));
    if is_ours { question_key(session, id).ok() } else { None }
}

/// Not an answer: whoever asks may ask again after this time.
const RETRY_AFTER: Duration = Duration::from_secs(1);

fn unavailable() -> RpcError {
    let reason = "cannot ask the client: the session store is not available; try again later";
    RpcError::unavailable(reason, RETRY_AFTER)
}

impl RemoteAnswers for Answers {
    fn open<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Result<(), RpcError>> {
        Box::pin(async move {
            let key = self.key(id).ok_or_else(unavailable)?;
            // Not relaxed: a store that lost the question would ignore its answer, and the call would never get it.
            let put = Put::create(key, OPEN, self.limit.saturating_add(MARGIN));
            match self.node.records().put(put).await {
                // The id was never used before, so a conflict is an earlier attempt.
                Ok(_) | Err(PutError::Conflict | PutError::ClaimLost) => Ok(()),
                Err(error) => {
                    tracing::warn!(%error, "a question is not asked");
                    Err(unavailable())
                }
            }
        })
    }

    fn answer<'a>(&'a self, id: &'a Id) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let Some(key) = self.key(id) else { return std::future::pending().await };
            let waiter = self.node.waiter(key.as_str());
            loop {
                waiter.wait().await;
                // A store that is down may be back before the time of the question is over.
                let Ok(mut found) = self.node.records().get(std::slice::from_ref(&key)).await else {
                    continue;
                };
                if let Some(record) = found.pop().flatten()
                    && record.value != OPEN
                {
                    let invalid = |_| RpcError::unavailable("the stored answer cannot be read", RETRY_AFTER);
                    let answer: StoredAnswer = serde_json::from_slice(&record.value).map_err(invalid)?;
                    return match (answer.result, answer.error) {
                        (Some(result), _) => Ok(result),
                        (None, error) => {
                            Err(error.unwrap_or_else(|| RpcError::internal("the answer is empty")))
                        }
                    };
                }
            }
        })
    }

    fn close(&self, id: &Id) {
        if let Some(key) = self.key(id) {
            let node = Arc::clone(&self.node);
            // If it is not removed, it expires.
            self.node.spawn(async move { drop(node.records().remove(&[key]).await) });
        }
    }
}

/// How often an answer is written while others write the record of its question.
const ATTEMPTS: usize = 8;

/// Stores the answer to a question that another copy of the session asked. An answer to nothing is ignored.
pub(super) async fn store(node: &Node, session: &str, id: &Id, answer: Answer) -> Result<(), PutError> {
    let Some(key) = key(session, id) else { return Ok(()) };
    let answer = match answer {
        Ok(result) => StoredAnswer { result: Some(result), error: None },
        Err(error) => StoredAnswer { result: None, error: Some(error) },
    };
    let value = serde_json::to_vec(&answer).unwrap_or_default();
    for _ in 0..ATTEMPTS {
        let Some(record) = node.records().get(std::slice::from_ref(&key)).await?.pop().flatten() else {
            // The call stopped waiting.
            return Ok(());
        };
        if record.value != OPEN {
            return Ok(());
        }
        match node.records().put(Put::update(key.clone(), value.clone(), record.version)).await {
            Ok(_) => {
                node.announce_key(key.as_str());
                return Ok(());
            }
            // Somebody answered it meanwhile, or the question was sealed again with another key: the next read tells.
            Err(PutError::Conflict | PutError::ClaimLost) => {}
            Err(error) => return Err(error),
        }
    }
    // Not acknowledged: the client sends it again.
    Err(StoreError::unavailable("other processes write the same question").into())
}
