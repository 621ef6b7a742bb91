//! An operation and its parameters as tool arguments.

use super::{
    document::{At, Document},
    schema::Schemas,
    security::{self, Wanted},
};
use crate::web::error::Error;
use http::Method;
use serde_json::{Map, Value, json};

/// The HTTP methods in a document.
const METHODS: [(&str, Method); 8] = [
    ("get", Method::GET),
    ("put", Method::PUT),
    ("post", Method::POST),
    ("delete", Method::DELETE),
    ("options", Method::OPTIONS),
    ("head", Method::HEAD),
    ("patch", Method::PATCH),
    ("trace", Method::TRACE),
];
/// The maximum length of a tool name.
const MAX_NAME: usize = 60;
/// Headers that arguments cannot set.
const HEADERS: [&str; 11] = [
    "accept",
    "authorization",
    "content-type",
    "content-length",
    "connection",
    "cookie",
    "host",
    "proxy-authorization",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// The location of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    Path,
    Query,
    Header,
    Cookie,
}

/// How arrays and objects are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Comma-separated.
    Simple,
    /// Form fields.
    Form,
    Space,
    Pipe,
    Deep,
    Label,
    Matrix,
    /// JSON.
    Json,
}

/// A parameter.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    /// The name of the tool argument.
    pub(super) argument: String,
    pub(super) name: String,
    pub(super) location: Location,
    pub(super) style: Style,
    /// Whether the name is repeated for each item.
    pub(super) explode: bool,
    pub(super) required: bool,
}

/// The format of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Json(String),
    Form,
    /// Text, or base64 for binary data.
    Text(String),
}

/// The body of a request.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) argument: String,
    pub(super) encoding: Encoding,
    pub(super) required: bool,
}

/// An operation.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: String,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) schema: Value,
    pub(super) wanted: Wanted,
    /// Its own server, if any.
    pub(super) server: Option<String>,
}

/// Returns all operations of a document.
pub(super) fn operations(document: &Document) -> Result<Vec<Operation>, Error> {
    let root = document.root();
    let paths = root.get("paths").ok_or_else(|| root.wrong("expected `paths`"))?;
    let everywhere = security::wanted(&root)?.unwrap_or_default();
    let mut found: Vec<Operation> = Vec::new();
    for (path, item) in paths.members()? {
        if path.starts_with("x-") {
            continue;
        }
        if !path.starts_with('/') {
            return Err(item.wrong("paths must start with `/`"));
        }
        let item = document.resolve(item)?;
        for (spelled, method) in METHODS {
            let Some(at) = item.get(spelled) else { continue };
            let mut operation = operation(document, path, &item, method, &at)?;
            operation.wanted = security::wanted(&at)?.unwrap_or_else(|| everywhere.clone());
            operation.name = unique(&operation.name, &found);
            found.push(operation);
        }
    }
    Ok(found)
}

fn unique(name: &str, taken: &[Operation]) -> String {
    let is_free = |name: &str| taken.iter().all(|operation| operation.name != name);
    if is_free(name) {
        return name.to_owned();
    }
    let numbered = (2..).map(|number: u32| {
        let suffix = format!("_{number}");
        format!("{}{suffix}", name.get(..name.len().min(MAX_NAME - suffix.len())).unwrap_or(name))
    });
    numbered.into_iter().find(|name| is_free(name)).unwrap_or_default()
}

/// Returns a valid tool name.
fn tidied(name: &str) -> String {
    let tidied: String = name
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' })
        .collect();
    let parts: Vec<&str> = tidied.split('_').filter(|part| !part.is_empty()).collect();
    let joined = parts.join("_");
    joined.get(..joined.len().min(MAX_NAME)).unwrap_or_default().trim_end_matches('_').to_owned()
}

fn operation(
    document: &Document,
    path: &str,
    item: &At<'_>,
    method: Method,
    at: &At<'_>,
) -> Result<Operation, Error> {
    at.object()?;
    let mut schemas = Schemas::new(document);
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let mut parameters: Vec<Parameter> = Vec::new();
    // Parameters of the operation override those of the path.
    for given in at.items("parameters")?.into_iter().chain(item.items("parameters")?) {
        let given = document.resolve(given)?;
        let Some(mut parameter) = parameter(&given)? else { continue };
        if parameters.iter().any(|known| known.name == parameter.name && known.location == parameter.location)
        {
            continue;
        }
        parameter.argument = free(&parameter.argument, &properties);
        let content = given.get("content").map(|content| content.members()).transpose()?;
        let schema = match content.and_then(|content| content.into_iter().next()) {
            Some((_, media)) => media.get("schema"),
            None => given.get("schema"),
        };
        let mut schema =
            schema.map(|schema| schemas.convert(&schema)).transpose()?.unwrap_or_else(|| json!({}));
        if let (Some(description), Some(schema)) = (given.text("description"), schema.as_object_mut()) {
            schema.insert("description".into(), description.into());
        }
        if parameter.required {
            required.push(parameter.argument.clone());
        }
        properties.insert(parameter.argument.clone(), schema);
        parameters.push(parameter);
    }
    for name in path.split('{').skip(1).filter_map(|part| part.split('}').next()) {
        let is_it = |parameter: &Parameter| parameter.location == Location::Path && parameter.name == name;
        if !parameters.iter().any(is_it) {
            return Err(at.wrong(format!("missing path parameter `{{{name}}}`")));
        }
    }
    let body = body(document, at, &mut schemas, &mut properties)?;
    required.extend(body.iter().filter(|body| body.required).map(|body| body.argument.clone()));
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    let definitions = schemas.definitions()?;
    if !definitions.is_empty() {
        schema["$defs"] = definitions.into();
    }
    let name = at.text("operationId").map(tidied).filter(|name| !name.is_empty());
    let (summary, details) = (at.text("summary"), at.text("description"));
    let described = details.or(summary).map_or_else(|| format!("{method} {path}"), str::to_owned);
    let server = match (at.items("servers")?.into_iter().next(), item.items("servers")?.into_iter().next()) {
        (Some(server), _) | (None, Some(server)) => Some(server_url(&server)?),
        (None, None) => None,
    };
    Ok(Operation {
        name: name.unwrap_or_else(|| tidied(&format!("{}_{path}", method.as_str().to_ascii_lowercase()))),
        title: summary.map(str::to_owned),
        description: described.chars().take(2000).collect(),
        method,
        path: path.into(),
        parameters,
        body,
        schema,
        wanted: Vec::new(),
        server,
    })
}

