//! The table of what the suite found: `conformance-table <server|client> <expected.yaml> <folder>`.
//!
//! The folder has one folder per run, named for the revision or with `strict-` before it. The last line counts scenarios; the
//! exit code says whether anything failed that was not expected to, or the other way round.

mod expected;
mod results;

use expected::Expected;
use results::{Count, Scenario};
use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

fn main() -> Result<ExitCode, String> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [side, expected, folder] = arguments.as_slice() else {
        return Err("usage: conformance-table <server|client> <expected.yaml> <folder>".into());
    };
    let text = std::fs::read_to_string(expected)
        .map_err(|error| format!("{}: {error}", Path::new(expected).display()))?;
    let side = side.to_string_lossy();
    let expected = Expected::parse(&text, &side)?;
    let report = Report::new(&expected, &results::read(&PathBuf::from(folder))?);
    let written = std::io::stdout().write_all(report.text.as_bytes());
    written.map_err(|error| error.to_string())?;
    Ok(if report.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is printed, and how many things in it are wrong.
struct Report {
    text: String,
    failed: usize,
}

impl Report {
    fn new(expected: &Expected, scenarios: &[Scenario]) -> Self {
        let mut text = String::new();
        let width = scenarios.iter().map(|scenario| scenario.name.len()).max().unwrap_or(8).max(8);
        let run_width = scenarios.iter().map(|scenario| scenario.run.len()).max().unwrap_or(3).max(3);
        let (mut total, mut passed, mut forgiven, mut failed) = (Count::default(), 0, 0, 0);
        let mut line = |name: &str, run: &str, count: &Count, verdict: &str| {
            let Count { ok, fail, warn, skip } = count;
            let row =
                format!("{name:width$}  {run:run_width$}  {ok:>4} {fail:>4} {warn:>4} {skip:>4}  {verdict}");
            writeln!(text, "{}", row.trim_end()).expect("writing to a string does not fail");
        };
        let heading = format!(
            "{:width$}  {:run_width$}  {:>4} {:>4} {:>4} {:>4}",
            "scenario", "run", "ok", "fail", "warn", "skip"
        );
        let mut reasons = String::new();
        for scenario in scenarios {
            let count = &scenario.count;
            total.add(count);
            let verdict = match (scenario.is_good(), expected.may_fail(&scenario.name)) {
                (true, _) => {
                    passed += 1;
                    ""
                }
                (false, true) => {
                    forgiven += 1;
                    "expected"
                }
                (false, false) => {
                    failed += 1;
                    for reason in &scenario.reasons {
                        writeln!(reasons, "{} at {}: {reason}", scenario.name, scenario.run)
                            .expect("writing to a string does not fail");
                    }
                    "FAILED"
                }
            };
            line(&scenario.name, &scenario.run, count, verdict);
        }
        line("total", "", &total, "");
        for complaint in expected.complaints(scenarios) {
            failed += 1;
            writeln!(reasons, "{complaint}").expect("writing to a string does not fail");
        }
        let expected = if forgiven > 0 { format!(", {forgiven} expected to fail") } else { String::new() };
        let text = format!("{heading}\n{text}{reasons}{passed} passed, {failed} failed{expected}\n");
        Self { text, failed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: &str =
        "server:\n  runs:\n    2026-07-28: 3\n  failures:\n    tasks-lifecycle: not there yet\n";

    fn scenario(name: &str, ok: usize, fail: usize) -> Scenario {
        let count = Count { ok, fail, ..Count::default() };
        let reasons = vec!["it broke".into(); fail];
        Scenario { name: name.into(), run: "2026-07-28".into(), count, reasons, exit: 0 }
    }

    fn check(scenarios: &[Scenario], failed: usize, last: &str) {
        let report = Report::new(&Expected::parse(EXPECTED, "server").unwrap(), scenarios);
        assert_eq!(report.text.lines().last(), Some(last), "{}", report.text);
        assert_eq!(report.failed, failed);
    }

    #[test]
    fn only_expected_scenarios_may_fail() {
        let tasks = || scenario("tasks-lifecycle", 1, 8);
        check(
            &[scenario("ping", 2, 0), scenario("tools-list", 3, 0), tasks()],
            0,
            "2 passed, 0 failed, 1 expected to fail",
        );
        check(
            &[scenario("ping", 2, 0), scenario("tools-list", 3, 1), tasks()],
            1,
            "1 passed, 1 failed, 1 expected to fail",
        );
    }

    #[test]
    fn an_outdated_expectation_fails() {
        let all = [scenario("ping", 2, 0), scenario("tools-list", 3, 0), scenario("tasks-lifecycle", 9, 0)];
        check(&all, 1, "3 passed, 1 failed");
    }

    #[test]
    fn a_run_with_missing_scenarios_fails() {
        check(
            &[scenario("ping", 2, 0), scenario("tasks-lifecycle", 1, 8)],
            1,
            "1 passed, 1 failed, 1 expected to fail",
        );
    }
}
