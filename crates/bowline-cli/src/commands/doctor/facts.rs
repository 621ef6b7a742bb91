//! What was learned of a server, before anyone judges it.

use bowline_client::{Direction, Exit, Noise};
use bowline_types::Revision;
use serde_json::Value;
use std::time::Duration;

/// How much of a text or frame is shown.
const SHOWN: usize = 120;

/// Everything that the checks look at.
#[derive(Debug)]
pub(super) struct Facts {
    /// Name and version, as the server tells them.
    pub(super) info: Option<(String, String)>,
    pub(super) revision: Revision,
    /// Every revision that was tried, and the one that was agreed on instead of the reason why none was.
    pub(super) revisions: Vec<(Revision, Result<Revision, String>)>,
    pub(super) capabilities: Value,
    pub(super) instructions: Option<String>,
    /// From the start until the first frame, and until the opening was done.
    pub(super) first_frame: Option<Duration>,
    pub(super) opened: Duration,
    /// How long a ping takes once everything runs.
    pub(super) ping: Option<Duration>,
    pub(super) frames: Vec<Seen>,
    pub(super) noise: Noise,
    pub(super) process: Option<Process>,
    pub(super) lists: Vec<List>,
    pub(super) probes: Vec<Probe>,
    pub(super) calls: Vec<Call>,
    /// One for each era that it speaks over HTTP.
    pub(super) http: Vec<HttpFacts>,
}

/// A frame that passed.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) direction: Direction,
    pub(super) frame: Value,
}

/// How a program behaves.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) stderr_lines: usize,
    /// How it ended by itself when its standard input was closed, and after how long; `None` when it had to be killed.
    pub(super) ended: Option<(Duration, Exit)>,
}

/// A list of the server.
#[derive(Clone, Debug)]
pub(super) struct List {
    pub(super) kind: ListKind,
    pub(super) declared: bool,
    pub(super) items: Vec<Value>,
    /// Why it could not be read to its end.
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

    /// The member of the result that holds the list.
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

    /// What its entries are told apart by.
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

/// What came back for a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Result(Value),
    Error {
        code: i64,
        message: String,
    },
    /// No answer, or none that could be read.
    None(String),
}

impl Answer {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Result(_) => "a result".to_owned(),
            Self::Error { code, message } => format!("error {code} ({})", shortened(message)),
            Self::None(reason) => format!("no answer ({})", shortened(reason)),
        }
    }
}

/// The beginning of a text, on one line.
pub(super) fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// A question that has one right answer.
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
    /// What is wrong with the answer.
    pub(super) failed: Option<String>,
}

/// How a server speaks HTTP.
#[derive(Clone, Debug)]
pub(super) struct HttpFacts {
    /// Whether only programs of this computer reach it.
    pub(super) local: bool,
    /// Whether the server names its sessions.
    pub(super) session: Option<String>,
    pub(super) probes: Vec<HttpProbe>,
}

#[derive(Clone, Debug)]
pub(super) struct HttpProbe {
    pub(super) kind: HttpProbeKind,
    pub(super) status: Result<u16, String>,
    pub(super) content_type: Option<String>,
    /// Which pages may read the answer.
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

    /// The newest revision of each era that it answers.
    pub(super) fn spoken(&self) -> Vec<Revision> {
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

/// How an entry of a list is called in a finding.
pub(super) fn name_of(entry: &Value) -> String {
    let name = ["name", "uri", "uriTemplate"].iter().find_map(|key| entry.get(*key)?.as_str());
    bowline_text::visible(name.unwrap_or("(without a name)"))
}

#[cfg(test)]
impl Facts {
    /// A server about which there is nothing to say.
    pub(super) fn quiet() -> Self {
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
        }
    }

    /// The same with these tools.
    pub(super) fn with_tools(tools: Value) -> Self {
        let Value::Array(items) = tools else { panic!("expected a list") };
        let list = List { kind: ListKind::Tools, declared: true, items, failed: None };
        Self { lists: vec![list], ..Self::quiet() }
    }
}
