//! Carries out actions. Requests of the page pass the host like those of any client, and its policy.

use crate::{
    action::{Action, Completed, Done, ResendRequest, SendRequest, Sent},
    action_trail::Trail,
    answers,
    buffer::PAGE,
    checks, control,
    events::{Kind, Leg},
    inbox::AnswerError,
    inspector::{Attached, Shared},
    keys::Holder,
    queries::{attached, not_kept},
    query::ItemKind,
    rules,
    service::{Failure, reply},
};
use bowline_host::{AtRevision, ConsentGiven, ServerOffer};
use bowline_http::Body;
use bowline_proto::{
    envelope::MethodName,
    params::{Params, RequestMeta},
    server::{Admitted, admit_modern},
};
use bowline_server::{
    CallOrigin,
    transport::{Observer, Response as CallResponse, Sink, respond, unix_time},
};
use bowline_types::{Id, LoggingLevel, Method, RawJson, RawMap, Revision, RpcError, meta};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::task::AbortHandle;

/// How many calls the page may have open.
const MAX_CALLS: usize = 100;
/// How many resources the page may subscribe to.
const MAX_SUBSCRIPTIONS: usize = 100;
/// How long a completion may take.
const COMPLETION_TIME: Duration = Duration::from_secs(10);
/// How often a server may ask for the roots of this page during one call.
const MAX_ROUNDS: usize = 10;

/// What the page has open, in all browsers.
#[derive(Default)]
pub(crate) struct PageState(Mutex<Open>);

#[derive(Default)]
struct Open {
    next: i64,
    calls: HashMap<u64, (AbortHandle, Observer, Id)>,
    level: Option<LoggingLevel>,
    roots: Vec<String>,
    wanted: BTreeSet<String>,
}

