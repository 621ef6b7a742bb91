//! Reads the servers of `bowline.toml`, the dialect that has every setting.

use std::collections::BTreeMap;
use std::time::Duration;

use bowline_types::Revision;
use serde_json::json;

use super::entry::{Context, Entry, EntryBuilder, Names, WrittenCommand};
use super::environment::Input;
use super::expand::Class;
use super::fields::{Fields, Located, Null, Unit};
use super::mcp_servers::read_roots;
use super::model::{AuthMode, InheritEnv, Launch, LimitsConfig, Prefer, Share, Start, UrlLaunch};
use super::node::{Member, Node, Value};
use super::oauth;
use super::report::Report;
use super::sections::TaskAfter;

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
    let mut builder = EntryBuilder::begin(context, "servers", member)?;
    let enabled = builder.fields.boolean("enabled");
    builder.enable(enabled);
    read_settings(&mut builder);
    let command = builder.fields.has("command");
    let url = builder.fields.has("url");
    let launch = match (command, url) {
        (true, true) => {
            let origin = builder.fields.name_origin("url");
            let message = "expected either `command` or `url`, got both";
            builder.report().error_with(origin, &builder.fields.path, message, "remove one of them");
            None
        }
        (true, false) => {
            needs(&builder, "url", &["headers", "headers_helper", "transport", "oauth", "auth"]);
            self::command(&mut builder)
        }
        (false, true) => {
            needs(&builder, "command", &["args", "env", "unset", "env_file", "cwd", "limits", "inherit_env"]);
            remote(&mut builder)
        }
        // The entry adjusts a server that another file defines.
        (false, false) => {
            needs(&builder, "command", &["args", "env", "unset", "env_file", "cwd"]);
            needs(&builder, "url", &["headers", "headers_helper", "transport", "oauth"]);
            None
        }
    };
    builder.fields.keep(&["command", "url"]);
    builder.fields.reject_typos(&["deny", "allow", "enabled"]);
    builder.finish(launch)
}

/// Reports members that have no effect without another one.
fn needs(builder: &EntryBuilder<'_>, other: &str, names: &[&str]) {
    for name in names.iter().filter(|name| builder.fields.has(name)) {
        builder.report().error_with(
            builder.fields.name_origin(name),
            &builder.fields.at(name),
            format!("`{name}` requires `{other}`, which is missing"),
            format!("add `{other}` or remove `{name}`"),
        );
    }
    builder.fields.keep(names);
}

fn command(builder: &mut EntryBuilder<'_>) -> Option<Launch> {
    let fields = &builder.fields;
    let mark = builder.report().mark();
    let program = fields.string("command", "npx");
    let args = fields.strings("args", &json!(["-y", "some-server"])).unwrap_or_default();
    let mut env = fields.map("env", Null::IsWrong).unwrap_or_default();
    for name in fields.strings("unset", &json!(["NODE_OPTIONS"])).unwrap_or_default() {
        let absent = Located { value: None, origin: name.origin.clone() };
        if env.insert(name.value.clone(), absent).is_some() {
            let message = format!("`{}` is in both `env` and `unset`", name.value);
            builder.report().error_with(&name.origin, &fields.at("unset"), message, "keep one of them");
        }
    }
    let env_file = fields.string("env_file", ".env");
    let cwd = fields.string("cwd", ".");
    builder.record_origins(&["command", "args", "env", "unset", "env_file", "cwd"].map(|name| (name, name)));
    builder.launch(mark, &WrittenCommand { names: NAMES, program: program?, args, env, env_file, cwd })
}

