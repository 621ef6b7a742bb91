//! The tests that every engine must pass.
//!
//! [`contract_tests!`](crate::contract_tests) makes one test of each case. An engine of your own:
//!
//! ```
//! # use std::sync::Arc;
//! # use bowline_store::{Memory as MyEngine, Records};
//! async fn open() -> Arc<dyn Records> {
//!     Arc::new(MyEngine::new())
//! }
//!
//! bowline_store::contract_tests!(open);
//! ```
//!
//! `open` may also return `Option<Arc<dyn Records>>`: without a server to test against there is nothing to test.
//! [`bus_tests!`](crate::bus_tests) does the same for a bus. [`acknowledged_writes_survive`] and
//! [`a_lost_connection_is_a_gap`] need a server that can be killed, and take the restart as an argument.
//!
//! The cases wait for expiry with the real clock; none of them measures a time.

mod bus;
mod cases;
mod concurrent;
mod random;
mod restart;

pub use bus::*;
pub use cases::*;
pub use concurrent::*;
pub use random::*;
pub use restart::*;

use std::sync::Arc;
use std::time::Duration;

use crate::{ClaimRequest, Group, Key, NodeId, Put, Queue, Record, Records};

/// Makes a test of every case. `$open` is an async function that returns a new, empty `Arc<dyn Records>`, or an
/// `Option` of one; `None` skips the test.
#[macro_export]
macro_rules! contract_tests {
    ($open:path) => {
        $crate::contract_tests! { @cases $open:
            absent_means_that_no_live_record_exists
            a_version_matches_once
            every_write_changes_the_version
            a_put_keeps_what_it_does_not_change
            a_missing_record_has_no_version
            queue_and_group_are_set_at_creation
            expired_records_are_absent
            an_expired_record_can_be_created_again
            a_write_under_a_claim_needs_that_claim
            a_write_under_a_claim_may_be_to_another_record
            a_lapsed_claim_holds_until_another_one
            a_claim_ends_with_its_expired_record
            a_claim_takes_due_records_of_its_queues
            a_claim_changes_the_version
            a_claim_takes_the_longest_due_first
            a_claim_skips_claimed_records_except_requested_lapsed_ones
            lapses_are_counted
            a_record_claimed_at_creation_belongs_to_its_creator
            released_records_are_due_again
            renewing_extends_and_returns_all_claims
            renewing_takes_nothing_back
            renewing_keeps_the_version
            lists_are_in_key_order_with_pages
            groups_do_not_mix
            removing_removes_from_every_index
            touching_never_shortens
            sweeping_deletes_expired_records_only
            a_scan_reads_every_record
            the_depth_of_queues_is_counted
            values_have_a_limit
            names_and_values_are_binary_safe
            one_writer_wins_each_version
            no_record_is_claimed_twice
            a_lost_claim_writes_nothing
            random_operations_match_the_model
        }
    };
    (@cases $open:path: $($case:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let open = $open;
            let opened: Option<std::sync::Arc<dyn $crate::Records>> = open().await.into();
            if let Some(store) = opened {
                $crate::kit::$case(store).await;
            }
        }
    )* };
}

const MINUTE: Duration = Duration::from_secs(60);
/// Long enough that an operation happens before it, short enough to wait for.
const SHORT: Duration = Duration::from_millis(40);

fn key(name: &str) -> Key {
    Key::new(name).expect("a valid key")
}

fn queue(name: &str) -> Queue {
    Queue::new(name).expect("a valid queue")
}

fn group(name: &str) -> Group {
    Group::new(name).expect("a valid group")
}

async fn read(store: &Arc<dyn Records>, name: &str) -> Option<Record> {
    let mut records = store.get(&[key(name)]).await.expect("a read");
    assert_eq!(records.len(), 1);
    records.remove(0)
}

async fn names(store: &Arc<dyn Records>, of: &str) -> Vec<String> {
    let records = store.list(&group(of), None, 100).await.expect("a list");
    records.iter().map(|record| record.key.to_string()).collect()
}

/// Creates a record that is due now in queue `q`.
async fn due(store: &Arc<dyn Records>, name: &str) {
    let put = Put::create(key(name), name.to_owned(), MINUTE).queue(queue("q")).due_in(Duration::ZERO);
    store.put(put).await.expect("a new record");
}

fn claim(node: NodeId) -> ClaimRequest {
    ClaimRequest::new(node, [queue("q")]).limit(10).lease(MINUTE)
}

async fn claimed(store: &Arc<dyn Records>, request: ClaimRequest) -> Vec<Record> {
    store.claim(request).await.expect("a claim")
}

/// Repeats a check until it holds. The limit only ends a test that hangs.
async fn eventually<F: Future<Output = bool>>(what: &str, mut check: impl FnMut() -> F) {
    let limit = tokio::time::Instant::now() + Duration::from_secs(30);
    while !check().await {
        assert!(tokio::time::Instant::now() < limit, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
