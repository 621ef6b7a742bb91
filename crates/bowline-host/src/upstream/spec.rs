//! The settings of one server: how to reach it, and how to treat it.

use super::credentials::{UserLogins, UserTargets};
use bowline_client::{Command, Connect, ListLimits};
use bowline_config::{Share, Start};
use bowline_http::HttpTarget;
use bowline_policy::{Pattern, Readings, ambiguity};
use bowline_server::ServerHandle;
use bowline_types::{Revision, Root};
use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

/// A server behind the host: a command, a URL or a server in this process, with its settings.
///
/// ```
/// use bowline_client::command;
/// use bowline_host::Upstream;
///
/// let files = Upstream::from(command("bowline", ["serve", "files", "/srv"])).trusted().deny("write_*");
/// ```
#[derive(Clone)]
#[must_use = "it does nothing until it is used"]
pub struct Upstream {
    pub(crate) target: Arc<dyn Connect>,
    /// The program, if the target is one.
    pub(crate) command: Option<Command>,
    pub(crate) start: Start,
    pub(crate) share: Share,
    pub(crate) startup_timeout: Duration,
    pub(crate) timeout: Duration,
    pub(crate) idle_stop: Option<Duration>,
    pub(crate) task_after: Option<Duration>,
    pub(crate) trusted: bool,
    pub(crate) revision: Option<Revision>,
    pub(crate) allow: Vec<Pattern>,
    pub(crate) deny: Vec<Pattern>,
    pub(crate) rename: BTreeMap<String, String>,
    pub(crate) describe: BTreeMap<String, String>,
    pub(crate) roots: Vec<Root>,
    pub(crate) always_listed: bool,
    pub(crate) identity: Option<Arc<str>>,
    pub(crate) list_limits: ListLimits,
    pub(crate) ping_interval: Option<Duration>,
    /// Chooses the target by the account of the user; then `target` is not used.
    pub(crate) user_targets: Option<UserTargets>,
    /// How to log in for an account of a user.
    pub(crate) user_logins: Option<UserLogins>,
    /// What to do if a login is missing.
    pub(crate) login_advice: Option<Arc<str>>,
}

impl Upstream {
    /// Creates an upstream for a connection target.
    pub fn to(target: impl Connect) -> Self {
        Self {
            target: Arc::new(target),
            command: None,
            start: Start::default(),
            share: Share::default(),
            startup_timeout: Duration::from_secs(30),
            timeout: Duration::from_secs(60),
            idle_stop: Some(Duration::from_secs(600)),
            task_after: Some(Duration::from_secs(20)),
            trusted: false,
            revision: None,
            allow: Vec::new(),
            deny: Vec::new(),
            rename: BTreeMap::new(),
            describe: BTreeMap::new(),
            roots: Vec::new(),
            always_listed: false,
            identity: None,
            list_limits: ListLimits::default(),
            ping_interval: Some(Duration::from_secs(60)),
            user_targets: None,
            user_logins: None,
            login_advice: None,
        }
    }

    /// Describes an error of the server, with what to do if a login is missing.
    pub(crate) fn describe_error(&self, error: &bowline_client::Error) -> String {
        match &self.login_advice {
            Some(advice) if error.is_login_needed() => format!("{error}; {advice}"),
            _ => error.to_string(),
        }
    }

    /// Limits the size of each of its four lists.
    pub fn list_limits(mut self, limits: ListLimits) -> Self {
        self.list_limits = limits;
        self
    }

    /// Sets how often it is pinged while idle, if its revision has pings; `None` for never. Default: 60 s. A server that does not
    /// answer is stopped, and started again when needed.
    pub fn ping_interval(mut self, interval: Option<Duration>) -> Self {
        self.ping_interval = interval;
        self
    }

    /// Sets when it is started. Default: on first use.
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Sets whether clients share one instance or have their own. Default: shared. Clients of 2026-07-28 have no session and are
    /// distinguished by user.
    pub fn share(mut self, share: Share) -> Self {
        self.share = share;
        self
    }

