//! Writes the head of an HTTP response as text, without secrets.

use bowline_client::ResponseHead;
use bowline_policy::audit::Redactor;
use bowline_text::{is_secret_name, visible};
use http::StatusCode;
use std::fmt::Write as _;

/// How many headers are kept, how much of each value, and how much of all.
const MAX_HEADERS: usize = 64;
const MAX_VALUE: usize = 500;
const MAX_TEXT: usize = 8 * 1024;
/// Headers whose value lets others act as this client.
const SECRET: [&str; 5] = ["authorization", "cookie", "mcp-session-id", "proxy-authorization", "set-cookie"];

/// Returns the status in words: `HTTP 503 Service Unavailable`.
pub(super) fn status(code: u16) -> String {
    let reason = StatusCode::from_u16(code).ok().and_then(|status| status.canonical_reason());
    reason.map_or_else(|| format!("HTTP {code}"), |reason| format!("HTTP {code} {reason}"))
}

/// Returns status and headers, one per line.
pub(super) fn text(head: &ResponseHead<'_>, redactor: &Redactor) -> String {
    let mut text = status(head.status);
    let mut left_out = head.headers.len().saturating_sub(MAX_HEADERS);
    for (name, value) in head.headers.iter().take(MAX_HEADERS) {
        let name = visible(name);
        let value = if SECRET.contains(&name.as_str()) || is_secret_name(&name) {
            "***".to_owned()
        } else {
            // Masked before it is cut, because a part of a secret would not be recognized.
            cut(visible(&redactor.uri(value)))
        };
        if text.len() + name.len() + value.len() > MAX_TEXT {
            left_out += 1;
            continue;
        }
        let _ = write!(text, "\n{name}: {value}");
    }
    if left_out > 0 {
        let _ = write!(text, "\n({left_out} more)");
    }
    text
}

fn cut(mut value: String) -> String {
    if value.len() > MAX_VALUE {
        let mut end = MAX_VALUE;
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        value.truncate(end);
        value.push('…');
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_what_is_too_much_is_counted() {
        let redactor = Redactor::new(vec!["hunter2-secret".into()]);
        let long = "x".repeat(MAX_VALUE + 1);
        let mut headers = vec![
            ("content-type", "application/json"),
            ("mcp-session-id", "s-1"),
            ("set-cookie", "id=7"),
            ("x-api-key", "k"),
            ("location", "https://a.example/?access_token=t"),
            ("x-note", "say hunter2-secret\u{1b}[2J"),
            ("x-long", &long),
        ];
        let expected = format!(
            "HTTP 200 OK\ncontent-type: application/json\nmcp-session-id: ***\nset-cookie: ***\nx-api-key: ***\n\
             location: https://a.example/?access_token=***\nx-note: say ***<U+001B>[2J\nx-long: {}…",
            "x".repeat(MAX_VALUE)
        );
        assert_eq!(text(&ResponseHead::new(None, 200, &headers), &redactor), expected);
        headers.extend([("x-long", long.as_str()); 100]);
        let whole = text(&ResponseHead::new(None, 200, &headers), &redactor);
        assert!(whole.len() < MAX_TEXT + 100 && whole.ends_with(" more)"), "{}", whole.len());
        assert_eq!(status(599), "HTTP 599");
    }
}
