//! The server `everything` in every revision.

use bowline::{
    client::memory,
    prelude::*,
    types::{
        CreateMessageParams, CreateMessageResult, RawJson, Reference, StopReason, SubscriptionFilter,
        ToolUseContent,
    },
};
use bowline_servers::everything;
use expect_test::{Expect, expect};
use serde_json::Value;

/// A client of one revision that accepts every question.
async fn client(revision: Revision) -> Client {
    let (near, far) = memory();
    tokio::spawn(everything::server().serve(far.read, far.write));
    Client::builder()
        .name("test")
        .revisions([revision])
        .on_url(|_| async { Answer::Accept(()) })
        .on_sample(|request| async move { model(&request) })
        .sample_with_tools()
        .connect(near)
        .await
        .expect("the server answers")
}

/// A model that first calls a tool and then responds.
fn model(request: &CreateMessageParams) -> CreateMessageResult {
    let last = request.messages.last().map(|message| message.content.as_slice()).unwrap_or_default();
    if let [Content::ToolResult(result)] = last {
        let length = result.content.first().and_then(Content::as_text).unwrap_or_default();
        return CreateMessageResult::new(Role::Assistant, Content::text(format!("It has {length}.")), "test");
    }
    let input = RawJson::of(&json!({ "word": "knot" })).unwrap_or_default();
    let wish = Content::ToolUse(ToolUseContent::new("1", "count_letters", input));
    CreateMessageResult::new(Role::Assistant, wish, "test").stop_reason(StopReason::ToolUse)
}

async fn check(tool: &str, arguments: Value, revision: Revision, expected: Expect) {
    let called = client(revision).await.call(tool, arguments).await.expect("the call is answered");
    expected.assert_eq(&json!(called.content).to_string());
}

/// Returns the names of everything that the server offers.
async fn names(revision: Revision) -> Vec<String> {
    let client = client(revision).await;
    let tools = client.tools().await.expect("tools are listed").into_iter().map(|tool| tool.name);
    let resources = client.resources().await.expect("resources are listed");
    let templates = client.templates().await.expect("templates are listed");
    let prompts = client.prompts().await.expect("prompts are listed");
    let resources = resources.into_iter().map(|resource| resource.uri);
    let templates = templates.into_iter().map(|template| template.uri_template);
    tools.chain(resources).chain(templates).chain(prompts.into_iter().map(|prompt| prompt.name)).collect()
}

#[tokio::test]
async fn every_revision_offers_the_same_entries() {
    let newest = names(Revision::V2026_07_28).await;
    for known in ["sum", "test://planets/earth", "test://template/{id}/data", "travel"] {
        assert!(newest.iter().any(|name| name == known), "{known} in {newest:?}");
    }
    for revision in Revision::ALL {
        // Revisions without tasks do not list the tools that run only as tasks.
        let has_tasks = revision >= Revision::V2025_11_25;
        let needs_tasks = |name: &str| name == "failing_job" || name == "test_tool_with_task";
        let expected: Vec<_> =
            newest.iter().filter(|name| has_tasks || !needs_tasks(name)).cloned().collect();
        assert_eq!(names(revision).await, expected, "{revision}");
    }
}

#[tokio::test]
async fn the_caller_is_described() {
    for revision in Revision::ALL {
        let called = client(revision).await.call("caller", json!({})).await.expect("the call is answered");
        let caller: Value = called.json().expect("the result is data");
        assert_eq!(caller["revision"], revision.to_string());
        assert_eq!(caller["name"], "test");
        assert_eq!(caller["can_visit_pages"], revision >= Revision::V2025_11_25, "{revision}");
    }
}

#[tokio::test]
async fn links_become_text_in_revisions_without_them() {
    check(
        "links",
        json!({}),
        Revision::V2025_11_25,
        expect![[r#"[{"type":"text","text":"Two resources to look at:"},{"type":"resource_link","uri":"test://static-text","name":"static_text","mimeType":"text/plain"},{"type":"resource_link","uri":"test://template/7/data","name":"row 7","description":"The seventh row"}]"#]],
    )
    .await;
    check("links", json!({}), Revision::V2024_11_05, expect![[r#"[{"type":"text","text":"Two resources to look at:"},{"type":"text","text":"[static_text](test://static-text)"},{"type":"text","text":"[row 7](test://template/7/data)"}]"#]]).await;
}

#[tokio::test]
async fn content_is_annotated_with_its_audience() {
    check("annotated", json!({}), Revision::V2026_07_28, expect![[r#"[{"type":"text","text":"All is well.","annotations":{"audience":["user"],"priority":1,"lastModified":"2026-07-28T12:00:00Z"}},{"type":"text","text":"17 of 17 checks passed in 2.1 s.","annotations":{"audience":["assistant"],"priority":0.3,"lastModified":"2026-07-28T12:00:00Z"}}]"#]]).await;
}

#[tokio::test]
async fn a_url_is_opened_in_revisions_that_support_it() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        check(
            "sign_in",
            json!({}),
            revision,
            expect![[r#"[{"type":"text","text":"the user opened the page"}]"#]],
        )
        .await;
    }
}

#[tokio::test]
async fn the_model_uses_a_tool_of_the_server() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        check(
            "letters",
            json!({ "word": "knot" }),
            revision,
            expect![[r#"[{"type":"text","text":"It has 4."}]"#]],
        )
        .await;
    }
}

#[tokio::test]
async fn completion_depends_on_other_arguments() {
    let client = client(Revision::V2026_07_28).await;
    let travel = Reference::prompt("travel");
    let cities = client
        .complete_with(travel, "city", "", [("country", "Italy")])
        .await
        .expect("there are suggestions");
    assert_eq!(cities.values, ["Pisa", "Rome"]);
}

#[tokio::test]
async fn planets_are_read() {
    let client = client(Revision::V2025_06_18).await;
    let read = client.read("test://planets/earth").await.expect("the earth is there");
    assert_eq!(
        json!(read.contents).to_string(),
        r#"[{"uri":"test://planets/earth","mimeType":"text/plain","text":"earth has readers"}]"#
    );
    client.read("test://planets/vulcan").await.expect_err("there is no such planet");
}

#[tokio::test]
async fn a_changed_resource_notifies_its_subscribers() {
    for revision in Revision::ALL {
        let client = client(revision).await;
        let filter = SubscriptionFilter::new().resource_subscriptions(vec!["test://watched-resource".into()]);
        let mut changes = client.listen(filter).await.expect("changes can be listened to");
        client.call("touch", json!({})).await.expect("the call is answered");
        assert!(changes.next().await.is_some(), "{revision}");
    }
}
