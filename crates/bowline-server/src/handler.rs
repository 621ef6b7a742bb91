//! Functions that handle calls: `fn(Ctx, Args)`, each parameter optional, async or not.

use crate::{Ctx, Error, contents::IntoContents, messages::IntoPrompt, output::IntoOutput, schema};
use bowline_proto::service::BoxFuture;
use bowline_types::{CallToolResult, GetPromptResult, RawJson, ReadResourceResult};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::{fmt, future::Future, marker::PhantomData};

/// A call of a handler: done, or still running.
pub enum Running<T> {
    /// It is done.
    Ready(Result<T, Error>),
    /// It is still running.
    Pending(BoxFuture<'static, Result<T, Error>>),
}

impl<T> fmt::Debug for Running<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready(_) => "Ready",
            Self::Pending(_) => "Pending",
        })
    }
}

/// The arguments of a call, before they have a type.
///
/// Tools get a JSON object. Prompts and templates get strings, which become numbers and booleans where the handler's
/// type wants them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Arguments {
    /// A JSON object.
    Json(RawJson),
    /// Names and values.
    Strings(Vec<(String, String)>),
}

impl Arguments {
    fn decode<A: DeserializeOwned>(&self) -> Result<A, Error> {
        match self {
            Self::Json(raw) => raw.read().map_err(Error::arguments),
            Self::Strings(pairs) => crate::strings::decode(pairs).map_err(Error::arguments),
        }
    }
}

/// Marks a handler of the context and arguments.
#[doc(hidden)]
#[derive(Debug)]
pub struct CtxArgs<A>(PhantomData<A>);
/// Marks a handler of arguments.
#[doc(hidden)]
#[derive(Debug)]
pub struct Args<A>(PhantomData<A>);
/// Marks a handler of the context.
#[doc(hidden)]
#[derive(Debug)]
pub struct CtxOnly;
/// Marks a handler without parameters.
#[doc(hidden)]
#[derive(Debug)]
pub struct Nothing;
/// Marks a handler that is not async.
#[doc(hidden)]
#[derive(Debug)]
pub struct Immediate<M>(PhantomData<M>);

/// Declares one handler trait and implements it for the eight shapes of functions.
macro_rules! handlers {
    (
        $(#[$attribute:meta])*
        trait $Handler:ident: $IntoReply:ident::$into_reply:ident -> $Reply:ty, schema $output_schema:expr
    ) => {
        $(#[$attribute])*
        pub trait $Handler<M>: Send + Sync + 'static {
            /// Returns the schema of the arguments, or `None` if there are no arguments.
            fn input_schema() -> Option<RawJson>;
            /// Returns the schema of the result, if it has one.
            fn output_schema() -> Option<RawJson>;
            /// Runs the handler.
            fn call(&self, ctx: Ctx, arguments: &Arguments) -> Running<$Reply>;
        }

        handlers!(@one $Handler $IntoReply::$into_reply $Reply, $output_schema, CtxArgs<A>, [A], (Ctx, A), |ctx, args| (ctx, args), Some(schema::of::<A>()));
        handlers!(@one $Handler $IntoReply::$into_reply $Reply, $output_schema, Args<A>, [A], (A), |_ctx, args| (args), Some(schema::of::<A>()));
        handlers!(@one $Handler $IntoReply::$into_reply $Reply, $output_schema, CtxOnly, [], (Ctx), |ctx, _args| (ctx), None);
        handlers!(@one $Handler $IntoReply::$into_reply $Reply, $output_schema, Nothing, [], (), |_ctx, _args| (), None);
    };
    (@decode [A] $arguments:ident) => { $arguments.decode::<A>() };
    (@decode [] $arguments:ident) => {{ let _ = $arguments; Ok::<(), Error>(()) }};
    (
        @one $Handler:ident $IntoReply:ident::$into_reply:ident $Reply:ty, $output_schema:expr, $Marker:ty, [$($A:ident)?],
        ($($Slot:ty),*), |$ctx:ident, $args:ident| ($($given:ident),*), $input_schema:expr
    ) => {
        #[diagnostic::do_not_recommend]
        impl<F, Fut, R, $($A)?> $Handler<$Marker> for F
        where
            F: Fn($($Slot),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = R> + Send + 'static,
            R: $IntoReply,
            $($A: DeserializeOwned + JsonSchema + Send + 'static,)?
        {
            fn input_schema() -> Option<RawJson> {
                $input_schema
            }

            fn output_schema() -> Option<RawJson> {
                $output_schema
            }

            fn call(&self, $ctx: Ctx, arguments: &Arguments) -> Running<$Reply> {
                let $args = match handlers!(@decode [$($A)?] arguments) {
                    Ok(args) => args,
                    Err(error) => return Running::Ready(Err(error)),
                };
                let _ = &$args;
                let future = self($($given),*);
                Running::Pending(Box::pin(async move { future.await.$into_reply() }))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<F, R, $($A)?> $Handler<Immediate<$Marker>> for F
        where
            F: Fn($($Slot),*) -> R + Send + Sync + 'static,
            R: $IntoReply,
            $($A: DeserializeOwned + JsonSchema + Send + 'static,)?
        {
            fn input_schema() -> Option<RawJson> {
                $input_schema
            }

            fn output_schema() -> Option<RawJson> {
                $output_schema
            }

            fn call(&self, $ctx: Ctx, arguments: &Arguments) -> Running<$Reply> {
                let $args = match handlers!(@decode [$($A)?] arguments) {
                    Ok(args) => args,
                    Err(error) => return Running::Ready(Err(error)),
                };
                let _ = &$args;
                Running::Ready(self($($given),*).$into_reply())
            }
        }
    };
}

handlers! {
    /// A function that can be a tool.
    #[diagnostic::on_unimplemented(
        message = "this function cannot be a tool",
        label = "expected `fn(Ctx, Args) -> Output`, with either parameter optional",
        note = "`Args` must implement `serde::Deserialize` and `schemars::JsonSchema`: put `#[data]` on it",
        note = "the return type must be text, a number, `Json<T>`, `Content` or a `Result` of these",
        note = "put `#[tool]` on the function to see which part is wrong"
    )]
    trait ToolHandler: IntoOutput::into_output -> CallToolResult, schema R::output_schema()
}

handlers! {
    /// A function that can read a resource.
    #[diagnostic::on_unimplemented(
        message = "this function cannot read a resource",
        label = "expected `fn(Ctx, Args) -> Contents`, with either parameter optional",
        note = "`Args` holds the variables of the URI template and must implement `serde::Deserialize` and `schemars::JsonSchema`: put `#[data]` on it",
        note = "the return type must be text, bytes, `Json<T>`, `ResourceContents` or a `Result` of these"
    )]
    trait ResourceHandler: IntoContents::into_contents -> ReadResourceResult, schema None
}

handlers! {
    /// A function that can fill a prompt.
    #[diagnostic::on_unimplemented(
        message = "this function cannot be a prompt",
        label = "expected `fn(Ctx, Args) -> Messages`, with either parameter optional",
        note = "`Args` holds the prompt's arguments and must implement `serde::Deserialize` and `schemars::JsonSchema`: put `#[data]` on it",
        note = "the return type must be text, `Vec<PromptMessage>`, `GetPromptResult` or a `Result` of these"
    )]
    trait PromptHandler: IntoPrompt::into_prompt -> GetPromptResult, schema None
}
