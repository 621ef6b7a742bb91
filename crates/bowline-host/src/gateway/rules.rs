//! Builds the policy from the configured rules.

use bowline_config::{Config, RuleConfig};
use bowline_policy::{ArgumentTest, Audience, Consent, Pattern, Policy, Rule};

/// What decides about consent beside the rules. It stays the same while the gateway runs.
#[derive(Debug, Default)]
pub(super) struct ConsentSettings {
    pub(super) consent: Consent,
    pub(super) audience: Audience,
    pub(super) without_asking: Vec<Rule>,
}

/// The policy that a configuration describes: its rules in order, and behind them the tools of servers that need no
/// question.
pub(super) fn policy(config: &Config, consenting: &ConsentSettings) -> Policy {
    let own = config.rules.iter().map(rule);
    let approved = config.upstreams.iter().flat_map(|entry| {
        let origin = entry.origins.get("auto_approve").unwrap_or(&entry.origin).short();
        entry.settings.auto_approve.iter().map(move |tool| {
            Rule::allow().server(Pattern::exact(&entry.name)).tool(tool.clone()).origin(origin.clone())
        })
    });
    Policy::new(own.chain(approved))
        .consent(consenting.consent)
        .without_asking(consenting.without_asking.iter().cloned())
}

fn rule(config: &RuleConfig) -> Rule {
    let origin = match &config.reason {
        Some(reason) => format!("{}: {reason}", config.origin.short()),
        None => config.origin.short(),
    };
    let mut rule = Rule::new(config.effect).origin(origin);
    if let Some(action) = config.action {
        rule = rule.action(action);
    }
    if let Some(server) = &config.server {
        rule = rule.server(server.clone());
    }
    if let Some(tool) = &config.tool {
        rule = rule.tool(tool.clone());
    }
    if let Some(caller) = &config.caller {
        rule = rule.caller(caller.clone());
    }
    if let Some(principal) = &config.principal {
        rule = rule.principal(principal.clone());
    }
    if let Some(issuer) = &config.issuer {
        rule = rule.issuer(issuer.clone());
    }
    if let Some(client) = &config.client {
        rule = rule.client(client.clone());
    }
    for scope in &config.scopes {
        rule = rule.scope(scope.clone());
    }
    for (name, pattern) in &config.claims {
        rule = rule.claim(name, pattern.clone());
    }
    for (place, pattern) in &config.arguments {
        let test = ArgumentTest::Matches(pattern.clone());
        rule = match place.as_str() {
            "*" => rule.any_argument(test),
            pointer if pointer.starts_with('/') => rule.argument(pointer, test),
            name => rule.argument(format!("/{}", name.replace('~', "~0").replace('/', "~1")), test),
        };
    }
    let hints = &config.annotations;
    let set = |rule: Rule, hint: Option<bool>, with: fn(Rule, bool) -> Rule| match hint {
        Some(value) => with(rule, value),
        None => rule,
    };
    rule = set(rule, hints.read_only, Rule::read_only);
    rule = set(rule, hints.destructive, Rule::destructive);
    rule = set(rule, hints.idempotent, Rule::idempotent);
    set(rule, hints.open_world, Rule::open_world)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_config::{Environment, Loader, Scope, Source};
    use bowline_policy::{Action, Caller, Effect, Request, Trust};
    use bowline_types::RawJson;
    use std::{collections::BTreeMap, path::PathBuf};

    fn load(text: &str) -> Policy {
        let files = BTreeMap::from([(PathBuf::from("bowline.toml"), text.to_owned())]);
        let loader = Loader::new(Environment::new([("HOME", "/")]));
        let config = loader.source(Source::new("bowline.toml", Scope::User)).load(&files);
        assert_eq!(config.errors, []);
        policy(&config, &ConsentSettings::default())
    }

    fn decide(
        policy: &Policy,
        action: Action,
        server: &str,
        name: &str,
        arguments: &str,
    ) -> (Effect, String) {
        let arguments = RawJson::parse(arguments.to_owned()).unwrap();
        let decision = policy.decide(&Request {
            action,
            server,
            trust: Trust::Untrusted,
            caller: Caller::default(),
            name,
            annotations: None,
            arguments: Some(&arguments),
        });
        (decision.effect, decision.reason)
    }

    #[test]
    fn rules_decide_as_they_are_written() {
        let policy = load(
            r#"
            [[rules]]
            effect = "deny"
            server = "files"
            tool = "write_*"
            arguments = { "a/b" = "/etc/*", "*" = "*passwd*" }
            reason = "not these"

            [[rules]]
            effect = "allow"
            action = "sample"
            server = "notes"

            [[rules]]
            effect = "allow"
            server = "files"
            arguments = { "/to/host" = "localhost" }
            "#,
        );
        let call = |name, arguments| decide(&policy, Action::Call, "files", name, arguments);
        let denied = r#"{"a/b":"/etc/x","c":["passwd"]}"#;
        assert_eq!(
            call("write_all", denied),
            (Effect::Deny, "rule: deny files write_* (bowline.toml:2: not these)".to_owned())
        );
        assert_eq!(call("write_all", r#"{"a/b":"/etc/x"}"#).0, Effect::Ask);
        assert_eq!(call("read", r#"{"to":{"host":"localhost"}}"#).0, Effect::Allow);
        assert_eq!(call("read", r#"{"to":{"host":"example.com"}}"#).0, Effect::Ask);
        assert_eq!(decide(&policy, Action::Sample, "notes", "", "{}").0, Effect::Allow);
        assert_eq!(decide(&policy, Action::Call, "notes", "read", "{}").0, Effect::Ask);
    }

    #[test]
    fn auto_approve_applies_after_the_rules() {
        let policy = load(
            r#"
            [servers.files]
            command = "files"
            auto_approve = ["read_*", "rm"]

            [servers.other]
            command = "other"

            [[rules]]
            effect = "deny"
            tool = "rm"
            "#,
        );
        let call = |server, name| decide(&policy, Action::Call, server, name, "{}").0;
        assert_eq!(call("files", "read_file"), Effect::Allow);
        assert_eq!(call("files", "rm"), Effect::Deny);
        assert_eq!(call("other", "read_file"), Effect::Ask);
        assert_eq!(call("files", "write_file"), Effect::Ask);
    }
}
