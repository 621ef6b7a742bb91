//! The web server.

mod fetch;
mod openapi;
mod site;

use bowline::prelude::Server;
use bowline_testing::Peer;
use serde_json::{Value, json};

/// Returns the result of a tool.
async fn call(server: Server, tool: &str, arguments: Value) -> Value {
    let mut peer = Peer::memory(server).unwrap();
    let answer = peer.modern("tools/call", json!({ "name": tool, "arguments": arguments })).await.unwrap();
    answer.get("result").cloned().unwrap_or(answer)
}

/// Returns the error of a tool.
async fn refusal(server: Server, tool: &str, arguments: Value) -> String {
    let result = call(server, tool, arguments).await;
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}
