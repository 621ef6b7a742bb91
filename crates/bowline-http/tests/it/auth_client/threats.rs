//! Servers that misbehave.

use super::world::World;
use bowline_auth::BoxFuture;
use bowline_http::auth::{
    Error, Event, Lenient, Login, MemoryStore, Record, Secret, Store, StoreKey, StoreLock,
};
use std::fmt::Write as _;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
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
    let client = world.connect(login.trust_first_issuer()).await.unwrap();
    world.state().issuer = format!("{}/two", world.base);
    world.revoke_all();
    let error = client.call("t", ()).await.unwrap_err();
    assert!(error.to_string().contains("set the issuer"), "{error}");
    assert_eq!(world.count("POST", "/two/token"), 0);
}

#[tokio::test]
async fn v54_credentials_without_a_user_go_to_no_issuer_that_only_the_server_chose() {
    let canary = || async { Ok::<_, String>(Secret::new("platform-canary")) };
    let world = World::new().await;
    for login in [
        Login::machine("reporter", "secret-canary"),
        Login::workload(canary),
        Login::enterprise(format!("{}/idp/token", world.base), canary).client("app", "secret-canary"),
    ] {
        let error = world.connect(login.clone()).await.unwrap_err();
        assert!(error.to_string().contains("`Login::issuer`"), "{error}");
        // The server names another one than the settings.
        let error = world.connect(login.issuer(format!("{}/two", world.base))).await.unwrap_err();
        assert!(error.is_authorization(), "{error}");
    }
    for (verb, path, body) in &world.state().seen {
        assert!(!path.contains("/token") && !body.contains("canary"), "{verb} {path} {body}");
    }
}

/// A store that cannot be written while `is_full`.
#[derive(Debug, Default)]
struct FullStore {
    store: MemoryStore,
    is_full: AtomicBool,
}

/// Shares a [`FullStore`] with the test.
#[derive(Clone, Debug, Default)]
struct SharedStore(Arc<FullStore>);

impl Store for SharedStore {
    fn load<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<Option<Record>, Error>> {
        self.0.store.load(key)
    }

    fn save<'a>(&'a self, key: &'a StoreKey, record: &'a Record) -> BoxFuture<'a, Result<(), Error>> {
        if self.0.is_full.load(Ordering::SeqCst) {
            return Box::pin(async { Err(Error::store("the disk is full")) });
        }
        self.0.store.save(key, record)
    }

    fn remove<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<(), Error>> {
        self.0.store.remove(key)
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<StoreKey>, Error>> {
        self.0.store.list()
    }

    fn lock<'a>(&'a self, key: &'a StoreKey) -> BoxFuture<'a, Result<StoreLock, Error>> {
        self.0.store.lock(key)
    }
}

#[tokio::test]
async fn v58_a_rotated_token_that_cannot_be_stored_stays_in_use() {
    let world = World::new().await;
    let store = SharedStore::default();
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let login = world.login().store(store.clone());
    let login = login.on_event(move |event: &Event| seen.lock().unwrap().push(event.to_string()));
    let client = world.connect(login).await.unwrap();
    store.0.is_full.store(true, Ordering::SeqCst);
    for _ in 0..2 {
        world.revoke_all();
        assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    }
    assert!(events.lock().unwrap().iter().any(|event| event.ends_with("the disk is full")));
    store.0.is_full.store(false, Ordering::SeqCst);
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(world.visits.load(Ordering::SeqCst), 1, "the user is not asked again");
    let spent: Vec<String> = world.bodies("POST", "/one/token").into_iter().skip(1).collect();
    for (number, body) in (1..).zip(&spent) {
        assert!(
            body.contains(&format!("refresh_token=refresh-canary-{number}&")),
            "each is used once: {body}"
        );
    }
    assert_eq!(spent.len(), 3);
    // The last refresh was stored.
    assert!(world.connect(Login::stored().store(store)).await.is_ok());
}

#[tokio::test]
async fn v58_a_login_on_another_port_that_is_given_up_keeps_the_client_in_use() {
    let world = World::new().await;
    let store = MemoryStore::new();
    let client = world.connect(world.login().store(store.clone())).await.unwrap();
    // The port of the first login is busy, so that a client is registered with another one.
    let declined = Login::with(|_| async { Err::<String, _>("declined") });
    let declined = declined.redirect_uri("http://127.0.0.1:5555/callback").store(store);
    world.target(declined).log_in().await.unwrap_err();
    assert_eq!(world.count("POST", "/one/register"), 2);
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(world.visits.load(Ordering::SeqCst), 1, "the token is refreshed with the first client");
}

