//! Reads what a head needs from a message.

use crate::events::{Kind, Status, TaskNote};
use bowline_policy::audit::Redactor;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The longest name in a head.
const MAX_NAME: usize = 200;

/// What a head says about a message.
#[derive(Debug, PartialEq)]
pub(super) struct Parts {
    pub(super) kind: Kind,
    pub(super) id: Option<String>,
    pub(super) method: Option<String>,
    pub(super) name: Option<String>,
    /// The request that a cancellation or progress is about, as JSON text.
    pub(super) about: Option<String>,
    pub(super) status: Option<Status>,
    pub(super) code: Option<i64>,
    /// Name, version and revision of a client that introduces itself.
    pub(super) client: Option<(String, Option<String>, Option<String>)>,
    /// The task that it names, and whether it is one that was just created.
    pub(super) task: Option<(TaskNote, bool)>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    uri: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "requestId")]
    request_id: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "taskId")]
    task_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "status")]
    task_status: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "statusMessage")]
    task_message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Initialize<'a> {
    #[serde(borrow, default, rename = "protocolVersion")]
    protocol_version: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "clientInfo")]
    client_info: ClientInfo<'a>,
}

#[derive(Deserialize)]
struct ClientInfo<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    version: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
struct Outcome<'a> {
    #[serde(default, rename = "isError")]
    is_error: bool,
    #[serde(borrow, default, rename = "resultType")]
    result_type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    action: Option<&'a RawValue>,
    #[serde(borrow, default)]
    task: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "taskId")]
    task_id: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "status")]
    task_status: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "statusMessage")]
    task_message: Option<&'a RawValue>,
}

/// A task inside of a result.
#[derive(Deserialize)]
struct Created<'a> {
    #[serde(borrow, rename = "taskId")]
    task_id: &'a RawValue,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "statusMessage")]
    status_message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Failure {
    code: i64,
}

/// Reads a message and masks its name. What is not a JSON-RPC message is [`Kind::Other`].
pub(super) fn read(frame: &[u8], redactor: &Redactor) -> Parts {
    let nothing = |kind| Parts {
        kind,
        id: None,
        method: None,
        name: None,
        about: None,
        status: None,
        code: None,
        client: None,
        task: None,
    };
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(frame) else { return nothing(Kind::Other) };
    let id = envelope.id.map(|id| cut(id.get())).filter(|id| id != "null");
    let Some(method) = envelope.method else {
        let outcome = Outcome::of(envelope.result);
        let (status, code) = outcome.status(envelope.result, envelope.error);
        let kind = if status.is_some() { Kind::Response } else { Kind::Other };
        return Parts { id, status, code, task: outcome.task(redactor), ..nothing(kind) };
    };
    let raw = envelope.params.map_or("{}", RawValue::get);
    let params = serde_json::from_str::<Params<'_>>(raw).unwrap_or_default();
    let client = (method == "initialize").then(|| {
        let params = serde_json::from_str::<Initialize<'_>>(raw).ok()?;
        let ClientInfo { name, version } = params.client_info;
        Some((cut(&name), version.as_deref().map(cut), params.protocol_version.as_deref().map(cut)))
    });
    Parts {
        about: params.request_id.or(params.progress_token).map(|id| cut(id.get())),
        name: params.name.or(params.uri).map(|name| cut(&redactor.uri(&name))),
        method: Some(cut(&method)),
        client: client.flatten(),
        task: params.task_id.filter(|_| method.contains("tasks")).map(|id| {
            let text = |raw: Option<&RawValue>| text_of(raw, redactor);
            let (status, message) = (text(params.task_status), text(params.task_message));
            (TaskNote { id: cut(&redactor.text(&id)), status, message }, false)
        }),
        ..nothing(if id.is_some() { Kind::Request } else { Kind::Notification })
    }
    .with_id(id)
}

impl Parts {
    fn with_id(mut self, id: Option<String>) -> Self {
        self.id = id;
        self
    }
}

impl<'a> Outcome<'a> {
    fn of(result: Option<&'a RawValue>) -> Self {
        result.and_then(|result| serde_json::from_str(result.get()).ok()).unwrap_or_default()
    }

    fn status(&self, result: Option<&RawValue>, error: Option<&RawValue>) -> (Option<Status>, Option<i64>) {
        if let Some(error) = error {
            let code = serde_json::from_str::<Failure>(error.get()).ok().map(|failure| failure.code);
            return (Some(Status::Rejected), code);
        }
        if result.is_none() {
            return (None, None);
        }
        let action = self.action.map(RawValue::get);
        let status = match (self.is_error, self.result_type.as_deref(), action) {
            (true, ..) => Status::ToolError,
            (_, Some("input_required" | "inputRequired"), _) => Status::InputRequired,
            (_, _, Some("\"accept\"")) => Status::Accepted,
            (_, _, Some("\"decline\"")) => Status::Declined,
            (_, _, Some("\"cancel\"")) => Status::Cancelled,
            _ => Status::Done,
        };
        (Some(status), None)
    }

    /// Returns the task that a result names. A task is created by `resultType` `task`, or, in 2025-11-25, by a member `task`.
    fn task(&self, redactor: &Redactor) -> Option<(TaskNote, bool)> {
        let created = self.task.and_then(|task| serde_json::from_str::<Created<'_>>(task.get()).ok());
        let (id, status, message, is_new) = if let Some(Created { task_id, status, status_message }) = created
        {
            (task_id, status, status_message, true)
        } else {
            let is_new = self.result_type.as_deref() == Some("task");
            (self.task_id?, self.task_status, self.task_message, is_new)
        };
        let text = |raw: Option<&RawValue>| text_of(raw, redactor);
        Some((TaskNote { id: text(Some(id))?, status: text(status), message: text(message) }, is_new))
    }
}

/// Returns a text for a head; `None` if it is not a string.
fn text_of(raw: Option<&RawValue>, redactor: &Redactor) -> Option<String> {
    // Masked before it is cut, because a part of a secret would not be recognized.
    serde_json::from_str::<Cow<'_, str>>(raw?.get()).ok().map(|text| cut(&redactor.text(&text)))
}

/// Makes a text visible and short.
pub(super) fn cut(text: &str) -> String {
    let mut end = text.len().min(MAX_NAME);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    bowline_text::visible(text.get(..end).unwrap_or_default())
}
