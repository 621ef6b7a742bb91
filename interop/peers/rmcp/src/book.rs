//! What the book shows of the Rust SDK, compiled so that it stays true. It serves, or calls a server.

// ANCHOR: ask
use rmcp::{
    ErrorData, Peer, RoleServer, ServiceExt,
    handler::server::wrapper::Parameters,
    schemars::{self, JsonSchema},
    serde::Deserialize,
    service::ElicitationError,
    tool, tool_router,
};

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "rmcp::serde")]
struct Project {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "rmcp::serde")]
struct Confirm {
    /// Delete it permanently?
    sure: bool,
}

rmcp::elicit_safe!(Confirm);

#[derive(Clone)]
struct Projects;

#[tool_router(server_handler)]
impl Projects {
    #[tool(description = "Delete a project after asking its owner")]
    async fn delete_project(
        &self,
        peer: Peer<RoleServer>,
        Parameters(Project { name }): Parameters<Project>,
    ) -> Result<String, ErrorData> {
        match peer.elicit::<Confirm>(format!("Delete {name}?")).await {
            Ok(Some(Confirm { sure: true })) => Ok(format!("deleted {name}")),
            Ok(_) | Err(ElicitationError::UserDeclined | ElicitationError::UserCancelled) => {
                Ok(format!("kept {name}"))
            }
            Err(error) => Err(ErrorData::internal_error(error.to_string(), None)),
        }
    }
}
// ANCHOR_END: ask

// ANCHOR: server
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "rmcp::serde")]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

#[derive(Clone)]
struct Demo;

#[tool_router(server_handler)]
impl Demo {
    #[tool(description = "Add two numbers")]
    fn add(&self, Parameters(Add { a, b }): Parameters<Add>) -> String {
        (a + b).to_string()
    }
}
// ANCHOR_END: server

type Ended = Result<(), Box<dyn std::error::Error>>;

// ANCHOR: stdio
async fn serve() -> Ended {
    Demo.serve(rmcp::transport::stdio()).await?.waiting().await?;
    Ok(())
}
// ANCHOR_END: stdio

// ANCHOR: http
async fn serve_http() -> Ended {
    use rmcp::transport::streamable_http_server::{StreamableHttpService, session::local::LocalSessionManager};

    let service: StreamableHttpService<Demo, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Demo), Default::default(), Default::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
// ANCHOR_END: http

// ANCHOR: client
async fn call(program: &str) -> Ended {
    use rmcp::{model::CallToolRequestParams, transport::TokioChildProcess};

    let client = ().serve(TokioChildProcess::new(tokio::process::Command::new(program))?).await?;
    for tool in client.list_all_tools().await? {
        println!("{}", tool.name);
    }
    let arguments = serde_json::from_value(serde_json::json!({ "a": 1, "b": 2 }))?;
    let sum = client.call_tool(CallToolRequestParams::new("add").with_arguments(arguments)).await?;
    println!("{:?}", sum.content.first().and_then(|content| content.as_text()));
    client.cancel().await?;
    Ok(())
}
// ANCHOR_END: client

#[tokio::main]
async fn main() -> Ended {
    match std::env::args().nth(1).as_deref() {
        None => serve().await,
        Some("--http") => serve_http().await,
        Some("--projects") => {
            Projects.serve(rmcp::transport::stdio()).await?.waiting().await?;
            Ok(())
        }
        Some(program) => call(program).await,
    }
}
