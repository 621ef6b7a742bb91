//! Who may cache a result.

use crate::record::open_enum;

open_enum! {
    /// Who may cache a result for its `ttlMs`.
    pub enum CacheScope {
        /// Everyone, including gateways.
        Public = "public",
        /// Only caches with the same authorization.
        Private = "private",
    }
}
