//! What a server gets to hear, for everything a provider can answer.

use super::site::*;
use bowline_client::{Client, memory};
use bowline_models::SampleErrorKind;
use bowline_server::{Ctx, Server, Tool};
use bowline_types::{Adapt, Revision};
use expect_test::{Expect, expect};

async fn open_ai(answer: String, expected: Expect) {
    let site = Site::new([reply(200, answer)]).await;
    let result = sample(&broker(site.open_ai()), hello()).await.unwrap();
    expected.assert_eq(&serde_json::to_string(&result).unwrap());
}

async fn anthropic(answer: String, expected: Expect) {
    let site = Site::new([reply(200, answer)]).await;
    let result = sample(&broker(site.anthropic()), hello()).await.unwrap();
    expected.assert_eq(&serde_json::to_string(&result).unwrap());
}

#[tokio::test]
async fn text_is_one_block() {
    // proves: SAMP-09
    open_ai(said("Hello!"), expect![[r#"{"role":"assistant","content":{"type":"text","text":"Hello!"},"model":"m-1-2025","stopReason":"endTurn"}"#]]).await;
    anthropic(message_said("Hello!"), expect![[r#"{"role":"assistant","content":{"type":"text","text":"Hello!"},"model":"m-1-2025","stopReason":"endTurn"}"#]]).await;
}

#[tokio::test]
async fn every_stop_reason_is_reported() {
    let text = r#"{"role":"assistant","content":"x"}"#;
    for (reason, expected) in [
        ("stop", "endTurn"),
        ("length", "maxTokens"),
        ("content_filter", "content_filter"),
        ("something_new", "something_new"),
    ] {
        let site = Site::new([reply(200, completion(text, reason))]).await;
        let result = sample(&broker(site.open_ai()), hello()).await.unwrap();
        assert_eq!(result.stop_reason.unwrap().as_str(), expected);
    }
    for (reason, expected) in [
        ("end_turn", "endTurn"),
        ("stop_sequence", "stopSequence"),
        ("max_tokens", "maxTokens"),
        ("tool_use", "toolUse"),
        ("pause_turn", "pause_turn"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "model_context_window_exceeded"),
    ] {
        let site = Site::new([reply(200, message(r#"[{"type":"text","text":"x"}]"#, reason))]).await;
        let result = sample(&broker(site.anthropic()), hello()).await.unwrap();
        assert_eq!(result.stop_reason.unwrap().as_str(), expected);
    }
    // vLLM tells the sequence that was met.
    let met = r#"{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop","stop_reason":"END"}]}"#;
    let site = Site::new([reply(200, met)]).await;
    let result = sample(&broker(site.open_ai()), hello()).await.unwrap();
    assert_eq!(result.stop_reason.unwrap().as_str(), "stopSequence");
}

const CALLS: &str = r#"{"role":"assistant","content":"Let me see.","refusal":null,"tool_calls":[{"id":"call_abc","type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Paris\", \"days\": 1.50}"}},{"id":"","type":"function","function":{"name":"now","arguments":""}},{"id":"call_o","function":{"name":"odd","arguments":{"b":1,"a":2}}}]}"#;

#[tokio::test]
async fn calls_of_tools_are_blocks_with_their_input_as_it_was_written() {
    open_ai(completion(CALLS, "tool_calls"), expect![[r#"{"role":"assistant","content":[{"type":"text","text":"Let me see."},{"type":"tool_use","id":"call_abc","name":"get_weather","input":{"city": "Paris", "days": 1.50}},{"type":"tool_use","id":"unnamed_1","name":"now","input":{}},{"type":"tool_use","id":"call_o","name":"odd","input":{"b":1,"a":2}}],"model":"m-1-2025","stopReason":"toolUse"}"#]]).await;
    // Some providers say `stop` even so.
    open_ai(completion(CALLS, "stop"), expect![[r#"{"role":"assistant","content":[{"type":"text","text":"Let me see."},{"type":"tool_use","id":"call_abc","name":"get_weather","input":{"city": "Paris", "days": 1.50}},{"type":"tool_use","id":"unnamed_1","name":"now","input":{}},{"type":"tool_use","id":"call_o","name":"odd","input":{"b":1,"a":2}}],"model":"m-1-2025","stopReason":"toolUse"}"#]]).await;
    let content = r#"[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"Let me see."},{"type":"tool_use","id":"toolu_01D7FLrfh4GYq7yT1ULFeyMV","name":"get_weather","input":{"city":"Paris","days":1.50}}]"#;
    anthropic(message(content, "tool_use"), expect![[r#"{"role":"assistant","content":[{"type":"text","text":"Let me see."},{"type":"tool_use","id":"toolu_01D7FLrfh4GYq7yT1ULFeyMV","name":"get_weather","input":{"city":"Paris","days":1.50}}],"model":"m-1-2025","stopReason":"toolUse"}"#]]).await;
}

#[tokio::test]
async fn a_truncated_call_is_not_a_call() {
    let cut = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"t","arguments":"{\"city\": \"Pa"}}]}"#;
    open_ai(completion(cut, "length"), expect![[r#"{"role":"assistant","content":{"type":"text","text":""},"model":"m-1-2025","stopReason":"maxTokens"}"#]]).await;
    let site = Site::new([reply(200, completion(cut, "tool_calls"))]).await;
    let error = sample(&broker(site.open_ai()), hello()).await.unwrap_err();
    assert_eq!(error.kind(), SampleErrorKind::Malformed);
}

#[tokio::test]
async fn no_output_is_an_empty_text() {
    open_ai(completion(r#"{"role":"assistant","content":null}"#, "stop"), expect![[r#"{"role":"assistant","content":{"type":"text","text":""},"model":"m-1-2025","stopReason":"endTurn"}"#]]).await;
    anthropic(message("[]", "end_turn"), expect![[r#"{"role":"assistant","content":{"type":"text","text":""},"model":"m-1-2025","stopReason":"endTurn"}"#]]).await;
}

#[tokio::test]
async fn a_refusal_is_reported_as_one() {
    let refusal = r#"{"role":"assistant","content":null,"refusal":"I cannot help with that."}"#;
    open_ai(completion(refusal, "stop"), expect![[r#"{"role":"assistant","content":{"type":"text","text":"I cannot help with that."},"model":"m-1-2025","stopReason":"refusal"}"#]]).await;
}

#[tokio::test]
async fn an_answer_in_pieces_is_one_text() {
    let pieces = r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"thinking"},{"type":"text","text":"b"}]}"#;
    open_ai(completion(pieces, "stop"), expect![[r#"{"role":"assistant","content":{"type":"text","text":"ab"},"model":"m-1-2025","stopReason":"endTurn"}"#]]).await;
}

#[tokio::test]
async fn a_minimal_provider_response_is_enough() {
    open_ai(
        r#"{"choices":[{"message":{"content":"x"}}]}"#.into(),
        expect![[r#"{"role":"assistant","content":{"type":"text","text":"x"},"model":"m-1"}"#]],
    )
    .await;
    anthropic(
        r#"{"content":[{"type":"text","text":"x"}]}"#.into(),
        expect![[r#"{"role":"assistant","content":{"type":"text","text":"x"},"model":"m-1"}"#]],
    )
    .await;
}

#[tokio::test]
async fn tools_round_trip() {
    // A server asks with tools, calls what the model wants, and asks again with everything that was said.
    let first = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":1,\"b\":2}"}}]}"#;
    let site = Site::new([reply(200, completion(first, "tool_calls")), reply(200, said("3"))]).await;
    let broker = broker(site.open_ai());
    let mut request = hello();
    request.tools = serde_json::from_str(r#"[{"name":"add","inputSchema":{"type":"object"}}]"#).unwrap();
    let called = sample(&broker, request.clone()).await.unwrap();
    request.messages.push(bowline_types::SamplingMessage::new(called.role, called.content));
    let result = r#"{"role":"user","content":{"type":"tool_result","toolUseId":"call_1","content":[{"type":"text","text":"3"}]}}"#;
    request.messages.push(serde_json::from_str(result).unwrap());
    let last = sample(&broker, request).await.unwrap();
    assert_eq!(last.content.as_slice()[0].as_text(), Some("3"));
    expect![[r#"{"model":"m-1","messages":[{"role":"user","content":"hello"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":1,\"b\":2}"}}]},{"role":"tool","tool_call_id":"call_1","content":"3"}],"max_tokens":100,"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object"}}}],"tool_choice":"auto"}"#]].assert_eq(&site.seen()[1].body);
}

#[tokio::test]
async fn every_revision_can_carry_the_answer() {
    let site = Site::new([reply(200, completion(CALLS, "tool_calls"))]).await;
    let result = sample(&broker(site.open_ai()), hello()).await.unwrap();
    for revision in Revision::ALL {
        let mut adapted = result.clone();
        adapted.adapt(revision);
        let several = revision >= Revision::V2025_11_25;
        assert_eq!(adapted.content.as_slice().len(), if several { 4 } else { 1 });
        assert_eq!(adapted.stop_reason.unwrap().as_str(), if several { "toolUse" } else { "endTurn" });
    }
}

#[tokio::test]
async fn a_client_of_any_revision_answers_its_server_with_the_broker() {
    // proves: SAMP-13
    for revision in Revision::ALL {
        let site =
            Site::new([reply(200, said("because")), reply(500, "oops").header("x-should-retry", "false")])
                .await;
        let broker = broker(site.open_ai());
        let why = Tool::new("why").handler(|ctx: Ctx| async move {
            let result = ctx.sample(hello()).await?;
            Ok::<_, bowline_server::Error>(
                result.content.as_slice()[0].as_text().unwrap_or_default().to_owned(),
            )
        });
        let server = Server::new("tickets").tool(why).build().unwrap();
        let (end, theirs) = memory();
        let serving = tokio::spawn(async move { drop(server.serve(theirs.read, theirs.write).await) });
        let builder = Client::builder().on_sample(broker.handler("tickets")).sample_with_tools();
        let client = builder.revisions([revision]).connect(end).await.unwrap();
        assert_eq!(client.call("why", ()).await.unwrap().text(), "because");
        assert_eq!(broker.usage("tickets").output_tokens, 10);
        // A legacy server hears of it and says so; a modern one is not asked again.
        let error = match client.call("why", ()).await {
            Ok(called) => called.text(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains("the model provider failed"), "{revision}: {error}");
        assert_eq!(site.bodies()[0]["messages"], site.bodies()[1]["messages"]);
        client.close().await;
        serving.await.unwrap();
    }
}
