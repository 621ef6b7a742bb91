//! bowline-http --port N [--tools N]

use bench_bowline::{flag, server};
use bowline::{http::HttpOptions, prelude::*};

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let port = flag("--port").expect("--port N");
    // One client holds thousands of sessions here; by default a principal may have a hundred.
    let settings = HttpOptions::new().max_sessions(20_000, 20_000);
    server(flag("--tools").unwrap_or(102)).serve_http_with(("127.0.0.1", port as u16), settings).await
}
