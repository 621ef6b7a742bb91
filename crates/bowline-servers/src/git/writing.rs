//! The tools that change the repository, offered only when that is allowed.

use super::{
    Desk, check,
    reading::{resolve, words},
    run::{Affected, Repository},
};
use bowline::prelude::*;

#[derive(Debug)]
pub(super) struct Writing(pub(super) Desk);

/// Files that will be in the next commit.
#[data]
pub struct Added {
    /// Their paths, or those of folders, as they were given.
    pub paths: Vec<String>,
}

/// Files that will not be in the next commit as they are in the work tree.
#[data]
pub struct Unstaged {
    /// Their paths, or those of folders, as they were given.
    pub paths: Vec<String>,
}

/// A commit that was made.
#[data]
pub struct Committed {
    /// Its hash.
    pub hash: String,
}

/// A branch that was made or is checked out now.
#[data]
pub struct Switched {
    /// Its name.
    pub branch: String,
    /// Its last commit.
    pub commit: String,
}

#[tools]
impl Writing {
    /// Stage files for the next commit, as they are in the work tree, deleted ones as well.
    #[tool(title = "Git add", destructive = false, idempotent, open_world = false)]
    async fn git_add(
        &self,
        ctx: Ctx,
        /// Paths of files or folders, from the top of the repository.
        paths: Vec<String>,
    ) -> Result<Json<Added>> {
        add(self.0.open(&ctx).await?, &paths).await?;
        Ok(Json(Added { paths }))
    }

    /// Take files out of the next commit. The work tree stays as it is.
    #[tool(title = "Git unstage", destructive = false, idempotent, open_world = false)]
    async fn git_unstage(
        &self,
        ctx: Ctx,
        /// Paths of files or folders, from the top of the repository.
        paths: Vec<String>,
    ) -> Result<Json<Unstaged>> {
        let checked = check::paths(Some(&paths))?;
        if checked.is_empty() {
            return Err(Error::tool("expected at least one path, got none"));
        }
        let repository = self.0.open(&ctx).await?;
        // Before the first commit there is nothing that the index could be set back to.
        let mut asked = match resolve(repository, "HEAD").await {
            Ok(_) => words(["restore", "--staged", "--"]),
            Err(_) => words(["rm", "--cached", "-r", "--quiet", "--"]),
        };
        asked.extend(words(checked));
        repository.run(asked).await?;
        Ok(Json(Unstaged { paths }))
    }

    /// Commit what is staged, and these paths with it.
    #[tool(title = "Git commit", destructive = false, open_world = false)]
    async fn git_commit(
        &self,
        ctx: Ctx,
        /// What the commit says of itself.
        message: String,
        /// Paths to stage first, from the top of the repository.
        paths: Option<Vec<String>>,
    ) -> Result<Json<Committed>> {
        if message.trim().is_empty() || message.contains('\0') {
            return Err(Error::tool("expected `message` to be a text without NUL characters, and not empty"));
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

    /// Make a branch, without checking it out.
    #[tool(title = "Git branch", destructive = false, open_world = false)]
    async fn git_create_branch(
        &self,
        ctx: Ctx,
        /// The name of the branch.
        name: String,
        /// The revision it begins at; the current commit otherwise.
        start: Option<String>,
    ) -> Result<Json<Switched>> {
        let branch = check::branch(&name)?;
        let start = check::revision(start.as_deref().unwrap_or("HEAD"))?;
        let repository = self.0.open(&ctx).await?;
        let commit = resolve(repository, start).await?;
        repository.run(["branch", "--no-track", "--end-of-options", branch, &commit]).await?;
        Ok(Json(Switched { branch: name, commit }))
    }

    /// Check out a branch. Fails when that would lose changes.
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
        return Err(Error::tool("expected at least one path, got none"));
    }
    repository.check_no_filters(Affected::Paths(&paths)).await?;
    let mut asked = words(["add", "--all", "--"]);
    asked.extend(words(paths));
    repository.run(asked).await?;
    Ok(())
}
