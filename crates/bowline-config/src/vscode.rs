//! Reads the dialect of VS Code: `servers` and the `inputs` they refer to.

use std::collections::BTreeMap;

use serde_json::json;

use super::entry::{Context, Entry};
use super::environment::Input;
use super::fields::Fields;
use super::mcp_servers::read_map;
use super::node::{Node, Value};
use super::report::{NoticeKind, Report};

pub(crate) fn read(context: &mut Context<'_>, root: &Node) -> Vec<Entry> {
    // Older versions have everything below `mcp` in the settings.
    let (section, prefix) = match (root.get("servers"), root.get("mcp")) {
        (None, Some(mcp)) => (mcp, "mcp."),
        _ => (root, ""),
    };
    if let Some(inputs) = section.get("inputs") {
        context.inputs = read_inputs(inputs, &format!("{prefix}inputs"), context.report);
    }
    // The settings of the editor have many other members; unknown ones are reported only in its MCP file.
    let is_settings = !prefix.is_empty() || root.get("mcp.servers").is_some();
    if let (false, Some(fields)) = (is_settings, Fields::new(root, "", context.report)) {
        fields.keep(&["servers", "inputs", "mcpServers"]);
        fields.finish();
    }
    let context = &*context;
    let servers =
        section.get("servers").map(|servers| read_map(context, servers, &format!("{prefix}servers")));
    let dotted = root.get("mcp.servers").map(|servers| read_map(context, servers, "mcp.servers"));
    servers.into_iter().chain(dotted).flatten().collect()
}

fn read_inputs(node: &Node, path: &str, report: &Report) -> BTreeMap<String, Input> {
    let Some(items) = node.as_array() else {
        let example =
            json!([{ "type": "promptString", "id": "token", "description": "Token", "password": true }]);
        report.error_with(
            &node.origin,
            path,
            format!("expected an array of inputs, got {}", node.kind()),
            format!("write {}", report.example("inputs", &example)),
        );
        return BTreeMap::new();
    };
    let mut inputs = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let Some(fields) = Fields::new(item, format!("{path}[{index}]"), report) else { continue };
        let kinds = [("promptString", Kind::Prompt), ("pickString", Kind::Pick), ("command", Kind::Command)];
        let kind = fields.choice("type", &kinds);
        let Some(id) = fields.string("id", "token") else {
            if !fields.has("id") {
                let help = format!("write {}", report.example("id", &json!("token")));
                report.error_with(&item.origin, &fields.path, "expected `id`, got none", help);
            }
            continue;
        };
        if kind.is_some_and(|kind| kind.value == Kind::Command) {
            report.notice(
                &item.origin,
                &fields.path,
                NoticeKind::Skipped,
                format!(
                    "VS Code commands are not supported; you are asked for the input `{}` instead",
                    id.value
                ),
            );
        }
        let input = Input {
            id: id.value.clone(),
            file: Some(id.origin.file.to_path_buf()),
            server: None,
            description: fields.string("description", "What to enter").map(|text| text.value),
            password: fields.boolean("password").is_some_and(|password| password.value),
            default: fields.string("default", "…").map(|text| text.value),
            choices: fields.get("options").map(options).unwrap_or_default(),
        };
        fields.keep(&["command", "args"]);
        fields.finish();
        if inputs.insert(id.value.clone(), input).is_some() {
            let message = format!("duplicate input id `{}`", id.value);
            report.error_with(&id.origin, &fields.at("id"), message, "give one of them another id");
        }
    }
    inputs
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Prompt,
    Pick,
    Command,
}

/// Reads choices: strings, or objects with a label and a value.
fn options(node: &Node) -> Vec<String> {
    let text = |item: &Node| match &item.value {
        Value::String(text) => Some(text.clone()),
        Value::Object(_) => item.get("value").and_then(Node::as_str).map(str::to_owned),
        _ => None,
    };
    node.as_array().unwrap_or_default().iter().filter_map(text).collect()
}
