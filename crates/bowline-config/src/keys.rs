//! Describes every key of `bowline.toml`; the reference page is generated from this table.

/// A table of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section {
    /// The header of the table, with `NAME` for a name that the user chooses. Empty for keys before all tables.
    pub header: &'static str,
    /// When the keys apply, if not always.
    pub condition: Option<&'static str>,
    /// The purpose of the table.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// TOML that an entry needs besides its own keys.
    pub(super) beside: &'static str,
}

/// A key of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// The type of the value.
    pub kind: &'static str,
    /// What applies if the key is absent.
    pub absent: Absent,
    /// A valid value, in TOML.
    pub example: &'static str,
    /// The meaning of the key.
    pub about: &'static str,
}

/// What applies if a key is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absent {
    /// The key is required.
    Required,
    /// This value, in TOML.
    Default(&'static str),
    /// Nothing is set.
    Nothing,
}

use Absent::{Default, Nothing, Required};

const fn key(
    name: &'static str,
    kind: &'static str,
    absent: Absent,
    example: &'static str,
    about: &'static str,
) -> Key {
    Key { name, kind, absent, example, about }
}

const fn section(header: &'static str, about: &'static str, keys: &'static [Key]) -> Section {
    Section { header, condition: None, about, keys, beside: "" }
}

const TEXT: &str = "string";
const FLAG: &str = "`true` or `false`";
const COUNT: &str = "number";
const TIME: &str = "duration, such as `30s` or `5m`";
const SIZE: &str = "size, such as `512MiB`";
const TEXTS: &str = "list of strings";
const PATTERNS: &str = "list of patterns";
const PATTERN: &str = "pattern";
const TABLE: &str = "table of strings";
const SHARE: &str = "number from 0 to 1";
const PATH: &str = "path";

const SETTINGS: &[Key] = &[
    key("enabled", FLAG, Default("true"), "false", "Whether the server is used."),
    key("description", TEXT, Nothing, "\"Tickets of the team\"", "A description of the server."),
    key(
        "start",
        "`lazy` or `eager`",
        Default("\"lazy\""),
        "\"eager\"",
        "Whether the server starts when it is first needed, or with the host.",
    ),
    key(
        "share",
        "`shared` or `per-client`",
        Default("\"shared\""),
        "\"per-client\"",
        "Whether all clients share one instance.",
    ),
    key("startup_timeout", TIME, Default("\"30s\""), "\"1m\"", "The timeout for starting."),
    key(
        "request_timeout",
        TIME,
        Default("\"60s\""),
        "\"5m\"",
        "The timeout of a request without a response or progress.",
    ),
    key(
        "idle_stop",
        "duration, or `never`",
        Default("\"10m\""),
        "\"never\"",
        "How long the server may be idle before it is stopped.",
    ),
    key(
        "task_after",
        "duration, or `never`",
        Nothing,
        "\"5s\"",
        "When a slow call of its tools becomes a task of the gateway, instead of `after` of `[tasks]`.",
    ),
    key(
        "trusted",
        FLAG,
        Default("false"),
        "true",
        "Whether to trust the annotations of its tools. Ignored in project files.",
    ),
    key("allow", PATTERNS, Default("[]"), "[\"read_*\"]", "The tools to offer; all if empty."),
    key("deny", PATTERNS, Default("[]"), "[\"delete_*\"]", "The tools not to offer."),
    key(
        "auto_approve",
        PATTERNS,
        Default("[]"),
        "[\"read_*\"]",
        "The tools that run without asking. Ignored in project files.",
    ),
    key("rename", TABLE, Default("{}"), "{ search = \"find\" }", "New names for tools."),
    key("describe", TABLE, Default("{}"), "{ search = \"Find a ticket\" }", "New descriptions for tools."),
    key(
        "always_load",
        FLAG,
        Default("false"),
        "true",
        "Whether its tools are always listed, even if clients get a tool search.",
    ),
    key("revision", "revision", Nothing, "\"2025-06-18\"", "The only protocol revision to use."),
    key(
        "roots",
        "list of paths and `file:` URIs, or of tables",
        Default("[]"),
        "[\"/srv/project\"]",
        "The roots to send to the server.",
    ),
    key(
        "limits",
        "table",
        Nothing,
        "{ files = 256 }",
        "Resource limits of the process; see `[servers.NAME.limits]`.",
    ),
    key(
        "inherit_env",
        "`default`, `all`, `none`, or a list of names with `*` as a wildcard",
        Default("\"default\""),
        "[\"AWS_*\", \"KUBECONFIG\"]",
        "Which of your environment variables the program receives; a list adds to the default. Ignored in project files.",
    ),
    key(
        "max_list_bytes",
        SIZE,
        Default("\"8MiB\""),
        "\"16MiB\"",
        "The maximum size of a list, over all pages. Larger lists are refused.",
    ),
    key(
        "max_list_entries",
        COUNT,
        Default("10000"),
        "50000",
        "The maximum number of entries of a list. Larger lists are refused.",
    ),
    key(
        "ping_interval",
        "duration, or `never`",
        Default("\"60s\""),
        "\"never\"",
        "How often an idle server is pinged, in revisions before 2026-07-28.",
    ),
];

