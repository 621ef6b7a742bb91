//! Collects the secrets that must not appear in the audit log, or in what is shown.

use bowline_config::{Launch, Text, UpstreamConfig, parse_env_file, read_env_file};
use std::path::Path;

/// From so many bytes on a part of a secret is one itself.
const TELLING: usize = 8;

/// Returns the secrets of servers: of variables, arguments, headers and URLs, and whatever is in files of variables, which it reads.
pub fn secrets<'a>(entries: impl IntoIterator<Item = &'a UpstreamConfig>) -> Vec<String> {
    entries.into_iter().flat_map(|entry| of(&entry.launch)).collect()
}

fn of(launch: &Launch) -> Vec<String> {
    let mut read = Vec::new();
    let written: Vec<&Text> = match launch {
        Launch::Command(launch) => {
            if let Some(path) = launch.env_file.as_ref().map(|file| Path::new(file.expose())) {
                // A file that cannot be read prevents the start of the server, which is reported elsewhere.
                read = parse_env_file(path, &read_env_file(path).unwrap_or_default()).0;
            }
            launch.env.values().flatten().chain(&launch.args).collect()
        }
        Launch::Url(launch) => {
            let login = launch
                .oauth
                .iter()
                .flat_map(|oauth| oauth.client_secret.iter().chain(oauth.authorization_params.values()));
            let helper = launch.headers_helper.iter().flatten();
            launch.headers.values().chain([&launch.url]).chain(login).chain(helper).collect()
        }
    };
    let texts = written.into_iter().chain(read.iter().map(|(_, value)| value));
    texts.filter(|text| text.is_secret()).flat_map(|text| parts(text.expose())).collect()
}

/// A secret and what is a secret in it: the token behind `Bearer`, the value behind `--token=`.
fn parts(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    // What has more words is a text, in which most are none.
    let words = if words.len() <= 2 { words } else { Vec::new() };
    let values = words.iter().filter_map(|word| Some(word.split_once('=')?.1));
    let inner = words.iter().copied().chain(values).filter(|part| part.len() >= TELLING);
    std::iter::once(text).chain(inner).map(str::to_owned).collect()
}
