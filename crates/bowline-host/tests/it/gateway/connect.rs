//! The page on which users connect their accounts at servers.

use super::{Far, Folder, config};
use bowline_auth::jose::Jws;
use bowline_client::{Answer, Client};
use bowline_host::Gateway;
use bowline_http::{
    HttpOptions, Poster, Protect,
    auth::{FileStore, Login, Store},
    http,
};
use bowline_server::{Error, Server, Tool};
use bowline_testing::{Issuer, issuer};
use bowline_types::Revision;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
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
        let write = Tool::new("write").scopes(["notes:write"]).handler(|| "written");
        let broken = Tool::new("broken").handler(|| Err::<String, _>(Error::invalid_params("no such note")));
        let far = Far::listening(
            Server::new("far").tool(write).tool(broken),
            HttpOptions::new().protect(protect),
            listener,
        );
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

    /// Who the stored tokens of an account were issued to.
    async fn subject(&self, user: &str) -> String {
        let store = FileStore::at(self.folder.path().join("credentials")).unwrap();
        let keys = store.list().await.unwrap();
        let key = keys.iter().find(|key| key.account() == self.account(user)).expect("an account");
        let tokens = store.load(key).await.unwrap().unwrap().tokens.expect("tokens");
        let token = Jws::parse(tokens.access_token.expose()).unwrap();
        let claims: Value = serde_json::from_slice(token.unverified_payload()).unwrap();
        claims["sub"].as_str().unwrap().to_owned()
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

/// Opens a page as a browser does whose user follows a link or redirect of a page of `site`.
async fn open_from(site: &str, url: &str, cookie: Option<&str>) -> Page {
    let sent = [("sec-fetch-site", site), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    let sent = sent.into_iter().chain(cookie.map(|cookie| ("cookie", cookie)));
    let page = fetch(Method::GET, url, sent).await;
    let policy = page.headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"), "{policy}");
    // The URL of a page can have a code. No cache keeps the page, and no other site learns the URL.
    assert_eq!(page.headers[header::CACHE_CONTROL], "no-store");
    assert_eq!(page.headers[header::REFERRER_POLICY], "no-referrer");
    assert_eq!(page.headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    page
}

async fn fetch<'a>(method: Method, url: &str, sent: impl IntoIterator<Item = (&'a str, &'a str)>) -> Page {
    let sent =
        sent.into_iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()));
    let answer = Poster::new().send(method, url, sent.collect(), Bytes::new()).await.unwrap();
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    Page { status: answer.status, headers: answer.headers, text }
}

/// Opens a page that another site leads to: a chat with the link, or an authorization server.
async fn open(url: &str, cookie: Option<&str>) -> Page {
    open_from("cross-site", url, cookie).await
}

/// Follows the link of the first page.
async fn start(link: &str) -> Page {
    open_from("same-origin", &format!("{link}/start"), None).await
}

/// Goes through the pages of a link as a browser does: signs in as `user`, then logs in at the server as `account`.
async fn visit(link: &str, user: &str, account: &str) -> Page {
    let intro = open(link, None).await;
    assert!(intro.text.contains("Continue") && intro.text.contains("<b>far</b>"), "{}", intro.text);
    let start = start(link).await;
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
        assert!(!text.contains(&place.url), "{text}");
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
    let data: Value = serde_json::from_str(rpc.data.as_ref().unwrap().as_str()).unwrap();
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
    let data: Value = serde_json::from_str(&data).unwrap();
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
    let start = start(&link).await;
    let back = issuer::allow(start.location(), "mallory").await.unwrap();
    assert_eq!(open(&back, None).await.status, StatusCode::BAD_REQUEST, "no cookie");
    let other = self::start(&link).await;
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
    assert_eq!(start(&link).await.status, StatusCode::NOT_FOUND);
    let base = link.rsplit_once('/').unwrap().0;
    assert_eq!(open(&format!("{base}/0123"), None).await.status, StatusCode::NOT_FOUND);
    assert_eq!(open(&format!("{base}/callback?code=x&state=y"), None).await.status, StatusCode::BAD_REQUEST);
    // A denied login stores nothing, and the link can be used again.
    let link = link_of(&place, "bob").await;
    let start = start(&link).await;
    let back = issuer::deny(start.location()).await.unwrap();
    let page = open(&back, Some(&start.cookie())).await;
    assert_eq!(page.status, StatusCode::BAD_GATEWAY, "{}", page.text);
    assert_eq!(visit(&link, "bob", "bob").await.status, StatusCode::OK);
}

