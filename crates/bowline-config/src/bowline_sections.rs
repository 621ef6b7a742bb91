//! Reads the sections of `bowline.toml` other than servers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::bowline::{task_after, time_or_never};
use super::entry::Context;
use super::expand::absolute;
use super::fields::{Fields, Located, Null, Unit};
use super::gateway_auth::gateway_auth;
use super::model::Config;
use super::node::Node;
use super::report::{NoticeKind, Origin};
use super::sections::{
    AnnotationsConfig, KeySource, ModelConfig, ProviderConfig, ProviderKind, ResumeMode, RuleConfig,
    SessionMode,
};
use bowline_policy::{Action, Consent, Effect, Pattern};
use bowline_search::DisclosureMode;

/// The longest `ttl` of tasks of the gateway.
const MAX_TASK_TTL: Duration = Duration::from_secs(24 * 3600);

/// Applies the sections of a file on top of those of files with lower precedence.
pub(crate) fn apply(context: &Context<'_>, root: &Node, config: &mut Config) {
    let Some(fields) = Fields::new(root, "", context.report) else { return };
    fields.keep(&["include", "servers", "inputs"]);
    for name in ["gateway", "sampling", "audit", "store", "sessions", "tasks", "inspector", "disclosure"] {
        let Some(node) = fields.get(name) else { continue };
        // A project must not open ports, choose who receives prompts and keys, turn off the audit log, or let links act.
        if !context.scope.is_own() {
            context.report.notice(
                fields.name_origin(name),
                name,
                NoticeKind::Ignored,
                "ignored in project files; set it in your user configuration",
            );
            continue;
        }
        let Some(section) = Fields::new(node, name, context.report) else { continue };
        let mut reader = Reader { context, fields: section, origins: &mut config.origins };
        match name {
            "gateway" => gateway(&mut reader, &mut config.gateway),
            "sampling" => sampling(&mut reader, &mut config.sampling),
            "audit" => audit(&mut reader, &mut config.audit),
            "store" => store(&mut reader, &mut config.store),
            "sessions" => sessions(&mut reader, &mut config.sessions),
            "tasks" => tasks(&mut reader, &mut config.tasks),
            "inspector" => inspector(&mut reader, &mut config.inspector),
            _ => disclosure(&mut reader, &mut config.disclosure),
        }
        match name {
            "disclosure" => drop(reader.fields.finish()),
            // A misspelled token, log or limit would silently have no effect.
            _ => reader.fields.reject_unknown(),
        }
    }
    let rules = fields.get("rules").map(|node| rules(context, node)).unwrap_or_default();
    // Rules of the file with higher precedence are checked first.
    config.rules.splice(0..0, rules);
    if context.scope.is_own() {
        fields.reject_typos(&["rules", "gateway", "audit"]);
    }
    fields.finish();
}

/// Reads one section.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) fields: Fields<'a>,
    origins: &'a mut BTreeMap<String, Origin>,
}

impl Reader<'_> {
    fn set<T>(&mut self, name: &str, located: Option<Located<T>>, apply: impl FnOnce(T)) {
        if let Some(located) = located {
            self.origins.insert(self.fields.at(name), located.origin);
            apply(located.value);
        }
    }

    fn strings(&self, name: &str, example: &str) -> Option<Located<Vec<String>>> {
        let strings = self.fields.strings(name, &json!([example]))?;
        let value = strings.into_iter().map(|text| text.value).collect();
        Some(Located { value, origin: self.fields.name_origin(name).clone() })
    }

    /// Reports invalid elements of a list. Returns `false` if there is one.
    fn each(&self, name: &str, expected: &str, is_valid: fn(&str) -> bool) -> bool {
        let items = self.fields.get(name).and_then(Node::as_array).unwrap_or_default();
        let mut all = true;
        for (index, item) in items.iter().enumerate() {
            if item.as_str().is_some_and(|text| !is_valid(text)) {
                all = false;
                let help = "correct it or remove it";
                self.fields.report_invalid_with(item, &format!("{name}[{index}]"), expected, help);
            }
        }
        all
    }

    /// Returns a path, relative to the directory of the file.
    pub(super) fn path(&self, fields: &Fields<'_>, name: &str, example: &str) -> Option<Located<PathBuf>> {
        let text = fields.string(name, example)?;
        let path = absolute(&text.value, self.context.environment.home(), &self.context.base());
        Some(Located { value: PathBuf::from(path), origin: text.origin })
    }
}

