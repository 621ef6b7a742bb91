//! Fetches the keys of issuers and verifies tokens with them.

use super::Protect;
use crate::{
    PostAnswer, Poster,
    auth::{LearnedHosts, Networks},
};
use bowline_auth::{
    Issuer, Refusal, Verdict, Verify,
    jose::{KeySet, MAX_KEY_SET},
    verify::{Expected, Issuers, Jwt, KeyCache, Plan, Unsigned, Verification, check_source, read_jwks_uri},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::{
    fmt,
    io::Read as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, task::JoinSet};

/// The metadata of an issuer is at most this long, in bytes.
const MAX_METADATA: usize = 1024 * 1024;
/// How long one document may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often a request for a document may be redirected, within its origin.
const MAX_REDIRECTS: usize = 3;

impl Protect {
    /// Accepts tokens of an issuer. Its metadata says where its keys are, and they are fetched again as they change.
    ///
    /// The issuer is written exactly as in its metadata and its tokens: a final slash makes another one.
    ///
    /// ```
    /// use bowline_http::{HttpOptions, Protect};
    ///
    /// let protect = Protect::by("https://login.example.com")
    ///     .resource("https://notes.example.com/mcp")
    ///     .scopes(["notes:read"]);
    /// let options = HttpOptions::new().hosts(["notes.example.com"]).protect(protect);
    /// ```
    pub fn by(issuer: impl Into<String>) -> Self {
        Self::by_any([issuer])
    }

    /// Accepts tokens of several issuers, each with its own keys.
    pub fn by_any<I: IntoIterator<Item: Into<String>>>(issuers: I) -> Self {
        let names: Vec<String> = issuers.into_iter().map(Into::into).collect();
        let mut verifiers = Issuers::new();
        // `build` reports the names that are not issuers.
        for issuer in names.iter().filter_map(|name| Issuer::new(name).ok()) {
            verifiers = verifiers.with(issuer.clone(), IssuerKeys::new(Jwt::new(issuer), Jwks::discover()));
        }
        Self::with(verifiers, names)
    }

    /// Accepts tokens of an issuer, with keys from a file or a URL. Its metadata is not read.
    ///
    /// ```
    /// use bowline_http::{Jwks, Protect};
    ///
    /// let protect = Protect::keys("https://login.example.com", Jwks::file("keys.json"));
    /// ```
    pub fn keys(issuer: impl Into<String>, keys: Jwks) -> Self {
        let name = issuer.into();
        match Issuer::new(&name) {
            Ok(issuer) => Self::with(IssuerKeys::new(Jwt::new(issuer), keys), [name]),
            Err(_) => Self::with(Issuers::new(), [name]),
        }
    }
}

/// Where the keys of an issuer are.
#[derive(Clone, Debug)]
pub struct Jwks(Source);

#[derive(Clone, Debug)]
enum Source {
    Metadata,
    Url(String),
    File(PathBuf),
    Fixed(KeySet),
}

impl Jwks {
    /// Finds the keys through the metadata of the issuer.
    #[must_use]
    pub fn discover() -> Self {
        Self(Source::Metadata)
    }

    /// Fetches the keys from a URL: `https`, or a loopback address if the issuer is at one.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self(Source::Url(url.into()))
    }

    /// Reads the keys from a file. It is read again like keys from a URL, so it can be replaced while the server runs.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(Source::File(path.into()))
    }

    /// Uses these keys and never fetches others.
    #[must_use]
    pub fn fixed(keys: KeySet) -> Self {
        Self(Source::Fixed(keys))
    }
}

/// Verifies tokens of one issuer and fetches its keys when needed.
///
/// Requests that need the same keys share one fetch. Old keys are used while new ones are fetched, and for a day if the issuer
/// cannot be reached. A token with an unknown key causes at most one fetch in 30 seconds.
pub struct IssuerKeys {
    shared: Arc<Shared>,
    /// Aborts a fetch that is running when the verifier is dropped.
    fetches: Mutex<JoinSet<()>>,
}

