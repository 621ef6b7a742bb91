//! The data model of servers and their settings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bowline_types::Revision;
use serde_json::{Map, Value as Json};

use super::dialect::Dialect;
use super::report::{ConfigError, Notice, Origin};
use super::sections::{
    AuditConfig, DisclosureConfig, GatewayConfig, InspectorConfig, RuleConfig, SamplingConfig,
    SessionsConfig, StoreConfig, TaskAfter, TasksConfig,
};
use super::text::Text;
use bowline_policy::Pattern;

/// The owner of a file. It determines what the file may do, and its precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The user's own file.
    User,
    /// A file that comes with a project. It may add servers, which need approval before they start, and it may tighten
    /// rules. It cannot loosen anything.
    Project,
    /// The user's own settings for one project.
    Local,
    /// A file of the administrator.
    Managed,
}

impl Scope {
    /// Returns whether the file belongs to the user or the administrator.
    pub const fn is_own(self) -> bool {
        match self {
            Self::User | Self::Local | Self::Managed => true,
            Self::Project => false,
        }
    }
}

/// The merged configuration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// The servers, in the order of their first appearance.
    pub upstreams: Vec<UpstreamConfig>,
    /// The endpoint for clients.
    pub gateway: GatewayConfig,
    /// The rules. The first one that matches decides.
    pub rules: Vec<RuleConfig>,
    /// The models for servers that request sampling.
    pub sampling: SamplingConfig,
    /// The audit log.
    pub audit: AuditConfig,
    /// Where state is kept that several processes share.
    pub store: StoreConfig,
    /// Where sessions of legacy revisions are stored.
    pub sessions: SessionsConfig,
    /// Calls that become tasks of the gateway.
    pub tasks: TasksConfig,
    /// The page that shows the host.
    pub inspector: InspectorConfig,
    /// When tools are searched instead of listed.
    pub disclosure: DisclosureConfig,
    /// The origins of the settings of sections, by path such as `gateway.listen`.
    pub origins: BTreeMap<String, Origin>,
    /// All files that were requested, including missing ones. A change of any of them changes the configuration.
    pub files: Vec<PathBuf>,
    /// Messages that are not errors.
    pub notices: Vec<Notice>,
    /// Errors. Everything else was used.
    pub errors: Vec<ConfigError>,
}

impl Config {
    /// Returns the server with this name.
    pub fn upstream(&self, name: &str) -> Option<&UpstreamConfig> {
        self.upstreams.iter().find(|upstream| upstream.name == name)
    }
}

/// A server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UpstreamConfig {
    /// The name that the user chose.
    pub name: String,
    /// The position of the entry.
    pub origin: Origin,
    /// The scope of the file.
    pub scope: Scope,
    /// The dialect of the file.
    pub dialect: Dialect,
    /// How to start or connect to the server.
    pub launch: Launch,
    /// The settings.
    pub settings: UpstreamSettings,
    /// The environment variables that the entry uses; an approval shows them.
    pub uses: BTreeSet<String>,
    /// Unknown members.
    pub unknown: Unknown,
    /// The origin of each setting, by name. A setting that is not in the map has its default.
    pub origins: BTreeMap<String, Origin>,
}

impl UpstreamConfig {
    /// Returns whether the user must approve the command or URL before its first use, because the entry is not their
    /// own.
    pub fn needs_approval(&self) -> bool {
        !self.scope.is_own() || self.dialect == Dialect::Registry
    }

    /// Returns whether a running server can stay unchanged when this entry replaces `other`.
    pub fn is_same(&self, other: &Self) -> bool {
        // Positions change whenever a file is edited.
        self.name == other.name
            && self.scope == other.scope
            && self.dialect == other.dialect
            && self.launch == other.launch
            && self.settings == other.settings
            && self.unknown == other.unknown
    }
}

/// Unknown members. They may contain secrets, so `Debug` shows only their names.
#[derive(Clone, Default, PartialEq)]
pub struct Unknown(pub Map<String, Json>);

impl fmt::Debug for Unknown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

/// How a server is started or connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// Start a program and use its standard input and output. No shell is involved.
    Command(CommandLaunch),
    /// Connect over HTTP.
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
    /// Environment variables; `None` removes the variable.
    pub env: BTreeMap<String, Option<Text>>,
    /// A file with further variables, which `env` overrides; absolute.
    pub env_file: Option<Text>,
    /// The working directory; absolute.
    pub cwd: Option<Text>,
}

/// A remote server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UrlLaunch {
    /// The URL: `http`, `https`, or `unix` and `pipe` for a local socket.
    pub url: Text,
    /// Headers of every request.
    pub headers: BTreeMap<String, Text>,
    /// A command that prints further headers as a JSON object on every connect. They override `headers`.
    pub headers_helper: Option<Vec<Text>>,
    /// The transport to try first.
    pub prefer: Prefer,
    /// The settings of a login.
    pub oauth: Option<Box<OauthConfig>>,
}

/// The transport to try first. The other one is the fallback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Prefer {
    /// Streamable HTTP.
    #[default]
    Streamable,
    /// HTTP with SSE, the transport of 2024-11-05.
    Sse,
}

