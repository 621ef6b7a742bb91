//! The facts collected about a server, which the checks evaluate.

use super::authorization::AuthorizationFacts;
use bowline_client::{Direction, Exit, Noise};
use bowline_types::Revision;
use serde_json::Value;
use std::time::Duration;

/// The maximum length of a quoted text or frame.
const SHOWN: usize = 120;

/// Everything that the checks evaluate.
#[derive(Debug)]
pub(super) struct Facts {
    /// Name and version of the server.
    pub(super) info: Option<(String, String)>,
    pub(super) revision: Revision,
    /// Every revision that was tried, with the negotiated revision or the error.
    pub(super) revisions: Vec<(Revision, Result<Revision, String>)>,
    pub(super) capabilities: Value,
    pub(super) instructions: Option<String>,
    /// Time until the first frame, and until the connection was open.
    pub(super) first_frame: Option<Duration>,
    pub(super) opened: Duration,
    /// The round-trip time of a ping.
    pub(super) ping: Option<Duration>,
    pub(super) frames: Vec<Seen>,
    pub(super) noise: Noise,
    pub(super) process: Option<Process>,
    pub(super) lists: Vec<List>,
    pub(super) probes: Vec<Probe>,
    pub(super) calls: Vec<Call>,
    /// One entry per era, for servers over HTTP.
    pub(super) http: Vec<HttpFacts>,
    /// For servers that need a login.
    pub(super) authorization: Option<AuthorizationFacts>,
}

/// A frame that was sent or received.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) direction: Direction,
    pub(super) frame: Value,
    /// Its number in the inspector, if that watches.
    pub(super) number: Option<u64>,
}

/// The behavior of a server process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) stderr_lines: usize,
    /// How the process exited after its standard input was closed, and after how long; `None` if it had to be killed.
    pub(super) ended: Option<(Duration, Exit)>,
}

/// A list that the server returned.
#[derive(Clone, Debug)]
pub(super) struct List {
    pub(super) kind: ListKind,
    pub(super) declared: bool,
    pub(super) items: Vec<Value>,
    /// Why the list could not be read completely.
    pub(super) failed: Option<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl ListKind {
    pub(super) const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// Returns the member of the result that contains the list.
    pub(super) fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    pub(super) fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// Returns the member that identifies an entry.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    pub(super) fn one(self) -> &'static str {
        match self {
            Self::Tools => "tool",
            Self::Prompts => "prompt",
            Self::Resources => "resource",
            Self::Templates => "template",
        }
    }
}

/// The response to a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Result(Value),
    Error {
        code: i64,
        message: String,
    },
    /// No response, or an unreadable one.
    None(String),
}

impl Answer {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Result(_) => "a result".to_owned(),
            Self::Error { code, message } => format!("error {code} ({})", shortened(message)),
            Self::None(reason) => format!("no response ({})", shortened(reason)),
        }
    }
}

/// Shortens a text to one line.
pub(super) fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// A request with a known correct response.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    pub(super) kind: ProbeKind,
    pub(super) answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeKind {
    Ping,
    UnknownMethod,
    CallWithoutName,
    UnknownTool,
    UnknownPrompt,
    UnknownResource,
    BadCursor(ListKind),
    AliveAfterwards,
}

/// A tool that was called.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) tool: String,
    /// What is wrong with the response.
    pub(super) failed: Option<String>,
}

/// The behavior of a server over HTTP.
#[derive(Clone, Debug)]
pub(super) struct HttpFacts {
    /// Whether the server is on this machine or a private network.
    pub(super) local: bool,
    /// The session id, if the server uses sessions.
    pub(super) session: Option<String>,
    pub(super) probes: Vec<HttpProbe>,
}

#[derive(Clone, Debug)]
pub(super) struct HttpProbe {
    pub(super) kind: HttpProbeKind,
    pub(super) status: Result<u16, String>,
    pub(super) content_type: Option<String>,
    /// The `Access-Control-Allow-Origin` header.
    pub(super) allowed_origin: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpProbeKind {
    ForeignOrigin,
    ForeignHost,
    PlainText,
    WrongAccept,
    WrongVersion,
    NotJson,
    UnknownSession,
    Get,
    DeleteUnknownSession,
}

impl Facts {
    pub(super) fn list(&self, kind: ListKind) -> impl Iterator<Item = &Value> {
        self.lists.iter().filter(move |list| list.kind == kind).flat_map(|list| &list.items)
    }

    /// Returns the newest supported revision of each era.
    pub(super) fn newest_per_era(&self) -> Vec<Revision> {
        let answered = self.revisions.iter().filter(|(revision, agreed)| agreed.as_ref() == Ok(revision));
        let answered: Vec<Revision> = answered.map(|(revision, _)| *revision).collect();
        let newest = |of: fn(&&Revision) -> bool| answered.iter().rfind(of).copied();
        let newest = [newest(|revision| revision.is_modern()), newest(|revision| revision.is_legacy())];
        newest.into_iter().flatten().collect()
    }

    pub(super) fn tools(&self) -> impl Iterator<Item = &Value> {
        self.list(ListKind::Tools)
    }
}

/// Returns the name of a list entry for a finding.
pub(super) fn name_of(entry: &Value) -> String {
    let name = ["name", "uri", "uriTemplate"].iter().find_map(|key| entry.get(*key)?.as_str());
    bowline_text::visible(name.unwrap_or("(unnamed)"))
}

#[cfg(test)]
impl Facts {
    /// Returns facts without findings.
    pub(super) fn without_findings() -> Self {
        Self {
            info: Some(("demo".into(), "1".into())),
            revision: Revision::V2025_11_25,
            revisions: Vec::new(),
            capabilities: serde_json::json!({}),
            instructions: None,
            first_frame: Some(Duration::from_millis(50)),
            opened: Duration::from_millis(60),
            ping: Some(Duration::from_millis(1)),
            frames: Vec::new(),
            noise: Noise::default(),
            process: None,
            lists: Vec::new(),
            probes: Vec::new(),
            calls: Vec::new(),
            http: Vec::new(),
            authorization: None,
        }
    }

    /// Returns facts with these tools.
    pub(super) fn with_tools(tools: Value) -> Self {
        let Value::Array(items) = tools else { panic!("expected a list") };
        let list = List { kind: ListKind::Tools, declared: true, items, failed: None };
        Self { lists: vec![list], ..Self::without_findings() }
    }
}
