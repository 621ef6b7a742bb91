//! Ids of tasks that callers get: the id of the server, sealed, so that any process with the keys can route it.

use bowline_proto::{
    seal::{KeyRing, digest},
    service::ClientView,
};
use bowline_server::transport::random_id;
use bowline_text::hex;
use bowline_types::{ClientCapabilities, ElicitParams, InputRequest, RpcError};
use serde::{Deserialize, Serialize};
use std::{sync::OnceLock, time::Duration};

/// The longest id of a server that fits into a header after it is sealed.
const MAX_ID: usize = 512;
/// The longest sealed id.
const MAX_SEALED: usize = 4096;
/// How long keys are kept after they no longer seal: operators are told so. No id is promised to work for longer.
pub(super) const KEYS_KEPT: Duration = Duration::from_secs(KEYS_KEPT_MS / 1000);
const KEYS_KEPT_MS: u64 = 24 * 3600 * 1000;

/// The task that a sealed id stands for.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskRef {
    pub(super) server: String,
    /// The name by which callers know the tool.
    pub(super) tool: String,
    /// The id at the server.
    pub(super) id: String,
    /// Whether a call of 2025-11-25 created it. Then there may be a record of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_legacy: bool,
    /// Whether the server returned the result at once, so that only the record has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_ended: bool,
    /// Whether the host runs it: the server made no task of the call. Then the id is that of the host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_hosted: bool,
    #[serde(default)]
    pub(super) creation: Creation,
}

/// What is known of the call that created a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Creation {
    /// A random number. A server that was started again, or one for each client, may use an id more than once.
    #[serde(default)]
    number: u64,
    /// What the client that created it could answer.
    #[serde(default)]
    pub(super) abilities: Abilities,
}

impl Creation {
    pub(super) fn by(client: &ClientView) -> Self {
        let mut number = [0; 8];
        number.copy_from_slice(&digest(&[random_id().as_bytes()])[..8]);
        Self { number: u64::from_le_bytes(number), abilities: Abilities::of(client.capabilities()) }
    }
}

/// The questions of servers that a client can answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Abilities(u8);

impl Abilities {
    const FORM: u8 = 1;
    const URL: u8 = 1 << 1;
    const SAMPLING: u8 = 1 << 2;
    const SAMPLING_WITH_TOOLS: u8 = 1 << 3;
    const ROOTS: u8 = 1 << 4;

    pub(super) fn of(declared: &ClientCapabilities) -> Self {
        let abilities = [
            (Self::FORM, declared.has_form_elicitation()),
            (Self::URL, declared.has_url_elicitation()),
            (Self::SAMPLING, declared.sampling.is_some()),
            (Self::SAMPLING_WITH_TOOLS, declared.has_sampling_tools()),
            (Self::ROOTS, declared.roots.is_some()),
        ];
        Self(abilities.iter().filter(|(_, has)| *has).fold(0, |all, (ability, _)| all | ability))
    }

    pub(super) fn can_answer(self, request: &InputRequest) -> bool {
        let needed = match request {
            InputRequest::Elicit(ElicitParams::Form(_)) => Self::FORM,
            InputRequest::Elicit(ElicitParams::Url(_)) => Self::URL,
            InputRequest::CreateMessage(params) if params.tools.is_some() => Self::SAMPLING_WITH_TOOLS,
            InputRequest::CreateMessage(_) => Self::SAMPLING,
            InputRequest::ListRoots => Self::ROOTS,
        };
        self.0 & needed != 0
    }
}

impl TaskRef {
    /// Returns a digest that identifies the task in the audit log. It is the same for every sealed id of the task.
    pub(super) fn digest(&self) -> String {
        short_hex(&digest(&[b"bowline task", self.server.as_bytes(), self.id.as_bytes()]))
    }

    /// Returns the name of the record of the task.
    pub(super) fn key(&self, client: &ClientView) -> [u8; 32] {
        let (principal, number) = (principal_digest(client), self.creation.number.to_le_bytes());
        digest(&[b"bowline task record", &principal, self.server.as_bytes(), self.id.as_bytes(), &number])
    }
}

/// Returns a digest, for the audit log, of an id that is not one of ours.
pub(super) fn digest_of_unknown(id: &str) -> String {
    short_hex(&digest(&[b"bowline unknown task", id.as_bytes()]))
}

fn short_hex(digest: &[u8; 32]) -> String {
    hex(&digest[..16])
}

/// Returns the time that callers are told a task is kept, from the time that its server says.
pub(super) fn capped_ttl(ttl_ms: Option<u64>) -> u64 {
    ttl_ms.map_or(KEYS_KEPT_MS, |ttl| ttl.min(KEYS_KEPT_MS))
}

