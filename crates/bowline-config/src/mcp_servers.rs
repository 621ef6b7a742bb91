//! Reads the `mcpServers` dialect with the extensions of each client, and the similar entries of VS Code.

use bowline_types::Revision;
use serde_json::json;

use super::commands::split_words;
use super::dialect::Dialect;
use super::entry::{Context, Entry, EntryBuilder, Names, WrittenCommand};
use super::expand::Class;
use super::fields::{Fields, Located, Null, Unit};
use super::model::{Launch, OauthConfig, Prefer, RootConfig, Scope, UrlLaunch};
use super::node::{Member, Node, Value};
use super::oauth;
use super::report::NoticeKind;
use super::text::Text;
use bowline_policy::Pattern;

const NAMES: Names = Names { program: "command", args: "args", env: "env", env_file: "envFile" };

/// Members of clients that do not affect how a server is run.
const KEPT: [&str; 20] = [
    "dev",
    "sandbox",
    "sandboxEnabled",
    "icon",
    "icons",
    "gallery",
    "version",
    "modernLogLevel",
    "metadata",
    "taskTtl",
    "autoRefreshOnListChanged",
    "paginatedLists",
    "advertisedExtensions",
    "maxFetchRequests",
    "skillCatalogMaxSkills",
    "skillCatalogMaxBytes",
    "elicitCapability",
    "iconUrl",
    "fromGalleryId",
    "networkTimeout",
];

/// Members of the launch. They count as known even if the entry contradicts itself.
const LAUNCH: [&str; 14] = [
    "type",
    "transport",
    "transportType",
    "command",
    "args",
    "env",
    "envFile",
    "cwd",
    "url",
    "serverUrl",
    "headers",
    "headersHelper",
    "oauth",
    "auth",
];

/// Returns the entries of `mcpServers`, and those of the open project in `~/.claude.json`.
pub(crate) fn read(context: &Context<'_>, root: &Node) -> Vec<Entry> {
    let mut entries = Vec::new();
    if let Some(servers) = root.get("mcpServers") {
        entries.extend(read_map(context, servers, "mcpServers"));
    }
    let Some(workspace) = context.environment.workspace() else { return entries };
    let projects = root.get("projects").and_then(Node::as_object).unwrap_or_default();
    for project in projects.iter().filter(|project| std::path::Path::new(&project.name) == workspace) {
        let Some(servers) = project.node.get("mcpServers") else { continue };
        // The user's own settings for one project take precedence over the file of the project.
        let local = Context { scope: Scope::Local, inputs: context.inputs.clone(), ..*context };
        entries.extend(read_map(&local, servers, &format!("projects[\"{}\"].mcpServers", project.name)));
    }
    entries
}

pub(crate) fn read_map(context: &Context<'_>, servers: &Node, path: &str) -> Vec<Entry> {
    let Some(members) = servers.as_object() else {
        context.report.error_with(
            &servers.origin,
            path,
            format!("expected an object with an entry for each server, got {}", servers.kind()),
            format!("write {}", context.report.example("my-server", &json!({ "command": "npx" }))),
        );
        return Vec::new();
    };
    members.iter().filter_map(|member| entry(context, path, member)).collect()
}

/// The kind of launch that an entry names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
    Sse,
    WebSocket,
}

const KINDS: [(&str, Kind); 10] = [
    ("stdio", Kind::Stdio),
    ("http", Kind::Http),
    ("sse", Kind::Sse),
    ("streamable-http", Kind::Http),
    ("streamableHttp", Kind::Http),
    ("streamable_http", Kind::Http),
    ("http-stream", Kind::Http),
    ("local", Kind::Stdio),
    ("ws", Kind::WebSocket),
    ("websocket", Kind::WebSocket),
];

fn entry(context: &Context<'_>, parent: &str, member: &Member) -> Option<Entry> {
    let mut builder = EntryBuilder::begin(context, parent, member)?;
    builder.unknown = builder.fields.raw(&KEPT);
    builder.fields.keep(&LAUNCH);
    read_settings(&mut builder);
    let launch = read_launch(&mut builder);
    builder.finish(launch)
}

