//! The connection of a command: opening, interruption, graceful close, and the tools and prompts of its server.

use crate::{
    cache,
    client_handlers::{TerminalUser, add_handlers},
    context::Context,
    failure::{Code, Failure},
    signals::ShutdownSignals,
    target::{self, Target},
};
use bowline_client::{Client, ClientBuilder};
use bowline_host::gateway::REFUSED;
use bowline_search::MetaTool;
use bowline_text::{nearest, visible};
use bowline_types::{Capability, Prompt, RawJson, Tool, error_code};
use serde_json::json;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The maximum number of names listed for an unknown name.
const SHOWN: usize = 12;

/// A connected server.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    /// The name given by the user.
    pub(crate) name: String,
    /// The account that is used, if it is not the default one.
    account: Option<String>,
    /// Whether the program was given on the command line.
    is_command_line: bool,
    ends_server: bool,
    pub(crate) client: Client,
    pub(crate) user: TerminalUser,
    pub(crate) context: &'a Context,
    /// The task that the command waits for.
    waits_for: Arc<Mutex<Option<String>>>,
    /// How long connecting took.
    pub(crate) opening: Duration,
}

impl<'a> Session<'a> {
    /// Connects, runs `work` and closes the connection, even on failure. The first Ctrl-C cancels the running request; the second
    /// does not wait for the connection to close.
    pub(crate) async fn with<T>(
        target: Target,
        context: &'a Context,
        work: impl AsyncFnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        Self::listening(target, context, |builder| builder, work).await
    }

    /// Like [`Session::with`], with additional client handlers.
    pub(crate) async fn listening<T>(
        target: Target,
        context: &'a Context,
        prepare: impl FnOnce(ClientBuilder) -> ClientBuilder,
        work: impl AsyncFnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let signals = ShutdownSignals::listen()?;
        let session = interruptible(&signals, Self::open(target, context, prepare)).await?;
        let done = interruptible(&signals, work(&session)).await;
        tokio::select! {
            () = session.client.close() => {}
            () = signals.received(2) => {}
        }
        done.map_err(|mut failure| {
            failure.name_login(&session.name, session.account.as_deref());
            if failure.code == Code::Interrupted { session.how_to_continue(failure) } else { failure }
        })
    }

    /// Returns a function that records the task that the command waits for, so that an interrupted command says how to
    /// continue.
    pub(crate) fn task_recorder(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let waits_for = Arc::clone(&self.waits_for);
        move |task_id| *waits_for.lock().unwrap_or_else(PoisonError::into_inner) = Some(task_id.to_owned())
    }

    /// Adds how to continue to the failure of an interrupted command.
    pub(crate) fn how_to_continue(&self, failure: Failure) -> Failure {
        let task = self.waits_for.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(task) = task else { return failure };
        let failure = Failure { sentence: "interrupted; the task goes on".to_owned(), ..failure };
        failure
            .advise(format!("run `{}` to continue", self.task_command("wait", &task)))
            .advise(format!("run `{}` to cancel it", self.task_command("cancel", &task)))
    }

    /// Returns the command line of a `tasks` command.
    pub(crate) fn task_command(&self, command: &str, task: &str) -> String {
        self.inspect_command(&format!("tasks {command}"), &target::shell_word(task))
    }

    /// Returns whether the server ends with the connection.
    pub(crate) fn ends_server(&self) -> bool {
        self.ends_server
    }

    /// Converts the error of a request, with hints if the client lacked a capability.
    #[expect(clippy::unused_self, reason = "belongs to the session")]
    pub(crate) fn explain(&self, error: bowline_client::Error) -> Failure {
        let is_refused = error.as_rpc().and_then(|error| error.data.as_ref()?.to_value().ok());
        if is_refused.is_some_and(|data| data.get(REFUSED) == Some(&true.into())) {
            return Failure { code: Code::Denied, ..error.into() };
        }
        let wanted = error.as_rpc().filter(|error| error.code == error_code::MISSING_CLIENT_CAPABILITY);
        let Some(advice) = wanted.map(|error| missing_capabilities(error.data.as_ref())) else {
            return error.into();
        };
        advice
            .iter()
            .fold(Failure { code: Code::Denied, ..error.into() }, |failure, line| failure.advise(*line))
    }

    /// Returns whether the server is the user's gateway.
    pub(crate) fn is_gateway(&self) -> bool {
        !self.is_command_line && self.name == target::GATEWAY
    }

