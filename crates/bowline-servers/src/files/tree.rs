//! Directory trees.

use super::{jail::Place, reading::EntryKind, search::listed};
use bowline::{
    prelude::*,
    server::IntoOutput,
    types::{CallToolResult, RawJson},
};
use cap_fs_ext::DirExt as _;
use std::{path::Path, sync::Arc};

/// A directory tree, possibly incomplete.
#[data]
pub struct Tree {
    /// The entries; directories come before their content.
    pub entries: Vec<TreeEntry>,
    /// Whether entries were omitted because of the depth or number limit.
    pub more: bool,
}

/// An entry of a tree.
#[data]
pub struct TreeEntry {
    /// The path.
    pub path: String,
    /// The kind.
    pub kind: EntryKind,
    /// The depth in the tree.
    pub depth: usize,
}

/// Returns structured content and text.
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
    /// Formats the tree with indentation. Directories end with a slash.
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
            // File names can contain line breaks.
            text.extend(name.chars().map(|character| if character.is_control() { '?' } else { character }));
            text.push_str(end);
            text.push('\n');
        }
        if self.more {
            text.push_str("(incomplete; list a subdirectory, or increase `depth` or `limit`)\n");
        }
        text
    }
}

/// Traverses the directories, at most `depth` levels and `limit` entries.
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
            // Unreadable directories are shown without their content.
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
