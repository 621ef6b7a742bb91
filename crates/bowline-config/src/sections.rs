//! The data model: the sections of `bowline.toml` other than servers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::report::Origin;
use bowline_policy::{Action, Consent, Effect, Pattern};
use bowline_search::DisclosureMode;

/// `[gateway]`: how clients reach the host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayConfig {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The path of the endpoint.
    pub path: String,
    /// The name the gateway gives itself.
    pub name: String,
    /// What the gateway tells models about itself, before what the servers say.
    pub instructions: Option<String>,
    /// Origins whose web pages may call the gateway, and read its replies.
    pub allowed_origins: Vec<String>,
    /// Values of `Host` that are accepted beside those of this machine. `*` accepts all, and needs a token.
    pub allowed_hosts: Vec<String>,
    /// The variable of the environment that holds the token clients have to send.
    pub token_env: Option<String>,
    /// The longest name of a tool that clients are given.
    pub max_name: u16,
    /// Who consents to calls that no rule decides; without it, that depends on who can connect.
    pub consent: Option<Consent>,
    /// How many questions of one server may be unanswered.
    pub max_questions: usize,
    /// How many sessions one caller may have. Without a token all clients of this machine are one caller, and all that have
    /// the token are.
    pub max_sessions: usize,
    /// How long a session may be idle.
    pub session_idle: Duration,
    /// How many connections may be open.
    pub max_connections: usize,
    /// How long a connection may be idle.
    pub keep_alive: Duration,
    /// How many bytes of events all sessions together keep.
    pub max_retained_bytes: u64,
    /// How long requests are still served after SIGTERM, while `/readyz` answers 503.
    pub shutdown_delay: Duration,
    /// How many per-client servers run at a time, of all callers.
    pub max_client_servers: usize,
    /// How many of them may be of one authenticated user.
    pub max_client_servers_per_user: usize,
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
        }
    }
}

/// One of `[[rules]]`: what happens to what it matches. An absent condition matches everything.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleConfig {
    /// Where the rule is.
    pub origin: Origin,
    /// What happens.
    pub effect: Effect,
    /// What is about to happen. Without it, a rule that allows or asks is about tool calls, and one that denies is about
    /// everything.
    pub action: Option<Action>,
    /// The name of the server.
    pub server: Option<Pattern>,
    /// The name of the tool; for other actions the name of the prompt, or the URI or URL.
    pub tool: Option<Pattern>,
    /// What the arguments have to look like, by JSON pointer or by the name of a top-level member; `*` is any of them.
    pub arguments: BTreeMap<String, Pattern>,
    /// What the server says about the tool.
    pub annotations: AnnotationsConfig,
    /// The client or user that calls.
    pub caller: Option<Pattern>,
    /// Why, for the one who is refused or asked.
    pub reason: Option<String>,
}

/// What a server has to say about a tool for a rule to match.
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

/// `[sampling]`: which models answer servers that ask for one.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SamplingConfig {
    /// Whom to ask, by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// What to choose from, in order of preference where nothing else decides.
    pub models: Vec<ModelConfig>,
    /// The most tokens one call may ask for.
    pub max_tokens_per_call: Option<u64>,
    /// The most tokens one server may use while the host runs.
    pub max_tokens_per_server: Option<u64>,
    /// The most tokens one server may use in an hour.
    pub max_tokens_per_hour: Option<u64>,
    /// How long a provider may take.
    pub timeout: Option<Duration>,
}

/// Somebody who runs models.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderConfig {
    /// Where it is configured.
    pub origin: Origin,
    /// Which interface it speaks.
    pub kind: ProviderKind,
    /// Where it is, if not at the usual place.
    pub base_url: Option<String>,
    /// Where its key is; a provider on this machine needs none.
    pub key: Option<KeySource>,
}

/// The interface of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    /// Chat completions as OpenAI has them, and Ollama, vLLM and many others.
    OpenAi,
    /// Messages as Anthropic has them.
    Anthropic,
}

/// Where a key is. A key is never in the configuration itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// In a variable of the environment.
    Env(String),
    /// In a file.
    File(PathBuf),
}

/// A model to choose.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelConfig {
    /// Where it is configured.
    pub origin: Origin,
    /// Its name at the provider.
    pub name: String,
    /// The name of its provider in `providers`.
    pub provider: String,
    /// Further names that hints may match.
    pub aliases: Vec<String>,
    /// How cheap it is: 1 is the cheapest.
    pub cost: f64,
    /// How fast it is: 1 is the fastest.
    pub speed: f64,
    /// How able it is: 1 is the most able.
    pub intelligence: f64,
}

/// `[audit]`: where decisions and calls are written down.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuditConfig {
    /// The file; nothing is written without one.
    pub file: Option<PathBuf>,
    /// How long the file may grow before a new one is begun.
    pub max_bytes: u64,
    /// How many old files are kept.
    pub keep: u32,
    /// Whether calls are refused that cannot be written down.
    pub required: bool,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { file: None, max_bytes: 16 << 20, keep: 5, required: false }
    }
}

/// `[disclosure]`: when tools are searched for instead of listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DisclosureConfig {
    /// Whether.
    pub mode: DisclosureMode,
    /// From how many estimated tokens on, if automatic.
    pub threshold_tokens: u64,
}

impl Default for DisclosureConfig {
    fn default() -> Self {
        Self { mode: DisclosureMode::default(), threshold_tokens: 20_000 }
    }
}
