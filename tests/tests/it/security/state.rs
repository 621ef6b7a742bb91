//! State that travels through clients: altered, moved, kept too long, used twice.

use super::support::{Request, Watch, server};
use bowline::unstable::proto::seal::{Key, KeyRing};
use bowline_http::{HttpOptions, HttpService};
use bowline_server::{Limits, Server, middleware::RateLimit};
use serde_json::{Value, json};
use std::time::Duration;

fn service_of(server: Server) -> HttpService {
    HttpService::with_options(server.build().unwrap(), HttpOptions::new())
}

fn retry_of(method: &str, name: &str, state: &str, arguments: &Value) -> Request {
    let answers = json!({ "q0": { "action": "accept", "content": { "name": "Ada" } } });
    let params =
        json!({ "name": name, "arguments": arguments, "inputResponses": answers, "requestState": state });
    Request::modern(&json!(2), method, params)
}

/// Has `greet` ask, and gives the state to go on with.
async fn ask(service: &HttpService, principal: Option<&str>, arguments: &Value) -> String {
    let told = Request::call("greet", arguments.clone()).send_as(principal, service).await.json();
    assert_eq!(told["result"]["resultType"], "input_required", "{told}");
    told["result"]["requestState"].as_str().unwrap().to_owned()
}

async fn is_accepted(service: &HttpService, principal: Option<&str>, retry: &Request) -> bool {
    let told = retry.send_as(principal, service).await.json();
    if told.get("result").is_some_and(|result| result["resultType"] == "complete") {
        return true;
    }
    assert_eq!(told["error"]["code"], -32602, "{told}");
    false
}

#[tokio::test]
async fn v38_a_state_that_was_altered_is_refused() {
    let watch = Watch::default();
    let service = service_of(server(&watch));
    let none = json!({});
    let state = ask(&service, Some("ada"), &none).await;
    let check = async |altered: &str| {
        let retry = retry_of("tools/call", "greet", altered, &none);
        assert!(!is_accepted(&service, Some("ada"), &retry).await, "{altered}");
    };
    for position in 0..state.len() {
        // The neighbor in the alphabet of the encoding differs by the lowest bit, the other one by the highest.
        for replacement in ["A", "B", "g", "_"] {
            let mut altered = state.clone();
            altered.replace_range(position..=position, replacement);
            if altered != state {
                check(&altered).await;
            }
        }
        check(&state[..position]).await;
    }
    let long = "A".repeat(1024 * 1024);
    for forged in
        [&format!("{state}A"), &format!("{state}="), &format!(" {state}"), "null", "{}", "\u{e9}", &long]
    {
        check(forged).await;
    }
    assert_eq!(watch.ran(), 0);
    let retry = retry_of("tools/call", "greet", &state, &none);
    assert!(is_accepted(&service, Some("ada"), &retry).await, "none of these attempts has used it up");
    assert_eq!(watch.ran(), 1);
}

#[tokio::test]
async fn v38_a_state_is_valid_only_for_its_user_and_call() {
    // proves: SEC-26, SEC-27
    let watch = Watch::default();
    let service = service_of(server(&watch));
    let arguments = json!({ "amount": 1 });
    let state = ask(&service, Some("ada"), &arguments).await;
    for (principal, method, name, arguments) in [
        (Some("bob"), "tools/call", "greet", arguments.clone()),
        (None, "tools/call", "greet", arguments.clone()),
        (Some("ada"), "tools/call", "who", arguments.clone()),
        (Some("ada"), "prompts/get", "greet", json!({})),
        (Some("ada"), "tools/call", "greet", json!({ "amount": 2 })),
        (Some("ada"), "tools/call", "greet", json!({ "amount": "1" })),
        (Some("ada"), "tools/call", "greet", json!({})),
        (Some("ada"), "tools/call", "greet", json!({ "amount": 1, "to": "bob" })),
    ] {
        let retry = retry_of(method, name, &state, &arguments);
        assert!(!is_accepted(&service, principal, &retry).await, "{principal:?} {method} {name} {arguments}");
    }
    assert_eq!(watch.ran(), 0);
    assert!(is_accepted(&service, Some("ada"), &retry_of("tools/call", "greet", &state, &arguments)).await);
}

