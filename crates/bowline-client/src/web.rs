//! Checks URLs for users and roots for servers.

use bowline_proto::uri::{UrlParts, is_safe_page, percent_decode, validate_uri};
use bowline_types::Root;
use std::path::PathBuf;

/// Checks that a URL is a web page: `https`, or `http` on this machine, with a host.
pub(crate) fn check_page(url: &str) -> Result<(), String> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    if !matches!(scheme.as_deref(), Some("http" | "https")) {
        return Err(format!("expected an http or https URL, got `{url}`"));
    }
    if url.chars().any(|character| character.is_control() || character.is_whitespace() || character == '\\') {
        return Err(format!(
            "expected a URL without spaces, backslashes and control characters, got `{url}`"
        ));
    }
    match host(url) {
        Some(host) if !host.is_empty() && !is_safe_page(url) => {
            Err(format!("expected an https URL, or http on a loopback address, got `{url}`"))
        }
        Some(host) if !host.is_empty() => Ok(()),
        _ => Err(format!("expected a URL with a host, got `{url}`")),
    }
}

/// Returns the host of a URL.
pub(crate) fn host(url: &str) -> Option<&str> {
    UrlParts::split(url).map(|parts| parts.host)
}

/// Returns whether a user could misread a URL.
pub(crate) fn is_suspicious(url: &str) -> bool {
    let Some(parts) = UrlParts::split(url) else { return true };
    let encoded = |label: &str| {
        label.len() >= 4 && label.is_char_boundary(4) && label[..4].eq_ignore_ascii_case("xn--")
    };
    !parts.authority.is_ascii() || parts.user.is_some() || parts.host.split('.').any(encoded)
}

/// Checks a root: a `file` URI without `..`.
pub(crate) fn check_root(root: &Root) -> Result<(), String> {
    let uri = &root.uri;
    let is_file = uri.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("file://"));
    if !is_file {
        return Err(format!("expected the root to be a `file://` URI, got `{uri}`"));
    }
    validate_uri(uri).map_err(|error| format!("root `{uri}`: {error}"))?;
    let path = decode(uri.get(7..).unwrap_or_default());
    if path.segments().any(|segment| segment == b"..") {
        return Err(format!("expected a root without `..`, got `{uri}`"));
    }
    Ok(())
}

/// Returns whether a root exists and is readable. Blocks for the time of the file system access.
pub fn is_accessible(root: &Root) -> bool {
    let Some(path) = path_of(&root.uri) else { return false };
    match std::fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => std::fs::read_dir(&path).is_ok(),
        Ok(_) => std::fs::File::open(&path).is_ok(),
        Err(_) => false,
    }
}

fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.get(7..)?;
    // The authority, empty or `localhost`, is not part of the path.
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = decode(path.split(['?', '#']).next()?);
    #[cfg(unix)]
    return Some(PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(path.0)));
    #[cfg(not(unix))]
    return Some(PathBuf::from(String::from_utf8(path.0).ok()?.trim_start_matches('/')));
}

/// Percent-decoded bytes.
struct Decoded(Vec<u8>);

impl Decoded {
    /// Returns the segments between separators of any system.
    fn segments(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| matches!(byte, b'/' | b'\\'))
    }
}

fn decode(text: &str) -> Decoded {
    Decoded(percent_decode(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_with_a_host_may_be_shown() {
        // proves: ELIU-26
        for good in
            ["https://example.com/a?b#c", "HTTP://localhost", "http://[::1]:80/", "https://u@example.com"]
        {
            assert_eq!(check_page(good), Ok(()), "{good}");
        }
        for bad in [
            "http://example.com",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "https:example.com",
            "https:///path",
            "https://",
            "https://a b/",
            "https://a\\@b/",
            "https://a\n/",
            "example.com",
            "",
        ] {
            assert!(check_page(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn misleading_urls_are_recognized() {
        // proves: ELIU-25
        for (url, domain, suspicious) in [
            ("https://example.com:8443/x@y", "example.com", false),
            ("https://bank.example@evil.example/", "evil.example", true),
            ("https://xn--pple-43d.example/", "xn--pple-43d.example", true),
            ("https://пример.example/", "пример.example", true),
            ("http://[::1]:80/", "[::1]", false),
        ] {
            assert_eq!((host(url), is_suspicious(url)), (Some(domain), suspicious), "{url}");
        }
    }

    #[test]
    fn roots_must_be_file_uris_without_parent_segments() {
        // proves: ROOT-05, ROOT-10
        let check = |uri: &str| check_root(&Root::new(uri));
        assert_eq!(check("file:///srv/a..b/c"), Ok(()));
        for bad in [
            "file:///a/../b",
            "file:///a/%2e%2E/b",
            "file:///a/..%5cb",
            "file:///..",
            "https://a/b",
            "/a",
            "file:/a",
            "",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_roots_that_are_there_are_accessible() {
        let here = std::env::temp_dir();
        let uri = format!("file://{}", here.to_str().unwrap_or("/"));
        assert!(is_accessible(&Root::new(uri.as_str())));
        assert!(!is_accessible(&Root::new(format!("{uri}/no-such-folder-here"))));
    }
}