struct Shared {
    jwt: Jwt,
    source: Source,
    poster: Poster,
    /// The rules for URLs in the metadata of the issuer.
    hosts: Option<LearnedHosts>,
    state: Mutex<State>,
    /// The generation of the keys, to be read without the lock.
    generation: AtomicU64,
}

#[derive(Default)]
struct State {
    cache: KeyCache,
    /// Closes when the fetch that is running ends.
    running: Option<watch::Receiver<()>>,
}

impl IssuerKeys {
    /// Verifies tokens by the rules of `jwt`, with keys from `keys`.
    #[must_use]
    pub fn new(jwt: Jwt, keys: Jwks) -> Self {
        match &keys.0 {
            Source::Metadata => {
                // The operator chose the issuer, which may be in a private network, but not where its metadata leads to.
                let hosts = LearnedHosts::new(jwt.issuer().as_str(), Networks::Desktop);
                Self::build(jwt, keys, Poster::new().resolver(hosts.clone()), Some(hosts))
            }
            Source::Url(_) | Source::File(_) | Source::Fixed(_) => {
                Self::with_poster(jwt, keys, Poster::new())
            }
        }
    }

    /// Fetches documents with `poster`, which may use a proxy, trust other certificates or restrict addresses.
    #[must_use]
    pub fn with_poster(jwt: Jwt, keys: Jwks, poster: Poster) -> Self {
        Self::build(jwt, keys, poster, None)
    }

    fn build(jwt: Jwt, keys: Jwks, poster: Poster, hosts: Option<LearnedHosts>) -> Self {
        let state = Mutex::default();
        let shared = Shared { jwt, source: keys.0, poster, hosts, state, generation: AtomicU64::new(0) };
        Self { shared: Arc::new(shared), fetches: Mutex::default() }
    }

    /// Verifies with the keys at hand, or returns the fetch to wait for.
    fn try_verify(
        &self,
        token: &Unsigned<'_>,
        expected: Expected<'_>,
    ) -> Result<Verdict, watch::Receiver<()>> {
        let mut state = lock(&self.shared.state);
        let keys = match state.cache.plan(expected.now) {
            Plan::Use(keys) => keys,
            Plan::UseAndFetch(keys) => {
                self.fetch(&mut state, expected.now);
                keys
            }
            Plan::Fetch => return Err(self.fetch(&mut state, expected.now)),
            Plan::Unavailable => return state.running().ok_or_else(unavailable).map_or_else(Ok, Err),
        };
        drop(state);
        if let Some(verdict) = token.verify_with(&keys, expected) {
            return Ok(verdict);
        }
        let mut state = lock(&self.shared.state);
        match state.running() {
            Some(running) => Err(running),
            None if state.cache.may_fetch_unknown(expected.now) => Err(self.fetch(&mut state, expected.now)),
            None => Ok(unknown_key()),
        }
    }

    /// Starts a fetch, or joins the one that is running.
    fn fetch(&self, state: &mut State, now: u64) -> watch::Receiver<()> {
        if let Some(running) = state.running() {
            return running;
        }
        state.cache.start(now);
        let (ended, running) = watch::channel(());
        state.running = Some(running.clone());
        let shared = Arc::clone(&self.shared);
        let mut fetches = lock(&self.fetches);
        while fetches.try_join_next().is_some() {}
        fetches.spawn(async move {
            shared.refresh(now).await;
            drop(ended);
        });
        running
    }
}

impl State {
    fn running(&self) -> Option<watch::Receiver<()>> {
        self.running.clone().filter(|running| running.has_changed().is_ok())
    }
}

impl Shared {
    async fn refresh(&self, now: u64) {
        let issuer = self.jwt.issuer();
        match self.load().await {
            Ok((keys, cache_control)) => {
                for reason in keys.skipped() {
                    tracing::debug!(%issuer, %reason, "skipped a key of the issuer");
                }
                if keys.is_empty() {
                    tracing::warn!(%issuer, "the issuer publishes no usable key; all its tokens are refused");
                }
                let mut state = lock(&self.state);
                state.cache.store(keys, cache_control.as_deref(), now);
                self.generation.store(state.cache.generation(), Ordering::Release);
            }
            Err(reason) => tracing::warn!(%issuer, %reason, "cannot fetch the keys of the issuer"),
        }
    }

