//! Whose account a gateway uses at a server that needs a login.

use super::{Far, Folder, config};
use bowline_client::Client;
use bowline_host::Gateway;
use bowline_http::{
    Body, HttpOptions, HttpService, Principal, RequestFilter,
    auth::{FileStore, Record, Store, StoreKey},
    http,
};
use bowline_server::{BoxFuture, Ctx, Server, Tool};
use http::{Response, StatusCode, header, request::Parts};
use serde_json::json;
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
