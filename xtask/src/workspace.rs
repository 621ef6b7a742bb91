//! What cargo knows about the workspace.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::files;

/// One member of the workspace.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// The manifest, relative to the root.
    pub(crate) manifest: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) features: Vec<String>,
    /// A library or proc macro that is published.
    pub(crate) is_published_library: bool,
}

/// One entry of a dependency table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// The package's name, also where the entry renames it.
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// The dependency table of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

/// Returns the root of the repository, from the variable that cargo sets.
pub(crate) fn root() -> Result<PathBuf, String> {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").ok_or("expected to be run as `cargo xtask`")?;
    let folder = PathBuf::from(manifest);
    folder.parent().map(Path::to_path_buf).ok_or_else(|| format!("{} has no parent", folder.display()))
}

/// Returns a cargo command that works on the manifest at `root`.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Runs `command` and returns what it printed; a failure carries its error text.
pub(crate) fn output_of(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed: {}", errors.trim()));
    }
    String::from_utf8(output.stdout)
        .map_err(|error| format!("{command:?} printed something else than text: {error}"))
}

/// Returns the members of the workspace, sorted by name.
pub(crate) fn packages(root: &Path) -> Result<Vec<Package>, String> {
    let metadata =
        output_of(cargo(root).args(["metadata", "--format-version", "1", "--no-deps", "--offline"]))?;
    parse(&metadata, root)
}

fn parse(metadata: &str, root: &Path) -> Result<Vec<Package>, String> {
    let metadata: Value =
        serde_json::from_str(metadata).map_err(|error| format!("cannot read cargo's metadata: {error}"))?;
    let mut packages = list(&metadata, "packages")?
        .iter()
        .map(|entry| package(entry, root))
        .collect::<Result<Vec<_>, _>>()?;
    packages.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(packages)
}

fn is_library(target: &Value) -> bool {
    let kinds = target.get("kind").and_then(Value::as_array);
    kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "lib" || kind == "proc-macro"))
}

fn package(entry: &Value, root: &Path) -> Result<Package, String> {
    let dependencies = list(entry, "dependencies")?.iter().map(dependency).collect::<Result<_, _>>()?;
    let table = entry.get("features").and_then(Value::as_object);
    let mut features: Vec<String> = table.map(|table| table.keys().cloned().collect()).unwrap_or_default();
    features.sort();
    // `publish = false` is an empty list of registries.
    let is_published =
        entry.get("publish").and_then(Value::as_array).is_none_or(|registries| !registries.is_empty());
    let is_library = list(entry, "targets").is_ok_and(|targets| targets.iter().any(is_library));
    Ok(Package {
        is_published_library: is_published && is_library,
        name: text(entry, "name")?,
        manifest: files::relative(root, Path::new(&text(entry, "manifest_path")?)),
        dependencies,
        features,
    })
}

fn dependency(entry: &Value) -> Result<Dependency, String> {
    let kind = match entry.get("kind").and_then(Value::as_str) {
        None => Kind::Normal,
        Some("build") => Kind::Build,
        Some("dev") => Kind::Dev,
        Some(other) => return Err(format!("cargo's metadata has a dependency of unknown kind `{other}`")),
    };
    Ok(Dependency { name: text(entry, "name")?, kind })
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>, String> {
    value.get(key).and_then(Value::as_array).ok_or_else(|| format!("cargo's metadata has no list `{key}`"))
}

fn text(value: &Value, key: &str) -> Result<String, String> {
    let found = value.get(key).and_then(Value::as_str);
    found.map(ToOwned::to_owned).ok_or_else(|| format!("cargo's metadata has no text `{key}`"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Dependency, Kind, parse};

    #[test]
    fn packages_are_read_from_the_metadata() {
        let metadata = r#"{"packages":[
            {"name":"b","manifest_path":"/repo/crates/b/Cargo.toml","features":{"x":[],"default":["x"]},"publish":null,"targets":[{"kind":["test"]},{"kind":["lib"]}],
             "dependencies":[{"name":"serde","kind":null},{"name":"cc","kind":"build"},{"name":"trybuild","kind":"dev"}]},
            {"name":"a","manifest_path":"/repo/crates/a/Cargo.toml","features":{},"dependencies":[],"publish":[],"targets":[{"kind":["lib"]}]}]}"#;
        let packages = parse(metadata, Path::new("/repo")).unwrap();
        assert_eq!(packages[0].name, "a");
        assert_eq!(packages[1].manifest, "crates/b/Cargo.toml");
        assert_eq!(packages[1].features, ["default", "x"]);
        assert!(packages[1].is_published_library && !packages[0].is_published_library);
        let of = |name: &str, kind| Dependency { name: name.to_owned(), kind };
        assert_eq!(
            packages[1].dependencies,
            [of("serde", Kind::Normal), of("cc", Kind::Build), of("trybuild", Kind::Dev)]
        );
    }

    #[test]
    fn other_json_is_refused() {
        assert_eq!(parse("{}", Path::new("/")).unwrap_err(), "cargo's metadata has no list `packages`");
        assert!(parse("[", Path::new("/")).unwrap_err().starts_with("cannot read cargo's metadata"));
    }
}
