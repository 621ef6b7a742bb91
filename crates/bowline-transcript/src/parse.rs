//! Parses the text of a transcript into steps.

use super::{Frame, Order, StdioOnly, Step, Transcript, raw};
use crate::{Error, Result};
use bowline_types::Revision;
use serde_json::{Value, json};

/// The known headers.
const HEADERS: [&str; 5] = ["proves", "server", "revision", "capabilities", "transport"];

pub(super) fn parse(name: String, text: &str) -> Result<Transcript> {
    let place = name.clone();
    let wrong = |(line, reason): (usize, String)| Error::unexpected(format!("{place}:{line}: {reason}"));
    let mut reader = Reader {
        transcript: Transcript {
            name,
            intent: String::new(),
            proves: Vec::new(),
            server: String::new(),
            revisions: Vec::new(),
            capabilities: json!({}),
            stdio_only: None,
            steps: Vec::new(),
        },
        stage: Stage::Intent,
        frame: None,
    };
    let mut last = 1;
    for (line, content) in (1..).zip(text.lines()) {
        last = line;
        reader.line(line, content).map_err(wrong)?;
    }
    reader.end(last).map_err(wrong)
}

type Mistake = (usize, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Intent,
    Headers,
    Section(Section),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Client,
    ClientRaw,
    ClientCloses,
    Server(Order),
}

struct Reader {
    transcript: Transcript,
    stage: Stage,
    /// The current frame: its line and its text so far.
    frame: Option<(usize, String)>,
}

impl Reader {
    fn line(&mut self, line: usize, content: &str) -> Result<(), Mistake> {
        if let Some(name) = content.trim_end().strip_prefix("-- ").and_then(|rest| rest.strip_suffix(" --")) {
            self.finish_frame()?;
            return self.begin(line, name);
        }
        match self.stage {
            Stage::Intent => self.intent(line, content),
            Stage::Headers => self.header(line, content),
            Stage::Section(Section::ClientRaw) => self.raw(line, content),
            Stage::Section(_) => self.frame_line(line, content),
        }
    }

    fn intent(&mut self, line: usize, content: &str) -> Result<(), Mistake> {
        let is_header = content.split_once(':').is_some_and(|(key, _)| HEADERS.contains(&key));
        if is_header {
            self.stage = Stage::Headers;
            return self.header(line, content);
        }
        let intent = &mut self.transcript.intent;
        if !intent.is_empty() && !content.is_empty() {
            intent.push(' ');
        }
        intent.push_str(content.trim());
        Ok(())
    }

    fn header(&mut self, line: usize, content: &str) -> Result<(), Mistake> {
        if content.trim().is_empty() {
            return Ok(());
        }
        let wrong = |reason: String| (line, reason);
        let Some((key, value)) = content.split_once(':').map(|(key, value)| (key, value.trim())) else {
            return Err(wrong("expected a header line `key: value`".into()));
        };
        let words = || value.split([' ', ',']).filter(|word| !word.is_empty());
        match key {
            "proves" => self.transcript.proves.extend(words().map(str::to_owned)),
            "server" => value.clone_into(&mut self.transcript.server),
            "revision" => {
                self.transcript.revisions.extend(revisions(value).map_err(wrong)?);
            }
            "transport" => self.transcript.stdio_only = Some(stdio_only(value).map_err(wrong)?),
            "capabilities" => {
                self.transcript.capabilities =
                    serde_json::from_str(value).map_err(|error| wrong(error.to_string()))?;
            }
            other => {
                return Err(wrong(format!(
                    "unknown header `{other}`; expected one of {}",
                    HEADERS.join(", ")
                )));
            }
        }
        Ok(())
    }

    fn begin(&mut self, line: usize, name: &str) -> Result<(), Mistake> {
        if self.transcript.intent.is_empty() {
            return Err((line, "expected a sentence that says what the conversation shows".into()));
        }
        if self.transcript.server.is_empty() {
            return Err((line, "expected a header line `server: NAME`".into()));
        }
        let (section, step) = match name {
            "client" => (Section::Client, Step::Send(Vec::new())),
            "client raw" => (Section::ClientRaw, Step::SendRaw(Vec::new())),
            "client closes" => (Section::ClientCloses, Step::Close),
            "server" => expect(Order::AsWritten),
            "server unordered" => expect(Order::Any),
            other => {
                let known = "client, client raw, client closes, server, server unordered";
                return Err((line, format!("unknown section `{other}`; expected one of {known}")));
            }
        };
        self.stage = Stage::Section(section);
        self.transcript.steps.push(step);
        Ok(())
    }

    fn raw(&mut self, line: usize, content: &str) -> Result<(), Mistake> {
        if is_skipped(content) {
            return Ok(());
        }
        let bytes = raw::bytes_of(content).map_err(|reason| (line, reason))?;
        if let Some(Step::SendRaw(all)) = self.transcript.steps.last_mut() {
            all.extend(bytes);
        }
        Ok(())
    }

    fn frame_line(&mut self, line: usize, content: &str) -> Result<(), Mistake> {
        if is_skipped(content) {
            return Ok(());
        }
        if content.starts_with([' ', '\t'])
            && let Some((_, text)) = &mut self.frame
        {
            text.push_str(content);
            return Ok(());
        }
        self.finish_frame()?;
        self.frame = Some((line, content.to_owned()));
        Ok(())
    }

