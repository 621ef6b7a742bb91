//! `bowline serve`: runs a built-in server over stdio or HTTP.

use crate::{
    builtin::Builtin,
    context::Context,
    failure::{Code, Failure},
    logging::{self, LogArguments},
    running_gateway,
    signals::ShutdownSignals,
    token::Access,
};
use bowline_host::gateway::RequireToken;
use bowline_http::{HttpOptions, HttpService, Protect};
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Where clients reach the server.
const PATH: &str = "/mcp";

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    server: Builtin,
    /// Serve HTTP on this address instead of stdio; the endpoint is `/mcp`, and `/sse` for 2024-11-05 clients
    #[arg(long, global = true, value_name = "[ADDRESS:]PORT", value_parser = running_gateway::address)]
    http: Option<SocketAddr>,
    /// Serve HTTP without requiring a token
    #[arg(long, global = true)]
    no_token: bool,
    /// With `--http`, require a login instead of the token: `dev` issues tokens itself, on a loopback address only
    #[arg(long, global = true, value_name = "MODE")]
    auth: Option<AuthMode>,
    /// With `--auth`, require this scope for every request; can be repeated
    #[arg(long, global = true, value_name = "SCOPE")]
    auth_scope: Vec<String>,
    /// Also allow requests for this host, in addition to `localhost` and the `--http` address; `*` allows any host; can be
    /// repeated
    #[arg(long, global = true, value_name = "HOST", value_parser = host)]
    http_host: Vec<String>,
    /// Allow web pages of this origin to use the HTTP server (CORS); can be repeated
    #[arg(long, global = true, value_name = "ORIGIN", value_parser = origin)]
    http_origin: Vec<String>,
    /// The maximum number of calls per minute for each caller; 0 means no limit
    #[arg(long, global = true, value_name = "COUNT", default_value_t = bowline_servers::CALLS_PER_MINUTE)]
    calls_per_minute: u32,
    #[command(flatten)]
    log: LogArguments,
}

/// Who issues the tokens of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AuthMode {
    /// An authorization server for development, on the same address
    Dev,
}

impl Arguments {
    /// Fails if options contradict each other.
    fn check(&self) -> Result<(), Failure> {
        let any_host = self.http_host.iter().any(|host| host == "*");
        if any_host && self.no_token {
            // Any web page could call the server by pointing a name at it.
            return Err(Failure::misused("`--http-host *` needs a token")
                .advise("remove `--no-token`, or name the hosts"));
        }
        let Some(AuthMode::Dev) = self.auth else {
            if self.auth_scope.is_empty() {
                return Ok(());
            }
            return Err(Failure::misused("`--auth-scope` needs `--auth dev`"));
        };
        if self.no_token {
            return Err(Failure::misused("`--no-token` conflicts with `--auth dev`")
                .advise("remove `--no-token`: with `--auth`, clients need no static token"));
        }
        match self.http {
            None => Err(Failure::misused("`--auth dev` needs `--http`")
                .advise("add `--http PORT`; a client that starts the server over stdio needs no login")),
            Some(address) if !address.ip().is_loopback() => {
                let sentence = format!("`--auth dev` works only on a loopback address, not on {address}");
                Err(Failure::misused(sentence).advise("use `--http PORT`, which listens on 127.0.0.1"))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Parses a host, or `*` for any host.
fn host(text: &str) -> Result<String, String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if text == "*" {
        return Ok(text.to_owned());
    }
    if text.is_empty() || !text.bytes().all(is_part) {
        return Err("expected a host such as `mcp.example.com`".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses an origin in the format that browsers send.
fn origin(text: &str) -> Result<String, String> {
    let is_origin = text.split_once("://").is_some_and(|(_, name)| name != "*" && host(name).is_ok());
    if is_origin {
        Ok(text.to_owned())
    } else {
        Err("expected an origin such as `https://app.example.com`".to_owned())
    }
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    arguments.log.start(context, "warn", logging::to_stderr())?;
    arguments.check()?;
    let any_host = arguments.http_host.iter().any(|host| host == "*");
    arguments.server.confirm(context).await?;
    let server = arguments.server.limited_server(context, arguments.calls_per_minute)?;
    let handle = server.build().map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
    let Some(address) = arguments.http else {
        if context.environment.terminal {
            context.screen.note(
                "serving MCP on standard input and output; clients usually start this program themselves. Press Ctrl-D to exit, \
                 or use `--http PORT` to serve HTTP",
            );
        }
        return handle.serve_stdio().await.map_err(|error| Failure::new(Code::Failed, error.to_string()));
    };
    let is_open = arguments.no_token || arguments.auth.is_some();
    let access = if is_open { Access::Open } else { Access::of_user(context)? };
    let signals = ShutdownSignals::listen()?;
    let bound = TcpListener::bind(address).await;
    let listener =
        bound.map_err(|error| Failure::new(Code::Failed, format!("cannot listen on {address}: {error}")))?;
    let address = listener.local_addr()?;
    match arguments.auth {
        Some(AuthMode::Dev) => context.screen.note(&format!(
            "clients must log in, such as with `bowline login {}`; anyone on this machine can",
            running_gateway::url(address, PATH)
        )),
        None => print_access(context, &access, address),
    }
    let announcement = match running_gateway::announce_server(context, &access, address, PATH) {
        Ok(announcement) => Some(announcement),
        Err(error) => {
            context.screen.warn(&format!("other commands cannot find the token of this server: {error}"));
            None
        }
    };
    context.screen.line(&running_gateway::url(address, PATH))?;
    if address.ip().is_unspecified() && arguments.http_host.is_empty() {
        context
            .screen
            .warn("only requests for `localhost` are allowed; use `--http-host HOST` to allow others");
    }
    let mut settings = HttpOptions::new().path(PATH).hosts(arguments.http_host);
    if arguments.auth.is_some() {
        settings = settings.protect(Protect::dev().scopes(arguments.auth_scope));
    }
    settings = settings.listening_on(address).setting_names("--http-host", "--http-origin").sse_path("/sse");
    if !arguments.http_origin.is_empty() {
        settings = settings.origins(arguments.http_origin).cors();
    }
    if any_host {
        settings = settings.any_host();
    }
    if let Some(token) = access.token() {
        let required = RequireToken::new(token)
            .ok_or_else(|| Failure::new(Code::Failed, "the system provides no random numbers"))?;
        settings = settings.filter(required);
    }
    let service = HttpService::with_options(handle, settings);
    let end = async {
        signals.received(1).await;
        drop(announcement);
    };
    tokio::select! {
        served = service.serve(listener, end) => Ok(served?),
        () = signals.received(2) => {
            Err(Failure { silent: true, ..Failure::new(Code::Interrupted, "terminated") })
        }
    }
}

/// Prints what clients must send.
fn print_access(context: &Context, access: &Access, address: SocketAddr) {
    let screen = &context.screen;
    match access {
        Access::Run { token, reason } => {
            screen.note(&format!("{reason}; clients must send this token until the server ends: {token}"));
        }
        Access::User { .. } | Access::Variable { .. } | Access::Issuers => {
            screen.note("clients must send the token that `bowline token show` prints");
        }
        Access::Open if address.ip().is_loopback() => {
            screen.warn("any program on this machine can use this server: it requires no token");
        }
        Access::Open => {
            screen.warn(&format!("other machines can connect to {address} without a token"));
        }
    }
}
