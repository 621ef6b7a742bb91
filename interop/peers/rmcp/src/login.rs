//! Logs in to a protected server with the Rust SDK. Usage: `rmcp-login URL`.

use rmcp::{
    ClientLifecycleMode, ClientServiceExt, ServiceError,
    model::{CallToolRequestParams, CallToolResult, ClientConfig, ProtocolVersion},
    transport::{
        AuthClient, AuthorizationRequest, StreamableHttpClientTransport,
        auth::{AuthorizationCallback, OAuthState},
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::json;

type Found<T> = Result<T, Box<dyn std::error::Error>>;

const REDIRECT: &str = "http://127.0.0.1:33419/callback";

/// Lets the program that runs this one be the user.
fn visit(url: &str) -> Found<String> {
    println!("{}", json!({ "visit": url }));
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

fn report(feature: &str, found: Result<CallToolResult, ServiceError>) {
    let line = match found {
        Ok(result) => {
            let text =
                result.content.first().and_then(|content| content.as_text()).map(|text| text.text.clone());
            json!({ "feature": feature, "status": "ok", "text": text })
        }
        Err(error) => json!({ "feature": feature, "status": "fail", "detail": error.to_string() }),
    };
    println!("{line}");
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Found<()> {
    let url = std::env::args().nth(1).ok_or("usage: rmcp-login URL")?;
    let mut state = OAuthState::new(&url, None).await?;
    state.start_authorization(AuthorizationRequest::new(REDIRECT).with_application_type("native")).await?;
    let redirected = visit(&state.get_authorization_url().await?)?;
    state.handle_callback_url(&redirected).await?;
    let manager = state.into_authorization_manager().ok_or("not authorized")?;
    let authorized = AuthClient::new(reqwest::Client::new(), manager);
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let transport = StreamableHttpClientTransport::with_client(authorized.clone(), config);
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = ClientLifecycleMode::Auto { preferred_versions, legacy_version: None };
    let client = ClientConfig::default().serve_with_lifecycle(transport, lifecycle).await?;
    report("login", client.call_tool(CallToolRequestParams::new("whoami")).await);

    // The application sees the challenge in the error, asks for the scope, and calls again.
    let mut called = client.call_tool(CallToolRequestParams::new("write")).await;
    if called.is_err() {
        let manager = authorized.auth_manager.lock().await;
        let callback = visit(&manager.request_scope_upgrade("mcp:write").await?)?;
        let callback = AuthorizationCallback::from_redirect_url(&callback)?;
        let issuer = callback.issuer.as_deref();
        manager.exchange_code_for_token_with_issuer(&callback.code, &callback.csrf_token, issuer).await?;
        drop(manager);
        called = client.call_tool(CallToolRequestParams::new("write")).await;
    }
    report("step-up", called);
    Ok(())
}
