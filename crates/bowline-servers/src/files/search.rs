//! Searches files by name and content.

use super::jail::{Place, open_plain};
use crate::text;
use bowline::server::{Ctx, Error, Result};
use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, File, FileType, Metadata};
use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use std::{
    ffi::OsString,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The maximum number of entries per search.
const MAX_VISITED: u64 = 200_000;
/// The maximum depth.
const MAX_DEPTH: usize = 64;
/// The maximum length of a shown line.
const MAX_LINE: usize = 400;

/// A search query.
pub(super) struct Wanted {
    pub(super) names: Option<GlobMatcher>,
    pub(super) content: Option<Regex>,
    pub(super) limit: usize,
    /// The maximum size of a searched file.
    pub(super) max_bytes: u64,
}

/// A match.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) path: PathBuf,
    /// Counted from 1.
    pub(super) line: Option<u64>,
    pub(super) text: Option<String>,
}

/// The result of a search.
#[derive(Debug, Default)]
pub(super) struct Hits {
    pub(super) list: Vec<Hit>,
    /// Whether there may be more matches.
    pub(super) more: bool,
    /// The number of files that were too large.
    pub(super) skipped: u64,
    visited: u64,
}

/// Compiles a glob. Without a slash it matches file names at any depth.
pub(super) fn glob(pattern: &str) -> Result<GlobMatcher> {
    let wrong = |reason: String| {
        Error::tool(format!("invalid `pattern`, expected a glob such as `**/*.rs`: {reason}"))
    };
    if pattern.len() > 1000 {
        return Err(wrong("longer than 1000 characters".into()));
    }
    let anchored = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    let glob = GlobBuilder::new(&anchored).literal_separator(true).build();
    Ok(glob.map_err(|error| wrong(error.kind().to_string()))?.compile_matcher())
}

/// Compiles a regular expression. Matching takes linear time.
pub(super) fn regex(pattern: &str, ignore_case: bool) -> Result<Regex> {
    let built = RegexBuilder::new(pattern).case_insensitive(ignore_case).size_limit(1 << 20).build();
    built.map_err(|error| Error::tool(format!("invalid `content`, expected a regular expression: {error}")))
}

/// Searches below `place`, sorted by name. Links are not followed, and `.git` is skipped.
pub(super) fn run(ctx: &Ctx, place: &Place, wanted: &Wanted, found: &mut Hits) -> Result<()> {
    // A single file can be searched, too.
    if wanted.content.is_some() && place.metadata().is_ok_and(|metadata| metadata.is_file()) {
        let (file, metadata) = place.open_file()?;
        look_into(file, &metadata, &place.path(), wanted, found);
        return Ok(());
    }
    let top = Arc::new(place.open_dir()?);
    let mut open = listed(&top, Path::new(""))?;
    while let Some(entry) = open.pop() {
        found.visited += 1;
        if found.visited > MAX_VISITED || found.list.len() >= wanted.limit || ctx.is_cancelled() {
            found.more = true;
            return Ok(());
        }
        if entry.kind.is_dir() {
            if entry.name == ".git" || entry.path.components().count() > MAX_DEPTH {
                continue;
            }
            // Skip unreadable directories, like a listing does.
            let Ok(dir) = entry.parent.open_dir_nofollow(&entry.name) else { continue };
            open.extend(listed(&Arc::new(dir), &entry.path).unwrap_or_default());
        } else if entry.kind.is_file()
            && wanted.names.as_ref().is_none_or(|names| names.is_match(&entry.path))
        {
            entry.look(&place.path(), wanted, found);
        }
    }
    Ok(())
}

/// An entry of a traversed directory.
pub(super) struct Entry {
    pub(super) parent: Arc<Dir>,
    pub(super) name: OsString,
    /// The path relative to the start.
    pub(super) path: PathBuf,
    pub(super) kind: FileType,
}

/// Returns the entries of a directory in reverse order.
pub(super) fn listed(dir: &Arc<Dir>, path: &Path) -> Result<Vec<Entry>> {
    let mut entries: Vec<_> = dir
        .entries()?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name();
            Some(Entry {
                parent: Arc::clone(dir),
                path: path.join(&name),
                name,
                kind: entry.file_type().ok()?,
            })
        })
        .collect();
    entries.sort_by(|a, b| b.name.cmp(&a.name));
    Ok(entries)
}

impl Entry {
    fn look(&self, top: &Path, wanted: &Wanted, found: &mut Hits) {
        let path = top.join(&self.path);
        if wanted.content.is_none() {
            found.list.push(Hit { path, line: None, text: None });
        } else if let Ok((file, metadata)) = open_plain(&self.parent, Path::new(&self.name)) {
            look_into(file, &metadata, &path, wanted, found);
        }
    }
}

/// Searches the lines of a file.
fn look_into(file: File, metadata: &Metadata, path: &Path, wanted: &Wanted, found: &mut Hits) {
    let Some(content) = &wanted.content else { return };
    if metadata.len() > wanted.max_bytes {
        found.skipped += 1;
        return;
    }
    let mut bytes = Vec::new();
    if file.take(wanted.max_bytes).read_to_end(&mut bytes).is_err() || bytes.contains(&0) {
        return;
    }
    for (line, bytes) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if !content.is_match(bytes) {
            continue;
        }
        if found.list.len() >= wanted.limit {
            found.more = true;
            return;
        }
        let shown = String::from_utf8_lossy(bytes);
        let shown = text::cut(shown.trim_end_matches('\r'), MAX_LINE).to_owned();
        found.list.push(Hit { path: path.to_owned(), line: Some(line), text: Some(shown) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_names_or_paths() {
        let check = |pattern: &str, path: &str, expected| {
            assert_eq!(glob(pattern).unwrap().is_match(path), expected, "{pattern} {path}");
        };
        check("*.rs", "a.rs", true);
        check("*.rs", "src/deep/a.rs", true);
        check("src/*.rs", "src/a.rs", true);
        check("src/*.rs", "src/deep/a.rs", false);
        check("src/**/*.rs", "src/deep/a.rs", true);
        check("{a,b}.txt", "b.txt", true);
        assert!(glob("[").unwrap_err().to_string().contains("invalid `pattern`, expected a glob"));
        assert!(glob(&"a".repeat(1001)).is_err());
        assert!(regex("(", false).is_err());
        assert!(regex("(a{1000}){1000}", false).is_err());
    }
}
