//! The server's side of HTTP.

mod access;
#[cfg(feature = "auth")]
mod auth;
mod body;
mod budget;
mod connections;
mod cors;
mod events;
mod filter;
mod guard;
mod legacy;
mod listen;
mod modern;
mod options;
mod post_body;
mod refused;
mod reply;
mod retention;
mod serve;
mod service;
#[cfg(feature = "store")]
mod shared_sessions;

#[cfg(feature = "issuer")]
pub use auth::IssuerService;
#[cfg(feature = "auth")]
pub use auth::{
    AccessRefusal, AccessRefusalKind, Dpop, Introspection, IssuerKeys, Jwks, MetadataService, Protect,
    ProtectError, Protected, ProtectedBody, Protection,
};
pub use body::Body;
pub use filter::RequestFilter;
pub use guard::Authority;
pub use legacy::{EventLog, EventStore, MemoryEvents};
pub use options::HttpOptions;
pub use serve::{PeerAddress, RequestBody, ServeHttp, serve};
pub use service::{HttpService, Principal};
#[cfg(feature = "store")]
pub use shared_sessions::{Resume, SessionStore};
