//! The authorization server: its settings, its state, and which endpoint answers a request.

use super::{
    authorize,
    client::{Client, Method as AuthMethod},
    documents::{DocumentReply, Documents, is_document_url},
    metadata, page, reply,
    session::{Grants, digest},
    table::Table,
    token,
};
use crate::{
    Error, Issuer, Scopes, Secret, Step,
    jose::{KeySet, PublicKey, SigningKey, encode},
    url::Url,
};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use std::fmt;

/// The longest body of a request, in bytes.
pub const MAX_BODY: usize = 16 * 1024;
/// Access tokens are valid for this long unless it is set, in seconds.
const ACCESS_TIME: u64 = 600;
/// A dynamic client that never completed a login is forgotten after this time, in seconds.
const NEW_CLIENT_TIME: u64 = 3600;
/// How many keys stay published after a rotation.
const MAX_OLD_KEYS: usize = 4;

/// The time of a request, and random bytes for what it makes.
#[derive(Clone)]
pub struct Moment {
    now: u64,
    random: [u8; 64],
}

impl Moment {
    /// Creates a moment. `now` is in seconds since the Unix epoch; use new random bytes for each moment.
    #[must_use]
    pub fn new(now: u64, random: [u8; 64]) -> Self {
        Self { now, random }
    }

    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Returns the first 32 bytes: a code, a key of a consent page, a secret.
    pub(super) fn secret(&self) -> &[u8] {
        self.random.get(..32).unwrap_or_default()
    }

    /// Returns 16 other bytes: the id of a client or session.
    pub(super) fn id(&self) -> &[u8] {
        self.random.get(32..48).unwrap_or_default()
    }

    /// Returns 16 other bytes: the id of an access token.
    pub(super) fn token_id(&self) -> &[u8] {
        self.random.get(48..).unwrap_or_default()
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moment").field("now", &self.now).finish_non_exhaustive()
    }
}

/// An authorization server that keeps everything in memory.
///
/// See the [module](super) for what it is for.
pub struct AuthorizationServer {
    pub(super) issuer: Issuer,
    /// The path of the issuer, without a final slash.
    prefix: String,
    pub(super) key: (String, SigningKey),
    pub(super) old_keys: Vec<(String, PublicKey)>,
    pub(super) resources: Vec<String>,
    pub(super) scopes: Option<Scopes>,
    pub(super) default_scopes: Scopes,
    pub(super) access_time: u64,
    pub(super) user: String,
    fixed_clients: Vec<Client>,
    /// Clients that registered and did not complete a login yet. They cannot push out those that did.
    new_clients: Table<Client>,
    used_clients: Table<Client>,
    pub(super) documents: Documents,
    pub(super) grants: Grants,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Metadata,
    Keys,
    Authorize,
    Token,
    Register,
    Revoke,
}

impl AuthorizationServer {
    /// Creates a server that signs tokens with `key`. Its endpoints are below the URL of the issuer.
    ///
    /// Fails if the issuer is not a URL, or if it is reached without TLS and not at a loopback address.
    pub fn new(issuer: impl Into<String>, key: SigningKey) -> Result<Self, Error> {
        let issuer = Issuer::new(issuer)?;
        let url = Url::split(issuer.as_str()).map_err(Error::misuse)?;
        if !url.is_https() && !url.is_loopback() {
            return Err(Error::misuse(format!(
                "an authorization server needs `https` or a loopback address, not {issuer}"
            )));
        }
        let prefix = url.path.trim_end_matches('/').to_owned();
        Ok(Self {
            prefix,
            key: (key.public().thumbprint(), key),
            old_keys: Vec::new(),
            resources: Vec::new(),
            scopes: None,
            default_scopes: Scopes::new(),
            access_time: ACCESS_TIME,
            user: "developer".to_owned(),
            fixed_clients: Vec::new(),
            new_clients: Table::new(500, 1024 * 1024),
            used_clients: Table::new(500, 1024 * 1024),
            documents: Documents::new(),
            grants: Grants::new(),
            issuer,
        })
    }

