//! Records a conversation.

use super::Side;
use serde_json::Value;
use std::{
    fmt,
    fmt::Write as _,
    io::{self, Write},
    time::Duration,
};

type Mask = Box<dyn Fn(&mut Value) + Send>;

/// Writes a transcript frame by frame. Each frame is in the file immediately.
pub struct Recorder<W> {
    writer: W,
    mask: Mask,
    section: Option<Section>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Client,
    ClientRaw,
    Server,
}

impl Section {
    fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::ClientRaw => "client raw",
            Self::Server => "server",
        }
    }
}

impl<W: Write> Recorder<W> {
    /// Starts a transcript of a conversation with this server.
    pub fn new(mut writer: W, intent: &str, server: &str) -> io::Result<Self> {
        let line = |text: &str| text.replace(['\n', '\r'], " ");
        write!(writer, "{}\n\nserver: {}\n\n", line(intent), line(server))?;
        writer.flush()?;
        Ok(Self { writer, mask: Box::new(|_| {}), section: None })
    }

    /// Sets a function that changes every frame before it is written, to remove secrets. Replace them by `<masked>`,
    /// which matches anything when the transcript is run.
    #[must_use]
    pub fn mask(mut self, mask: impl Fn(&mut Value) + Send + 'static) -> Self {
        self.mask = Box::new(mask);
        self
    }

    /// Writes one frame, which was sent at this time after the start.
    ///
    /// Invalid JSON of the client is written as a raw section; invalid JSON of the server is written as a comment.
    pub fn frame(&mut self, side: Side, frame: &[u8], at: Duration) -> io::Result<()> {
        let frame = frame.trim_ascii();
        let read: Option<Value> = serde_json::from_slice(frame).ok();
        let (section, line) = match (side, read) {
            (Side::Client, Some(value)) => (Section::Client, self.written(frame, &value)),
            (Side::Server, Some(value)) => (Section::Server, self.written(frame, &value)),
            (Side::Client, None) => (Section::ClientRaw, self.raw(frame)),
            (Side::Server, None) => (Section::Server, format!("# not a frame: {}", self.raw(frame))),
        };
        if self.section != Some(section) {
            self.section = Some(section);
            writeln!(self.writer, "-- {} --\n# {:.3} s", section.name(), at.as_secs_f64())?;
        }
        writeln!(self.writer, "{line}")?;
        self.writer.flush()
    }

    fn raw(&self, frame: &[u8]) -> String {
        let text = Value::from(String::from_utf8_lossy(frame));
        let mut masked = text.clone();
        (self.mask)(&mut masked);
        let masked = masked.as_str().filter(|masked| text != *masked);
        escaped(masked.map_or(frame, str::as_bytes))
    }

    /// Returns the text of a frame without secrets. A frame without secrets is not changed.
    fn written(&self, frame: &[u8], value: &Value) -> String {
        let mut masked = value.clone();
        (self.mask)(&mut masked);
        match std::str::from_utf8(frame) {
            Ok(text) if masked == *value && !text.contains(['\n', '\r']) => text.to_owned(),
            _ => masked.to_string(),
        }
    }
}

/// Escapes bytes for a raw section.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (position, byte) in bytes.iter().enumerate() {
        let special = matches!(byte, b'\\' | b'<') || position == 0 && matches!(byte, b'#' | b'-');
        if special || !(b' '..=b'~').contains(byte) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        } else {
            text.push(char::from(*byte));
        }
    }
    text
}

impl<W> fmt::Debug for Recorder<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Transcript;
    use expect_test::expect;

    fn recorded(said: &[(Side, &[u8])]) -> String {
        let mut file = Vec::new();
        let mut recorder = Recorder::new(&mut file, "Two\nlines.", "demo").unwrap().mask(|value| {
            if let Some(secret) = value.pointer_mut("/params/key") {
                *secret = "<masked>".into();
            }
            if let Value::String(text) = value {
                *text = text.replace("s3cret", "***");
            }
        });
        for (time, (side, frame)) in (0..).zip(said) {
            recorder.frame(*side, frame, Duration::from_millis(time)).unwrap();
        }
        drop(recorder);
        String::from_utf8(file).unwrap()
    }

    #[test]
    fn a_conversation_is_a_transcript() {
        let text = recorded(&[
            (Side::Client, b"{\"id\": 1.0, \"method\":\"a\"}\n"),
            (Side::Client, br#"{"id":2,"method":"b","params":{"key":"hunter2","path":"p"}}"#),
            (Side::Server, b"starting <up>\xff"),
            (Side::Server, b"with s3cret"),
            (Side::Server, b"{\n  \"id\": 1\n}"),
            (Side::Client, b"#\\oops"),
        ]);
        expect![[r#"
            Two lines.

            server: demo

            -- client --
            # 0.000 s
            {"id": 1.0, "method":"a"}
            {"id":2,"method":"b","params":{"key":"<masked>","path":"p"}}
            -- server --
            # 0.002 s
            # not a frame: starting \x3cup>\xff
            # not a frame: with ***
            {"id":1}
            -- client raw --
            # 0.005 s
            \x23\x5coops
        "#]]
        .assert_eq(&text);
        let transcript = Transcript::parse("t", &text).unwrap();
        assert_eq!(transcript.messages().count(), 3);
        let raw = transcript.steps.iter().find_map(|step| match step {
            crate::Step::SendRaw(bytes) => Some(bytes.as_slice()),
            crate::Step::Send(_) | crate::Step::Close | crate::Step::Expect { .. } => None,
        });
        assert_eq!(raw, Some(&b"#\\oops\n"[..]));
    }
}
