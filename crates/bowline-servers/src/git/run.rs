//! Runs git on an untrusted repository.
//!
//! The configuration of a repository can name programs: hooks, filters, monitors, diff viewers. None of them runs here. Neither do
//! filters and hooks of the user's configuration, because some of them, such as git-lfs, run programs that the repository names.
//! No shell is used, and no setting comes from the environment.

use bowline::server::{Error, Result};
use std::{
    ffi::{OsStr, OsString},
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

/// The maximum size of git's error output.
const MAX_COMPLAINT: u64 = 4096;
/// The maximum size of the configuration listing.
const MAX_SETTINGS: u64 = 1024 * 1024;
/// The maximum size of the file list for filter checks.
const MAX_FILES: u64 = 16 * 1024 * 1024;

/// Settings that override the repository.
const SETTINGS: &[(&str, &str)] = &[
    ("advice.detachedHead", "false"),
    ("blame.ignoreRevsFile", ""),
    ("color.ui", "false"),
    ("commit.gpgSign", "false"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.quotePath", "false"),
    ("diff.external", ""),
    ("diff.orderFile", "/dev/null"),
    ("gc.auto", "0"),
    ("log.showSignature", "false"),
    ("maintenance.auto", "false"),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
    ("tag.gpgSign", "false"),
];

/// The environment variables that git needs.
const ENVIRONMENT: &[&str] =
    &["HOME", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "USERPROFILE", "XDG_CONFIG_HOME"];

/// A repository and the git program.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    program: PathBuf,
    /// The top of the work tree.
    pub(super) folder: PathBuf,
    /// The path given by the user, which may contain links.
    pub(super) given: PathBuf,
    git_dir: PathBuf,
    pub(super) max_output: u64,
    pub(super) time: Duration,
}

/// The output of git.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    /// Whether the output was cut.
    pub(super) cut: bool,
}

impl Output {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// A setting that names a program.
#[derive(Debug)]
struct Program {
    name: String,
    /// Whether it is set by the repository instead of the user.
    of_repository: bool,
}

impl Program {
    /// The name of the filter.
    fn filter(&self) -> Option<&str> {
        Some(self.name.strip_prefix("filter.")?.rsplit_once('.')?.0)
    }
}

/// The files that a command writes to the index or the work tree.
#[derive(Clone, Copy, Debug)]
pub(super) enum Affected<'a> {
    /// These paths and everything below them.
    Paths(&'a [&'a str]),
    /// The files that differ between the current commit and this one.
    Switch(&'a str),
}

/// The location of a directory in a repository.
enum Found {
    /// It is the top of a repository.
    Top(Box<Repository>),
    /// It is below the top.
    Within(PathBuf),
}

fn unfit(folder: &Path, reason: &str) -> Error {
    Error::tool(format!("`{}` is not in a git work tree: {reason}", folder.display()))
}

fn elsewhere(top: &Path) -> String {
    format!("the top of its repository is `{}`", top.display())
}

impl Repository {
    /// Finds the repository whose work tree contains `folder` and serves it from its top. Clients whose roots cover only a part of the
    /// work tree do not get access.
    pub(super) fn find(folder: &Path, max_output: u64, time: Duration) -> Result<Self> {
        match Self::find_top(folder, max_output, time)? {
            Found::Top(repository) => Ok(*repository),
            // The top must be a repository by itself: a directory cannot claim its parent.
            Found::Within(top) => match Self::find_top(&top, max_output, time)? {
                Found::Top(repository) => Ok(*repository),
                Found::Within(other) => Err(unfit(&top, &elsewhere(&other))),
            },
        }
    }

    fn find_top(folder: &Path, max_output: u64, time: Duration) -> Result<Found> {
        let unfit = |reason: String| unfit(folder, &reason);
        let given = std::path::absolute(folder)?;
        let real = std::fs::canonicalize(&given).map_err(|error| unfit(error.to_string()))?;
        let program = program()?;
        let mut repository =
            Self { program, given, git_dir: PathBuf::new(), folder: real.clone(), max_output, time };
        let asked = ["rev-parse", "--show-toplevel", "--absolute-git-dir"];
        let output = repository.ask(&asked)?.map_err(unfit)?;
        let mut output = output.lines();
        let (Some(top), Some(git_dir)) = (output.next(), output.next()) else {
            return Err(unfit("git did not report its location".into()));
        };
        match std::fs::canonicalize(top) {
            Ok(top) if top == real => {}
            Ok(top) if real.starts_with(&top) => return Ok(Found::Within(top)),
            Ok(_) | Err(_) => return Err(unfit(elsewhere(Path::new(top)))),
        }
        repository.git_dir = std::fs::canonicalize(git_dir)?;
        if !repository.git_dir.starts_with(&real) && !repository.is_linked()? {
            return Err(unfit(format!("it refers to `{git_dir}`, which does not refer back to it")));
        }
        Ok(Found::Top(Box::new(repository)))
    }

