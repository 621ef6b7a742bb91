//! Plays the server side of a recording for any client that sends the same requests.

use super::{
    Side, Transcript,
    matching::{Kept, compare},
};
use bowline_types::{error_code, meta};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// A server that replays a transcript.
///
/// A request gets the response that was recorded for the same method and parameters, ignoring `_meta`, after the
/// notifications and requests that the server sent before it. Responses of the client to such requests are compared
/// with the recorded ones. The same request may be repeated. A mock has no clock and does no IO: it only converts
/// frames.
#[derive(Debug)]
pub struct Mock {
    scripts: Vec<Script>,
    /// Frames that the server sent before any request.
    opening: VecDeque<Item>,
    running: Vec<Running>,
    complaints: Vec<String>,
    name: String,
    next_id: u64,
}

/// The frames that follow a message of the client.
#[derive(Debug)]
struct Script {
    message: Value,
    items: VecDeque<Item>,
    used: bool,
}

#[derive(Clone, Debug)]
enum Item {
    Say(Value),
    /// The client responded to a request of the server here.
    Await {
        question: String,
        answer: Value,
        line: usize,
    },
}

/// A script that waits for a response of the client.
#[derive(Debug)]
struct Running {
    items: VecDeque<Item>,
    /// The message that started it, and the recorded one.
    message: Value,
    recorded: Value,
    /// The ids of requests that were sent, by recorded id.
    asked: BTreeMap<String, Value>,
    answers: HashMap<String, Value>,
    again: bool,
}

impl Mock {
    /// Creates a mock for a transcript.
    pub fn new(transcript: &Transcript) -> Self {
        let mut mock = Self {
            scripts: Vec::new(),
            opening: VecDeque::new(),
            running: Vec::new(),
            complaints: Vec::new(),
            name: transcript.name.clone(),
            next_id: 1,
        };
        let mut in_flight: Vec<usize> = Vec::new();
        let mut asked: HashMap<String, usize> = HashMap::new();
        for (side, frame, message) in transcript.messages() {
            let id = message.get("id").map(Value::to_string);
            let is_message = message.get("method").is_some();
            match (side, is_message, id) {
                (Side::Client, true, id) => {
                    in_flight.extend(id.map(|_| mock.scripts.len()));
                    let script = Script { message: message.clone(), items: VecDeque::new(), used: false };
                    mock.scripts.push(script);
                }
                (Side::Client, false, Some(id)) => {
                    let owner = asked.get(&id).and_then(|owner| mock.scripts.get_mut(*owner));
                    if let Some(script) = owner {
                        let item = Item::Await { question: id, answer: message.clone(), line: frame.line };
                        script.items.push_back(item);
                    }
                }
                (Side::Server, false, Some(id)) => {
                    let is_answered = |owner: &usize| {
                        let asked = mock.scripts.get(*owner).and_then(|script| script.message.get("id"));
                        asked.map(Value::to_string).as_ref() == Some(&id)
                    };
                    if let Some(position) = in_flight.iter().position(is_answered) {
                        let owner = in_flight.remove(position);
                        mock.own(Some(owner), message);
                    }
                }
                (Side::Server, true, id) => {
                    let owner = mock.reported_on(message, &in_flight);
                    let last = mock.scripts.len().checked_sub(1);
                    let owner = owner.or_else(|| in_flight.last().copied()).or(last);
                    asked.extend(id.zip(owner));
                    mock.own(owner, message);
                }
                (Side::Client | Side::Server, false, None) => {}
            }
        }
        mock
    }

    /// Assigns a frame of the server to the client message that caused it.
    fn own(&mut self, owner: Option<usize>, message: &Value) {
        let items = match owner.and_then(|owner| self.scripts.get_mut(owner)) {
            Some(script) => &mut script.items,
            None => &mut self.opening,
        };
        items.push_back(Item::Say(message.clone()));
    }

    /// Returns the request that a progress notification belongs to.
    fn reported_on(&self, message: &Value, in_flight: &[usize]) -> Option<usize> {
        let token = message.pointer("/params/progressToken")?;
        let wants = |owner: &usize| {
            self.scripts.get(*owner).and_then(|script| progress_token(&script.message)) == Some(token)
        };
        in_flight.iter().copied().find(wants)
    }

