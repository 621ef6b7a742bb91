//! The data model: servers and their settings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bowline_types::Revision;
use serde_json::{Map, Value as Json};

use super::dialect::Dialect;
use super::report::{ConfigError, Notice, Origin};
use super::sections::{AuditConfig, DisclosureConfig, GatewayConfig, RuleConfig, SamplingConfig};
use super::text::Text;
use bowline_policy::Pattern;

/// Whose file it is, which decides what it may do and which file wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The user's own file.
    User,
    /// A file that comes with a project, written by whoever wrote the project. It may add servers, which need an
    /// approval before they start, and it may tighten rules; it may loosen nothing.
    Project,
    /// The user's own settings for one project.
    Local,
    /// A file of the administrator.
    Managed,
}

impl Scope {
    /// Whether the user, or somebody they answer to, wrote the file.
    pub const fn is_own(self) -> bool {
        match self {
            Self::User | Self::Local | Self::Managed => true,
            Self::Project => false,
        }
    }
}

/// Everything the files say, merged by precedence.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// The servers, in the order in which their names first appear.
    pub upstreams: Vec<UpstreamConfig>,
    /// How clients reach the host.
    pub gateway: GatewayConfig,
    /// Who may do what; the first rule that matches decides.
    pub rules: Vec<RuleConfig>,
    /// Which models answer servers that ask for one.
    pub sampling: SamplingConfig,
    /// Where decisions and calls are written down.
    pub audit: AuditConfig,
    /// When tools are searched for instead of listed.
    pub disclosure: DisclosureConfig,
    /// Where the settings of the sections come from, by path such as `gateway.listen`.
    pub origins: BTreeMap<String, Origin>,
    /// All files that were asked for, also those that are not there: a change of one changes the configuration.
    pub files: Vec<PathBuf>,
    /// What is worth telling.
    pub notices: Vec<Notice>,
    /// What could not be used; everything else was.
    pub errors: Vec<ConfigError>,
}

impl Config {
    /// The server of that name.
    pub fn upstream(&self, name: &str) -> Option<&UpstreamConfig> {
        self.upstreams.iter().find(|upstream| upstream.name == name)
    }
}

/// One server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UpstreamConfig {
    /// The name the user gave it.
    pub name: String,
    /// Where the entry is.
    pub origin: Origin,
    /// Whose file the entry is in.
    pub scope: Scope,
    /// What kind of file the entry is in.
    pub dialect: Dialect,
    /// How to reach the server.
    pub launch: Launch,
    /// How to treat it.
    pub settings: UpstreamSettings,
    /// The variables of the environment that the entry reads, which an approval has to show.
    pub uses: BTreeSet<String>,
    /// Members that mean nothing here, kept as they are.
    pub unknown: Unknown,
    /// Where each setting comes from, by name; what is absent is a default.
    pub origins: BTreeMap<String, Origin>,
}

impl UpstreamConfig {
    /// Whether somebody has to look at the command or URL before it is used for the first time: the entry was not
    /// written by the user.
    pub fn needs_approval(&self) -> bool {
        !self.scope.is_own() || self.dialect == Dialect::Registry
    }

    /// Whether a running server may go on unchanged when this entry takes the place of `other`.
    pub fn is_same(&self, other: &Self) -> bool {
        // Lines move when files are edited; that changes no server.
        self.name == other.name
            && self.scope == other.scope
            && self.dialect == other.dialect
            && self.launch == other.launch
            && self.settings == other.settings
            && self.unknown == other.unknown
    }
}

/// Members that mean nothing here, kept as they are. Nobody knows what is in them, so `Debug` shows only their names.
#[derive(Clone, Default, PartialEq)]
pub struct Unknown(pub Map<String, Json>);

impl fmt::Debug for Unknown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// By starting a program and talking over its standard streams. There is never a shell in between.
    Command(CommandLaunch),
    /// By HTTP.
    Url(UrlLaunch),
}

/// A program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandLaunch {
    /// The program.
    pub program: Text,
    /// Its arguments.
    pub args: Vec<Text>,
    /// Variables for its environment; `None` means that the variable must not be there.
    pub env: BTreeMap<String, Option<Text>>,
    /// A file with further variables, which those of `env` override; absolute.
    pub env_file: Option<Text>,
    /// The directory to start in; absolute.
    pub cwd: Option<Text>,
}

/// A server on the network.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UrlLaunch {
    /// Its URL: `http`, `https`, or `unix` and `pipe` for a socket of this machine.
    pub url: Text,
    /// Headers for every request.
    pub headers: BTreeMap<String, Text>,
    /// A command that prints further headers as a JSON object at every connect; they override `headers`.
    pub headers_helper: Option<Vec<Text>>,
    /// Which transport to try first.
    pub prefer: Prefer,
    /// What is known beforehand for signing in.
    pub oauth: Option<OauthConfig>,
}

/// The transport to try first; the other one is tried after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Prefer {
    /// Streamable HTTP.
    #[default]
    Streamable,
    /// HTTP with SSE, the transport of 2024-11-05.
    Sse,
}

