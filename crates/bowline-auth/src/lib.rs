//! The authorization of the Model Context Protocol, without IO.
//!
//! A flow is a value that says which request comes next. Time and random bytes are arguments.
//!
//! The feature `issuer` adds an authorization server for development and tests.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod authorize;
pub mod challenge;
mod device;
pub mod discover;
pub mod dpop;
mod error;
mod exchange;
pub mod form;
#[cfg(feature = "issuer")]
#[cfg_attr(docsrs, doc(cfg(feature = "issuer")))]
pub mod issuer;
pub mod jose;
mod lenient;
mod metadata;
mod register;
mod secret;
mod step;
pub mod store;
mod text;
mod token;
mod url;
pub mod verify;
pub mod visit;

#[cfg(test)]
mod flow_tests;

pub use authorize::{
    AuthorizationCode, AuthorizationRequest, PendingAuthorization, ScopeSources, check_extra_parameter,
};
pub use bowline_proto::{
    caller::Caller,
    scope::{self, Scopes},
};
pub use challenge::Challenge;
pub use device::{DevicePrompt, DeviceRequest, PendingDevice};
pub use discover::{ResourceDiscovery, ServerDiscovery};
pub use error::{Error, NeededLogin};
pub use exchange::AssertionExchange;
pub use form::Form;
pub use lenient::Lenient;
pub use metadata::{ClientDocument, ProtectedResource, Rules, ServerMetadata};
pub use register::{ClientChoice, ClientSettings, DynamicRegistration};
pub use secret::Secret;
pub use step::{Redirects, Reply, Request, RequestBody, Step};
pub use store::{
    AuthMethod, BoxFuture, ClientOrigin, Record, Registration, Scheme, Store, StoreKey, StoreLock, TokenSet,
};
pub use text::{ClientId, Issuer, Resource, ResourceMatch, resource_metadata_urls};
pub use token::{ClientAuth, Grant, IssuedTokens, TokenError, TokenRequest, is_due};
pub use verify::{Hierarchy, Refusal, Verdict, Verify};
pub use visit::{Redirect, UserAgent, Visit};
