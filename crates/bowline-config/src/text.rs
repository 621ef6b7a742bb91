//! Text after variables are expanded: its value, and what of it may be shown.

use std::fmt;

use super::report::Origin;
use bowline_proto::uri::UrlParts;

/// A string of the configuration with its variables replaced.
///
/// Values of the environment of a child process, values of headers, and everything a variable of the environment, an
/// input or a command contributed to are secrets: `Debug` shows `***` for them, and [`shown`](Self::shown) gives the
/// text as it was written, with literal secrets masked.
#[derive(Clone)]
pub struct Text {
    value: String,
    shown: String,
    secret: bool,
    /// As it stands in the file, where that is known.
    written: Option<String>,
    origin: Origin,
}

impl Text {
    /// A text that anybody may see.
    pub fn open(value: impl Into<String>, origin: Origin) -> Self {
        let value = value.into();
        Self { shown: value.clone(), value, secret: false, written: None, origin }
    }

    /// A text that is not to be seen; `shown` stands for it.
    pub fn secret(value: impl Into<String>, shown: impl Into<String>, origin: Origin) -> Self {
        Self { value: value.into(), shown: shown.into(), secret: true, written: None, origin }
    }

    /// The text itself, to be used and not to be shown.
    pub fn expose(&self) -> &str {
        &self.value
    }

    /// The text for people: as it was written, with `***` in place of literal secrets.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Remembers how the text stands in the file.
    pub(crate) fn written_as(mut self, written: &str) -> Self {
        self.written = Some(written.to_owned());
        self
    }

    /// The text as it stands in the file, for whoever has to judge what somebody else wrote: variables by their names, and
    /// nothing masked.
    pub fn written(&self) -> &str {
        self.written.as_deref().unwrap_or(&self.shown)
    }

    /// Whether the text must not be shown.
    pub fn is_secret(&self) -> bool {
        self.secret
    }

    /// Where the text was written.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.secret { formatter.write_str("***") } else { fmt::Debug::fmt(&self.value, formatter) }
    }
}

/// Two texts are equal when they say the same, wherever they were written.
impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Text {}

/// Words that tell that the value of an option is a secret.
const SECRET_WORDS: [&str; 9] =
    ["key", "token", "secret", "password", "passwd", "auth", "credential", "header", "cookie"];

/// Whether a name is one that usually holds a secret.
pub fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// The part of an argument that must not be shown, by what comes before it: the offset where the secret begins.
pub(crate) fn secret_part(previous: Option<&str>, argument: &str) -> Option<usize> {
    // `--api-key=…`, and `-e TOKEN=…` as container engines take it.
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

/// The words of a command for people, without the secrets among them.
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

/// A URL for people: without a password, and without the values of its query.
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
