//! What the suite wrote: one `checks.json` per scenario and run.

use serde_json::Value;
use std::{fs, path::Path};

/// How many checks went which way. Mere information is not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) ok: usize,
    pub(crate) fail: usize,
    pub(crate) warn: usize,
    pub(crate) skip: usize,
}

impl Count {
    pub(crate) fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        self.fail += other.fail;
        self.warn += other.warn;
        self.skip += other.skip;
    }
}

/// One scenario of one run.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) run: String,
    pub(crate) count: Count,
    /// What was said of checks that did not go well.
    pub(crate) reasons: Vec<String>,
    /// How the suite ended, where it ran for this scenario alone.
    pub(crate) exit: i32,
}

impl Scenario {
    /// A warning is about something that should be, so it counts; a scenario that looked at nothing shows nothing.
    pub(crate) fn is_good(&self) -> bool {
        let Count { ok, fail, warn, skip } = self.count;
        ok + skip > 0 && fail == 0 && warn == 0 && self.exit == 0
    }
}

/// Everything below `folder`, by run and then in the order in which the scenarios ran.
pub(crate) fn read(folder: &Path) -> Result<Vec<Scenario>, String> {
    let mut scenarios = Vec::new();
    for run in children(folder)? {
        collect(&folder.join(&run), &run, "", &mut scenarios)?;
    }
    Ok(scenarios)
}

fn collect(folder: &Path, run: &str, prefix: &str, into: &mut Vec<Scenario>) -> Result<(), String> {
    let checks = folder.join("checks.json");
    if checks.is_file() {
        let text = fs::read_to_string(&checks).map_err(|error| told(&checks, &error))?;
        let checks: Value = serde_json::from_str(&text).map_err(|error| told(&checks, &error))?;
        let mut scenario = scenario(prefix, run, checks.as_array().map_or(&[], Vec::as_slice));
        let own_name = scenario.name.rsplit('/').next().unwrap_or_default();
        let exit = folder.with_file_name(format!("{own_name}.exit"));
        if let Ok(text) = fs::read_to_string(&exit) {
            scenario.exit = text.trim().parse().map_err(|error| told(&exit, &error))?;
        }
        if checks.as_array().is_none_or(Vec::is_empty) {
            scenario.reasons.push("nothing was checked".into());
        }
        if scenario.exit != 0 {
            scenario.reasons.push(format!("the suite ended with {}", scenario.exit));
        }
        into.push(scenario);
        return Ok(());
    }
    for child in children(folder)? {
        let name = if prefix.is_empty() { child.clone() } else { format!("{prefix}/{child}") };
        collect(&folder.join(&child), run, &name, into)?;
    }
    Ok(())
}

/// The folders in a folder, sorted by the time at the end of their names, where there is one.
fn children(folder: &Path) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| told(folder, &error))? {
        let entry = entry.map_err(|error| told(folder, &error))?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort_by_cached_key(|name| (split_time(name).1.to_owned(), name.clone()));
    Ok(names)
}

fn told(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

/// `ping-2026-11-15T10-44-00-967Z` is `ping` and a time.
fn split_time(name: &str) -> (&str, &str) {
    const TIME: usize = "-2026-11-15T10-44-00-967Z".len();
    let at = name.len().saturating_sub(TIME);
    match name.split_at_checked(at) {
        Some((rest, time)) if time.starts_with("-2") && time.ends_with('Z') => (rest, time),
        _ => (name, ""),
    }
}

fn scenario(path: &str, run: &str, checks: &[Value]) -> Scenario {
    let name = split_time(path).0;
    let name = name.strip_prefix("server-").filter(|_| !path.contains('/')).unwrap_or(name);
    let mut count = Count::default();
    let mut reasons = Vec::new();
    for check in checks {
        let place = match check["status"].as_str() {
            Some("SUCCESS") => &mut count.ok,
            Some("WARNING") => &mut count.warn,
            Some("SKIPPED") => &mut count.skip,
            Some("INFO") => continue,
            // An unknown word is not good news.
            _ => &mut count.fail,
        };
        *place += 1;
        if !matches!(check["status"].as_str(), Some("SUCCESS" | "SKIPPED")) {
            let text = |key: &str| check[key].as_str().filter(|text| !text.is_empty());
            let reason = text("errorMessage").or_else(|| text("description")).unwrap_or_default();
            reasons.push(format!("{}: {reason}", text("id").unwrap_or_default()));
        }
    }
    Scenario { name: name.to_owned(), run: run.to_owned(), count, reasons, exit: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn checks_are_counted() {
        let checks = ["SUCCESS", "SUCCESS", "INFO", "SKIPPED", "WARNING", "FAILURE", "??"];
        let checks = checks.map(|status| json!({ "id": "a", "status": status, "errorMessage": "b" }));
        let scenario = scenario("server-server-stateless-2026-11-15T10-44-00-967Z", "2026-07-28", &checks);
        assert_eq!(scenario.name, "server-stateless");
        assert_eq!(scenario.count, Count { ok: 2, fail: 2, warn: 1, skip: 1 });
        assert_eq!(scenario.reasons, ["a: b"; 3]);
        assert!(!scenario.is_good());
    }

    #[test]
    fn names_lose_their_time() {
        let name = |path| scenario(path, "", &[]).name;
        assert_eq!(name("auth/metadata-default-2026-11-15T10-44-00-967Z"), "auth/metadata-default");
        assert_eq!(name("tools_call-2026-11-15T10-44-00-967Z"), "tools_call");
        assert_eq!(name("é"), "é");
    }
}
