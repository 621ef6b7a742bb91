//! Says what the guard would decide, without asking, allowing or logging anything.

use super::call::{request, topic};
use super::{CallFacts, Facts, Guard, NewTools};
use crate::pins::{PinKey, PinStatus};
use crate::rule::Effect;
use crate::rules::{Action, DecidedBy, Decision};

/// What the guard would decide.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preview {
    /// The effect. `Ask` also for a tool whose definition has to be accepted first.
    pub effect: Effect,
    /// What decides.
    pub by: DecidedBy,
    /// The rule and its position, or the reason.
    pub reason: String,
    /// The position of the rule in [`Policy::rules`](crate::Policy::rules), if one of them decides.
    pub rule: Option<usize>,
    /// How the tool compares with its pin, as last read. `None` without pins, and if it is not about a tool.
    pub pin: Option<PinStatus>,
}

impl Guard {
    /// Says what would be decided about a tool call.
    pub async fn preview_call(&self, call: &CallFacts<'_>) -> Preview {
        let (decision, topic, wider) = self.policy_about(call);
        let mut preview = self.preview(&call.facts, decision, &topic, wider).await;
        let (pins, key) = (self.pins.as_ref(), PinKey::of(&call.facts));
        preview.pin = pins.map(|pins| pins.status(&key, call.definition));
        let name = call.definition.name();
        let unaccepted = match &preview.pin {
            Some(PinStatus::Changed { .. }) => {
                Some(format!("the definition of `{name}` changed since it was accepted"))
            }
            Some(PinStatus::New) if self.new_tools == NewTools::Ask => {
                Some(format!("`{name}` is new, and was not accepted"))
            }
            _ => None,
        };
        if let (Some(reason), Effect::Allow) = (unaccepted, preview.effect) {
            preview.effect = Effect::Ask;
            preview.by = DecidedBy::Check;
            preview.reason = format!("{reason}; then: {}", preview.reason);
        }
        preview
    }

    /// Says what would be decided about reading a resource, fetching a prompt, or another action.
    pub async fn preview_access(&self, facts: &Facts<'_>, action: Action, name: &str) -> Preview {
        let decision = self.policy().decide(&request(facts, action, name));
        self.preview(facts, decision, &topic(facts, action, Some(name)), &[]).await
    }

    async fn preview(
        &self,
        facts: &Facts<'_>,
        decision: Decision,
        topic: &crate::answers::Topic,
        wider: &[crate::gate::Covers],
    ) -> Preview {
        let Decision { effect, by, reason, rule, .. } = decision;
        let preview = Preview { effect, by, reason, rule, pin: None };
        if effect != Effect::Ask {
            return preview;
        }
        match self.remembered(facts, topic, wider).await {
            None => preview,
            Some(Ok(permission)) => Preview {
                effect: Effect::Allow,
                by: permission.by,
                reason: format!("{}; asked because of: {}", permission.reason, preview.reason),
                ..preview
            },
            Some(Err(refusal)) => Preview {
                effect: Effect::Deny,
                by: refusal.by(),
                reason: format!("{}; asked because of: {}", refusal.reason(), preview.reason),
                ..preview
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Definition, Pins, Policy, Rule};
    use bowline_types::{RawJson, Tool};

    #[tokio::test]
    async fn a_preview_names_the_rule_and_asks_nobody() {
        let policy = Policy::new([
            Rule::deny().tool("erase").origin("bowline.toml:3"),
            Rule::allow().server("files").origin("bowline.toml:9"),
        ]);
        let pins = Pins::in_memory();
        let tool = |name: &str, about: &str| {
            Definition::of(&Tool::new(name, RawJson::empty_object()).description(about))
        };
        let facts = Facts { server: "files", identity: Some("files-server"), ..Facts::default() };
        pins.accept(
            &PinKey::new("files", "files-server"),
            &[tool("read", "Reads."), tool("erase", "Erases.")],
        )
        .unwrap();
        let guard = Guard::builder().policy(policy).pins(pins).build();
        let arguments = RawJson::empty_object();
        let preview = async |definition: &Definition| {
            let preview = guard.preview_call(&CallFacts { facts, definition, arguments: &arguments }).await;
            (preview.effect, preview.by, preview.rule, preview.reason)
        };
        assert_eq!(
            preview(&tool("erase", "Erases.")).await,
            (Effect::Deny, DecidedBy::Rule, Some(0), "rule: deny * erase (bowline.toml:3)".into())
        );
        assert_eq!(
            preview(&tool("read", "Reads.")).await,
            (Effect::Allow, DecidedBy::Rule, Some(1), "rule: allow files * (bowline.toml:9)".into())
        );
        let changed = preview(&tool("read", "Reads, and sends it away.")).await;
        assert_eq!((changed.0, changed.1), (Effect::Ask, DecidedBy::Check), "{}", changed.3);
        let read = guard.preview_access(&facts, Action::Read, "file:///a").await;
        assert_eq!((read.effect, read.rule, read.pin), (Effect::Allow, None, None), "{}", read.reason);
    }
}
