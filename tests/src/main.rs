//! `fixture NAME`: serves one of the fixtures over standard input and output.

use bowline_server::{BuildError, ServeError};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    let name = std::env::args().nth(1).unwrap_or_default();
    let server = bowline_tests::fixture(&name)
        .ok_or_else(|| BuildError::new(format!("expected the name of a fixture, got `{name}`")))?;
    server.serve_stdio().await
}