    /// Adds a resource that tokens can be issued for. The first one is used for clients that name none, such as those of
    /// 2025-03-26.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resources.push(resource.into());
        self
    }

    /// Adds a resource while the server runs.
    pub fn add_resource(&mut self, resource: impl Into<String>) {
        self.resources.push(resource.into());
    }

    /// Grants only these scopes. By default, every scope is granted if the user agrees.
    #[must_use]
    pub fn scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = Some(scopes);
        self
    }

    /// Sets the scopes of clients that ask for none.
    #[must_use]
    pub fn default_scopes(mut self, scopes: Scopes) -> Self {
        self.default_scopes = scopes;
        self
    }

    /// Sets how long access tokens are valid, in seconds: 600.
    #[must_use]
    pub fn access_time(mut self, seconds: u64) -> Self {
        self.access_time = seconds;
        self
    }

    /// Adds a public client with a fixed id.
    #[must_use]
    pub fn client(mut self, id: impl Into<String>, redirect_uri: impl Into<String>) -> Self {
        self.add_client(id, redirect_uri);
        self
    }

    /// Adds a public client with a fixed id while the server runs.
    pub fn add_client(&mut self, id: impl Into<String>, redirect_uri: impl Into<String>) {
        let id = id.into();
        self.fixed_clients.push(Client {
            name: id.clone(),
            id,
            redirect_uris: vec![redirect_uri.into()],
            method: AuthMethod::None,
            secret: None,
            refreshes: true,
            is_machine: false,
        });
    }

    /// Adds a client that gets tokens for itself with a secret (client credentials).
    #[must_use]
    pub fn machine(mut self, id: impl Into<String>, secret: &Secret) -> Self {
        self.add_machine(id, secret);
        self
    }

    /// Adds a client that gets tokens for itself while the server runs.
    pub fn add_machine(&mut self, id: impl Into<String>, secret: &Secret) {
        let id = id.into();
        self.fixed_clients.push(Client {
            name: id.clone(),
            id,
            redirect_uris: Vec::new(),
            method: AuthMethod::Basic,
            secret: Some(digest(secret.expose())),
            refreshes: false,
            is_machine: true,
        });
    }

    /// Returns the identifier of this server.
    #[must_use]
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Returns the keys that verify tokens, as published.
    #[must_use]
    pub fn key_set(&self) -> KeySet {
        KeySet::parse(metadata::keys(self).to_string().as_bytes()).unwrap_or_default()
    }

    /// Signs with another key from now on. Tokens of the last keys can still be verified.
    pub fn rotate_key(&mut self, key: SigningKey) {
        let (kid, old) = std::mem::replace(&mut self.key, (key.public().thumbprint(), key));
        self.old_keys.insert(0, (kid, old.public().clone()));
        self.old_keys.truncate(MAX_OLD_KEYS);
    }

    /// Returns whether the session of an access token, its claim `sid`, is neither revoked nor over.
    #[must_use]
    pub fn is_live(&self, sid: &str, now: u64) -> bool {
        self.grants.session(sid, now).is_some()
    }

    /// Returns a number that grows when a session is revoked.
    #[must_use]
    pub fn revocations(&self) -> u64 {
        self.grants.revocations()
    }

    /// Ends all sessions, so that their refresh tokens are refused.
    pub fn revoke_all(&mut self) {
        self.grants.revoke_all();
    }

    /// Returns whether a path belongs to this server.
    #[must_use]
    pub fn has_path(&self, path: &str) -> bool {
        self.endpoint(path).is_some()
    }

    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        for well_known in ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"] {
            if path.strip_prefix(well_known) == Some(self.prefix.as_str()) {
                return Some(Endpoint::Metadata);
            }
        }
        Some(match path.strip_prefix(self.prefix.as_str())? {
            "/.well-known/openid-configuration" => Endpoint::Metadata,
            "/jwks" => Endpoint::Keys,
            "/authorize" => Endpoint::Authorize,
            "/token" => Endpoint::Token,
            "/register" => Endpoint::Register,
            "/revoke" => Endpoint::Revoke,
            _ => return None,
        })
    }

    /// Answers a request. [`Step::Fetch`] asks for the document of a client: fetch it without following redirects, pass the reply
    /// to [`put_document`](Self::put_document), and answer the same request again with the same moment.
    ///
    /// A body longer than [`MAX_BODY`] is refused; the reader should stop there.
    pub fn answer(&mut self, request: &Request<Vec<u8>>, moment: &Moment) -> Step<Response<Vec<u8>>> {
        let Some(endpoint) = self.endpoint(request.uri().path()) else {
            return Step::Done(reply::empty(StatusCode::NOT_FOUND));
        };
        let method = request.method();
        if request.body().len() > MAX_BODY {
            return Step::Done(reply::empty(StatusCode::PAYLOAD_TOO_LARGE));
        }
        if *method == Method::OPTIONS && endpoint != Endpoint::Authorize {
            return Step::Done(reply::preflight());
        }
        let is_get = *method == Method::GET || *method == Method::HEAD;
        Step::Done(match endpoint {
            Endpoint::Metadata if is_get => reply::json(StatusCode::OK, &metadata::document(self)),
            Endpoint::Keys if is_get => reply::json(StatusCode::OK, &metadata::keys(self)),
            Endpoint::Metadata | Endpoint::Keys => reply::method_not_allowed("GET, HEAD"),
            Endpoint::Authorize if *method == Method::GET => {
                return authorize::ask(self, request.uri().query().unwrap_or_default(), moment);
            }
            Endpoint::Authorize
                if *method == Method::POST && !is_own_page(self.issuer.as_str(), request.headers()) =>
            {
                page::refusal(StatusCode::FORBIDDEN, "The answer was sent by another page.")
            }
            Endpoint::Authorize if *method == Method::POST => authorize::decide(self, request.body(), moment),
            Endpoint::Authorize => reply::method_not_allowed("GET, POST"),
            Endpoint::Token | Endpoint::Register | Endpoint::Revoke if *method != Method::POST => {
                reply::method_not_allowed("POST")
            }
            Endpoint::Token => token::exchange(self, request, moment),
            Endpoint::Revoke => token::revoke(self, request, moment),
            Endpoint::Register => self.register(request, moment),
        })
    }

    /// Takes the document of a client that [`answer`](Self::answer) asked for, or the reason why there is none.
    pub fn put_document(&mut self, url: &str, fetched: Result<DocumentReply<'_>, &str>, moment: &Moment) {
        self.documents.put(url, fetched, moment.now());
    }

    fn register(&mut self, request: &Request<Vec<u8>>, moment: &Moment) -> Response<Vec<u8>> {
        let id = format!("dynamic-{}", encode(moment.id()));
        match Client::register(request.body(), &id, &encode(moment.secret())) {
            Ok((client, response)) => {
                let (bytes, end) = (client.size(), moment.now().saturating_add(NEW_CLIENT_TIME));
                self.new_clients.insert(&id, client, bytes, end);
                reply::private_json(StatusCode::CREATED, &response)
            }
            Err(failure) => failure.response(),
        }
    }

    /// Returns a client that is fixed or registered.
    pub(super) fn registered(&self, id: &str, now: u64) -> Option<&Client> {
        let fixed = self.fixed_clients.iter().find(|client| client.id == id);
        fixed.or_else(|| self.used_clients.get(id, now)).or_else(|| self.new_clients.get(id, now))
    }

    /// Keeps a dynamic client whose user agreed.
    pub(super) fn keep_client(&mut self, id: &str) {
        if let Some(client) = self.new_clients.remove(id).or_else(|| self.used_clients.remove(id)) {
            let bytes = client.size();
            self.used_clients.insert(id, client, bytes, u64::MAX);
        }
    }

    /// Returns a client by its id. `Err` asks for its document.
    pub(super) fn find_client(
        &mut self,
        id: &str,
        now: u64,
    ) -> Result<Result<Client, String>, crate::Request> {
        if let Some(client) = self.registered(id, now) {
            return Ok(Ok(client.clone()));
        }
        if is_document_url(id) {
            return self.documents.find(id, now);
        }
        let reason = "it is not registered here. This authorization server forgets its clients when it is restarted; log out in the \
                      program, such as with `bowline logout URL`, and log in again";
        Ok(Err(reason.to_owned()))
    }

    /// Returns the URL of an endpoint.
    pub(super) fn url_of(&self, path: &str) -> String {
        format!("{}{path}", self.issuer.as_str().trim_end_matches('/'))
    }
}

/// Returns whether a form was sent by a page of this server. Other pages cannot read the key of a consent page, so this
/// is a second barrier.
fn is_own_page(issuer: &str, headers: &HeaderMap) -> bool {
    // Compared with the issuer and not with `Host`, which a page with a name of its own chooses.
    let is_own_origin = headers.get(header::ORIGIN).is_none_or(|origin| {
        let (own, origin) = (Url::split(issuer), origin.to_str().ok().map(Url::split));
        matches!((own, origin), (Ok(own), Some(Ok(origin))) if own.is_same_origin(&origin))
    });
    let site = headers.get("sec-fetch-site");
    is_own_origin && site.is_none_or(|site| site == "same-origin" || site == "none")
}

impl fmt::Debug for AuthorizationServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationServer")
            .field("issuer", &self.issuer)
            .field("resources", &self.resources)
            .finish_non_exhaustive()
    }
}