const COMMAND: &[Key] = &[
    key("command", TEXT, Required, "\"npx\"", "The program to start, without a shell."),
    key("args", TEXTS, Default("[]"), "[\"-y\", \"some-server\"]", "The arguments."),
    key("env", TABLE, Default("{}"), "{ REGION = \"eu\" }", "Environment variables to set."),
    key("unset", TEXTS, Default("[]"), "[\"NODE_OPTIONS\"]", "Environment variables to remove."),
    key("env_file", PATH, Nothing, "\".env\"", "A file with more variables; `env` overrides them."),
    key("cwd", PATH, Nothing, "\"/srv\"", "The working directory."),
];

const URL: &[Key] = &[
    key("url", TEXT, Required, "\"https://tickets.example.com/mcp\"", "The URL of the server."),
    key(
        "transport",
        "`auto`, `http` or `sse`",
        Default("\"auto\""),
        "\"sse\"",
        "The transport to try first; `sse` is the HTTP+SSE transport of 2024-11-05.",
    ),
    key("headers", TABLE, Default("{}"), "{ X-Team = \"blue\" }", "Headers for every request."),
    key(
        "headers_helper",
        TEXTS,
        Nothing,
        "[\"print-headers\", \"--json\"]",
        "A command that prints more headers as a JSON object, run for every connection.",
    ),
    key(
        "auth",
        "`none`, `shared` or `user`",
        Nothing,
        "\"shared\"",
        "Whose account a gateway uses. `none`: no login. `shared`: one account or machine credential for all callers. `user`: one account for each user; callers without a login get an error. Default: your login, if nobody else can connect to the gateway, otherwise `none`. Project files can only set `none`.",
    ),
    key(
        "oauth",
        "table, or `false`",
        Nothing,
        "{ client_id = \"bowline\" }",
        "Settings for a login; see `[servers.NAME.oauth]`. `false` is the same as `auth = \"none\"`.",
    ),
];

const ROOTS: &[Key] = &[
    key("uri", "path or `file:` URI", Required, "\"file:///srv/project\"", "The directory."),
    key("name", TEXT, Nothing, "\"project\"", "A display name."),
];

const LIMITS: &[Key] = &[
    key("memory", SIZE, Nothing, "\"512MiB\"", "Maximum memory."),
    key("cpu_time", TIME, Nothing, "\"10m\"", "Maximum CPU time."),
    key("files", COUNT, Nothing, "256", "Maximum number of open files."),
];

