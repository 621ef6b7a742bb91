//! Clients of both eras that break connections, resume streams and try what they must not.

use crate::wire::{self, Reply};
use serde_json::{Value, json};
use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Complete results.
    pub(crate) responses: u64,
    /// Requests whose connection broke, and sessions that were lost with it.
    pub(crate) interrupted: u64,
    /// Streams that were resumed.
    pub(crate) resumed: u64,
    /// Streams that ended with an error.
    pub(crate) errors: u64,
    /// What was rightly refused.
    pub(crate) refused: u64,
}

pub(crate) struct Load {
    port: u16,
    until: Instant,
    counts: Mutex<Counts>,
    violations: Mutex<Vec<String>>,
    /// The newest session of each worker, for others to try.
    sessions: Mutex<Vec<Option<String>>>,
}

/// A legacy session of one user.
struct Session {
    user: String,
    id: String,
}

impl Load {
    pub(crate) fn new(port: u16, until: Instant) -> Self {
        let sessions = Mutex::new(vec![None; 16]);
        Self { port, until, counts: Mutex::default(), violations: Mutex::default(), sessions }
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, add: impl Fn(&mut Counts)) {
        add(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn violation(&self, text: String) {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// An exchange that did not complete. A timeout means that a request never settled.
    fn interrupted(&self, what: &str, error: &io::Error) {
        if error.kind() == io::ErrorKind::TimedOut {
            self.violation(format!("{what} did not settle"));
        } else {
            self.count(|counts| counts.interrupted += 1);
        }
    }

    /// One client, until the time is over.
    pub(crate) async fn work(self: Arc<Self>, worker: usize) {
        let user = format!("u{worker}");
        let mut turn = 0_u32;
        while Instant::now() < self.until {
            turn += 1;
            if worker % 3 == 2 {
                self.modern(&user, turn).await;
                continue;
            }
            match self.open(&user).await {
                Ok(Some(session)) => {
                    self.sessions.lock().unwrap_or_else(PoisonError::into_inner)[worker] =
                        Some(session.id.clone());
                    for part in 0..3 {
                        let label = format!("{user}.{turn}.{part}");
                        self.steps(&session, &label, worker).await;
                    }
                }
                Ok(None) => sleep(Duration::from_millis(200)).await,
                Err(error) => {
                    self.interrupted("initialize", &error);
                    sleep(Duration::from_millis(200)).await;
                }
            }
        }
    }

    async fn open(&self, user: &str) -> io::Result<Option<Session>> {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "load", "version": "1" } } });
        let accept = ("Accept", "application/json, text/event-stream");
        let reply = wire::send(self.port, "POST", &[accept, ("x-user", user)], Some(&hello)).await?;
        if reply.status != 200 {
            self.count(|counts| counts.interrupted += 1);
            return Ok(None);
        }
        let session = Session {
            user: user.to_owned(),
            id: reply.header("mcp-session-id").unwrap_or_default().to_owned(),
        };
        reply.json().await?;
        let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        for _ in 0..20 {
            // A notification may be sent again: it changes nothing the second time.
            if self.post(&session, &done).await.is_ok_and(|reply| reply.status == 202) {
                return Ok(Some(session));
            }
            sleep(Duration::from_millis(200)).await;
        }
        Ok(None)
    }

    async fn post(&self, session: &Session, body: &Value) -> io::Result<Reply> {
        let headers = [
            ("Accept", "application/json, text/event-stream"),
            ("x-user", session.user.as_str()),
            ("mcp-session-id", session.id.as_str()),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        wire::send(self.port, "POST", &headers, Some(body)).await
    }

    async fn steps(&self, session: &Session, label: &str, worker: usize) {
        if let Err(error) = self.whoami(session).await {
            self.interrupted("whoami", &error);
        }
        if let Err(error) = self.stream(session, label, "count", json!({ "label": label, "steps": 6 })).await
        {
            self.interrupted("count", &error);
        }
        if let Err(error) = self.stream(session, label, "confirm", json!({ "label": label })).await {
            self.interrupted("confirm", &error);
        }
        // The session of somebody else does not exist.
        let other = self.sessions.lock().unwrap_or_else(PoisonError::into_inner)[(worker + 1) % 2].clone();
        if let Some(id) = other.filter(|id| *id != session.id) {
            let thief = Session { user: format!("{}-thief", session.user), id };
            let call =
                json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": { "name": "whoami" } });
            match self.post(&thief, &call).await {
                Ok(reply) if reply.status == 200 => self.violation("a session served another user".into()),
                Ok(_) => self.count(|counts| counts.refused += 1),
                Err(error) => self.interrupted("a foreign call", &error),
            }
        }
    }

    async fn whoami(&self, session: &Session) -> io::Result<()> {
        let call =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "whoami" } });
        let reply = self.post(session, &call).await?;
        match reply.status {
            200 => {
                let reply = reply.json().await?;
                let text = &reply["result"]["content"][0]["text"];
                if *text != session.user.as_str() {
                    self.violation(format!("`{}` was taken for {text}: {reply}", session.user));
                }
                self.count(|counts| counts.responses += 1);
            }
            502..=504 => self.count(|counts| counts.interrupted += 1),
            status => self.violation(format!("a call was answered with {status}")),
        }
        Ok(())
    }

    /// A call whose response is a stream. The connection is cut after every second event, and the stream resumed.
    async fn stream(&self, session: &Session, label: &str, tool: &str, arguments: Value) -> io::Result<()> {
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": tool, "arguments": arguments, "_meta": { "progressToken": label } } });
        let mut reply = self.post(session, &call).await?;
        if reply.status != 200 || !reply.is_stream() {
            return self.whole(session, label, reply).await;
        }
        // The name of the stream, and the number of the last event.
        let (mut last, mut expected) = (None::<String>, 1_u64);
        let mut since_cut = 0;
        let started = Instant::now();
        loop {
            match reply.event().await {
                Ok(Some((id, message))) => {
                    if let Some(id) = id {
                        let number = id.split_once('-').and_then(|(_, number)| number.parse::<u64>().ok());
                        let is_priming = message.is_null();
                        if !is_priming && number != Some(expected) {
                            self.violation(format!("`{label}`: event {id} instead of number {expected}"));
                        }
                        expected = number.unwrap_or(expected) + 1;
                        last = Some(id);
                    } else if !message.is_null() {
                        // Not stored: it cannot be resumed, and nothing is known of its number.
                        last = None;
                    }
                    if self.take(session, label, &message).await? {
                        return Ok(());
                    }
                    since_cut += 1;
                    if since_cut < 3 || last.is_none() {
                        continue;
                    }
                }
                // The end without a response, or a cut by somebody else.
                Ok(None) | Err(_) if last.is_some() => {}
                Ok(None) => return Err(io::Error::other("the stream ended")),
                Err(error) => return Err(error),
            }
            if started.elapsed() > wire::PATIENCE {
                return Err(io::ErrorKind::TimedOut.into());
            }
            since_cut = 0;
            reply = match self.resume(session, last.as_deref().unwrap_or_default()).await? {
                Some(reply) => reply,
                None => return Err(io::Error::other("the stream cannot be resumed")),
            };
            self.count(|counts| counts.resumed += 1);
        }
    }

    async fn resume(&self, session: &Session, last: &str) -> io::Result<Option<Reply>> {
        let headers = [
            ("Accept", "text/event-stream"),
            ("x-user", session.user.as_str()),
            ("mcp-session-id", session.id.as_str()),
            ("mcp-protocol-version", "2025-11-25"),
            ("last-event-id", last),
        ];
        for _ in 0..100 {
            match wire::send(self.port, "GET", &headers, None).await {
                Ok(reply) if reply.status == 200 => return Ok(Some(reply)),
                Ok(reply) if !(502..=504).contains(&reply.status) => {
                    let status = reply.status;
                    let text = reply.json().await.unwrap_or_default();
                    self.violation(format!("a stream was not resumed after {last}: {status} {text}"));
                    return Ok(None);
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
                Ok(_) | Err(_) => sleep(Duration::from_millis(200)).await,
            }
        }
        Ok(None)
    }

    /// A response that did not become a stream.
    async fn whole(&self, session: &Session, label: &str, reply: Reply) -> io::Result<()> {
        match reply.status {
            200 => {
                let message = reply.json().await?;
                self.take(session, label, &message).await.map(drop)
            }
            502..=504 => {
                self.count(|counts| counts.interrupted += 1);
                Ok(())
            }
            status => {
                self.violation(format!("`{label}` was answered with {status}"));
                Ok(())
            }
        }
    }

    /// Takes one message of a stream. True if it is the response.
    async fn take(&self, session: &Session, label: &str, message: &Value) -> io::Result<bool> {
        if message["method"] == "elicitation/create" {
            if !message["params"]["message"].as_str().unwrap_or_default().contains(label) {
                self.violation(format!("`{label}` received a question of somebody else: {message}"));
            }
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"],
                "result": { "action": "accept", "content": { "sure": true } } });
            for _ in 0..50 {
                // Answering twice is harmless: the first answer counts.
                if self.post(session, &answer).await.is_ok_and(|reply| reply.status == 202) {
                    break;
                }
                sleep(Duration::from_millis(200)).await;
            }
            return Ok(false);
        }
        if message["method"] == "notifications/progress" && message["params"]["progressToken"] != label {
            self.violation(format!("`{label}` received {message}"));
        }
        if let Some(text) = message["result"]["content"][0]["text"].as_str() {
            if text != format!("{label} for {}", session.user) {
                self.violation(format!("`{label}` received the result {text:?}"));
            }
            self.count(|counts| counts.responses += 1);
            return Ok(true);
        }
        if message.get("error").is_some() {
            self.count(|counts| counts.errors += 1);
            return Ok(true);
        }
        Ok(false)
    }

    /// One question of 2026-07-28, answered by two requests at the same time.
    async fn modern(&self, user: &str, turn: u32) {
        let label = format!("{user}.m{turn}");
        let asked =
            match self.modern_call(user, json!({ "name": "confirm", "arguments": { "label": label } })).await
            {
                Ok(asked) => asked,
                Err(error) => {
                    self.interrupted("a call of 2026-07-28", &error);
                    return sleep(Duration::from_millis(200)).await;
                }
            };
        let (state, requests) = (&asked["result"]["requestState"], &asked["result"]["inputRequests"]);
        let Some(key) = requests.as_object().and_then(|requests| requests.keys().next().cloned()) else {
            return self.count(|counts| counts.interrupted += 1);
        };
        let retry = json!({ "name": "confirm", "arguments": { "label": label }, "requestState": state,
            "inputResponses": { key: { "action": "accept", "content": { "sure": true } } } });
        let thief = self.modern_call("thief", retry.clone()).await;
        if thief.is_ok_and(|reply| reply["result"]["content"].is_array()) {
            self.violation(format!("the state of `{label}` served another user"));
        }
        let (one, other) = tokio::join!(self.modern_call(user, retry.clone()), self.modern_call(user, retry));
        let is_done = |reply: &io::Result<Value>| {
            reply.as_ref().is_ok_and(|reply| reply["result"]["content"][0]["text"].is_string())
        };
        match (is_done(&one), is_done(&other)) {
            (true, true) => self.violation(format!("the state of `{label}` was used twice")),
            (true, false) | (false, true) => self.count(|counts| counts.responses += 1),
            (false, false) => self.count(|counts| counts.interrupted += 1),
        }
        for reply in [one, other] {
            if let Err(error) = reply {
                self.interrupted("a retry of 2026-07-28", &error);
            }
        }
    }

    async fn modern_call(&self, user: &str, mut params: Value) -> io::Result<Value> {
        params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let headers = [
            ("Accept", "application/json, text/event-stream"),
            ("x-user", user),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "confirm"),
        ];
        let reply = wire::send(self.port, "POST", &headers, Some(&body)).await?;
        if (502..=504).contains(&reply.status) {
            return Err(io::Error::other("not available"));
        }
        reply.json().await
    }
}
