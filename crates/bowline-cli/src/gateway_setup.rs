//! The gateway as the program runs it: where answers are kept, who approves, and what is told of the configuration.

use crate::{
    context::Context,
    failure::{Code, Failure},
    token::Access,
};
use bowline_config::{Config, Loader, NoticeKind};
use bowline_host::{
    Gateway,
    gateway::{Approvals, Approve, Candidate, EntryStatus, GatewayError, Standing},
};
use bowline_policy::{Audience, Consent, Gate, Pattern, Rule, StoreError, SystemOpener};
use clap::Args;
use std::{
    collections::BTreeSet,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

/// A gateway, and who approves what it may start.
#[derive(Debug)]
pub(crate) struct GatewaySetup {
    pub(crate) gateway: Gateway,
    pub(crate) approved: Approved,
}

/// Whether what a user answers is kept for later runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Persistence {
    Stored,
    ThisRun,
}

/// Who may call without being asked about.
#[derive(Args, Debug, Default)]
pub(crate) struct ConsentArguments {
    /// Allow these tools without asking: a server, or a tool as clients see it; `*` stands for anything. May be given more
    /// than once. What a rule denies stays denied
    #[arg(long, value_name = "PATTERN")]
    allow: Vec<String>,
}

/// Where clients connect, and what they need for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServeOptions<'a> {
    /// The address of HTTP; none where clients connect over standard streams only.
    pub(crate) listen: Option<SocketAddr>,
    /// What clients over HTTP have to send.
    pub(crate) access: &'a Access,
    pub(crate) consent: &'a ConsentArguments,
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
    /// The gateway that a configuration describes, in the environment of this program. Questions go to the gate, if there
    /// is one.
    pub(crate) fn new(
        context: &Context,
        config: Config,
        persistence: Persistence,
        gate: Option<Arc<dyn Gate>>,
        options: &ServeOptions<'_>,
    ) -> Result<Self, Failure> {
        let environment = &context.environment;
        let folder = environment.state_dir().filter(|_| persistence == Persistence::Stored);
        let file = folder.as_ref().map(|folder| Approvals::open(folder.join("approvals.json"))).transpose();
        let approved = Approved { file: file.map_err(unusable)?, run: Arc::default() };
        let mut builder =
            Gateway::builder(config).environment(environment.variables.clone()).approve(approved.clone());
        builder = builder.serves(options.listen).without_asking(options.consent.rules());
        if let Some(workspace) = &environment.workspace {
            builder = builder.workspace(workspace);
        }
        if let Some(folder) = folder {
            builder = builder.folder(folder);
        }
        if let Some(token) = options.access.token() {
            builder = builder.token(token);
        }
        if let Some(gate) = gate {
            builder = builder.gate(gate).attended().opener(SystemOpener);
        }
        let gateway = builder.build().map_err(|error| config_failure(&error))?;
        Ok(Self { gateway, approved })
    }

    /// Which mode of consent is active, in one line.
    pub(crate) fn consent(&self, is_attended: bool) -> String {
        let consent = self.gateway.consent();
        let meaning = match (consent, is_attended, self.gateway.audience()) {
            (Consent::Client, _, _) => {
                "calls that no rule decides are left to the client, which asks its own user"
            }
            (Consent::Ask, true, _) => "calls that no rule decides are asked about here",
            (Consent::Ask, false, Audience::SingleUser) => {
                "calls that no rule decides are put to the user of the client, or config_failure if it cannot ask"
            }
            (Consent::Ask, false, Audience::Shared) => {
                "several users may connect; calls that no rule decides are put to the user of the calling client, or \
                 config_failure if it cannot ask"
            }
            (Consent::Deny, _, _) => "calls that no rule allows are config_failure",
        };
        format!("consent = \"{consent}\": {meaning}")
    }

    /// Reloads the configuration whenever the process gets a SIGHUP, until the program ends.
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

    /// There is no such signal here.
    #[cfg(not(unix))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "other systems have the signal")]
    pub(crate) fn reload_on_hangup(&self, _: Loader) -> io::Result<()> {
        Ok(())
    }

    /// What is wrong with the configuration, or has to be known of it, in sentences.
    pub(crate) fn warnings(&self, listen: SocketAddr) -> Vec<String> {
        let config = self.gateway.config();
        let mut told: Vec<String> = self.gateway.problems().iter().map(ToString::to_string).collect();
        let is_told = config.gateway.listen.ip() == listen.ip();
        if !listen.ip().is_loopback() && !self.gateway.has_token() && !is_told {
            told.push(format!(
                "other machines can connect to {listen}, and nobody has to send a token; \
                 remove `--no-token`, or set `token_env` in `[gateway]`"
            ));
        }
        if listen.ip().is_unspecified() && config.gateway.allowed_hosts.is_empty() {
            told.push(format!(
                "only requests for `localhost` are answered on {listen}; add the names and addresses that clients use \
                 to `gateway.allowed_hosts`"
            ));
        }
        told
    }

    /// What waits for somebody to approve it, where nobody is who could.
    pub(crate) fn unapproved(&self) -> Vec<String> {
        let entries = self.gateway.status().into_iter();
        let told = entries.filter_map(|EntryStatus { name, standing, .. }| match standing {
            Standing::NeedsApproval(candidate) => Some(format!(
                "{}: the server `{name}` comes with the project and is not used before you approve it: run `bowline up` \
                 in a terminal",
                candidate.origin(),
            )),
            _ => None,
        });
        told.collect()
    }

    /// What is worth knowing before it runs.
    pub(crate) fn notices(&self) -> Vec<String> {
        let config = self.gateway.config();
        let is_told = |kind| matches!(kind, NoticeKind::Danger | NoticeKind::Ignored | NoticeKind::Replaced);
        config.notices.iter().filter(|notice| is_told(notice.kind)).map(ToString::to_string).collect()
    }
}

/// Whether nobody has configured anything.
pub(crate) fn is_unconfigured(config: &Config) -> bool {
    config.upstreams.is_empty() && !config.files.iter().any(|file| file.exists()) && config.errors.is_empty()
}

/// Why there is no gateway.
pub(crate) fn config_failure(error: &GatewayError) -> Failure {
    let problems = error.problems().iter().map(ToString::to_string).collect();
    let sentence = "the configuration cannot be used as it is";
    Failure { advice: problems, ..Failure::new(Code::Config, sentence) }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn unusable(error: StoreError) -> Failure {
    Failure::new(Code::Failed, error.to_string())
}

/// Knows what was approved: in earlier runs where there is a file, and in this one.
#[derive(Clone, Debug)]
pub(crate) struct Approved {
    file: Option<Approvals>,
    run: Arc<Mutex<BTreeSet<(String, String)>>>,
}

impl Approved {
    /// Approves from now on.
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
