//! Answers queries. They read and change nothing.

use crate::{
    answers,
    buffer::now,
    checks, copy,
    events::{Head, Kind, Leg},
    form::{check, plan, plan_of_arguments},
    inspector::{Attached, Shared},
    keys::Holder,
    query::{
        CheckRequest, Checked, Entries, Entry, ErrorView, Grade, HeadsPage, ItemKind, ItemName, Message,
        Mode, Overview, Query, ResultView, ServerDetail, ServerEntries, ServerState, ServerSummary, TryCall,
        Verdict,
    },
    render::{Shown, content_parts, prompt_messages, resource_parts, table},
    rules,
    service::{Failure, reply},
};
use bowline_host::{Health, ServerOffer, UpstreamStatus, gateway::EntryState};
use bowline_http::Body;
use bowline_policy::audit::Redactor;
use bowline_proto::uri::UriTemplate;
use bowline_types::{RawJson, Revision, Tool, ToolAnnotations};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

/// How many heads a page has at most.
const MAX_HEADS: usize = 10_000;
/// How much of a body is sent unless all of it is wanted.
const MAX_TEXT: usize = 64 * 1024;
/// How many lines of output are shown with a failed call.
const MAX_OUTPUT: usize = 20;

/// Answers a query.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    holder: Holder,
    query: Query,
) -> Result<Response<Body>, Failure> {
    let ok = StatusCode::OK;
    Ok(match query {
        Query::Overview => reply(ok, &overview(shared, holder).await?),
        Query::Server { server } => reply(ok, &server_detail(shared, &server).await?),
        Query::Entries => reply(ok, &entries(shared).await?),
        Query::Form(item) => {
            let (schema, arguments) = schema_of(shared, &item).await?;
            let plan = match arguments {
                Some(arguments) => plan_of_arguments(
                    arguments
                        .iter()
                        .map(|(name, about, required)| (name.as_str(), about.as_deref(), *required)),
                ),
                None => plan(&schema),
            };
            reply(ok, &plan)
        }
        Query::Check(CheckRequest { server, kind, name, value }) => {
            let (schema, arguments) = schema_of(shared, &ItemName { server, kind, name }).await?;
            let schema = match arguments {
                Some(arguments) => text_schema(&arguments),
                None => schema,
            };
            let invalid = |error: serde_json::Error| Failure::invalid(error.to_string());
            let schema = RawJson::of(&schema).map_err(invalid)?;
            let value = RawJson::parse(value.get().to_owned()).map_err(invalid)?;
            reply(ok, &Checked { problems: check(&schema, &value) })
        }
        Query::Calls { after, limit } => {
            let limit = limit.unwrap_or(MAX_HEADS).min(MAX_HEADS);
            let (window, _) = shared.recorder.window(after, u64::MAX, limit);
            reply(ok, &HeadsPage { heads: window.heads, more: window.more, gap: window.gap })
        }
        Query::Call { call } => {
            let tree = shared.recorder.tree(call).ok_or_else(|| not_kept(call))?;
            reply(ok, &tree)
        }
        Query::Message { seq, all } => reply(ok, &message(shared, seq, all)?),
        Query::Result { call } => reply(ok, &result(shared, call).await?),
        Query::Find { text, before } => {
            let (recorder, redactor) = (shared.recorder.clone(), shared.redactor.clone());
            let failed = |error: String| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error);
            let turn = Arc::clone(&shared.searches).acquire_owned().await;
            let turn = turn.map_err(|error| failed(error.to_string()))?;
            // Many megabytes are read and masked, which other requests must not wait for.
            let found = tokio::task::spawn_blocking(move || {
                // Held until the end, also if the browser does not wait for it.
                let _turn = turn;
                recorder.find(&text, before, &redactor)
            });
            reply(ok, &found.await.map_err(|error| failed(error.to_string()))?)
        }
        Query::Inbox => reply(ok, &shared.questions.inbox(holder.grade)),
        Query::Copy { seq, form } => reply(ok, &copy::copy(shared, seq, form)?),
        Query::Rules => reply(ok, &rules::rules(shared)?),
        Query::Decide(request) => reply(ok, &rules::decide(shared, request).await?),
        Query::Pins => reply(ok, &rules::pins(shared).await?),
        Query::Checks { server } => reply(ok, &checks::view(shared, &server)?),
        Query::Answers => reply(ok, &answers::answers(shared).await?),
        Query::Audit(request) => reply(ok, &rules::audit(shared, holder.grade, request).await?),
    })
}

