//! Clients that create tasks, wait for them in different ways, and try what they must not.

use crate::{
    load::{Load, Session, now},
    wire::Reply,
};
use bowline_testing::history::{Event, Status};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    io,
    sync::{Arc, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// A task that a client wants.
struct Order {
    client: usize,
    user: String,
    /// Somebody else, who learns the id.
    thief: Option<String>,
    label: String,
    tool: &'static str,
    is_cancelled: bool,
}

impl Order {
    fn new(number: u64, clients: usize) -> Self {
        let client = usize::try_from(number).unwrap_or(0) % clients;
        // Both eras and all users call all tools.
        let turn = number / clients as u64 + number;
        let thief = turn.is_multiple_of(4).then(|| format!("u{}", (client + 1) % clients));
        let tool = ["work", "decide", "work", "decide", "rest", "fragile"][(turn % 6) as usize];
        let user = format!("u{client}");
        Self { client, label: format!("{user}.t{number}"), user, thief, tool, is_cancelled: turn % 11 == 7 }
    }

    fn arguments(&self) -> Value {
        match self.tool {
            "work" => json!({ "label": self.label, "steps": 5 }),
            _ => json!({ "label": self.label }),
        }
    }
}

/// What a client knows of its task.
struct Known<'a> {
    order: &'a Order,
    id: String,
    /// From when on the task must have ended, because it was cancelled.
    over_since: Option<u64>,
    /// Questions whose answers were acknowledged, and when.
    answered: Vec<(String, u64)>,
}

/// What a look at a task shows.
enum Seen {
    Working(Duration),
    Asks(Vec<String>),
    Ended,
}

const UNKNOWN: i64 = -32602;

impl Load {
    /// Creates a task and waits for its end. Even clients speak 2026-07-28, odd ones 2025-11-25.
    pub(crate) async fn task(self: Arc<Self>, number: u64) {
        let order = Order::new(number, self.clients);
        let waited = if order.client.is_multiple_of(2) {
            self.modern_task(&order, number.is_multiple_of(3)).await
        } else {
            self.legacy_task(&order).await
        };
        if let Some(quiet) = self.quiet.get()
            && quiet.elapsed() > Duration::from_secs(30)
        {
            println!("  late: `{}` ({}, client {})", order.label, order.tool, order.client);
        }
        if let Err(error) = waited {
            self.interrupted(&format!("task `{}`", order.label), &error);
        }
    }

    fn created<'a>(&self, order: &'a Order, id: &Value, ttl: &Value) -> Option<Known<'a>> {
        let Some(id) = id.as_str().map(str::to_owned) else {
            self.count(|counts| counts.interrupted += 1);
            return None;
        };
        let ttl = ttl.as_u64().unwrap_or(u64::MAX / 2);
        self.note(Event::Created { task: id.clone(), principal: order.user.clone(), ttl });
        self.count(|counts| counts.created += 1);
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push((id.clone(), order.user.clone()));
        Some(Known { order, id, over_since: None, answered: Vec::new() })
    }

    /// False when the time is over by which every task must have ended.
    fn goes_on(&self, known: &Known<'_>) -> bool {
        let is_late = self.deadline.get().is_some_and(|deadline| Instant::now() > *deadline);
        if is_late {
            self.violation(format!(
                "task {} (`{}`, {}) never ended",
                known.id, known.order.label, known.order.tool
            ));
        }
        !is_late
    }

    /// Notes what a client saw of a task.
    fn read(&self, known: &Known<'_>, asked: u64, status: Status, outcome: Option<String>) {
        let (task, principal) = (known.id.clone(), known.order.user.clone());
        self.note(Event::Read { task, principal, asked, status, outcome });
        if status != Status::Ended && known.over_since.is_some_and(|since| since <= asked) {
            self.violation(format!("task {} was cancelled, and was {status:?} later", known.id));
        }
    }

    /// Checks what a completed task says, and notes the values of its steps.
    fn check_result(&self, known: &Known<'_>, content: &Value) {
        let order = known.order;
        let text = content[0]["text"].as_str().unwrap_or_default();
        let Some(values) = text.strip_prefix(&format!("{} for {}", order.label, order.user)) else {
            self.violation(format!("H9: task {} of `{}` returned {content}", known.id, order.label));
            return;
        };
        for (step, value) in values.split(' ').filter_map(|pair| pair.split_once('=')) {
            if step != "sure" {
                let (task, step, value) = (known.id.clone(), step.to_owned(), value.to_owned());
                self.note(Event::StepUsed { task, step, value });
            } else if value != "true" {
                self.violation(format!("H9: somebody else answered a question of task {}", known.id));
            }
        }
        self.count(|counts| {
            counts.completed += 1;
            counts.responses += 1;
        });
    }

    fn check_failure(&self, known: &Known<'_>, message: &str) {
        self.count(|counts| counts.failed += 1);
        let is_allowed = message.contains("given up")
            || (message.contains("interrupted") && known.order.tool == "fragile");
        if !is_allowed {
            self.violation(format!("task {} ({}) failed: {message}", known.id, known.order.tool));
        }
    }

    fn unknown(&self, task: &str, principal: &str, asked: u64) {
        self.note(Event::Unknown { task: task.to_owned(), principal: principal.to_owned(), asked });
    }
}