fn gateway(reader: &mut Reader<'_>, gateway: &mut super::sections::GatewayConfig) {
    let listen = reader.fields.get("listen").and_then(|node| {
        let address = node.as_str().and_then(|text| {
            let text = text
                .strip_prefix("localhost:")
                .map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
            text.parse::<SocketAddr>().ok()
        });
        if address.is_none() {
            reader.fields.report_invalid(node, "listen", "an address and a port", &json!("127.0.0.1:7337"));
        }
        Some(Located { value: address?, origin: node.origin.clone() })
    });
    reader.set("listen", listen, |value| gateway.listen = value);
    let path = reader.fields.get("path").and_then(|node| {
        let path = node.as_str().filter(|path| path.starts_with('/') && !path.contains(['?', '#', ' ']));
        if path.is_none() {
            reader.fields.report_invalid(node, "path", "a path that begins with `/`", &json!("/mcp"));
        }
        Some(Located { value: path?.to_owned(), origin: node.origin.clone() })
    });
    reader.set("path", path, |value| gateway.path = value);
    let name = reader.fields.string("name", "bowline");
    reader.set("name", name, |value| gateway.name = value);
    let instructions = reader.fields.string("instructions", "What the servers are for");
    reader.set("instructions", instructions, |value| gateway.instructions = Some(value));
    let origins = reader.strings("allowed_origins", "https://app.example.com");
    let origins = origins.filter(|_| {
        let expected = "an origin such as `https://app.example.com`, without a path";
        reader.each("allowed_origins", expected, is_origin)
    });
    reader.set("allowed_origins", origins, |value| gateway.allowed_origins = value);
    let hosts = reader.strings("allowed_hosts", "mcp.example.com");
    let hosts = hosts.filter(|_| {
        let expected = "a host such as `mcp.example.com`, or `*` for all of them";
        reader.each("allowed_hosts", expected, is_host)
    });
    reader.set("allowed_hosts", hosts, |value| gateway.allowed_hosts = value);
    let token = reader.fields.string("token_env", "BOWLINE_TOKEN");
    reader.set("token_env", token, |value| gateway.token_env = Some(value));
    let longest = reader.fields.get("max_name").and_then(|node| {
        let count = reader.fields.count("max_name", 60)?;
        let value = u16::try_from(count.value).ok().filter(|value| (16..=128).contains(value));
        if value.is_none() {
            reader.fields.report_invalid(node, "max_name", "a length between 16 and 128", &json!(60));
        }
        Some(Located { value: value?, origin: count.origin })
    });
    reader.set("max_name", longest, |value| gateway.max_name = value);
    let consent = reader.fields.get("consent").and_then(|node| {
        let consent = node.as_str().and_then(Consent::named);
        if consent.is_none() {
            reader.fields.report_invalid(node, "consent", "`client`, `ask` or `deny`", &json!("ask"));
        }
        Some(Located { value: consent?, origin: node.origin.clone() })
    });
    reader.set("consent", consent, |value| gateway.consent = Some(value));
    let questions = reader.fields.get("max_questions").and_then(|node| {
        let count = reader.fields.count("max_questions", 10)?;
        let value = usize::try_from(count.value).ok().filter(|value| (1..=1_000).contains(value));
        if value.is_none() {
            reader.fields.report_invalid(node, "max_questions", "a number from 1 to 1000", &json!(10));
        }
        Some(Located { value: value?, origin: count.origin })
    });
    reader.set("max_questions", questions, |value| gateway.max_questions = value);
    let sessions = reader.fields.get("max_sessions").and_then(|node| {
        let count = reader.fields.count("max_sessions", 1_000)?;
        let value = usize::try_from(count.value).ok().filter(|value| *value > 0);
        if value.is_none() {
            reader.fields.report_invalid(node, "max_sessions", "at least one", &json!(1_000));
        }
        Some(Located { value: value?, origin: count.origin })
    });
    reader.set("max_sessions", sessions, |value| gateway.max_sessions = value);
    let idle = reader.fields.duration("session_idle", Unit::Seconds);
    reader.set("session_idle", idle, |value| gateway.session_idle = value);
    let connections = reader.fields.get("max_connections").and_then(|node| {
        let count = reader.fields.count("max_connections", 10_000)?;
        let value = usize::try_from(count.value).ok().filter(|value| *value > 0);
        if value.is_none() {
            reader.fields.report_invalid(node, "max_connections", "at least one", &json!(10_000));
        }
        Some(Located { value: value?, origin: count.origin })
    });
    reader.set("max_connections", connections, |value| gateway.max_connections = value);
    let keep_alive = reader.fields.duration("keep_alive", Unit::Seconds);
    reader.set("keep_alive", keep_alive, |value| gateway.keep_alive = value);
    let retained = reader.fields.bytes("max_retained_bytes");
    reader.set("max_retained_bytes", retained, |value| gateway.max_retained_bytes = value);
    let delay = match reader.fields.get("shutdown_delay") {
        Some(node) if node.as_str() == Some("0s") => {
            Some(Located { value: Duration::ZERO, origin: node.origin.clone() })
        }
        _ => reader.fields.duration("shutdown_delay", Unit::Seconds),
    };
    reader.set("shutdown_delay", delay, |value| gateway.shutdown_delay = value);
    for (name, example) in [("max_client_servers", 256), ("max_client_servers_per_user", 64)] {
        let limit = reader.fields.get(name).and_then(|node| {
            let count = reader.fields.count(name, example)?;
            let value = usize::try_from(count.value).ok().filter(|value| *value > 0);
            if value.is_none() {
                reader.fields.report_invalid(node, name, "at least one", &json!(example));
            }
            Some(Located { value: value?, origin: count.origin })
        });
        reader.set(name, limit, |value| match name {
            "max_client_servers" => gateway.max_client_servers = value,
            _ => gateway.max_client_servers_per_user = value,
        });
    }
    if let Some(node) = reader.fields.get("auth") {
        let auth = gateway_auth(reader, node);
        let located = auth.map(|value| Located { value, origin: node.origin.clone() });
        reader.set("auth", located, |value| gateway.auth = Some(value));
    }
}