const OAUTH: &[Key] = &[
    key(
        "client_id",
        TEXT,
        Nothing,
        "\"bowline\"",
        "The id of a client that you registered at the authorization server.",
    ),
    key("client_secret", TEXT, Nothing, "\"${TICKETS_SECRET:-none}\"", "The client secret."),
    key("scopes", TEXTS, Default("[]"), "[\"read\"]", "The scopes to request."),
    key(
        "callback_port",
        COUNT,
        Nothing,
        "9000",
        "The port of the redirect URI `http://127.0.0.1:PORT/callback`.",
    ),
    key(
        "metadata_url",
        TEXT,
        Nothing,
        "\"https://login.example.com/.well-known/oauth-authorization-server\"",
        "The metadata of the authorization server to use, if the server names several or none.",
    ),
    key(
        "issuer",
        TEXT,
        Nothing,
        "\"https://login.example.com\"",
        "The authorization server to use, exactly as it publishes its issuer.",
    ),
    key(
        "authorization_url",
        TEXT,
        Nothing,
        "\"https://login.example.com/authorize\"",
        "The authorization endpoint of an authorization server without metadata. Needs `token_url` and `client_id`.",
    ),
    key(
        "token_url",
        TEXT,
        Nothing,
        "\"https://login.example.com/token\"",
        "The token endpoint of an authorization server without metadata. Needs `authorization_url`.",
    ),
    key(
        "authorization_params",
        TABLE,
        Default("{}"),
        "{ audience = \"tickets\" }",
        "More parameters for the authorization request. Those of the login itself, such as `state`, cannot be set.",
    ),
    key(
        "resource",
        TEXT,
        Nothing,
        "\"https://tickets.example.com/mcp\"",
        "The value of the parameter `resource`, instead of what the server publishes.",
    ),
    key(
        "client_metadata_url",
        TEXT,
        Nothing,
        "\"https://app.example.com/client.json\"",
        "The URL of your client ID metadata document.",
    ),
    key(
        "grant",
        "`authorization_code`, `client_credentials` or `workload`",
        Default("\"authorization_code\""),
        "\"client_credentials\"",
        "How tokens are obtained. `authorization_code`: a user logs in. `client_credentials`: with `client_id` and `client_secret` or `private_key`. `workload`: with `assertion_file`.",
    ),
    key(
        "private_key",
        PATH,
        Nothing,
        "\"client.pem\"",
        "The private key of the client (PKCS#8, PEM), for `client_credentials`.",
    ),
    key(
        "assertion_file",
        PATH,
        Nothing,
        "\"/var/run/secrets/token\"",
        "A file with an assertion of the platform, such as the token of a Kubernetes service account. It is read for every login.",
    ),
    key(
        "callback_host",
        "`127.0.0.1` or `localhost`",
        Nothing,
        "\"localhost\"",
        "The host of the redirect URI; `127.0.0.1` unless it is set.",
    ),
    key(
        "dpop",
        FLAG,
        Default("false"),
        "true",
        "Whether tokens must be bound to a key of this login (DPoP).",
    ),
    key(
        "allow",
        TEXTS,
        Default("[]"),
        "[\"unannounced-pkce\"]",
        "Exceptions from the rules of a login, for servers that break them: `missing-issuer`, `issuer-slash`, `unannounced-pkce`, `no-resource-parameter`, `foreign-resource`, `http`.",
    ),
];