/// 2026-07-28.
impl Load {
    async fn modern_task(&self, order: &Order, listens: bool) -> io::Result<()> {
        let params = json!({ "name": order.tool, "arguments": order.arguments() });
        let reply = self.modern_call(&order.user, "tools/call", order.tool, params).await?;
        let task = &reply["result"];
        let Some(mut known) = self.created(order, &task["taskId"], &task["ttlMs"]) else { return Ok(()) };
        if let Some(thief) = &order.thief {
            self.steal(&known.id, thief).await;
        }
        if order.is_cancelled {
            self.cancel(&mut known).await;
        }
        while self.goes_on(&known) {
            if listens {
                self.listen(&mut known).await;
            }
            let asked = now();
            let reply = self.get(&order.user, &known.id).await;
            let pause = match reply {
                Ok(reply) if reply["error"]["code"] == UNKNOWN => {
                    self.unknown(&known.id, &order.user, asked);
                    return Ok(());
                }
                Ok(reply) if reply["result"]["status"].is_string() => {
                    match self.see(&known, asked, &reply["result"]) {
                        Seen::Ended => return Ok(()),
                        Seen::Asks(keys) => {
                            self.answer(&mut known, asked, keys).await;
                            Duration::from_millis(100)
                        }
                        Seen::Working(pause) => pause,
                    }
                }
                // Not available: ask again.
                _ => Duration::from_millis(500),
            };
            sleep(pause).await;
        }
        Ok(())
    }

    async fn get(&self, user: &str, id: &str) -> io::Result<Value> {
        self.modern_call(user, "tasks/get", id, json!({ "taskId": id })).await
    }

    /// Takes a task as `tasks/get` and notifications show it.
    fn see(&self, known: &Known<'_>, asked: u64, task: &Value) -> Seen {
        match task["status"].as_str().unwrap_or_default() {
            "input_required" => {
                self.read(known, asked, Status::InputRequired, None);
                let keys = task["inputRequests"].as_object().map(|asked| asked.keys().cloned().collect());
                Seen::Asks(keys.unwrap_or_default())
            }
            "completed" => {
                let content = &task["result"]["content"];
                self.read(known, asked, Status::Ended, Some(content.to_string()));
                self.check_result(known, content);
                Seen::Ended
            }
            "failed" => {
                let message = task["error"]["message"].as_str().unwrap_or_default();
                self.read(known, asked, Status::Ended, Some(message.to_owned()));
                self.check_failure(known, message);
                Seen::Ended
            }
            "cancelled" => {
                self.read(known, asked, Status::Ended, Some("cancelled".to_owned()));
                self.count(|counts| counts.cancelled += 1);
                Seen::Ended
            }
            _ => {
                self.read(known, asked, Status::Working, None);
                let pause = task["pollIntervalMs"].as_u64().unwrap_or(500).clamp(100, 1000);
                Seen::Working(Duration::from_millis(pause))
            }
        }
    }

    /// Answers the questions of a task. An answer that was acknowledged must not be asked for again.
    async fn answer(&self, known: &mut Known<'_>, asked: u64, keys: Vec<String>) {
        for key in keys {
            if let Some((_, when)) = known.answered.iter().find(|(known, _)| *known == key) {
                if *when <= asked {
                    self.violation(format!("the answer `{key}` of task {} got lost", known.id));
                }
                continue;
            }
            let answer = json!({ "action": "accept", "content": { "sure": true } });
            let params = json!({ "taskId": known.id, "inputResponses": { &key: answer } });
            let reply = self.modern_call(&known.order.user, "tasks/update", &known.id, params).await;
            match reply {
                Ok(reply) if reply.get("result").is_some() => {
                    known.answered.push((key, now()));
                    self.count(|counts| counts.answered += 1);
                }
                Ok(reply) if reply["error"]["code"] == UNKNOWN => {
                    self.violation(format!("an answer of task {} was refused: {reply}", known.id));
                }
                // Perhaps it arrived: the next look shows it.
                Ok(_) | Err(_) => self.count(|counts| counts.interrupted += 1),
            }
        }
    }

