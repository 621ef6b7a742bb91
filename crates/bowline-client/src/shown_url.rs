//! Checks URLs before they are opened for the user, and warns about what is easy to misread.

use bowline_proto::uri::is_safe_page;
use std::fmt;
use std::net::Ipv6Addr;

use bowline_text::is_hidden;

/// URLs with more bytes are reported as long.
const LONG: usize = 300;
const MAX_LENGTH: usize = 8192;

/// A URL of a web page, split so that a user can see its host.
///
/// ```
/// use bowline_client::ShownUrl;
///
/// let url = ShownUrl::parse("https://bank.example@evil.example/login")?;
/// assert_eq!(url.host(), "evil.example");
/// assert_eq!(url.warnings().len(), 1);
/// assert!(ShownUrl::parse("javascript:alert(1)").is_err());
/// # Ok::<(), bowline_client::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShownUrl {
    text: String,
    host: std::ops::Range<usize>,
    warnings: Vec<UrlWarning>,
}

/// What makes a URL easy to misread or unsafe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UrlWarning {
    /// The connection is not encrypted.
    NotEncrypted,
    /// There is a user name before the host, which may look like a host.
    UserInfo,
    /// The host is an IP address.
    Address,
    /// The host contains encoded non-ASCII letters.
    Encoded,
    /// The host contains non-ASCII letters.
    Foreign,
    /// The host mixes letters of different scripts that look alike.
    MixedScripts,
    /// The port is not the default one.
    Port,
    /// The URL is very long.
    Long,
}

impl fmt::Display for UrlWarning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotEncrypted => "the connection is not encrypted (http)",
            Self::UserInfo => "the part before `@` is not the host; the host comes after it",
            Self::Address => "the host is a numeric address, not a name",
            Self::Encoded => "the host contains non-ASCII letters encoded as punycode",
            Self::Foreign => "the host contains non-ASCII letters that may imitate ASCII ones",
            Self::MixedScripts => "the host mixes letters of several scripts",
            Self::Port => "the port is not the default port",
            Self::Long => "the URL is very long",
        })
    }
}

/// The reason why a URL is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlError(String);

impl fmt::Display for UrlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for UrlError {}

impl ShownUrl {
    /// Parses the URL of a web page: `https`, or `http` on this machine, with a host and only characters that are valid
    /// in URLs.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let refuse = |reason: &str| {
            let shown: String = bowline_text::visible(text).chars().take(200).collect();
            Err(UrlError(format!("expected {reason}, got `{shown}`")))
        };
        if text.len() > MAX_LENGTH {
            return refuse("a URL of at most 8192 bytes");
        }
        let scheme = text.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        let encrypted = match scheme.as_deref() {
            Some("https") => true,
            Some("http") => false,
            _ => return refuse("an http or https URL"),
        };
        let strange = |character: char| {
            character.is_whitespace() || is_hidden(character) || "\\\"<>^`{|}".contains(character)
        };
        if text.contains(strange) {
            return refuse("a URL without spaces, quotes and invisible characters");
        }
        // Checked right after the scheme: browsers also accept a host without slashes, and would find another host.
        let Some((scheme, rest)) = text.split_once(':') else { return refuse("a URL with a host") };
        let Some(rest) = rest.strip_prefix("//") else { return refuse("a URL with a host") };
        let start = scheme.len() + 3;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, at_host) = match authority.rsplit_once('@') {
            Some((user, at_host)) => (Some(user), at_host),
            None => (None, authority),
        };
        let host_start = start + user.map_or(0, |user| user.len() + 1);
        let (host, port) = match at_host.strip_prefix('[') {
            Some(bracketed) => {
                let Some((address, port)) = bracketed.split_once(']') else {
                    return refuse("a URL with a host");
                };
                if address.parse::<Ipv6Addr>().is_err() || !(port.is_empty() || port.starts_with(':')) {
                    return refuse("a URL with a valid address");
                }
                (at_host.get(..address.len() + 2).unwrap_or(at_host), port.strip_prefix(':'))
            }
            None => match at_host.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (at_host, None),
            },
        };
        let is_name = |character: char| {
            character.is_alphanumeric() || matches!(character, '.' | '-' | '_') || !character.is_ascii()
        };
        if host.is_empty() || (!host.starts_with('[') && !host.chars().all(is_name)) {
            return refuse("a URL with a host");
        }
        if !is_safe_page(text) {
            return refuse("an https URL, or http on a loopback address");
        }
        let port = port.filter(|port| !port.is_empty());
        if port.is_some_and(|port| {
            !port.bytes().all(|byte| byte.is_ascii_digit()) || port.parse::<u16>().is_err()
        }) {
            return refuse("a URL with a port from 0 to 65535");
        }

        let usual = if encrypted { "443" } else { "80" };
        let warnings = [
            (!encrypted, UrlWarning::NotEncrypted),
            (user.is_some(), UrlWarning::UserInfo),
            (is_address(host), UrlWarning::Address),
            (host.split('.').any(is_encoded), UrlWarning::Encoded),
            (!host.is_ascii(), UrlWarning::Foreign),
            (host.split('.').any(mixes_scripts), UrlWarning::MixedScripts),
            (port.is_some_and(|port| port != usual), UrlWarning::Port),
            (text.len() > LONG, UrlWarning::Long),
        ];
        let warnings = warnings.into_iter().filter_map(|(holds, warning)| holds.then_some(warning)).collect();
        Ok(Self { text: text.to_owned(), host: host_start..host_start + host.len(), warnings })
    }

    /// Returns the whole URL.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the host as written.
    pub fn host(&self) -> &str {
        self.text.get(self.host.clone()).unwrap_or_default()
    }

    /// Returns the parts before the host, the host, and after the host, so that the host can be highlighted.
    pub fn parts(&self) -> [&str; 3] {
        let before = self.text.get(..self.host.start).unwrap_or_default();
        [before, self.host(), self.text.get(self.host.end..).unwrap_or_default()]
    }

    /// Returns the URL in a normal form, to compare it with rules: scheme and host in lower case, without user, default port and
    /// the final dot of the host, and with a path.
    pub fn normalized(&self) -> String {
        let [before, host, behind] = self.parts();
        let scheme = before.split(':').next().unwrap_or_default().to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(host).to_lowercase();
        let (port, path) = behind.split_at(behind.find(['/', '?', '#']).unwrap_or(behind.len()));
        let usual = if scheme == "https" { ":443" } else { ":80" };
        let port = if port == usual || port == ":" { "" } else { port };
        let slash = if path.starts_with('/') { "" } else { "/" };
        format!("{scheme}://{host}{port}{slash}{path}")
    }

    /// Returns the warnings for the user.
    pub fn warnings(&self) -> &[UrlWarning] {
        &self.warnings
    }
}

