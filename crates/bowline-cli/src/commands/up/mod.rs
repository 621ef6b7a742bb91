//! `bowline up`: runs the gateway, with a live table of servers and prompts at a terminal.

mod demo;
mod intro;
mod status_area;
mod table;
mod terminal_gate;

use crate::{
    auth_mode::{self, AuthArguments},
    commands::doctor::ServerChecks,
    context::Context,
    failure::{Code, Failure},
    gateway_setup::{self, ConsentArguments, GatewaySetup, Persistence, ServeOptions},
    inspector_setup::{InspectorSetup, open_browser},
    logging::{self, LogArguments},
    running_gateway::{self, Announcement, RunningGateway},
    signals::ShutdownSignals,
    token::Access,
};
use bowline_host::gateway::{Candidate, EntryState};
use bowline_inspector::query::{ConnectHint, Mode};
use bowline_policy::{Gate, Verdict};
use clap::Args;
use status_area::{Size, StatusArea};
use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};
use terminal_gate::TerminalGate;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tracing_subscriber::fmt::writer::BoxMakeWriter;

#[derive(Args, Debug, Default)]
pub(crate) struct Arguments {
    /// Listen on this port instead of the configured one; 0 picks a free port [default: 7337]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Listen on this address instead of the configured one [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
    /// Allow connections without a token
    #[arg(long)]
    no_token: bool,
    /// Open the inspector in the browser
    #[arg(long)]
    open: bool,
    /// Save all messages to this directory, with secrets masked; `bowline inspect DIR` shows them later
    #[arg(long, value_name = "DIR", conflicts_with = "no_inspector")]
    keep: Option<PathBuf>,
    /// Do not serve the inspector
    #[arg(long, conflicts_with = "open")]
    no_inspector: bool,
    #[command(flatten)]
    auth: AuthArguments,
    #[command(flatten)]
    consent: ConsentArguments,
    #[command(flatten)]
    log: LogArguments,
}

