//! Writes a server of another client as an entry of `bowline.toml`.

use bowline_config::{Launch, Prefer, Text, UpstreamConfig};
use std::{collections::BTreeMap, fmt::Write as _};

/// Whether secrets are written or masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secrets {
    Written,
    Masked,
}

/// Returns the TOML entry for a server.
///
/// References to variables stay references. Auto-approved tools are not copied: all clients share the server, so the user has to
/// decide again.
pub(super) fn entry(name: &str, upstream: &UpstreamConfig, secrets: Secrets) -> String {
    let mut page = Page { text: format!("[servers.{}]\n", key(name)), secrets };
    page.launch(&upstream.launch);
    let settings = &upstream.settings;
    if let Some(description) = &settings.description {
        page.line("description", &quoted(description));
    }
    if !settings.enabled {
        page.line("enabled", "false");
    }
    let is_written = |name: &str| upstream.origins.contains_key(name);
    for (name, time) in
        [("startup_timeout", settings.startup_timeout), ("request_timeout", settings.request_timeout)]
    {
        if is_written(name) {
            page.line(name, &quoted(&format!("{}ms", time.as_millis())));
        }
    }
    for (name, patterns) in [("allow", &settings.allow), ("deny", &settings.deny)] {
        page.list(name, patterns.iter().map(|pattern| quoted(pattern.as_str())));
    }
    page.text
}

/// Returns whether two entries have the same command or URL.
pub(super) fn is_same(one: &Launch, other: &Launch) -> bool {
    let written = |launch| {
        let mut page = Page { text: String::new(), secrets: Secrets::Written };
        page.launch(launch);
        page.text
    };
    written(one) == written(other)
}

struct Page {
    text: String,
    secrets: Secrets,
}

impl Page {
    fn launch(&mut self, launch: &Launch) {
        match launch {
            Launch::Command(launch) => {
                self.text("command", &launch.program);
                self.texts("args", &launch.args);
                let (set, unset): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    launch.env.iter().partition(|(_, value)| value.is_some());
                self.table(
                    "env",
                    set.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_ref()?))),
                );
                self.list("unset", unset.keys().map(|name| quoted(name)));
                self.optional("env_file", launch.env_file.as_ref());
                self.optional("cwd", launch.cwd.as_ref());
            }
            Launch::Url(launch) => {
                self.text("url", &launch.url);
                self.table("headers", launch.headers.iter().map(|(name, value)| (name.as_str(), value)));
                self.texts("headers_helper", launch.headers_helper.as_deref().unwrap_or_default());
                if launch.prefer == Prefer::Sse {
                    self.line("transport", "\"sse\"");
                }
            }
        }
    }

    fn line(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.text, "{name} = {value}");
    }

    /// Returns a text with its variable references, or expanded if masking would lose a part of it.
    fn value(&self, text: &Text) -> String {
        let is_masked = text.is_secret() && text.shown().contains("***");
        let value = match self.secrets {
            Secrets::Masked => text.shown(),
            // A literal `${` stays escaped; the value no longer shows that it was.
            Secrets::Written if text.written().contains("$${") => text.written(),
            Secrets::Written if text.is_secret() && !is_masked => text.shown(),
            Secrets::Written => text.expose(),
        };
        quoted(&without_inputs(value))
    }

    fn text(&mut self, name: &str, text: &Text) {
        let value = self.value(text);
        self.line(name, &value);
    }

    fn optional(&mut self, name: &str, text: Option<&Text>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    fn texts(&mut self, name: &str, texts: &[Text]) {
        let values: Vec<String> = texts.iter().map(|text| self.value(text)).collect();
        self.list(name, values);
    }

    fn list(&mut self, name: &str, values: impl IntoIterator<Item = String>) {
        let values: Vec<String> = values.into_iter().collect();
        if !values.is_empty() {
            self.line(name, &format!("[{}]", values.join(", ")));
        }
    }

    fn table<'a>(&mut self, name: &str, members: impl IntoIterator<Item = (&'a str, &'a Text)>) {
        let members: Vec<String> = members
            .into_iter()
            .map(|(member, value)| format!("{} = {}", key(member), self.value(value)))
            .collect();
        if !members.is_empty() {
            self.line(name, &format!("{{ {} }}", members.join(", ")));
        }
    }
}

/// Returns the environment variable that replaces an input of the other client.
fn variable(input: &str) -> String {
    let tame = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    input.chars().map(tame).collect()
}

fn without_inputs(text: &str) -> String {
    let mut rest = text;
    let mut whole = String::new();
    while let Some((before, behind)) = rest.split_once("${input:") {
        let Some((input, after)) = behind.split_once('}') else { break };
        let _ = write!(whole, "{before}${{{}}}", variable(input));
        rest = after;
    }
    whole + rest
}

/// Returns the environment variables that replace inputs.
pub(super) fn inputs(upstream: &UpstreamConfig) -> Vec<String> {
    let texts: Vec<&Text> = match &upstream.launch {
        Launch::Command(launch) => launch.args.iter().chain(launch.env.values().flatten()).collect(),
        Launch::Url(launch) => launch.headers.values().chain([&launch.url]).collect(),
    };
    let mut found: Vec<String> = texts
        .iter()
        .flat_map(|text| text.shown().split("${input:").skip(1))
        .filter_map(|behind| behind.split_once('}'))
        .map(|(input, _)| variable(input))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Formats a TOML string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Formats a TOML key, quoted if necessary.
fn key(name: &str) -> String {
    let is_bare =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if is_bare { name.to_owned() } else { quoted(name) }
}