/// Returns whether a text is a host with or without a port, or `*`.
fn is_host(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    text == "*" || (!text.is_empty() && text.bytes().all(is_part))
}

/// Returns whether a text is an origin in the form that browsers send.
fn is_origin(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, host)| !scheme.is_empty() && host != "*" && is_host(host))
}

fn audit(reader: &mut Reader<'_>, audit: &mut super::sections::AuditConfig) {
    let file = reader.path(&reader.fields, "file", "audit.jsonl");
    reader.set("file", file, |value| audit.file = Some(value));
    let size = reader.fields.bytes("max_bytes");
    reader.set("max_bytes", size, |value| audit.max_bytes = value);
    let keep = reader.fields.get("keep").and_then(|node| {
        let count = reader.fields.count("keep", 5)?;
        let value = u32::try_from(count.value).ok().filter(|value| *value <= 10_000);
        if value.is_none() {
            reader.fields.report_invalid(node, "keep", "at most 10000 files", &json!(5));
        }
        Some(Located { value: value?, origin: count.origin })
    });
    reader.set("keep", keep, |value| audit.keep = value);
    let required = reader.fields.boolean("required");
    reader.set("required", required, |value| audit.required = value);
}

/// Less holds no useful number of messages; more is a mistake.
const INSPECTOR_MEMORY: std::ops::RangeInclusive<u64> = (1 << 20)..=(4 << 30);

