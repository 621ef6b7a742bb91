//! Progress and cancellation of running requests.

use crate::adapt::{Adapt, adapt_message_meta, adapt_only_meta};
use crate::meta::Meta;
use crate::record::record;
use crate::revision::Revision;
use crate::rpc::{Id, ProgressToken};

record! {
    /// Params of `notifications/progress`.
    pub struct ProgressParams {
        /// Progress token of the request.
        required progress_token: ProgressToken = "progressToken",
        /// Progress so far; increases with every notification.
        number progress: f64 = "progress",
        /// Total, if known.
        fraction total: f64 = "total",
        /// Description of the current step (from 2025-03-26).
        optional message: String = "message",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params of `notifications/cancelled`.
    #[derive(Default)]
    pub struct CancelledParams {
        /// Id of the request; required in every revision except 2025-11-25.
        optional request_id: Id = "requestId",
        /// Reason.
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
