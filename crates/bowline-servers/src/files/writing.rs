//! The tools that write files, offered only with `--write`.

use super::{
    ToolState,
    edit::{self, Replacement},
    jail::{Missing, Place, make_dir, open_plain},
    off_thread,
    replace::{Stamp, replace},
};
use bowline::prelude::*;
use cap_fs_ext::DirExt as _;
use std::{
    io::{self, Read as _},
    path::Path,
};

/// The names of the tools.
pub(super) const TOOLS: [&str; 5] =
    ["write_file", "edit_file", "create_directory", "move_file", "delete_file"];

#[derive(Debug)]
pub(super) struct Writing(pub(super) ToolState);

/// The result of writing a file.
#[data]
pub struct Written {
    /// The path.
    pub path: String,
    /// The size in bytes.
    pub bytes: u64,
    /// Whether it was created.
    pub created: bool,
}

/// One replacement in a file.
#[data]
pub struct Edit {
    /// The text to replace, exactly as it is in the file.
    pub old_text: String,
    /// The replacement.
    pub new_text: String,
    /// Replace all occurrences. Otherwise the text must occur exactly once.
    #[serde(default)]
    pub replace_all: bool,
}

/// The result of edits.
#[data]
pub struct Edited {
    /// The path of the file.
    pub path: String,
    /// The changes as a unified diff.
    pub diff: String,
    /// Whether the file was written.
    pub written: bool,
}

/// The result of creating a directory.
#[data]
pub struct Made {
    /// The path.
    pub path: String,
    /// Whether it was created.
    pub created: bool,
}

/// The result of a move.
#[data]
pub struct Moved {
    /// The old path.
    pub from: String,
    /// The new path.
    pub to: String,
}

/// The result of a deletion.
#[data]
pub struct Deleted {
    /// The old path.
    pub path: String,
}

#[tools]
impl Writing {
    /// Create or overwrite a file. The directory must exist.
    #[tool(title = "Write a file", destructive, idempotent, open_world = false)]
    async fn write_file(
        &self,
        ctx: Ctx,
        /// The path of the file.
        path: String,
        /// The new content.
        content: String,
    ) -> Result<Json<Written>> {
        self.0
            .at(&ctx, path, move |place| {
                let (dir, name) = place.open_parent(Missing::Fail)?;
                let name = Path::new(&name);
                let created = dir.symlink_metadata(name).is_err();
                replace(&dir, name, content.as_bytes(), None)
                    .map_err(|error| place.failed("write", &error))?;
                Ok(Json(Written { path: place.shown(), bytes: content.len() as u64, created }))
            })
            .await
    }

    /// Replace exact text in a file and return a diff.
    #[tool(title = "Edit a file", destructive, open_world = false)]
    async fn edit_file(
        &self,
        ctx: Ctx,
        /// The path of the file.
        path: String,
        /// The edits, applied in order.
        edits: Vec<Edit>,
        /// Only return the diff, without writing the file.
        #[serde(default)]
        dry_run: bool,
    ) -> Result<Json<Edited>> {
        let limit = self.0.max_bytes;
        self.0.at(&ctx, path, move |place| edit_at(place, &edits, dry_run, limit).map(Json)).await
    }

    /// Create a directory and its parents.
    #[tool(title = "Create a directory", destructive = false, idempotent, open_world = false)]
    async fn create_directory(
        &self,
        ctx: Ctx,
        /// The path of the directory.
        path: String,
    ) -> Result<Json<Made>> {
        self.0
            .at(&ctx, path, |place| {
                let failed = |error| place.failed("make", &error);
                let (dir, name) = place.open_parent(Missing::Make)?;
                let name = Path::new(&name);
                let created = dir.symlink_metadata(name).is_err();
                make_dir(&dir, name).map_err(failed)?;
                // An existing entry must be a directory.
                dir.open_dir_nofollow(name).map_err(failed)?;
                Ok(Json(Made { path: place.shown(), created }))
            })
            .await
    }

    /// Move or rename a file or directory. The new path must not exist.
    #[tool(title = "Move a file", destructive, open_world = false)]
    async fn move_file(
        &self,
        ctx: Ctx,
        /// The new path.
        source: String,
        /// The new path.
        destination: String,
    ) -> Result<Json<Moved>> {
        let jail = self.0.view(&ctx).await?;
        off_thread(move || {
            let (from, to) = (jail.place(&source)?, jail.place(&destination)?);
            let (old_dir, old_name) = from.open_parent(Missing::Fail)?;
            let (new_dir, new_name) = to.open_parent(Missing::Fail)?;
            if new_dir.symlink_metadata(&new_name).is_ok() {
                return Err(Error::tool(format!("`{}` already exists", to.shown())));
            }
            old_dir.rename(&old_name, &new_dir, &new_name).map_err(|error| from.failed("move", &error))?;
            Ok(Json(Moved { from: from.shown(), to: to.shown() }))
        })
        .await
    }

    /// Delete a file, a link or an empty directory.
    #[tool(title = "Delete a file", destructive, open_world = false)]
    async fn delete_file(
        &self,
        ctx: Ctx,
        /// The path.
        path: String,
    ) -> Result<Json<Deleted>> {
        self.0
            .at(&ctx, path, |place| {
                let failed = |error| place.failed("delete", &error);
                let (dir, name) = place.open_parent(Missing::Fail)?;
                let found = dir.symlink_metadata(&name).map_err(failed)?;
                let deleted = if found.is_dir() { dir.remove_dir(&name) } else { dir.remove_file(&name) };
                deleted.map_err(failed)?;
                Ok(Json(Deleted { path: place.shown() }))
            })
            .await
    }
}

fn edit_at(place: &Place, edits: &[Edit], dry_run: bool, limit: u64) -> Result<Edited> {
    let failed = |error: io::Error| place.failed("edit", &error);
    let (dir, name) = place.open_parent(Missing::Fail)?;
    let name = Path::new(&name);
    let (file, metadata) = open_plain(&dir, name).map_err(failed)?;
    if metadata.len() > limit {
        let shown = place.shown();
        return Err(Error::tool(format!(
            "`{shown}` has {} bytes; files of more than {limit} bytes cannot be edited",
            metadata.len()
        )));
    }
    let mut before = String::new();
    file.take(limit).read_to_string(&mut before).map_err(failed)?;
    let replacements: Vec<_> = edits
        .iter()
        .map(|edit| Replacement { old: &edit.old_text, new: &edit.new_text, all: edit.replace_all })
        .collect();
    let after = edit::apply(&before, &replacements)?;
    let diff = edit::diff(&place.inside.to_string_lossy(), &before, &after);
    let written = !dry_run && after != before;
    if written {
        replace(&dir, name, after.as_bytes(), Some(Stamp::of(&metadata))).map_err(failed)?;
    }
    Ok(Edited { path: place.shown(), diff, written })
}