    /// Returns the frames that the server sends before any request.
    pub fn open(&mut self) -> Vec<Value> {
        let said = |item| match item {
            Item::Say(frame) => Some(frame),
            Item::Await { .. } => None,
        };
        std::mem::take(&mut self.opening).into_iter().filter_map(said).collect()
    }

    /// Processes a frame of the client and returns the frames that the server sends.
    pub fn accept(&mut self, frame: &Value) -> Vec<Value> {
        match frame {
            Value::Array(messages) => messages.iter().flat_map(|message| self.accept(message)).collect(),
            message if message.get("method").is_some() => self.message(message),
            message => self.answer(message),
        }
    }

    /// Returns a sentence for each request or response of the client that differs from the recording.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    fn message(&mut self, message: &Value) -> Vec<Value> {
        let found = self.find(message);
        let Some(script) = found.and_then(|found| self.scripts.get_mut(found)) else {
            return self.unknown(message);
        };
        let again = std::mem::replace(&mut script.used, true);
        let mut items = script.items.clone();
        let recorded = script.message.clone();
        let is_response = |item: &Item| matches!(item, Item::Say(frame) if frame.get("method").is_none());
        if let Some(id) = recorded.get("id")
            && !items.iter().any(is_response)
            && !self.was_cancelled(id)
        {
            let error = json!({ "code": error_code::INTERNAL_ERROR, "message": "the recording ends before the response" });
            items.push_back(Item::Say(json!({ "jsonrpc": "2.0", "id": id, "error": error })));
        }
        let running = Running {
            items,
            message: message.clone(),
            recorded,
            asked: BTreeMap::new(),
            answers: HashMap::new(),
            again,
        };
        self.advance(running)
    }

    /// Returns the script for a message, preferably one that was not used yet.
    fn find(&self, message: &Value) -> Option<usize> {
        let same = |script: &&(usize, &Script)| compare_messages(&script.1.message, message).is_ok();
        let all: Vec<(usize, &Script)> = self
            .scripts
            .iter()
            .enumerate()
            .filter(|(_, script)| same_method(&script.message, message))
            .collect();
        let fresh = all.iter().filter(|(_, script)| !script.used).find(same);
        let found =
            fresh.or_else(|| all.iter().filter(|(_, script)| script.message.get("id").is_some()).find(same));
        // The description of the client may differ.
        let opening = || all.first().filter(|_| message.get("method") == Some(&json!("initialize")));
        found.or_else(opening).map(|(position, _)| *position)
    }

    fn was_cancelled(&self, id: &Value) -> bool {
        self.scripts.iter().any(|script| {
            script.message.get("method") == Some(&json!("notifications/cancelled"))
                && script.message.pointer("/params/requestId") == Some(id)
        })
    }

    /// Responds to a request that was not recorded. An unrecorded notification is ignored.
    fn unknown(&mut self, message: &Value) -> Vec<Value> {
        let Some(id) = message.get("id") else { return Vec::new() };
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        if method == "ping" {
            return vec![json!({ "jsonrpc": "2.0", "id": id, "result": {} })];
        }
        let near = self.scripts.iter().find(|script| same_method(&script.message, message));
        let differences = near.and_then(|script| compare_messages(&script.message, message).err());
        let (code, reason) = if let Some(differences) = differences {
            let differences = differences.join("; ");
            let reason =
                format!("the recording has `{method}`, but not with these parameters: {differences}");
            (error_code::INVALID_PARAMS, reason)
        } else {
            let requests = self.scripts.iter().filter(|script| script.message.get("id").is_some());
            let known: BTreeSet<&str> =
                requests.filter_map(|script| script.message.get("method")?.as_str()).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            (error_code::METHOD_NOT_FOUND, format!("the recording has no `{method}`; it has {known}"))
        };
        // Clients send this to detect the era of a server.
        if method != "server/discover" {
            self.complaints.push(format!("{}: {reason}", self.name));
        }
        vec![json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": reason } })]
    }

    fn answer(&mut self, answer: &Value) -> Vec<Value> {
        let id = answer.get("id");
        let asked = |running: &Running| {
            running.asked.iter().find(|(_, sent)| Some(*sent) == id).map(|(id, _)| id.clone())
        };
        let found =
            self.running.iter().enumerate().find_map(|(place, running)| Some((place, asked(running)?)));
        let Some((place, question)) = found else { return Vec::new() };
        let mut running = self.running.swap_remove(place);
        running.answers.insert(question, answer.clone());
        self.advance(running)
    }

    /// Sends frames until a response of the client is needed.
    fn advance(&mut self, mut running: Running) -> Vec<Value> {
        let mut said = Vec::new();
        while let Some(item) = running.items.pop_front() {
            match item {
                Item::Say(frame) => said.extend(self.say(&mut running, frame)),
                Item::Await { question, answer, line } => {
                    let Some(given) = running.answers.remove(&question) else {
                        running.items.push_front(Item::Await { question, answer, line });
                        self.running.push(running);
                        break;
                    };
                    if let Err(differences) = compare_answers(&answer, &given) {
                        let reason = differences.join("; ");
                        self.complaints
                            .push(format!("{}:{line}: the client answers differently: {reason}", self.name));
                    }
                }
            }
        }
        said
    }

    /// Returns a recorded frame with the ids and tokens of this conversation, or `None` if it refers to nothing here.
    fn say(&mut self, running: &mut Running, mut frame: Value) -> Option<Value> {
        let recorded = running.recorded.get("id");
        match (frame.get("id").cloned(), frame.get("method").is_some()) {
            (Some(_), false) => *frame.get_mut("id")? = running.message.get("id")?.clone(),
            (Some(id), true) => {
                let sent = if running.again { json!(format!("again-{}", self.next_id)) } else { id.clone() };
                self.next_id += 1;
                *frame.get_mut("id")? = sent.clone();
                running.asked.insert(id.to_string(), sent);
            }
            (None, _) => {}
        }
        let token = progress_token(&running.recorded);
        if let Some(reported) = frame.pointer_mut("/params/progressToken")
            && token == Some(&*reported)
        {
            *reported = progress_token(&running.message)?.clone();
        }
        for member in ["params", "result"] {
            let meta = frame.get_mut(member).and_then(|object| object.get_mut("_meta"));
            let named = meta.and_then(|meta| meta.get_mut(meta::key::SUBSCRIPTION_ID));
            if let Some(named) = named.filter(|named| Some(&**named) == recorded) {
                *named = running.message.get("id")?.clone();
            }
        }
        Some(frame)
    }
}

