//! A [`Ctx`] with scripted answers, for unit tests of handlers. `bowline-testing` re-exports it.

use crate::{Ctx, Error, Registry, round::Log};
use bowline_proto::{
    caller::Caller,
    params::Params,
    replay::{Answer, Question},
    service::{BoxFuture, CallNotification, ClientView, Extensions, NotificationSink, Notifier},
};
use bowline_types::{
    CreateMessageResult, ElicitParams, ElicitResult, InputRequest, ListRootsResult, RawJson, RawMap,
    Revision, Root,
};
use serde::Serialize;
use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::Notify;

/// Everything a client can declare.
const CAPABILITIES: &str =
    r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{}}"#;

/// Starts a context for a unit test of a handler.
///
/// The handler is called like any function. Its questions are answered at once, in the order of the script; it does not
/// run again, as it does behind a server.
///
/// ```
/// use bowline_server::{Ctx, Result, testing::ctx};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Person {
///     name: String,
/// }
///
/// async fn greet(ctx: Ctx) -> Result<String> {
///     let person: Person = ctx.ask("Who are you?").await?.accepted()?;
///     ctx.info("greeting");
///     Ok(format!("Hello, {}!", person.name))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result {
/// let (ctx, record) = ctx().accept(json!({ "name": "Ada" })).build();
/// assert_eq!(greet(ctx).await?, "Hello, Ada!");
/// assert_eq!(record.questions(), ["Who are you?"]);
/// assert_eq!(record.logs(), ["info: greeting"]);
/// # Ok(())
/// # }
/// ```
pub fn ctx() -> CtxBuilder {
    CtxBuilder {
        revision: Revision::V2026_07_28,
        principal: None,
        capabilities: None,
        meta: None,
        answers: Answers::default(),
        extensions: Extensions::new(),
        #[cfg(feature = "http")]
        headers: http::HeaderMap::new(),
    }
}

/// A context under construction. See [`ctx`].
#[derive(Debug)]
#[must_use = "nothing is made before `build`"]
pub struct CtxBuilder {
    revision: Revision,
    principal: Option<Arc<str>>,
    capabilities: Option<RawJson>,
    meta: Option<RawJson>,
    answers: Answers,
    extensions: Extensions,
    #[cfg(feature = "http")]
    headers: http::HeaderMap,
}

/// The remaining answers of a script.
#[derive(Debug, Default)]
struct Answers {
    forms: VecDeque<ElicitResult>,
    samples: VecDeque<CreateMessageResult>,
    roots: Option<Vec<Root>>,
}

impl CtxBuilder {
    /// Accepts the next form with this content, or the next page to visit.
    ///
    /// # Panics
    ///
    /// When the content does not serialize to an object.
    pub fn accept(mut self, content: impl Serialize) -> Self {
        let content = RawJson::of(&content).and_then(|content| content.decode::<RawMap>());
        let content = content.expect("the content of a form is an object");
        self.answers.forms.push_back(ElicitResult::accept(content));
        self
    }

    /// Declines the next form or page.
    pub fn decline(mut self) -> Self {
        self.answers.forms.push_back(ElicitResult::decline());
        self
    }

    /// Cancels the next form or page.
    pub fn cancel(mut self) -> Self {
        self.answers.forms.push_back(ElicitResult::cancel());
        self
    }

    /// Answers the next [`Ctx::sample`].
    pub fn sampled(mut self, message: CreateMessageResult) -> Self {
        self.answers.samples.push_back(message);
        self
    }