const GATEWAY: &[Key] = &[
    key(
        "listen",
        "address and port",
        Default("\"127.0.0.1:7337\""),
        "\"127.0.0.1:9000\"",
        "The address to listen on.",
    ),
    key("path", TEXT, Default("\"/mcp\""), "\"/tools\"", "The path of the endpoint."),
    key("name", TEXT, Default("\"bowline\""), "\"team\"", "The server name of the gateway."),
    key(
        "instructions",
        TEXT,
        Nothing,
        "\"Ask before you delete.\"",
        "Instructions for models, before those of the servers.",
    ),
    key(
        "allowed_origins",
        TEXTS,
        Default("[]"),
        "[\"https://app.example.com\"]",
        "Origins whose web pages may use the gateway (CORS).",
    ),
    key(
        "allowed_hosts",
        TEXTS,
        Default("[]"),
        "[\"mcp.example.com\"]",
        "Host names to accept in addition to `localhost` and the address in `listen`. `*` accepts all and needs a token.",
    ),
    key(
        "token_env",
        TEXT,
        Nothing,
        "\"BOWLINE_TOKEN\"",
        "The environment variable with the token that clients must send.",
    ),
    key(
        "consent",
        "`client`, `ask` or `deny`",
        Nothing,
        "\"ask\"",
        "What happens to calls that no rule matches. `client`: allow them, the client asks its own user. `ask`: ask the user, at the terminal or through the client (elicitation). `deny`: refuse them. Default: `ask` at a terminal; without a terminal `client` if only one user can connect (stdio, or a loopback address with a token), otherwise `ask`.",
    ),
    key(
        "max_questions",
        COUNT,
        Default("10"),
        "20",
        "The maximum number of unanswered questions per server, from 1 to 1000: pending ones, and those of the last minute that timed out. Further questions are refused.",
    ),
    key("max_name", COUNT, Default("60"), "128", "The maximum length of tool names, from 16 to 128."),
    key(
        "max_sessions",
        COUNT,
        Default("1000"),
        "5000",
        "The maximum number of sessions per caller; all clients with the same token, or without one, are one caller. Above the limit, the session that has been idle longest is closed.",
    ),
    key("session_idle", TIME, Default("\"12h\""), "\"1h\"", "How long a session may be idle."),
    key(
        "max_connections",
        COUNT,
        Default("10000"),
        "1000",
        "The maximum number of connections, and at most three quarters of the file descriptors. Above the limit, the connection that has been idle longest is closed.",
    ),
    key(
        "keep_alive",
        TIME,
        Default("\"3m\""),
        "\"10m\"",
        "How long a connection may be idle. Use a longer time than the idle timeout of your load balancer.",
    ),
    key(
        "max_retained_bytes",
        SIZE,
        Default("\"256MiB\""),
        "\"64MiB\"",
        "The maximum number of bytes of events that all sessions retain for reconnecting clients.",
    ),
    key(
        "shutdown_delay",
        TIME,
        Default("\"3s\""),
        "\"10s\"",
        "How long requests are still served after SIGTERM, while `/readyz` returns 503.",
    ),
    key(
        "max_client_servers",
        COUNT,
        Default("256"),
        "1000",
        "The maximum number of running servers with `share = \"per-client\"`, for all callers.",
    ),
    key(
        "max_client_servers_per_user",
        COUNT,
        Default("64"),
        "16",
        "The maximum number of such servers per authenticated user.",
    ),
    key(
        "auth",
        "table",
        Nothing,
        "{ issuer = \"https://login.example.com\" }",
        "The access tokens that clients may send; see `[gateway.auth]`.",
    ),
];

