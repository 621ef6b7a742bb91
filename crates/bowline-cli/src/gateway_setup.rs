//! Builds the gateway of `up` and `gateway`: storage, approvals, and warnings about the configuration.

use crate::{
    context::Context,
    failure::{Code, Failure},
    login,
    sharing::Sharing,
    token::Access,
};
use bowline_config::{Config, Loader, NoticeKind};
use bowline_host::{
    Gateway,
    gateway::{Approvals, Approve, Candidate, EntryState, EntryStatus, GatewayError},
};
use bowline_inspector::Inspector;
use bowline_policy::{Audience, Consent, Gate, Pattern, Rule, StoreError, SystemOpener};
use clap::Args;
use std::{
    collections::BTreeSet,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

/// A gateway and its approvals.
#[derive(Debug)]
pub(crate) struct GatewaySetup {
    pub(crate) gateway: Gateway,
    pub(crate) approved: Approved,
}

/// Whether answers of the user are stored for later runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    Stored,
    ThisRun,
}

/// Options for consent.
#[derive(Args, Debug, Default)]
pub(crate) struct ConsentArguments {
    /// Allow tools without asking: `SERVER` or `SERVER__TOOL`, with `*` as a wildcard; can be repeated. Rules that deny take precedence
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<String>,
}

/// How clients connect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServeOptions<'a> {
    /// The HTTP address; `None` for stdio only.
    pub(crate) listen: Option<SocketAddr>,
    /// The token that HTTP clients must send.
    pub(crate) access: &'a Access,
    pub(crate) consent: &'a ConsentArguments,
    /// Sees everything that happens.
    pub(crate) inspector: Option<&'a Inspector>,
    /// The scopes of `--auth dev`; `None` without it.
    pub(crate) dev_scopes: Option<&'a [String]>,
    /// What several processes share.
    pub(crate) sharing: Option<&'a Sharing>,
}

impl ConsentArguments {
    fn rules(&self) -> impl Iterator<Item = Rule> {
        self.allow.iter().map(|pattern| {
            let (server, tool) = pattern.split_once("__").unwrap_or((pattern, "*"));
            Rule::allow().server(Pattern::new(server)).tool(Pattern::new(tool)).origin("--allow")
        })
    }
}

impl GatewaySetup {
    /// Builds the gateway for a configuration. Questions go to the gate, if there is one.
    pub(crate) fn new(
        context: &Context,
        config: Config,
        persistence: Persistence,
        gate: Option<Arc<dyn Gate>>,
        options: &ServeOptions<'_>,
    ) -> Result<Self, Failure> {
        let environment = &context.environment;
        if options.dev_scopes.is_some() && config.gateway.auth.is_some() {
            return Err(Failure::misused(
                "`--auth dev` conflicts with `[gateway.auth]` in the configuration",
            )
            .advise("remove one of them"));
        }
        let folder = environment.state_dir().filter(|_| persistence == Persistence::Stored);
        let file = folder.as_ref().map(|folder| Approvals::open(folder.join("approvals.json"))).transpose();
        let approved = Approved { file: file.map_err(unusable)?, run: Arc::default() };
        let mut builder =
            Gateway::builder(config).environment(environment.variables.clone()).approve(approved.clone());
        builder = builder.serves(options.listen).without_asking(options.consent.rules());
        if let Some(sharing) = options.sharing {
            if let Some(store) = &sharing.store {
                builder = builder.store(store.clone());
            }
            if let Some(keys) = &sharing.keys {
                builder = builder.keys(keys.clone());
            }
        }
        if let Some(workspace) = &environment.workspace {
            builder = builder.workspace(workspace);
        }
        if let Some(folder) = folder {
            builder = builder.folder(folder);
        }
        if let Some(token) = options.access.token() {
            builder = builder.token(token);
        }
        if let Some(inspector) = options.inspector {
            builder = builder.tap(inspector.tap()).redactor(inspector.redactor());
            inspector.add_secrets(options.access.token().map(str::to_owned));
        }
        if let Some(scopes) = options.dev_scopes {
            builder = builder.dev_auth(scopes);
        }
        if let Some(key) = login::sealing_key(context)? {
            builder = builder.login_key(key);
        }
        if let Some(gate) = gate {
            builder = builder.gate(gate).attended().opener(SystemOpener);
        }
        let gateway = builder.build().map_err(|error| config_failure(&error))?;
        Ok(Self { gateway, approved })
    }

