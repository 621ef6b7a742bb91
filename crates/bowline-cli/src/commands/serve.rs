//! `bowline serve`: runs a built-in server over stdio or HTTP.

use crate::{
    auth_mode::{self, AuthArguments},
    builtin::Builtin,
    context::Context,
    failure::{Code, Failure},
    logging::{self, LogArguments},
    running_gateway,
    signals::ShutdownSignals,
    token::Access,
};
use bowline_host::gateway::RequireToken;
use bowline_http::{Body, HttpOptions, HttpService, Protect, RequestFilter};
use bowline_server::BoxFuture;
use bowline_stores::Store;
use bowline_telemetry::{CONTENT_TYPE, server_page};
use clap::Args;
use http::{HeaderValue, Method, Response, header, request::Parts};
use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};
use tokio::net::TcpListener;

/// Where clients reach the server.
const PATH: &str = "/mcp";

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    server: Builtin,
    /// Serve HTTP on this address instead of stdio; the endpoint is `/mcp`, and `/sse` for 2024-11-05 clients; `/metrics` serves
    /// Prometheus metrics
    #[arg(long, global = true, value_name = "[ADDRESS:]PORT", value_parser = running_gateway::address)]
    http: Option<SocketAddr>,
    /// Serve HTTP without requiring a token
    #[arg(long, global = true)]
    no_token: bool,
    #[command(flatten)]
    auth: AuthArguments,
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

impl Arguments {
    /// Returns the scopes that `--auth dev` requires; `None` without it. Fails if options contradict each other.
    fn check(&self) -> Result<Option<&[String]>, Failure> {
        let any_host = self.http_host.iter().any(|host| host == "*");
        if any_host && self.no_token {
            // Any web page could call the server by pointing a name at it.
            return Err(Failure::misused("`--http-host *` needs a token")
                .advise("remove `--no-token`, or name the hosts"));
        }
        self.auth.check(self.http, "--http", self.no_token)
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
    let dev_scopes = arguments.check()?.map(<[String]>::to_vec);
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
    let is_open = arguments.no_token || dev_scopes.is_some();
    let access = if is_open { Access::Open } else { Access::of_user(context)? };
    let signals = ShutdownSignals::listen()?;
    let bound = TcpListener::bind(address).await;
    let listener =
        bound.map_err(|error| Failure::new(Code::Failed, format!("cannot listen on {address}: {error}")))?;
    let address = listener.local_addr()?;
    match dev_scopes {
        Some(_) => context.screen.note(&auth_mode::notice(&running_gateway::url(address, PATH))),
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
    let is_protected = dev_scopes.is_some();
    if let Some(scopes) = dev_scopes {
        settings = settings.protect(Protect::dev().scopes(scopes));
    }
    settings = settings.listening_on(address).setting_names("--http-host", "--http-origin").sse_path("/sse");
    if !arguments.http_origin.is_empty() {
        settings = settings.origins(arguments.http_origin).cors();
    }
    if any_host {
        settings = settings.any_host();
    }
    let token = match access.token() {
        Some(token) => Some(
            RequireToken::new(token)
                .ok_or_else(|| Failure::new(Code::Failed, "the system provides no random numbers"))?,
        ),
        None => None,
    };
    let counters = Arc::new(OnceLock::new());
    // Access tokens are checked at the endpoint only, so there are no other pages beside it.
    if !is_protected {
        let store = handle.task_store().cloned();
        settings = settings.filter(Pages { token, store, counters: Arc::clone(&counters) });
    }
    let service = HttpService::with_options(handle, settings);
    let _ = counters.set(Counters {
        sessions: Box::new(service.session_counter()),
        streams: Box::new(service.stream_counter()),
    });
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

type Counter = Box<dyn Fn() -> usize + Send + Sync>;

/// Count what is open at the endpoint.
struct Counters {
    sessions: Counter,
    streams: Counter,
}

/// Requires the token, if there is one, and serves `/metrics`.
struct Pages {
    token: Option<RequireToken>,
    store: Option<Store>,
    counters: Arc<OnceLock<Counters>>,
}

impl RequestFilter for Pages {
    fn check<'a>(&'a self, request: &'a mut Parts) -> BoxFuture<'a, Option<Response<Body>>> {
        Box::pin(async move {
            if let Some(token) = &self.token
                && let Some(refusal) = token.check(request).await
            {
                return Some(refusal);
            }
            if request.uri.path() != "/metrics" || !matches!(request.method, Method::GET | Method::HEAD) {
                return None;
            }
            let Counters { sessions, streams } = self.counters.get()?;
            let page = server_page(sessions(), streams(), self.store.as_ref()).await;
            let mut response = Response::new(Body::from(page));
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE));
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            Some(response)
        })
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("token", &self.token).finish_non_exhaustive()
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
