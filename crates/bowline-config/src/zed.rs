//! Reads the dialect of Zed: `context_servers` in its settings.

use serde_json::json;

use super::entry::{Context, Entry, EntryBuilder, Names, WrittenCommand};
use super::fields::{Fields, Null, Unit};
use super::model::{Launch, UrlLaunch};
use super::node::{Member, Node, Value};
use super::oauth;
use super::report::NoticeKind;

const FLAT: Names = Names { program: "command", args: "args", env: "env", env_file: "" };
const NESTED: Names =
    Names { program: "command.path", args: "command.args", env: "command.env", env_file: "" };

pub(crate) fn read(context: &Context<'_>, root: &Node) -> Vec<Entry> {
    let Some(servers) = root.get("context_servers") else { return Vec::new() };
    let Some(members) = servers.as_object() else {
        context.report.error_with(
            &servers.origin,
            "context_servers",
            format!("expected an object with an entry for each server, got {}", servers.kind()),
            format!(
                "write {}",
                context.report.example("my-server", &json!({ "command": "npx", "args": [] }))
            ),
        );
        return Vec::new();
    };
    members.iter().filter_map(|member| entry(context, member)).collect()
}

fn entry(context: &Context<'_>, member: &Member) -> Option<Entry> {
    let mut builder = EntryBuilder::begin(context, "context_servers", member)?;
    let enabled = builder.fields.boolean("enabled");
    builder.enable(enabled);
    let timeout = builder.fields.duration("timeout", Unit::Seconds);
    builder.set("request_timeout", timeout, |settings, value| settings.request_timeout = value);
    builder.unknown = builder.fields.raw(&["remote", "source", "settings"]);

    builder.fields.keep(&["command", "args", "env", "url", "headers", "oauth"]);
    let has_command = builder.fields.has("command");
    let has_url = builder.fields.has("url");
    if has_command && has_url {
        let message = "expected either `command` or `url`, got both";
        let origin = builder.fields.name_origin("url");
        builder.report().error_with(origin, &builder.fields.path, message, "remove one of them");
        return builder.finish(None);
    }
    if !has_command && !has_url {
        // An entry with only settings belongs to an extension, which provides the command.
        if builder.fields.has("settings")
            || builder.unknown.get("source").is_some_and(|source| source == "extension")
        {
            builder.report().notice(
                &member.origin,
                &builder.fields.path,
                NoticeKind::Skipped,
                format!(
                    "`{}` is an extension of Zed, which only Zed can start; add its command to use it here",
                    member.name
                ),
            );
            return None;
        }
        let report = builder.report();
        let help = format!(
            "write {} and {}, or {}",
            report.example("command", &json!("npx")),
            report.example("args", &json!(["-y", "some-server"])),
            report.example("url", &json!("https://example.com/mcp"))
        );
        report.error_with(
            &member.node.origin,
            &builder.fields.path,
            "expected `command` or `url`, got neither",
            help,
        );
        return builder.finish(None);
    }
    let launch = if has_command { command(&mut builder) } else { remote(&mut builder) };
    builder.finish(launch)
}

fn command(builder: &mut EntryBuilder<'_>) -> Option<Launch> {
    let node = builder.fields.get("command")?;
    builder.record_origins(&[("command", "command")]);
    let mark = builder.report().mark();
    let written = if let Value::Object(_) = node.value {
        let nested = Fields::new(node, builder.fields.at("command"), builder.report())?;
        if !nested.has("path") {
            let help = format!("write {}", builder.report().example("path", &json!("npx")));
            builder.report().error_with(&node.origin, &nested.path, "expected `path`, got none", help);
        }
        let program = nested.string("path", "npx");
        let args = nested.strings("args", &json!(["-y", "some-server"])).unwrap_or_default();
        let env = nested.map("env", Null::IsWrong).unwrap_or_default();
        nested.finish();
        WrittenCommand { names: NESTED, program: program?, args, env, env_file: None, cwd: None }
    } else {
        let program = builder.fields.string("command", "npx");
        let args = builder.fields.strings("args", &json!(["-y", "some-server"])).unwrap_or_default();
        let env = builder.fields.map("env", Null::IsWrong).unwrap_or_default();
        WrittenCommand { names: FLAT, program: program?, args, env, env_file: None, cwd: None }
    };
    builder.record_origins(&[("args", "args"), ("env", "env")]);
    builder.launch(mark, &written)
}

fn remote(builder: &mut EntryBuilder<'_>) -> Option<Launch> {
    let url = builder.fields.string("url", "https://example.com/mcp");
    let headers = builder.fields.map("headers", Null::IsWrong).unwrap_or_default();
    builder.record_origins(&["url", "headers", "oauth"].map(|name| (name, name)));
    let launch = builder.url("url", &url?, &headers, None);
    let oauth = oauth::read(builder, &oauth::ZED).map(Box::new);
    Some(Launch::Url(UrlLaunch { oauth, ..launch? }))
}