const GATEWAY_AUTH: &[Key] = &[
    key(
        "issuer",
        "string, or list of strings",
        Required,
        "\"https://login.example.com\"",
        "The authorization server that issues the tokens, exactly as in its metadata; or several.",
    ),
    key(
        "resource",
        TEXT,
        Nothing,
        "\"https://mcp.example.com/mcp\"",
        "The public URL of the gateway, for which tokens must be issued. Optional on a loopback address, where it is the URL of the socket.",
    ),
    key(
        "audience",
        TEXTS,
        Default("[]"),
        "[\"api://mcp\"]",
        "Further audiences to accept, for authorization servers that do not use the URL.",
    ),
    key(
        "scopes",
        TEXTS,
        Default("[]"),
        "[\"mcp\"]",
        "The scopes that every request needs. Clients request them when they log in.",
    ),
    key("subject_claim", TEXT, Nothing, "\"oid\"", "The claim that identifies the user, instead of `sub`."),
    key(
        "scope_claim",
        TEXT,
        Nothing,
        "\"roles\"",
        "The claim with the scopes, instead of `scope` and `scp`.",
    ),
    key(
        "implies",
        "table of lists",
        Default("{}"),
        "{ admin = [\"notes:read\", \"notes:write\"] }",
        "Scopes that include other scopes. Implications are transitive.",
    ),
    key(
        "jwks_file",
        PATH,
        Nothing,
        "\"keys.json\"",
        "A file with the keys of the issuer (JWK set), instead of those that its metadata names. The file is read again when keys change.",
    ),
    key(
        "jwks_url",
        TEXT,
        Nothing,
        "\"https://login.example.com/keys\"",
        "The URL of the keys of the issuer, instead of the one in its metadata.",
    ),
    key(
        "introspection",
        "table",
        Nothing,
        "{ url = \"https://login.example.com/introspect\", client_id = \"gateway\", client_secret_env = \"INTROSPECTION_SECRET\" }",
        "Asks the issuer about each token, for tokens that only the issuer can read; see `[gateway.auth.introspection]`.",
    ),
    key(
        "dpop",
        "`allowed` or `required`",
        Nothing,
        "\"required\"",
        "Whether tokens may or must be bound to a key of the client (DPoP). Without it, such tokens are refused.",
    ),
    key(
        "dpop_nonces",
        FLAG,
        Default("false"),
        "true",
        "Requires a nonce of the gateway in every DPoP proof, so that proofs cannot be made in advance. No effect without `dpop`.",
    ),
    key(
        "connect",
        "table",
        Nothing,
        "{ client_id = \"gateway\", client_secret_env = \"CONNECT_SECRET\" }",
        "Serves a page on which users connect their accounts at servers with `auth = \"user\"`; see `[gateway.auth.connect]`.",
    ),
];

const GATEWAY_AUTH_CONNECT: &[Key] = &[
    key(
        "client_id",
        TEXT,
        Nothing,
        "\"gateway\"",
        "The client id of the gateway at its issuer, with the redirect URI `<origin of the gateway>/connect/callback`. Without \
         it, the gateway registers itself there. Needs exactly one issuer.",
    ),
    key(
        "client_secret_env",
        TEXT,
        Nothing,
        "\"CONNECT_SECRET\"",
        "The environment variable with the secret of that client.",
    ),
];

const GATEWAY_AUTH_INTROSPECTION: &[Key] = &[
    key(
        "url",
        TEXT,
        Required,
        "\"https://login.example.com/introspect\"",
        "The introspection endpoint of the issuer (RFC 7662).",
    ),
    key("client_id", TEXT, Required, "\"gateway\"", "The client id of the gateway at the issuer."),
    key(
        "client_secret_env",
        TEXT,
        Required,
        "\"INTROSPECTION_SECRET\"",
        "The environment variable with the secret of that client.",
    ),
    key(
        "max_age",
        TIME,
        Default("\"60s\""),
        "\"10s\"",
        "How long an accepted token is trusted without asking again, at most `5m`. `0s` asks for every request.",
    ),
    key(
        "without_audience",
        FLAG,
        Default("false"),
        "true",
        "Accepts responses that name no audience. Only for an issuer that answers this client for no other server.",
    ),
];

