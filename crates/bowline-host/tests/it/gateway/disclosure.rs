//! Thousands of tools behind three.

use super::{Far, call, client, gateway, open_file, text, tools};
use bowline_search::MetaTool;
use bowline_server::{Server, Tool};
use bowline_testing::Peer;
use bowline_types::Revision;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Deserialize, schemars::JsonSchema)]
struct Place {
    /// The place to look at.
    place: String,
}

/// A server with so many tools, each of which says what it was asked.
fn many(count: usize) -> Server {
    let what = ["weather", "invoices", "tickets", "calendars", "playlists"];
    let how = ["list", "show", "archive", "compare"];
    (0..count).fold(Server::new("many"), |server, number| {
        let (what, how) = (what[number % what.len()], how[number % how.len()]);
        let tool = Tool::new(format!("{how}_{what}_{number}"))
            .description(format!("Use it to {how} the {what} of a place, in the way number {number}."))
            .handler(move |Place { place }: Place| format!("{how} {what} of {place}"));
        server.tool(tool)
    })
}

const META: [&str; 3] = ["search_tools", "describe_tool", "call_tool"];

#[tokio::test]
async fn two_thousand_tools_are_found_described_and_called_through_three() {
    let far = Far::with(many(2_000)).await;
    let denies = "[[rules]]\neffect = \"deny\"\ntool = \"archive_*\"\nreason = \"it stays\"\n";
    let gateway = gateway(&format!("{denies}{}", open_file(&far)));
    let mut peer = client(gateway.open().unwrap()).await;
    assert_eq!(tools(&mut peer).await, META);

    let found =
        call(&mut peer, "search_tools", json!({ "query": "show the playlists, number 1409", "limit": 3 }))
            .await;
    assert_eq!(found["structuredContent"]["total"], 2_003);
    let names: Vec<_> =
        found["structuredContent"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names.first(), Some(&&json!("far__show_playlists_1409")), "{found}");

    let described = call(&mut peer, "describe_tool", json!({ "name": "far__show_playlists_1409" })).await;
    let schema = &described["structuredContent"]["inputSchema"];
    assert_eq!(schema["properties"]["place"]["description"], "The place to look at.", "{described}");

    let arguments = json!({ "name": "far__show_playlists_1409", "arguments": { "place": "Kiel" } });
    assert_eq!(text(&call(&mut peer, "call_tool", arguments).await), "show playlists of Kiel");
    // What has a name is called by it as well.
    let direct = call(&mut peer, "far__show_playlists_1409", json!({ "place": "Jena" })).await;
    assert_eq!(text(&direct), "show playlists of Jena");

    // V-105: what a rule denies is denied by this way too.
    let arguments = json!({ "name": "far__archive_weather_10", "arguments": { "place": "Kiel" } });
    let denied = call(&mut peer, "call_tool", arguments).await;
    assert!(denied["isError"] == true && text(&denied).contains("it stays"), "{denied}");
    let unknown = call(&mut peer, "call_tool", json!({ "name": "far__show_playlists_14090" })).await;
    assert!(unknown["isError"] == true && text(&unknown).contains("far__show_playlists_1409"), "{unknown}");
    let nested = call(&mut peer, "call_tool", json!({ "name": "call_tool" })).await;
    assert!(nested["isError"] == true, "{nested}");
    gateway.close().await;
}

#[tokio::test]
async fn questions_of_a_tool_also_work_through_call_tool() {
    let asks = Tool::new("ask").handler(|ctx: bowline_server::Ctx| async move {
        let Place { place } = ctx.ask("Where?").await?.accepted()?;
        bowline_server::Result::<_>::Ok(format!("at {place}"))
    });
    let far = Far::with(Server::new("far").tool(asks)).await;
    let gateway = gateway(&format!("[disclosure]\nmode = \"on\"\n{}", open_file(&far)));
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let peer = Peer::memory(gateway.open().unwrap()).unwrap().deadline(Duration::from_secs(20));
        let mut peer = peer.capabilities(json!({ "elicitation": { "form": {} } }));
        let mut params = json!({ "name": "call_tool", "arguments": { "name": "far__ask" } });
        let answer = json!({ "action": "accept", "content": { "place": "Kiel" } });
        let result: Value = if revision.is_modern() {
            let asked = peer.modern("tools/call", params.clone()).await.unwrap();
            let requests = asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}"));
            let key = requests.keys().next().unwrap();
            params["inputResponses"] = json!({ key: answer });
            params["requestState"] = asked["result"]["requestState"].clone();
            peer.modern("tools/call", params).await.unwrap()
        } else {
            peer.initialize(revision).await.unwrap();
            let id = peer.start("tools/call", params).await.unwrap();
            let asked = peer.recv_method("elicitation/create").await.unwrap();
            peer.reply(&asked, answer).await.unwrap();
            peer.response(&id).await.unwrap()
        };
        assert_eq!(text(&result["result"]), "at Kiel", "{revision}: {result}");
    }
    gateway.close().await;
}

#[tokio::test]
async fn clients_with_their_own_search_get_the_full_list() {
    let far = Far::with(many(2_000)).await;
    let gateway = gateway(&open_file(&far));
    let mut peer = Peer::memory(gateway.open().unwrap()).unwrap().deadline(Duration::from_secs(20));
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "claude-code", "version": "2" },
    });
    peer.request("initialize", params).await.unwrap();
    peer.notify("notifications/initialized", json!({})).await.unwrap();
    assert_eq!(tools(&mut peer).await.len(), 2_003);
    let unknown = peer.request("tools/call", json!({ "name": "search_tools" })).await.unwrap();
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    gateway.close().await;
}

#[tokio::test]
async fn some_servers_are_always_listed_and_the_mode_may_change() {
    let (far, near) = (Far::start().await, Far::start().await);
    let off = open_file(&far);
    let on = format!(
        "[disclosure]\nmode = \"on\"\n{off}[servers.near]\nurl = \"{}\"\nalways_load = true\n",
        near.url
    );
    let gateway = gateway(&off);
    let mut peer = client(gateway.open().unwrap()).await;
    assert_eq!(tools(&mut peer).await, ["far__fast", "far__slow", "far__trace"]);
    gateway.apply(super::config(&on)).unwrap();
    peer.recv_method("notifications/tools/list_changed").await.unwrap();
    let listed = tools(&mut peer).await;
    assert_eq!(listed[..3], MetaTool::ALL.map(|tool| tool.name().to_owned()));
    assert_eq!(listed[3..], ["near__fast", "near__slow", "near__trace"]);
    // The index is of what there is now.
    let found = call(&mut peer, "search_tools", json!({ "query": "near fast" })).await;
    assert_eq!(found["structuredContent"]["tools"][0]["name"], "near__fast", "{found}");
    gateway.close().await;
}