    /// Returns whether a repository in another place refers to this work tree, as with linked work trees and submodules. Otherwise any
    /// directory could expose the history of any repository.
    fn is_linked(&self) -> Result<bool> {
        let back = self.git_dir.join("gitdir");
        if std::fs::metadata(&back).is_ok_and(|back| back.is_file()) {
            let back = std::fs::read_to_string(back)?;
            let back = std::fs::canonicalize(self.git_dir.join(back.trim_end())).ok();
            return Ok(back.is_some_and(|back| back == self.folder.join(".git")));
        }
        // Otherwise another directory would be the top.
        Ok(self.ask(&["config", "--local", "core.worktree"])?.is_ok())
    }

    /// Runs git synchronously, before there is an async runtime.
    fn ask(&self, arguments: &[&str]) -> Result<Result<String, String>> {
        let mut child = self.command(&[]).args(arguments).spawn()?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (done, ended) = mpsc::channel();
        std::thread::spawn(move || {
            drop(done.send((short(stdout), short(stderr))));
        });
        let Ok((output, complaints)) = ended.recv_timeout(self.time) else {
            child.kill()?;
            child.wait()?;
            return Err(self.late());
        };
        let said = if child.wait()?.success() { Ok(output) } else { Err(complaint(&complaints)) };
        Ok(said.map(|output| String::from_utf8_lossy(&output).into_owned()))
    }

    fn late(&self) -> Error {
        Error::tool(format!("git timed out after {:?}", self.time))
    }

    /// Runs git and returns its output, or its error message.
    pub(super) async fn run<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<Output> {
        self.run_with(arguments, Vec::new()).await
    }

