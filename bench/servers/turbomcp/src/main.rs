//! bench-turbomcp [--port N]: Streamable HTTP on a port, else stdio.
//! `McpHandler` is written by hand because the dummy tools come from tools.json; the
//! `#[server]` macro expands to the same trait.
use serde_json::{Value, json};
use std::{future::Future, sync::Arc};
use turbomcp::prelude::*;
use turbomcp_core::{
    context::RequestContext,
    error::{McpError, McpResult},
    handler::McpHandler,
};
use turbomcp_types::{Prompt, PromptResult, Resource, ResourceResult, ServerInfo, Tool, ToolResult};

#[derive(Clone)]
struct Bench {
    tools: Arc<Vec<Tool>>,
}

impl McpHandler for Bench {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("bench", "0.1.0")
    }
    fn list_tools(&self) -> Vec<Tool> {
        self.tools.to_vec()
    }
    fn list_resources(&self) -> Vec<Resource> {
        vec![]
    }
    fn list_prompts(&self) -> Vec<Prompt> {
        vec![]
    }
    fn page_size(&self) -> Option<usize> {
        None
    }
    fn call_tool<'a>(
        &'a self,
        name: &'a str,
        args: Value,
        _ctx: &'a RequestContext,
    ) -> impl Future<Output = McpResult<ToolResult>> + Send + 'a {
        async move {
            match name {
                "echo" => match args {
                    Value::Object(mut m) => match m.remove("message") {
                        Some(Value::String(s)) => Ok(ToolResult::text(s)),
                        _ => Err(McpError::invalid_params("message")),
                    },
                    _ => Err(McpError::invalid_params("arguments")),
                },
                "add" => {
                    let sum = args["a"].as_f64().unwrap_or(0.0) + args["b"].as_f64().unwrap_or(0.0);
                    Ok(ToolResult::text(sum.to_string()).with_structured(&json!({ "sum": sum })))
                }
                _ => Ok(ToolResult::text("ok")),
            }
        }
    }
    fn read_resource<'a>(
        &'a self,
        uri: &'a str,
        _ctx: &'a RequestContext,
    ) -> impl Future<Output = McpResult<ResourceResult>> + Send + 'a {
        async move { Err(McpError::resource_not_found(uri)) }
    }
    fn get_prompt<'a>(
        &'a self,
        name: &'a str,
        _args: Option<Value>,
        _ctx: &'a RequestContext,
    ) -> impl Future<Output = McpResult<PromptResult>> + Send + 'a {
        async move { Err(McpError::prompt_not_found(name)) }
    }
}

#[tokio::main]
async fn main() {
    let tools: Vec<Tool> = serde_json::from_str(include_str!("../../tools.json")).expect("tools.json");
    let bench = Bench { tools: Arc::new(tools) };
    let args: Vec<String> = std::env::args().collect();
    match args.iter().position(|a| a == "--port") {
        Some(i) => bench.run_http(&format!("127.0.0.1:{}", args[i + 1])).await.unwrap(),
        None => bench.run_stdio().await.unwrap(),
    }
}