fn inspector(reader: &mut Reader<'_>, inspector: &mut super::sections::InspectorConfig) {
    let memory = reader.fields.get("memory").and_then(|node| {
        let size = reader.fields.bytes("memory")?;
        if INSPECTOR_MEMORY.contains(&size.value) {
            return Some(size);
        }
        reader.fields.report_invalid(node, "memory", "between 1MiB and 4GiB", &json!("64MiB"));
        None
    });
    reader.set("memory", memory, |value| inspector.memory = Some(value));
    let bodies = reader.fields.boolean("bodies");
    reader.set("bodies", bodies, |value| inspector.bodies = Some(value));
    let control = reader.fields.boolean("control");
    reader.set("control", control, |value| inspector.control = value);
}

fn store(reader: &mut Reader<'_>, store: &mut super::sections::StoreConfig) {
    let url = reader.fields.string("url", "sqlite:state.db");
    reader.set("url", url, |value| store.url = Some(value));
    let variable = reader.fields.string("url_env", "BOWLINE_STORE_URL");
    reader.set("url_env", variable, |value| store.url_env = Some(value));
    let namespace = reader.fields.get("namespace").and_then(|node| {
        let text = reader.fields.string("namespace", "prod")?;
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if (1..=64).contains(&text.value.len()) && text.value.bytes().all(is_part) {
            return Some(text);
        }
        let expected = "1 to 64 of the characters a-z, A-Z, 0-9, `.`, `_` and `-`";
        reader.fields.report_invalid(node, "namespace", expected, &json!("prod"));
        None
    });
    reader.set("namespace", namespace, |value| store.namespace = value);
    let keys = reader.strings("keys_env", "BOWLINE_KEY");
    reader.set("keys_env", keys, |value| store.keys_env = value);
    let bus = reader.fields.string("bus", "redis://cache");
    reader.set("bus", bus, |value| store.bus = Some(value));
}

fn sessions(reader: &mut Reader<'_>, sessions: &mut super::sections::SessionsConfig) {
    let modes =
        [("process", SessionMode::Process), ("sealed", SessionMode::Sealed), ("store", SessionMode::Store)];
    let mode = reader.fields.choice("mode", &modes);
    reader.set("mode", mode, |value| sessions.mode = value);
    let resume = reader.fields.choice("resume", &[("store", ResumeMode::Store), ("node", ResumeMode::Node)]);
    reader.set("resume", resume, |value| sessions.resume = value);
}

fn tasks(reader: &mut Reader<'_>, tasks: &mut super::sections::TasksConfig) {
    let after = time_or_never(&reader.fields, "after");
    reader.set("after", after, |value| tasks.after = task_after(value));
    let ttl = reader.fields.get("ttl").and_then(|node| {
        let ttl = reader.fields.duration("ttl", Unit::Seconds)?;
        if ttl.value <= MAX_TASK_TTL {
            return Some(ttl);
        }
        reader.fields.report_invalid(
            node,
            "ttl",
            "at most 24 hours, the time that old keys are kept",
            &json!("1h"),
        );
        None
    });
    reader.set("ttl", ttl, |value| tasks.ttl = value);
}

fn disclosure(reader: &mut Reader<'_>, disclosure: &mut super::sections::DisclosureConfig) {
    let modes = [("auto", DisclosureMode::Auto), ("off", DisclosureMode::Off), ("on", DisclosureMode::On)];
    let mode = reader.fields.choice("mode", &modes);
    reader.set("mode", mode, |value| disclosure.mode = value);
    let threshold = reader.fields.count("threshold_tokens", 20_000);
    reader.set("threshold_tokens", threshold, |value| disclosure.threshold_tokens = value);
}

