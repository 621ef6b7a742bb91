//! Prints the merged configuration with the origin of every value and without secrets.

use std::collections::BTreeMap;

use serde_json::json;

use super::model::{
    CallbackHost, CommandLaunch, Config, InheritEnv, Launch, OauthGrant, Prefer, Share, Start,
    UpstreamConfig, UrlLaunch,
};
use super::quantity::{show_bytes, show_duration};
use super::report::Origin;
use super::sections::{
    DpopMode, GatewayAuthConfig, JwksSource, KeySource, ProviderKind, RuleConfig, TaskAfter,
};
use super::text::Text;
use bowline_policy::{Consent, Pattern};
use bowline_search::DisclosureMode;
use bowline_text::visible;

/// Writes the configuration as `bowline.toml`, with the origin of each value. Defaults are marked, and secrets are
/// masked.
///
/// ```
/// use bowline_config::{Environment, Loader, Scope, Source, explain};
/// use std::{collections::BTreeMap, path::PathBuf};
///
/// let text = r#"{ "mcpServers": { "time": { "command": "uvx", "env": { "API_KEY": "hunter22" } } } }"#;
/// let files = BTreeMap::from([(PathBuf::from("mcp.json"), text.to_owned())]);
/// let environment = Environment::new([("HOME", "/srv/ada")]);
/// let config = Loader::new(environment).source(Source::new("mcp.json", Scope::User)).load(&files);
///
/// let explained = explain(&config);
/// assert!(explained.contains("[servers.time]"));
/// assert!(!explained.contains("hunter22"));
/// ```
pub fn explain(config: &Config) -> String {
    let mut page = Page { text: String::new(), origins: &config.origins, prefix: String::new() };
    for upstream in &config.upstreams {
        explain_upstream(&mut page, upstream);
    }
    page.origins = &config.origins;
    sections(&mut page, config);
    for rule in &config.rules {
        explain_rule(&mut page, rule);
    }
    page.text
}

/// The output.
#[derive(Debug)]
struct Page<'a> {
    text: String,
    origins: &'a BTreeMap<String, Origin>,
    /// The prefix of names in the map of origins.
    prefix: String,
}

impl Page<'_> {
    /// Adds a line. Control characters from files cannot break it or hide in it.
    fn push<const N: usize>(&mut self, parts: [&str; N]) {
        self.text.extend(parts.map(visible));
        self.text.push('\n');
    }

    fn head(&mut self, head: &str, comment: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let comment = if comment.is_empty() { String::new() } else { format!("  # {comment}") };
        self.push([head, &comment]);
    }

    fn line(&mut self, name: &str, value: &str, origin: &str) {
        self.push([name, " = ", value, "  # ", origin]);
    }

    /// Writes a value with its origin, or marks it as a default.
    fn value(&mut self, name: &str, value: &serde_json::Value) {
        let origin = self.origins.get(&format!("{}{name}", self.prefix));
        let origin = origin.map_or_else(|| "default".to_owned(), Origin::short);
        self.line(name, &value.to_string(), &origin);
    }

    /// Writes a value only if a file sets it.
    fn written(&mut self, name: &str, value: &serde_json::Value) {
        if self.origins.contains_key(&format!("{}{name}", self.prefix)) {
            self.value(name, value);
        }
    }

    fn text(&mut self, name: &str, text: &Text) {
        self.line(name, &json!(text.shown()).to_string(), &text.origin().short());
    }
}

