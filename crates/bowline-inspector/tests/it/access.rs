//! Who reaches what: keys, codes, grades, hosts, origins, sizes.

use crate::support::{HOST, Site, get, post, site, site_at, site_with};
use bowline_inspector::{
    Inspector, InspectorOptions,
    query::{Grade, Mode},
};
use bowline_policy::{Gate, Policy, Question, Rule, Verdict};
use bowline_server::BoxFuture;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};
use tower_service::Service as _;

/// Every route of the API that needs a key, with a body that it would accept.
fn api(key: Option<&str>) -> Vec<Request<Full<Bytes>>> {
    vec![
        get("/api/events", key),
        post("/api/query", key, &json!({"query":"overview"})),
        post("/api/act", key, &json!({"action":"clear"})),
        post("/api/link", key, &json!({})),
    ]
}

/// All routes, with a valid key.
fn all(site: &Site) -> Vec<Request<Full<Bytes>>> {
    let mut requests = api(Some(&site.key));
    requests.extend([get("/", None), get("/open", None), get("/a/0/app.js", None)]);
    requests
}

fn with(mut request: Request<Full<Bytes>>, name: &'static str, value: &str) -> Request<Full<Bytes>> {
    request.headers_mut().insert(name, value.parse().unwrap());
    request
}

#[tokio::test]
async fn without_a_key_nothing_is_served() {
    let site = site(None).await;
    let secret = site.inspector.launch_secret().to_owned();
    for key in [None, Some("wrong"), Some(""), Some(secret.as_str())] {
        for request in api(key) {
            let path = request.uri().path().to_owned();
            if path == "/api/link" && key == Some(secret.as_str()) {
                continue;
            }
            let (status, reply) = site.send(request).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path} {key:?}");
            assert!(reply["error"].is_string());
        }
    }
    // A key in the query string or as another scheme is no key.
    let (status, _) = site.send(get(&format!("/api/events?key={}&token={}", site.key, site.key), None)).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let basic = with(get("/api/events", None), "authorization", &format!("Basic {}", site.key));
    assert_eq!(site.send(basic).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(site.send(get("/api/other", Some(&site.key))).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_code_works_once() {
    let site = site(None).await;
    let code = site.inspector.link(Grade::Control).unwrap();
    let enter = || post("/api/enter", None, &json!({"code":code.expose()}));
    let (status, entered) = site.send(enter()).await;
    assert_eq!((status, &entered["grade"]), (StatusCode::OK, &json!("control")));
    let (status, refused) = site.send(enter()).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(refused["advice"].as_str().unwrap().contains("bowline open"));
    for body in [json!({"code":""}), json!({}), json!({"code":"x","more":1}), json!([])] {
        assert!(site.send(post("/api/enter", None, &body)).await.0.is_client_error(), "{body}");
    }
}

#[tokio::test]
async fn a_code_used_twice_at_once_revokes_both() {
    let site = site(None).await;
    let code = site.inspector.link(Grade::Control).unwrap();
    let enter = || post("/api/enter", None, &json!({"code":code.expose()}));
    let (_, entered) = site.send(enter()).await;
    let key = entered["key"].as_str().unwrap().to_owned();
    let overview = || post("/api/query", Some(&key), &json!({"query":"overview"}));
    assert_eq!(site.send(overview()).await.0, StatusCode::OK);
    assert_eq!(site.send(enter()).await.0, StatusCode::FORBIDDEN);
    assert_eq!(site.send(overview()).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_view_key_can_do_nothing() {
    let site = site(None).await;
    let view = site.key(Grade::View).await;
    let (_, overview) = site.send(post("/api/query", Some(&view), &json!({"query":"overview"}))).await;
    assert_eq!((&overview["grade"], &overview["connect"]), (&json!("view"), &json!([])));
    let params = json!({"name":"echo","arguments":{"text":"x"}});
    let actions = [
        json!({"action":"send","server":"demo","method":"tools/call","params":params}),
        json!({"action":"cancel","call":1}),
        json!({"action":"restart","server":"demo"}),
        json!({"action":"stop","server":"demo"}),
        json!({"action":"start","server":"demo"}),
        json!({"action":"clear"}),
        json!({"action":"sign_out","all":true}),
        json!({"action":"answer","question":"x","answer":{"kind":"allow"}}),
        json!({"action":"complete","server":"demo","kind":"prompt","name":"x","argument":"a","value":"b"}),
        json!({"action":"resend","seq":1}),
        json!({"action":"subscribe","server":"demo","uri":"file:///x","on":true}),
        json!({"action":"level","level":"debug"}),
        json!({"action":"roots","roots":[]}),
    ];
    for action in actions {
        let (status, _) = site.send(post("/api/act", Some(&view), &action)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{action}");
    }
    let signed_out = site.send(post("/api/act", Some(&view), &json!({"action":"sign_out"}))).await;
    assert_eq!(signed_out.0, StatusCode::OK);
    assert_eq!(site.send(get("/api/events", Some(&view))).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn links_of_the_launch_secret_give_view_unless_configured() {
    for grade in [Grade::View, Grade::Control] {
        let change = |mut options: bowline_inspector::InspectorOptions| {
            options.links = grade;
            options
        };
        let site = site_with(None, Policy::new([]), change).await;
        let secret = site.inspector.launch_secret().to_owned();
        let (status, link) = site.send(post("/api/link", Some(&secret), &json!({}))).await;
        assert_eq!((status, link["grade"].clone()), (StatusCode::OK, serde_json::to_value(grade).unwrap()));
        let code = link["path"].as_str().unwrap().strip_prefix("/open#").unwrap().to_owned();
        let (_, entered) = site.send(post("/api/enter", None, &json!({"code":code}))).await;
        assert_eq!(entered["grade"], link["grade"]);
    }
}

#[tokio::test]
async fn a_foreign_host_reaches_nothing() {
    let site = site(None).await;
    for host in
        ["evil.example", "evil.example:7338", "127.0.0.1.evil.example:7338", "0.0.0.0:7338", "localhost."]
    {
        for request in all(&site) {
            let path = request.uri().path().to_owned();
            let (status, _) = site.send(with(request, "host", host)).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{host} {path}");
        }
    }
}

#[tokio::test]
async fn another_origin_or_port_reaches_nothing() {
    let site = site(None).await;
    for origin in [
        "http://evil.example",
        "http://127.0.0.1:7337",
        "http://localhost:7338",
        "https://127.0.0.1:7338",
        "null",
    ] {
        for request in all(&site) {
            let path = request.uri().path().to_owned();
            let reply = site.raw(with(request, "origin", origin)).await;
            assert_eq!(reply.status(), StatusCode::FORBIDDEN, "{origin} {path}");
            assert!(!reply.headers().contains_key("access-control-allow-origin"));
        }
    }
    for fetch_site in ["cross-site", "same-site", "none"] {
        for request in api(Some(&site.key)) {
            let (status, _) = site.send(with(request, "sec-fetch-site", fetch_site)).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{fetch_site}");
        }
    }
    let own = post("/api/query", Some(&site.key), &json!({"query":"overview"}));
    let own = with(with(own, "origin", &format!("http://{HOST}")), "sec-fetch-site", "same-origin");
    assert_eq!(site.send(own).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_foreign_link_opens_only_open() {
    let site = site(None).await;
    let navigate =
        |path| with(with(get(path, None), "sec-fetch-site", "cross-site"), "sec-fetch-dest", "document");
    assert_eq!(site.raw(navigate("/open")).await.status(), StatusCode::OK);
    let (status, refused) = site.send(navigate("/")).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(refused["error"].as_str().unwrap().contains("address bar"));
    let framed = with(with(get("/open", None), "sec-fetch-site", "cross-site"), "sec-fetch-dest", "iframe");
    assert_eq!(site.send(framed).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn it_cannot_be_framed_and_runs_no_foreign_code() {
    // proves: SEC-39
    let site = site(None).await;
    let mut requests = all(&site);
    requests.extend([get("/nothing", None), post("/api/query", None, &json!({}))]);
    for request in requests {
        let path = request.uri().path().to_owned();
        let reply = site.raw(request).await;
        let header =
            |name: &str| reply.headers().get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
        let policy = header("content-security-policy");
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "trusted-types 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.contains(rule), "{path}: {rule}");
        }
        assert!(!policy.contains("unsafe"));
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "no-referrer");
        assert_eq!(header("cross-origin-opener-policy"), "same-origin");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
        assert!(header("set-cookie").is_empty(), "no cookie is set");
    }
}

#[tokio::test]
async fn other_methods_and_content_types_are_refused() {
    let site = site(None).await;
    for path in ["/api/enter", "/api/query", "/api/act", "/api/link", "/api/events", "/", "/open"] {
        let mut request = get(path, Some(&site.key));
        *request.method_mut() = http::Method::OPTIONS;
        assert_eq!(site.send(request).await.0, StatusCode::METHOD_NOT_ALLOWED, "{path}");
    }
    // What a form of another site could send.
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx", ""]
    {
        let code = site.inspector.link(Grade::Control).unwrap();
        for request in [
            post("/api/act", Some(&site.key), &json!({"action":"clear"})),
            post("/api/enter", None, &json!({"code":code.expose()})),
        ] {
            let (status, _) = site.send(with(request, "content-type", kind)).await;
            assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
        }
    }
}

#[tokio::test]
async fn oversized_bodies_are_refused() {
    let site = site(None).await;
    let text = |bytes: usize| "x".repeat(bytes);
    let query = |bytes| post("/api/query", Some(&site.key), &json!({"query":"find","text":text(bytes)}));
    assert_eq!(site.send(query(60 * 1024)).await.0, StatusCode::OK);
    assert_eq!(site.send(query(64 * 1024)).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(site.send(query(4 * 1024 * 1024)).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let check = |bytes| {
        let value = json!({"text":text(bytes)});
        let item = json!({"query":"check","server":"demo","kind":"tool","name":"echo","value":value});
        post("/api/query", Some(&site.key), &item)
    };
    assert_eq!(site.send(check(1024 * 1024)).await.0, StatusCode::OK);
    assert_eq!(site.send(check(4 * 1024 * 1024)).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let enter = post("/api/enter", None, &json!({"code":text(65 * 1024)}));
    assert_eq!(site.send(enter).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let view = site.key(Grade::View).await;
    let act = post("/api/act", Some(&view), &json!({"action":"level","level":text(65 * 1024)}));
    assert_eq!(site.send(act).await.0, StatusCode::PAYLOAD_TOO_LARGE);
}

/// A body that never arrives.
struct Stalled;

impl http_body::Body for Stalled {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        Poll::Pending
    }
}

#[tokio::test]
async fn without_a_key_nobody_can_block_the_others() {
    let site = site(None).await;
    let code = site.inspector.link(Grade::View).unwrap();
    let mut stalled = Vec::new();
    for _ in 0..20 {
        let request = Request::post("/api/enter").header("host", HOST);
        let request = request.header("content-type", "application/json").body(Stalled).unwrap();
        let mut reply = site.service.clone().call(request);
        assert!(reply.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        stalled.push(reply);
    }
    let large = json!({"query":"find","text":"x".repeat(1000)});
    assert_eq!(site.send(post("/api/query", Some(&site.key), &large)).await.0, StatusCode::OK);
    let (status, _) = site.send(post("/api/enter", None, &json!({"code":code.expose()}))).await;
    assert_eq!(status, StatusCode::OK);
    let enter = post("/api/enter", None, &json!({"code":"x".repeat(300)}));
    assert_eq!(site.send(enter).await.0, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn no_request_names_a_command() {
    let site = site(None).await;
    for action in [
        json!({"action":"start","server":"demo","command":"sh"}),
        json!({"action":"start","server":"sh -c id"}),
        json!({"action":"connect","command":"sh","args":["-c","id"]}),
        json!({"action":"send","server":"other","method":"tools/call","params":{"name":"x"}}),
    ] {
        assert!(site.act(action.clone()).await.0.is_client_error(), "{action}");
    }
    assert_eq!(site.host.names(), ["demo"]);
}

#[tokio::test]
async fn only_eight_streams_are_open() {
    let site = site(None).await;
    let mut open = Vec::new();
    for _ in 0..8 {
        let stream = site.raw(get("/api/events", Some(&site.key))).await;
        assert_eq!(stream.status(), StatusCode::OK);
        open.push(stream);
    }
    let (status, _) = site.send(get("/api/events", Some(&site.key))).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    drop(open.pop());
    assert_eq!(site.raw(get("/api/events", Some(&site.key))).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn view_keys_leave_streams_for_control() {
    let site = site(None).await;
    let view = site.key(Grade::View).await;
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(site.raw(get("/api/events", Some(&view))).await);
    }
    assert!(open.iter().all(|stream| stream.status() == StatusCode::OK));
    assert_eq!(site.send(get("/api/events", Some(&view))).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(site.raw(get("/api/events", Some(&site.key))).await.status(), StatusCode::OK);
    drop(open.pop());
    assert_eq!(site.raw(get("/api/events", Some(&view))).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn an_address_of_other_machines_is_refused() {
    let site = site(None).await;
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let error = site.inspector.serve(listener, std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("loopback"), "{error}");
}

/// A terminal at which the person answers as told, one answer per question.
struct Person(Mutex<Vec<(Verdict, Question)>>, Mutex<Vec<Verdict>>);

impl Gate for Person {
    fn ask(&self, question: Question) -> BoxFuture<'_, Verdict> {
        let answer = self.1.lock().unwrap().pop().unwrap_or(Verdict::Cancel);
        self.0.lock().unwrap().push((answer.clone(), question));
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::test]
async fn control_is_granted_in_the_terminal() {
    let inspector = Inspector::new(InspectorOptions::new(Mode::Up)).unwrap();
    let answers = vec![Verdict::decline(), Verdict::allow()];
    let person = Arc::new(Person(Mutex::default(), Mutex::new(answers)));
    let policy = Policy::new([Rule::allow().tool("*")]);
    let site = site_at(None, inspector, person.clone(), |guard| guard.policy(policy)).await;
    let view = site.key(Grade::View).await;
    let overview = |key: String| {
        let site = &site;
        async move { site.send(post("/api/query", Some(&key), &json!({"query":"overview"}))).await.1 }
    };
    let before = overview(view.clone()).await;
    assert_eq!((&before["grade"], &before["can_ask_control"]), (&json!("view"), &json!(true)));
    let ask = |key: &str, digits: &str| {
        site.send(post("/api/act", Some(key), &json!({"action":"ask_control","digits":digits})))
    };
    for digits in ["", "12", "12345", "yes!", "\u{1b}[2J"] {
        assert_eq!(ask(&view, digits).await.0, StatusCode::BAD_REQUEST, "{digits}");
    }
    assert!(person.0.lock().unwrap().is_empty());
    assert_eq!(ask(&view, "4821").await.0, StatusCode::OK);
    let asked = person.0.lock().unwrap().pop().unwrap().1;
    assert!(matches!(&asked, Question::Control { digits, .. } if digits == "4821"), "{asked:?}");
    let after = overview(view.clone()).await;
    assert_eq!((&after["grade"], &after["can_ask_control"]), (&json!("control"), &json!(false)));
    let access = |overview: &Value| overview["changed"]["access"].as_u64().unwrap();
    assert_eq!(access(&after), access(&before) + 1);
    assert_eq!(site.send(post("/api/act", Some(&view), &json!({"action":"clear"}))).await.0, StatusCode::OK);
    // A refusal holds for this key, and stops others for a while.
    let other = site.key(Grade::View).await;
    assert_eq!(ask(&other, "1111").await.0, StatusCode::FORBIDDEN);
    let (status, refused) = ask(&other, "1111").await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{refused}");
    assert_eq!(overview(other.clone()).await["grade"], "view");
    let clear = site.send(post("/api/act", Some(&other), &json!({"action":"clear"}))).await;
    assert_eq!(clear.0, StatusCode::FORBIDDEN);
    assert_eq!(person.0.lock().unwrap().len(), 1);
}
