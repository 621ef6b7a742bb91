//! The target of an entry, as text and as protocol types.

use super::{Launch, RootConfig, Scope, Text, UpstreamConfig};
use bowline_types::Root;

impl UpstreamConfig {
    /// Returns the target of the entry as text without secrets: the command line, with the directory if the entry names one or
    /// belongs to a project, or the URL. Pinned definitions belong to it, together with the name.
    pub fn identity(&self) -> String {
        let word = |text: &Text| {
            let text = text.shown();
            let is_plain = |letter: char| !letter.is_whitespace() && !matches!(letter, '"' | '\'' | '\\');
            if !text.is_empty() && text.chars().all(is_plain) { text.to_owned() } else { format!("{text:?}") }
        };
        match &self.launch {
            Launch::Command(launch) => {
                let words: Vec<_> = std::iter::once(&launch.program).chain(&launch.args).map(word).collect();
                let folder = match &launch.cwd {
                    Some(folder) => format!(" (in {})", word(folder)),
                    // The same words start another program in another project.
                    None if matches!(self.scope, Scope::Project | Scope::Local) => {
                        match self.origin.file.parent() {
                            Some(folder) => format!(" (in {})", folder.display()),
                            None => String::new(),
                        }
                    }
                    None => String::new(),
                };
                words.join(" ") + &folder
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

#[cfg(test)]
mod tests {
    use super::super::{Environment, Loader, Scope, Source};
    use std::{collections::BTreeMap, path::PathBuf};

    fn identity(file: &str, scope: Scope, entry: &str) -> String {
        let text = format!("{{\"mcpServers\":{{\"notes\":{entry}}}}}");
        let files = BTreeMap::from([(PathBuf::from(file), text)]);
        let loader = Loader::new(Environment::new([("HOME", "/srv/ada")])).source(Source::new(file, scope));
        let config = loader.load(&files);
        assert_eq!(config.errors, []);
        config.upstreams[0].identity()
    }

    #[test]
    fn equal_entries_of_two_projects_are_two_servers() {
        let entry = r#"{"command":"node","args":["server.js"]}"#;
        let of = |file: &str, scope| identity(file, scope, entry);
        assert_eq!(of("/srv/a/.mcp.json", Scope::Project), "node server.js (in /srv/a)");
        assert_eq!(of("/srv/b/.mcp.json", Scope::Project), "node server.js (in /srv/b)");
        // The user's own entries are the same everywhere.
        assert_eq!(of("/srv/ada/mcp.json", Scope::User), "node server.js");
        let url = r#"{"url":"https://notes.example.com/mcp"}"#;
        assert_eq!(identity("/srv/a/.mcp.json", Scope::Project, url), "https://notes.example.com/mcp");
    }
}
