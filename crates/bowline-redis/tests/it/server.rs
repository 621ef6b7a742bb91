//! The server that the tests use.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bowline_redis::Options;
use bowline_store::{Namespace, Records};

/// The URL in a variable, or the report that the test is skipped.
pub(crate) fn url(variable: &str) -> Option<String> {
    let url = std::env::var(variable).ok();
    if url.is_none() {
        bowline_testing::skip("no Redis server: use tests/stores/run");
    }
    url
}

/// A namespace that nothing else uses.
pub(crate) fn namespace() -> Namespace {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Namespace::new(format!("test-{}-{number}", std::process::id())).unwrap()
}

/// The machine may be slow; no test is about the deadline.
pub(crate) fn options(url: &str) -> Options {
    Options::new(url).unwrap().deadline(Duration::from_secs(30))
}

pub(crate) async fn open() -> Option<Arc<dyn Records>> {
    let url = url("BOWLINE_STORE_REDIS")?;
    Some(Arc::new(options(&url).namespace(namespace()).open().await.unwrap()))
}

/// Kills the server and starts it again, with the command in a variable.
pub(crate) async fn restart() {
    let command = std::env::var("BOWLINE_STORE_REDIS_RESTART").unwrap();
    let status = tokio::task::spawn_blocking(move || Command::new("bash").arg("-c").arg(command).status());
    assert!(status.await.unwrap().unwrap().success());
}
