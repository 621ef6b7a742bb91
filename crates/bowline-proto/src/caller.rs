//! Who makes a call, as a verified access token says.

use crate::scope::Scopes;
use bowline_types::RawJson;
use serde::de::DeserializeOwned;
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

/// The authenticated caller of a request: what a verified access token says about it, without the token itself.
///
/// ```
/// use bowline_proto::{caller::Caller, scope::Scopes};
/// use bowline_types::RawJson;
///
/// let caller = Caller::new("https://login.example.com", "ada")
///     .with_client_id("notes-app")
///     .with_scopes(Scopes::parse("notes:read"))
///     .with_claims(RawJson::parse(r#"{"sub":"ada","tenant":7}"#)?);
/// assert_eq!(caller.subject(), "ada");
/// assert_eq!(caller.claim::<u32>("tenant"), Some(7));
/// assert!(caller.allows("notes:read"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct Caller {
    issuer: String,
    subject: String,
    client_id: Option<String>,
    scopes: Scopes,
    /// Scopes that the granted ones imply.
    implied: Scopes,
    expiry: Option<u64>,
    claims: RawJson,
    token_digest: Option<Arc<str>>,
    principal: OnceLock<Arc<str>>,
}

impl Caller {
    /// Creates a caller without client id, scopes, expiry and claims.
    pub fn new(issuer: impl Into<String>, subject: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            subject: subject.into(),
            client_id: None,
            scopes: Scopes::new(),
            implied: Scopes::new(),
            expiry: None,
            claims: RawJson::empty_object(),
            token_digest: None,
            principal: OnceLock::new(),
        }
    }

    /// Sets the client that the token was issued to.
    #[must_use]
    pub fn with_client_id(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = Some(client_id.into());
        self.principal = OnceLock::new();
        self
    }

    /// Sets the granted scopes.
    #[must_use]
    pub fn with_scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = scopes;
        self
    }

    /// Sets the scopes that the granted ones imply.
    #[must_use]
    pub fn with_implied_scopes(mut self, implied: Scopes) -> Self {
        self.implied = implied;
        self
    }

    /// Sets when the token expires, in seconds since the Unix epoch.
    #[must_use]
    pub fn with_expiry(mut self, expiry: u64) -> Self {
        self.expiry = Some(expiry);
        self
    }

    /// Sets the claims: a JSON object.
    #[must_use]
    pub fn with_claims(mut self, claims: RawJson) -> Self {
        self.claims = claims;
        self
    }

    /// Sets the digest of the token, for logs.
    #[must_use]
    pub fn with_token_digest(mut self, digest: impl Into<Arc<str>>) -> Self {
        self.token_digest = Some(digest.into());
        self
    }

    /// Returns the authorization server that issued the token, exactly as it writes its identifier.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Returns the user, or the client if the token has no user. It is unique only together with the issuer.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns the client that the token was issued to, if the token names it.
    pub fn client_id(&self) -> Option<&str> {
        self.client_id.as_deref()
    }

    /// Returns the granted scopes, as the token lists them.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Returns the scopes that the granted ones imply.
    pub fn implied_scopes(&self) -> &Scopes {
        &self.implied
    }

    /// Returns whether the token grants `scope`, directly or because a granted scope implies it.
    pub fn allows(&self, scope: &str) -> bool {
        self.scopes.contains(scope) || self.implied.contains(scope)
    }

    /// Returns whether the token grants every scope of `needed`.
    pub fn allows_all(&self, needed: &Scopes) -> bool {
        needed.iter().all(|scope| self.allows(scope))
    }

    /// Returns when the token expires, in seconds since the Unix epoch.
    pub fn expiry(&self) -> Option<u64> {
        self.expiry
    }

    /// Returns a claim of the token. `None` if it is absent or not a `T`.
    pub fn claim<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.claims.members().ok()?.decode(name).ok()?
    }

    /// Returns all claims: a JSON object.
    pub fn claims(&self) -> &RawJson {
        &self.claims
    }

    /// A digest of the token, which identifies it in logs without revealing it, if whoever verified the token set one.
    pub fn token_digest(&self) -> Option<&str> {
        self.token_digest.as_deref()
    }

    /// Whom sessions, sealed states, cursors and streams belong to: issuer, subject and client id as JSON text.
    pub fn principal(&self) -> &Arc<str> {
        self.principal.get_or_init(|| {
            let parts = [Some(self.issuer.as_str()), Some(self.subject.as_str()), self.client_id.as_deref()];
            let text = RawJson::of(&parts).expect("strings serialize");
            text.as_str().into()
        })
    }
}

/// Returns whose limits a principal counts for: the user, whichever client it uses. A user can have any number of clients.
///
/// A principal that does not come from an access token is a user itself.
///
/// ```
/// use bowline_proto::caller::user_of;
///
/// let user = user_of(&r#"["https://login.example.com","ada","notes-app"]"#.into());
/// assert_eq!(&*user, r#"["https://login.example.com","ada"]"#);
/// assert_eq!(&*user_of(&"ada".into()), "ada");
/// ```
#[must_use]
pub fn user_of(principal: &Arc<str>) -> Arc<str> {
    let parts: Result<(String, String, Option<String>), _> = serde_json::from_str(principal);
    let user = parts.ok().and_then(|(issuer, subject, _)| RawJson::of(&[issuer, subject]).ok());
    user.map_or_else(|| Arc::clone(principal), |user| user.as_str().into())
}

/// Prints everything but the claims, which can be personal.
impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("issuer", &self.issuer)
            .field("subject", &self.subject)
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes.to_string())
            .field("expiry", &self.expiry)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_principal_differs_by_issuer_subject_and_client() {
        let base = Caller::new("https://a", "ada");
        assert_eq!(&**base.principal(), r#"["https://a","ada",null]"#);
        let with_client = base.with_client_id("x");
        assert_eq!(&**with_client.principal(), r#"["https://a","ada","x"]"#);
        // Text that would run together without quoting.
        let quoted = Caller::new("https://a\",\"ada", "x");
        assert_ne!(quoted.principal(), Caller::new("https://a", "ada").with_client_id("x").principal());
    }

    #[test]
    fn implied_scopes_count_but_are_not_listed_as_granted() {
        let caller = Caller::new("i", "s")
            .with_scopes(Scopes::parse("admin"))
            .with_implied_scopes(Scopes::parse("read write"));
        assert!(caller.allows_all(&Scopes::parse("admin read write")));
        assert!(!caller.allows_all(&Scopes::parse("read delete")));
        assert_eq!(caller.scopes().to_string(), "admin");
    }

    #[test]
    fn a_claim_of_another_type_is_absent() {
        let claims = RawJson::parse(r#"{"tenant":"t","level":3}"#).unwrap();
        let caller = Caller::new("i", "s").with_claims(claims);
        assert_eq!(caller.claim::<String>("tenant").as_deref(), Some("t"));
        assert_eq!(caller.claim::<u32>("tenant"), None);
        assert_eq!(caller.claim::<u32>("nothing"), None);
    }

    #[test]
    fn debug_output_has_no_claims() {
        let caller = Caller::new("i", "s").with_claims(RawJson::parse(r#"{"email":"ada@x"}"#).unwrap());
        assert!(!format!("{caller:?}").contains("ada@x"));
    }
}
