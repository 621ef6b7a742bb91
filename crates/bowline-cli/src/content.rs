//! Prints content blocks: text directly, other content as a summary, saved to files on request.

use crate::{
    failure::Failure,
    inline_image, json_text, markdown,
    screen::{Screen, Tone},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use bowline_text::visible;
use bowline_types::{ContentBlock, RawJson, ResourceContents, ResourceLink};
use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// How many numbered file names are tried.
const MOST: u32 = 10_000;

/// Prints results and saves binary content.
#[derive(Debug)]
pub(crate) struct ContentPrinter<'a> {
    pub(crate) screen: Screen,
    /// The directory for binary content; `None` to save nothing.
    pub(crate) folder: Option<&'a Path>,
    /// The base name of saved files.
    pub(crate) name: &'a str,
}

impl ContentPrinter<'_> {
    pub(crate) fn block(&self, block: &ContentBlock) -> Result<(), Failure> {
        match block {
            ContentBlock::Text(text) => self.text(&text.text, None),
            ContentBlock::Image(image) => self.encoded(&image.data, Some(&image.mime_type), self.name),
            ContentBlock::Audio(audio) => self.encoded(&audio.data, Some(&audio.mime_type), self.name),
            ContentBlock::Resource(embedded) => self.resource(&embedded.resource),
            ContentBlock::ResourceLink(link) => self.link(link),
            _ => self.screen.json(&RawJson::of(block).unwrap_or_default()),
        }
    }

    /// Prints text. At a terminal, JSON is formatted or shown as a table, and Markdown is rendered.
    fn text(&self, text: &str, kind: Option<&str>) -> Result<(), Failure> {
        if self.screen.width().is_none() {
            return self.screen.untrusted(text);
        }
        if let Some(lines) = json_text::table(self.screen, text) {
            return lines.iter().try_for_each(|line| self.screen.line(line));
        }
        if json_text::laid_out(text).is_some() {
            return self.screen.json_text(text);
        }
        let is_markdown = match kind.map(|kind| kind.split(';').next().unwrap_or_default().trim()) {
            Some("text/markdown" | "text/x-markdown") => true,
            // Many servers declare everything as plain text.
            None | Some("text/plain") => markdown::is_likely(text),
            Some(_) => false,
        };
        if is_markdown { self.screen.markdown(text) } else { self.screen.untrusted(text) }
    }

    /// Prints a structured result: as a table at a terminal if possible, as formatted JSON otherwise.
    pub(crate) fn structured(&self, text: &str) -> Result<(), Failure> {
        match json_text::table(self.screen, text) {
            Some(lines) => lines.iter().try_for_each(|line| self.screen.line(line)),
            None => self.screen.json_text(text),
        }
    }

    /// Prints the contents of a resource.
    pub(crate) fn resource(&self, resource: &ResourceContents) -> Result<(), Failure> {
        match resource {
            ResourceContents::Text(text) => self.text(&text.text, text.mime_type.as_deref()),
            ResourceContents::Blob(blob) => {
                let name = blob.uri.rsplit(['/', ':']).next().filter(|name| !name.is_empty());
                self.encoded(&blob.blob, blob.mime_type.as_deref(), name.unwrap_or(self.name))
            }
        }
    }

    fn link(&self, link: &ResourceLink) -> Result<(), Failure> {
        let name = visible(link.title.as_deref().unwrap_or(&link.name));
        let kind = link.mime_type.as_deref().map(|kind| format!(" ({})", visible(kind))).unwrap_or_default();
        self.screen.line(&format!("{}  {name}{kind}", self.screen.paint(Tone::Name, &visible(&link.uri))))?;
        match &link.description {
            Some(description) => self.screen.untrusted(description),
            None => Ok(()),
        }
    }

    /// Saves Base64 content if requested, and shows images if the terminal supports them.
    fn encoded(&self, data: &str, kind: Option<&str>, name: &str) -> Result<(), Failure> {
        let kind = kind.unwrap_or("application/octet-stream");
        let bytes = match STANDARD.decode(data.trim()) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.screen
                    .warn(&format!("the server sent {} that is not valid Base64: {error}", visible(kind)));
                return Ok(());
            }
        };
        let (shown, count) = (visible(kind), bytes.len());
        match self.folder {
            Some(folder) => {
                let path = save(folder, &bytes, kind, name)?;
                self.screen.note(&format!("saved {} ({shown}, {count} bytes)", path.display()));
            }
            None => self.screen.note(&format!("{shown}, {count} bytes; use `-o DIR` to save it")),
        }
        if let Some(picture) = inline_image::inline(self.screen, kind, &bytes) {
            self.screen.raw(&picture)?;
        }
        Ok(())
    }
}

