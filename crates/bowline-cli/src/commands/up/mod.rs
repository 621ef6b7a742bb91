//! `bowline up`: the host with its gateway, at a terminal with a table of its servers and someone to ask.

mod board;
mod demo;
mod gate;
mod intro;
mod table;

use crate::{
    context::Context,
    ending::Ending,
    failure::{Code, Failure},
    hosting::{self, ConsentArguments, Hosting, Memory, Serving},
    logging::{self, LogArguments},
    running::{self, Running, Told},
    token::Access,
};
use board::{Board, Size};
use bowline_host::gateway::{Candidate, Standing};
use bowline_policy::{Gate, Verdict};
use clap::Args;
use gate::AtTerminal;
use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tracing_subscriber::fmt::writer::BoxMakeWriter;

#[derive(Args, Debug, Default)]
pub(crate) struct Arguments {
    /// The port to listen on, instead of the one of the configuration or else 7337; 0 takes any that is free
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// The address to listen on, instead of the one of the configuration or else 127.0.0.1
    #[arg(long, value_name = "ADDRESS")]
    host: Option<IpAddr>,
    /// Let every program of this machine connect without a token
    #[arg(long)]
    no_token: bool,
    #[command(flatten)]
    consent: ConsentArguments,
    #[command(flatten)]
    log: LogArguments,
}

/// How often the table is looked at.
const INTERVAL: Duration = Duration::from_millis(250);

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let is_live = context.interactive() && !context.json();
    let board = Board::default();
    let (usual, writer) = if is_live {
        ("warn,bowline_host::gateway=info", BoxMakeWriter::new(board.clone()))
    } else {
        ("info", logging::aside())
    };
    arguments.log.start(context, usual, writer)?;

    let loader = context.surroundings.loader();
    let config = context.surroundings.config();
    let configured = config.gateway.listen;
    let asked = SocketAddr::new(
        arguments.host.unwrap_or_else(|| configured.ip()),
        arguments.port.unwrap_or_else(|| configured.port()),
    );
    let access = Access::choose(context, config, arguments.no_token)?;
    let Some(listener) = listen(asked, context).await? else { return Ok(()) };
    let ending = Ending::listen()?;
    let address = listener.local_addr()?;

    let is_demo = hosting::is_absent(config);
    let gate: Option<Arc<dyn Gate>> =
        if is_live { Some(Arc::new(AtTerminal::new(board.clone()))) } else { None };
    let memory = if is_demo { Memory::Forgotten } else { Memory::Kept };
    let serving = Serving { listen: Some(address), access: &access, consent: &arguments.consent };
    let hosting = Hosting::new(context, config.clone(), memory, gate.clone(), &serving)?;
    let demo = if is_demo { Some(demo::add(&hosting.gateway, context, address)?) } else { None };
    let url = running::url(address, &hosting.gateway.config().gateway.path);
    let told = running::tell(context, &hosting, &access, address);
    if !is_live {
        // At a terminal the signal says that the terminal is gone, which ends the program.
        hosting.reload_on_hangup(loader.clone())?;
    }
    hosting.gateway.watch(loader);

    let unapproved = if is_live { Vec::new() } else { hosting.unapproved() };
    for line in [hosting.complaints(address), unapproved, hosting.notices()].iter().flatten() {
        context.screen.warn(line);
    }
    if is_live {
        context.screen.aside(&hosting.consent(true));
    } else {
        tracing::info!("{}", hosting.consent(false));
    }
    if let Err(error) = &told {
        let line =
            format!("other commands have to be given the URL, since it cannot be written to a file: {error}");
        context.screen.warn(&line);
    }
    if is_live {
        // A port that the system chose is another one in the next run.
        let port = Some(address.port()).filter(|_| asked.port() != 0);
        context.screen.aside(&intro::page(context, &url, &access, port, demo.as_deref()));
    } else if context.json() {
        let running = Running { url, pid: std::process::id(), token: access.token().map(str::to_owned) };
        context.screen.json(&running)?;
    } else {
        context.screen.line(&url)?;
    }
    if let Access::Run { token, reason } = &access {
        context.screen.aside(&format!("{reason}; until it ends, clients send the token {token}"));
    }

    let up = Up { context, hosting: &hosting, board: is_live.then_some(&board), ending: &ending };
    let ended = tokio::select! {
        biased;
        // First, so that it is said before the end that may come at once.
        () = up.tell_end() => Ok(()),
        ended = up.serve(listener, told.ok()) => ended,
        () = up.show(gate) => Ok(()),
        () = ending.times(2) => Err(Failure { silent: true, ..Failure::new(Code::Interrupted, "ended at once") }),
    };
    if is_live {
        board.end();
    }
    ended
}

