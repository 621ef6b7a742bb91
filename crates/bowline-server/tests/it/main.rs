//! What the server framework promises, seen from the other end of a connection.

mod asking;
mod wire;
