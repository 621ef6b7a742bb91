//! The server as an OAuth resource server: it verifies access tokens, publishes where they come from, and checks scopes.

mod introspect;
mod keys;
mod layer;
pub(super) mod metadata;
mod protect;
mod protection;

pub use introspect::Introspection;
pub use keys::{IssuerKeys, Jwks};
pub use layer::{Protected, ProtectedBody};
pub use metadata::MetadataService;
pub use protect::{Protect, ProtectError};
pub use protection::Protection;