pub(crate) fn not_kept(seq: u64) -> Failure {
    Failure::not_found(format!("message {seq} is not in the buffer any more"))
}

pub(crate) fn attached(shared: &Shared) -> Result<&Attached, Failure> {
    shared.attached.get().ok_or_else(|| match shared.options.mode {
        Mode::Folder => {
            Failure::new(StatusCode::CONFLICT, "these messages were kept earlier; there are no servers here")
        }
        Mode::Up | Mode::Inspect | Mode::Gateway => {
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, "the host is starting")
        }
    })
}

async fn overview(shared: &Shared, holder: Holder) -> Result<Overview, Failure> {
    let (mut servers, mut offers) = (Vec::new(), Vec::new());
    if shared.options.mode != Mode::Folder {
        let attached = attached(shared)?;
        offers = attached.host.offers().await;
        servers = summaries(shared, attached, &offers);
    }
    servers.sort_by_key(|server| {
        (!matches!(server.state, ServerState::Failed | ServerState::Invalid), server.name.clone())
    });
    let (connect, given) = shared.connect.get().cloned().unwrap_or_default();
    let try_call = given.or_else(|| shared.options.try_call.clone()).or_else(|| suggestion(&offers));
    Ok(Overview {
        run: shared.run.clone(),
        version: shared.options.version.clone(),
        mode: shared.options.mode,
        grade: holder.grade,
        can_ask_control: holder.grade == Grade::View && shared.terminal.get().is_some(),
        started: shared.started,
        now: now(),
        changed: shared.recorder.changed(),
        buffer: shared.recorder.buffer(),
        servers,
        clients: shared.recorder.clients(),
        // They contain the token of the gateway, which could call tools.
        connect: match holder.grade {
            Grade::View => Vec::new(),
            Grade::Control if connect.is_empty() => shared.options.connect.clone(),
            Grade::Control => connect,
        },
        try_call,
        waiting: shared.questions.waiting(),
        revisions: Revision::ALL.map(|revision| revision.as_str().to_owned()).into(),
    })
}

/// Returns the read-only tool with the fewest required arguments.
fn suggestion(offers: &[ServerOffer]) -> Option<TryCall> {
    let tools = offers.iter().flat_map(|offer| offer.tools.iter().map(move |tool| (offer, tool)));
    let read_only = tools.filter(|(_, tool)| {
        tool.shown.annotations.as_ref().is_some_and(|annotations| annotations.read_only_hint == Some(true))
    });
    let (offer, tool) = read_only.min_by_key(|(_, tool)| required(&tool.shown))?;
    let schema = RawJson::of(&tool.shown.input_schema).ok()?.to_value().ok()?;
    Some(TryCall::new(&offer.server, &tool.original, plan(&schema).value))
}

fn required(tool: &Tool) -> usize {
    let schema = RawJson::of(&tool.input_schema).ok().and_then(|schema| schema.to_value().ok());
    schema.and_then(|schema| schema.get("required")?.as_array().map(Vec::len)).unwrap_or(0)
}

