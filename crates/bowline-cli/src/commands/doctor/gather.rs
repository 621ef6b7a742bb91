//! Collects facts about a server: tries every revision, reads its lists and sends probes.

use super::facts::{Answer, Call, Facts, List, ListKind, Probe, ProbeKind, Process, Seen};
use crate::{
    context::Context,
    failure::{Code, Failure},
    target::{PROBE_TIMEOUT, Target},
};
use bowline_client::{Child, Client, Direction, Stream};
use bowline_inspector::CheckWatch;
use bowline_types::{RawJson, Revision, error_code::MISSING_CLIENT_CAPABILITY};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// How long a program may take to exit by itself.
const END: Duration = Duration::from_secs(5);
/// The maximum number of pages of a list.
const PAGES: usize = 200;

/// Options of the collection.
#[derive(Clone, Debug)]
pub(super) struct GatherOptions {
    pub(super) timeout: Duration,
    /// Shows the messages in the inspector.
    pub(super) watch: Option<CheckWatch>,
    /// Whether read-only tools without required arguments are called.
    pub(super) call: bool,
}

/// The frames so far, and when the first one was received.
#[derive(Debug, Default)]
struct Watch {
    frames: Vec<Seen>,
    first: Option<Instant>,
}

struct Session {
    client: Client,
    child: Option<Child>,
    watch: Arc<Mutex<Watch>>,
    start: Instant,
    opened: Duration,
}

pub(super) async fn gather(
    target: &Target,
    context: &Context,
    options: &GatherOptions,
) -> Result<Facts, Failure> {
    let session = open(target, context, options, None).await?;
    let client = &session.client;
    let agreed = client.server();
    let capabilities = serde_json::to_value(&agreed.capabilities).unwrap_or_default();
    let start = Instant::now();
    let ping = client.ping().await;
    let ping_time = ping.is_ok().then(|| start.elapsed());
    let mut lists = Vec::new();
    for kind in ListKind::ALL {
        lists.push(list(client, kind, capabilities.get(kind.capability()).is_some()).await);
    }
    let mut calls = Vec::new();
    if options.call {
        calls = call(client, &lists).await;
    }
    let probes = probe(client, &capabilities, agreed.revision).await;
    let noise = client.noise();
    let opened = session.opened;
    let (watch, process) = end(session).await;
    let mut revisions = Vec::new();
    for revision in Revision::ALL {
        let tried = if revision == agreed.revision {
            Ok(revision)
        } else {
            match open(target, context, options, Some(revision)).await {
                Ok(session) => {
                    let agreed = session.client.revision();
                    end(session).await;
                    Ok(agreed)
                }
                Err(failure) => Err(failure.sentence),
            }
        };
        revisions.push((revision, tried));
    }
    Ok(Facts {
        info: agreed.server_info.as_ref().map(|info| (info.name.clone(), info.version.clone())),
        revision: agreed.revision,
        revisions,
        capabilities,
        instructions: agreed.instructions.clone(),
        first_frame: watch.first,
        opened,
        ping: ping_time,
        frames: watch.frames,
        noise,
        process,
        lists,
        probes,
        calls,
        http: Vec::new(),
        authorization: None,
    })
}

/// Connects to the server. Programs are started here, so that their process can be observed.
async fn open(
    target: &Target,
    context: &Context,
    options: &GatherOptions,
    revision: Option<Revision>,
) -> Result<Session, Failure> {
    let watch = Arc::new(Mutex::new(Watch::default()));
    let (frames, seen) = (context.frames(), Arc::clone(&watch));
    let shown = options.watch.as_ref().map(CheckWatch::connection);
    let patient = context.client().timeout(options.timeout).probe_timeout(PROBE_TIMEOUT.min(options.timeout));
    let mut builder = patient.on_frame(move |direction, frame| {
        frames.show(direction, frame);
        let number = shown.as_ref().map(|shown| shown.frame(direction, frame));
        let mut watch = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(frame) = serde_json::from_slice(frame) {
            if direction == Direction::Received {
                watch.first.get_or_insert_with(Instant::now);
            }
            watch.frames.push(Seen { direction, frame, number });
        }
    });
    if let Some(revision) = revision {
        builder = builder.revisions([revision]);
    }
    let start = Instant::now();
    let Some(program) = target.program() else {
        let client = target.clone().connect(context, builder).await?;
        return Ok(Session { client, child: None, watch, start, opened: start.elapsed() });
    };
    let started = |reason: String| Failure::new(Code::Unreachable, reason);
    let mut child = program.spawn().map_err(|error| started(error.to_string()))?;
    let (Some(read), Some(write)) = (child.take_stdout(), child.take_stdin()) else {
        return Err(started("cannot open pipes to the program".into()));
    };
    match builder.connect(Stream::new(read, write)).await {
        Ok(client) => Ok(Session { client, child: Some(child), watch, start, opened: start.elapsed() }),
        Err(error) if error.is_closed() => Err(started(child.failure().await.to_string())),
        Err(error) => Err(error.into()),
    }
}

