//! Detects the type of a file: text, image, audio, or other.

use std::path::Path;

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Image(&'static str),
    Audio(&'static str),
    Other(&'static str),
}

impl Kind {
    /// Detects images and audio by their first bytes, regardless of the name. The rest is text if it is valid UTF-8.
    pub(super) fn of(bytes: &[u8], path: &Path) -> Self {
        if let Some(kind) = by_signature(bytes) {
            return kind;
        }
        let is_text = !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
        if is_text { Self::Text } else { Self::Other(binary_type(path)) }
    }
}

fn by_signature(bytes: &[u8]) -> Option<Kind> {
    let at =
        |offset: usize, signature: &[u8]| bytes.get(offset..).is_some_and(|rest| rest.starts_with(signature));
    let riff = at(0, b"RIFF");
    Some(match () {
        () if at(0, b"\x89PNG\r\n\x1a\n") => Kind::Image("image/png"),
        () if at(0, b"\xff\xd8\xff") => Kind::Image("image/jpeg"),
        () if at(0, b"GIF87a") || at(0, b"GIF89a") => Kind::Image("image/gif"),
        () if riff && at(8, b"WEBP") => Kind::Image("image/webp"),
        () if at(4, b"ftypavif") => Kind::Image("image/avif"),
        () if riff && at(8, b"WAVE") => Kind::Audio("audio/wav"),
        () if at(0, b"ID3") || at(0, b"\xff\xfb") => Kind::Audio("audio/mpeg"),
        () if at(0, b"fLaC") => Kind::Audio("audio/flac"),
        () if at(0, b"OggS") => Kind::Audio("audio/ogg"),
        () => return None,
    })
}

fn extension(path: &Path) -> String {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase()
}

fn binary_type(path: &Path) -> &'static str {
    match extension(path).as_str() {
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" | "tgz" => "application/gzip",
        "wasm" => "application/wasm",
        "sqlite" | "db" => "application/vnd.sqlite3",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "ico" => "image/vnd.microsoft.icon",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

/// Returns the MIME type of a text file by its name.
pub(super) fn text_type(path: &Path) -> &'static str {
    match extension(path).as_str() {
        "md" | "markdown" => "text/markdown",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "xml" => "application/xml",
        "svg" => "image/svg+xml",
        "toml" => "application/toml",
        "yaml" | "yml" => "application/yaml",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_file_is_detected_from_its_bytes() {
        let check = |bytes: &[u8], path: &str, expected| {
            assert_eq!(Kind::of(bytes, Path::new(path)), expected, "{path}");
        };
        check(b"", "empty", Kind::Text);
        check("ñ\r\n".as_bytes(), "a.png", Kind::Text);
        check(b"\x89PNG\r\n\x1a\n\0", "a.txt", Kind::Image("image/png"));
        check(b"RIFF\0\0\0\0WEBPVP8 ", "a", Kind::Image("image/webp"));
        check(b"RIFF\0\0\0\0WAVEfmt ", "a", Kind::Audio("audio/wav"));
        check(b"RIFF\0\0\0\0AVI ", "a.bin", Kind::Other("application/octet-stream"));
        check(b"PK\x03\x04\0", "a.ZIP", Kind::Other("application/zip"));
        check(b"\xff\xfe", "latin.txt", Kind::Other("application/octet-stream"));
    }
}
