//! Interfaces described by OpenAPI: one tool per operation.

mod document;
mod operation;
mod request;
mod schema;
mod security;
mod yaml;

use super::{
    error::Error,
    visitor::{Asking, Follow, Settings, Visitor},
};
use bowline::{
    http::Reference,
    prelude::{Error as ToolError, Tool},
    types::RawJson,
};
use bytes::Bytes;
use document::Document;
use http::{HeaderMap, Method};
use operation::{Operation, operations};
use security::Schemes;
use serde_json::{Map, Value};
use std::{path::Path, sync::Arc};

/// An interface, as a document of OpenAPI 3.0 or 3.1 describes it, in JSON or YAML.
///
/// Credentials come from the environment, never from arguments: a scheme named `petstore_auth` takes what
/// `BOWLINE_API_PETSTORE_AUTH` holds, `user:password` where the scheme is basic. They go to the interface's own origin only.
#[derive(Clone, Debug)]
pub struct OpenApi {
    operations: Vec<Operation>,
    schemes: Schemes,
    /// Where the interface is, as the document says.
    server: Option<String>,
    /// Where the document was, if it has a URL.
    origin: Option<String>,
    /// Where the interface is, as the operator says.
    base: Option<String>,
}

impl OpenApi {
    /// Reads a document. Fails with the place in it where something is wrong.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::with_environment(text, &|name| std::env::var(name).ok())
    }

    /// Reads a document, its credentials from another environment than that of this process.
    pub fn with_environment(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let document = Document::parse(text)?;
        let servers = document.root().items("servers")?;
        let server = servers.first().map(operation::server_url).transpose()?;
        let schemes = Schemes::read(&document, variable)?;
        let operations = operations(&document)?;
        if operations.is_empty() {
            return Err(Error::new("#/paths", "expected at least one operation"));
        }
        Ok(Self { operations, schemes, server, origin: None, base: None })
    }

    /// Reads the document in a file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::new("", format!("cannot read `{}`: {error}", path.display())))?;
        Self::parse(&text)
    }

    /// Gets the document at a URL, which whoever starts the server vouches for: it may be anywhere, and the interface may be
    /// at the same origin.
    pub async fn fetch(url: &str) -> Result<Self, Error> {
        let mut settings = Settings::default();
        settings.guard.allow_origin(url);
        let asking = Asking {
            method: Method::GET,
            url: url.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            follow: Follow::Anywhere,
        };
        let unreachable = |reason: String| Error::new("", format!("cannot get `{url}`: {reason}"));
        let got = Visitor::new(&settings).send(asking).await.map_err(unreachable)?;
        if !got.answer.status.is_success() {
            return Err(unreachable(got.answer.status.to_string()));
        }
        let text = String::from_utf8_lossy(&got.answer.body);
        Ok(Self { origin: Some(url.into()), ..Self::parse(&text)? })
    }

    /// Where the interface is, whatever the document says. It may be anywhere.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base = Some(url.into());
        self
    }

    /// The tools, one per operation.
    pub(super) fn tools(&self, settings: &Settings) -> Result<Vec<Tool>, Error> {
        let mut settings = settings.clone();
        for vouched in self.origin.iter().chain(&self.base) {
            settings.guard.allow_origin(vouched);
        }
        let visitor = Visitor::new(&settings);
        let main = self.base(None)?;
        let tools = self.operations.iter().map(|operation| {
            let base = self.base(operation.server.as_deref())?;
            // Credentials are for the server that the document as a whole names.
            let is_main = Reference::resolve(&main, &base).is_ok_and(|reference| reference.is_same_origin);
            let schemes = if is_main { self.schemes.clone() } else { Schemes::default() };
            Ok(tool(visitor.clone(), schemes, base, operation.clone()))
        });
        tools.collect()
    }

    /// Where the interface is: as the operator says, or an operation, or the document.
    fn base(&self, of_operation: Option<&str>) -> Result<String, Error> {
        let server = of_operation.or(self.server.as_deref()).unwrap_or("/");
        let resolved = match (&self.base, &self.origin) {
            (Some(base), _) => Reference::resolve(base, ""),
            (None, Some(origin)) => Reference::resolve(origin, server),
            (None, None) => Reference::resolve(server, ""),
        };
        resolved.map(|reference| reference.url).map_err(|error| {
            let given = self.base.as_deref().unwrap_or(server);
            let reason =
                format!("expected the URL of the interface, got `{given}`: {error}; give a base URL instead");
            Error::new("#/servers", reason)
        })
    }
}

fn tool(visitor: Visitor, schemes: Schemes, base: String, operation: Operation) -> Tool {
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
    let shared = Arc::new((visitor, schemes, base, operation));
    tool.handler(move |arguments: Map<String, Value>| {
        let shared = Arc::clone(&shared);
        async move {
            let (visitor, schemes, base, operation) = &*shared;
            request::call(visitor, schemes, base, operation, &arguments).await.map_err(ToolError::tool)
        }
    })
}
