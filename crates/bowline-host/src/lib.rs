//! The host: many servers as one, under one policy.
//!
//! A [`Host`] owns servers by name and is itself a service, so that anything that serves serves it. What it offers is all
//! that its servers offer ([`exposed_name`]); a call goes to the server whose it is, of whatever revision, and what the
//! server asks during a call reaches the caller, in any revision. A [`Gateway`] is the host that configuration files
//! describe.
//!
//! The parts of a host are crates of their own: [`bowline_config`] reads configuration, [`bowline_policy`] decides what is
//! allowed and writes the audit log, [`bowline_models`] answers sampling requests, [`bowline_search`] finds tools among
//! thousands, and [`bowline_telemetry`] counts and traces.

mod aggregate;
mod bridge;
pub mod gateway;
mod host;
mod tap;
mod upstream;

pub use aggregate::{MAX_NAME, exposed_name};
pub use bowline_config::{Share, Start};
pub use gateway::Gateway;
pub use host::{
    AcceptError, Host, HostBuilder, Offered, ServerOffer, ServerToolPins, Telemetry, ToolPin, ToolPinStatus,
};
pub use tap::{AtRevision, ConsentGiven, ServerMessage, Tap, TapEvent, current_call};
pub use upstream::{
    Health, HttpUpstream, LaunchError, LoginSettings, LoginStorage, MachineLogin, Reach, Upstream,
    UpstreamStatus,
};
