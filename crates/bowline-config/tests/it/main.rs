//! Configuration files of all dialects, loaded.
#![expect(clippy::needless_raw_string_hashes, reason = "snapshots are written with hashes, needed or not")]

mod dialects;
mod merge;
mod mistakes;
mod syntax;
mod variables;

use std::collections::BTreeMap;
use std::path::PathBuf;

use bowline_config::{Config, Environment, Loader, Platform, Scope, Source};
use expect_test::Expect;

/// An environment that has what the fixtures need.
fn environment() -> Environment {
    let variables = [
        ("HOME", "/srv/ada"),
        ("API_KEY", "canary-api-key"),
        ("CRM_SECRET", "canary-crm"),
        ("FIGMA_TOKEN", "canary-figma"),
        ("SEARCH_KEY", "canary-search"),
        ("DB_PASSWORD", "canary-db"),
    ];
    let inputs = BTreeMap::from(
        [
            ("perplexity-key", "canary-input"),
            ("tracker_token", "canary-tracker"),
            ("GITHUB_PERSONAL_ACCESS_TOKEN", "canary-keyring"),
            ("source_path", "/srv/ada/data"),
            ("X-API-Key", "canary-header"),
            ("token", "canary-curly"),
        ]
        .map(|(id, value)| (id.to_owned(), value.to_owned())),
    );
    Environment::new(variables)
        .with_workspace("/srv/ada/shop")
        .with_folder("web", "/srv/ada/shop/web")
        .with_platform(Platform::Linux)
        .with_inputs(inputs)
}

/// Loads texts as files of the given names, the later ones with more weight.
fn load(files: &[(&str, Scope, &str)]) -> Config {
    load_in(environment(), files)
}

fn load_in(environment: Environment, files: &[(&str, Scope, &str)]) -> Config {
    let texts: BTreeMap<PathBuf, String> =
        files.iter().map(|(path, _, text)| (PathBuf::from(path), (*text).to_owned())).collect();
    let sources = files.iter().map(|(path, scope, _)| Source::new(*path, *scope));
    Loader::new(environment).sources(sources).load(&texts)
}

/// The servers alone, explained; then notices and errors.
fn show(config: &Config) -> String {
    let explained = bowline_config::explain(config);
    let servers = explained.split("[gateway]").next().unwrap_or_default().trim_end();
    let notices = config.notices.iter().map(|notice| format!("{:?}: {notice}", notice.kind));
    let errors = config.errors.iter().map(|error| format!("error: {error}"));
    let parts: Vec<String> = std::iter::once(servers.to_owned()).chain(notices).chain(errors).collect();
    let text = parts.join("\n");
    // Defaults are the same everywhere and only noise here.
    let lines: Vec<&str> = text.lines().filter(|line| !line.ends_with("# default")).collect();
    lines.join("\n")
}

/// What is reported about a file: its errors, then its notices.
fn check(path: &str, text: &str, expected: &Expect) {
    let config = load(&[(path, Scope::User, text)]);
    let errors = config.errors.iter().map(|error| format!("{error}\n"));
    let notices = config.notices.iter().map(|notice| format!("({:?}) {notice}\n", notice.kind));
    let reported = errors.chain(notices).collect::<Vec<_>>().concat();
    // V-57
    assert!(!reported.contains("s3cret"), "a secret is shown: {reported}");
    expected.assert_eq(&reported);
}
