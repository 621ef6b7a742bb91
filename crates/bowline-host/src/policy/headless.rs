//! The gate where nobody sits: it says no, and how to make it unnecessary to ask.

use bowline_proto::service::BoxFuture;

use super::gate::{Gate, Question, Scope, Verdict};

/// Declines every question, with a reason that says what would allow it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headless;

impl Gate for Headless {
    fn ask(&self, question: Question) -> BoxFuture<'_, Verdict> {
        let reason = Some(format!("nobody is here to ask; {}", way_out(&question)));
        Box::pin(std::future::ready(Verdict::Decline { scope: Scope::Once, reason }))
    }
}

fn way_out(question: &Question) -> String {
    let rule = |more: &str| {
        format!("a rule with effect = \"allow\", server = {:?}{more} would allow it", question.server())
    };
    match question {
        Question::Start { .. } => {
            "only a person can approve it: run it where one is, such as in a terminal".to_owned()
        }
        Question::Call { tool, .. } => rule(&format!(", tool = {tool:?}")),
        Question::Access { action, name, .. } => {
            rule(&format!(", action = {:?}, tool = {name:?}", action.as_str()))
        }
        Question::Sample { .. } => rule(", action = \"sample\""),
        Question::Roots { .. } => rule(", action = \"roots\""),
        Question::Changed { tool, .. } => {
            format!("the definition of {tool:?} has changed and has to be accepted in the lock file")
        }
        Question::New { tool, .. } => format!("{tool:?} is new and has to be accepted in the lock file"),
        Question::SampleResult { .. } | Question::Form { .. } | Question::Visit { .. } => {
            "only a person can answer this: run it where one is, such as in a terminal".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_types::RawJson;

    #[tokio::test]
    async fn a_no_says_what_would_allow_it() {
        let question = Question::Call {
            server: "files".to_owned(),
            tool: "wr\"ite".to_owned(),
            title: None,
            arguments: RawJson::empty_object(),
            annotations: None,
            why: String::new(),
            scopes: Vec::new(),
        };
        let Verdict::Decline { reason, .. } = Headless.ask(question).await else { panic!("not declined") };
        assert_eq!(
            reason.as_deref(),
            Some(
                "nobody is here to ask; a rule with effect = \"allow\", server = \"files\", tool = \"wr\\\"ite\" would \
                 allow it"
            )
        );
    }
}
