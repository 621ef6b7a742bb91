//! What a server offers: lists and their pages, resources, prompts, completion, validation.

use crate::wire::Peer;
use bowline_server::{
    BoxFuture, CompletionRequest, Ctx, Json, Prompt, Resource, ResourceSource, Result, Server, Tool,
};
use bowline_types::{self as types, CacheScope, RawJson, ReadResourceResult, ResourceContents};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

fn numbered(count: usize) -> Server {
    (0..count).fold(Server::new("many").page_size(3), |server, number| {
        server.tool(Tool::new(format!("tool-{number}")).handler(|| "ok"))
    })
}

#[tokio::test]
async fn every_page_is_listed_and_a_foreign_cursor_refused() {
    // proves: PAGE-11, CACHE-22
    let mut peer = Peer::new(numbered(7));
    let mut seen = Vec::new();
    let mut params = json!({});
    loop {
        let page = peer.modern("tools/list", params.clone()).await;
        let result = &page["result"];
        assert_eq!(result["cacheScope"], "private");
        seen.extend(
            result["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        match result.get("nextCursor") {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => break,
        }
    }
    assert_eq!(seen, (0..7).map(|number| format!("tool-{number}")).collect::<Vec<_>>());
    for cursor in [json!("nonsense"), json!(""), params["cursor"].as_str().unwrap().to_uppercase().into()] {
        let refused = peer.modern("tools/list", json!({ "cursor": cursor })).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let wrong_list = peer.modern("server/discover", json!({})).await;
    assert!(wrong_list["result"]["capabilities"].get("prompts").is_none());
}

#[tokio::test]
async fn cache_hints_are_sent_in_revisions_that_have_them() {
    // proves: CACHE-01, CACHE-02, CACHE-03
    let server = || {
        Server::new("hints")
            .tool(Tool::new("t").handler(|| "ok"))
            .prompt(Prompt::new("p").handler(|| "ok"))
            .resource(
                Resource::new("h://fixed", "fixed")
                    .text("x")
                    .cache(Duration::from_secs(5), CacheScope::Public),
            )
            .resource(Resource::new("h://other", "other").text("y"))
            .resource(Resource::new("h://{id}/x", "by id").handler(|| "z"))
            .cache_lists(Duration::from_secs(60), CacheScope::Public)
            .cache_discovery(Duration::from_secs(3600), CacheScope::Public)
    };
    let mut peer = Peer::new(server());
    for (method, params, ttl, scope) in [
        ("server/discover", json!({}), 3_600_000, "public"),
        ("tools/list", json!({}), 60_000, "public"),
        ("prompts/list", json!({}), 60_000, "public"),
        ("resources/list", json!({}), 60_000, "public"),
        ("resources/templates/list", json!({}), 60_000, "public"),
        ("resources/read", json!({ "uri": "h://fixed" }), 5_000, "public"),
        ("resources/read", json!({ "uri": "h://other" }), 0, "private"),
    ] {
        let reply = peer.modern(method, params).await;
        assert_eq!(reply["result"]["ttlMs"], ttl, "{reply}");
        assert_eq!(reply["result"]["cacheScope"], scope, "{reply}");
        assert_eq!(reply["result"]["resultType"], "complete");
    }
    let mut peer = Peer::new(server());
    peer.initialize("2025-11-25").await;
    let list = peer.request("tools/list", json!({})).await;
    assert!(list["result"].get("ttlMs").is_none() && list["result"].get("resultType").is_none(), "{list}");
}

#[derive(Deserialize, JsonSchema)]
struct User {
    id: u64,
}

/// Two resources that are looked up on the spot.
struct Table;

impl ResourceSource for Table {
    fn list(&self, _: Ctx) -> BoxFuture<'_, Result<Vec<types::Resource>>> {
        Box::pin(async {
            Ok(vec![types::Resource::new("row://1", "row 1"), types::Resource::new("row://2", "row 2")])
        })
    }

    fn read(&self, _: Ctx, uri: String) -> BoxFuture<'_, Result<Option<ReadResourceResult>>> {
        Box::pin(async move {
            let found = uri == "row://1" || uri == "row://2";
            let contents = vec![ResourceContents::text(uri, "a row")];
            Ok(found.then(|| ReadResourceResult::new(contents)))
        })
    }
}

fn library() -> Server {
    Server::new("library")
        .resource(Resource::new("lib://rules", "rules").mime_type("text/plain").text("be quiet"))
        .resource(
            Resource::new("lib://logo", "logo")
                .mime_type("image/png")
                .handler(|| vec![0x89_u8, b'P', b'N', b'G']),
        )
        .resource(Resource::new("lib://users/{id}", "user").handler(|User { id }: User| format!("user {id}")))
        .resources(Table)
}

