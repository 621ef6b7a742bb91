//! The read-only tools.

use super::{
    ToolState, check, parse,
    run::{Output, Repository},
};
use bowline::prelude::*;

/// The default number of commits.
const COMMITS: u32 = 20;
/// The maximum number of blamed lines per call.
const BLAMED: u64 = 2000;

/// Options of all diff commands: no external programs.
const PLAIN: [&str; 5] =
    ["--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty", "--submodule=short"];

#[derive(Debug)]
pub(super) struct Reading(pub(super) ToolState);

/// A changed file.
#[data]
pub struct ChangedFile {
    /// The path, relative to the top of the repository.
    pub path: String,
    /// The old path, if it was renamed or copied.
    pub before: Option<String>,
    /// The staged change: `added`, `modified`, `deleted`, `renamed`, `copied` or `type changed`.
    pub staged: Option<String>,
    /// The unstaged change: the same values, or `untracked` or `unmerged`.
    pub unstaged: Option<String>,
}

/// The status of the work tree.
#[data]
#[derive(Default)]
pub struct Status {
    /// The current branch; `null` if HEAD is detached.
    pub branch: Option<String>,
    /// The current commit; `null` if there are no commits.
    pub commit: Option<String>,
    /// The upstream branch.
    pub upstream: Option<String>,
    /// The number of commits ahead of the upstream branch.
    pub ahead: Option<u64>,
    /// The number of commits behind the upstream branch.
    pub behind: Option<u64>,
    /// The changed files.
    pub files: Vec<ChangedFile>,
    /// Whether the list is incomplete.
    pub more: bool,
}

/// A commit.
#[data]
pub struct Commit {
    /// The hash.
    pub hash: String,
    /// The hashes of the parents.
    pub parents: Vec<String>,
    /// The author.
    pub author: String,
    /// The email address of the author.
    pub email: String,
    /// The author date, in seconds since 1970.
    pub time: i64,
    /// The commit message.
    pub message: String,
}

/// A list of commits.
#[data]
pub struct Log {
    /// The commits, the latest first.
    pub commits: Vec<Commit>,
    /// Whether there may be more.
    pub more: bool,
}

/// A branch.
#[data]
pub struct Branch {
    /// The name.
    pub name: String,
    /// Whether it is a remote-tracking branch.
    pub remote: bool,
    /// Whether it is checked out.
    pub current: bool,
    /// The last commit.
    pub commit: String,
    /// The upstream branch.
    pub upstream: Option<String>,
    /// The subject of the last commit.
    pub subject: String,
}

/// The branches of a repository.
#[data]
pub struct Branches {
    /// The branches, sorted by name.
    pub branches: Vec<Branch>,
    /// Whether the list is incomplete.
    pub more: bool,
}

/// A line and the commit that last changed it.
#[data]
pub struct BlameLine {
    /// The line number, counted from 1.
    pub line: u64,
    /// The commit; all zeros if the line is not committed.
    pub commit: String,
    /// The author.
    pub author: String,
    /// The author date, in seconds since 1970.
    pub time: i64,
    /// The line.
    pub text: String,
}

/// The blamed lines of a file.
#[data]
pub struct Blame {
    /// The lines.
    pub lines: Vec<BlameLine>,
    /// Whether there may be more.
    pub more: bool,
}

#[tools]
impl Reading {
    /// Show the current branch and the changed files.
    #[tool(title = "Git status", read_only, open_world = false)]
    async fn git_status(&self, ctx: Ctx) -> Result<Json<Status>> {
        let asked = [
            "status",
            "--porcelain=v2",
            "-z",
            "--branch",
            "--untracked-files=all",
            "--ignore-submodules=dirty",
        ];
        let output = self.0.open(&ctx).await?.run(asked).await?;
        Ok(Json(Status { more: output.cut, ..parse::status(&whole(&output, 0)) }))
    }

    /// List commits, the latest first.
    #[tool(title = "Git log", read_only, open_world = false)]
    async fn git_log(
        &self,
        ctx: Ctx,
        /// A revision or a range such as `main..topic`. Default: the current commit.
        revision: Option<String>,
        /// Only commits that changed one of these paths, relative to the top of the repository.
        paths: Option<Vec<String>>,
        /// Only commits of authors whose name or email contains this text.
        author: Option<String>,
        /// The maximum number of commits. Default: 20.
        #[schemars(range(min = 1, max = 500))]
        limit: Option<u32>,
        /// The number of commits to skip.
        #[serde(default)]
        skip: u32,
    ) -> Result<Json<Log>> {
        let limit = limit.unwrap_or(COMMITS);
        let revision = check::revision(revision.as_deref().unwrap_or("HEAD"))?;
        let paths = check::paths(paths.as_deref())?;
        let mut asked = words([
            "log",
            "-z",
            "--no-color",
            "--no-show-signature",
            "--no-notes",
            "--no-mailmap",
            "--no-patch",
        ]);
        asked.extend(words([parse::COMMIT_FORMAT, "--encoding=UTF-8", "--fixed-strings"]));
        asked.extend([format!("--max-count={}", u64::from(limit) + 1), format!("--skip={skip}")]);
        asked.extend(author.map(|author| format!("--author={author}")));
        asked.extend(words(["--end-of-options", revision, "--"]));
        asked.extend(words(paths));
        let output = self.0.open(&ctx).await?.run(asked).await?;
        let mut commits = parse::commits(&whole(&output, 0));
        let found = commits.len();
        commits.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(Json(Log { more: output.cut || found > commits.len(), commits }))
    }

