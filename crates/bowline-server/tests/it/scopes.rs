//! Scopes and callers, without HTTP.

use crate::wire::Peer;
use bowline_server::{Caller, Ctx, Prompt, Resource, Result, Scopes, Server, Tool, testing::ctx};
use serde_json::json;

#[tokio::test]
async fn a_byte_stream_has_no_tokens_and_checks_no_scopes() {
    // proves: STDIO-21
    let server = Server::new("s")
        .tool(Tool::new("write").scopes(["notes:write"]).handler(|ctx: Ctx| {
            ctx.require("notes:delete")?;
            Result::<_>::Ok("written")
        }))
        .tool(Tool::new("whoami").handler(|ctx: Ctx| Result::<_>::Ok(ctx.caller()?.subject().to_owned())))
        .resource(Resource::new("notes://a", "a").scopes(["notes:read"]).text("a"));
    let mut peer = Peer::new(server);
    peer.initialize("2025-11-25").await;
    let written = peer.request("tools/call", json!({ "name": "write" })).await;
    assert_eq!(written["result"]["content"][0]["text"], "written", "{written}");
    let read = peer.request("resources/read", json!({ "uri": "notes://a" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "a", "{read}");
    let whoami = peer.request("tools/call", json!({ "name": "whoami" })).await;
    let text = whoami["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("this call is not authenticated"), "{whoami}");
    assert_eq!(whoami["result"]["isError"], true);
}

#[test]
fn text_that_is_not_a_scope_fails_the_build() {
    let tool = Tool::new("t").scopes(["ok", "two words"]).handler(|| "t");
    let prompt = Prompt::new("p").scopes(["quo\"te"]).handler(|| "p");
    let resource = Resource::new("notes://a", "a").scopes([""]).text("a");
    for (server, reason) in [
        (Server::new("s").tool(tool), "tool `t`: `two words` is not a scope"),
        (Server::new("s").prompt(prompt), "prompt `p`: `quo\"te` is not a scope"),
        (Server::new("s").resource(resource), "resource `notes://a`: `` is not a scope"),
    ] {
        let error = server.build().unwrap_err().to_string();
        assert!(error.starts_with(reason), "{error}");
    }
}

#[test]
fn a_handler_requires_what_its_caller_was_granted() {
    let caller = Caller::new("https://i", "ada").with_scopes(Scopes::parse("notes:read notes:write"));
    let (ctx, _) = ctx().caller(caller).build();
    assert_eq!(ctx.caller().unwrap().subject(), "ada");
    ctx.require("notes:read").unwrap();
    ctx.require("notes:read notes:write").unwrap();
    let refused = ctx.require("notes:read notes:delete").unwrap_err().to_string();
    assert_eq!(refused, "insufficient scope: this needs `notes:read notes:delete` (-32003)");
    for wrong in ["", "quo\"te"] {
        let refused = ctx.require(wrong).unwrap_err().to_string();
        assert!(refused.starts_with(&format!("cannot require `{wrong}`")), "{refused}");
    }
}
