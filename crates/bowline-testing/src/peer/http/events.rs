//! Parses server-sent events from chunks.

use bytes::BytesMut;
use std::time::Duration;

/// One event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// `None` means `message`.
    pub(super) name: Option<String>,
    pub(super) id: Option<String>,
    pub(super) data: String,
    pub(super) retry: Option<Duration>,
}

impl Event {
    /// Returns the frame in the event.
    pub(super) fn into_message(self) -> Option<String> {
        let is_message = self.name.as_deref().is_none_or(|name| name == "message");
        (is_message && !self.data.is_empty()).then_some(self.data)
    }
}

/// Received bytes that were not parsed yet.
#[derive(Debug, Default)]
pub(super) struct Events {
    buffer: BytesMut,
    event: Event,
}

impl Events {
    pub(super) fn feed(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the next complete event.
    pub(super) fn next(&mut self) -> Option<Event> {
        while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(end + 1);
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                return Some(std::mem::take(&mut self.event));
            }
            self.field(line);
        }
        None
    }

    fn field(&mut self, line: &str) {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "event" => self.event.name = Some(value.to_owned()),
            "id" => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok().map(Duration::from_millis),
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // Comments, and fields of later versions.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_in_chunks_of_any_size() {
        let text =
            ": hello\n\nid: 1-0\nretry: 500\ndata:\n\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n";
        for cut in 0..text.len() {
            let mut events = Events::default();
            let mut found = Vec::new();
            for chunk in [&text[..cut], &text[cut..]] {
                events.feed(chunk.as_bytes());
                while let Some(event) = events.next() {
                    found.push(event);
                }
            }
            let [comment, priming, message] = <[Event; 3]>::try_from(found).unwrap();
            assert_eq!(comment, Event::default());
            assert_eq!(
                (priming.id.as_deref(), priming.retry),
                (Some("1-0"), Some(Duration::from_millis(500)))
            );
            assert_eq!(priming.into_message(), None);
            assert_eq!(message.into_message().as_deref(), Some("{\"a\":\n1}"));
        }
    }

    #[test]
    fn other_events_carry_no_frame() {
        let mut events = Events::default();
        events.feed(b"event: endpoint\ndata: /sse?sessionId=1\n\n");
        let event = events.next().unwrap();
        assert_eq!(event.data, "/sse?sessionId=1");
        assert_eq!(event.into_message(), None);
    }
}