/// Writes a new file. Never overwrites an existing one.
fn save(folder: &Path, bytes: &[u8], kind: &str, name: &str) -> Result<PathBuf, Failure> {
    let (stem, ending) = file_name(name, kind);
    std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    for number in 1..MOST {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{stem}{number}.{ending}"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                return match file.write_all(bytes) {
                    Ok(()) => Ok(path),
                    Err(error) => Err(cannot_write(&path, &error)),
                };
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot_write(&path, &error)),
        }
    }
    Err(Failure::new(crate::failure::Code::Failed, format!("{MOST} files named `{stem}` already exist")))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let failure =
        Failure::new(crate::failure::Code::Failed, format!("cannot write `{}`: {error}", path.display()));
    failure.advise("use `--output DIR` to save files elsewhere")
}

/// Returns a safe file name and its extension.
fn file_name(name: &str, kind: &str) -> (String, String) {
    let harmless = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let name: String =
        name.chars().map(|letter| if harmless(letter) { letter } else { '_' }).take(64).collect();
    let name = name.trim_matches('.');
    let name = if name.is_empty() { "result" } else { name };
    let (essence, _) = kind.split_once(';').unwrap_or((kind, ""));
    let ending = match essence.trim() {
        "image/jpeg" => "jpg",
        "image/svg+xml" => "svg",
        "audio/mpeg" => "mp3",
        "audio/wav" | "audio/x-wav" => "wav",
        "text/plain" => "txt",
        "text/markdown" => "md",
        "image/png" => "png",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "audio/ogg" => "ogg",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "application/zip" => "zip",
        "application/gzip" => "gz",
        "text/html" => "html",
        "text/csv" => "csv",
        _ => "bin",
    };
    match name.rsplit_once('.') {
        // Resource names often already have an extension.
        Some((stem, own)) if !stem.is_empty() && (own == ending || ending == "bin") && !own.is_empty() => {
            (stem.to_owned(), own.to_owned())
        }
        _ => (name.to_owned(), ending.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_sanitized() {
        let check = |name, kind, expected: (&str, &str)| {
            let (stem, ending) = file_name(name, kind);
            assert_eq!((stem.as_str(), ending.as_str()), expected);
        };
        check("chart", "image/png", ("chart", "png"));
        check("../../etc/passwd", "image/png", ("_.._etc_passwd", "png"));
        check("..", "text/plain; charset=utf-8", ("result", "txt"));
        check("photo.jpg", "image/jpeg", ("photo", "jpg"));
        check("data.tar", "application/octet-stream", ("data", "tar"));
        check(".bashrc", "application/x-unknown", ("bashrc", "bin"));
        check("a\u{202e}b", "image/gif", ("a_b", "gif"));
    }

    #[test]
    fn nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let first = save(folder.path(), b"1", "image/png", "x").unwrap();
        let second = save(folder.path(), b"2", "image/png", "x").unwrap();
        assert_eq!(
            (first.file_name(), second.file_name()),
            (Some("x.png".as_ref()), Some("x-2.png".as_ref()))
        );
        assert_eq!(std::fs::read(first).unwrap(), b"1");
    }
}
