//! What may fail, and how many scenarios there are to run: the part of YAML that says so.

use crate::results::Scenario;
use std::collections::BTreeMap;

/// The prefix of the scenarios that may be listed as failures.
const FORGIVABLE: &str = "tasks-";

/// What is expected of one side.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// How many scenarios each run has, so that none gets lost.
    runs: BTreeMap<String, usize>,
    /// The scenarios that fail, with the reason.
    failures: BTreeMap<String, String>,
}

impl Expected {
    /// Reads the part about one side: `side`, then `runs` or `failures`, then `key: value`, each two spaces deeper.
    pub(crate) fn parse(text: &str, side: &str) -> Result<Self, String> {
        let mut expected = Self::default();
        let (mut of_side, mut section) = (false, "");
        for (number, line) in text.lines().enumerate() {
            let wrong = |reason: &str| format!("line {} of what is expected: {reason}", number + 1);
            let entry = line.trim_start();
            if entry.is_empty() || entry.starts_with('#') {
                continue;
            }
            let Some((key, value)) = entry.split_once(':') else {
                return Err(wrong("expected `key: value`"));
            };
            let value = value.trim();
            match (line.len() - entry.len(), section) {
                (0, _) => (of_side, section) = (key == side, ""),
                (2, _) => section = key,
                (4, _) if !of_side => {}
                (4, "runs") => {
                    let count = value.parse().map_err(|_| wrong("expected a number of scenarios"))?;
                    expected.runs.insert(key.to_owned(), count);
                }
                (4, "failures") => {
                    if value.is_empty() {
                        return Err(wrong("expected a reason"));
                    }
                    if !key.starts_with(FORGIVABLE) {
                        return Err(wrong("only scenarios of tasks may be expected to fail"));
                    }
                    expected.failures.insert(key.to_owned(), value.to_owned());
                }
                _ => {
                    return Err(wrong("expected `runs` or `failures` below a side, and entries below these"));
                }
            }
        }
        Ok(expected)
    }

    pub(crate) fn may_fail(&self, scenario: &str) -> bool {
        self.failures.contains_key(scenario)
    }

    /// What is expected and did not happen.
    pub(crate) fn complaints(&self, scenarios: &[Scenario]) -> Vec<String> {
        let mut complaints = Vec::new();
        for (run, count) in &self.runs {
            let ran = scenarios.iter().filter(|scenario| scenario.run == *run).count();
            if ran != *count {
                complaints.push(format!("run {run}: expected {count} scenarios, got {ran}"));
            }
        }
        for run in scenarios.iter().map(|scenario| &scenario.run).collect::<std::collections::BTreeSet<_>>() {
            if !self.runs.contains_key(run) {
                complaints.push(format!("run {run}: how many scenarios it has is not written down"));
            }
        }
        for name in self.failures.keys() {
            if !scenarios.iter().any(|scenario| scenario.name == *name && !scenario.is_good()) {
                complaints.push(format!("{name}: expected to fail, and did not: strike it from the list"));
            }
        }
        complaints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Expected::parse(text, "server").unwrap_err()
    }

    #[test]
    fn each_side_has_its_own() {
        let text =
            "# why\nserver:\n  runs:\n    all: 65\n\nclient:\n  failures:\n    tasks-lifecycle: later\n";
        let server = Expected::parse(text, "server").unwrap();
        assert_eq!(server.runs.get("all"), Some(&65));
        assert!(!server.may_fail("tasks-lifecycle"));
        assert!(Expected::parse(text, "client").unwrap().may_fail("tasks-lifecycle"));
    }

    #[test]
    fn most_scenarios_must_pass() {
        for scenario in ["ping", "auth/dpop"] {
            assert_eq!(
                refused(&format!("server:\n  failures:\n    {scenario}: too hard\n")),
                "line 3 of what is expected: only scenarios of tasks may be expected to fail"
            );
        }
        assert_eq!(
            refused("server:\n  failures:\n    tasks-lifecycle:\n"),
            "line 3 of what is expected: expected a reason"
        );
    }
}
