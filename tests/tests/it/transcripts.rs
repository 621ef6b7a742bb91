//! Every transcript, with a server in memory, with one in a process of its own, and with one behind HTTP.

use bowline_server::Server;
use bowline_testing::{Peer, Result, Transcript};
use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

#[tokio::test]
async fn transcripts_pass_in_memory() -> Result<(), Failures> {
    run_all("in memory", &transcripts()?, |name| Peer::memory(fixture(name))).await
}

#[tokio::test]
async fn transcripts_pass_over_stdio() -> Result<(), Failures> {
    run_all("over stdio", &transcripts()?, |name| Peer::spawn(env!("CARGO_BIN_EXE_fixture"), [name])).await
}

#[tokio::test]
async fn transcripts_pass_over_http() -> Result<(), Failures> {
    let all = transcripts()?;
    let (mut files, mut conversations, mut left_out) = (0, 0, Vec::new());
    let mut over_http = Vec::new();
    for transcript in &all {
        match transcript.over_http() {
            Ok(transcript) => {
                files += 1;
                conversations += transcript.revisions().len().max(1);
                over_http.push(transcript);
            }
            Err(reason) => left_out.push(format!("  {}: {reason}", transcript.name())),
        }
    }
    println!("{files} of {} transcripts run over HTTP, as {conversations} conversations; not:", all.len());
    println!("{}", left_out.join("\n"));
    if std::env::var("TRANSCRIPT").is_err() {
        assert!(files * 100 >= all.len() * 85, "only {files} of {} transcripts run over HTTP", all.len());
    }
    run_all("over HTTP", &over_http, |name| Peer::http(fixture(name))).await
}

fn fixture(name: &str) -> Server {
    bowline_tests::fixture(name).expect("its name was looked up before")
}

/// What failed, printed as it is.
struct Failures(String);

impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Runs transcripts and tells of all failures together.
async fn run_all(
    mode: &str,
    transcripts: &[Transcript],
    connect: impl Fn(&str) -> Result<Peer>,
) -> Result<(), Failures> {
    let oracle = crate::oracle();
    let mut failures = Vec::new();
    for transcript in transcripts {
        let server = transcript.server();
        if let Err(error) = transcript.run(Some(&oracle), || connect(server)).await {
            failures.push(format!("{mode}: {error}"));
        }
    }
    if failures.is_empty() {
        return Ok(());
    }
    let told = failures.join("\n\n");
    Err(Failures(format!("{} of {} transcripts failed\n\n{told}", failures.len(), transcripts.len())))
}

/// Every transcript, or those whose path contains what `TRANSCRIPT` says.
fn transcripts() -> Result<Vec<Transcript>, Failures> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let filter = std::env::var("TRANSCRIPT").unwrap_or_default();
    let mut files = Vec::new();
    collect(&package.join("transcripts"), &mut files);
    files.sort();
    let mut transcripts = Vec::new();
    for file in files {
        let path = file.strip_prefix(package).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        let name = format!("tests/{path}");
        if name.contains(&filter) {
            transcripts.push(read(&name, &file).map_err(Failures)?);
        }
    }
    if transcripts.is_empty() {
        return Err(Failures(format!("no transcript matches `{filter}`")));
    }
    Ok(transcripts)
}

fn read(name: &str, file: &Path) -> Result<Transcript, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    let transcript = Transcript::parse(name, &text).map_err(|error| error.to_string())?;
    let server = transcript.server();
    match bowline_tests::fixture(server) {
        Some(_) => Ok(transcript),
        None => Err(format!("{name}: no fixture is called `{server}`")),
    }
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
