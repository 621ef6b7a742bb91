//! What every result has in common.

use crate::adapt::{Adapt, adapt_message_meta, adapt_only_meta, adapt_result_type};
use crate::meta::Meta;
use crate::record::{open_enum, record};
use crate::revision::Revision;

open_enum! {
    /// What a result object is. An absent value means [`Complete`](Self::Complete).
    pub enum ResultType {
        /// The answer.
        Complete = "complete",
        /// A question that has to be answered before the answer can be given.
        InputRequired = "input_required",
        /// A task that will have the answer (tasks extension).
        Task = "task",
    }
}

record! {
    /// A result that says only that all went well.
    #[derive(Default)]
    pub struct EmptyResult {
        /// What the result is.
        optional result_type: ResultType = "resultType",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params with nothing but metadata: `ping`, `server/discover` and notifications that only announce.
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
        /// Where to go on, as the page before said. The empty string is a cursor too.
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
