//! bowline-protected --port N [--tools N] [--open]: accepts the token in `token.txt` and no other. With `--open` it needs none.

use bench_bowline::{flag, server};
use bowline::{
    http::{HttpOptions, Jwks, Protect},
    prelude::*,
};

const KEYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/keys.json");

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let port = flag("--port").expect("--port N");
    let mut settings = HttpOptions::new().max_sessions(20_000, 20_000);
    if !std::env::args().any(|argument| argument == "--open") {
        let protect = Protect::keys("https://login.example.com", Jwks::file(KEYS))
            .resource("https://bench.example.com/mcp")
            .scopes(["bench"]);
        settings = settings.protect(protect);
    }
    server(flag("--tools").unwrap_or(102)).serve_http_with(("127.0.0.1", port as u16), settings).await
}
