//! Reopens subscriptions that were lost while the connection is still open.

use super::{Target, View, listen::open};
use crate::{
    Backoff, Retry,
    connection::Connection,
    core::Core,
    shared::{lock, now, random},
};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;

/// A subscription that lasted this long is reopened without a delay.
const STEADY: Duration = Duration::from_secs(30);

/// Reopens lost subscriptions as long as the connection is open. The delay grows with each one that does not last.
pub(crate) async fn resubscribe(core: &Core, connection: &Arc<Connection>) {
    let views = &core.shared.views;
    let mut backoff = Backoff::new().give_up_after(usize::MAX, STEADY);
    let mut reopened = now();
    loop {
        views.broke.notified().await;
        if now().saturating_duration_since(reopened) >= STEADY {
            backoff.succeeded();
        }
        if let Retry::After(delay) = backoff.failed(now(), random()) {
            tracing::debug!(?delay, "lost a subscription; reopening it");
            sleep(delay).await;
        }
        reopen_lost(core, connection).await;
        reopened = now();
    }
}

async fn reopen_lost(core: &Core, connection: &Arc<Connection>) {
    let (shared, views) = (&core.shared, &core.shared.views);
    let lost = std::mem::take(&mut *lock(&views.lost));
    // Changes in the meantime were not reported.
    shared.cache.forget(|_| true);
    for view in lost.views {
        reopen_view(core, connection, &view).await;
    }
    if lost.managed && !views.managed.lock().await.reopen(shared, connection).await {
        views.add_lost(&Target::Handler(bowline_types::SubscriptionFilter::default()));
    }
}

async fn reopen_view(core: &Core, connection: &Arc<Connection>, view: &Arc<View>) {
    let views = &core.shared.views;
    // The listener may be gone.
    if !views.all().iter().any(|known| Arc::ptr_eq(known, view)) {
        return;
    }
    drop(lock(&view.lease).take());
    match open(connection, Target::View(Arc::clone(view)), Some(view)).await {
        Ok(_) => view.report_all_changed(),
        Err(error) if error.is_passing() => views.add_lost(&Target::View(Arc::clone(view))),
        Err(error) => view.end(Some(error)),
    }
}