/// Seals the ids of tasks with the keys of the server that the host is open as.
#[derive(Debug, Default)]
pub(super) struct TaskIds(OnceLock<KeyRing>);

impl TaskIds {
    /// Sets the keys. A host is opened once.
    pub(super) fn set_keys(&self, keys: KeyRing) {
        let _ = self.0.set(keys);
    }

    /// Returns the keys, once the host is open.
    pub(super) fn keys(&self) -> Option<&KeyRing> {
        self.0.get()
    }

    /// Returns the id for a caller. It is useless for other principals.
    pub(super) fn seal(&self, client: &ClientView, task: &TaskRef) -> Result<String, RpcError> {
        let too_long = || {
            let TaskRef { server, id, .. } = task;
            RpcError::internal(format!(
                "the server `{server}` created a task whose id has {} bytes; at most {MAX_ID} are supported",
                id.len()
            ))
        };
        if task.id.len() > MAX_ID {
            return Err(too_long());
        }
        let keys = self.0.get().ok_or_else(|| RpcError::internal("the host is not open"))?;
        let plain = serde_json::to_vec(task).map_err(|error| RpcError::internal(error.to_string()))?;
        // Each id has 128 random bits.
        let random = digest(&[random_id().as_bytes(), random_id().as_bytes()]);
        let sealed = keys.seal(&random, &principal_digest(client), &plain);
        // Characters that JSON escapes take more space.
        if sealed.len() > MAX_SEALED { Err(too_long()) } else { Ok(sealed) }
    }

    /// Returns the task of a sealed id. The error does not say whether the id is invalid or belongs to somebody else.
    pub(super) fn open(&self, client: &ClientView, sealed: &str) -> Result<TaskRef, RpcError> {
        let opened =
            self.0.get().and_then(|keys| keys.open(&principal_digest(client), sealed, MAX_SEALED).ok());
        let task = opened.and_then(|plain| serde_json::from_slice(&plain).ok());
        task.ok_or_else(unknown_task)
    }
}

/// Returns the error for a task that does not exist, or not for this caller.
pub(super) fn unknown_task() -> RpcError {
    RpcError::invalid_params("unknown task: it does not exist, has expired, or belongs to another caller")
}

/// Returns a digest of the principal of a client.
pub(super) fn principal_digest(client: &ClientView) -> [u8; 32] {
    let principal = client.principal.as_deref().map(str::as_bytes);
    // A caller without a principal is not the caller with an empty one.
    let known: &[u8] = if principal.is_some() { b"known" } else { b"anonymous" };
    digest(&[b"bowline host task", known, principal.unwrap_or_default()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_proto::seal::Key;
    use bowline_types::{RawJson, Revision};
    use std::sync::Arc;

    fn client(user: Option<&str>) -> ClientView {
        ClientView::new(Revision::V2026_07_28, user.map(Arc::from), RawJson::empty_object(), None)
    }

    #[test]
    fn an_id_belongs_to_its_principal() {
        let ids = TaskIds::default();
        ids.set_keys(KeyRing::new(Key::new([7; 32])));
        let task = |id: &str| TaskRef {
            server: "ci".into(),
            tool: "ci__build".into(),
            id: id.into(),
            is_legacy: false,
            is_ended: false,
            is_hosted: false,
            creation: Creation::default(),
        };
        let sealed = ids.seal(&client(Some("ada")), &task("t1")).unwrap();
        assert!(sealed.bytes().all(|byte| byte.is_ascii_graphic()), "{sealed}");
        assert_eq!(ids.open(&client(Some("ada")), &sealed).unwrap(), task("t1"));
        for other in [Some("bob"), Some(""), None] {
            let error = ids.open(&client(other), &sealed).unwrap_err();
            assert_eq!((error.code, &error.message), (-32602, &unknown_task().message));
        }
        assert!(ids.open(&client(Some("ada")), "t1").is_err());

        let anonymous = ids.seal(&client(None), &task("t1")).unwrap();
        assert!(ids.open(&client(None), &anonymous).is_ok());
        assert!(ids.open(&client(Some("")), &anonymous).is_err());

        assert!(ids.seal(&client(None), &task(&"x".repeat(MAX_ID))).is_ok());
        let error = ids.seal(&client(None), &task(&"x".repeat(MAX_ID + 1))).unwrap_err();
        assert!(error.message.contains("513 bytes"), "{error}");
        let error = ids.seal(&client(None), &task(&"\u{1}".repeat(MAX_ID))).unwrap_err();
        assert!(error.message.contains("512 bytes"), "{error}");
    }
}
