//! The Model Context Protocol over HTTP, both sides of it.
//!
//! [`HttpService`] is a tower service: it mounts in axum, or is served by [`ServeHttp::serve_http`]. One endpoint answers
//! every revision; the era is chosen per request. Its [`HttpOptions`] say who may call, under which names, and how much.
//!
//! [`http()`] names a server by its URL, for a client to connect to. Which era the server is of, and whether it is one of
//! the two-endpoint servers of 2024-11-05, is found out by itself.
//!
//! ```
//! # #[cfg(all(feature = "server", feature = "client"))]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> bowline_server::Result {
//! use bowline_client::Client;
//! use bowline_http::{HttpService, http};
//! use bowline_server::{Server, Tool};
//!
//! let service = HttpService::new(Server::new("demo").tool(Tool::new("greet").handler(|| "hello")))?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let url = format!("http://{}/mcp", listener.local_addr()?);
//! let serving = tokio::spawn(async move { service.serve(listener, std::future::pending()).await });
//!
//! let client = Client::connect(http(url)).await?;
//! assert_eq!(client.call("greet", ()).await?.text(), "hello");
//! client.close().await;
//! serving.abort();
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "server", feature = "client")))]
//! # fn main() {}
//! ```
//!
//! | feature | default | gives |
//! |---|---|---|
//! | `server` | yes | [`HttpService`], [`ServeHttp`], [`HttpOptions`]; [`RequestFilter`] for what else is answered on the socket |
//! | `client` | yes | [`http()`], [`HttpTarget`]; [`Poster`] for requests beside the protocol |
//! | `auth` | yes | authorization: [`HttpTarget::login`] and [`auth`] in the client, [`Protect`] in the server |
//! | `store` | no | [`SessionStore`]: sessions that several processes share |
//! | `issuer` | no | an authorization server for development: `Protect::dev` |
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
pub mod reach;
#[cfg(feature = "server")]
mod server;

#[cfg(feature = "auth")]
#[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
pub use client::auth;
#[cfg(feature = "client")]
pub use client::{
    Attempts, Authorize, Challenge, HttpTarget, Post, PostAnswer, PostError, Poster, Proxy, Reaction,
    Reference, Refusal, Resolve, http,
};
#[cfg(feature = "issuer")]
#[cfg_attr(docsrs, doc(cfg(feature = "issuer")))]
pub use server::IssuerService;
#[cfg(all(feature = "auth", feature = "server"))]
pub use server::{
    AccessRefusal, AccessRefusalKind, Dpop, Introspection, IssuerKeys, Jwks, MetadataService, Protect,
    ProtectError, Protected, ProtectedBody, Protection,
};
#[cfg(feature = "server")]
pub use server::{
    Authority, Body, EventLog, EventStore, HttpOptions, HttpService, MemoryEvents, PeerAddress, Principal,
    RequestBody, RequestFilter, ServeHttp, serve,
};
#[cfg(feature = "store")]
#[cfg_attr(docsrs, doc(cfg(feature = "store")))]
pub use server::{Resume, SessionStore};
