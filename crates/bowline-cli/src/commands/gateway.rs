//! `bowline gateway`: runs the gateway headless, over HTTP or stdio.

use crate::{
    auth_mode::{self, AuthArguments},
    commands::doctor::ServerChecks,
    context::Context,
    failure::{Code, Failure},
    gateway_setup::{self, ConsentArguments, GatewaySetup, Persistence, ServeOptions},
    inspector_setup::{InspectorAccess, InspectorSetup},
    logging::{self, LogArguments},
    running_gateway::{self, Announcement},
    service_manager,
    sharing::Sharing,
    signals::ShutdownSignals,
    token::Access,
};
use bowline_inspector::query::Mode;
use clap::Args;
use std::{net::SocketAddr, path::PathBuf, sync::Arc};
use tokio::net::TcpListener;

#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent")]
pub(crate) struct Arguments {
    /// Serve one client over standard input and output
    #[arg(long)]
    stdio: bool,
    /// Listen on this address instead of the configured one; with `--stdio`, serve HTTP as well
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = running_gateway::address)]
    listen: Option<SocketAddr>,
    /// Serve the inspector at 127.0.0.1; `bowline open` opens it. Message bodies are not kept unless `inspector.bodies` is set
    #[arg(long)]
    inspector: bool,
    /// Save all messages to this directory, with secrets masked; `bowline inspect DIR` shows them later
    #[arg(long, value_name = "DIR", requires = "inspector")]
    keep: Option<PathBuf>,
    /// Use this store instead of the configured one: `sqlite:PATH`, `postgres://…`, `redis://…` or `rediss://…`
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Exit if the configuration has any problem
    #[arg(long)]
    strict: bool,
    /// Allow connections without a token
    #[arg(long)]
    no_token: bool,
    #[command(flatten)]
    auth: AuthArguments,
    #[command(flatten)]
    consent: ConsentArguments,
    #[command(flatten)]
    log: LogArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    arguments.log.start(context, "info", logging::to_stderr())?;
    let config = context.environment.config();
    if gateway_setup::is_unconfigured(config) {
        let places: Vec<String> = config.files.iter().map(|file| format!("`{}`", file.display())).collect();
        return Err(Failure::new(Code::Config, format!("no configuration found at {}", places.join(" or ")))
            .advise("run `bowline config import` to import servers from other clients")
            .advise("run `bowline up` to try the built-in servers"));
    }
    let signals = ShutdownSignals::listen()?;
    let address = arguments.listen.unwrap_or(config.gateway.listen);
    let is_http = !arguments.stdio || arguments.listen.is_some();
    let listen = is_http.then_some(address);
    let dev_scopes = arguments.auth.check(listen, "--listen", arguments.no_token)?;
    // A stdio client started this process, so it needs no token.
    let access = match listen {
        Some(_) => Access::choose_for_gateway(context, config, arguments.no_token, dev_scopes.is_some())?,
        None => Access::Open,
    };
    let inspector = if arguments.inspector {
        Some(InspectorSetup::new(Mode::Gateway, &config.inspector, false).await?)
    } else {
        None
    };
    let sharing = Sharing::open(context, config, arguments.store.as_deref()).await?;
    let options = ServeOptions {
        listen,
        access: &access,
        consent: &arguments.consent,
        dev_scopes,
        inspector: inspector.as_ref().map(|setup| &setup.inspector),
        sharing: Some(&sharing),
    };
    let setup = GatewaySetup::new(context, config.clone(), Persistence::Stored, None, &options)?;
    let warnings = [setup.warnings(address), setup.unapproved()].concat();
    if arguments.strict && !warnings.is_empty() {
        let sentence = "the configuration has problems";
        return Err(Failure { advice: warnings, ..Failure::new(Code::Config, sentence) });
    }
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    for notice in setup.notices() {
        tracing::info!("{notice}");
    }
    tracing::info!("{}", setup.consent(false));
    let mut socket = None;
    if is_http {
        let listener = open_socket(address).await?;
        let address = listener.local_addr()?;
        if dev_scopes.is_some() {
            let url = running_gateway::url(address, &setup.gateway.config().gateway.path);
            tracing::info!("{}", auth_mode::notice(&url));
        }
        let inspector = inspector.as_ref().map(InspectorSetup::access);
        let announcement = announce(context, &setup, &access, address, inspector);
        socket = Some((listener, announcement));
    }
    let serving = match inspector {
        Some(inspector) => {
            inspector.inspector.set_checker(Arc::new(ServerChecks::of_gateway(context, &setup.gateway)));
            let attached = inspector.inspector.attach(&setup.gateway);
            attached.map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
            tracing::info!("the inspector is at {}; run `bowline open` for a link", inspector.url());
            Some(inspector.serve(arguments.keep.as_deref())?)
        }
        None => None,
    };
    setup.gateway.watch(context.environment.loader());
    setup.reload_on_hangup(context.environment.loader())?;

    let ended = tokio::select! {
        ended = serve(&setup, socket, arguments.stdio, &signals) => ended,
        () = signals.received(2) => {
            Err(Failure { silent: true, ..Failure::new(Code::Interrupted, "terminated") })
        }
    };
    if let Some(serving) = serving {
        serving.end().await;
    }
    ended
}

