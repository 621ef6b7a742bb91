//! Decides a request by the first matching rule, or by default.

use bowline_types::{RawJson, ToolAnnotations};
use serde::{Deserialize, Serialize};

use super::consent::Consent;
use super::rule::{Effect, Rule};
use super::spelling;
use super::token::Token;
use super::tree::Tree;

/// An action to decide about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// A tool is called.
    Call,
    /// A resource is read.
    Read,
    /// A prompt is fetched.
    Prompt,
    /// The server requests sampling.
    Sample,
    /// The server asks the user to fill in a form.
    Form,
    /// The server asks the user to open a URL.
    Visit,
    /// The server asks for the roots.
    Roots,
}

impl Action {
    /// All actions.
    pub const ALL: [Self; 7] =
        [Self::Call, Self::Read, Self::Prompt, Self::Sample, Self::Form, Self::Visit, Self::Roots];

    /// Returns the name in files and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Read => "read",
            Self::Prompt => "prompt",
            Self::Sample => "sample",
            Self::Form => "form",
            Self::Visit => "visit",
            Self::Roots => "roots",
        }
    }

    /// Returns whether the action is about a URI, which has several spellings.
    pub(super) const fn is_about_uri(self) -> bool {
        matches!(self, Self::Read | Self::Visit)
    }

    /// Returns the protocol method of the action.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Call => "tools/call",
            Self::Read => "resources/read",
            Self::Prompt => "prompts/get",
            Self::Sample => "sampling/createMessage",
            Self::Form | Self::Visit => "elicitation/create",
            Self::Roots => "roots/list",
        }
    }
}

/// Whether the user trusts a server. This is configured, and the server cannot influence it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Trust {
    /// The annotations of its tools are trusted.
    Trusted,
    /// The annotations of its tools are shown, but allow nothing.
    #[default]
    Untrusted,
}

/// The caller of an action.
#[derive(Clone, Copy, Debug, Default)]
pub struct Caller<'a> {
    /// The name that the client reports.
    pub client: Option<&'a str>,
    /// Whom sessions and remembered answers belong to, if the caller was authenticated.
    pub principal: Option<&'a str>,
    /// The access token.
    pub token: Token<'a>,
}

/// A request to the policy.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The action.
    pub action: Action,
    /// The server, by its configured name.
    pub server: &'a str,
    /// Whether the user trusts the server.
    pub trust: Trust,
    /// The caller.
    pub caller: Caller<'a>,
    /// The tool, by its name on the server; or the prompt, the URI, the URL, or an empty string.
    pub name: &'a str,
    /// The annotations of the tool.
    pub annotations: Option<&'a ToolAnnotations>,
    /// The arguments of the call.
    pub arguments: Option<&'a RawJson>,
}

/// What made a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecidedBy {
    /// A rule of the policy.
    Rule,
    /// The default of the policy.
    Default,
    /// A stored answer.
    Remembered,
    /// The gate: the user or a program.
    Gate,
    /// The limit on questions.
    Limit,
    /// A check of the request: an invalid URL, a form that asks for a secret, an unreadable file.
    Check,
}

impl DecidedBy {
    /// Returns the name in logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Default => "default",
            Self::Remembered => "remembered",
            Self::Gate => "gate",
            Self::Limit => "limit",
            Self::Check => "check",
        }
    }
}

/// The decision of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The effect.
    pub effect: Effect,
    /// A rule, the default, or a check of the arguments.
    pub by: DecidedBy,
    /// The rule and its position, or the reason for the default.
    pub reason: String,
    /// Whether the rule that decided has conditions on arguments.
    pub by_arguments: bool,
    /// The position of the rule in [`Policy::rules`], if one of them decided.
    pub rule: Option<usize>,
}

/// An ordered list of rules, followed by a default.
///
/// If no rule matches, read-only tools of trusted servers, resources and prompts are allowed. Everything else asks.
///
/// ```
/// use bowline_policy::{Action, Caller, Effect, Policy, Request, Rule, Trust};
///
/// let policy = Policy::new([Rule::deny().tool("delete_*").origin("bowline.toml:3")]);
/// let decision = policy.decide(&Request {
///     action: Action::Call,
///     server: "files",
///     trust: Trust::Trusted,
///     caller: Caller::default(),
///     name: "delete_all",
///     annotations: None,
///     arguments: None,
/// });
/// assert_eq!(decision.effect, Effect::Deny);
/// assert_eq!(decision.reason, "rule: deny * delete_* (bowline.toml:3)");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    rules: Vec<Rule>,
    consent: Consent,
    unasked: Vec<Rule>,
}

