//! What a provider is sent, for everything a server can ask.

use super::site::*;
use bowline_models::{Asker, Model, SampleErrorKind, Settings};
use bowline_types::error_code;
use expect_test::{Expect, expect};

async fn open_ai(request: &str, expected: Expect) {
    let site = Site::new([reply(200, said("ok"))]).await;
    sample(&broker(site.open_ai()), params(request)).await.unwrap();
    expected.assert_eq(&site.seen()[0].body);
}

async fn anthropic(request: &str, expected: Expect) {
    let site = Site::new([reply(200, message_said("ok"))]).await;
    sample(&broker(site.anthropic()), params(request)).await.unwrap();
    expected.assert_eq(&site.seen()[0].body);
}

/// What both kinds of providers say to a request that they cannot be given.
async fn unfit(request: &str, open_ai: Option<Expect>, anthropic: Option<Expect>) {
    let site = Site::new([]).await;
    for (provider, expected) in [(site.open_ai(), open_ai), (site.anthropic(), anthropic)] {
        let Some(expected) = expected else { continue };
        let error = sample(&broker(provider), params(request)).await.unwrap_err();
        assert_eq!(error.kind(), SampleErrorKind::Invalid);
        assert_eq!(error.to_rpc().code, error_code::INVALID_PARAMS);
        expected.assert_eq(&error.to_rpc().message);
    }
    assert!(site.seen().is_empty());
}

const PLAIN: &str = r#"{
    "messages": [{ "role": "user", "content": { "type": "text", "text": "What is the capital of France?" } }],
    "systemPrompt": "You are helpful.", "temperature": 0.5, "maxTokens": 100, "stopSequences": ["END"],
    "metadata": { "user": "ann", "user_id": "u-1", "n": 50, "model": "dear", "seed": 7, "top_k": 5 },
    "includeContext": "thisServer"
}"#;