fn remote(builder: &mut EntryBuilder<'_>) -> Option<Launch> {
    let fields = &builder.fields;
    let url = fields.string("url", "https://example.com/mcp");
    let headers = fields.map("headers", Null::IsWrong).unwrap_or_default();
    let transports = [("auto", None), ("http", Some(Prefer::Streamable)), ("sse", Some(Prefer::Sse))];
    let prefer = fields.choice("transport", &transports).and_then(|located| located.value);
    let helper = fields.strings("headers_helper", &json!(["print-headers", "--json"]));
    builder
        .record_origins(&["url", "headers", "headers_helper", "transport", "oauth"].map(|name| (name, name)));
    let launch = builder.url("url", &url?, &headers, prefer);
    let path = builder.fields.at("headers_helper");
    let helper = helper.map(|words| {
        let text =
            |word: &Located<String>| builder.expander.text(&word.value, &word.origin, &path, Class::Open);
        words.iter().map(text).collect::<Option<Vec<_>>>()
    });
    let oauth = oauth::read(builder, &oauth::OWN).map(Box::new);
    let headers_helper = match helper {
        Some(words) => Some(words?),
        None => None,
    };
    Some(Launch::Url(UrlLaunch { headers_helper, oauth, ..launch? }))
}

fn read_settings(builder: &mut EntryBuilder<'_>) {
    let description = builder.fields.string("description", "What it is for");
    builder.set("description", description, |settings, value| settings.description = Some(value));
    let start = builder.fields.choice("start", &[("lazy", Start::Lazy), ("eager", Start::Eager)]);
    builder.set("start", start, |settings, value| settings.start = value);
    let share =
        builder.fields.choice("share", &[("shared", Share::Shared), ("per-client", Share::PerClient)]);
    builder.set("share", share, |settings, value| settings.share = value);
    let modes = [AuthMode::None, AuthMode::Shared, AuthMode::User].map(|mode| (mode.as_str(), mode));
    let auth = builder.fields.choice("auth", &modes);
    // A project may give up a login, but not decide whose account is used.
    let auth = match auth {
        Some(Located { value: AuthMode::None, .. }) => auth,
        auth => builder.own("auth", auth),
    };
    builder.set("auth", auth, |settings, value| settings.auth = Some(value));
    let startup = builder.fields.duration("startup_timeout", Unit::Seconds);
    builder.set("startup_timeout", startup, |settings, value| settings.startup_timeout = value);
    let request = builder.fields.duration("request_timeout", Unit::Seconds);
    builder.set("request_timeout", request, |settings, value| settings.request_timeout = value);
    let idle = time_or_never(&builder.fields, "idle_stop");
    builder.set("idle_stop", idle, |settings, value| settings.idle_stop = value);
    let after = time_or_never(&builder.fields, "task_after");
    builder.set("task_after", after, |settings, value| settings.task_after = Some(task_after(value)));

    let trusted = builder.fields.boolean("trusted");
    let trusted = builder.own("trusted", trusted);
    builder.set("trusted", trusted, |settings, value| settings.trusted = value);
    let approve = builder.patterns("auto_approve");
    let approve = builder.own("auto_approve", approve);
    builder.set("auto_approve", approve, |settings, value| settings.auto_approve = value);
    let allow = builder.patterns("allow");
    builder.set("allow", allow, |settings, value| settings.allow = value);
    let deny = builder.patterns("deny");
    builder.set("deny", deny, |settings, value| settings.deny = value);
    let always = builder.fields.boolean("always_load");
    builder.set("always_load", always, |settings, value| settings.always_load = value);

    let rename = strings_of(builder, "rename");
    builder.set("rename", rename, |settings, value| settings.rename = value);
    let describe = strings_of(builder, "describe");
    builder.set("describe", describe, |settings, value| settings.describe = value);
    unique_names(builder);
    read_roots(builder);

    let revisions = Revision::ALL.map(|revision| (revision.as_str(), revision));
    let revision = builder.fields.choice("revision", &revisions);
    builder.set("revision", revision, |settings, value| settings.revision = Some(value));
    let limits = read_limits(builder);
    builder.set("limits", limits, |settings, value| settings.limits = value);
    let inherit = read_inherit_env(builder);
    let inherit = builder.own("inherit_env", inherit);
    builder.set("inherit_env", inherit, |settings, value| settings.inherit_env = value);
    let bytes = builder.fields.bytes("max_list_bytes");
    let bytes = builder.own("max_list_bytes", bytes);
    builder.set("max_list_bytes", bytes, |settings, value| settings.max_list_bytes = value);
    let entries = builder.fields.count("max_list_entries", 10_000);
    let entries = builder.own("max_list_entries", entries);
    builder.set("max_list_entries", entries, |settings, value| settings.max_list_entries = value);
    let ping = time_or_never(&builder.fields, "ping_interval");
    builder.set("ping_interval", ping, |settings, value| settings.ping_interval = value);
}

