//! How an endpoint is protected: who verifies tokens, and what they must be for.

use super::{
    dpop::{Dpop, ProofChecks},
    protection::Protection,
    refusal::{AccessRefusal, RefusalListener},
};
use bowline_auth::{
    Hierarchy, Issuer, Resource, Scopes, Verify,
    dpop::NonceIssuer,
    resource_metadata_urls,
    scope::is_scope,
    verify::{ClaimNames, VerdictCache},
};
use bowline_proto::seal::{Key, KeyRing};
use bowline_server::transport::unix_time;
use ring::rand::{SecureRandom, SystemRandom};
use std::{error::Error, fmt, net::SocketAddr, sync::Arc};

pub(super) type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How an endpoint is protected with OAuth access tokens.
///
/// It becomes effective with [`HttpOptions::protect`](crate::HttpOptions::protect). In an application with other routes,
/// [`build`](Self::build) it for the route of its metadata.
///
/// ```
/// use bowline_auth::{Caller, Refusal, Scopes, Verify, verify::{Expected, Verification}};
/// use bowline_http::{HttpOptions, Protect};
/// use std::sync::Arc;
///
/// /// Looks tokens up in a table.
/// #[derive(Debug)]
/// struct Table;
///
/// impl Verify for Table {
///     fn verify<'a>(&'a self, token: &'a str, _expected: Expected<'a>) -> Verification<'a> {
///         match token {
///             "7d1f" => Ok(Arc::new(
///                 Caller::new("https://login.example.com", "ada").with_scopes(Scopes::parse("notes:read")),
///             )),
///             _ => Err(Refusal::invalid("unknown token")),
///         }
///         .into()
///     }
/// }
///
/// let protect = Protect::with(Table, ["https://login.example.com"])
///     .resource("https://notes.example.com/mcp")
///     .scopes(["notes:read"]);
/// let options = HttpOptions::new().hosts(["notes.example.com"]).protect(protect);
/// ```
#[derive(Clone)]
#[must_use = "it does nothing until it is used"]
pub struct Protect {
    pub(super) verifier: Arc<dyn Verify>,
    pub(super) issuers: Vec<String>,
    pub(super) resource: Option<String>,
    pub(super) scopes: Vec<String>,
    audiences: Vec<String>,
    implied: Vec<(String, Vec<String>)>,
    claims: ClaimNames,
    name: Option<String>,
    documentation: Option<String>,
    dpop: Option<Dpop>,
    needs_nonce: bool,
    nonce_keys: Option<KeyRing>,
    on_refusal: Option<RefusalListener>,
    clock: Clock,
    /// A mistake in the settings of the verifier, for `build` to report.
    problem: Option<String>,
    #[cfg(feature = "issuer")]
    pub(super) dev: Option<super::issuer::Dev>,
}

impl Protect {
    /// Verifies tokens with `verifier`. They come from `issuers`, at least one, which the metadata names as the
    /// authorization servers of this resource.
    pub fn with<I: IntoIterator<Item: Into<String>>>(verifier: impl Verify, issuers: I) -> Self {
        Self {
            verifier: Arc::new(verifier),
            issuers: issuers.into_iter().map(Into::into).collect(),
            resource: None,
            scopes: Vec::new(),
            audiences: Vec::new(),
            implied: Vec::new(),
            claims: ClaimNames::default(),
            name: None,
            documentation: None,
            dpop: None,
            needs_nonce: false,
            nonce_keys: None,
            on_refusal: None,
            clock: Arc::new(unix_time),
            problem: None,
            #[cfg(feature = "issuer")]
            dev: None,
        }
    }

    /// Fails when it is built.
    pub(super) fn failing(mut self, problem: String) -> Self {
        self.problem = Some(problem);
        self
    }

