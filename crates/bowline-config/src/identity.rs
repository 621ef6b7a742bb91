//! The target of an entry, as text and as protocol types.

use super::{Launch, RootConfig, Text, UpstreamConfig};
use bowline_types::Root;

impl UpstreamConfig {
    /// Returns the target of the entry as text without secrets: the command line, with the directory if the entry names
    /// one, or the URL. Pinned definitions belong to it, together with the name.
    pub fn identity(&self) -> String {
        let word = |text: &Text| {
            let text = text.shown();
            let is_plain = |letter: char| !letter.is_whitespace() && !matches!(letter, '"' | '\'' | '\\');
            if !text.is_empty() && text.chars().all(is_plain) { text.to_owned() } else { format!("{text:?}") }
        };
        match &self.launch {
            Launch::Command(launch) => {
                let words: Vec<_> = std::iter::once(&launch.program).chain(&launch.args).map(word).collect();
                let folder = launch.cwd.as_ref().map(|folder| format!(" (in {})", word(folder)));
                words.join(" ") + &folder.unwrap_or_default()
            }
            Launch::Url(launch) => launch.url.shown().to_owned(),
        }
    }
}

impl From<&RootConfig> for Root {
    /// Converts a root to the protocol type. A path becomes a `file:` URI.
    fn from(config: &RootConfig) -> Self {
        let place = config.uri.expose();
        let mut root = if place.starts_with("file:") { Self::new(place) } else { Self::of_path(place) };
        root.name.clone_from(&config.name);
        root
    }
}
