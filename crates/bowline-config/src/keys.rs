//! Every key of `bowline.toml`, with what it means: the table behind the reference.

/// A table of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section {
    /// How the table begins, with `NAME` where the user chooses; empty for what stands before all tables.
    pub header: &'static str,
    /// When the keys apply, where that is not always.
    pub condition: Option<&'static str>,
    /// What the table is for.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// What has to be in the file for an entry to make sense.
    pub(super) beside: &'static str,
}

/// A key of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What is written there.
    pub kind: &'static str,
    /// What holds without it.
    pub absent: Absent,
    /// A value that can be written there, in TOML.
    pub example: &'static str,
    /// What it means.
    pub about: &'static str,
}

/// What holds where a key is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// It must not be absent.
    Required,
    /// The same as if this was written, in TOML.
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

const TEXT: &str = "text";
const FLAG: &str = "`true` or `false`";
const COUNT: &str = "number";
const TIME: &str = "time, such as `30s` or `5m`";
const SIZE: &str = "size, such as `512MiB`";
const TEXTS: &str = "list of texts";
const PATTERNS: &str = "list of patterns";
const PATTERN: &str = "pattern";
const TABLE: &str = "table of texts";
const SHARE: &str = "number from 0 to 1";
const PATH: &str = "path";

const SETTINGS: &[Key] = &[
    key("enabled", FLAG, Default("true"), "false", "Whether the server is used at all."),
    key("description", TEXT, Nothing, "\"Tickets of the team\"", "What the server is for."),
    key(
        "start",
        "`lazy` or `eager`",
        Default("\"lazy\""),
        "\"eager\"",
        "Whether it starts when something needs it, or with the host.",
    ),
    key(
        "share",
        "`shared` or `per-client`",
        Default("\"shared\""),
        "\"per-client\"",
        "Whether all clients use one instance of it.",
    ),
    key("startup_timeout", TIME, Default("\"30s\""), "\"1m\"", "How long the start may take."),
    key(
        "request_timeout",
        TIME,
        Default("\"60s\""),
        "\"5m\"",
        "How long a request may be silent; progress counts as a sign of life.",
    ),
    key(
        "idle_stop",
        "time, or `never`",
        Default("\"10m\""),
        "\"never\"",
        "How long it may be idle before it is stopped.",
    ),
    key(
        "trusted",
        FLAG,
        Default("false"),
        "true",
        "Whether what it says about its own tools is believed. Only in your own files.",
    ),
    key(
        "allow",
        PATTERNS,
        Default("[]"),
        "[\"read_*\"]",
        "The tools that are offered; all if there are none.",
    ),
    key("deny", PATTERNS, Default("[]"), "[\"delete_*\"]", "The tools that are never offered."),
    key(
        "auto_approve",
        PATTERNS,
        Default("[]"),
        "[\"read_*\"]",
        "The tools that run without a question. Only in your own files.",
    ),
    key("rename", TABLE, Default("{}"), "{ search = \"find\" }", "Other names for tools."),
    key("describe", TABLE, Default("{}"), "{ search = \"Find a ticket\" }", "Other descriptions for tools."),
    key(
        "always_load",
        FLAG,
        Default("false"),
        "true",
        "Whether its tools are listed even where others have to be searched for.",
    ),
    key(
        "revision",
        "revision",
        Nothing,
        "\"2025-06-18\"",
        "The revision to speak, whatever the server offers.",
    ),
    key(
        "roots",
        "list of paths and `file:` URIs, or of tables",
        Default("[]"),
        "[\"/srv/project\"]",
        "The folders the server is told of.",
    ),
    key(
        "limits",
        "table",
        Nothing,
        "{ files = 256 }",
        "What the process may use; see `[servers.NAME.limits]`.",
    ),
    key(
        "inherit_env",
        "`default`, `all`, `none`, or list of names in which `*` stands for anything",
        Default("\"default\""),
        "[\"AWS_*\", \"KUBECONFIG\"]",
        "Which variables of your environment the program receives; a list adds to the default. Only in your own files.",
    ),
    key(
        "max_list_bytes",
        SIZE,
        Default("\"8MiB\""),
        "\"16MiB\"",
        "How large a list of the server may be, over all its pages. A longer one is refused.",
    ),
    key(
        "max_list_entries",
        COUNT,
        Default("10000"),
        "50000",
        "How many entries a list of the server may have. A longer one is refused.",
    ),
    key(
        "ping_interval",
        "time, or `never`",
        Default("\"60s\""),
        "\"never\"",
        "How often the server is pinged while it works on nothing, in revisions before 2026-07-28.",
    ),
];

