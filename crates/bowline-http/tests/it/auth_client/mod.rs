//! Logins of the client, against a scripted MCP server with an authorization server of its own.

mod discovery;
mod dpop;
mod logins;
mod machines;
mod metadata_threats;
mod real_issuer;
mod threats;
mod world;
