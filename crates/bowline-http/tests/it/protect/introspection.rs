//! Tokens that only the authorization server can read.

use super::{METADATA, RESOURCE, bearer, call, plain_server, text};
use axum::{Router, extract::State, http::StatusCode};
use bowline_http::{HttpOptions, HttpService, Introspection, Protect};
use http::header;
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};
use tokio::net::TcpListener;

/// An introspection endpoint whose answer a test sets.
#[derive(Clone)]
struct Asked {
    issuer: String,
    answer: Arc<Mutex<(StatusCode, String)>>,
    /// `Authorization` and body of each question.
    questions: Arc<Mutex<Vec<(String, String)>>>,
    now: Arc<AtomicU64>,
}

impl Asked {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let asked = Self {
            issuer: format!("http://{}", listener.local_addr().unwrap()),
            answer: Arc::new(Mutex::new((StatusCode::OK, String::new()))),
            questions: Arc::default(),
            now: Arc::new(AtomicU64::new(super::NOW)),
        };
        let app = Router::new().fallback(answer).with_state(asked.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        asked
    }

    fn say(&self, status: StatusCode, body: &Value) {
        *self.answer.lock().unwrap() = (status, body.to_string());
    }

    fn questions(&self) -> usize {
        self.questions.lock().unwrap().len()
    }

    fn introspection(&self) -> Introspection {
        Introspection::at(format!("{}/introspect", self.issuer)).client("rs", "secret-canary")
    }

    fn endpoint(&self, introspection: Introspection) -> HttpService {
        let now = Arc::clone(&self.now);
        let protect = Protect::introspect(&self.issuer, introspection).resource(RESOURCE);
        let protect = protect.clock(move || now.load(Ordering::SeqCst));
        HttpService::with_options(plain_server().build().unwrap(), HttpOptions::new().protect(protect))
    }
}

async fn answer(State(asked): State<Asked>, headers: http::HeaderMap, body: String) -> (StatusCode, String) {
    let authorization = headers.get(header::AUTHORIZATION).map_or("", |value| value.to_str().unwrap());
    asked.questions.lock().unwrap().push((authorization.to_owned(), body));
    asked.answer.lock().unwrap().clone()
}

fn active() -> Value {
    json!({ "active": true, "aud": RESOURCE, "sub": "ada", "client_id": "app", "token_type": "Bearer" })
}

#[tokio::test]
async fn an_active_token_is_accepted_and_asked_about_once_a_minute() {
    let asked = Asked::start().await;
    asked.say(StatusCode::OK, &active());
    let endpoint = asked.endpoint(asked.introspection());
    for _ in 0..3 {
        assert_eq!(text(&bearer(call("list"), "opaque").send(&endpoint).await.json().await), "none");
    }
    let (authorization, body) = asked.questions.lock().unwrap()[0].clone();
    assert_eq!(authorization, "Basic cnM6c2VjcmV0LWNhbmFyeQ==");
    assert_eq!(body, "token=opaque&token_type_hint=access_token&client_id=rs");
    assert_eq!(asked.questions(), 1);
    // Revoked: noticed after a minute.
    asked.say(StatusCode::OK, &json!({ "active": false }));
    asked.now.fetch_add(59, Ordering::SeqCst);
    assert_eq!(bearer(call("list"), "opaque").send(&endpoint).await.status, 200);
    asked.now.fetch_add(1, Ordering::SeqCst);
    let refused = bearer(call("list"), "opaque").send(&endpoint).await;
    assert_eq!(refused.status, 401);
    assert!(refused.headers["www-authenticate"].to_str().unwrap().contains(METADATA));
    // The refusal is remembered for five seconds.
    asked.say(StatusCode::OK, &active());
    asked.now.fetch_add(4, Ordering::SeqCst);
    assert_eq!(bearer(call("list"), "opaque").send(&endpoint).await.status, 401);
    assert_eq!(asked.questions(), 2);
    asked.now.fetch_add(1, Ordering::SeqCst);
    assert_eq!(bearer(call("list"), "opaque").send(&endpoint).await.status, 200);
}