impl Policy {
    /// Creates a policy. The first rule that matches decides.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self { rules: rules.into_iter().collect(), ..Self::default() }
    }

    /// Sets who consents to calls that no rule decides. Default: [`Consent::Ask`].
    #[must_use]
    pub fn consent(mut self, consent: Consent) -> Self {
        self.consent = consent;
        self
    }

    /// Allows requests that match these rules and would otherwise ask. Denied requests stay denied.
    #[must_use]
    pub fn without_asking(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.unasked = rules.into_iter().collect();
        self
    }

    /// Returns who consents to calls that no rule decides.
    pub fn consents(&self) -> Consent {
        self.consent
    }

    /// Returns the rules that allow what would otherwise ask.
    pub fn unasked(&self) -> &[Rule] {
        &self.unasked
    }

    /// Returns the rules in order.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Decides a request. The decision depends only on the request and the policy.
    pub fn decide(&self, request: &Request<'_>) -> Decision {
        self.consented(request, self.decide_by_rules(request))
    }

    /// Decides about a call whose arguments are not known. Denies only if the call would be denied with any arguments.
    pub(super) fn decide_without_arguments(&self, request: &Request<'_>) -> Decision {
        for (place, rule) in self.rules.iter().enumerate().filter(|(_, rule)| rule.fits(request)) {
            let by_arguments = rule.looks_at_arguments();
            let (effect, by, reason) = (rule.effect(), DecidedBy::Rule, format!("rule: {rule}"));
            let decision = Decision { effect, by, reason, by_arguments, rule: Some(place) };
            let decision = self.consented(request, decision);
            if !by_arguments || decision.effect != Effect::Deny {
                return decision;
            }
        }
        self.consented(request, decide_by_default(request))
    }

    /// Applies what decides about questions.
    fn consented(&self, request: &Request<'_>, decision: Decision) -> Decision {
        if decision.effect != Effect::Ask {
            return decision;
        }
        if let Some(rule) = self.unasked.iter().find(|rule| rule.fits(request)) {
            let reason = format!("rule: {rule}");
            let (effect, by) = (Effect::Allow, DecidedBy::Rule);
            return Decision { effect, by, reason, by_arguments: false, rule: None };
        }
        // Requests of servers (forms, URLs, sampling, roots) are not calls, and are not affected.
        let is_call = matches!(request.action, Action::Call | Action::Read | Action::Prompt);
        match self.consent {
            Consent::Client if is_call && decision.by == DecidedBy::Default => {
                let reason =
                    "no rule matches, and the client asks its own user (consent = \"client\")".to_owned();
                Decision { effect: Effect::Allow, reason, ..decision }
            }
            Consent::Deny if is_call => {
                let reason = format!("{}; consent = \"deny\" refuses what would be asked", decision.reason);
                Decision { effect: Effect::Deny, reason, ..decision }
            }
            Consent::Client | Consent::Ask | Consent::Deny => decision,
        }
    }

    fn decide_by_rules(&self, request: &Request<'_>) -> Decision {
        let nothing = RawJson::empty_object();
        let mut arguments = None;
        let ambiguous = if request.action.is_about_uri() { spelling::ambiguity(request.name) } else { None };
        for (place, rule) in self.rules.iter().enumerate() {
            if let Some(ambiguity) = ambiguous
                && rule.looks_at_uri(request)
            {
                let reason = format!("the URI can be read in two ways ({ambiguity}), see rule: {rule}");
                let (effect, by) = (Effect::Deny, DecidedBy::Check);
                return Decision { effect, by, reason, by_arguments: false, rule: Some(place) };
            }
            if !rule.fits(request) {
                continue;
            }
            if rule.looks_at_arguments() {
                let arguments =
                    arguments.get_or_insert_with(|| Tree::of(request.arguments.unwrap_or(&nothing)));
                // A server that reads the other of two members would act on a value that no rule has seen.
                if let Some(ambiguity) = arguments.ambiguity() {
                    let reason =
                        format!("the arguments can be read in two ways ({ambiguity}), see rule: {rule}");
                    return Decision {
                        effect: Effect::Deny,
                        by: DecidedBy::Check,
                        reason,
                        by_arguments: true,
                        rule: Some(place),
                    };
                }
                if !rule.fits_arguments(arguments) {
                    continue;
                }
            }
            let (effect, by_arguments) = (rule.effect(), rule.looks_at_arguments());
            let reason = format!("rule: {rule}");
            return Decision { effect, by: DecidedBy::Rule, reason, by_arguments, rule: Some(place) };
        }
        decide_by_default(request)
    }
}

