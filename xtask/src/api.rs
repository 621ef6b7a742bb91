//! `cargo xtask api`: writes the public API of each library crate to `spec/api`, so that a change of it shows in the diff.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use public_api::Builder;
use serde_json::Value;

use crate::Verdict;
use crate::files;
use crate::workspace::{self, Package, cargo, output_of};

const FOLDER: &str = "spec/api";

/// The format of rustdoc's JSON that the `public-api` crate in `Cargo.lock` reads.
const FORMAT: u64 = 57;

/// Set for the copy of this program that cargo runs as `rustdoc`.
const WRAPPER: &str = "XTASK_RUSTDOC";

pub(crate) fn run(root: &Path, options: &[String]) -> Result<Verdict, String> {
    let check = match options {
        [] => false,
        [only] if only == "--check" => true,
        [other, ..] => return Err(format!("expected `--check` or no option, got `{other}`")),
    };
    let packages = workspace::packages(root)?;
    let libraries: Vec<&Package> = packages.iter().filter(|package| package.is_published_library).collect();
    document(root, &libraries)?;
    if let Some(format) = other_format(root, &libraries)? {
        println!("api: skipped, this rustdoc writes JSON format {format} and `public-api` reads {FORMAT}");
        return Ok(Verdict::Clean);
    }

    let mut is_clean = true;
    let mut items = 0;
    fs::create_dir_all(root.join(FOLDER)).map_err(|error| format!("cannot create {FOLDER}: {error}"))?;
    for library in &libraries {
        let listing = listing(root, library)?;
        items += listing.lines().count();
        let name = format!("{FOLDER}/{}.txt", library.name);
        if fs::read_to_string(root.join(&name)).is_ok_and(|known| known == listing) {
            continue;
        }
        if check {
            println!("api: {name} is out of date; run `cargo xtask api` and review the diff");
            is_clean = false;
        } else {
            fs::write(root.join(&name), listing).map_err(|error| format!("cannot write {name}: {error}"))?;
            println!("api: wrote {name}");
        }
    }
    is_clean &= stale(root, &libraries, check)?;
    println!("api: {items} items of {} crates", libraries.len());
    Ok(Verdict::of(is_clean))
}

/// Runs rustdoc with `arguments` if cargo started this program in its place. Returns `None` otherwise.
///
/// JSON output is unstable. `RUSTC_BOOTSTRAP` unlocks it, but build scripts look at that variable too, and cargo would
/// build every dependency again. So only rustdoc sees it.
pub(crate) fn run_as_rustdoc(arguments: &[String]) -> Option<Result<Verdict, String>> {
    let rustdoc = env::var_os(WRAPPER)?;
    let mut command = Command::new(rustdoc);
    command.args(arguments);
    // Cargo also asks for the version. An ordinary rustdoc has to answer that.
    if arguments.iter().any(|argument| argument == "--output-format") {
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    let status = command.status().map_err(|error| format!("cannot run rustdoc: {error}"));
    Some(status.map(|status| Verdict::of(status.success())))
}

/// Runs rustdoc, which writes one JSON file for each of `libraries`.
fn document(root: &Path, libraries: &[&Package]) -> Result<(), String> {
    let program = env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let rustdoc = env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    let mut command = cargo(root);
    command.args(["doc", "--quiet", "--no-deps", "--all-features", "--lib"]);
    command.env("RUSTDOC", program).env(WRAPPER, rustdoc);
    command.env("RUSTDOCFLAGS", "-Zunstable-options --output-format json --cap-lints allow");
    for library in libraries {
        command.args(["-p", &library.name]);
    }
    output_of(&mut command).map(drop)
}

/// Returns where rustdoc writes the JSON of `library`.
fn json_of(root: &Path, library: &Package) -> PathBuf {
    root.join("target/doc").join(library.name.replace('-', "_")).with_extension("json")
}

/// Returns the format of the JSON files if it is not [`FORMAT`].
fn other_format(root: &Path, libraries: &[&Package]) -> Result<Option<u64>, String> {
    let Some(library) = libraries.first() else { return Ok(None) };
    let json: Value = serde_json::from_str(&files::read(&json_of(root, library))?)
        .map_err(|error| format!("cannot read rustdoc's JSON of `{}`: {error}", library.name))?;
    Ok(json.get("format_version").and_then(Value::as_u64).filter(|&format| format != FORMAT))
}

/// Returns one line per public item of `library`.
fn listing(root: &Path, library: &Package) -> Result<String, String> {
    let api = Builder::from_rustdoc_json(json_of(root, library))
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .map_err(|error| format!("cannot list the API of `{}`: {error}", library.name))?;
    let lines: Vec<String> = api.items().map(ToString::to_string).collect();
    Ok(lines.join("\n") + "\n")
}

/// Removes the listings of crates that no longer exist, or reports them. Returns whether there were none.
fn stale(root: &Path, libraries: &[&Package], check: bool) -> Result<bool, String> {
    let mut none = true;
    for file in files::below(root, &[FOLDER], "txt")? {
        let is_known = libraries.iter().any(|library| file.path == format!("{FOLDER}/{}.txt", library.name));
        if is_known {
            continue;
        }
        if check {
            println!("api: {} lists a crate that does not exist; run `cargo xtask api`", file.path);
            none = false;
        } else {
            fs::remove_file(root.join(&file.path))
                .map_err(|error| format!("cannot remove {}: {error}", file.path))?;
            println!("api: removed {}", file.path);
        }
    }
    Ok(none)
}

#[cfg(test)]
mod tests {
    use super::{run, stale};
    use crate::scratch::Tree;

    #[test]
    fn an_unknown_option_is_an_error() {
        let tree = Tree::new(&[]);
        let error = run(tree.root(), &["--chekc".to_owned()]).unwrap_err();
        assert_eq!(error, "expected `--check` or no option, got `--chekc`");
    }

    #[test]
    fn listings_of_removed_crates_are_reported_then_removed() {
        let tree = Tree::new(&[("spec/api/gone.txt", "")]);
        assert!(!stale(tree.root(), &[], true).unwrap());
        assert!(stale(tree.root(), &[], false).unwrap());
        assert!(stale(tree.root(), &[], true).unwrap());
    }
}
