//! Cuts text, removes hidden characters, and converts paths to and from `file` URIs.

use crate::percent;
use bowline::unstable::proto::uri::UriTemplate;
use bowline_text::is_hidden;
use std::path::{Component, Path, PathBuf};

/// Cuts a text to at most `limit` bytes, at a character boundary.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// Removes characters that a person who reads the text would not see, such as Unicode tags, direction changes and terminal
/// escapes. A model reads them, so they can carry instructions.
///
/// Joiners, marks of writing direction and variation selectors stay, because many scripts and emoji need them, but not in a
/// row: several of them can encode a message.
pub(crate) fn without_hidden(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut follows_visible = false;
    for character in text.chars() {
        let joins = matches!(character, '\u{200c}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}');
        let is_kept = match character {
            // The last three are signs of Arabic and Syriac that are drawn around the digits after them.
            '\n' | '\r' | '\t' | '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' => true,
            _ if joins => follows_visible,
            _ => !is_hidden(character),
        };
        if is_kept {
            kept.push(character);
            follows_visible = !joins;
        }
    }
    kept
}

/// Returns the `file` URI of an absolute path; `None` if the path is not Unicode.
pub(crate) fn file_uri(path: &Path) -> Option<String> {
    let mut uri = String::from("file://");
    for component in path.components() {
        let part = match component {
            Component::Normal(part) => part,
            Component::Prefix(prefix) => prefix.as_os_str(),
            Component::RootDir => continue,
            Component::CurDir | Component::ParentDir => return None,
        };
        uri.push('/');
        uri.push_str(&percent::encode(part.to_str()?));
    }
    Some(if uri == "file://" { "file:///".into() } else { uri })
}

/// Returns the path of a local `file` URI; `None` for any other text.
pub(crate) fn file_path(uri: &str) -> Option<PathBuf> {
    let scheme = uri.get(..7).filter(|start| start.eq_ignore_ascii_case("file://"))?;
    let rest = uri.strip_prefix(scheme)?;
    // The authority of a local file is empty or `localhost`.
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if path == "/" {
        return Some(root());
    }
    let template = UriTemplate::parse("file:///{+path}").expect("the template is well formed");
    let (_, path) = template.match_uri(&format!("file://{path}"))?.pop()?;
    Some(absolute(&path))
}

/// Returns the absolute path for the `path` variable of the template.
pub(crate) fn absolute(path: &str) -> PathBuf {
    if cfg!(windows) { PathBuf::from(path) } else { root().join(path.trim_start_matches('/')) }
}

fn root() -> PathBuf {
    PathBuf::from("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves: TOOL-48
    #[test]
    fn hidden_characters_are_removed() {
        for (text, shown) in [
            ("a\tb\r\nc", "a\tb\r\nc"),
            ("red \u{1b}[2J\u{7}", "red [2J"),
            ("Read this.\u{e0049}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}", "Read this."),
            ("user\u{202e}gpj.exe", "usergpj.exe"),
            ("a\u{200b}b\u{2060}\u{feff}\u{ad}c", "abc"),
            ("a\u{fe00}\u{fe01}\u{fe02}\u{e0100}b", "a\u{fe00}b"),
            (
                "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{2764}\u{fe0f}",
                "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{2764}\u{fe0f}",
            ),
            (
                "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
                "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
            ),
            ("Gr\u{fc}\u{df}e, \u{4e16}\u{754c}", "Gr\u{fc}\u{df}e, \u{4e16}\u{754c}"),
        ] {
            assert_eq!(without_hidden(text), shown, "{text:?}");
        }
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("añb", 2), "a");
        assert_eq!(cut("añb", 3), "añ");
        assert_eq!(cut("añb", 30), "añb");
    }

    #[cfg(unix)]
    #[test]
    fn a_path_survives_the_round_trip_through_its_uri() {
        for path in ["/", "/a/b", "/a b/ñ", "/50%/x?y#z", "/a%20b", "/a+b"] {
            let uri = file_uri(Path::new(path)).unwrap();
            bowline::unstable::proto::uri::validate_uri(&uri).unwrap();
            assert_eq!(file_path(&uri), Some(PathBuf::from(path)), "{uri}");
        }
        assert_eq!(file_uri(Path::new("/a b/?")).as_deref(), Some("file:///a%20b/%3F"));
        assert_eq!(file_path("FILE://localhost/a"), Some(PathBuf::from("/a")));
        for other in ["", "/a", "http://a/b", "file://host/a", "file:/a", "file:///%zz"] {
            assert_eq!(file_path(other), None, "{other}");
        }
    }
}
