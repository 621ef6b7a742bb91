//! The Model Context Protocol for Rust: servers, clients and a gateway for all five protocol revisions.
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
//! This is a complete server. It runs as a child process of its client and uses standard input and output. The doc comment
//! is the description for the model, the parameters are the schema of the arguments, and `add` is still an ordinary function.
//!
//! # Servers
//!
//! - [`Server`] contains tools, prompts and resources, and serves them. Create them from functions with
//!   [`#[tool]`](macro@tool), [`#[prompt]`](macro@prompt) and [`#[resource("…")]`](macro@resource), from the methods of a
//!   type with [`#[tools]`](macro@tools), or with the builders [`Tool`], [`Prompt`] and [`Resource`].
//! - [`Ctx`] is an optional parameter of handlers. It can [ask](server::Ctx::ask) the user, request a response of the
//!   client's [model](server::Ctx::sample), report [progress](server::Ctx::progress) and [log](server::Ctx::log).
//! - [`Json<T>`](server::Json) as a return type is structured content with a schema. Text, numbers and
//!   [`Content`](types::ContentBlock) have no schema.
//! - Handlers can return a [`Result`]. An error of any type becomes text that the model can read;
//!   [`Error::invalid_params`] and similar errors fail the request.
//! - [`#[data]`](macro@data) on a struct or enum derives the traits for arguments, answers and structured content.
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
//!     /// Delete it permanently?
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
//! # Clients
//!
//! [`Client`] connects to a server of any revision and calls it. [`command`](client::command) describes a program to start.
//! Handlers of [`Client::builder`](client::Client::builder) answer requests of the server.
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
//! Over HTTP, a client uses [`http`](http::http) with the URL of the server, and a server uses
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
//! A [`Host`] combines several servers into one, under one policy, for clients of any revision. A [`Gateway`] builds a host
//! from a configuration.
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
//! [`prelude`] has what most programs need. Servers and clients both have an [`Error`] and a [`Result`]; the prelude has those
//! of the server, unless only `client` is enabled. The modules are: [`types`] for the protocol types, [`server`] and
//! [`client`], and [`http`] for both over HTTP. [`unstable`] has the building blocks of transports. With the feature `host`,
//! [`host`] has the host and the gateway, and [`config`], [`policy`], [`models`], [`search`] and [`telemetry`] are its parts.
//!
//! | feature | default | contents |
//! |---|---|---|
//! | `server` | yes | `server`, and `macros` with it |
//! | `client` | no | `client` |
//! | `http` | no | `http`, for `server` and `client` if they are enabled |
//! | `tasks` | no | `Tool::task`, `store`: tool calls that become tasks; enables `server` |
//! | `auth` | no | `auth`: OAuth over HTTP |
//! | `issuer` | no | `http::Protect::dev`: an authorization server for development; enables `auth` and `server` |
//! | `host` | no | `host`: many servers as one; enables `server`, `client`, `http` and `auth` |
//! | `store` | no | `store`: durable records, in memory |
//! | `sqlite`, `postgres`, `redis` | no | the engines of `store::open` |
//! | `macros` | yes | the attributes |
//! | `validate` | yes | JSON Schema validation beyond the types |
//! | `tracing` | yes | the middleware that opens a span per call |
//!
//! The book in the directory `docs` of the repository has a chapter on each topic, and on migrating from `rmcp`.
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

#[cfg(feature = "tasks")]
pub use bowline_server::{Job, JobProgress, JobStatus, Task, Tasks};

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
        StringFormat, StringSchema, SubscriptionFilter, Task, TaskStatus, TextContent, TextResourceContents,
        Tool, ToolAnnotations, ToolChoice, ToolChoiceMode, ToolExecution, ToolResultContent, ToolUseContent,
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
    #[cfg(feature = "tasks")]
    pub use bowline_server::{Job, JobProgress, JobStatus, Task, Tasks};
}

/// Clients, and the programs that they start.
#[cfg(feature = "client")]
pub mod client {
    pub use bowline_client::{
        Answer, Ask, AskUrl, Backoff, BoxFuture, Change, Child, Client, ClientBuilder, ClientEnd, Command,
        Connect, Direction, Environment, Error, Exit, IntoAnswer, Items, Limits, ListBudget, ListLimits,
        Listen, Negotiated, Notification, OpenError, Page, ProcessError, Request, Restart, Result, Retry,
        ServerEnd, Started, Stderr, StderrMode, Stream, TaskHandle, TaskState, TaskUpdates, ToolResult,
        check_field, check_form, choose_model, command, is_accessible_root, memory,
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
    #[cfg(all(feature = "store", feature = "server"))]
    pub use bowline_http::{Resume, SessionStore};
}

/// Many servers as one: the host, and the gateway that a configuration describes.
#[cfg(feature = "host")]
pub mod host {
    pub use bowline_host::{
        Gateway, Health, Host, HostBuilder, HttpUpstream, LaunchError, LoginSettings, Reach, Share, Start,
        Telemetry, Upstream, UpstreamStatus, gateway,
    };
}

/// Stores: durable records, leases and hints. With the feature `store`, [`open`](store::open) opens one by its URL.
#[cfg(any(feature = "store", feature = "tasks"))]
pub mod store {
    pub use bowline_store::{
        Bus, BusEvent, ClaimChange, ClaimId, ClaimRequest, DueChange, Durability, ErrorKind, Expect, Finding,
        Group, Hints, InvalidName, Key, Level, Limited, Limits, Memory, MemoryBus, Message, Namespace,
        NodeId, Owner, Put, PutError, Queue, Reach, Record, Records, RequiredClaim, Sealed, Store,
        StoreBuilder, StoreError, Time, Topic, TtlChange, Version,
    };
    #[cfg(feature = "store")]
    pub use bowline_stores::{InvalidKey, StoreOptions, key_ring, open};
}

/// Authorization over HTTP: clients log in, servers verify tokens.
#[cfg(feature = "auth")]
pub mod auth {
    pub use bowline_auth::*;
    pub use bowline_http::auth::*;
}

/// Building blocks of transports and gateways. They may change in any release.
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

/// Compiles the snippets of the README.
#[cfg(all(doctest, feature = "server", feature = "client"))]
#[doc = include_str!("../../../README.md")]
mod readme {}
