//! Text after variables are expanded, and the form of it that may be shown.

use std::fmt;

use super::report::Origin;
use bowline_proto::uri::UrlParts;
use bowline_text::is_secret_name;

/// A string of the configuration with its variables expanded.
///
/// Environment values of a child process, header values, and texts that contain the value of an environment variable,
/// an input or a command are secrets. `Debug` prints `***` for them, and [`shown`](Self::shown) returns the text of the
/// file, with literal secrets masked.
#[derive(Clone)]
pub struct Text {
    value: String,
    shown: String,
    secret: bool,
    /// The text of the file, if it is known.
    written: Option<String>,
    origin: Origin,
}

impl Text {
    /// Creates a text that may be shown.
    pub fn open(value: impl Into<String>, origin: Origin) -> Self {
        let value = value.into();
        Self { shown: value.clone(), value, secret: false, written: None, origin }
    }

    /// Creates a secret. `shown` is displayed instead.
    pub fn secret(value: impl Into<String>, shown: impl Into<String>, origin: Origin) -> Self {
        Self { value: value.into(), shown: shown.into(), secret: true, written: None, origin }
    }

    /// Returns the value. Do not show it.
    pub fn expose(&self) -> &str {
        &self.value
    }

    /// Returns the text for display: as in the file, with `***` for literal secrets.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Sets the text of the file.
    pub(crate) fn written_as(mut self, written: &str) -> Self {
        self.written = Some(written.to_owned());
        self
    }

    /// Returns the text of the file, for approval by the user: with the names of variables, and nothing masked.
    pub fn written(&self) -> &str {
        self.written.as_deref().unwrap_or(&self.shown)
    }

    /// Returns whether the text is a secret.
    pub fn is_secret(&self) -> bool {
        self.secret
    }

    /// Returns the position of the text.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.secret { formatter.write_str("***") } else { fmt::Debug::fmt(&self.value, formatter) }
    }
}

/// Texts with the same value are equal, wherever they are written.
impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Text {}

/// Parts of names whose values are masked besides those of [`is_secret_name`]: options such as `--header`, and names in one
/// piece such as `MYKEY`.
const MASKED_PARTS: [&str; 3] = ["key", "auth", "header"];

/// Returns whether a variable or option with this name usually holds a secret.
pub fn names_a_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    is_secret_name(name) || MASKED_PARTS.iter().any(|part| lower.contains(part))
}

/// Returns the offset at which the secret part of an argument starts, given the argument before it.
pub(crate) fn secret_part(previous: Option<&str>, argument: &str) -> Option<usize> {
    // `--api-key=…`, and `-e TOKEN=…` of container engines.
    if let Some((name, _)) = argument.split_once('=') {
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if plain && names_a_secret(name) {
            return Some(name.len() + 1);
        }
    }
    let previous = previous?;
    let is_option = previous.starts_with('-') && !previous.contains('=');
    (is_option && !argument.starts_with('-') && names_a_secret(previous)).then_some(0)
}

/// Returns the words of a command with secrets masked.
pub(crate) fn shown_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut previous = None;
    let show = |word: &'a str| {
        let secret = secret_part(previous.replace(word), word);
        match secret.and_then(|at| word.get(..at)) {
            Some(open) => format!("{open}***"),
            None => mask_url(word).unwrap_or_else(|| word.to_owned()),
        }
    };
    words.into_iter().map(show).collect()
}

/// Returns a URL with its password and query values masked.
pub(crate) fn mask_url(url: &str) -> Option<String> {
    let parts = UrlParts::split(url)?;
    let (scheme, authority, tail) = (parts.scheme, parts.masked_authority("***"), parts.tail);
    let mut masked = parts.user.is_some();
    let tail = match tail.split_once('?') {
        Some((path, query)) => {
            let pairs: Vec<String> = query
                .split('&')
                .map(|pair| match pair.split_once('=') {
                    Some((name, value)) if !value.is_empty() && !value.starts_with("${") => {
                        masked = true;
                        format!("{name}=***")
                    }
                    _ => pair.to_owned(),
                })
                .collect();
            format!("{path}?{}", pairs.join("&"))
        }
        None => tail.to_owned(),
    };
    masked.then(|| format!("{scheme}://{authority}{tail}"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Origin, Text, mask_url, secret_part};

    #[test]
    fn debug_of_a_secret_shows_stars() {
        // V-57
        let origin = Origin::start(Path::new("a.json"));
        let secret = Text::secret("hunter2", "${PASSWORD}", origin.clone());
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(secret.shown(), "${PASSWORD}");
        assert_eq!(format!("{:?}", Text::open("npx", origin)), "\"npx\"");
    }

    #[test]
    fn options_with_secrets_are_recognized_by_name() {
        assert_eq!(secret_part(Some("--api-key"), "abc"), Some(0));
        assert_eq!(secret_part(None, "--token=abc"), Some(8));
        assert_eq!(secret_part(Some("-e"), "GITHUB_TOKEN=abc"), Some(13));
        assert_eq!(secret_part(Some("--header"), "Authorization: Bearer abc"), Some(0));
        assert_eq!(secret_part(None, "--pwd=abc"), Some(6));
        assert_eq!(secret_part(Some("-e"), "PGPASSPHRASE=abc"), Some(13));
        assert_eq!(secret_part(Some("-e"), "MYKEY=abc"), Some(6));
        assert_eq!(secret_part(Some("--token"), "--verbose"), None);
        assert_eq!(secret_part(Some("-y"), "keyboard-server"), None);
        assert_eq!(secret_part(None, "https://a.example/?key=1"), None);
    }

    #[test]
    fn urls_lose_passwords_and_query_values() {
        assert_eq!(
            mask_url("https://u:p@a.example/mcp?key=1&b").as_deref(),
            Some("https://***@a.example/mcp?key=***&b")
        );
        assert_eq!(mask_url("https://a.example/mcp"), None);
        assert_eq!(mask_url("https://a.example/mcp?key=${KEY}"), None);
    }
}
