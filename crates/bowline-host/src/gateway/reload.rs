//! Replaces the configuration of a running gateway.

use super::{
    Gateway, Inner,
    approval::Candidate,
    problem::{self, GatewayError, Problem},
    rules,
    secrets::secrets,
};
use crate::upstream::Upstream;
use bowline_client::{Connect, Inbox, Limits, Restart, Transport};
use bowline_config::{
    Config, Diff, DisclosureConfig, Environment, Launch, LimitsConfig, UpstreamConfig, diff,
};
use bowline_proto::service::BoxFuture;
use bowline_search::Disclosure;
use bowline_types::Era;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, MutexGuard, PoisonError},
};

/// Whether a server of the configuration is used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryState {
    /// It is used.
    Active,
    /// The user has turned it off.
    Disabled,
    /// It is not used until the user approves it.
    NeedsApproval(Candidate),
    /// It cannot be used, for this reason.
    Broken(String),
}

/// The effect of a new configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// The differences to the previous one.
    pub diff: Diff,
    /// The sections whose changes take effect after a restart.
    pub restart: Vec<&'static str>,
    /// The problems of the new configuration.
    pub problems: Vec<Problem>,
}

/// The sections that apply at start only.
const MADE_ONCE: [&str; 7] = ["gateway", "sampling", "audit", "store", "sessions", "tasks", "inspector"];

/// The present state of the gateway.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) config: Arc<Config>,
    pub(super) entry_states: BTreeMap<String, EntryState>,
    /// Problems of servers.
    pub(super) problems: Vec<Problem>,
    /// Problems of the last configuration that was rejected.
    pub(super) refused: Vec<Problem>,
}

impl Inner {
    /// Whether several users may call the gateway.
    pub(super) fn is_shared(&self) -> bool {
        self.credentials.as_ref().is_some_and(|credentials| credentials.is_shared)
    }

    /// Lets one configuration be applied at a time. Files are read under this lock and not under that of the state, which
    /// calls wait for.
    fn applying(&self) -> MutexGuard<'_, ()> {
        self.applying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has to be approved of a server, if anything. Reads files: the caller must not hold a lock.
    pub(super) fn candidate(&self, entry: &UpstreamConfig) -> Option<Candidate> {
        let workspace = self.workspace.as_deref();
        (entry.settings.enabled && entry.needs_approval())
            .then(|| Candidate::with_cache(entry, &self.environment, workspace, &self.digests))
    }

    /// What has to be approved of each server of a configuration, by name.
    fn candidates(&self, config: &Config) -> BTreeMap<String, Candidate> {
        let named = |entry: &UpstreamConfig| Some((entry.name.clone(), self.candidate(entry)?));
        config.upstreams.iter().filter_map(named).collect()
    }

    /// Decides whether an entry is used. Returns the upstream if it is.
    pub(super) fn evaluate(
        &self,
        config: &Config,
        entry: &UpstreamConfig,
        candidate: Option<Candidate>,
    ) -> (EntryState, Option<Upstream>) {
        if !entry.settings.enabled {
            return (EntryState::Disabled, None);
        }
        if let Some(error) = problem::about_server(config, &entry.name) {
            return (EntryState::Broken(error.to_string()), None);
        }
        let mut approved = None;
        if let Some(candidate) = candidate {
            if !self.approve.is_approved(&candidate) {
                return (EntryState::NeedsApproval(candidate), None);
            }
            let (environment, workspace) = (self.environment.clone(), self.workspace.clone());
            let digest = candidate.digest().to_owned();
            approved = Some(Approved { entry: Arc::new(entry.clone()), environment, workspace, digest });
        }
        let workspace = self.workspace.as_deref();
        let upstream = match &self.credentials {
            Some(credentials) => Upstream::from_config_with_credentials(entry, workspace, credentials),
            None => Upstream::from_config(entry, workspace),
        };
        match upstream {
            Ok(mut upstream) => {
                upstream.task_after = entry.settings.task_after.unwrap_or(config.tasks.after).time();
                if let Some(approved) = approved {
                    if let Some(targets) = upstream.user_targets.take() {
                        let approved = approved.clone();
                        upstream.user_targets = Some(Arc::new(move |account| {
                            Arc::new(ApprovedTarget { target: targets(account), approved: approved.clone() })
                        }));
                    }
                    upstream.target = Arc::new(ApprovedTarget { target: upstream.target, approved });
                }
                (EntryState::Active, Some(upstream))
            }
            Err(error) => (EntryState::Broken(error.to_string()), None),
        }
    }
}

/// The approved state of a server.
#[derive(Clone)]
struct Approved {
    entry: Arc<UpstreamConfig>,
    environment: Environment,
    workspace: Option<PathBuf>,
    digest: String,
}

/// A server that was approved. Before each start, its files are compared with the approval, because they may change.
struct ApprovedTarget {
    target: Arc<dyn Connect>,
    approved: Approved,
}

impl Connect for ApprovedTarget {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, bowline_client::Result<Box<dyn Transport>>> {
        let Approved { entry, environment, workspace, digest } = self.approved.clone();
        let looking = tokio::task::spawn_blocking(move || {
            Candidate::of(&entry, &environment, workspace.as_deref()).digest() == digest
        });
        Box::pin(async move {
            if !matches!(looking.await, Ok(true)) {
                let reason = "its program or files changed since it was approved; run `bowline up` in a terminal to \
                              approve it again";
                return Err(bowline_client::Error::unreachable(reason));
            }
            self.target.connect(inbox).await
        })
    }

    fn restart(&self) -> Restart {
        self.target.restart()
    }

