//! Whose account a gateway uses at a server that needs a login.

use super::{Far, Folder, config};
use bowline_client::Client;
use bowline_host::Gateway;
use bowline_http::{
    Body, HttpOptions, HttpService, Principal, Protect, RequestFilter,
    auth::{FileStore, Login, Record, SealingKey, Secret, Store, StoreKey},
    http,
};
use bowline_server::{BoxFuture, Ctx, Server, Tool};
use bowline_testing::{Issuer, issuer};
use http::{Response, StatusCode, header, request::Parts};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

/// Lets only requests with a token through, and writes the tokens down.
#[derive(Clone, Debug, Default)]
struct Tokens(Arc<Mutex<Vec<String>>>);

impl RequestFilter for Tokens {
    fn check<'a>(&'a self, request: &'a mut Parts) -> BoxFuture<'a, Option<Response<Body>>> {
        let token = request.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let refusal = if let Some(token) = token {
            self.0.lock().unwrap().push(token.to_owned());
            None
        } else {
            let mut response = Response::new(Body::from(""));
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            response.headers_mut().insert(header::WWW_AUTHENTICATE, "Bearer".parse().unwrap());
            Some(response)
        };
        Box::pin(std::future::ready(refusal))
    }
}

/// Takes the principal of a request from a header, as a verified token would give it.
#[derive(Debug)]
struct Users;

impl RequestFilter for Users {
    fn check<'a>(&'a self, request: &'a mut Parts) -> BoxFuture<'a, Option<Response<Body>>> {
        if let Some(user) = request.headers.get("x-user").and_then(|user| user.to_str().ok()) {
            request.extensions.insert(Principal(user.into()));
        }
        Box::pin(std::future::ready(None))
    }
}

fn principal(user: &str, client: &str) -> String {
    json!(["https://as.example", user, client]).to_string()
}

/// Stores a login of an account.
async fn log_in(folder: &Folder, server: &str, account: &str, token: &str) {
    let record = json!({ "version": 1, "registrations": [], "tokens": {
        "issuer": "https://as.example", "resource": server, "client_id": "app", "origin": "configured",
        "access_token": token, "scheme": "Bearer", "refresh_token": null, "issued": 1, "expires": null,
        "asked": "", "granted": "", "token_endpoint": "https://as.example/token",
        "revocation_endpoint": null, "key": null } });
    let record = Record::from_json(&record.to_string()).unwrap();
    let store = FileStore::at(folder.path().join("credentials")).unwrap();
    store.save(&StoreKey::new(server, account).unwrap(), &record).await.unwrap();
}

/// A server that needs a login and tells which token it got.
async fn protected() -> (Far, Tokens) {
    let tokens = Tokens::default();
    let whose = Tool::new("whose").handler(|ctx: Ctx| {
        let token = ctx.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        token.unwrap_or("none").to_owned()
    });
    let options = HttpOptions::new().filter(tokens.clone());
    (Far::served(Server::new("far").tool(whose), options).await, tokens)
}

/// Serves a gateway that several users can call, and returns its URL.
async fn shared_gateway(folder: &Folder, far: &Far, settings: &str) -> String {
    let file = format!("[[rules]]\neffect = \"allow\"\n\n[servers.far]\nurl = \"{}\"\n{settings}\n", far.url);
    let config = config(&file);
    assert_eq!(config.errors, []);
    let gateway = Gateway::builder(config).folder(folder.path()).build().unwrap();
    assert_eq!(gateway.problems().iter().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
    let service = HttpService::with_options(gateway.open().unwrap(), HttpOptions::new().filter(Users));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let _gateway = gateway;
        let _ = service.serve(listener, std::future::pending()).await;
    });
    url
}

/// Calls the tool as a user, and returns its text or the error.
async fn whose(url: &str, user: Option<&str>) -> Result<String, String> {
    let target = user.iter().fold(http(url), |target, user| target.header("X-User", *user));
    let client = Client::connect(target).await.map_err(|error| error.to_string())?;
    let result = client.call("far__whose", json!({})).await.map_err(|error| error.to_string())?;
    Ok(result.text())
}

