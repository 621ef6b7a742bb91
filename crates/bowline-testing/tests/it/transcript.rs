//! Transcripts: what holds, and how a difference is reported.

use bowline_server::{Server, Tool};
use bowline_testing::{Peer, Transcript, transcript::Ignore};
use serde_json::json;
use tokio::io::sink;

const HEAD: &str = "It is as written.\n\nserver: any\n";

/// Runs a conversation whose server sends `said`, whatever it receives.
async fn run(sections: &str, said: &'static str) -> Result<(), String> {
    let transcript = Transcript::parse("t.txtar", &format!("{HEAD}{sections}")).unwrap();
    let connect = || Ok(Peer::over(said.as_bytes(), sink()));
    transcript.run(None, connect).await.map_err(|error| error.to_string())
}

async fn check(sections: &str, said: &'static str, reasons: &[&str]) {
    let error = run(sections, said).await.unwrap_err();
    for reason in reasons {
        assert!(error.contains(reason), "expected `{reason}` in:\n{error}");
    }
}

#[tokio::test]
async fn frames_match_as_written() {
    run("-- server --\n{\"a\":1}\n{\"b\":\"<any>\"}\n", "{\"a\":1}\n{\"b\":[]}\n").await.unwrap();
    run("-- server unordered --\n{\"b\":2}\n{\"a\":1}\n", "{\"a\":1}\n{\"b\":2}\n").await.unwrap();
    run("-- client closes --\n-- server --\n{\"a\":1}\n", "{\"a\":1}\n").await.unwrap();
}

#[tokio::test]
async fn a_difference_names_line_and_place() {
    check(
        "-- client --\n{\"id\":1}\n-- server --\n{\"a\":{\"b\":1}}\n",
        "{\"a\":{\"b\":2}}\n",
        &[
            "t.txtar:7: the server's frame differs",
            "/a/b: expected 1, got 2",
            "> {\"id\":1}",
            "< {\"a\":{\"b\":2}}",
        ],
    )
    .await;
}

#[tokio::test]
async fn the_order_matters_except_in_unordered_sections() {
    check("-- server --\n{\"b\":2}\n{\"a\":1}\n", "{\"a\":1}\n{\"b\":2}\n", &["t.txtar:5:"]).await;
    check(
        "-- server unordered --\n{\"b\":2}\n{\"a\":1}\n",
        "{\"a\":1}\n{\"c\":2}\n",
        &["matches none of the expected ones: {\"c\":2}", "line 5: {\"b\":2}"],
    )
    .await;
}

#[tokio::test]
async fn too_few_and_too_many_frames_are_reported() {
    check(
        "-- server --\n{\"a\":1}\n{\"b\":2}\n",
        "{\"a\":1}\n",
        &["t.txtar:6: waiting for {\"b\":2}", "closed"],
    )
    .await;
    check(
        "-- server --\n{\"a\":1}\n",
        "{\"a\":1}\n{\"b\":2}\n",
        &["unexpected frames from the server", "{\"b\":2}"],
    )
    .await;
}

#[tokio::test]
async fn uncaptured_values_cannot_be_used() {
    check("-- client --\n{\"id\":\"<use:x>\"}\n", "", &["t.txtar:5: nothing was captured as `x`"]).await;
}

#[tokio::test]
async fn a_conversation_runs_once_per_revision() {
    let text = "Each revision has pings.\n\nserver: any\nrevision: legacy\n\n\
        -- client --\n{\"jsonrpc\":\"2.0\",\"id\":\"<use:revision>\",\"method\":\"ping\"}\n\
        -- server --\n{\"jsonrpc\":\"2.0\",\"id\":\"<use:revision>\",\"result\":{}}\n";
    let transcript = Transcript::parse("t.txtar", text).unwrap();
    let mut conversations = 0;
    transcript
        .run(None, || {
            conversations += 1;
            Peer::memory(Server::new("demo"))
        })
        .await
        .unwrap();
    assert_eq!(conversations, 4);
}

#[tokio::test]
async fn a_failing_revision_is_named() {
    let text = "No revision has this.\n\nserver: any\nrevision: 2025-06-18\n\n-- server --\n{}\n";
    let server = || {
        Server::new("demo")
            .tool(Tool::new("x").handler(|| "x"))
            .revisions([bowline_types::Revision::V2024_11_05])
    };
    let transcript = Transcript::parse("t.txtar", text).unwrap();
    let error = transcript.run(None, || Peer::memory(server())).await.unwrap_err().to_string();
    assert!(error.contains("in 2025-06-18: the server's frame differs"), "{error}");
    assert!(
        error.contains("/result/protocolVersion: expected \"2025-06-18\", got \"2024-11-05\""),
        "{error}"
    );
}

const RECORDED: &str = r#"
-- client --
{"id":1,"method":"a"}
-- server --
{"id":7,"method":"ask"}
-- client --
{"id":7,"result":"yes"}
-- server --
{"id":1,"result":{"requestState":"then"}}
-- client --
{"id":2,"method":"b","params":{"requestState":"then"}}
-- server --
{"id":2,"result":1}
{"method":"gone"}
"#;

#[tokio::test]
async fn a_recording_is_replayed_with_the_ids_and_states_of_this_conversation() {
    let transcript = Transcript::parse("t.txtar", &format!("{HEAD}{RECORDED}")).unwrap();
    let (client, end) = Peer::pair();
    let (read, write) = tokio::io::split(end);
    let mut server = Peer::over(read, write);
    let serve = async move {
        let call = server.recv_method("a").await?;
        server.send(json!({ "id": "other", "method": "ask" })).await?;
        let answer = server.recv().await?;
        assert_eq!(answer, json!({ "id": "other", "result": "yes" }));
        server.send(json!({ "id": call["id"], "result": { "requestState": "now" } })).await?;
        let call = server.recv_method("b").await?;
        assert_eq!(call["params"]["requestState"], "now");
        server.send(json!({ "id": call["id"], "result": 2 })).await?;
        server.send(json!({ "method": "new" })).await?;
        server.close_sending().await;
        Ok::<_, bowline_testing::Error>(server)
    };
    let ignore = Ignore::default();
    let (found, served) = tokio::join!(transcript.replay(client, &ignore), serve);
    served.unwrap();
    let differences: Vec<String> =
        found.unwrap().iter().map(|difference| format!("{}: {difference}", difference.line)).collect();
    expect_test::expect![[r#"
        16: `b` differs
          /result: expected 1, got 2
        17: `gone` is missing
          the connection is closed
        17: `new` was not recorded
          {"method":"new"}"#]]
    .assert_eq(&differences.join("\n"));
}
