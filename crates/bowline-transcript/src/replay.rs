//! Replays the client's side of a recording against a server and compares the responses.

use super::{
    Frame, Side, Step, Transcript,
    matching::{Kept, compare},
};
use crate::{Error, Result};
use serde_json::Value;
use std::{collections::HashMap, fmt};

/// The client's end of a connection, for [`Transcript::replay`].
///
/// Frames that are not asked for are kept in order. Every wait needs a deadline.
pub trait ReplayPeer: Send {
    /// Sends bytes, including line breaks.
    fn send_raw(&mut self, bytes: &[u8]) -> impl Future<Output = Result> + Send;

    /// Returns the next frame.
    fn recv(&mut self) -> impl Future<Output = Result<Value>> + Send;

    /// Returns the next request or notification of this method.
    fn recv_method(&mut self, method: &str) -> impl Future<Output = Result<Value>> + Send;

    /// Returns the response to the request with this id.
    fn response(&mut self, id: &Value) -> impl Future<Output = Result<Value>> + Send;

    /// Closes the sending side.
    fn close_sending(&mut self) -> impl Future<Output = ()> + Send;

    /// Closes the sending side, and returns the frames that were not taken once the server has closed its side.
    fn close(&mut self) -> impl Future<Output = Result<Vec<Value>>> + Send;
}

/// A server frame that differs from the recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The line of the recorded frame; the last one for frames that were not recorded.
    pub line: usize,
    /// The method of the request or notification.
    pub about: String,
    /// The recorded frame; `None` for one that was not recorded.
    pub recorded: Option<Value>,
    /// The actual frame, if any.
    pub came: Option<Value>,
    /// The differences, each with its position in the frame.
    pub places: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.recorded, &self.came) {
            (Some(_), Some(_)) => write!(f, "`{}` differs", self.about)?,
            (Some(_), None) => write!(f, "`{}` is missing", self.about)?,
            (None, _) => write!(f, "`{}` was not recorded", self.about)?,
        }
        self.places.iter().try_for_each(|place| write!(f, "\n  {place}"))
    }
}

/// Parts of frames that are not compared: JSON pointers, with `*` for any member or element.
#[derive(Clone, Debug, Default)]
pub struct Ignore(Vec<Vec<String>>);

