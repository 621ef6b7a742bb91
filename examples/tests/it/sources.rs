//! What holds for the sources of the examples.

use std::{fs, path::Path};

/// The sources, by the name of the example.
fn sources() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder of the examples is there") {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.file_stem().expect("a source has a name").to_string_lossy().into_owned();
            sources.push((name, fs::read_to_string(&path).expect("a source can be read")));
        }
    }
    sources.sort();
    sources
}

#[test]
fn every_example_is_short_and_has_instructions() {
    let sources = sources();
    assert_eq!(sources.len(), 13, "each example has its tests here");
    for (name, text) in sources {
        let lines = text.lines().count();
        assert!(lines < 60, "{name}.rs has {lines} lines");
        let header: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
        assert!(
            header.iter().any(|line| line.starts_with("//! Try it: `")),
            "{name}.rs does not say how to try it"
        );
    }
}

#[test]
fn a_complete_server_needs_ten_lines() {
    let (_, hello) = sources().into_iter().find(|(name, _)| name == "hello").expect("there is `hello`");
    let program = hello.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//!"));
    assert_eq!(program.count(), 10);
}