impl PageState {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries out an action, and writes it to the audit log.
pub(crate) async fn act(
    shared: &Arc<Shared>,
    holder: Holder,
    action: Action,
) -> Result<Response<Body>, Failure> {
    let trail = Trail::begin(shared, holder, &action).await?;
    let done = carry_out(shared, holder, action).await;
    trail.end(done.as_ref().err());
    done
}

async fn carry_out(shared: &Arc<Shared>, holder: Holder, action: Action) -> Result<Response<Body>, Failure> {
    let done = || reply(StatusCode::OK, &Done::default());
    Ok(match action {
        Action::Send(request) => reply(StatusCode::OK, &send(shared, request).await?),
        Action::Resend(request) => reply(StatusCode::OK, &resend(shared, request).await?),
        Action::Cancel { call } => {
            let cancelled = shared.page.open().calls.remove(&call);
            let (task, observer, id) = cancelled
                .ok_or_else(|| Failure::not_found("this call has ended, or is not one of this page"))?;
            task.abort();
            let frame = json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":id}});
            observer.received(frame.to_string().as_bytes(), None);
            done()
        }
        Action::Start { server } => {
            known(attached(shared)?.host.start_server(&server).await, &server)?;
            done()
        }
        Action::Stop { server } => {
            known(attached(shared)?.host.stop_server(&server).await, &server)?;
            done()
        }
        Action::Restart { server } => {
            let host = &attached(shared)?.host;
            known(host.stop_server(&server).await, &server)?;
            known(host.start_server(&server).await, &server)?;
            done()
        }
        Action::Clear => {
            shared.recorder.clear();
            done()
        }
        Action::SignOut { all } => {
            if all {
                shared.keys.revoke_all();
            } else {
                shared.keys.revoke(holder.number);
            }
            done()
        }
        Action::Answer { question, answer } => {
            shared.questions.answer(&question, answer).map_err(|error| match error {
                AnswerError::Gone => Failure::new(
                    StatusCode::CONFLICT,
                    "this question was answered already, or its call has ended",
                ),
                AnswerError::TerminalOnly => Failure::new(
                    StatusCode::FORBIDDEN,
                    "this question starts a command; answer it in the terminal",
                ),
                AnswerError::Invalid(reason) => Failure::invalid(reason),
            })?;
            done()
        }
        Action::Complete { server, kind, name, argument, value, context } => {
            let params =
                completion(shared, &server, kind, &name, json!({"name":argument,"value":value}), context)
                    .await?;
            reply(StatusCode::OK, &complete(shared, server, params).await?)
        }
        Action::Subscribe { server, uri, on } => {
            subscribe(shared, &server, &uri, on).await?;
            done()
        }
        Action::Level { level } => {
            let level = level.map(|level| serde_json::from_value::<LoggingLevel>(Value::String(level)));
            let level = level.transpose().map_err(|error| Failure::invalid(error.to_string()))?;
            shared.page.open().level = level;
            done()
        }
        Action::RunChecks { server } => {
            checks::run(shared, &server)?;
            done()
        }
        Action::AcceptPin { server, tool, digest } => {
            rules::accept_pin(shared, &server, &tool, &digest).await?;
            done()
        }
        Action::ForgetAnswer { id } => {
            answers::forget(shared, id).await?;
            done()
        }
        Action::AskControl { digits } => {
            control::ask(shared, holder, digits).await?;
            done()
        }
        Action::Roots { roots } => {
            if let Some(other) = roots.iter().find(|root| !root.starts_with("file://")) {
                let other = bowline_text::visible(other);
                return Err(Failure::invalid(format!(
                    "expected URIs that start with `file://`, got `{other}`"
                )));
            }
            shared.page.open().roots = roots;
            done()
        }
    })
}

fn known(is_known: bool, server: &str) -> Result<(), Failure> {
    if is_known {
        return Ok(());
    }
    let server = bowline_text::visible(server);
    // Nothing is started that the host does not already have: entries that were approved, or need no approval.
    let reason = format!("there is no server `{server}` that can be controlled here");
    Err(Failure::not_found(reason).advise("servers that need an approval are approved in the terminal"))
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes errors by value")]
fn invalid(error: impl ToString) -> Failure {
    Failure::invalid(error.to_string())
}

/// Returns what a server offers, and starts it if necessary: an action may do so, a query may not.
async fn offer(attached: &Attached, server: &str) -> Result<ServerOffer, Failure> {
    let unknown = || Failure::not_found(format!("there is no server `{}`", bowline_text::visible(server)));
    attached.host.offer(server).await.ok_or_else(unknown)
}

/// Returns the name under which clients know an item of a server.
fn gateway_name(offer: &ServerOffer, method: &str, name: &str) -> Option<String> {
    match method {
        "tools/call" => {
            offer.tools.iter().find(|tool| tool.original == name).map(|tool| tool.shown.name.clone())
        }
        "prompts/get" => offer
            .prompts
            .iter()
            .find(|prompt| prompt.original == name)
            .map(|prompt| prompt.shown.name.clone()),
        "resources/read" => {
            let listed = offer.resources.iter().find(|resource| resource.original == name);
            // A resource of a template is not listed, and its URI has no prefix.
            Some(listed.map_or_else(|| name.to_owned(), |resource| resource.shown.uri.clone()))
        }
        _ => None,
    }
}

/// Returns whether clients know an item of this server under a name.
fn has_gateway_name(offer: &ServerOffer, method: &str, name: &str) -> bool {
    match method {
        "tools/call" => offer.tools.iter().any(|tool| tool.shown.name == name),
        "prompts/get" => offer.prompts.iter().any(|prompt| prompt.shown.name == name),
        "resources/read" => offer.resources.iter().any(|resource| resource.shown.uri == name),
        _ => false,
    }
}

async fn send(shared: &Arc<Shared>, request: SendRequest) -> Result<Sent, Failure> {
    let attached = attached(shared)?;
    let offer = offer(attached, &request.server).await?;
    let mut params = RawJson::parse(request.params.get().to_owned())
        .and_then(|params| params.members())
        .map_err(invalid)?;
    let member = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        other => {
            let other = bowline_text::visible(other);
            return Err(Failure::invalid(format!("`{other}` cannot be sent from here"))
                .advise("send `tools/call`, `resources/read` or `prompts/get`"));
        }
    };
    let name: String =
        params.decode(member).map_err(invalid)?.ok_or_else(|| invalid(format!("`{member}` is missing")))?;
    let shown = gateway_name(&offer, &request.method, &name).ok_or_else(|| {
        let (server, name) = (bowline_text::visible(&request.server), bowline_text::visible(&name));
        Failure::not_found(format!("the server `{server}` does not offer `{name}`"))
    })?;
    params.insert(member, RawJson::of(&shown).map_err(invalid)?);
    let given =
        request.meta.map(|meta| RawJson::parse(meta.get().to_owned()).and_then(|meta| meta.members()));
    let given = given.transpose().map_err(invalid)?.unwrap_or_default();
    let terms = Terms { agreed: Some(request.server), revision: revision(request.revision.as_deref())? };
    let call = Prepared::new(shared, &request.method, params, given)?.terms(terms);
    let limit = request.timeout.map(Duration::from_millis);
    start(shared, call, limit)
}

/// Sends the request of a message again, to the same server and tool.
async fn resend(shared: &Arc<Shared>, request: ResendRequest) -> Result<Sent, Failure> {
    let attached = attached(shared)?;
    let stored = shared.recorder.with_ring(|ring| {
        let stored = ring.get(request.seq)?;
        let body = stored.body.as_ref().filter(|body| body.sha256.is_none());
        Some((stored.head.clone(), body.map(|body| body.bytes.to_vec())))
    });
    let (head, body) = stored.ok_or_else(|| not_kept(request.seq))?;
    let body = body.ok_or_else(|| Failure::not_found("the body of this message is not kept whole"))?;
    let method = head.method.as_deref().unwrap_or_default();
    let member = match (head.kind, method) {
        (Kind::Request, "tools/call" | "prompts/get") => "name",
        (Kind::Request, "resources/read") => "uri",
        _ => return Err(Failure::invalid("only calls of tools, resources and prompts can be sent again")),
    };
    // The original is patched here, so that secrets which the page does not see are kept.
    let message = RawJson::parse(body).and_then(|message| message.members()).map_err(invalid)?;
    let mut params: RawMap = message.decode("params").map_err(invalid)?.unwrap_or_default();
    for own in ["_meta", "inputResponses", "requestState"] {
        params.remove(own);
    }
    let name: String = params.decode(member).map_err(invalid)?.unwrap_or_default();
    let server = if head.leg == Leg::Server {
        let shown = gateway_name(&offer(attached, &head.peer).await?, method, &name);
        let shown = shown.ok_or_else(|| Failure::not_found("the server does not offer this any more"))?;
        params.insert(member, RawJson::of(&shown).map_err(invalid)?);
        Some(head.peer)
    } else {
        // What no server lists is asked about.
        let offers = attached.host.offers().await;
        offers.iter().find(|offer| has_gateway_name(offer, method, &name)).map(|offer| offer.server.clone())
    };
    if let Some(arguments) = request.arguments {
        params.insert("arguments", RawJson::parse(arguments.get().to_owned()).map_err(invalid)?);
    }
    let terms = Terms { agreed: server, revision: revision(request.revision.as_deref())? };
    let call = Prepared::new(shared, method, params, RawMap::new())?.terms(terms);
    start(shared, call, None)
}

fn revision(given: Option<&str>) -> Result<Option<Revision>, Failure> {
    let unknown = |given: &str| {
        let known = Revision::ALL.map(Revision::as_str).join(", ");
        Failure::invalid(format!("expected one of {known}, got `{}`", bowline_text::visible(given)))
    };
    given.map(|given| Revision::parse(given).ok_or_else(|| unknown(given))).transpose()
}

/// What a person asked for.
#[derive(Clone, Default)]
struct Terms {
    /// The server whose call it is.
    agreed: Option<String>,
    /// The revision of a connection of its own.
    revision: Option<Revision>,
}

/// A request that is ready to be sent.
struct Prepared {
    method: MethodName,
    id: Id,
    terms: Terms,
    /// The parameters without what describes this request, for another round.
    base: RawMap,
    params: RawJson,
    text: Vec<u8>,
}

fn name_of(method: &str) -> MethodName {
    Method::parse(method).map_or_else(|| MethodName::Custom(method.into()), MethodName::from)
}

impl Prepared {
    fn new(shared: &Shared, method: &str, mut params: RawMap, given: RawMap) -> Result<Self, Failure> {
        let mut open = shared.page.open();
        open.next += 1;
        let (number, level, has_roots) = (open.next, open.level, !open.roots.is_empty());
        drop(open);
        let mut described = given;
        let mut set = |key: &str, value: Value| {
            if let Ok(value) = RawJson::of(&value) {
                described.insert(key, value);
            }
        };
        set(meta::key::PROTOCOL_VERSION, json!(Revision::LATEST.as_str()));
        set(
            meta::key::CLIENT_INFO,
            json!({"name": PAGE, "title": "Inspector", "version": shared.options.version}),
        );
        set(meta::key::CLIENT_CAPABILITIES, if has_roots { json!({"roots":{}}) } else { json!({}) });
        set(meta::key::PROGRESS_TOKEN, json!(number));
        if let Some(level) = level {
            set(meta::key::LOG_LEVEL, serde_json::to_value(level).unwrap_or_default());
        }
        let base = params.clone();
        params.insert("_meta", RawJson::of(&described).map_err(invalid)?);
        let params = RawJson::of(&params).map_err(invalid)?;
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":{},"params":{}}}"#,
            serde_json::to_string(method).map_err(invalid)?,
            params.as_str()
        );
        let (method, id) = (name_of(method), Id::from(number));
        Ok(Self { method, id, terms: Terms::default(), base, params, text: text.into_bytes() })
    }

