//! What a user is told when the host comes up: where it is, how other programs get there, and what to try.

use super::demo::Shown;
use crate::{context::Context, screen::Tone};
use bowline_host::config::{Platform, Scope, known_files};
use serde_json::json;
use std::fmt::Write as _;

/// The page before the table.
pub(super) fn page(context: &Context, url: &str, is_demo: bool, demo: &[Shown]) -> String {
    let heading = |text: &str| context.screen.paint_aside(Tone::Heading, text);
    let mut page = format!("\n{} {url}\n", heading("bowline is up:"));
    if is_demo {
        page.push_str("There is no configuration yet, so these servers show what it does:\n");
        for server in demo {
            let _ = writeln!(page, "  {:<10}{}", server.name, server.about);
        }
        let found = clients(context);
        if !found.is_empty() {
            let _ = writeln!(
                page,
                "{} configured on this computer: `bowline config import` takes their servers over.",
                listed(&found)
            );
        }
    }
    let _ = writeln!(page, "\n{}", heading("To connect another program:"));
    for (client, line) in connections(url, is_demo) {
        let _ = writeln!(page, "  {client:<16}{line}");
    }
    let _ = writeln!(page, "\n{}", heading("To try in a second terminal:"));
    page.push_str("  bowline tools\n");
    for command in demo.iter().flat_map(|server| &server.commands) {
        let _ = writeln!(page, "  {command}");
    }
    let _ = writeln!(page, "\nCtrl-C ends it.\n");
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// What to paste where.
fn connections(url: &str, is_demo: bool) -> [(&'static str, String); 4] {
    let program =
        std::env::current_exe().map_or_else(|_| "bowline".into(), |path| path.display().to_string());
    // It starts its servers itself, over standard streams.
    let words = if is_demo { ["serve", "everything"] } else { ["gateway", "--stdio"] };
    [
        ("Claude Code", format!("claude mcp add --transport http bowline {url}")),
        ("Cursor", json!({ "mcpServers": { "bowline": { "url": url } } }).to_string()),
        ("VS Code", json!({ "servers": { "bowline": { "type": "http", "url": url } } }).to_string()),
        (
            "Claude Desktop",
            json!({ "mcpServers": { "bowline": { "command": program, "args": words } } }).to_string(),
        ),
    ]
}

/// The clients whose configuration is on this computer.
fn clients(context: &Context) -> Vec<&'static str> {
    let Some(home) = &context.surroundings.home else { return Vec::new() };
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
        [one] => format!("{one} is"),
        [first @ .., last] => format!("{} and {last} are", first.join(", ")),
    }
}
