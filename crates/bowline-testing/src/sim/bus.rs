//! Hints in a simulated world.

use std::sync::Arc;

use bowline_store::{Bus, BusEvent, Message};
use futures_core::stream::BoxStream;
use tokio::time::Instant;

use super::store::SimStore;

impl Bus for SimStore {
    fn publish(&self, message: Message) {
        let shared = Arc::clone(self.shared());
        let from = self.index();
        let mut deliveries = Vec::new();
        {
            let mut state = shared.state();
            let now = Instant::now();
            let faults = state.faults;
            let most = u64::try_from(faults.delay.as_micros()).unwrap_or(u64::MAX);
            let is_cut = |until: Option<Instant>| until.is_some_and(|until| until > now);
            let sender_cut = state.nodes.get(from).is_some_and(|link| is_cut(link.cut_until));
            for node in 0..state.nodes.len() {
                let lost = state.random.u32(..1_000) < faults.lost_hints;
                let copies = 1 + u32::from(state.random.u32(..1_000) < faults.repeated_hints);
                let cut = sender_cut || state.nodes.get(node).is_some_and(|link| is_cut(link.cut_until));
                if lost || (cut && node != from) {
                    continue;
                }
                for _ in 0..copies {
                    let delay = std::time::Duration::from_micros(state.random.u64(..=most));
                    deliveries.push((delay, state.nodes[node].hints.clone()));
                }
            }
        }
        for (delay, hints) in deliveries {
            let message = message.clone();
            // Ends by itself after the delay.
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                hints.send(BusEvent::Message(message));
            });
        }
    }

    fn subscribe(&self) -> BoxStream<'static, BusEvent> {
        let state = self.shared().state();
        state.nodes[self.index()].hints.subscribe()
    }
}