#[tokio::test]
async fn a_plain_question_becomes_a_chat_completion() {
    open_ai(PLAIN, expect![[r#"{"model":"m-1","messages":[{"role":"system","content":"You are helpful."},{"role":"user","content":"What is the capital of France?"}],"max_tokens":100,"temperature":0.5,"stop":["END"],"seed":7,"user":"ann"}"#]]).await;
}

#[tokio::test]
async fn a_plain_question_becomes_a_message() {
    anthropic(PLAIN, expect![[r#"{"model":"m-1","max_tokens":100,"system":"You are helpful.","messages":[{"role":"user","content":[{"type":"text","text":"What is the capital of France?"}]}],"temperature":0.5,"stop_sequences":["END"],"metadata":{"user_id":"u-1"},"top_k":5}"#]]).await;
}

#[tokio::test]
async fn requests_go_to_the_path_of_the_api_with_its_headers() {
    let site = Site::new([reply(200, said("ok")), reply(200, message_said("ok"))]).await;
    sample(&broker(site.open_ai()), hello()).await.unwrap();
    sample(&broker(site.anthropic().version("2024-10-22")), hello()).await.unwrap();
    let seen = site.seen();
    assert_eq!(seen[0].path, "/v1/chat/completions");
    assert_eq!(seen[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(seen[0].header("content-type"), Some("application/json"));
    assert_eq!(seen[0].header("x-api-key"), None);
    assert_eq!(seen[1].path, "/v1/messages");
    assert_eq!(seen[1].header("x-api-key"), Some(KEY));
    assert_eq!(seen[1].header("anthropic-version"), Some("2024-10-22"));
    assert_eq!(seen[1].header("authorization"), None);
}

/// A conversation with everything in it: media, several blocks, tool calls, results of every kind.
const TOOLS: &str = r#"{
    "messages": [
        { "role": "user", "content": [
            { "type": "text", "text": "What is in this picture," },
            { "type": "image", "data": "iVBORw0=", "mimeType": "image/png" },
            { "type": "text", "text": "and what is the weather there?" }
        ] },
        { "role": "assistant", "content": [
            { "type": "text", "text": "Let me look." },
            { "type": "tool_use", "id": "call_1", "name": "get.weather", "input": { "city": "Paris", "days": 1.50 } },
            { "type": "tool_use", "id": "call:2", "name": "photo", "input": {} },
            { "type": "tool_use", "id": "call_3", "name": "photo", "input": {} }
        ] },
        { "role": "user", "content": [
            { "type": "tool_result", "toolUseId": "call_1", "content": [
                { "type": "text", "text": "18 degrees" },
                { "type": "resource_link", "uri": "https://w.example/paris", "name": "paris", "title": "Paris" },
                { "type": "resource", "resource": { "uri": "w://1", "text": "cloudy" } }
            ] },
            { "type": "tool_result", "toolUseId": "call:2", "content": [
                { "type": "image", "data": "R0lGOD==", "mimeType": "image/gif" }
            ], "isError": false },
            { "type": "tool_result", "toolUseId": "call_3", "content": [], "structuredContent": { "b": 1, "a": 2 },
              "isError": true }
        ] }
    ],
    "tools": [
        { "name": "get.weather", "title": "Weather", "description": "Looks out of the window",
          "inputSchema": { "type": "object", "properties": { "city": { "type": "string" }, "days": {} } } },
        { "name": "photo", "inputSchema": { "type": "object" } }
    ],
    "toolChoice": { "mode": "required" },
    "maxTokens": 1000
}"#;

#[tokio::test]
async fn a_conversation_with_tools_becomes_a_chat_completion() {
    open_ai(TOOLS, expect![[r#"{"model":"m-1","messages":[{"role":"user","content":[{"type":"text","text":"What is in this picture,"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0="}},{"type":"text","text":"and what is the weather there?"}]},{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather_1","arguments":"{ \"city\": \"Paris\", \"days\": 1.50 }"}},{"id":"call_2_1","type":"function","function":{"name":"photo","arguments":"{}"}},{"id":"call_3","type":"function","function":{"name":"photo","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"18 degrees\n[Paris](https://w.example/paris)\ncloudy"},{"role":"tool","tool_call_id":"call_2_1","content":"[image/gif, attached below]"},{"role":"tool","tool_call_id":"call_3","content":"The tool failed: { \"b\": 1, \"a\": 2 }"},{"role":"user","content":[{"type":"text","text":"Attached to the result of the call call_2_1:"},{"type":"image_url","image_url":{"url":"data:image/gif;base64,R0lGOD=="}}]}],"max_tokens":1000,"tools":[{"type":"function","function":{"name":"get_weather_1","description":"Looks out of the window","parameters":{ "type": "object", "properties": { "city": { "type": "string" }, "days": {} } }}},{"type":"function","function":{"name":"photo","parameters":{ "type": "object" }}}],"tool_choice":"required"}"#]]).await;
}

#[tokio::test]
async fn a_conversation_with_tools_becomes_messages() {
    anthropic(TOOLS, expect![[r#"{"model":"m-1","max_tokens":1000,"messages":[{"role":"user","content":[{"type":"text","text":"What is in this picture,"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0="}},{"type":"text","text":"and what is the weather there?"}]},{"role":"assistant","content":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"call_1","name":"get_weather_1","input":{ "city": "Paris", "days": 1.50 }},{"type":"tool_use","id":"call_2_1","name":"photo","input":{}},{"type":"tool_use","id":"call_3","name":"photo","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"18 degrees"},{"type":"text","text":"[Paris](https://w.example/paris)"},{"type":"text","text":"cloudy"}]},{"type":"tool_result","tool_use_id":"call_2_1","content":[{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"R0lGOD=="}}]},{"type":"tool_result","tool_use_id":"call_3","content":[{"type":"text","text":"{ \"b\": 1, \"a\": 2 }"}],"is_error":true}]}],"tools":[{"name":"get_weather_1","description":"Looks out of the window","input_schema":{ "type": "object", "properties": { "city": { "type": "string" }, "days": {} } }},{"name":"photo","input_schema":{ "type": "object" }}],"tool_choice":{"type":"any"}}"#]]).await;
}

#[tokio::test]
async fn every_tool_choice_is_forwarded() {
    // proves: SAMP-21
    for (choice, open_ai, anthropic) in [
        (r#"{"mode":"auto"}"#, "auto", "auto"),
        ("{}", "auto", "auto"),
        (r#"{"mode":"required"}"#, "required", "any"),
        (r#"{"mode":"none"}"#, "none", "none"),
    ] {
        let mut request = hello();
        request.tools = serde_json::from_str(r#"[{"name":"t","inputSchema":{"type":"object"}}]"#).unwrap();
        request.tool_choice = serde_json::from_str(choice).unwrap();
        let site = Site::new([reply(200, said("ok")), reply(200, message_said("ok"))]).await;
        sample(&broker(site.open_ai()), request.clone()).await.unwrap();
        sample(&broker(site.anthropic()), request).await.unwrap();
        let bodies = site.bodies();
        assert_eq!(bodies[0]["tool_choice"], open_ai);
        assert_eq!(bodies[1]["tool_choice"]["type"], anthropic);
    }
    // Without tools, both APIs refuse a choice.
    let mut request = hello();
    request.tool_choice = serde_json::from_str(r#"{"mode":"none"}"#).unwrap();
    let site = Site::new([reply(200, said("ok")), reply(200, message_said("ok"))]).await;
    sample(&broker(site.open_ai()), request.clone()).await.unwrap();
    sample(&broker(site.anthropic()), request).await.unwrap();
    assert!(site.bodies().iter().all(|body| body.get("tool_choice").is_none()));
    let required = r#"{"messages":[{"role":"user","content":{"type":"text","text":"x"}}],"maxTokens":1,"toolChoice":{"mode":"required"}}"#;
    let none = || Some(expect!["`toolChoice` requires a tool, but there are none"]);
    unfit(required, none(), none()).await;
}

fn one(block: &str) -> String {
    format!(r#"{{"messages":[{{"role":"user","content":{block}}}],"maxTokens":9}}"#)
}

#[tokio::test]
async fn audio_is_sent_to_models_that_support_it() {
    let wav = one(r#"{"type":"audio","data":"UklGRg==","mimeType":"audio/x-wav"}"#);
    open_ai(&wav, expect![[r#"{"model":"m-1","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}}]}],"max_tokens":9}"#]]).await;
    unfit(&wav, None, Some(expect!["the model does not support audio"])).await;
    let ogg = one(r#"{"type":"audio","data":"T2dnUw==","mimeType":"audio/ogg"}"#);
    unfit(&ogg, Some(expect!["unsupported audio type `audio/ogg`; expected WAV or MP3"]), None).await;
    let mpeg = one(r#"{"type":"audio","data":"SUQz","mimeType":"audio/mpeg"}"#);
    open_ai(&mpeg, expect![[r#"{"model":"m-1","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"SUQz","format":"mp3"}}]}],"max_tokens":9}"#]]).await;
}

#[tokio::test]
async fn unsupported_content_is_refused_with_the_reason() {
    // proves: SAMP-33
    let tiff = one(r#"{"type":"image","data":"SUkq","mimeType":"image/tiff"}"#);
    unfit(&tiff, None, Some(expect!["unsupported image type `image/tiff`; expected JPEG, PNG, GIF or WebP"]))
        .await;
    let odd = one(r#"{"type":"image","data":"not base64!","mimeType":"image/png"}"#);
    let data = || Some(expect!["expected the data of `image/png` to be Base64"]);
    unfit(&odd, data(), data()).await;
    let video = one(r#"{"type":"video","data":"x"}"#);
    let unknown = || Some(expect!["unknown content type `video`"]);
    unfit(&video, unknown(), unknown()).await;
    let own = r#"{"messages":[{"role":"assistant","content":{"type":"image","data":"SUkq","mimeType":"image/png"}}],"maxTokens":9}"#;
    let words = || Some(expect!["an assistant message cannot contain an image"]);
    unfit(own, words(), words()).await;
    let empty = || Some(expect!["there is no content to send to the model"]);
    unfit(r#"{"messages":[],"maxTokens":9}"#, empty(), empty()).await;
    let zero = || Some(expect!["expected `maxTokens` to be at least 1"]);
    unfit(
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"x"}}],"maxTokens":0}"#,
        zero(),
        zero(),
    )
    .await;
}

#[tokio::test]
async fn tool_results_must_follow_their_calls() {
    // proves: SAMP-18, SAMP-19
    let call = r#"{"role":"assistant","content":{"type":"tool_use","id":"1","name":"t","input":{}}}"#;
    let result = r#"{"type":"tool_result","toolUseId":"1","content":[]}"#;
    let ask = |rest: &str| format!(r#"{{"messages":[{call},{rest}],"maxTokens":9}}"#);
    let mixed = ask(&format!(r#"{{"role":"user","content":[{result},{{"type":"text","text":"x"}}]}}"#));
    unfit(&mixed, Some(expect!["a message with tool results must not contain other content"]), None).await;
    let missing = ask(r#"{"role":"user","content":{"type":"text","text":"x"}}"#);
    unfit(&missing, Some(expect!["the tool use `1` is not followed by its result"]), None).await;
}

#[tokio::test]
async fn messages_of_one_role_are_joined_if_roles_must_alternate() {
    let request = r#"{"messages":[
        {"role":"user","content":{"type":"text","text":"one"}},
        {"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"two"}]},
        {"role":"assistant","content":{"type":"text","text":" \n"}},
        {"role":"user","content":{"type":"text","text":"three"}},
        {"role":"assistant","content":{"type":"text","text":"The answer is \n"}}
    ],"maxTokens":9}"#;
    anthropic(request, expect![[r#"{"model":"m-1","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"},{"type":"text","text":"three"}]},{"role":"assistant","content":[{"type":"text","text":"The answer is"}]}]}"#]]).await;
    open_ai(request, expect![[r#"{"model":"m-1","messages":[{"role":"user","content":"one"},{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"two"}]},{"role":"assistant","content":" \n"},{"role":"user","content":"three"},{"role":"assistant","content":"The answer is \n"}],"max_tokens":9}"#]]).await;
}

#[tokio::test]
async fn names_and_identifiers_beyond_the_rules_of_the_api_are_replaced() {
    let long = "x".repeat(100);
    let request = format!(
        r#"{{"messages":[
            {{"role":"user","content":{{"type":"text","text":"go"}}}},
            {{"role":"assistant","content":{{"type":"tool_use","id":"{long}","name":"a/b","input":{{}}}}}},
            {{"role":"user","content":{{"type":"tool_result","toolUseId":"{long}","content":[]}}}}
        ],"maxTokens":9,"tools":[
            {{"name":"a.b","inputSchema":{{"type":"object"}}}},
            {{"name":"a/b","inputSchema":{{"type":"object"}}}},
            {{"name":"{long}","inputSchema":{{"type":"object"}}}}
        ]}}"#
    );
    let called = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_9","type":"function","function":{"name":"a_b_2","arguments":"{}"}}]}"#;
    let site = Site::new([reply(200, completion(called, "tool_calls"))]).await;
    let result = sample(&broker(site.open_ai()), params(&request)).await.unwrap();
    let body = &site.bodies()[0];
    let names: Vec<_> =
        body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["a_b_1", "a_b_2", &format!("{}_1", "x".repeat(62))]);
    assert_eq!(body["messages"][1]["tool_calls"][0]["function"]["name"], "a_b_2");
    let id = body["messages"][1]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(id.len(), 40);
    assert_eq!(body["messages"][2]["tool_call_id"], id);
    // The server hears of its own name for it.
    let bowline_types::ContentBlock::ToolUse(call) = &result.content.as_slice()[0] else {
        panic!("{result:?}")
    };
    assert_eq!((call.name.as_str(), call.id.as_str()), ("a/b", "call_9"));
}

#[tokio::test]
async fn stop_sequences_beyond_the_limit_of_the_api_are_applied_locally() {
    let mut request = hello();
    request.stop_sequences = Some(["a", "b", "c", "d", "STOP"].map(str::to_owned).to_vec());
    let site = Site::new([reply(200, said("go on STOP here"))]).await;
    let result = sample(&broker(site.open_ai()), request).await.unwrap();
    assert_eq!(site.bodies()[0]["stop"], serde_json::json!(["a", "b", "c", "d"]));
    assert_eq!(result.content.as_slice()[0].as_text(), Some("go on "));
    assert_eq!(result.stop_reason, Some(bowline_types::StopReason::StopSequence));
    let mut request = hello();
    request.stop_sequences = Some(vec!["\n\n".into(), "END".into()]);
    let site = Site::new([reply(200, message_said("one\\n\\ntwo"))]).await;
    let result = sample(&broker(site.anthropic()), request).await.unwrap();
    assert_eq!(site.bodies()[0]["stop_sequences"], serde_json::json!(["END"]));
    assert_eq!(result.content.as_slice()[0].as_text(), Some("one"));
}

#[tokio::test]
async fn temperatures_are_limited_to_the_range_of_the_api() {
    for (given, open_ai, anthropic) in [(0.3, 0.3, 0.3), (1.5, 1.5, 1.0), (9.0, 2.0, 1.0), (-1.0, 0.0, 0.0)] {
        let mut request = hello();
        request.temperature = Some(given);
        let site = Site::new([reply(200, said("ok")), reply(200, message_said("ok"))]).await;
        sample(&broker(site.open_ai()), request.clone()).await.unwrap();
        sample(&broker(site.anthropic()), request).await.unwrap();
        let temperatures: Vec<_> =
            site.bodies().iter().map(|body| body["temperature"].as_f64().unwrap()).collect();
        assert_eq!(temperatures, [open_ai, anthropic]);
    }
}

#[tokio::test]
async fn context_is_included_when_it_is_asked_for_and_there_is_some() {
    // proves: SAMP-24
    for (wish, context, expected) in [
        (Some("thisServer"), Some("Tickets: 3 open."), Some("Tickets: 3 open.\n\nBe brief.")),
        (Some("allServers"), Some("Tickets: 3 open."), Some("Tickets: 3 open.\n\nBe brief.")),
        (Some("none"), Some("Tickets: 3 open."), Some("Be brief.")),
        (None, Some("Tickets: 3 open."), Some("Be brief.")),
        (Some("thisServer"), None, Some("Be brief.")),
    ] {
        let mut request = hello();
        request.system_prompt = Some("Be brief.".into());
        request.include_context = wish.map(|wish| serde_json::from_value(wish.into()).unwrap());
        let mut asker = Asker::new("tickets");
        if let Some(context) = context {
            asker = asker.context(context);
        }
        let site = Site::new([reply(200, message_said("ok"))]).await;
        broker(site.anthropic()).sample(asker, request).await.unwrap();
        assert_eq!(site.bodies()[0]["system"].as_str(), expected);
    }
}

#[tokio::test]
async fn the_model_that_was_chosen_is_asked_at_its_provider() {
    // proves: SAMP-34
    let (one, other) =
        (Site::new([reply(200, said("one"))]).await, Site::new([reply(200, message_said("other"))]).await);
    let named = |site: &Site| format!("http://{}/v1", site.address);
    let settings = Settings::new()
        .provider(bowline_models::Provider::open_ai("local").base_url(named(&one)))
        .provider(bowline_models::Provider::anthropic("far").base_url(named(&other)))
        .model(Model::new("local", "qwen3:8b").cost(1.0).intelligence(0.2))
        .model(Model::new("far", "claude-sonnet-5").alias("gpt-5").cost(0.2).intelligence(0.9));
    let broker = with(settings);
    let mut request = hello();
    request.model_preferences = serde_json::from_str(r#"{"costPriority":1}"#).unwrap();
    sample(&broker, request.clone()).await.unwrap();
    assert_eq!(one.bodies()[0]["model"], "qwen3:8b");
    assert_eq!(one.seen()[0].header("authorization"), None);
    request.model_preferences =
        serde_json::from_str(r#"{"hints":[{"name":"gpt-5"}],"costPriority":1}"#).unwrap();
    let result = sample(&broker, request).await.unwrap();
    assert_eq!(other.bodies()[0]["model"], "claude-sonnet-5");
    assert_eq!(result.model, "m-1-2025");
}

#[tokio::test]
async fn unsupported_parameters_are_omitted_and_remembered() {
    let refusal = |parameter: &str| {
        reply(
            400,
            format!(
                r#"{{"error":{{"message":"Unsupported parameter: '{parameter}' is not supported with this model.","type":"invalid_request_error","param":"{parameter}","code":"unsupported_parameter"}}}}"#
            ),
        )
    };
    let site = Site::new([
        refusal("max_tokens"),
        refusal("temperature"),
        refusal("stop"),
        reply(200, said("one END two")),
        reply(200, said("ok")),
    ])
    .await;
    let broker = broker(site.open_ai());
    let mut request = hello();
    request.temperature = Some(0.5);
    request.stop_sequences = Some(vec!["END".into()]);
    let result = sample(&broker, request.clone()).await.unwrap();
    assert_eq!(result.content.as_slice()[0].as_text(), Some("one "));
    sample(&broker, request).await.unwrap();
    let keys = |place: usize| {
        let mut keys: Vec<_> = site.bodies()[place].as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(keys(0), "max_tokens messages model stop temperature");
    assert_eq!(keys(3), "max_completion_tokens messages model");
    assert_eq!(keys(4), keys(3));
    assert_eq!(site.seen().len(), 5);
    // Anthropic says it in words alone.
    let deprecated = r#"{"type":"error","error":{"type":"invalid_request_error","message":"`temperature` is deprecated for this model."},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}"#;
    let site = Site::new([reply(400, deprecated), reply(200, message_said("ok"))]).await;
    let mut request = hello();
    request.temperature = Some(0.5);
    sample(&super::site::broker(site.anthropic()), request).await.unwrap();
    assert!(site.bodies()[1].get("temperature").is_none());
}
