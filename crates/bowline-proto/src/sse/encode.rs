//! Encodes server-sent events.

use std::fmt;

use super::EventRef;

/// The type or id of an event contains a line break or NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeError {
    field: &'static str,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} of an event must not contain line breaks or NUL", self.field)
    }
}

impl std::error::Error for EncodeError {}

/// Appends an event. Each line of the data becomes a line of its own, whichever way the lines end; a decoder
/// joins them with line feeds.
///
/// Fails and leaves `out` unchanged if the event type or id contains CR, LF or NUL.
pub fn encode_event(out: &mut Vec<u8>, event: &EventRef<'_>) -> Result<(), EncodeError> {
    let one_line = |field, text: Option<&str>| match text {
        Some(text) if text.contains(['\r', '\n', '\0']) => Err(EncodeError { field }),
        _ => Ok(()),
    };
    one_line("type", event.event)?;
    one_line("id", event.id)?;

    out.reserve(event.data.len() + 64);
    if let Some(name) = event.event {
        push_line(out, "event:", name.as_bytes());
    }
    if let Some(id) = event.id {
        push_line(out, "id:", id.as_bytes());
    }
    if let Some(retry) = event.retry {
        push_line(out, "retry:", retry.as_millis().to_string().as_bytes());
    }
    push_lines(out, "data:", event.data);
    out.push(b'\n');
    Ok(())
}

/// Appends a comment, which decoders ignore. Use it to keep an idle stream open.
pub fn encode_comment(out: &mut Vec<u8>, text: &str) {
    push_lines(out, ":", text.as_bytes());
    out.push(b'\n');
}

fn push_lines(out: &mut Vec<u8>, field: &str, text: &[u8]) {
    let mut rest = text;
    while let Some(end) = memchr::memchr2(b'\r', b'\n', rest) {
        let (line, tail) = rest.split_at(end);
        push_line(out, field, line);
        rest = tail.strip_prefix(b"\r\n").or_else(|| tail.get(1..)).unwrap_or_default();
    }
    push_line(out, field, rest);
}

fn push_line(out: &mut Vec<u8>, field: &str, value: &[u8]) {
    out.extend_from_slice(field.as_bytes());
    if !value.is_empty() {
        out.push(b' ');
        out.extend_from_slice(value);
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn events_are_written_field_by_field() {
        let event = EventRef {
            event: Some("message"),
            data: b"{\"a\":1}\r\nb\rc\n",
            id: Some("7"),
            retry: Some(Duration::from_secs(1)),
        };
        let mut out = Vec::new();
        encode_event(&mut out, &event).unwrap();
        encode_comment(&mut out, "");
        encode_comment(&mut out, "still\nhere");
        let expected = "event: message\nid: 7\nretry: 1000\ndata: {\"a\":1}\ndata: b\ndata: c\ndata:\n\n:\n\n: still\n: here\n\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_type_or_id_of_two_lines_is_refused() {
        for text in ["a\nb", "a\rb", "\0"] {
            let mut out = Vec::new();
            let with_type = EventRef { event: Some(text), ..EventRef::default() };
            let with_id = EventRef { id: Some(text), ..EventRef::default() };
            assert_eq!(encode_event(&mut out, &with_type), Err(EncodeError { field: "type" }));
            let error = encode_event(&mut out, &with_id).unwrap_err();
            assert_eq!(error.to_string(), "the id of an event must not contain line breaks or NUL");
            assert!(out.is_empty());
        }
    }
}