fn summaries(shared: &Shared, attached: &Attached, offers: &[ServerOffer]) -> Vec<ServerSummary> {
    let tokens = |name: &str| {
        let offer = offers.iter().find(|offer| offer.server == name)?;
        (!offer.tools.is_empty()).then(|| offer.tools.iter().map(|tool| tool_tokens(&tool.shown)).sum())
    };
    let mut summaries: Vec<ServerSummary> = attached
        .host
        .status()
        .iter()
        .map(|status| summary(status, tokens(&status.name), &shared.redactor))
        .collect();
    for name in attached.host.names() {
        if !summaries.iter().any(|summary| summary.name == name) {
            summaries.push(empty(&name, ServerState::Idle, None));
        }
    }
    for entry in attached.gateway.iter().flat_map(bowline_host::Gateway::status) {
        let (state, reason) = match &entry.state {
            EntryState::Active => continue,
            EntryState::Disabled => (ServerState::Disabled, None),
            EntryState::NeedsApproval(_) => (ServerState::NeedsApproval, None),
            EntryState::Broken(reason) => (ServerState::Invalid, Some(reason.clone())),
            other => (ServerState::Invalid, Some(format!("{other:?}"))),
        };
        summaries.retain(|summary| summary.name != entry.name);
        let reason = reason.map(|reason| shared.redactor.text(&reason));
        summaries.push(empty(&entry.name, state, reason.as_deref()));
    }
    summaries
}

fn empty(name: &str, state: ServerState, reason: Option<&str>) -> ServerSummary {
    ServerSummary {
        name: name.to_owned(),
        state,
        reason: reason.map(Shown::text),
        revision: None,
        tools: None,
        tokens: None,
        starts: 0,
        calls: 0,
        failed: 0,
        running: 0,
        since: 0.0,
        controllable: state == ServerState::Idle,
        login: None,
    }
}

fn summary(status: &UpstreamStatus, tokens: Option<usize>, redactor: &Redactor) -> ServerSummary {
    let (state, reason) = match &status.health {
        Health::Idle => (ServerState::Idle, None),
        Health::Starting => (ServerState::Starting, None),
        Health::Ready => (ServerState::Ready, status.list_problem.clone()),
        Health::Failed(reason) => (ServerState::Failed, Some(reason.clone())),
    };
    ServerSummary {
        name: status.name.clone(),
        state,
        // It repeats what the server wrote, such as the end of its output.
        reason: reason.map(|reason| Shown::text(&redactor.text(&reason))),
        revision: status.revision.map(|revision| revision.as_str().to_owned()),
        tools: status.tools,
        tokens,
        starts: status.starts,
        calls: status.calls,
        failed: status.errors,
        running: status.running,
        since: status.since.as_secs_f64() * 1000.0,
        controllable: true,
        login: status.needs_login.then(|| format!("bowline login {}", copy::quote(&status.name))),
    }
}

async fn server_detail(shared: &Shared, name: &str) -> Result<ServerDetail, Failure> {
    let attached = attached(shared)?;
    let offers = attached.host.offers().await;
    let summary = summaries(shared, attached, &offers).into_iter().find(|summary| summary.name == name);
    let summary = summary
        .ok_or_else(|| Failure::not_found(format!("there is no server `{}`", bowline_text::visible(name))))?;
    let negotiated = attached.host.client(name).map(|client| client.server());
    let info = negotiated.as_ref().and_then(|negotiated| negotiated.server_info.as_ref());
    let output = shared.recorder.output(name);
    Ok(ServerDetail {
        summary,
        reported_name: info.map(|info| Shown::line(&info.name)),
        reported_version: info.map(|info| Shown::line(&info.version)),
        capabilities: negotiated
            .as_ref()
            .and_then(|negotiated| serde_json::to_value(&negotiated.capabilities).ok()),
        instructions: negotiated
            .as_ref()
            .and_then(|negotiated| negotiated.instructions.as_deref())
            .map(Shown::text),
        target: None,
        output: output.iter().map(|line| Shown::line(&shared.redactor.text(line))).collect(),
    })
}

