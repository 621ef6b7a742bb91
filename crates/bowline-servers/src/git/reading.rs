//! The tools that change nothing.

use super::{
    Desk, check,
    run::{Output, Repository},
    told,
};
use bowline::prelude::*;

/// How many commits are listed unless the caller says.
const COMMITS: u32 = 20;
/// How many lines are blamed at once.
const BLAMED: u64 = 2000;

/// Options for everything that shows differences: no program of the repository's choice takes part.
const PLAIN: [&str; 5] =
    ["--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty", "--submodule=short"];

#[derive(Debug)]
pub(super) struct Reading(pub(super) Desk);

/// A file that is not as in the last commit.
#[data]
pub struct ChangedFile {
    /// Its path, from the top of the repository.
    pub path: String,
    /// The path it had, if it was renamed or copied.
    pub before: Option<String>,
    /// What will be committed of it: `added`, `modified`, `deleted`, `renamed`, `copied` or `type changed`.
    pub staged: Option<String>,
    /// What will not: the same words, or `untracked` or `unmerged`.
    pub unstaged: Option<String>,
}

/// The state of the work tree.
#[data]
#[derive(Default)]
pub struct Status {
    /// The current branch; none when a commit is checked out.
    pub branch: Option<String>,
    /// The last commit; none when there is none yet.
    pub commit: Option<String>,
    /// The branch that the current one follows.
    pub upstream: Option<String>,
    /// How many commits the upstream lacks.
    pub ahead: Option<u64>,
    /// How many commits of the upstream are lacking here.
    pub behind: Option<u64>,
    /// The files that are not as in the last commit.
    pub files: Vec<ChangedFile>,
    /// Whether there are more than were returned.
    pub more: bool,
}

/// A commit.
#[data]
pub struct Commit {
    /// Its hash.
    pub hash: String,
    /// The hashes of those before it.
    pub parents: Vec<String>,
    /// Who wrote it.
    pub author: String,
    /// Where to write to them.
    pub email: String,
    /// When it was written, in seconds since 1970.
    pub time: i64,
    /// What it says of itself.
    pub message: String,
}

/// Some commits.
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
    /// Its name.
    pub name: String,
    /// Whether it is what is known of another repository's branch.
    pub remote: bool,
    /// Whether it is checked out.
    pub current: bool,
    /// Its last commit.
    pub commit: String,
    /// The branch it follows.
    pub upstream: Option<String>,
    /// The first line of its last commit.
    pub subject: String,
}

/// The branches of a repository.
#[data]
pub struct Branches {
    /// The branches, by name.
    pub branches: Vec<Branch>,
    /// Whether there are more than were returned.
    pub more: bool,
}

/// A line, and where it comes from.
#[data]
pub struct BlameLine {
    /// The number of the line, counted from 1.
    pub line: u64,
    /// The commit that last changed it; all zeros when it is not committed.
    pub commit: String,
    /// Who wrote it.
    pub author: String,
    /// When, in seconds since 1970.
    pub time: i64,
    /// The line.
    pub text: String,
}

/// The lines of a file, and where they come from.
#[data]
pub struct Blame {
    /// The lines.
    pub lines: Vec<BlameLine>,
    /// Whether there may be more.
    pub more: bool,
}

