//! An entry of the audit log.

use bowline_types::RawJson;
use std::time::{Duration, SystemTime};

use super::redact::Redactor;
use super::settings::AuditArguments;
use crate::tree::{Layout, Tree};
use crate::{Caller, DecidedBy, Digest};
use bowline_text::rfc3339;

/// The maximum size of logged arguments.
const MAX_ARGUMENTS: usize = 16 << 10;
/// The maximum number of characters of other texts; the rest is cut off.
const MAX_TEXT: usize = 2 << 10;

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Something was allowed or refused.
    Decision,
    /// An allowed call has ended.
    Call,
    /// A tool definition was pinned, or differs from its pin.
    Pin,
    /// A request was refused before it reached a server: without a valid access token, or without the required scopes.
    Refusal,
    /// The gateway logged in to a server, asked for more scopes, or refreshed its tokens.
    Login,
    /// A person acted in the page of the inspector.
    Page,
    /// A request about a task: a call that was allowed before.
    Task,
}

impl Event {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Call => "call",
            Self::Pin => "pin",
            Self::Refusal => "refusal",
            Self::Login => "login",
            Self::Page => "page",
            Self::Task => "task",
        }
    }
}

/// An entry of the audit log. Members that are `None` are omitted.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The time.
    pub time: SystemTime,
    /// The kind of the entry.
    pub event: Event,
    /// Connects the decision about a call with its end.
    pub id: Option<String>,
    /// The name that the client reports.
    pub client: Option<String>,
    /// The authenticated user: the subject of the access token, or another name of the user.
    pub principal: Option<String>,
    /// The issuer of the access token. For a login: of the token for the server.
    pub issuer: Option<String>,
    /// The client id in the access token.
    pub client_id: Option<String>,
    /// The scopes that the access token grants, separated by spaces.
    pub scopes: Option<String>,
    /// A digest of the access token.
    pub token_digest: Option<String>,
    /// The number of the browser's key. For an action in the page of the inspector.
    pub key: Option<u64>,
    /// The server; empty if no server is involved.
    pub server: String,
    /// The method; empty if it is not known. For a login: `login`, `step-up` or `refresh`. For an action in the page: the action.
    pub method: String,
    /// The tool, prompt, URI or URL. For a login: the account, if each user has one.
    pub name: Option<String>,
    /// A digest of the task that the request is about, or that the call became.
    pub task: Option<String>,
    /// The decision: `allow`, `deny`, `cancel` or `abandoned`.
    pub decision: Option<&'static str>,
    /// Who decided.
    pub by: Option<DecidedBy>,
    /// The reason.
    pub reason: Option<String>,
    /// The arguments. The settings determine how they are logged.
    pub arguments: Option<RawJson>,
    /// How a call ended: `ok`, `tool error`, or the error.
    pub outcome: Option<String>,
    /// The duration of the call.
    pub duration: Option<Duration>,
    /// The size of the result.
    pub bytes: Option<u64>,
    /// How many entries of the same kind were left out since the last one.
    pub suppressed: Option<u64>,
}

impl Entry {
    /// Creates an entry with the required members.
    pub fn new(time: SystemTime, event: Event, server: impl Into<String>, method: impl Into<String>) -> Self {
        Self {
            time,
            event,
            id: None,
            client: None,
            principal: None,
            issuer: None,
            client_id: None,
            scopes: None,
            token_digest: None,
            key: None,
            server: server.into(),
            method: method.into(),
            name: None,
            task: None,
            decision: None,
            by: None,
            reason: None,
            arguments: None,
            outcome: None,
            duration: None,
            bytes: None,
            suppressed: None,
        }
    }

    /// Adds what is known about the caller.
    #[must_use]
    pub fn by(mut self, caller: &Caller<'_>) -> Self {
        self.client = caller.client.map(ToOwned::to_owned);
        self.principal = caller.principal.map(ToOwned::to_owned);
        match caller.token.verified() {
            Some(token) => self.with_token(token),
            None => self,
        }
    }

    /// Adds what an access token says.
    #[must_use]
    pub fn with_token(mut self, token: &bowline_proto::caller::Caller) -> Self {
        self.principal = Some(token.subject().to_owned());
        self.issuer = Some(token.issuer().to_owned());
        self.client_id = token.client_id().map(ToOwned::to_owned);
        self.scopes = Some(token.scopes().to_string());
        self.token_digest = token.token_digest().map(ToOwned::to_owned);
        self
    }

    /// Returns the approximate memory use in bytes.
    pub(super) fn weight(&self) -> usize {
        let texts = [
            &self.id,
            &self.client,
            &self.principal,
            &self.issuer,
            &self.client_id,
            &self.scopes,
            &self.token_digest,
            &self.name,
            &self.task,
            &self.reason,
            &self.outcome,
        ];
        let texts = texts.into_iter().flatten().chain([&self.server, &self.method]);
        let arguments = self.arguments.as_ref().map_or(0, |arguments| arguments.as_bytes().len());
        size_of::<Self>() + arguments + texts.map(String::len).sum::<usize>()
    }