const RULES: &[Key] = &[
    key("effect", "`allow`, `ask` or `deny`", Required, "\"ask\"", "What happens if the rule matches."),
    key(
        "action",
        "`call`, `read`, `prompt`, `sample`, `form`, `visit` or `roots`",
        Nothing,
        "\"call\"",
        "The kind of action. By default, a rule that allows or asks applies to tool calls, and a rule that denies applies to everything.",
    ),
    key("server", PATTERN, Nothing, "\"tickets\"", "The name of the server."),
    key("tool", PATTERN, Nothing, "\"delete_*\"", "The name of the tool or prompt, or the URI."),
    key(
        "caller",
        PATTERN,
        Nothing,
        "\"claude-code*\"",
        "The user: the subject of the access token, or the authenticated user if there is none. Rules that ask or deny also match the name that the client reports.",
    ),
    key("principal", PATTERN, Nothing, "\"ada\"", "The user: the subject of the access token."),
    key("issuer", PATTERN, Nothing, "\"https://login.example.com\"", "The issuer of the access token."),
    key("client", PATTERN, Nothing, "\"notes-app\"", "The client id in the access token."),
    key(
        "scopes",
        PATTERNS,
        Default("[]"),
        "[\"notes:write\"]",
        "Scopes that the access token must grant, all of them.",
    ),
    key(
        "claims",
        "table of patterns",
        Default("{}"),
        "{ groups = \"ops\" }",
        "Patterns for claims of the access token, by name or JSON pointer. If a claim is a list, one item must match.",
    ),
    key(
        "arguments",
        "table of patterns",
        Default("{}"),
        "{ path = \"/etc/*\" }",
        "Patterns for arguments, by name or JSON pointer; `*` is any argument.",
    ),
    key(
        "annotations",
        "table",
        Nothing,
        "{ destructive = true }",
        "The annotations of the tool; see `[rules.annotations]`.",
    ),
    key(
        "reason",
        TEXT,
        Nothing,
        "\"It cannot be undone.\"",
        "The reason, shown when the call is denied or asked about.",
    ),
];

const ANNOTATIONS: &[Key] = &[
    key("read_only", FLAG, Nothing, "true", "The tool changes nothing."),
    key("destructive", FLAG, Nothing, "true", "The tool may destroy data."),
    key("idempotent", FLAG, Nothing, "true", "Calling the tool twice has the same effect as once."),
    key("open_world", FLAG, Nothing, "true", "The tool interacts with external systems."),
];

const SAMPLING: &[Key] = &[
    key("max_tokens_per_call", COUNT, Nothing, "4096", "The maximum number of tokens per call."),
    key(
        "max_tokens_per_server",
        COUNT,
        Nothing,
        "100000",
        "The maximum number of tokens per server until the host is restarted.",
    ),
    key(
        "max_tokens_per_hour",
        COUNT,
        Nothing,
        "100000",
        "The maximum number of tokens per hour for each server.",
    ),
    key("timeout", TIME, Nothing, "\"2m\"", "The timeout of a provider."),
    key(
        "providers",
        "tables",
        Nothing,
        "{ local = { kind = \"openai\" } }",
        "The model providers; see `[sampling.providers.NAME]`.",
    ),
    key("models", "list of tables", Nothing, "[]", "The models; see `[[sampling.models]]`."),
];

const PROVIDERS: &[Key] = &[
    key(
        "kind",
        "`openai` or `anthropic`",
        Required,
        "\"openai\"",
        "The API of the provider. Ollama, vLLM and many others support `openai`.",
    ),
    key(
        "base_url",
        TEXT,
        Nothing,
        "\"http://127.0.0.1:11434/v1\"",
        "The base URL, if it is not the default.",
    ),
    key("key_env", TEXT, Nothing, "\"OPENAI_API_KEY\"", "The environment variable with the API key."),
    key("key_file", PATH, Nothing, "\"~/.config/bowline/key\"", "The file with the API key."),
];

const MODELS: &[Key] = &[
    key("name", TEXT, Required, "\"model-name\"", "The model name that the provider uses."),
    key("provider", TEXT, Required, "\"cloud\"", "The name of the provider."),
    key(
        "aliases",
        TEXTS,
        Default("[]"),
        "[\"small\"]",
        "Additional names that model hints of servers can match.",
    ),
    key("cost", SHARE, Default("0.5"), "1", "How cheap the model is; 1 is the cheapest."),
    key("speed", SHARE, Default("0.5"), "1", "How fast the model is; 1 is the fastest."),
    key("intelligence", SHARE, Default("0.5"), "1", "How capable the model is; 1 is the most capable."),
];

