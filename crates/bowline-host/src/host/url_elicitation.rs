//! Calls that fail until the user has visited URLs (`URLElicitationRequiredError`).

use super::{
    asker::{Answerer, Asker, CallerView, with_origin},
    route::Route,
};
use crate::upstream::LoginPage;
use bowline_policy::Facts;
use bowline_proto::replay::Question;
use bowline_types::{
    ElicitAction, ElicitParams, ElicitResult, ElicitUrlParams, InputRequest, RawMap, RpcError,
};

/// What to do about a call that fails until the user has visited URLs.
pub(super) enum UrlElicitation {
    /// Ask the caller to open the URLs, and call the server again afterwards.
    Ask(Vec<Question>),
    /// Return the error. The caller has to call again itself.
    Fail(RpcError),
}

impl Asker {
    /// Asks the user of the host before a login. The guard opens the page if the user agrees.
    pub(super) async fn ask_login(&self, login: LoginPage) -> Result<(), String> {
        let facts = Facts {
            server: &login.server,
            identity: Some(&login.identity),
            project: self.project.as_deref(),
            ..Facts::default()
        };
        match self.guard.elicit(&facts, ElicitParams::Url(login.page)).await {
            Ok(answer) if answer.action == ElicitAction::Accept => Ok(()),
            Ok(_) => Err("the user declined it".to_owned()),
            Err(refusal) => Err(refusal.reason().to_owned()),
        }
    }

    /// Decides how a caller learns that its user has to visit URLs, depending on its revision.
    pub(super) async fn url_elicitation(
        &self,
        route: &Route,
        caller: CallerView<'_>,
        urls: Vec<ElicitUrlParams>,
    ) -> UrlElicitation {
        let (mut questions, mut shown) = (Vec::new(), Vec::new());
        for (index, params) in urls.into_iter().enumerate() {
            let url = params.url.clone();
            let request = InputRequest::Elicit(ElicitParams::Url(params));
            match self.answerer(&route.instance, caller, &request) {
                Answerer::Caller => {
                    let request = with_origin(&route.instance, request);
                    if let InputRequest::Elicit(ElicitParams::Url(params)) = &request {
                        shown.push(params.clone());
                    }
                    questions.push(Question::new(format!("visit{index}"), request));
                }
                Answerer::Host => {
                    // Only the server can tell, in the next call, whether the user completed the visit.
                    let answer = self.answer(&route.instance, caller, request, None).await;
                    tracing::debug!(
                        url,
                        answered = answer.is_ok(),
                        "asked the user of the host to open a URL"
                    );
                    return UrlElicitation::Fail(call_again(&route.instance.name, &url));
                }
                Answerer::Nobody(_) => {
                    return UrlElicitation::Fail(call_again(&route.instance.name, &url));
                }
            }
        }
        if shown.is_empty() {
            let name = &route.instance.name;
            return UrlElicitation::Fail(RpcError::internal(format!(
                "the server `{name}` requires a URL elicitation but sent no URL"
            )));
        }
        if caller.is_modern() {
            return UrlElicitation::Ask(questions);
        }
        // Clients of 2025-11-25 know this error and when to call again.
        UrlElicitation::Fail(RpcError::url_elicitation_required(shown))
    }
}

fn call_again(server: &str, url: &str) -> RpcError {
    RpcError::internal(format!(
        "the server `{server}` requires its user to visit {url}; call again after that"
    ))
}

/// Returns why the server is not called again: the user refused to open a URL.
pub(super) fn refusal(answers: &RawMap) -> Option<&'static str> {
    answers.iter().find_map(|(_, answer)| match answer.decode::<ElicitResult>().ok()?.action {
        ElicitAction::Accept => None,
        ElicitAction::Decline => Some("the user declined"),
        ElicitAction::Cancel => Some("the user cancelled"),
    })
}
