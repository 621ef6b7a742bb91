//! The data model: the sections of `bowline.toml` other than servers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::report::Origin;
use bowline_policy::{Action, Consent, Effect, Pattern};
use bowline_search::DisclosureMode;

/// `[gateway]`: the endpoint for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayConfig {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The path of the endpoint.
    pub path: String,
    /// The name of the gateway as an MCP server.
    pub name: String,
    /// Instructions for models, before those of the servers.
    pub instructions: Option<String>,
    /// Origins whose web pages may call the gateway and read its responses.
    pub allowed_origins: Vec<String>,
    /// Accepted values of `Host` besides those of this machine. `*` accepts all and needs a token.
    pub allowed_hosts: Vec<String>,
    /// The environment variable that holds the token of clients.
    pub token_env: Option<String>,
    /// The maximum length of tool names.
    pub max_name: u16,
    /// Who consents to calls that no rule decides. The default depends on who can connect.
    pub consent: Option<Consent>,
    /// The maximum number of unanswered questions per server.
    pub max_questions: usize,
    /// The maximum number of sessions per caller. Without a token, all clients of this machine are one caller; all
    /// clients with the token are one caller, too.
    pub max_sessions: usize,
    /// The maximum idle time of a session.
    pub session_idle: Duration,
    /// The maximum number of open connections.
    pub max_connections: usize,
    /// The maximum idle time of a connection.
    pub keep_alive: Duration,
    /// The maximum number of bytes of retained events, over all sessions.
    pub max_retained_bytes: u64,
    /// The time after SIGTERM in which requests are still served, while `/readyz` returns 503.
    pub shutdown_delay: Duration,
    /// The maximum number of running per-client servers, over all callers.
    pub max_client_servers: usize,
    /// The maximum number of running per-client servers of one authenticated user.
    pub max_client_servers_per_user: usize,
    /// `[gateway.auth]`: the access tokens that clients may send.
    pub auth: Option<GatewayAuthConfig>,
}

/// `[gateway.auth]`: which access tokens the gateway accepts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayAuthConfig {
    /// The issuers of tokens, at least one.
    pub issuers: Vec<String>,
    /// The public URL of the endpoint: what tokens must be issued for. Without it, the address of a loopback socket.
    pub resource: Option<String>,
    /// Further audiences to accept.
    pub audience: Vec<String>,
    /// The scopes that every request needs.
    pub scopes: Vec<String>,
    /// The claim with the user, instead of `sub`.
    pub subject_claim: Option<String>,
    /// The claim with the scopes, instead of `scope` and `scp`.
    pub scope_claim: Option<String>,
    /// Scopes that a scope implies.
    pub implies: BTreeMap<String, Vec<String>>,
    /// Where the keys of the issuer are, if its metadata does not decide.
    pub jwks: Option<JwksSource>,
    /// How the issuer is asked about tokens, instead of verifying them with its keys.
    pub introspection: Option<IntrospectionConfig>,
    /// Whether tokens may or must be bound to a key of the client. `None` if they must not.
    pub dpop: Option<DpopMode>,
    /// Whether every proof needs a nonce.
    pub dpop_nonces: bool,
    /// How users connect accounts of their own at servers with `auth = "user"`. `None` if the page is not served.
    pub connect: Option<ConnectConfig>,
}

/// `[gateway.auth.connect]`: the page on which users connect their accounts at servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectConfig {
    /// The client that the gateway is at its issuer, to sign users in. Without it, the gateway registers itself.
    pub client_id: Option<String>,
    /// The environment variable with the secret of that client.
    pub client_secret_env: Option<String>,
}

/// `[gateway.auth.introspection]`: how the issuer is asked about tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IntrospectionConfig {
    /// The URL to ask at.
    pub url: String,
    /// The client that the gateway is at the authorization server.
    pub client_id: String,
    /// The environment variable with the secret of that client.
    pub client_secret_env: String,
    /// How long an accepted token is trusted without asking again.
    pub max_age: Duration,
    /// Whether responses that name no audience are accepted.
    pub without_audience: bool,
}