    /// Sets the URL under which clients reach the endpoint: what tokens must be issued for. It is published exactly as it is
    /// written here.
    ///
    /// Only a server on a loopback address works without one; it uses the address of its socket.
    pub fn resource(mut self, url: impl Into<String>) -> Self {
        self.resource = Some(url.into());
        self
    }

    /// Sets the scopes that every request needs. They are published, and clients ask for them when they log in.
    pub fn scopes<I: IntoIterator<Item: Into<String>>>(mut self, scopes: I) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Accepts tokens for these audiences too, for an authorization server that does not use the URL of the resource, such
    /// as `api://notes`.
    pub fn audience<I: IntoIterator<Item: Into<String>>>(mut self, audiences: I) -> Self {
        self.audiences.extend(audiences.into_iter().map(Into::into));
        self
    }

    /// Lets `scope` stand for other scopes as well. Implications are transitive.
    pub fn implies<I: IntoIterator<Item: Into<String>>>(
        mut self,
        scope: impl Into<String>,
        implied: I,
    ) -> Self {
        self.implied.push((scope.into(), implied.into_iter().map(Into::into).collect()));
        self
    }

    /// Takes the subject from another claim than `sub`, such as `oid` for Entra, whose `sub` differs per application.
    ///
    /// A verifier of your own finds this name in [`Expected::claims`](bowline_auth::verify::Expected::claims).
    pub fn subject_claim(mut self, name: impl Into<String>) -> Self {
        self.claims = self.claims.with_subject(name);
        self
    }

    /// Takes the scopes from another claim than `scope` and `scp`, such as `roles`.
    ///
    /// A verifier of your own finds this name in [`Expected::claims`](bowline_auth::verify::Expected::claims).
    pub fn scope_claim(mut self, name: impl Into<String>) -> Self {
        self.claims = self.claims.with_scopes(name);
        self
    }

    /// Sets the name of the server that an authorization server may show to users.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the URL of a page for developers of clients.
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Accepts tokens that are bound to a key of the client (DPoP, RFC 9449), and perhaps no others.
    ///
    /// Without it, tokens that are bound to a key are refused. The URL that proofs are for is [`resource`](Self::resource).
    ///
    /// ```
    /// use bowline_http::{Dpop, Protect};
    ///
    /// let protect = Protect::by("https://login.example.com")
    ///     .resource("https://notes.example.com/mcp")
    ///     .dpop(Dpop::Required);
    /// ```
    pub fn dpop(mut self, dpop: Dpop) -> Self {
        self.dpop = Some(dpop);
        self
    }

    /// Requires a nonce of this server in every proof, so that proofs cannot be made in advance.
    ///
    /// Otherwise a nonce is only asked for while more proofs arrive than can be remembered.
    pub fn dpop_nonces(mut self) -> Self {
        self.needs_nonce = true;
        self
    }

    /// Sets the keys that sign nonces. Servers behind one URL need the same keys; without them each process makes its own.
    pub fn nonce_keys(mut self, keys: KeyRing) -> Self {
        self.nonce_keys = Some(keys);
        self
    }

