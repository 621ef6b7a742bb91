//! Logins of the client, against a scripted MCP server with an authorization server of its own.

mod logins;
mod threats;
mod world;
