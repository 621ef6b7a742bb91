//! Validates URIs and compares their hierarchy.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::{
    authority::UrlParts,
    percent::{decode, is_reserved, is_unreserved, starts_with_triplet},
};

/// Why a text is not an absolute URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriError {
    offset: usize,
    problem: &'static str,
}

impl UriError {
    fn at(offset: usize, problem: &'static str) -> Self {
        Self { offset, problem }
    }

    /// Returns the byte offset of the first invalid octet.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected an absolute URI, got {} at byte {}", self.problem, self.offset)
    }
}

impl std::error::Error for UriError {}

/// Checks that `uri` is an absolute URI (RFC 3986): a scheme, a colon, and only characters that a URI
/// may contain, each in a valid position.
///
/// A fragment is allowed. The error states the first invalid octet.
///
/// ```
/// use bowline_proto::uri::validate_uri;
///
/// assert!(validate_uri("note://today/1?full=yes").is_ok());
/// assert!(validate_uri("today/1").is_err());
/// ```
pub fn validate_uri(uri: &str) -> Result<(), UriError> {
    let (scheme, rest) = uri.split_once(':').ok_or_else(|| UriError::at(uri.len(), "no scheme"))?;
    check_scheme(scheme)?;

    let start = scheme.len() + 1;
    check_characters(rest, start)?;

    let Some(after) = rest.strip_prefix("//") else {
        return forbid_brackets(rest, start);
    };
    let (authority, path) = after.split_at(after.find(['/', '?', '#']).unwrap_or(after.len()));
    check_authority(authority, start + 2)?;
    forbid_brackets(path, start + 2 + authority.len())
}

/// Returns whether a user may be sent to `url`: `https`, or `http` on this machine, where nobody can eavesdrop.
///
/// ```
/// use bowline_proto::uri::is_safe_page;
///
/// assert!(is_safe_page("https://example.com/sign-in"));
/// assert!(is_safe_page("http://localhost:8080/sign-in"));
/// assert!(!is_safe_page("http://example.com/sign-in"));
/// ```
pub fn is_safe_page(url: &str) -> bool {
    UrlParts::split(url).is_some_and(|parts| {
        parts.scheme.eq_ignore_ascii_case("https")
            || (parts.scheme.eq_ignore_ascii_case("http") && is_loopback(parts.bare_host()))
    })
}

/// Returns whether a host is this machine, in spellings that every program reads alike.
fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        || host.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
}

fn check_scheme(scheme: &str) -> Result<(), UriError> {
    let bytes = scheme.as_bytes();
    if !bytes.first().is_some_and(u8::is_ascii_alphabetic) {
        return Err(UriError::at(0, "a scheme without a leading letter"));
    }
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    match bytes.iter().position(|byte| !allowed(byte)) {
        Some(offset) => Err(UriError::at(offset, "a character that is not allowed in a scheme")),
        None => Ok(()),
    }
}

fn check_characters(text: &str, start: usize) -> Result<(), UriError> {
    let bytes = text.as_bytes();
    let mut fragment = false;
    for (index, &byte) in bytes.iter().enumerate() {
        let problem = match byte {
            b'%' if bytes.get(index..).is_some_and(starts_with_triplet) => continue,
            b'%' => "a percent sign without two hexadecimal digits",
            b'#' if fragment => "a second fragment",
            b'#' => {
                fragment = true;
                continue;
            }
            _ if is_unreserved(byte) || is_reserved(byte) => continue,
            _ => "a character that must be percent-encoded",
        };
        return Err(UriError::at(start + index, problem));
    }
    Ok(())
}

/// Square brackets may only enclose an address in the authority.
fn forbid_brackets(text: &str, start: usize) -> Result<(), UriError> {
    match text.find(['[', ']']) {
        Some(index) => Err(UriError::at(start + index, "a bracket outside of the host")),
        None => Ok(()),
    }
}

