//! Methods and notifications of the author's own, besides those of the protocol.

use crate::{Ctx, Error, IntoError};
use bowline_proto::{custom::CustomMethods, params::Params, service::BoxFuture};
use bowline_types::RawJson;
use serde::{Serialize, de::DeserializeOwned};
use std::{collections::HashMap, fmt, future::Future, sync::Arc};

/// A function that answers a custom method: `async fn(Ctx, Params) -> Result<Reply, E>`, with either parameter optional.
///
/// `Params` is read from the `params` of the request, without `_meta`. `Reply` must serialize to an object; `()` becomes
/// an empty one. See [`Server::method`](crate::Server::method).
#[diagnostic::on_unimplemented(
    message = "this function cannot answer a method",
    label = "expected `async fn(Ctx, Params) -> Result<Reply, E>`, with either parameter optional",
    note = "`Params` must implement `serde::Deserialize`, and `Reply` must implement `serde::Serialize`"
)]
pub trait MethodHandler<M>: Send + Sync + 'static {
    /// Answers one request.
    fn call(&self, ctx: Ctx, params: RawJson) -> BoxFuture<'static, Result<RawJson, Error>>;
}

/// A function that takes a custom notification: `async fn(Ctx, Params)`, with either parameter optional.
///
/// See [`Server::notification`](crate::Server::notification).
#[diagnostic::on_unimplemented(
    message = "this function cannot take a notification",
    label = "expected `async fn(Ctx, Params)`, with either parameter optional",
    note = "`Params` must implement `serde::Deserialize`"
)]
pub trait NotificationHandler<M>: Send + Sync + 'static {
    /// Takes one notification. Fails when its parameters cannot be read.
    fn call(&self, ctx: Ctx, params: RawJson) -> Result<BoxFuture<'static, ()>, Error>;
}

/// Implements both traits for one shape of functions.
macro_rules! shapes {
    ($(($($Slot:ty),*) [$($P:ident)?] |$ctx:ident, $params:ident| ($($given:ident),*);)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<F, Fut, R, E, $($P)?> MethodHandler<($($Slot,)*)> for F
        where
            F: Fn($($Slot),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<R, E>> + Send + 'static,
            R: Serialize,
            E: IntoError,
            $($P: DeserializeOwned + Send + 'static,)?
        {
            fn call(&self, $ctx: Ctx, $params: RawJson) -> BoxFuture<'static, Result<RawJson, Error>> {
                $(let $params: $P = match decode(&$params) {
                    Ok(params) => params,
                    Err(error) => return Box::pin(std::future::ready(Err(error))),
                };)?
                let _ = (&$ctx, &$params);
                let answer = self($($given),*);
                Box::pin(async move { encode(&answer.await.map_err(IntoError::into_error)?) })
            }
        }

        #[diagnostic::do_not_recommend]
        impl<F, Fut, $($P)?> NotificationHandler<($($Slot,)*)> for F
        where
            F: Fn($($Slot),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = ()> + Send + 'static,
            $($P: DeserializeOwned + Send + 'static,)?
        {
            fn call(&self, $ctx: Ctx, $params: RawJson) -> Result<BoxFuture<'static, ()>, Error> {
                $(let $params: $P = decode(&$params)?;)?
                let _ = (&$ctx, &$params);
                Ok(Box::pin(self($($given),*)))
            }
        }
    )*};
}

shapes! {
    (Ctx, P) [P] |ctx, params| (ctx, params);
    (P) [P] |ctx, params| (params);
    (Ctx) [] |ctx, params| (ctx);
    () [] |ctx, params| ();
}

fn decode<P: DeserializeOwned>(params: &RawJson) -> Result<P, Error> {
    params.decode().map_err(|error| Error::invalid_params(error.to_string()))
}

fn encode<R: Serialize>(reply: &R) -> Result<RawJson, Error> {
    let reply = RawJson::of(reply).map_err(|error| Error::internal(error.to_string()))?;
    if reply.is_null() {
        return Ok(RawJson::empty_object());
    }
    if !reply.is_object() {
        return Err(Error::internal(format!("expected a reply that serializes to an object, got `{reply}`")));
    }
    Ok(reply)
}

type Answer = Arc<dyn Fn(Ctx, RawJson) -> BoxFuture<'static, Result<RawJson, Error>> + Send + Sync>;
type Take = Arc<dyn Fn(Ctx, RawJson) -> Result<BoxFuture<'static, ()>, Error> + Send + Sync>;

/// The handlers of custom methods and notifications, by name.
#[derive(Clone, Default)]
pub(crate) struct CustomHandlers {
    pub(crate) names: CustomMethods,
    methods: HashMap<Box<str>, Answer>,
    notifications: HashMap<Box<str>, Take>,
}

impl CustomHandlers {
    /// Adds a method. False when there is one of this name.
    pub(crate) fn add_method<M>(
        &mut self,
        name: &str,
        extension: Option<&str>,
        handler: impl MethodHandler<M>,
    ) -> bool {
        let answer = move |ctx: Ctx, params: RawJson| handler.call(ctx, params);
        self.methods.insert(name.into(), Arc::new(answer));
        self.names.add_request(name, extension)
    }

    /// Adds a notification. False when there is one of this name.
    pub(crate) fn add_notification<M>(&mut self, name: &str, handler: impl NotificationHandler<M>) -> bool {
        let take = move |ctx: Ctx, params: RawJson| handler.call(ctx, params);
        self.notifications.insert(name.into(), Arc::new(take));
        self.names.add_notification(name)
    }

    /// Starts the handler of a method, if there is one.
    pub(crate) fn call(
        &self,
        name: &str,
        ctx: Ctx,
        params: &Params,
    ) -> Option<BoxFuture<'static, Result<RawJson, Error>>> {
        let handler = self.methods.get(name)?;
        Some(match own_params(params) {
            Ok(params) => handler(ctx, params),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        })
    }

    /// Starts the handler of a notification, if there is one. Errors are not reported, because notifications have no
    /// response.
    pub(crate) fn notify(&self, name: &str, ctx: Ctx, params: &Params) -> Option<BoxFuture<'static, ()>> {
        let handler = self.notifications.get(name)?;
        own_params(params).and_then(|params| handler(ctx, params)).ok()
    }
}

impl fmt::Debug for CustomHandlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomHandlers").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Returns the parameters without `_meta`, so that a type can reject unknown members.
fn own_params(params: &Params) -> Result<RawJson, Error> {
    let invalid = |error: serde_json::Error| Error::invalid_params(error.to_string());
    let mut members = params.raw().members().map_err(invalid)?;
    if members.remove("_meta").is_none() {
        return Ok(params.raw().clone());
    }
    RawJson::of(&members).map_err(invalid)
}
