//! Checks servers for the inspector, which shows the messages that a finding is about.

use super::{
    TIMEOUT, evaluate,
    facts::{Facts, Seen},
    finding::{Finding, Level},
    gather, gather_authorization, http_probe,
};
use crate::{
    context::Context,
    failure::{Code, Failure},
    target::Target,
};
use bowline_client::Direction;
use bowline_host::{Gateway, gateway::EntryState};
use bowline_inspector::{CheckFinding, CheckWatch, Checker, query::FindingLevel};
use bowline_proto::service::BoxFuture;
use serde_json::Value;
use std::{collections::HashSet, sync::Arc};

/// Checks the servers of a command.
#[derive(Clone, Debug)]
pub(crate) struct ServerChecks {
    context: Arc<Context>,
    servers: Servers,
}

#[derive(Clone, Debug)]
enum Servers {
    /// The server of `bowline inspect`.
    One(Box<Target>),
    /// The servers of a gateway.
    Of(Gateway),
}

impl ServerChecks {
    /// Checks the server of `bowline inspect`.
    pub(crate) fn of_target(context: &Context, target: Target) -> Self {
        Self { context: Arc::new(context.detached()), servers: Servers::One(Box::new(target)) }
    }

    /// Checks the servers of a gateway.
    pub(crate) fn of_gateway(context: &Context, gateway: &Gateway) -> Self {
        Self { context: Arc::new(context.detached()), servers: Servers::Of(gateway.clone()) }
    }
}

/// Returns the server that the gateway uses. Nothing is started that differs from it, because nobody has approved that.
fn approved(gateway: &Gateway, server: &str, context: &Context) -> Result<Target, Failure> {
    let is_active = gateway
        .status()
        .iter()
        .any(|entry| entry.name == server && matches!(entry.state, EntryState::Active));
    let (running, read) = (gateway.config(), context.environment.config());
    if !is_active || running.upstream(server).is_none() || running.upstream(server) != read.upstream(server) {
        let sentence = format!(
            "the configuration of `{}` is not the one that the gateway uses",
            bowline_text::visible(server)
        );
        return Err(Failure::new(Code::Config, sentence).advise("restart the gateway"));
    }
    Target::named(server, context)
}

impl Checker for ServerChecks {
    fn check(
        &self,
        server: String,
        watch: CheckWatch,
    ) -> BoxFuture<'static, Result<Vec<CheckFinding>, String>> {
        // Read again, because the gateway may have been reloaded.
        let (context, servers) = (self.context.detached(), self.servers.clone());
        Box::pin(async move {
            let target = match servers {
                Servers::One(target) => Ok(*target),
                Servers::Of(gateway) => approved(&gateway, &server, &context),
            };
            let checked = match target {
                Ok(target) => check(&target, &context, watch).await,
                Err(failure) => Err(failure),
            };
            checked.map_err(|failure| failure.sentence)
        })
    }
}

async fn check(target: &Target, context: &Context, watch: CheckWatch) -> Result<Vec<CheckFinding>, Failure> {
    let timeout = target.timeout.unwrap_or(TIMEOUT);
    let options = gather::GatherOptions { timeout, call: false, watch: Some(watch) };
    let authorization = gather_authorization(target, context).await?;
    let mut facts = gather::gather(target, context, &options).await?;
    facts.authorization = authorization;
    if let Some(page) = target.page() {
        facts.http =
            http_probe::gather(&page.resolve_headers().await?, &facts.newest_per_era(), timeout).await;
    }
    Ok(evaluate(&facts).into_iter().map(shown).collect())
}

fn shown(finding: Finding) -> CheckFinding {
    let level = match finding.level {
        Level::Error => FindingLevel::Error,
        Level::Warning => FindingLevel::Warning,
        Level::Hint => FindingLevel::Hint,
    };
    let mut shown = CheckFinding::new(level, finding.check, finding.what, finding.advice);
    (shown.places, shown.messages) = (finding.places, finding.messages);
    shown
}

/// Returns the numbers of the responses to requests of these methods.
pub(super) fn responses_to(facts: &Facts, methods: &[&str]) -> Vec<u64> {
    let mut asked: HashSet<String> = HashSet::new();
    let mut numbers = Vec::new();
    for Seen { direction, frame, number } in &facts.frames {
        let method = frame.get("method").and_then(Value::as_str);
        let id = frame.get("id").map(Value::to_string);
        match (direction, method, id) {
            (Direction::Sent, Some(method), Some(id)) if methods.contains(&method) => drop(asked.insert(id)),
            (Direction::Received, None, Some(id)) if asked.remove(&id) => numbers.extend(number),
            _ => {}
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn findings_name_the_responses_they_are_about() {
        let mut facts = Facts::without_findings();
        let seen = |direction, frame, number| Seen { direction, frame, number: Some(number) };
        facts.frames = vec![
            seen(Direction::Sent, json!({"id":1,"method":"initialize"}), 1),
            seen(Direction::Received, json!({"id":1,"result":{}}), 2),
            seen(Direction::Sent, json!({"id":2,"method":"tools/list"}), 3),
            seen(Direction::Received, json!({"method":"notifications/message"}), 4),
            seen(Direction::Received, json!({"id":2,"result":{"tools":[]}}), 5),
        ];
        assert_eq!(responses_to(&facts, &["tools/list"]), [5]);
        assert_eq!(responses_to(&facts, &["initialize", "ping"]), [2]);
        facts.frames[4].frame = json!({"id":2,"result":[]});
        let bad = evaluate(&facts)
            .into_iter()
            .find(|finding| finding.check == "bad-frame" && finding.what.contains("result"));
        assert_eq!(bad.map(|finding| finding.messages), Some(vec![5]));
    }
}
