//! The dialect of Goose: `extensions` in its YAML file.

use std::collections::BTreeMap;

use serde_json::json;

use super::entry::{Context, Draft, Entry, Names, WrittenCommand};
use super::environment::Input;
use super::fields::{Null, Sited, Unit};
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
    /// Runs inside of Goose.
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
    let mut draft = Draft::begin(context, "extensions", member)?;
    draft.fields.keep(&[
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
    if !draft.fields.has("type") {
        let help = format!("write {}", draft.report().example("type", &json!("stdio")));
        draft.report().error_with(&member.node.origin, &draft.fields.path, "expected `type`, got none", help);
        draft.fields.keep(&["name", "display_name", "bundled"]);
        return draft.finish(None);
    }
    let kind = draft.fields.choice("type", &KINDS)?;
    if kind.value == Kind::Inside {
        let word = draft.fields.get("type").and_then(Node::as_str).unwrap_or_default();
        draft.report().notice(
            &member.origin,
            &draft.fields.path,
            NoticeKind::Skipped,
            format!("`{}` is of the type `{word}`, which runs only inside of Goose", member.name),
        );
        return None;
    }
    let enabled = draft.fields.boolean("enabled");
    draft.enable(enabled);
    let description = draft.fields.string("description", "What it is for");
    draft.set("description", description, |settings, value| settings.description = Some(value));
    let timeout = draft.fields.duration("timeout", Unit::Seconds);
    draft.set("request_timeout", timeout, |settings, value| settings.request_timeout = value);
    let allow = draft.fields.strings("available_tools", &json!(["read_file"])).map(|names| Sited {
        value: names.into_iter().map(|name| Pattern::new(name.value)).collect::<Vec<_>>(),
        origin: draft.fields.name_origin("available_tools").clone(),
    });
    draft.set("allow", allow, |settings, value| settings.allow = value);
    draft.unknown = draft.fields.raw(&["name", "display_name", "bundled"]);
    let launch = match kind.value {
        Kind::Stdio => command(&mut draft),
        Kind::StreamableHttp => remote(&mut draft, Prefer::Streamable),
        Kind::Sse => remote(&mut draft, Prefer::Sse),
        Kind::Inside => None,
    };
    draft.finish(launch)
}

fn command(draft: &mut Draft<'_>) -> Option<Launch> {
    let fields = &draft.fields;
    let mark = draft.report().mark();
    let program = fields.string("cmd", "npx");
    if !fields.has("cmd") {
        let help = format!("write {}", draft.report().example("cmd", &json!("npx")));
        draft.report().error_with(
            fields.origin,
            &fields.path,
            "expected `cmd` because `type` is `stdio`, got none",
            help,
        );
    }
    let args = arguments(draft);
    let cwd = fields.string("cwd", ".");
    let mut env = fields.map("envs", Null::IsWrong).unwrap_or_default();
    for (name, key) in keys(draft) {
        // What the keyring gave is final text, in which nothing more is to be replaced.
        let value = key.value.map(|value| value.replace("${", "$${"));
        env.entry(name).or_insert(Sited { value, origin: key.origin });
    }
    for (name, setting) in [("cmd", "command"), ("args", "args"), ("envs", "env"), ("cwd", "cwd")] {
        if fields.has(name) {
            draft.origins.insert(setting.to_owned(), fields.name_origin(name).clone());
        }
    }
    let program = program?;
    if draft.report().mark() > mark {
        return None;
    }
    draft
        .command(&WrittenCommand { names: NAMES, program, args, env, env_file: None, cwd })
        .map(Launch::Command)
}

fn remote(draft: &mut Draft<'_>, prefer: Prefer) -> Option<Launch> {
    let url = draft.fields.string("uri", "https://example.com/mcp");
    if !draft.fields.has("uri") {
        let help = format!("write {}", draft.report().example("uri", &json!("https://example.com/mcp")));
        let origin = draft.fields.origin;
        draft.report().error_with(
            origin,
            &draft.fields.path,
            "expected `uri` because of `type`, got none",
            help,
        );
    }
    let headers = draft.fields.map("headers", Null::IsWrong).unwrap_or_default();
    // Headers refer to the variables of the extension itself.
    let own = draft.fields.map("envs", Null::IsWrong).unwrap_or_default();
    let keys = keys(draft);
    let locals = own.into_iter().chain(keys).filter_map(|(name, value)| Some((name, value.value?)));
    draft.expander.locals = locals.collect();
    for (name, setting) in [("uri", "url"), ("headers", "headers")] {
        if draft.fields.has(name) {
            draft.origins.insert(setting.to_owned(), draft.fields.name_origin(name).clone());
        }
    }
    draft.url("uri", &url?, &headers, Some(prefer)).map(Launch::Url)
}

/// The arguments; YAML reads numbers and booleans without quotes, which Goose takes as text.
fn arguments(draft: &Draft<'_>) -> Vec<Sited<String>> {
    let Some(node) = draft.fields.get("args") else { return Vec::new() };
    let text = |item: &Node| match &item.value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) | Value::Twice(_) => None,
    };
    let scalars: Option<Vec<_>> = node.as_array().and_then(|items| {
        let sited = |item: &Node| Some(Sited { value: text(item)?, origin: item.origin.clone() });
        items.iter().map(sited).collect()
    });
    scalars.or_else(|| draft.fields.strings("args", &json!(["-y", "some-server"]))).unwrap_or_default()
}

/// The values of `env_keys`, which Goose has in its keyring: from the inputs, else from the environment.
fn keys(draft: &Draft<'_>) -> BTreeMap<String, Sited<Option<String>>> {
    let names = draft.fields.strings("env_keys", &json!(["API_KEY"])).unwrap_or_default();
    let value = |name: Sited<String>| {
        let file = Some(draft.context.path.to_path_buf());
        let input = Input { id: name.value.clone(), file, password: true, ..Input::default() };
        let value = draft.expander.named_input(&input, &name.origin, &draft.fields.at("env_keys"))?;
        Some((name.value, Sited { value: Some(value), origin: name.origin }))
    };
    names.into_iter().filter_map(value).collect()
}
