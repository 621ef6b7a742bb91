//! Which server a command is about: a name, a URL, or a program to start; and how it is reached.

use crate::{
    builtin::Builtin,
    context::Context,
    failure::{Code, Failure},
    running::Running,
};
use bowline_client::{Client, ClientBuilder, Command, Connect, Environment, StderrMode, command};
use bowline_host::{
    InProcess, Page, Reach,
    config::{Config, UpstreamConfig},
    gateway::{Approvals, Approve, Candidate},
    near::nearest,
    policy::visible,
};
use bowline_types::{Revision, Root};
use clap::Args;
use std::{
    ffi::OsString,
    io::{self, BufRead},
    path::{Path, PathBuf},
    time::Duration,
};

/// The name of the gateway that `bowline up` runs.
const GATEWAY: &str = "up";

/// How long a program may take for each of the two steps of its end, when a command only wants its answer.
const HASTE: Duration = Duration::from_millis(20);

/// A target on the command line.
#[derive(Args, Debug)]
pub(crate) struct TargetArguments {
    /// The server: a name of the configuration or of `bowline serve`, or a URL; `up`, or nothing, is the gateway that `bowline up` runs
    #[arg(value_name = "TARGET", conflicts_with = "program")]
    target: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArguments,
}

impl TargetArguments {
    /// Whether a server was named at all.
    pub(crate) fn is_given(&self) -> bool {
        self.target.is_some() || !self.reach.program.is_empty()
    }

    pub(crate) fn target(&self, context: &Context) -> Result<Target, Failure> {
        self.reach.target(self.target.as_deref(), context)
    }
}

/// How a server is reached, for commands whose first word is the target unless there is a program.
#[derive(Args, Debug)]
pub(crate) struct ReachArguments {
    /// A program to start, with its arguments, instead of a target
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
    /// Send this header to a server that has a URL; may be given more than once
    #[arg(long, value_name = "NAME=VALUE", value_parser = header, help_heading = "Connection options")]
    header: Vec<(String, String)>,
    /// Send the token that is in this variable of the environment to a server that has a URL
    #[arg(long, value_name = "VARIABLE", help_heading = "Connection options")]
    bearer_env: Option<String>,
    /// Let the server know of this folder; may be given more than once
    #[arg(long = "root", value_name = "FOLDER", help_heading = "Connection options")]
    roots: Vec<PathBuf>,
    /// Wait no longer than this for an answer, or for news of its progress: `500ms`, `10s`, `5m`
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Connection options")]
    timeout: Option<Duration>,
}

impl ReachArguments {
    /// Splits the words of a command into the target and the rest.
    pub(crate) fn split<'a>(&self, words: &'a [String]) -> (Option<&'a str>, &'a [String]) {
        match words.split_first() {
            Some((target, rest)) if self.program.is_empty() => (Some(target), rest),
            _ => (None, words),
        }
    }

    /// The server that is meant by a name, or by none.
    pub(crate) fn target(&self, name: Option<&str>, context: &Context) -> Result<Target, Failure> {
        let mut target = match (self.program.split_first(), name) {
            (Some((program, arguments)), _) => {
                // The user starts it here and now, as any other program.
                let program = command(program, arguments).environment(Environment::Inherit);
                let name = self.program.first().map(|name| name.to_string_lossy().into_owned());
                let target = Target::new(name.unwrap_or_default(), Way::Program(program));
                Target { is_written_out: true, ..target }
            }
            (None, None | Some(GATEWAY)) => gateway(context),
            (None, Some(url)) if is_url(url) => Target::new(url, Way::Page(bowline_http::http(url).into())),
            (None, Some(name)) => configured(name, context)?,
        };
        self.dress(&mut target, context)?;
        Ok(target)
    }

    /// What the options say, above what the configuration does.
    fn dress(&self, target: &mut Target, context: &Context) -> Result<(), Failure> {
        let mut headers = self.header.clone();
        if let Some(variable) = &self.bearer_env {
            let token = context.surroundings.environment.variable(variable).map(str::trim);
            let Some(token) = token.filter(|token| !token.is_empty()) else {
                return Err(Failure::misused(format!(
                    "expected a token in the variable `{variable}`, which is not set"
                )));
            };
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        if !headers.is_empty() {
            let Way::Page(page) = &mut target.way else {
                return Err(Failure::misused(format!(
                    "`--header` and `--bearer-env` are for servers with a URL, and `{}` has none",
                    visible(&target.name)
                )));
            };
            *page = headers.into_iter().fold(page.clone(), |page, (name, value)| page.header(name, value));
        }
        if !self.roots.is_empty() {
            target.roots = self.roots.iter().map(|folder| root(folder)).collect::<Result<_, _>>()?;
        }
        target.timeout = self.timeout.or(target.timeout);
        Ok(())
    }
}