async fn entries(shared: &Shared) -> Result<Entries, Failure> {
    let offers = match shared.options.mode {
        Mode::Folder => Vec::new(),
        Mode::Up | Mode::Inspect | Mode::Gateway => attached(shared)?.host.offers().await,
    };
    let servers = offers.iter().map(|offer| {
        let tools = offer.tools.iter().map(|tool| Entry {
            hints: hints(tool.shown.annotations.as_ref()),
            required: required(&tool.shown),
            has_output_schema: tool.shown.output_schema.is_some(),
            tokens: tool_tokens(&tool.shown),
            title: tool.shown.title.as_deref().map(Shown::line),
            description: tool.shown.description.as_deref().map(Shown::text),
            ..entry(ItemKind::Tool, &tool.original, &tool.shown.name)
        });
        let resources = offer.resources.iter().map(|resource| Entry {
            title: Some(Shown::line(resource.shown.title.as_deref().unwrap_or(&resource.shown.name))),
            description: resource.shown.description.as_deref().map(Shown::text),
            mime: resource.shown.mime_type.as_deref().map(Shown::line),
            ..entry(ItemKind::Resource, &resource.original, &resource.shown.uri)
        });
        let templates = offer.templates.iter().map(|template| Entry {
            title: Some(Shown::line(template.shown.title.as_deref().unwrap_or(&template.shown.name))),
            description: template.shown.description.as_deref().map(Shown::text),
            mime: template.shown.mime_type.as_deref().map(Shown::line),
            ..entry(ItemKind::Template, &template.original, &template.shown.uri_template)
        });
        let prompts = offer.prompts.iter().map(|prompt| Entry {
            title: prompt.shown.title.as_deref().map(Shown::line),
            description: prompt.shown.description.as_deref().map(Shown::text),
            required: prompt
                .shown
                .arguments
                .iter()
                .filter(|argument| argument.required == Some(true))
                .count(),
            ..entry(ItemKind::Prompt, &prompt.original, &prompt.shown.name)
        });
        ServerEntries {
            server: offer.server.clone(),
            items: tools.chain(resources).chain(templates).chain(prompts).collect(),
            hidden: offer.hidden,
            problem: offer.problem.as_deref().map(|problem| Shown::text(&shared.redactor.text(problem))),
        }
    });
    Ok(Entries { servers: servers.collect() })
}

fn entry(kind: ItemKind, original: &str, shown: &str) -> Entry {
    Entry {
        kind,
        name: original.to_owned(),
        label: Shown::line(original),
        gateway_name: shown.to_owned(),
        title: None,
        description: None,
        hints: Vec::new(),
        mime: None,
        size: None,
        required: 0,
        has_output_schema: false,
        tokens: 0,
    }
}

/// Returns what a server says about a tool, as words.
pub(crate) fn hints(annotations: Option<&ToolAnnotations>) -> Vec<String> {
    let Some(hints) = annotations else { return Vec::new() };
    let is_read_only = hints.read_only_hint == Some(true);
    let words = [
        (is_read_only, "read-only"),
        (!is_read_only && hints.destructive_hint == Some(true), "destructive"),
        (hints.idempotent_hint == Some(true), "idempotent"),
        (hints.open_world_hint == Some(true), "open world"),
    ];
    words.into_iter().filter(|(is_given, _)| *is_given).map(|(_, word)| word.to_owned()).collect()
}

/// Returns about how many tokens a tool definition costs: a token has about four bytes.
fn tool_tokens(tool: &Tool) -> usize {
    RawJson::of(tool).map_or(0, |tool| tool.as_bytes().len() / 4)
}

type TextArguments = Vec<(String, Option<String>, bool)>;