fn read_launch(builder: &mut EntryBuilder<'_>) -> Option<Launch> {
    let fields = &builder.fields;
    let report = builder.report();
    let kind = ["type", "transport", "transportType"]
        .into_iter()
        .find(|name| fields.has(name))
        .map(|name| fields.choice_among(name, &KINDS, 3));
    let kind = match kind {
        Some(None) => return None,
        Some(Some(kind)) => Some(kind),
        None => None,
    };
    if let Some(Located { value: Kind::WebSocket, origin }) = &kind {
        let help = format!("write {} if the server supports HTTP", report.example("type", &json!("http")));
        report.error_with(origin, &fields.at("type"), "WebSocket is not supported by MCP", help);
        return None;
    }
    let url_name = fields.first(&["url", "serverUrl", "httpUrl"]).map(|(name, _)| name);
    let has_command = fields.has("command");
    if let (true, Some(url_name)) = (has_command, url_name) {
        // Gemini allows `url` and `httpUrl` together, but no client allows a command and a URL.
        let message = format!("expected either `command` or `{url_name}`, got both");
        report.error_with(fields.name_origin(url_name), &fields.path, message, "remove one of them");
        return None;
    }
    let wants_command = match &kind {
        Some(kind) => kind.value == Kind::Stdio,
        None => url_name.is_none(),
    };
    if wants_command && !has_command {
        let message = match (&kind, url_name) {
            (Some(_), Some(url)) => format!("`type` is `stdio`, which requires `command`, not `{url}`"),
            _ => "expected `command` or `url`, got neither".to_owned(),
        };
        let help = match url_name {
            Some(_) => format!("write {}", report.example("type", &json!("http"))),
            None => format!(
                "write {} and {}, or {}",
                report.example("command", &json!("npx")),
                report.example("args", &json!(["-y", "some-server"])),
                report.example("url", &json!("https://example.com/mcp"))
            ),
        };
        report.error_with(builder.fields.origin, &fields.path, message, help);
        return None;
    }
    if wants_command {
        return command(builder);
    }
    let Some(url_name) = url_name else {
        let help = format!("write {}", report.example("url", &json!("https://example.com/mcp")));
        report.error_with(fields.origin, &fields.path, "expected `url` because of `type`, got none", help);
        return None;
    };
    let prefer = kind.map(|kind| if kind.value == Kind::Sse { Prefer::Sse } else { Prefer::Streamable });
    remote(builder, url_name, prefer)
}

fn command(builder: &mut EntryBuilder<'_>) -> Option<Launch> {
    let fields = &builder.fields;
    let null = if builder.context.dialect == Dialect::VsCode { Null::Unsets } else { Null::IsWrong };
    let mark = fields.report.mark();
    let program = fields.string("command", "npx");
    let args = fields.strings("args", &json!(["-y", "some-server"])).unwrap_or_default();
    let env = fields.map("env", null).unwrap_or_default();
    let env_file = fields.string("envFile", "${workspaceFolder}/.env");
    let cwd = fields.string("cwd", "${workspaceFolder}").or_else(|| fields.string("workingDirectory", "."));
    builder.record_origins(&["command", "args", "env", "cwd"].map(|name| (name, name)));
    builder.record_origins(&[("envFile", "env_file")]);
    builder.launch(mark, &WrittenCommand { names: NAMES, program: program?, args, env, env_file, cwd })
}

fn remote(builder: &mut EntryBuilder<'_>, url_name: &str, prefer: Option<Prefer>) -> Option<Launch> {
    let fields = &builder.fields;
    let url = fields.string(url_name, "https://example.com/mcp");
    let headers = fields.map("headers", Null::IsWrong).unwrap_or_default();
    let helper = fields.string("headersHelper", "/opt/bin/print-headers");
    // These members apply to local servers; editors keep them when the type is changed.
    fields.keep(&["args", "env", "envFile", "cwd", "workingDirectory"]);
    builder.record_origins(&[(url_name, "url"), ("headers", "headers"), ("headersHelper", "headers_helper")]);
    builder.record_origins(&[("oauth", "oauth"), ("auth", "auth")]);
    let launch = builder.url(url_name, &url?, &headers, prefer);
    let helper = helper.map(|helper| headers_helper(builder, &helper));
    let oauth = oauth::read(builder, &oauth::MCP_SERVERS);
    let (oauth, bearer) = read_auth(builder, oauth);
    let oauth = oauth.map(Box::new);
    let mut launch = launch?;
    if let Some(bearer) = bearer {
        launch.headers.entry("Authorization".to_owned()).or_insert(bearer);
    }
    launch.headers_helper = match helper {
        Some(words) => Some(words?),
        None => None,
    };
    Some(Launch::Url(UrlLaunch { oauth, ..launch }))
}

