//! The host's own dialect: the servers of `bowline.toml`, where every setting can be written.

use std::collections::BTreeMap;
use std::time::Duration;

use bowline_types::Revision;
use serde_json::json;

use super::entry::{Context, Draft, Entry, Names, WrittenCommand};
use super::environment::Input;
use super::expand::Class;
use super::fields::{Fields, Null, Sited, Unit};
use super::mcp_servers::{port, read_roots, scopes};
use super::model::{InheritEnv, Launch, LimitsConfig, OauthConfig, Prefer, Share, Start, UrlLaunch};
use super::node::{Member, Node, Value};
use super::report::Report;

const NAMES: Names = Names { program: "command", args: "args", env: "env", env_file: "env_file" };

pub(crate) fn read(context: &mut Context<'_>, root: &Node) -> Vec<Entry> {
    if let Some(inputs) = root.get("inputs") {
        context.inputs = read_inputs(inputs, context.report);
    }
    let context = &*context;
    let Some(servers) = root.get("servers") else { return Vec::new() };
    let Some(members) = servers.as_object() else {
        context.report.error_with(
            &servers.origin,
            "servers",
            format!("expected a table for each server, got {}", servers.kind()),
            "write `[servers.my-server]` and its settings below it",
        );
        return Vec::new();
    };
    members.iter().filter_map(|member| entry(context, member)).collect()
}

fn entry(context: &Context<'_>, member: &Member) -> Option<Entry> {
    let mut draft = Draft::begin(context, "servers", member)?;
    let enabled = draft.fields.boolean("enabled");
    draft.enable(enabled);
    read_settings(&mut draft);
    let command = draft.fields.has("command");
    let url = draft.fields.has("url");
    let launch = match (command, url) {
        (true, true) => {
            let origin = draft.fields.name_origin("url");
            let message = "expected either `command` or `url`, got both";
            draft.report().error_with(origin, &draft.fields.path, message, "keep the one that is meant");
            None
        }
        (true, false) => {
            needs(&draft, "url", &["headers", "headers_helper", "transport", "oauth"]);
            self::command(&mut draft)
        }
        (false, true) => {
            needs(&draft, "command", &["args", "env", "unset", "env_file", "cwd", "limits", "inherit_env"]);
            remote(&mut draft)
        }
        // The entry adjusts a server of another file.
        (false, false) => {
            needs(&draft, "command", &["args", "env", "unset", "env_file", "cwd"]);
            needs(&draft, "url", &["headers", "headers_helper", "transport", "oauth"]);
            None
        }
    };
    draft.fields.keep(&["command", "url"]);
    draft.fields.refuse_slips(&["deny", "allow", "enabled"]);
    draft.finish(launch)
}

/// Reports members that mean nothing without another one.
fn needs(draft: &Draft<'_>, other: &str, names: &[&str]) {
    for name in names.iter().filter(|name| draft.fields.has(name)) {
        draft.report().error_with(
            draft.fields.name_origin(name),
            &draft.fields.at(name),
            format!("`{name}` means something only beside `{other}`, which is not there"),
            format!("add `{other}` or remove `{name}`"),
        );
    }
    draft.fields.keep(names);
}

fn command(draft: &mut Draft<'_>) -> Option<Launch> {
    let fields = &draft.fields;
    let mark = draft.report().mark();
    let program = fields.string("command", "npx");
    let args = fields.strings("args", &json!(["-y", "some-server"])).unwrap_or_default();
    let mut env = fields.map("env", Null::IsWrong).unwrap_or_default();
    for name in fields.strings("unset", &json!(["NODE_OPTIONS"])).unwrap_or_default() {
        let absent = Sited { value: None, origin: name.origin.clone() };
        if env.insert(name.value.clone(), absent).is_some() {
            let message = format!("expected `{}` in `env` or in `unset`, got it in both", name.value);
            draft.report().error_with(&name.origin, &fields.at("unset"), message, "keep one of them");
        }
    }
    let env_file = fields.string("env_file", ".env");
    let cwd = fields.string("cwd", ".");
    for name in ["command", "args", "env", "unset", "env_file", "cwd"] {
        if fields.has(name) {
            draft.origins.insert(name.to_owned(), fields.name_origin(name).clone());
        }
    }
    let program = program?;
    if draft.report().mark() > mark {
        return None;
    }
    draft.command(&WrittenCommand { names: NAMES, program, args, env, env_file, cwd }).map(Launch::Command)
}

