//! Builds a gateway from a configuration.

use super::{
    Gateway, Inner,
    approval::{Approvals, Approve, Candidate},
    auth::AccessTokens,
    connect::Connections,
    edge::{self, Token},
    file_digest::DigestCache,
    models::{self, Models},
    pending::Pending,
    problem::{self, GatewayError, Problem},
    reload::{self, State},
    rules::{self, ConsentSettings},
    secrets::secrets,
    sessions::Sharing,
};
use crate::{Host, LoginStorage, Tap, Telemetry, host::AccountPages, upstream::Credentials};
use bowline_config::{Config, Environment};
use bowline_http::{Post, Poster, auth::SealingKey};
use bowline_policy::{
    Answers, Audience, Consent, Gate, Guard, GuardBuilder, Opener, Pins, QuestionLimit, Rule,
    audit::{Audit, AuditSettings, Redactor},
    default_consent,
};
use bowline_telemetry::{Exporter, Sources, Traces};
use ring::rand::{SecureRandom, SystemRandom};
use std::{
    fmt,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, atomic::AtomicBool},
    time::SystemTime,
};

/// How clients connect to the gateway.
#[derive(Clone, Copy)]
enum Serves {
    Stdio,
    Http(SocketAddr),
}

/// Whether a gateway answers for names that are not of this machine.
fn is_published(allowed_hosts: &[String]) -> bool {
    let is_local = |host: &String| {
        let name = host.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(name, _)| name);
        let name = name.or_else(|| host.split(':').next()).unwrap_or_default();
        let is_loopback = name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        is_loopback || name.eq_ignore_ascii_case("localhost")
    };
    !allowed_hosts.iter().all(is_local)
}

/// Builds a [`Gateway`].
#[must_use = "it does nothing until it is built"]
pub struct GatewayBuilder {
    config: Config,
    environment: Environment,
    workspace: Option<PathBuf>,
    folder: Option<PathBuf>,
    guard: GuardBuilder,
    attended: bool,
    approve: Option<Arc<dyn Approve>>,
    post: Option<Arc<dyn Post>>,
    telemetry: Telemetry,
    traces: Option<Traces>,
    token: Option<String>,
    consent: Option<Consent>,
    audience: Option<Serves>,
    without_asking: Vec<Rule>,
    tap: Option<Arc<dyn Tap>>,
    redactor: Option<Redactor>,
    sharing: Sharing,
    dev_scopes: Option<Vec<String>>,
    login_key: Option<SealingKey>,
}