/// Whether tokens may or must be bound to a key of the client (DPoP).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DpopMode {
    /// Bound tokens with a proof, and unbound ones.
    Allowed,
    /// Bound tokens only.
    Required,
}

/// Where the keys of an issuer are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JwksSource {
    /// In a file.
    File(PathBuf),
    /// At a URL.
    Url(String),
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7337)),
            path: "/mcp".to_owned(),
            name: "bowline".to_owned(),
            instructions: None,
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            token_env: None,
            max_name: 60,
            consent: None,
            max_questions: 10,
            max_sessions: 1_000,
            session_idle: Duration::from_secs(12 * 3600),
            max_connections: 10_000,
            keep_alive: Duration::from_secs(180),
            max_retained_bytes: 256 << 20,
            shutdown_delay: Duration::from_secs(3),
            max_client_servers: 256,
            max_client_servers_per_user: 64,
            auth: None,
        }
    }
}

/// One of `[[rules]]`. An absent condition matches everything.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleConfig {
    /// The position of the rule.
    pub origin: Origin,
    /// The effect of the rule.
    pub effect: Effect,
    /// The action. Without it, rules that allow or ask apply to tool calls, and rules that deny apply to everything.
    pub action: Option<Action>,
    /// The name of the server.
    pub server: Option<Pattern>,
    /// The name of the tool. For other actions, the name of the prompt, or the URI or URL.
    pub tool: Option<Pattern>,
    /// Patterns for arguments, by JSON pointer or by the name of a top-level member. `*` means any of them.
    pub arguments: BTreeMap<String, Pattern>,
    /// Conditions on the annotations of the tool.
    pub annotations: AnnotationsConfig,
    /// The calling client or user.
    pub caller: Option<Pattern>,
    /// The user: the subject of the access token.
    pub principal: Option<Pattern>,
    /// The issuer of the access token.
    pub issuer: Option<Pattern>,
    /// The client id in the access token.
    pub client: Option<Pattern>,
    /// Scopes that the access token must grant, all of them.
    pub scopes: Vec<Pattern>,
    /// Patterns for claims of the access token, by name or JSON pointer.
    pub claims: BTreeMap<String, Pattern>,
    /// The reason that is shown to the person who is refused or asked.
    pub reason: Option<String>,
}

/// Conditions on the annotations of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AnnotationsConfig {
    /// `readOnlyHint`
    pub read_only: Option<bool>,
    /// `destructiveHint`
    pub destructive: Option<bool>,
    /// `idempotentHint`
    pub idempotent: Option<bool>,
    /// `openWorldHint`
    pub open_world: Option<bool>,
}

/// `[sampling]`: the models for servers that request sampling.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SamplingConfig {
    /// The providers by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// The models to choose from. The order decides if nothing else does.
    pub models: Vec<ModelConfig>,
    /// The maximum number of tokens per call.
    pub max_tokens_per_call: Option<u64>,
    /// The maximum number of tokens per server while the host runs.
    pub max_tokens_per_server: Option<u64>,
    /// The maximum number of tokens per server and hour.
    pub max_tokens_per_hour: Option<u64>,
    /// The time limit for a provider.
    pub timeout: Option<Duration>,
}

/// A provider of models.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderConfig {
    /// Where it is configured.
    pub origin: Origin,
    /// The API of the provider.
    pub kind: ProviderKind,
    /// The base URL, if not the usual one.
    pub base_url: Option<String>,
    /// The source of the API key; a local provider needs none.
    pub key: Option<KeySource>,
}

/// The API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    /// The chat completions API of OpenAI, which Ollama, vLLM and many others support.
    OpenAi,
    /// The messages API of Anthropic.
    Anthropic,
}

/// The source of an API key. The key itself is never in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// An environment variable.
    Env(String),
    /// A file.
    File(PathBuf),
}

