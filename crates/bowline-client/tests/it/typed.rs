//! Calls, reads, prompts and completions, in their types.

use crate::support::*;
use bowline_client::Client;
use bowline_types::{ContentBlock, Reference, Revision};
use serde::Deserialize;
use serde_json::{Value, json};

/// Makes a request of a client of this revision, answers it, and gives the parameters it was made with.
macro_rules! exchange {
    ($revision:expr, $result:expr, |$client:ident| $request:expr) => {{
        let ($client, mut peer) = connect(Client::builder(), $revision, everything()).await;
        let (answer, params) = both($request, async {
            let request = peer.next().await;
            let result: Result<Value, i64> = $result;
            match result {
                Ok(result) => peer.reply(&request, result).await,
                Err(code) => peer.fail(&request, code, "no").await,
            }
            let mut params = request["params"].clone();
            params.as_object_mut().map(|params| params.remove("_meta"));
            (request["method"].clone(), params)
        })
        .await;
        (answer, params)
    }};
}

#[tokio::test(start_paused = true)]
async fn tools_are_called_with_objects() {
    // proves: TOOL-17, TOOL-11
    #[derive(serde::Serialize)]
    struct Add {
        a: i64,
        b: i64,
    }
    for revision in Revision::ALL {
        let done = || Ok(text_result("3"));
        let (called, sent) = exchange!(revision, done(), |client| client.call("Add", Add { a: 1, b: 2 }));
        assert_eq!(sent, (json!("tools/call"), json!({ "name": "Add", "arguments": { "a": 1, "b": 2 } })));
        assert_eq!(called.unwrap().json::<i64>().unwrap(), 3);
        let (_, sent) = exchange!(revision, done(), |client| client.call("add", ()));
        assert_eq!(sent.1, json!({ "name": "add" }));
    }
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, everything()).await;
    for wrong in [json!([1]), json!("x"), json!(1), json!(true)] {
        let error = client.call("add", wrong).await.unwrap_err().to_string();
        assert!(error.starts_with("expected the arguments to be an object"), "{error}");
    }
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_tool_is_a_result_or_an_error_with_its_text() {
    // proves: TOOL-32, TOOL-33
    let mut failed = text_result("the disk is full");
    failed["isError"] = json!(true);
    let result = || Ok(failed.clone());
    let (called, _) = exchange!(V2025_11_25, result(), |client| client.call("save", ()));
    let called = called.unwrap();
    assert!(called.is_error());
    assert_eq!(called.text(), "the disk is full");
    let error = called.ok().unwrap_err();
    assert!(error.is_tool());
    assert_eq!(error.to_string(), "the disk is full");
    let (error, _) = exchange!(V2025_11_25, result(), |client| client.call_as::<i64>("save", ()));
    assert_eq!(error.unwrap_err().to_string(), "the disk is full");
    let (error, _) = exchange!(V2025_11_25, Err(-32602), |client| client.call("save", ()));
    assert_eq!(error.unwrap_err().to_string(), "the server returned an error: no (-32602)");
}