impl fmt::Display for ShownUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Browsers treat every host whose last label is a number as an IPv4 address.
fn is_address(host: &str) -> bool {
    let last = host.strip_suffix('.').unwrap_or(host).rsplit('.').next().unwrap_or_default();
    let hexadecimal = last.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"));
    host.starts_with('[')
        || hexadecimal
        || (!last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_encoded(label: &str) -> bool {
    label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--"))
}

fn mixes_scripts(label: &str) -> bool {
    let mut scripts = label.chars().filter_map(script);
    scripts.next().is_some_and(|first| scripts.any(|other| other != first))
}

/// Returns the script of a letter, for scripts with similar letters.
fn script(letter: char) -> Option<u8> {
    match u32::from(letter) {
        0x41..=0x5A | 0x61..=0x7A | 0xC0..=0x24F | 0x1E00..=0x1EFF | 0xFF21..=0xFF5A => Some(0),
        0x370..=0x3FF | 0x1F00..=0x1FFF => Some(1),
        0x400..=0x52F | 0x1C80..=0x1C8F => Some(2),
        0x530..=0x58F => Some(3),
        0x590..=0x5FF => Some(4),
        0x10A0..=0x10FF => Some(5),
        0x13A0..=0x13FF => Some(6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use UrlWarning::{Address, Encoded, Foreign, Long, MixedScripts, NotEncrypted, Port, UserInfo};

    #[test]
    fn misleading_urls_are_reported() {
        // V-103
        for (url, host, warnings) in [
            ("https://example.com/a?b=c@d#e", "example.com", &[][..]),
            ("HTTPS://example.com:443", "example.com", &[]),
            ("http://localhost:80/", "localhost", &[NotEncrypted]),
            ("https://bank.example@evil.example/", "evil.example", &[UserInfo]),
            ("https://a@b@evil.example/", "evil.example", &[UserInfo]),
            ("https://@evil.example/", "evil.example", &[UserInfo]),
            ("https://xn--pple-43d.example/", "xn--pple-43d.example", &[Encoded]),
            ("https://пример.example/", "пример.example", &[Foreign]),
            ("https://аpple.example/", "аpple.example", &[Foreign, MixedScripts]),
            ("https://127.0.0.1/", "127.0.0.1", &[Address]),
            ("https://2130706433/", "2130706433", &[Address]),
            ("https://0x7f.1/", "0x7f.1", &[Address]),
            ("https://a.0x7F./", "a.0x7F.", &[Address]),
            ("https://[::1]:8443/", "[::1]", &[Address, Port]),
            ("https://example.com:8443?x", "example.com", &[Port]),
        ] {
            let shown = ShownUrl::parse(url).unwrap();
            assert_eq!((shown.host(), shown.warnings()), (host, warnings), "{url}");
            assert_eq!(shown.parts().concat(), url);
        }
        let long = format!("https://example.com/{}", "a".repeat(LONG));
        assert_eq!(ShownUrl::parse(&long).unwrap().warnings(), [Long]);
    }

    #[test]
    fn only_web_pages_are_shown() {
        // V-103
        for url in [
            "http://example.com/",
            "http://localhost@example.com/",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "vbscript:x",
            "ms-settings:x",
            "--help",
            "",
            "https:example.com",
            // A browser uses the part before the second colon as the host.
            "https:evil.example://bank.example/login",
            "https:/evil.example://bank.example/login",
            "https://",
            "https:///path",
            "https://user@/",
            "https://a b/",
            "https://a\\@b/",
            "https://a\n/",
            "https://a\u{202e}b/",
            "https://a\u{200b}b/",
            "https://a/\"&calc",
            "https://a/`x`",
            "https://a%2eb/",
            "https://a:b/",
            "https://a:99999/",
            "https://a:+1/",
            "https://[::1/",
            "https://[x]/",
            "https://[::1]x/",
        ] {
            assert!(ShownUrl::parse(url).is_err(), "{url}");
        }
        assert!(ShownUrl::parse(&format!("https://a/{}", "x".repeat(MAX_LENGTH))).is_err());
        let error = ShownUrl::parse("java\u{202e}script:x").unwrap_err().to_string();
        assert_eq!(error, "expected an http or https URL, got `java<U+202E>script:x`");
    }
}
