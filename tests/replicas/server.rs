//! One of several processes behind a balancer: `replica PORT STORE HISTORY`. The user is what the header `x-user` says.

use bowline::{
    http::{Body, HttpOptions, HttpService, Principal, RequestFilter},
    prelude::*,
    server::{BoxFuture, Key, KeyRing},
};
use bowline_tests::stores;
use http::{Response, request::Parts};
use schemars::JsonSchema;
use serde::Deserialize;
use std::{io::Write, net::Ipv4Addr, sync::Arc, time::Duration};
use tokio::{net::TcpListener, signal::unix::SignalKind};

/// Believes the balancer, which is enough to see whether something crosses users.
#[derive(Debug)]
struct Users;

impl RequestFilter for Users {
    fn check_any_host(&self, request: &Parts) -> Option<Response<Body>> {
        (request.uri.path() == "/livez").then(|| Response::new(Body::from("ok\n")))
    }

    fn check<'a>(&'a self, request: &'a mut Parts) -> BoxFuture<'a, Option<Response<Body>>> {
        if let Some(user) = request.headers.get("x-user").and_then(|user| user.to_str().ok()) {
            request.extensions.insert(Principal(user.into()));
        }
        Box::pin(std::future::ready(None))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    label: String,
    steps: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    label: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    sure: bool,
}

fn user(ctx: &Ctx) -> String {
    ctx.client().principal.as_deref().unwrap_or("nobody").to_owned()
}

fn server(history: Arc<std::fs::File>) -> Server {
    Server::new("replica")
        .keys(KeyRing::new(Key::new([42; 32])))
        .tool(Tool::new("whoami").handler(|ctx: Ctx| user(&ctx)))
        .tool(Tool::new("count").handler(|ctx: Ctx, Count { label, steps }: Count| async move {
            for step in 1..=steps {
                ctx.progress_with(f64::from(step), f64::from(steps), format!("{label}:{step}"));
                tokio::time::sleep(Duration::from_millis(120)).await;
            }
            format!("{label} for {}", user(&ctx))
        }))
        .tool(Tool::new("confirm").handler(move |ctx: Ctx, Confirm { label }: Confirm| {
            let history = Arc::clone(&history);
            async move {
                let Sure { sure } = ctx.ask(format!("Go on with {label}?")).await?.accepted()?;
                // One write, so that lines of several processes do not mix.
                let line =
                    format!("{{\"confirmed\":\"{label}\",\"user\":\"{}\",\"sure\":{sure}}}\n", user(&ctx));
                (&*history).write_all(line.as_bytes())?;
                bowline::Result::<_>::Ok(format!("{label} for {}", user(&ctx)))
            }
        }))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, store, history] = &arguments[..] else {
        return Err(Error::tool("usage: replica PORT STORE HISTORY"));
    };
    let history = std::fs::OpenOptions::new().append(true).create(true).open(history)?;
    let store = stores::open(store).await?;
    let options = HttpOptions::new().filter(Users).session_store(store).drain(Duration::from_secs(5));
    let service = HttpService::with_options(server(Arc::new(history)).build()?, options);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse::<u16>()?)).await?;
    let mut terminate = tokio::signal::unix::signal(SignalKind::terminate())?;
    let end = async move {
        terminate.recv().await;
    };
    service.serve(listener, end).await?;
    Ok(())
}
