//! One self-describing request: 2026-07-28.
//!
//! The call runs in the task of its connection. It becomes a stream only when it says something before its response or
//! takes long; dropping the reply, which is what a client that goes away does, cancels it.

use super::{
    access::Access,
    body::Body,
    events::{Events, comment, event},
    reply,
    service::Shared,
};
use bowline_proto::{
    encode,
    envelope::MethodName,
    header as codec,
    params::{Params, RequestMeta},
    server::{Admitted, Threshold, admit_modern, admit_modern_notification, supported_revision},
    service::{BoxFuture, Call, ClientView, Extensions, HttpRequest, Notifier},
};
use bowline_server::{
    CallOrigin,
    transport::{self, RawFrame, Sink, unix_time},
};
use bowline_types::{Id, Method, RawJson, RpcError, TaskParams};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Response, StatusCode, request::Parts};
use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep};

/// The names of headers that every request has, hashed in advance.
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static(codec::PROTOCOL_VERSION);
const METHOD: HeaderName = HeaderName::from_static(codec::METHOD);
const NAME: HeaderName = HeaderName::from_static(codec::NAME);

/// A request of the modern era, before its checks.
pub(super) struct Request {
    pub(super) id: Id,
    pub(super) method: MethodName,
    pub(super) params: Params,
    pub(super) meta: RequestMeta,
    pub(super) principal: Option<Arc<str>>,
}

/// Answers a request.
pub(super) async fn answer(shared: &Arc<Shared>, parts: &mut Parts, request: Request) -> Response<Body> {
    let (id, principal) = (request.id.clone(), request.principal.clone());
    let observer = shared.server.observer();
    let admitted = admit(shared, &parts.headers, request);
    if let (Some(observer), Some(RawFrame(text))) = (&observer, parts.extensions.remove()) {
        let client = match &admitted {
            Ok(Admitted::Call(call, _)) => Some(&*call.client),
            _ => None,
        };
        observer.received(&text, client);
    }
    let shown = |response: Response<Body>| {
        if let (Some(observer), Some(text)) = (&observer, response.body().as_whole()) {
            observer.sent(text, Some(&id), None);
        }
        response
    };
    match admitted {
        Ok(Admitted::Answer(result)) if observer.is_some() => {
            let mut text = Vec::with_capacity(result.len() + 64);
            encode::write_response(&mut text, &id, &result);
            shown(reply::json(StatusCode::OK, text))
        }
        Ok(Admitted::Answer(result)) => reply::response(&id, result),
        Ok(Admitted::Listen(mut listen)) => {
            let access = Access::of(shared, parts);
            listen.require_scopes(shared.server.profile(), &access.subscriber());
            if listen.names_tasks(shared.server.profile()) {
                match shared.server.visible_tasks(&listen).await {
                    Ok(tasks) => listen.tasks = tasks,
                    Err(error) => return shown(reply::failure(Some(&id), &error)),
                }
            }
            super::listen::open(shared, principal, &id, &listen, access.stream_time())
        }
        Ok(Admitted::Call(mut call, threshold)) => {
            call.extensions = extensions(parts, None);
            if let Some(observer) = observer {
                call.extensions.insert(CallOrigin::new(observer.connection(), id.clone()));
                call.extensions.insert(observer);
            }
            run(shared, id, call, threshold).await
        }
        Err(Refused::Undescribed(error)) => {
            shown(reply::json(StatusCode::BAD_REQUEST, encode::failure(Some(&id), &error)))
        }
        Err(Refused::Plainly(error)) => shown(reply::failure(Some(&id), &error)),
    }
}

/// Takes a notification that is not part of the protocol. The reply waits for its handler, so a client that sends many is
/// slowed down.
pub(super) async fn take_notification(
    shared: &Shared,
    parts: &mut Parts,
    principal: Option<&Arc<str>>,
    method: &MethodName,
    params: Option<Params>,
) {
    let params = params.unwrap_or_else(Params::empty);
    let profile = shared.server.profile();
    let Some(mut call) = admit_modern_notification(profile, principal, method, params) else { return };
    call.extensions = extensions(parts, None);
    shared.server.service().call(call, Notifier::closed()).await;
}

/// Takes what handlers see of a request out of its head. The head is passed by reference up to here, because each async
/// function would hold a copy of its own.
pub(super) fn extensions(parts: &mut Parts, session_id: Option<Arc<str>>) -> Extensions {
    let (headers, extensions) = (std::mem::take(&mut parts.headers), std::mem::take(&mut parts.extensions));
    Extensions::of_request(HttpRequest { headers, extensions, session_id })
}

/// Why a request does not proceed.
enum Refused {
    /// It does not describe itself, for which there is a status of its own.
    Undescribed(RpcError),
    /// For another reason, whose code has its status.
    Plainly(RpcError),
}

impl From<RpcError> for Refused {
    fn from(error: RpcError) -> Self {
        Self::Plainly(error)
    }
}