#[tokio::test]
async fn resources_are_read_fixed_by_template_and_on_the_spot() {
    // proves: RES-07, RES-08, RES-09, RES-25
    for revision in ["2024-11-05", "2025-11-25"] {
        let mut peer = Peer::new(library());
        peer.initialize(revision).await;
        let list = peer.request("resources/list", json!({})).await;
        let uris: Vec<_> = list["result"]["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["uri"].clone())
            .collect();
        assert_eq!(uris, ["lib://rules", "lib://logo", "row://1", "row://2"]);
        let templates = peer.request("resources/templates/list", json!({})).await;
        assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "lib://users/{id}");
        for (uri, contents) in [
            ("lib://rules", json!({ "uri": "lib://rules", "mimeType": "text/plain", "text": "be quiet" })),
            ("lib://logo", json!({ "uri": "lib://logo", "mimeType": "image/png", "blob": "iVBORw==" })),
            ("lib://users/7", json!({ "uri": "lib://users/7", "text": "user 7" })),
            ("row://2", json!({ "uri": "row://2", "text": "a row" })),
        ] {
            let reply = peer.request("resources/read", json!({ "uri": uri })).await;
            assert_eq!(reply["result"]["contents"], json!([contents]), "{reply}");
        }
    }
}

#[tokio::test]
async fn a_missing_resource_has_the_code_of_its_revision() {
    // proves: RES-11, RES-16, RES-22, BASE-40
    let mut legacy = Peer::new(library());
    legacy.initialize("2025-11-25").await;
    for uri in ["lib://nothing", "row://3"] {
        let reply = legacy.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(reply["error"]["code"], -32002, "{reply}");
        assert_eq!(reply["error"]["data"]["uri"], uri);
    }
    let mut modern = Peer::new(library());
    for uri in ["lib://nothing", "row://3", "no uri at all", "lib://users/seven"] {
        let reply = modern.modern("resources/read", json!({ "uri": uri })).await;
        assert_eq!(reply["error"]["code"], -32602, "{reply}");
    }
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// Which language.
    language: String,
    /// How many remarks.
    limit: Option<u32>,
}

fn reviews() -> Server {
    let review = Prompt::new("review")
        .description("Review code")
        .complete("language", |typing: CompletionRequest| {
            let known = ["rust", "ruby", "python"];
            let known = known.into_iter().filter(|language| language.starts_with(&typing.value));
            known
                .map(|language| {
                    format!("{language}{}", typing.arguments.get("limit").map_or("", String::as_str))
                })
                .collect::<Vec<_>>()
        })
        .handler(|Review { language, limit }: Review| {
            format!("Review this {language}, at most {} remarks", limit.unwrap_or(10))
        });
    let many = Resource::new("many://{number}", "many")
        .complete("number", |_: CompletionRequest| async {
            (0..250).map(|number| number.to_string()).collect::<Vec<_>>()
        })
        .handler(|| "x");
    Server::new("reviews").prompt(review).resource(many)
}

#[tokio::test]
async fn prompts_take_text_and_return_messages() {
    // proves: PRM-04, PRM-06
    let mut peer = Peer::new(reviews());
    peer.initialize("2025-11-25").await;
    let list = peer.request("prompts/list", json!({})).await;
    let expected = json!([{ "name": "review", "description": "Review code", "arguments": [
        { "name": "language", "description": "Which language.", "required": true },
        { "name": "limit", "description": "How many remarks.", "required": false },
    ] }]);
    assert_eq!(list["result"]["prompts"], expected);
    let filled = peer
        .request(
            "prompts/get",
            json!({ "name": "review", "arguments": { "language": "rust", "limit": "3" } }),
        )
        .await;
    assert_eq!(
        filled["result"]["messages"],
        json!([{ "role": "user", "content": { "type": "text", "text": "Review this rust, at most 3 remarks" } }])
    );
    for (params, message) in [
        (json!({ "name": "nope" }), "unknown prompt `nope`"),
        (json!({ "name": "review" }), "prompt `review` needs the argument `language`"),
    ] {
        let refused = peer.request("prompts/get", params).await;
        assert_eq!(refused["error"]["code"], -32602);
        assert_eq!(refused["error"]["message"], message);
    }
    let wrong = peer
        .request(
            "prompts/get",
            json!({ "name": "review", "arguments": { "language": "rust", "limit": "few" } }),
        )
        .await;
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
}

