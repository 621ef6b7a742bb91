//! The dialect of Zed: `context_servers` in its settings.

use serde_json::json;

use super::entry::{Context, Draft, Entry, Names, WrittenCommand};
use super::expand::Class;
use super::fields::{Fields, Null, Unit};
use super::model::{Launch, OauthConfig, UrlLaunch};
use super::node::{Member, Node, Value};
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
    let mut draft = Draft::begin(context, "context_servers", member)?;
    let enabled = draft.fields.boolean("enabled");
    draft.enable(enabled);
    let timeout = draft.fields.duration("timeout", Unit::Seconds);
    draft.set("request_timeout", timeout, |settings, value| settings.request_timeout = value);
    draft.unknown = draft.fields.raw(&["remote", "source", "settings"]);

    draft.fields.keep(&["command", "args", "env", "url", "headers", "oauth"]);
    let has_command = draft.fields.has("command");
    let has_url = draft.fields.has("url");
    if has_command && has_url {
        let message = "expected either `command` or `url`, got both";
        let origin = draft.fields.name_origin("url");
        draft.report().error_with(origin, &draft.fields.path, message, "keep the one that is meant");
        return draft.finish(None);
    }
    if !has_command && !has_url {
        // An entry that only has settings belongs to an extension, which brings the command along.
        if draft.fields.has("settings")
            || draft.unknown.get("source").is_some_and(|source| source == "extension")
        {
            draft.report().notice(
                &member.origin,
                &draft.fields.path,
                NoticeKind::Skipped,
                format!(
                    "`{}` is an extension of Zed, which only Zed can start; add its command to use it here",
                    member.name
                ),
            );
            return None;
        }
        let report = draft.report();
        let help = format!(
            "write {} and {}, or {}",
            report.example("command", &json!("npx")),
            report.example("args", &json!(["-y", "some-server"])),
            report.example("url", &json!("https://example.com/mcp"))
        );
        report.error_with(
            &member.node.origin,
            &draft.fields.path,
            "expected `command` or `url`, got neither",
            help,
        );
        return draft.finish(None);
    }
    let launch = if has_command { command(&mut draft) } else { remote(&mut draft) };
    draft.finish(launch)
}

fn command(draft: &mut Draft<'_>) -> Option<Launch> {
    let node = draft.fields.get("command")?;
    draft.origins.insert("command".to_owned(), draft.fields.name_origin("command").clone());
    let mark = draft.report().mark();
    let written = if let Value::Object(_) = node.value {
        let nested = Fields::new(node, draft.fields.at("command"), draft.report())?;
        if !nested.has("path") {
            let help = format!("write {}", draft.report().example("path", &json!("npx")));
            draft.report().error_with(&node.origin, &nested.path, "expected `path`, got none", help);
        }
        let program = nested.string("path", "npx");
        let args = nested.strings("args", &json!(["-y", "some-server"])).unwrap_or_default();
        let env = nested.map("env", Null::IsWrong).unwrap_or_default();
        nested.finish();
        WrittenCommand { names: NESTED, program: program?, args, env, env_file: None, cwd: None }
    } else {
        let program = draft.fields.string("command", "npx");
        let args = draft.fields.strings("args", &json!(["-y", "some-server"])).unwrap_or_default();
        let env = draft.fields.map("env", Null::IsWrong).unwrap_or_default();
        WrittenCommand { names: FLAT, program: program?, args, env, env_file: None, cwd: None }
    };
    for name in ["args", "env"] {
        if draft.fields.has(name) {
            draft.origins.insert(name.to_owned(), draft.fields.name_origin(name).clone());
        }
    }
    if draft.report().mark() > mark {
        return None;
    }
    draft.command(&written).map(Launch::Command)
}

fn remote(draft: &mut Draft<'_>) -> Option<Launch> {
    let url = draft.fields.string("url", "https://example.com/mcp");
    let headers = draft.fields.map("headers", Null::IsWrong).unwrap_or_default();
    for name in ["url", "headers", "oauth"] {
        if draft.fields.has(name) {
            draft.origins.insert(name.to_owned(), draft.fields.name_origin(name).clone());
        }
    }
    let launch = draft.url("url", &url?, &headers, None);
    let oauth = draft.fields.get("oauth").and_then(|node| {
        let fields = Fields::new(node, draft.fields.at("oauth"), draft.report())?;
        let private = |name: &str, class| {
            let sited = fields.string(name, "…")?;
            draft.expander.text(&sited.value, &sited.origin, &fields.at(name), class)
        };
        let oauth = OauthConfig {
            client_id: private("client_id", Class::Open),
            client_secret: private("client_secret", Class::Private),
            ..OauthConfig::default()
        };
        fields.finish();
        Some(oauth)
    });
    Some(Launch::Url(UrlLaunch { oauth, ..launch? }))
}