/// Runs the checks, in an order that lets a client correct one error after the other.
fn admit(shared: &Shared, headers: &HeaderMap, request: Request) -> Result<Admitted, Refused> {
    let Request { method, params, meta, principal, .. } = request;
    let mismatch = |error: codec::HeaderMismatch| RpcError::header_mismatch(error.to_string());
    let values = |name: &HeaderName| headers.get_all(name).iter().map(http::HeaderValue::as_bytes);
    if !headers.contains_key(&PROTOCOL_VERSION) {
        return Err(RpcError::header_mismatch("the header `MCP-Protocol-Version` is missing").into());
    }
    let named = meta.require().map_err(Refused::Undescribed)?.0;
    let named = named.as_ref().map_or_else(|name| &**name, |revision| revision.as_str());
    codec::check_plain(codec::PROTOCOL_VERSION, values(&PROTOCOL_VERSION), named).map_err(mismatch)?;
    let revision = supported_revision(shared.server.profile(), &meta)?;
    codec::check_plain(codec::METHOD, values(&METHOD), method.as_str()).map_err(mismatch)?;
    let known = method.known();
    let subject = match known.and_then(Method::name_source) {
        Some("uri") => Some(params.uri()?),
        Some("name") => Some(params.name()?),
        Some("taskId") => Some(params.decode::<TaskParams>()?.task_id.into()),
        _ => None,
    };
    if let Some(subject) = &subject {
        codec::check_encoded(codec::NAME, values(&NAME), subject).map_err(mismatch)?;
    } else if headers.contains_key(&NAME)
        && known.is_some_and(|known| known.exists_in(revision) && known.name_source().is_none())
    {
        return Err(RpcError::header_mismatch("unexpected header `Mcp-Name`: this method has no name").into());
    }
    let client = || {
        let capabilities = meta.client_capabilities.clone().unwrap_or_else(RawJson::empty_object);
        ClientView::new(revision, principal.clone(), capabilities, meta.client_info.clone())
    };
    if known == Some(Method::CallTool)
        && let Some(mirrored) = subject.as_ref().and_then(|name| shared.server.param_headers(name, client))
    {
        let arguments = params.arguments()?.as_ref().map(RawJson::to_value).transpose();
        let arguments =
            arguments.map_err(|error| RpcError::invalid_params(error.to_string()))?.unwrap_or_default();
        let values =
            |name: &str| headers.get_all(name).iter().map(http::HeaderValue::as_bytes).collect::<Vec<_>>();
        mirrored.check(&arguments, values).map_err(mismatch)?;
    }
    drop(subject);
    Ok(admit_modern(shared.server.profile(), principal.as_ref(), revision, &method, params, meta, unix_time)?)
}

async fn run(shared: &Arc<Shared>, id: Id, call: Call, threshold: Threshold) -> Response<Body> {
    let events = Arc::new(Events::of(shared));
    let sink = Arc::clone(&events) as Arc<dyn Sink>;
    let call = transport::respond(&shared.server, id, call, threshold, sink);
    let mut stream = CallStream { call: Some(call), events, shared: Arc::clone(shared), silence: None };
    match poll_fn(|context| stream.poll_first(context)).await {
        First::Whole(transport::Response::Message(message, error)) => {
            let mut response =
                reply::json(error.as_deref().map_or(StatusCode::OK, reply::status_of), message);
            if let Some(error) = &error {
                reply::retry_after(&mut response, error);
            }
            response
        }
        First::Whole(transport::Response::Result(id, result)) => reply::response(&id, result),
        First::Events => reply::stream(Body::call(stream)),
    }
}

/// How a reply begins.
enum First {
    /// With its response, and nothing else.
    Whole(transport::Response),
    /// With an event.
    Events,
}

/// A call and its notifications. Dropping it cancels the call.
pub(super) struct CallStream {
    call: Option<BoxFuture<'static, transport::Response>>,
    events: Arc<Events>,
    shared: Arc<Shared>,
    /// When the next keep-alive is due; not set before the call takes long enough to need one.
    silence: Option<Pin<Box<Sleep>>>,
}

impl CallStream {
    fn poll_first(&mut self, context: &mut Context<'_>) -> Poll<First> {
        self.events.register(context.waker());
        let response = self.poll_call(context);
        if self.events.len() > 0 {
            if let Some(response) = response {
                self.push(response);
            }
            return Poll::Ready(First::Events);
        }
        if let Some(response) = response {
            return Poll::Ready(First::Whole(response));
        }
        let stream_after = self.shared.options.stream_after;
        self.silence(stream_after).as_mut().poll(context).map(|()| First::Events)
    }

    /// Returns the response once the call is done.
    fn poll_call(&mut self, context: &mut Context<'_>) -> Option<transport::Response> {
        let Poll::Ready(response) = self.call.as_mut()?.as_mut().poll(context) else { return None };
        self.call = None;
        Some(response)
    }

    fn push(&self, response: transport::Response) {
        match response {
            transport::Response::Message(message, _) => self.events.push(&message),
            transport::Response::Result(id, result) => self.events.push_response(&id, &result),
        }
    }

    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.events.register(context.waker());
        if let Some(message) = self.events.pop() {
            self.restart_silence();
            return Poll::Ready(Some(event(&message)));
        }
        if let Some(response) = self.poll_call(context) {
            self.push(response);
        }
        if let Some(message) = self.events.pop() {
            self.restart_silence();
            return Poll::Ready(Some(event(&message)));
        }
        if self.call.is_none() {
            return Poll::Ready(None);
        }
        let keep_alive = self.shared.options.keep_alive;
        if self.silence(keep_alive).as_mut().poll(context).is_ready() {
            self.restart_silence();
            // Polled once more so that the next comment has its timer.
            let _ = self.silence(keep_alive).as_mut().poll(context);
            return Poll::Ready(Some(comment()));
        }
        Poll::Pending
    }

    fn silence(&mut self, limit: Duration) -> &mut Pin<Box<Sleep>> {
        self.silence.get_or_insert_with(|| Box::pin(sleep(limit)))
    }

    fn restart_silence(&mut self) {
        let next = self.shared.options.keep_alive;
        if let Some(silence) = &mut self.silence {
            silence.as_mut().reset(Instant::now() + next);
        }
    }
}