/// Returns the input schema of a tool, or the arguments of a prompt or template.
async fn schema_of(shared: &Shared, item: &ItemName) -> Result<(Value, Option<TextArguments>), Failure> {
    let offers = attached(shared)?.host.offers().await;
    let unknown = || {
        let (server, name) = (bowline_text::visible(&item.server), bowline_text::visible(&item.name));
        Failure::not_found(format!("the server `{server}` does not offer `{name}`"))
    };
    let offer = offers.iter().find(|offer| offer.server == item.server).ok_or_else(unknown)?;
    match item.kind {
        ItemKind::Tool => {
            let tool = offer.tools.iter().find(|tool| tool.original == item.name).ok_or_else(unknown)?;
            let schema = RawJson::of(&tool.shown.input_schema).and_then(|schema| schema.to_value());
            Ok((schema.map_err(|error| Failure::invalid(error.to_string()))?, None))
        }
        ItemKind::Prompt => {
            let prompt =
                offer.prompts.iter().find(|prompt| prompt.original == item.name).ok_or_else(unknown)?;
            let arguments = prompt.shown.arguments.iter().map(|argument| {
                (argument.name.clone(), argument.description.clone(), argument.required == Some(true))
            });
            Ok((Value::Null, Some(arguments.collect())))
        }
        ItemKind::Template => {
            let template = offer.templates.iter().find(|template| template.original == item.name);
            let template = template.ok_or_else(unknown)?;
            let parsed = UriTemplate::parse(&template.original)
                .map_err(|error| Failure::invalid(error.to_string()))?;
            let variables = parsed.variables().map(|name| (name.to_owned(), None, true));
            Ok((Value::Null, Some(variables.collect())))
        }
        ItemKind::Resource => Ok((json!({"type":"object","properties":{}}), None)),
    }
}

/// Returns the schema of arguments that are all text.
fn text_schema(arguments: &TextArguments) -> Value {
    let properties: serde_json::Map<_, _> =
        arguments.iter().map(|(name, ..)| (name.clone(), json!({"type":"string"}))).collect();
    let required: Vec<_> =
        arguments.iter().filter(|(.., required)| *required).map(|(name, ..)| name.as_str()).collect();
    json!({"type":"object","properties":properties,"required":required})
}

