//! `cargo xtask size`: what the smallest server costs its user.
//!
//! Crates are counted as `cargo tree` lists them for this platform, each name and version once: everything that is
//! compiled for the package, thus also our own crates, procedural macros and build dependencies, but not the package.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::Verdict;
use crate::workspace::{cargo, output_of};

const CRATES: u64 = 42;
const BYTES: u64 = 2_000_000;

/// Crates that a server on stdio must not pay for.
const FORBIDDEN: [&str; 1] = ["bowline-auth"];

/// The package that is measured: its name and its folder.
const PACKAGE: (&str, &str) = ("hello-minimal", "examples/minimal");
/// Where it is built, apart from the workspace because its profile and features differ.
const TARGET: &str = "target/size";

pub(crate) fn run(root: &Path) -> Result<Verdict, String> {
    let (name, folder) = PACKAGE;
    let manifest = format!("{folder}/Cargo.toml");
    take_lock_file(root, folder)?;

    let tree = output_of(cargo(root).args([
        "tree",
        "--prefix",
        "none",
        "-e",
        "normal,build",
        "--manifest-path",
        &manifest,
    ]))?;
    let found = crates_of(&tree, name);
    if let Some(forbidden) = forbidden_of(&found) {
        println!("size: {name} depends on {forbidden}, which only servers over HTTP with logins may");
        return Ok(Verdict::of(false));
    }
    let crates = found.len() as u64;

    output_of(cargo(root).args([
        "build",
        "--release",
        "--quiet",
        "--target-dir",
        TARGET,
        "--manifest-path",
        &manifest,
    ]))?;
    let binary = root.join(TARGET).join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let bytes =
        fs::metadata(&binary).map_err(|error| format!("cannot measure {}: {error}", binary.display()))?.len();

    let measures = [Measure::new("crates", crates, CRATES), Measure::new("bytes", bytes, BYTES)];
    for measure in &measures {
        println!("{}", measure.sentence(name));
    }
    Ok(Verdict::of(measures.iter().all(Measure::is_kept)))
}

/// Copies the lock file of the workspace: the package has none, and is measured with the versions that are tested.
fn take_lock_file(root: &Path, folder: &str) -> Result<(), String> {
    let (from, to) = (root.join("Cargo.lock"), root.join(folder).join("Cargo.lock"));
    fs::copy(&from, &to)
        .map_err(|error| format!("cannot copy {} to {}: {error}", from.display(), to.display()))?;
    Ok(())
}

/// Returns the crates of a `cargo tree` without prefix, as name and version.
fn crates_of<'a>(tree: &'a str, package: &str) -> BTreeSet<(&'a str, &'a str)> {
    let entries = tree.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?))
    });
    // Headings such as `[build-dependencies]` have a single word or no version behind it.
    entries.filter(|(name, version)| *name != package && version.starts_with('v')).collect()
}

/// Returns a crate that must not be there.
fn forbidden_of<'a>(crates: &BTreeSet<(&'a str, &'a str)>) -> Option<&'a str> {
    crates.iter().map(|(name, _)| *name).find(|name| FORBIDDEN.contains(name))
}

struct Measure {
    unit: &'static str,
    value: u64,
    limit: u64,
}

impl Measure {
    fn new(unit: &'static str, value: u64, limit: u64) -> Self {
        Self { unit, value, limit }
    }

    fn is_kept(&self) -> bool {
        self.value <= self.limit
    }

    fn sentence(&self, package: &str) -> String {
        let Self { unit, value, limit } = self;
        let verdict = if self.is_kept() { "within" } else { "BEYOND" };
        format!("size: {package} has {value} {unit}, {verdict} the limit of {limit}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Measure, crates_of, forbidden_of};

    #[test]
    fn crates_are_counted_once_per_version() {
        let tree = "\
hello-minimal v0.0.0 (/repo/examples/minimal)
bowline v0.1.0 (/repo/crates/bowline)
bowline-macros v0.1.0 (proc-macro) (/repo/crates/bowline-macros)
syn v2.0.1
syn v1.0.9
syn v2.0.1 (*)

[build-dependencies]
cc v1.2.0
";
        let found: Vec<_> = crates_of(tree, "hello-minimal").into_iter().collect();
        assert_eq!(
            found,
            [
                ("bowline", "v0.1.0"),
                ("bowline-macros", "v0.1.0"),
                ("cc", "v1.2.0"),
                ("syn", "v1.0.9"),
                ("syn", "v2.0.1")
            ]
        );
    }

    #[test]
    fn a_forbidden_crate_is_found_by_its_name() {
        let without = "bowline v0.1.0 (/repo/crates/bowline)\nbowline-authority v1.0.0\n";
        assert_eq!(forbidden_of(&crates_of(without, "hello-minimal")), None);
        let with = format!("{without}bowline-auth v0.1.0 (/repo/crates/bowline-auth)\n");
        assert_eq!(forbidden_of(&crates_of(&with, "hello-minimal")), Some("bowline-auth"));
    }

    #[test]
    fn a_limit_is_inclusive() {
        assert_eq!(
            Measure::new("crates", 45, 45).sentence("p"),
            "size: p has 45 crates, within the limit of 45"
        );
        assert!(Measure::new("bytes", 2, 2).is_kept());
        assert!(!Measure::new("bytes", 3, 2).is_kept());
        assert!(Measure::new("bytes", 3, 2).sentence("p").contains("BEYOND"));
    }
}