/// How often the table is updated.
const INTERVAL: Duration = Duration::from_millis(250);

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let is_live = context.interactive() && !context.json();
    let area = StatusArea::default();
    let (usual, writer) = if is_live {
        ("warn,bowline_host::gateway=info", BoxMakeWriter::new(area.clone()))
    } else {
        ("info", logging::to_stderr())
    };
    arguments.log.start(context, usual, writer)?;

    let loader = context.environment.loader();
    let config = context.environment.config();
    let configured = config.gateway.listen;
    let asked = SocketAddr::new(
        arguments.host.unwrap_or_else(|| configured.ip()),
        arguments.port.unwrap_or_else(|| configured.port()),
    );
    let dev_scopes = arguments.auth.check(Some(asked), "--host", arguments.no_token)?;
    let access = Access::choose(context, config, arguments.no_token)?;
    let Some(listener) = listen(asked, context).await? else { return Ok(()) };
    let signals = ShutdownSignals::listen()?;
    let address = listener.local_addr()?;

    let is_demo = gateway_setup::is_unconfigured(config);
    let inspector = if arguments.no_inspector {
        None
    } else {
        Some(InspectorSetup::new(Mode::Up, &config.inspector, is_live).await?)
    };
    let gate: Option<Arc<dyn Gate>> = is_live.then(|| {
        let terminal: Arc<dyn Gate> = Arc::new(TerminalGate::new(area.clone()));
        match &inspector {
            Some(setup) => setup.inspector.gate(Some(terminal)),
            None => terminal,
        }
    });
    let persistence = if is_demo { Persistence::ThisRun } else { Persistence::Stored };
    let options = ServeOptions {
        listen: Some(address),
        access: &access,
        consent: &arguments.consent,
        dev_scopes,
        inspector: inspector.as_ref().map(|setup| &setup.inspector),
        sharing: None,
    };
    let setup = GatewaySetup::new(context, config.clone(), persistence, gate.clone(), &options)?;
    let demo = if is_demo { Some(demo::add(&setup.gateway, context, address)?) } else { None };
    let url = running_gateway::url(address, &setup.gateway.config().gateway.path);
    let inspector_access = inspector.as_ref().map(InspectorSetup::access);
    let announcement = running_gateway::announce(context, &setup, &access, address, inspector_access);
    if !is_live {
        // At a terminal, SIGHUP means that the terminal is closed, which ends the program.
        setup.reload_on_hangup(loader.clone())?;
    }
    setup.gateway.watch(loader);

    let unapproved = if is_live { Vec::new() } else { setup.unapproved() };
    for line in [setup.warnings(address), unapproved, setup.notices()].iter().flatten() {
        context.screen.warn(line);
    }
    if is_live {
        context.screen.note(&setup.consent(true));
    } else {
        tracing::info!("{}", setup.consent(false));
    }
    if let Err(error) = &announcement {
        let line = format!("cannot announce the gateway: {error}; pass its URL to other commands");
        context.screen.warn(&line);
    }
    // A port chosen by the system differs in the next run.
    let port = Some(address.port()).filter(|_| asked.port() != 0);
    let serving = match inspector {
        Some(inspector) => {
            let hints = intro::connections(&url, &access, port);
            let hints = hints.into_iter().map(|(client, text)| ConnectHint::new(client, text));
            inspector.inspector.set_hints(hints.collect(), demo.as_ref().map(|_| demo::try_call()));
            if demo.is_none() {
                inspector.inspector.set_checker(Arc::new(ServerChecks::of_gateway(context, &setup.gateway)));
            }
            let attached = inspector.inspector.attach(&setup.gateway);
            attached.map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
            let link = if is_live || arguments.open { Some(inspector.own_link(is_live)?) } else { None };
            let page = inspector.url();
            let serving = inspector.serve(arguments.keep.as_deref())?;
            match &link {
                // Only a terminal shows the code: output of a service is stored and read by others.
                Some(link) if is_live => {
                    context.screen.note(&format!(
                        "Inspect at {link}\n(this link works once; `bowline open` makes another)"
                    ));
                }
                _ => tracing::info!("the inspector is at {page}; run `bowline open` for a link"),
            }
            if let (true, Some(link)) = (arguments.open, &link)
                && let Err(reason) = open_browser(link).await
            {
                context.screen.warn(&reason);
            }
            Some(serving)
        }
        None => None,
    };
    if is_live {
        context.screen.note(&intro::page(context, &url, &access, port, demo.as_deref()));
    } else if context.json() {
        let running = RunningGateway {
            url,
            pid: std::process::id(),
            token: access.token().map(str::to_owned),
            inspector: None,
        };
        context.screen.json(&running)?;
    } else {
        context.screen.line(&url)?;
    }
    if dev_scopes.is_some() {
        let url = running_gateway::url(address, &setup.gateway.config().gateway.path);
        context.screen.note(&auth_mode::notice(&url));
        context
            .screen
            .note("commands of this user need no login: the token of `bowline token show` works too");
    }
    if let Access::Run { token, reason } = &access {
        context.screen.note(&format!("{reason}; the token for this run is {token}"));
    }

    let up = Up { context, setup: &setup, area: is_live.then_some(&area), signals: &signals };
    let ended = tokio::select! {
        biased;
        // First, so that the message appears before an immediate exit.
        () = up.announce_shutdown() => Ok(()),
        ended = up.serve(listener, announcement.ok()) => ended,
        () = up.show(gate) => Ok(()),
        () = signals.received(2) => Err(Failure { silent: true, ..Failure::new(Code::Interrupted, "terminated") }),
    };
    if let Some(serving) = serving {
        serving.end().await;
    }
    if is_live {
        area.end();
    }
    ended
}

/// The running gateway.
struct Up<'a> {
    context: &'a Context,
    setup: &'a GatewaySetup,
    /// The status area, at a terminal.
    area: Option<&'a StatusArea>,
    signals: &'a ShutdownSignals,
}

