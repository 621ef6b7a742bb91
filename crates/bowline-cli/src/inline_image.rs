//! Inline images in terminals that support the protocols of kitty or iTerm2.

use crate::screen::Screen;
use base64::{Engine, engine::general_purpose::STANDARD};

/// The maximum payload of one command in kitty's protocol.
const CHUNK: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Kitty,
    Iterm,
}

/// Returns the bytes that show an image, if standard output is a terminal that supports it.
pub(crate) fn inline(screen: Screen, kind: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    screen.width()?;
    let protocol = protocol(|name| std::env::var(name).ok())?;
    encode(protocol, kind, bytes)
}

/// Detects the protocol from the environment.
fn protocol(variable: impl Fn(&str) -> Option<String>) -> Option<Protocol> {
    let is =
        |name: &str, values: &[&str]| variable(name).is_some_and(|value| values.contains(&value.as_str()));
    if variable("KITTY_WINDOW_ID").is_some()
        || is("TERM", &["xterm-kitty", "xterm-ghostty"])
        || is("TERM_PROGRAM", &["ghostty"])
    {
        return Some(Protocol::Kitty);
    }
    let iterm = is("TERM_PROGRAM", &["iTerm.app", "WezTerm"]) || is("LC_TERMINAL", &["iTerm2"]);
    iterm.then_some(Protocol::Iterm)
}

fn encode(protocol: Protocol, kind: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let data = STANDARD.encode(bytes);
    match protocol {
        // Kitty needs the size of images in other formats.
        Protocol::Kitty if kind == "image/png" => {
            let mut text = Vec::new();
            let mut chunks = data.as_bytes().chunks(CHUNK).peekable();
            let mut settings = "a=T,f=100,";
            while let Some(chunk) = chunks.next() {
                let more = u8::from(chunks.peek().is_some());
                text.extend_from_slice(format!("\x1b_G{settings}m={more};").as_bytes());
                text.extend_from_slice(chunk);
                text.extend_from_slice(b"\x1b\\");
                settings = "";
            }
            text.push(b'\n');
            Some(text)
        }
        Protocol::Iterm if kind.starts_with("image/") => {
            let size = bytes.len();
            Some(format!("\x1b]1337;File=inline=1;size={size}:{data}\x07\n").into_bytes())
        }
        Protocol::Kitty | Protocol::Iterm => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_detected_by_their_variables() {
        let of = |known: &'static str, value: &'static str| {
            protocol(move |name| (name == known).then(|| value.to_owned()))
        };
        assert_eq!(of("TERM", "xterm-kitty"), Some(Protocol::Kitty));
        assert_eq!(of("KITTY_WINDOW_ID", "1"), Some(Protocol::Kitty));
        assert_eq!(of("TERM_PROGRAM", "iTerm.app"), Some(Protocol::Iterm));
        assert_eq!(of("TERM", "xterm-256color"), None);
    }

    #[test]
    fn images_are_sent_in_chunks() {
        let shown = |protocol, kind, bytes: &[u8]| {
            encode(protocol, kind, bytes).map(|text| String::from_utf8(text).unwrap())
        };
        assert_eq!(
            shown(Protocol::Kitty, "image/png", b"x").as_deref(),
            Some("\u{1b}_Ga=T,f=100,m=0;eA==\u{1b}\\\n")
        );
        let long = shown(Protocol::Kitty, "image/png", &[0; 4000]).unwrap();
        assert_eq!(long.matches("\u{1b}_G").count(), 2);
        assert!(long.contains("\u{1b}_Gm=0;"));
        assert_eq!(shown(Protocol::Kitty, "image/gif", b"x"), None);
        assert_eq!(
            shown(Protocol::Iterm, "image/gif", b"x").as_deref(),
            Some("\u{1b}]1337;File=inline=1;size=1:eA==\u{7}\n")
        );
        assert_eq!(shown(Protocol::Iterm, "audio/wav", b"x"), None);
    }
}
