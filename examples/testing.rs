//! Testing a server: frame by frame, in memory, without a process or a port.
//!
//! Try it: `cargo test -p bowline-examples --bin testing`.

use bowline::prelude::*;

/// Divide two numbers.
#[tool]
fn divide(a: f64, b: f64) -> Result<f64> {
    if b == 0.0 { Err(Error::tool("division by zero")) } else { Ok(a / b) }
}

fn server() -> Server {
    Server::new("testing").tool(divide::tool())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    server().serve_stdio().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_testing::{Peer, Result};

    #[test]
    fn a_tool_is_a_function() {
        assert_eq!(divide(1.0, 4.0).ok(), Some(0.25));
    }

    #[tokio::test]
    async fn it_divides_in_every_revision_with_a_handshake() -> Result {
        for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
            let mut peer = Peer::memory(server())?;
            peer.initialize(revision).await?;
            let half = json!({ "name": "divide", "arguments": { "a": 1, "b": 2 } });
            let answer = peer.request("tools/call", half).await?;
            assert_eq!(answer["result"]["content"][0]["text"], "0.5");
            assert!(peer.close().await?.is_empty(), "nothing else is said");
        }
        Ok(())
    }

    #[tokio::test]
    async fn the_model_receives_the_error_text() -> Result {
        let mut peer = Peer::memory(server())?;
        let by_zero = json!({ "name": "divide", "arguments": { "a": 1, "b": 0 } });
        let answer = peer.modern("tools/call", by_zero).await?;
        assert_eq!(answer["result"]["isError"], true);
        assert_eq!(answer["result"]["content"][0]["text"], "division by zero");
        Ok(())
    }
}
