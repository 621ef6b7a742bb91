//! The tools that change nothing.

use super::{
    Shelf,
    jail::{Jail, Place},
    kind::Kind,
    lines::{self, Part},
    off_thread, search,
    tree::{self, Tree},
};
use bowline::{prelude::*, types::ResourceContents};
use cap_std::fs::{FileType, Metadata};
use std::{io::BufReader, time::UNIX_EPOCH};

/// How many entries of a folder are listed, and how many matches found, unless the caller says.
const LISTED: usize = 1000;
const MATCHES: usize = 100;
/// How many files are read in one call.
const FILES: usize = 100;
/// How deep a tree goes and how many entries it has, unless the caller says.
const DEPTH: usize = 3;
const TREE: usize = 1000;

#[derive(Debug)]
pub(super) struct Reading(pub(super) Shelf);

/// What something in a folder is.
#[data]
#[derive(Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
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

/// Something in a folder.
#[data]
pub struct Entry {
    /// Its name; of a folder that is served, its path.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// The size of a file in bytes.
    pub size: Option<u64>,
}

/// A part of what is in a folder.
#[data]
pub struct Directory {
    /// Its path.
    pub path: String,
    /// What is in it, by name.
    pub entries: Vec<Entry>,
    /// How many entries there are in all.
    pub total: usize,
    /// Where to go on, as `offset`, when there is more.
    pub next: Option<usize>,
}

/// What is known of a file or folder.
#[data]
pub struct Stat {
    /// Its path.
    pub path: String,
    /// What it is; of a link, what it leads to is told.
    pub kind: EntryKind,
    /// Whether the path is that of a symbolic link.
    pub is_link: bool,
    /// The size in bytes.
    pub size: u64,
    /// When it was changed, in seconds since 1970.
    pub modified: Option<u64>,
    /// When it was made, in seconds since 1970.
    pub created: Option<u64>,
    /// Whether its permissions forbid writing.
    pub read_only: bool,
    /// The number of lines, if it is a text that is not too long to look at.
    pub lines: Option<u64>,
}

/// A file, or a line in it.
#[data]
pub struct Match {
    /// The path of the file.
    pub path: String,
    /// The number of the line, counted from 1.
    pub line: Option<u64>,
    /// The line, cut when it is long.
    pub text: Option<String>,
}

/// What a search found.
#[data]
pub struct Found {
    /// The matches, by path.
    pub matches: Vec<Match>,
    /// Whether there may be more than were returned.
    pub more: bool,
    /// How many files were too long to look into.
    pub skipped: u64,
}

/// The folders that can be used.
#[data]
pub struct AllowedFolders {
    /// Their paths.
    pub folders: Vec<String>,
    /// Whether files in them can be changed.
    pub writable: bool,
}

#[tools]
impl Reading {
    /// Read a file: text as text, or only some of its lines; images and audio as such; anything else as a blob.
    #[tool(title = "Read a file", read_only, open_world = false)]
    async fn read_file(
        &self,
        ctx: Ctx,
        /// The path of the file.
        path: String,
        /// How many lines from the beginning.
        head: Option<u64>,
        /// How many lines from the end.
        tail: Option<u64>,
        /// The first line, counted from 1.
        from_line: Option<u64>,
        /// The last line.
        to_line: Option<u64>,
    ) -> Result<Content> {
        let part = Part::of(head, tail, from_line, to_line)?;
        let limit = self.0.max_bytes;
        self.0
            .at(&ctx, path, move |place| {
                let (kind, bytes) = read(place, part, limit)?;
                if kind != Kind::Text && part != Part::Whole {
                    let shown = place.shown();
                    return Err(Error::tool(format!("expected `{shown}` to be text, to cut lines from")));
                }
                Ok(content(place, kind, &bytes))
            })
            .await
    }