fn same_method(recorded: &Value, message: &Value) -> bool {
    recorded.get("method") == message.get("method")
        && recorded.get("id").is_some() == message.get("id").is_some()
}

/// Compares the parameters of a message with the recorded ones, ignoring metadata.
fn compare_messages(recorded: &Value, message: &Value) -> Result<(), Vec<String>> {
    let params = |message: &Value| {
        let mut params = message.get("params").cloned().unwrap_or_else(|| json!({}));
        if let Some(params) = params.as_object_mut() {
            params.remove("_meta");
        }
        params
    };
    compare(&params(recorded), &params(message), &mut Kept::new())
}

/// Compares a response with the recorded one, ignoring its id.
fn compare_answers(recorded: &Value, answer: &Value) -> Result<(), Vec<String>> {
    let without_id = |message: &Value| {
        let mut message = message.clone();
        if let Some(members) = message.as_object_mut() {
            members.remove("id");
        }
        message
    };
    compare(&without_id(recorded), &without_id(answer), &mut Kept::new())
}

fn progress_token(message: &Value) -> Option<&Value> {
    message.pointer("/params/_meta/progressToken")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    const RECORDING: &str = r#"A tool asks.

server: demo

-- server --
{"method":"notifications/hello"}
-- client --
{"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"a"}}}
-- server --
{"id":0,"result":{"protocolVersion":"2025-06-18"}}
-- client --
{"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"p"}}}
{"id":2,"method":"tools/call","params":{"name":"b","arguments":{"key":"<masked>"}}}
-- server --
{"id":2,"result":"b"}
{"method":"notifications/progress","params":{"progressToken":"p","progress":1}}
{"id":7,"method":"elicitation/create","params":{"message":"Sure?"}}
-- client --
{"id":7,"result":{"action":"accept"}}
-- server --
{"id":1,"result":"a"}
-- client --
{"id":3,"method":"tools/call","params":{"name":"slow"}}
"#;

    /// Sends frames to a mock of the recording, and checks the frames that follow each.
    #[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
    fn check(said: &[&str], expected: Expect) {
        let transcript = Transcript::parse("t", RECORDING).unwrap();
        let mut mock = Mock::new(&transcript);
        let mut lines: Vec<String> = mock.open().iter().map(Value::to_string).collect();
        for frame in said {
            lines.push(format!("> {frame}"));
            lines.extend(mock.accept(&serde_json::from_str(frame).unwrap()).iter().map(Value::to_string));
        }
        lines.extend(mock.complaints().iter().map(|complaint| format!("! {complaint}")));
        expected.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn responses_have_the_ids_and_tokens_of_the_caller() {
        check(
            &[
                r#"{"id":"x","method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
                r#"{"id":"y","method":"tools/call","params":{"name":"a","_meta":{"progressToken":5}}}"#,
                r#"{"id":7,"result":{"action":"accept"}}"#,
                r#"{"id":"z","method":"tools/call","params":{"name":"b","arguments":{"key":"other"}}}"#,
                r#"{"id":8,"method":"tools/call","params":{"name":"a"}}"#,
                r#"{"id":"again-2","result":{"action":"decline"}}"#,
                r#"{"id":9,"method":"tools/call","params":{"name":"slow"}}"#,
            ],
            expect![[r#"
                {"method":"notifications/hello"}
                > {"id":"x","method":"initialize","params":{"protocolVersion":"2025-11-25"}}
                {"id":"x","result":{"protocolVersion":"2025-06-18"}}
                > {"id":"y","method":"tools/call","params":{"name":"a","_meta":{"progressToken":5}}}
                {"method":"notifications/progress","params":{"progressToken":5,"progress":1}}
                {"id":7,"method":"elicitation/create","params":{"message":"Sure?"}}
                > {"id":7,"result":{"action":"accept"}}
                {"id":"y","result":"a"}
                > {"id":"z","method":"tools/call","params":{"name":"b","arguments":{"key":"other"}}}
                {"id":"z","result":"b"}
                > {"id":8,"method":"tools/call","params":{"name":"a"}}
                {"id":"again-2","method":"elicitation/create","params":{"message":"Sure?"}}
                > {"id":"again-2","result":{"action":"decline"}}
                {"id":8,"result":"a"}
                > {"id":9,"method":"tools/call","params":{"name":"slow"}}
                {"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"the recording ends before the response"}}
                ! t:19: the client answers differently: /result/action: expected "accept", got "decline""#]],
        );
    }

    #[test]
    fn unrecorded_requests_are_refused() {
        check(
            &[
                r#"{"id":1,"method":"server/discover"}"#,
                r#"{"id":2,"method":"ping"}"#,
                r#"{"id":3,"method":"prompts/list"}"#,
                r#"{"id":4,"method":"tools/call","params":{"name":"c"}}"#,
                r#"{"method":"notifications/initialized"}"#,
                r#"{"id":99,"result":{}}"#,
            ],
            expect![[r#"
                {"method":"notifications/hello"}
                > {"id":1,"method":"server/discover"}
                {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"the recording has no `server/discover`; it has initialize, tools/call"}}
                > {"id":2,"method":"ping"}
                {"jsonrpc":"2.0","id":2,"result":{}}
                > {"id":3,"method":"prompts/list"}
                {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"the recording has no `prompts/list`; it has initialize, tools/call"}}
                > {"id":4,"method":"tools/call","params":{"name":"c"}}
                {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"the recording has `tools/call`, but not with these parameters: /name: expected \"a\", got \"c\""}}
                > {"method":"notifications/initialized"}
                > {"id":99,"result":{}}
                ! t: the recording has no `prompts/list`; it has initialize, tools/call
                ! t: the recording has `tools/call`, but not with these parameters: /name: expected "a", got "c""#]],
        );
    }
}
