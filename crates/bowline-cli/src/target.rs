//! The server that a command addresses (a name, a URL, or a program to start) and how to connect to it.

mod arguments;

pub(crate) use arguments::{ConnectionArguments, Interaction, RequestOptions, TargetArguments, duration};

use arguments::{header_secrets, root};

use crate::{
    answers_file::AnswersFile,
    approval::approve,
    builtin::Builtin,
    context::Context,
    failure::{Code, Failure},
    login,
    running_gateway::RunningGateway,
    table,
};
use bowline_client::{
    Client, ClientBuilder, Command, Connect, Environment, OpenError, Request, StderrMode, command,
};
use bowline_config::Config;
use bowline_host::{HttpUpstream, LaunchError, LoginSettings, Reach};
use bowline_http::{HttpTarget, auth::Scopes};
use bowline_server::ServerHandle;
use bowline_text::{nearest, visible};
use bowline_types::{LoggingLevel, Revision, Root};
use std::{
    convert::Infallible,
    ffi::OsString,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

/// The name of the gateway that `bowline up` runs.
pub(crate) const GATEWAY: &str = "up";

/// How long a program may take to exit, and again after SIGTERM, when a command only needs its reply.
const EXIT_GRACE: Duration = Duration::from_millis(20);

/// How long the probe for the protocol era waits for a reply.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the "starting" line is updated at a terminal.
const START_INTERVAL: Duration = Duration::from_secs(1);
/// How much of a command line the "starting" line shows.
const MAX_SHOWN: usize = 44;

/// Returns the command line of a command that inspects a server, with an optional argument.
pub(crate) fn inspect_command(command: &str, word: &str, server: &str, is_command_line: bool) -> String {
    let (server, gap) = (visible(server), if word.is_empty() { "" } else { " " });
    if is_command_line {
        format!("bowline {command}{gap}{word} -- {server} …")
    } else {
        format!("bowline {command} {server}{gap}{word}")
    }
}

/// Returns the hint to log in to a target with an account.
pub(crate) fn login_advice(target: &str, account: Option<&str>, scopes: &Scopes) -> String {
    let mut advice = format!("run `bowline login {}", shell_word(target));
    if let Some(account) = account.filter(|account| !account.is_empty()) {
        advice.push_str(" --account ");
        advice.push_str(&shell_word(account));
    }
    for scope in scopes.iter() {
        advice.push_str(" --scope ");
        advice.push_str(&shell_word(scope));
    }
    advice.push('`');
    advice
}

/// Quotes a word for a shell. Scopes come from servers, and users paste the command.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_./:-".contains(letter);
    let text = visible(text);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A server to connect to.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The name given by the user.
    pub(crate) name: String,
    /// Whether the program was given on the command line.
    pub(crate) is_command_line: bool,
    endpoint: Endpoint,
    pub(crate) timeout: Option<Duration>,
    /// How long the start may take, if not as long as a request.
    startup_timeout: Option<Duration>,
    revision: Option<Revision>,
    roots: Vec<Root>,
    is_long_lived: bool,
    /// The text shown while it starts.
    shown: String,
    /// The minimum level of the log messages to print.
    pub(crate) log_level: Option<LoggingLevel>,
    /// Prepared answers to its questions.
    pub(crate) answers: Option<Arc<AnswersFile>>,
    /// How to log in; `None` if the server has no URL, or if other credentials are sent.
    login: Option<LoginSettings>,
    /// What must not be shown: tokens, and secrets of its configuration.
    secrets: Secrets,
}

/// Texts that must not be shown. Its `Debug` shows nothing.
#[derive(Clone, Default)]
struct Secrets(Vec<String>);

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

#[derive(Clone, Debug)]
enum Endpoint {
    Program(Command),
    Http(HttpUpstream),
    InProcess(ServerHandle),
}

