//! Converts a configured server to something to connect to.

use super::{Credentials, HttpUpstream, Upstream, credentials};
use bowline_client::{Command, Environment, Limits, ListLimits};
use bowline_config::{CommandLaunch, InheritEnv, Launch, LimitsConfig, Text, UpstreamConfig, UrlLaunch};
use bowline_types::Root;
use std::{fmt, path::Path};

/// Why a configured server cannot be launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchError(String);

impl LaunchError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LaunchError {}

/// How to reach a configured server, for callers that connect to it themselves.
#[derive(Clone, Debug)]
pub enum Reach {
    /// By starting a program.
    Program(Command),
    /// By HTTP.
    Http(HttpUpstream),
}

impl Reach {
    /// Returns how to reach the server of an entry. Reads its file of variables, if it has one; programs start in `workspace`
    /// unless the entry says otherwise.
    ///
    /// The caller must check first whether the entry [needs an approval](UpstreamConfig::needs_approval).
    pub fn from_config(entry: &UpstreamConfig, workspace: Option<&Path>) -> Result<Self, LaunchError> {
        match &entry.launch {
            Launch::Command(launch) => {
                let program = program(launch, workspace)?.limits(limits(&entry.settings.limits));
                Ok(Self::Program(match &entry.settings.inherit_env {
                    InheritEnv::Default => program,
                    InheritEnv::All => program.environment(Environment::Inherit),
                    InheritEnv::None => program.environment(Environment::Empty),
                    InheritEnv::Matching(patterns) => program.inherit_env(patterns.iter().cloned()),
                }))
            }
            Launch::Url(launch) => Ok(Self::Http(http_upstream(launch))),
        }
    }
}

impl Upstream {
    /// Builds the upstream of an entry. Reads its file of variables, if it has one; programs start in `workspace` unless the
    /// entry says otherwise.
    pub fn from_config(entry: &UpstreamConfig, workspace: Option<&Path>) -> Result<Self, LaunchError> {
        from_config(entry, workspace, None)
    }

    /// Like [`from_config`](Self::from_config), with the logins of `bowline login` in the folder `logins`. They are used for
    /// servers with a URL whose entry has no credentials. Nobody is asked: a call that needs a login fails.
    pub fn from_config_with_logins(
        entry: &UpstreamConfig,
        workspace: Option<&Path>,
        logins: &Path,
    ) -> Result<Self, LaunchError> {
        Self::from_config_with_credentials(entry, workspace, &Credentials::of_one_user(logins))
    }

    /// Like [`from_config`](Self::from_config), with the logins that a gateway may use.
    pub(crate) fn from_config_with_credentials(
        entry: &UpstreamConfig,
        workspace: Option<&Path>,
        credentials: &Credentials,
    ) -> Result<Self, LaunchError> {
        from_config(entry, workspace, Some(credentials))
    }
}

fn from_config(
    entry: &UpstreamConfig,
    workspace: Option<&Path>,
    credentials: Option<&Credentials>,
) -> Result<Upstream, LaunchError> {
    let upstream = match (Reach::from_config(entry, workspace)?, credentials) {
        (Reach::Program(command), _) => Upstream::from(command),
        (Reach::Http(http), None) => Upstream::to(http),
        (Reach::Http(http), Some(credentials)) => credentials.apply(entry, http)?,
    };
    let share = credentials::share(&upstream, entry.settings.share);
    let settings = &entry.settings;
    let mut upstream = upstream
        .start(settings.start)
        .share(share)
        .startup_timeout(settings.startup_timeout)
        .timeout(settings.request_timeout)
        .idle_stop(settings.idle_stop)
        .ping_interval(settings.ping_interval)
        .list_limits(
            ListLimits::default()
                .bytes(usize::try_from(settings.max_list_bytes).unwrap_or(usize::MAX))
                .entries(usize::try_from(settings.max_list_entries).unwrap_or(usize::MAX)),
        )
        .roots(settings.roots.iter().map(Root::from));
    upstream.identity = Some(entry.identity().into());
    upstream.trusted = settings.trusted;
    upstream.always_listed = settings.always_load;
    upstream.revision = settings.revision;
    upstream.allow.clone_from(&settings.allow);
    upstream.deny.clone_from(&settings.deny);
    upstream.rename.clone_from(&settings.rename);
    upstream.describe.clone_from(&settings.describe);
    Ok(upstream)
}

fn program(launch: &CommandLaunch, workspace: Option<&Path>) -> Result<Command, LaunchError> {
    let mut command = Command::new(launch.program.expose());
    command = command.args(launch.args.iter().map(Text::expose));
    if let Some(file) = &launch.env_file {
        let path = Path::new(file.expose());
        let text = bowline_config::read_env_file(path)
            .map_err(|error| LaunchError(format!("cannot read `{}`: {error}", path.display())))?;
        let (variables, errors) = bowline_config::parse_env_file(path, &text);
        if let Some(error) = errors.first() {
            return Err(LaunchError(error.to_string()));
        }
        for (name, value) in variables {
            command = command.env(name, value.expose());
        }
    }
    for (name, value) in &launch.env {
        command = match value {
            Some(value) => command.env(name, value.expose()),
            None => command.env_remove(name),
        };
    }
    if let Some(folder) = launch.cwd.as_ref().map(Text::expose).map(Path::new).or(workspace) {
        command = command.current_dir(folder);
    }
    Ok(command)
}

/// Returns the limits of the process; none on systems that do not support them.
fn limits(config: &LimitsConfig) -> Limits {
    let mut limits = Limits::new();
    if Limits::SUPPORTED {
        (limits.memory, limits.cpu_time, limits.files) = (config.memory, config.cpu_time, config.files);
    }
    limits
}

fn http_upstream(launch: &UrlLaunch) -> HttpUpstream {
    let target =
        launch.headers.iter().fold(bowline_http::http(launch.url.expose()), |target, (name, value)| {
            target.header(name, value.expose())
        });
    HttpUpstream::new(target, launch.headers_helper.as_deref().unwrap_or_default())
}