    fn terms(mut self, terms: Terms) -> Self {
        self.terms = terms;
        self
    }

    /// Sends the request. Returns the number of the call and its response.
    fn run(self, shared: &Shared, attached: &Attached) -> Result<Running, Failure> {
        let unwatched =
            || Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "the host does not show its messages");
        let observer = attached.handle.observer().ok_or_else(unwatched)?;
        let rejected = |error: RpcError| Failure::invalid(error.message.to_string());
        let params = Params::parse(self.params).map_err(rejected)?;
        let described = RequestMeta::of(&params).map_err(rejected)?;
        let profile = attached.handle.profile();
        let admitted =
            admit_modern(profile, None, Revision::LATEST, &self.method, params, described, unix_time)
                .map_err(rejected)?;
        let Admitted::Call(mut call, threshold) = admitted else {
            return Err(Failure::invalid("this method cannot be sent from here"));
        };
        let origin = CallOrigin::new(observer.connection(), self.id.clone());
        shared.recorder.is_page(observer.connection());
        observer.received(&self.text, Some(&call.client));
        let number = shared.recorder.call_of(&origin).ok_or_else(unwatched)?;
        call.extensions.insert(origin);
        call.extensions.insert(observer.clone());
        // A click in a browser with control is the consent that a rule asks for.
        if let Some(server) = self.terms.agreed {
            call.extensions.insert(ConsentGiven::new(server));
        }
        if let Some(revision) = self.terms.revision {
            call.extensions.insert(AtRevision::new(revision));
        }
        let response = respond(&attached.handle, self.id.clone(), call, threshold, Arc::new(Nowhere));
        Ok((number, observer, self.id, response))
    }
}