    /// Limits how long it may take to start. Default: 30 s.
    pub fn startup_timeout(mut self, limit: Duration) -> Self {
        self.startup_timeout = limit;
        self
    }

    /// Limits how long a call may take without a reply or progress. Default: 60 s.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Sets after how long without a call it is stopped; `None` for never. Default: 10 min.
    pub fn idle_stop(mut self, limit: Option<Duration>) -> Self {
        self.idle_stop = limit;
        self
    }

    /// Sets after how long a call of a tool becomes a task of the host, if its server made no task of it and its caller handles
    /// tasks; `None` for never. Default: 20 s. A caller of 2025-11-25 that asks for a task gets one at once. Other callers wait.
    pub fn task_after(mut self, time: Option<Duration>) -> Self {
        self.task_after = time;
        self
    }

    /// Trusts the annotations of its tools: those declared read-only are allowed without asking.
    pub fn trusted(mut self) -> Self {
        self.trusted = true;
        self
    }

    /// Uses only this protocol revision.
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Shows only tools, prompts and resources whose names match one of the patterns. `*` matches anything.
    pub fn allow(mut self, pattern: &str) -> Self {
        self.allow.push(Pattern::new(pattern));
        self
    }

    /// Hides tools, prompts and resources whose names match, even if allowed.
    pub fn deny(mut self, pattern: &str) -> Self {
        self.deny.push(Pattern::new(pattern));
        self
    }

    /// Shows a tool under another name.
    pub fn rename(mut self, tool: impl Into<String>, name: impl Into<String>) -> Self {
        self.rename.insert(tool.into(), name.into());
        self
    }

    /// Replaces the description of a tool.
    pub fn describe(mut self, tool: impl Into<String>, description: impl Into<String>) -> Self {
        self.describe.insert(tool.into(), description.into());
        self
    }

    /// Sets the roots that it gets if its caller has none.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        self.roots = roots.into_iter().collect();
        self
    }

    /// Sets a text that identifies what is started or connected to, without secrets. Accepted definitions belong to it, so that
    /// another server of the same name has its own. Default: they belong to the name.
    pub fn identity(mut self, text: impl Into<Arc<str>>) -> Self {
        self.identity = Some(text.into());
        self
    }

    /// Lists its tools also to clients that are listed the meta tools.
    pub fn always_listed(mut self) -> Self {
        self.always_listed = true;
        self
    }

    /// Returns whether a resource is shown, however its URI is spelled.
    pub(crate) fn shows_uri(&self, uri: &str) -> bool {
        if self.allow.is_empty() && self.deny.is_empty() {
            return true;
        }
        let fits = |patterns: &[Pattern], readings| {
            patterns.iter().any(|pattern| pattern.matches_spellings(uri, readings))
        };
        ambiguity(uri).is_none()
            && (self.allow.is_empty() || fits(&self.allow, Readings::Every))
            && !fits(&self.deny, Readings::Any)
    }

    /// Returns whether no pattern hides a URI that may be a prefix, such as that of a folder.
    pub(crate) fn may_show_below(&self, uri: &str) -> bool {
        !self.deny.iter().any(|pattern| pattern.matches_spellings(uri, Readings::Any))
    }

    /// Returns whether a tool or prompt of this name is shown.
    pub(crate) fn shows(&self, name: &str) -> bool {
        let fits = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(name));
        (self.allow.is_empty() || fits(&self.allow)) && !fits(&self.deny)
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("start", &self.start)
            .field("share", &self.share)
            .field("trusted", &self.trusted)
            .finish_non_exhaustive()
    }
}

impl From<Command> for Upstream {
    fn from(command: Command) -> Self {
        Self { command: Some(command.clone()), ..Self::to(command) }
    }
}

impl From<HttpTarget> for Upstream {
    fn from(target: HttpTarget) -> Self {
        Self::to(target)
    }
}

impl From<&str> for Upstream {
    /// Creates a server at this URL.
    fn from(url: &str) -> Self {
        Self::to(bowline_http::http(url))
    }
}

impl From<ServerHandle> for Upstream {
    fn from(server: ServerHandle) -> Self {
        Self::to(server)
    }
}
