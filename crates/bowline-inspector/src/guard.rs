//! Checks where a request comes from before anything is read, and sets the headers of every reply.

use bowline_http::{Authority, Body};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, header, request::Parts};

/// What a path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The shell, which contains no data.
    Shell,
    /// The document that exchanges a code. It is the only one that another page may lead to, and it shows nothing.
    Open,
    /// Scripts and styles.
    Asset,
    /// Everything that needs a key or a code.
    Api,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    BadHost,
    ForeignHost,
    ForeignOrigin,
    ForeignSite,
}

impl Refusal {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::BadHost => "expected exactly one `Host` header with a host and an optional port",
            Self::ForeignHost => "the inspector answers for `127.0.0.1`, `localhost` and `[::1]` only",
            Self::ForeignOrigin => "pages of other origins cannot use the inspector",
            Self::ForeignSite => "another page led here; paste this address into the address bar",
        }
    }
}

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Checks a request. Hosts and origins of the gateway's configuration do not count here.
pub(crate) fn check(parts: &Parts, place: Place) -> Result<(), Refusal> {
    let headers = &parts.headers;
    // A hostile name that resolves to this machine is not a name of this machine.
    let host = Authority::of_request(&parts.uri, headers).ok_or(Refusal::BadHost)?;
    if !host.is_loopback() {
        return Err(Refusal::ForeignHost);
    }
    let is_navigation = parts.method == Method::GET && one(headers, &FETCH_DEST) == Some("document");
    let may_lead_here = place == Place::Open && is_navigation;
    match single(headers, &header::ORIGIN) {
        None if headers.contains_key(header::ORIGIN) => return Err(Refusal::ForeignOrigin),
        None => {}
        Some(origin) => {
            let authority = origin.strip_prefix("http://").and_then(Authority::parse);
            if !authority.is_some_and(|origin| origin.is(&host, 80)) {
                return Err(Refusal::ForeignOrigin);
            }
        }
    }
    if !headers.contains_key(FETCH_SITE) {
        return Ok(());
    }
    match (one(headers, &FETCH_SITE), place) {
        (Some("same-origin"), _) | (Some("none"), Place::Shell | Place::Open) => Ok(()),
        _ if may_lead_here => Ok(()),
        _ => Err(Refusal::ForeignSite),
    }
}

/// Returns the only value of a header.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    single(headers, name)
}

/// Scripts and styles of this origin, no inline code, no sink for text, no frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src blob:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// Adds the headers that every reply has.
pub(crate) fn protect(response: &mut Response<Body>) {
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    set(header::X_FRAME_OPTIONS, "DENY");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(
        HeaderName::from_static("permissions-policy"),
        "camera=(), display-capture=(), geolocation=(), hid=(), microphone=(), midi=(), payment=(), serial=(), usb=()",
    );
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn verdict(place: Place, headers: &[(&str, &str)]) -> Result<(), Refusal> {
        let mut request = Request::get("/");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check(&request.body(()).unwrap().into_parts().0, place)
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for host in ["127.0.0.1:7338", "localhost:1", "LOCALHOST", "[::1]:7338"] {
            assert_eq!(verdict(Place::Api, &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "0.0.0.0:7338",
            "localhost.",
            "127.1",
            "[::ffff:127.0.0.1]",
        ] {
            assert_eq!(verdict(Place::Shell, &[("host", host)]), Err(Refusal::ForeignHost), "{host}");
        }
        for headers in [&[][..], &[("host", "a@127.0.0.1")], &[("host", "localhost"), ("host", "localhost")]]
        {
            assert_eq!(verdict(Place::Shell, headers), Err(Refusal::BadHost), "{headers:?}");
        }
    }

    #[test]
    fn only_this_origin_reaches_anything() {
        let host = ("host", "127.0.0.1:7338");
        assert_eq!(verdict(Place::Api, &[host, ("origin", "http://127.0.0.1:7338")]), Ok(()));
        for origin in [
            "http://127.0.0.1:7337",
            "https://127.0.0.1:7338",
            "http://localhost:7338",
            "null",
            "http://evil.example",
            "",
        ] {
            for place in [Place::Api, Place::Asset, Place::Shell, Place::Open] {
                assert_eq!(
                    verdict(place, &[host, ("origin", origin)]),
                    Err(Refusal::ForeignOrigin),
                    "{origin}"
                );
            }
        }
    }

    #[test]
    fn a_foreign_link_opens_only_open() {
        let host = ("host", "127.0.0.1:7338");
        let document = ("sec-fetch-dest", "document");
        for site in ["cross-site", "same-site"] {
            let site = ("sec-fetch-site", site);
            assert_eq!(verdict(Place::Open, &[host, site, document]), Ok(()));
            assert_eq!(
                verdict(Place::Open, &[host, site, ("sec-fetch-dest", "iframe")]),
                Err(Refusal::ForeignSite)
            );
            for place in [Place::Shell, Place::Asset, Place::Api] {
                assert_eq!(verdict(place, &[host, site, document]), Err(Refusal::ForeignSite), "{place:?}");
            }
        }
        assert_eq!(verdict(Place::Shell, &[host, ("sec-fetch-site", "none")]), Ok(()));
        assert_eq!(verdict(Place::Api, &[host, ("sec-fetch-site", "none")]), Err(Refusal::ForeignSite));
        assert_eq!(verdict(Place::Api, &[host, ("sec-fetch-site", "same-origin")]), Ok(()));
    }
}
