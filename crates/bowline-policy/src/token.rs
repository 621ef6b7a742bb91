//! Conditions of a rule on the access token of the caller.

use bowline_proto::caller::Caller as TokenCaller;

use super::pattern::Pattern;
use super::rule::Effect;
use super::tree::{Readings, Tree};

/// What is known about the access token of a caller.
#[derive(Clone, Copy, Debug, Default)]
pub enum Token<'a> {
    /// There is none: the caller is anonymous, or was authenticated in another way. No condition on a token holds.
    #[default]
    None,
    /// It was verified.
    Verified(&'a TokenCaller),
    /// There may be one, but what it says is not known here. Rules that deny or ask by it apply; rules that allow by it do not.
    Unknown,
}

impl<'a> Token<'a> {
    /// Returns what the token says, if it was verified.
    pub fn verified(self) -> Option<&'a TokenCaller> {
        match self {
            Self::Verified(caller) => Some(caller),
            Self::None | Self::Unknown => None,
        }
    }
}

/// What a rule requires of the token. All conditions have to hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TokenConditions {
    pub(super) principal: Option<Pattern>,
    pub(super) issuer: Option<Pattern>,
    pub(super) client: Option<Pattern>,
    /// Each must match a granted or implied scope.
    pub(super) scopes: Vec<Pattern>,
    /// JSON pointers into the claims, and what must be there.
    pub(super) claims: Vec<(String, Pattern)>,
}

impl TokenConditions {
    fn is_empty(&self) -> bool {
        let Self { principal, issuer, client, scopes, claims } = self;
        principal.is_none() && issuer.is_none() && client.is_none() && scopes.is_empty() && claims.is_empty()
    }

    /// Whether the token of the caller of a rule with this effect meets the conditions.
    pub(super) fn are_met(&self, token: Token<'_>, effect: Effect) -> bool {
        if self.is_empty() {
            return true;
        }
        match token {
            Token::None => false,
            Token::Unknown => effect != Effect::Allow,
            Token::Verified(caller) => self.are_met_by(caller, effect),
        }
    }

    fn are_met_by(&self, caller: &TokenCaller, effect: Effect) -> bool {
        let matches = |pattern: &Option<Pattern>, text: Option<&str>| {
            pattern.as_ref().is_none_or(|pattern| text.is_some_and(|text| pattern.matches(text)))
        };
        let has_scope = |pattern: &Pattern| {
            let mut scopes = caller.scopes().iter().chain(caller.implied_scopes().iter());
            scopes.any(|scope| pattern.matches(scope))
        };
        matches(&self.principal, Some(caller.subject()))
            && matches(&self.issuer, Some(caller.issuer()))
            && matches(&self.client, caller.client_id())
            && self.scopes.iter().all(has_scope)
            && self.claims_match(caller, effect)
    }

