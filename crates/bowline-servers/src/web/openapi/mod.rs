//! HTTP APIs described by OpenAPI: one tool per operation.

mod document;
mod operation;
mod request;
mod schema;
mod security;
mod yaml;

use super::{
    error::Error,
    http_client::{FetchRequest, Follow, HttpClient, Settings},
};
use bowline::{
    prelude::{Error as ToolError, Tool},
    types::RawJson,
    unstable::http::Reference,
};
use bytes::Bytes;
use document::Document;
use http::{HeaderMap, Method};
use operation::{Operation, operations};
use security::Schemes;
use serde_json::{Map, Value};
use std::{path::Path, sync::Arc};

/// An HTTP API described by an OpenAPI 3.0 or 3.1 document in JSON or YAML.
///
/// Credentials come from the environment, never from arguments: the scheme `petstore_auth` uses `BOWLINE_API_PETSTORE_AUTH`
/// (`user:password` for basic authentication). They are sent only to the origin of the API.
#[derive(Clone, Debug)]
pub struct OpenApi {
    operations: Vec<Operation>,
    schemes: Schemes,
    /// The base URL in the document.
    server: Option<String>,
    /// The URL of the document, if any.
    origin: Option<String>,
    /// The base URL set by the operator.
    base: Option<String>,
}

impl OpenApi {
    /// Parses a document. Errors contain the position.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::with_environment(text, &|name| std::env::var(name).ok())
    }

    /// Parses a document, with credentials from the given environment.
    pub fn with_environment(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let document = Document::parse(text)?;
        let servers = document.root().items("servers")?;
        let server = servers.first().map(operation::server_url).transpose()?;
        let schemes = Schemes::read(&document, variable)?;
        let operations = operations(&document)?;
        if operations.is_empty() {
            return Err(Error::new("#/paths", "the document has no operations"));
        }
        Ok(Self { operations, schemes, server, origin: None, base: None })
    }

    /// Reads a document from a file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::new("", format!("cannot read `{}`: {error}", path.display())))?;
        Self::parse(&text)
    }

    /// Fetches a document from a trusted URL, which may be at a private address. The API may be at the same origin.
    pub async fn fetch(url: &str) -> Result<Self, Error> {
        let mut settings = Settings::default();
        settings.guard.allow_origin(url);
        let request = FetchRequest {
            method: Method::GET,
            url: url.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            follow: Follow::Anywhere,
        };
        let unreachable = |reason: String| Error::new("", format!("cannot fetch `{url}`: {reason}"));
        let got = HttpClient::new(&settings).send(request).await.map_err(unreachable)?;
        if !got.answer.status.is_success() {
            return Err(unreachable(got.answer.status.to_string()));
        }
        let text = String::from_utf8_lossy(&got.answer.body);
        Ok(Self { origin: Some(url.into()), ..Self::parse(&text)? })
    }

    /// Sets the base URL, overriding the document. It may be a private address.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base = Some(url.into());
        self
    }

    /// Returns the tools, one per operation.
    pub(super) fn tools(&self, settings: &Settings) -> Result<Vec<Tool>, Error> {
        let mut settings = settings.clone();
        for vouched in self.origin.iter().chain(&self.base) {
            settings.guard.allow_origin(vouched);
        }
        let client = HttpClient::new(&settings);
        let main = self.base(None)?;
        let tools = self.operations.iter().map(|operation| {
            let base = self.base(operation.server.as_deref())?;
            // Credentials are sent only to the server of the whole document.
            let is_main = Reference::resolve(&main, &base).is_ok_and(|reference| reference.is_same_origin);
            let schemes = if is_main { self.schemes.clone() } else { Schemes::default() };
            Ok(tool(client.clone(), schemes, base, operation.clone()))
        });
        tools.collect()
    }

    /// Returns the base URL: of the operator, of the operation, or of the document.
    fn base(&self, of_operation: Option<&str>) -> Result<String, Error> {
        let server = of_operation.or(self.server.as_deref()).unwrap_or("/");
        let resolved = match (&self.base, &self.origin) {
            (Some(base), _) => Reference::resolve(base, ""),
            (None, Some(origin)) => Reference::resolve(origin, server),
            (None, None) => Reference::resolve(server, ""),
        };
        resolved.map(|reference| reference.url).map_err(|error| {
            let given = self.base.as_deref().unwrap_or(server);
            let reason = format!("invalid server URL `{given}`: {error}; set a base URL");
            Error::new("#/servers", reason)
        })
    }
}

fn tool(client: HttpClient, schemes: Schemes, base: String, operation: Operation) -> Tool {
    let is_safe = matches!(operation.method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE);
    let mut tool = Tool::new(operation.name.clone())
        .description(operation.description.clone())
        .input_schema(RawJson::of(&operation.schema).unwrap_or_else(|_| RawJson::empty_object()))
        .open_world(true);
    if let Some(title) = &operation.title {
        tool = tool.title(title.clone());
    }
    tool = if is_safe { tool.read_only() } else { tool.destructive(operation.method != Method::POST) };
    if is_safe || matches!(operation.method, Method::PUT | Method::DELETE) {
        tool = tool.idempotent();
    }
    let shared = Arc::new((client, schemes, base, operation));
    tool.handler(move |arguments: Map<String, Value>| {
        let shared = Arc::clone(&shared);
        async move {
            let (client, schemes, base, operation) = &*shared;
            request::call(client, schemes, base, operation, &arguments).await.map_err(ToolError::tool)
        }
    })
}