    /// Reads a stream of changes, until it breaks, the task has ended, or it asks.
    async fn listen(&self, known: &mut Known<'_>) {
        let asked = now();
        let filter = json!({ "notifications": { "taskIds": [known.id] } });
        let Ok(mut reply) = self.modern_send(&known.order.user, "subscriptions/listen", "", filter).await
        else {
            return;
        };
        let mut numbers = HashSet::new();
        while let Ok(Some((id, message))) = reply.event().await {
            if id.is_some_and(|id| !numbers.insert(id)) {
                self.violation(format!("H6: an event of task {} came twice", known.id));
            }
            let task = &message["params"];
            let followed = &message["params"]["notifications"]["taskIds"];
            if message["method"] == "notifications/subscriptions/acknowledged"
                && *followed != json!([known.id])
            {
                // Nothing would ever come; `tasks/get` says why.
                return;
            }
            if message["method"] != "notifications/tasks" {
                continue;
            }
            if task["taskId"] != known.id.as_str() {
                self.violation(format!("H9: the listener of task {} received {message}", known.id));
            }
            match task["status"].as_str() {
                // Read by the server at some time after the stream began.
                Some("working") => self.read(known, asked, Status::Working, None),
                _ => return,
            }
        }
    }

    async fn cancel(&self, known: &mut Known<'_>) {
        let params = json!({ "taskId": known.id });
        let reply = self.modern_call(&known.order.user, "tasks/cancel", &known.id, params).await;
        if reply.is_ok_and(|reply| reply.get("result").is_some()) {
            known.over_since = Some(now());
        }
    }

    /// What somebody else may not do with a task.
    async fn steal(&self, id: &str, thief: &str) {
        let answer = json!({ "q1": { "action": "accept", "content": { "sure": false } } });
        for (method, params) in [
            ("tasks/get", json!({ "taskId": id })),
            ("tasks/update", json!({ "taskId": id, "inputResponses": answer })),
            ("tasks/cancel", json!({ "taskId": id })),
        ] {
            let asked = now();
            match self.modern_call(thief, method, id, params).await {
                Ok(reply) if reply["error"]["code"] == UNKNOWN => {
                    self.unknown(id, thief, asked);
                    self.count(|counts| counts.refused += 1);
                }
                Ok(reply) if reply.get("result").is_some() => {
                    let (task, principal) = (id.to_owned(), thief.to_owned());
                    self.note(Event::Read { task, principal, asked, status: Status::Working, outcome: None });
                }
                Ok(_) | Err(_) => self.count(|counts| counts.interrupted += 1),
            }
        }
    }

    /// Reads a task of either era once more.
    pub(crate) async fn look_again(&self, id: &str, user: &str) {
        for _ in 0..50 {
            let asked = now();
            match self.get(user, id).await {
                Ok(reply) if reply["error"]["code"] == UNKNOWN => return self.unknown(id, user, asked),
                Ok(reply) if reply["result"]["status"].is_string() => {
                    let task = &reply["result"];
                    let (status, outcome) = match task["status"].as_str().unwrap_or_default() {
                        "completed" => (Status::Ended, Some(task["result"]["content"].to_string())),
                        "failed" => (Status::Ended, task["error"]["message"].as_str().map(str::to_owned)),
                        "cancelled" => (Status::Ended, Some("cancelled".to_owned())),
                        "input_required" => (Status::InputRequired, None),
                        _ => (Status::Working, None),
                    };
                    let (task, principal) = (id.to_owned(), user.to_owned());
                    return self.note(Event::Read { task, principal, asked, status, outcome });
                }
                _ => sleep(Duration::from_millis(200)).await,
            }
        }
        self.violation(format!("task {id} cannot be read although there is no fault any more"));
    }
}

/// 2025-11-25.
impl Load {
    async fn task_session(&self, order: &Order) -> io::Result<Session> {
        let mut slot = self.task_sessions[order.client].lock().await;
        if slot.is_none() {
            *slot = self.open(&order.user).await?;
        }
        slot.clone().ok_or_else(|| io::Error::other("no session"))
    }