#[tools]
impl Reading {
    /// Show the current branch and the files that are not as in the last commit.
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
        Ok(Json(Status { more: output.cut, ..told::status(&whole(&output, 0)) }))
    }

    /// List commits, the latest first.
    #[tool(title = "Git log", read_only, open_world = false)]
    async fn git_log(
        &self,
        ctx: Ctx,
        /// Where to begin, or a range such as `main..topic`; the current commit otherwise.
        revision: Option<String>,
        /// Only commits that changed one of these paths, from the top of the repository.
        paths: Option<Vec<String>>,
        /// Only commits of authors whose name or address holds this text.
        author: Option<String>,
        /// How many commits at most; 20 otherwise.
        #[schemars(range(min = 1, max = 500))]
        limit: Option<u32>,
        /// How many commits to leave out at the beginning.
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
        asked.extend(words([told::COMMIT_FORMAT, "--encoding=UTF-8", "--fixed-strings"]));
        asked.extend([format!("--max-count={}", u64::from(limit) + 1), format!("--skip={skip}")]);
        asked.extend(author.map(|author| format!("--author={author}")));
        asked.extend(words(["--end-of-options", revision, "--"]));
        asked.extend(words(paths));
        let output = self.0.open(&ctx).await?.run(asked).await?;
        let mut commits = told::commits(&whole(&output, 0));
        let found = commits.len();
        commits.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(Json(Log { more: output.cut || found > commits.len(), commits }))
    }

    /// Show differences as a patch: of the work tree to what is staged, of that to the last commit, or of two revisions.
    #[tool(title = "Git diff", read_only, open_world = false)]
    async fn git_diff(
        &self,
        ctx: Ctx,
        /// Whether to compare what is staged, instead of the work tree.
        #[serde(default)]
        staged: bool,
        /// What to compare with: a revision, or a range such as `main..topic`.
        from: Option<String>,
        /// The revision to compare, instead of the work tree.
        to: Option<String>,
        /// Only these paths, from the top of the repository.
        paths: Option<Vec<String>>,
    ) -> Result<Vec<Content>> {
        if to.is_some() && from.is_none() {
            return Err(Error::tool("expected `from` where there is `to`"));
        }
        if to.is_some() && staged {
            return Err(Error::tool("expected only one of `staged` and `to`"));
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

    /// Show a commit with what it changed, or a file as it was in it.
    #[tool(title = "Git show", read_only, open_world = false)]
    async fn git_show(
        &self,
        ctx: Ctx,
        /// The commit; the current one otherwise.
        revision: Option<String>,
        /// The path of a file, from the top of the repository.
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
            return Err(Error::tool("expected text, found bytes that are none"));
        }
        Ok(shown(&output))
    }

    /// Show for each line of a file which commit last changed it.
    #[tool(title = "Git blame", read_only, open_world = false)]
    async fn git_blame(
        &self,
        ctx: Ctx,
        /// The path of the file, from the top of the repository.
        path: String,
        /// The revision; the work tree otherwise.
        revision: Option<String>,
        /// The first line, counted from 1.
        #[schemars(range(min = 1))]
        from_line: Option<u64>,
        /// The last line; at most 2000 lines are shown at once.
        #[schemars(range(min = 1))]
        to_line: Option<u64>,
    ) -> Result<Json<Blame>> {
        let path = check::path(&path)?;
        let repository = self.0.open(&ctx).await?;
        let from = from_line.unwrap_or(1).max(1);
        let to = to_line.unwrap_or(u64::MAX).min(from.saturating_add(BLAMED - 1));
        if to < from {
            return Err(Error::tool(format!(
                "expected the last line not before the first, got {from} to {to}"
            )));
        }
        let mut asked = words(["blame", "--line-porcelain", "--no-textconv", "--encoding=UTF-8"]);
        asked.push(format!("-L{from},{to}"));
        if let Some(revision) = revision {
            // By its hash, since `blame` does not know where options end.
            asked.push(resolve(repository, check::revision(&revision)?).await?);
        }
        asked.extend(words(["--", path]));
        let output = repository.run(asked).await?;
        let lines = told::blame(&whole(&output, b'\n'));
        let full = to_line != Some(to) && lines.len() as u64 == BLAMED;
        Ok(Json(Blame { lines, more: output.cut || full }))
    }

    /// List the branches, those of other repositories as they were last seen.
    #[tool(title = "Git branches", read_only, open_world = false)]
    async fn git_branches(&self, ctx: Ctx) -> Result<Json<Branches>> {
        let asked = ["for-each-ref", told::BRANCH_FORMAT, "refs/heads", "refs/remotes"];
        let output = self.0.open(&ctx).await?.run(asked).await?;
        Ok(Json(Branches { branches: told::branches(&whole(&output, b'\n')), more: output.cut }))
    }
}

pub(super) fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    words.into_iter().map(str::to_owned).collect()
}

/// The hash of the commit that a revision names.
pub(super) async fn resolve(repository: &Repository, revision: &str) -> Result<String> {
    let commit = format!("{revision}^{{commit}}");
    let found = repository.run(["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).await;
    let unknown = || Error::tool(format!("expected `{revision}` to name a commit, found none of that name"));
    let hash = found.map_err(|_| unknown())?.text().trim_end().to_owned();
    let is_hash = hash.len() >= 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { Ok(hash) } else { Err(unknown()) }
}

/// The records that are there to their end; one that was cut would be misread.
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
        blocks
            .push(Content::text(format!("(cut after {} bytes: ask for less, by paths)", output.bytes.len())));
    }
    blocks
}
