//! What the check of a token that was verified before costs.

use super::{Script, bearer, call, endpoint, plain_server, protect};
use crate::wire::Ask;
use bowline_http::HttpService;

fn allocations_per_call(service: &HttpService) -> u64 {
    const CALLS: u64 = 100;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let asks = |count: u64| -> Vec<Ask> { (0..count).map(|_| bearer(call("list"), "good")).collect() };
    let (first, counted) = (asks(10), asks(CALLS));
    let send = |asks: Vec<Ask>| {
        runtime.block_on(async {
            for ask in asks {
                assert_eq!(ask.send(service).await.status, 200);
            }
        });
    };
    send(first);
    allocation_counter::measure(|| send(counted)).count_total.div_ceil(CALLS)
}

#[test]
fn a_known_token_costs_no_allocation_beyond_the_caller_in_the_extensions() {
    let script = Script::default().accept("good", "ada", "notes:read");
    let protected = allocations_per_call(&endpoint(plain_server(), protect(&script)));
    let open = allocations_per_call(&HttpService::new(plain_server()).unwrap());
    // The map of the extensions, its table, and the value in it.
    assert!(protected <= open + 3, "{protected} allocations per call, {open} without protection");
}
