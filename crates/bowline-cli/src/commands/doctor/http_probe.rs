//! Probes the HTTP behavior of a server with invalid and hostile requests.

use super::facts::{HttpFacts, HttpProbe, HttpProbeKind};
use bowline_http::{HttpTarget, PostError};
use bowline_types::{Revision, meta};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::{Value, json};
use std::{net::IpAddr, time::Duration};
use tokio::time::timeout;

/// A host that no server trusts.
const FOREIGN_HOST: &str = "bowline-doctor.invalid";
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// Probes the server once per revision.
pub(super) async fn gather(page: &HttpTarget, revisions: &[Revision], timeout: Duration) -> Vec<HttpFacts> {
    let mut facts = Vec::new();
    for revision in revisions {
        facts.push(probe(page, *revision, timeout).await);
    }
    facts
}

async fn probe(page: &HttpTarget, revision: Revision, timeout: Duration) -> HttpFacts {
    let prober = Prober { page, revision, timeout };
    let session = prober.open().await;
    let opening = prober.opening();
    let mut probes = Vec::new();
    let origin = format!("https://{FOREIGN_HOST}");
    let posts = [
        (HttpProbeKind::ForeignOrigin, vec![("origin", origin.as_str())], &*opening),
        (HttpProbeKind::ForeignHost, vec![("host", FOREIGN_HOST)], &*opening),
        (HttpProbeKind::PlainText, vec![("content-type", "text/plain")], &*opening),
        (HttpProbeKind::WrongAccept, vec![("accept", "image/png")], &*opening),
        (
            HttpProbeKind::WrongVersion,
            [vec![(VERSION, "1999-01-01")], named(session.as_deref())].concat(),
            &*prober.ping(),
        ),
        (HttpProbeKind::NotJson, vec![], "{"),
    ];
    for (kind, headers, body) in posts {
        probes.push(prober.probe(kind, Method::POST, &headers, body).await);
    }
    if revision.is_legacy() && session.is_some() {
        let unknown = [(SESSION, "bowline-doctor-unknown"), (VERSION, revision.as_str())];
        probes
            .push(prober.probe(HttpProbeKind::UnknownSession, Method::POST, &unknown, &prober.ping()).await);
        probes.push(prober.probe(HttpProbeKind::DeleteUnknownSession, Method::DELETE, &unknown, "").await);
    }
    let get = [named(session.as_deref()), vec![("accept", "text/event-stream")]].concat();
    probes.push(prober.probe(HttpProbeKind::Get, Method::GET, &get, "").await);
    if let Some(session) = &session {
        // Close the session; the response does not matter.
        prober.send(Method::DELETE, &named(Some(session)), "").await.ok();
    }
    HttpFacts { local: is_local(page.url()), session, probes }
}

struct Prober<'a> {
    page: &'a HttpTarget,
    revision: Revision,
    timeout: Duration,
}

impl Prober<'_> {
    /// Returns the first request of a session.
    fn opening(&self) -> String {
        let client = json!({ "name": "bowline", "version": env!("CARGO_PKG_VERSION") });
        if self.revision.is_modern() {
            return self.request("server/discover", json!({}));
        }
        self.request(
            "initialize",
            json!({ "protocolVersion": self.revision, "capabilities": {}, "clientInfo": client }),
        )
    }

    /// Returns a request without side effects.
    fn ping(&self) -> String {
        self.request(if self.revision.is_modern() { "server/discover" } else { "ping" }, json!({}))
    }

    fn request(&self, method: &str, mut params: Value) -> String {
        if self.revision.is_modern() {
            params["_meta"] = json!({
                meta::key::PROTOCOL_VERSION: self.revision,
                meta::key::CLIENT_CAPABILITIES: {},
                meta::key::CLIENT_INFO: { "name": "bowline", "version": env!("CARGO_PKG_VERSION") },
            });
        }
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
    }

    /// Opens a session and returns its id, if any.
    async fn open(&self) -> Option<String> {
        let answer = self.send(Method::POST, &[], &self.opening()).await.ok()?;
        answer.get(SESSION).and_then(|session| session.to_str().ok()).map(str::to_owned)
    }

    async fn probe(
        &self,
        kind: HttpProbeKind,
        method: Method,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> HttpProbe {
        let text =
            |headers: &HeaderMap, name: HeaderName| headers.get(name)?.to_str().ok().map(str::to_owned);
        match self.answer(method, headers, body).await {
            Ok((status, headers)) => HttpProbe {
                kind,
                status: Ok(status),
                content_type: text(&headers, header::CONTENT_TYPE),
                allowed_origin: text(&headers, header::ACCESS_CONTROL_ALLOW_ORIGIN),
            },
            Err(reason) => HttpProbe { kind, status: Err(reason), content_type: None, allowed_origin: None },
        }
    }

    async fn send(
        &self,
        method: Method,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> Result<HeaderMap, String> {
        self.answer(method, headers, body).await.map(|(_, headers)| headers)
    }

    async fn answer(
        &self,
        method: Method,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> Result<(u16, HeaderMap), String> {
        let mut all = HeaderMap::new();
        all.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        all.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if self.revision.is_modern() {
            all.insert(VERSION, HeaderValue::from_static(self.revision.as_str()));
            all.insert("mcp-method", HeaderValue::from_static("server/discover"));
        }
        for (name, value) in headers {
            let value = HeaderValue::from_str(value).map_err(|error| error.to_string())?;
            all.insert(HeaderName::from_static(name), value);
        }
        let sent = self.page.probe(method, all, Bytes::from(body.to_owned()));
        match timeout(self.timeout, sent).await {
            Ok(Ok(answer)) => Ok((answer.status.as_u16(), answer.headers)),
            Ok(Err(error)) => Err(PostError::to_string(&error)),
            Err(_) => Err(format!("no response within {} s", self.timeout.as_secs())),
        }
    }
}

/// Returns the session header.
fn named(session: Option<&str>) -> Vec<(&'static str, &str)> {
    session.map(|session| (SESSION, session)).into_iter().collect()
}

/// Returns whether a URL addresses this machine or a private network, which web pages could reach through a browser.
fn is_local(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private() || address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn local_addresses_are_recognized() {
        for (url, local) in [
            ("http://127.0.0.1:80/mcp", true),
            ("http://LOCALHOST/mcp", true),
            ("http://[::1]:3000/", true),
            ("http://192.168.0.7/", true),
            ("https://tools.example.com/mcp", false),
            ("https://8.8.8.8/", false),
        ] {
            assert_eq!(is_local(url), local, "{url}");
        }
    }
}