fn remote(draft: &mut Draft<'_>) -> Option<Launch> {
    let fields = &draft.fields;
    let url = fields.string("url", "https://example.com/mcp");
    let headers = fields.map("headers", Null::IsWrong).unwrap_or_default();
    let transports = [("auto", None), ("http", Some(Prefer::Streamable)), ("sse", Some(Prefer::Sse))];
    let prefer = fields.choice("transport", &transports).and_then(|sited| sited.value);
    let helper = fields.strings("headers_helper", &json!(["print-headers", "--json"]));
    for name in ["url", "headers", "headers_helper", "transport", "oauth"] {
        if fields.has(name) {
            draft.origins.insert(name.to_owned(), fields.name_origin(name).clone());
        }
    }
    let launch = draft.url("url", &url?, &headers, prefer);
    let path = draft.fields.at("headers_helper");
    let helper = helper.map(|words| {
        let text = |word: &Sited<String>| draft.expander.text(&word.value, &word.origin, &path, Class::Open);
        words.iter().map(text).collect::<Option<Vec<_>>>()
    });
    let oauth = draft.fields.get("oauth").and_then(|node| {
        let fields = Fields::new(node, draft.fields.at("oauth"), draft.report())?;
        let private = |name: &str, class| {
            let sited = fields.string(name, "…")?;
            draft.expander.text(&sited.value, &sited.origin, &fields.at(name), class)
        };
        let oauth = OauthConfig {
            client_id: private("client_id", Class::Open),
            client_secret: private("client_secret", Class::Private),
            scopes: scopes(&fields, "scopes"),
            callback_port: port(&fields, "callback_port"),
            metadata_url: private("metadata_url", Class::Url),
        };
        fields.finish();
        Some(oauth)
    });
    let headers_helper = match helper {
        Some(words) => Some(words?),
        None => None,
    };
    Some(Launch::Url(UrlLaunch { headers_helper, oauth, ..launch? }))
}

fn read_settings(draft: &mut Draft<'_>) {
    let description = draft.fields.string("description", "What it is for");
    draft.set("description", description, |settings, value| settings.description = Some(value));
    let start = draft.fields.choice("start", &[("lazy", Start::Lazy), ("eager", Start::Eager)]);
    draft.set("start", start, |settings, value| settings.start = value);
    let share = draft.fields.choice("share", &[("shared", Share::Shared), ("per-client", Share::PerClient)]);
    draft.set("share", share, |settings, value| settings.share = value);
    let startup = draft.fields.duration("startup_timeout", Unit::Seconds);
    draft.set("startup_timeout", startup, |settings, value| settings.startup_timeout = value);
    let request = draft.fields.duration("request_timeout", Unit::Seconds);
    draft.set("request_timeout", request, |settings, value| settings.request_timeout = value);
    let idle = time_or_never(draft, "idle_stop");
    draft.set("idle_stop", idle, |settings, value| settings.idle_stop = value);

    let trusted = draft.fields.boolean("trusted");
    let trusted = draft.own("trusted", trusted);
    draft.set("trusted", trusted, |settings, value| settings.trusted = value);
    let approve = draft.patterns("auto_approve");
    let approve = draft.own("auto_approve", approve);
    draft.set("auto_approve", approve, |settings, value| settings.auto_approve = value);
    let allow = draft.patterns("allow");
    draft.set("allow", allow, |settings, value| settings.allow = value);
    let deny = draft.patterns("deny");
    draft.set("deny", deny, |settings, value| settings.deny = value);
    let always = draft.fields.boolean("always_load");
    draft.set("always_load", always, |settings, value| settings.always_load = value);

    let rename = strings_of(draft, "rename");
    draft.set("rename", rename, |settings, value| settings.rename = value);
    let describe = strings_of(draft, "describe");
    draft.set("describe", describe, |settings, value| settings.describe = value);
    unique_names(draft);
    read_roots(draft);

    let revisions = Revision::ALL.map(|revision| (revision.as_str(), revision));
    let revision = draft.fields.choice("revision", &revisions);
    draft.set("revision", revision, |settings, value| settings.revision = Some(value));
    let limits = read_limits(draft);
    draft.set("limits", limits, |settings, value| settings.limits = value);
    let inherit = read_inherit_env(draft);
    let inherit = draft.own("inherit_env", inherit);
    draft.set("inherit_env", inherit, |settings, value| settings.inherit_env = value);
    let bytes = draft.fields.bytes("max_list_bytes");
    let bytes = draft.own("max_list_bytes", bytes);
    draft.set("max_list_bytes", bytes, |settings, value| settings.max_list_bytes = value);
    let entries = draft.fields.count("max_list_entries", 10_000);
    let entries = draft.own("max_list_entries", entries);
    draft.set("max_list_entries", entries, |settings, value| settings.max_list_entries = value);
    let ping = time_or_never(draft, "ping_interval");
    draft.set("ping_interval", ping, |settings, value| settings.ping_interval = value);
}

