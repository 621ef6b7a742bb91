//! Generates the reference page of `bowline.toml` and tests it against the parser.

use std::fmt::Write as _;

use super::keys::{Absent, SECTIONS, Section};

const INTRO: &str = "\
# Configuration

The keys of `bowline.toml`, table by table. This page is generated from the source, and tests
compare it with the parser: every key is listed, every example is valid, and every default is the real one.

Strings can contain variables: `${NAME}` and `${env:NAME}` are environment variables, `${NAME:-text}` has a default, and the user is
asked for `${input:NAME}`. In a pattern, `*` matches anything. Unknown keys are reported and ignored, except in rules, where a
misspelled condition would match too much.
";

/// Returns the reference page in Markdown.
///
/// ```
/// let page = bowline_config::reference();
/// assert!(page.contains("| `startup_timeout` |"));
/// ```
pub fn reference() -> String {
    let mut page = INTRO.to_owned();
    for section in SECTIONS {
        let heading = match (section.header, section.condition) {
            ("", _) => "Top level".to_owned(),
            (header, None) => format!("`{header}`"),
            (header, Some(condition)) => format!("`{header}` {condition}"),
        };
        let _ = writeln!(page, "\n## {heading}\n\n{}\n", section.about);
        page.push_str("| key | value | default | description |\n| --- | --- | --- | --- |\n");
        for key in section.keys {
            let absent = match key.absent {
                Absent::Required => "required".to_owned(),
                Absent::Default(value) => format!("`{value}`"),
                Absent::Nothing => String::new(),
            };
            let _ = writeln!(page, "| `{}` | {} | {absent} | {} |", key.name, key.kind, key.about);
        }
        let _ = writeln!(page, "\n```toml\n{}```", example(section));
    }
    page
}

/// Returns the table with an example for each key. Of keys that exclude each other, only the first is shown.
fn example(section: &Section) -> String {
    let mut text = if section.header.is_empty() { String::new() } else { format!("{}\n", section.header) };
    for key in section.keys.iter().filter(|key| {
        !["key_file", "jwks_url", "introspection", "connect", "private_key", "assertion_file"]
            .contains(&key.name)
    }) {
        let _ = writeln!(text, "{} = {}", key.name, key.example);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::PathBuf;

    use super::super::fields::requested_keys;
    use super::super::{Config, Environment, Loader, NoticeKind, Scope, Source};
    use super::*;
    use expect_test::expect_file;

    /// Keys that the parser reads only to reject them with a hint.
    const REFUSED: [&str; 3] = ["api_key", "key", "token"];

    fn load(text: &str) -> Config {
        let files = BTreeMap::from([(PathBuf::from("bowline.toml"), text.to_owned())]);
        let environment = Environment::new([("HOME", "/srv/ada")]);
        let config = Loader::new(environment).source(Source::new("bowline.toml", Scope::User)).load(&files);
        assert!(config.errors.is_empty(), "{text}\n{:#?}", config.errors);
        let unknown = config.notices.iter().find(|notice| notice.kind == NoticeKind::Unknown);
        assert!(unknown.is_none(), "{text}\n{unknown:?}");
        config
    }

    /// Returns a file with one table that sets these keys to their examples.
    fn file(section: &Section, keys: &[&str]) -> String {
        let mut text = String::new();
        let own = section.header.is_empty() || section.beside.starts_with('[') || section.beside.is_empty();
        if own {
            text.push_str(section.beside);
        }
        let _ = writeln!(text, "{}", section.header);
        if !own {
            text.push_str(section.beside);
        }
        for key in section.keys {
            if matches!(key.absent, Absent::Required) || keys.contains(&key.name) {
                let _ = writeln!(text, "{} = {}", key.name, key.example);
            }
        }
        text
    }

    /// Explains a configuration without origins.
    fn explained(config: &Config) -> String {
        let Config { gateway, rules, sampling, audit, store, sessions, tasks, inspector, disclosure, .. } =
            config;
        let upstreams: Vec<_> = config.upstreams.iter().map(|one| (&one.launch, &one.settings)).collect();
        format!(
            "{gateway:?} {rules:?} {sampling:?} {audit:?} {store:?} {sessions:?} {tasks:?} {inspector:?} {disclosure:?} {upstreams:?}"
        )
    }

    /// Returns the path of a key, as in messages.
    fn path(section: &Section, name: &str) -> String {
        let table = section.header.trim_matches(['[', ']']);
        if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") }
    }

    #[test]
    fn the_parser_reads_exactly_the_keys_of_the_table() {
        requested_keys::forget();
        let mut known: BTreeSet<String> = [
            "servers",
            "inputs",
            "gateway",
            "rules",
            "sampling",
            "audit",
            "store",
            "sessions",
            "tasks",
            "inspector",
        ]
        .into_iter()
        .chain(["disclosure"])
        .map(Into::into)
        .collect();
        for section in SECTIONS {
            for key in section.keys {
                known.insert(path(section, key.name));
                load(&file(section, &[key.name]));
            }
        }
        let mut asked = requested_keys::all();
        asked.retain(|path| !REFUSED.iter().any(|name| *path == format!("sampling.providers.NAME.{name}")));
        // A subtable is also read as a member of its parent.
        asked.retain(|path| {
            !path.starts_with("sampling.providers.cloud.") && !path.starts_with("sampling.providers.local.")
        });
        assert_eq!(asked.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new(), "not in the table");
        assert_eq!(known.difference(&asked).collect::<Vec<_>>(), Vec::<&String>::new(), "not in the parser");
    }

    #[test]
    fn defaults_equal_the_behavior_without_a_key() {
        for section in SECTIONS {
            for key in section.keys {
                let Absent::Default(value) = key.absent else { continue };
                let without = file(section, &[]);
                let with = format!("{without}{} = {value}\n", key.name);
                assert_eq!(explained(&load(&with)), explained(&load(&without)), "{with}");
            }
        }
    }

    #[test]
    fn examples_change_something() {
        for section in SECTIONS.iter().filter(|section| !matches!(section.header, "" | "[inputs.NAME]")) {
            for key in
                section.keys.iter().filter(|key| key.name != "models" && key.absent != Absent::Required)
            {
                let changed = load(&file(section, &[key.name]));
                let before = load(&file(section, &[]));
                let is_seen = explained(&changed) != explained(&before) || key.name == "enabled";
                assert!(is_seen, "{} of {}", key.name, section.header);
            }
        }
    }

    #[test]
    fn the_page_is_the_one_in_the_book() {
        expect_file!["../../../docs/reference/configuration.md"].assert_eq(&reference());
    }
}