fn headers_helper(builder: &EntryBuilder<'_>, helper: &Located<String>) -> Option<Vec<Text>> {
    let path = builder.fields.at("headersHelper");
    let words = match split_words(&helper.value) {
        Ok(words) if !words.is_empty() => words,
        Ok(_) => {
            builder.report().error(&helper.origin, &path, "expected a command, got nothing");
            return None;
        }
        Err(error) => {
            builder.report().error(&helper.origin, &path, error);
            return None;
        }
    };
    if words
        .iter()
        .any(|word| word.contains(['|', ';', '>', '<', '`']) || word.contains("$(") || word == "&&")
    {
        builder.report().notice(
            &helper.origin,
            &path,
            NoticeKind::Advice,
            "the command runs without a shell; use a script for pipes and redirections",
        );
    }
    words.iter().map(|word| builder.expander.text(word, &helper.origin, &path, Class::Open)).collect()
}

/// Reads `auth`: a static client in the notation of Cursor, or a token as a plain string.
fn read_auth(
    builder: &mut EntryBuilder<'_>,
    oauth: Option<OauthConfig>,
) -> (Option<OauthConfig>, Option<Text>) {
    let Some(node) = builder.fields.get("auth") else { return (oauth, None) };
    let path = builder.fields.at("auth");
    match &node.value {
        Value::String(word) if word == "oauth" => (oauth, None),
        Value::String(token) => {
            let token = builder.expander.text(token, &node.origin, &path, Class::Private);
            let bearer = token.map(|token| {
                let shown = format!("Bearer {}", token.shown());
                Text::secret(format!("Bearer {}", token.expose()), shown, node.origin.clone())
            });
            (oauth, bearer)
        }
        _ => {
            let Some(fields) = Fields::new(node, path, builder.report()) else { return (oauth, None) };
            let private = |name: &str, class| {
                let located = fields.string(name, "…")?;
                builder.expander.text(&located.value, &located.origin, &fields.at(name), class)
            };
            let auth = OauthConfig {
                client_id: private("CLIENT_ID", Class::Open),
                client_secret: private("CLIENT_SECRET", Class::Private),
                scopes: scopes(&fields, "scopes"),
                ..OauthConfig::default()
            };
            let rest = fields.finish();
            if !rest.is_empty() {
                builder.unknown.insert("auth".to_owned(), rest.into());
            }
            (Some(auth), None)
        }
    }
}

/// Reads scopes: a list, or one string with spaces.
pub(crate) fn scopes(fields: &Fields<'_>, name: &str) -> Vec<String> {
    match fields.get(name) {
        Some(node) => match node.as_str() {
            Some(text) => text.split_whitespace().map(str::to_owned).collect(),
            None => fields
                .strings(name, &json!(["read"]))
                .unwrap_or_default()
                .into_iter()
                .map(|scope| scope.value)
                .collect(),
        },
        None => Vec::new(),
    }
}

pub(crate) fn port(fields: &Fields<'_>, name: &str) -> Option<u16> {
    let count = fields.count(name, 8765)?;
    let port = u16::try_from(count.value).ok();
    if port.is_none() {
        fields.report.error_with(
            &count.origin,
            &fields.at(name),
            format!("expected a port up to 65535, got `{}`", count.value),
            format!("write {}", fields.report.example(name, &json!(8765))),
        );
    }
    port
}

