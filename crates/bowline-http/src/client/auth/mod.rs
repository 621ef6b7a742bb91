//! Logs in with OAuth: discovery, registration, authorization, refresh and step-up.
//!
//! The flows are values of `bowline-auth`; this module sends their requests with the connection settings of the target.
//!
//! ```no_run
//! # async fn open_window(_: &str) -> std::io::Result<String> { Ok(String::new()) }
//! # async fn example() -> bowline_client::Result {
//! use bowline_client::Client;
//! use bowline_http::{auth::Login, http};
//!
//! // The application opens the URL, and returns the URL that the browser is redirected to.
//! let login = Login::with(|visit| async move { open_window(visit.url()).await });
//! let client = Client::connect(http("https://notes.example.com/mcp").login(login)).await?;
//! # Ok(())
//! # }
//! ```

mod account;
mod browser;
mod check;
mod device;
mod event;
mod fetch;
mod flow;
mod lock;
mod login;
mod loopback;
mod machine;
mod memory;
mod private_file;
mod proof;
mod reach;
mod sealing;
mod session;
mod store_file;

pub use account::{Account, LoggedOut};
pub use bowline_auth::{
    AuthMethod, ClientDocument, ClientId, ClientOrigin, DevicePrompt, Error, Issuer, Lenient, NeededLogin,
    ProtectedResource, Record, Redirect, Registration, Scheme, Scopes, Secret, ServerMetadata, Store,
    StoreKey, StoreLock, TokenSet, UserAgent, Visit, check_extra_parameter, jose::SigningKey,
};
pub use browser::Browser;
pub use check::AuthorizationCheck;
pub use event::Event;
pub use login::Login;
pub use loopback::{CallbackHost, Loopback};
pub use memory::MemoryStore;
pub use reach::Networks;
pub use sealing::SealingKey;
pub use store_file::FileStore;

pub(super) use login::LoginSlot;
pub(crate) use reach::LearnedHosts;
pub(super) use session::{LoginAttempts, Session};