/// A server that can be reached.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// What the user calls it.
    pub(crate) name: String,
    /// Whether the user wrote the program on the command line.
    pub(crate) is_written_out: bool,
    way: Way,
    pub(crate) timeout: Option<Duration>,
    revision: Option<Revision>,
    roots: Vec<Root>,
    lasts: bool,
}

#[derive(Clone, Debug)]
enum Way {
    Program(Command),
    Page(Page),
    Here(InProcess),
}

impl Target {
    fn new(name: impl Into<String>, way: Way) -> Self {
        let name = name.into();
        Self {
            name,
            is_written_out: false,
            way,
            timeout: None,
            revision: None,
            roots: Vec::new(),
            lasts: false,
        }
    }

    /// The program, if the server is one.
    pub(crate) fn program(&self) -> Option<&Command> {
        match &self.way {
            Way::Program(program) => Some(program),
            Way::Page(_) | Way::Here(_) => None,
        }
    }

    /// The page, if the server has a URL.
    pub(crate) fn page(&self) -> Option<&Page> {
        match &self.way {
            Way::Program(_) | Way::Here(_) => None,
            Way::Page(page) => Some(page),
        }
    }

    /// The connection is to last: its server has time to end, which one that is asked a single thing has not.
    pub(crate) fn lasting(mut self) -> Self {
        self.lasts = true;
        self
    }

    /// The way there, without what a client has to be told.
    pub(crate) fn into_connect(self, context: &Context) -> Box<dyn Connect> {
        match self.way {
            Way::Page(page) => Box::new(page),
            Way::Here(server) => Box::new(server),
            Way::Program(mut program) => {
                if !self.lasts {
                    program = program.grace(HASTE).terminate_grace(HASTE);
                }
                if context.trace() {
                    let screen = context.screen;
                    program = program.stderr(StderrMode::callback(move |line| {
                        screen.aside(&format!("! {}", visible(line)));
                    }));
                }
                Box::new(program)
            }
        }
    }

    /// Connects a client whose handlers are set.
    pub(crate) async fn connect(
        mut self,
        context: &Context,
        mut builder: ClientBuilder,
    ) -> Result<Client, Failure> {
        if let (Some(revision), None) = (self.revision, context.revision()) {
            builder = builder.revisions([revision]);
        }
        if let Some(timeout) = self.timeout {
            builder = builder.timeout(timeout).max_total(timeout.max(Duration::from_secs(3600)));
        }
        if !self.roots.is_empty() {
            builder = builder.roots(std::mem::take(&mut self.roots));
        }
        let name = self.name.clone();
        let is_page = matches!(self.way, Way::Page(_));
        builder.connect(self.into_connect(context)).await.map_err(|error| {
            let unreachable = error.is_unreachable();
            let mut failure = Failure::from(error);
            // A program is named by what became of it.
            if is_page {
                failure.sentence = format!("{name}: {}", failure.sentence);
            }
            match name.as_str() {
                GATEWAY if unreachable => {
                    failure.advise("`up`, or no target at all, means the gateway; `bowline up` starts it")
                }
                _ => failure,
            }
        })
    }
}

/// The gateway that runs; where it usually is, if none has told that it does.
fn gateway(context: &Context) -> Target {
    let running = Running::find(&context.surroundings).unwrap_or_else(Running::usual);
    let page = bowline_http::http(&running.url);
    let page = match &running.token {
        Some(token) => page.header("Authorization", format!("Bearer {token}")),
        None => page,
    };
    Target::new(GATEWAY, Way::Page(page.into()))
}

