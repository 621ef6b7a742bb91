//! The authorization of the Model Context Protocol, without IO.
//!
//! A flow is a value that says which request comes next. Time and random bytes are arguments.

pub mod challenge;
mod error;
pub mod form;
pub mod jose;
mod secret;
pub mod store;
mod text;
mod url;
pub mod verify;
pub mod visit;

pub use bowline_proto::{
    caller::Caller,
    scope::{self, Scopes},
};
pub use challenge::Challenge;
pub use error::{Error, NeededLogin};
pub use secret::Secret;
pub use store::{
    AuthMethod, BoxFuture, ClientOrigin, Record, Registration, Scheme, Store, StoreKey, StoreLock, TokenSet,
};
pub use text::{ClientId, Issuer, Resource, ResourceMatch, resource_metadata_urls};
pub use verify::{Hierarchy, Refusal, Verdict, Verify};
pub use visit::{Redirect, UserAgent, Visit};