impl Target {
    fn new(name: impl Into<String>, endpoint: Endpoint) -> Self {
        let name = name.into();
        Self {
            shown: name.clone(),
            log_level: None,
            answers: None,
            login: None,
            secrets: Secrets::default(),
            name,
            is_command_line: false,
            endpoint,
            timeout: None,
            startup_timeout: None,
            revision: None,
            roots: Vec::new(),
            is_long_lived: false,
        }
    }

    /// Returns the target for a program given on the command line.
    pub(crate) fn from_command_line(words: &[OsString]) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        let name = program.to_string_lossy().into_owned();
        // The user starts it like any other program, so it inherits the whole environment.
        let program = command(program, arguments).environment(Environment::Inherit);
        let shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        Some(Self {
            is_command_line: true,
            shown: shown.join(" "),
            ..Self::new(name, Endpoint::Program(program))
        })
    }

    /// Returns the target for a name or URL.
    pub(crate) fn named(name: &str, context: &Context) -> Result<Self, Failure> {
        match name {
            GATEWAY => gateway(context),
            url if is_url(url) => Ok(at_url(url, context)),
            name => configured(name, context),
        }
    }

    /// Returns the program, if the server is started by this command.
    pub(crate) fn program(&self) -> Option<&Command> {
        match &self.endpoint {
            Endpoint::Program(program) => Some(program),
            Endpoint::Http(_) | Endpoint::InProcess(_) => None,
        }
    }

    /// Returns what must not be shown.
    pub(crate) fn secrets(&self) -> &[String] {
        &self.secrets.0
    }

    /// Returns the HTTP target, if the server has a URL.
    pub(crate) fn page(&self) -> Option<&HttpUpstream> {
        match &self.endpoint {
            Endpoint::Program(_) | Endpoint::InProcess(_) => None,
            Endpoint::Http(page) => Some(page),
        }
    }

    /// Returns the server and the settings to log in to it.
    pub(crate) fn for_login(self) -> Result<(HttpUpstream, LoginSettings), Failure> {
        let name = visible(&self.name);
        match (self.endpoint, self.login) {
            (Endpoint::Http(page), Some(settings)) => Ok((page, settings)),
            (Endpoint::Http(_), None) => Err(Failure::misused(format!(
                "`{name}` needs no login: its entry has credentials or `auth = \"none\"`, or it is your gateway"
            ))),
            (Endpoint::Program(_) | Endpoint::InProcess(_), _) => {
                Err(Failure::misused(format!("`{name}` has no URL; only servers with a URL have logins")))
            }
        }
    }

    /// Returns the name of the account that is used, if it is not the default one.
    pub(crate) fn account(&self) -> Option<String> {
        self.login.as_ref().and_then(|login| login.account.clone())
    }

    /// Returns the settings of the login, if one is used.
    pub(crate) fn login_settings(&self) -> Option<&LoginSettings> {
        self.login.as_ref()
    }

    /// Sends the stored tokens of this server, and refreshes them.
    fn use_login(&mut self, context: &Context) -> Result<(), Failure> {
        if let (Endpoint::Http(page), Some(settings)) = (&mut self.endpoint, &self.login) {
            *page = page.clone().login(login::for_commands(settings, &self.name, context)?);
        }
        Ok(())
    }

    /// Marks the connection as long-lived: the server gets time to exit.
    pub(crate) fn long_lived(mut self) -> Self {
        self.is_long_lived = true;
        self
    }

    /// Returns the connector for this target.
    pub(crate) fn into_connect(self, context: &Context) -> Box<dyn Connect> {
        match self.endpoint {
            Endpoint::Http(page) => Box::new(page),
            Endpoint::InProcess(server) => Box::new(server),
            Endpoint::Program(mut program) => {
                if !self.is_long_lived {
                    program = program.grace(EXIT_GRACE).terminate_grace(EXIT_GRACE);
                }
                if context.trace() {
                    let screen = context.screen;
                    program = program.stderr(StderrMode::callback(move |line| {
                        screen.note(&format!("! {}", visible(line)));
                    }));
                }
                Box::new(program)
            }
        }
    }

    /// Connects a client.
    pub(crate) async fn connect(
        mut self,
        context: &Context,
        mut builder: ClientBuilder,
    ) -> Result<Client, Failure> {
        if let (Some(revision), None) = (self.revision, context.revision()) {
            builder = builder.revisions([revision]);
        }
        if let Some(timeout) = self.timeout {
            let startup_timeout = self.startup_timeout.unwrap_or(timeout);
            builder = builder
                .timeout(timeout)
                .max_total(timeout.max(Duration::from_secs(3600)))
                .probe_timeout(PROBE_TIMEOUT.min(startup_timeout / 2))
                .connect_timeout(startup_timeout);
        }
        if !self.roots.is_empty() {
            builder = builder.roots(std::mem::take(&mut self.roots));
        }
        let (name, account) = (self.name.clone(), self.account());
        let is_page = matches!(self.endpoint, Endpoint::Http(_));
        let verb = if is_page { "connecting to" } else { "starting" };
        let shown = format!("{verb} {}", table::cut(&visible(&self.shown), MAX_SHOWN));
        let opening = builder.connect(self.into_connect(context));
        let opened = tokio::select! {
            opened = opening => opened,
            never = show_start(context, &shown) => match never {},
        };
        context.screen.clear();
        opened.map_err(|error| {
            let unreachable = error.is_unreachable();
            let is_turned_away = matches!(error.http_status(), Some(404 | 405 | 501))
                || matches!(error.open(), Some(OpenError::Refused(_)));
            let is_late = error.is_timeout();
            let mut failure = Failure::from(error);
            // Errors of a program, and of a missing login, already name the server.
            if failure.login.is_none() && (is_page || is_late) {
                failure.sentence = format!("{}: {}", visible(&name), failure.sentence);
            }
            failure.name_login(&name, account.as_deref());
            match name.as_str() {
                GATEWAY if unreachable => {
                    failure.advise("no target means `up`, your running gateway; `bowline up` starts it")
                }
                url => match with_usual_path(url).filter(|_| is_page && is_turned_away) {
                    Some(usual) => failure.advise(format!("the usual path is `/mcp`; try `{usual}`")),
                    None => failure,
                },
            }
        })
    }
}