/// Starts a call and returns at once; the rest arrives on the stream.
fn start(shared: &Arc<Shared>, call: Prepared, limit: Option<Duration>) -> Result<Sent, Failure> {
    let attached = attached(shared)?;
    if shared.page.open().calls.len() >= MAX_CALLS {
        let reason = format!("{MAX_CALLS} calls of this page are running");
        return Err(Failure::new(StatusCode::TOO_MANY_REQUESTS, reason).advise("cancel one of them, or wait"));
    }
    let (method, base, terms) = (call.method.clone(), call.base.clone(), call.terms.clone());
    let (call, observer, id, mut response) = call.run(shared, attached)?;
    let mut open = shared.page.open();
    let mut shown = (observer.clone(), id.clone());
    let task = tokio::spawn({
        let shared = Arc::clone(shared);
        async move {
            let limit = limit.unwrap_or(Duration::from_secs(24 * 3600));
            let rounds = async {
                for _ in 0..MAX_ROUNDS {
                    let ended = (&mut response).await;
                    let Some(next) = roots_round(&shared, &method, &base, terms.clone(), &ended) else {
                        return;
                    };
                    let (observer, id);
                    (_, observer, id, response) = next;
                    shown = (observer, id);
                }
            };
            if tokio::time::timeout(limit, rounds).await.is_err() {
                let (observer, id) = shown;
                let frame = json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":id,"reason":"timeout"}});
                observer.received(frame.to_string().as_bytes(), None);
            }
            shared.page.open().calls.remove(&call);
        }
    });
    // Inserted under the lock that the task needs to remove it.
    open.calls.insert(call, (task.abort_handle(), observer, id));
    Ok(Sent { call })
}