    /// Describes the active consent mode in one line.
    pub(crate) fn consent(&self, is_attended: bool) -> String {
        let consent = self.gateway.consent();
        let meaning = match (consent, is_attended, self.gateway.audience()) {
            (Consent::Client, _, _) => "if no rule matches, the client decides whether to ask its user",
            (Consent::Ask, true, _) => "if no rule matches, you are asked here",
            (Consent::Ask, false, Audience::SingleUser) => {
                "if no rule matches, the user of the client is asked; clients that cannot ask are refused"
            }
            (Consent::Ask, false, Audience::Shared) => {
                "several users can connect; if no rule matches, the user of the calling client is asked, and clients \
                 that cannot ask are refused"
            }
            (Consent::Deny, _, _) => "calls are refused unless a rule allows them",
        };
        format!("consent = \"{consent}\": {meaning}")
    }

    /// Reloads the configuration on every SIGHUP.
    #[cfg(unix)]
    pub(crate) fn reload_on_hangup(&self, loader: Loader) -> io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut hangup = signal(SignalKind::hangup())?;
        let gateway = self.gateway.clone();
        tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                gateway.reload(&loader).await;
            }
        });
        Ok(())
    }

    /// Does nothing: this platform has no SIGHUP.
    #[cfg(not(unix))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "same signature as on Unix")]
    pub(crate) fn reload_on_hangup(&self, _: Loader) -> io::Result<()> {
        Ok(())
    }

    /// Returns problems of the configuration and warnings about the address.
    pub(crate) fn warnings(&self, listen: SocketAddr) -> Vec<String> {
        let config = self.gateway.config();
        let mut warnings: Vec<String> = self.gateway.problems().iter().map(ToString::to_string).collect();
        let is_configured = config.gateway.listen.ip() == listen.ip();
        if !listen.ip().is_loopback() && !self.gateway.has_token() && !is_configured {
            warnings.push(format!(
                "other machines can connect to {listen} without a token; remove `--no-token`, or set `token_env` in `[gateway]`"
            ));
        }
        if listen.ip().is_unspecified() && config.gateway.allowed_hosts.is_empty() {
            warnings.push(format!(
                "listening on {listen}, but only requests for `localhost` are allowed; add the host names and addresses that \
                 clients use to `gateway.allowed_hosts`"
            ));
        }
        warnings
    }

    /// Returns a warning for each server that needs approval.
    pub(crate) fn unapproved(&self) -> Vec<String> {
        let entries = self.gateway.status().into_iter();
        let warnings = entries.filter_map(|EntryStatus { name, state, .. }| match state {
            EntryState::NeedsApproval(candidate) => Some(format!(
                "{}: server `{name}` is defined by the project and needs your approval; run `bowline up` in a terminal to approve it",
                candidate.origin(),
            )),
            _ => None,
        });
        warnings.collect()
    }

    /// Returns the notices of the configuration that the user should see.
    pub(crate) fn notices(&self) -> Vec<String> {
        let config = self.gateway.config();
        let is_configured =
            |kind| matches!(kind, NoticeKind::Danger | NoticeKind::Ignored | NoticeKind::Replaced);
        config.notices.iter().filter(|notice| is_configured(notice.kind)).map(ToString::to_string).collect()
    }
}

/// Returns whether there is no configuration at all.
pub(crate) fn is_unconfigured(config: &Config) -> bool {
    config.upstreams.is_empty() && !config.files.iter().any(|file| file.exists()) && config.errors.is_empty()
}

/// Returns the failure for a gateway that cannot be built.
pub(crate) fn config_failure(error: &GatewayError) -> Failure {
    let problems = error.problems().iter().map(ToString::to_string).collect();
    let sentence = "the configuration is invalid";
    Failure { advice: problems, ..Failure::new(Code::Config, sentence) }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn unusable(error: StoreError) -> Failure {
    Failure::new(Code::Failed, error.to_string())
}

/// The approvals of earlier runs, if there is a file, and of this run.
#[derive(Clone, Debug)]
pub(crate) struct Approved {
    file: Option<Approvals>,
    run: Arc<Mutex<BTreeSet<(String, String)>>>,
}

impl Approved {
    /// Approves a server.
    pub(crate) fn approve(&self, candidate: &Candidate) -> Result<(), StoreError> {
        let approved = (candidate.server().to_owned(), candidate.digest().to_owned());
        self.run.lock().unwrap_or_else(PoisonError::into_inner).insert(approved);
        self.file.as_ref().map_or(Ok(()), |file| file.approve(candidate))
    }
}

impl Approve for Approved {
    fn approve_for_client(&self, candidate: &Candidate) -> Result<(), String> {
        self.approve(candidate).map_err(|error| error.to_string())
    }

    fn is_approved(&self, candidate: &Candidate) -> bool {
        let approved = (candidate.server().to_owned(), candidate.digest().to_owned());
        self.run.lock().unwrap_or_else(PoisonError::into_inner).contains(&approved)
            || self.file.as_ref().is_some_and(|file| file.is_approved(candidate))
    }
}
