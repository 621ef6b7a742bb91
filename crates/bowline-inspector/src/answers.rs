//! Lists and forgets the answers that the policy remembers.

use crate::{
    inspector::Shared,
    queries::attached,
    query::{AnswerView, AnswersView},
    render::Shown,
    service::Failure,
};
use bowline_policy::{Answered, Answers, Covers, Digest, Remembered, StoreError};
use bowline_types::RawJson;
use http::StatusCode;

/// How many answers are listed at most.
const MAX_ANSWERS: usize = 1000;

/// Returns the remembered answers.
pub(crate) async fn answers(shared: &Shared) -> Result<AnswersView, Failure> {
    let answers = attached(shared)?.host.guard().answers().clone();
    let file = answers.path().map(|path| bowline_text::visible(&path.display().to_string()));
    let all = blocking(move || {
        let lasting = answers.kept()?;
        let mut all: Vec<_> = answers.of_this_run().into_iter().map(|kept| (kept, true)).collect();
        all.extend(lasting.into_iter().map(|kept| (kept, false)));
        Ok(all)
    });
    let mut all = all.await?;
    all.sort_by(|(one, _), (other, _)| (&one.server, &one.name).cmp(&(&other.server, &other.name)));
    all.truncate(MAX_ANSWERS);
    let mask = |text: &str| Shown::line(&shared.redactor.text(text));
    let view = |(kept, this_run): (Remembered, bool)| AnswerView {
        id: id(&kept),
        effect: match kept.answer {
            Answered::Allow => "allow".to_owned(),
            Answered::Deny => "deny".to_owned(),
        },
        what: mask(&what(&kept)),
        same_arguments: kept.arguments.is_some(),
        this_run,
        project: kept.project.as_deref().map(mask),
        user: kept.principal.as_deref().map(mask),
        expires: kept.expires_text(),
        server: kept.server,
    };
    Ok(AnswersView { answers: all.into_iter().map(view).collect(), file })
}

/// Forgets an answer, so that a person is asked again.
pub(crate) async fn forget(shared: &Shared, wanted: String) -> Result<(), Failure> {
    let answers: Answers = attached(shared)?.host.guard().answers().clone();
    let forgotten = blocking(move || answers.forget(|kept| id(kept) == wanted)).await?;
    if forgotten == 0 {
        return Err(Failure::not_found("this answer is not remembered any more"));
    }
    Ok(())
}

/// Returns what an answer is about, in words.
fn what(kept: &Remembered) -> String {
    match (kept.covers, &kept.name) {
        (Covers::Server, _) => "everything".to_owned(),
        (Covers::ReadOnlyTools, _) => "all read-only tools".to_owned(),
        (Covers::Tool, Some(name)) => format!("{} {name}", kept.action.as_str()),
        (Covers::Tool, None) => kept.action.as_str().to_owned(),
    }
}

/// Names an answer by its content, so that no other one is forgotten.
fn id(kept: &Remembered) -> String {
    RawJson::of(kept).map(|json| Digest::of(&json).to_string()).unwrap_or_default()
}

/// Reads or writes the file, which other requests must not wait for.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Failure> {
    let failed = |error: String| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error);
    let done = tokio::task::spawn_blocking(work).await.map_err(|error| failed(error.to_string()))?;
    done.map_err(|error| failed(error.to_string()))
}