    fn known_era(&self) -> Option<Era> {
        self.target.known_era()
    }

    fn extensions(&self) -> Vec<&'static str> {
        self.target.extensions()
    }
}

impl Gateway {
    /// Applies a new configuration. Only what changed is touched: other servers continue, and calls at a replaced server are
    /// finished there.
    ///
    /// Fails and changes nothing if a file cannot be read, or if a rule, the token or the audit log may be lost. A server whose
    /// entry has become invalid keeps its previous settings.
    ///
    /// Needs a tokio runtime. Reads the files of servers that have to be approved, so run it with
    /// [`spawn_blocking`](tokio::task::spawn_blocking) where other tasks must not wait.
    pub fn apply(&self, config: Config) -> Result<Applied, GatewayError> {
        let refused = problem::refused(&config);
        let _applying = self.inner.applying();
        let candidates = self.inner.candidates(&config);
        let mut state = self.inner.state();
        if !refused.is_empty() {
            state.refused.clone_from(&refused);
            return Err(GatewayError::new(refused));
        }
        state.refused.clear();
        Ok(self.replace(&mut state, config, candidates))
    }

    /// Applies the present configuration again, to use servers that were approved, or whose files appeared, meanwhile.
    ///
    /// Needs a tokio runtime. Reads the files of servers that have to be approved, so run it with
    /// [`spawn_blocking`](tokio::task::spawn_blocking) where other tasks must not wait.
    pub fn review(&self) -> Applied {
        let _applying = self.inner.applying();
        let config = Config::clone(&self.config());
        let candidates = self.inner.candidates(&config);
        self.replace(&mut self.inner.state(), config, candidates)
    }

    fn replace(
        &self,
        state: &mut State,
        mut config: Config,
        mut candidates: BTreeMap<String, Candidate>,
    ) -> Applied {
        let inner = &self.inner;
        let mut problems: Vec<_> = config.errors.iter().map(Problem::from).collect();
        keep_active_entries(state, &mut config);
        let diff = diff(&state.config, &config);

        let audit = inner.host.guard().audit();
        if audit.is_some() || inner.redactor.is_some() {
            let secrets = secrets(&config.upstreams);
            if let Some(redactor) = &inner.redactor {
                redactor.learn(secrets.iter().cloned());
            }
            if let Some(audit) = audit {
                audit.hide(secrets);
            }
        }
        // Set before servers are added, so that a new server never runs under the old rules.
        inner.host.guard().set_policy(rules::policy(&config, &inner.consent));
        for name in &diff.removed {
            inner.host.remove(name);
            state.entry_states.remove(name);
        }
        for entry in &config.upstreams {
            let name = &entry.name;
            let was_active = state.entry_states.get(name) == Some(&EntryState::Active);
            if was_active && problem::about_server(&config, name).is_some() {
                continue;
            }
            let is_touched = diff.added.contains(name) || diff.changed.contains(name);
            let (entry_state, upstream) = inner.evaluate(&config, entry, candidates.remove(name));
            match upstream {
                Some(upstream) if is_touched || !was_active => inner.host.add(name, upstream),
                None if was_active => drop(inner.host.remove(name)),
                Some(_) | None => {}
            }
            problems.extend(problems_of(entry, &entry_state, inner.is_shared()));
            state.entry_states.insert(name.clone(), entry_state);
        }
        if diff.sections.contains(&"disclosure") {
            inner.host.set_disclosure(disclosure(&config.disclosure));
        }
        let restart = diff.sections.iter().copied().filter(|section| MADE_ONCE.contains(section)).collect();
        state.config = Arc::new(config);
        state.problems.clone_from(&problems);
        Applied { diff, restart, problems }
    }
}

/// Keeps the previous entries of active servers whose new entries are invalid.
fn keep_active_entries(state: &State, config: &mut Config) {
    for (name, entry_state) in &state.entry_states {
        if *entry_state != EntryState::Active || problem::about_server(config, name).is_none() {
            continue;
        }
        let Some(before) = state.config.upstream(name) else { continue };
        match config.upstreams.iter_mut().find(|entry| entry.name == *name) {
            Some(entry) => entry.clone_from(before),
            None => config.upstreams.push(before.clone()),
        }
    }
}

/// Returns the problems of a server: why it cannot be used, or which settings have no effect.
pub(super) fn problems_of(entry: &UpstreamConfig, entry_state: &EntryState, is_shared: bool) -> Vec<Problem> {
    let tell = |message: &str| Problem::server(&entry.name, message);
    match entry_state {
        EntryState::Broken(reason) => return vec![tell(reason)],
        EntryState::Disabled | EntryState::NeedsApproval(_) => return Vec::new(),
        EntryState::Active => {}
    }
    let mut told = Vec::new();
    if !Limits::SUPPORTED && entry.settings.limits != LimitsConfig::default() {
        told.push(tell("`limits` is not supported on this operating system"));
    }
    if is_shared && has_login_without_mode(entry) {
        told.push(tell(
            "`oauth` has no effect, because several users can call this gateway; set `auth` to `shared` or `user`",
        ));
    }
    told
}

/// Whether an entry has settings of a login, but does not say whose account is used.
fn has_login_without_mode(entry: &UpstreamConfig) -> bool {
    let has_login = matches!(&entry.launch, Launch::Url(launch) if launch.oauth.is_some());
    has_login && entry.settings.auth.is_none()
}

/// Builds the disclosure settings from the configuration.
pub(super) fn disclosure(config: &DisclosureConfig) -> Disclosure {
    Disclosure::new()
        .mode(config.mode)
        .threshold(usize::try_from(config.threshold_tokens).unwrap_or(usize::MAX))
}
