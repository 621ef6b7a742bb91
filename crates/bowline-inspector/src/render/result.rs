//! Turns the content of results into parts.

use super::{ContentPart, PromptMessage, Shown, markdown};
use serde_json::Value;

/// How many parts are drawn at most.
const MAX_PARTS: usize = 500;
/// Text over this size is not drawn as Markdown.
const MAX_MARKDOWN: usize = 64 * 1024;

/// Returns the parts of `content` of a tool result.
pub(crate) fn content_parts(content: &Value) -> Vec<ContentPart> {
    content.as_array().into_iter().flatten().take(MAX_PARTS).map(part).collect()
}

/// Returns the parts of `contents` of a resource.
pub(crate) fn resource_parts(contents: &Value) -> Vec<ContentPart> {
    contents.as_array().into_iter().flatten().take(MAX_PARTS).map(resource).collect()
}

/// Returns the messages of a prompt.
pub(crate) fn prompt_messages(messages: &Value) -> Vec<PromptMessage> {
    let messages = messages.as_array().into_iter().flatten().take(MAX_PARTS);
    let message = |message: &Value| PromptMessage {
        role: Shown::line(text(message, "role").unwrap_or_default()),
        part: part(message.get("content").unwrap_or(&Value::Null)),
    };
    messages.map(message).collect()
}

fn text<'a>(value: &'a Value, member: &str) -> Option<&'a str> {
    value.get(member).and_then(Value::as_str)
}

fn part(content: &Value) -> ContentPart {
    let unknown = || ContentPart::Unknown { json: Shown::text(&content.to_string()).text };
    match text(content, "type") {
        Some("text") => text(content, "text").map_or_else(unknown, |text| written(text, None)),
        Some(kind @ ("image" | "audio")) => {
            let (Some(data), Some(mime)) = (text(content, "data"), text(content, "mimeType")) else {
                return unknown();
            };
            media(kind, mime, data)
        }
        Some("resource_link") => {
            let Some(uri) = text(content, "uri") else { return unknown() };
            ContentPart::Link {
                uri: uri.to_owned(),
                shown: Shown::line(uri),
                name: Shown::line(text(content, "title").or_else(|| text(content, "name")).unwrap_or(uri)),
                description: text(content, "description").map(Shown::text),
                mime: text(content, "mimeType").map(Shown::line),
            }
        }
        Some("resource") => content.get("resource").map_or_else(unknown, resource),
        _ => unknown(),
    }
}

fn resource(contents: &Value) -> ContentPart {
    let Some(uri) = text(contents, "uri") else {
        return ContentPart::Unknown { json: Shown::text(&contents.to_string()).text };
    };
    let mime = text(contents, "mimeType");
    let content = match (text(contents, "text"), text(contents, "blob")) {
        (Some(text), _) => written(text, mime),
        (None, Some(blob)) => match mime.and_then(|mime| mime.split('/').next()) {
            Some(kind @ ("image" | "audio")) => media(kind, mime.unwrap_or_default(), blob),
            _ => ContentPart::Binary {
                mime: mime.map(Shown::line),
                bytes: size(blob),
                data: base64_only(blob),
            },
        },
        (None, None) => ContentPart::Unknown { json: Shown::text(&contents.to_string()).text },
    };
    ContentPart::Resource { uri: Shown::line(uri), mime: mime.map(Shown::line), content: Box::new(content) }
}

/// Draws text as Markdown unless it is something else.
fn written(text: &str, mime: Option<&str>) -> ContentPart {
    let trimmed = text.trim_start();
    let is_json = mime.is_some_and(|mime| mime.ends_with("json"))
        || (trimmed.starts_with(['{', '['])
            && serde_json::from_str::<serde::de::IgnoredAny>(trimmed).is_ok());
    let is_markdown = match mime {
        None => !is_json,
        Some(mime) => mime.starts_with("text/markdown"),
    };
    if is_markdown && text.len() <= MAX_MARKDOWN {
        return ContentPart::Markdown { blocks: markdown(text), source: Shown::text(text) };
    }
    let language = if is_json { Some("json".to_owned()) } else { mime.map(|mime| Shown::line(mime).text) };
    ContentPart::Text { text: Shown::text(text), language }
}

/// Media of the message itself. The type must be of its kind, so that a browser reads it as nothing else.
fn media(kind: &str, mime: &str, data: &str) -> ContentPart {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-./".contains(&byte);
    let is_of_kind =
        mime.strip_prefix(kind).is_some_and(|rest| rest.starts_with('/') && rest.bytes().all(is_plain));
    let (bytes, data) = (size(data), base64_only(data));
    match (kind, is_of_kind) {
        ("image", true) => ContentPart::Image { mime: mime.to_owned(), data, bytes },
        ("audio", true) => ContentPart::Audio { mime: mime.to_owned(), data, bytes },
        _ => ContentPart::Binary { mime: Some(Shown::line(mime)), data, bytes },
    }
}

/// Returns the number of bytes that base64 text stands for.
fn size(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// Returns base64 text, or nothing if it is something else.
fn base64_only(data: &str) -> String {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    if data.bytes().all(is_base64) { data.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_content_type_has_a_part() {
        let parts = content_parts(&json!([
            {"type":"text","text":"hi"},
            {"type":"text","text":"{\"a\":1}"},
            {"type":"image","mimeType":"image/png","data":"AAAA"},
            {"type":"image","mimeType":"text/html","data":"AAAA"},
            {"type":"image","mimeType":"image/png\" onerror=\"x","data":"<script>"},
            {"type":"audio","mimeType":"audio/wav","data":"AAAA"},
            {"type":"resource_link","uri":"file:///a","name":"a"},
            {"type":"resource","resource":{"uri":"file:///b","mimeType":"text/html","text":"<b>x</b>"}},
            {"type":"resource","resource":{"uri":"file:///c","blob":"AAAA"}},
            {"type":"new","x":1},
        ]));
        let kinds: Vec<_> =
            parts.iter().map(|part| serde_json::to_value(part).unwrap()["kind"].clone()).collect();
        assert_eq!(
            kinds,
            [
                "markdown", "text", "image", "binary", "binary", "audio", "link", "resource", "resource",
                "unknown"
            ]
        );
        assert_eq!(
            parts[4],
            ContentPart::Binary {
                mime: Some(Shown::line("image/png\" onerror=\"x")),
                data: String::new(),
                bytes: 6
            }
        );
    }
}