#[tokio::test]
async fn v58_only_a_spent_refresh_token_is_given_up() {
    let world = World::new().await;
    world.state().expires_in = Some(0);
    world.state().refresh_status = Some(400);
    world.state().refresh_error = Some("temporarily_unavailable");
    let client = world.connect(world.login()).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert!(world.grants("refresh_token") > 0, "an expired token is refreshed");
    world.state().refresh_status = None;
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(world.visits.load(Ordering::SeqCst), 1, "the refresh token was kept");
}

#[tokio::test]
async fn v58_tokens_that_another_connection_refreshed_are_not_refreshed_again() {
    let world = World::new().await;
    world.state().expires_in = Some(0);
    let store = MemoryStore::new();
    let first = world.connect(world.login().store(store.clone())).await.unwrap();
    let second = world.connect(Login::stored().store(store)).await.unwrap();
    world.state().expires_in = Some(3600);
    let before = world.grants("refresh_token");
    first.call("t", ()).await.unwrap();
    second.call("t", ()).await.unwrap();
    assert_eq!(world.grants("refresh_token"), before + 1);
}

#[tokio::test]
async fn v58_a_refused_stream_asks_no_user() {
    let world = World::new().await;
    {
        let mut state = world.state();
        state.is_legacy = true;
        state.refuse_streams = true;
    }
    let target = world.target(world.login());
    let _client = bowline_client::Client::connect(target.clone()).await.unwrap();
    // The stream is refused, refused again after a refresh, and then given up. Each time the metadata is read.
    while world.count("GET", "/.well-known/oauth-protected-resource/mcp") < 3 {
        tokio::task::yield_now().await;
    }
    // One login at a time: this one waits until the other is decided.
    target.log_in().await.unwrap();
    assert_eq!(world.visits.load(Ordering::SeqCst), 2, "the login of the connection, and this one");
}

#[tokio::test]
async fn a_client_that_the_authorization_server_forgot_is_registered_again() {
    let world = World::new().await;
    let client = world.connect(world.login()).await.unwrap();
    {
        let mut state = world.state();
        state.refresh_status = Some(400);
        state.unknown_clients = 1;
    }
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(world.count("POST", "/one/register"), 2);
    world.state().unknown_clients = 9;
    world.revoke_all();
    client.call("t", ()).await.unwrap_err();
    assert_eq!(world.count("POST", "/one/register"), 3, "only once for a login");
}

