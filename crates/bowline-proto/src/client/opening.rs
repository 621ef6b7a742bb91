//! Negotiates the revision between a client and a server.
//!
//! The probe is `server/discover`. A result, or an error that only a modern server sends, means the modern era;
//! anything else, including a timeout, means that the server requires the handshake.

use super::{ClientProfile, RequestOptions};
use crate::server::RevisionSet;
use bowline_types::{
    DiscoverResult, Era, Implementation, InitializeResult, Method, RawJson, Revision, RpcError,
    ServerCapabilities, error_code,
};
use serde::Deserialize;
use std::{fmt, sync::Arc};

/// The negotiated revision, and what the server declared.
#[derive(Clone, Debug)]
pub struct Negotiated {
    /// The negotiated revision.
    pub revision: Revision,
    /// Name and version of the server.
    pub server_info: Option<Implementation>,
    /// Capabilities.
    pub capabilities: ServerCapabilities,
    /// Instructions for the model.
    pub instructions: Option<String>,
}

/// What to do next.
#[derive(Debug)]
pub enum Step {
    /// Send this request and report what happened.
    Request(Method, RawJson),
    /// The connection is open. After a handshake, send `notifications/initialized` first.
    Open(Box<Negotiated>),
    /// There is no common revision, or the server rejected the connection.
    Failed(OpenError),
}

/// What happened to a request of the negotiation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reaction {
    /// A result arrived.
    Result(RawJson),
    /// An error arrived.
    Error(RpcError),
    /// The request timed out.
    Silence,
}

/// Why a connection could not be opened.
#[derive(Clone, Debug, PartialEq)]
pub enum OpenError {
    /// There is no common revision.
    NoCommonRevision {
        /// Revisions of the client.
        ours: Vec<Revision>,
        /// Revisions of the server; empty if it only requires a handshake that this client does not support.
        theirs: Vec<String>,
    },
    /// The server answered with an error.
    Refused(RpcError),
    /// The handshake timed out.
    Silent,
    /// The server sent an invalid result.
    Malformed(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCommonRevision { ours, theirs } => {
                let ours: Vec<_> = ours.iter().map(|revision| revision.as_str()).collect();
                write!(f, "no common protocol revision: this client supports {}", ours.join(", "))?;
                if theirs.is_empty() {
                    f.write_str(", the server named no modern revision")
                } else {
                    write!(f, ", the server {}", theirs.join(", "))
                }
            }
            Self::Refused(error) => write!(f, "the server refused to open the connection: {error}"),
            Self::Silent => f.write_str("the server did not answer `initialize`"),
            Self::Malformed(reason) => write!(f, "the server sent an invalid handshake response: {reason}"),
        }
    }
}

impl std::error::Error for OpenError {}

#[derive(Debug)]
enum Stage {
    Probing { offered: Revision, retried: bool },
    Greeting { offered: Revision, retried: bool },
    Over,
}

/// A negotiation in progress.
#[derive(Debug)]
pub struct Opening {
    profile: Arc<ClientProfile>,
    stage: Stage,
    /// The server refused `initialize` and named a modern revision: it is not offered the handshake again.
    handshake_refused: bool,
    /// A reply to the probe that arrived after `initialize` was sent.
    late: Option<DiscoverResult>,
}

impl Opening {
    /// Starts. `known` is the era found at an earlier connection to the same server, which saves the probe.
    pub fn start(profile: Arc<ClientProfile>, known: Option<Era>) -> (Self, Step) {
        let mut opening = Self { profile, stage: Stage::Over, handshake_refused: false, late: None };
        let modern = opening.revisions().newest_first().find(|revision| revision.era() == Era::Modern);
        let step = match (known, modern) {
            (Some(Era::Legacy), _) | (_, None) => opening.greet(None, false),
            (_, Some(revision)) => opening.probe(revision, false),
        };
        (opening, step)
    }