/// Returns the URL of a server with default variables.
pub(super) fn server_url(at: &At<'_>) -> Result<String, Error> {
    let mut url = at.text("url").ok_or_else(|| at.wrong("expected `url`"))?.to_owned();
    for (name, variable) in at.get("variables").map(|all| all.members()).transpose()?.unwrap_or_default() {
        let default = variable.text("default").ok_or_else(|| variable.wrong("expected `default`"))?;
        url = url.replace(&format!("{{{name}}}"), default);
    }
    Ok(url)
}

/// Returns a unique argument name.
fn free(name: &str, taken: &Map<String, Value>) -> String {
    let mut name = name.to_owned();
    while taken.contains_key(&name) {
        name.push('_');
    }
    name
}

/// Parses a parameter. Returns `None` for parameters that arguments cannot set.
fn parameter(at: &At<'_>) -> Result<Option<Parameter>, Error> {
    let name = at.text("name").ok_or_else(|| at.wrong("expected `name`"))?;
    let location = match at.text("in") {
        Some("path") => Location::Path,
        Some("query") => Location::Query,
        Some("header") if HEADERS.contains(&name.to_ascii_lowercase().as_str()) => return Ok(None),
        Some("header") => Location::Header,
        Some("cookie") => Location::Cookie,
        Some(_) | None => return Err(at.wrong("`in` must be `path`, `query`, `header` or `cookie`")),
    };
    let style = match at.text("style") {
        _ if at.get("content").is_some() => Style::Json,
        Some("simple") => Style::Simple,
        Some("form") => Style::Form,
        Some("spaceDelimited") => Style::Space,
        Some("pipeDelimited") => Style::Pipe,
        Some("deepObject") => Style::Deep,
        Some("label") => Style::Label,
        Some("matrix") => Style::Matrix,
        Some(other) => return Err(at.wrong(format!("unsupported `style` `{other}`"))),
        None if matches!(location, Location::Query | Location::Cookie) => Style::Form,
        None => Style::Simple,
    };
    let explode = at.value.get("explode").and_then(Value::as_bool).unwrap_or(style == Style::Form);
    let argument = tidied(name);
    Ok(Some(Parameter {
        argument: if argument.is_empty() { "value".into() } else { argument },
        name: name.into(),
        location,
        style,
        explode,
        required: location == Location::Path || at.is("required"),
    }))
}

fn body(
    document: &Document,
    at: &At<'_>,
    schemas: &mut Schemas<'_>,
    properties: &mut Map<String, Value>,
) -> Result<Option<Body>, Error> {
    let Some(given) = at.get("requestBody") else { return Ok(None) };
    let given = document.resolve(given)?;
    let content = given.get("content").ok_or_else(|| given.wrong("expected `content`"))?.members()?;
    let encoding_of = |kind: &str| {
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match kind.as_str() {
            _ if crate::web::http_client::is_json(&kind) => Some((0, Encoding::Json(kind))),
            "*/*" => Some((1, Encoding::Json("application/json".into()))),
            "application/x-www-form-urlencoded" => Some((2, Encoding::Form)),
            _ if kind.starts_with("text/") || kind.ends_with("xml") => Some((3, Encoding::Text(kind))),
            _ => None,
        }
    };
    let usable = content.iter().filter_map(|(kind, media)| Some((encoding_of(kind)?, media)));
    let Some(((_, encoding), media)) = usable.min_by_key(|((rank, _), _)| *rank) else {
        return Err(given.wrong("unsupported body type; expected JSON, a form or text"));
    };
    let mut schema = match media.get("schema") {
        Some(schema) => schemas.convert(&schema)?,
        None => json!({}),
    };
    if let (Some(description), Some(schema)) = (given.text("description"), schema.as_object_mut()) {
        schema.entry("description").or_insert_with(|| description.into());
    }
    let argument = free("body", properties);
    properties.insert(argument.clone(), schema);
    Ok(Some(Body { argument, encoding, required: given.is("required") }))
}
