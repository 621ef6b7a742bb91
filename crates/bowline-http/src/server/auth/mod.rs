//! The server as an OAuth resource server: it verifies access tokens, publishes where they come from, and checks scopes.

pub(super) mod dpop;
mod introspect;
#[cfg(feature = "issuer")]
mod issuer;
mod keys;
mod layer;
pub(super) mod metadata;
mod protect;
pub(super) mod protection;
mod refusal;

pub use dpop::Dpop;
pub use introspect::Introspection;
#[cfg(feature = "issuer")]
pub use issuer::IssuerService;
pub use keys::{IssuerKeys, Jwks};
pub use layer::{Protected, ProtectedBody};
pub use metadata::MetadataService;
pub use protect::{Protect, ProtectError};
pub use protection::Protection;
pub use refusal::{AccessRefusal, AccessRefusalKind};
