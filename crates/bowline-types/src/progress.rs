//! Progress and cancellation: what is said about a request under way.

use crate::adapt::{Adapt, adapt_message_meta, adapt_only_meta};
use crate::meta::Meta;
use crate::record::record;
use crate::revision::Revision;
use crate::rpc::{Id, ProgressToken};

record! {
    /// Params of `notifications/progress`.
    pub struct ProgressParams {
        /// The token of the request this is about.
        required progress_token: ProgressToken = "progressToken",
        /// How far it is; grows with every notification.
        number progress: f64 = "progress",
        /// How far it has to go, where that is known.
        fraction total: f64 = "total",
        /// What is being done (from 2025-03-26).
        optional message: String = "message",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params of `notifications/cancelled`.
    #[derive(Default)]
    pub struct CancelledParams {
        /// The request; every revision but 2025-11-25 requires it.
        optional request_id: Id = "requestId",
        /// Why.
        optional reason: String = "reason",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl Adapt for ProgressParams {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        if to < Revision::V2025_03_26 {
            self.message = None;
        }
    }
}

adapt_only_meta! { CancelledParams }
