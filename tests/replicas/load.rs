//! Clients of both eras that break connections, resume streams and try what they must not.

use crate::wire::{self, Reply};
use bowline_testing::history::{Event, History};
use serde_json::{Value, json};
use std::{
    io,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
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
    /// Calls without state, the slowest of them in milliseconds.
    pub(crate) plain: u64,
    pub(crate) slowest: u64,
    /// Tasks, and how they ended.
    pub(crate) created: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
    /// Questions of tasks that were answered.
    pub(crate) answered: u64,
}

pub(crate) struct Load {
    pub(crate) port: u16,
    pub(crate) clients: usize,
    is_over: AtomicBool,
    /// Nothing that happens now may disturb a call without state.
    is_strict: AtomicBool,
    /// When the last fault ended.
    pub(crate) quiet: OnceLock<Instant>,
    /// When tasks must have ended.
    pub(crate) deadline: OnceLock<Instant>,
    counts: Mutex<Counts>,
    violations: Mutex<Vec<String>>,
    history: History,
    requests: AtomicU64,
    /// The newest session of each client, for others to try.
    sessions: Mutex<Vec<Option<String>>>,
    /// The sessions in which clients create tasks.
    pub(crate) task_sessions: Vec<tokio::sync::Mutex<Option<Session>>>,
    /// The tasks of all clients, each with its user.
    pub(crate) tasks: Mutex<Vec<(String, String)>>,
}

/// A legacy session of one user.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) user: String,
    pub(crate) id: String,
}

pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Load {
    pub(crate) fn new(port: u16, clients: usize) -> Self {
        Self {
            port,
            clients,
            is_over: AtomicBool::new(false),
            is_strict: AtomicBool::new(true),
            quiet: OnceLock::new(),
            deadline: OnceLock::new(),
            counts: Mutex::default(),
            violations: Mutex::default(),
            history: History::new(),
            requests: AtomicU64::new(10),
            sessions: Mutex::new(vec![None; clients]),
            task_sessions: (0..clients).map(|_| tokio::sync::Mutex::new(None)).collect(),
            tasks: Mutex::default(),
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    pub(crate) fn note(&self, event: Event) {
        self.history.record(now(), event);
    }

    pub(crate) fn count(&self, add: impl Fn(&mut Counts)) {
        add(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn violation(&self, text: String) {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// Clients begin nothing new.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(crate) fn set_strict(&self, is_strict: bool) {
        self.is_strict.store(is_strict, Ordering::Release);
    }

    /// A number that no other request has.
    pub(crate) fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request. Unless it is settled, the history says so.
    pub(crate) async fn send(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> io::Result<Reply> {
        let request =
            format!("{method} {} {}", self.next_request(), body.map_or(&Value::Null, |body| &body["method"]));
        self.note(Event::Sent { request: request.clone() });
        let reply = wire::send(self.port, method, headers, body).await;
        if !reply.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            self.note(Event::Settled { request });
        }
        reply
    }

    /// An exchange that did not complete. A timeout means that a request never settled.
    pub(crate) fn interrupted(&self, what: &str, error: &io::Error) {
        if error.kind() == io::ErrorKind::TimedOut {
            self.violation(format!("H7: {what} did not settle"));
        } else {
            self.count(|counts| counts.interrupted += 1);
        }
    }

    /// Calls without state, one after the other.
    pub(crate) async fn call_plainly(self: Arc<Self>) {
        while !self.is_over() {
            let was_strict = self.is_strict.load(Ordering::Acquire);
            let started = Instant::now();
            let call = json!({ "name": "whoami" });
            let reply = self.modern_call("plain", "tools/call", "whoami", call).await;
            let time = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            match reply {
                Ok(reply) if reply["result"]["content"][0]["text"] == "plain" => self.count(|counts| {
                    counts.plain += 1;
                    if was_strict {
                        counts.slowest = counts.slowest.max(time);
                    }
                }),
                // The fault that is disturbing may have begun meanwhile.
                Ok(_) | Err(_) if !was_strict || !self.is_strict.load(Ordering::Acquire) => {
                    self.count(|counts| counts.interrupted += 1);
                }
                Ok(reply) => self.violation(format!("a call without state was answered with {reply}")),
                Err(error) => self.violation(format!("a call without state failed: {error}")),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// One client, until the time is over.
    pub(crate) async fn work(self: Arc<Self>, client: usize) {
        let user = format!("u{client}");
        // The more clients there are, the more rarely each of them does something.
        let pause = Duration::from_millis(30) * u32::try_from(self.clients).unwrap_or(u32::MAX);
        sleep(Duration::from_millis(30) * u32::try_from(client).unwrap_or(u32::MAX)).await;
        let mut turn = 0_u32;
        while !self.is_over() {
            turn += 1;
            if client % 3 == 2 {
                self.modern(&user, turn).await;
                sleep(pause).await;
                continue;
            }
            match self.open(&user).await {
                Ok(Some(session)) => {
                    self.sessions.lock().unwrap_or_else(PoisonError::into_inner)[client] =
                        Some(session.id.clone());
                    for part in 0..3 {
                        let label = format!("{user}.{turn}.{part}");
                        self.steps(&session, &label, client).await;
                        sleep(pause).await;
                    }
                    self.close(&session).await;
                }
                Ok(None) => sleep(Duration::from_millis(200)).await,
                Err(error) => {
                    self.interrupted("initialize", &error);
                    sleep(Duration::from_millis(200)).await;
                }
            }
        }
    }

    /// Opens a session, which needs the store, and says why not.
    pub(crate) async fn probe(&self) -> Result<(), String> {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "probe", "version": "1" } } });
        let user = format!("probe{}", self.next_request());
        let headers = [("Accept", "application/json, text/event-stream"), ("x-user", user.as_str())];
        let reply = self.send("POST", &headers, Some(&hello)).await.map_err(|error| error.to_string())?;
        match reply.status {
            200 => Ok(()),
            status => Err(format!("{status} {}", reply.json().await.unwrap_or_default()["error"]["message"])),
        }
    }

    async fn close(&self, session: &Session) {
        let headers = [("x-user", session.user.as_str()), ("mcp-session-id", session.id.as_str())];
        if let Err(error) = self.send("DELETE", &headers, None).await {
            self.interrupted("DELETE", &error);
        }
    }

    pub(crate) async fn open(&self, user: &str) -> io::Result<Option<Session>> {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "load", "version": "1" } } });
        let accept = ("Accept", "application/json, text/event-stream");
        let reply = self.send("POST", &[accept, ("x-user", user)], Some(&hello)).await?;
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

    pub(crate) async fn post(&self, session: &Session, body: &Value) -> io::Result<Reply> {
        let headers = [
            ("Accept", "application/json, text/event-stream"),
            ("x-user", session.user.as_str()),
            ("mcp-session-id", session.id.as_str()),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        self.send("POST", &headers, Some(body)).await
    }

    async fn steps(&self, session: &Session, label: &str, client: usize) {
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
        let other =
            self.sessions.lock().unwrap_or_else(PoisonError::into_inner)[(client + 1) % self.clients].clone();
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
        // The name of the stream, and the id of the last event.
        let (stream, mut last) = (format!("{label} {tool}"), None::<String>);
        let mut since_cut = 0;
        let started = Instant::now();
        loop {
            match reply.event().await {
                Ok(Some((id, message))) => {
                    if let Some(id) = id {
                        let number = id.split_once('-').and_then(|(_, number)| number.parse::<u64>().ok());
                        // What opens a stream has the number of the last event, or 0.
                        if !message.is_null() {
                            let number = number.unwrap_or(u64::MAX);
                            self.note(Event::StreamEvent { stream: stream.clone(), number });
                        }
                        last = Some(id);
                    } else if !message.is_null() {
                        // Not stored: it cannot be resumed, and nothing is known of its number.
                        last = None;
                    }
                    if message.get("error").is_some() {
                        self.note(Event::StreamBroken { stream: stream.clone() });
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

    pub(crate) async fn resume(&self, session: &Session, last: &str) -> io::Result<Option<Reply>> {
        let headers = [
            ("Accept", "text/event-stream"),
            ("x-user", session.user.as_str()),
            ("mcp-session-id", session.id.as_str()),
            ("mcp-protocol-version", "2025-11-25"),
            ("last-event-id", last),
        ];
        for _ in 0..100 {
            match self.send("GET", &headers, None).await {
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

    /// Says yes to a question.
    pub(crate) async fn post_answer(&self, session: &Session, id: &Value) {
        let answer = json!({ "jsonrpc": "2.0", "id": id,
            "result": { "action": "accept", "content": { "sure": true } } });
        for _ in 0..50 {
            // Answering twice is harmless: the first answer counts.
            if self.post(session, &answer).await.is_ok_and(|reply| reply.status == 202) {
                break;
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Takes one message of a stream. True if it is the response.
    async fn take(&self, session: &Session, label: &str, message: &Value) -> io::Result<bool> {
        if message["method"] == "elicitation/create" {
            if !message["params"]["message"].as_str().unwrap_or_default().contains(label) {
                self.violation(format!("`{label}` received a question of somebody else: {message}"));
            }
            self.post_answer(session, &message["id"]).await;
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
        let asked = match self
            .modern_call(
                user,
                "tools/call",
                "confirm",
                json!({ "name": "confirm", "arguments": { "label": label } }),
            )
            .await
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
        let thief = self.modern_call("thief", "tools/call", "confirm", retry.clone()).await;
        if thief.is_ok_and(|reply| reply["result"]["content"].is_array()) {
            self.violation(format!("the state of `{label}` served another user"));
        }
        let again = || self.modern_call(user, "tools/call", "confirm", retry.clone());
        let (one, other) = tokio::join!(again(), again());
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

    pub(crate) async fn modern_call(
        &self,
        user: &str,
        method: &str,
        name: &str,
        params: Value,
    ) -> io::Result<Value> {
        self.modern_send(user, method, name, params).await?.message().await
    }

    /// Sends a request of 2026-07-28 of a client that takes tasks and answers questions.
    pub(crate) async fn modern_send(
        &self,
        user: &str,
        method: &str,
        name: &str,
        mut params: Value,
    ) -> io::Result<Reply> {
        params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } } });
        let body = json!({ "jsonrpc": "2.0", "id": self.next_request(), "method": method, "params": params });
        let mut headers = vec![
            ("Accept", "application/json, text/event-stream"),
            ("x-user", user),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ];
        if !name.is_empty() {
            headers.push(("mcp-name", name));
        }
        let reply = self.send("POST", &headers, Some(&body)).await?;
        if (502..=504).contains(&reply.status) {
            return Err(io::Error::other("not available"));
        }
        Ok(reply)
    }
}