pub(crate) fn time_or_never(fields: &Fields<'_>, name: &str) -> Option<Located<Option<Duration>>> {
    match fields.get(name) {
        Some(node) if node.as_str() == Some("never") => {
            Some(Located { value: None, origin: node.origin.clone() })
        }
        _ => fields
            .duration(name, Unit::Seconds)
            .map(|located| Located { value: Some(located.value), origin: located.origin }),
    }
}

pub(crate) fn task_after(time: Option<Duration>) -> TaskAfter {
    time.map_or(TaskAfter::Never, TaskAfter::Time)
}

fn read_inherit_env(builder: &EntryBuilder<'_>) -> Option<Located<InheritEnv>> {
    let name = "inherit_env";
    let node = builder.fields.get(name)?;
    if node.as_array().is_some() {
        let patterns = builder.fields.strings(name, &json!(["AWS_*"]))?;
        let value = InheritEnv::Matching(patterns.into_iter().map(|pattern| pattern.value).collect());
        return Some(Located { value, origin: node.origin.clone() });
    }
    let value = match node.as_str() {
        Some("default") => InheritEnv::Default,
        Some("all") => InheritEnv::All,
        Some("none") => InheritEnv::None,
        _ => {
            let expected = "`default`, `all`, `none` or a list of names";
            builder.fields.report_invalid(node, name, expected, &json!(["AWS_*"]));
            return None;
        }
    };
    Some(Located { value, origin: node.origin.clone() })
}

fn strings_of(builder: &EntryBuilder<'_>, name: &str) -> Option<Located<BTreeMap<String, String>>> {
    let map = builder.fields.map(name, Null::IsWrong)?;
    let value = map.into_iter().filter_map(|(key, value)| Some((key, value.value?))).collect();
    Some(Located { value, origin: builder.fields.name_origin(name).clone() })
}

/// Reports two tools with the same new name: one would hide the other.
fn unique_names(builder: &EntryBuilder<'_>) {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (tool, name) in &builder.settings.rename {
        let usable = !name.is_empty()
            && name.len() <= 128
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
        let message = if usable {
            match seen.insert(name, tool) {
                Some(other) => format!("duplicate name `{name}`, also used for `{other}`"),
                None => continue,
            }
        } else {
            format!("expected a name of letters, digits, `_`, `-` and `.`, got `{name}`")
        };
        let path = builder.fields.at(&format!("rename.{tool}"));
        let origin = builder.fields.get("rename").and_then(|node| node.get(tool)).map(|node| &node.origin);
        builder.report().error_with(
            origin.unwrap_or(builder.fields.origin),
            &path,
            message,
            "choose another name",
        );
    }
}

fn read_limits(builder: &EntryBuilder<'_>) -> Option<Located<LimitsConfig>> {
    let node = builder.fields.get("limits")?;
    let fields = Fields::new(node, builder.fields.at("limits"), builder.report())?;
    let limits = LimitsConfig {
        memory: fields.bytes("memory").map(|located| located.value),
        cpu_time: fields.duration("cpu_time", Unit::Seconds).map(|located| located.value),
        files: fields.count("files", 256).map(|located| located.value),
    };
    fields.finish();
    Some(Located { value: limits, origin: builder.fields.name_origin("limits").clone() })
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
