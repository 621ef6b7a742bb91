//! What a login does, and how often.

use super::world::World;
use bowline_client::Client;
use bowline_http::{
    auth::{Event, LoggedOut, Login, MemoryStore, Secret},
    http,
};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::Notify;

// proves: ADISC-09, ADISC-12, ATOK-01, ATOK-03
#[tokio::test]
async fn a_refused_request_logs_in_and_is_sent_again() {
    let world = World::new().await;
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let login = world.login().on_event(move |event: &Event| seen.lock().unwrap().push(event.to_string()));
    let client = world.connect(login).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(world.visits.load(Ordering::SeqCst), 1);
    assert_eq!(world.count("POST", "/one/register"), 1);
    let resource = format!("resource={}", bowline_auth::form::encode(&format!("{}/mcp", world.base)));
    for (verb, path) in [("VISIT", "/one/authorize"), ("POST", "/one/token")] {
        let bodies = world.bodies(verb, path);
        assert!(bodies.len() == 1 && bodies[0].contains(&resource), "{bodies:?}");
    }
    let events = events.lock().unwrap().join("; ");
    assert!(events.contains("registered at") && events.contains("logged in at"), "{events}");
    for (_, path, _) in &world.state().seen {
        assert!(!path.contains("canary"), "{path}");
    }
}

#[tokio::test]
async fn many_refused_requests_are_one_login() {
    let world = World::new().await;
    let client = world.connect(world.login()).await.unwrap();
    world.revoke_all();
    world.state().refresh_status = Some(400);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let client = client.clone();
        calls.spawn(async move { client.call("t", ()).await.unwrap().text() });
    }
    while let Some(called) = calls.join_next().await {
        assert_eq!(called.unwrap(), "done");
    }
    assert_eq!(world.visits.load(Ordering::SeqCst), 2, "one for the connection, one for all calls");
    assert_eq!(world.count("POST", "/one/register"), 1, "the registration is kept");
}

// proves: AFLOW-12
#[tokio::test]
async fn a_refused_token_is_refreshed_without_the_user() {
    let world = World::new().await;
    let store = MemoryStore::new();
    let client = world.connect(world.login().store(store.clone())).await.unwrap();
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(world.visits.load(Ordering::SeqCst), 1);
    let refresh = world.bodies("POST", "/one/token").pop().unwrap();
    assert!(
        refresh.contains("grant_type=refresh_token") && refresh.contains("refresh_token=refresh-canary-1")
    );
    assert!(refresh.contains("resource=http%3A%2F%2F127.0.0.1"), "{refresh}");
    // Another connection uses the rotated tokens of the store, and no user.
    let other = world.connect(Login::stored().store(store)).await.unwrap();
    assert_eq!(other.call("t", ()).await.unwrap().text(), "done");
}