#[tokio::test]
async fn a_cache_of_nothing_asks_for_every_request() {
    let asked = Asked::start().await;
    asked.say(StatusCode::OK, &active());
    let endpoint = asked.endpoint(asked.introspection().max_age(0));
    for _ in 0..3 {
        assert_eq!(bearer(call("list"), "opaque").send(&endpoint).await.status, 200);
    }
    assert_eq!(asked.questions(), 3);
}

#[tokio::test]
async fn v66_a_failing_authorization_server_is_not_an_active_token() {
    let asked = Asked::start().await;
    let endpoint = asked.endpoint(asked.introspection());
    let stringly = json!({ "active": "true", "aud": RESOURCE, "sub": "ada" });
    for (status, body) in [
        (StatusCode::TOO_MANY_REQUESTS, active()),
        (StatusCode::INTERNAL_SERVER_ERROR, active()),
        (StatusCode::UNAUTHORIZED, json!({ "error": "invalid_client" })),
        (StatusCode::TEMPORARY_REDIRECT, active()),
        (StatusCode::OK, stringly),
        (StatusCode::OK, json!("garbage")),
        (StatusCode::OK, json!({})),
    ] {
        asked.say(status, &body);
        let refused = bearer(call("list"), "opaque").send(&endpoint).await;
        assert_eq!(refused.status, 503, "{status} {body}");
        assert!(refused.headers.contains_key(header::RETRY_AFTER));
    }
    // Failures are not remembered.
    asked.say(StatusCode::OK, &active());
    assert_eq!(bearer(call("list"), "opaque").send(&endpoint).await.status, 200);
}

#[tokio::test]
async fn v51_a_redirect_of_the_introspection_is_not_followed() {
    let canary = Asked::start().await;
    canary.say(StatusCode::OK, &active());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let to = format!("{}/introspect", canary.issuer);
    let app = Router::new()
        .fallback(move || async move { (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, to)]) });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let introspection = Introspection::at(format!("{issuer}/introspect")).client("rs", "secret-canary");
    let protect = Protect::introspect(issuer, introspection).resource(RESOURCE);
    let endpoint =
        HttpService::with_options(plain_server().build().unwrap(), HttpOptions::new().protect(protect));
    assert_eq!(bearer(call("list"), "opaque").send(&endpoint).await.status, 503);
    assert_eq!(canary.questions(), 0);
}

#[tokio::test]
async fn v66_an_authorization_server_that_cannot_be_reached_is_a_503() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let introspection = Introspection::at(format!("{issuer}/introspect")).client("rs", "secret-canary");
    let protect = Protect::introspect(issuer, introspection).resource(RESOURCE);
    let endpoint =
        HttpService::with_options(plain_server().build().unwrap(), HttpOptions::new().protect(protect));
    let refused = bearer(call("list"), "opaque-canary").send(&endpoint).await;
    assert_eq!(refused.status, 503);
    let body = refused.json().await.to_string();
    assert!(!body.contains("canary"), "{body}");
}

#[test]
fn mistakes_are_reported_when_the_protection_is_built() {
    let issuer = "https://login.example.com";
    for (introspection, reason) in [
        (Introspection::at("https://login.example.com/introspect"), "has no client"),
        (Introspection::at("http://login.example.com/introspect").client("rs", "s"), "https"),
        (Introspection::at("http://127.0.0.1/introspect").client("rs", "s"), "https"),
    ] {
        let error = Protect::introspect(issuer, introspection).resource(RESOURCE).build().unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn v66_an_authorization_server_that_never_answers_is_not_an_active_token() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let app = Router::new().fallback(async || {
        // From here on time passes at once.
        tokio::time::pause();
        std::future::pending::<StatusCode>().await
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let introspection = Introspection::at(format!("{issuer}/introspect")).client("rs", "secret-canary");
    let protect = Protect::introspect(issuer, introspection).resource(RESOURCE);
    let endpoint =
        HttpService::with_options(plain_server().build().unwrap(), HttpOptions::new().protect(protect));
    let refused = bearer(call("list"), "opaque").send(&endpoint).await;
    assert_eq!(refused.status, 503);
    assert!(refused.headers.contains_key(header::RETRY_AFTER));
}
