//! What users agreed to: pending requests, codes, and the sessions that tokens belong to.

use super::table::Table;
use crate::{Scopes, jose::encode};
use ring::digest::{SHA256, digest as ring_digest};

/// A user has this long to answer a consent page, in seconds.
const CONSENT_TIME: u64 = 600;
/// A code can be exchanged for this long, in seconds.
pub(super) const CODE_TIME: u64 = 60;
/// A session ends after this time, in seconds, even if it is refreshed: 14 days.
const SESSION_TIME: u64 = 14 * 24 * 3600;

/// Returns the SHA-256 digest of text, in base64url. Secrets are stored as digests only.
pub(super) fn digest(text: &str) -> String {
    encode(ring_digest(&SHA256, text.as_bytes()).as_ref())
}

/// What a client asks for, after all checks.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) client_id: String,
    pub(super) redirect_uri: String,
    pub(super) state: Option<String>,
    /// The PKCE challenge, made with S256.
    pub(super) challenge: String,
    pub(super) scopes: Scopes,
    pub(super) resource: String,
    /// Whether the client gets a refresh token.
    pub(super) refreshes: bool,
}

impl Asked {
    fn size(&self) -> usize {
        let state = self.state.as_ref().map_or(0, String::len);
        self.client_id.len()
            + self.redirect_uri.len()
            + state
            + scopes_size(&self.scopes)
            + self.resource.len()
            + 300
    }
}

fn scopes_size(scopes: &Scopes) -> usize {
    scopes.iter().map(|scope| scope.len() + 40).sum()
}

/// A code that was sent to a client.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) asked: Asked,
    pub(super) subject: String,
    /// The session that the code was exchanged for.
    session: Option<String>,
}

/// The tokens that come from one consent. Revoking one revokes all.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// The name of the session in access tokens, the claim `sid`.
    pub(super) sid: String,
    pub(super) client_id: String,
    pub(super) subject: String,
    pub(super) scopes: Scopes,
    pub(super) resource: String,
    /// The digest of the only refresh token that is valid.
    refresh: Option<String>,
}

/// Everything that users agreed to.
#[derive(Debug)]
pub(super) struct Grants {
    pending: Table<Asked>,
    codes: Table<Code>,
    sessions: Table<Session>,
    /// Grows when a session ends before its time.
    revocations: u64,
}

impl Grants {
    pub(super) fn new() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            pending: Table::new(1000, 2 * MIB),
            codes: Table::new(1000, 2 * MIB),
            sessions: Table::new(5000, 8 * MIB),
            revocations: 0,
        }
    }

    /// Keeps a request until its user answers. `key` is in the consent page.
    pub(super) fn ask(&mut self, key: &str, asked: Asked, now: u64) {
        let bytes = asked.size();
        self.pending.insert(&digest(key), asked, bytes, now.saturating_add(CONSENT_TIME));
    }

    /// Takes the request of a consent page, once.
    pub(super) fn answered(&mut self, key: &str, now: u64) -> Option<Asked> {
        self.pending.take(&digest(key), now)
    }

    pub(super) fn add_code(&mut self, code: &str, asked: Asked, subject: &str, now: u64) {
        let bytes = asked.size() + subject.len();
        let code_entry = Code { asked, subject: subject.to_owned(), session: None };
        self.codes.insert(&digest(code), code_entry, bytes, now.saturating_add(CODE_TIME));
    }

    /// Finds a code that was not used. A code that is used twice ends the session of its first use, because one of the two
    /// users stole it.
    pub(super) fn unused_code(&mut self, code: &str, now: u64) -> Option<&Code> {
        let key = digest(code);
        if let Some(sid) = self.codes.get(&key, now)?.session.clone() {
            self.revoke(&sid);
            return None;
        }
        self.codes.get(&key, now)
    }

    /// Opens the session of a code, which is used from now on. Returns the session and its refresh token.
    pub(super) fn open(
        &mut self,
        code: &str,
        id: &[u8],
        secret: &[u8],
        access_time: u64,
        now: u64,
    ) -> Option<(Session, Option<String>)> {
        let (id, secret) = (encode(id), encode(secret));
        let code = self.codes.get_mut(&digest(code), now)?;
        let asked = &code.asked;
        let refresh = asked.refreshes.then(|| format!("{id}.{secret}"));
        let session = Session {
            // Resource servers see this name. It must not be a part of the refresh token.
            sid: digest(&id),
            client_id: asked.client_id.clone(),
            subject: code.subject.clone(),
            scopes: asked.scopes.clone(),
            resource: asked.resource.clone(),
            refresh: refresh.as_deref().map(digest),
        };
        code.session = Some(session.sid.clone());
        let bytes = asked.size() + session.subject.len();
        let lifetime = if refresh.is_some() { SESSION_TIME } else { access_time };
        self.sessions.insert(&session.sid, session.clone(), bytes, now.saturating_add(lifetime));
        Some((session, refresh))
    }

    /// Exchanges a refresh token of a client for the next one. An old token ends the session: it was used twice.
    pub(super) fn rotate(
        &mut self,
        token: &str,
        client_id: &str,
        secret: &[u8],
        now: u64,
    ) -> Option<(Session, String)> {
        let (id, _) = token.split_once('.')?;
        let sid = digest(id);
        let session = self.sessions.get_mut(&sid, now)?;
        let current = session.refresh.clone()?;
        if session.client_id != client_id {
            return None;
        }
        if current != digest(token) {
            self.revoke(&sid);
            return None;
        }
        let next = format!("{id}.{}", encode(secret));
        session.refresh = Some(digest(&next));
        Some((session.clone(), next))
    }

    /// Returns the session of a refresh token, to check a request before the token is used up.
    pub(super) fn session_of(&self, token: &str, now: u64) -> Option<&Session> {
        let (id, _) = token.split_once('.')?;
        self.sessions.get(&digest(id), now)
    }

    pub(super) fn session(&self, sid: &str, now: u64) -> Option<&Session> {
        self.sessions.get(sid, now)
    }

    /// Ends a session.
    pub(super) fn revoke(&mut self, sid: &str) {
        if self.sessions.remove(sid).is_some() {
            self.revocations += 1;
        }
    }

    pub(super) fn revocations(&self) -> u64 {
        self.revocations
    }

    /// Ends all sessions.
    pub(super) fn revoke_all(&mut self) {
        let revocations = self.revocations + 1;
        *self = Self { revocations, ..Self::new() };
    }
}
