//! The text shown at startup: the URL, how to connect clients, and what to try.

use super::demo::Shown;
use crate::{context::Context, running_gateway, screen::Tone, token::Access};
use bowline_config::{Platform, Scope, known_files};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Returns the text above the table.
///
/// `access` is the token that clients must send; `port` is the port, if it is the same in the next run.
pub(super) fn page(
    context: &Context,
    url: &str,
    access: &Access,
    port: Option<u16>,
    demo: Option<&[Shown]>,
) -> String {
    let heading = |text: &str| context.screen.paint_stderr(Tone::Heading, text);
    let mut page = format!("\n{} {url}\n", heading("Gateway running at"));
    if let Some(demo) = demo {
        page.push_str("No configuration found; running demo servers:\n");
        for server in demo {
            let _ = writeln!(page, "  {:<10}{}", server.name, server.about);
        }
        let found = clients(context);
        if !found.is_empty() {
            let _ = writeln!(
                page,
                "Found the configuration of {}; run `bowline config import` to import the servers.",
                listed(&found),
            );
        }
    }
    let _ = writeln!(page, "\n{}", heading("Connect a client:"));
    for (client, line) in connections(url, access, port) {
        let _ = writeln!(page, "  {client:<16}{line}");
    }
    let _ = writeln!(page, "\n{}", heading("Try in a second terminal:"));
    let program = called(context);
    let _ = writeln!(page, "  {program} tools");
    for words in demo.iter().flat_map(|demo| demo.iter()).flat_map(|server| &server.commands) {
        let _ = writeln!(page, "  {program} {words}");
    }
    let _ = writeln!(page, "\nPress Ctrl-C to stop.\n");
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// Returns the configuration snippet for each client.
pub(super) fn connections(url: &str, access: &Access, port: Option<u16>) -> [(&'static str, String); 4] {
    let program =
        std::env::current_exe().map_or_else(|_| "bowline".into(), |path| path.display().to_string());
    // Claude Desktop starts its servers over stdio.
    let mut words = vec!["connect".to_owned()];
    if let Some(port) = port.filter(|port| *port != running_gateway::PORT) {
        words.extend(["--port".to_owned(), port.to_string()]);
    }
    let (in_shell, in_file) = match access {
        // A token in a variable is not copied anywhere else.
        Access::Variable { name, .. } => (Some(format!("${name}")), Some(format!("${{env:{name}}}"))),
        Access::User { token } | Access::Run { token, .. } => (Some(token.clone()), Some(token.clone())),
        Access::Issuers | Access::Open => (None, None),
    };
    let header =
        in_shell.map(|token| format!(" --header \"Authorization: Bearer {token}\"")).unwrap_or_default();
    let headers = in_file.map(|token| json!({ "Authorization": format!("Bearer {token}") }));
    let with_headers = |mut entry: Value| {
        if let (Some(headers), Some(members)) = (&headers, entry.as_object_mut()) {
            members.insert("headers".to_owned(), headers.clone());
        }
        entry
    };
    let cursor = with_headers(json!({ "url": url }));
    let code = with_headers(json!({ "type": "http", "url": url }));
    [
        ("Claude Code", format!("claude mcp add --transport http bowline {url}{header}")),
        ("Cursor", json!({ "mcpServers": { "bowline": cursor } }).to_string()),
        ("VS Code", json!({ "servers": { "bowline": code } }).to_string()),
        (
            "Claude Desktop",
            json!({ "mcpServers": { "bowline": { "command": program, "args": words } } }).to_string(),
        ),
    ]
}

/// Returns how to run this program: by name if it is on PATH, by path otherwise.
fn called(context: &Context) -> String {
    let Ok(program) = std::env::current_exe() else { return "bowline".to_owned() };
    let search = context.environment.variables.variable("PATH").unwrap_or_default();
    let is_found = std::env::split_paths(search)
        .map(|folder| folder.join("bowline"))
        .find(|path| path.is_file())
        .is_some_and(|path| path.canonicalize().is_ok_and(|path| path == program));
    if is_found {
        return "bowline".to_owned();
    }
    let here = context.environment.workspace.as_deref();
    let path =
        here.and_then(|here| program.strip_prefix(here).ok()).unwrap_or(&program).display().to_string();
    // A path without a separator would be looked up in PATH.
    let path = if path.contains(std::path::is_separator) { path } else { format!("./{path}") };
    if path.contains([' ', '\'', '"']) { format!("{path:?}") } else { path }
}

/// Returns the clients that have a configuration on this machine.
fn clients(context: &Context) -> Vec<&'static str> {
    let Some(home) = &context.environment.home else { return Vec::new() };
    let known = known_files(home, None, Platform::current());
    let there = known
        .iter()
        .filter(|file| file.client != "Bowline" && file.scope == Scope::User && file.path.is_file());
    let mut names: Vec<_> = there.map(|file| file.client).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