fn time_or_never(draft: &Draft<'_>, name: &str) -> Option<Sited<Option<Duration>>> {
    match draft.fields.get(name) {
        Some(node) if node.as_str() == Some("never") => {
            Some(Sited { value: None, origin: node.origin.clone() })
        }
        _ => draft
            .fields
            .duration(name, Unit::Seconds)
            .map(|sited| Sited { value: Some(sited.value), origin: sited.origin }),
    }
}

fn read_inherit_env(draft: &Draft<'_>) -> Option<Sited<InheritEnv>> {
    let name = "inherit_env";
    let node = draft.fields.get(name)?;
    if node.as_array().is_some() {
        let patterns = draft.fields.strings(name, &json!(["AWS_*"]))?;
        let value = InheritEnv::Matching(patterns.into_iter().map(|pattern| pattern.value).collect());
        return Some(Sited { value, origin: node.origin.clone() });
    }
    let value = match node.as_str() {
        Some("default") => InheritEnv::Default,
        Some("all") => InheritEnv::All,
        Some("none") => InheritEnv::None,
        _ => {
            let expected = "`default`, `all`, `none` or a list of names";
            draft.fields.wrong(node, name, expected, &json!(["AWS_*"]));
            return None;
        }
    };
    Some(Sited { value, origin: node.origin.clone() })
}

fn strings_of(draft: &Draft<'_>, name: &str) -> Option<Sited<BTreeMap<String, String>>> {
    let map = draft.fields.map(name, Null::IsWrong)?;
    let value = map.into_iter().filter_map(|(key, value)| Some((key, value.value?))).collect();
    Some(Sited { value, origin: draft.fields.name_origin(name).clone() })
}

/// Two tools under one name would hide each other.
fn unique_names(draft: &Draft<'_>) {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (tool, name) in &draft.settings.rename {
        let usable = !name.is_empty()
            && name.len() <= 128
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        let message = if usable {
            match seen.insert(name, tool) {
                Some(other) => format!("expected each new name once, `{name}` is given to `{other}` too"),
                None => continue,
            }
        } else {
            format!("expected a name of letters, digits, `_`, `-` and `.`, got `{name}`")
        };
        let path = draft.fields.at(&format!("rename.{tool}"));
        let origin = draft.fields.get("rename").and_then(|node| node.get(tool)).map(|node| &node.origin);
        draft.report().error_with(
            origin.unwrap_or(draft.fields.origin),
            &path,
            message,
            "choose another name",
        );
    }
}

fn read_limits(draft: &Draft<'_>) -> Option<Sited<LimitsConfig>> {
    let node = draft.fields.get("limits")?;
    let fields = Fields::new(node, draft.fields.at("limits"), draft.report())?;
    let limits = LimitsConfig {
        memory: fields.bytes("memory").map(|sited| sited.value),
        cpu_time: fields.duration("cpu_time", Unit::Seconds).map(|sited| sited.value),
        files: fields.count("files", 256).map(|sited| sited.value),
    };
    fields.finish();
    Some(Sited { value: limits, origin: draft.fields.name_origin("limits").clone() })
}

fn read_inputs(node: &Node, report: &Report) -> BTreeMap<String, Input> {
    let Some(members) = node.as_object() else {
        report.error_with(
            &node.origin,
            "inputs",
            format!("expected a table for each input, got {}", node.kind()),
            "write `[inputs.token]` and `description = \"…\"` below it",
        );
        return BTreeMap::new();
    };
    let mut inputs = BTreeMap::new();
    for member in members {
        let Some(fields) = Fields::new(&member.node, format!("inputs.{}", member.name), report) else {
            continue;
        };
        let choices = fields.strings("choices", &json!(["a", "b"])).unwrap_or_default();
        let input = Input {
            id: member.name.clone(),
            file: Some(member.origin.file.to_path_buf()),
            server: None,
            description: fields.string("description", "What to enter").map(|text| text.value),
            password: fields.boolean("password").is_some_and(|password| password.value),
            default: fields.get("default").and_then(|node| match &node.value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                Value::Bool(value) => Some(value.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) | Value::Twice(_) => None,
            }),
            choices: choices.into_iter().map(|choice| choice.value).collect(),
        };
        fields.finish();
        inputs.insert(member.name.clone(), input);
    }
    inputs
}