    /// Formats the entry as one line, including the line break.
    pub(super) fn to_line(&self, redactor: &Redactor, arguments: AuditArguments) -> String {
        let text = |text: &str| {
            let mut text = redactor.text(text);
            if let Some((end, _)) = text.char_indices().nth(MAX_TEXT) {
                text.truncate(end);
                text.push_str("...");
            }
            Tree::String(text)
        };
        let optional = |value: Option<&String>| value.map(|value| text(value));
        let number = |value: u64| Tree::Number(value.to_string());
        let (digest, arguments) = match &self.arguments {
            None => (None, None),
            Some(_) if arguments == AuditArguments::Omitted => (None, None),
            Some(value) => {
                let tree = Tree::of(value);
                let fits = value.as_bytes().len() <= MAX_ARGUMENTS;
                if arguments == AuditArguments::Redacted && fits {
                    (None, Some(redactor.tree(tree)))
                } else {
                    (Some(Tree::String(Digest::of_tree(&tree).to_string())), None)
                }
            }
        };
        let plain = |value: &str| Tree::String(value.to_owned());
        let members = [
            ("time", Some(plain(&rfc3339(self.time)))),
            ("event", Some(plain(self.event.as_str()))),
            ("id", optional(self.id.as_ref())),
            ("client", optional(self.client.as_ref())),
            ("principal", optional(self.principal.as_ref())),
            ("issuer", optional(self.issuer.as_ref())),
            ("clientId", optional(self.client_id.as_ref())),
            ("scopes", optional(self.scopes.as_ref())),
            ("tokenDigest", optional(self.token_digest.as_ref())),
            ("key", self.key.map(number)),
            ("server", optional(Some(&self.server).filter(|server| !server.is_empty()))),
            ("method", optional(Some(&self.method).filter(|method| !method.is_empty()))),
            ("name", self.name.as_ref().map(|name| text(&redactor.uri(name)))),
            ("task", optional(self.task.as_ref())),
            ("decision", self.decision.map(plain)),
            ("by", self.by.map(|by| plain(by.as_str()))),
            ("reason", optional(self.reason.as_ref())),
            ("argumentsDigest", digest),
            ("arguments", arguments),
            ("outcome", optional(self.outcome.as_ref())),
            (
                "durationMs",
                self.duration.map(|duration| Tree::Number(format!("{:.3}", duration.as_secs_f64() * 1000.0))),
            ),
            ("bytes", self.bytes.map(number)),
            ("suppressed", self.suppressed.map(number)),
        ];
        let members =
            members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        let mut line = Tree::Object(members).to_text(Layout::Line);
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    fn entry() -> Entry {
        Entry {
            id: Some("7-1".into()),
            client: Some("cli\u{202e}ent\n".into()),
            name: Some("read".into()),
            decision: Some("allow"),
            by: Some(DecidedBy::Rule),
            reason: Some("rule: allow hunter22".into()),
            arguments: Some(RawJson::parse(r#"{"path":"/a","token":"t","x":"hunter22"}"#).unwrap()),
            outcome: Some("ok".into()),
            duration: Some(Duration::from_micros(1500)),
            bytes: Some(12),
            ..Entry::new(UNIX_EPOCH, Event::Call, "files", "tools/call")
        }
    }

    #[test]
    fn a_line_has_all_members_and_no_secret() {
        let redactor = Redactor::new(vec!["hunter22".into()]);
        let line = entry().to_line(&redactor, AuditArguments::Redacted);
        assert_eq!(
            line,
            concat!(
                r#"{"time":"1970-01-01T00:00:00.000Z","event":"call","id":"7-1","client":"cli\u202eent\n","#,
                r#""server":"files","method":"tools/call","name":"read","decision":"allow","by":"rule","#,
                r#""reason":"rule: allow ***","arguments":{"path":"/a","token":"***","x":"***"},"outcome":"ok","#,
                r#""durationMs":1.500,"bytes":12}"#,
                "\n"
            )
        );
        assert_eq!(line.lines().count(), 1);
        let omitted = entry().to_line(&redactor, AuditArguments::Omitted);
        assert!(!omitted.contains("argu"), "{omitted}");
    }

    #[test]
    fn a_line_has_what_the_token_says_and_no_token() {
        let token = bowline_proto::caller::Caller::new("https://login.example.com", "ada")
            .with_client_id("notes-app")
            .with_scopes(bowline_proto::scope::Scopes::parse("notes:read notes:write"))
            .with_token_digest("sha256:00ff");
        let caller = Caller {
            client: Some("editor"),
            principal: Some("[\"https://login.example.com\",\"ada\",\"notes-app\"]"),
            token: crate::Token::Verified(&token),
        };
        let entry = Entry::new(UNIX_EPOCH, Event::Refusal, "", "").by(&caller);
        let line = Entry { suppressed: Some(3), ..entry }
            .to_line(&Redactor::new(Vec::new()), AuditArguments::Redacted);
        assert_eq!(
            line,
            concat!(
                r#"{"time":"1970-01-01T00:00:00.000Z","event":"refusal","client":"editor","principal":"ada","#,
                r#""issuer":"https://login.example.com","clientId":"notes-app","scopes":"notes:read notes:write","#,
                r#""tokenDigest":"sha256:00ff","suppressed":3}"#,
                "\n"
            )
        );
    }

    #[test]
    fn arguments_are_logged_as_digests() {
        let redactor = Redactor::new(Vec::new());
        let of = |arguments: &str, how| {
            let arguments = Some(RawJson::parse(arguments.to_owned()).unwrap());
            let line = Entry { arguments, ..entry() }.to_line(&redactor, how);
            serde_json::from_str::<serde_json::Value>(&line).unwrap()
        };
        let digest = of("{\"a\":1,\"b\":2}", AuditArguments::Digest);
        assert_eq!(
            digest["argumentsDigest"],
            of("{ \"b\":2, \"a\":1 }", AuditArguments::Digest)["argumentsDigest"]
        );
        assert!(digest.get("arguments").is_none());
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_ARGUMENTS));
        let long = of(&long, AuditArguments::Redacted);
        assert!(long.get("arguments").is_none() && long["argumentsDigest"].is_string());
        let name = Some("n".repeat(MAX_TEXT + 1));
        let line = Entry { name, ..entry() }.to_line(&redactor, AuditArguments::Omitted);
        assert!(line.len() < MAX_TEXT + 400 && line.contains("n...\""));
    }
}
