//! Getting things from the web: every hop checked, everything bounded.

use super::{
    guard::Guard,
    robots::{Robots, Rules},
};
use bowline::{
    http::{PostAnswer, Poster, Proxy, Reference},
    server::BoxFuture,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri, header, uri::PathAndQuery};
use std::time::Duration;

/// How often one may be sent elsewhere.
const MAX_HOPS: usize = 5;

/// How much may be got, and from where.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) guard: Guard,
    pub(super) proxy: Option<Proxy>,
    pub(super) max_bytes: usize,
    pub(super) time_limit: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            guard: Guard::default(),
            proxy: None,
            max_bytes: 5 * 1024 * 1024,
            time_limit: Duration::from_secs(30),
        }
    }
}

/// Where redirections may lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follow {
    /// Anywhere that may be reached at all.
    Anywhere,
    /// To the same origin, because what the request carries is for nobody else.
    SameOrigin,
    /// Nowhere: what came back leads elsewhere, and is given as it is.
    Nowhere,
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) follow: Follow,
}

/// What came back, and from where in the end.
#[derive(Clone, Debug)]
pub(super) struct Got {
    pub(super) url: String,
    pub(super) answer: PostAnswer,
}

/// Sends requests by the settings. Clones share their connections.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    poster: Poster,
    guard: Guard,
    time_limit: Duration,
    /// What sites ask of programs, if that is honored.
    robots: Option<Robots>,
}

impl Visitor {
    pub(super) fn new(settings: &Settings) -> Self {
        let mut poster = Poster::new().max_answer(settings.max_bytes).resolver(settings.guard.clone());
        if let Some(proxy) = &settings.proxy {
            poster = poster.proxy(proxy.clone());
        }
        Self { poster, guard: settings.guard.clone(), time_limit: settings.time_limit, robots: None }
    }

    /// Leaves out what the `robots.txt` of a site asks programs not to read.
    pub(super) fn honor_robots(mut self) -> Self {
        self.robots = Some(Robots::default());
        self
    }

    /// Sends a request, and goes where the answer leads.
    pub(super) async fn send(&self, asking: Asking) -> Result<Got, String> {
        match tokio::time::timeout(self.time_limit, self.hops(asking)).await {
            Ok(got) => got,
            Err(_) => Err(format!("no answer within {:?}", self.time_limit)),
        }
    }

    async fn hops(&self, mut asking: Asking) -> Result<Got, String> {
        let agent = HeaderValue::from_static(concat!("bowline/", env!("CARGO_PKG_VERSION")));
        asking.headers.entry(header::USER_AGENT).or_insert(agent);
        for _ in 0..=MAX_HOPS {
            self.guard.check(&asking.url)?;
            if let Some(robots) = &self.robots {
                self.check_robots(robots, &asking.url).await?;
            }
            let sent = self
                .poster
                .send(asking.method.clone(), &asking.url, asking.headers.clone(), asking.body.clone())
                .await;
            let answer = sent.map_err(|error| error.to_string())?;
            let to = match asking.follow {
                Follow::Nowhere => None,
                Follow::Anywhere | Follow::SameOrigin => {
                    answer.redirect(&asking.url).map_err(|error| error.to_string())?
                }
            };
            let Some(to) = to else { return Ok(Got { url: asking.url, answer }) };
            if asking.follow == Follow::SameOrigin && !to.is_same_origin {
                return Err(
                    "redirected to another origin, which is not followed: what is sent is for the first one"
                        .into(),
                );
            }
            asking.url = to.url;
        }
        Err(format!("redirected more than {MAX_HOPS} times"))
    }

    /// Fails if the site asks programs not to read this page.
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
        Err(format!(
            "`{file}` asks programs not to read `{url}`; start the server with `--ignore-robots` to fetch it anyway"
        ))
    }

    /// The rules of a site. One without a file allows everything; one that fails to answer, nothing.
    fn rules<'a>(&'a self, file: &'a str) -> BoxFuture<'a, Rules> {
        Box::pin(async move {
            let asking = Asking {
                method: Method::GET,
                url: file.into(),
                headers: HeaderMap::new(),
                body: Bytes::new(),
                follow: Follow::SameOrigin,
            };
            let visitor = Self { robots: None, ..self.clone() };
            match visitor.hops(asking).await {
                Ok(Got { answer, .. }) if answer.status.is_success() => Rules::parse(&answer.body),
                Ok(Got { answer, .. }) if answer.status.is_server_error() => Rules::nothing(),
                // What cannot be reached says why when the page is asked for.
                Ok(_) | Err(_) => Rules::default(),
            }
        })
    }
}

/// The type of what came back, in lower case and without its parameters, and its character set.
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

/// Whether a type is one of JSON.
pub(super) fn is_json(kind: &str) -> bool {
    kind == "application/json" || kind.ends_with("+json")
}

/// The body as text.
pub(super) fn text(answer: &PostAnswer, charset: Option<&str>) -> Result<String, String> {
    if let Some(encoding) = answer.headers.get(header::CONTENT_ENCODING)
        && encoding != "identity"
    {
        return Err("expected a body as it is, got one that was compressed without being asked".into());
    }
    let body = answer.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&answer.body);
    match charset {
        // The first 256 characters are those of Latin 1.
        Some("iso-8859-1" | "latin1" | "windows-1252") if std::str::from_utf8(body).is_err() => {
            Ok(body.iter().copied().map(char::from).collect())
        }
        _ => Ok(String::from_utf8_lossy(body).into_owned()),
    }
}