    /// Returns the keys, and the header `Cache-Control` that came with them.
    async fn load(&self) -> Result<(KeySet, Option<String>), String> {
        match &self.source {
            Source::Fixed(keys) => Ok((keys.clone(), None)),
            Source::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read_file(&path)).await;
                Ok((parse(&read.map_err(|error| error.to_string())??)?, None))
            }
            Source::Url(url) => self.load_from(url).await,
            Source::Metadata => {
                let issuer = self.jwt.issuer();
                for url in issuer.metadata_urls() {
                    let answer = self.get(&url, MAX_METADATA).await?;
                    if let Some(url) = read_jwks_uri(issuer, answer.status.as_u16(), &answer.body)? {
                        return self.load_from(&url).await;
                    }
                }
                Err(format!("{issuer} publishes no metadata"))
            }
        }
    }

    async fn load_from(&self, url: &str) -> Result<(KeySet, Option<String>), String> {
        let answer = self.get(url, MAX_KEY_SET).await?;
        if answer.status != StatusCode::OK {
            return Err(format!("{url} answered with status {}", answer.status.as_u16()));
        }
        let cache_control = answer.headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok());
        Ok((parse(&answer.body)?, cache_control.map(str::to_owned)))
    }

    async fn get(&self, url: &str, limit: usize) -> Result<PostAnswer, String> {
        let mut url = url.to_owned();
        let poster = self.poster.clone().max_answer(limit);
        for _ in 0..=MAX_REDIRECTS {
            check_source(self.jwt.issuer(), &url)?;
            if let Some(hosts) = &self.hosts {
                hosts.check(&url)?;
            }
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
            let answer =
                tokio::time::timeout(TIMEOUT, poster.send(Method::GET, &url, headers, Bytes::new())).await;
            let answer =
                answer.map_err(|_| format!("{url} did not answer within {} s", TIMEOUT.as_secs()))?;
            let answer = answer.map_err(|error| format!("{url}: {error}"))?;
            match answer.redirect(&url).map_err(|error| format!("{url}: {error}"))? {
                None => return Ok(answer),
                Some(to) if to.is_same_origin => url = to.url,
                Some(to) => return Err(format!("{url} redirects to another origin: {}", to.url)),
            }
        }
        Err(format!("{url} was redirected more than {MAX_REDIRECTS} times"))
    }
}

fn parse(text: &[u8]) -> Result<KeySet, String> {
    KeySet::parse(text).map_err(|error| error.to_string())
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(MAX_KEY_SET as u64 + 1).read_to_end(&mut text));
    read.map(|_| text).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unavailable() -> Verdict {
    Err(Refusal::unavailable("the keys of the issuer are not available"))
}

fn unknown_key() -> Verdict {
    Err(Refusal::invalid("the token is signed with a key that the issuer does not publish"))
}

impl Verify for IssuerKeys {
    fn verify<'a>(&'a self, token: &'a str, expected: Expected<'a>) -> Verification<'a> {
        let token = match self.shared.jwt.check(token, expected) {
            Ok(token) => token,
            Err(refusal) => return Err(refusal).into(),
        };
        let mut running = match self.try_verify(&token, expected) {
            Ok(verdict) => return verdict.into(),
            Err(running) => running,
        };
        Verification::Pending(Box::pin(async move {
            // Nothing is ever sent: it ends when the sender is dropped.
            while running.changed().await.is_ok() {}
            let plan = lock(&self.shared.state).cache.plan(expected.now);
            match plan {
                Plan::Use(keys) | Plan::UseAndFetch(keys) => {
                    token.verify_with(&keys, expected).unwrap_or_else(unknown_key)
                }
                Plan::Fetch | Plan::Unavailable => unavailable(),
            }
        }))
    }

    fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }
}

impl fmt::Debug for IssuerKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuerKeys")
            .field("issuer", self.shared.jwt.issuer())
            .field("source", &self.shared.source)
            .finish_non_exhaustive()
    }
}
