//! Reads the dialect of Goose: `extensions` in its YAML file.

use std::collections::BTreeMap;

use serde_json::json;

use super::entry::{Context, Entry, EntryBuilder, Names, WrittenCommand};
use super::environment::Input;
use super::fields::{Located, Null, Unit};
use super::model::{Launch, Prefer};
use super::node::{Member, Node, Value};
use super::report::NoticeKind;
use bowline_policy::Pattern;

const NAMES: Names = Names { program: "cmd", args: "args", env: "envs", env_file: "" };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    StreamableHttp,
    Sse,
    /// Runs inside Goose.
    Inside,
}

const KINDS: [(&str, Kind); 7] = [
    ("stdio", Kind::Stdio),
    ("streamable_http", Kind::StreamableHttp),
    ("sse", Kind::Sse),
    ("builtin", Kind::Inside),
    ("platform", Kind::Inside),
    ("frontend", Kind::Inside),
    ("inline_python", Kind::Inside),
];

pub(crate) fn read(context: &Context<'_>, root: &Node) -> Vec<Entry> {
    let Some(extensions) = root.get("extensions") else { return Vec::new() };
    let Some(members) = extensions.as_object() else {
        context.report.error_with(
            &extensions.origin,
            "extensions",
            format!("expected a mapping with an entry for each extension, got {}", extensions.kind()),
            "write `extensions:` and the name of the extension, indented, on the next line",
        );
        return Vec::new();
    };
    members.iter().filter_map(|member| entry(context, member)).collect()
}

fn entry(context: &Context<'_>, member: &Member) -> Option<Entry> {
    let mut builder = EntryBuilder::begin(context, "extensions", member)?;
    builder.fields.keep(&[
        "type",
        "enabled",
        "description",
        "cmd",
        "args",
        "envs",
        "env_keys",
        "cwd",
        "uri",
        "headers",
        "timeout",
        "available_tools",
    ]);
    if !builder.fields.has("type") {
        let help = format!("write {}", builder.report().example("type", &json!("stdio")));
        builder.report().error_with(
            &member.node.origin,
            &builder.fields.path,
            "expected `type`, got none",
            help,
        );
        builder.fields.keep(&["name", "display_name", "bundled"]);
        return builder.finish(None);
    }
    let kind = builder.fields.choice("type", &KINDS)?;
    if kind.value == Kind::Inside {
        let word = builder.fields.get("type").and_then(Node::as_str).unwrap_or_default();
        builder.report().notice(
            &member.origin,
            &builder.fields.path,
            NoticeKind::Skipped,
            format!("`{}` has type `{word}`, which only Goose can run", member.name),
        );
        return None;
    }
    let enabled = builder.fields.boolean("enabled");
    builder.enable(enabled);
    let description = builder.fields.string("description", "What it is for");
    builder.set("description", description, |settings, value| settings.description = Some(value));
    let timeout = builder.fields.duration("timeout", Unit::Seconds);
    builder.set("request_timeout", timeout, |settings, value| settings.request_timeout = value);
    let allow = builder.fields.strings("available_tools", &json!(["read_file"])).map(|names| Located {
        value: names.into_iter().map(|name| Pattern::new(name.value)).collect::<Vec<_>>(),
        origin: builder.fields.name_origin("available_tools").clone(),
    });
    builder.set("allow", allow, |settings, value| settings.allow = value);
    builder.unknown = builder.fields.raw(&["name", "display_name", "bundled"]);
    let launch = match kind.value {
        Kind::Stdio => command(&mut builder),
        Kind::StreamableHttp => remote(&mut builder, Prefer::Streamable),
        Kind::Sse => remote(&mut builder, Prefer::Sse),
        Kind::Inside => None,
    };
    builder.finish(launch)
}

fn command(builder: &mut EntryBuilder<'_>) -> Option<Launch> {
    let fields = &builder.fields;
    let mark = builder.report().mark();
    let program = fields.string("cmd", "npx");
    if !fields.has("cmd") {
        let help = format!("write {}", builder.report().example("cmd", &json!("npx")));
        builder.report().error_with(
            fields.origin,
            &fields.path,
            "expected `cmd` because `type` is `stdio`, got none",
            help,
        );
    }
    let args = arguments(builder);
    let cwd = fields.string("cwd", ".");
    let mut env = fields.map("envs", Null::IsWrong).unwrap_or_default();
    for (name, key) in keys(builder) {
        // A value of the keyring is literal text; variables in it are not expanded.
        let value = key.value.map(|value| value.replace("${", "$${"));
        env.entry(name).or_insert(Located { value, origin: key.origin });
    }
    builder.record_origins(&[("cmd", "command"), ("args", "args"), ("envs", "env"), ("cwd", "cwd")]);
    builder.launch(mark, &WrittenCommand { names: NAMES, program: program?, args, env, env_file: None, cwd })
}

fn remote(builder: &mut EntryBuilder<'_>, prefer: Prefer) -> Option<Launch> {
    let url = builder.fields.string("uri", "https://example.com/mcp");
    if !builder.fields.has("uri") {
        let help = format!("write {}", builder.report().example("uri", &json!("https://example.com/mcp")));
        let origin = builder.fields.origin;
        builder.report().error_with(
            origin,
            &builder.fields.path,
            "expected `uri` because of `type`, got none",
            help,
        );
    }
    let headers = builder.fields.map("headers", Null::IsWrong).unwrap_or_default();
    // Headers refer to the variables of the extension.
    let own = builder.fields.map("envs", Null::IsWrong).unwrap_or_default();
    let keys = keys(builder);
    let locals = own.into_iter().chain(keys).filter_map(|(name, value)| Some((name, value.value?)));
    builder.expander.locals = locals.collect();
    builder.record_origins(&[("uri", "url"), ("headers", "headers")]);
    builder.url("uri", &url?, &headers, Some(prefer)).map(Launch::Url)
}

/// Reads the arguments. YAML parses unquoted numbers and booleans, which Goose uses as text.
fn arguments(builder: &EntryBuilder<'_>) -> Vec<Located<String>> {
    let Some(node) = builder.fields.get("args") else { return Vec::new() };
    let text = |item: &Node| match &item.value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) | Value::Twice(_) => None,
    };
    let scalars: Option<Vec<_>> = node.as_array().and_then(|items| {
        let located = |item: &Node| Some(Located { value: text(item)?, origin: item.origin.clone() });
        items.iter().map(located).collect()
    });
    scalars.or_else(|| builder.fields.strings("args", &json!(["-y", "some-server"]))).unwrap_or_default()
}

/// Returns the values of `env_keys`, which Goose keeps in its keyring: from the inputs, or else from the environment.
fn keys(builder: &EntryBuilder<'_>) -> BTreeMap<String, Located<Option<String>>> {
    let names = builder.fields.strings("env_keys", &json!(["API_KEY"])).unwrap_or_default();
    let value = |name: Located<String>| {
        let file = Some(builder.context.path.to_path_buf());
        let input = Input { id: name.value.clone(), file, password: true, ..Input::default() };
        let value = builder.expander.named_input(&input, &name.origin, &builder.fields.at("env_keys"))?;
        Some((name.value, Located { value: Some(value), origin: name.origin }))
    };
    names.into_iter().filter_map(value).collect()
}