fn explain_upstream<'a>(page: &mut Page<'a>, upstream: &'a UpstreamConfig) {
    let approval = if upstream.needs_approval() { ", needs approval" } else { "" };
    let uses: Vec<&str> = upstream.uses.iter().map(String::as_str).collect();
    let reads = if uses.is_empty() { String::new() } else { format!(", reads {}", uses.join(", ")) };
    let comment = format!("{}, {}{approval}{reads}", upstream.origin.short(), upstream.dialect);
    page.head(&format!("[servers.{}]", key(&upstream.name)), &comment);
    page.origins = &upstream.origins;
    page.prefix.clear();
    match &upstream.launch {
        Launch::Command(command) => explain_command(page, command),
        Launch::Url(url) => explain_url(page, url),
    }
    let settings = &upstream.settings;
    page.written("description", &json!(settings.description));
    page.value("enabled", &json!(settings.enabled));
    let start = match settings.start {
        Start::Lazy => "lazy",
        Start::Eager => "eager",
    };
    page.value("start", &json!(start));
    let share = match settings.share {
        Share::Shared => "shared",
        Share::PerClient => "per-client",
    };
    page.value("share", &json!(share));
    if let Some(auth) = settings.auth {
        // Cursor has a member of this name with another meaning.
        page.value("auth", &json!(auth.as_str()));
    }
    page.value("startup_timeout", &json!(show_duration(settings.startup_timeout)));
    page.value("request_timeout", &json!(show_duration(settings.request_timeout)));
    page.value("idle_stop", &json!(settings.idle_stop.map_or_else(|| "never".to_owned(), show_duration)));
    page.written("task_after", &json!(settings.task_after.map(show_task_after)));
    page.value("trusted", &json!(settings.trusted));
    let patterns = |patterns: &[Pattern]| json!(patterns.iter().map(Pattern::as_str).collect::<Vec<_>>());
    page.written("allow", &patterns(&settings.allow));
    page.written("deny", &patterns(&settings.deny));
    page.written("auto_approve", &patterns(&settings.auto_approve));
    page.written("always_load", &json!(settings.always_load));
    page.written("rename", &json!(settings.rename));
    page.written("describe", &json!(settings.describe));
    page.written("roots", &json!(settings.roots.iter().map(|root| root.uri.shown()).collect::<Vec<_>>()));
    page.written("revision", &json!(settings.revision.map(bowline_types::Revision::as_str)));
    if let Some(memory) = settings.limits.memory {
        page.line("limits.memory", &json!(show_bytes(memory)).to_string(), &from(upstream, "limits"));
    }
    if let Some(time) = settings.limits.cpu_time {
        page.line("limits.cpu_time", &json!(show_duration(time)).to_string(), &from(upstream, "limits"));
    }
    if let Some(files) = settings.limits.files {
        page.line("limits.files", &files.to_string(), &from(upstream, "limits"));
    }
    let inherit = match &settings.inherit_env {
        InheritEnv::Default => json!("default"),
        InheritEnv::All => json!("all"),
        InheritEnv::None => json!("none"),
        InheritEnv::Matching(patterns) => json!(patterns),
    };
    page.written("inherit_env", &inherit);
    page.written("max_list_bytes", &json!(show_bytes(settings.max_list_bytes)));
    page.written("max_list_entries", &json!(settings.max_list_entries));
    let ping = settings.ping_interval.map_or_else(|| "never".to_owned(), show_duration);
    page.written("ping_interval", &json!(ping));
    for name in upstream.unknown.0.keys() {
        page.line(&key(name), "…", "unknown key, ignored");
    }
}

fn from(upstream: &UpstreamConfig, name: &str) -> String {
    upstream.origins.get(name).map_or_else(|| upstream.origin.short(), Origin::short)
}

fn show_task_after(after: TaskAfter) -> String {
    after.time().map_or_else(|| "never".to_owned(), show_duration)
}

fn explain_command(page: &mut Page<'_>, command: &CommandLaunch) {
    page.text("command", &command.program);
    if let Some(first) = command.args.first() {
        let args: Vec<&str> = command.args.iter().map(Text::shown).collect();
        page.line("args", &json!(args).to_string(), &first.origin().short());
    }
    for (name, value) in &command.env {
        let name = format!("env.{}", key(name));
        if let Some(value) = value {
            page.text(&name, value);
            continue;
        }
        let origin = page.origins.get("unset").or_else(|| page.origins.get("env"));
        let origin = origin.map_or_else(|| "default".to_owned(), Origin::short);
        page.line(&name, "unset", &origin);
    }
    if let Some(file) = &command.env_file {
        page.text("env_file", file);
    }
    if let Some(cwd) = &command.cwd {
        page.text("cwd", cwd);
    }
}

