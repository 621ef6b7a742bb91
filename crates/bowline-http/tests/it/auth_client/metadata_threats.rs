//! Metadata and responses that lead elsewhere, or cost too much.

use super::world::World;
use bowline_http::auth::{LoggedOut, Login, Visit};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, atomic::Ordering};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const SERVER: &str = "/.well-known/oauth-authorization-server/one";

/// A login that visits the page, and whose response a test changes.
fn answering(world: &World, change: impl Fn(String) -> String + Clone + Send + Sync + 'static) -> Login {
    let world = world.clone();
    Login::with(move |visit: Visit| {
        let redirected = world.agree(&visit).map(change.clone());
        async move { redirected }
    })
}

#[tokio::test]
async fn v53_a_response_of_another_issuer_leads_to_no_token_request() {
    let world = World::new().await;
    let evil = bowline_auth::form::encode(&format!("{}/two", world.base));
    let honest = bowline_auth::form::encode(&format!("{}/one", world.base));
    for announced in [true, false] {
        let announces = json!(announced);
        world.state().metadata.insert("authorization_response_iss_parameter_supported".into(), announces);
        let iss = evil.clone();
        let login = answering(&world, move |url| format!("{url}&iss={iss}"));
        let error = world.connect(login).await.unwrap_err();
        assert!(error.to_string().contains("another authorization server"), "{error}");
        // The error of an attacker is not shown.
        let iss = evil.clone();
        let login = answering(&world, move |url| {
            format!("{}&iss={iss}", url.replace("code=", "error=canary&error_description="))
        });
        let error = world.connect(login).await.unwrap_err();
        assert!(!error.to_string().contains("canary"), "{error}");
    }
    assert_eq!((world.count("POST", "/one/token"), world.count("POST", "/two/token")), (0, 0));
    world.connect(answering(&world, move |url| format!("{url}&iss={honest}"))).await.unwrap();
}

#[tokio::test]
async fn v55_responses_of_two_logins_that_were_swapped_lead_to_no_token_request() {
    let world = World::new().await;
    let (to_first, from_second) = oneshot::channel();
    let (to_second, from_first) = oneshot::channel();
    let swapping = |to: oneshot::Sender<String>, from: oneshot::Receiver<String>| {
        let (world, ends) = (world.clone(), Arc::new(Mutex::new(Some((to, from)))));
        Login::with(move |visit: Visit| {
            let redirected = world.agree(&visit).unwrap();
            let (to, from) = ends.lock().unwrap().take().unwrap();
            async move {
                to.send(redirected).unwrap();
                from.await
            }
        })
    };
    let (first, second) = (swapping(to_second, from_second), swapping(to_first, from_first));
    let (first, second) = tokio::join!(world.connect(first), world.connect(second));
    for result in [first, second] {
        let error = result.unwrap_err();
        assert!(error.to_string().contains("not the response to this login"), "{error}");
    }
    assert_eq!(world.count("POST", "/one/token"), 0);
}

#[tokio::test]
async fn v55_an_authorization_server_without_s256_gets_no_login() {
    let world = World::new().await;
    let client = world.connect(world.login()).await.unwrap();
    let methods = "code_challenge_methods_supported";
    for offered in [Value::Null, json!([]), json!(["plain"]), json!(["s256"])] {
        world.state().metadata.insert(methods.into(), offered);
        let error = world.connect(world.login()).await.unwrap_err();
        assert!(error.to_string().contains("PKCE with S256"), "{error}");
    }
    // It was announced at the first login, and is not any more.
    world.revoke_all();
    world.state().refresh_status = Some(400);
    let error = client.call("t", ()).await.unwrap_err();
    assert!(error.to_string().contains("PKCE with S256"), "{error}");
    assert_eq!(world.visits.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn v51_redirects_of_registration_and_revocation_are_not_followed() {
    let world = World::new().await;
    let stolen = format!("{}/stolen", world.base);
    world.state().redirects.insert("/one/register".into(), stolen.clone());
    let error = world.connect(world.login()).await.unwrap_err();
    assert!(error.to_string().contains("redirects"), "{error}");
    world.state().redirects.clear();
    let target = world.target(world.login());
    target.log_in().await.unwrap();
    world.state().redirects.insert("/one/revoke".into(), stolen);
    assert_eq!(target.log_out().await.unwrap(), LoggedOut::Deleted, "the revocation is not confirmed");
    assert_eq!(world.count("POST", "/one/revoke"), 1);
    assert_eq!(world.count("POST", "/stolen"), 0);
    assert_eq!(world.count("GET", "/stolen"), 0);
}

// proves: SEC-20
#[tokio::test]
async fn v50_metadata_that_redirects_to_another_origin_is_not_followed() {
    let world = World::new().await;
    let canary = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = format!("http://{}/internal", canary.local_addr().unwrap());
    for path in [RESOURCE, SERVER] {
        world.state().redirects.insert(path.into(), elsewhere.clone());
        world.connect(world.login()).await.unwrap_err();
        world.state().redirects.clear();
    }
    // An earlier connection would be accepted first.
    let own = TcpStream::connect(canary.local_addr().unwrap()).await.unwrap();
    let (_, accepted) = canary.accept().await.unwrap();
    assert_eq!(accepted, own.local_addr().unwrap(), "something else connected");
    assert_eq!(world.visits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn v58_metadata_that_redirects_in_a_circle_ends() {
    let world = World::new().await;
    world.state().redirects.insert(RESOURCE.into(), format!("{}{RESOURCE}", world.base));
    let error = world.connect(world.login()).await.unwrap_err();
    assert!(error.to_string().contains("redirects too often"), "{error}");
    assert_eq!(world.count("GET", RESOURCE), 4);
}

#[tokio::test]
async fn v15_metadata_that_is_too_long_deep_or_compressed_is_refused() {
    let world = World::new().await;
    let resource = format!("{}/mcp", world.base);
    let long = json!({ "resource": resource, "x": "x".repeat(1024 * 1024) }).to_string();
    let deep =
        format!("{{\"resource\":\"{resource}\",\"x\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let fine = json!({ "resource": resource, "authorization_servers": [format!("{}/one", world.base)] });
    for (headers, body) in
        [("", long), ("", deep), ("Content-Encoding: gzip\r\n", "\u{1f}\u{8b}\u{8}\0\0".to_owned())]
    {
        let shown = body.len();
        world.state().documents.insert(RESOURCE.into(), (headers, body));
        world.connect(world.login()).await.expect_err(&format!("{headers}, {shown} bytes"));
    }
    assert_eq!(world.visits.load(Ordering::SeqCst), 0);
    world.state().documents.insert(RESOURCE.into(), ("", fine.to_string()));
    world.connect(world.login()).await.unwrap();
}

#[tokio::test]
async fn v15_metadata_that_never_ends_fails_after_ten_seconds() {
    let world = World::new().await;
    for path in [RESOURCE, SERVER] {
        world.state().stalled = Some(path.into());
        let error = world.connect(world.login()).await.unwrap_err();
        tokio::time::resume();
        world.state().is_paused = false;
        assert!(error.to_string().contains("timed out after 10 s"), "{error}");
    }
    assert_eq!(world.visits.load(Ordering::SeqCst), 0);
}