    /// Goes on with what came of the last request.
    pub fn next(&mut self, reaction: Reaction) -> Step {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Probing { offered, retried } => self.probed(offered, retried, reaction),
            Stage::Greeting { offered, retried } => {
                match (self.greeted(offered, retried, reaction), self.late.take()) {
                    // The server was slow to start and does not want the handshake: the probe was answered after all.
                    (Step::Failed(_) | Step::Request(..), Some(discovered)) => self.discovered(discovered),
                    (step, late) => {
                        self.late = late;
                        step
                    }
                }
            }
            Stage::Over => {
                Step::Failed(OpenError::Malformed("unexpected response after the handshake".into()))
            }
        }
    }

    /// Returns whether a timeout now means that the server needs the handshake. Otherwise the client keeps waiting.
    pub fn is_era_open(&self) -> bool {
        matches!(self.stage, Stage::Probing { .. })
            && !self.handshake_refused
            && self.revisions().newest_legacy().is_some()
    }

    /// Takes a reply to the probe that arrives while the handshake is under way. It counts if the handshake fails. Returns
    /// whether it is a discovery with a revision that both sides support.
    pub fn accept_late(&mut self, result: &RawJson) -> bool {
        let discovered = result.decode::<DiscoverResult>().ok().filter(|discovered| {
            newest_common(self.revisions(), &discovered.supported_versions)
                .is_some_and(|revision| revision.era() == Era::Modern)
        });
        self.late = discovered;
        self.has_late()
    }

    /// Returns whether a late reply to the probe is kept.
    pub fn has_late(&self) -> bool {
        self.late.is_some()
    }

    fn revisions(&self) -> RevisionSet {
        self.profile.revisions
    }

    fn probe(&mut self, revision: Revision, retried: bool) -> Step {
        self.stage = Stage::Probing { offered: revision, retried };
        Step::Request(Method::Discover, self.profile.params(revision, b"{}", RequestOptions::default()))
    }

    fn probed(&mut self, offered: Revision, retried: bool, reaction: Reaction) -> Step {
        match reaction {
            Reaction::Result(result) => match result.decode::<DiscoverResult>() {
                Ok(discovered) if !discovered.supported_versions.is_empty() => self.discovered(discovered),
                // Something answers everything; only a discovery is a discovery.
                _ => self.fall_back(),
            },
            Reaction::Error(error) if error.code == error_code::UNSUPPORTED_PROTOCOL_VERSION => {
                match supported_in(&error) {
                    Some(theirs) => self.choose(theirs, retried.then_some(offered)),
                    None => self.fall_back(),
                }
            }
            Reaction::Error(error) if error.is_modern() => Step::Failed(OpenError::Refused(error)),
            Reaction::Error(_) | Reaction::Silence => self.fall_back(),
        }
    }

    fn discovered(&mut self, discovered: DiscoverResult) -> Step {
        let newest = newest_common(self.revisions(), &discovered.supported_versions);
        match newest {
            Some(revision) if revision.era() == Era::Modern => Step::Open(Box::new(Negotiated {
                revision,
                server_info: discovered.meta.as_ref().and_then(|meta| meta.server_info().ok().flatten()),
                capabilities: discovered.capabilities,
                instructions: discovered.instructions,
            })),
            _ => self.choose(discovered.supported_versions, None),
        }
    }

    /// Goes on with the newest revision of `theirs` that is also ours, unless it is the one refused twice. Refused once
    /// it is tried again: behind one address there may be an instance of the server that does not support it yet.
    fn choose(&mut self, theirs: Vec<String>, refused: Option<Revision>) -> Step {
        let ours = self.revisions();
        match newest_common(ours, &theirs) {
            Some(revision) if Some(revision) == refused => {
                let theirs = theirs.join(", ");
                Step::Failed(OpenError::Malformed(format!(
                    "the server rejected {revision} but lists it as supported: {theirs}"
                )))
            }
            Some(revision) if revision.era() == Era::Modern => self.probe(revision, true),
            Some(revision) => self.greet(Some(revision), true),
            None => Step::Failed(OpenError::NoCommonRevision { ours: ours.newest_first().collect(), theirs }),
        }
    }

    fn fall_back(&mut self) -> Step {
        if self.handshake_refused {
            let reason = "it refuses `initialize` and does not answer `server/discover`";
            return Step::Failed(OpenError::Malformed(reason.into()));
        }
        self.greet(None, false)
    }

    fn greet(&mut self, revision: Option<Revision>, retried: bool) -> Step {
        let Some(offered) = revision.or_else(|| self.revisions().newest_legacy()) else {
            let ours = self.revisions().newest_first().collect();
            return Step::Failed(OpenError::NoCommonRevision { ours, theirs: Vec::new() });
        };
        self.stage = Stage::Greeting { offered, retried };
        Step::Request(Method::Initialize, self.profile.initialize(offered))
    }

    /// Some servers refuse a version with an error that names theirs instead of a counter-offer. One that names a modern
    /// revision missed the probe, for example because it was still starting: it is probed again.
    fn handshake_failed(&mut self, offered: Revision, retried: bool, error: RpcError) -> Step {
        let Some(theirs) = supported_in(&error).filter(|_| !retried) else {
            return Step::Failed(OpenError::Refused(error));
        };
        match newest_common(self.revisions(), &theirs) {
            Some(revision) if revision.era() == Era::Modern && !self.handshake_refused => {
                self.handshake_refused = true;
                self.probe(revision, true)
            }
            Some(revision) if revision.era() == Era::Legacy && revision != offered => {
                self.greet(Some(revision), true)
            }
            _ => {
                let ours = self.revisions().newest_first().collect();
                Step::Failed(OpenError::NoCommonRevision { ours, theirs })
            }
        }
    }

    fn greeted(&mut self, offered: Revision, retried: bool, reaction: Reaction) -> Step {
        let result = match reaction {
            Reaction::Result(result) => result,
            Reaction::Silence => return Step::Failed(OpenError::Silent),
            Reaction::Error(error) => return self.handshake_failed(offered, retried, error),
        };
        let result: InitializeResult = match result.decode() {
            Ok(result) => result,
            Err(error) => return Step::Failed(OpenError::Malformed(error.to_string())),
        };
        let agreed = Revision::parse(&result.protocol_version)
            .filter(|revision| revision.era() == Era::Legacy && self.revisions().contains(*revision));
        let Some(revision) = agreed else {
            let ours = self.revisions().newest_first().collect();
            return Step::Failed(OpenError::NoCommonRevision { ours, theirs: vec![result.protocol_version] });
        };
        Step::Open(Box::new(Negotiated {
            revision,
            server_info: Some(result.server_info),
            capabilities: result.capabilities,
            instructions: result.instructions,
        }))
    }
}

