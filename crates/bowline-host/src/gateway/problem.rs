//! Problems of a configuration: those that disable one server, and those that prevent a start.

use bowline_config::{Config, ConfigError};
use std::fmt;

/// A part of the configuration that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The part of the configuration, such as `servers.files` or `audit`.
    pub about: String,
    /// What is wrong.
    pub message: String,
}

impl Problem {
    pub(super) fn new(about: impl Into<String>, message: impl fmt::Display) -> Self {
        let about = about.into();
        Self { message: format!("{about}: {message}"), about }
    }

    pub(super) fn server(name: &str, message: impl fmt::Display) -> Self {
        Self::new(format!("servers.{name}"), message)
    }
}

impl From<&ConfigError> for Problem {
    fn from(error: &ConfigError) -> Self {
        Self { about: error.field.clone(), message: error.to_string() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Why a gateway cannot be built, or a new configuration cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayError {
    problems: Vec<Problem>,
}

impl GatewayError {
    pub(super) fn new(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    pub(super) fn of(about: &str, message: impl fmt::Display) -> Self {
        Self::new(vec![Problem::new(about, message)])
    }

    /// Returns all problems.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for GatewayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if place == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for GatewayError {}

/// Returns the errors that may have lost a rule, the token or the audit log. With less protection than intended, nothing is
/// started.
pub(super) fn fatal(config: &Config) -> Vec<Problem> {
    config.errors.iter().filter(|error| may_lose_protection(error)).map(Problem::from).collect()
}

/// The mistakes for which a configuration does not take the place of one that works: those, and whole files that are lost.
pub(super) fn refused(config: &Config) -> Vec<Problem> {
    let is_refused = |error: &&ConfigError| error.field.is_empty() || may_lose_protection(error);
    config.errors.iter().filter(is_refused).map(Problem::from).collect()
}

fn may_lose_protection(error: &ConfigError) -> bool {
    let section = error.field.split(['.', '[']).next().unwrap_or_default();
    match section {
        "rules" | "gateway" | "audit" | "include" => true,
        // A limit to what servers may use. A provider or a model that is lost is just not asked.
        "sampling" => error
            .field
            .strip_prefix("sampling.")
            .is_some_and(|setting| !setting.starts_with("models") && !setting.starts_with("providers")),
        // Only files in this notation hold rules.
        "" => error.origin.file.extension().is_some_and(|extension| extension == "toml"),
        _ => false,
    }
}

/// The sections that are not about servers.
const SECTIONS: [&str; 6] = ["gateway", "sampling", "audit", "inspector", "disclosure", "inputs"];

/// The mistake in what some file says of a server, if there is one. What was meant by it, such as a tool that is not to be
/// shown, would be missing.
pub(super) fn about_server<'a>(config: &'a Config, name: &str) -> Option<&'a ConfigError> {
    config.errors.iter().find(|error| {
        let behind = behind_parents(&error.field).and_then(|rest| rest.strip_prefix(name));
        behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(['.', '[']))
    })
}

/// What comes in a path behind that under which servers are.
fn behind_parents(field: &str) -> Option<&str> {
    let of_project = field.strip_prefix("projects[").and_then(|rest| rest.split_once("].mcpServers."));
    if let Some((_, rest)) = of_project {
        return Some(rest);
    }
    if let Some(rest) = field.strip_prefix("mcp.servers.") {
        return Some(rest);
    }
    let (section, rest) = field.split_once('.')?;
    (!SECTIONS.contains(&section)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_config::Origin;
    use std::path::Path;

    fn error(file: &str, field: &str) -> ConfigError {
        ConfigError {
            origin: Origin::start(Path::new(file)),
            field: field.to_owned(),
            message: "expected".to_owned(),
            help: None,
        }
    }

    #[test]
    fn errors_that_weaken_protection_are_fatal() {
        for (file, field, is_fatal) in [
            ("bowline.toml", "rules[0].effect", true),
            ("bowline.toml", "gateway.token_env", true),
            ("bowline.toml", "audit.file", true),
            ("bowline.toml", "include", true),
            ("bowline.toml", "", true),
            ("mcp.json", "", false),
            ("bowline.toml", "servers.rules", false),
            ("bowline.toml", "sampling.models", false),
            ("bowline.toml", "sampling.max_tokens_per_hour", true),
            ("mcp.json", "mcpServers.a.args", false),
        ] {
            let config = Config { errors: vec![error(file, field)], ..Config::default() };
            assert_eq!(fatal(&config).len(), usize::from(is_fatal), "{file} {field}");
        }
    }

    #[test]
    fn an_error_belongs_to_the_server_it_names() {
        let config =
            Config { errors: vec![error("mcp.json", "mcpServers.a.b.args[0]")], ..Config::default() };
        for (name, concerns) in [("a.b", true), ("a", true), ("a.b.args", true), ("b", false), ("a.", false)]
        {
            assert_eq!(about_server(&config, name).is_some(), concerns, "{name}");
        }
        for field in [
            "servers.a.deny",
            "context_servers.a",
            "extensions.a.envs",
            "mcp.servers.a.args[0]",
            "projects[\"/srv/my.shop\"].mcpServers.a.args",
        ] {
            let config = Config { errors: vec![error("any.json", field)], ..Config::default() };
            assert!(about_server(&config, "a").is_some(), "{field}");
            assert!(about_server(&config, "b").is_none(), "{field}");
        }
        let config = Config { errors: vec![error("bowline.toml", "sampling.models")], ..Config::default() };
        assert_eq!(about_server(&config, "models"), None);
    }
}
