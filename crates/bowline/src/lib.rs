//! The Model Context Protocol, whole, in Rust: servers and clients that speak all five revisions from one source.
//!
//! ```no_run
//! # #[cfg(feature = "server")] mod demo {
//! use bowline::prelude::*;
//!
//! /// Add two numbers.
//! #[tool]
//! fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), ServeError> {
//!     Server::new("demo").tool(add::tool()).serve_stdio().await
//! }
//! # }
//! ```
//!
//! That is a server: it runs as a child process of its client and talks over standard input and output. The doc comment
//! is what the model reads, the parameters become the schema of the arguments, and the function stays a function.
//!
//! # A server's parts
//!
//! - [`Server`] holds what is offered and serves it. Functions become entries of it by [`#[tool]`](macro@tool),
//!   [`#[prompt]`](macro@prompt) and [`#[resource("…")]`](macro@resource), the methods of a state by
//!   [`#[tools]`](macro@tools); without attributes the same is said with the builders [`Tool`], [`Prompt`] and [`Resource`].
//! - [`Ctx`], as a parameter, is the way to the client: [ask](server::Ctx::ask) the user, have its model
//!   [write](server::Ctx::sample), report [progress](server::Ctx::progress), [log](server::Ctx::log).
//! - [`Json<T>`](server::Json), as a result, is structured data with a schema. Text, numbers and
//!   [`Content`](types::ContentBlock) do without.
//! - [`Result`] is what a handler may return instead: any error becomes text the model can read, while
//!   [`Error::invalid_params`] and its like fail the request.
//! - [`#[data]`](macro@data) on a struct or enum derives what arguments, answers and structured results need.
//!
//! [`Server`]: server::Server
//! [`Tool`]: server::Tool
//! [`Prompt`]: server::Prompt
//! [`Resource`]: server::Resource
//! [`Ctx`]: server::Ctx
//!
//! ```
//! # #[cfg(feature = "server")] mod demo {
//! use bowline::prelude::*;
//!
//! #[data]
//! struct Confirm {
//!     /// Delete for good?
//!     sure: bool,
//! }
//!
//! /// Delete a project after asking its owner.
//! #[tool(destructive)]
//! async fn delete_project(ctx: Ctx, name: String) -> Result<String> {
//!     let answer: Confirm = ctx.ask(format!("Delete {name}?")).await?.accepted()?;
//!     Ok(if answer.sure { format!("deleted {name}") } else { "kept".into() })
//! }
//! # }
//! ```
//!
//! # A client's parts
//!
//! [`Client`] connects to a server, whichever revision that speaks, and calls it.
//! [`command`](client::command) is a server to start; handlers set on [`Client::builder`](client::Client::builder) answer
//! what the server asks back.
//!
//! ```no_run
//! # #[cfg(feature = "client")] async fn demo() -> bowline::Result {
//! use bowline::prelude::*;
//!
//! let client = Client::connect(command("my-server", ["--stdio"])).await?;
//! let sum = client.call("add", json!({ "a": 1, "b": 2 })).await?;
//! assert_eq!(sum.text(), "3");
//! # Ok(())
//! # }
//! ```
//!
//! A server on the network is named by its URL instead ([`http`](http::http)), and served by
//! [`serve_http`](http::ServeHttp::serve_http) instead of [`serve_stdio`](server::Server::serve_stdio):
//!
//! ```no_run
//! # #[cfg(all(feature = "client", feature = "http"))] async fn demo() -> bowline::Result {
//! use bowline::prelude::*;
//!
//! let client = Client::connect(http("https://tickets.example.com/mcp")).await?;
//! # Ok(())
//! # }
//! # #[cfg(all(feature = "server", feature = "http"))] async fn serve() -> Result<(), bowline::ServeError> {
//! # use bowline::prelude::*;
//!
//! Server::new("demo").serve_http("127.0.0.1:8080").await
//! # }
//! ```
//!
//! # Many servers as one
//!
//! A [`Host`] owns servers by name and offers all they offer as one, under one policy, to clients of any
//! revision. A [`Gateway`] is the host that a configuration describes.
//!
//! ```
//! # #[cfg(feature = "host")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> bowline::Result {
//! use bowline::{client::memory, host::Host, prelude::*};
//!
//! let polite = Server::new("polite").tool(Tool::new("greet").handler(|| "hello")).build()?;
//! let host = Host::builder().add("polite", polite).build();
//! let gateway = host.open(Server::new("gateway"))?;
//!
//! let (near, far) = memory();
//! tokio::spawn(async move { gateway.serve(far.read, far.write).await });
//! let client = Client::connect(near).await?;
//! assert_eq!(client.tools().await?[0].name, "polite__greet");
//! # host.close().await;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "host"))]
//! # fn main() {}
//! ```
//!
//! # Modules and features
//!
//! What most programs use is in [`prelude`]; where both sides have a type of the same name ([`Error`], [`Result`]) it
//! is the server's, unless only `client` is on. The rest is in modules: [`types`] has the types of the protocol, [`server`]
//! and [`client`] the two sides, [`http`] both over HTTP. What transports are built from is in [`unstable`]. With
//! the feature `host`, [`host`] is the host and its gateway, and [`config`], [`policy`], [`models`], [`search`] and
//! [`telemetry`] are its parts.
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `server` | yes | `server`, and `macros` with it |
//! | `client` | no | `client` |
//! | `http` | no | `http`, for `server` and `client` as far as they are enabled |
//! | `auth` | no | `auth`: OAuth over HTTP |
//! | `host` | no | `host`: many servers as one, and with it the three before |
//! | `macros` | yes | the attributes |
//! | `validate` | yes | JSON Schema validation beyond what types say |
//! | `tracing` | yes | the middleware that opens a span per call |
//!
//! The book in the folder `docs` of the repository has a chapter on each of these, and on moving from `rmcp`.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "host")]
pub use bowline_config as config;
#[cfg(feature = "host")]
pub use bowline_models as models;
#[cfg(feature = "host")]
pub use bowline_policy as policy;
#[cfg(feature = "host")]
pub use bowline_search as search;
#[cfg(feature = "host")]
pub use bowline_telemetry as telemetry;

