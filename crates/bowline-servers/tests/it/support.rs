//! Helpers: a client connected to a server, a directory to serve, and a repository.

use bowline::{
    client::{Client, ToolResult, memory},
    prelude::*,
    types::Root,
};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// The revisions that tests of a whole server use: the last one with sessions and the first one without.
pub(crate) const REVISIONS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

pub(crate) async fn connect(server: Server, revision: Revision) -> Client {
    connect_with(server, revision, None).await
}

pub(crate) async fn connect_with(server: Server, revision: Revision, roots: Option<Vec<Root>>) -> Client {
    let (near, far) = memory();
    tokio::spawn(server.serve(far.read, far.write));
    let mut builder = Client::builder().revisions([revision]);
    if let Some(roots) = roots {
        builder = builder.roots(roots);
    }
    let client = builder.connect(near).await.unwrap();
    assert_eq!(client.revision(), revision);
    client
}

/// Returns the structured result of a call that must succeed.
pub(crate) async fn call(client: &Client, tool: &str, arguments: Value) -> Value {
    let called = client.call(tool, arguments).await.unwrap();
    assert!(!called.is_error(), "{}", called.text());
    called.json().unwrap()
}

/// Returns the text of a call that must succeed.
pub(crate) async fn text(client: &Client, tool: &str, arguments: Value) -> String {
    let called: ToolResult = client.call(tool, arguments).await.unwrap();
    assert!(!called.is_error(), "{}", called.text());
    called.text()
}

/// Returns the error text of a call that must fail.
pub(crate) async fn refused(client: &Client, tool: &str, arguments: Value) -> String {
    let shown = arguments.to_string();
    match client.call(tool, arguments).await {
        Ok(called) => {
            assert!(called.is_error(), "{tool} {shown} gave {}", called.text());
            called.text()
        }
        Err(error) => error.to_string(),
    }
}

pub(crate) async fn tools(client: &Client) -> Vec<String> {
    client.tools().await.unwrap().into_iter().map(|tool| tool.name).collect()
}

/// A directory with some files, and a secret outside of it.
pub(crate) struct Folder {
    pub(crate) top: PathBuf,
    pub(crate) outside: PathBuf,
    _whole: TempDir,
}

pub(crate) const SECRET: &str = "outside-content";

impl Folder {
    pub(crate) fn new() -> Self {
        let whole = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(whole.path()).unwrap();
        let (top, outside) = (path.join("root"), path.join("root-evil"));
        for folder in [&top, &outside] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(outside.join("secret.txt"), SECRET).unwrap();
        Self { top, outside, _whole: whole }
    }

    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let folder = Self::new();
        for (name, content) in files {
            folder.write(name, content);
        }
        folder
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.top.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.top.join(name)).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.top.join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn uri(&self, name: &str) -> String {
        format!("file://{}", self.path(name))
    }

    /// Returns the names in the directory.
    pub(crate) fn names(&self) -> Vec<String> {
        names(&self.top)
    }
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs one test in its own process, for state of the whole process such as environment and memory. Returns true in that process.
pub(crate) fn alone(name: &str, environment: &[(&str, &Path)]) -> bool {
    const ALONE: &str = "BOWLINE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name]).env(ALONE, "1").envs(environment.iter().copied());
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
    false
}

/// Returns whether git is installed. Otherwise the test is skipped.
pub(crate) fn has_git() -> bool {
    let found = Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        bowline_testing::skip("the program `git` is not installed");
    }
    found
}

/// Runs git in a directory, without the settings of the user.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A repository with one commit of one file, `a.txt`.
pub(crate) fn repository() -> Folder {
    let folder = Folder::with(&[("a.txt", "one\ntwo\n")]);
    git(&folder.top, &["init", "-q", "-b", "main"]);
    for (name, value) in [("user.name", "Ann"), ("user.email", "ann@example.com")] {
        git(&folder.top, &["config", name, value]);
    }
    git(&folder.top, &["add", "."]);
    git(&folder.top, &["commit", "-q", "-m", "First"]);
    folder
}
