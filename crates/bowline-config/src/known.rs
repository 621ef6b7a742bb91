//! The paths where known clients keep their configuration.

use std::path::{Path, PathBuf};

use super::dialect::Dialect;
use super::environment::Platform;
use super::load::{Presence, Source};
use super::model::Scope;

/// A path where a client keeps its configuration. The file may not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownFile {
    /// The client.
    pub client: &'static str,
    /// The dialect of the file.
    pub dialect: Dialect,
    /// The scope of the file.
    pub scope: Scope,
    /// The path.
    pub path: PathBuf,
}

impl From<KnownFile> for Source {
    fn from(file: KnownFile) -> Self {
        Self { path: file.path, scope: file.scope, dialect: Some(file.dialect), presence: Presence::Optional }
    }
}

/// Returns the known paths, lowest precedence first: if two files define the same server, the later one wins. The
/// host's own file is the last of each scope.
pub fn known_files(home: &Path, workspace: Option<&Path>, platform: Platform) -> Vec<KnownFile> {
    let config = home.join(".config");
    let roaming = home.join("AppData").join("Roaming");
    let support = home.join("Library").join("Application Support");
    // The directory for settings of applications.
    let settings = match platform {
        Platform::Linux => &config,
        Platform::MacOs => &support,
        Platform::Windows => &roaming,
    };
    let code = settings.join("Code").join("User");
    let zed = if platform == Platform::Windows { roaming.join("Zed") } else { config.join("zed") };
    let goose = match platform {
        Platform::Windows => roaming.join("Block").join("goose").join("config"),
        Platform::Linux | Platform::MacOs => config.join("goose"),
    };
    let own = if platform == Platform::Windows { roaming.join("bowline") } else { config.join("bowline") };
    let cline = code.join("globalStorage").join("saoudrizwan.claude-dev").join("settings");
    let managed = match platform {
        Platform::Linux => Path::new("/etc/claude-code"),
        Platform::MacOs => Path::new("/Library/Application Support/ClaudeCode"),
        Platform::Windows => Path::new(r"C:\Program Files\ClaudeCode"),
    };
    let managed = match platform {
        // `join` would use the separator of this system.
        Platform::Windows => PathBuf::from(r"C:\Program Files\ClaudeCode\managed-mcp.json"),
        Platform::Linux | Platform::MacOs => managed.join("managed-mcp.json"),
    };

    let mut files = vec![
        (
            "Claude Desktop",
            Dialect::McpServers,
            Scope::User,
            settings.join("Claude").join("claude_desktop_config.json"),
        ),
        (
            "Windsurf",
            Dialect::McpServers,
            Scope::User,
            home.join(".codeium").join("windsurf").join("mcp_config.json"),
        ),
        ("Cline", Dialect::McpServers, Scope::User, cline.join("cline_mcp_settings.json")),
        (
            "Cline",
            Dialect::McpServers,
            Scope::User,
            home.join("Documents").join("Cline").join("MCP").join("cline_mcp_settings.json"),
        ),
        ("Gemini", Dialect::McpServers, Scope::User, home.join(".gemini").join("settings.json")),
        ("Copilot", Dialect::McpServers, Scope::User, home.join(".copilot").join("mcp-config.json")),
        ("Inspector", Dialect::McpServers, Scope::User, home.join(".mcp-inspector").join("mcp.json")),
        ("Codex", Dialect::Codex, Scope::User, home.join(".codex").join("config.toml")),
        ("Goose", Dialect::Goose, Scope::User, goose.join("config.yaml")),
        ("Zed", Dialect::Zed, Scope::User, zed.join("settings.json")),
        ("VS Code", Dialect::VsCode, Scope::User, code.join("mcp.json")),
        ("Cursor", Dialect::McpServers, Scope::User, home.join(".cursor").join("mcp.json")),
        ("Claude Code", Dialect::McpServers, Scope::User, home.join(".claude.json")),
        ("Bowline", Dialect::Bowline, Scope::User, own.join("bowline.toml")),
        ("Claude Code", Dialect::McpServers, Scope::Managed, managed),
    ];
    if let Some(workspace) = workspace {
        files.extend([
            ("Zed", Dialect::Zed, Scope::Project, workspace.join(".zed").join("settings.json")),
            ("VS Code", Dialect::VsCode, Scope::Project, workspace.join(".vscode").join("mcp.json")),
            ("Cursor", Dialect::McpServers, Scope::Project, workspace.join(".cursor").join("mcp.json")),
            ("Claude Code", Dialect::McpServers, Scope::Project, workspace.join(".mcp.json")),
            ("Bowline", Dialect::Bowline, Scope::Project, workspace.join("bowline.toml")),
        ]);
    }
    files.sort_by_key(|(_, _, scope, _)| *scope);
    let known = |(client, dialect, scope, path)| KnownFile { client, dialect, scope, path };
    files.into_iter().map(known).collect()
}
