//! `cargo xtask bridge`: runs the tests of the bridge and writes their results to `docs/BRIDGE.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::Verdict;
use crate::workspace::{cargo, output_of};

const PAGE: &str = "docs/BRIDGE.md";
const INTRO: &str = "\
# The bridge

A client of any revision works with a server of any other revision through the host, including the requests and notifications
of the server. Each cell of these tables is a test (`crates/bowline-host/tests/it/bridge`): a client and a server that exchange raw
frames of their revision, with the host between them. `cargo xtask bridge` runs the tests and writes this page.

Rows are the revision of the client, columns the revision of the server.

- **yes**: the request or notification reaches the client, and the answer reaches the server.
- **cancel**: the client's revision cannot ask its user. The server receives a cancellation, which every server must expect. If the
  host has a terminal or another gate, it asks there instead.
- **-**: the server's revision does not have the feature.

A legacy server asks while its call runs. For a client of 2026-07-28 the host parks the call: the client receives the question as
`input_required`, and its retry resumes the call. A server of 2026-07-28 that needs input is called again; meanwhile the host asks a
legacy client over its session.

On a shared channel, such as a process that all clients use, a question of a legacy server does not say which call it belongs to. The
host asks a client only while no other client has a call on that channel. Once a tool has asked a question, it is called for one
client at a time, also while the user thinks; other clients can meanwhile call tools that have never asked. If users are asked often,
give each client its own process (`share = \"per-client\"`).
";

/// The features in the order of the page, with their titles.
const FEATURES: [(&str, &str); 8] = [
    ("Elicitation", "Elicitation: a form"),
    ("Url", "Elicitation: a URL"),
    ("Sampling", "Sampling"),
    ("Roots", "Roots"),
    ("Progress", "Progress"),
    ("Cancel", "Cancellation"),
    ("Log", "Log messages"),
    ("Subscribe", "Changes of a resource"),
];

pub(crate) fn run(root: &Path, options: &[String]) -> Result<Verdict, String> {
    let check = match options {
        [] => false,
        [only] if only == "--check" => true,
        [other, ..] => return Err(format!("expected `--check` or no option, got `{other}`")),
    };
    let folder = root.join("target");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let report = folder.join("bridge.tsv");
    // Remove the report of an earlier run, because the tests append to it.
    let _ = fs::remove_file(&report);
    let tested = output_of(
        cargo(root)
            .args(["test", "--quiet", "-p", "bowline-host", "--test", "it", "bridge::"])
            .env("BOWLINE_BRIDGE", &report),
    );
    let cells = fs::read_to_string(&report).map_err(|error| format!("the tests wrote no report: {error}"))?;
    let page = page(&cells)?;
    tested?;
    let path = root.join(PAGE);
    let known = fs::read_to_string(&path).unwrap_or_default();
    if known == page {
        println!("bridge: {} cells, {PAGE} is current", cells.lines().count());
        return Ok(Verdict::Clean);
    }
    if check {
        println!("bridge: {PAGE} is out of date; run `cargo xtask bridge`");
        return Ok(Verdict::Findings);
    }
    fs::write(&path, page).map_err(|error| format!("cannot write {PAGE}: {error}"))?;
    println!("bridge: {} cells, wrote {PAGE}", cells.lines().count());
    Ok(Verdict::Clean)
}

/// Formats the page from lines of feature, client, server, transport and outcome.
fn page(report: &str) -> Result<String, String> {
    let mut cells: BTreeMap<(&str, &str, &str, &str), &str> = BTreeMap::new();
    for line in report.lines() {
        let words: Vec<_> = line.split('\t').collect();
        let [feature, client, server, wire, outcome] = words.as_slice() else {
            return Err(format!("expected five columns in the report, got `{line}`"));
        };
        cells.insert((feature, wire, client, server), outcome);
    }
    let mut page = INTRO.to_owned();
    for (feature, title) in FEATURES {
        for wire in ["Stdio", "Http"] {
            let of_table = || cells.iter().filter(|((known, on, ..), _)| *known == feature && *on == wire);
            let mut clients: Vec<_> = of_table().map(|((_, _, client, _), _)| *client).collect();
            clients.dedup();
            let mut servers: Vec<_> = of_table().map(|((_, _, _, server), _)| *server).collect();
            servers.sort_unstable();
            servers.dedup();
            let over = if wire == "Stdio" { "stdio" } else { "HTTP" };
            let _ = writeln!(page, "\n## {title}, over {over}\n");
            let _ =
                writeln!(page, "| | {} |\n| --- |{}", servers.join(" | "), " --- |".repeat(servers.len()));
            for client in clients {
                let row: Vec<_> = servers
                    .iter()
                    .map(|server| match cells.get(&(feature, wire, client, server)) {
                        Some(&"carried") => "yes",
                        Some(&"cancelled for the user") => "cancel",
                        Some(&"not in the server's revision") => "-",
                        Some(_) | None => "WRONG",
                    })
                    .collect();
                let _ = writeln!(page, "| {client} | {} |", row.join(" | "));
            }
        }
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::page;

    #[test]
    fn cells_become_tables() {
        let report =
            "Roots\t2024-11-05\t2025-03-26\tStdio\tcarried\nRoots\t2024-11-05\t2026-07-28\tStdio\twrong\n";
        let page = page(report).unwrap();
        assert!(
            page.contains(
                "| | 2025-03-26 | 2026-07-28 |\n| --- | --- | --- |\n| 2024-11-05 | yes | WRONG |\n"
            ),
            "{page}"
        );
        assert!(super::page("x").is_err());
    }
}
