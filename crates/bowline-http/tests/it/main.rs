//! What the endpoint promises, request by request, and what the client makes of servers good and bad.

mod addresses;
mod auth_client;
mod client_authorization;
mod client_cuts;
mod client_end_to_end;
mod client_eras;
mod client_headers;
mod client_listening;
mod client_logs;
mod client_peer;
mod client_post;
mod client_proxy;
mod client_redirects;
mod client_relay;
mod client_replies;
mod client_sessions;
mod client_tls;
mod client_two_endpoints;
mod connections;
mod context;
mod dev_issuer;
mod front;
mod issuer_keys;
mod leaks;
mod legacy;
mod modern;
mod principals;
mod protect;
mod retention;
#[cfg(feature = "store")]
mod shared_sessions;
mod shutdown;
mod socket;
mod tasks;
mod wire;
