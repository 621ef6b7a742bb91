//! Servers that misbehave.

use super::world::World;
use bowline_http::auth::{Lenient, Login, MemoryStore, Secret};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

// proves: AREG-26, AREG-27, ADISC-25
#[tokio::test]
async fn v54_a_new_authorization_server_sees_nothing_of_the_old_one() {
    let world = World::new().await;
    let client = world.connect(world.login()).await.unwrap();
    world.state().issuer = format!("{}/two", world.base);
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(world.count("POST", "/two/register"), 1);
    assert_eq!(world.count("POST", "/two/token"), 1);
    assert_eq!(world.count("POST", "/one/token"), 1, "the old refresh token is not used");
    for (verb, path, body) in &world.state().seen {
        if path.starts_with("/two") {
            assert!(!body.contains("client-of-one") && !body.contains("canary"), "{verb} {path} {body}");
        }
    }
}

#[tokio::test]
async fn v54_credentials_of_a_machine_stay_with_the_issuer_they_were_used_at() {
    let world = World::new().await;
    let login = Login::workload(|| async { Ok::<_, String>(Secret::new("platform-canary")) });
    let client = world.connect(login).await.unwrap();
    world.state().issuer = format!("{}/two", world.base);
    world.revoke_all();
    let error = client.call("t", ()).await.unwrap_err();
    assert!(error.to_string().contains("set the issuer"), "{error}");
    assert_eq!(world.count("POST", "/two/token"), 0);
}

#[tokio::test]
async fn v58_only_a_spent_refresh_token_is_given_up() {
    let world = World::new().await;
    world.state().expires_in = Some(30);
    let client = world.connect(world.login()).await.unwrap();
    world.state().refresh_status = Some(400);
    world.state().refresh_error = Some("temporarily_unavailable");
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    world.state().refresh_status = None;
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(world.visits.load(Ordering::SeqCst), 1, "the refresh token was kept");
}

#[tokio::test]
async fn v58_a_user_who_declines_is_not_asked_again_by_the_next_call() {
    let world = World::new().await;
    world.state().is_open = true;
    let visits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&visits);
    let login = Login::with(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Err::<String, _>("declined") }
    });
    let client = world.connect(login).await.unwrap();
    world.state().is_open = false;
    for _ in 0..3 {
        client.call("t", ()).await.unwrap_err();
    }
    assert_eq!(visits.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn v51_a_redirect_of_the_token_endpoint_is_not_followed() {
    let world = World::new().await;
    world.state().token_redirect = Some(format!("{}/stolen", world.base));
    let error = world.connect(world.login()).await.unwrap_err();
    assert!(error.to_string().contains("redirects"), "{error}");
    assert_eq!(world.count("POST", "/stolen"), 0);
    assert_eq!(world.count("POST", "/one/token"), 1);
}

// proves: AFLOW-36
#[tokio::test]
async fn v58_endless_scope_demands_end_after_two_step_ups() {
    let world = World::new().await;
    let client = world.connect(world.login()).await.unwrap();
    world.state().demand_new_scope = true;
    let error = client.call("t", ()).await.unwrap_err();
    assert!(error.is_authorization(), "{error}");
    assert_eq!(world.visits.load(Ordering::SeqCst), 3, "the login and two step-ups");
}

#[tokio::test]
async fn v58_a_scope_that_a_login_does_not_give_is_not_asked_for_again() {
    let world = World::new().await;
    let client = world.connect(world.login()).await.unwrap();
    world.state().call_scope = Some("never granted".into());
    let error = client.call("t", ()).await.unwrap_err();
    assert!(error.is_authorization(), "{error}");
    let visits = world.visits.load(Ordering::SeqCst);
    assert_eq!(visits, 2);
    client.call("t", ()).await.unwrap_err();
    assert_eq!(world.visits.load(Ordering::SeqCst), visits, "the failure is remembered");
}

#[tokio::test]
async fn v58_a_server_that_refuses_every_token_gets_one_login() {
    let world = World::new().await;
    let client = world.connect(world.login()).await.unwrap();
    {
        let mut state = world.state();
        state.refuse_all = Some(401);
        state.refresh_status = Some(400);
    }
    let error = client.call("t", ()).await.unwrap_err();
    assert!(error.is_authorization() && error.to_string().contains("refuses the token"), "{error}");
    let visits = world.visits.load(Ordering::SeqCst);
    assert_eq!(visits, 2);
    client.call("t", ()).await.unwrap_err();
    assert_eq!(world.visits.load(Ordering::SeqCst), visits, "the next call does not start over");
}

#[tokio::test]
async fn v57_secrets_are_in_no_error_and_no_debug_output() {
    let world = World::new().await;
    let store = MemoryStore::new();
    let target = world.target(
        world.login().store(store.clone()).client("app", "secret-canary").lenient(Lenient::IssuerSlash),
    );
    let client = bowline_client::Client::connect(target.clone()).await.unwrap();
    world.state().refuse_all = Some(401);
    let error = client.call("t", ()).await.unwrap_err();
    let login = world.login().client("app", "secret-canary");
    let shown = format!("{error} {error:?} {target:?} {store:?} {login:?} {client:?}");
    assert!(!shown.contains("canary"), "{shown}");
}