fn sampling(reader: &mut Reader<'_>, sampling: &mut super::sections::SamplingConfig) {
    let call = reader.fields.count("max_tokens_per_call", 4096);
    reader.set("max_tokens_per_call", call, |value| sampling.max_tokens_per_call = Some(value));
    let server = reader.fields.count("max_tokens_per_server", 100_000);
    reader.set("max_tokens_per_server", server, |value| sampling.max_tokens_per_server = Some(value));
    let hour = reader.fields.count("max_tokens_per_hour", 100_000);
    reader.set("max_tokens_per_hour", hour, |value| sampling.max_tokens_per_hour = Some(value));
    let timeout = reader.fields.duration("timeout", Unit::Seconds);
    reader.set("timeout", timeout, |value| sampling.timeout = Some(value));

    if let Some(providers) = reader.fields.get("providers") {
        if let Some(members) = providers.as_object() {
            for member in members {
                if let Some(provider) = provider(reader, &member.node, &member.name, &member.origin) {
                    let path = reader.fields.at(&format!("providers.{}", member.name));
                    reader.origins.insert(path, member.origin.clone());
                    sampling.providers.insert(member.name.clone(), provider);
                }
            }
        } else {
            let help = "write `[sampling.providers.local]` and its settings below it";
            reader.fields.report_invalid_with(providers, "providers", "a table for each provider", help);
        }
    }
    if let Some(models) = reader.fields.get("models") {
        if let Some(items) = models.as_array() {
            let read = items.iter().enumerate().filter_map(|(index, item)| model(reader, item, index));
            sampling.models = read.collect();
            reader.origins.insert(reader.fields.at("models"), models.origin.clone());
        } else {
            let help = "write `[[sampling.models]]` and its settings below it";
            reader.fields.report_invalid_with(models, "models", "a list of models", help);
        }
    }
    for model in &sampling.models {
        if !sampling.providers.contains_key(&model.provider) {
            let near = bowline_text::nearest(&model.provider, sampling.providers.keys().map(String::as_str));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add `[sampling.providers.{}]`", model.provider),
            };
            reader.context.report.error_with(
                &model.origin,
                &reader.fields.at("models"),
                format!("model `{}` refers to the unknown provider `{}`", model.name, model.provider),
                help,
            );
        }
    }
    let known: Vec<String> = sampling.providers.keys().cloned().collect();
    sampling.models.retain(|model| known.contains(&model.provider));
}

fn provider(reader: &Reader<'_>, node: &Node, name: &str, origin: &Origin) -> Option<ProviderConfig> {
    let report = reader.context.report;
    let mark = report.mark();
    let fields = Fields::new(node, reader.fields.at(&format!("providers.{name}")), report)?;
    let kinds = [("openai", ProviderKind::OpenAi), ("anthropic", ProviderKind::Anthropic)];
    let kind = fields.choice("kind", &kinds);
    if !fields.has("kind") {
        let help = format!("write {}", report.example("kind", &json!("openai")));
        report.error_with(origin, &fields.path, "expected `kind`, got none", help);
    }
    let base_url = fields.get("base_url").and_then(|node| {
        let url = node.as_str().filter(|url| url.starts_with("http://") || url.starts_with("https://"));
        if url.is_none() {
            fields.report_invalid(
                node,
                "base_url",
                "a URL with `https://` or `http://`",
                &json!("http://127.0.0.1:11434/v1"),
            );
        }
        url.map(str::to_owned)
    });
    for name in ["key", "api_key", "token"] {
        if fields.has(name) {
            // Everything that can read the file could read the key.
            report.error_with(
                fields.name_origin(name),
                &fields.at(name),
                "API keys are not allowed in this file",
                format!("write {}", report.example("key_env", &json!("OPENAI_API_KEY"))),
            );
        }
        fields.keep(&[name]);
    }
    let key_env = fields.string("key_env", "OPENAI_API_KEY");
    let key_file = reader.path(&fields, "key_file", "~/.config/bowline/key");
    let key = match (key_env, key_file) {
        (Some(_), Some(file)) => {
            let message = "expected either `key_env` or `key_file`, got both";
            report.error_with(&file.origin, &fields.path, message, "remove one of them");
            None
        }
        (Some(name), None) => Some(KeySource::Env(name.value)),
        (None, Some(file)) => Some(KeySource::File(file.value)),
        (None, None) => None,
    };
    fields.finish();
    if report.mark() > mark {
        return None;
    }
    Some(ProviderConfig { origin: origin.clone(), kind: kind?.value, base_url, key })
}

