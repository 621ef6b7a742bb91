//! What takes several connections, many calls or every revision to show: what servers declare, list and leave behind.

use bowline_server::{CompletionRequest, Ctx, Error, Prompt, Resource, Server, ServerHandle, Tool};
use bowline_testing::{Peer, Result};
use bowline_types::{
    ContentBlock, PromptArgument, PromptMessage, RawJson, ResourceContents, ResourceLink, Revision,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

const FEATURES: [(&str, &str, &str); 3] = [
    ("tools", "tools/list", "tools"),
    ("resources", "resources/list", "resources"),
    ("prompts", "prompts/list", "prompts"),
];

fn fixture(name: &str) -> Server {
    bowline_tests::fixture(name).expect("the fixture is there")
}

fn handle(name: &str) -> ServerHandle {
    fixture(name).build().expect("the fixture can serve")
}

/// The capabilities a server declares to a client of `revision`.
async fn declared(peer: &mut Peer, revision: Revision) -> Result<Value> {
    if revision.is_legacy() {
        return Ok(peer.initialize(revision).await?["capabilities"].take());
    }
    Ok(peer.modern("server/discover", json!({})).await?["result"]["capabilities"].take())
}

async fn ask(peer: &mut Peer, revision: Revision, method: &str, params: Value) -> Result<Value> {
    if revision.is_legacy() { peer.request(method, params).await } else { peer.modern(method, params).await }
}

#[tokio::test]
async fn a_server_declares_and_lists_what_it_offers() -> Result {
    // proves: TOOL-01, RES-01, PRM-01, TOOL-02, RES-02, PRM-02, PRM-17
    for revision in Revision::ALL {
        for server in ["tools", "resources", "prompts", "empty", "everything", "bare"] {
            let mut peer = Peer::memory(fixture(server))?;
            let capabilities = declared(&mut peer, revision).await?;
            for (feature, method, member) in FEATURES {
                let has = server == feature || matches!(server, "empty" | "everything");
                assert_eq!(capabilities[feature].is_object(), has, "{server} {revision}: {capabilities}");
                let answer = ask(&mut peer, revision, method, json!({})).await?;
                if has {
                    let listed = answer["result"][member].as_array().map(Vec::len);
                    assert_eq!(listed.map(|listed| listed == 0), Some(server == "empty"), "{answer}");
                } else {
                    assert_eq!(answer["error"]["code"], -32601, "{server} {revision}: {answer}");
                }
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn lists_are_the_same_on_every_connection_whatever_happened_there() -> Result {
    // proves: TOOL-03, RES-03, PRM-03, TOOL-05
    let server = handle("everything");
    let capabilities = json!({ "elicitation": {}, "sampling": {} });
    let mut busy = Peer::memory(&server)?.capabilities(capabilities);
    let mut fresh = Peer::memory(&server)?;
    let mut before = Vec::new();
    for (_, method, _) in FEATURES {
        before.push(busy.modern(method, json!({})).await?["result"].take());
    }
    for (method, params) in [
        ("tools/call", json!({ "name": "echo", "arguments": { "message": "hi" } })),
        ("tools/call", json!({ "name": "fail" })),
        ("tools/call", json!({ "name": "ask" })),
        ("tools/call", json!({ "name": "nope" })),
        ("resources/read", json!({ "uri": "test://text" })),
        ("resources/read", json!({ "uri": "test://users/1" })),
        ("resources/read", json!({ "uri": "test://secret" })),
        ("prompts/get", json!({ "name": "plain" })),
        ("prompts/get", json!({ "name": "personal" })),
    ] {
        busy.modern(method, params).await?;
    }
    for ((_, method, member), before) in FEATURES.into_iter().zip(before) {
        assert!(before[member].as_array().is_some_and(|listed| !listed.is_empty()), "{before}");
        assert_eq!(busy.modern(method, json!({})).await?["result"], before);
        assert_eq!(fresh.modern(method, json!({})).await?["result"], before);
    }
    // A change of the server's own is there for everybody at once.
    busy.modern("tools/call", json!({ "name": "grow" })).await?;
    let (busy, fresh) =
        (busy.modern("tools/list", json!({})).await?, fresh.modern("tools/list", json!({})).await?);
    assert_eq!(busy["result"], fresh["result"]);
    assert!(busy["result"].to_string().contains("\"grown\""), "{busy}");
    Ok(())
}

#[tokio::test]
async fn completion_is_declared_and_bounded() -> Result {
    // proves: COMP-01, COMP-06, COMP-07
    let count = |number: usize| {
        move |_: CompletionRequest| (0..number).map(|value| value.to_string()).collect::<Vec<_>>()
    };
    for revision in Revision::ALL {
        let prompt = Prompt::new("count")
            .argument(PromptArgument::new("most"))
            .argument(PromptArgument::new("more"))
            .complete("most", count(100))
            .complete("more", count(101))
            .handler(|| "Count.");
        let mut peer = Peer::memory(Server::new("counter").prompt(prompt))?;
        let capabilities = declared(&mut peer, revision).await?;
        assert_eq!(capabilities["completions"].is_object(), revision >= Revision::V2025_03_26, "{revision}");
        for (argument, total) in [("most", Value::Null), ("more", json!(101))] {
            let reference = json!({ "type": "ref/prompt", "name": "count" });
            let params = json!({ "ref": reference, "argument": { "name": argument, "value": "" } });
            let answer = ask(&mut peer, revision, "completion/complete", params).await?;
            let completion = &answer["result"]["completion"];
            assert_eq!(completion["values"].as_array().map(Vec::len), Some(100), "{answer}");
            assert_eq!(completion["total"], total, "{answer}");
        }
    }
    Ok(())
}

#[test]
fn names_of_tools_are_short_plain_and_unique() {
    // proves: TOOL-10, TOOL-13, TOOL-14
    let serves = |names: &[&str]| {
        let mut server = Server::new("names");
        for name in names {
            server = server.tool(Tool::new(*name).handler(|| "ok"));
        }
        server.build().is_ok()
    };
    let (longest, longer) = ("a".repeat(128), "a".repeat(129));
    assert!(serves(&["get", "Get", "get_2", "get-2", "get.2", &longest]));
    for name in ["", "get it", "get,it", "get\n", "gét", "get:it", "get{it}", &longer] {
        assert!(!serves(&[name]), "{name}");
    }
    assert!(!serves(&["get", "put", "get"]));
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Counts the handlers that have begun and not been dropped.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn polite(alive: Arc<AtomicUsize>) -> Server {
    Server::new("polite").tool(Tool::new("greet").handler(move |ctx: Ctx| {
        let alive = Alive::new(&alive);
        async move {
            let Name { name } = ctx.ask("Who are you?").await?.accepted()?;
            drop(alive);
            Ok::<_, Error>(format!("hello {name}"))
        }
    }))
}

#[tokio::test]
async fn an_unanswered_question_leaves_no_state() -> Result {
    // proves: MRTR-18
    let alive = Arc::default();
    let server = polite(Arc::clone(&alive)).build().expect("the server can serve");
    let capabilities = json!({ "elicitation": {} });
    let mut peer = Peer::memory(&server)?.capabilities(capabilities.clone());
    let mut first = Value::Null;
    // More than may run on one connection at a time.
    for call in 0..1100 {
        let mut asked = peer.modern("tools/call", json!({ "name": "greet" })).await?;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        if call == 0 {
            first = asked["result"]["requestState"].take();
        }
    }
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    assert_eq!(peer.close().await?, Vec::<Value>::new());
    // The answer may still come, over another connection: all there is of the call is in its state.
    let mut peer = Peer::memory(&server)?.capabilities(capabilities);
    let answer = json!({ "q0": { "action": "accept", "content": { "name": "Ada" } } });
    let retry = json!({ "name": "greet", "requestState": first, "inputResponses": answer });
    let done = peer.modern("tools/call", retry).await?;
    assert_eq!(done["result"]["content"][0]["text"], "hello Ada", "{done}");
    assert_eq!(peer.close().await?, Vec::<Value>::new());
    Ok(())
}

#[tokio::test]
async fn url_elicitations_have_host_ids_and_complete_at_their_client() -> Result {
    // proves: ELIU-02, ELIU-08, ELIU-09, ELIU-18
    let server = handle("everything");
    let capabilities = json!({ "elicitation": { "url": {} } });
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = Peer::memory(&server)?.capabilities(capabilities.clone());
        client.initialize(Revision::V2025_11_25).await?;
        clients.push(client);
    }
    let (mut open, mut ids) = (Vec::new(), BTreeSet::new());
    for client in &mut clients[..2] {
        for _ in 0..5 {
            let call = client.start("tools/call", json!({ "name": "ask_url" })).await?;
            let question = client.recv_method("elicitation/create").await?;
            let id = question["params"]["elicitationId"].as_str().unwrap_or_default().to_owned();
            ids.insert(id.clone());
            open.push((call, question, id));
        }
    }
    assert_eq!(ids.len(), 10, "{ids:?}");
    // The first client goes through with its visits, one after the other.
    for (call, question, id) in &open[..5] {
        clients[0].reply(question, json!({ "action": "accept" })).await?;
        let done = clients[0].recv_method("notifications/elicitation/complete").await?;
        assert_eq!(done["params"], json!({ "elicitationId": id }));
        assert_eq!(clients[0].response(call).await?["result"]["content"][0]["text"], "signed in");
    }
    for (call, question, _) in &open[5..] {
        clients[1].reply(question, json!({ "action": "decline" })).await?;
        assert_eq!(clients[1].response(call).await?["result"]["isError"], true);
    }
    for client in &mut clients {
        assert_eq!(client.close().await?, Vec::<Value>::new());
    }

    // The errors that ask for a visit draw from the same well.
    let mut client = Peer::memory(handle("questions"))?.capabilities(capabilities);
    client.initialize(Revision::V2025_11_25).await?;
    for _ in 0..5 {
        let failed = client.request("tools/call", json!({ "name": "connect" })).await?;
        let id = &failed["error"]["data"]["elicitations"][0]["elicitationId"];
        ids.insert(id.as_str().unwrap_or_default().to_owned());
    }
    assert_eq!(ids.len(), 15, "{ids:?}");
    assert!(ids.iter().all(|id| id.len() >= 32), "{ids:?}");
    Ok(())
}

#[tokio::test]
async fn a_model_that_never_stops_using_tools_is_stopped() -> Result {
    // proves: SAMP-37
    let wish = |round: usize| {
        let wish =
            json!({ "type": "tool_use", "id": format!("call {round}"), "name": "weather", "input": {} });
        json!({ "role": "assistant", "content": wish, "model": "m", "stopReason": "toolUse" })
    };
    let sampling = json!({ "sampling": { "tools": {} } });
    let mut legacy = Peer::memory(fixture("questions"))?.capabilities(sampling.clone());
    legacy.initialize(Revision::V2025_11_25).await?;
    let call = legacy.start("tools/call", json!({ "name": "agent" })).await?;
    for round in 0..10 {
        let question = legacy.recv_method("sampling/createMessage").await?;
        legacy.reply(&question, wish(round)).await?;
    }
    assert_eq!(legacy.response(&call).await?["error"]["code"], -32603);

    let mut modern = Peer::memory(fixture("questions"))?.capabilities(sampling);
    let mut params = json!({ "name": "agent" });
    for round in 0..10 {
        let mut asked = modern.modern("tools/call", params.clone()).await?;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        params["requestState"] = asked["result"]["requestState"].take();
        params["inputResponses"] = json!({ format!("q{round}"): wish(round) });
    }
    assert_eq!(modern.modern("tools/call", params).await?["error"]["code"], -32603);
    Ok(())
}

// proves: JSON-06, JSON-07
#[tokio::test]
async fn every_schema_in_a_list_is_valid_in_its_dialect() -> Result {
    let mut checked = 0;
    for revision in Revision::ALL {
        let mut peer = Peer::memory(fixture("everything"))?;
        let list = if revision.is_legacy() {
            peer.initialize(revision).await?;
            peer.request("tools/list", json!({})).await?
        } else {
            peer.modern("tools/list", json!({})).await?
        };
        for tool in list["result"]["tools"].as_array().expect("a list of tools") {
            for schema in [&tool["inputSchema"], &tool["outputSchema"]].into_iter().filter(|it| !it.is_null())
            {
                assert!(jsonschema::meta::is_valid(schema), "{revision}: {tool}");
                let dialect = schema.get("$schema").and_then(Value::as_str);
                assert!(dialect.is_none_or(|uri| uri.contains("2020-12")), "{revision}: {tool}");
                checked += 1;
            }
        }
    }
    assert!(checked > 5, "only {checked} schemas were checked");
    Ok(())
}

// proves: RES-10
#[tokio::test]
async fn a_read_may_return_several_contents() -> Result {
    let folder = Resource::new("test://folder", "folder").handler(|| {
        vec![
            ResourceContents::text("test://folder/a", "one"),
            ResourceContents::text("test://folder/b", "two"),
        ]
    });
    let server = Server::new("shelf").resource(folder).build().expect("the server can be built");
    for revision in Revision::ALL {
        let mut peer = Peer::memory(&server)?;
        declared(&mut peer, revision).await?;
        let answer = ask(&mut peer, revision, "resources/read", json!({ "uri": "test://folder" })).await?;
        let contents = answer["result"]["contents"].as_array().expect("a list of contents");
        let uris: Vec<_> = contents.iter().map(|part| part["uri"].as_str()).collect();
        assert_eq!(uris, [Some("test://folder/a"), Some("test://folder/b")], "{revision}: {answer}");
    }
    Ok(())
}

// proves: PRM-10
#[tokio::test]
async fn a_prompt_may_link_to_a_resource() -> Result {
    let prompt = Prompt::new("guide").handler(|| {
        vec![PromptMessage::user(ContentBlock::link(ResourceLink::new("test://manual", "manual")))]
    });
    let server = Server::new("shelf").prompt(prompt).build().expect("the server can be built");
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut peer = Peer::memory(&server)?;
        declared(&mut peer, revision).await?;
        let answer = ask(&mut peer, revision, "prompts/get", json!({ "name": "guide" })).await?;
        let content = &answer["result"]["messages"][0]["content"];
        assert_eq!(content["type"], "resource_link", "{revision}: {answer}");
        assert_eq!(content["uri"], "test://manual", "{revision}: {answer}");
    }
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    region: String,
}

// proves: HDR-17
#[tokio::test]
async fn annotations_for_headers_do_not_matter_on_a_byte_stream() -> Result {
    let schema = json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
        "required": ["region"],
    });
    let locate =
        Tool::new("locate").input_schema(RawJson::from(schema)).handler(|Place { region }: Place| region);
    let mut peer = Peer::memory(Server::new("map").tool(locate))?;
    let params = json!({ "name": "locate", "arguments": { "region": "north" } });
    let answer = peer.modern("tools/call", params).await?;
    assert_eq!(answer["result"]["content"][0]["text"], "north", "{answer}");
    Ok(())
}

// proves: TOOL-25
#[tokio::test]
async fn a_server_that_embeds_resources_declares_them() -> Result {
    for revision in Revision::ALL {
        let mut peer = Peer::memory(fixture("everything"))?;
        let capabilities = declared(&mut peer, revision).await?;
        let answer = ask(&mut peer, revision, "tools/call", json!({ "name": "embedded" })).await?;
        assert_eq!(answer["result"]["content"][0]["type"], "resource", "{revision}: {answer}");
        assert!(capabilities["resources"].is_object(), "{revision}: {capabilities}");
    }
    Ok(())
}
