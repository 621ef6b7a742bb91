//! Finds the schema definition of a frame, and checks whether its sender may send it.

use super::{
    Oracle,
    names::{error_definition, message_definition, response_definition, result_definition},
};
use bowline_types::{Direction, Method, MethodKind, Revision};
use serde_json::Value;

pub(super) fn check(
    oracle: &Oracle,
    revision: Revision,
    direction: Direction,
    frame: &Value,
    method: Option<&str>,
) -> Result<(), String> {
    match frame {
        Value::Array(_) if revision != Revision::V2025_03_26 => Err(format!("{revision} has no batches")),
        Value::Array(frames) if frames.is_empty() => Err("a batch is never empty".into()),
        Value::Array(frames) => {
            frames.iter().try_for_each(|frame| check(oracle, revision, direction, frame, method))
        }
        Value::Object(members) if members.contains_key("method") => {
            message(oracle, revision, direction, frame)
        }
        Value::Object(members) if members.contains_key("result") => response(oracle, revision, frame, method),
        Value::Object(members) if members.contains_key("error") => failure(oracle, revision, frame),
        other => Err(format!("expected a request, a notification or a response, got {other}")),
    }
}

fn message(oracle: &Oracle, revision: Revision, direction: Direction, frame: &Value) -> Result<(), String> {
    let name = frame.get("method").and_then(Value::as_str).ok_or("`method` is not a string")?;
    let method = Method::parse(name).ok_or_else(|| format!("unknown method `{name}`"))?;
    let Some(allowed) = method.direction_in(revision) else {
        return Err(format!("{revision} has no `{name}`"));
    };
    let may = match direction {
        Direction::ClientToServer => allowed.from_client(),
        Direction::ServerToClient => allowed.from_server(),
        Direction::Both => true,
    };
    if !may {
        return Err(format!("this side must not send `{name}` in {revision}"));
    }
    let has_id = frame.get("id").is_some();
    let envelope = match (method.kind(), has_id) {
        (MethodKind::Request, true) => "JSONRPCRequest",
        (MethodKind::Notification, false) => "JSONRPCNotification",
        (MethodKind::Request, false) => return Err(format!("the request `{name}` has no id")),
        (MethodKind::Notification, true) => return Err(format!("the notification `{name}` has an id")),
    };
    oracle.validate(revision, envelope, frame)?;
    match message_definition(method, revision) {
        Some(definition) => oracle.validate(revision, definition, frame),
        None => Ok(()),
    }
}

fn response(oracle: &Oracle, revision: Revision, frame: &Value, method: Option<&str>) -> Result<(), String> {
    oracle.validate(revision, response_definition(revision), frame)?;
    let Some(method) = method.and_then(Method::parse) else { return Ok(()) };
    let result = frame.get("result").unwrap_or(&Value::Null);
    let kind = result.get("resultType").and_then(Value::as_str);
    let definition = match (revision, kind) {
        (Revision::V2026_07_28, Some("input_required")) => Some(input_required(method, result)?),
        (Revision::V2026_07_28, Some("complete")) => result_definition(method, revision),
        // Extensions define their own results.
        (Revision::V2026_07_28, _) => None,
        (Revision::V2025_11_25, _) if result.get("task").is_some() => Some("CreateTaskResult"),
        _ => result_definition(method, revision),
    };
    match definition {
        Some(definition) => oracle.validate(revision, definition, result),
        None => Ok(()),
    }
}

/// Checks a result that asks for input. The schema allows one without any question; the text of the specification does
/// not, and names the methods that may ask.
fn input_required(method: Method, result: &Value) -> Result<&'static str, String> {
    if !matches!(method, Method::CallTool | Method::ReadResource | Method::GetPrompt) {
        return Err(format!("`{method}` cannot ask for input", method = method.as_str()));
    }
    if result.get("inputRequests").is_none() && result.get("requestState").is_none() {
        return Err("`inputRequests` and `requestState` are both missing".into());
    }
    Ok("InputRequiredResult")
}

fn failure(oracle: &Oracle, revision: Revision, frame: &Value) -> Result<(), String> {
    let code =
        frame.pointer("/error/code").and_then(Value::as_i64).ok_or("`error.code` is not an integer")?;
    oracle.validate(revision, error_definition(code, revision), frame)
}
