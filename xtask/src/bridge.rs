//! `cargo xtask bridge`: runs the tests of the bridge and writes what each cell came to into `docs/BRIDGE.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::Verdict;
use crate::workspace::{cargo, output_of};

const PAGE: &str = "docs/BRIDGE.md";
const INTRO: &str = "\
# The bridge

A client of any revision works with a server of any other through the host, with everything servers ask and tell. Each cell of
these tables is a test (`crates/bowline-host/tests/it/bridge`): a client and a server that speak raw frames as their revision has
them, and the host between them. The page is written by `cargo xtask bridge`.

Rows are the client's revision, columns the server's.

- **yes**: it arrives, and what is answered arrives back.
- **cancel**: the client's revision has no way to ask its user. The server is told that the user cancelled, which it has to
  expect anyway; where a gate of the host is attended, the host asks instead.
- **-**: the server's revision does not have it.

A legacy server asks while its call is under way. For a client of 2026-07-28 the call is parked: the client gets the question as
`input_required`, and its retry resumes the call. A server of 2026-07-28 that needs input is called again; a legacy client is
asked over its session meanwhile.

On one channel, such as that of a process that all clients share, nothing says in whose call a legacy server asks. The host asks a
client only while no other has a call there; a tool that has asked is from then on called for one client at a time, also while
its user thinks. Tools that have never asked can be called by others meanwhile. Where users are asked often, give each client a
process of its own (`share = \"per-client\"`).
";

/// The features in the order of the page, with their titles.
const FEATURES: [(&str, &str); 8] = [
    ("Elicitation", "Elicitation: a form"),
    ("Url", "Elicitation: a page to visit"),
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
        [other, ..] => return Err(format!("expected `--check` or nothing, got `{other}`")),
    };
    let folder = root.join("target");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let report = folder.join("bridge.tsv");
    // What an earlier run left is no part of this one.
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
        println!("bridge: {} cells, {PAGE} is up to date", cells.lines().count());
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

/// The page for these cells: feature, client, server, wire, outcome.
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