    /// Read several files at once. Each is preceded by its path; one that cannot be read does not keep the others back.
    #[tool(title = "Read files", read_only, open_world = false)]
    async fn read_files(
        &self,
        ctx: Ctx,
        /// The paths of the files, at most 100.
        #[schemars(length(min = 1, max = 100))]
        paths: Vec<String>,
    ) -> Result<Vec<Content>> {
        if paths.is_empty() || paths.len() > FILES {
            return Err(Error::tool(format!("expected between 1 and {FILES} paths, got {}", paths.len())));
        }
        let jail = self.0.view(&ctx).await?;
        let limit = self.0.max_bytes;
        off_thread(move || read_all(&jail, &paths, limit)).await
    }

    /// Show the files and folders below a folder as a tree. Links are not followed, and what is in `.git` is left out.
    #[tool(title = "Show a folder as a tree", read_only, open_world = false)]
    async fn directory_tree(
        &self,
        ctx: Ctx,
        /// The path of the folder. Without it: the folder that is served, or all of them.
        path: Option<String>,
        /// How many levels to show; 3 otherwise.
        #[schemars(range(min = 1, max = 32))]
        depth: Option<usize>,
        /// How many entries at most; 1000 otherwise.
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

    /// List the folders that can be used, and whether files in them can be changed.
    #[tool(title = "List allowed folders", read_only, open_world = false)]
    async fn list_allowed_directories(&self, ctx: Ctx) -> Result<Json<AllowedFolders>> {
        let jail = self.0.view(&ctx).await?;
        let folders = jail.roots.iter().map(|root| root.path.display().to_string()).collect();
        Ok(Json(AllowedFolders { folders, writable: self.0.writable }))
    }

    /// List what is in a folder, with kinds and sizes.
    #[tool(title = "List a folder", read_only, open_world = false)]
    async fn list_directory(
        &self,
        ctx: Ctx,
        /// The path of the folder. Without it: the folder that is served, or the names of all of them.
        path: Option<String>,
        /// How many entries to leave out at the beginning.
        #[serde(default)]
        offset: usize,
        /// How many entries at most; 1000 otherwise.
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

    /// Find files by name, or lines in them by what they hold. Links are not followed, and `.git` is left out.
    #[tool(title = "Search files", read_only, open_world = false)]
    async fn search_files(
        &self,
        ctx: Ctx,
        /// The folder or file to look into; everything otherwise.
        path: Option<String>,
        /// A glob for paths from there, such as `src/**/*.rs`; without a slash, for names at any depth.
        pattern: Option<String>,
        /// A regular expression for lines in the files.
        content: Option<String>,
        /// Whether the regular expression is for upper and lower case alike.
        #[serde(default)]
        ignore_case: bool,
        /// How many matches at most; 100 otherwise.
        #[schemars(range(min = 1, max = 1000))]
        limit: Option<usize>,
    ) -> Result<Json<Found>> {
        if pattern.is_none() && content.is_none() {
            return Err(Error::tool("expected `pattern`, `content` or both, got neither"));
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

    /// Tell what is known of a file or folder: kind, size, times, number of lines.
    #[tool(title = "Look at a file", read_only, open_world = false)]
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

/// A part of a file, and what it is.
pub(super) fn read(place: &Place, part: Part, limit: u64) -> Result<(Kind, Vec<u8>)> {
    let (file, _) = place.open_file()?;
    let bytes = lines::read(file.into_std(), part, limit)?;
    Ok((Kind::of(&bytes, &place.inside), bytes))
}

/// What a file holds, as content of a result.
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

/// Several files, of which all together may have `limit` bytes. Fails if none can be read.
fn read_all(jail: &Jail, paths: &[String], limit: u64) -> Result<Vec<Content>> {
    let (mut blocks, mut failures) = (Vec::new(), Vec::new());
    let mut left = limit;
    for path in paths {
        let found = jail.place(path).and_then(|place| {
            let (file, metadata) = place.open_file()?;
            if metadata.len() > left {
                let shown = place.shown();
                return Err(Error::tool(format!(
                    "`{shown}` has {} bytes, and {left} of {limit} are left for this call: read it by itself",
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

/// What is in a folder, by name.
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
    let failed = |error| place.failed("look at", &error);
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
