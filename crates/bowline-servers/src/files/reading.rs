//! The read-only tools.

use super::{
    ToolState,
    jail::{Jail, Place},
    kind::Kind,
    lines::{self, Part},
    off_thread, search,
    tree::{self, Tree},
};
use bowline::{prelude::*, types::ResourceContents};
use cap_std::fs::{FileType, Metadata};
use std::{io::BufReader, time::UNIX_EPOCH};

/// The default number of listed entries and of matches.
const LISTED: usize = 1000;
const MATCHES: usize = 100;
/// The maximum number of files per call.
const FILES: usize = 100;
/// The default depth and number of entries of a tree.
const DEPTH: usize = 3;
const TREE: usize = 1000;

#[derive(Debug)]
pub(super) struct Reading(pub(super) ToolState);

/// The kind of a directory entry.
#[data]
#[derive(Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, socket or device, which is never opened.
    Other,
}

impl EntryKind {
    pub(super) fn of(kind: FileType) -> Self {
        match () {
            () if kind.is_symlink() => Self::Link,
            () if kind.is_dir() => Self::Folder,
            () if kind.is_file() => Self::File,
            () => Self::Other,
        }
    }
}

/// A directory entry.
#[data]
pub struct Entry {
    /// The name, or the path of a root directory.
    pub name: String,
    /// The kind.
    pub kind: EntryKind,
    /// The size of a file in bytes.
    pub size: Option<u64>,
}

/// A page of a directory listing.
#[data]
pub struct Directory {
    /// The path.
    pub path: String,
    /// The entries, sorted by name.
    pub entries: Vec<Entry>,
    /// The total number of entries.
    pub total: usize,
    /// The `offset` of the next page, if there are more entries.
    pub next: Option<usize>,
}

/// Metadata of a file or directory.
#[data]
pub struct Stat {
    /// The path.
    pub path: String,
    /// The kind. Links are followed.
    pub kind: EntryKind,
    /// Whether the path is a symbolic link.
    pub is_link: bool,
    /// The size in bytes.
    pub size: u64,
    /// Modification time, in seconds since 1970.
    pub modified: Option<u64>,
    /// Creation time, in seconds since 1970.
    pub created: Option<u64>,
    /// Whether the permissions forbid writing.
    pub read_only: bool,
    /// The number of lines, if it is a text file within the size limit.
    pub lines: Option<u64>,
}

/// A matching file or line.
#[data]
pub struct Match {
    /// The path of the file.
    pub path: String,
    /// The line number, counted from 1.
    pub line: Option<u64>,
    /// The line, possibly cut.
    pub text: Option<String>,
}

/// The result of a search.
#[data]
pub struct Found {
    /// The matches, sorted by path.
    pub matches: Vec<Match>,
    /// Whether there may be more matches.
    pub more: bool,
    /// The number of files that were too large to search.
    pub skipped: u64,
}

/// The directories that can be used.
#[data]
pub struct AllowedFolders {
    /// The paths.
    pub folders: Vec<String>,
    /// Whether files can be written.
    pub writable: bool,
}

#[tools]
impl Reading {
    /// Read a text file or some of its lines, an image or an audio file. Other files are returned as a blob.
    #[tool(title = "Read a file", read_only, open_world = false)]
    async fn read_file(
        &self,
        ctx: Ctx,
        /// The path of the file.
        path: String,
        /// Return only the first lines.
        head: Option<u64>,
        /// Return only the last lines.
        tail: Option<u64>,
        /// The first line to return, counted from 1.
        from_line: Option<u64>,
        /// The last line to return.
        to_line: Option<u64>,
    ) -> Result<Content> {
        let part = Part::of(head, tail, from_line, to_line)?;
        let limit = self.0.max_bytes;
        self.0
            .at(&ctx, path, move |place| {
                let (kind, bytes) = read(place, part, limit)?;
                if kind != Kind::Text && part != Part::Whole {
                    let shown = place.shown();
                    return Err(Error::tool(format!(
                        "`{shown}` is not a text file, so lines cannot be selected"
                    )));
                }
                Ok(content(place, kind, &bytes))
            })
            .await
    }

    /// Read several files. Each is preceded by its path. Files that cannot be read do not affect the others.
    #[tool(title = "Read files", read_only, open_world = false)]
    async fn read_files(
        &self,
        ctx: Ctx,
        /// The paths of the files, at most 100.
        #[schemars(length(min = 1, max = 100))]
        paths: Vec<String>,
    ) -> Result<Vec<Content>> {
        if paths.is_empty() || paths.len() > FILES {
            return Err(Error::tool(format!("expected 1 to {FILES} paths, got {}", paths.len())));
        }
        let jail = self.0.view(&ctx).await?;
        let limit = self.0.max_bytes;
        off_thread(move || read_all(&jail, &paths, limit)).await
    }