impl TargetArguments {
    /// Returns the target as a folder, if it is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.target.as_deref().map(Path::new).filter(|path| path.is_dir())
    }

    pub(crate) fn target(&self, context: &Context) -> Result<Target, Failure> {
        self.connection.target(self.target.as_deref(), context)
    }
}

impl ConnectionArguments {
    /// Splits positional arguments into the target and the rest.
    pub(crate) fn split<'a>(&self, words: &'a [String]) -> (Option<&'a str>, &'a [String]) {
        match words.split_first() {
            Some((target, rest)) if self.program.is_empty() => (Some(target), rest),
            _ => (None, words),
        }
    }

    /// Returns the command line of a command that inspects the same server.
    fn inspect_command(&self, name: Option<&str>, command: &str) -> String {
        match (self.program.first(), name) {
            (Some(program), _) => inspect_command(command, "", &program.to_string_lossy(), true),
            (None, Some(name)) => inspect_command(command, "", name, false),
            (None, None) => format!("bowline {command}"),
        }
    }

    /// Returns the failure for a missing argument. The command `list` shows what can be given.
    pub(crate) fn missing(&self, name: Option<&str>, what: &str, list: &str) -> Failure {
        let command = self.inspect_command(name, list);
        Failure::misused(format!("missing {what}")).advise(format!("run `{command}` to list the {list}"))
    }

    /// Resolves a target name; `None` is the gateway.
    pub(crate) fn target(&self, name: Option<&str>, context: &Context) -> Result<Target, Failure> {
        let mut target = match Target::from_command_line(&self.program) {
            Some(target) => target,
            None => Target::named(name.unwrap_or(GATEWAY), context)?,
        };
        self.apply(&mut target, context)?;
        target.use_login(context)?;
        Ok(target)
    }

    /// Applies the options. They override the configuration.
    fn apply(&self, target: &mut Target, context: &Context) -> Result<(), Failure> {
        let mut headers = self.header.clone();
        if let Some(variable) = &self.bearer_env {
            let token = context.environment.variables.variable(variable).map(str::trim);
            let Some(token) = token.filter(|token| !token.is_empty()) else {
                return Err(Failure::misused(format!(
                    "environment variable `{variable}` is not set; expected a token"
                )));
            };
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        if !headers.is_empty() {
            let Endpoint::Http(page) = &mut target.endpoint else {
                return Err(Failure::misused(format!(
                    "`--header` and `--bearer-env` need a server with a URL, but `{}` is not one",
                    visible(&target.name)
                )));
            };
            if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
                target.login = None;
            }
            target.secrets.0.extend(headers.iter().flat_map(|(_, value)| header_secrets(value)));
            *page = headers.into_iter().fold(page.clone(), |page, (name, value)| page.header(name, value));
        }
        if !self.roots.is_empty() {
            target.roots = self.roots.iter().map(|folder| root(folder)).collect::<Result<_, _>>()?;
        }
        if let Some(timeout) = self.timeout {
            (target.timeout, target.startup_timeout) = (Some(timeout), None);
        }
        if let Some(account) = &self.account {
            let Some(login) = &mut target.login else {
                return Err(Failure::misused(format!(
                    "`--account` needs a server that is used with a login, but `{}` is not one",
                    visible(&target.name)
                )));
            };
            login.account = Some(account.clone());
        }
        Ok(())
    }
}

