//! bowline-stdio [--tools N]

use bench_bowline::{flag, server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    server(flag("--tools").unwrap_or(102)).serve_stdio().await
}