    /// Runs git with standard input.
    pub(super) async fn run_with<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: Vec<u8>,
    ) -> Result<Output> {
        let off = self.programs().await?;
        let off: Vec<_> = off.iter().flat_map(|program| switched_off(&program.name)).collect();
        let mut command = self.command(&off);
        command.args(arguments);
        self.finish(command, input, self.max_output).await
    }

    /// Fails if files would need a filter.
    ///
    /// A filter of the user, such as git-lfs, can read settings from the repository and run programs named there, so no filters are
    /// run at all.
    pub(super) async fn check_no_filters(&self, files: Affected<'_>) -> Result<()> {
        let programs = self.programs().await?;
        let filters: Vec<_> =
            programs.iter().filter_map(|program| Some((program, program.filter()?))).collect();
        if let Some((program, _)) = filters.iter().find(|(program, _)| program.of_repository) {
            return Err(Error::tool(format!(
                "the repository configures `{}`, and programs of a repository are not run here; use git directly",
                program.name
            )));
        }
        if filters.is_empty() {
            return Ok(());
        }
        let (listing, sources) = match files {
            Affected::Paths(paths) => {
                let listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"];
                ([&listing[..], paths].concat(), vec![None])
            }
            Affected::Switch(commit) => {
                let listing =
                    ["diff", "-z", "--name-only", "--no-renames", "--no-ext-diff", "HEAD", commit, "--"];
                (listing.to_vec(), vec![None, Some(format!("--source={commit}"))])
            }
        };
        let mut command = self.command(&[]);
        command.args(listing);
        let listed = self.finish(command, Vec::new(), MAX_FILES).await?;
        if listed.cut {
            return Err(Error::tool("too many files to check for filters; use fewer paths"));
        }
        if listed.bytes.is_empty() {
            return Ok(());
        }
        for source in sources {
            let mut command = self.command(&[]);
            command.arg("check-attr").args(source).args(["-z", "--stdin", "filter"]);
            let output = self.finish(command, listed.bytes.clone(), 4 * MAX_FILES).await?.text();
            // Triples: the path, the name of the attribute, its value.
            let fields: Vec<&str> = output.split('\0').collect();
            let used = fields.chunks_exact(3).find_map(|field| {
                let [path, _, value] = field else { return None };
                filters.iter().any(|(_, name)| name == value).then_some((*path, *value))
            });
            if let Some((path, name)) = used {
                return Err(Error::tool(format!(
                    "`{path}` uses the filter `{name}`, and filters are not run here; use git directly"
                )));
            }
        }
        Ok(())
    }

    /// Returns the settings that name programs and cannot be disabled by an option.
    async fn programs(&self) -> Result<Vec<Program>> {
        let mut command = self.command(&[]);
        command.args(["config", "--list", "--includes", "--show-scope", "--name-only", "-z"]);
        let listed = self.finish(command, Vec::new(), MAX_SETTINGS).await?;
        if listed.cut {
            return Err(Error::tool(format!(
                "the git configuration of the repository is larger than {} KiB",
                MAX_SETTINGS / 1024
            )));
        }
        let listed = listed.text();
        let mut words = listed.split('\0');
        let mut found = Vec::new();
        while let (Some(scope), Some(name)) = (words.next(), words.next()) {
            let ends = |end: &[&str]| end.iter().any(|end| name.ends_with(end));
            let is_program = name.starts_with("filter.") && ends(&[".clean", ".smudge", ".process"])
                || name.starts_with("hook.") && ends(&[".command"]);
            if is_program {
                let of_repository = matches!(scope, "local" | "worktree");
                found.push(Program { name: name.to_owned(), of_repository });
            }
        }
        Ok(found)
    }

    /// Builds a command with a minimal environment. `more` are additional [`SETTINGS`].
    fn command(&self, more: &[(String, &str)]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().current_dir(&self.folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in ENVIRONMENT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if !self.git_dir.as_os_str().is_empty() {
            command.env("GIT_DIR", &self.git_dir).env("GIT_WORK_TREE", &self.folder);
        }
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_LITERAL_PATHSPECS", "1")
            .env("GIT_EDITOR", ":")
            .env("LC_ALL", "C");
        // Passed by the environment, where names can contain any character.
        let settings = SETTINGS.iter().map(|&(name, value)| (name, value));
        let settings = settings.chain(more.iter().map(|(name, value)| (name.as_str(), *value)));
        let mut count = 0_usize;
        for (name, value) in settings {
            command
                .env(format!("GIT_CONFIG_KEY_{count}"), name)
                .env(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        command.env("GIT_CONFIG_COUNT", count.to_string()).arg("--no-pager");
        command
    }

    async fn finish(&self, mut command: Command, input: Vec<u8>, limit: u64) -> Result<Output> {
        if !input.is_empty() {
            command.stdin(Stdio::piped());
        }
        let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async {
            if let Some(mut stdin) = stdin {
                // Git may exit without reading its input; its error output says why.
                drop(stdin.write_all(&input).await);
            }
        };
        let work = async {
            let ((), output, complaints) =
                tokio::join!(feed, limited(stdout, limit), limited(stderr, MAX_COMPLAINT));
            let (output, complaints) = (output?, complaints?);
            if output.cut {
                child.start_kill()?;
                child.wait().await?;
                return Ok(output);
            }
            if child.wait().await?.success() {
                return Ok(output);
            }
            Err(Error::tool(format!("git failed: {}", complaint(&complaints.bytes))))
        };
        tokio::time::timeout(self.time, work).await.map_err(|_| self.late())?
    }
}

/// Reads at most `limit` bytes. The rest stays in the stream, so the process must be killed.
async fn limited(stream: Option<impl AsyncRead + Unpin>, limit: u64) -> Result<Output> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(limit.saturating_add(1)).read_to_end(&mut bytes).await?;
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let cut = bytes.len() > limit;
    bytes.truncate(limit);
    Ok(Output { bytes, cut })
}

/// Reads a small stream. Read errors end it early.
fn short(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        drop(stream.take(MAX_COMPLAINT).read_to_end(&mut bytes));
    }
    bytes
}

/// Returns the settings that disable a setting that names a program.
fn switched_off(name: &str) -> Vec<(String, &'static str)> {
    let (section, _) = name.rsplit_once('.').unwrap_or((name, ""));
    if section.starts_with("hook.") {
        return vec![(format!("{section}.enabled"), "false"), (name.to_owned(), "true")];
    }
    vec![(name.to_owned(), ""), (format!("{section}.required"), "false")]
}

/// Returns git's error output on one line.
fn complaint(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() { "no error message".to_owned() } else { lines.join(" ") }
}

/// Finds the git program by its absolute path. A relative entry of `PATH` would be resolved in the repository.
fn program() -> Result<PathBuf> {
    let name: OsString = format!("git{}", std::env::consts::EXE_SUFFIX).into();
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&name));
    let missing = || Error::tool("`git` not found in PATH");
    found.into_iter().find(|program| program.is_file()).ok_or_else(missing)
}