fn message(shared: &Shared, seq: u64, all: bool) -> Result<Message, Failure> {
    let stored = shared.recorder.with_ring(|ring| {
        let stored = ring.get(seq)?;
        let kept = |body: &crate::buffer::Body| {
            (body.bytes.to_vec(), body.sha256.clone(), body.http.as_deref().map(str::to_owned))
        };
        let body = stored.body.as_ref().map(kept);
        Some((stored.head.clone(), body))
    });
    let (head, body) = stored.ok_or_else(|| not_kept(seq))?;
    let Some((bytes, sha256, http)) = body else {
        return Ok(Message { head, text: None, left_out: 0, sha256: None, masked: 0, hidden: 0, http: None });
    };
    let text = String::from_utf8_lossy(&bytes);
    let (mut text, masked) = shared.redactor.message(&text);
    let hidden = bowline_text::hidden_characters(&text);
    if !all && text.len() > MAX_TEXT {
        let mut end = MAX_TEXT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    let left_out = head.size.saturating_sub(text.len() as u64);
    Ok(Message { head, text: Some(text), left_out, sha256, masked, hidden, http })
}

/// Returns the JSON of a kept message, masked.
pub(crate) fn json_of(shared: &Shared, seq: u64) -> Option<Value> {
    let bytes = shared.recorder.with_ring(|ring| {
        let body = ring.get(seq)?.body.as_ref()?;
        body.sha256.is_none().then(|| body.bytes.to_vec())
    })?;
    let (text, _) = shared.redactor.message(&String::from_utf8_lossy(&bytes));
    serde_json::from_str(&text).ok()
}

async fn result(shared: &Shared, call: u64) -> Result<ResultView, Failure> {
    let head = shared.recorder.with_ring(|ring| ring.get(call).map(|stored| stored.head.clone()));
    let head = head.ok_or_else(|| not_kept(call))?;
    let end = shared.recorder.end_of(call);
    let mut view = ResultView {
        call,
        verdict: end.as_ref().and_then(|end| end.status).map_or(Verdict::Running, Into::into),
        response: end.as_ref().filter(|end| end.kind == Kind::Response).map(|end| end.seq),
        took: end.as_ref().and_then(|end| end.took),
        size: end.as_ref().map_or(0, |end| end.size),
        tokens: 0,
        parts: Vec::new(),
        messages: Vec::new(),
        json: None,
        table: None,
        fits_schema: None,
        problems: Vec::new(),
        error: None,
        progress: shared.recorder.progress(call),
        task: shared.recorder.task_of(call),
        waiting: shared.questions.waiting_for(call),
        output: Vec::new(),
    };
    if end.is_none() && !shared.recorder.is_open(call) {
        view.verdict = Verdict::NoAnswer;
    }
    let Some(end) = end else { return Ok(view) };
    let message = view.response.and_then(|seq| json_of(shared, seq)).unwrap_or_default();
    if let Some(result) = message.get("result") {
        let method = head.method.as_deref().unwrap_or_default();
        view.tokens = usize::try_from(end.size / 4).unwrap_or(usize::MAX);
        match method {
            "tools/call" => {
                view.parts = content_parts(result.get("content").unwrap_or(&Value::Null));
                if let Some(structured) = result.get("structuredContent") {
                    view.json = serde_json::to_string_pretty(structured).ok();
                    view.table = table(structured);
                    check_output(shared, &head, structured, &mut view).await;
                }
            }
            "resources/read" => view.parts = resource_parts(result.get("contents").unwrap_or(&Value::Null)),
            "prompts/get" => view.messages = prompt_messages(result.get("messages").unwrap_or(&Value::Null)),
            _ => {}
        }
        if view.json.is_none() && view.parts.is_empty() && view.messages.is_empty() {
            view.json = serde_json::to_string_pretty(result).ok();
        }
    }
    if let Some(error) = message.get("error") {
        let text = error.get("message").and_then(Value::as_str).unwrap_or("no message");
        view.error = Some(ErrorView {
            code: error.get("code").and_then(Value::as_i64),
            message: Shown::text(text),
            advice: None,
            data: error.get("data").and_then(|data| serde_json::to_string_pretty(data).ok()),
        });
    }
    if matches!(view.verdict, Verdict::ToolError | Verdict::Rejected | Verdict::NoAnswer) {
        view.output = output_during(shared, &head, end.seq);
    }
    Ok(view)
}

/// Returns the lines that servers wrote during a call.
fn output_during(shared: &Shared, head: &Head, end: u64) -> Vec<Shown> {
    let lines = shared.recorder.with_ring(|ring| {
        let during = ring.after(head.seq).take_while(|stored| stored.head.seq <= end);
        let lines = during.filter(|stored| stored.head.kind == Kind::Output);
        let lines = lines.filter(|stored| head.leg != Leg::Server || stored.head.peer == head.peer);
        lines.filter_map(|stored| stored.head.name.clone()).collect::<Vec<_>>()
    });
    let skipped = lines.len().saturating_sub(MAX_OUTPUT);
    lines.iter().skip(skipped).map(|line| Shown::line(&shared.redactor.text(line))).collect()
}

/// Checks structured content against the output schema of its tool.
async fn check_output(shared: &Shared, head: &Head, structured: &Value, view: &mut ResultView) {
    let (Some(attached), Some(name)) = (shared.attached.get(), &head.name) else { return };
    let offers = attached.host.offers().await;
    let mut tools = offers.iter().flat_map(|offer| offer.tools.iter().map(move |tool| (offer, tool)));
    let tool = tools.find(|(offer, tool)| match head.leg {
        Leg::Server => offer.server == head.peer && tool.original == *name,
        Leg::Client | Leg::Host => tool.shown.name == *name,
    });
    let schema = tool.and_then(|(_, tool)| RawJson::of(tool.shown.output_schema.as_ref()?).ok());
    let (Some(schema), Ok(value)) = (schema, RawJson::of(structured)) else { return };
    view.problems = check(&schema, &value);
    view.fits_schema = Some(view.problems.is_empty());
}
