//! A connection for the length of a command: opened, used, interrupted, and closed in good order.

use crate::{
    client_handlers::{TerminalUser, add_handlers},
    commands::watch,
    context::Context,
    failure::{Code, Failure},
    signals::ShutdownSignals,
    target::{self, Target},
};
use bowline_client::{Client, ClientBuilder};
use bowline_host::gateway::REFUSED;
use bowline_types::{Capability, RawJson, error_code};
use std::time::{Duration, Instant};

/// A server that is connected.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    /// What the user calls the server.
    pub(crate) name: String,
    /// Whether the user wrote its program on the command line.
    is_command_line: bool,
    pub(crate) client: Client,
    pub(crate) user: TerminalUser,
    pub(crate) context: &'a Context,
    /// How long it took to connect.
    pub(crate) opening: Duration,
}

impl<'a> Session<'a> {
    /// Does something with a server. Whatever becomes of it, the connection is closed after it; who presses Ctrl-C gives up
    /// what is under way, and the server is told; who presses it again does not wait for that.
    pub(crate) async fn with<T>(
        target: Target,
        context: &'a Context,
        work: impl AsyncFnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        Self::listening(target, context, |builder| builder, work).await
    }

    /// The same, with handlers of the command's own.
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
        done
    }

    /// Why a request failed. A server that wanted to ask back found nobody who answers that.
    #[expect(clippy::unused_self, reason = "only a session has requests that fail")]
    pub(crate) fn explain(&self, error: bowline_client::Error) -> Failure {
        let is_refused = error.as_rpc().and_then(|error| error.data.as_ref()?.to_value().ok());
        if is_refused.is_some_and(|data| data.get(REFUSED) == Some(&true.into())) {
            return Failure { code: Code::Denied, ..error.into() };
        }
        let wanted = error.as_rpc().filter(|error| error.code == error_code::MISSING_CLIENT_CAPABILITY);
        let Some(advice) = wanted.map(|error| lacking(error.data.as_ref())) else { return error.into() };
        advice
            .iter()
            .fold(Failure { code: Code::Denied, ..error.into() }, |failure, line| failure.advise(*line))
    }

    /// Whether the server is the gateway that `bowline up` runs.
    pub(crate) fn is_gateway(&self) -> bool {
        !self.is_command_line && self.name == target::GATEWAY
    }

    /// The command line of a command that looks at this server, with a word of its own.
    pub(crate) fn inspect_command(&self, command: &str, word: &str) -> String {
        target::inspect_command(command, word, &self.name, self.is_command_line)
    }

    /// Connects.
    pub(crate) async fn open(
        target: Target,
        context: &'a Context,
        prepare: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Self, Failure> {
        let name = target.name.clone();
        let is_command_line = target.is_command_line;
        let user = TerminalUser::new(context.screen);
        let mut builder = add_handlers(context, &user, &name, target.answers.clone(), context.client());
        let level = target.log_level;
        if let Some(level) = level {
            let screen = context.screen;
            builder = builder.log_level(level).on_log(move |message| {
                screen.note(&format!(
                    "log: {}",
                    watch::log_line(&message, |tone, text| screen.paint_stderr(tone, text))
                ));
            });
        }
        let builder = prepare(builder);
        let start = Instant::now();
        let client = target.connect(context, builder).await?;
        if level.is_some() && !client.server().capabilities.has(Capability::Logging) {
            context.screen.warn("`--log-level` has no effect: the server does not send log messages");
        }
        Ok(Self { name, is_command_line, client, user, context, opening: start.elapsed() })
    }
}

/// What helps against capabilities that a server misses, which its error names.
fn lacking(data: Option<&RawJson>) -> Vec<&'static str> {
    let data = data.and_then(|data| data.to_value().ok()).unwrap_or_default();
    let is_missing = |name: &str| data.pointer(&format!("/requiredCapabilities/{name}")).is_some();
    let known = [
        (
            "elicitation",
            "it asks the user something: run it at a terminal, or give the answers with `--answers FILE`",
        ),
        ("roots", "it asks for folders: `--root FOLDER` names one"),
        (
            "sampling",
            "it asks for a model: configure one in `[sampling]` of bowline.toml and run it at a terminal, or use `--answers FILE`",
        ),
    ];
    known.into_iter().filter(|(name, _)| is_missing(name)).map(|(_, advice)| advice).collect()
}

/// Does something until the program is told to end.
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