#[cfg(feature = "client")]
pub use bowline_client::{Client, ClientBuilder};
#[cfg(all(feature = "client", not(feature = "server")))]
pub use bowline_client::{Error, Result};
#[cfg(feature = "host")]
pub use bowline_host::{Gateway, Host};
#[cfg(feature = "server")]
pub use bowline_server::{
    BoxError, BuildError, CompletionRequest, Ctx, Error, HandlerError, Json, Prompt, Registry, Resource,
    Result, ServeError, Server, ServerHandle, Tool,
};

#[cfg(feature = "macros")]
pub use bowline_macros::data;
#[cfg(feature = "server")]
pub use bowline_macros::{prompt, resource, tool, tools};

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private;
pub mod prelude;

/// The types of the protocol that handlers and clients use.
pub mod types {
    pub use bowline_types::{
        Annotations, Answer, AudioContent, BlobResourceContents, BooleanSchema, CacheScope, CallToolResult,
        Capability, ClientCapabilities, Completion, ContentBlock, CreateMessageParams, CreateMessageResult,
        DiscoverResult, ElicitAction, ElicitFormParams, ElicitMode, ElicitParams, ElicitResult, ElicitSchema,
        ElicitUrlParams, ElicitationCapability, ElicitationCompleteParams, EmbeddedResource, EnumOption,
        EnumSchema, Era, GetPromptResult, Icon, IconTheme, Id, ImageContent, Implementation, IncludeContext,
        InputRequest, InputRequests, InputResponses, LogMessageParams, LoggingLevel, Meta, MetaKeyError,
        Method, ModelHint, ModelPreferences, MultiSelectItems, MultiSelectSchema, NotAccepted, NumberKind,
        NumberSchema, OneOrMany, OrderedMap, PrimitiveSchema, ProgressParams, ProgressToken, Prompt,
        PromptArgument, PromptMessage, PromptReference, PromptsCapability, RawJson, RawMap,
        ReadResourceResult, Reference, Resource, ResourceContents, ResourceLink, ResourceTemplate,
        ResourceTemplateReference, ResourceUpdatedParams, ResourcesCapability, ResultType, Revision, Role,
        Root, RootsCapability, RpcError, SamplingCapability, SamplingMessage, ServerCapabilities, StopReason,
        StringFormat, StringSchema, SubscriptionFilter, TextContent, TextResourceContents, Tool,
        ToolAnnotations, ToolChoice, ToolChoiceMode, ToolExecution, ToolResultContent, ToolUseContent,
        ToolsCapability, TraceContext, UnknownLoggingLevel, UnknownRevision, error_code, meta,
    };
}