/// The server of that name in the configuration.
fn configured(name: &str, context: &Context) -> Result<Target, Failure> {
    let config = context.surroundings.config();
    let Some(entry) = config.upstream(name) else {
        let Some(builtin) = Builtin::named(name) else { return Err(unknown(name, &config)) };
        let unreachable = |failure: Failure| Failure { code: Code::Unreachable, ..failure };
        let server = builtin.server(context).map_err(unreachable)?.build();
        let server = server.map_err(|error| Failure::new(Code::Unreachable, error.to_string()))?;
        return Ok(Target::new(name, Way::Here(InProcess::new(server))));
    };
    if entry.needs_approval() {
        approve(entry, context)?;
    }
    let workspace = context.surroundings.workspace.as_deref();
    let reach = Reach::from_config(entry, workspace)
        .map_err(|error| Failure::new(Code::Config, format!("{}: {error}", entry.origin.short())))?;
    let way = match reach {
        Reach::Program(program) => Way::Program(program),
        Reach::Page(page) => Way::Page(page),
    };
    Ok(Target {
        timeout: Some(entry.settings.request_timeout),
        revision: entry.settings.revision,
        roots: entry.settings.roots.iter().map(Root::from).collect(),
        ..Target::new(name, way)
    })
}

fn unknown(name: &str, config: &Config) -> Failure {
    let known: Vec<&str> = config.upstreams.iter().map(|entry| entry.name.as_str()).collect();
    let builtin = Builtin::names();
    let shown = visible(name);
    let mut failure = Failure::new(Code::Config, format!("there is no server `{shown}`"));
    if let Some(near) = nearest(name, known.iter().copied().chain(builtin.iter().map(String::as_str))) {
        failure = failure.advise(format!("did you mean `{}`?", visible(near)));
    }
    for error in &config.errors {
        failure = failure.advise(error.to_string());
    }
    failure = match known.as_slice() {
        [] => failure.advise("the configuration names no server"),
        known => failure.advise(format!("the configuration has {}", visible(&known.join(", ")))),
    };
    failure = failure.advise(format!("the program itself has {}", builtin.join(", ")));
    failure.advise(format!("a program is named behind `--`, as in `bowline tools -- {shown}`"))
}

/// Has a server approved that somebody else wrote into the configuration, unless it was.
fn approve(entry: &UpstreamConfig, context: &Context) -> Result<(), Failure> {
    let surroundings = &context.surroundings;
    let candidate = Candidate::of(entry, &surroundings.environment, surroundings.workspace.as_deref());
    let unusable = |error: &dyn std::fmt::Display| Failure::new(Code::Config, error.to_string());
    let file = surroundings.state_folder().map(|folder| folder.join("approvals.json"));
    let approvals = file.map(Approvals::open).transpose().map_err(|error| unusable(&error))?;
    if approvals.as_ref().is_some_and(|approvals| approvals.is_approved(&candidate)) {
        return Ok(());
    }
    let screen = context.screen;
    let (server, origin) = (visible(candidate.server()), visible(candidate.origin()));
    let denied = |what: &str| Failure::new(Code::Denied, format!("`{server}` of {origin} {what}"));
    if !context.interactive() {
        let failure = denied("comes with the project and is not approved");
        let failure = candidate.description().iter().fold(failure, Failure::advise);
        return Err(failure.advise("run the same command in a terminal to approve it"));
    }
    screen.aside(&format!("`{server}` comes with the project ({origin}). This would be used:"));
    for line in candidate.description() {
        screen.aside(&format!("  | {line}"));
    }
    screen.prompt("Approve it, now and until any of this changes? [y/N] ");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if !matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Err(denied("was not approved"));
    }
    match approvals {
        Some(approvals) => approvals.approve(&candidate).map_err(|error| unusable(&error)),
        None => Ok(()),
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// A time such as `500ms`, `10s`, `5m` or `1h`; a number alone is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let milliseconds = match unit {
        "ms" => Some(1),
        "s" | "" => Some(1000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let time =
        number.parse::<u64>().ok().zip(milliseconds).and_then(|(number, unit)| number.checked_mul(unit));
    match time {
        Some(time) if time > 0 => Ok(Duration::from_millis(time)),
        _ => Err("expected a time such as 500ms, 10s, 5m or 1h".to_owned()),
    }
}

fn root(folder: &Path) -> Result<Root, Failure> {
    let shown = folder.display();
    let path = folder
        .canonicalize()
        .map_err(|error| Failure::misused(format!("the root `{shown}` cannot be used: {error}")))?;
    let text = path.to_str().ok_or_else(|| Failure::misused(format!("the root `{shown}` is not UTF-8")))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Root { name, ..Root::of_path(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "0s", "s", "1.5s", "-1s", "1 s", "99999999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_header_is_split_at_its_first_sign() {
        assert_eq!(header("X-Key = a=b"), Ok(("X-Key".to_owned(), "a=b".to_owned())));
        assert!(header("X-Key").is_err());
    }
}