#[tokio::test]
async fn v38_integers_of_any_size_are_distinguished() {
    let watch = Watch::default();
    let service = service_of(server(&watch));
    let with = |amount: &str, request: Request| {
        let body = String::from_utf8(request.body.clone()).unwrap();
        assert!(body.contains("\"AMOUNT\""));
        request.body(body.replace("\"AMOUNT\"", amount))
    };
    let arguments = json!({ "amount": "AMOUNT" });
    let [one, other] = ["36893488147419103232", "36893488147419103233"];
    let asked = with(one, Request::call("greet", arguments.clone())).send_as(None, &service).await.json();
    let state = asked["result"]["requestState"].as_str().unwrap();
    let retry = retry_of("tools/call", "greet", state, &arguments);
    assert!(!is_accepted(&service, None, &with(other, retry.clone())).await);
    assert!(is_accepted(&service, None, &with(one, retry)).await);
}

#[tokio::test]
async fn v38_a_state_is_used_once_however_many_try() {
    let watch = Watch::default();
    let service = service_of(server(&watch));
    let none = json!({});
    let state = ask(&service, None, &none).await;
    let retry = retry_of("tools/call", "greet", &state, &none);
    let attempts = (0..32).map(|_| {
        let (service, retry) = (service.clone(), retry.clone());
        tokio::spawn(async move { is_accepted(&service, None, &retry).await })
    });
    let mut accepted = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        accepted += usize::from(attempt.await.unwrap());
    }
    assert_eq!((accepted, watch.ran()), (1, 1));
}

#[tokio::test]
async fn v38_a_state_ends_in_time_and_with_its_key() {
    let none = json!({});
    let watch = Watch::default();
    let limits = Limits::default().question(Duration::ZERO);
    let hasty = service_of(server(&watch).limits(limits));
    let state = ask(&hasty, None, &none).await;
    assert!(
        !is_accepted(&hasty, None, &retry_of("tools/call", "greet", &state, &none)).await,
        "it has expired"
    );

    let (old, new) = (|| Key::new([1; 32]), || Key::new([2; 32]));
    let before = service_of(server(&watch).keys(KeyRing::new(old())));
    let state = ask(&before, None, &none).await;
    let retry = retry_of("tools/call", "greet", &state, &none);
    let strangers = service_of(server(&watch));
    let without = service_of(server(&watch).keys(KeyRing::new(new())));
    assert!(!is_accepted(&strangers, None, &retry).await, "every process has a key of its own");
    assert!(!is_accepted(&without, None, &retry).await, "a key that was taken away opens nothing");
    assert_eq!(watch.ran(), 0);
    let rotated = service_of(server(&watch).keys(KeyRing::new(new()).with_previous(old())));
    assert!(is_accepted(&rotated, None, &retry).await, "a former key still opens");
}

#[tokio::test(start_paused = true)]
async fn v38_a_retry_refused_by_middleware_can_be_repeated() {
    let watch = Watch::default();
    let service = service_of(server(&watch).layer(RateLimit::new(1, Duration::from_secs(10))));
    let none = json!({});
    let state = ask(&service, None, &none).await;
    let retry = retry_of("tools/call", "greet", &state, &none);
    let told = retry.send_as(None, &service).await.json();
    assert!(told["error"]["data"]["retryAfterMs"].is_u64(), "{told}");
    assert_eq!(watch.ran(), 0);
    tokio::time::advance(Duration::from_secs(11)).await;
    assert!(is_accepted(&service, None, &retry).await, "the state was not used up");
    tokio::time::advance(Duration::from_secs(11)).await;
    assert!(!is_accepted(&service, None, &retry).await, "now it is");
    assert_eq!(watch.ran(), 1);
}
