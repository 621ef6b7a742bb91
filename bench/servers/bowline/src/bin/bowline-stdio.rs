//! bowline-stdio [--tools N]

use bench_bowline::{flag, server};
use bowline::prelude::ServeError;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ServeError> {
    server(flag("--tools").unwrap_or(102)).serve_stdio().await
}