fn newest_common(ours: RevisionSet, theirs: &[String]) -> Option<Revision> {
    ours.newest_first().find(|revision| theirs.iter().any(|version| version == revision.as_str()))
}

/// Returns the versions in `data.supported` of an error.
fn supported_in(error: &RpcError) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Data {
        supported: Vec<String>,
    }
    error.data.as_ref()?.decode::<Data>().ok().map(|data| data.supported)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(revisions: &[Revision]) -> (Opening, Step) {
        let info = Implementation::new("test", "1");
        let profile =
            ClientProfile { revisions: revisions.iter().copied().collect(), ..ClientProfile::new(info) };
        Opening::start(Arc::new(profile), None)
    }

    /// Runs an opening against scripted reactions and returns what it did.
    fn run(revisions: &[Revision], reactions: Vec<Reaction>) -> String {
        let (mut opening, mut step) = opening(revisions);
        let mut log = Vec::new();
        let mut reactions = reactions.into_iter();
        loop {
            match step {
                Step::Request(method, _) => {
                    log.push(method.as_str().to_owned());
                    let Some(reaction) = reactions.next() else { return log.join(" > ") };
                    step = opening.next(reaction);
                }
                Step::Open(negotiated) => {
                    log.push(negotiated.revision.to_string());
                    return log.join(" > ");
                }
                Step::Failed(error) => {
                    log.push(error.to_string());
                    return log.join(" > ");
                }
            }
        }
    }

    fn result(text: &'static str) -> Reaction {
        Reaction::Result(RawJson::parse(text).unwrap())
    }

    const ALL: &[Revision] = &Revision::ALL;
    const MODERN: &[Revision] = &[Revision::V2026_07_28];
    const LEGACY: &[Revision] = &[Revision::V2025_06_18, Revision::V2025_11_25];
    const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}"#;
    const GREETED: &str =
        r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;

    fn unsupported(theirs: &[Revision]) -> Reaction {
        Reaction::Error(RpcError::unsupported_version("2026-07-28", theirs))
    }

    #[test]
    fn a_discovery_settles_the_era() {
        assert_eq!(run(ALL, vec![result(DISCOVERED)]), "server/discover > 2026-07-28");
        assert_eq!(run(MODERN, vec![result(DISCOVERED)]), "server/discover > 2026-07-28");
    }

    #[test]
    fn any_response_that_is_not_modern_leads_to_the_handshake() {
        // proves: VER-19, VER-20
        for reaction in [
            Reaction::Error(RpcError::method_not_found("server/discover")),
            Reaction::Error(RpcError::invalid_params("no")),
            Reaction::Error(RpcError::invalid_request("no")),
            Reaction::Silence,
            result("{}"),
            result(r#"{"supportedVersions":[],"capabilities":{}}"#),
        ] {
            let log = run(ALL, vec![reaction, result(GREETED)]);
            assert_eq!(log, "server/discover > initialize > 2025-06-18");
        }
    }

    #[test]
    fn a_modern_error_never_leads_to_the_handshake() {
        // proves: VER-18
        let log = run(ALL, vec![unsupported(&[])]);
        assert!(!log.contains("initialize"), "{log}");
        let log = run(MODERN, vec![unsupported(LEGACY)]);
        assert_eq!(
            log,
            "server/discover > no common protocol revision: this client supports 2026-07-28, the server 2025-06-18, 2025-11-25"
        );
    }

    #[test]
    fn a_supported_list_of_legacy_versions_is_followed() {
        let log = run(ALL, vec![unsupported(LEGACY), result(GREETED)]);
        assert_eq!(log, "server/discover > initialize > 2025-06-18");
    }

    #[test]
    fn a_revision_refused_though_supported_is_tried_once_more() {
        let contradiction = || unsupported(MODERN);
        let log = run(ALL, vec![contradiction(), result(DISCOVERED)]);
        assert_eq!(log, "server/discover > server/discover > 2026-07-28");
        let log = run(ALL, vec![contradiction(), contradiction(), result(DISCOVERED)]);
        assert_eq!(
            log,
            "server/discover > server/discover > the server sent an invalid handshake response: \
             the server rejected 2026-07-28 but lists it as supported: 2026-07-28"
        );
    }

    #[test]
    fn a_handshake_refused_in_favor_of_a_modern_revision_leads_back_to_the_probe() {
        let log = run(ALL, vec![Reaction::Silence, unsupported(MODERN), result(DISCOVERED)]);
        assert_eq!(log, "server/discover > initialize > server/discover > 2026-07-28");
        // Only once: a server that is silent again is not asked in circles.
        let log = run(ALL, vec![Reaction::Silence, unsupported(MODERN), Reaction::Silence]);
        assert_eq!(
            log,
            "server/discover > initialize > server/discover > the server sent an invalid handshake response: \
             it refuses `initialize` and does not answer `server/discover`"
        );
    }

    #[test]
    fn a_late_discovery_is_accepted_if_the_handshake_fails() {
        let late = |reaction: Reaction| {
            let (mut opening, _) = opening(ALL);
            assert!(opening.is_era_open());
            assert!(matches!(opening.next(Reaction::Silence), Step::Request(Method::Initialize, _)));
            assert!(!opening.accept_late(&RawJson::empty_object()));
            assert!(opening.accept_late(&RawJson::parse(DISCOVERED).unwrap()));
            match opening.next(reaction) {
                Step::Open(negotiated) => negotiated.revision.to_string(),
                other => panic!("expected an open connection, got {other:?}"),
            }
        };
        for refusal in [
            Reaction::Error(RpcError::method_not_found("initialize")),
            Reaction::Error(RpcError::invalid_params("no")),
            unsupported(&[]),
            unsupported(MODERN),
            unsupported(LEGACY),
            Reaction::Silence,
            result("{}"),
        ] {
            assert_eq!(late(refusal), "2026-07-28");
        }
        assert_eq!(late(result(GREETED)), "2025-06-18");
    }

    #[test]
    fn a_modern_client_fails_plainly_at_a_legacy_server() {
        let log = run(MODERN, vec![Reaction::Silence]);
        assert_eq!(
            log,
            "server/discover > no common protocol revision: this client supports 2026-07-28, the server named no modern revision"
        );
    }

    #[test]
    fn a_legacy_client_does_not_probe() {
        assert_eq!(run(LEGACY, vec![result(GREETED)]), "initialize > 2025-06-18");
        let refused = run(LEGACY, vec![unsupported(MODERN)]);
        assert!(refused.ends_with("the server 2026-07-28"), "{refused}");
    }

    #[test]
    fn a_counter_offer_that_is_not_ours_fails() {
        let strange = result(
            r#"{"protocolVersion":"2019-01-01","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
        );
        let log = run(LEGACY, vec![strange]);
        assert!(log.ends_with("the server 2019-01-01"), "{log}");
    }
}
