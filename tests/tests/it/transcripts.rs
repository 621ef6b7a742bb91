//! Every transcript, with a server in memory and with one in a process of its own.

use bowline_testing::{Oracle, Peer, Result, Transcript};
use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

#[tokio::test]
async fn transcripts_hold_in_memory() -> Result<(), Failures> {
    let fixture = |name: &str| bowline_tests::fixture(name).expect("its name was looked up before");
    run_all("in memory", |name| Peer::memory(fixture(name))).await
}

#[tokio::test]
async fn transcripts_hold_over_stdio() -> Result<(), Failures> {
    run_all("over stdio", |name| Peer::spawn(env!("CARGO_BIN_EXE_fixture"), [name])).await
}

/// What failed, printed as it is.
struct Failures(String);

impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Runs every transcript, or those whose path contains what `TRANSCRIPT` says, and tells of all failures together.
async fn run_all(mode: &str, connect: impl Fn(&str) -> Result<Peer>) -> Result<(), Failures> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let oracle = crate::oracle_or_notice();
    let filter = std::env::var("TRANSCRIPT").unwrap_or_default();
    let mut files = Vec::new();
    collect(&package.join("transcripts"), &mut files);
    files.sort();
    let (mut ran, mut failures) = (0, Vec::new());
    for file in files {
        let path = file.strip_prefix(package).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        let name = format!("tests/{path}");
        if !name.contains(&filter) {
            continue;
        }
        ran += 1;
        if let Err(error) = run(&name, &file, oracle.as_ref(), &connect).await {
            failures.push(format!("{mode}: {error}"));
        }
    }
    if ran == 0 {
        return Err(Failures(format!("no transcript matches `{filter}`")));
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failures(format!("{} of {ran} transcripts failed\n\n{}", failures.len(), failures.join("\n\n"))))
}

async fn run(
    name: &str,
    file: &Path,
    oracle: Option<&Oracle>,
    connect: &impl Fn(&str) -> Result<Peer>,
) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    let transcript = Transcript::parse(name, &text).map_err(|error| error.to_string())?;
    let server = transcript.server();
    if bowline_tests::fixture(server).is_none() {
        return Err(format!("{name}: no fixture is called `{server}`"));
    }
    transcript.run(oracle, || connect(server)).await.map_err(|error| error.to_string())
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder of transcripts is there") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "txtar") {
            into.push(path);
        }
    }
}
