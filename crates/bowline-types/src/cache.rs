//! Who may keep a result.

use crate::record::open_enum;

open_enum! {
    /// Who may keep a result for as long as its `ttlMs` says.
    pub enum CacheScope {
        /// Anyone, gateways included.
        Public = "public",
        /// Only caches of the same authorization context.
        Private = "private",
    }
}