const COMMAND: &[Key] = &[
    key("command", TEXT, Required, "\"npx\"", "The program to start. There is never a shell in between."),
    key("args", TEXTS, Default("[]"), "[\"-y\", \"some-server\"]", "Its arguments."),
    key("env", TABLE, Default("{}"), "{ REGION = \"eu\" }", "Variables for its environment."),
    key(
        "unset",
        TEXTS,
        Default("[]"),
        "[\"NODE_OPTIONS\"]",
        "Variables that must not be in its environment.",
    ),
    key(
        "env_file",
        PATH,
        Nothing,
        "\".env\"",
        "A file with further variables, which those of `env` override.",
    ),
    key("cwd", PATH, Nothing, "\"/srv\"", "The folder to start it in."),
];

const URL: &[Key] = &[
    key("url", TEXT, Required, "\"https://tickets.example.com/mcp\"", "Where the server is."),
    key(
        "transport",
        "`auto`, `http` or `sse`",
        Default("\"auto\""),
        "\"sse\"",
        "Which transport to try first; `sse` is that of 2024-11-05.",
    ),
    key("headers", TABLE, Default("{}"), "{ X-Team = \"blue\" }", "Headers for every request."),
    key(
        "headers_helper",
        TEXTS,
        Nothing,
        "[\"print-headers\", \"--json\"]",
        "A command that prints further headers as a JSON object at every connect.",
    ),
    key(
        "oauth",
        "table",
        Nothing,
        "{ client_id = \"bowline\" }",
        "Has no effect yet: this version cannot sign in at a server; see `[servers.NAME.oauth]`.",
    ),
];

const ROOTS: &[Key] = &[
    key("uri", "path or `file:` URI", Required, "\"file:///srv/project\"", "The folder."),
    key("name", TEXT, Nothing, "\"project\"", "A name for people."),
];

const LIMITS: &[Key] = &[
    key("memory", SIZE, Nothing, "\"512MiB\"", "Memory."),
    key("cpu_time", TIME, Nothing, "\"10m\"", "Time on the processor."),
    key("files", COUNT, Nothing, "256", "Open files."),
];

const OAUTH: &[Key] = &[
    key("client_id", TEXT, Nothing, "\"bowline\"", "The client id, if one is registered."),
    key("client_secret", TEXT, Nothing, "\"${TICKETS_SECRET:-none}\"", "The client's secret."),
    key("scopes", TEXTS, Default("[]"), "[\"read\"]", "The scopes to ask for."),
    key("callback_port", COUNT, Nothing, "9000", "The port to listen on for the redirect."),
    key(
        "metadata_url",
        TEXT,
        Nothing,
        "\"https://login.example.com/.well-known/oauth-authorization-server\"",
        "Where the metadata of the authorization server is.",
    ),
];

const GATEWAY: &[Key] = &[
    key(
        "listen",
        "address and port",
        Default("\"127.0.0.1:7337\""),
        "\"127.0.0.1:9000\"",
        "Where clients connect.",
    ),
    key("path", TEXT, Default("\"/mcp\""), "\"/tools\"", "The path of the endpoint."),
    key("name", TEXT, Default("\"bowline\""), "\"team\"", "The name the gateway gives itself."),
    key(
        "instructions",
        TEXT,
        Nothing,
        "\"Ask before you delete.\"",
        "What models are told, before what the servers say.",
    ),
    key(
        "allowed_origins",
        TEXTS,
        Default("[]"),
        "[\"https://app.example.com\"]",
        "Origins whose web pages may call the gateway and read its replies (CORS).",
    ),
    key(
        "allowed_hosts",
        TEXTS,
        Default("[]"),
        "[\"mcp.example.com\"]",
        "Values of `Host` that are accepted beside `localhost` and the address in `listen`. `*` accepts all, and needs a token.",
    ),
    key(
        "token_env",
        TEXT,
        Nothing,
        "\"BOWLINE_TOKEN\"",
        "The variable that holds the token clients have to send.",
    ),
    key(
        "consent",
        "`client`, `ask` or `deny`",
        Nothing,
        "\"ask\"",
        "Who consents to calls that no rule decides: the calling client, which asks its own user; the user, who is asked at the terminal or through the client (elicitation); or nobody, so that they are refused. Without it: `ask` at a terminal; without a terminal `client` if only one user can connect (standard streams, or a loopback address with a token), else `ask`.",
    ),
    key(
        "max_questions",
        COUNT,
        Default("10"),
        "20",
        "How many questions of one server may be unanswered, from 1 to 1000: those that wait, and those of the last minute that nobody answered. Further ones are refused.",
    ),
    key(
        "max_name",
        COUNT,
        Default("60"),
        "128",
        "The longest name of a tool that clients are given, from 16 to 128.",
    ),
    key(
        "max_sessions",
        COUNT,
        Default("1000"),
        "5000",
        "How many sessions one caller may have; all clients with the same token, or without one, are one caller. Beyond that the session idle longest is ended.",
    ),
    key("session_idle", TIME, Default("\"12h\""), "\"1h\"", "How long a session may be idle."),
    key(
        "max_connections",
        COUNT,
        Default("10000"),
        "1000",
        "How many connections may be open, at most three quarters of the file descriptors of the process. Beyond that the connection idle longest is closed.",
    ),
    key(
        "keep_alive",
        TIME,
        Default("\"3m\""),
        "\"10m\"",
        "How long a connection may be idle. It should be longer than in the load balancer before the gateway.",
    ),
    key(
        "max_retained_bytes",
        SIZE,
        Default("\"256MiB\""),
        "\"64MiB\"",
        "How many bytes of events all sessions together keep for clients that come back.",
    ),
    key(
        "shutdown_delay",
        TIME,
        Default("\"3s\""),
        "\"10s\"",
        "How long requests are still served after SIGTERM, while `/readyz` answers 503.",
    ),
    key(
        "max_client_servers",
        COUNT,
        Default("256"),
        "1000",
        "How many servers with `share = \"per-client\"` run at a time, for all callers together.",
    ),
    key(
        "max_client_servers_per_user",
        COUNT,
        Default("64"),
        "16",
        "How many of them run at a time for one authenticated user.",
    ),
];

