//! Converts arguments to a request, and the response to a result.

use super::{
    operation::{Encoding, Location, Operation, Parameter, Style},
    security::Schemes,
};
use crate::{
    percent,
    web::{
        fetch::failure,
        http_client::{FetchRequest, FetchResponse, Follow, HttpClient, content_type, is_json, text},
    },
};
use bowline::{
    prelude::Content,
    types::{CallToolResult, RawJson},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::{Map, Value};

/// Calls an operation.
pub(super) async fn call(
    client: &HttpClient,
    schemes: &Schemes,
    base: &str,
    operation: &Operation,
    arguments: &Map<String, Value>,
) -> Result<CallToolResult, String> {
    let asking = request(schemes, base, operation, arguments)?;
    let FetchResponse { url, answer } = client.send(asking).await.map_err(|reason| schemes.scrub(reason))?;
    if !answer.status.is_success() {
        let shown = url.split('?').next().unwrap_or_default();
        return Err(schemes.scrub(failure(shown, &answer)));
    }
    let (kind, charset) = content_type(&answer);
    if kind.starts_with("image/") && kind != "image/svg+xml" {
        return Ok(content(Content::image(&answer.body, kind.as_str())));
    }
    if answer.body.is_empty() {
        return Ok(content(Content::text(answer.status.to_string())));
    }
    let text = text(&answer, charset.as_deref())?;
    if is_json(&kind)
        && let Ok(structured) = RawJson::parse(Bytes::from(text.clone()))
    {
        return Ok(content(Content::text(text)).structured_content(structured));
    }
    if text.contains(['\0', char::REPLACEMENT_CHARACTER]) {
        return Err(format!("unsupported response: {} bytes of `{kind}`", answer.body.len()));
    }
    Ok(content(Content::text(text)))
}

fn content(block: Content) -> CallToolResult {
    CallToolResult::new().content(vec![block])
}

/// Builds the request of a call.
pub(super) fn request(
    schemes: &Schemes,
    base: &str,
    operation: &Operation,
    arguments: &Map<String, Value>,
) -> Result<FetchRequest, String> {
    let mut path = operation.path.clone();
    let (mut query, mut cookies) = (Vec::new(), Vec::new());
    let accept = HeaderValue::from_static("application/json, text/*;q=0.9, */*;q=0.5");
    let mut headers = HeaderMap::from_iter([(header::ACCEPT, accept)]);
    for parameter in &operation.parameters {
        let Some(value) = arguments.get(&parameter.argument).filter(|value| !value.is_null()) else {
            if parameter.required {
                return Err(format!("expected `{}`", parameter.argument));
            }
            continue;
        };
        match parameter.location {
            Location::Path => {
                path = path.replace(&format!("{{{}}}", parameter.name), &in_path(parameter, value)?);
            }
            Location::Query => query.extend(pairs(parameter, value)),
            Location::Cookie => cookies.extend(pairs(parameter, value)),
            Location::Header => {
                let name = HeaderName::try_from(&parameter.name).map_err(|error| error.to_string())?;
                let unfit = |_| format!("`{}` is not a valid header value", parameter.argument);
                headers.insert(
                    name,
                    HeaderValue::try_from(joined(parameter, value, str::to_owned)).map_err(unfit)?,
                );
            }
        }
    }
    // Servers interpret dot segments, which would leave the path of the operation.
    if path.split('/').any(|segment| matches!(segment.to_ascii_lowercase().as_str(), "." | "..")) {
        return Err("path parameters must not be `.` or `..`".into());
    }
    if !cookies.is_empty() {
        let value = written(&cookies, "; ");
        headers.insert(header::COOKIE, HeaderValue::try_from(value).map_err(|error| error.to_string())?);
    }
    let body = body(operation, arguments, &mut headers)?;
    query.extend(schemes.apply(&operation.wanted, &mut headers)?);
    let mut url = format!("{}{path}", base.trim_end_matches('/'));
    if !query.is_empty() {
        url.push('?');
        url.push_str(&written(&query, "&"));
    }
    let follow = if matches!(operation.method, Method::GET | Method::HEAD) {
        Follow::SameOrigin
    } else {
        Follow::Nowhere
    };
    Ok(FetchRequest { method: operation.method.clone(), url, headers, body, follow })
}

fn written(pairs: &[(String, String)], separator: &str) -> String {
    let parts: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", percent::encode(name), percent::encode(value)))
        .collect();
    parts.join(separator)
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Encodes a value as a single string.
fn joined(parameter: &Parameter, value: &Value, encode: fn(&str) -> String) -> String {
    let separator = match parameter.style {
        Style::Space => " ",
        Style::Pipe => "|",
        _ => ",",
    };
    match value {
        _ if parameter.style == Style::Json => encode(&value.to_string()),
        Value::Array(items) => {
            items.iter().map(|item| encode(&scalar(item))).collect::<Vec<_>>().join(separator)
        }
        Value::Object(members) => {
            let sign = if parameter.explode { "=" } else { separator };
            let parts = members
                .iter()
                .map(|(name, value)| format!("{}{sign}{}", encode(name), encode(&scalar(value))));
            parts.collect::<Vec<_>>().join(separator)
        }
        _ => encode(&scalar(value)),
    }
}

fn in_path(parameter: &Parameter, value: &Value) -> Result<String, String> {
    let value = joined(parameter, value, percent::encode);
    if value.is_empty() {
        return Err(format!("`{}` must not be empty", parameter.argument));
    }
    Ok(match parameter.style {
        Style::Label => format!(".{value}"),
        Style::Matrix => format!(";{}={value}", percent::encode(&parameter.name)),
        _ => value,
    })
}

/// Encodes a parameter as form fields.
fn pairs(parameter: &Parameter, value: &Value) -> Vec<(String, String)> {
    let name = &parameter.name;
    match (value, parameter.style, parameter.explode) {
        (Value::Array(items), Style::Form, true) => {
            items.iter().map(|item| (name.clone(), scalar(item))).collect()
        }
        (Value::Object(members), Style::Deep, _) => {
            members.iter().map(|(key, value)| (format!("{name}[{key}]"), scalar(value))).collect()
        }
        (Value::Object(members), Style::Form, true) => {
            members.iter().map(|(key, value)| (key.clone(), scalar(value))).collect()
        }
        _ => vec![(name.clone(), joined(parameter, value, str::to_owned))],
    }
}

fn body(
    operation: &Operation,
    arguments: &Map<String, Value>,
    headers: &mut HeaderMap,
) -> Result<Bytes, String> {
    let Some(body) = &operation.body else { return Ok(Bytes::new()) };
    let Some(value) = arguments.get(&body.argument) else {
        return if body.required { Err(format!("expected `{}`", body.argument)) } else { Ok(Bytes::new()) };
    };
    let (kind, bytes) = match &body.encoding {
        Encoding::Json(kind) => (kind.as_str(), value.to_string()),
        Encoding::Text(kind) => (kind.as_str(), scalar(value)),
        Encoding::Form => {
            let fields = value.as_object().ok_or_else(|| format!("`{}` must be an object", body.argument))?;
            let fields: Vec<(String, String)> = fields
                .iter()
                .flat_map(|(name, value)| match value {
                    Value::Array(items) => items.iter().map(|item| (name.clone(), scalar(item))).collect(),
                    _ => vec![(name.clone(), scalar(value))],
                })
                .collect();
            ("application/x-www-form-urlencoded", written(&fields, "&"))
        }
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::try_from(kind).map_err(|error| error.to_string())?);
    Ok(bytes.into())
}
