//! The HTTP client: checks every redirect and limits size and time.

use super::{
    guard::Guard,
    robots::{Robots, Rules},
};
use bowline::{
    http::Proxy,
    server::BoxFuture,
    unstable::http::{PostAnswer, Poster, Reference},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri, header, uri::PathAndQuery};
use std::time::Duration;

/// The maximum number of redirects.
const MAX_HOPS: usize = 5;

/// Limits and allowed addresses.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) guard: Guard,
    pub(super) proxy: Proxy,
    pub(super) max_bytes: usize,
    pub(super) time_limit: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            guard: Guard::default(),
            proxy: Proxy::default(),
            max_bytes: 5 * 1024 * 1024,
            time_limit: Duration::from_secs(30),
        }
    }
}

/// Which redirects are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follow {
    /// All allowed addresses.
    Anywhere,
    /// Only the same origin, because the request carries credentials.
    SameOrigin,
    /// None: the redirect response is returned.
    Nowhere,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct FetchRequest {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) follow: Follow,
}

/// A response and its final URL.
#[derive(Clone, Debug)]
pub(super) struct FetchResponse {
    pub(super) url: String,
    pub(super) answer: PostAnswer,
}

/// Sends requests. Clones share connections.
#[derive(Clone, Debug)]
pub(super) struct HttpClient {
    poster: Poster,
    guard: Guard,
    time_limit: Duration,
    /// The `robots.txt` cache, unless ignored.
    robots: Option<Robots>,
}

impl HttpClient {
    pub(super) fn new(settings: &Settings) -> Self {
        let poster = Poster::new()
            .max_answer(settings.max_bytes)
            .resolver(settings.guard.clone())
            .proxy(settings.proxy.clone());
        Self { poster, guard: settings.guard.clone(), time_limit: settings.time_limit, robots: None }
    }

    /// Honors `robots.txt`.
    pub(super) fn honor_robots(mut self) -> Self {
        self.robots = Some(Robots::default());
        self
    }

    /// Sends a request and follows redirects.
    pub(super) async fn send(&self, request: FetchRequest) -> Result<FetchResponse, String> {
        match tokio::time::timeout(self.time_limit, self.hops(request)).await {
            Ok(got) => got,
            Err(_) => Err(format!("request timed out after {:?}", self.time_limit)),
        }
    }

    async fn hops(&self, mut request: FetchRequest) -> Result<FetchResponse, String> {
        let agent = HeaderValue::from_static(concat!("bowline/", env!("CARGO_PKG_VERSION")));
        request.headers.entry(header::USER_AGENT).or_insert(agent);
        for _ in 0..=MAX_HOPS {
            self.guard.check(&request.url)?;
            if let Some(robots) = &self.robots {
                self.check_robots(robots, &request.url).await?;
            }
            let sent = self
                .poster
                .send(request.method.clone(), &request.url, request.headers.clone(), request.body.clone())
                .await;
            let answer = sent.map_err(|error| error.to_string())?;
            let to = match request.follow {
                Follow::Nowhere => None,
                Follow::Anywhere | Follow::SameOrigin => {
                    answer.redirect(&request.url).map_err(|error| error.to_string())?
                }
            };
            let Some(to) = to else { return Ok(FetchResponse { url: request.url, answer }) };
            if request.follow == Follow::SameOrigin && !to.is_same_origin {
                return Err(
                    "redirect to another origin not followed, because the request carries credentials".into(),
                );
            }
            request.url = to.url;
        }
        Err(format!("more than {MAX_HOPS} redirects"))
    }

    /// Fails if `robots.txt` disallows the URL.
    async fn check_robots(&self, robots: &Robots, url: &str) -> Result<(), String> {
        let file = Reference::resolve(url, "/robots.txt").map_err(|error| error.to_string())?.url;
        let rules = match robots.known(&file) {
            Some(rules) => rules,
            None => robots.remember(file.clone(), self.rules(&file).await),
        };
        let uri = Uri::try_from(url).map_err(|error| error.to_string())?;
        if rules.allows(uri.path_and_query().map_or("/", PathAndQuery::as_str)) {
            return Ok(());
        }
        Err(format!("`{file}` disallows `{url}`; start the server with `--ignore-robots` to fetch it anyway"))
    }

    /// Returns the rules of a site. A missing file allows everything; a server error disallows everything.
    fn rules<'a>(&'a self, file: &'a str) -> BoxFuture<'a, Rules> {
        Box::pin(async move {
            let request = FetchRequest {
                method: Method::GET,
                url: file.into(),
                headers: HeaderMap::new(),
                body: Bytes::new(),
                follow: Follow::SameOrigin,
            };
            let client = Self { robots: None, ..self.clone() };
            match client.hops(request).await {
                Ok(FetchResponse { answer, .. }) if answer.status.is_success() => Rules::parse(&answer.body),
                Ok(FetchResponse { answer, .. }) if answer.status.is_server_error() => Rules::nothing(),
                // If the site is unreachable, fetching the page reports it.
                Ok(_) | Err(_) => Rules::default(),
            }
        })
    }
}

/// Returns the content type in lower case without parameters, and the character set.
pub(super) fn content_type(answer: &PostAnswer) -> (String, Option<String>) {
    let value =
        answer.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = value.split(';');
    let kind = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| value.trim().trim_matches('"').to_ascii_lowercase())
    });
    (kind, charset)
}

/// Returns whether a content type is JSON.
pub(super) fn is_json(kind: &str) -> bool {
    kind == "application/json" || kind.ends_with("+json")
}

/// Decodes the body as text.
pub(super) fn text(answer: &PostAnswer, charset: Option<&str>) -> Result<String, String> {
    if let Some(encoding) = answer.headers.get(header::CONTENT_ENCODING)
        && encoding != "identity"
    {
        return Err("the server sent a compressed body without being asked".into());
    }
    let body = answer.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&answer.body);
    match charset {
        // The first 256 Unicode characters are Latin-1.
        Some("iso-8859-1" | "latin1" | "windows-1252") if std::str::from_utf8(body).is_err() => {
            Ok(body.iter().copied().map(char::from).collect())
        }
        _ => Ok(String::from_utf8_lossy(body).into_owned()),
    }
}