struct Watched {
    frames: Vec<Seen>,
    first: Option<Duration>,
}

/// Closes standard input and observes how the program exits.
async fn end(session: Session) -> (Watched, Option<Process>) {
    let Session { client, child, watch, start, .. } = session;
    client.close().await;
    let process = match child {
        Some(mut child) => {
            let closed = Instant::now();
            let exit = timeout(END, child.wait()).await.ok();
            let ended = exit.map(|exit| (closed.elapsed(), exit));
            child.shutdown().await;
            Some(Process { stderr_lines: child.stderr_tail().lines().count(), ended })
        }
        None => None,
    };
    let watch = std::mem::take(&mut *watch.lock().unwrap_or_else(PoisonError::into_inner));
    (Watched { frames: watch.frames, first: watch.first.map(|first| first - start) }, process)
}

async fn ask(client: &Client, method: &str, params: Value) -> Answer {
    match client.request::<RawJson>(method, RawJson::from(params)).await {
        Ok(result) => result.to_value().map_or_else(|error| Answer::None(error.to_string()), Answer::Result),
        Err(error) => match error.as_rpc() {
            Some(rpc) => Answer::Error { code: rpc.code, message: rpc.message.to_string() },
            None => Answer::None(error.to_string()),
        },
    }
}

/// Reads a whole list, even if it was not declared.
async fn list(client: &Client, kind: ListKind, declared: bool) -> List {
    let mut list = List { kind, declared, items: Vec::new(), failed: None };
    let mut params = json!({});
    for _ in 0..PAGES {
        let mut page = match ask(client, kind.method(), params).await {
            Answer::Result(page) => page,
            other => {
                list.failed = Some(other);
                return list;
            }
        };
        let Some(Value::Array(items)) = page.get_mut(kind.member()).map(Value::take) else {
            list.failed = Some(Answer::None(format!("the result has no array `{}`", kind.member())));
            return list;
        };
        list.items.extend(items);
        match page.get("nextCursor") {
            None | Some(Value::Null) => return list,
            Some(cursor) => params = json!({ "cursor": cursor }),
        }
    }
    list.failed = Some(Answer::None(format!("more than {PAGES} pages")));
    list
}

/// Sends requests with known correct responses.
async fn probe(client: &Client, capabilities: &Value, revision: Revision) -> Vec<Probe> {
    let has = |capability: &str| capabilities.get(capability).is_some();
    let nobody = "bowline-doctor-nobody";
    let mut asked = Vec::new();
    if revision.is_legacy() {
        asked.push((ProbeKind::Ping, "ping", json!({})));
    }
    asked.push((ProbeKind::UnknownMethod, "bowline/doctor", json!({})));
    if has("tools") {
        asked.push((ProbeKind::CallWithoutName, "tools/call", json!({})));
        asked.push((ProbeKind::UnknownTool, "tools/call", json!({ "name": nobody, "arguments": {} })));
    }
    if has("prompts") {
        asked.push((ProbeKind::UnknownPrompt, "prompts/get", json!({ "name": nobody })));
    }
    if has("resources") {
        let uri = format!("{nobody}://nowhere");
        asked.push((ProbeKind::UnknownResource, "resources/read", json!({ "uri": uri })));
    }
    for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
        if has(kind.capability()) {
            asked.push((ProbeKind::BadCursor(kind), kind.method(), json!({ "cursor": nobody })));
        }
    }
    let alive = if revision.is_legacy() { "ping" } else { "server/discover" };
    asked.push((ProbeKind::AliveAfterwards, alive, json!({})));
    let mut probes = Vec::new();
    for (kind, method, params) in asked {
        probes.push(Probe { kind, answer: ask(client, method, params).await });
    }
    probes
}

/// Calls the tools that are declared read-only and need no arguments.
async fn call(client: &Client, lists: &[List]) -> Vec<Call> {
    // The client validates results against the schemas in its own list.
    let Ok(tools) = client.tools().await else { return Vec::new() };
    let listed: Vec<String> = lists
        .iter()
        .filter(|list| list.kind == ListKind::Tools)
        .flat_map(|list| &list.items)
        .filter(|tool| tool.pointer("/annotations/readOnlyHint") == Some(&json!(true)))
        .filter(|tool| {
            tool.pointer("/inputSchema/required").and_then(Value::as_array).is_none_or(Vec::is_empty)
        })
        .filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned))
        .filter(|name| tools.iter().any(|tool| tool.name == *name))
        .collect();
    let mut calls = Vec::new();
    for tool in listed {
        let failed = match client.call(&tool, json!({})).await {
            Ok(_) => None,
            // The server may require capabilities that this client does not declare.
            Err(error) if error.as_rpc().is_some_and(|error| error.code == MISSING_CLIENT_CAPABILITY) => None,
            Err(error) => Some(error.to_string()),
        };
        calls.push(Call { tool, failed });
    }
    calls
}
