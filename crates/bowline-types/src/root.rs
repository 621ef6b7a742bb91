//! Roots: the folders a client lets a server work in.

use crate::adapt::{Adapt, adapt_message_meta, adapt_meta};
use crate::meta::Meta;
use crate::record::record;
use crate::result::ResultType;
use crate::revision::Revision;

record! {
    /// A folder or file the server may work in.
    pub struct Root {
        /// Where it is; always a `file:` URI.
        required uri: String = "uri",
        /// The name for people.
        optional name: String = "name",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// The roots of a client.
    #[derive(Default)]
    pub struct ListRootsResult {
        /// What the result is; never written, for this result travels without it.
        optional result_type: ResultType = "resultType",
        /// The roots.
        required roots: Vec<Root> = "roots",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl Adapt for Root {
    fn adapt(&mut self, to: Revision) {
        adapt_meta(&mut self.meta, to);
    }
}

impl Adapt for ListRootsResult {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        // No revision has `resultType` here: legacy results lack it, modern answers are bare.
        self.result_type = None;
        self.roots.adapt(to);
    }
}