    /// Show changes as a patch: unstaged changes, staged changes, or the difference between revisions.
    #[tool(title = "Git diff", read_only, open_world = false)]
    async fn git_diff(
        &self,
        ctx: Ctx,
        /// Show staged changes instead of unstaged ones.
        #[serde(default)]
        staged: bool,
        /// The revision to compare with, or a range such as `main..topic`.
        from: Option<String>,
        /// The revision to compare instead of the work tree.
        to: Option<String>,
        /// Only these paths, relative to the top of the repository.
        paths: Option<Vec<String>>,
    ) -> Result<Vec<Content>> {
        if to.is_some() && from.is_none() {
            return Err(Error::tool("`to` needs `from`"));
        }
        if to.is_some() && staged {
            return Err(Error::tool("use only one of `staged` and `to`"));
        }
        let mut asked = words(["diff"]);
        asked.extend(words(PLAIN));
        asked.extend(staged.then(|| "--cached".to_owned()));
        asked.push("--end-of-options".into());
        for revision in from.iter().chain(&to) {
            asked.push(check::revision(revision)?.into());
        }
        asked.push("--".into());
        asked.extend(words(check::paths(paths.as_deref())?));
        Ok(shown(&self.0.open(&ctx).await?.run(asked).await?))
    }

    /// Show a commit with its changes, or a file at that commit.
    #[tool(title = "Git show", read_only, open_world = false)]
    async fn git_show(
        &self,
        ctx: Ctx,
        /// The commit. Default: the current one.
        revision: Option<String>,
        /// The path of a file, relative to the top of the repository.
        path: Option<String>,
    ) -> Result<Vec<Content>> {
        let revision = check::revision(revision.as_deref().unwrap_or("HEAD"))?;
        let repository = self.0.open(&ctx).await?;
        let commit = resolve(repository, revision).await?;
        let output = if let Some(path) = path {
            let path = check::path(&path)?;
            let object = format!("{commit}:{}", path.strip_prefix("./").unwrap_or(path));
            repository.run(["cat-file", "blob", &object]).await?
        } else {
            let mut asked =
                words(["show", "--no-show-signature", "--no-notes", "--no-mailmap", "--format=fuller"]);
            asked.extend(words(PLAIN));
            asked.extend(words(["--encoding=UTF-8", "--end-of-options", &commit, "--"]));
            repository.run(asked).await?
        };
        if output.bytes.contains(&0) {
            return Err(Error::tool("the file is not valid UTF-8 text"));
        }
        Ok(shown(&output))
    }

    /// Show which commit last changed each line of a file.
    #[tool(title = "Git blame", read_only, open_world = false)]
    async fn git_blame(
        &self,
        ctx: Ctx,
        /// The path of the file, relative to the top of the repository.
        path: String,
        /// The revision. Default: the work tree.
        revision: Option<String>,
        /// The first line, counted from 1.
        #[schemars(range(min = 1))]
        from_line: Option<u64>,
        /// The last line. At most 2000 lines are returned per call.
        #[schemars(range(min = 1))]
        to_line: Option<u64>,
    ) -> Result<Json<Blame>> {
        let path = check::path(&path)?;
        let repository = self.0.open(&ctx).await?;
        let from = from_line.unwrap_or(1).max(1);
        let to = to_line.unwrap_or(u64::MAX).min(from.saturating_add(BLAMED - 1));
        if to < from {
            return Err(Error::tool(format!("invalid range of lines {from} to {to}")));
        }
        let mut asked = words(["blame", "--line-porcelain", "--no-textconv", "--encoding=UTF-8"]);
        asked.push(format!("-L{from},{to}"));
        if let Some(revision) = revision {
            // Pass the hash, because `blame` has no separator for options.
            asked.push(resolve(repository, check::revision(&revision)?).await?);
        }
        asked.extend(words(["--", path]));
        let output = repository.run(asked).await?;
        let lines = parse::blame(&whole(&output, b'\n'));
        let full = to_line != Some(to) && lines.len() as u64 == BLAMED;
        Ok(Json(Blame { lines, more: output.cut || full }))
    }

    /// List local and remote-tracking branches.
    #[tool(title = "Git branches", read_only, open_world = false)]
    async fn git_branches(&self, ctx: Ctx) -> Result<Json<Branches>> {
        let asked = ["for-each-ref", parse::BRANCH_FORMAT, "refs/heads", "refs/remotes"];
        let output = self.0.open(&ctx).await?.run(asked).await?;
        Ok(Json(Branches { branches: parse::branches(&whole(&output, b'\n')), more: output.cut }))
    }
}

pub(super) fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    words.into_iter().map(str::to_owned).collect()
}

/// Resolves a revision to a commit hash.
pub(super) async fn resolve(repository: &Repository, revision: &str) -> Result<String> {
    let commit = format!("{revision}^{{commit}}");
    let found = repository.run(["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).await;
    let unknown = || Error::tool(format!("unknown revision `{revision}`"));
    let hash = found.map_err(|_| unknown())?.text().trim_end().to_owned();
    let is_hash = hash.len() >= 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { Ok(hash) } else { Err(unknown()) }
}

/// Returns the complete records. A cut record would be misread.
fn whole(output: &Output, end: u8) -> String {
    let length = if output.cut {
        output.bytes.iter().rposition(|byte| *byte == end).map_or(0, |last| last + 1)
    } else {
        output.bytes.len()
    };
    String::from_utf8_lossy(output.bytes.get(..length).unwrap_or_default()).into_owned()
}

fn shown(output: &Output) -> Vec<Content> {
    let mut blocks = vec![Content::text(output.text())];
    if output.cut {
        blocks.push(Content::text(format!("(cut after {} bytes; limit the paths)", output.bytes.len())));
    }
    blocks
}