impl Interaction {
    pub(crate) fn apply(&self, mut target: Target) -> Result<Target, Failure> {
        target.log_level = self.log_level;
        target.answers = self.answers.as_deref().map(AnswersFile::read).transpose()?.map(Arc::new);
        Ok(target)
    }
}

impl RequestOptions {
    pub(crate) fn apply<T: 'static>(&self, request: Request<T>) -> Request<T> {
        let entries = self.meta.iter().flat_map(|entries| &entries.0);
        entries.fold(request, |request, (name, value)| request.meta(name, value.clone()))
    }
}

/// Shows how long a server has been starting, at a terminal. Never completes.
async fn show_start(context: &Context, shown: &str) -> Infallible {
    if !context.screen.stderr_is_terminal() {
        std::future::pending::<()>().await;
    }
    let start = Instant::now();
    loop {
        tokio::time::sleep(START_INTERVAL).await;
        context.screen.transient(&format!("{shown} ({} s), Ctrl-C to stop", start.elapsed().as_secs()));
    }
}

/// Returns the running gateway of this user. Other programs on its port are never contacted.
fn gateway(context: &Context) -> Result<Target, Failure> {
    let running = RunningGateway::find(&context.environment).ok_or_else(not_running)?;
    let endpoint = Endpoint::Http(http_target(&running.url, running.token.as_deref()).into());
    Ok(Target { secrets: Secrets(running.token.into_iter().collect()), ..Target::new(GATEWAY, endpoint) })
}

/// Returns the failure for a missing gateway.
pub(crate) fn not_running() -> Failure {
    Failure::new(Code::Unreachable, "your gateway is not running")
        .advise("no target means `up`, your running gateway; `bowline up` starts it")
        .advise("to use a gateway of another user or machine, give its URL")
}

/// Returns the target for a URL. The user's token is sent only to the user's own gateway.
fn at_url(url: &str, context: &Context) -> Target {
    let token = RunningGateway::at_url(&context.environment, url).and_then(|running| running.token);
    let login = token.is_none().then(LoginSettings::default);
    let endpoint = Endpoint::Http(http_target(url, token.as_deref()).into());
    Target { login, secrets: Secrets(token.into_iter().collect()), ..Target::new(url, endpoint) }
}