fn explain_url(page: &mut Page<'_>, url: &UrlLaunch) {
    page.text("url", &url.url);
    for (name, value) in &url.headers {
        page.text(&format!("headers.{}", key(name)), value);
    }
    if let Some(words) = &url.headers_helper {
        let origin = words.first().map_or_else(String::new, |word| word.origin().short());
        let words: Vec<&str> = words.iter().map(Text::shown).collect();
        page.line("headers_helper", &json!(words).to_string(), &origin);
    }
    if url.prefer == Prefer::Sse {
        page.line("transport", "\"sse\"", &url.url.origin().short());
    }
    if let Some(oauth) = &url.oauth {
        let texts = [
            ("client_id", &oauth.client_id),
            ("client_secret", &oauth.client_secret),
            ("metadata_url", &oauth.metadata_url),
            ("issuer", &oauth.issuer),
            ("authorization_url", &oauth.authorization_url),
            ("token_url", &oauth.token_url),
            ("resource", &oauth.resource),
            ("client_metadata_url", &oauth.client_metadata_url),
            ("private_key", &oauth.private_key),
            ("assertion_file", &oauth.assertion_file),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                page.text(&format!("oauth.{name}"), text);
            }
        }
        for (name, value) in &oauth.authorization_params {
            page.text(&format!("oauth.authorization_params.{}", key(name)), value);
        }
        let origin = page.origins.get("oauth").or_else(|| page.origins.get("auth"));
        let origin = origin.map_or_else(|| url.url.origin().short(), Origin::short);
        if !oauth.scopes.is_empty() {
            page.line("oauth.scopes", &json!(oauth.scopes).to_string(), &origin);
        }
        if let Some(port) = oauth.callback_port {
            page.line("oauth.callback_port", &port.to_string(), &origin);
        }
        let host = oauth.callback_host.map(|host| match host {
            CallbackHost::Address => "127.0.0.1",
            CallbackHost::Localhost => "localhost",
        });
        let grant = match oauth.grant {
            OauthGrant::AuthorizationCode => None,
            OauthGrant::ClientCredentials => Some("client_credentials"),
            OauthGrant::Workload => Some("workload"),
        };
        for (name, value) in [("callback_host", host), ("grant", grant)] {
            if let Some(value) = value {
                page.line(&format!("oauth.{name}"), &json!(value).to_string(), &origin);
            }
        }
        if oauth.dpop {
            page.line("oauth.dpop", "true", &origin);
        }
        if !oauth.allow.is_empty() {
            page.line("oauth.allow", &json!(oauth.allow).to_string(), &origin);
        }
    }
}