/// Servers, and what their handlers take and return.
#[cfg(feature = "server")]
pub mod server {
    pub use bowline_server::{
        Announcer, Answer, Arguments, BoxError, BoxFuture, BuildError, Call, CallNotification, Caller,
        ClientView, Completer, CompletionRequest, Ctx, Entries, Error, Extensions, FromJson, HandlerError,
        IntoCompletion, IntoContents, IntoError, IntoOutput, IntoPrompt, IntoPromptEntry, IntoResource,
        IntoTool, Json, Key, KeyRing, Limits, MethodHandler, MethodName, Middleware, Next, NextCall,
        NotificationHandler, Notifier, Outcome, OutcomeKind, ProgressTotal, ProgressValue, Prompt,
        PromptHandler, Registry, Reply, Resource, ResourceHandler, ResourceSource, Result, Running, Scopes,
        ServeError, Server, ServerHandle, Service, ToJson, Tool, ToolHandler, Toolset, Updates, Visit,
        middleware,
    };
}

/// Clients, and the programs that they start.
#[cfg(feature = "client")]
pub mod client {
    pub use bowline_client::{
        Answer, Ask, AskUrl, Backoff, BoxFuture, Change, Child, Client, ClientBuilder, ClientEnd, Command,
        Connect, Direction, Environment, Error, Exit, IntoAnswer, Items, Limits, ListBudget, ListLimits,
        Listen, Negotiated, Notification, OpenError, Page, ProcessError, Request, Restart, Result, Retry,
        ServerEnd, Stderr, StderrMode, Stream, ToolResult, check_field, check_form, choose_model, command,
        is_accessible_root, memory,
    };
}

/// Servers and clients over HTTP.
#[cfg(feature = "http")]
pub mod http {
    #[cfg(feature = "client")]
    pub use bowline_http::{
        Attempts, Authorize, Challenge, HttpTarget, Proxy, Reaction, Refusal, Resolve, http,
    };
    #[cfg(feature = "server")]
    pub use bowline_http::{
        Body, EventLog, EventStore, HttpOptions, HttpService, MemoryEvents, Principal, RequestFilter,
        ServeHttp,
    };
    #[cfg(all(feature = "auth", feature = "server"))]
    pub use bowline_http::{
        Dpop, Introspection, IssuerKeys, Jwks, MetadataService, Protect, ProtectError, Protected,
        ProtectedBody, Protection,
    };
}

/// Many servers as one: the host, and the gateway that a configuration describes.
#[cfg(feature = "host")]
pub mod host {
    pub use bowline_host::{
        Gateway, Health, Host, HostBuilder, HttpUpstream, LaunchError, LoginSettings, Reach, Share, Start,
        Telemetry, Upstream, UpstreamStatus, gateway,
    };
}

/// Authorization over HTTP: clients log in, servers verify tokens.
#[cfg(feature = "auth")]
pub mod auth {
    pub use bowline_auth::*;
    pub use bowline_http::auth::*;
}

/// What transports and gateways are built from. It may change in any release.
pub mod unstable {
    #[cfg(feature = "client")]
    pub use bowline_client as client;
    #[cfg(feature = "host")]
    pub use bowline_host as host;
    #[cfg(feature = "http")]
    pub use bowline_http as http;
    pub use bowline_proto as proto;
    #[cfg(feature = "server")]
    pub use bowline_server as server;
    pub use bowline_types as types;
}

/// The snippets of the README have to compile.
#[cfg(all(doctest, feature = "server", feature = "client"))]
#[doc = include_str!("../../../README.md")]
mod readme {}