#[tokio::test]
async fn completion_is_bounded_and_knows_the_context() {
    // proves: COMP-01, COMP-06, COMP-17
    let mut peer = Peer::new(reviews());
    let hello = peer.initialize("2025-11-25").await;
    assert_eq!(hello["result"]["capabilities"]["completions"], json!({}));
    let reference = json!({ "type": "ref/prompt", "name": "review" });
    let typed = json!({ "ref": reference, "argument": { "name": "language", "value": "ru" }, "context": { "arguments": { "limit": "3" } } });
    let reply = peer.request("completion/complete", typed).await;
    assert_eq!(reply["result"]["completion"]["values"], json!(["rust3", "ruby3"]), "{reply}");
    let many = json!({ "ref": { "type": "ref/resource", "uri": "many://{number}" }, "argument": { "name": "number", "value": "" } });
    let reply = peer.request("completion/complete", many).await;
    let completion = &reply["result"]["completion"];
    assert_eq!(completion["values"].as_array().unwrap().len(), 100);
    assert_eq!((completion["total"].clone(), completion["hasMore"].clone()), (json!(250), json!(true)));
    for params in [
        json!({ "ref": { "type": "ref/prompt", "name": "nope" }, "argument": { "name": "x", "value": "" } }),
        json!({ "ref": { "type": "ref/strange" }, "argument": { "name": "x", "value": "" } }),
        json!({ "argument": { "name": "x", "value": "" } }),
        json!({ "ref": reference }),
    ] {
        let refused = peer.request("completion/complete", params).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    #[schemars(range(min = 1, max = 10))]
    count: u32,
    items: Vec<Item>,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only decoded")]
struct Item {
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Receipt {
    total: f64,
}

fn shop() -> Server {
    let order = Tool::new("order").handler(|Order { count, items }: Order| {
        Json(Receipt { total: f64::from(count) * 1.5 * f64::from(u8::from(items.is_empty())) })
    });
    let mismatch = Tool::new("mismatch")
        .output_schema(RawJson::of(&json!({ "type": "object", "required": ["total"] })).unwrap())
        .handler(|| Json(json!({ "sum": 1 })));
    Server::new("shop").tool(order).tool(mismatch)
}

#[cfg(feature = "validate")]
#[tokio::test]
async fn arguments_that_do_not_fit_are_a_failed_result_that_names_the_place() {
    // proves: TOOL-45
    let mut peer = Peer::new(shop());
    peer.initialize("2025-11-25").await;
    for (arguments, place) in [
        (json!({ "count": 11, "items": [] }), "/count: 11 is greater than the maximum of 10"),
        (
            json!({ "count": 1, "items": [{ "name": "a" }, { "name": 7 }] }),
            "/items/1/name: 7 is not of type \"string\"",
        ),
        (json!({ "items": [] }), "\"count\" is a required property"),
    ] {
        let reply = peer.request("tools/call", json!({ "name": "order", "arguments": arguments })).await;
        assert_eq!(reply["result"]["isError"], true, "{reply}");
        assert_eq!(reply["result"]["content"][0]["text"], format!("invalid arguments: {place}"));
    }
    for (params, message) in [
        (json!({ "name": "order", "arguments": [1] }), "`arguments` must be an object"),
        (json!({ "name": "nope" }), "unknown tool `nope`"),
        (json!({}), "`name` is missing"),
    ] {
        let reply = peer.request("tools/call", params).await;
        assert_eq!(reply["error"]["code"], -32602);
        assert_eq!(reply["error"]["message"], message);
    }
}

#[tokio::test]
async fn structured_results_follow_their_schema_and_are_also_text() {
    // proves: TOOL-18, TOOL-35, TOOL-37
    let mut peer = Peer::new(shop());
    peer.initialize("2025-06-18").await;
    let list = peer.request("tools/list", json!({})).await;
    assert_eq!(list["result"]["tools"][0]["outputSchema"]["properties"]["total"]["type"], "number", "{list}");
    let reply = peer
        .request("tools/call", json!({ "name": "order", "arguments": { "count": 2, "items": [] } }))
        .await;
    assert_eq!(reply["result"]["structuredContent"], json!({ "total": 3.0 }), "{reply}");
    let text: Value = serde_json::from_str(reply["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, reply["result"]["structuredContent"]);
    let reply = peer.request("tools/call", json!({ "name": "mismatch" })).await;
    if cfg!(feature = "validate") {
        assert_eq!(reply["error"]["code"], -32603, "{reply}");
    }
}

#[tokio::test]
async fn a_hidden_resource_does_not_hide_a_matching_template() {
    // proves: RES-23
    let server = Server::new("notes")
        .resource(Resource::new("note://1", "first").guard(|_| false).text("secret"))
        .resource(Resource::new("note://{id}", "any").guard(|_| false).text("secret"))
        .resource(Resource::new("note://{+path}", "open").text("for all"));
    let mut peer = Peer::new(server);
    for uri in ["note://1", "note://2"] {
        let read = peer.modern("resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["result"]["contents"][0]["text"], "for all", "{read}");
    }
}

#[tokio::test]
async fn guards_hide_and_refuse() {
    // proves: CACHE-24, CACHE-25, TOOL-04, TOOL-46, COMP-19, COMP-20
    let server = Server::new("bank")
        .tool(Tool::new("open").handler(|| "ok"))
        .tool(
            Tool::new("vault").guard(|client| client.principal.as_deref() == Some("ada")).handler(|| "gold"),
        )
        .prompt(
            Prompt::new("plan")
                .guard(|client| client.principal.as_deref() == Some("ada"))
                .argument(types::PromptArgument::new("step"))
                .complete("step", |_: CompletionRequest| vec!["dig"])
                .handler(|| "dig"),
        )
        .cache_lists(Duration::from_secs(60), CacheScope::Public)
        .build()
        .unwrap();
    let (mut ada, mut bob) = (Peer::of(&server, Some("ada")), Peer::of(&server, Some("bob")));
    let names = |reply: &Value| reply["result"]["tools"].as_array().unwrap().len();
    let (for_ada, for_bob) =
        (ada.modern("tools/list", json!({})).await, bob.modern("tools/list", json!({})).await);
    assert_eq!((names(&for_ada), names(&for_bob)), (2, 1));
    // A list that depends on who asks is nobody else's.
    assert_eq!(for_ada["result"]["cacheScope"], "private");
    assert_eq!(
        ada.modern("tools/call", json!({ "name": "vault" })).await["result"]["content"][0]["text"],
        "gold"
    );
    assert_eq!(
        bob.modern("tools/call", json!({ "name": "vault" })).await["error"]["message"],
        "unknown tool `vault`"
    );
    let typed = json!({ "ref": { "type": "ref/prompt", "name": "plan" }, "argument": { "name": "step", "value": "" } });
    assert_eq!(
        ada.modern("completion/complete", typed.clone()).await["result"]["completion"]["values"],
        json!(["dig"])
    );
    assert_eq!(bob.modern("completion/complete", typed).await["error"]["message"], "unknown prompt `plan`");
}

#[test]
fn impossible_settings_are_reported_before_serving() {
    // proves: TOOL-12
    // proves: TOOL-07, TOOL-08, RES-29, EXT-01
    let problem = |server: Server| server.build().unwrap_err().to_string();
    let schema = |value: Value| RawJson::of(&value).unwrap();
    assert_eq!(problem(Server::new("s").tool(Tool::new("a"))), "tool `a`: has no handler");
    let twice = Server::new("s").tool(Tool::new("a").handler(|| "x")).tool(Tool::new("a").handler(|| "y"));
    assert_eq!(problem(twice), "two tools are named `a`");
    let spaced = problem(Server::new("s").tool(Tool::new("a b").handler(|| "x")));
    assert!(spaced.contains("the name contains ` `"), "{spaced}");
    let list = problem(
        Server::new("s")
            .tool(Tool::new("a").input_schema(schema(json!({ "type": "array" }))).handler(|| "x")),
    );
    assert!(list.contains("the arguments must be an object"), "{list}");
    if cfg!(feature = "validate") {
        let broken = schema(json!({ "type": "object", "properties": { "a": { "type": "strange" } } }));
        let broken = problem(Server::new("s").tool(Tool::new("a").input_schema(broken).handler(|| "x")));
        assert!(broken.starts_with("tool `a`: input schema: "), "{broken}");
    }
    let relative = problem(Server::new("s").resource(Resource::new("not absolute", "x").text("x")));
    assert!(relative.starts_with("resource `not absolute`: "), "{relative}");
    let template = problem(Server::new("s").resource(Resource::new("x://{", "x").text("x")));
    assert!(template.starts_with("resource `x://{`: "), "{template}");
    let extension = problem(Server::new("s").extension("unprefixed", schema(json!({}))));
    assert!(extension.starts_with("extension `unprefixed`: "), "{extension}");
}
