//! Types that several results share.

use crate::adapt::{Adapt, adapt_message_meta, adapt_only_meta, adapt_result_type};
use crate::meta::Meta;
use crate::record::{open_enum, record};
use crate::revision::Revision;

open_enum! {
    /// Type of a result. An absent value means [`Complete`](Self::Complete).
    pub enum ResultType {
        /// The final result.
        Complete = "complete",
        /// The request needs input before it can complete.
        InputRequired = "input_required",
        /// A task that will have the result (tasks extension).
        Task = "task",
    }
}

record! {
    /// A result without content.
    #[derive(Default)]
    pub struct EmptyResult {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params with metadata only: `ping`, `server/discover` and notifications without content.
    #[derive(Default)]
    pub struct EmptyParams {
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params of a list request.
    #[derive(Default)]
    pub struct PaginatedParams {
        /// Cursor from the previous page. The empty string is a valid cursor.
        optional cursor: String = "cursor",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl Adapt for EmptyResult {
    fn adapt(&mut self, to: Revision) {
        adapt_result_type(&mut self.result_type, to);
        adapt_message_meta(&mut self.meta, to);
    }
}

adapt_only_meta! { EmptyParams, PaginatedParams }