    /// Answers every [`Ctx::roots`].
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.answers.roots = Some(roots.into_iter().collect());
        self
    }

    /// Sets the revision of the caller. Default: 2026-07-28.
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revision = revision;
        self
    }

    /// Makes the caller declare these capabilities, as JSON. Default: everything.
    pub fn capabilities(mut self, capabilities: impl Into<RawJson>) -> Self {
        self.capabilities = Some(capabilities.into());
        self
    }

    /// Sets the user of the call.
    pub fn principal(mut self, principal: impl Into<Arc<str>>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// Sets the `_meta` of the request, an object.
    pub fn meta(mut self, meta: impl Into<RawJson>) -> Self {
        self.meta = Some(meta.into());
        self
    }

    /// Adds a value that [`Ctx::extension`] finds.
    pub fn extension<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }

    /// Sets the caller that [`Ctx::caller`] returns, as if its access token had been verified.
    pub fn caller(self, caller: Caller) -> Self {
        self.extension(Arc::new(caller))
    }

    /// Adds a header that [`Ctx::headers`] has.
    ///
    /// # Panics
    ///
    /// When it is not a valid header.
    #[cfg(feature = "http")]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name: http::HeaderName = name.parse().expect("a valid header name");
        self.headers.append(name, value.parse().expect("a valid header value"));
        self
    }

    /// Makes the context, and the record of what the handler does with it.
    ///
    /// # Panics
    ///
    /// When `meta` is not an object.
    pub fn build(self) -> (Ctx, CtxRecord) {
        let everything = || RawJson::parse(CAPABILITIES).expect("the capabilities are JSON");
        let capabilities = self.capabilities.unwrap_or_else(everything);
        let client = ClientView::new(self.revision, self.principal, capabilities, None);
        let params = self.meta.map_or_else(Params::empty, |meta| {
            let params = RawJson::parse(format!("{{\"_meta\":{}}}", meta.as_str())).expect("`_meta` is JSON");
            Params::parse(params).expect("`_meta` is an object")
        });
        let record = CtxRecord(Arc::default());
        let (answers, seen) = (Mutex::new(self.answers), record.clone());
        let script = move |question: &Question| {
            seen.lock().questions.push(question.request.clone());
            answers.lock().unwrap_or_else(PoisonError::into_inner).next(&question.request)
        };
        let log = Log::scripted(Box::new(script));
        let notifier = Notifier::new(Arc::clone(&record.0) as Arc<dyn NotificationSink>);
        let extensions = self.extensions;
        #[cfg(feature = "http")]
        let extensions =
            if self.headers.is_empty() { extensions } else { extensions.with_headers(self.headers) };
        (Ctx::new(Arc::new(client), params, notifier, Registry::new(), log, extensions), record)
    }
}

impl Answers {
    fn next(&mut self, request: &InputRequest) -> Result<Answer, Error> {
        let missing = || Error::internal(format!("the test has no answer to \"{}\"", text_of(request)));
        let answer = match request {
            InputRequest::Elicit(_) => RawJson::of(&self.forms.pop_front().ok_or_else(missing)?),
            InputRequest::CreateMessage(_) => RawJson::of(&self.samples.pop_front().ok_or_else(missing)?),
            InputRequest::ListRoots => {
                RawJson::of(&ListRootsResult::new(self.roots.clone().ok_or_else(missing)?))
            }
        };
        Ok(Ok(answer?))
    }
}

fn text_of(request: &InputRequest) -> String {
    match request {
        InputRequest::Elicit(ElicitParams::Form(form)) => form.message.clone(),
        InputRequest::Elicit(ElicitParams::Url(page)) => format!("{} {}", page.message, page.url),
        InputRequest::CreateMessage(_) | InputRequest::ListRoots => request.method().as_str().to_owned(),
    }
}

/// The questions and notifications of a handler in a test. See [`ctx`].
#[derive(Clone)]
pub struct CtxRecord(Arc<Recorder>);

#[derive(Default)]
struct Recorder {
    seen: Mutex<Seen>,
    is_cancelled: AtomicBool,
    cancelled: Notify,
}

#[derive(Default)]
struct Seen {
    questions: Vec<InputRequest>,
    notices: Vec<CallNotification>,
}

impl CtxRecord {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the messages of the questions; for sampling and roots, the method.
    pub fn questions(&self) -> Vec<String> {
        self.lock().questions.iter().map(text_of).collect()
    }

    /// Returns the complete questions.
    pub fn requests(&self) -> Vec<InputRequest> {
        self.lock().questions.clone()
    }

    /// Returns the sent notifications: progress, log messages, custom ones.
    pub fn notices(&self) -> Vec<CallNotification> {
        self.lock().notices.clone()
    }

    /// Returns the log messages, each as `level: text`.
    pub fn logs(&self) -> Vec<String> {
        let line = |notice: &CallNotification| match notice {
            CallNotification::Log { level, data, .. } => {
                let text = data.decode::<String>().unwrap_or_else(|_| data.as_str().to_owned());
                Some(format!("{level}: {text}"))
            }
            _ => None,
        };
        self.lock().notices.iter().filter_map(line).collect()
    }

    /// Makes the caller give up: [`Ctx::cancelled`] completes.
    pub fn give_up(&self) {
        self.0.is_cancelled.store(true, Ordering::Release);
        self.0.cancelled.notify_waiters();
    }
}

impl fmt::Debug for CtxRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CtxRecord").field("questions", &self.questions()).finish_non_exhaustive()
    }
}

impl NotificationSink for Recorder {
    fn emit(&self, notice: CallNotification) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).notices.push(notice);
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            loop {
                let cancelled = self.cancelled.notified();
                if self.is_cancelled() {
                    return;
                }
                cancelled.await;
            }
        })
    }
}