const AUDIT: &[Key] = &[
    key("file", PATH, Nothing, "\"~/bowline-audit.jsonl\"", "The log file; without it, nothing is logged."),
    key(
        "max_bytes",
        SIZE,
        Default("\"16MiB\""),
        "\"64MiB\"",
        "The maximum size of the file before it is rotated.",
    ),
    key("keep", COUNT, Default("5"), "10", "The number of old files to keep."),
    key("required", FLAG, Default("false"), "true", "Whether calls are denied if they cannot be logged."),
];

const STORE: &[Key] = &[
    key(
        "url",
        TEXT,
        Nothing,
        "\"sqlite:state.db\"",
        "The database: `sqlite:PATH`, `postgres://…`, `redis://…` or `rediss://…`.",
    ),
    key(
        "url_env",
        TEXT,
        Nothing,
        "\"BOWLINE_STORE_URL\"",
        "The environment variable that holds the URL, for a URL with a password.",
    ),
    key(
        "namespace",
        TEXT,
        Default("\"default\""),
        "\"prod\"",
        "Separates gateways that use the same database.",
    ),
    key(
        "keys_env",
        TEXTS,
        Default("[]"),
        "[\"BOWLINE_KEY\"]",
        "The environment variables that hold the keys. The first key encrypts, all keys decrypt. All processes need the same keys; make one with `openssl rand -base64 32`.",
    ),
    key(
        "bus",
        TEXT,
        Nothing,
        "\"redis://cache\"",
        "The URL of the server that delivers notifications between processes, if it is not the store itself.",
    ),
];

const SESSIONS: &[Key] = &[
    key(
        "mode",
        "`process`, `sealed` or `store`",
        Default("\"process\""),
        "\"sealed\"",
        "Where sessions of clients before 2026-07-28 are stored: in the process that opened them, in their ids, or in the store.",
    ),
    key(
        "resume",
        "`store` or `node`",
        Default("\"store\""),
        "\"node\"",
        "With `mode = \"store\"`: whether streams can be resumed at every process, or only where the call runs.",
    ),
];

const TASKS: &[Key] = &[
    key(
        "after",
        "duration, or `never`",
        Default("\"20s\""),
        "\"5s\"",
        "When a slow call becomes a task of the gateway, if its server made no task of it and its caller handles tasks.",
    ),
    key(
        "ttl",
        TIME,
        Default("\"1h\""),
        "\"6h\"",
        "How long such a task may take, and how long its result is kept from its creation; at most 24 hours.",
    ),
];

const INSPECTOR: &[Key] = &[
    key(
        "memory",
        SIZE,
        Nothing,
        "\"64MiB\"",
        "How much memory the latest messages may use, from 1MiB to 4GiB. Default: 32MiB; 128MiB in `bowline inspect`.",
    ),
    key(
        "bodies",
        FLAG,
        Nothing,
        "true",
        "Whether message bodies are kept. Default: yes, except in `bowline gateway --inspector`, because they belong to the users of the gateway.",
    ),
    key(
        "control",
        FLAG,
        Default("false"),
        "true",
        "Whether links of `bowline open` can run tools and answer questions where no terminal can be asked. Every program of this user can make such a link.",
    ),
];

const DISCLOSURE: &[Key] = &[
    key(
        "mode",
        "`auto`, `off` or `on`",
        Default("\"auto\""),
        "\"on\"",
        "Whether to offer a search instead of the list.",
    ),
    key(
        "threshold_tokens",
        COUNT,
        Default("20000"),
        "5000",
        "The estimated size of the list, in tokens, above which `auto` offers the search.",
    ),
];

const INPUTS: &[Key] = &[
    key("description", TEXT, Nothing, "\"Your token\"", "The prompt."),
    key("password", FLAG, Default("false"), "true", "Whether the input is hidden."),
    key("default", TEXT, Nothing, "\"none\"", "The default value."),
    key("choices", TEXTS, Default("[]"), "[\"eu\", \"us\"]", "The allowed values."),
];

const FILE: &[Key] = &[key(
    "include",
    "list of paths",
    Nothing,
    "[]",
    "Configuration files of any supported client to load first; this file overrides them.",
)];

