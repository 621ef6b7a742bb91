//! Pages that a server sends the caller's user to: whose they are, and what a call comes to that has to wait for a visit.

use super::{
    Inner,
    answers::{Answerer, with_origin},
    journey::Route,
};
use bowline_proto::{replay::Question, service::ClientView};
use bowline_types::{
    ElicitAction, ElicitParams, ElicitResult, ElicitUrlParams, InputRequest, RawMap, RpcError,
};

/// What becomes of a call that fails until the user has visited pages.
pub(super) enum Visits {
    /// The caller is asked to send its user there, and the server is called again afterwards.
    Ask(Vec<Question>),
    /// The caller is told, and calls again itself.
    Tell(RpcError),
}

impl Inner {
    /// How a caller learns that its user has to visit pages first, in the words of its revision.
    pub(super) async fn visits(
        &self,
        route: &Route,
        client: &ClientView,
        pages: Vec<ElicitUrlParams>,
    ) -> Visits {
        let (mut questions, mut told) = (Vec::new(), Vec::new());
        for (place, page) in pages.into_iter().enumerate() {
            let url = page.url.clone();
            let request = InputRequest::Elicit(ElicitParams::Url(page));
            match self.answerer(&route.instance, client, &request) {
                Answerer::Caller => {
                    let request = with_origin(&route.instance, request);
                    if let InputRequest::Elicit(ElicitParams::Url(page)) = &request {
                        told.push(page.clone());
                    }
                    questions.push(Question::new(format!("visit{place}"), request));
                }
                Answerer::Host => {
                    // The user of the host has been there, or not: only the server knows, when it is called again.
                    let answer = self.answer(&route.instance, client, request).await;
                    tracing::debug!(url, answered = answer.is_ok(), "the host's user was sent to a page");
                    return Visits::Tell(later(&route.instance.name, &url));
                }
                Answerer::Nobody(_) => return Visits::Tell(later(&route.instance.name, &url)),
            }
        }
        if told.is_empty() {
            let name = &route.instance.name;
            return Visits::Tell(RpcError::internal(format!(
                "`{name}` wants a page visited, and names none"
            )));
        }
        if client.revision.is_modern() {
            return Visits::Ask(questions);
        }
        // A caller of 2025-11-25 knows the error, and when to call again.
        Visits::Tell(RpcError::url_elicitation_required(told))
    }
}

fn later(server: &str, url: &str) -> RpcError {
    let reason = format!("`{server}` goes on when its user has visited {url}; call again after that");
    RpcError::internal(reason)
}

/// Why the server is not called again: a user who does not want to go. That one has gone is for the server to find.
pub(super) fn unwilling(answers: &RawMap) -> Option<&'static str> {
    answers.iter().find_map(|(_, answer)| match answer.decode::<ElicitResult>().ok()?.action {
        ElicitAction::Accept => None,
        ElicitAction::Decline => Some("the user declined"),
        ElicitAction::Cancel => Some("the user cancelled"),
    })
}