    fn claims_match(&self, caller: &TokenCaller, effect: Effect) -> bool {
        if self.claims.is_empty() {
            return true;
        }
        let claims = Tree::of(caller.claims());
        // Another reader could see other values in claims with two members of one name. Such claims allow nothing.
        if claims.ambiguity().is_some() {
            return effect != Effect::Allow;
        }
        let readings = if effect == Effect::Allow { Readings::Every } else { Readings::Any };
        let is_match = |value: &Tree, pattern: &Pattern| match value {
            Tree::List(items) => {
                items.iter().any(|item| item.is_text(readings, &|text| pattern.matches(text)))
            }
            value => value.is_text(readings, &|text| pattern.matches(text)),
        };
        self.claims
            .iter()
            .all(|(pointer, pattern)| claims.at(pointer).is_some_and(|value| is_match(value, pattern)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Caller, Policy, Request, Rule, Trust};
    use bowline_proto::scope::Scopes;
    use bowline_types::RawJson;

    fn ada() -> TokenCaller {
        let claims = r#"{"groups":["staff","ops"],"level":3,"email_verified":true,"org":{"team":"blue"},
            "https://example.com/role":"lead","nothing":null}"#;
        TokenCaller::new("https://login.example.com", "ada")
            .with_client_id("notes-app")
            .with_scopes(Scopes::parse("notes:read admin"))
            .with_implied_scopes(Scopes::parse("notes:write"))
            .with_claims(RawJson::parse(claims).unwrap())
    }

    fn decide(rule: Rule, token: Token<'_>) -> Effect {
        let request = Request {
            action: Action::Call,
            server: "notes",
            trust: Trust::Untrusted,
            caller: Caller { client: Some("ada"), principal: Some("ada"), token },
            name: "write",
            annotations: None,
            arguments: None,
        };
        Policy::new([rule]).decide(&request).effect
    }

    fn check(rule: &Rule, expected: bool) {
        let caller = ada();
        let effect = decide(rule.clone(), Token::Verified(&caller));
        assert_eq!(effect == Effect::Allow, expected, "{rule:?}");
        // Without a token nothing holds, whatever the client and the principal are called.
        assert_eq!(decide(rule.clone(), Token::None), Effect::Ask, "{rule:?}");
        assert_eq!(decide(rule.clone(), Token::Unknown), Effect::Ask, "{rule:?}");
    }

    #[test]
    fn rules_see_what_the_token_says() {
        check(&Rule::allow().principal("ada"), true);
        check(&Rule::allow().principal("a*"), true);
        check(&Rule::allow().principal("bob"), false);
        check(&Rule::allow().issuer("https://login.example.com"), true);
        check(&Rule::allow().issuer("https://login.example.com/"), false);
        check(&Rule::allow().client("notes-*"), true);
        check(&Rule::allow().client("other"), false);
        check(&Rule::allow().scope("notes:read"), true);
        check(&Rule::allow().scope("notes:read").scope("admin"), true);
        check(&Rule::allow().scope("notes:read").scope("notes:delete"), false);
        check(&Rule::allow().scope("notes:*"), true);
        // Implied scopes count.
        check(&Rule::allow().scope("notes:write"), true);
        check(&Rule::allow().principal("ada").issuer("https://evil.example"), false);
    }

    #[test]
    fn a_rule_about_a_caller_finds_the_user_without_the_token() {
        for (pattern, expected) in [("ada", Effect::Deny), ("bob", Effect::Allow)] {
            let request = Request {
                action: Action::Read,
                server: "notes",
                trust: Trust::Untrusted,
                caller: Caller {
                    client: None,
                    principal: Some(r#"["https://login.example.com","ada","app"]"#),
                    token: Token::Unknown,
                },
                name: "note://1",
                annotations: None,
                arguments: None,
            };
            assert_eq!(
                Policy::new([Rule::deny().caller(pattern)]).decide(&request).effect,
                expected,
                "{pattern}"
            );
        }
    }

    #[test]
    fn claims_are_found_by_name_and_by_pointer() {
        for (name, pattern, expected) in [
            ("groups", "ops", true),
            ("groups", "o*", true),
            ("groups", "root", false),
            ("level", "3", true),
            ("email_verified", "true", true),
            ("/org/team", "blue", true),
            ("/groups/0", "staff", true),
            ("https://example.com/role", "lead", true),
            ("org", "*", false),
            ("absent", "*", false),
            ("absent", "", false),
        ] {
            check(&Rule::allow().claim(name, pattern), expected);
        }
    }

    #[test]
    fn a_rule_that_denies_by_a_token_needs_one_or_an_unknown_one() {
        let caller = ada();
        let rule = || Rule::deny().claim("groups", "ops");
        assert_eq!(decide(rule(), Token::Verified(&caller)), Effect::Deny);
        assert_eq!(decide(rule(), Token::None), Effect::Ask);
        assert_eq!(decide(rule(), Token::Unknown), Effect::Deny);
        assert_eq!(decide(Rule::deny().claim("groups", "x"), Token::Verified(&caller)), Effect::Ask);
    }

    #[test]
    fn claims_that_can_be_read_in_two_ways_allow_nothing() {
        let claims = RawJson::parse(r#"{"groups":"ops","groups":"guests"}"#).unwrap();
        let caller = ada().with_claims(claims);
        let token = Token::Verified(&caller);
        for group in ["ops", "guests"] {
            assert_eq!(decide(Rule::allow().claim("groups", group), token), Effect::Ask);
            assert_eq!(decide(Rule::deny().claim("groups", group), token), Effect::Deny);
        }
    }

    #[test]
    fn a_rule_for_a_caller_names_the_user_of_the_token() {
        let mallory = TokenCaller::new("https://login.example.com", "mallory");
        let token = Token::Verified(&mallory);
        // The client calls itself `ada`; the token says `mallory`.
        assert_eq!(decide(Rule::allow().caller("ada"), token), Effect::Ask);
        assert_eq!(decide(Rule::allow().caller("mallory"), token), Effect::Allow);
        assert_eq!(decide(Rule::deny().caller("ada"), token), Effect::Deny);
    }
}