/// A model.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelConfig {
    /// Where it is configured.
    pub origin: Origin,
    /// The name that the provider uses.
    pub name: String,
    /// The name of its provider in `providers`.
    pub provider: String,
    /// Further names that model hints may match.
    pub aliases: Vec<String>,
    /// How cheap the model is: 1 is the cheapest.
    pub cost: f64,
    /// How fast the model is: 1 is the fastest.
    pub speed: f64,
    /// How capable the model is: 1 is the most capable.
    pub intelligence: f64,
}

/// `[audit]`: the log of decisions and calls.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditConfig {
    /// The file. Without it, nothing is logged.
    pub file: Option<PathBuf>,
    /// The size at which the file is rotated.
    pub max_bytes: u64,
    /// The number of rotated files to keep.
    pub keep: u32,
    /// Whether calls are refused if they cannot be logged.
    pub required: bool,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { file: None, max_bytes: 16 << 20, keep: 5, required: false }
    }
}

/// `[store]`: where state is kept that several processes share.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The URL. Without it and without `url_env`, nothing is shared.
    pub url: Option<String>,
    /// The environment variable that holds the URL.
    pub url_env: Option<String>,
    /// What separates users of one database.
    pub namespace: String,
    /// The environment variables that hold the keys: the first seals, all open.
    pub keys_env: Vec<String>,
    /// The URL of the server that delivers hints, if it is not the store itself.
    pub bus: Option<String>,
}

impl Default for StoreConfig {
    fn default() -> Self {
        let namespace = "default".to_owned();
        Self { url: None, url_env: None, namespace, keys_env: Vec::new(), bus: None }
    }
}

/// `[tasks]`: calls that become tasks of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TasksConfig {
    /// When slow calls become tasks.
    pub after: TaskAfter,
    /// How long they may take, and how long their results are kept from their creation.
    pub ttl: Duration,
}

impl Default for TasksConfig {
    fn default() -> Self {
        Self { after: TaskAfter::default(), ttl: Duration::from_secs(3600) }
    }
}

/// When a slow call of a tool becomes a task of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskAfter {
    /// After this time.
    Time(Duration),
    /// Never.
    Never,
}

impl TaskAfter {
    /// Returns the time; `None` for never.
    pub const fn time(self) -> Option<Duration> {
        match self {
            Self::Time(time) => Some(time),
            Self::Never => None,
        }
    }
}

impl Default for TaskAfter {
    fn default() -> Self {
        Self::Time(Duration::from_secs(20))
    }
}

/// `[sessions]`: where sessions of legacy revisions are remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionsConfig {
    /// Where sessions are remembered.
    pub mode: SessionMode,
    /// Where their streams can be resumed.
    pub resume: ResumeMode,
}

/// Where sessions are remembered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionMode {
    /// In the process that opened them.
    #[default]
    Process,
    /// In their ids.
    Sealed,
    /// In the store.
    Store,
}

impl SessionMode {
    /// Returns the name in configuration files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Sealed => "sealed",
            Self::Store => "store",
        }
    }
}

/// Where streams of stored sessions can be resumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResumeMode {
    /// At every process.
    #[default]
    Store,
    /// At the process that runs the call.
    Node,
}

impl ResumeMode {
    /// Returns the name in configuration files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Node => "node",
        }
    }
}

/// `[inspector]`: the page that shows the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InspectorConfig {
    /// How many bytes of messages are kept. Without it, each command has its own default.
    pub memory: Option<u64>,
    /// Whether bodies of messages are kept. Without it, each command has its own default.
    pub bodies: Option<bool>,
    /// Whether links can act where no terminal can be asked.
    pub control: bool,
}

/// `[disclosure]`: when tools are searched instead of listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DisclosureConfig {
    /// The mode.
    pub mode: DisclosureMode,
    /// In automatic mode, tools are searched if their list has more than this estimated number of tokens.
    pub threshold_tokens: u64,
}

impl Default for DisclosureConfig {
    fn default() -> Self {
        Self { mode: DisclosureMode::default(), threshold_tokens: 20_000 }
    }
}
