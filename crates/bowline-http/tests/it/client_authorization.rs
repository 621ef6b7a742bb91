//! What stands in `Authorization`, and what a refusal of it leads to.

use crate::client_peer::{Asked, Peer, discovery, text};
use bowline_client::{Client, Error};
use bowline_http::{Challenge, HttpTarget};
use serde_json::json;
use std::sync::{Arc, Mutex};

type Questions = Arc<Mutex<Vec<Option<Challenge>>>>;

/// A target whose hook gives out one token after the other, and what it was asked.
fn authorized(peer: &Peer) -> (HttpTarget, Questions) {
    let questions: Questions = Arc::default();
    let asked = Arc::clone(&questions);
    let target = peer.target().authorize(move |challenge| {
        let mut asked = asked.lock().unwrap();
        asked.push(challenge);
        let token = format!("Bearer token-{}", asked.len());
        async move { Ok(Some(token)) }
    });
    (target, questions)
}

async fn refuse(asked: Asked, status: u16, challenge: &str) {
    asked.reply(status, &[("WWW-Authenticate", challenge)], "").await;
}

async fn connect(peer: &mut Peer) -> (Client, Questions) {
    let (target, questions) = authorized(peer);
    let (client, ()) = tokio::join!(Client::connect(target), async {
        let asked = peer.post("server/discover").await;
        assert_eq!(asked.header("authorization"), Some("Bearer token-1"));
        asked.result(&discovery(&json!({ "tools": {} }))).await;
    });
    (client.unwrap(), questions)
}

// proves: CACHE-16
#[tokio::test]
async fn renewed_credentials_clear_the_cache() {
    let mut peer = Peer::new().await;
    let (client, _) = connect(&mut peer).await;
    let list = |name: &str| {
        let tool = json!({ "name": name, "inputSchema": { "type": "object" } });
        json!({ "resultType": "complete", "tools": [tool], "ttlMs": 60_000, "cacheScope": "private" })
    };
    let (tools, ()) = tokio::join!(client.tools(), async {
        peer.post("tools/list").await.result(&list("of-the-first-token")).await;
    });
    assert_eq!(tools.unwrap()[0].name, "of-the-first-token");
    assert_eq!(client.tools().await.unwrap()[0].name, "of-the-first-token", "the list is cached");
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        refuse(peer.post("tools/call").await, 401, r#"Bearer error="invalid_token""#).await;
        peer.post("tools/call").await.result(&text("welcome")).await;
    });
    called.unwrap();
    let (tools, ()) = tokio::join!(client.tools(), async {
        let asked = peer.post("tools/list").await;
        assert_eq!(asked.header("authorization"), Some("Bearer token-2"));
        asked.result(&list("of-the-second-token")).await;
    });
    assert_eq!(tools.unwrap()[0].name, "of-the-second-token");
}

#[tokio::test]
async fn the_hook_is_asked_once_and_again_when_the_server_wants_other_credentials() {
    let mut peer = Peer::new().await;
    let (client, questions) = connect(&mut peer).await;
    for (number, status, challenge) in
        [(1, 401, r#"Bearer error="invalid_token""#), (2, 403, r#"Bearer error="insufficient_scope""#)]
    {
        let (called, ()) = tokio::join!(client.call("t", ()), async {
            let asked = peer.post("tools/call").await;
            assert_eq!(asked.header("authorization"), Some(&*format!("Bearer token-{number}")));
            refuse(asked, status, challenge).await;
            let again = peer.post("tools/call").await;
            assert_eq!(again.header("authorization"), Some(&*format!("Bearer token-{}", number + 1)));
            again.result(&text("welcome")).await;
        });
        assert_eq!(called.unwrap().text(), "welcome");
        let last = questions.lock().unwrap().last().cloned().flatten().unwrap();
        assert_eq!((last.status, last.www_authenticate.as_deref()), (status, Some(challenge)));
    }
    assert_eq!(questions.lock().unwrap().len(), 3);
    assert!(questions.lock().unwrap()[0].is_none());
}

#[tokio::test]
async fn a_second_refusal_is_an_error() {
    let mut peer = Peer::new().await;
    let (client, questions) = connect(&mut peer).await;
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        refuse(peer.post("tools/call").await, 401, "Bearer").await;
        refuse(peer.post("tools/call").await, 401, "Bearer").await;
    });
    assert_eq!(called.unwrap_err().http_status(), Some(401));
    // A plain 403 is no question of credentials.
    let (called, ()) = tokio::join!(client.call("t", ()), async {
        peer.post("tools/call").await.status(403, "text/plain", "no").await;
    });
    assert_eq!(called.unwrap_err().http_status(), Some(403));
    assert_eq!(questions.lock().unwrap().len(), 2);
    assert!(peer.unseen().is_empty());
}

#[tokio::test]
async fn many_refusals_at_once_are_one_question() {
    let mut peer = Peer::new().await;
    let (client, questions) = connect(&mut peer).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let client = client.clone();
        calls.spawn(async move { client.call("t", ()).await.unwrap().text() });
    }
    let mut held = Vec::new();
    for _ in 0..20 {
        held.push(peer.post("tools/call").await);
    }
    for asked in held {
        refuse(asked, 401, "Bearer").await;
    }
    for _ in 0..20 {
        let asked = peer.post("tools/call").await;
        assert_eq!(asked.header("authorization"), Some("Bearer token-2"));
        asked.result(&text("ok")).await;
    }
    while let Some(called) = calls.join_next().await {
        assert_eq!(called.unwrap(), "ok");
    }
    assert_eq!(questions.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_hook_may_have_nothing_or_fail() {
    let mut peer = Peer::new().await;
    let target = peer.target().authorize(|_| async { Ok(None) });
    let (client, ()) = tokio::join!(Client::connect(target), async {
        let asked = peer.post("server/discover").await;
        assert_eq!(asked.header("authorization"), None);
        refuse(asked, 401, "Bearer").await;
    });
    assert_eq!(client.unwrap_err().http_status(), Some(401));
    let failing = peer.target().authorize(|_| async { Err(Error::misuse("no token today")) });
    assert_eq!(Client::connect(failing).await.unwrap_err().to_string(), "no token today");
    let broken = peer.target().authorize(|_| async { Ok(Some("Bearer a\r\nX: y".into())) });
    assert!(Client::connect(broken).await.is_err());
    assert!(peer.unseen().is_empty());
}
