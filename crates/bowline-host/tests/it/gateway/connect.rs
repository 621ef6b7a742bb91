//! The page on which users connect their accounts at servers.

use super::{Far, Folder, config};
use bowline_client::{Answer, Client};
use bowline_host::Gateway;
use bowline_http::{
    HttpOptions, Poster, Protect,
    auth::{FileStore, Login, Store},
    http,
};
use bowline_server::Server;
use bowline_testing::{Issuer, issuer};
use bowline_types::Revision;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::json;
use std::sync::Arc;
use tokio::net::TcpListener;

/// A gateway with an issuer of its own, and a server behind it whose tokens another issuer issues.
struct Place {
    own: Issuer,
    theirs: Issuer,
    _far: Far,
    folder: Folder,
    gateway: Gateway,
    url: String,
}

impl Place {
    async fn new(name: &str) -> Self {
        let (own, theirs) = (Issuer::start().await.unwrap(), Issuer::start().await.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let far_url = format!("http://{}/mcp", listener.local_addr().unwrap());
        theirs.add_resource(&far_url);
        let protect = Protect::by(theirs.url()).resource(&far_url).scopes(["notes:read"]);
        let far = Far::listening(Server::new("far"), HttpOptions::new().protect(protect), listener);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("http://{address}/mcp");
        own.add_resource(&url);
        let file = format!(
            "[gateway]\nlisten = \"{address}\"\n[gateway.auth]\nissuer = \"{}\"\n[gateway.auth.connect]\n\
             [[rules]]\neffect = \"allow\"\n\
             [servers.far]\nurl = \"{far_url}\"\nauth = \"user\"\noauth = {{ issuer = \"{}\" }}\n",
            own.url(),
            theirs.url()
        );
        let (config, folder) = (config(&file), Folder::new(name));
        assert_eq!(config.errors, []);
        let gateway = Gateway::builder(config).folder(folder.path()).build().unwrap();
        let served = gateway.clone();
        tokio::spawn(async move { served.serve_http(listener, std::future::pending()).await });
        Self { own, theirs, _far: far, folder, gateway, url }
    }

    /// A client of the gateway whose user opens links with `open`.
    async fn client<F, Fut>(&self, user: &'static str, revision: Revision, open: F) -> Client
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let login = Login::with(move |visit| async move { issuer::allow(visit.url(), user).await });
        let open = Arc::new(open);
        let builder = Client::builder().revisions([revision]).on_url(move |page| {
            let open = Arc::clone(&open);
            async move {
                open(page.url.clone()).await;
                Answer::Accept(())
            }
        });
        builder.connect(http(&self.url).login(login)).await.unwrap()
    }

    /// The accounts with stored tokens.
    async fn accounts(&self) -> Vec<String> {
        let Ok(store) = FileStore::at(self.folder.path().join("credentials")) else { return Vec::new() };
        let mut accounts = Vec::new();
        for key in store.list().await.unwrap() {
            let record = store.load(&key).await.unwrap().unwrap();
            accounts.extend(record.tokens.map(|_| key.account().to_owned()));
        }
        accounts
    }

    fn account(&self, user: &str) -> String {
        json!([self.own.url(), user]).to_string()
    }
}

/// A page, where it leads, and the cookie that it sets.
struct Page {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Page {
    fn location(&self) -> &str {
        self.headers.get(header::LOCATION).unwrap_or_else(|| panic!("{}", self.text)).to_str().unwrap()
    }

