//! Recordings: creates the files and masks secrets.

use crate::failure::{Code, Failure};
use bowline_text::{MemberKind, is_secret_name};
use bowline_transcript::{Recorder, Side};
use serde_json::Value;
use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Instant,
};

/// The minimum length of a secret to search for. Shorter values would match everywhere.
const SHORTEST: usize = 6;
const MASKED: &str = "<masked>";
/// Parameters of URLs that contain tokens or codes. A `code` is one only beside a `state`.
const OAUTH_PARAMETERS: [&str; 8] = [
    "access_token",
    "assertion",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "id_token",
    "refresh_token",
];

/// A running recording.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) path: PathBuf,
    start: Instant,
    /// `None` after a write error.
    recorder: Mutex<Option<Recorder<File>>>,
}

impl Recording {
    /// Creates a file that only this user can read. If the file exists, the new one gets a number.
    pub(crate) fn begin(
        path: &Path,
        server: &str,
        environment: &[(String, String)],
    ) -> Result<Self, Failure> {
        let refused = |error: io::Error| {
            Failure::new(Code::Failed, format!("cannot write `{}`: {error}", path.display()))
        };
        let (path, file) = create(path).map_err(refused)?;
        let mask = Mask::new(environment);
        let recorder = Recorder::new(file, "A recorded conversation.", server).map_err(refused)?;
        let recorder = recorder.mask(move |frame| mask.apply(frame));
        Ok(Self { path, start: Instant::now(), recorder: Mutex::new(Some(recorder)) })
    }

    /// Adds a frame. After the first error nothing more is recorded.
    pub(crate) fn frame(&self, side: Side, frame: &[u8]) -> io::Result<()> {
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = recorder.as_mut() else { return Ok(()) };
        let written = open.frame(side, frame, self.start.elapsed());
        if written.is_err() {
            *recorder = None;
        }
        written
    }
}

fn create(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    bowline_files::private(options.write(true).create_new(true));
    let mut number = 1;
    loop {
        let path = if number == 1 { path.to_owned() } else { numbered(path, number) };
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            opened => return opened.map(|file| (path, file)),
        }
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-{number}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{number}"),
    };
    path.with_file_name(name)
}

/// Replaces secrets by `<masked>`: members with secret names, bearer tokens, and the values of environment variables with
/// secret names.
#[derive(Debug)]
struct Mask {
    /// Longest first.
    secrets: Vec<String>,
}

impl Mask {
    fn new(environment: &[(String, String)]) -> Self {
        let mut secrets: Vec<String> = environment
            .iter()
            .filter(|(name, value)| is_secret_name(name) && value.len() >= SHORTEST)
            .map(|(_, value)| value.clone())
            .collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { secrets }
    }

    fn apply(&self, value: &mut Value) {
        self.walk(value, MemberKind::Plain);
    }

    fn walk(&self, value: &mut Value, kind: MemberKind) {
        match value {
            Value::String(_) | Value::Number(_) if kind == MemberKind::Secret => *value = MASKED.into(),
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, kind)),
            Value::Object(members) => {
                for (name, member) in members {
                    self.walk(member, kind.member(name));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&self, text: &mut String) {
        for secret in &self.secrets {
            if text.contains(secret) {
                *text = text.replace(secret, MASKED);
            }
        }
        for scheme in ["bearer ", "dpop "] {
            if let Some(masked) = without_tokens(text, scheme) {
                *text = masked;
            }
        }
        if let Some(masked) = without_parameters(text) {
            *text = masked;
        }
    }
}

/// Masks the values of URL parameters that contain tokens or codes; `None` if there are none.
fn without_parameters(text: &str) -> Option<String> {
    let mut masked = String::new();
    let mut done = 0;
    for (place, _) in text.match_indices(['?', '&', '#']) {
        let Some((name, value)) = text.get(place + 1..)?.split_once('=') else { break };
        if !OAUTH_PARAMETERS.contains(&name) || (name == "code" && !text.contains("state=")) {
            continue;
        }
        let ends = |letter: char| letter.is_whitespace() || "&#\"'<>`)".contains(letter);
        let start = place + name.len() + 2;
        let length = value.find(ends).unwrap_or(value.len());
        masked.push_str(text.get(done..start)?);
        masked.push_str(MASKED);
        done = start + length;
    }
    (done > 0).then(|| masked + text.get(done..).unwrap_or_default())
}

/// Masks the tokens after a scheme, which is in lower case; `None` if there are none.
fn without_tokens(text: &str, scheme: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let mut masked = String::new();
    let mut done = 0;
    for (place, _) in lower.match_indices(scheme) {
        let start = place + scheme.len();
        let token = text.get(start..)?;
        let is_token = |letter: char| letter.is_ascii_alphanumeric() || "-._~+/=".contains(letter);
        let length = token.find(|letter| !is_token(letter)).unwrap_or(token.len());
        if length < SHORTEST || start < done {
            continue;
        }
        masked.push_str(text.get(done..start)?);
        masked.push_str(MASKED);
        done = start + length;
    }
    (done > 0).then(|| masked + text.get(done..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "values are made where they are checked")]
    fn check(mut value: Value, expected: Value) {
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mask = Mask::new(&[
            variable("GITHUB_TOKEN", "ghp_abcdef"),
            variable("API_KEY", "short"),
            variable("PATH", "/usr/bin"),
        ]);
        mask.apply(&mut value);
        assert_eq!(value, expected);
    }

    #[test]
    fn secrets_are_masked_by_name_and_by_value() {
        check(
            json!({ "password": "x", "path": "/usr/bin", "note": "with ghp_abcdef in it", "n": "short" }),
            json!({ "password": "<masked>", "path": "/usr/bin", "note": "with <masked> in it", "n": "short" }),
        );
        check(
            json!({ "credentials": { "user": "a", "pins": [1] }, "_meta": { "progressToken": "t" } }),
            json!({ "credentials": { "user": "<masked>", "pins": ["<masked>"] }, "_meta": { "progressToken": "t" } }),
        );
        check(
            json!({ "h": "authorization: bearer abc.def-123, Bearer of news; Bearer x" }),
            json!({ "h": "authorization: bearer <masked>, Bearer of news; Bearer x" }),
        );
    }

    #[test]
    fn v57_tokens_codes_and_assertions_of_oauth_are_masked() {
        check(
            json!({ "url": "http://127.0.0.1:1/callback?code=abc&state=x see https://a/?code=US#access_token=t" }),
            json!({ "url": "http://127.0.0.1:1/callback?code=<masked>&state=x see https://a/?code=<masked>#access_token=<masked>" }),
        );
        check(
            json!({ "url": "https://a/?code=US&x=1", "code": 5 }),
            json!({ "url": "https://a/?code=US&x=1", "code": 5 }),
        );
        check(json!({ "client_assertion": "a.b.c" }), json!({ "client_assertion": "<masked>" }));
        check(json!({ "h": "DPoP abcdef.ghi" }), json!({ "h": "DPoP <masked>" }));
    }

    #[test]
    fn parameters_named_like_secrets_are_not_masked_in_schemas() {
        let schema = json!({ "inputSchema": { "properties": { "token": { "type": "string" } } } });
        check(schema.clone(), schema);
    }

    #[test]
    fn an_existing_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txtar");
        let names: Vec<String> = (0..3)
            .map(|_| create(&path).unwrap().0.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["a.txtar", "a-2.txtar", "a-3.txtar"]);
        assert_eq!(numbered(Path::new("x/y"), 2), Path::new("x/y-2"));
    }
}