    async fn legacy_send(&self, session: &Session, method: &str, params: Value) -> io::Result<Reply> {
        let body = json!({ "jsonrpc": "2.0", "id": self.next_request(), "method": method, "params": params });
        let reply = self.post(session, &body).await?;
        match reply.status {
            502..=504 => Err(io::Error::other("not available")),
            404 => {
                self.violation(format!("a session of `{}` got lost", session.user));
                Err(io::Error::other("no such session"))
            }
            _ => Ok(reply),
        }
    }

    async fn legacy_task(&self, order: &Order) -> io::Result<()> {
        let session = self.task_session(order).await?;
        let params =
            json!({ "name": order.tool, "arguments": order.arguments(), "task": { "ttl": 1_800_000 } });
        let reply = self.legacy_send(&session, "tools/call", params).await?.message().await?;
        let task = &reply["result"]["task"];
        let Some(mut known) = self.created(order, &task["taskId"], &task["ttl"]) else { return Ok(()) };
        let id = json!({ "taskId": known.id });
        if let Some(thief) = &order.thief {
            self.steal(&known.id, thief).await;
        }
        if order.is_cancelled
            && let Ok(reply) = self.legacy_send(&session, "tasks/cancel", id.clone()).await
            && reply.message().await?.get("result").is_some()
        {
            known.over_since = Some(now());
        }
        while self.goes_on(&known) {
            let asked = now();
            let reply = match self.legacy_send(&session, "tasks/get", id.clone()).await {
                Ok(reply) => reply.message().await.unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
                Err(_) => Value::Null,
            };
            if reply["error"]["code"] == UNKNOWN {
                self.unknown(&known.id, &order.user, asked);
                return Ok(());
            }
            match reply["result"]["status"].as_str() {
                Some("working") => self.read(&known, asked, Status::Working, None),
                Some("cancelled") => {
                    self.read(&known, asked, Status::Ended, Some("cancelled".to_owned()));
                    self.count(|counts| counts.cancelled += 1);
                    return Ok(());
                }
                Some(status) => {
                    if status == "input_required" {
                        self.read(&known, asked, Status::InputRequired, None);
                    }
                    if self.legacy_result(&known, &session, asked).await? {
                        return Ok(());
                    }
                }
                None => {}
            }
            sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }

    /// Waits for the result of a task, and answers its questions meanwhile. True if there is one.
    async fn legacy_result(&self, known: &Known<'_>, session: &Session, asked: u64) -> io::Result<bool> {
        let sent = self.legacy_send(session, "tasks/result", json!({ "taskId": known.id })).await;
        let Some(response) = (match sent {
            Ok(reply) if reply.is_stream() => self.legacy_stream(known, session, reply).await?,
            Ok(reply) => Some(reply.json().await?),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
            Err(_) => None,
        }) else {
            return Ok(false);
        };
        let content = &response["result"]["content"];
        let message = response["error"]["message"].as_str().unwrap_or_default();
        if content.is_array() {
            self.read(known, asked, Status::Ended, Some(content.to_string()));
            self.check_result(known, content);
        } else if message.contains("given up") || message.contains("interrupted") {
            self.read(known, asked, Status::Ended, Some(message.to_owned()));
            self.check_failure(known, message);
        } else if response["error"]["code"] == UNKNOWN {
            self.unknown(&known.id, &known.order.user, asked);
        } else {
            // The stream is over, not the task.
            self.count(|counts| counts.errors += 1);
            return Ok(false);
        }
        Ok(true)
    }

    async fn legacy_stream(
        &self,
        known: &Known<'_>,
        session: &Session,
        mut reply: Reply,
    ) -> io::Result<Option<Value>> {
        let mut last = None;
        while self.goes_on(known) {
            match reply.event().await {
                Ok(Some((id, message))) => {
                    last = id.or(last);
                    if message["method"] == "elicitation/create" {
                        let text = message["params"]["message"].as_str().unwrap_or_default();
                        if !text.contains(&known.order.label) {
                            self.violation(format!("H9: `{}` received {message}", known.order.label));
                        }
                        self.post_answer(session, &message["id"]).await;
                        self.count(|counts| counts.answered += 1);
                    } else if message.get("result").is_some() || message.get("error").is_some() {
                        return Ok(Some(message));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error),
                Ok(None) | Err(_) => {
                    let Some(last) = &last else { return Ok(None) };
                    let Some(resumed) = self.resume(session, last).await? else { return Ok(None) };
                    self.count(|counts| counts.resumed += 1);
                    reply = resumed;
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
        Ok(None)
    }
}
