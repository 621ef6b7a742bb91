//! Recognizes the dialect of a file.

use std::fmt;
use std::path::Path;

use super::node::{Node, Value};
use super::report::{Format, Report};
use bowline_text::nearest;

/// The supported dialects of configuration files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// `bowline.toml`.
    Bowline,
    /// `mcpServers`: Claude Desktop and Code, Cursor, Windsurf, Cline, Gemini, Copilot, the Inspector.
    McpServers,
    /// `servers` and `inputs` of VS Code, in a file of their own or below `mcp` in its settings.
    VsCode,
    /// `context_servers` in the settings of Zed.
    Zed,
    /// `extensions` in the configuration of Goose.
    Goose,
    /// `mcp_servers` in the configuration of Codex.
    Codex,
    /// `server.json` of the registry.
    Registry,
}

impl fmt::Display for Dialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Bowline => "bowline.toml",
            Self::McpServers => "mcpServers",
            Self::VsCode => "VS Code",
            Self::Zed => "Zed",
            Self::Goose => "Goose",
            Self::Codex => "Codex",
            Self::Registry => "server.json",
        })
    }
}

const ROOTS: [&str; 6] = ["mcpServers", "servers", "context_servers", "extensions", "packages", "remotes"];

impl Dialect {
    /// Recognizes the dialect of a file by its content, and by its name if the content is ambiguous.
    pub(crate) fn recognize(path: &Path, root: &Node, format: Format, report: &Report) -> Option<Self> {
        if format == Format::Toml {
            if root.get("mcp_servers").is_some() {
                return Some(Self::Codex);
            }
            return Some(Self::Bowline);
        }
        let Some(members) = root.as_object() else {
            let help = "write `{ \"mcpServers\": {} }`";
            report.error_with(&root.origin, "", format!("expected an object, got {}", root.kind()), help);
            return None;
        };
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is =
            |name: &str, wanted: fn(&Value) -> bool| root.get(name).is_some_and(|node| wanted(&node.value));
        let object: fn(&Value) -> bool = |value| matches!(value, Value::Object(_));
        let array: fn(&Value) -> bool = |value| matches!(value, Value::Array(_));
        // Entries of the registry have names; this excludes `packages` of other tools.
        let registry = (is("packages", array) || is("remotes", array)) && root.get("name").is_some();
        if registry || file == "server.json" {
            return Some(Self::Registry);
        }
        if root.get("context_servers").is_some() {
            return Some(Self::Zed);
        }
        // In a file of VS Code `servers` takes precedence; elsewhere `mcpServers` is more common.
        let of_vs_code =
            path.components().any(|part| part.as_os_str() == ".vscode" || part.as_os_str() == "Code");
        if root.get("servers").is_some() && (of_vs_code || root.get("mcpServers").is_none()) {
            return Some(Self::VsCode);
        }
        if root.get("mcpServers").is_some() || (root.get("projects").is_some() && file == ".claude.json") {
            return Some(Self::McpServers);
        }
        let nested = root.get("mcp").is_some_and(|mcp| mcp.get("servers").is_some());
        if nested || root.get("mcp.servers").is_some() {
            return Some(Self::VsCode);
        }
        if is("extensions", object) {
            return Some(Self::Goose);
        }
        let near = members.iter().find_map(|member| Some((member, nearest(&member.name, ROOTS)?)));
        let (origin, help) = match near {
            Some((member, near)) => {
                (&member.origin, format!("`{}` is here; did you mean `{near}`?", member.name))
            }
            None => (&root.origin, "write the servers below `mcpServers`".to_owned()),
        };
        report.error_with(
            origin,
            "",
            "expected one of `mcpServers`, `servers`, `context_servers`, `extensions`, `packages` or `remotes`",
            help,
        );
        None
    }
}