/// The settings of a login with OAuth.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OauthConfig {
    /// The client id, if the client is registered.
    pub client_id: Option<Text>,
    /// The client secret.
    pub client_secret: Option<Text>,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// The port for the redirect.
    pub callback_port: Option<u16>,
    /// The URL of the metadata of the authorization server.
    pub metadata_url: Option<Text>,
    /// The authorization server, exactly as it publishes its issuer.
    pub issuer: Option<Text>,
    /// The page where users log in, for an authorization server without metadata. Set together with `token_url`.
    pub authorization_url: Option<Text>,
    /// Where tokens are issued.
    pub token_url: Option<Text>,
    /// Further parameters of authorization requests.
    pub authorization_params: BTreeMap<String, Text>,
    /// What to send as `resource`, instead of what the server publishes.
    pub resource: Option<Text>,
    /// The URL of a client ID metadata document.
    pub client_metadata_url: Option<Text>,
    /// How tokens are obtained.
    pub grant: OauthGrant,
    /// A file with the private key of the client (PKCS#8, PEM); absolute.
    pub private_key: Option<Text>,
    /// A file with an assertion of the platform; absolute.
    pub assertion_file: Option<Text>,
    /// The host of the redirect URI.
    pub callback_host: Option<CallbackHost>,
    /// Whether tokens must be bound to a key (DPoP).
    pub dpop: bool,
    /// The names of exceptions from the rules of a login.
    pub allow: Vec<String>,
}

/// How tokens are obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum OauthGrant {
    /// A user logs in with a browser.
    #[default]
    AuthorizationCode,
    /// The client logs in as itself, with its secret or private key.
    ClientCredentials,
    /// The client logs in with an assertion of the platform that runs it.
    Workload,
}

/// The host of the redirect URI of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallbackHost {
    /// `127.0.0.1`.
    Address,
    /// `localhost`.
    Localhost,
}

/// Whose account a gateway uses at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuthMode {
    /// None: no login is used.
    None,
    /// One account or machine credential for all callers.
    Shared,
    /// One account for each user.
    User,
}

impl AuthMode {
    /// Returns the name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Shared => "shared",
            Self::User => "user",
        }
    }
}

/// The settings of a server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UpstreamSettings {
    /// A description of the server.
    pub description: Option<String>,
    /// Whether it is used.
    pub enabled: bool,
    /// When it is started.
    pub start: Start,
    /// Whether clients share an instance.
    pub share: Share,
    /// Whose account is used at the server; `None` for that of the user, if the gateway serves no one else.
    pub auth: Option<AuthMode>,
    /// The time limit for starting.
    pub startup_timeout: Duration,
    /// The maximum time without a message during a request.
    pub request_timeout: Duration,
    /// The idle time after which it is stopped; `None` keeps it running.
    pub idle_stop: Option<Duration>,
    /// When slow calls of its tools become tasks; `None` for the setting of the gateway.
    pub task_after: Option<TaskAfter>,
    /// Whether its tool annotations are trusted.
    pub trusted: bool,
    /// The tools to offer; all if empty.
    pub allow: Vec<Pattern>,
    /// The tools not to offer.
    pub deny: Vec<Pattern>,
    /// New names of tools.
    pub rename: BTreeMap<String, String>,
    /// New descriptions of tools.
    pub describe: BTreeMap<String, String>,
    /// The roots that are sent to the server.
    pub roots: Vec<RootConfig>,
    /// The tools that run without approval.
    pub auto_approve: Vec<Pattern>,
    /// Whether its tools are listed even if tools are searched.
    pub always_load: bool,
    /// The revision to use, regardless of what the server supports.
    pub revision: Option<Revision>,
    /// Resource limits of the process.
    pub limits: LimitsConfig,
    /// The variables of the host that its program receives besides `env`.
    pub inherit_env: InheritEnv,
    /// The maximum size of a list in bytes, over all pages.
    pub max_list_bytes: u64,
    /// The maximum number of entries of a list, over all pages.
    pub max_list_entries: u64,
    /// The interval of pings to an idle legacy server; `None` for never.
    pub ping_interval: Option<Duration>,
}

impl Default for UpstreamSettings {
    fn default() -> Self {
        Self {
            description: None,
            enabled: true,
            start: Start::default(),
            share: Share::default(),
            auth: None,
            startup_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(60),
            idle_stop: Some(Duration::from_secs(600)),
            task_after: None,
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
    /// Copies the setting with this name. Returns `false` if there is none.
    pub(crate) fn take(&mut self, name: &str, from: &Self) -> bool {
        let from = from.clone();
        match name {
            "description" => self.description = from.description,
            "enabled" => self.enabled = from.enabled,
            "start" => self.start = from.start,
            "share" => self.share = from.share,
            "auth" => self.auth = from.auth,
            "startup_timeout" => self.startup_timeout = from.startup_timeout,
            "request_timeout" => self.request_timeout = from.request_timeout,
            "idle_stop" => self.idle_stop = from.idle_stop,
            "task_after" => self.task_after = from.task_after,
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

/// The variables of the host that a server's program receives besides `env`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum InheritEnv {
    /// Variables for search paths, the network and the language. Names that usually hold credentials are excluded.
    #[default]
    Default,
    /// All of them.
    All,
    /// None of them.
    None,
    /// The default variables, and those whose names match one of these patterns.
    Matching(Vec<String>),
}

/// When a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Start {
    /// When it is needed.
    #[default]
    Lazy,
    /// Together with the host.
    Eager,
}

/// Whether clients share an instance of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Share {
    /// One instance for all clients.
    #[default]
    Shared,
    /// One instance per client.
    PerClient,
}

/// A root that is sent to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RootConfig {
    /// A `file:` URI, or an absolute path.
    pub uri: Text,
    /// The display name.
    pub name: Option<String>,
}

/// Resource limits of a server's process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LimitsConfig {
    /// Memory in bytes.
    pub memory: Option<u64>,
    /// CPU time.
    pub cpu_time: Option<Duration>,
    /// Open files.
    pub files: Option<u64>,
}