#[tokio::test]
async fn an_expiring_token_is_refreshed_before_it_is_refused() {
    let world = World::new().await;
    world.state().expires_in = Some(0);
    let client = world.connect(world.login()).await.unwrap();
    world.state().expires_in = Some(3600);
    let before = world.grants("refresh_token");
    client.call("t", ()).await.unwrap();
    assert_eq!(world.grants("refresh_token"), before + 1);
    client.call("t", ()).await.unwrap();
    assert_eq!(world.grants("refresh_token"), before + 1, "the new token lives long");
    assert_eq!(world.visits.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn v58_a_cancelled_call_does_not_lose_a_rotated_token() {
    let world = World::new().await;
    let client = world.connect(world.login()).await.unwrap();
    world.revoke_all();
    cancel_a_refresh(&world, &client).await;
}

#[tokio::test]
async fn v58_a_cancelled_call_with_an_expired_token_does_not_lose_the_new_one() {
    let world = World::new().await;
    world.state().expires_in = Some(0);
    let client = world.connect(world.login()).await.unwrap();
    world.state().expires_in = Some(3600);
    cancel_a_refresh(&world, &client).await;
}

/// Cancels a call while it refreshes the token, and checks that the next call has the new token.
async fn cancel_a_refresh(world: &World, client: &Client) {
    let before = world.grants("refresh_token");
    let hold = Arc::new(Notify::new());
    world.state().hold_refresh = Some(Arc::clone(&hold));
    let calling = tokio::spawn({
        let client = client.clone();
        async move { client.call("t", ()).await }
    });
    while world.grants("refresh_token") == before {
        tokio::task::yield_now().await;
    }
    calling.abort();
    drop(calling.await);
    world.state().hold_refresh = None;
    hold.notify_one();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(world.visits.load(Ordering::SeqCst), 1);
    assert_eq!(world.grants("refresh_token"), before + 1);
}

// proves: AFLOW-34
#[tokio::test]
async fn a_missing_scope_is_asked_for_with_those_granted_before() {
    let world = World::new().await;
    let client = world.connect(world.login()).await.unwrap();
    world.state().call_scope = Some("write".into());
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    let visits = world.bodies("VISIT", "/one/authorize");
    assert!(visits[0].contains("scope=base"), "{}", visits[0]);
    assert!(visits[1].contains("scope=base+write"), "{}", visits[1]);
    let tokens = world.bodies("POST", "/one/token");
    assert!(
        tokens.iter().all(|body| body.contains("grant_type=authorization_code")),
        "a refresh adds no scopes"
    );
}

#[tokio::test]
async fn a_login_without_a_user_says_that_one_is_needed() {
    let world = World::new().await;
    let error = world.connect(Login::stored()).await.unwrap_err();
    assert!(error.is_login_needed() && error.is_authorization(), "{error}");
    let needed = bowline_http::auth::Error::find(&error).and_then(bowline_http::auth::Error::login).unwrap();
    assert_eq!(needed.issuer.unwrap().as_str(), format!("{}/one", world.base));
    assert_eq!(needed.scopes.to_string(), "base");
    assert_eq!(world.count("POST", "/one/register"), 0);
}

#[tokio::test]
async fn a_login_that_cannot_be_used_matters_only_if_the_server_asks_for_it() {
    let world = World::new().await;
    world.state().is_open = true;
    // Logins refuse this URL, as they refuse servers of a network without TLS.
    let target = http(format!("{}/mcp?a=|", world.base)).login(world.login());
    let client = Client::connect(target).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    world.state().is_open = false;
    let error = client.call("t", ()).await.unwrap_err();
    assert!(error.to_string().contains("the server asks for a login, but"), "{error}");
}

#[tokio::test]
async fn a_declined_step_up_keeps_the_login() {
    let world = World::new().await;
    let store = MemoryStore::default();
    world.target(world.login().store(store.clone())).log_in().await.unwrap();
    let is_asked = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_asked);
    let login = Login::with(move |_| {
        asked.store(true, Ordering::SeqCst);
        async { Err::<String, _>("declined") }
    });
    let client = world.connect(login.store(store)).await.unwrap();
    world.state().call_scope = Some("write".into());
    client.call("t", ()).await.unwrap_err();
    assert!(is_asked.load(Ordering::SeqCst));
    world.state().call_scope = None;
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done", "the token is refreshed");
}

#[tokio::test]
async fn a_target_logs_in_and_out_without_a_call() {
    let world = World::new().await;
    let target = world.target(world.login());
    assert_eq!(target.account().await.unwrap(), None);
    let account = target.log_in().await.unwrap();
    assert_eq!(account.issuer.as_str(), format!("{}/one", world.base));
    assert_eq!(account.granted.to_string(), "base");
    assert!(account.is_renewable);
    assert_eq!(target.account().await.unwrap(), Some(account));
    assert_eq!(target.log_out().await.unwrap(), LoggedOut::Deleted);
    assert_eq!(target.account().await.unwrap(), None);
    assert_eq!(target.log_out().await.unwrap(), LoggedOut::NotLoggedIn);
}

#[tokio::test]
async fn logging_out_without_the_secret_of_the_client_deletes_the_tokens() {
    let world = World::new().await;
    world.state().is_confidential = true;
    let store = MemoryStore::default();
    world.target(world.login().store(store.clone()).client("app", "secret-canary")).log_in().await.unwrap();
    let target = world.target(Login::stored().store(store));
    assert!(target.account().await.unwrap().is_some());
    assert_eq!(target.log_out().await.unwrap(), LoggedOut::Deleted);
    assert_eq!(target.account().await.unwrap(), None);
    assert_eq!(world.count("POST", "/one/revoke"), 0);
}

#[tokio::test]
async fn a_machine_logs_in_as_itself_and_again_when_its_token_ends() {
    let world = World::new().await;
    let login = Login::machine("reporter", "secret-canary").issuer(format!("{}/one", world.base));
    let client = world.connect(login).await.unwrap();
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    let bodies = world.bodies("POST", "/one/token");
    assert_eq!(bodies.len(), 2);
    for body in bodies {
        assert!(
            body.contains("grant_type=client_credentials") && body.contains("client_id=reporter"),
            "{body}"
        );
        assert!(body.contains("resource=") && body.contains("scope=base"), "{body}");
        assert!(!body.contains("canary"), "the server does not ask for the secret");
    }
    assert_eq!(world.count("POST", "/one/register"), 0);
}

#[tokio::test]
async fn a_workload_sends_its_assertion_once_and_no_client() {
    let world = World::new().await;
    let login = Login::workload(|| async { Ok::<_, String>(Secret::new("platform.token")) });
    let login = login.issuer(format!("{}/one", world.base));
    let client = world.connect(login).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    let bodies = world.bodies("POST", "/one/token");
    assert_eq!(bodies.len(), 1);
    assert!(
        bodies[0].contains("jwt-bearer") && bodies[0].contains("assertion=platform.token"),
        "{}",
        bodies[0]
    );
    assert!(!bodies[0].contains("client_id"), "{}", bodies[0]);
}

/// A login on another device, and the prompts that it shows.
fn device_login() -> (Login, Arc<Mutex<Vec<String>>>) {
    let prompts = Arc::new(Mutex::new(Vec::new()));
    let shown = Arc::clone(&prompts);
    (Login::device(move |prompt| shown.lock().unwrap().push(prompt.to_string())), prompts)
}

#[tokio::test]
async fn a_login_on_another_device_polls_until_the_user_has_entered_the_code() {
    let world = World::new().await;
    world.state().device_errors = vec!["authorization_pending"];
    let (login, prompts) = device_login();
    let client = world.connect(login).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    let shown = format!("open {}/activate on any device and enter the code WDJB-MJHT", world.base);
    assert_eq!(*prompts.lock().unwrap(), [shown]);
    let asked = world.bodies("POST", "/one/device").pop().unwrap();
    assert!(
        asked.contains("scope=base") && asked.contains("resource=http") && asked.contains("client_id="),
        "{asked}"
    );
    let polls = world.bodies("POST", "/one/token");
    assert_eq!(polls.len(), 2);
    for body in polls {
        assert!(body.contains("device_code=device-canary") && body.contains("resource=http"), "{body}");
    }
    let registered = world.bodies("POST", "/one/register").pop().unwrap();
    assert!(
        registered.contains("grant-type:device_code") && registered.contains("\"redirect_uris\":[]"),
        "{registered}"
    );
    // The token is refreshed without the user.
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(prompts.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_denied_login_on_another_device_is_not_repeated() {
    let world = World::new().await;
    world.state().is_open = true;
    let (login, prompts) = device_login();
    let client = world.connect(login).await.unwrap();
    world.state().is_open = false;
    for _ in 0..2 {
        world.state().device_errors = vec!["access_denied"];
        let error = client.call("t", ()).await.unwrap_err();
        assert!(error.is_login_needed(), "{error}");
    }
    assert_eq!(prompts.lock().unwrap().len(), 1);
}