#[tokio::test]
async fn v60_each_user_has_an_account_and_no_one_uses_that_of_another() {
    let (folder, (far, tokens)) = (Folder::new("per-user"), protected().await);
    log_in(&folder, &far.url, "", "operator-token").await;
    for (user, token) in [("ada", "ada-token"), ("eve", "eve-token")] {
        let account = json!(["https://as.example", user]).to_string();
        log_in(&folder, &far.url, &account, token).await;
    }
    let url = shared_gateway(&folder, &far, "auth = \"user\"").await;
    // Another client of the same user has the same account.
    for (user, client, token) in
        [("ada", "app", "ada-token"), ("eve", "app", "eve-token"), ("ada", "other", "ada-token")]
    {
        assert_eq!(whose(&url, Some(&principal(user, client))).await, Ok(format!("Bearer {token}")));
    }
    let before = tokens.0.lock().unwrap().len();
    let refused = whose(&url, Some(&principal("bob", "app"))).await.unwrap_err();
    assert!(refused.contains("bowline login far --account '[\"https://as.example\",\"bob\"]'"), "{refused}");
    for nobody in [None, Some("ada"), Some("[\"https://as.example\"]")] {
        let refused = whose(&url, nobody).await.unwrap_err();
        assert!(refused.contains("one account for each user"), "{refused}");
    }
    assert_eq!(tokens.0.lock().unwrap().len(), before, "nobody else's token was used");
    assert!(!tokens.0.lock().unwrap().iter().any(|token| token.contains("operator")));
}

