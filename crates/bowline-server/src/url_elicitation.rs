//! Requests that fail until the user has visited a page, in the words of each revision.

use crate::{Error, error::Kind, round::Log};
use bowline_proto::{
    replay::OpenQuestions, replay::Question, server::missing_capability, service::ClientView, uri,
};
use bowline_types::{ElicitAction, ElicitParams, ElicitResult, ElicitUrlParams, Era, InputRequest, RpcError};

/// Returns the questions that ask the user to open the URLs, or the equivalent error.
pub(crate) fn required(
    mut pages: Vec<ElicitUrlParams>,
    client: &ClientView,
    log: &Log,
) -> Result<OpenQuestions, Error> {
    if pages.is_empty() {
        return Err(Error::internal("the handler requires a URL elicitation but gave no URL"));
    }
    for page in &pages {
        check_url(&page.url)?;
        let request = InputRequest::Elicit(ElicitParams::Url(page.clone()));
        if let Some(needed) = missing_capability(client, &request) {
            return Err(Error::missing(needed, "elicitation with a URL"));
        }
    }
    if client.revision.era() == Era::Legacy {
        for page in &mut pages {
            page.elicitation_id.get_or_insert_with(crate::random::id);
        }
        return Err(Kind::Rpc(RpcError::url_elicitation_required(pages)).into());
    }
    let mut questions = Vec::new();
    for (position, mut page) in pages.into_iter().enumerate() {
        page.elicitation_id = None;
        let question =
            Question::new(format!("visit{position}"), InputRequest::Elicit(ElicitParams::Url(page)));
        // A user who agreed to visit the page and has not completed it is asked again; one who declined is not.
        match log.earlier(&question).and_then(Result::ok).and_then(|answer| answer.decode().ok()) {
            Some(ElicitResult { action: ElicitAction::Decline, .. }) => {
                return Err(Error::tool("the user declined"));
            }
            Some(ElicitResult { action: ElicitAction::Cancel, .. }) => {
                return Err(Error::tool("the user cancelled"));
            }
            Some(ElicitResult { action: ElicitAction::Accept, .. }) | None => questions.push(question),
        }
    }
    Ok(log.ask(questions))
}

/// Checks that a user can be sent to `url`.
pub(crate) fn check_url(url: &str) -> Result<(), Error> {
    uri::validate_uri(url)
        .map_err(|error| Error::internal(format!("cannot send the user to `{url}`: {error}")))?;
    if !uri::is_safe_page(url) {
        let message = format!("cannot send the user to `{url}`: use https, or http on a loopback address");
        return Err(Error::internal(message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: ELIU-29
    #[test]
    fn unencrypted_urls_are_not_sent() {
        assert!(check_url("https://example.com/sign-in").is_ok());
        assert!(check_url("http://localhost:8080/sign-in").is_ok());
        assert!(check_url("http://example.com/sign-in").is_err());
    }
}
