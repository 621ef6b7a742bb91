//! The gate without a user: refuses, and names the rule, setting or command that would allow the request.

use bowline_proto::service::BoxFuture;

use super::gate::{Gate, Question, Scope, Verdict};
use bowline_text::visible;

/// Declines every question, with a reason that says what would allow it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headless;

impl Gate for Headless {
    fn ask(&self, question: Question) -> BoxFuture<'_, Verdict> {
        let reason = Some(refusal(&question));
        Box::pin(std::future::ready(Verdict::Decline { scope: Scope::Once, reason }))
    }
}

/// Returns why a question cannot be asked, and what would allow the action.
pub(super) fn refusal(question: &Question) -> String {
    let server = question.server();
    let rule = |more: &str| format!("add a rule with effect = \"allow\", server = {server:?}{more}");
    let subject = |name: &str| format!("`{}` of `{}`", visible(name), visible(server));
    match question {
        Question::Start { origin, .. } => format!(
            "the server `{}` of {} is not approved; run `bowline up` in a terminal to approve it",
            visible(server),
            visible(origin)
        ),
        Question::Control { .. } => {
            "only a person at the terminal of `bowline up` can let a browser act in the inspector".to_owned()
        }
        Question::Call { tool, why, .. } => {
            let word = shell_word(&format!("{server}__{tool}"));
            let setting = if why.starts_with("rule:") {
                "change that rule"
            } else {
                "set `consent = \"client\"` in `[gateway]`"
            };
            format!(
                "{} needs approval ({why}), and nobody can be asked: the client does not support elicitation; start \
                 the gateway with `--allow {word}`, {}, or {setting}",
                subject(tool),
                rule(&format!(", tool = {tool:?}"))
            )
        }
        Question::Access { action, name, why, .. } => format!(
            "{} needs approval ({why}), and nobody can be asked: the client does not support elicitation; {}",
            subject(name),
            rule(&format!(", action = {:?}, tool = {name:?}", action.as_str()))
        ),
        Question::Sample { why, .. } => {
            let rule = rule(", action = \"sample\"");
            format!("the use of a model needs approval ({why}), and nobody can be asked; {rule}")
        }
        Question::Roots { why, .. } => {
            let rule = rule(", action = \"roots\"");
            format!("the roots need approval ({why}), and nobody can be asked; {rule}")
        }
        Question::Changed { tool, .. } => accept(server, tool, "changed since it was accepted"),
        Question::New { tool, .. } => accept(server, tool, "is new"),
        Question::SampleResult { .. } | Question::Form { .. } | Question::Visit { .. } => {
            "only a person can answer this, and nobody can be asked; run `bowline up` in a terminal"
                .to_owned()
        }
    }
}

fn accept(server: &str, tool: &str, what: &str) -> String {
    let (shown_tool, shown_server) = (visible(tool), visible(server));
    let (tool, server) = (shell_word(tool), shell_word(server));
    format!(
        "the definition of `{shown_tool}` of `{shown_server}` {what}; run `bowline pins diff {server}` to see it and \
         `bowline pins accept {server} {tool}` to accept it"
    )
}

/// Quotes a name as one word of a shell, so that the suggested command can be pasted safely.
fn shell_word(name: &str) -> String {
    let name = visible(name);
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | ':');
    if !name.is_empty() && name.chars().all(is_plain) && !name.starts_with('-') {
        return name;
    }
    format!("'{}'", name.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_types::RawJson;

    async fn reason(tool: &str, why: &str) -> String {
        let question = Question::Call {
            server: "files".to_owned(),
            tool: tool.to_owned(),
            title: None,
            arguments: RawJson::empty_object(),
            annotations: None,
            client: None,
            why: why.to_owned(),
            scopes: Vec::new(),
            covers: Vec::new(),
        };
        let Verdict::Decline { reason, .. } = Headless.ask(question).await else { panic!("not declined") };
        reason.unwrap_or_default()
    }

    #[tokio::test]
    async fn a_no_names_the_rule_the_setting_and_the_command() {
        assert_eq!(
            reason("wr\"ite", "rule: ask files * (bowline.toml:3)").await,
            "`wr\"ite` of `files` needs approval (rule: ask files * (bowline.toml:3)), and nobody can be asked: the \
             client does not support elicitation; start the gateway with `--allow 'files__wr\"ite'`, add a rule with \
             effect = \"allow\", server = \"files\", tool = \"wr\\\"ite\", or change that rule"
        );
        let by_default = reason("write", "no rule matches, and this tool may change things").await;
        assert!(by_default.ends_with("or set `consent = \"client\"` in `[gateway]`"), "{by_default}");
    }

    #[tokio::test]
    async fn a_command_in_a_refusal_can_be_pasted_whatever_the_tool_is_called() {
        // V-103
        let reason = reason("x$(id)'", "").await;
        assert!(reason.contains(r"`--allow 'files__x$(id)'\'''`"), "{reason}");
    }
}
