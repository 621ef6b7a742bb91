//! Verdicts on tokens are cached, and no longer than they hold.

use super::{ISSUER, NOW, RESOURCE, Script, bearer, call, caller, endpoint, plain_server, protect};
use bowline_http::Protect;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

#[tokio::test]
async fn a_token_is_verified_once_until_the_keys_change() {
    let script = Script::default().accept("good", "ada", "notes:read");
    let endpoint = endpoint(plain_server(), protect(&script));
    let send = || async { bearer(call("list"), "good").send(&endpoint).await.status.as_u16() };
    for _ in 0..5 {
        assert_eq!(send().await, 200);
    }
    assert_eq!(script.asked(), 1);
    script.change_keys();
    assert_eq!((send().await, send().await, script.asked()), (200, 200, 2));
    // Refused tokens are not remembered: the next one may be valid.
    for _ in 0..3 {
        assert_eq!(bearer(call("list"), "bad").send(&endpoint).await.status, 401);
    }
    assert_eq!(script.asked(), 5);
}

#[tokio::test]
async fn a_cached_verdict_ends_with_its_token() {
    let clock = Arc::new(AtomicU64::new(NOW));
    let script = Script::default().add("t", Ok(Arc::new(caller("ada", "notes:read").with_expiry(NOW + 100))));
    let time = Arc::clone(&clock);
    let protect = protect(&script).clock(move || time.load(Ordering::Relaxed));
    let endpoint = endpoint(plain_server(), protect);
    let at = |seconds: u64| {
        clock.store(NOW + seconds, Ordering::Relaxed);
        let endpoint = endpoint.clone();
        async move { bearer(call("list"), "t").send(&endpoint).await.status.as_u16() }
    };
    assert_eq!((at(0).await, at(99).await, script.asked()), (200, 200, 1));
    // Within the skew it is verified each time, and then refused.
    assert_eq!((at(100).await, at(160).await, script.asked()), (200, 200, 3));
    assert_eq!(at(161).await, 401);
}

#[tokio::test]
async fn the_verifier_learns_which_audiences_are_ours() {
    let script = Script::default().accept("good", "ada", "");
    let protect =
        Protect::with(script.clone(), [ISSUER]).resource(RESOURCE).audience(["api://notes"]).clock(|| NOW);
    let endpoint = endpoint(plain_server(), protect);
    assert_eq!(bearer(call("list"), "good").send(&endpoint).await.status, 200);
    assert_eq!(script.audiences(), ["api://notes", RESOURCE]);
}