/// A request that runs: its call, its observer, its id and its response.
type Running = (u64, Observer, Id, bowline_server::BoxFuture<'static, CallResponse>);

/// Answers a server that asks for the roots of this page: returns the next round, or `None` if nothing else is due.
fn roots_round(
    shared: &Shared,
    method: &MethodName,
    base: &RawMap,
    terms: Terms,
    response: &CallResponse,
) -> Option<Running> {
    let CallResponse::Message(text, None) = response else { return None };
    let message: Value = serde_json::from_slice(text).ok()?;
    let result = message.get("result")?;
    let requests = result.get("inputRequests")?.as_object()?;
    let asks_for_roots = |request: &Value| request.get("method").is_some_and(|method| method == "roots/list");
    if requests.is_empty() || !requests.values().all(asks_for_roots) {
        return None;
    }
    let roots: Vec<_> = shared.page.open().roots.iter().map(|uri| json!({"uri":uri})).collect();
    let answers: serde_json::Map<_, _> =
        requests.keys().map(|key| (key.clone(), json!({"roots":roots}))).collect();
    let mut params = base.clone();
    params.insert("inputResponses", RawJson::of(&answers).ok()?);
    if let Some(state) = result.get("requestState") {
        params.insert("requestState", RawJson::of(state).ok()?);
    }
    let next = Prepared::new(shared, method.as_str(), params, RawMap::new()).ok()?;
    next.terms(terms).run(shared, shared.attached.get()?).ok()
}

async fn completion(
    shared: &Shared,
    server: &str,
    kind: ItemKind,
    name: &str,
    argument: Value,
    context: serde_json::Map<String, Value>,
) -> Result<RawMap, Failure> {
    let offer = offer(attached(shared)?, server).await?;
    let unknown =
        || Failure::not_found(format!("the server does not offer `{}`", bowline_text::visible(name)));
    let reference = match kind {
        ItemKind::Prompt => {
            let prompt = offer.prompts.iter().find(|prompt| prompt.original == name).ok_or_else(unknown)?;
            json!({"type":"ref/prompt","name":prompt.shown.name})
        }
        ItemKind::Template => {
            let template =
                offer.templates.iter().find(|template| template.original == name).ok_or_else(unknown)?;
            json!({"type":"ref/resource","uri":template.shown.uri_template})
        }
        ItemKind::Tool | ItemKind::Resource => {
            return Err(Failure::invalid("only prompts and templates have completions"));
        }
    };
    let mut params = RawMap::new();
    params.insert("ref", RawJson::of(&reference).map_err(invalid)?);
    params.insert("argument", RawJson::of(&argument).map_err(invalid)?);
    if !context.is_empty() {
        params.insert("context", RawJson::of(&json!({"arguments":context})).map_err(invalid)?);
    }
    Ok(params)
}

async fn complete(shared: &Shared, server: String, params: RawMap) -> Result<Completed, Failure> {
    let attached = attached(shared)?;
    let terms = Terms { agreed: Some(server), revision: None };
    let call = Prepared::new(shared, "completion/complete", params, RawMap::new())?.terms(terms);
    let (_, _, _, response) = call.run(shared, attached)?;
    let response = tokio::time::timeout(COMPLETION_TIME, response).await;
    let response = response
        .map_err(|_| Failure::new(StatusCode::GATEWAY_TIMEOUT, "the server did not complete in time"))?;
    let text = match response {
        CallResponse::Message(_, Some(error)) => return Err(Failure::invalid(error.message.to_string())),
        CallResponse::Message(text, None) => text,
        CallResponse::Result(_, result) => {
            format!(r#"{{"result":{}}}"#, String::from_utf8_lossy(&result)).into_bytes()
        }
    };
    let message: Value = serde_json::from_slice(&text).map_err(invalid)?;
    let completion = message.pointer("/result/completion").cloned().unwrap_or_default();
    let values = completion.get("values").and_then(Value::as_array).into_iter().flatten();
    Ok(Completed {
        values: values.filter_map(|value| value.as_str().map(str::to_owned)).collect(),
        more: completion.get("hasMore").and_then(Value::as_bool).unwrap_or(false),
    })
}

async fn subscribe(shared: &Shared, server: &str, uri: &str, on: bool) -> Result<(), Failure> {
    let attached = attached(shared)?;
    let offer = offer(attached, server).await?;
    let shown = gateway_name(&offer, "resources/read", uri).unwrap_or_else(|| uri.to_owned());
    let mut open = shared.page.open();
    let before = open.wanted.clone();
    if !on {
        open.wanted.remove(&shown);
    } else if open.wanted.len() < MAX_SUBSCRIPTIONS {
        open.wanted.insert(shown);
    } else {
        let reason = format!("this page subscribes to {MAX_SUBSCRIPTIONS} resources already");
        return Err(
            Failure::new(StatusCode::TOO_MANY_REQUESTS, reason).advise("unsubscribe from one of them")
        );
    }
    attached.handle.want(&before, &open.wanted);
    Ok(())
}

/// Drops what is sent: the observer has seen it.
struct Nowhere;

impl Sink for Nowhere {
    fn write(&self, write: &mut dyn FnMut(&mut Vec<u8>) -> bool) {
        write(&mut Vec::new());
    }

    fn offer(&self, _: &[u8]) {}
}
