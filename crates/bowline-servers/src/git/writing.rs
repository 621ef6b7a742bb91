//! The tools that change the repository, offered only with `--write`.

use super::{
    ToolState, check,
    reading::{resolve, words},
    run::{Affected, Repository},
};
use bowline::prelude::*;

/// The names of the tools.
pub(super) const TOOLS: [&str; 5] =
    ["git_add", "git_unstage", "git_commit", "git_create_branch", "git_switch"];

#[derive(Debug)]
pub(super) struct Writing(pub(super) ToolState);

/// The staged files.
#[data]
pub struct Added {
    /// The paths of files or directories, as given.
    pub paths: Vec<String>,
}

/// The unstaged files.
#[data]
pub struct Unstaged {
    /// The paths of files or directories, as given.
    pub paths: Vec<String>,
}

/// A new commit.
#[data]
pub struct Committed {
    /// The hash.
    pub hash: String,
}

/// A branch that was created or checked out.
#[data]
pub struct Switched {
    /// The name.
    pub branch: String,
    /// The last commit.
    pub commit: String,
}

#[tools]
impl Writing {
    /// Stage files, including deletions.
    #[tool(title = "Git add", destructive = false, idempotent, open_world = false)]
    async fn git_add(
        &self,
        ctx: Ctx,
        /// Paths of files or directories, relative to the top of the repository.
        paths: Vec<String>,
    ) -> Result<Json<Added>> {
        add(self.0.open(&ctx).await?, &paths).await?;
        Ok(Json(Added { paths }))
    }

    /// Unstage files. The work tree is not changed.
    #[tool(title = "Git unstage", destructive = false, idempotent, open_world = false)]
    async fn git_unstage(
        &self,
        ctx: Ctx,
        /// Paths of files or directories, relative to the top of the repository.
        paths: Vec<String>,
    ) -> Result<Json<Unstaged>> {
        let checked = check::paths(Some(&paths))?;
        if checked.is_empty() {
            return Err(Error::tool("expected at least one path"));
        }
        let repository = self.0.open(&ctx).await?;
        // Before the first commit there is nothing to reset the index to.
        let mut asked = match resolve(repository, "HEAD").await {
            Ok(_) => words(["restore", "--staged", "--"]),
            Err(_) => words(["rm", "--cached", "-r", "--quiet", "--"]),
        };
        asked.extend(words(checked));
        repository.run(asked).await?;
        Ok(Json(Unstaged { paths }))
    }

    /// Commit the staged changes, and optionally more paths.
    #[tool(title = "Git commit", destructive = false, open_world = false)]
    async fn git_commit(
        &self,
        ctx: Ctx,
        /// The commit message.
        message: String,
        /// Paths to stage first, relative to the top of the repository.
        paths: Option<Vec<String>>,
    ) -> Result<Json<Committed>> {
        if message.trim().is_empty() || message.contains('\0') {
            return Err(Error::tool("`message` must not be empty or contain NUL characters"));
        }
        let repository = self.0.open(&ctx).await?;
        if let Some(paths) = &paths {
            add(repository, paths).await?;
        }
        let asked = [
            "commit",
            "--quiet",
            "--no-verify",
            "--no-gpg-sign",
            "--no-status",
            "--cleanup=whitespace",
            "--file=-",
        ];
        repository.run_with(asked, message.into_bytes()).await?;
        Ok(Json(Committed { hash: resolve(repository, "HEAD").await? }))
    }

    /// Create a branch without checking it out.
    #[tool(title = "Git branch", destructive = false, open_world = false)]
    async fn git_create_branch(
        &self,
        ctx: Ctx,
        /// The name of the branch.
        name: String,
        /// The start revision. Default: the current commit.
        start: Option<String>,
    ) -> Result<Json<Switched>> {
        let branch = check::branch(&name)?;
        let start = check::revision(start.as_deref().unwrap_or("HEAD"))?;
        let repository = self.0.open(&ctx).await?;
        let commit = resolve(repository, start).await?;
        repository.run(["branch", "--no-track", "--end-of-options", branch, &commit]).await?;
        Ok(Json(Switched { branch: name, commit }))
    }

    /// Switch to a branch. Fails if changes would be lost.
    #[tool(title = "Git switch", destructive = false, idempotent, open_world = false)]
    async fn git_switch(
        &self,
        ctx: Ctx,
        /// The name of the branch.
        name: String,
    ) -> Result<Json<Switched>> {
        let branch = check::branch(&name)?;
        let repository = self.0.open(&ctx).await?;
        repository.check_no_filters(Affected::Switch(&resolve(repository, branch).await?)).await?;
        let asked =
            ["switch", "--quiet", "--no-guess", "--no-recurse-submodules", "--end-of-options", branch];
        repository.run(asked).await?;
        Ok(Json(Switched { branch: name, commit: resolve(repository, "HEAD").await? }))
    }
}

async fn add(repository: &Repository, paths: &[String]) -> Result<()> {
    let paths = check::paths(Some(paths))?;
    if paths.is_empty() {
        return Err(Error::tool("expected at least one path"));
    }
    repository.check_no_filters(Affected::Paths(&paths)).await?;
    let mut asked = words(["add", "--all", "--"]);
    asked.extend(words(paths));
    repository.run(asked).await?;
    Ok(())
}
