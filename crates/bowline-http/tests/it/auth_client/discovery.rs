//! How a login finds the authorization server and the client, and where tokens are sent.

use super::world::{World, header};
use bowline_http::auth::MemoryStore;

const DOCUMENT: &str = "https://app.example/client.json";

// proves: ADISC-01, ADISC-06
#[tokio::test]
async fn a_server_of_2025_03_26_is_asked_for_its_metadata_first() {
    let world = World::new().await;
    world.state().is_own_issuer = true;
    let client = world.connect(world.login()).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    let state = world.state();
    let paths = state.seen.iter().map(|(verb, path, _)| format!("{verb} {path}"));
    let others: Vec<String> = paths.filter(|path| path != "POST /mcp").collect();
    assert_eq!(
        others,
        [
            "GET /.well-known/oauth-protected-resource/mcp",
            "GET /.well-known/oauth-protected-resource",
            "GET /.well-known/oauth-authorization-server",
            "POST /own/register",
            "VISIT /own/authorize",
            "POST /own/token",
        ]
    );
    for (verb, path, head) in &state.heads {
        let is_discovery = path.starts_with("/.well-known/");
        assert!(!is_discovery || header(head, "mcp-protocol-version").is_some(), "{verb} {path}: {head}");
    }
}

// proves: AREG-02, AREG-03, AREG-04, AREG-29
#[tokio::test]
async fn a_client_document_is_the_id_at_every_server_that_reads_it() {
    let world = World::new().await;
    world.state().reads_documents = true;
    let client = world.connect(world.login().client_document(DOCUMENT)).await.unwrap();
    world.state().issuer = format!("{}/two", world.base);
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    let id = format!("client_id={}", bowline_auth::form::encode(DOCUMENT));
    for issuer in ["one", "two"] {
        let visits = world.bodies("VISIT", &format!("/{issuer}/authorize"));
        assert!(visits.len() == 1 && visits[0].contains(&id), "{visits:?}");
        assert!(world.bodies("POST", &format!("/{issuer}/token"))[0].contains(&id));
        assert_eq!(world.count("POST", &format!("/{issuer}/register")), 0);
    }
    // Another one registers the client.
    world.state().reads_documents = false;
    world.state().issuer = format!("{}/three", world.base);
    world.revoke_all();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    assert_eq!(world.count("POST", "/three/register"), 1);
    assert!(world.bodies("VISIT", "/three/authorize")[0].contains("client_id=client-of-three"));
}

// proves: ATOK-02
#[tokio::test]
async fn every_request_of_a_session_has_the_token() {
    let world = World::new().await;
    world.state().is_legacy = true;
    let client = world.connect(world.login()).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    client.close().await;
    let state = world.state();
    let to_server = || state.heads.iter().filter(|(_, path, _)| path == "/mcp");
    let token = |head: &str| header(head, "authorization");
    let from = to_server().position(|(_, _, head)| token(head).is_some()).unwrap();
    for (verb, _, head) in to_server().skip(from) {
        assert_eq!(token(head).as_deref(), Some("Bearer access-canary-1"), "{verb}");
    }
    for verb in ["GET", "POST", "DELETE"] {
        assert!(to_server().skip(from).any(|(seen, ..)| seen == verb), "no {verb} was sent");
    }
}

// proves: ATOK-08
#[tokio::test]
async fn v54_a_token_of_another_issuer_is_not_sent() {
    let world = World::new().await;
    let store = MemoryStore::new();
    world.target(world.login().store(store.clone())).log_in().await.unwrap();
    world.state().issuer = format!("{}/two", world.base);
    world.state().heads.clear();
    let login = world.login().store(store).issuer(format!("{}/two", world.base));
    let client = world.connect(login).await.unwrap();
    assert_eq!(client.call("t", ()).await.unwrap().text(), "done");
    for (verb, path, head) in &world.state().heads {
        assert_ne!(header(head, "authorization").as_deref(), Some("Bearer access-canary-1"), "{verb} {path}");
    }
}

#[tokio::test]
async fn a_login_of_a_user_declares_no_extension() {
    let world = World::new().await;
    let client = world.connect(world.login()).await.unwrap();
    client.call("t", ()).await.unwrap();
    let calls = world.bodies("POST", "/mcp");
    assert!(calls.iter().all(|body| !body.contains("oauth")), "{calls:?}");
}