const RULES: &[Key] = &[
    key("effect", "`allow`, `ask` or `deny`", Required, "\"ask\"", "What happens to what the rule matches."),
    key(
        "action",
        "`call`, `read`, `prompt`, `sample`, `form`, `visit` or `roots`",
        Nothing,
        "\"call\"",
        "What is about to happen. Without it a rule that allows or asks is about tool calls, and one that denies is about everything.",
    ),
    key("server", PATTERN, Nothing, "\"tickets\"", "The name of the server."),
    key("tool", PATTERN, Nothing, "\"delete_*\"", "The name of the tool or prompt, or the URI."),
    key("caller", PATTERN, Nothing, "\"claude-code*\"", "The client or user that calls."),
    key(
        "arguments",
        "table of patterns",
        Default("{}"),
        "{ path = \"/etc/*\" }",
        "What the arguments look like, by name or JSON pointer; `*` is any of them.",
    ),
    key(
        "annotations",
        "table",
        Nothing,
        "{ destructive = true }",
        "What the server says about the tool; see `[rules.annotations]`.",
    ),
    key("reason", TEXT, Nothing, "\"It cannot be undone.\"", "Why, for the one who is refused or asked."),
];

const ANNOTATIONS: &[Key] = &[
    key("read_only", FLAG, Nothing, "true", "It changes nothing."),
    key("destructive", FLAG, Nothing, "true", "What it changes may be lost."),
    key("idempotent", FLAG, Nothing, "true", "Twice is the same as once."),
    key("open_world", FLAG, Nothing, "true", "It reaches beyond a closed set of things."),
];

const SAMPLING: &[Key] = &[
    key("max_tokens_per_call", COUNT, Nothing, "4096", "The most tokens one call may ask for."),
    key(
        "max_tokens_per_server",
        COUNT,
        Nothing,
        "100000",
        "The most tokens one server may use while the host runs.",
    ),
    key("max_tokens_per_hour", COUNT, Nothing, "100000", "The most tokens one server may use in an hour."),
    key("timeout", TIME, Nothing, "\"2m\"", "How long a provider may take."),
    key(
        "providers",
        "tables",
        Nothing,
        "{ local = { kind = \"openai\" } }",
        "Whom to ask; see `[sampling.providers.NAME]`.",
    ),
    key("models", "list of tables", Nothing, "[]", "What to choose from; see `[[sampling.models]]`."),
];

const PROVIDERS: &[Key] = &[
    key(
        "kind",
        "`openai` or `anthropic`",
        Required,
        "\"openai\"",
        "The interface it speaks. Ollama, vLLM and many others speak the first.",
    ),
    key(
        "base_url",
        TEXT,
        Nothing,
        "\"http://127.0.0.1:11434/v1\"",
        "Where it is, if not at the usual place.",
    ),
    key("key_env", TEXT, Nothing, "\"OPENAI_API_KEY\"", "The variable that holds its key."),
    key("key_file", PATH, Nothing, "\"~/.config/bowline/key\"", "The file that holds its key."),
];

