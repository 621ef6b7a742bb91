//! Runs the checks of a server when a person asks for it, and keeps what they found.

use crate::{
    buffer::{Recorder, now},
    inspector::Shared,
    queries::attached,
    query::{ChecksState, ChecksView, FindingLevel, FindingView},
    render::Shown,
    service::Failure,
};
use bowline_client::Direction;
use bowline_server::{BoxFuture, transport::next_connection};
use http::StatusCode;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::task::{JoinHandle, JoinSet};

/// How long checks may take.
const MAX_TIME: Duration = Duration::from_secs(300);
/// How many findings are kept per server, and how many messages and places per finding.
const MAX_FINDINGS: usize = 200;
const MAX_MESSAGES: usize = 20;

/// Checks servers. The program that has the inspector provides it.
pub trait Checker: Send + Sync + 'static {
    /// Checks a server of the host, over connections of its own, which `watch` shows.
    ///
    /// The error says why it cannot be checked.
    fn check(
        &self,
        server: String,
        watch: CheckWatch,
    ) -> BoxFuture<'static, Result<Vec<CheckFinding>, String>>;
}

/// Something that checks found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckFinding {
    /// How bad it is.
    pub level: FindingLevel,
    /// The stable name of the check.
    pub check: String,
    /// What was found. It may contain text of the server.
    pub what: String,
    /// Where, in words. It may contain text of the server.
    pub places: Vec<String>,
    /// What to do.
    pub advice: String,
    /// The numbers of the messages that it is about, as [`CheckConnection::frame`] returned them.
    pub messages: Vec<u64>,
}

impl CheckFinding {
    /// Creates a finding without places and messages.
    pub fn new(
        level: FindingLevel,
        check: impl Into<String>,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let (check, what, advice) = (check.into(), what.into(), advice.into());
        Self { level, check, what, places: Vec::new(), advice, messages: Vec::new() }
    }
}

/// Shows the messages of checks in Traffic.
#[derive(Clone, Debug)]
pub struct CheckWatch {
    recorder: Recorder,
    server: Arc<str>,
}

/// A connection of checks.
#[derive(Clone, Debug)]
pub struct CheckConnection {
    watch: CheckWatch,
    number: u64,
}

impl CheckWatch {
    /// Returns a new connection to the server.
    #[must_use]
    pub fn connection(&self) -> CheckConnection {
        CheckConnection { watch: self.clone(), number: next_connection() }
    }
}

impl CheckConnection {
    /// Shows a message and returns its number.
    pub fn frame(&self, direction: Direction, frame: &[u8]) -> u64 {
        self.watch.recorder.record(self.number, &self.watch.server, direction, frame)
    }
}

/// The latest checks of each server.
#[derive(Debug, Default)]
pub(crate) struct Checks(Mutex<Latest>);

#[derive(Debug, Default)]
struct Latest {
    views: BTreeMap<String, ChecksView>,
    /// One server is checked at a time.
    running: Option<JoinHandle<()>>,
}

impl Checks {
    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Latest {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}

/// Returns the latest checks of a server.
pub(crate) fn view(shared: &Shared, server: &str) -> Result<ChecksView, Failure> {
    known(shared, server)?;
    let view = shared.checks.latest().views.get(server).cloned().unwrap_or_default();
    Ok(ChecksView { is_available: shared.checker.get().is_some(), ..view })
}

/// Starts the checks of a server.
pub(crate) fn run(shared: &Arc<Shared>, server: &str) -> Result<(), Failure> {
    // Only servers that the host may start anyway: checks start programs, too.
    known(shared, server)?;
    let checker = shared.checker.get().ok_or_else(|| {
        Failure::new(StatusCode::CONFLICT, "servers cannot be checked here").advise("run `bowline doctor`")
    })?;
    let mut latest = shared.checks.latest();
    if latest.running.as_ref().is_some_and(|running| !running.is_finished()) {
        return Err(Failure::new(StatusCode::TOO_MANY_REQUESTS, "checks are running already")
            .advise("wait until they are done"));
    }
    let watch = CheckWatch { recorder: shared.recorder.clone(), server: server.into() };
    let checking = checker.check(server.to_owned(), watch);
    let at = Some(now());
    let begun = ChecksView { state: ChecksState::Running, at, ..ChecksView::default() };
    latest.views.insert(server.to_owned(), begun);
    let (weak, server) = (Arc::downgrade(shared), server.to_owned());
    latest.running = Some(tokio::spawn(async move {
        // A task of its own, which may panic and ends with this one.
        let mut checks = JoinSet::new();
        checks.spawn(checking);
        let checked = tokio::time::timeout(MAX_TIME, checks.join_next()).await;
        let Some(shared) = weak.upgrade() else { return };
        let mask = |text: &str| shared.redactor.text(text);
        let view = match checked {
            Ok(Some(Ok(Ok(findings)))) => {
                let findings = findings.into_iter().take(MAX_FINDINGS).map(|finding| FindingView {
                    level: finding.level,
                    check: finding.check,
                    what: Shown::text(&mask(&finding.what)),
                    places: finding
                        .places
                        .iter()
                        .take(MAX_MESSAGES)
                        .map(|place| Shown::line(&mask(place)))
                        .collect(),
                    advice: finding.advice,
                    messages: finding.messages.into_iter().take(MAX_MESSAGES).collect(),
                });
                ChecksView {
                    state: ChecksState::Done,
                    at,
                    findings: findings.collect(),
                    ..ChecksView::default()
                }
            }
            Ok(Some(Ok(Err(reason)))) => failed(at, &mask(&reason)),
            Ok(_) => failed(at, "the checks panicked; the log of the program says where"),
            Err(_) => failed(at, &format!("the checks took longer than {} s", MAX_TIME.as_secs())),
        };
        shared.checks.latest().views.insert(server, view);
        shared.recorder.checks_changed();
    }));
    drop(latest);
    shared.recorder.checks_changed();
    Ok(())
}

fn failed(at: Option<f64>, reason: &str) -> ChecksView {
    let problem = Some(Shown::text(reason));
    ChecksView { state: ChecksState::Failed, at, problem, ..ChecksView::default() }
}

fn known(shared: &Shared, server: &str) -> Result<(), Failure> {
    if attached(shared)?.host.names().iter().any(|name| name == server) {
        return Ok(());
    }
    Err(Failure::not_found(format!("there is no server `{}`", bowline_text::visible(server))))
}