fn check_authority(authority: &str, start: usize) -> Result<(), UriError> {
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let host_start = start + user.map_or(0, |user| user.len() + 1);
    if let Some(user) = user {
        forbid_brackets(user, start)?;
        if let Some(index) = user.find('@') {
            return Err(UriError::at(start + index, "a second user"));
        }
    }

    let (name, port) = match host.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((address, after)) => {
            if !is_address(address) {
                return Err(UriError::at(host_start + 1, "a malformed address in brackets"));
            }
            if !after.is_empty() && !after.starts_with(':') {
                return Err(UriError::at(
                    host_start + address.len() + 2,
                    "text after the address in brackets",
                ));
            }
            (None, after.strip_prefix(':'))
        }
        None => host.split_once(':').map_or((Some(host), None), |(name, port)| (Some(name), Some(port))),
    };
    if let Some(name) = name {
        forbid_brackets(name, host_start)?;
    }
    match port {
        Some(port) if !port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(UriError::at(host_start + host.len() - port.len(), "a port that is not a number"))
        }
        _ => Ok(()),
    }
}

/// Returns whether this is an IPv6 address, or the reserved form of future versions.
fn is_address(address: &str) -> bool {
    if address.parse::<Ipv6Addr>().is_ok() {
        return true;
    }
    let Some((version, rest)) = address.strip_prefix(['v', 'V']).and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let allowed = |byte: u8| {
        is_unreserved(byte) || (is_reserved(byte) && !matches!(byte, b'/' | b'?' | b'#' | b'[' | b']' | b'@'))
    };
    !version.is_empty()
        && version.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !rest.is_empty()
        && rest.bytes().all(allowed)
}

/// Returns whether `child` is `parent` or below it in the same scheme and authority.
///
/// "Below" starts at a `/` of the path: `note://a/b` is below `note://a`, `note://ab` is not. A child whose
/// path has a `..` segment, also an encoded one, is below nothing. A parent with a query or fragment has
/// no children.
pub fn is_sub_resource(parent: &str, child: &str) -> bool {
    if parent == child {
        return true;
    }
    let (Some((parent_root, parent_path)), Some((child_root, child_rest))) =
        (split_root(parent), split_root(child))
    else {
        return false;
    };
    if parent_root != child_root || parent_path.contains(['?', '#']) {
        return false;
    }
    let child_path = child_rest.split(['?', '#']).next().unwrap_or_default();
    let Some(below) = child_path.strip_prefix(parent_path) else {
        return false;
    };
    let at_boundary = below.starts_with('/') || (parent_path.ends_with('/') && !below.is_empty());
    at_boundary && !child_path.split('/').any(climbs)
}

/// Splits a URI into scheme with authority, and the rest.
fn split_root(uri: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = uri.split_once(':')?;
    check_scheme(scheme).ok()?;
    let authority = match rest.strip_prefix("//") {
        Some(after) => 2 + after.find(['/', '?', '#']).unwrap_or(after.len()),
        None => 0,
    };
    uri.split_at_checked(scheme.len() + 1 + authority)
}