    fn finish_frame(&mut self) -> Result<(), Mistake> {
        let Some((line, text)) = self.frame.take() else { return Ok(()) };
        let value: Value =
            serde_json::from_str(&text).map_err(|error| (line, format!("{error} in `{text}`")))?;
        match self.transcript.steps.last_mut() {
            Some(Step::Send(frames) | Step::Expect { frames, .. }) => {
                frames.push(Frame { line, value });
                Ok(())
            }
            Some(Step::Close | Step::SendRaw(_)) | None => Err((line, "this section has no frames".into())),
        }
    }

    fn end(mut self, last: usize) -> Result<Transcript, Mistake> {
        self.finish_frame()?;
        if self.transcript.steps.is_empty() {
            return Err((last, "expected a section such as `-- client --`".into()));
        }
        Ok(self.transcript)
    }
}

/// Parses a list of revisions, in which `legacy` means the four with a handshake.
fn revisions(list: &str) -> Result<Vec<Revision>, String> {
    let mut found = Vec::new();
    for word in list.split([' ', ',']).filter(|word| !word.is_empty()) {
        if word == "legacy" {
            found.extend(Revision::ALL.into_iter().filter(|one| one.is_legacy()));
        } else {
            found.push(word.parse().map_err(|error: bowline_types::UnknownRevision| error.to_string())?);
        }
    }
    Ok(found)
}

/// Parses `stdio (reason)`, with optional revisions in between.
fn stdio_only(value: &str) -> Result<StdioOnly, String> {
    let parts = value.strip_prefix("stdio").and_then(|rest| rest.strip_suffix(')')?.split_once('('));
    let Some((list, reason)) = parts.filter(|(_, reason)| !reason.trim().is_empty()) else {
        return Err(format!("expected `stdio (reason)`, got `{value}`"));
    };
    Ok(StdioOnly { revisions: revisions(list)?, reason: reason.trim().to_owned() })
}

fn expect(order: Order) -> (Section, Step) {
    (Section::Server(order), Step::Expect { frames: Vec::new(), order })
}

fn is_skipped(content: &str) -> bool {
    content.trim().is_empty() || content.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "It works.\n\nserver: x\n";

    fn check(text: &str, reason: &str) {
        let error = Transcript::parse("t", text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }

    #[test]
    fn intent_headers_and_sections_are_read() {
        let text = "One line:\nand another.\n\nproves: A-1, B-2\nserver: x\nrevision: legacy 2026-07-28\n\n\
            -- client --\n# a comment\n{\"a\":\n  1}\n\n{\"b\":2}\n-- server unordered --\n{}\n-- client closes --\n";
        let transcript = Transcript::parse("t", text).unwrap();
        assert_eq!(transcript.intent(), "One line: and another.");
        assert_eq!(transcript.proves(), ["A-1", "B-2"]);
        assert_eq!(transcript.revisions(), Revision::ALL);
        let [Step::Send(sent), Step::Expect { frames, order: Order::Any }, Step::Close] = &*transcript.steps
        else {
            panic!("{:?}", transcript.steps)
        };
        assert_eq!(sent.iter().map(|frame| frame.line).collect::<Vec<_>>(), [10, 13]);
        assert_eq!(frames.len(), 1);
    }

    #[test]
    fn stdio_only_transcripts_are_declared_per_revision() {
        let of = |headers: &str| {
            let text = format!("{HEAD}{headers}\n-- client --\n{{}}\n");
            Transcript::parse("t", &text).unwrap().over_http().map(|left| left.revisions().to_vec())
        };
        let (first, last) = (Revision::V2024_11_05, Revision::V2026_07_28);
        assert_eq!(of(""), Ok(vec![]));
        assert_eq!(of("transport: stdio (lines)"), Err("lines".to_owned()));
        assert_eq!(of("revision: 2024-11-05 2026-07-28"), Ok(vec![first, last]));
        assert_eq!(of("revision: 2024-11-05 2026-07-28\ntransport: stdio (lines)"), Err("lines".to_owned()));
        assert_eq!(of("revision: 2024-11-05 2026-07-28\ntransport: stdio 2026-07-28 (ids)"), Ok(vec![first]));
        assert_eq!(of("revision: 2026-07-28\ntransport: stdio 2026-07-28 (ids)"), Err("ids".to_owned()));
    }

    #[test]
    fn mistakes_name_their_line() {
        check("", "t:1: expected a section");
        check("server: x\n-- client --\n", "t:2: expected a sentence");
        check("It works.\n-- client --\n", "t:2: expected a header line `server");
        check("It works.\nserver: x\nservre: y\n", "t:3: unknown header `servre`");
        check("It works.\nrevision: 2025\n", "t:2: expected a protocol revision");
        check("It works.\ntransport: stdio\n", "t:2: expected `stdio (reason)`");
        check("It works.\ntransport: stdio ()\n", "t:2: expected `stdio (reason)`");
        check("It works.\ntransport: http (fast)\n", "t:2: expected `stdio (reason)`");
        check("It works.\ntransport: stdio 2025 (old)\n", "t:2: expected a protocol revision");
        check(&format!("{HEAD}-- clinet --\n"), "t:4: unknown section `clinet`");
        check(&format!("{HEAD}-- client --\n\n{{\n"), "t:6: EOF");
        check(&format!("{HEAD}-- client closes --\n{{}}\n"), "t:5: this section has no frames");
        check(&format!("{HEAD}-- client raw --\n\\x1\n"), "t:5: `\\x` needs two hexadecimal digits");
    }
}