impl Up<'_> {
    /// Serves until a signal is received, then shuts down gracefully.
    async fn serve(&self, listener: TcpListener, announcement: Option<Announcement>) -> Result<(), Failure> {
        let gateway = &self.setup.gateway;
        let end = async {
            self.signals.received(1).await;
            drop(announcement);
        };
        let served = gateway.serve_http(listener, end).await;
        gateway.close().await;
        served.map_err(|error| gateway_setup::config_failure(&error))
    }

    /// Updates the table and asks for pending approvals. Never completes.
    async fn show(&self, gate: Option<Arc<dyn Gate>>) {
        let Some(area) = self.area else { return std::future::pending().await };
        let mut asked = BTreeSet::new();
        loop {
            let size = Size::now();
            let rows = table::rows(&self.setup.gateway);
            let lines = table::lines(self.context.screen, &rows, size.columns);
            // Leave an empty line below the table and a line for output above it.
            let mut lines = table::fitting(lines, size.rows.saturating_sub(2));
            lines.push((String::new(), 0));
            area.show(lines, size);
            for entry in self.setup.gateway.status() {
                if let (EntryState::NeedsApproval(candidate), Some(gate)) = (entry.state, &gate)
                    && asked.insert(candidate.digest().to_owned())
                {
                    self.approve(&**gate, &candidate).await;
                }
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    async fn approve(&self, gate: &dyn Gate, candidate: &Candidate) {
        if !matches!(gate.ask(candidate.question()).await, Verdict::Allow(_)) {
            return;
        }
        if let Err(error) = self.setup.approved.approve(candidate) {
            self.note(&format!("the approval is valid for this run only: {error}"));
        }
        // It reads the files of servers, which other tasks must not wait for.
        let gateway = self.setup.gateway.clone();
        let _ = tokio::task::spawn_blocking(move || gateway.review()).await;
    }

    /// Prints a message when shutdown starts. Never completes.
    async fn announce_shutdown(&self) {
        self.signals.received(1).await;
        self.note("Shutting down; waiting for running calls. Press Ctrl-C again to exit immediately.");
        std::future::pending::<()>().await;
    }

    fn note(&self, text: &str) {
        match self.area {
            Some(area) => area.write(&format!("{text}\n")),
            None => self.context.screen.note(text),
        }
    }
}

/// Binds the address. Returns `None` if the user's gateway is already running there, after printing its URL.
async fn listen(address: SocketAddr, context: &Context) -> Result<Option<TcpListener>, Failure> {
    let error = match TcpListener::bind(address).await {
        Ok(listener) => return Ok(Some(listener)),
        Err(error) => error,
    };
    if error.kind() != io::ErrorKind::AddrInUse {
        return Err(Failure::new(Code::Failed, format!("cannot listen on {address}: {error}")));
    }
    let running = RunningGateway::at(&context.environment, address.port());
    if let Some(running) = running
        && is_healthy(address).await
    {
        let RunningGateway { url, pid, .. } = &running;
        if context.json() {
            context.screen.json(&running)?;
        } else {
            context.screen.note(&format!("bowline is already running (process {pid}):"));
            context.screen.line(url)?;
            context
                .screen
                .note("`bowline tools` lists its tools; `bowline up --port 0` starts another gateway");
        }
        return Ok(None);
    }
    Err(Failure::new(Code::Failed, format!("address {address} is already in use"))
        .advise("use another port with `bowline up --port PORT`, or `--port 0` for a free one"))
}

/// Returns whether a gateway responds at this address.
async fn is_healthy(address: SocketAddr) -> bool {
    let asking = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.take(4096).read_to_end(&mut answer).await?;
        Ok::<_, io::Error>(answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(b"ok\n"))
    };
    matches!(tokio::time::timeout(Duration::from_secs(2), asking).await, Ok(Ok(true)))
}
