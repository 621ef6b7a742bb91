//! The files and folders below a folder, as a tree.

use super::{jail::Place, reading::EntryKind, search::listed};
use bowline::{
    prelude::*,
    server::IntoOutput,
    types::{CallToolResult, RawJson},
};
use cap_fs_ext::DirExt as _;
use std::{path::Path, sync::Arc};

/// A part of the files and folders below some folders.
#[data]
pub struct Tree {
    /// The entries, each folder before what is in it.
    pub entries: Vec<TreeEntry>,
    /// Whether there are more than were returned: deeper ones, or too many.
    pub more: bool,
}

/// A file or folder in a tree.
#[data]
pub struct TreeEntry {
    /// Its path.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// How many folders of the tree it is in.
    pub depth: usize,
}

/// Structured, and drawn as text beside it.
impl IntoOutput for Tree {
    fn into_output(self) -> Result<CallToolResult> {
        let drawn = self.to_text();
        let mut result = Json(self).into_output()?;
        result.content = vec![Content::text(drawn)];
        Ok(result)
    }

    fn output_schema() -> Option<RawJson> {
        Json::<Self>::output_schema()
    }
}

impl Tree {
    /// The tree as lines that are indented by depth. Folders end in a slash.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for TreeEntry { path, kind, depth } in &self.entries {
            let name = match depth {
                0 => path.as_str(),
                _ => path.rsplit(['/', std::path::MAIN_SEPARATOR]).next().unwrap_or_default(),
            };
            let end = match kind {
                EntryKind::Folder if !name.ends_with('/') => "/",
                EntryKind::Link => " (link)",
                EntryKind::Folder | EntryKind::File | EntryKind::Other => "",
            };
            text.push_str(&"  ".repeat(*depth));
            // A name may hold anything but a slash; one line stays one line.
            text.extend(name.chars().map(|character| if character.is_control() { '?' } else { character }));
            text.push_str(end);
            text.push('\n');
        }
        if self.more {
            text.push_str("(there is more: ask for a folder of it, or for more levels or entries)\n");
        }
        text
    }
}

/// Goes through the folders, at most `depth` levels and `limit` entries.
pub(super) fn build(ctx: &Ctx, places: &[Place], depth: usize, limit: usize) -> Result<Tree> {
    let mut tree = Tree { entries: Vec::new(), more: false };
    for place in places {
        let top = Arc::new(place.open_dir()?);
        tree.entries.push(TreeEntry { path: place.shown(), kind: EntryKind::Folder, depth: 0 });
        let mut open = listed(&top, Path::new(""))?;
        while let Some(entry) = open.pop() {
            if tree.entries.len() > limit || ctx.is_cancelled() {
                tree.more = true;
                return Ok(tree);
            }
            let level = entry.path.components().count();
            let path = place.path().join(&entry.path).display().to_string();
            tree.entries.push(TreeEntry { path, kind: EntryKind::of(entry.kind), depth: level });
            if !entry.kind.is_dir() || entry.name == ".git" {
                continue;
            }
            // A folder that may not be read is shown without what is in it.
            let Ok(dir) = entry.parent.open_dir_nofollow(&entry.name) else { continue };
            let Ok(inside) = listed(&Arc::new(dir), &entry.path) else { continue };
            if level < depth {
                open.extend(inside);
            } else {
                tree.more |= !inside.is_empty();
            }
        }
    }
    Ok(tree)
}