fn model(reader: &Reader<'_>, node: &Node, index: usize) -> Option<ModelConfig> {
    let report = reader.context.report;
    let mark = report.mark();
    let fields = Fields::new(node, reader.fields.at(&format!("models[{index}]")), report)?;
    let required = |name: &str, example: &str| {
        if !fields.has(name) {
            let help = format!("write {}", report.example(name, &json!(example)));
            report.error_with(&node.origin, &fields.path, format!("expected `{name}`, got none"), help);
        }
        fields.string(name, example).map(|text| text.value)
    };
    let name = required("name", "model-name");
    let provider = required("provider", "cloud");
    let aliases = fields.strings("aliases", &json!(["small"])).unwrap_or_default();
    // The default is the middle of the scale.
    let [cost, speed, intelligence] =
        ["cost", "speed", "intelligence"].map(|name| fields.share(name).unwrap_or(0.5));
    fields.finish();
    if report.mark() > mark {
        return None;
    }
    let aliases = aliases.into_iter().map(|alias| alias.value).collect();
    Some(ModelConfig {
        origin: node.origin.clone(),
        name: name?,
        provider: provider?,
        aliases,
        cost,
        speed,
        intelligence,
    })
}

fn rules(context: &Context<'_>, node: &Node) -> Vec<RuleConfig> {
    let Some(items) = node.as_array() else {
        context.report.error_with(
            &node.origin,
            "rules",
            format!("expected a list of rules, got {}", node.kind()),
            "write `[[rules]]` with two brackets and `effect = \"ask\"` below it",
        );
        return Vec::new();
    };
    items.iter().enumerate().filter_map(|(index, item)| rule(context, item, index)).collect()
}

fn rule(context: &Context<'_>, node: &Node, index: usize) -> Option<RuleConfig> {
    let report = context.report;
    let mark = report.mark();
    let fields = Fields::new(node, format!("rules[{index}]"), report)?;
    let effects = [("ask", Effect::Ask), ("deny", Effect::Deny), ("allow", Effect::Allow)];
    let effect = fields.choice("effect", &effects);
    if !fields.has("effect") {
        let help = format!("write {}", report.example("effect", &json!("ask")));
        report.error_with(&node.origin, &fields.path, "expected `effect`, got none", help);
    }
    let action = fields.choice("action", &Action::ALL.map(|action| (action.as_str(), action)));
    let pattern = |name: &str| fields.string(name, "*").map(|text| Pattern::new(text.value));
    let (server, tool, caller) = (pattern("server"), pattern("tool"), pattern("caller"));
    let (principal, issuer, client) = (pattern("principal"), pattern("issuer"), pattern("client"));
    let scopes = fields.strings("scopes", &json!(["notes:write"])).unwrap_or_default();
    let scopes = scopes.into_iter().map(|scope| Pattern::new(scope.value)).collect();
    let patterns = |name: &str| {
        let values = fields.map(name, Null::IsWrong).unwrap_or_default().into_iter();
        values.filter_map(|(name, value)| Some((name, Pattern::new(value.value?)))).collect()
    };
    let (arguments, claims) = (patterns("arguments"), patterns("claims"));
    let annotations = fields.get("annotations").and_then(|node| {
        let fields = Fields::new(node, fields.at("annotations"), report)?;
        let hint = |name: &str| fields.boolean(name).map(|value| value.value);
        let annotations = AnnotationsConfig {
            read_only: hint("read_only"),
            destructive: hint("destructive"),
            idempotent: hint("idempotent"),
            open_world: hint("open_world"),
        };
        fields.reject_unknown();
        Some(annotations)
    });
    let reason = fields.string("reason", "Why").map(|text| text.value);
    // With a misspelled condition the rule would match more than intended.
    fields.reject_unknown();
    if report.mark() > mark {
        return None;
    }
    let effect = effect?.value;
    if !context.scope.is_own() && effect != Effect::Deny {
        report.notice(
            &node.origin,
            &fields.path,
            NoticeKind::Ignored,
            "ignored: rules in project files can only deny; add it to your user configuration",
        );
        return None;
    }
    let annotations = annotations.unwrap_or_default();
    let origin = node.origin.clone();
    let action = action.map(|action| action.value);
    Some(RuleConfig {
        origin,
        effect,
        action,
        server,
        tool,
        arguments,
        annotations,
        caller,
        principal,
        issuer,
        client,
        scopes,
        claims,
        reason,
    })
}
