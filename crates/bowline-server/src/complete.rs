//! Suggestions for arguments while a user types them.

use crate::{Ctx, Error, IntoError, Result};
use bowline_proto::service::BoxFuture;
use bowline_types::Completion;
use std::{collections::BTreeMap, fmt, future::Future, marker::PhantomData, sync::Arc};

/// An argument that the user is typing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "completion/complete")]
pub struct CompletionRequest {
    /// The input so far.
    pub value: String,
    /// The other arguments that already have a value.
    pub arguments: BTreeMap<String, String>,
}

impl CompletionRequest {
    /// Creates a request for an argument with this input so far.
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), arguments: BTreeMap::new() }
    }

    /// Adds another argument that already has a value.
    #[must_use]
    pub fn argument(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.arguments.insert(name.into(), value.into());
        self
    }
}

type Complete = Arc<dyn Fn(Ctx, CompletionRequest) -> BoxFuture<'static, Result<Completion>> + Send + Sync>;

/// The completers of one prompt or template, by argument.
#[derive(Clone, Default)]
pub(crate) struct Completers(BTreeMap<String, Complete>);

impl Completers {
    pub(crate) fn insert<M, C: Completer<M>>(&mut self, argument: String, completer: C) {
        self.0.insert(argument, Arc::new(move |ctx, request| completer.complete(ctx, request)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Returns the suggestions for an argument. Empty if it has no completer.
    pub(crate) async fn complete(
        &self,
        argument: &str,
        ctx: Ctx,
        request: CompletionRequest,
    ) -> Result<Completion> {
        let Some(completer) = self.0.get(argument) else { return Ok(Completion::default()) };
        Ok(bounded(completer(ctx, request).await?))
    }
}

impl fmt::Debug for Completers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Limits the suggestions to 100, as the protocol requires, and sets the total number.
fn bounded(mut completion: Completion) -> Completion {
    if completion.values.len() > Completion::MAX_VALUES {
        completion.total.get_or_insert(completion.values.len() as u64);
        completion.has_more = Some(true);
        completion.values.truncate(Completion::MAX_VALUES);
    }
    completion
}

/// Suggestions for an argument: a list of texts, a [`Completion`] with more details, or a `Result` of these.
pub trait IntoCompletion {
    /// Converts the suggestions.
    fn into_completion(self) -> Result<Completion, Error>;
}

impl IntoCompletion for Completion {
    fn into_completion(self) -> Result<Completion, Error> {
        Ok(self)
    }
}

impl<T: Into<String>> IntoCompletion for Vec<T> {
    fn into_completion(self) -> Result<Completion, Error> {
        Ok(Completion::new(self.into_iter().map(Into::into).collect::<Vec<_>>()))
    }
}

impl<T: IntoCompletion, E: IntoError> IntoCompletion for Result<T, E> {
    fn into_completion(self) -> Result<Completion, Error> {
        self.map_err(IntoError::into_error)?.into_completion()
    }
}

/// Marks a completer that returns its suggestions.
#[derive(Debug)]
pub struct AtOnce;
/// Marks a completer that returns a future.
#[derive(Debug)]
pub struct InTime<R>(PhantomData<R>);
/// Marks a completer that takes the context of the call first.
#[derive(Debug)]
pub struct WithCtx<M>(PhantomData<M>);

/// A function that suggests values for an argument: `fn(Ctx, CompletionRequest) -> Vec<String>`. It may be async, fail with
/// any error, and leave out `Ctx`.
#[diagnostic::on_unimplemented(
    message = "this function cannot complete an argument",
    label = "expected `fn(Ctx, CompletionRequest) -> Vec<String>`, with `Ctx` optional",
    note = "it may be async, and return a `Result`",
    note = "a method that takes `&self` is named `Self::method`, and is in the same `#[tools]` block"
)]
pub trait Completer<M>: Send + Sync + 'static {
    /// Suggests values.
    fn complete(&self, ctx: Ctx, request: CompletionRequest) -> BoxFuture<'static, Result<Completion>>;
}

macro_rules! completers {
    ($(($($Slot:ty),*) $AtOnce:ty, $InTime:ty, |$ctx:ident, $request:ident| ($($given:ident),*);)*) => { $(
        #[diagnostic::do_not_recommend]
        impl<F, R> Completer<$AtOnce> for F
        where
            F: Fn($($Slot),*) -> R + Send + Sync + 'static,
            R: IntoCompletion,
        {
            fn complete(&self, $ctx: Ctx, $request: CompletionRequest) -> BoxFuture<'static, Result<Completion>> {
                let _ = &$ctx;
                Box::pin(std::future::ready(self($($given),*).into_completion()))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<F, Fut, R> Completer<$InTime> for F
        where
            F: Fn($($Slot),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send + 'static,
            R: IntoCompletion,
        {
            fn complete(&self, $ctx: Ctx, $request: CompletionRequest) -> BoxFuture<'static, Result<Completion>> {
                let _ = &$ctx;
                let future = self($($given),*);
                Box::pin(async move { future.await.into_completion() })
            }
        }
    )* };
}

completers! {
    (CompletionRequest) AtOnce, InTime<R>, |ctx, request| (request);
    (Ctx, CompletionRequest) WithCtx<AtOnce>, WithCtx<InTime<R>>, |ctx, request| (ctx, request);
}