fn decide_by_default(request: &Request<'_>) -> Decision {
    let (effect, why) = default(request);
    let reason = format!("no rule matches, and {why}");
    Decision { effect, by: DecidedBy::Default, reason, by_arguments: false, rule: None }
}

fn default(request: &Request<'_>) -> (Effect, &'static str) {
    match request.action {
        Action::Call => {
            let claims_read_only = request.annotations.is_some_and(|hints| {
                hints.read_only_hint == Some(true) && hints.destructive_hint != Some(true)
            });
            match (claims_read_only, request.trust) {
                (true, Trust::Trusted) => (Effect::Allow, "read-only tools of trusted servers are allowed"),
                (true, Trust::Untrusted) => {
                    (Effect::Ask, "the server is not trusted to declare tools read-only")
                }
                (false, _) => (Effect::Ask, "this tool may change things"),
            }
        }
        Action::Read | Action::Prompt => (Effect::Allow, "resources and prompts are allowed"),
        Action::Sample => (Effect::Ask, "the server wants to use the model"),
        Action::Form | Action::Visit => (Effect::Ask, "questions from servers always need approval"),
        Action::Roots => (Effect::Ask, "the server wants to see your folders"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArgumentTest;

    fn call<'a>(server: &'a str, name: &'a str) -> Request<'a> {
        Request {
            action: Action::Call,
            server,
            trust: Trust::Untrusted,
            caller: Caller::default(),
            name,
            annotations: None,
            arguments: None,
        }
    }

    fn effect(rules: &[Rule], request: &Request<'_>) -> Effect {
        Policy::new(rules.to_vec()).decide(request).effect
    }

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn the_first_matching_rule_decides() {
        let rules = [
            Rule::deny().server("files").tool("delete_*").origin("a.toml:1"),
            Rule::allow().server("files").origin("a.toml:5"),
            Rule::ask().server("*"),
        ];
        assert_eq!(effect(&rules, &call("files", "delete_all")), Effect::Deny);
        assert_eq!(effect(&rules, &call("files", "read")), Effect::Allow);
        assert_eq!(effect(&rules, &call("mail", "delete_all")), Effect::Ask);
        let decision = Policy::new(rules).decide(&call("files", "read"));
        assert_eq!(
            (decision.by, decision.reason.as_str()),
            (DecidedBy::Rule, "rule: allow files * (a.toml:5)")
        );
    }

    #[test]
    fn hints_loosen_nothing_unless_the_server_is_trusted() {
        // proves: TOOL-42
        // V-104
        let read_only = ToolAnnotations::new().read_only_hint(true);
        let both = read_only.clone().destructive_hint(true);
        let asked = |trust, annotations| Request { trust, annotations, ..call("files", "read") };
        assert_eq!(effect(&[], &asked(Trust::Trusted, Some(&read_only))), Effect::Allow);
        assert_eq!(effect(&[], &asked(Trust::Untrusted, Some(&read_only))), Effect::Ask);
        assert_eq!(effect(&[], &asked(Trust::Trusted, Some(&both))), Effect::Ask);
        assert_eq!(effect(&[], &asked(Trust::Trusted, None)), Effect::Ask);
        let by_hint = [Rule::allow().read_only(true), Rule::deny()];
        assert_eq!(effect(&by_hint, &asked(Trust::Trusted, Some(&read_only))), Effect::Allow);
        assert_eq!(effect(&by_hint, &asked(Trust::Untrusted, Some(&read_only))), Effect::Deny);
    }

    #[test]
    fn absent_hints_mean_the_worst() {
        // proves: TOOL-43
        let hints = [
            Rule::ask().read_only(false),
            Rule::ask().destructive(true),
            Rule::ask().idempotent(false),
            Rule::ask().open_world(true),
        ];
        for rule in hints {
            assert_eq!(effect(&[rule.clone(), Rule::deny()], &call("a", "b")), Effect::Ask, "{rule:?}");
        }
        let mild =
            ToolAnnotations::new().destructive_hint(false).open_world_hint(false).idempotent_hint(true);
        let request = Request { annotations: Some(&mild), ..call("a", "b") };
        let rule = Rule::deny().destructive(true).open_world(true);
        assert_eq!(effect(&[rule, Rule::ask().idempotent(true), Rule::deny()], &request), Effect::Ask);
    }

    #[test]
    fn client_names_do_not_weaken_rules() {
        // proves: META-24
        // V-104
        let rules = [Rule::deny().caller("evil*"), Rule::allow().caller("admin"), Rule::ask()];
        let by = |client, principal| Request {
            caller: Caller { client, principal, token: Token::None },
            ..call("a", "b")
        };
        assert_eq!(effect(&rules, &by(Some("admin"), None)), Effect::Ask);
        assert_eq!(effect(&rules, &by(Some("x"), Some("admin"))), Effect::Allow);
        assert_eq!(effect(&rules, &by(Some("evil-1"), Some("admin"))), Effect::Deny);
        assert_eq!(effect(&rules, &by(None, None)), Effect::Ask);
    }

    #[test]
    fn servers_and_tools_are_never_joined() {
        // V-102
        let names = ["", "a", "_", "a_", "_a", "__", "a__a", "a/", ".a", "-"];
        for (server, tool) in names.iter().flat_map(|server| names.map(|tool| (*server, tool))) {
            let rules = [Rule::allow().server(server).tool(tool), Rule::deny()];
            for (other, name) in names.iter().flat_map(|other| names.map(|name| (*other, name))) {
                let expected = if (other, name) == (server, tool) { Effect::Allow } else { Effect::Deny };
                assert_eq!(effect(&rules, &call(other, name)), expected, "{server} {tool} {other} {name}");
            }
        }
        assert_eq!(effect(&[Rule::allow().tool("read"), Rule::deny()], &call("a", "Read")), Effect::Deny);
    }

    #[test]
    fn arguments_are_found_by_pointer_and_anywhere() {
        let arguments = json(r#"{"path":"/srv/a","deep":[{"x":"secret.key"}],"n":1.0,"flag":true}"#);
        let request = Request { arguments: Some(&arguments), ..call("files", "read") };
        let holds = |rule: Rule| effect(&[rule, Rule::deny()], &request) == Effect::Ask;
        for test in [
            ArgumentTest::Present,
            ArgumentTest::Equals(json(r#""/srv/a""#)),
            ArgumentTest::Matches("/srv/*".into()),
            ArgumentTest::StartsWith("/s".into()),
            ArgumentTest::Within("/srv".into()),
        ] {
            assert!(holds(Rule::ask().argument("/path", test.clone())), "{test:?}");
            assert!(!holds(Rule::ask().argument("/nowhere", test.clone())), "{test:?}");
            assert!(holds(Rule::ask().any_argument(test.clone())), "{test:?}");
        }
        assert!(holds(Rule::ask().argument("/n", ArgumentTest::Equals(json("1")))));
        assert!(holds(Rule::ask().argument("/flag", ArgumentTest::Matches("tr*".into()))));
        assert!(holds(Rule::ask().argument("/deep/0", ArgumentTest::Equals(json(r#"{"x":"secret.key"}"#)))));
        assert!(holds(Rule::ask().any_argument(ArgumentTest::Matches("*.key".into()))));
        // Member names can carry data, too.
        assert!(holds(Rule::ask().any_argument(ArgumentTest::Matches("deep".into()))));
        assert!(!holds(Rule::ask().any_argument(ArgumentTest::Matches("*.pem".into()))));
    }

    #[test]
    fn a_number_is_the_same_however_it_is_written() {
        // V-105
        for port in ["22", "22.0", "2.2e1", "220E-1", "\"22\""] {
            let arguments = json(&format!(r#"{{"to":{{"port":{port}}}}}"#));
            let request = Request { arguments: Some(&arguments), ..call("net", "connect") };
            let test = || ArgumentTest::Matches("22".into());
            for rule in [Rule::deny().argument("/to/port", test()), Rule::deny().any_argument(test())] {
                assert_eq!(effect(&[rule], &request), Effect::Deny, "{port}");
            }
        }
        // A rule that allows must match the text and its normal form.
        let arguments = json(r#"{"n":0.1e9}"#);
        let request = Request { arguments: Some(&arguments), ..call("net", "send") };
        let rule = Rule::allow().argument("/n", ArgumentTest::Matches("0.*".into()));
        assert_eq!(effect(&[rule], &request), Effect::Ask);
    }

    #[test]
    fn ambiguous_arguments_are_denied_if_a_rule_reads_them() {
        // V-105
        let arguments = json(r#"{"path":"/etc/shadow","path":"/srv/a"}"#);
        let request = Request { arguments: Some(&arguments), ..call("files", "read") };
        let rule = Rule::allow().server("files").argument("/path", ArgumentTest::Within("/srv".into()));
        let decision = Policy::new([rule.clone()]).decide(&request);
        assert_eq!((decision.effect, decision.by), (Effect::Deny, DecidedBy::Check));
        assert_eq!(
            decision.reason,
            "the arguments can be read in two ways (two members named `path`), see rule: allow files *"
        );
        assert_eq!(effect(&[rule.server("mail"), Rule::allow()], &request), Effect::Allow);
    }

    #[test]
    fn a_call_with_unknown_arguments_is_denied_only_if_every_call_is() {
        let main = || ArgumentTest::Equals(json(r#""main""#));
        let on_main = |rule: Rule| rule.tool("build").argument("/branch", main());
        let deny = || Rule::deny().tool("build");
        let decide = |policy: Policy| policy.decide_without_arguments(&call("ci", "build")).effect;
        assert_eq!(decide(Policy::new([on_main(Rule::allow()), deny()])), Effect::Allow);
        assert_eq!(decide(Policy::new([on_main(Rule::ask()), deny()])), Effect::Ask);
        assert_eq!(decide(Policy::new([deny(), on_main(Rule::allow())])), Effect::Deny);
        // One of several calls is denied.
        assert_eq!(decide(Policy::new([on_main(Rule::deny()), Rule::allow()])), Effect::Allow);
        assert_eq!(decide(Policy::new([on_main(Rule::deny()), deny()])), Effect::Deny);
        assert_eq!(decide(Policy::new([on_main(Rule::allow()).server("other"), deny()])), Effect::Deny);
        // Without anybody to ask, only what is allowed counts.
        let unattended = |rules: Vec<Rule>| Policy::new(rules).consent(Consent::Deny);
        assert_eq!(decide(unattended(vec![])), Effect::Deny);
        assert_eq!(decide(unattended(vec![on_main(Rule::allow())])), Effect::Allow);
        assert_eq!(decide(unattended(vec![on_main(Rule::ask())])), Effect::Deny);
        let asked = unattended(vec![on_main(Rule::ask()), deny()]);
        assert_eq!(decide(asked.without_asking([Rule::allow().tool("build")])), Effect::Allow);
    }

    #[test]
    fn one_function_decides_about_every_path() {
        // V-105
        let of = |action| Request { action, ..call("evil", "x") };
        let all = [
            Action::Call,
            Action::Read,
            Action::Prompt,
            Action::Sample,
            Action::Form,
            Action::Visit,
            Action::Roots,
        ];
        for action in all {
            assert_eq!(effect(&[Rule::deny().server("evil")], &of(action)), Effect::Deny, "{action:?}");
            // A rule that allows calls does not allow questions of the server.
            let expected = match action {
                Action::Call | Action::Read | Action::Prompt => Effect::Allow,
                _ => Effect::Ask,
            };
            assert_eq!(effect(&[Rule::allow().server("evil")], &of(action)), expected, "{action:?}");
            assert_eq!(effect(&[Rule::allow().action(action)], &of(action)), Effect::Allow, "{action:?}");
        }
    }
}
