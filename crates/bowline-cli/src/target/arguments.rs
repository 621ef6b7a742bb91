//! Declares the options of a connection and of a request, as arguments of commands, and parses their values.

use crate::failure::Failure;
use bowline_types::{LoggingLevel, Root, meta::validate_key};
use clap::Args;
use serde_json::Value;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

/// A target and its connection options.
#[derive(Args, Debug)]
pub(crate) struct TargetArguments {
    /// A configured server, a built-in server, or a URL [default: `up`, your running gateway]
    #[arg(value_name = "TARGET", conflicts_with = "program")]
    pub(super) target: Option<String>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
}

/// Connection options, for commands whose first word is the target unless a program is given.
#[derive(Args, Debug)]
pub(crate) struct ConnectionArguments {
    /// A program to start, with its arguments, instead of TARGET
    #[arg(last = true, value_name = "PROGRAM")]
    pub(super) program: Vec<OsString>,
    /// Send this HTTP header; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = header, help_heading = "Connection options")]
    pub(super) header: Vec<(String, String)>,
    /// Send the bearer token in this environment variable
    #[arg(long, value_name = "VARIABLE", help_heading = "Connection options")]
    pub(super) bearer_env: Option<String>,
    /// Use this account of the server, from `bowline login --account`
    #[arg(long, value_name = "NAME", help_heading = "Connection options")]
    pub(super) account: Option<String>,
    /// Expose this directory to the server as a root; can be repeated
    #[arg(long = "root", value_name = "DIR", help_heading = "Connection options")]
    pub(super) roots: Vec<PathBuf>,
    /// How long to wait for a response or a progress notification: `500ms`, `10s`, `5m`
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Connection options")]
    pub(super) timeout: Option<Duration>,
}

/// How the client handles questions and log messages of the server.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Interaction {
    /// Print log messages of the server at this level and above: debug, info, notice, warning, error, critical, alert, emergency
    #[arg(long, value_name = "LEVEL", help_heading = "Connection options")]
    pub(super) log_level: Option<LoggingLevel>,
    /// Answer elicitation and sampling requests from this JSON file; `-` is standard input
    #[arg(long, value_name = "FILE", help_heading = "Connection options")]
    pub(super) answers: Option<PathBuf>,
}

/// Options of a single request.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RequestOptions {
    /// Add to the `_meta` of the request: NAME=TEXT, NAME:=JSON, or a JSON object; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = meta)]
    pub(super) meta: Vec<MetaEntries>,
}

/// The `_meta` members added by one option.
#[derive(Clone, Debug)]
pub(super) struct MetaEntries(pub(super) Vec<(String, Value)>);

fn meta(text: &str) -> Result<MetaEntries, String> {
    let invalid = |error: serde_json::Error| format!("invalid JSON: {error}");
    let entries: Vec<(String, Value)> = if text.starts_with('{') {
        serde_json::from_str::<serde_json::Map<String, Value>>(text).map_err(invalid)?.into_iter().collect()
    } else {
        let (name, value) = text.split_once('=').ok_or("expected NAME=TEXT, NAME:=JSON or a JSON object")?;
        match name.strip_suffix(':') {
            Some(name) => vec![(name.to_owned(), serde_json::from_str(value).map_err(invalid)?)],
            None => vec![(name.to_owned(), value.into())],
        }
    };
    for (name, _) in &entries {
        validate_key(name).map_err(|error| error.to_string())?;
    }
    Ok(MetaEntries(entries))
}

/// Returns the secrets of a header: its value, and the token behind a scheme such as `Bearer`.
pub(super) fn header_secrets(value: &str) -> impl Iterator<Item = String> {
    let token = value.split_once(' ').map(|(_, token)| token.trim());
    std::iter::once(value).chain(token).map(str::to_owned)
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Parses a duration such as `500ms`, `10s`, `5m` or `1h`; a number alone is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    bowline_config::parse_duration(text)
        .ok_or_else(|| "expected a duration such as 500ms, 10s, 5m or 1h".to_owned())
}

pub(super) fn root(folder: &Path) -> Result<Root, Failure> {
    let shown = folder.display();
    let path = folder
        .canonicalize()
        .map_err(|error| Failure::misused(format!("cannot use root `{shown}`: {error}")))?;
    let text = path.to_str().ok_or_else(|| Failure::misused(format!("root `{shown}` is not valid UTF-8")))?;
    let mut root = Root::of_path(text);
    root.name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Endpoint, Secrets, Target};
    use bowline_client::Command;

    #[test]
    fn metadata_is_text_json_or_an_object() {
        let read =
            |text: &str| meta(text).map(|entries| Value::Object(entries.0.into_iter().collect()).to_string());
        assert_eq!(read("example.com/a=1"), Ok(r#"{"example.com/a":"1"}"#.to_owned()));
        assert_eq!(read("a:=[1]"), Ok(r#"{"a":[1]}"#.to_owned()));
        assert_eq!(read(r#"{"a":1,"b":"x"}"#), Ok(r#"{"a":1,"b":"x"}"#.to_owned()));
        for wrong in ["a", "a:=x", "{", "/=1", "a b=1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_secrets_of_a_header_are_its_value_and_its_token() {
        assert_eq!(header_secrets("Bearer abc").collect::<Vec<_>>(), ["Bearer abc", "abc"]);
        assert_eq!(header_secrets("abc").collect::<Vec<_>>(), ["abc"]);
        let target = Target {
            secrets: Secrets(vec!["abc".into()]),
            ..Target::new("x", Endpoint::Program(Command::new("x")))
        };
        assert!(!format!("{target:?}").contains("abc"));
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        for wrong in ["", "0s", "s", "-1s", "1 week", "99999999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_header_is_split_at_the_first_equals_sign() {
        assert_eq!(header("X-Key = a=b"), Ok(("X-Key".to_owned(), "a=b".to_owned())));
        assert!(header("X-Key").is_err());
    }
}
