//! A framework for Model Context Protocol servers: one handler source for every revision.
//!
//! A [`Server`] offers [`Tool`]s, [`Resource`]s and [`Prompt`]s, which are ordinary values with ordinary builders. Their
//! handlers are functions of up to two parameters: the [`Ctx`] of the call and its arguments. What the client's revision
//! lacks is adapted behind the handler's back; what it offers, asking the user above all, is the same call in each.
//!
//! ```no_run
//! use bowline_server::{Ctx, Prompt, Resource, Result, Server, Tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Person {
//!     name: String,
//! }
//!
//! async fn greet(ctx: Ctx) -> Result<String> {
//!     let person: Person = ctx.ask("Who are you?").await?.accepted()?;
//!     Ok(format!("Hello, {}!", person.name))
//! }
//!
//! # async fn run() -> Result<(), bowline_server::ServeError> {
//! Server::new("demo")
//!     .tool(Tool::new("greet").description("Ask for a name, and greet").handler(greet))
//!     .resource(Resource::new("demo://motd", "message of the day").text("All is well."))
//!     .prompt(Prompt::new("haiku").handler(|| "Write a haiku."))
//!     .serve_stdio()
//!     .await
//! # }
//! ```
//!
//! Around every call there may be [`middleware`]; changes while the server runs are made through its [`Registry`].
//! [`transport`] is what transports are built from.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod backend_tasks;
mod complete;
mod connection;
mod contents;
mod ctx;
mod dispatch;
mod elicit;
mod error;
mod handler;
mod hub;
mod limits;
mod lists;
mod messages;
mod method;
pub mod middleware;
mod model_schema;
mod observe;
mod output;
mod progress;
mod prompt;
mod random;
mod registry;
mod resource;
mod result_check;
mod round;
mod schema;
mod scopes;
mod serve_error;
mod server;
mod server_handle;
mod stdio;
mod strings;
#[cfg(feature = "tasks")]
mod tasks;
pub mod testing;
mod tool;
mod toolset;
pub mod transport;
mod url_elicitation;

pub use backend_tasks::{BackendTasks, SendTask};
pub use bowline_proto::{
    caller::Caller,
    scope::Scopes,
    seal::{Key, KeyRing},
    service::{
        BoxFuture, Call, CallNotification, ClientView, Extensions, MethodName, Middleware, Next, NextCall,
        Notifier, Outcome, OutcomeKind, Reply, Service,
    },
};
pub use bowline_types::Answer;
pub use complete::{AtOnce, Completer, CompletionRequest, InTime, IntoCompletion, WithCtx};
pub use contents::IntoContents;
pub use ctx::{Ctx, Visit};
pub use error::{BoxError, Error, HandlerError, IntoError, Result};
pub use handler::{
    Args, Arguments, CtxArgs, CtxOnly, Immediate, Nothing, PromptHandler, ResourceHandler, Running,
    ToolHandler,
};
pub use hub::Updates;
pub use limits::Limits;
pub use messages::IntoPrompt;
pub use method::{MethodHandler, NotificationHandler};
pub use observe::{CallOrigin, MessageDirection, ObservedMessage};
pub use output::{IntoOutput, Json};
pub use progress::{ProgressTotal, ProgressValue};
pub use prompt::{IntoPromptEntry, Prompt};
pub use registry::Registry;
pub use resource::{IntoResource, Resource, ResourceSource};
pub use schema::{FromJson, ToJson};
pub use serve_error::{BuildError, ServeError};
pub use server::Server;
pub use server_handle::{Announcer, ServerHandle, TaskFollowing};
#[cfg(feature = "tasks")]
#[cfg_attr(docsrs, doc(cfg(feature = "tasks")))]
pub use tasks::{Job, JobProgress, JobStatus, Task, Tasks};
pub use tool::{IntoTool, Tool};
pub use toolset::{Entries, Toolset};
