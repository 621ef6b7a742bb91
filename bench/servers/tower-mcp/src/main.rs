//! bench-tower-mcp [--port N]: Streamable HTTP on a port, else stdio.
use axum::serve::ListenerExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower_mcp::{
    BoxError, CallToolResult, HttpTransport, McpRouter, StdioTransport, SubscriptionLimits, ToolBuilder,
    extract::RawArgs,
};

#[derive(Debug, Deserialize, JsonSchema)]
struct Echo {
    /// Text to return
    message: String,
}
#[derive(Debug, Deserialize, JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}
#[derive(Debug, Serialize, JsonSchema)]
struct Sum {
    sum: f64,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut router = McpRouter::new()
        .server_info("bench", "0.1.0")
        .tool(
            ToolBuilder::new("echo")
                .description("Returns the message unchanged.")
                .handler(|i: Echo| async move { Ok(CallToolResult::text(i.message)) })
                .build(),
        )
        .tool(
            ToolBuilder::new("add")
                .description("Adds two numbers.")
                .output_schema_for::<Sum>()
                .handler(|i: Add| async move { CallToolResult::from_serialize(&Sum { sum: i.a + i.b }) })
                .build(),
        );
    let all: Vec<Value> = serde_json::from_str(include_str!("../../tools.json"))?;
    for t in all {
        let name = t["name"].as_str().unwrap();
        if name.starts_with("dummy") {
            router = router.tool(
                ToolBuilder::new(name)
                    .description(t["description"].as_str().unwrap())
                    .input_schema(t["inputSchema"].clone())
                    .extractor_handler(
                        (),
                        |RawArgs(_): RawArgs| async move { Ok(CallToolResult::text("ok")) },
                    )
                    .build(),
            );
        }
    }
    let args: Vec<String> = std::env::args().collect();
    match args.iter().position(|a| a == "--port") {
        Some(i) => {
            let port: u16 = args[i + 1].parse()?;
            let limits = SubscriptionLimits::default().max_active(20_000).max_active_per_principal(20_000);
            let app = HttpTransport::new(router).subscription_limits(limits).into_router_at("/mcp");
            let l = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
            axum::serve(l.tap_io(|s| drop(s.set_nodelay(true))), app).await?;
        }
        None => StdioTransport::new(router).run().await?,
    }
    Ok(())
}