impl Ignore {
    /// Parses pointers. Fails with the first one that does not start with `/`.
    pub fn parse(pointers: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, String> {
        let read = |pointer: &str| {
            let Some(path) = pointer.strip_prefix('/') else {
                return Err(format!(
                    "expected a JSON pointer such as `/result/content/*/text`, got `{pointer}`"
                ));
            };
            Ok(path.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
        };
        pointers.into_iter().map(|pointer| read(pointer.as_ref())).collect::<Result<_, _>>().map(Self)
    }

    fn apply(&self, frame: &mut Value) {
        for path in &self.0 {
            blank(frame, path);
        }
    }
}

fn blank(value: &mut Value, path: &[String]) {
    let Some((step, rest)) = path.split_first() else {
        *value = Value::Null;
        return;
    };
    match value {
        Value::Object(members) if step == "*" => members.values_mut().for_each(|value| blank(value, rest)),
        // An ignored member may also be missing.
        Value::Object(members) if rest.is_empty() => {
            members.remove(step);
        }
        Value::Object(members) => {
            if let Some(value) = members.get_mut(step) {
                blank(value, rest);
            }
        }
        Value::Array(items) if step == "*" => items.iter_mut().for_each(|value| blank(value, rest)),
        Value::Array(items) => {
            let item = step.parse().ok().and_then(|place: usize| items.get_mut(place));
            if let Some(value) = item {
                blank(value, rest);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Opaque values that the client returns to the server. They differ each time.
const OPAQUE: [&str; 3] = ["/result/requestState", "/result/nextCursor", "/result/task/taskId"];

pub(super) async fn replay(
    transcript: &Transcript,
    peer: impl ReplayPeer,
    ignore: &Ignore,
) -> Result<Vec<Difference>> {
    let last = transcript.messages().map(|(_, frame, _)| frame.line).last().unwrap_or(1);
    let mut replay = Replay {
        peer,
        ignore,
        methods: methods(transcript),
        asked: HashMap::new(),
        opaque: HashMap::new(),
        closed: false,
        found: Vec::new(),
    };
    for step in &transcript.steps {
        match step {
            Step::Send(frames) => replay.send(frames).await?,
            Step::SendRaw(bytes) => replay.peer.send_raw(bytes).await?,
            Step::Close => replay.peer.close_sending().await,
            Step::Expect { frames, .. } => {
                for frame in frames {
                    replay.expect(frame).await?;
                }
            }
        }
    }
    for came in replay.peer.close().await? {
        let about = replay.about(&came);
        let places = vec![came.to_string()];
        replay.found.push(Difference { line: last, about, recorded: None, came: Some(came), places });
    }
    Ok(replay.found)
}

/// Returns the methods of the client's requests, by id.
fn methods(transcript: &Transcript) -> HashMap<String, String> {
    let named = |(side, _, message): (Side, &Frame, &Value)| {
        let method = message.get("method")?.as_str()?.to_owned();
        (side == Side::Client).then_some((message.get("id")?.to_string(), method))
    };
    transcript.messages().filter_map(named).collect()
}

struct Replay<'a, P> {
    peer: P,
    ignore: &'a Ignore,
    methods: HashMap<String, String>,
    /// The ids of the server's requests, by the recorded ids.
    asked: HashMap<String, Value>,
    /// The opaque values of the server, by the recorded values.
    opaque: HashMap<String, Value>,
    closed: bool,
    found: Vec<Difference>,
}

impl<P: ReplayPeer> Replay<'_, P> {
    async fn send(&mut self, frames: &[Frame]) -> Result {
        for frame in frames {
            let mut value = frame.value.clone();
            self.fill(&mut value);
            let is_answer = value.get("method").is_none() && value.is_object();
            if is_answer {
                let id = value.get("id").map(Value::to_string).unwrap_or_default();
                // Without the request there is nothing to respond to.
                let Some(sent) = self.asked.get(&id) else { continue };
                if let Some(id) = value.get_mut("id") {
                    *id = sent.clone();
                }
            }
            match self.peer.send_raw(format!("{value}\n").as_bytes()).await {
                Err(error) if error.is_closed() => self.closed = true,
                sent => sent?,
            }
        }
        Ok(())
    }

    fn fill(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(given) = self.opaque.get(text.as_str()) {
                    *value = given.clone();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.fill(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    async fn expect(&mut self, frame: &Frame) -> Result {
        let about = self.about(&frame.value);
        let came = if self.closed { Ok(None) } else { self.take(&frame.value).await };
        let came = match came {
            Ok(came) => came,
            Err(error) if error.is_closed() => {
                self.closed = true;
                None
            }
            Err(error) if error.is_timeout() => None,
            Err(error) => return Err(error),
        };
        let recorded = Some(frame.value.clone());
        let Some(came) = came else {
            let reason = if self.closed { "the connection is closed" } else { "timed out" };
            let places = vec![reason.to_owned()];
            self.found.push(Difference { line: frame.line, about, recorded, came: None, places });
            return Ok(());
        };
        if let Err(places) = self.compare(&frame.value, &came) {
            self.found.push(Difference { line: frame.line, about, recorded, came: Some(came), places });
        }
        Ok(())
    }

    /// Returns the matching frame: the response to the same request, or the next message of the same method.
    async fn take(&mut self, recorded: &Value) -> Result<Option<Value>, Error> {
        match (recorded.get("method").and_then(Value::as_str), recorded.get("id")) {
            (Some(method), _) => self.peer.recv_method(method).await.map(Some),
            (None, Some(id)) => self.peer.response(id).await.map(Some),
            (None, None) => self.peer.recv().await.map(Some),
        }
    }

    fn compare(&mut self, recorded: &Value, came: &Value) -> Result<(), Vec<String>> {
        let (mut expected, mut actual) = (recorded.clone(), came.clone());
        if let (Some(_), Some(id)) = (came.get("method"), came.get("id")) {
            self.asked.insert(recorded.get("id").map(Value::to_string).unwrap_or_default(), id.clone());
            blank(&mut expected, &["id".to_owned()]);
            blank(&mut actual, &["id".to_owned()]);
        }
        for pointer in OPAQUE {
            if let (Some(Value::String(then)), Some(now @ Value::String(_))) =
                (recorded.pointer(pointer), came.pointer(pointer))
            {
                self.opaque.insert(then.clone(), now.clone());
                if let Some(actual) = actual.pointer_mut(pointer) {
                    *actual = then.as_str().into();
                }
            }
        }
        self.ignore.apply(&mut expected);
        self.ignore.apply(&mut actual);
        compare(&expected, &actual, &mut Kept::new())
    }

    fn about(&self, frame: &Value) -> String {
        let answered = || self.methods.get(&frame.get("id")?.to_string()).map(String::as_str);
        frame.get("method").and_then(Value::as_str).or_else(answered).unwrap_or("a frame").to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "values are made where they are checked")]
    fn check(pointers: &[&str], expected: Value) {
        let mut frame = json!({ "a": [{ "b": 1, "c": 2 }, { "b": 3 }], "d/e": 4 });
        Ignore::parse(pointers).unwrap().apply(&mut frame);
        assert_eq!(frame, expected);
    }

    #[test]
    fn ignored_members_are_removed_everywhere() {
        check(&["/a/*/b"], json!({ "a": [{ "c": 2 }, {}], "d/e": 4 }));
        check(&["/a/1/b", "/d~1e"], json!({ "a": [{ "b": 1, "c": 2 }, {}] }));
        check(&["/a/0", "/x/y"], json!({ "a": [null, { "b": 3 }], "d/e": 4 }));
        check(&["/*"], json!({ "a": null, "d/e": null }));
        assert!(Ignore::parse(["result"]).unwrap_err().contains("`result`"));
    }
}