/// Returns whether a segment means the parent directory after decoding, or cannot be decoded.
fn climbs(segment: &str) -> bool {
    decode(segment).is_none_or(|decoded| decoded.split(['/', '\\']).any(|part| part == ".."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn absolute_uris_of_every_shape_are_accepted() {
        for uri in [
            "file:///projects/app/main.rs",
            "https://user:secret@example.com:8443/a;b=1/c?d=e/f?g#h/i?",
            "urn:isbn:0451450523",
            "mailto:someone@example.com",
            "note:",
            "a+b-c.1:x",
            "http://[2001:db8::7]/c",
            "http://[::1]:80",
            "http://[v7.a:b]/",
            "http://host:/",
            "data:text/plain,%C3%A9",
        ] {
            assert_eq!(validate_uri(uri), Ok(()), "{uri}");
        }
    }

    #[test]
    fn the_error_names_the_first_offending_octet() {
        for (uri, offset, problem) in [
            ("", 0, "no scheme"),
            ("foo/bar", 7, "no scheme"),
            (":x", 0, "a scheme without a leading letter"),
            ("1a:x", 0, "a scheme without a leading letter"),
            ("a_b:x", 1, "a character that is not allowed in a scheme"),
            ("/a:b", 0, "a scheme without a leading letter"),
            ("a:b c", 3, "a character that must be percent-encoded"),
            ("a:é", 2, "a character that must be percent-encoded"),
            ("a:b\u{0}", 3, "a character that must be percent-encoded"),
            ("a:\"", 2, "a character that must be percent-encoded"),
            ("a:%", 2, "a percent sign without two hexadecimal digits"),
            ("a:%2", 2, "a percent sign without two hexadecimal digits"),
            ("a:%2x", 2, "a percent sign without two hexadecimal digits"),
            ("a:b#c#d", 5, "a second fragment"),
            ("a:b[c]", 3, "a bracket outside of the host"),
            ("a://h/[", 6, "a bracket outside of the host"),
            ("a://h]", 5, "a bracket outside of the host"),
            ("a://[::1", 4, "a bracket outside of the host"),
            ("a://[:::1]/", 5, "a malformed address in brackets"),
            ("a://[v.x]/", 5, "a malformed address in brackets"),
            ("a://[::1]x", 9, "text after the address in brackets"),
            ("a://h:8o", 6, "a port that is not a number"),
            ("a://u@[::1]:x", 12, "a port that is not a number"),
            ("a://u@v@h", 5, "a second user"),
        ] {
            assert_eq!(validate_uri(uri), Err(UriError::at(offset, problem)), "{uri}");
        }
    }

    #[test]
    fn the_message_names_the_expected_value() {
        let error = validate_uri("a:b c").unwrap_err();
        assert_eq!(error.offset(), 3);
        assert_eq!(
            error.to_string(),
            "expected an absolute URI, got a character that must be percent-encoded at byte 3"
        );
    }

    #[test]
    fn sub_resources_start_at_a_slash() {
        for (parent, child) in [
            ("note://a", "note://a"),
            ("note://a", "note://a/b"),
            ("note://a/", "note://a/b"),
            ("note://a/b", "note://a/b/c/d?e=../f"),
            ("file:///", "file:///etc"),
            ("urn:a:b", "urn:a:b/c"),
            ("note://a?b", "note://a?b"),
            ("file:///a", "file:///a/...b/..c"),
        ] {
            assert!(is_sub_resource(parent, child), "{parent} {child}");
        }
    }

    #[test]
    fn everything_else_is_not_a_sub_resource() {
        for (parent, child) in [
            ("note://a", "note://ab"),
            ("note://a/b", "note://a"),
            ("note://a/b", "note://a/bc"),
            ("note://a/", "note://a"),
            ("note://", "note://evil/b"),
            ("note:/", "note://evil/b"),
            ("note:", "note:b"),
            ("note://a", "other://a/b"),
            ("note://a?b", "note://a?b/c"),
            ("note://a#b", "note://a#b/c"),
            ("note://a", "note://a?b/c"),
            ("note://a", "note://a/../b"),
            ("note://a", "note://a/b/.."),
            ("note://a", "note://a/%2e%2E/b"),
            ("note://a", "note://a/..%2Fb"),
            ("note://a", "note://a/b%5C..%5Cc"),
            ("note://a", "note://a/%zz"),
            ("", "/b"),
            ("a", "a/b"),
        ] {
            assert!(!is_sub_resource(parent, child), "{parent} {child}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_judged_without_panic(text in ".{0,40}", other in "[a-c:/?#%.\\[\\]@é]{0,20}") {
            for uri in [&text, &other] {
                if let Err(error) = validate_uri(uri) {
                    prop_assert!(error.offset() <= uri.len());
                }
            }
            is_sub_resource(&text, &other);
            prop_assert!(is_sub_resource(&other, &other));
        }
    }

    #[test]
    fn urls_are_encrypted_or_local() {
        for safe in [
            "https://example.com",
            "HTTPS://u@example.com:8443/a",
            "http://localhost:8080/a",
            "http://LOCALHOST",
            "http://127.0.0.1/a",
            "http://127.8.9.1:80?x",
            "http://[::1]:80/",
        ] {
            assert!(is_safe_page(safe), "{safe}");
        }
        for unsafe_page in [
            "http://example.com",
            "http://localhost.example.com/",
            "http://localhost@example.com/",
            "http://127.0.0.1.example.com/",
            "http://10.0.0.1/",
            "http://0x7f.1/",
            "http://[::2]/",
            "http:///a",
            "ftp://localhost/",
            "localhost",
        ] {
            assert!(!is_safe_page(unsafe_page), "{unsafe_page}");
        }
    }
}
