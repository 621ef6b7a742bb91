//! A server of the Rust SDK, with tokens of another authorization server. Usage: `rmcp-auth_server PORT ISSUER`.
//!
//! The SDK has no resource server: its feature `auth` is for clients. As in its examples, a middleware of axum checks the tokens.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header, request::Parts},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header, jwk::JwkSet};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::*,
    service::RequestContext,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use std::sync::Arc;

/// The most bytes of a request.
const MAX_BODY: usize = 1 << 20;

/// Who may call, and with what.
struct Access {
    resource: String,
    metadata: String,
    issuer: String,
    keys: JwkSet,
}

/// The scopes of the token of a request.
#[derive(Clone)]
struct Scopes(String);

impl Access {
    fn scopes(&self, token: &str) -> Option<String> {
        let key = self.keys.find(&decode_header(token).ok()?.kid?)?;
        let mut rules = Validation::new(Algorithm::ES256);
        rules.set_audience(&[&self.resource]);
        rules.set_issuer(&[&self.issuer]);
        let claims = decode::<Value>(token, &DecodingKey::from_jwk(key).ok()?, &rules).ok()?.claims;
        Some(claims["scope"].as_str()?.to_owned())
    }

    fn refuse(&self, status: StatusCode, error: &str, scope: &str) -> Response {
        let challenge = format!(r#"Bearer {error}scope="{scope}", resource_metadata="{}""#, self.metadata);
        (status, [(header::WWW_AUTHENTICATE, challenge)]).into_response()
    }
}

async fn check(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let value = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(token) = value.and_then(|value| value.strip_prefix("Bearer ")) else {
        return access.refuse(StatusCode::UNAUTHORIZED, "", "mcp:read");
    };
    let Some(scopes) = access.scopes(token) else {
        return access.refuse(StatusCode::UNAUTHORIZED, r#"error="invalid_token", "#, "mcp:read");
    };
    let (mut parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, MAX_BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    if message["params"]["name"] == "write" && !scopes.split(' ').any(|scope| scope == "mcp:write") {
        return access.refuse(StatusCode::FORBIDDEN, r#"error="insufficient_scope", "#, "mcp:read mcp:write");
    }
    parts.extensions.insert(Scopes(scopes));
    next.run(Request::from_parts(parts, Body::from(body))).await
}

#[derive(Clone)]
struct Demo;

impl ServerHandler for Demo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema: JsonObject =
            serde_json::from_value(json!({ "type": "object" })).expect("written as an object");
        let tools = ["whoami", "write"].map(|name| Tool::new(name, name, schema.clone()));
        Ok(ListToolsResult::with_all_items(tools.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let scopes = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Scopes>());
        let text = match (&*request.name, scopes) {
            ("whoami", Some(Scopes(scopes))) => scopes.clone(),
            ("write", Some(_)) => "written".to_owned(),
            _ => return Err(ErrorData::invalid_params("no such tool, or no token", None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [port, issuer] = &words[..] else { return Err("usage: rmcp-auth_server PORT ISSUER".into()) };
    let keys = reqwest::get(format!("{issuer}/jwks")).await?.bytes().await?;
    let base = format!("http://127.0.0.1:{port}");
    let access = Arc::new(Access {
        resource: format!("{base}/mcp"),
        metadata: format!("{base}/.well-known/oauth-protected-resource/mcp"),
        issuer: issuer.clone(),
        keys: serde_json::from_slice(&keys)?,
    });
    let document = json!({
        "resource": access.resource, "authorization_servers": [issuer], "scopes_supported": ["mcp:read"],
    });
    let document = ([(header::CONTENT_TYPE, "application/json")], document.to_string());
    let service: StreamableHttpService<Demo, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Demo), Default::default(), StreamableHttpServerConfig::default());
    let app = Router::new()
        .nest_service("/mcp", service)
        .layer(middleware::from_fn_with_state(access, check))
        .route("/.well-known/oauth-protected-resource/mcp", get(move || async move { document.clone() }));
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    axum::serve(listener, app).await?;
    Ok(())
}
