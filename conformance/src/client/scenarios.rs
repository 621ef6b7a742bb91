//! What the scenarios do once they are connected.

use bowline::client::{Client, Error, Result};
use serde_json::{Value, json};

/// Lists the tools.
pub(crate) async fn list(client: &Client) -> Result {
    client.tools().await.map(drop)
}

/// Lists the tools and calls one: two requests, between which the server may change its authorization server.
pub(crate) async fn list_twice(client: &Client) -> Result {
    list(client).await?;
    client.call("test-tool", ()).await?.ok().map(drop)
}

/// Adds two numbers.
pub(crate) async fn add(client: &Client) -> Result {
    client.tools().await?;
    client.call("add_numbers", json!({ "a": 5, "b": 3 })).await?.ok().map(drop)
}

/// Calls one tool without arguments.
pub(crate) async fn call(client: &Client, tool: &str) -> Result {
    client.tools().await?;
    client.call(tool, ()).await?.ok().map(drop)
}

/// Calls tools that ask back, in all the ways they can, with one between them that does not.
pub(crate) async fn answer_rounds(client: &Client) -> Result {
    client.tools().await?;
    for tool in
        ["test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"]
    {
        client.call(tool, ()).await?.ok()?;
    }
    Ok(())
}

/// Lists and uses whatever the server has.
pub(crate) async fn use_everything(client: &Client) -> Result {
    for tool in client.tools().await? {
        client.call(tool.name, ()).await?;
    }
    for resource in client.resources().await? {
        client.read(resource.uri).await?;
    }
    for prompt in client.prompts().await? {
        client.prompt(prompt.name, ()).await?;
    }
    Ok(())
}

/// Makes the calls of the scenario's own list.
pub(crate) async fn call_as_told(client: &Client, context: &Value) -> Result {
    client.tools().await?;
    let calls = context["toolCalls"].as_array().ok_or_else(|| Error::misuse("there are no calls to make"))?;
    for call in calls {
        client.call(call["name"].as_str().unwrap_or_default(), &call["arguments"]).await?.ok()?;
    }
    Ok(())
}

/// Calls every tool that is shown: those with headers that cannot be are not.
pub(crate) async fn call_what_is_left(client: &Client) -> Result {
    for tool in client.tools().await? {
        client.call(tool.name, json!({ "region": "us-west1" })).await?.ok()?;
    }
    Ok(())
}

/// Sends back the schema of a tool as it was understood.
pub(crate) async fn echo_schema(client: &Client) -> Result {
    let tools = client.tools().await?;
    let tool = tools.into_iter().find(|tool| tool.name == "json_schema_2020_12_tool");
    let tool = tool.ok_or_else(|| Error::misuse("the tool with the schema is missing"))?;
    client.call("json_schema_echo", json!({ "schema": tool.input_schema })).await?.ok().map(drop)
}