const MODELS: &[Key] = &[
    key("name", TEXT, Required, "\"model-name\"", "Its name at the provider."),
    key("provider", TEXT, Required, "\"cloud\"", "The name of its provider."),
    key("aliases", TEXTS, Default("[]"), "[\"small\"]", "Further names that hints of servers may match."),
    key("cost", SHARE, Default("0.5"), "1", "How cheap it is: 1 is the cheapest."),
    key("speed", SHARE, Default("0.5"), "1", "How fast it is: 1 is the fastest."),
    key("intelligence", SHARE, Default("0.5"), "1", "How able it is: 1 is the most able."),
];

const AUDIT: &[Key] = &[
    key("file", PATH, Nothing, "\"~/bowline-audit.jsonl\"", "The file; nothing is written without one."),
    key(
        "max_bytes",
        SIZE,
        Default("\"16MiB\""),
        "\"64MiB\"",
        "How long the file may grow before a new one is begun.",
    ),
    key("keep", COUNT, Default("5"), "10", "How many old files are kept."),
    key(
        "required",
        FLAG,
        Default("false"),
        "true",
        "Whether calls are refused that cannot be written down, because the log cannot be written or does not keep up.",
    ),
];

const DISCLOSURE: &[Key] = &[
    key(
        "mode",
        "`auto`, `off` or `on`",
        Default("\"auto\""),
        "\"on\"",
        "Whether tools are searched for instead of listed.",
    ),
    key(
        "threshold_tokens",
        COUNT,
        Default("20000"),
        "5000",
        "From how many estimated tokens on, if automatic.",
    ),
];

const INPUTS: &[Key] = &[
    key("description", TEXT, Nothing, "\"Your token\"", "What to enter."),
    key("password", FLAG, Default("false"), "true", "Whether it is hidden while it is typed."),
    key("default", TEXT, Nothing, "\"none\"", "What it is if nothing is entered."),
    key("choices", TEXTS, Default("[]"), "[\"eu\", \"us\"]", "What may be entered."),
];

const FILE: &[Key] = &[key(
    "include",
    "list of paths",
    Nothing,
    "[]",
    "Files of any dialect to read before this one, which can adjust what they say.",
)];

/// Every table of the file, in the order of the reference.
pub const SECTIONS: &[Section] = &[
    section("", "What stands before all tables.", FILE),
    Section {
        beside: "command = \"a\"\n",
        ..section(
            "[servers.NAME]",
            "A server: how it is reached, which is said below, and how it is treated. An entry with neither `command` nor \
             `url` adjusts the server of that name in another file.",
            SETTINGS,
        )
    },
    Section {
        condition: Some("with `command`"),
        ..section(
            "[servers.NAME]",
            "A server that the host starts, and talks to over standard input and output.",
            COMMAND,
        )
    },
    Section { condition: Some("with `url`"), ..section("[servers.NAME]", "A server on the network.", URL) },
    Section {
        beside: "[servers.NAME]\ncommand = \"a\"\n",
        ..section("[[servers.NAME.roots]]", "A folder the server is told of, with a name.", ROOTS)
    },
    Section {
        beside: "[servers.NAME]\ncommand = \"a\"\n",
        ..section("[servers.NAME.limits]", "What the process of a server may use.", LIMITS)
    },
    Section {
        beside: "[servers.NAME]\nurl = \"https://a.example\"\n",
        ..section(
            "[servers.NAME.oauth]",
            "What is known beforehand for signing in at a server. It is read and checked, but has no effect yet.",
            OAUTH,
        )
    },
    section(
        "[inputs.NAME]",
        "A value to ask the user for, which other values name as `${input:NAME}`.",
        INPUTS,
    ),
    section("[gateway]", "How clients reach the host. Only in your own files.", GATEWAY),
    section(
        "[[rules]]",
        "What may happen. The first rule that matches decides; a condition that is absent matches everything. A file of a \
         project may only deny.",
        RULES,
    ),
    Section {
        beside: "[[rules]]\neffect = \"ask\"\n",
        ..section(
            "[rules.annotations]",
            "What a server has to say about a tool for the rule to match.",
            ANNOTATIONS,
        )
    },
    section("[sampling]", "Which models answer servers that ask for one. Only in your own files.", SAMPLING),
    section(
        "[sampling.providers.NAME]",
        "Somebody who runs models. A key is never in the file itself.",
        PROVIDERS,
    ),
    Section {
        beside: "[sampling.providers.cloud]\nkind = \"openai\"\n",
        ..section("[[sampling.models]]", "A model to choose.", MODELS)
    },
    section("[audit]", "Where decisions and calls are written down. Only in your own files.", AUDIT),
    section(
        "[disclosure]",
        "When tools are searched for instead of listed. Only in your own files.",
        DISCLOSURE,
    ),
];
