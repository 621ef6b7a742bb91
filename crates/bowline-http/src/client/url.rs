//! URLs of servers: origins, and resolving references.

use bowline_proto::uri::mask_user;
use http::{Uri, uri::Authority};

/// Reads the URL of a server.
pub(super) fn parse(text: &str) -> Result<Uri, String> {
    let unfit = |reason: &str| format!("expected the URL of a server, got `{}`: {reason}", mask_user(text));
    let uri = Uri::try_from(text).map_err(|error| unfit(&error.to_string()))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(unfit("it begins with neither `http://` nor `https://`"));
    }
    let Some(authority) = uri.authority() else { return Err(unfit("it has no host")) };
    if authority.as_str().contains('@') {
        return Err(unfit("credentials are not allowed in the URL"));
    }
    if authority.host().is_empty() {
        return Err(unfit("it has no host"));
    }
    Ok(uri)
}

/// Returns whether scheme, host and port are the same.
pub(super) fn is_same_origin(one: &Uri, other: &Uri) -> bool {
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    one.scheme() == other.scheme() && host(one) == host(other) && port(one) == port(other)
}

/// Returns the port, explicit or default.
pub(super) fn port(uri: &Uri) -> u16 {
    let implied = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    uri.port_u16().unwrap_or(implied)
}

/// Resolves `reference` against `base`.
pub(super) fn resolve(base: &Uri, reference: &str) -> Result<Uri, String> {
    let reference = reference.trim();
    let reference = reference.split('#').next().unwrap_or_default();
    if has_scheme(reference) {
        return parse(reference);
    }
    let scheme = base.scheme_str().unwrap_or("http");
    if reference.starts_with("//") {
        return parse(&format!("{scheme}:{reference}"));
    }
    let origin = format!("{scheme}://{}", base.authority().map_or("", Authority::as_str));
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (reference, None),
    };
    let (path, query) = match path {
        "" => (base.path().to_owned(), query.or_else(|| base.query())),
        _ if path.starts_with('/') => (path.to_owned(), query),
        _ => {
            let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            (format!("{folder}/{path}"), query)
        }
    };
    let mut url = format!("{origin}{}", without_dots(&path));
    if let Some(query) = query {
        url.push('?');
        url.push_str(query);
    }
    parse(&url)
}

fn has_scheme(reference: &str) -> bool {
    reference.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

/// Removes `.` and `..` segments from a path.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            _ => {
                kept.push(segment);
                continue;
            }
        }
        if is_last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_urls_are_accepted() {
        for url in ["http://localhost:8080/mcp", "https://example.com", "HTTP://h/", "http://[::1]:9/mcp?x=1"]
        {
            assert!(parse(url).is_ok(), "{url}");
        }
        for url in
            ["", "localhost:8080", "ftp://h/", "/mcp", "http://", "http://user:secret@h/", "http:///mcp"]
        {
            let error = parse(url).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |one: &str, other: &str| is_same_origin(&parse(one).unwrap(), &parse(other).unwrap());
        assert!(same("http://h/a", "http://H:80/b?c"));
        assert!(same("https://h:443/a", "https://h"));
        assert!(!same("http://h/", "https://h/"));
        assert!(!same("http://h/", "http://h:8080/"));
        assert!(!same("http://h/", "http://h.evil.com/"));
    }

    #[test]
    fn references_are_resolved() {
        let base = parse("http://h:1/a/b?q=1").unwrap();
        for (reference, expected) in [
            ("/m?s=1", "http://h:1/m?s=1"),
            ("m", "http://h:1/a/m"),
            ("./m/../n?x", "http://h:1/a/n?x"),
            ("../../..", "http://h:1/"),
            ("?s=2", "http://h:1/a/b?s=2"),
            ("", "http://h:1/a/b?q=1"),
            ("#top", "http://h:1/a/b?q=1"),
            ("//other/m", "http://other/m"),
            ("https://other/m", "https://other/m"),
            (" /m ", "http://h:1/m"),
        ] {
            assert_eq!(resolve(&base, reference).unwrap().to_string(), expected, "{reference}");
        }
        assert!(resolve(&base, "javascript:alert(1)").is_err());
        assert!(resolve(&base, "http://user@h:1/").is_err());
    }
}
