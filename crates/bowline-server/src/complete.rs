//! Completion of arguments while a user types them.

use bowline_proto::service::BoxFuture;
use bowline_types::Completion;
use std::{collections::BTreeMap, fmt, future::Future, marker::PhantomData, sync::Arc};

/// An argument half typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Typing {
    /// What is typed so far.
    pub value: String,
    /// The arguments that already have a value.
    pub arguments: BTreeMap<String, String>,
}

type Complete = Arc<dyn Fn(Typing) -> BoxFuture<'static, Completion> + Send + Sync>;

/// The completers of one prompt or template, by argument.
#[derive(Clone, Default)]
pub(crate) struct Completers(BTreeMap<String, Complete>);

impl Completers {
    pub(crate) fn insert<M, C: Completer<M>>(&mut self, argument: String, completer: C) {
        self.0.insert(argument, Arc::new(move |typing| completer.complete(typing)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// The suggestions for an argument; none for one that has no completer.
    pub(crate) async fn complete(&self, argument: &str, typing: Typing) -> Completion {
        let Some(completer) = self.0.get(argument) else { return Completion::default() };
        bounded(completer(typing).await)
    }
}

impl fmt::Debug for Completers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The protocol lets at most 100 suggestions through; how many there are is told beside them.
fn bounded(mut completion: Completion) -> Completion {
    if completion.values.len() > Completion::MAX_VALUES {
        completion.total.get_or_insert(completion.values.len() as u64);
        completion.has_more = Some(true);
        completion.values.truncate(Completion::MAX_VALUES);
    }
    completion
}

/// Suggestions for an argument: a list of texts, or a [`Completion`] that says more.
pub trait IntoCompletion {
    /// The suggestions.
    fn into_completion(self) -> Completion;
}

impl IntoCompletion for Completion {
    fn into_completion(self) -> Completion {
        self
    }
}

impl<T: Into<String>> IntoCompletion for Vec<T> {
    fn into_completion(self) -> Completion {
        Completion { values: self.into_iter().map(Into::into).collect(), ..Completion::default() }
    }
}

/// Marks a completer that answers at once.
#[derive(Debug)]
pub struct AtOnce;
/// Marks a completer that takes its time.
#[derive(Debug)]
pub struct InTime<R>(PhantomData<R>);

/// A function that suggests values for an argument: `fn(Typing) -> Vec<String>`, async or not.
#[diagnostic::on_unimplemented(
    message = "this function cannot complete an argument",
    label = "expected `fn(Typing) -> Vec<String>`, async or not"
)]
pub trait Completer<M>: Send + Sync + 'static {
    /// Suggests.
    fn complete(&self, typing: Typing) -> BoxFuture<'static, Completion>;
}

#[diagnostic::do_not_recommend]
impl<F, R> Completer<AtOnce> for F
where
    F: Fn(Typing) -> R + Send + Sync + 'static,
    R: IntoCompletion,
{
    fn complete(&self, typing: Typing) -> BoxFuture<'static, Completion> {
        Box::pin(std::future::ready(self(typing).into_completion()))
    }
}

#[diagnostic::do_not_recommend]
impl<F, Fut, R> Completer<InTime<R>> for F
where
    F: Fn(Typing) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoCompletion,
{
    fn complete(&self, typing: Typing) -> BoxFuture<'static, Completion> {
        let future = self(typing);
        Box::pin(async move { future.await.into_completion() })
    }
}