    /// Show a directory as a tree. Links are not followed, and `.git` is omitted.
    #[tool(title = "Show a directory tree", read_only, open_world = false)]
    async fn directory_tree(
        &self,
        ctx: Ctx,
        /// The path of the directory. Default: all root directories.
        path: Option<String>,
        /// The maximum depth. Default: 3.
        #[schemars(range(min = 1, max = 32))]
        depth: Option<usize>,
        /// The maximum number of entries. Default: 1000.
        #[schemars(range(min = 1, max = 10_000))]
        limit: Option<usize>,
    ) -> Result<Tree> {
        let jail = self.0.view(&ctx).await?;
        off_thread(move || {
            let path = path.unwrap_or_default();
            let places = if matches!(path.as_str(), "" | "." | "/") && jail.roots.len() > 1 {
                jail.roots.iter().map(|root| Place { root: root.clone(), inside: "".into() }).collect()
            } else {
                vec![jail.place(&path)?]
            };
            tree::build(&ctx, &places, depth.unwrap_or(DEPTH), limit.unwrap_or(TREE))
        })
        .await
    }

    /// List the directories that can be used, and whether files in them can be written.
    #[tool(title = "List allowed directories", read_only, open_world = false)]
    async fn list_allowed_directories(&self, ctx: Ctx) -> Result<Json<AllowedFolders>> {
        let jail = self.0.view(&ctx).await?;
        let folders = jail.roots.iter().map(|root| root.path.display().to_string()).collect();
        Ok(Json(AllowedFolders { folders, writable: self.0.writable }))
    }

    /// List the entries of a directory with kind and size.
    #[tool(title = "List a directory", read_only, open_world = false)]
    async fn list_directory(
        &self,
        ctx: Ctx,
        /// The path of the directory. Default: the root directory, or a list of all of them.
        path: Option<String>,
        /// The number of entries to skip.
        #[serde(default)]
        offset: usize,
        /// The maximum number of entries. Default: 1000.
        #[schemars(range(min = 1, max = 10_000))]
        limit: Option<usize>,
    ) -> Result<Json<Directory>> {
        let jail = self.0.view(&ctx).await?;
        let limit = limit.unwrap_or(LISTED);
        off_thread(move || {
            let path = path.unwrap_or_default();
            let is_top = matches!(path.as_str(), "" | "." | "/") && jail.roots.len() > 1;
            let (path, mut entries) = if is_top { roots(&jail) } else { entries(&jail.place(&path)?)? };
            let total = entries.len();
            entries.drain(..offset.min(total));
            entries.truncate(limit);
            let end = offset.saturating_add(entries.len());
            Ok(Json(Directory { path, entries, total, next: (end < total).then_some(end) }))
        })
        .await
    }

    /// Find files by name, or lines by content. Links are not followed, and `.git` is omitted.
    #[tool(title = "Search files", read_only, open_world = false)]
    async fn search_files(
        &self,
        ctx: Ctx,
        /// The directory or file to search. Default: everything.
        path: Option<String>,
        /// A glob for relative paths, such as `src/**/*.rs`. Without a slash it matches file names at any depth.
        pattern: Option<String>,
        /// A regular expression for lines.
        content: Option<String>,
        /// Whether to ignore case in the regular expression.
        #[serde(default)]
        ignore_case: bool,
        /// The maximum number of matches. Default: 100.
        #[schemars(range(min = 1, max = 1000))]
        limit: Option<usize>,
    ) -> Result<Json<Found>> {
        if pattern.is_none() && content.is_none() {
            return Err(Error::tool("expected `pattern`, `content` or both"));
        }
        let wanted = search::Wanted {
            names: pattern.as_deref().map(search::glob).transpose()?,
            content: content.as_deref().map(|content| search::regex(content, ignore_case)).transpose()?,
            limit: limit.unwrap_or(MATCHES),
            max_bytes: self.0.max_bytes,
        };
        let jail = self.0.view(&ctx).await?;
        off_thread(move || {
            let places = match path {
                Some(path) => vec![jail.place(&path)?],
                None => {
                    jail.roots.iter().map(|root| Place { root: root.clone(), inside: "".into() }).collect()
                }
            };
            let mut found = search::Hits::default();
            for place in &places {
                search::run(&ctx, place, &wanted, &mut found)?;
            }
            let matches = found.list.into_iter().map(|hit| Match {
                path: hit.path.display().to_string(),
                line: hit.line,
                text: hit.text,
            });
            Ok(Json(Found { matches: matches.collect(), more: found.more, skipped: found.skipped }))
        })
        .await
    }