#[tokio::test(start_paused = true)]
async fn structured_content_is_read_as_a_type() {
    // proves: TOOL-41
    #[derive(Debug, Deserialize, PartialEq)]
    struct Weather {
        degrees: f64,
    }
    let structured = |value: Value| Ok(json!({ "content": [], "structuredContent": value }));
    let (weather, _) = exchange!(V2025_11_25, structured(json!({ "degrees": 21.5 })), |client| client
        .call_as::<Weather>("w", ()));
    assert_eq!(weather.unwrap(), Weather { degrees: 21.5 });
    // Older servers say it in text.
    let (weather, _) = exchange!(V2024_11_05, Ok(text_result(r#"{"degrees":3}"#)), |client| client
        .call_as::<Weather>("w", ()));
    assert_eq!(weather.unwrap(), Weather { degrees: 3.0 });
    let (weather, _) =
        exchange!(V2025_11_25, structured(json!({})), |client| client.call_as::<Weather>("w", ()));
    assert!(weather.unwrap_err().is_malformed());
    let (null, _) = exchange!(V2026_07_28, structured(json!(null)), |client| client.call("w", ()));
    assert!(null.unwrap().structured.unwrap().is_null());
    let (absent, _) = exchange!(V2026_07_28, Ok(json!({ "content": [] })), |client| client.call("w", ()));
    assert_eq!(absent.unwrap().structured, None);
}

/// Lists one tool with an output schema, calls it, and gives what came of it.
#[cfg(feature = "validate")]
async fn call_with_schema(
    client: &Client,
    peer: &mut Peer,
    schema: Value,
    result: Value,
) -> Result<(), String> {
    let (tools, ()) = both(client.tools(), async {
        let request = peer.expect("tools/list").await;
        let tool = json!({ "name": "t", "inputSchema": { "type": "object" }, "outputSchema": schema });
        peer.reply(&request, json!({ "tools": [tool] })).await;
    })
    .await;
    tools.unwrap();
    let (called, ()) = both(client.call("t", ()), async {
        let request = peer.expect("tools/call").await;
        peer.reply(&request, result).await;
    })
    .await;
    called.map(drop).map_err(|error| error.to_string())
}

#[cfg(feature = "validate")]
#[tokio::test(start_paused = true)]
async fn structured_content_is_validated_against_its_schema() {
    // proves: TOOL-36, TOOL-51, JSON-01, JSON-02, JSON-03
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let structured = |value: Value| json!({ "content": [], "structuredContent": value });
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, everything()).await;
    let fine = call_with_schema(&client, &mut peer, schema.clone(), structured(json!({ "n": 1 }))).await;
    assert_eq!(fine, Ok(()));
    let wrong = call_with_schema(&client, &mut peer, schema.clone(), structured(json!({ "n": "1" }))).await;
    assert_eq!(
        wrong.unwrap_err(),
        "the result of tool `t` violates the protocol: /n: \"1\" is not of type \"integer\""
    );
    let missing = call_with_schema(&client, &mut peer, schema.clone(), text_result("n")).await;
    assert!(missing.unwrap_err().contains("`structuredContent` is missing"));
    let mut failed = text_result("no");
    failed["isError"] = json!(true);
    assert_eq!(call_with_schema(&client, &mut peer, schema.clone(), failed).await, Ok(()));
    // The default dialect has `prefixItems`; draft-07 says it with `items`.
    let tuple = |dialect: Option<&str>, keyword: &str| {
        let mut schema =
            json!({ "type": "object", "properties": { "t": { keyword: [{ "type": "string" }] } } });
        if let Some(dialect) = dialect {
            schema["$schema"] = json!(dialect);
        }
        schema
    };
    let draft_07 = Some("http://json-schema.org/draft-07/schema#");
    let numbers = structured(json!({ "t": [1] }));
    for (schema, fits) in [
        (tuple(None, "prefixItems"), false),
        (tuple(draft_07, "prefixItems"), true),
        (tuple(draft_07, "items"), false),
    ] {
        let called = call_with_schema(&client, &mut peer, schema.clone(), numbers.clone()).await;
        assert_eq!(called.is_ok(), fits, "{schema}");
    }
    let lax = Client::builder().strict_output(false);
    let (client, mut peer) = connect(lax, V2025_11_25, everything()).await;
    let passed = call_with_schema(&client, &mut peer, schema, structured(json!({ "n": "1" }))).await;
    assert_eq!(passed, Ok(()));
}

#[cfg(feature = "validate")]
#[tokio::test(start_paused = true)]
async fn unusable_schemas_are_errors() {
    // proves: JSON-04, JSON-08, JSON-09, JSON-11, JSON-12, JSON-15
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
    let mut deep = json!({});
    for _ in 0..70 {
        deep = json!({ "items": deep });
    }
    for (schema, reason) in [
        (
            json!({ "$schema": "https://example.com/mine" }),
            "the dialect `https://example.com/mine` is not supported",
        ),
        (json!({ "$ref": "http://127.0.0.1:9/schema.json" }), "is not followed"),
        (json!({ "$ref": "file:///etc/passwd" }), "is not followed"),
        (json!({ "type": 7 }), "the output schema of tool `t`"),
        (deep, "it nests deeper than 64"),
        (json!({ "description": "x".repeat(300_000) }), "it is longer than"),
    ] {
        let result = json!({ "content": [], "structuredContent": {} });
        let error = call_with_schema(&client, &mut peer, schema, result).await.unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_members_of_a_tool_are_kept() {
    // proves: JSON-13
    let schema = json!({ "type": "object", "$defs": { "a": { "$anchor": "x" } }, "if": { "not": {} }, "x-vendor": [1] });
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
    let (tools, ()) = both(client.tools(), async {
        let request = peer.expect("tools/list").await;
        peer.reply(
            &request,
            json!({ "tools": [{ "name": "t", "inputSchema": schema, "later": { "a": 1 } }] }),
        )
        .await;
    })
    .await;
    let tool = serde_json::to_value(&tools.unwrap()[0]).unwrap();
    assert_eq!(tool, json!({ "name": "t", "inputSchema": schema, "later": { "a": 1 } }));
}

#[tokio::test(start_paused = true)]
async fn resources_are_read_by_their_uri() {
    // proves: RES-06, TOOL-24
    for revision in Revision::ALL {
        let contents = json!({ "contents": [{ "uri": "a:b", "text": "x" }] });
        let (read, sent) = exchange!(revision, Ok(contents), |client| client.read("a:b"));
        assert_eq!(sent, (json!("resources/read"), json!({ "uri": "a:b" })));
        assert_eq!(read.unwrap().contents[0].uri(), "a:b");
    }
    // A link that no list shows leads to its resource all the same.
    let link = json!({ "content": [{ "type": "resource_link", "uri": "a:hidden", "name": "h" }] });
    let (called, _) = exchange!(V2025_06_18, Ok(link), |client| client.call("t", ()));
    let ContentBlock::ResourceLink(link) = called.unwrap().content.remove(0) else {
        panic!("expected a link")
    };
    let (read, sent) = exchange!(V2025_06_18, Ok(json!({ "contents": [] })), |client| client.read(link.uri));
    read.unwrap();
    assert_eq!(sent.1, json!({ "uri": "a:hidden" }));
}

#[tokio::test(start_paused = true)]
async fn a_missing_resource_has_the_error_of_each_revision() {
    // proves: RES-14
    for revision in Revision::ALL {
        let (read, _) = exchange!(revision, Err(-32002), |client| client.read("a:b"));
        assert!(read.unwrap_err().is_resource_not_found());
        let (read, _) = exchange!(revision, Err(-32603), |client| client.read("a:b"));
        assert!(!read.unwrap_err().is_resource_not_found());
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_of_prompts_are_strings() {
    // proves: PRM-05
    for revision in Revision::ALL {
        let arguments = json!({ "text": "a \"b\"", "count": 3, "ratio": 0.5, "ok": true, "list": [1, "x"], "none": null });
        let (prompt, sent) =
            exchange!(revision, Ok(json!({ "messages": [] })), |client| client.prompt("p", arguments));
        prompt.unwrap();
        let strings =
            json!({ "text": "a \"b\"", "count": "3", "ratio": "0.5", "ok": "true", "list": "[1,\"x\"]" });
        assert_eq!(sent, (json!("prompts/get"), json!({ "name": "p", "arguments": strings })));
        let (_, sent) = exchange!(revision, Ok(json!({ "messages": [] })), |client| client.prompt("p", ()));
        assert_eq!(sent.1, json!({ "name": "p" }));
    }
}

#[tokio::test(start_paused = true)]
async fn completions_name_what_they_are_for() {
    // proves: COMP-03, COMP-04, COMP-05, COMP-16
    for revision in Revision::ALL {
        let values = json!({ "completion": { "values": ["ab", "ac"], "hasMore": true } });
        let reference = Reference::resource("file:///{path}");
        let (completion, sent) = exchange!(revision, Ok(values), |client| client.complete_with(
            reference,
            "path",
            "a",
            [("drive", "c")]
        ));
        assert_eq!(completion.unwrap().values, ["ab", "ac"]);
        let mut expected = json!({ "ref": { "type": "ref/resource", "uri": "file:///{path}" }, "argument": { "name": "path", "value": "a" } });
        if revision >= V2025_06_18 {
            expected["context"] = json!({ "arguments": { "drive": "c" } });
        }
        assert_eq!(sent, (json!("completion/complete"), expected), "{revision}");
        let (completion, sent) =
            exchange!(revision, Ok(json!({ "completion": { "values": [] } })), |client| {
                client.complete(Reference::prompt("p"), "x", "")
            });
        assert_eq!(completion.unwrap().values, [] as [&str; 0]);
        assert_eq!(
            sent.1,
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "x", "value": "" } })
        );
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_newer_than_the_revision_is_sent() {
    // proves: LIFE-14
    let builder = Client::builder()
        .title("Tester")
        .extension("com.example/demo", bowline_types::RawJson::empty_object());
    for revision in [V2024_11_05, V2025_03_26] {
        let builder = builder.clone().revisions([revision]);
        let (client, mut peer, greeting) = connect_seen(builder, revision, everything()).await;
        assert_eq!(
            greeting["params"]["clientInfo"].as_object().unwrap().keys().collect::<Vec<_>>(),
            ["name", "version"]
        );
        assert_eq!(greeting["params"]["capabilities"], json!({}));
        let (_, request) =
            both(client.call("t", ()).timeout(std::time::Duration::from_secs(1)), peer.next()).await;
        assert_eq!(request["params"], json!({ "name": "t" }));
    }
}
