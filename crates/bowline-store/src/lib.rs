//! Durable records, leases and hints for servers that run on several machines.
//!
//! An engine implements two traits. [`Records`] keeps small values under keys; every write is a compare-and-swap.
//! [`Bus`] carries hints between the processes that share a store. A hint may get lost: whoever waits for a record also
//! reads it on a timer.
//!
//! A record can be *due* in a queue. A process [claims](Records::claim) due records and holds each of them for the time of
//! a lease, which it [renews](Records::renew). If the process dies, the lease ends and another process claims the record.
//! A write can name the claim it is made under ([`Put::under_claim`]); the engine checks the claim in the same step, so that a
//! process that lost its claim cannot write.
//!
//! The clock of the store decides about leases, due times and expiry. Times are given as durations and read as [`Time`]s
//! of that clock.
//!
//! [`Store`] is what servers use: the records and the bus of one namespace, with limits and keys.
//!
//! ```
//! use std::time::Duration;
//! use bowline_store::{Key, Memory, Put, PutError, Records};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Memory::new();
//! let key = Key::new("counter")?;
//! let first = store.put(Put::create(key.clone(), "1", Duration::from_secs(60))).await?;
//! store.put(Put::update(key.clone(), "2", first)).await?;
//!
//! // The version has changed, so a second writer with the first version is refused.
//! let refused = store.put(Put::update(key.clone(), "3", first)).await;
//! assert!(matches!(refused, Err(PutError::Conflict)));
//! # Ok(())
//! # }
//! ```

mod bus;
mod check;
mod error;
mod hints;
#[cfg(feature = "kit")]
#[cfg_attr(docsrs, doc(cfg(feature = "kit")))]
pub mod kit;
mod limits;
mod memory;
mod metrics;
mod name;
mod record;
mod records;
mod rekey;
mod sealed;
mod store;

pub use bus::{Bus, BusEvent, MAX_HINT_BYTES, Message};
pub use check::{Finding, Level, measure};
pub use error::{ErrorKind, PutError, StoreError};
pub use hints::Hints;
pub use limits::{Limited, Limits};
pub use memory::{Memory, MemoryBus};
pub use metrics::{OperationTimes, StoreMetrics, TIME_BOUNDS};
pub use name::{Group, InvalidName, Key, MAX_NAME_BYTES, Queue, Topic};
pub use record::{ClaimId, NodeId, Owner, Record, Time, Version};
pub use records::{
    ClaimChange, ClaimRequest, Depth, DueChange, Durability, Expect, MAX_VALUE_BYTES, Page, Put, Records,
    RequiredClaim, TtlChange,
};
pub use rekey::Rekeyed;
pub use sealed::Sealed;
pub use store::{DEFAULT_NAMESPACE, Namespace, Reach, Store, StoreBuilder};