impl GatewayBuilder {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            environment: Environment::new(std::iter::empty::<(String, String)>()),
            workspace: None,
            folder: None,
            guard: Guard::builder(),
            attended: false,
            approve: None,
            post: None,
            telemetry: Telemetry::default(),
            traces: None,
            token: None,
            consent: None,
            audience: None,
            without_asking: Vec::new(),
            tap: None,
            redactor: None,
            sharing: Sharing::default(),
            dev_scopes: None,
            login_key: None,
        }
    }

    /// Sets the store that `[sessions]` uses, and where tasks are recorded. The gateway does not open `[store]` itself.
    pub fn store(mut self, store: bowline_store::Store) -> Self {
        self.sharing.store = Some(store);
        self
    }

    /// Sets the keys that seal what clients carry. Processes behind one address need the same. Default: those of the store, or
    /// random ones.
    pub fn keys(mut self, keys: bowline_server::KeyRing) -> Self {
        self.sharing.keys = Some(keys);
        self
    }

    /// Sets the environment in which keys and tokens named by the configuration are looked up. Default: empty.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets the project folder: programs start there, and remembered answers may be limited to it.
    pub fn workspace(mut self, folder: impl Into<PathBuf>) -> Self {
        self.workspace = Some(folder.into());
        self
    }

    /// Sets the folder of remembered answers, pinned tools and approvals. Default: none; answers and pins last until the
    /// gateway stops, and nothing is approved.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Shows everything that happens in the gateway to `tap`. Default: nothing is captured.
    pub fn tap(mut self, tap: Arc<dyn Tap>) -> Self {
        self.tap = Some(tap);
        self
    }

    /// Teaches `redactor` the secrets of the gateway: its token, and those of servers and models, also when the configuration
    /// changes. For whatever shows what [`tap`](Self::tap) captures. Default: none.
    pub fn redactor(mut self, redactor: Redactor) -> Self {
        self.redactor = Some(redactor);
        self
    }

    /// Sets the gate that asks about calls. Default: none, and questions are declined.
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.guard = self.guard.gate(gate);
        self
    }

    /// Declares that a user can be asked through the gate. Requests of servers go there if the caller cannot answer them.
    pub fn attended(mut self) -> Self {
        self.attended = true;
        self
    }

    /// Sets how URLs are opened that servers send the user to. Default: they are not.
    pub fn opener(mut self, opener: impl Opener + 'static) -> Self {
        self.guard = self.guard.opener(opener);
        self
    }

    /// Sets who knows which project servers are approved. Default: the [`Approvals`] in the folder.
    pub fn approve(mut self, approve: impl Approve) -> Self {
        self.approve = Some(Arc::new(approve));
        self
    }

    /// Sets the HTTP client for model providers and trace collectors.
    pub fn post(mut self, post: Arc<dyn Post>) -> Self {
        self.post = Some(post);
        self
    }

    /// Sets where the gateway records what it does. Default: metrics without traces.
    pub fn telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Exports traces to a collector while the gateway runs.
    pub fn traces(mut self, traces: Traces) -> Self {
        self.traces = Some(traces);
        self
    }

    /// Sets the token that HTTP clients must send. A token that the configuration names (`gateway.token_env`) takes
    /// precedence. Default: none.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Sets who consents to calls that no rule decides. Overrides the configuration.
    pub fn consent(mut self, consent: Consent) -> Self {
        self.consent = Some(consent);
        self
    }

    /// Sets where clients connect: at this address, or over stdio only. A gateway of a single user (stdio, or a loopback
    /// address with a token) leaves consent to its client by default. Default: several users may connect.
    pub fn serves(mut self, listen: Option<SocketAddr>) -> Self {
        self.audience = Some(listen.map_or(Serves::Stdio, Serves::Http));
        self
    }

    /// Allows what these rules match instead of asking. What the configuration denies stays denied.
    pub fn without_asking(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.without_asking = rules.into_iter().collect();
        self
    }

    /// Requires access tokens that the gateway issues itself, for development: whoever can open its consent page is whoever they
    /// say. They need these scopes. It works on a loopback address only, and replaces `[gateway.auth]`.
    pub fn dev_auth<I: IntoIterator<Item: Into<String>>>(mut self, scopes: I) -> Self {
        self.dev_scopes = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the key that seals stored logins. Default: none; they are private files.
    pub fn login_key(mut self, key: SealingKey) -> Self {
        self.login_key = Some(key);
        self
    }

    /// Builds the gateway. Starts no server.
    ///
    /// Fails if it would protect less than intended: an invalid rule, an audit log that cannot be written, damaged files of
    /// answers or pins. Other problems disable only the server or model that they concern, and are reported by
    /// [`Gateway::problems`].
    ///
    /// Needs a tokio runtime if traces are sent.
    pub fn build(mut self) -> Result<Gateway, GatewayError> {
        let mut fatal = problem::fatal(&self.config);
        let post = self.post.take().unwrap_or_else(|| Arc::new(Poster::new()));
        let Models { broker, keys, problems: mut made_once } =
            models::models(&self.config.sampling, &self.environment, &post);
        let (token, secret) = self.access(&mut made_once);
        let auth = match (self.dev_scopes.take(), &self.config.gateway.auth) {
            (Some(scopes), _) => Some(AccessTokens::Dev { scopes }),
            (None, Some(auth)) => {
                let (auth, problems) = AccessTokens::configured(auth, &self.environment);
                fatal.extend(problems);
                Some(auth)
            }
            (None, None) => None,
        };
        if let Some(auth) = &auth
            && !matches!(self.audience, Some(Serves::Stdio))
        {
            let listen = match self.audience {
                Some(Serves::Http(listen)) => listen,
                Some(Serves::Stdio) | None => self.config.gateway.listen,
            };
            match auth.check(&self.config, listen) {
                Ok(problems) => made_once.extend(problems),
                Err(problem) => fatal.push(problem),
            }
        }
        if auth.is_none()
            && matches!(token, Ok(None))
            && self.config.gateway.allowed_hosts.iter().any(|host| host == "*")
        {
            made_once.push(edge::unprotected_hosts());
        }
        let has_token = matches!(token, Ok(Some(_)));
        let audience = match self.audience {
            Some(Serves::Stdio) => Audience::of(None, has_token),
            // Access tokens identify users.
            Some(Serves::Http(_)) if auth.is_some() => Audience::Shared,
            // A name that others reach it by means a proxy in front, and users behind it.
            Some(Serves::Http(listen)) if !is_published(&self.config.gateway.allowed_hosts) => {
                Audience::of(Some(listen), has_token)
            }
            Some(Serves::Http(_)) | None => Audience::Shared,
        };
        let consent = self.consent.or(self.config.gateway.consent);
        let consent = ConsentSettings {
            consent: consent.unwrap_or_else(|| default_consent(audience, self.attended)),
            audience,
            without_asking: std::mem::take(&mut self.without_asking),
        };
        let mut guard = std::mem::replace(&mut self.guard, Guard::builder())
            .policy(rules::policy(&self.config, &consent))
            .question_limit(QuestionLimit { unanswered: self.config.gateway.max_questions });
        let mut known: Vec<String> = keys.iter().map(|key| key.expose().to_owned()).collect();
        known.extend(secret);
        if let Some(AccessTokens::Configured { secret: Some(secret), .. }) = &auth {
            known.push(secret.expose().to_owned());
        }
        known.extend(secrets(&self.config.upstreams));
        if let Some(redactor) = &self.redactor {
            redactor.learn(known.iter().cloned());
        }
        match self.audit(known) {
            Ok(Some(audit)) => guard = guard.audit(audit),
            Ok(None) => {}
            Err(problem) => fatal.push(problem),
        }
        let mut approve = self.approve.take();
        if let Some(folder) = &self.folder {
            let unusable = |error| Problem::new("folder", error);
            match Answers::open(folder.join("answers.json")) {
                Ok(answers) => guard = guard.answers(answers),
                Err(error) => fatal.push(unusable(error)),
            }
            match Pins::open(folder.join("pins.json")) {
                Ok(pins) => guard = guard.pins(pins),
                Err(error) => fatal.push(unusable(error)),
            }
            if approve.is_none() {
                match Approvals::open(folder.join("approvals.json")) {
                    Ok(approvals) => approve = Some(Arc::new(approvals)),
                    Err(error) => fatal.push(unusable(error)),
                }
            }
        } else {
            guard = guard.pins(Pins::in_memory());
        }
        let exporter = self.exporter(post).unwrap_or_else(|problem| {
            made_once.push(problem);
            None
        });
        if !fatal.is_empty() {
            return Err(GatewayError::new(fatal));
        }

        let mut host = Host::builder()
            .guard(guard.build())
            .telemetry(self.telemetry)
            .max_name(usize::from(self.config.gateway.max_name))
            .max_client_servers(
                self.config.gateway.max_client_servers,
                self.config.gateway.max_client_servers_per_user,
            )
            .disclosure(reload::disclosure(&self.config.disclosure))
            .task_ttl(self.config.tasks.ttl);
        if let Some(tap) = self.tap {
            host = host.tap(tap);
        }
        if let Some(store) = &self.sharing.store {
            host = host.store(store.clone());
        }
        if self.attended {
            host = host.attended();
        } else if consent.consent != Consent::Deny {
            host = host.ask_callers(audience);
        }
        if let Some(broker) = broker {
            host = host.broker(broker);
        }
        if let Some(workspace) = &self.workspace {
            host = host.project(workspace.display().to_string());
        }
        if let Some(text) = &self.config.gateway.instructions {
            host = host.instructions(text);
        }
        let nobody = Arc::new(|_: &Candidate| false);
        let host = host.build();
        let is_attended = self.attended;
        let login_key = self.login_key.take();
        let audit = host.guard().audit().cloned();
        let credentials = self.folder.map(|folder| Credentials {
            storage: LoginStorage::at(folder.join("credentials")).sealed_with(login_key),
            // Whoever may call a gateway of several users must not act with the logins of one of them.
            is_shared: audience == Audience::Shared,
            asks: is_attended.then(|| host.ask_login()),
            audit,
        });
        let inner = Inner {
            host,
            environment: self.environment,
            workspace: self.workspace,
            credentials,
            approve: approve.unwrap_or(nobody),
            token,
            auth,
            connections: OnceLock::new(),
            consent,
            redactor: self.redactor,
            shutting_down: Arc::new(AtomicBool::new(false)),
            sessions: self.sharing,
            made_once,
            applying: Mutex::default(),
            state: Mutex::default(),
            digests: DigestCache::default(),
            handle: Mutex::default(),
            watcher: Mutex::default(),
            exporter: Mutex::new(exporter),
        };
        let problems = self.config.errors.iter().map(Problem::from).collect();
        let mut state = State { problems, ..State::default() };
        for entry in &self.config.upstreams {
            let (entry_state, upstream) = inner.evaluate(&self.config, entry, inner.candidate(entry));
            if let Some(upstream) = upstream {
                inner.host.add(&entry.name, upstream);
            }
            state.problems.extend(reload::problems_of(entry, &entry_state, inner.is_shared()));
            state.entry_states.insert(entry.name.clone(), entry_state);
        }
        state.config = Arc::new(self.config);
        *inner.state() = state;
        let inner = Arc::new(inner);
        inner.host.set_pending(Pending(Arc::downgrade(&inner)));
        if let Some(AccessTokens::Configured { auth, connect_secret, .. }) = &inner.auth {
            let name = inner.state().config.gateway.name.clone();
            let connections = Connections::new(auth, connect_secret.clone(), &name, Arc::downgrade(&inner));
            if let Some(connections) = connections {
                inner.host.set_account_pages(Arc::clone(&connections) as Arc<dyn AccountPages>);
                let _ = inner.connections.set(connections);
            }
        }
        Ok(Gateway { inner })
    }

    /// Returns the token that clients must send. If the configured token is unavailable, nobody is let in.
    fn access(&self, problems: &mut Vec<Problem>) -> (Result<Option<Token>, Problem>, Option<String>) {
        let gateway = &self.config.gateway;
        let missing = || match &gateway.token_env {
            Some(name) => {
                Problem::new("gateway.token_env", format!("the environment variable `{name}` is not set"))
            }
            None => Problem::new("gateway", "the token is empty"),
        };
        let value = match (&gateway.token_env, &self.token) {
            (Some(name), _) => self.environment.variable(name),
            (None, Some(token)) => Some(token.as_str()),
            (None, None) => {
                if !gateway.listen.ip().is_loopback() && gateway.auth.is_none() {
                    let message = "other machines can connect, and no token is required";
                    problems.push(Problem::new("gateway", message));
                }
                return (Ok(None), None);
            }
        };
        let value = value.map(str::trim).filter(|value| !value.is_empty());
        let found = value.and_then(|value| Some((Token::new(value)?, value.to_owned())));
        let Some((token, value)) = found else {
            problems.push(missing());
            return (Err(missing()), None);
        };
        (Ok(Some(token)), Some(value))
    }

    fn audit(&self, known: Vec<String>) -> Result<Option<Audit>, Problem> {
        let config = &self.config.audit;
        let Some(file) = &config.file else { return Ok(None) };
        let mut settings = AuditSettings::new(file)
            .max_bytes(config.max_bytes)
            .keep(usize::try_from(config.keep).unwrap_or(usize::MAX))
            .required(config.required);
        for secret in known {
            settings = settings.secret(secret);
        }
        let open = |error| Problem::new("audit", format!("cannot write `{}`: {error}", file.display()));
        Audit::open(settings).map(Some).map_err(open)
    }

    fn exporter(&mut self, post: Arc<dyn Post>) -> Result<Option<Exporter>, Problem> {
        let Some(traces) = self.traces.take() else { return Ok(None) };
        let source = SystemRandom::new();
        let random = move |bytes: &mut [u8]| {
            // Without randomness ids repeat, and traces are mixed up; nothing else depends on them.
            let _ = source.fill(bytes);
        };
        let sources = Sources { random: Arc::new(random), now: Arc::new(SystemTime::now) };
        let started = traces.start(post, sources).map_err(|error| Problem::new("traces", error));
        let (tracer, exporter) = started?;
        self.telemetry.metrics.with_traces(&exporter);
        self.telemetry.tracer = tracer;
        Ok(Some(exporter))
    }
}

impl fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayBuilder")
            .field("workspace", &self.workspace)
            .field("folder", &self.folder)
            .field("attended", &self.attended)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_with_a_name_for_others_is_published() {
        let check = |hosts: &[&str]| is_published(&hosts.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert!(!check(&[]));
        assert!(!check(&["localhost", "LOCALHOST:8080", "127.0.0.1", "[::1]:7337"]));
        for host in ["*", "mcp.example.com", "10.0.0.5:80", "localhost.example.com", "[fd00::1]"] {
            assert!(check(&["localhost", host]), "{host}");
        }
    }
}