fn sections(page: &mut Page<'_>, config: &Config) {
    page.head("[gateway]", "");
    "gateway.".clone_into(&mut page.prefix);
    let gateway = &config.gateway;
    page.value("listen", &json!(gateway.listen.to_string()));
    page.value("path", &json!(gateway.path));
    page.value("name", &json!(gateway.name));
    page.written("instructions", &json!(gateway.instructions));
    page.written("allowed_origins", &json!(gateway.allowed_origins));
    page.written("allowed_hosts", &json!(gateway.allowed_hosts));
    page.written("token_env", &json!(gateway.token_env));
    page.value("max_name", &json!(gateway.max_name));
    page.written("consent", &json!(gateway.consent.map(Consent::as_str)));
    page.value("max_questions", &json!(gateway.max_questions));
    page.value("max_sessions", &json!(gateway.max_sessions));
    page.value("session_idle", &json!(show_duration(gateway.session_idle)));
    page.value("max_connections", &json!(gateway.max_connections));
    page.value("keep_alive", &json!(show_duration(gateway.keep_alive)));
    page.value("max_retained_bytes", &json!(show_bytes(gateway.max_retained_bytes)));
    page.value("shutdown_delay", &json!(show_duration(gateway.shutdown_delay)));
    page.value("max_client_servers", &json!(gateway.max_client_servers));
    page.value("max_client_servers_per_user", &json!(gateway.max_client_servers_per_user));
    if let Some(auth) = &gateway.auth {
        explain_auth(page, auth);
    }

    page.head("[sampling]", "");
    "sampling.".clone_into(&mut page.prefix);
    let sampling = &config.sampling;
    page.written("max_tokens_per_call", &json!(sampling.max_tokens_per_call));
    page.written("max_tokens_per_server", &json!(sampling.max_tokens_per_server));
    page.written("max_tokens_per_hour", &json!(sampling.max_tokens_per_hour));
    page.written("timeout", &json!(sampling.timeout.map(show_duration)));
    for (name, provider) in &sampling.providers {
        let kind = match provider.kind {
            ProviderKind::OpenAi => "openai",
            ProviderKind::Anthropic => "anthropic",
        };
        let mut members = vec![format!("kind = {}", json!(kind))];
        members.extend(provider.base_url.as_ref().map(|url| {
            let shown = super::text::mask_url(url).unwrap_or_else(|| url.clone());
            format!("base_url = {}", json!(shown))
        }));
        members.extend(provider.key.as_ref().map(|source| match source {
            KeySource::Env(name) => format!("key_env = {}", json!(name)),
            KeySource::File(path) => format!("key_file = {}", json!(path.display().to_string())),
        }));
        let value = format!("{{ {} }}", members.join(", "));
        page.line(&format!("providers.{}", key(name)), &value, &provider.origin.short());
    }
    for model in &sampling.models {
        let value = format!(
            "{{ name = {}, provider = {}, cost = {}, speed = {}, intelligence = {} }}",
            json!(model.name),
            json!(model.provider),
            model.cost,
            model.speed,
            model.intelligence
        );
        page.line("models", &value, &model.origin.short());
    }

    page.head("[audit]", "");
    "audit.".clone_into(&mut page.prefix);
    page.written("file", &json!(config.audit.file.as_ref().map(|file| file.display().to_string())));
    page.value("max_bytes", &json!(show_bytes(config.audit.max_bytes)));
    page.value("keep", &json!(config.audit.keep));
    page.value("required", &json!(config.audit.required));

    page.head("[store]", "");
    "store.".clone_into(&mut page.prefix);
    let store = &config.store;
    // A URL may contain a password.
    let shown =
        |url: &Option<String>| json!(url.as_deref().map(|url| bowline_text::visible(&without_password(url))));
    page.written("url", &shown(&store.url));
    page.written("url_env", &json!(store.url_env));
    page.value("namespace", &json!(store.namespace));
    page.written("keys_env", &json!(store.keys_env));
    page.written("bus", &shown(&store.bus));

    page.head("[sessions]", "");
    "sessions.".clone_into(&mut page.prefix);
    page.value("mode", &json!(config.sessions.mode.as_str()));
    page.value("resume", &json!(config.sessions.resume.as_str()));

    page.head("[tasks]", "");
    "tasks.".clone_into(&mut page.prefix);
    page.value("after", &json!(show_task_after(config.tasks.after)));
    page.value("ttl", &json!(show_duration(config.tasks.ttl)));

    page.head("[inspector]", "");
    "inspector.".clone_into(&mut page.prefix);
    page.written("memory", &json!(config.inspector.memory.map(show_bytes)));
    page.written("bodies", &json!(config.inspector.bodies));
    page.value("control", &json!(config.inspector.control));

    page.head("[disclosure]", "");
    "disclosure.".clone_into(&mut page.prefix);
    let mode = match config.disclosure.mode {
        DisclosureMode::Auto => "auto",
        DisclosureMode::Off => "off",
        DisclosureMode::On => "on",
    };
    page.value("mode", &json!(mode));
    page.value("threshold_tokens", &json!(config.disclosure.threshold_tokens));
}