    /// Returns the command line of a command that inspects this server.
    pub(crate) fn inspect_command(&self, command: &str, word: &str) -> String {
        target::inspect_command(command, word, &self.name, self.is_command_line)
    }

    /// Lists the tools and caches their names for completion.
    pub(crate) async fn tools(&self) -> Result<Vec<Tool>, Failure> {
        let tools = self.client.tools().await?;
        cache::remember(self.context, &self.name, |names| names.set_tools(&tools));
        Ok(tools)
    }

    /// Lists the prompts and caches their names for completion.
    pub(crate) async fn prompts(&self) -> Result<Vec<Prompt>, Failure> {
        let prompts = self.client.prompts().await?;
        cache::remember(self.context, &self.name, |names| names.set_prompts(&prompts));
        Ok(prompts)
    }

    /// Finds a tool by name. A gateway that lists only its search tools is asked to describe it.
    pub(crate) async fn find_tool(&self, name: &str) -> Result<Tool, Failure> {
        let tools = self.tools().await?;
        if let Some(found) = tools.iter().find(|tool| tool.name == name) {
            return Ok(found.clone());
        }
        let is_listed = |wanted: &MetaTool| tools.iter().any(|tool| tool.name == wanted.name());
        let hides_tools = MetaTool::ALL.iter().all(is_listed);
        let unknown = || self.unknown("tool", name, tools.iter().map(|tool| tool.name.as_str()));
        // The user's gateway can also describe tools of servers that are still starting.
        let may_be_starting = self.is_gateway() && name.contains("__");
        if !hides_tools && !may_be_starting {
            return Err(unknown());
        }
        let described = self.client.call(MetaTool::Describe.name(), json!({ "name": name })).await;
        match described {
            Ok(described) if !described.is_error() => described.json().map_err(Failure::from),
            Ok(described) if hides_tools => Err(Failure::misused(described.text())),
            _ => Err(unknown()),
        }
    }

    /// Returns the failure for an unknown name, with suggestions.
    pub(crate) fn unknown<'n>(
        &self,
        what: &str,
        name: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Failure {
        let names: Vec<&str> = names.into_iter().collect();
        let failure = Failure::new(Code::Misused, format!("the server has no {what} `{}`", visible(name)));
        match nearest(name, names.iter().copied()) {
            Some(near) => failure.advise(format!("did you mean `{}`?", visible(near))),
            None if names.is_empty() => failure.advise(format!("it has no {what}s")),
            None if names.len() > SHOWN => {
                let look = self.inspect_command(&format!("{what}s"), "");
                failure.advise(format!("run `{look}` to list them"))
            }
            None => failure.advise(format!("available: {}", visible(&names.join(", ")))),
        }
    }

    /// Connects.
    pub(crate) async fn open(
        target: Target,
        context: &'a Context,
        prepare: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, Failure> {
        let (name, account) = (target.name.clone(), target.account());
        let is_command_line = target.is_command_line;
        let ends_server = target.page().is_none();
        let user = TerminalUser::new(context.screen);
        let wants_logs = target.log_level.is_some();
        let builder = prepare(add_handlers(context, &user, &target, context.client()));
        let start = Instant::now();
        let client = target.connect(context, builder).await?;
        if wants_logs && !client.server().capabilities.has(Capability::Logging) {
            context.screen.warn("`--log-level` has no effect: the server does not support logging");
        }
        let (waits_for, opening) = (Arc::default(), start.elapsed());
        Ok(Self { name, account, is_command_line, ends_server, client, user, context, waits_for, opening })
    }
}

/// Returns hints for the client capabilities that the server requires.
fn missing_capabilities(data: Option<&RawJson>) -> Vec<&'static str> {
    let data = data.and_then(|data| data.to_value().ok()).unwrap_or_default();
    let is_missing = |name: &str| data.pointer(&format!("/requiredCapabilities/{name}")).is_some();
    let known = [
        (
            "elicitation",
            "the server asks the user for input: run the command in a terminal, or pass `--answers FILE`",
        ),
        ("roots", "the server asks for roots: pass `--root DIR`"),
        (
            "sampling",
            "the server asks for a model: configure `[sampling]` in bowline.toml and run the command in a terminal, or pass `--answers FILE`",
        ),
    ];
    known.into_iter().filter(|(name, _)| is_missing(name)).map(|(_, advice)| advice).collect()
}

/// Runs a future until a shutdown signal is received.
async fn interruptible<T>(
    signals: &ShutdownSignals,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::select! {
        biased;
        done = work => done,
        () = signals.received(1) => Err(Failure::new(Code::Interrupted, "interrupted")),
    }
}