/// Returns an HTTP target that sends a token.
pub(crate) fn http_target(url: &str, token: Option<&str>) -> HttpTarget {
    let page = bowline_http::http(url);
    match token {
        Some(token) => page.header("Authorization", format!("Bearer {token}")),
        None => page,
    }
}

/// Returns the configured or built-in server of that name.
fn configured(name: &str, context: &Context) -> Result<Target, Failure> {
    let config = context.environment.config();
    let Some(entry) = config.upstream(name) else {
        let Some(builtin) = Builtin::named(name) else { return Err(unknown(name, config)) };
        let unreachable = |failure: Failure| Failure { code: Code::Unreachable, ..failure };
        let server = builtin.server(context).map_err(unreachable)?.build();
        let server = server.map_err(|error| Failure::new(Code::Unreachable, error.to_string()))?;
        return Ok(Target::new(name, Endpoint::InProcess(server)));
    };
    if entry.needs_approval() {
        approve(entry, context)?;
    }
    let workspace = context.environment.workspace.as_deref();
    let invalid =
        |error: LaunchError| Failure::new(Code::Config, format!("{}: {error}", entry.origin.short()));
    let reach = Reach::from_config(entry, workspace).map_err(invalid)?;
    let login = LoginSettings::from_config(entry).map_err(invalid)?;
    let endpoint = match reach {
        Reach::Program(program) => Endpoint::Program(program),
        Reach::Http(page) => Endpoint::Http(page),
    };
    Ok(Target {
        timeout: Some(entry.settings.request_timeout),
        startup_timeout: Some(entry.settings.startup_timeout),
        revision: entry.settings.revision,
        roots: entry.settings.roots.iter().map(Root::from).collect(),
        login,
        secrets: Secrets(bowline_host::gateway::secrets([entry])),
        ..Target::new(name, endpoint)
    })
}

fn unknown(name: &str, config: &Config) -> Failure {
    let known: Vec<&str> = config.upstreams.iter().map(|entry| entry.name.as_str()).collect();
    let shown = visible(name);
    let mut failure = Failure::new(Code::Config, format!("unknown server `{shown}`"));
    if is_address(name) {
        return failure.advise("URLs start with http:// or https://");
    }
    if let Some(near) = nearest(name, known.iter().copied().chain(Builtin::NAMES)) {
        failure = failure.advise(format!("did you mean `{}`?", visible(near)));
    }
    for error in &config.errors {
        failure = failure.advise(error.to_string());
    }
    failure = match known.as_slice() {
        [] => failure.advise("no servers are configured"),
        known => failure.advise(format!("configured servers: {}", visible(&known.join(", ")))),
    };
    failure = failure.advise(format!("built-in servers: {}", Builtin::NAMES.join(", ")));
    failure.advise(format!("to start a program, put it after `--`: `bowline tools -- {shown}`"))
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// Returns whether the text looks like a URL: it has a scheme, or a host and a port.
fn is_address(text: &str) -> bool {
    let port = text.split('/').next().and_then(|host| host.rsplit_once(':'));
    text.contains("://") || port.is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

/// Returns the URL with the usual path appended, if it has no path.
fn with_usual_path(url: &str) -> Option<String> {
    let (_, host) = url.split_once("://")?;
    (!host.trim_end_matches('/').contains(['/', '?'])).then(|| format!("{}/mcp", url.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v52_a_login_command_can_be_pasted_whatever_the_scopes_are() {
        let scopes = Scopes::from_iter(["notes:read", ";reboot", "$(x)", "a'b"]);
        let advice = login_advice("https://a.example/mcp?x=1&y", Some("a b"), &scopes);
        assert_eq!(
            advice,
            r"run `bowline login 'https://a.example/mcp?x=1&y' --account 'a b' --scope notes:read --scope ';reboot' --scope '$(x)' --scope 'a'\''b'`"
        );
    }
}
