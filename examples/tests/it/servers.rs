//! Examples that are servers, with a client of each revision before them.

use bowline::{
    client::{Answer, Command, Result},
    prelude::{Client, Content, Revision, Role, json},
    types::CreateMessageResult,
};
use bowline_testing::Peer;
use serde_json::Value;

/// A client of one revision, before a program of its own.
async fn connect(program: &str, revision: Revision) -> Result<Client> {
    let client = Client::builder()
        .revisions([revision])
        .on_ask(|question| async move {
            assert_eq!(question.message, "Delete demo?");
            Answer::accept(json!({ "sure": true }))
        })
        .on_sample(|request| async move {
            assert_eq!(request.system_prompt.as_deref(), Some("You are brief."));
            CreateMessageResult::new(Role::Assistant, Content::text("Short."), "test-model")
        });
    client.connect(Command::new(program)).await
}

/// Calls a tool in each revision and checks its text, given how many revisions lack what it needs.
async fn check(program: &str, tool: &str, arguments: Value, lacking: usize, expected: &str) -> Result {
    for (position, revision) in Revision::ALL.into_iter().enumerate() {
        let client = connect(program, revision).await?;
        assert_eq!(client.revision(), revision);
        let called = client.call(tool, arguments.clone()).await?;
        if position < lacking {
            assert!(
                called.is_error() && called.text().contains("does not support"),
                "{revision}: {called:?}"
            );
        } else {
            assert_eq!(called.text(), expected, "{revision}");
        }
        client.close().await;
    }
    Ok(())
}

#[tokio::test]
async fn hello_adds() -> Result {
    check(env!("CARGO_BIN_EXE_hello"), "add", json!({ "a": 1, "b": 2 }), 0, "3").await
}

#[tokio::test]
async fn tasks_serve_callers_without_tasks() -> Result {
    check(env!("CARGO_BIN_EXE_tasks"), "bake", json!({ "loaves": 2 }), 0, "order 7: 2 loaves").await
}

#[tokio::test]
async fn typed_returns_data_and_rejects_mismatches() -> Result {
    let program = env!("CARGO_BIN_EXE_typed");
    let forecast = r#"{"city":"Oslo","highs":[20.5,21.5],"unit":"celsius"}"#;
    check(program, "forecast", json!({ "city": "Oslo", "days": 2 }), 0, forecast).await?;
    let too_many = "invalid arguments: /days: 9 is greater than the maximum of 7";
    check(program, "forecast", json!({ "city": "Oslo", "days": 9 }), 0, too_many).await?;
    check(program, "forecast", json!({ "city": "", "days": 1 }), 0, "which city?").await?;

    let client = connect(program, Revision::LATEST).await?;
    let tools = client.tools().await?;
    assert_eq!(tools[0].title.as_deref(), Some("Forecast"));
    assert!(tools[0].output_schema.is_some());
    let warm = json!({ "city": "Oslo", "days": 1, "unit": "fahrenheit" });
    let data: Value = client.call_as("forecast", warm).await?;
    assert_eq!(data, json!({ "city": "Oslo", "highs": [68.9], "unit": "fahrenheit" }));
    client.close().await;
    Ok(())
}

#[tokio::test]
async fn asking_asks_wherever_it_can() -> Result {
    let program = env!("CARGO_BIN_EXE_asking");
    check(program, "delete_project", json!({ "name": "demo" }), 2, "ticket 1: deleted demo").await
}

#[tokio::test]
async fn sampling_borrows_the_model_in_every_revision() -> Result {
    let text = json!({ "text": "It was long." });
    check(env!("CARGO_BIN_EXE_sampling"), "summarize", text, 0, "test-model says: Short.").await
}

#[tokio::test]
async fn middleware_signs_and_refuses() -> Result {
    let program = env!("CARGO_BIN_EXE_middleware");
    check(program, "greet", json!({ "name": "Ann" }), 0, "Hello, Ann!\nYours, the server").await?;
    let client = connect(program, Revision::LATEST).await?;
    let refused = client.call("reset", ()).await.expect_err("nobody may reset");
    assert_eq!(refused.as_rpc().map(|error| error.message.as_ref()), Some("not today"));
    client.close().await;
    Ok(())
}

#[tokio::test]
async fn progress_is_reported_and_an_abandoned_call_ends() -> bowline_testing::Result {
    // proves: STDIO-14
    let mut peer = Peer::spawn(env!("CARGO_BIN_EXE_progress"), [""; 0])?;
    for (tool, arguments) in [("copy", json!({ "files": 1_000_000 })), ("count", json!({ "to": u32::MAX }))] {
        let mut params = json!({ "name": tool, "arguments": arguments });
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "progressToken": tool,
        });
        let id = peer.start("tools/call", params).await?;
        let first = peer.recv_method("notifications/progress").await?;
        assert_eq!(first["params"]["progressToken"], tool);
        peer.notify("notifications/cancelled", json!({ "requestId": id })).await?;
        let small = json!({ "name": "count", "arguments": { "to": 7 } });
        let answer = peer.modern("tools/call", small).await?;
        assert_eq!(answer["result"]["content"][0]["text"], "counted to 7");
        // What was said before the cancellation arrived is on its way already.
        peer.notifications();
    }
    assert_eq!(peer.close().await?, [Value::Null; 0], "nothing is said of a call given up");
    Ok(())
}

#[tokio::test]
async fn testing_is_a_server_as_well() -> Result {
    check(env!("CARGO_BIN_EXE_testing"), "divide", json!({ "a": 1, "b": 8 }), 0, "0.125").await
}
