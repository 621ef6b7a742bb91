//! The inner loop of development: format, lints, tests and tidy, for the whole workspace or for some crates.

use crate::{Verdict, tidy};
use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

/// A step and the arguments of cargo that run it.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    name: &'static str,
    arguments: Vec<String>,
}

/// Returns the steps that run cargo, the cheapest first.
fn steps(crates: &[String]) -> Vec<Step> {
    let packages = || -> Vec<String> {
        if crates.is_empty() {
            return vec!["--workspace".to_owned()];
        }
        crates.iter().flat_map(|name| ["-p".to_owned(), name.clone()]).collect()
    };
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let format = if crates.is_empty() { words(&["--all"]) } else { packages() };
    vec![
        Step { name: "format", arguments: [words(&["fmt"]), format, words(&["--check"])].concat() },
        Step {
            name: "clippy",
            arguments: [
                words(&["clippy"]),
                packages(),
                words(&["--all-targets", "--all-features", "--quiet", "--", "-D", "warnings"]),
            ]
            .concat(),
        },
        Step { name: "tests", arguments: [words(&["test", "--quiet"]), packages()].concat() },
    ]
}

/// Runs all steps, even if one fails, and prints a summary.
pub(crate) fn run(root: &Path, crates: &[String]) -> Result<Verdict, String> {
    let mut results: Vec<(&str, bool, Duration)> = Vec::new();
    for step in steps(crates) {
        println!("== cargo {}", step.arguments.join(" "));
        let start = Instant::now();
        let status = Command::new("cargo").args(&step.arguments).current_dir(root).status();
        let status = status.map_err(|error| format!("cannot run cargo: {error}"))?;
        results.push((step.name, status.success(), start.elapsed()));
    }
    println!("== cargo xtask tidy");
    let start = Instant::now();
    results.push(("tidy", tidy::run(root)? == Verdict::Clean, start.elapsed()));
    println!("\n{}", summary(&results));
    Ok(Verdict::of(results.iter().all(|(_, is_clean, _)| *is_clean)))
}

fn summary(results: &[(&str, bool, Duration)]) -> String {
    let lines = results.iter().map(|(name, is_clean, time)| {
        let state = if *is_clean { "ok" } else { "FAILED" };
        format!("{name:<8} {state:<6} {:>4} s", time.as_secs())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::{steps, summary};
    use std::time::Duration;

    fn lines(crates: &[&str]) -> Vec<String> {
        let crates: Vec<String> = crates.iter().map(ToString::to_string).collect();
        steps(&crates).iter().map(|step| step.arguments.join(" ")).collect()
    }

    #[test]
    fn the_whole_workspace_is_checked_by_default() {
        assert_eq!(
            lines(&[]),
            [
                "fmt --all --check",
                "clippy --workspace --all-targets --all-features --quiet -- -D warnings",
                "test --quiet --workspace",
            ]
        );
    }

    #[test]
    fn named_crates_are_checked_alone() {
        assert_eq!(
            lines(&["bowline-http", "xtask"]),
            [
                "fmt -p bowline-http -p xtask --check",
                "clippy -p bowline-http -p xtask --all-targets --all-features --quiet -- -D warnings",
                "test --quiet -p bowline-http -p xtask",
            ]
        );
    }

    #[test]
    fn the_summary_names_failed_steps() {
        let second = Duration::from_secs(1);
        assert_eq!(
            summary(&[("format", true, second), ("tests", false, 61 * second)]),
            "format   ok        1 s\ntests    FAILED   61 s"
        );
    }
}
