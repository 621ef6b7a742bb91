//! Functions as resources.

use crate::peer::{Peer, check};
use bowline::prelude::*;
use expect_test::expect;

fn ids(_: CompletionRequest) -> Vec<String> {
    vec!["1".into(), "2".into()]
}

/// A user of the system.
#[resource("users://{id}{?full}", name = "user", title = "User", mime_type = "text/plain")]
async fn user_by_id(#[complete(ids)] id: u64, full: Option<bool>, ctx: Ctx) -> Result<String> {
    ctx.log(LoggingLevel::Debug, id);
    tokio::task::yield_now().await;
    Ok(format!("user {id} {full:?}"))
}

#[resource("demo://motd")]
fn motd() -> &'static str {
    "hello"
}

#[data]
struct Place {
    path: String,
}

#[resource("files:///{+path}")]
fn file(Place { path }: Place) -> Vec<u8> {
    path.into_bytes()
}

fn server() -> Server {
    Server::new("t").resource(user_by_id::resource()).resource(motd::resource()).resource(file::resource())
}

#[tokio::test]
async fn functions_are_listed() {
    check(
        server(),
        "resources/list",
        json!({}),
        expect![[r#"
        {
          "resources": [
            {
              "uri": "demo://motd",
              "name": "motd"
            }
          ]
        }"#]],
    )
    .await;
    check(
        server(),
        "resources/templates/list",
        json!({}),
        expect![[r#"
        {
          "resourceTemplates": [
            {
              "uriTemplate": "users://{id}{?full}",
              "name": "user",
              "title": "User",
              "description": "A user of the system.",
              "mimeType": "text/plain"
            },
            {
              "uriTemplate": "files:///{+path}",
              "name": "file"
            }
          ]
        }"#]],
    )
    .await;
}

#[tokio::test]
async fn variables_reach_the_function() {
    check(
        server(),
        "resources/read",
        json!({ "uri": "users://7?full=true" }),
        expect![[r#"
        {
          "contents": [
            {
              "uri": "users://7?full=true",
              "mimeType": "text/plain",
              "text": "user 7 Some(true)"
            }
          ]
        }"#]],
    )
    .await;
    check(
        server(),
        "resources/read",
        json!({ "uri": "demo://motd" }),
        expect![[r#"
        {
          "contents": [
            {
              "uri": "demo://motd",
              "text": "hello"
            }
          ]
        }"#]],
    )
    .await;
    check(
        server(),
        "resources/read",
        json!({ "uri": "files:///a/b" }),
        expect![[r#"
        {
          "contents": [
            {
              "uri": "files:///a/b",
              "blob": "YS9i"
            }
          ]
        }"#]],
    )
    .await;
    assert_eq!(motd(), "hello");
}

#[tokio::test]
async fn variables_are_completed() {
    let mut peer = Peer::of(server()).await;
    let params = json!({
        "ref": { "type": "ref/resource", "uri": "users://{id}{?full}" }, "argument": { "name": "id", "value": "" }
    });
    let result = peer.request("completion/complete", &params).await;
    assert_eq!(result["completion"]["values"], json!(["1", "2"]));
    peer.close().await;
}
