//! The host: many servers as one, under one policy.
//!
//! A [`Host`] owns servers by name and is itself a service, so that anything that serves serves it. What it offers is all
//! that its servers offer ([`exposed_name`]); a call goes to the server whose it is, of whatever revision, and what the
//! server asks on the way reaches whoever called, of whatever revision. [`policy`] decides what may happen, [`audit`]
//! writes it down, [`sampling`] asks models, [`search`] finds tools among thousands, [`telemetry`] counts and traces,
//! [`config`] reads the files people have, and a [`Gateway`] is the host that they describe.

mod aggregate;
pub mod audit;
mod bridge;
pub mod config;
pub mod gateway;
mod host;
pub mod near;
pub mod policy;
pub mod sampling;
pub mod search;
pub mod telemetry;
mod upstream;

pub use aggregate::{MAX_NAME, exposed_name};
pub use config::{Share, Start};
pub use gateway::Gateway;
pub use host::{Host, HostBuilder, Telemetry};
pub use upstream::{Health, InProcess, LaunchError, Page, Reach, Upstream, UpstreamStatus};