fn read_settings(builder: &mut EntryBuilder<'_>) {
    let enabled = builder.fields.boolean("enabled");
    let disabled = builder.fields.boolean("disabled");
    let enabled =
        disabled.map(|located| Located { value: !located.value, origin: located.origin }).or(enabled);
    builder.enable(enabled);

    let description = builder.fields.string("description", "What it is for");
    builder.set("description", description, |settings, value| settings.description = Some(value));
    let always = builder.fields.boolean("alwaysLoad");
    builder.set("always_load", always, |settings, value| settings.always_load = value);

    for name in ["tools", "includeTools", "enabledTools"] {
        let patterns = builder.patterns(name);
        builder.set("allow", patterns, |settings, value| settings.allow = value);
    }
    for name in ["excludeTools", "disabledTools"] {
        let patterns = builder.patterns(name);
        builder.set("deny", patterns, |settings, value| settings.deny = value);
    }
    for name in ["autoApprove", "alwaysAllow"] {
        let patterns = builder.patterns(name);
        let patterns = builder.own(name, patterns);
        builder.set("auto_approve", patterns, |settings, value| settings.auto_approve.extend(value));
    }
    let trust = builder.fields.boolean("trust");
    let trust = builder.own("trust", trust);
    builder.set("auto_approve", trust.filter(|trust| trust.value), |settings, _| {
        settings.auto_approve = vec![Pattern::new("*")];
    });

    let unit = timeout_unit(builder);
    let timeout = builder.fields.duration("timeout", unit);
    builder.set("request_timeout", timeout, |settings, value| settings.request_timeout = value);
    let request = builder.fields.duration("requestTimeout", Unit::Milliseconds);
    builder.set("request_timeout", request, |settings, value| settings.request_timeout = value);
    let connection = builder.fields.duration("connectionTimeout", Unit::Milliseconds);
    builder.set("startup_timeout", connection, |settings, value| settings.startup_timeout = value);

    let eras =
        [("auto", None), ("legacy", Some(Revision::V2025_11_25)), ("modern", Some(Revision::V2026_07_28))];
    let era = builder.fields.choice("protocolEra", &eras);
    builder.set("revision", era, |settings, value| settings.revision = value);
    read_roots(builder);
}

/// Returns the unit of `timeout`. Cline uses seconds and others milliseconds; a value that would be less than a second
/// is in seconds.
fn timeout_unit(builder: &EntryBuilder<'_>) -> Unit {
    let file = builder.context.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if file.starts_with("cline") {
        return Unit::Seconds;
    }
    let Some(node) = builder.fields.get("timeout") else { return Unit::Milliseconds };
    match &node.value {
        Value::Number(number) if number.as_f64().is_some_and(|number| number < 1000.0) => {
            builder.report().notice(
                &node.origin,
                &builder.fields.at("timeout"),
                NoticeKind::Advice,
                format!("`timeout` is in milliseconds; `{number}` was interpreted as seconds"),
            );
            Unit::Seconds
        }
        _ => Unit::Milliseconds,
    }
}

/// Reads roots: objects with a `uri`, or plain strings.
pub(crate) fn read_roots(builder: &mut EntryBuilder<'_>) {
    let Some(node) = builder.fields.get("roots") else { return };
    let example = json!([{ "uri": "file:///srv/project", "name": "project" }]);
    let Some(items) = node.as_array() else {
        builder.fields.report_invalid(node, "roots", "an array of roots", &example);
        return;
    };
    let mut roots = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = builder.fields.at(&format!("roots[{index}]"));
        let mut name = None;
        let uri = if let Value::String(uri) = &item.value {
            uri.clone()
        } else {
            let Some(fields) = Fields::new(item, path.clone(), builder.report()) else { continue };
            if !fields.has("uri") {
                let help =
                    format!("write {}", builder.report().example("uri", &json!("file:///srv/project")));
                builder.report().error_with(&item.origin, &path, "expected `uri`, got none", help);
            }
            let uri = fields.string("uri", "file:///srv/project");
            name = fields.string("name", "project").map(|name| name.value);
            fields.finish();
            let Some(uri) = uri else { continue };
            uri.value
        };
        let origin = &item.origin;
        let text = if uri.starts_with("file:") {
            builder.expander.text(&uri, origin, &path, Class::Open)
        } else {
            builder.expander.path(&uri, origin, &path, &builder.context.base())
        };
        roots.extend(text.map(|uri| RootConfig { uri, name }));
    }
    builder.set("roots", Some(Located { value: roots, origin: node.origin.clone() }), |settings, value| {
        settings.roots = value;
    });
}