#[tokio::test]
async fn other_sites_lead_to_links_and_back_and_nowhere_else() {
    let place = Place::new("connect-sites").await;
    let link = link_of(&place, "ada").await;
    let start_url = format!("{link}/start");
    for site in ["cross-site", "same-site", "none"] {
        assert_eq!(open_from(site, &link, None).await.status, StatusCode::OK, "{site}");
    }
    // Only the page itself starts a visit: nobody skips what it says.
    for site in ["cross-site", "same-site"] {
        let sent = [("sec-fetch-site", site), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        assert_eq!(fetch(Method::GET, &start_url, sent).await.status, StatusCode::FORBIDDEN, "{site}");
    }
    let page = open_from("none", &start_url, None).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(
        page.text.contains("Continue only if you asked") && page.text.contains("href=\"../"),
        "{}",
        page.text
    );
    assert!(page.headers.get(header::SET_COOKIE).is_none());
    assert_eq!(start(&link).await.status, StatusCode::SEE_OTHER);
    // Frames, images and scripts of other sites are refused, and so is everything beside the pages.
    let callback = format!("{}/callback?code=x&state=y", link.rsplit_once('/').unwrap().0);
    for url in [&link, &callback] {
        for (mode, destination) in
            [("navigate", "iframe"), ("no-cors", "image"), ("no-cors", "script"), ("cors", "empty")]
        {
            let sent =
                [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", mode), ("sec-fetch-dest", destination)];
            assert_eq!(
                fetch(Method::GET, url, sent).await.status,
                StatusCode::FORBIDDEN,
                "{mode} {destination}"
            );
        }
    }
    let sent =
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    for url in
        [place.url.clone(), place.url.replace("/mcp", "/metrics"), place.url.replace("/mcp", "/connected")]
    {
        assert_eq!(fetch(Method::GET, &url, sent).await.status, StatusCode::FORBIDDEN, "{url}");
    }
    assert_eq!(fetch(Method::POST, &link, sent).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn v53_the_redirect_of_one_authorization_server_is_not_taken_for_that_of_another() {
    let place = Place::new("connect-mixup").await;
    let link = link_of(&place, "ada").await;
    let start = start(&link).await;
    let back = issuer::allow(start.location(), "ada").await.unwrap();
    let base = link.rsplit_once('/').unwrap().0;
    let query = |back: &str| back.split_once('?').unwrap().1.to_owned();
    assert!(back.starts_with(&format!("{base}/callback?")), "{back}");
    for path in ["callback/far", "callback/other", "callback/"] {
        let page = open(&format!("{base}/{path}?{}", query(&back)), Some(&start.cookie())).await;
        assert_eq!(page.status, StatusCode::BAD_REQUEST, "{path}");
    }
    let signed_in = open(&back, Some(&start.cookie())).await;
    let back = issuer::allow(signed_in.location(), "ada").await.unwrap();
    assert!(back.starts_with(&format!("{base}/callback/far?")), "{back}");
    // The server of the login sent the browser to the issuer of the gateway, whose code it wants.
    for path in ["callback", "callback/other"] {
        let page = open(&format!("{base}/{path}?{}", query(&back)), Some(&signed_in.cookie())).await;
        assert_eq!(page.status, StatusCode::BAD_REQUEST, "{path}");
    }
    assert_eq!(place.theirs.requests("POST", "/token"), Vec::<String>::new());
    assert_eq!(open(&back, Some(&signed_in.cookie())).await.status, StatusCode::OK);
}

#[tokio::test]
async fn v55_a_redirect_is_taken_once() {
    let place = Place::new("connect-replay").await;
    let link = link_of(&place, "ada").await;
    let start = start(&link).await;
    let back = issuer::allow(start.location(), "ada").await.unwrap();
    let cookie = start.cookie();
    let (one, two) = tokio::join!(open(&back, Some(&cookie)), open(&back, Some(&cookie)));
    let (first, second) = if one.status == StatusCode::SEE_OTHER { (one, two) } else { (two, one) };
    assert_eq!((first.status, second.status), (StatusCode::SEE_OTHER, StatusCode::BAD_REQUEST));
    // The second one does not reach the login that comes next.
    let last = issuer::allow(first.location(), "ada").await.unwrap();
    assert_eq!(
        open(&back, Some(&first.cookie())).await.status,
        StatusCode::BAD_REQUEST,
        "the older redirect"
    );
    assert_eq!(open(&last, Some(&first.cookie())).await.status, StatusCode::OK);
    assert_eq!(open(&last, Some(&first.cookie())).await.status, StatusCode::BAD_REQUEST, "the visit is over");
}

#[tokio::test]
async fn visits_of_an_account_are_limited_also_while_they_wait() {
    let place = Place::new("connect-many").await;
    let link = link_of(&place, "ada").await;
    let other = link_of(&place, "bob").await;
    let mut visits = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let link = link.clone();
        visits.spawn(async move { start(&link).await.status });
    }
    let statuses = visits.join_all().await;
    let started = statuses.iter().filter(|status| **status == StatusCode::SEE_OTHER).count();
    let refused = statuses.iter().filter(|status| **status == StatusCode::TOO_MANY_REQUESTS).count();
    assert_eq!((started, refused), (8, 32), "{statuses:?}");
    // The limit is that of one account.
    assert_eq!(start(&other).await.status, StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn what_a_browser_sends_is_limited_and_not_repeated() {
    let place = Place::new("connect-input").await;
    let link = link_of(&place, "ada").await;
    let start = start(&link).await;
    let back = issuer::deny(start.location()).await.unwrap();
    let long = format!("{back}&padding={}", "x".repeat(17 * 1024));
    let page = open(&long, Some(&start.cookie())).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(page.text.contains("too long") && page.text.len() < 2000, "{}", page.text);
    let page =
        open(&format!("{back}&error_description=%3Cscript%3Ealert(1)%3C/script%3E"), Some(&start.cookie()))
            .await;
    assert_eq!(page.status, StatusCode::BAD_GATEWAY, "{}", page.text);
    assert!(!page.text.contains("<script"), "{}", page.text);
    let page = open(&format!("{}/%3Cscript%3E", link.rsplit_once('/').unwrap().0), None).await;
    assert!(!page.text.contains("script"), "{}", page.text);
}

#[tokio::test]
async fn a_link_or_login_of_another_process_says_so() {
    let place = Place::new("connect-process").await;
    let (link, begun) = (link_of(&place, "ada").await, link_of(&place, "bob").await);
    let foreign = |name: &str| {
        let (_, rest) = name.rsplit_once('-').unwrap();
        format!("00000000-{rest}")
    };
    let (base, key) = link.rsplit_once('/').unwrap();
    let other = format!("{base}/{}", foreign(key));
    for page in [open(&other, None).await, start(&other).await] {
        assert_eq!(page.status, StatusCode::NOT_FOUND);
        assert!(page.text.contains("was restarted, or several processes share"), "{}", page.text);
    }
    let start = start(&begun).await;
    let back = issuer::allow(start.location(), "bob").await.unwrap();
    let cookie = start.cookie();
    let (name, value) = cookie.split_once('=').unwrap();
    let page = open(&back, Some(&format!("{name}={}", foreign(value)))).await;
    assert_eq!(page.status, StatusCode::BAD_REQUEST);
    assert!(page.text.contains("another process of the gateway"), "{}", page.text);
    // A link of this process that was used is a different matter.
    assert_eq!(visit(&link, "ada", "ada").await.status, StatusCode::OK);
    let page = open(&link, None).await;
    assert!(page.text.contains("was used, or is too old"), "{}", page.text);
}

#[tokio::test]
async fn users_who_connect_at_the_same_time_are_kept_apart() {
    let place = Place::new("connect-two").await;
    let (ada, bob) = (link_of(&place, "ada").await, link_of(&place, "bob").await);
    let (a, b) = tokio::join!(start(&ada), start(&bob));
    let (a_back, b_back) =
        tokio::join!(issuer::allow(a.location(), "ada"), issuer::allow(b.location(), "bob"));
    let (a_back, b_back) = (a_back.unwrap(), b_back.unwrap());
    // The browser of one with the redirect of the other.
    assert_eq!(open(&b_back, Some(&a.cookie())).await.status, StatusCode::BAD_REQUEST);
    let (a_cookie, b_cookie) = (a.cookie(), b.cookie());
    let (a, b) = tokio::join!(open(&a_back, Some(&a_cookie)), open(&b_back, Some(&b_cookie)));
    let b_back = issuer::allow(b.location(), "bob-at-far").await.unwrap();
    let a_back = issuer::allow(a.location(), "ada-at-far").await.unwrap();
    assert_eq!(open(&a_back, Some(&b.cookie())).await.status, StatusCode::BAD_REQUEST);
    let (a_cookie, b_cookie) = (a.cookie(), b.cookie());
    let (a, b) = tokio::join!(open(&a_back, Some(&a_cookie)), open(&b_back, Some(&b_cookie)));
    assert_eq!((a.status, b.status), (StatusCode::OK, StatusCode::OK));
    assert_eq!(place.subject("ada").await, "ada-at-far");
    assert_eq!(place.subject("bob").await, "bob-at-far");
}

#[tokio::test]
async fn a_call_that_needs_more_scopes_sends_the_user_there_again() {
    let place = Place::new("connect-more").await;
    let opened = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&opened);
    let client = place
        .client("ada", Revision::V2026_07_28, move |link| {
            seen.lock().unwrap().push(link.clone());
            async move {
                // The client answers when the page is opened, and the user takes longer.
                tokio::spawn(async move { visit(&link, "ada", "ada").await });
            }
        })
        .await;
    assert_eq!(call(&client).await.unwrap(), "fast is done");
    let result = client.call("far__write", json!({})).await.unwrap();
    assert_eq!(result.text(), "written");
    assert_eq!(opened.lock().unwrap().len(), 2);
    let asked = place.theirs.requests("GET", "/authorize");
    let scope =
        |request: &String| request.split('&').find(|part| part.starts_with("scope=")).unwrap().to_owned();
    assert_eq!(
        asked.iter().map(scope).collect::<Vec<_>>(),
        ["scope=notes%3Aread", "scope=notes%3Aread+notes%3Awrite"]
    );
}

#[tokio::test]
async fn a_call_that_fails_after_the_page_says_why() {
    let place = Place::new("connect-why").await;
    let link = link_of(&place, "ada").await;
    assert_eq!(visit(&link, "ada", "ada").await.status, StatusCode::OK);
    let answers = Arc::new(Mutex::new(vec![Answer::Cancel, Answer::Decline]));
    let login = Login::with(move |visit| async move { issuer::allow(visit.url(), "ada").await });
    let given = Arc::clone(&answers);
    let builder = Client::builder().revisions([Revision::V2026_07_28]).on_url(move |_| {
        let answer = given.lock().unwrap().pop().expect("the user is not asked twice for one call");
        async move { answer }
    });
    let client = builder.connect(http(&place.url).login(login)).await.unwrap();
    client.tools().await.unwrap();
    for expected in ["the user declined to connect", "the user cancelled connecting"] {
        let result = client.call("far__write", json!({})).await.unwrap();
        assert!(result.is_error() && result.text().contains(expected), "{result:?}");
    }
    // An error of the server is not mistaken for a missing login, whatever failed before.
    let error = client.call("far__broken", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("no such note"), "{error}");
    assert_eq!(call(&client).await.unwrap(), "fast is done");
}

#[tokio::test]
async fn an_account_that_does_not_suffice_ends_the_call() {
    let place = Place::new("connect-lacking").await;
    let link = link_of(&place, "ada").await;
    assert_eq!(visit(&link, "ada", "ada").await.status, StatusCode::OK);
    let place = Arc::new(place);
    let theirs = Arc::clone(&place);
    let opened = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&opened);
    let client = place
        .client("ada", Revision::V2026_07_28, move |link| {
            *seen.lock().unwrap() += 1;
            let place = Arc::clone(&theirs);
            async move {
                // The server does not know the key of the new tokens.
                place.theirs.rotate_key().unwrap();
                place.theirs.faults(|faults| faults.hides_keys = true);
                assert_eq!(visit(&link, "ada", "ada").await.status, StatusCode::OK);
            }
        })
        .await;
    let result = client.call("far__write", json!({})).await.unwrap();
    assert!(result.is_error() && result.text().contains("does not suffice for this call"), "{result:?}");
    assert_eq!(*opened.lock().unwrap(), 1, "the user is sent to the page once per call");
}
