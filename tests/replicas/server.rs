//! One of several processes behind a balancer: `replica PORT STORE HISTORY NODE LEASE_MS BROKEN`. The user is what the header `x-user`
//! says.
//!
//! BROKEN is `no`, or what this process does wrong, to see that the checker notices: `values` (steps are not recorded), `users` (everybody
//! is the same user), `memory` (tasks are kept in the process).

mod notes;

use bowline::{
    http::{Body, HttpOptions, HttpService, Principal, RequestFilter, SessionStore},
    prelude::*,
    server::{BoxFuture, HandlerError, Key, KeyRing},
    store::{Store, StoreOptions},
};
use bowline_testing::history::Event;
use http::{Response, request::Parts};
use notes::{Run, is_broken, note, unique};
use std::{net::Ipv4Addr, path::Path, time::Duration};
use tokio::{net::TcpListener, signal::unix::SignalKind, time::sleep};

/// Believes the balancer, which is enough to see whether something crosses users.
#[derive(Debug)]
struct Users;

impl RequestFilter for Users {
    fn check_any_host(&self, request: &Parts) -> Option<Response<Body>> {
        (request.uri.path() == "/livez").then(|| Response::new(Body::from("ok\n")))
    }

    fn check<'a>(&'a self, request: &'a mut Parts) -> BoxFuture<'a, Option<Response<Body>>> {
        if let Some(user) = request.headers.get("x-user").and_then(|user| user.to_str().ok()) {
            let user = if is_broken("users") { "everybody" } else { user };
            request.extensions.insert(Principal(user.into()));
        }
        Box::pin(std::future::ready(None))
    }
}

#[data]
struct Sure {
    sure: bool,
}

fn user(ctx: &Ctx) -> String {
    ctx.client().principal.as_deref().unwrap_or("nobody").to_owned()
}

/// Who calls.
#[tool]
fn whoami(ctx: Ctx) -> String {
    user(&ctx)
}

/// Counts, and says how far it is.
#[tool]
async fn count(ctx: Ctx, label: String, steps: u32) -> String {
    for step in 1..=steps {
        ctx.progress_with(f64::from(step), f64::from(steps), format!("{label}:{step}"));
        sleep(Duration::from_millis(120)).await;
    }
    format!("{label} for {}", user(&ctx))
}

/// Asks, and says that it was answered.
#[tool]
async fn confirm(ctx: Ctx, label: String) -> Result<String> {
    let Sure { .. } = ctx.ask(format!("Go on with {label}?")).await?.accepted()?;
    note(Event::StateUsed { state: format!("{label} of {}", user(&ctx)), call: unique() });
    Ok(format!("{label} for {}", user(&ctx)))
}

/// Runs a step and returns how it shows in the result. Its effect and the use of its value are noted.
async fn step(ctx: &Ctx, run: &Run, name: &str) -> Result<String, HandlerError> {
    let names = || (run.task().to_owned(), name.to_owned());
    let work = async {
        let (task, step) = names();
        note(Event::StepRan { task, step });
        Result::<_>::Ok(unique())
    };
    let value: String = if is_broken("values") { work.await? } else { ctx.once(name, work).await? };
    let (task, step) = names();
    note(Event::StepUsed { task, step, value: value.clone() });
    Ok(format!(" {name}={value}"))
}

fn run(ctx: &Ctx) -> Result<Run> {
    ctx.task_id().map(Run::start).ok_or_else(|| Error::tool("this tool is tested as a task"))
}

/// Works in steps.
#[tool(task, idempotent)]
async fn work(ctx: Ctx, label: String, steps: u32) -> Result<String> {
    let run = run(&ctx)?;
    let mut text = format!("{label} for {}", user(&ctx));
    for number in 1..=steps {
        text += &step(&ctx, &run, &format!("part{number}")).await?;
        sleep(Duration::from_millis(100)).await;
    }
    Ok(text)
}

/// Asks between two steps.
#[tool(task, idempotent)]
async fn decide(ctx: Ctx, label: String) -> Result<String> {
    let run = run(&ctx)?;
    let before = step(&ctx, &run, "before").await?;
    let Sure { sure } = ctx.ask(format!("Go on with {label}?")).await?.accepted()?;
    let after = step(&ctx, &run, "after").await?;
    Ok(format!("{label} for {}{before} sure={sure}{after}", user(&ctx)))
}

/// Waits between two steps, without running.
#[tool(task, idempotent)]
async fn rest(ctx: Ctx, label: String) -> Result<String> {
    let run = run(&ctx)?;
    let before = step(&ctx, &run, "before").await?;
    ctx.sleep(Duration::from_millis(5500)).await?;
    let after = step(&ctx, &run, "after").await?;
    Ok(format!("{label} for {}{before}{after}", user(&ctx)))
}

/// Has an effect that must not happen twice.
#[tool(task)]
async fn fragile(ctx: Ctx, label: String) -> Result<String> {
    let run = run(&ctx)?;
    let before = step(&ctx, &run, "before").await?;
    sleep(Duration::from_millis(200)).await;
    let after = step(&ctx, &run, "after").await?;
    Ok(format!("{label} for {}{before}{after}", user(&ctx)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, store, history, node, lease, broken] = &arguments[..] else {
        return Err(Error::tool("usage: replica PORT STORE HISTORY NODE LEASE_MS BROKEN"));
    };
    notes::begin(Path::new(history), node, broken)?;
    let keys = KeyRing::new(Key::new([42; 32]));
    let store = StoreOptions::new(store).keys(keys.clone()).open().await;
    let store = store.map_err(|error| Error::tool(error.to_string()))?;
    let sessions = SessionStore::of(&store);
    let kept_in = if is_broken("memory") { Store::memory() } else { store };
    // The processes have different arguments, by which their tasks would be kept apart.
    let tasks = Tasks::new(kept_in).space("replica").lease(Duration::from_millis(lease.parse()?));
    let server = Server::new("replica").keys(keys).tasks(tasks);
    let server = server.tool(whoami::tool()).tool(count::tool()).tool(confirm::tool());
    let server = server.tool(work::tool()).tool(decide::tool()).tool(rest::tool()).tool(fragile::tool());
    let options = HttpOptions::new().filter(Users).session_store(sessions).drain(Duration::from_secs(5));
    let service = HttpService::with_options(server.build()?, options);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse::<u16>()?)).await?;
    let mut terminate = tokio::signal::unix::signal(SignalKind::terminate())?;
    let end = async move {
        terminate.recv().await;
    };
    service.serve(listener, end).await?;
    Ok(())
}