/// What is known beforehand for signing in at a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OauthConfig {
    /// The client id, if one is registered.
    pub client_id: Option<Text>,
    /// The client's secret.
    pub client_secret: Option<Text>,
    /// The scopes to ask for.
    pub scopes: Vec<String>,
    /// The port to listen on for the redirect.
    pub callback_port: Option<u16>,
    /// Where the metadata of the authorization server is.
    pub metadata_url: Option<Text>,
}

/// How a server is treated.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UpstreamSettings {
    /// What the server is for.
    pub description: Option<String>,
    /// Whether it is used at all.
    pub enabled: bool,
    /// When it is started.
    pub start: Start,
    /// Whether clients share it.
    pub share: Share,
    /// How long the start may take.
    pub startup_timeout: Duration,
    /// How long a request may be silent.
    pub request_timeout: Duration,
    /// How long it may be idle before it is stopped; `None` keeps it.
    pub idle_stop: Option<Duration>,
    /// Whether what it says about its own tools is believed.
    pub trusted: bool,
    /// The tools that are offered; all if empty.
    pub allow: Vec<Pattern>,
    /// The tools that are never offered.
    pub deny: Vec<Pattern>,
    /// Other names for tools.
    pub rename: BTreeMap<String, String>,
    /// Other descriptions for tools.
    pub describe: BTreeMap<String, String>,
    /// The roots the server is told.
    pub roots: Vec<RootConfig>,
    /// The tools that run without a question.
    pub auto_approve: Vec<Pattern>,
    /// Whether its tools are listed even where tools are searched for.
    pub always_load: bool,
    /// The revision to speak, whatever the server offers.
    pub revision: Option<Revision>,
    /// What the process may use.
    pub limits: LimitsConfig,
    /// Which variables of the host its program receives, beside those of `env`.
    pub inherit_env: InheritEnv,
    /// How many bytes a list of it may have, over all pages.
    pub max_list_bytes: u64,
    /// How many entries a list of it may have, over all pages.
    pub max_list_entries: u64,
    /// How often a legacy server that works on nothing is pinged; `None` for never.
    pub ping_interval: Option<Duration>,
}

impl Default for UpstreamSettings {
    fn default() -> Self {
        Self {
            description: None,
            enabled: true,
            start: Start::default(),
            share: Share::default(),
            startup_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(60),
            idle_stop: Some(Duration::from_secs(600)),
            trusted: false,
            allow: Vec::new(),
            deny: Vec::new(),
            rename: BTreeMap::new(),
            describe: BTreeMap::new(),
            roots: Vec::new(),
            auto_approve: Vec::new(),
            always_load: false,
            revision: None,
            limits: LimitsConfig::default(),
            inherit_env: InheritEnv::default(),
            max_list_bytes: 8 * 1024 * 1024,
            max_list_entries: 10_000,
            ping_interval: Some(Duration::from_secs(60)),
        }
    }
}

impl UpstreamSettings {
    /// Takes over the setting of that name; `false` if there is none of that name.
    pub(crate) fn take(&mut self, name: &str, from: &Self) -> bool {
        let from = from.clone();
        match name {
            "description" => self.description = from.description,
            "enabled" => self.enabled = from.enabled,
            "start" => self.start = from.start,
            "share" => self.share = from.share,
            "startup_timeout" => self.startup_timeout = from.startup_timeout,
            "request_timeout" => self.request_timeout = from.request_timeout,
            "idle_stop" => self.idle_stop = from.idle_stop,
            "trusted" => self.trusted = from.trusted,
            "allow" => self.allow = from.allow,
            "deny" => self.deny = from.deny,
            "rename" => self.rename = from.rename,
            "describe" => self.describe = from.describe,
            "roots" => self.roots = from.roots,
            "auto_approve" => self.auto_approve = from.auto_approve,
            "always_load" => self.always_load = from.always_load,
            "revision" => self.revision = from.revision,
            "limits" => self.limits = from.limits,
            "inherit_env" => self.inherit_env = from.inherit_env,
            "max_list_bytes" => self.max_list_bytes = from.max_list_bytes,
            "max_list_entries" => self.max_list_entries = from.max_list_entries,
            "ping_interval" => self.ping_interval = from.ping_interval,
            _ => return false,
        }
        true
    }
}

/// Which variables of the host a server's program receives, beside those of `env`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum InheritEnv {
    /// What programs need to find themselves, the network and the user's language. Names that hold credentials are left
    /// out.
    #[default]
    Default,
    /// All of them.
    All,
    /// None of them.
    None,
    /// The default ones, and those whose names match one of these patterns.
    Matching(Vec<String>),
}

/// When a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Start {
    /// When something needs it.
    #[default]
    Lazy,
    /// With the host.
    Eager,
}

/// Whether clients share a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Share {
    /// One for all clients.
    #[default]
    Shared,
    /// One for each client.
    PerClient,
}

/// A root a server is told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RootConfig {
    /// A `file:` URI, or an absolute path.
    pub uri: Text,
    /// A name for people.
    pub name: Option<String>,
}

/// What the process of a server may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LimitsConfig {
    /// Memory in bytes.
    pub memory: Option<u64>,
    /// Time on the processor.
    pub cpu_time: Option<Duration>,
    /// Open files.
    pub files: Option<u64>,
}