#[tokio::test]
async fn an_account_is_shared_only_if_the_configuration_says_so() {
    let (folder, (far, tokens)) = (Folder::new("shared"), protected().await);
    log_in(&folder, &far.url, "", "operator-token").await;
    let url = shared_gateway(&folder, &far, "auth = \"shared\"").await;
    for user in ["ada", "bob"] {
        assert_eq!(whose(&url, Some(&principal(user, "app"))).await.as_deref(), Ok("Bearer operator-token"));
    }
    tokens.0.lock().unwrap().clear();
    for settings in ["", "auth = \"none\"", "oauth = false"] {
        let url = shared_gateway(&folder, &far, settings).await;
        assert!(whose(&url, Some(&principal("ada", "app"))).await.is_err(), "{settings}");
    }
    assert_eq!(*tokens.0.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn settings_of_a_login_without_a_mode_are_reported_on_a_shared_gateway() {
    let file = |more: &str| {
        let text = format!(
            "[servers.far]\nurl = \"https://far.example/mcp\"\noauth = {{ client_id = \"a\" }}\n{more}"
        );
        let folder = Folder::new("reported");
        let gateway = Gateway::builder(config(&text)).folder(folder.path()).build().unwrap();
        gateway.problems().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert!(file("").contains("set `auth` to `shared` or `user`"), "{}", file(""));
    assert!(!file("auth = \"shared\"\n").contains("`auth`"));
}

#[test]
fn settings_that_do_not_fit_disable_the_server() {
    let problem = |oauth: &str| {
        let text = format!("[servers.far]\nurl = \"https://far.example/mcp\"\noauth = {{ {oauth} }}\n");
        let config = config(&text);
        assert_eq!(config.errors, []);
        let folder = Folder::new(&format!("unfit-{}", oauth.len()));
        let gateway = Gateway::builder(config).folder(folder.path()).serves(None).build().unwrap();
        gateway.problems().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    for (oauth, expected) in [
        ("authorization_url = \"https://a.example\", client_id = \"a\"", "set both"),
        (
            "authorization_url = \"https://a.example\", token_url = \"https://a.example\"",
            "needs the client id",
        ),
        ("authorization_params = { state = \"x\" }", "`state`"),
        ("grant = \"client_credentials\"", "needs `client_id`"),
        ("grant = \"client_credentials\", client_id = \"a\"", "`client_secret` or `private_key`"),
        ("grant = \"client_credentials\", client_id = \"a\", client_secret = \"s\"", "needs `issuer`"),
        ("grant = \"workload\", issuer = \"https://a.example\"", "needs `assertion_file`"),
        ("private_key = \"/key.pem\"", "`private_key` has no effect"),
        (
            "grant = \"client_credentials\", client_id = \"a\", private_key = \"/missing.pem\"",
            "cannot use the private key",
        ),
        (
            "metadata_url = \"https://a.example/.well-known/openid-configuration\", issuer = \"https://b.example\"",
            "remove one",
        ),
    ] {
        let found = problem(oauth);
        assert!(found.contains(expected), "{oauth}: {found}");
    }
    assert_eq!(problem("client_id = \"a\", allow = [\"issuer-slash\"]"), "");
}

/// A server whose tokens an issuer issues.
async fn protected_by(issuer: &Issuer) -> Far {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    issuer.add_resource(&url);
    let options = HttpOptions::new().protect(Protect::by(issuer.url()).resource(&url).scopes(["notes:read"]));
    Far::listening(Server::new("far"), options, listener)
}

/// Serves a gateway for several users with an audit log, and returns it with its URL.
async fn audited_gateway(folder: &Folder, far: &Far, settings: &str) -> (Gateway, String) {
    let log = folder.path().join("audit.jsonl");
    let file = format!(
        "[audit]\nfile = \"{}\"\n[[rules]]\neffect = \"allow\"\n\n[servers.far]\nurl = \"{}\"\n{settings}\n",
        log.display(),
        far.url
    );
    let gateway = Gateway::builder(config(&file)).folder(folder.path()).build().unwrap();
    let service = HttpService::with_options(gateway.open().unwrap(), HttpOptions::new().filter(Users));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let _ = service.serve(listener, std::future::pending()).await;
    });
    (gateway, url)
}

async fn call_fast(url: &str, user: &str) -> Result<String, String> {
    let client =
        Client::connect(http(url).header("X-User", user)).await.map_err(|error| error.to_string())?;
    let result = client.call("far__fast", json!({})).await.map_err(|error| error.to_string())?;
    Ok(result.text())
}

/// The lines of the audit log about logins, and the whole log.
fn logins(gateway: &Gateway, folder: &Folder) -> (Vec<Value>, String) {
    gateway.host().guard().audit().unwrap().flush();
    let log = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    (lines.filter(|line| line["event"] == "login").collect(), log)
}

#[tokio::test]
async fn logins_at_servers_are_audited() {
    let (issuer, secret) = (Issuer::start().await.unwrap(), "machine-secret-canary");
    let far = protected_by(&issuer).await;
    issuer.with(|server| server.add_machine("gateway", &Secret::new(secret)));
    let settings = format!(
        "auth = \"shared\"\noauth = {{ grant = \"client_credentials\", issuer = \"{}\", client_id = \"gateway\", \
         client_secret = \"{secret}\" }}",
        issuer.url()
    );
    let folder = Folder::new("audit-login");
    let (gateway, url) = audited_gateway(&folder, &far, &settings).await;
    assert_eq!(call_fast(&url, "ada").await.as_deref(), Ok("fast is done"));
    let (lines, log) = logins(&gateway, &folder);
    let [line] = &lines[..] else { panic!("{log}") };
    assert_eq!(
        json!([line["server"], line["method"], line["outcome"], line["issuer"], line["scopes"]]),
        json!(["far", "login", "ok", issuer.url(), "notes:read"])
    );
    assert!(line["tokenDigest"].as_str().unwrap().starts_with("sha256:"), "{line}");
    assert!(!log.contains("canary") && !log.contains("eyJ"), "{log}");

    issuer.faults(|faults| faults.token_failure = Some((401, "invalid_client".into())));
    let folder = Folder::new("audit-login-failed");
    let (gateway, url) = audited_gateway(&folder, &far, &settings).await;
    call_fast(&url, "ada").await.unwrap_err();
    let (lines, log) = logins(&gateway, &folder);
    assert!(!lines.is_empty(), "{log}");
    for line in &lines {
        assert_eq!(line["method"], "login");
        assert!(line["outcome"].as_str().unwrap().contains("invalid_client"), "{line}");
    }
    assert!(!log.contains("canary"), "{log}");
}

#[tokio::test]
async fn refreshes_are_audited_with_the_account_of_the_user() {
    let issuer = Issuer::start().await.unwrap();
    let (far, folder) = (protected_by(&issuer).await, Folder::new("audit-refresh"));
    let store = FileStore::at(folder.path().join("credentials")).unwrap();
    let account = json!(["https://as.example", "ada"]).to_string();
    let login = Login::with(|visit| async move { issuer::allow(visit.url(), "ada").await });
    let login = login.account(&account).store(store.clone());
    http(&far.url).login(login).log_in().await.unwrap();
    let key = StoreKey::new(&far.url, &account).unwrap();
    let expire = async || {
        let mut record = store.load(&key).await.unwrap().unwrap();
        let tokens = record.tokens.as_mut().unwrap();
        (tokens.issued, tokens.expires) = (1, Some(2));
        store.save(&key, &record).await.unwrap();
        record.tokens.unwrap().refresh_token.unwrap().expose().to_owned()
    };
    let spent = expire().await;
    let settings = format!("auth = \"user\"\noauth = {{ issuer = \"{}\" }}", issuer.url());
    let (gateway, url) = audited_gateway(&folder, &far, &settings).await;
    let ada = principal("ada", "app");
    assert_eq!(call_fast(&url, &ada).await.as_deref(), Ok("fast is done"));
    let (lines, log) = logins(&gateway, &folder);
    let [line] = &lines[..] else { panic!("{log}") };
    assert_eq!(
        json!([line["method"], line["outcome"], line["issuer"], line["principal"], line["name"]]),
        json!(["refresh", "ok", issuer.url(), "ada", account])
    );
    assert!(!log.contains(&spent), "{log}");

    // The issuer refuses the next one.
    expire().await;
    issuer.faults(|faults| faults.token_failure = Some((400, "invalid_grant".into())));
    let (gateway, url) = audited_gateway(&folder, &far, &settings).await;
    // The server still accepts the old token.
    assert_eq!(call_fast(&url, &ada).await.as_deref(), Ok("fast is done"));
    let (lines, log) = logins(&gateway, &folder);
    let refused = lines.iter().find(|line| line["outcome"] != "ok").unwrap_or_else(|| panic!("{log}"));
    assert_eq!(json!([refused["method"], refused["principal"]]), json!(["refresh", "ada"]));
    assert!(refused["outcome"].as_str().unwrap().contains("invalid_grant"), "{refused}");
}

#[tokio::test]
async fn a_gateway_opens_sealed_logins_with_their_key_only() {
    let (folder, (far, tokens)) = (Folder::new("sealed"), protected().await);
    let key = || SealingKey::new(&[7; 32]).unwrap();
    log_in(&folder, &far.url, "", "plain-token").await;
    let store = FileStore::at(folder.path().join("credentials")).unwrap();
    let name = StoreKey::new(&far.url, "").unwrap();
    let record = store.load(&name).await.unwrap().unwrap();
    store.sealed_with(key()).save(&name, &record).await.unwrap();
    let check = async |sealing: Option<SealingKey>| {
        let file = format!("[[rules]]\neffect = \"allow\"\n[servers.far]\nurl = \"{}\"\n", far.url);
        let mut builder = Gateway::builder(config(&file)).folder(folder.path()).serves(None);
        if let Some(key) = sealing {
            builder = builder.login_key(key);
        }
        let gateway = builder.build().unwrap();
        let client = Client::connect(gateway.open().unwrap()).await.unwrap();
        let called = client.call("far__whose", json!({})).await;
        let told = called.map(|result| result.text()).map_err(|error| error.to_string());
        gateway.close().await;
        told
    };
    assert_eq!(check(Some(key())).await.as_deref(), Ok("Bearer plain-token"));
    tokens.0.lock().unwrap().clear();
    let refused = check(None).await.unwrap_err();
    assert!(refused.contains("sealed, and there is no key"), "{refused}");
    let refused = check(Some(SealingKey::new(&[8; 32]).unwrap())).await.unwrap_err();
    assert!(refused.contains("another key"), "{refused}");
    assert_eq!(*tokens.0.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn step_ups_at_servers_are_audited() {
    let (issuer, secret) = (Issuer::start().await.unwrap(), "machine-secret-canary");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    issuer.add_resource(&url);
    let options = HttpOptions::new().protect(Protect::by(issuer.url()).resource(&url).scopes(["notes:read"]));
    let write = Tool::new("write").scopes(["notes:write"]).handler(|| "written");
    let far = Far::listening(Server::new("far").tool(write), options, listener);
    issuer.with(|server| server.add_machine("gateway", &Secret::new(secret)));
    let settings = format!(
        "auth = \"shared\"\noauth = {{ grant = \"client_credentials\", issuer = \"{}\", client_id = \"gateway\", \
         client_secret = \"{secret}\" }}",
        issuer.url()
    );
    let folder = Folder::new("audit-step-up");
    let (gateway, url) = audited_gateway(&folder, &far, &settings).await;
    let client = Client::connect(http(&url).header("X-User", "ada")).await.unwrap();
    assert_eq!(client.call("far__write", json!({})).await.unwrap().text(), "written");
    let (lines, log) = logins(&gateway, &folder);
    let shown: Vec<Value> =
        lines.iter().map(|line| json!([line["method"], line["outcome"], line["scopes"]])).collect();
    assert_eq!(
        shown,
        [json!(["login", "ok", "notes:read"]), json!(["step-up", "ok", "notes:read notes:write"])],
        "{log}"
    );
    assert!(!log.contains("canary") && !log.contains("eyJ"), "{log}");

    // One that fails is recorded, too, with its reason.
    issuer.faults(|faults| faults.token_failure = Some((400, "invalid_scope".into())));
    let folder = Folder::new("audit-step-up-failed");
    let (gateway, url) = audited_gateway(&folder, &far, &settings).await;
    let client = Client::connect(http(&url).header("X-User", "ada")).await.unwrap();
    client.call("far__write", json!({})).await.unwrap_err();
    let (lines, log) = logins(&gateway, &folder);
    assert!(lines.iter().any(|line| line["outcome"].to_string().contains("invalid_scope")), "{log}");
}

/// Stores an expired login whose token endpoint is at this URL.
async fn log_in_until_now(folder: &Folder, server: &str, endpoint: &str) {
    let issuer = "https://as.example";
    let record = json!({ "version": 1,
        "registrations": [{ "issuer": issuer, "client_id": "app", "origin": "configured", "secret": null,
            "secret_expires": null, "method": null, "redirect_uri": "http://127.0.0.1:1/callback" }],
        "tokens": {
            "issuer": issuer, "resource": server, "client_id": "app", "origin": "configured",
            "access_token": "old-token", "scheme": "Bearer", "refresh_token": "refresh-canary", "issued": 1, "expires": 2,
            "asked": "", "granted": "", "token_endpoint": endpoint, "revocation_endpoint": null, "key": null } });
    let record = Record::from_json(&record.to_string()).unwrap();
    let store = FileStore::at(folder.path().join("credentials")).unwrap();
    store.save(&StoreKey::new(server, "").unwrap(), &record).await.unwrap();
}

#[tokio::test]
async fn v50_a_shared_gateway_is_not_led_into_its_own_network() {
    let (folder, (far, _)) = (Folder::new("networks"), protected().await);
    let canary = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let endpoint = format!("http://{}/token", canary.local_addr().unwrap());
    log_in_until_now(&folder, &far.url, &endpoint).await;
    let url = shared_gateway(&folder, &far, "auth = \"shared\"").await;
    let refused = whose(&url, None).await.unwrap_err();
    assert!(refused.contains("`127.0.0.2` is a loopback address"), "{refused}");
    // An earlier connection would be accepted first.
    let own = tokio::net::TcpStream::connect(canary.local_addr().unwrap()).await.unwrap();
    let (_, accepted) = canary.accept().await.unwrap();
    assert_eq!(accepted, own.local_addr().unwrap(), "the gateway connected to its own network");

    // The gateway of one user may use addresses of this machine, if the server is at one.
    let file = format!("[[rules]]\neffect = \"allow\"\n[servers.far]\nurl = \"{}\"\n", far.url);
    let gateway = Gateway::builder(config(&file)).folder(folder.path()).serves(None).build().unwrap();
    let client = Client::connect(gateway.open().unwrap()).await.unwrap();
    let call = async { client.call("far__whose", json!({})).await };
    let (accepted, called) = tokio::join!(async { canary.accept().await.map(drop) }, call);
    assert!(accepted.is_ok());
    // Nothing answers there.
    assert!(called.is_err());
    gateway.close().await;
}
