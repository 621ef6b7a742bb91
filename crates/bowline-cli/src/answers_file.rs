//! Answers to elicitation and sampling requests from a file, for scripts.

use crate::failure::Failure;
use bowline_text::visible;
use bowline_types::{CreateMessageResult, ElicitAction, ElicitResult, RawJson};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    sync::{Mutex, PoisonError},
};

/// The maximum size of an answers file.
const MAX_BYTES: u64 = 4 << 20;

/// The file format, for `--help`.
pub(crate) const FORMAT: &str = "\
The --answers file is JSON. Each request uses the first unused answer that matches it:
  {\"elicitation\": [{\"action\": \"accept\", \"content\": {\"name\": \"Ann\"}},
                   {\"match\": \"delete\", \"action\": \"decline\"}],
   \"sampling\": [{\"text\": \"the reply of the model\"}]}
`match` is a substring of the question; without it an answer matches every question. `action` is
accept, decline or cancel. A sampling answer is a `text`, or a whole `result` of
sampling/createMessage.";

/// The unused answers.
#[derive(Debug)]
pub(crate) struct AnswersFile {
    left: Mutex<Left>,
    /// Whether the file has answers of each kind. This decides which capabilities the client declares.
    pub(crate) has_elicitation: bool,
    pub(crate) has_sampling: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Left {
    elicitation: Vec<Elicitation>,
    sampling: Vec<Sampling>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Elicitation {
    #[serde(default, rename = "match")]
    part: String,
    action: Action,
    #[serde(default)]
    content: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
    Cancel,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sampling {
    #[serde(default, rename = "match")]
    part: String,
    text: Option<String>,
    result: Option<Value>,
}

impl AnswersFile {
    /// Reads a file; `-` is standard input.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let mut text = String::new();
        let read = if path.as_os_str() == "-" {
            io::stdin().take(MAX_BYTES + 1).read_to_string(&mut text)
        } else {
            File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        };
        read.map_err(|error| Failure::misused(format!("cannot read `{shown}`: {error}")))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(Failure::misused(format!("`{shown}` is larger than {MAX_BYTES} bytes")));
        }
        Self::parse(&text).map_err(|reason| {
            Failure::misused(format!("invalid answers file `{shown}`: {reason}"))
                .advise("`bowline call --help` describes the format")
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        if !text.trim_start().starts_with('{') {
            return Err("expected a JSON object".to_owned());
        }
        let left: Left = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for answer in &left.sampling {
            answer.result()?;
        }
        Ok(Self {
            has_elicitation: !left.elicitation.is_empty(),
            has_sampling: !left.sampling.is_empty(),
            left: Mutex::new(left),
        })
    }

    /// Takes the first unused answer that matches a question.
    pub(crate) fn elicitation(&self, message: &str) -> Option<ElicitResult> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let place = left.elicitation.iter().position(|answer| message.contains(&answer.part))?;
        let answer = left.elicitation.remove(place);
        let action = match answer.action {
            Action::Accept => ElicitAction::Accept,
            Action::Decline => return Some(ElicitResult::decline()),
            Action::Cancel => ElicitAction::Cancel,
        };
        let content = answer.content.filter(|_| matches!(answer.action, Action::Accept));
        let mut result = ElicitResult::new(action);
        result.content =
            content.map(|content| content.into_iter().map(|(name, value)| (name, value.into())).collect());
        Some(result)
    }

    /// Takes the first unused answer that matches a sampling request. `prompt` is the request as JSON.
    pub(crate) fn sampling(&self, prompt: &str) -> Option<CreateMessageResult> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let place = left.sampling.iter().position(|answer| prompt.contains(&answer.part))?;
        left.sampling.remove(place).result().ok()
    }
}

impl Sampling {
    fn result(&self) -> Result<CreateMessageResult, String> {
        let result = match (&self.text, &self.result) {
            (Some(text), None) => json!({
                "role": "assistant", "model": "answers-file", "stopReason": "endTurn",
                "content": { "type": "text", "text": text },
            }),
            (None, Some(result)) => result.clone(),
            _ => return Err("expected either `text` or `result` in each answer of `sampling`".to_owned()),
        };
        RawJson::from(result).decode().map_err(|error| format!("sampling: {}", visible(&error.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_question_takes_the_first_answer_that_matches() {
        let file = AnswersFile::parse(
            r#"{"elicitation": [{"match": "delete", "action": "decline"},
                {"action": "accept", "content": {"name": "Ann"}}, {"action": "cancel"}],
                "sampling": [{"text": "hi"}]}"#,
        )
        .unwrap();
        let action = |message| file.elicitation(message).map(|answer| answer.action);
        assert_eq!(action("who?"), Some(ElicitAction::Accept));
        assert_eq!(action("delete it?"), Some(ElicitAction::Decline));
        assert_eq!(action("who?"), Some(ElicitAction::Cancel));
        assert_eq!(action("who?"), None);
        assert!(file.sampling("{}").is_some());
        assert!(file.sampling("{}").is_none());
    }

    #[test]
    fn errors_in_the_file_are_found_when_it_is_read() {
        let check = |text: &str, reason: &str| {
            let error = AnswersFile::parse(text).unwrap_err();
            assert!(error.contains(reason), "{error}");
        };
        check("[]", "expected a JSON object");
        check(r#"{"elicit": []}"#, "unknown field `elicit`");
        check(r#"{"elicitation": [{"action": "yes"}]}"#, "unknown variant `yes`");
        check(r#"{"sampling": [{}]}"#, "expected either `text` or `result`");
        check(r#"{"sampling": [{"result": {"role": "assistant"}}]}"#, "sampling: ");
    }
}