/// Returns the socket that the service manager opened, or opens one.
async fn open_socket(address: SocketAddr) -> Result<TcpListener, Failure> {
    let passed = service_manager::socket();
    let passed = passed.map_err(|error| {
        Failure::new(Code::Failed, format!("the socket of the service manager is unusable: {error}"))
    })?;
    if let Some(listener) = passed {
        return Ok(listener);
    }
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| Failure::new(Code::Failed, format!("cannot listen on {address}: {error}")))
}

/// Logs which token clients must send, and announces the gateway to other commands of this user.
fn announce(
    context: &Context,
    setup: &GatewaySetup,
    access: &Access,
    address: SocketAddr,
    inspector: Option<InspectorAccess>,
) -> Option<Announcement> {
    let issuers = setup.gateway.issuers().join(" or ");
    match access {
        Access::Variable { name, .. } if !issuers.is_empty() => {
            tracing::info!("clients must send an access token of {issuers}, or the token in `{name}`");
        }
        Access::Variable { name, .. } => tracing::info!("clients must send the token in `{name}`"),
        Access::Issuers => {
            if !issuers.is_empty() {
                tracing::info!("clients must send an access token of {issuers}");
            }
            // Other commands of this user have no access token, so the gateway is not announced to them.
            return None;
        }
        Access::User { .. } => {
            tracing::info!("clients must send a token; `bowline token show` prints it");
        }
        Access::Run { token, reason } => {
            context.screen.note(&format!("{reason}; the token for this run is {token}"));
        }
        Access::Open => {
            tracing::warn!("no token is required: every program that can connect can use this gateway");
        }
    }
    let announcement = running_gateway::announce(context, setup, access, address, inspector);
    announcement
        .inspect_err(
            |error| tracing::warn!(%error, "cannot announce the gateway; pass its URL to other commands"),
        )
        .ok()
}

/// Serves HTTP and stdio until the stdio client disconnects or a signal is received.
async fn serve(
    setup: &GatewaySetup,
    socket: Option<(TcpListener, Option<Announcement>)>,
    stdio: bool,
    signals: &ShutdownSignals,
) -> Result<(), Failure> {
    let gateway = &setup.gateway;
    let (done, is_done) = tokio::sync::watch::channel(false);
    let end = || {
        let mut is_done = is_done.clone();
        async move {
            tokio::select! {
                () = signals.received(1) => {}
                _ = is_done.wait_for(|is_done| *is_done) => {}
            }
        }
    };
    let over_http = async {
        let Some((listener, announcement)) = socket else { return Ok(()) };
        tracing::info!(address = %listener.local_addr()?, "listening");
        service_manager::notify("READY=1");
        let end = end();
        let ends = async move {
            end.await;
            drop(announcement);
            gateway.announce_shutdown();
            service_manager::notify("STOPPING=1");
            // Load balancers need time to notice `/readyz`. Ctrl-C does not wait.
            if signals.is_terminated() {
                let delay = gateway.config().gateway.shutdown_delay;
                let seconds = delay.as_secs_f64();
                tracing::info!(seconds, "shutting down; `/readyz` returns 503 until then");
                tokio::time::sleep(delay).await;
            }
        };
        gateway.serve_http(listener, ends).await.map_err(|error| gateway_setup::config_failure(&error))
    };
    let over_stdio = async {
        if !stdio {
            return Ok(());
        }
        let handle = gateway.open().map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
        let served = tokio::select! {
            served = handle.serve_stdio() => served,
            () = end() => Ok(()),
        };
        // The client that started this process is gone.
        done.send_replace(true);
        served.map_err(|error| Failure::new(Code::Failed, error.to_string()))
    };
    let (http, stdio) = tokio::join!(over_http, over_stdio);
    gateway.close().await;
    http.and(stdio)
}