    fn cookie(&self) -> String {
        let set = self.headers[header::SET_COOKIE].to_str().unwrap();
        assert!(set.contains("; Secure; HttpOnly; SameSite=Lax") && set.starts_with("__Host-"), "{set}");
        set.split(';').next().unwrap().to_owned()
    }
}

async fn open(url: &str, cookie: Option<&str>) -> Page {
    let headers = cookie.map(|cookie| (header::COOKIE, cookie.parse().unwrap()));
    let answer =
        Poster::new().send(Method::GET, url, HeaderMap::from_iter(headers), Bytes::new()).await.unwrap();
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let policy = answer.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    Page { status: answer.status, headers: answer.headers, text }
}

/// Goes through the pages of a link as a browser does: signs in as `user`, then logs in at the server as `account`.
async fn visit(link: &str, user: &str, account: &str) -> Page {
    let intro = open(link, None).await;
    assert!(intro.text.contains("Continue") && intro.text.contains("<b>far</b>"), "{}", intro.text);
    let start = open(&format!("{link}/start"), None).await;
    let back = issuer::allow(start.location(), user).await.unwrap();
    let signed_in = open(&back, Some(&start.cookie())).await;
    if signed_in.status != StatusCode::SEE_OTHER {
        return signed_in;
    }
    assert_ne!(signed_in.cookie(), start.cookie());
    let back = issuer::allow(signed_in.location(), account).await.unwrap();
    open(&back, Some(&signed_in.cookie())).await
}

async fn call(client: &Client) -> Result<String, bowline_client::Error> {
    client.call("far__fast", json!({})).await.map(|result| result.text())
}

#[tokio::test]
async fn a_user_connects_an_account_during_a_call() {
    let place = Place::new("connect-call").await;
    let client = place
        .client("ada", Revision::V2026_07_28, |link| async move {
            let page = visit(&link, "ada", "ada-at-far").await;
            assert_eq!(page.status, StatusCode::OK, "{}", page.text);
            assert!(page.text.contains("Your account is connected"), "{}", page.text);
        })
        .await;
    let tools = client.tools().await.unwrap();
    assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["far__connect_account"]);
    assert_eq!(call(&client).await.unwrap(), "fast is done");
    assert_eq!(place.accounts().await, [place.account("ada")]);
    let tools = client.tools().await.unwrap();
    assert!(tools.iter().all(|tool| tool.name != "far__connect_account") && tools.len() > 1);
    // Another client of the same user has the account.
    let other = place.client("ada", Revision::V2026_07_28, |link| async move { panic!("{link}") }).await;
    assert_eq!(call(&other).await.unwrap(), "fast is done");
    // The token of the sign-in only shows who the user is.
    let stored = std::fs::read_dir(place.folder.path().join("credentials")).unwrap();
    for file in stored {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap_or_default();
        assert!(!text.contains(&format!("{}/mcp", place.url)), "{text}");
    }
    place.gateway.close().await;
}

#[tokio::test]
async fn a_tool_connects_an_account() {
    let place = Place::new("connect-tool").await;
    let client = place
        .client("ada", Revision::V2026_07_28, |link| async move {
            visit(&link, "ada", "ada").await;
        })
        .await;
    client.tools().await.unwrap();
    let result = client.call("far__connect_account", json!({})).await.unwrap();
    assert!(result.text().contains("is connected"), "{}", result.text());
    assert_eq!(call(&client).await.unwrap(), "fast is done");
}

#[tokio::test]
async fn clients_of_earlier_revisions_get_the_link_in_their_own_way() {
    let place = Place::new("connect-legacy").await;
    let client = place.client("ada", Revision::V2025_11_25, |link| async move { panic!("{link}") }).await;
    let error = call(&client).await.unwrap_err();
    let rpc = error.as_rpc().unwrap_or_else(|| panic!("{error}"));
    assert_eq!(rpc.code, -32042, "{rpc:?}");
    let data: serde_json::Value = serde_json::from_str(rpc.data.as_ref().unwrap().as_str()).unwrap();
    let link = data["elicitations"][0]["url"].as_str().unwrap();
    assert!(data["elicitations"][0]["elicitationId"].is_string(), "{data}");
    assert_eq!(visit(link, "ada", "ada").await.status, StatusCode::OK);
    assert_eq!(call(&client).await.unwrap(), "fast is done");

    let login = Login::with(|visit| async move { issuer::allow(visit.url(), "bob").await });
    let builder = Client::builder().revisions([Revision::V2025_06_18]);
    let client = builder.connect(http(&place.url).login(login)).await.unwrap();
    let refused = match client.call("far__fast", json!({})).await {
        Ok(result) => result.text(),
        Err(error) => error.to_string(),
    };
    let link = refused
        .split_whitespace()
        .find(|word| word.contains("/connect/"))
        .unwrap_or_else(|| panic!("{refused}"));
    assert_eq!(visit(link, "bob", "bob").await.status, StatusCode::OK);
    assert_eq!(call(&client).await.unwrap(), "fast is done");
}

/// The first link of a call by a user of 2025-11-25.
async fn link_of(place: &Place, user: &'static str) -> String {
    let client = place.client(user, Revision::V2025_11_25, |link| async move { panic!("{link}") }).await;
    let error = call(&client).await.unwrap_err();
    let data = error.as_rpc().unwrap().data.as_ref().unwrap().as_str().to_owned();
    let data: serde_json::Value = serde_json::from_str(&data).unwrap();
    data["elicitations"][0]["url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn another_persons_account_is_not_connected() {
    let place = Place::new("connect-foreign").await;
    let link = link_of(&place, "mallory").await;
    // The victim opens the attacker's link: nothing is asked of the server's issuer, and nothing is stored.
    let page = visit(&link, "ada", "ada").await;
    assert_eq!(page.status, StatusCode::FORBIDDEN, "{}", page.text);
    assert!(page.text.contains("another user"), "{}", page.text);
    assert_eq!(place.theirs.requests("GET", "/authorize"), Vec::<String>::new());
    assert_eq!(place.accounts().await, Vec::<String>::new());

    // The attacker signs in, and gives the victim the rest of the way.
    let start = open(&format!("{link}/start"), None).await;
    let back = issuer::allow(start.location(), "mallory").await.unwrap();
    assert_eq!(open(&back, None).await.status, StatusCode::BAD_REQUEST, "no cookie");
    let other = open(&format!("{link}/start"), None).await;
    let page = open(&back, Some(&other.cookie())).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST, "the cookie of another visit");
    let signed_in = open(&back, Some(&start.cookie())).await;
    let back = issuer::allow(signed_in.location(), "ada").await.unwrap();
    assert_eq!(open(&back, None).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(open(&back, Some(&other.cookie())).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(open(&back, Some(&start.cookie())).await.status, StatusCode::BAD_REQUEST, "an older cookie");
    assert_eq!(place.accounts().await, Vec::<String>::new());
    // The browser of the attacker itself may go on.
    assert_eq!(open(&back, Some(&signed_in.cookie())).await.status, StatusCode::OK);
    assert_eq!(place.accounts().await, [place.account("mallory")]);
}

#[tokio::test]
async fn a_link_works_once_and_only_if_it_was_given() {
    let place = Place::new("connect-once").await;
    let link = link_of(&place, "ada").await;
    assert_eq!(link_of(&place, "ada").await, link, "a user gets one link at a time");
    assert_ne!(link_of(&place, "bob").await, link);
    assert_eq!(visit(&link, "ada", "ada").await.status, StatusCode::OK);
    assert_eq!(open(&link, None).await.status, StatusCode::NOT_FOUND);
    assert_eq!(open(&format!("{link}/start"), None).await.status, StatusCode::NOT_FOUND);
    let base = link.rsplit_once('/').unwrap().0;
    assert_eq!(open(&format!("{base}/0123"), None).await.status, StatusCode::NOT_FOUND);
    assert_eq!(open(&format!("{base}/callback?code=x&state=y"), None).await.status, StatusCode::BAD_REQUEST);
    // A denied login stores nothing, and the link can be used again.
    let link = link_of(&place, "bob").await;
    let start = open(&format!("{link}/start"), None).await;
    let back = issuer::deny(start.location()).await.unwrap();
    let page = open(&back, Some(&start.cookie())).await;
    assert_eq!(page.status, StatusCode::BAD_GATEWAY, "{}", page.text);
    assert_eq!(visit(&link, "bob", "bob").await.status, StatusCode::OK);
}