    /// Show the metadata of a file or directory: kind, size, times, number of lines.
    #[tool(title = "File metadata", read_only, open_world = false)]
    async fn stat(
        &self,
        ctx: Ctx,
        /// The path.
        path: String,
    ) -> Result<Json<Stat>> {
        let limit = self.0.max_bytes;
        self.0.at(&ctx, path, move |place| stat(place, limit).map(Json)).await
    }
}

/// Reads a part of a file and detects its type.
pub(super) fn read(place: &Place, part: Part, limit: u64) -> Result<(Kind, Vec<u8>)> {
    let (file, _) = place.open_file()?;
    let bytes = lines::read(file.into_std(), part, limit)?;
    Ok((Kind::of(&bytes, &place.inside), bytes))
}

/// Converts a file to content.
fn content(place: &Place, kind: Kind, bytes: &[u8]) -> Content {
    match kind {
        Kind::Text => Content::text(String::from_utf8_lossy(bytes)),
        Kind::Image(mime_type) => Content::image(bytes, mime_type),
        Kind::Audio(mime_type) => Content::audio(bytes, mime_type),
        Kind::Other(mime_type) => {
            let uri = place.uri().unwrap_or_default();
            Content::resource(ResourceContents::blob(uri, bytes).mime_type(mime_type))
        }
    }
}

/// Reads several files, at most `limit` bytes in total. Fails if none can be read.
fn read_all(jail: &Jail, paths: &[String], limit: u64) -> Result<Vec<Content>> {
    let (mut blocks, mut failures) = (Vec::new(), Vec::new());
    let mut left = limit;
    for path in paths {
        let found = jail.place(path).and_then(|place| {
            let (file, metadata) = place.open_file()?;
            if metadata.len() > left {
                let shown = place.shown();
                return Err(Error::tool(format!(
                    "`{shown}` has {} bytes, but only {left} of {limit} bytes are left in this call; read it separately",
                    metadata.len()
                )));
            }
            let bytes = lines::read(file.into_std(), Part::Whole, left)?;
            Ok((Kind::of(&bytes, &place.inside), bytes, place))
        });
        match found {
            Ok((kind, bytes, place)) => {
                left = left.saturating_sub(bytes.len() as u64);
                if kind == Kind::Text {
                    let text = String::from_utf8_lossy(&bytes);
                    blocks.push(Content::text(format!("==> {path} <==\n{text}")));
                } else {
                    blocks.push(Content::text(format!("==> {path} <==")));
                    blocks.push(content(&place, kind, &bytes));
                }
            }
            Err(error) => {
                blocks.push(Content::text(format!("==> {path} <==\n(error: {error})")));
                failures.push(error.to_string());
            }
        }
    }
    if failures.len() == paths.len() {
        return Err(Error::tool(failures.join("; ")));
    }
    Ok(blocks)
}

fn roots(jail: &Jail) -> (String, Vec<Entry>) {
    let named = |root: &super::jail::Root| root.path.display().to_string();
    let folders = jail.roots.iter().map(named);
    (String::new(), folders.map(|name| Entry { name, kind: EntryKind::Folder, size: None }).collect())
}

/// Lists a directory, sorted by name.
pub(super) fn entries(place: &Place) -> Result<(String, Vec<Entry>)> {
    let dir = place.open_dir()?;
    let listed = dir.entries().map_err(|error| place.failed("list", &error))?;
    let mut entries: Vec<_> = listed
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let kind = EntryKind::of(entry.file_type().ok()?);
            let size =
                (kind == EntryKind::File).then(|| entry.metadata().ok().map(|known| known.len())).flatten();
            Some(Entry { name: entry.file_name().to_string_lossy().into_owned(), kind, size })
        })
        .collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((place.shown(), entries))
}

fn stat(place: &Place, limit: u64) -> Result<Stat> {
    let failed = |error| place.failed("inspect", &error);
    let link = place.link_metadata().map_err(failed)?;
    let known: Metadata = place.metadata().map_err(failed)?;
    let seconds = |time: std::io::Result<cap_std::time::SystemTime>| {
        Some(time.ok()?.into_std().duration_since(UNIX_EPOCH).ok()?.as_secs())
    };
    let short = known.is_file() && known.len() <= limit;
    let lines = match short.then(|| read(place, Part::Whole, limit)) {
        Some(Ok((Kind::Text, bytes))) => lines::count(BufReader::new(bytes.as_slice())).ok(),
        _ => None,
    };
    Ok(Stat {
        path: place.shown(),
        kind: EntryKind::of(known.file_type()),
        is_link: link.is_symlink(),
        size: known.len(),
        modified: seconds(known.modified()),
        created: seconds(known.created()),
        read_only: known.permissions().readonly(),
        lines,
    })
}
