//! `bowline gateway`: the host without a person, as a service or as the one server of another program.

use crate::{
    context::Context,
    ending::Ending,
    failure::{Code, Failure},
    hosting::{self, ConsentArguments, Hosting, Memory, Serving},
    logging::{self, LogArguments},
    running::{self, Told},
    token::Access,
};
use clap::Args;
use std::net::SocketAddr;
use tokio::net::TcpListener;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Serve the program that started this one, over standard input and output
    #[arg(long)]
    stdio: bool,
    /// Listen on this address instead of the one of the configuration; beside `--stdio`, listen as well
    #[arg(long, value_name = "[ADDRESS:]PORT", value_parser = running::address)]
    listen: Option<SocketAddr>,
    /// Do not start at all if anything is wrong with the configuration
    #[arg(long)]
    strict: bool,
    /// Let every program of this machine, or of the network, connect without a token
    #[arg(long)]
    no_token: bool,
    #[command(flatten)]
    consent: ConsentArguments,
    #[command(flatten)]
    log: LogArguments,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    arguments.log.start(context, "info", logging::aside())?;
    let config = context.surroundings.config();
    if hosting::is_absent(config) {
        let places: Vec<String> = config.files.iter().map(|file| format!("`{}`", file.display())).collect();
        return Err(Failure::new(
            Code::Config,
            format!("there is no configuration at {}", places.join(" or ")),
        )
        .advise("`bowline config import` takes over the servers of other programs on this computer")
        .advise("`bowline up` shows what it does without one"));
    }
    let ending = Ending::listen()?;
    let address = arguments.listen.unwrap_or(config.gateway.listen);
    let is_http = !arguments.stdio || arguments.listen.is_some();
    // Who talks over the standard streams started the program.
    let access = if is_http { Access::choose(context, config, arguments.no_token)? } else { Access::Open };
    let serving =
        Serving { listen: is_http.then_some(address), access: &access, consent: &arguments.consent };
    let hosting = Hosting::new(context, config.clone(), Memory::Kept, None, &serving)?;
    let complaints = [hosting.complaints(address), hosting.unapproved()].concat();
    if arguments.strict && !complaints.is_empty() {
        let sentence = "something is wrong with the configuration";
        return Err(Failure { advice: complaints, ..Failure::new(Code::Config, sentence) });
    }
    for complaint in &complaints {
        tracing::warn!("{complaint}");
    }
    for notice in hosting.notices() {
        tracing::info!("{notice}");
    }
    tracing::info!("{}", hosting.consent(false));
    let mut socket = None;
    if is_http {
        let bound = TcpListener::bind(address).await;
        let listener = bound
            .map_err(|error| Failure::new(Code::Failed, format!("cannot listen on {address}: {error}")))?;
        let told = announce(context, &hosting, &access, listener.local_addr()?);
        socket = Some((listener, told));
    }
    hosting.gateway.watch(context.surroundings.loader());
    hosting.reload_on_hangup(context.surroundings.loader())?;

    tokio::select! {
        ended = serve(&hosting, socket, arguments.stdio, &ending) => ended,
        () = ending.times(2) => {
            Err(Failure { silent: true, ..Failure::new(Code::Interrupted, "ended at once") })
        }
    }
}

/// Says what clients have to send, and tells the other commands of this user where the gateway is.
fn announce(context: &Context, hosting: &Hosting, access: &Access, address: SocketAddr) -> Option<Told> {
    match access {
        Access::Variable { name, .. } => tracing::info!("clients have to send the token in `{name}`"),
        Access::User { .. } => {
            tracing::info!("clients have to send the token that `bowline token show` prints");
        }
        Access::Run { token, reason } => {
            context
                .screen
                .aside(&format!("{reason}; until this gateway ends, clients send the token {token}"));
        }
        Access::Open => {
            tracing::warn!("every program that can connect may use this gateway: it has no token");
        }
    }
    let told = running::tell(context, hosting, access, address);
    told.inspect_err(|error| tracing::warn!(%error, "other commands have to be given the URL")).ok()
}

/// Serves both until the client at the standard streams is done or the program is told to end.
async fn serve(
    hosting: &Hosting,
    socket: Option<(TcpListener, Option<Told>)>,
    stdio: bool,
    ending: &Ending,
) -> Result<(), Failure> {
    let gateway = &hosting.gateway;
    let (done, is_done) = tokio::sync::watch::channel(false);
    let end = || {
        let mut is_done = is_done.clone();
        async move {
            tokio::select! {
                () = ending.times(1) => {}
                _ = is_done.wait_for(|is_done| *is_done) => {}
            }
        }
    };
    let over_http = async {
        let Some((listener, told)) = socket else { return Ok(()) };
        tracing::info!(address = %listener.local_addr()?, "listening");
        let end = end();
        let ends = async move {
            end.await;
            drop(told);
            gateway.announce_end();
            // Load balancers need a moment to see that `/readyz` has changed. Nobody waits for Ctrl-C that long.
            if ending.is_terminated() {
                let delay = gateway.config().gateway.shutdown_delay;
                tracing::info!(?delay, "terminated; `/readyz` now answers 503");
                tokio::time::sleep(delay).await;
            }
        };
        gateway.serve_http(listener, ends).await.map_err(|error| hosting::refused(&error))
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
        // Whoever started the program has gone, and with it the reason to run.
        done.send_replace(true);
        served.map_err(|error| Failure::new(Code::Failed, error.to_string()))
    };
    let (http, stdio) = tokio::join!(over_http, over_stdio);
    gateway.close().await;
    http.and(stdio)
}