/// All tables of the file, in the order of the reference.
pub const SECTIONS: &[Section] = &[
    section("", "Keys outside of any table.", FILE),
    Section {
        beside: "command = \"a\"\n",
        ..section(
            "[servers.NAME]",
            "A server. The next two sections describe how to reach it. An entry with neither `command` nor `url` overrides settings of \
             the server of that name in another file.",
            SETTINGS,
        )
    },
    Section {
        condition: Some("with `command`"),
        ..section("[servers.NAME]", "A stdio server, which the host starts.", COMMAND)
    },
    Section { condition: Some("with `url`"), ..section("[servers.NAME]", "An HTTP server.", URL) },
    Section {
        beside: "[servers.NAME]\ncommand = \"a\"\n",
        ..section("[[servers.NAME.roots]]", "A root to send to the server, with a name.", ROOTS)
    },
    Section {
        beside: "[servers.NAME]\ncommand = \"a\"\n",
        ..section("[servers.NAME.limits]", "Resource limits of the server process.", LIMITS)
    },
    Section {
        beside: "[servers.NAME]\nurl = \"https://a.example\"\n",
        ..section(
            "[servers.NAME.oauth]",
            "How to log in to the server, for `bowline login`, other commands and the gateway. Most servers need none of these.",
            OAUTH,
        )
    },
    section("[inputs.NAME]", "A value that the user is asked for, used as `${input:NAME}`.", INPUTS),
    section("[gateway]", "How clients connect to the gateway. Ignored in project files.", GATEWAY),
    section(
        "[gateway.auth]",
        "Makes the gateway a resource server: clients must send an access token of an authorization server. Conditions of \
         rules on `principal`, `issuer`, `client`, `scopes` and `claims` match such tokens only.",
        GATEWAY_AUTH,
    ),
    Section {
        beside: "[gateway.auth]\nissuer = \"https://login.example.com\"\n",
        ..section(
            "[gateway.auth.introspection]",
            "How the issuer is asked about tokens. It conflicts with `jwks_file`, `jwks_url` and several issuers.",
            GATEWAY_AUTH_INTROSPECTION,
        )
    },
    Section {
        beside: "[gateway.auth]\nissuer = \"https://login.example.com\"\n",
        ..section(
            "[gateway.auth.connect]",
            "The page on which users connect their accounts at servers with `auth = \"user\"`. An empty table turns it on.",
            GATEWAY_AUTH_CONNECT,
        )
    },
    section(
        "[[rules]]",
        "The policy. The first matching rule decides; a missing condition matches everything. Rules in project files can \
         only deny.",
        RULES,
    ),
    Section {
        beside: "[[rules]]\neffect = \"ask\"\n",
        ..section(
            "[rules.annotations]",
            "The annotations that a tool must have for the rule to match.",
            ANNOTATIONS,
        )
    },
    section("[sampling]", "The models for sampling requests of servers. Ignored in project files.", SAMPLING),
    section(
        "[sampling.providers.NAME]",
        "A model provider. API keys are never stored in this file.",
        PROVIDERS,
    ),
    Section {
        beside: "[sampling.providers.cloud]\nkind = \"openai\"\n",
        ..section("[[sampling.models]]", "A model.", MODELS)
    },
    section("[audit]", "The audit log of decisions and calls. Ignored in project files.", AUDIT),
    section("[store]", "The database that several processes share. Ignored in project files.", STORE),
    section(
        "[sessions]",
        "Sessions of clients before 2026-07-28, for several processes behind one address. Ignored in project files.",
        SESSIONS,
    ),
    section(
        "[tasks]",
        "Slow calls that become tasks of the gateway. Ignored in project files. Takes effect after a restart.",
        TASKS,
    ),
    section(
        "[inspector]",
        "The inspector, a web interface of the host. Ignored in project files. Takes effect after a restart.",
        INSPECTOR,
    ),
    section(
        "[disclosure]",
        "When clients get a tool search instead of a list of all tools. Ignored in project files.",
        DISCLOSURE,
    ),
];