    /// Reports each request that is refused because of its token, for an audit log. The listener must not block, and has to
    /// limit what it keeps: anybody can send such requests.
    pub fn on_refusal(mut self, listener: impl Fn(&AccessRefusal<'_>) + Send + Sync + 'static) -> Self {
        self.on_refusal = Some(Arc::new(listener));
        self
    }

    /// Takes the time, in seconds since the Unix epoch, from `clock` instead of the system. For tests.
    pub fn clock(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the address of the socket and the path of the endpoint, for a protection that is built by hand.
    /// [`HttpOptions::listening_on`](crate::HttpOptions::listening_on) does it otherwise. Set the scopes before.
    pub fn served_at(mut self, address: SocketAddr, path: &str) -> Self {
        self.listening_on(address, path);
        self
    }

    /// Takes the address of a loopback socket as the resource, if none is set.
    pub(in crate::server) fn listening_on(&mut self, address: SocketAddr, path: &str) {
        #[cfg(feature = "issuer")]
        self.start_dev(address, path);
        if self.resource.is_none() && address.ip().is_loopback() {
            self.resource = Some(format!("http://{address}{path}"));
        }
    }

    /// Checks everything and returns the protection. Clones of it share the cache of verdicts.
    pub fn build(self) -> Result<Protection, ProtectError> {
        #[cfg(feature = "issuer")]
        let issuer = self.dev.clone().map(super::issuer::Dev::into_service).transpose()?;
        let wrong = |reason: String| Err(ProtectError(reason));
        if let Some(problem) = self.problem {
            return wrong(problem);
        }
        let Some(resource) = self.resource else {
            return wrong(
                "the public URL of the endpoint is unknown; set it with `Protect::resource` (only a server on a \
                 loopback address works without)"
                    .into(),
            );
        };
        Resource::new(&resource).map_err(|error| ProtectError(error.to_string()))?;
        let metadata_url =
            resource_metadata_urls(&resource).map_err(|error| ProtectError(error.to_string()))?;
        let Some(metadata_url) = metadata_url.into_iter().next().filter(|url| !url.contains('?')) else {
            return wrong(format!("the resource `{resource}` has a query; use a URL without"));
        };
        if self.issuers.is_empty() {
            return wrong("name at least one issuer: clients have to know where tokens come from".into());
        }
        for issuer in &self.issuers {
            Issuer::new(issuer).map_err(|error| ProtectError(error.to_string()))?;
        }
        let implied = self.implied.iter().flat_map(|(scope, implied)| [scope].into_iter().chain(implied));
        if let Some(scope) = self.scopes.iter().chain(implied).find(|scope| !is_scope(scope)) {
            return wrong(format!(
                "`{scope}` is not a scope; a scope is one word of visible ASCII characters without `\"` and `\\`"
            ));
        }
        // 2026-07-28: a refresh token is between the client and its authorization server.
        if self.scopes.iter().any(|scope| scope == "offline_access") {
            return wrong(
                "`offline_access` is not a scope of a resource; remove it from `Protect::scopes`".into(),
            );
        }
        let dpop = match (self.dpop, self.nonce_keys) {
            (None, _) => None,
            (Some(mode), keys) => {
                let keys = keys.map_or_else(random_keys, Ok)?;
                Some(ProofChecks::new(mode, self.needs_nonce, NonceIssuer::new(keys)))
            }
        };
        let rules =
            self.implied.into_iter().map(|(scope, implied)| (scope, implied.iter().collect::<Scopes>()));
        let hierarchy = Hierarchy::new(rules).map_err(|error| ProtectError(error.to_string()))?;
        let mut audiences = self.audiences;
        if !audiences.contains(&resource) {
            audiences.push(resource.clone());
        }
        Ok(Protection::new(super::protection::Parts {
            verifier: self.verifier,
            issuers: self.issuers,
            resource,
            metadata_url,
            scopes: self.scopes.iter().collect(),
            audiences,
            hierarchy,
            claims: self.claims,
            name: self.name,
            documentation: self.documentation,
            dpop,
            on_refusal: self.on_refusal,
            clock: self.clock,
            cache: VerdictCache::default(),
            #[cfg(feature = "issuer")]
            issuer,
        }))
    }
}

fn random_keys() -> Result<KeyRing, ProtectError> {
    let mut key = [0; 32];
    let filled = SystemRandom::new().fill(&mut key);
    filled.map_err(|_| ProtectError("no random numbers are available".to_owned()))?;
    Ok(KeyRing::new(Key::new(key)))
}

impl fmt::Debug for Protect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protect")
            .field("issuers", &self.issuers)
            .field("resource", &self.resource)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Why an endpoint cannot be protected as described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectError(String);

#[cfg(feature = "issuer")]
impl ProtectError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for ProtectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot protect the endpoint: {}", self.0)
    }
}

impl Error for ProtectError {}
