//! Clients and servers with a real issuer that misbehaves in one way.

use bowline_client::Client;
use bowline_http::{
    HttpOptions, HttpService, HttpTarget, Protect,
    auth::{Login, MemoryStore, Scopes, Visit},
    http,
};
use bowline_server::{Server, Tool, transport::unix_time};
use bowline_testing::{Issuer, issuer::allow};
use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
use tokio::{net::TcpListener, sync::Notify};

/// An MCP server and the issuer of its tokens, on two sockets.
struct World {
    issuer: Issuer,
    url: String,
    visits: Arc<AtomicUsize>,
    /// How many seconds the clock of the server is ahead.
    ahead: Arc<AtomicU64>,
}

impl World {
    async fn new() -> Self {
        let issuer = Issuer::start().await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ahead = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&ahead);
        let protect = Protect::by(issuer.url())
            .scopes(["base"])
            .clock(move || unix_time() + clock.load(Ordering::SeqCst));
        let options = HttpOptions::new().protect(protect).listening_on(address);
        let server = Server::new("s").tool(Tool::new("t").handler(|| "done"));
        let service = HttpService::with_options(server.build().unwrap(), options);
        tokio::spawn(async move { service.serve(listener, std::future::pending()).await });
        let url = format!("http://{address}/mcp");
        issuer.add_resource(&url);
        Self { issuer, url, visits: Arc::default(), ahead }
    }

    fn target(&self) -> HttpTarget {
        let visits = Arc::clone(&self.visits);
        http(&self.url).login(Login::with(move |visit: Visit| {
            visits.fetch_add(1, Ordering::SeqCst);
            async move { allow(visit.url(), "ada").await }
        }))
    }

    /// Connects, and returns the error.
    async fn refused(&self) -> String {
        Client::connect(self.target()).await.unwrap_err().to_string()
    }
}

#[tokio::test]
async fn tokens_of_a_new_key_are_accepted_after_a_rotation() {
    let world = World::new().await;
    let client = Client::connect(world.target()).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    world.issuer.rotate_key().unwrap();
    // Unknown keys are looked for every 30 s at most.
    world.ahead.store(31, Ordering::SeqCst);
    let other = Client::connect(world.target()).await.unwrap();
    assert_eq!(other.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done", "the old token is still good");
}

#[tokio::test]
async fn v51_a_redirect_of_the_token_endpoint_is_not_followed() {
    let world = World::new().await;
    let stolen = format!("{}/stolen", world.issuer.url());
    world.issuer.faults(|faults| faults.token_redirect = Some(stolen));
    let error = world.refused().await;
    assert!(error.contains("redirects"), "{error}");
    assert_eq!(world.issuer.requests("POST", "/stolen"), Vec::<String>::new());
    assert_eq!(world.issuer.requests("POST", "/token").len(), 1);
}

#[tokio::test]
async fn v53_a_code_of_another_issuer_is_not_sent_anywhere() {
    let (world, honest) = (World::new().await, World::new().await);
    // The metadata of the attacker sends the user to the honest issuer, which knows a client of the same id.
    let endpoint = format!("{}/authorize", honest.issuer.url());
    world.issuer.faults(|faults| faults.authorization_endpoint = Some(endpoint));
    honest.issuer.add_resource(&world.url);
    honest.issuer.with(|server| server.add_client("app", "http://127.0.0.1/callback"));
    let login = Login::with(|visit: Visit| async move { allow(visit.url(), "ada").await }).client_id("app");
    Client::connect(http(&world.url).login(login)).await.unwrap_err();
    assert_eq!(honest.issuer.requests("POST", "/authorize").len(), 1, "the user agreed there");
    assert_eq!(world.issuer.requests("POST", "/token").len(), 0);
    assert_eq!(honest.issuer.requests("POST", "/token").len(), 0);
}

#[tokio::test]
async fn v53_a_wrong_or_missing_issuer_in_the_response_ends_the_login() {
    for issuer in ["", "https://other.example", "slash"] {
        let world = World::new().await;
        let issuer = if issuer == "slash" { format!("{}/", world.issuer.url()) } else { issuer.to_owned() };
        world.issuer.faults(|faults| faults.response_issuer = Some(issuer.clone()));
        world.refused().await;
        assert_eq!(world.issuer.requests("POST", "/token").len(), 0, "{issuer}");
        assert_eq!(world.visits.load(Ordering::SeqCst), 1, "{issuer}");
    }
}

#[tokio::test]
async fn an_issuer_without_s256_is_not_visited() {
    for methods in [vec![], vec!["plain".to_owned()]] {
        let world = World::new().await;
        world.issuer.faults(|faults| faults.pkce_methods = Some(methods));
        let error = world.refused().await;
        assert!(error.contains("PKCE"), "{error}");
        assert_eq!(world.visits.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn v58_a_server_that_refuses_every_token_gets_one_login() {
    let world = World::new().await;
    world.issuer.faults(|faults| faults.hides_keys = true);
    world.refused().await;
    assert_eq!(world.visits.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_login_asks_for_more_scopes_and_keeps_the_others() {
    let world = World::new().await;
    let asked = || {
        let requests = world.issuer.requests("GET", "/authorize");
        let scope = requests.last().unwrap().split('&').find_map(|part| part.strip_prefix("scope="));
        scope.unwrap().to_owned()
    };
    let target = world.target();
    target.log_in().await.unwrap();
    assert_eq!(asked(), "base");
    let account = target.log_in_for(&Scopes::parse("more other")).await.unwrap();
    assert_eq!(asked(), "base+more+other");
    assert_eq!(account.granted, Scopes::parse("base more other"));
    // Also beside scopes that are configured.
    let login = Login::with(|visit: Visit| async move { allow(visit.url(), "ada").await }).scopes(["own"]);
    let target = http(&world.url).login(login);
    target.log_in().await.unwrap();
    assert_eq!(asked(), "own");
    target.log_in_for(&Scopes::parse("more")).await.unwrap();
    assert_eq!(asked(), "own+base+more");
}

#[tokio::test]
async fn an_issuer_without_codes_for_devices_says_what_to_use() {
    let world = World::new().await;
    let target = http(&world.url).login(Login::device(|prompt| panic!("{prompt:?}")));
    let error = target.log_in().await.unwrap_err().to_string();
    assert!(
        error.contains("offers no logins with a code") && error.contains("on another machine"),
        "{error}"
    );
}

#[tokio::test]
async fn v58_a_slow_authorization_server_delays_only_its_own_login() {
    let (slow, other) = (World::new().await, World::new().await);
    let release = Arc::new(Notify::new());
    slow.issuer.faults(|faults| faults.token_delay = Some(Arc::clone(&release)));
    let store = MemoryStore::default();
    let target = |world: &World| {
        let login = Login::with(|visit: Visit| async move { allow(visit.url(), "ada").await });
        http(&world.url).login(login.store(store.clone()))
    };
    let waiting = tokio::spawn({
        let target = target(&slow);
        async move { target.log_in().await }
    });
    while slow.issuer.requests("POST", "/token").is_empty() {
        tokio::task::yield_now().await;
    }
    // The logins share a store. The other one does not wait.
    target(&other).log_in().await.unwrap();
    assert!(!waiting.is_finished());
    release.notify_one();
    waiting.await.unwrap().unwrap();
}
