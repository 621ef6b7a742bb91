//! The server is killed and restarted. One test, because it disturbs all others: `tests/stores/run` runs it alone.

use std::sync::Arc;

use bowline_store::kit;

use crate::server::{namespace, open, options, restart, url};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_and_hints_come_back() {
    let Some(url) = url("BOWLINE_STORE_REDIS_RESTART") else { return };
    drop(url);
    let Some(store) = open().await else { return };
    kit::acknowledged_writes_survive(store, 3, restart).await;

    let options = options(&std::env::var("BOWLINE_STORE_REDIS").unwrap()).namespace(namespace());
    let ends =
        (Arc::new(options.open_bus().await.unwrap()) as _, Arc::new(options.open_bus().await.unwrap()) as _);
    kit::a_lost_connection_is_a_gap(ends, restart).await;
}
