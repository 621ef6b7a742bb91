//! The URIs under which callers see the resources of all servers.
//!
//! A URI stays as it is, unless two servers have it. Then each of them is shown with its server's name before the scheme:
//! `notes+file:///a.txt`. So no server takes a URI from another by listing it.

use std::fmt::Write as _;

/// Prefixes the scheme of a URI with the name of its server.
pub(crate) fn prefixed(server: &str, uri: &str) -> String {
    format!("{}+{uri}", scheme_part(server))
}

/// Returns the original of a URI that was prefixed with the name of `server`.
pub(crate) fn without_prefix<'a>(server: &str, uri: &'a str) -> Option<&'a str> {
    uri.strip_prefix(&*scheme_part(server))?.strip_prefix('+')
}

/// Returns the server's name as part of a scheme, which starts with a letter and allows few special characters.
fn scheme_part(server: &str) -> String {
    let mut part = String::from("s-");
    for byte in server.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() {
            part.push(char::from(byte));
        } else {
            // Schemes are compared without case, so that upper case is written out as well.
            let _ = write!(part, ".{byte:02x}");
        }
    }
    match part.strip_prefix("s-") {
        Some(rest) if rest.starts_with(|first: char| first.is_ascii_lowercase()) => rest.to_owned(),
        _ => part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_part_of_the_scheme_and_is_removed_again() {
        for (server, shown) in
            [("notes", "notes+file:///a"), ("My Notes", "s-.4dy.20.4eotes+file:///a"), ("7", "s-7+file:///a")]
        {
            assert_eq!(prefixed(server, "file:///a"), shown);
            assert_eq!(without_prefix(server, shown), Some("file:///a"));
            assert_eq!(bowline_proto::uri::validate_uri(shown).map_err(|error| error.to_string()), Ok(()));
        }
        assert_eq!(without_prefix("note", "notes+file:///a"), None);
        assert_eq!(without_prefix("notes", "file:///a"), None);
    }
}
