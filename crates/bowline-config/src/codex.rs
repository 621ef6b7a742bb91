//! Reads the dialect of Codex: `[mcp_servers.NAME]` in its TOML file.

use serde_json::json;

use super::entry::{Context, Entry, EntryBuilder, Names, WrittenCommand};
use super::expand::Class;
use super::fields::{Located, Null, Unit};
use super::mcp_servers::scopes;
use super::model::{Launch, OauthConfig, UrlLaunch};
use super::node::{Member, Node};

const NAMES: Names = Names { program: "command", args: "args", env: "env", env_file: "" };

pub(crate) fn read(context: &Context<'_>, root: &Node) -> Vec<Entry> {
    let Some(servers) = root.get("mcp_servers") else { return Vec::new() };
    let Some(members) = servers.as_object() else {
        let message = format!("expected a table for each server, got {}", servers.kind());
        context.report.error_with(&servers.origin, "mcp_servers", message, "write `[mcp_servers.NAME]`");
        return Vec::new();
    };
    members.iter().filter_map(|member| entry(context, member)).collect()
}

fn entry(context: &Context<'_>, member: &Member) -> Option<Entry> {
    let mut builder = EntryBuilder::begin(context, "mcp_servers", member)?;
    let enabled = builder.fields.boolean("enabled");
    builder.enable(enabled);
    let seconds = builder.fields.duration("startup_timeout_sec", Unit::Seconds);
    let startup = seconds.or_else(|| builder.fields.duration("startup_timeout_ms", Unit::Milliseconds));
    builder.set("startup_timeout", startup, |settings, value| settings.startup_timeout = value);
    let request = builder.fields.duration("tool_timeout_sec", Unit::Seconds);
    builder.set("request_timeout", request, |settings, value| settings.request_timeout = value);
    let allow = builder.patterns("enabled_tools");
    builder.set("allow", allow, |settings, value| settings.allow = value);
    let deny = builder.patterns("disabled_tools");
    builder.set("deny", deny, |settings, value| settings.deny = value);
    builder.unknown = builder.fields.raw(&["required"]);
    let launch = if builder.fields.has("url") { remote(&mut builder) } else { command(&mut builder) };
    builder.finish(launch)
}

/// Escapes a value, because Codex does not expand variables.
fn literal(value: &str) -> String {
    value.replace("${", "$${")
}

fn command(builder: &mut EntryBuilder<'_>) -> Option<Launch> {
    let fields = &builder.fields;
    let mark = builder.report().mark();
    if !fields.has("command") {
        let help = format!("write {}", builder.report().example("command", &json!("npx")));
        let message = "expected `command` or `url`, got neither";
        builder.report().error_with(fields.origin, &fields.path, message, help);
    }
    let plain = |text: Located<String>| Located { value: literal(&text.value), origin: text.origin };
    let program = fields.string("command", "npx").map(plain);
    let args = fields.strings("args", &json!(["-y", "some-server"])).unwrap_or_default();
    let args = args.into_iter().map(plain).collect();
    let cwd = fields.string("cwd", ".").map(plain);
    let mut env = fields.map("env", Null::IsWrong).unwrap_or_default();
    for text in env.values_mut() {
        text.value = text.value.as_deref().map(literal);
    }
    // Variables that are passed on by name.
    for name in fields.strings("env_vars", &json!(["NAME"])).unwrap_or_default() {
        let value = Some(format!("${{{}:-}}", name.value));
        env.entry(name.value).or_insert(Located { value, origin: name.origin });
    }
    builder.record_origins(&[("command", "command"), ("args", "args"), ("env", "env"), ("cwd", "cwd")]);
    builder.launch(mark, &WrittenCommand { names: NAMES, program: program?, args, env, env_file: None, cwd })
}

fn remote(builder: &mut EntryBuilder<'_>) -> Option<Launch> {
    let fields = &builder.fields;
    let url = fields.string("url", "https://example.com/mcp");
    let mut headers = fields.map("http_headers", Null::IsWrong).unwrap_or_default();
    for text in headers.values_mut() {
        text.value = text.value.as_deref().map(literal);
    }
    for (name, variable) in fields.map("env_http_headers", Null::IsWrong).unwrap_or_default() {
        let value = variable.value.map(|variable| format!("${{{variable}}}"));
        headers.insert(name, Located { value, origin: variable.origin });
    }
    if let Some(variable) = fields.string("bearer_token_env_var", "TOKEN") {
        let value = Some(format!("Bearer ${{{}}}", variable.value));
        headers.insert("Authorization".to_owned(), Located { value, origin: variable.origin });
    }
    fields.keep(&["command", "args", "env", "env_vars", "cwd"]);
    let mut oauth = OauthConfig { scopes: scopes(fields, "scopes"), ..OauthConfig::default() };
    if let Some(resource) = fields.string("oauth_resource", "https://example.com/mcp") {
        let (written, path) = (literal(&resource.value), fields.at("oauth_resource"));
        oauth.resource = builder.expander.text(&written, &resource.origin, &path, Class::Url);
    }
    builder.record_origins(&[("url", "url")]);
    let oauth = (oauth != OauthConfig::default()).then(|| Box::new(oauth));
    builder.url("url", &url?, &headers, None).map(|launch| Launch::Url(UrlLaunch { oauth, ..launch }))
}