/// What runs.
struct Up<'a> {
    context: &'a Context,
    hosting: &'a Hosting,
    /// At a terminal.
    board: Option<&'a Board>,
    ending: &'a Ending,
}

impl Up<'_> {
    /// Serves until the program is told to end, and then ends everything in good order.
    async fn serve(&self, listener: TcpListener, told: Option<Told>) -> Result<(), Failure> {
        let gateway = &self.hosting.gateway;
        let end = async {
            self.ending.times(1).await;
            drop(told);
        };
        let served = gateway.serve_http(listener, end).await;
        gateway.close().await;
        served.map_err(|error| hosting::refused(&error))
    }

    /// Keeps the table up to date, and asks about servers that wait for it. Does not end.
    async fn show(&self, gate: Option<Arc<dyn Gate>>) {
        let Some(board) = self.board else { return std::future::pending().await };
        let mut asked = BTreeSet::new();
        loop {
            let size = Size::now();
            let rows = table::rows(&self.hosting.gateway);
            let lines = table::lines(self.context.screen, &rows, size.columns);
            // A line is empty below the table, and one above it is left to what is written.
            let mut lines = table::fitting(lines, size.rows.saturating_sub(2));
            lines.push((String::new(), 0));
            board.show(lines, size);
            for entry in self.hosting.gateway.status() {
                if let (Standing::NeedsApproval(candidate), Some(gate)) = (entry.standing, &gate)
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
        if let Err(error) = self.hosting.approved.approve(candidate) {
            self.note(&format!("the approval holds for this run only: {error}"));
        }
        self.hosting.gateway.review();
    }

    /// Says that it ends, once it does. Does not end itself.
    async fn tell_end(&self) {
        self.ending.times(1).await;
        self.note("Ending: calls that run may finish. Ctrl-C again ends at once.");
        std::future::pending::<()>().await;
    }

    fn note(&self, text: &str) {
        match self.board {
            Some(board) => board.write(&format!("{text}\n")),
            None => self.context.screen.aside(text),
        }
    }
}

/// The socket; nothing where this program listens already, which then has been said.
async fn listen(address: SocketAddr, context: &Context) -> Result<Option<TcpListener>, Failure> {
    let error = match TcpListener::bind(address).await {
        Ok(listener) => return Ok(Some(listener)),
        Err(error) => error,
    };
    if error.kind() != io::ErrorKind::AddrInUse {
        return Err(Failure::new(Code::Failed, format!("cannot listen on {address}: {error}")));
    }
    let running = Running::at(&context.surroundings, address.port());
    if let Some(running) = running
        && is_healthy(address).await
    {
        let Running { url, pid, .. } = &running;
        if context.json() {
            context.screen.json(&running)?;
        } else {
            context.screen.aside(&format!("bowline runs already, in process {pid}:"));
            context.screen.line(url)?;
            context
                .screen
                .aside("`bowline tools` shows what it offers; `bowline up --port 0` starts another one.");
        }
        return Ok(None);
    }
    Err(Failure::new(Code::Failed, format!("something else listens on {address} already"))
        .advise("take another port with `bowline up --port PORT`, or `--port 0` for any that is free"))
}

/// Whether a gateway answers there.
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