/// Hides the password of a URL.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@').map(|(user, host)| (user.split(':').next().unwrap_or_default(), host)) {
        Some((user, host)) => format!("{scheme}://{user}:***@{host}{path}"),
        None => url.to_owned(),
    }
}

fn explain_auth(page: &mut Page<'_>, auth: &GatewayAuthConfig) {
    let origin = page.origins.get("gateway.auth").map(Origin::short).unwrap_or_default();
    let mut line = |name: &str, value: serde_json::Value| {
        let is_set = !value.is_null() && value != json!([]) && value != json!({});
        if is_set {
            page.line(&format!("auth.{name}"), &value.to_string(), &origin);
        }
    };
    line("issuer", json!(auth.issuers));
    line("resource", json!(auth.resource));
    line("audience", json!(auth.audience));
    line("scopes", json!(auth.scopes));
    line("subject_claim", json!(auth.subject_claim));
    line("scope_claim", json!(auth.scope_claim));
    line("implies", json!(auth.implies));
    match &auth.jwks {
        Some(JwksSource::File(path)) => line("jwks_file", json!(path.display().to_string())),
        Some(JwksSource::Url(url)) => line("jwks_url", json!(url)),
        None => {}
    }
    if let Some(introspection) = &auth.introspection {
        line("introspection.url", json!(introspection.url));
        line("introspection.client_id", json!(introspection.client_id));
        line("introspection.client_secret_env", json!(introspection.client_secret_env));
        line("introspection.max_age", json!(format!("{}s", introspection.max_age.as_secs())));
        line("introspection.without_audience", json!(introspection.without_audience.then_some(true)));
    }
    line(
        "dpop",
        json!(auth.dpop.map(|mode| match mode {
            DpopMode::Allowed => "allowed",
            DpopMode::Required => "required",
        })),
    );
    line("dpop_nonces", json!(auth.dpop_nonces.then_some(true)));
    if let Some(connect) = &auth.connect {
        line("connect.client_id", json!(connect.client_id));
        line("connect.client_secret_env", json!(connect.client_secret_env));
    }
}

fn explain_rule(page: &mut Page<'_>, rule: &RuleConfig) {
    page.head("[[rules]]", &rule.origin.short());
    let mut line = |name: &str, value: String| page.push([name, " = ", &value]);
    line("effect", json!(rule.effect.as_str()).to_string());
    if let Some(action) = rule.action {
        line("action", json!(action.as_str()).to_string());
    }
    let patterns = [
        ("server", &rule.server),
        ("tool", &rule.tool),
        ("caller", &rule.caller),
        ("principal", &rule.principal),
        ("issuer", &rule.issuer),
        ("client", &rule.client),
    ];
    for (name, pattern) in patterns {
        if let Some(pattern) = pattern {
            line(name, json!(pattern.as_str()).to_string());
        }
    }
    if !rule.scopes.is_empty() {
        let scopes: Vec<&str> = rule.scopes.iter().map(Pattern::as_str).collect();
        line("scopes", json!(scopes).to_string());
    }
    for (name, pattern) in &rule.claims {
        line(&format!("claims.{}", key(name)), json!(pattern.as_str()).to_string());
    }
    for (name, pattern) in &rule.arguments {
        line(&format!("arguments.{}", key(name)), json!(pattern.as_str()).to_string());
    }
    let annotations = [
        ("read_only", rule.annotations.read_only),
        ("destructive", rule.annotations.destructive),
        ("idempotent", rule.annotations.idempotent),
        ("open_world", rule.annotations.open_world),
    ];
    for (name, value) in annotations {
        if let Some(value) = value {
            line(&format!("annotations.{name}"), value.to_string());
        }
    }
    if let Some(reason) = &rule.reason {
        line("reason", json!(reason).to_string());
    }
}

/// Formats a name as a TOML key, quoted if necessary. Quoting escapes control characters.
fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if bare { name.to_owned() } else { json!(name).to_string() }
}