#[tokio::test]
async fn a_client_whose_page_never_redirects_is_registered_again_by_the_next_login() {
    let world = World::new().await;
    let store = MemoryStore::new();
    let client = world.connect(world.login().store(store.clone())).await.unwrap();
    world.state().refresh_status = Some(400);
    world.revoke_all();
    // The first of these learns that the refresh token is spent. Then nothing uses the registration any more.
    for _ in 0..2 {
        let lost = Login::with(|_| async { Err::<String, _>("no redirect") }).store(store.clone());
        world.connect(lost).await.unwrap_err();
    }
    drop(client);
    world.target(world.login().store(store)).log_in().await.unwrap();
    assert_eq!(world.count("POST", "/one/register"), 2);
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

// proves: AFLOW-36, SEC-42
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
async fn a_token_endpoint_that_moved_is_found_by_a_refresh() {
    let world = World::new().await;
    let store = MemoryStore::new();
    let client = world.connect(world.login().store(store.clone())).await.unwrap();
    let moved = format!("{}/one/v2/token", world.base);
    world.state().metadata.insert("token_endpoint".into(), moved.into());
    world.state().gone = Some("/one/token".into());
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(world.count("POST", "/one/v2/token"), 1);
    let asked = world.count("POST", "/one/token");
    // The new URL is stored.
    world.revoke_all();
    let client = world.connect(Login::stored().store(store)).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!((world.count("POST", "/one/v2/token"), world.count("POST", "/one/token")), (2, asked));
    assert_eq!(world.visits.load(Ordering::SeqCst), 1, "the user is not asked");
}

#[tokio::test]
async fn v58_a_token_endpoint_that_is_gone_is_asked_twice_and_the_refresh_token_is_kept() {
    let world = World::new().await;
    let store = MemoryStore::new();
    let client = world.connect(world.login().store(store.clone())).await.unwrap();
    world.state().gone = Some("/one/token".into());
    world.revoke_all();
    let before = world.grants("refresh_token");
    let stored = Login::stored().store(store.clone());
    let error = world.connect(stored.clone()).await.unwrap_err();
    assert!(error.is_authorization(), "{error}");
    assert_eq!(
        world.grants("refresh_token"),
        before + 2,
        "with the known URL, and with that of the metadata"
    );
    world.state().gone = None;
    assert!(world.connect(stored).await.is_ok());
    assert_eq!(world.visits.load(Ordering::SeqCst), 1);
    drop(client);
}

#[tokio::test]
async fn v58_an_authorization_server_that_is_overloaded_does_not_end_the_login() {
    for status in [429, 500, 502, 503] {
        let world = World::new().await;
        let store = MemoryStore::new();
        let client = world.connect(world.login().store(store.clone())).await.unwrap();
        world.state().refresh_status = Some(status);
        world.revoke_all();
        let before = world.grants("refresh_token");
        let stored = Login::stored().store(store);
        let error = world.connect(stored.clone()).await.unwrap_err();
        assert!(!error.to_string().contains("canary"), "{error}");
        assert_eq!(world.grants("refresh_token"), before + 1, "{status}: it is not asked again and again");
        // The refresh token was kept, and works when the server does.
        world.state().refresh_status = None;
        assert!(world.connect(stored).await.is_ok(), "{status}");
        assert_eq!(world.visits.load(Ordering::SeqCst), 1, "{status}: the user is not asked");
        drop(client);
    }
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

/// Checks that a login works, also after its token was refused and after its refresh was refused, and that it needs another
/// scope.
async fn use_login(world: &World, login: Login) -> String {
    let target = world.target(login);
    let mut shown = format!("{target:?}");
    let client = bowline_client::Client::connect(target.clone()).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    world.state().call_scope = Some("write".into());
    if let Err(error) = client.call("t", ()).await {
        let _ = write!(shown, "{error} {error:?}");
    }
    {
        let mut state = world.state();
        state.call_scope = None;
        state.refresh_status = Some(400);
        state.refuse_assertions = true;
        state.refuse_all = Some(401);
    }
    let error = client.call("t", ()).await.unwrap_err();
    let _ = write!(shown, "{error} {error:?} {client:?}");
    let out = target.log_out().await;
    {
        let mut state = world.state();
        (state.refresh_status, state.refuse_assertions, state.refuse_all) = (None, false, None);
    }
    shown + &format!("{out:?}")
}

#[tokio::test]
async fn v57_no_secret_is_logged_at_any_level() {
    let (log, _guard) = bowline_testing::Log::start();
    let world = World::new().await;
    let issuer = format!("{}/one", world.base);
    let canary = |text: &'static str| move || std::future::ready(Ok::<_, String>(Secret::new(text)));
    let key = bowline_auth::jose::SigningKey::generate_es256().unwrap();
    let idp = format!("{}/idp/token", world.base);
    let logins = [
        ("code flow", world.login().client("app", "secret-canary")),
        ("public client", world.login()),
        ("device", Login::device(|_| {})),
        ("machine", Login::machine("reporter", "secret-canary").issuer(&issuer)),
        ("key", Login::machine_with_key("reporter", key).issuer(&issuer)),
        ("workload", Login::workload(canary("platform-canary")).issuer(&issuer)),
        (
            "enterprise",
            Login::enterprise(idp, canary("id-token-canary")).client("app", "secret-canary").issuer(&issuer),
        ),
    ];
    for (kind, login) in logins {
        let logged = log.lines().len();
        let shown = use_login(&world, login).await;
        assert!(!shown.contains("canary"), "{kind}: {shown}");
        assert!(log.lines().len() > logged, "{kind}: nothing was logged");
    }
    let bound = super::dpop::secrets_of_bound_tokens().await;
    assert!(bound.len() > 4, "{bound:?}");
    assert!(world.grants("refresh_token") > 0 && world.count("POST", "/one/revoke") > 0);
    let lines = log.lines();
    for expected in ["logged in at", "refreshed the token", "refused to refresh", "DEBUG"] {
        assert!(lines.iter().any(|line| line.contains(expected)), "{expected} is not in {lines:#?}");
    }
    for line in lines {
        assert!(!line.contains("canary"), "{line}");
        assert!(!bound.iter().any(|secret| line.contains(secret.as_str())), "{line}");
    }
}
