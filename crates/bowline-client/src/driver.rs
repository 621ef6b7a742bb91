//! The task of a client: opens the connection, watches deadlines, reconnects, and closes.

use crate::{
    Connect, Error, Restart, Result, Retry, Stderr,
    connection::{Connection, Ticket},
    core::{Core, State},
    request::Options,
    shared::{now, random},
    subscriptions::{self, Earlier},
    transport::Inbox,
};
use bowline_proto::{
    client::{Negotiated, OpenError, Opening, Reaction, Step},
    service::BoxFuture,
};
use bowline_types::{Capability, Era, Method, RawJson};
use serde_json::json;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::{
    sync::{oneshot, watch},
    time::{sleep, timeout},
};

/// Runs a client until it is stopped, or its connection is lost permanently.
pub(crate) async fn drive(
    core: Arc<Core>,
    target: Box<dyn Connect>,
    ready: oneshot::Sender<Result<()>>,
    mut stop: watch::Receiver<bool>,
    done: watch::Sender<bool>,
) {
    tokio::select! {
        biased;
        // An error means that the handle was dropped, which also stops the client.
        _ = stop.wait_for(|stop| *stop) => {}
        () = watch_deadlines(&core) => {}
        () = live(&core, &*target, ready) => {}
    }
    let reason = Error::closed("the client was closed");
    if !core.is_closed() {
        core.publish(State::Closed(reason.clone()));
    }
    core.shared.views.end(&reason);
    if let Some(connection) = core.current() {
        connection.close(&reason);
        close(&core, &connection).await;
    }
    done.send_replace(true);
}

/// Closes a connection gracefully, once.
async fn close(core: &Core, connection: &Connection) {
    if let Some(transport) = connection.transport() {
        transport.close().await;
    }
    core.set_current(None);
}

async fn watch_deadlines(core: &Core) {
    let timer = &core.shared.timer;
    loop {
        // Disarmed during the check, so that a deadline added in the meantime is not missed.
        timer.arm(None);
        let deadline = core.current().and_then(|connection| connection.expire());
        timer.arm(deadline);
        timer.wait(deadline).await;
    }
}

/// Connects, and reconnects as the restart policy allows.
async fn live(core: &Arc<Core>, target: &dyn Connect, ready: oneshot::Sender<Result<()>>) {
    let settings = &core.shared.settings;
    let mut ready = Some(ready);
    let mut known = settings.known_era.or_else(|| target.known_era());
    let mut backoff = match settings.restart.clone().unwrap_or_else(|| target.restart()) {
        Restart::AfterExit(backoff) => Some(backoff),
        Restart::Never => None,
    };
    loop {
        let mut useful = false;
        let reason = match in_time(core, establish(core, target, known)).await {
            Ok((connection, era)) => {
                known = Some(era);
                let earlier = Earlier::of(&core.shared);
                core.publish(State::Open(Arc::clone(&connection)));
                // If the caller is gone, the client is stopped.
                let is_first = ready.take().map(|ready| ready.send(Ok(()))).is_some();
                let reason = run_until_closed(core, &connection, is_first, earlier).await;
                useful = connection.was_useful();
                if let (Some(backoff), true) = (&mut backoff, useful) {
                    backoff.succeeded();
                }
                core.publish(State::Opening);
                close(core, &connection).await;
                reason
            }
            Err(error) => error,
        };
        if let Some(ready) = ready.take() {
            core.publish(State::Closed(reason.clone()));
            drop(ready.send(Err(reason)));
            return;
        }
        // Close a connection that timed out while opening.
        if let Some(connection) = core.current() {
            connection.close(&reason);
            close(core, &connection).await;
        }
        match backoff.as_mut().map(|backoff| backoff.failed(now(), random())) {
            Some(Retry::After(delay)) => {
                let milliseconds = delay.as_millis();
                tracing::warn!(%reason, milliseconds, "the connection was lost; opening it again");
                // The expiry of a session that was used says nothing about the health of the server.
                if !(useful && reason.is_expired()) {
                    sleep(delay).await;
                }
            }
            Some(Retry::GiveUp) | None => {
                tracing::warn!(%reason, "the connection is lost");
                core.shared.views.end(&reason);
                core.publish(State::Closed(reason));
                return;
            }
        }
    }
}

/// Runs an open connection until it is closed.
async fn run_until_closed(
    core: &Arc<Core>,
    connection: &Arc<Connection>,
    is_first: bool,
    earlier: Earlier,
) -> Error {
    if !is_first {
        core.shared.cache.forget(|_| true);
        core.shared.tools.forget();
    }
    let keep = async {
        subscriptions::reopen(core, connection, earlier).await;
        if connection.is_modern() {
            return subscriptions::resubscribe(core, connection).await;
        }
        match core.shared.settings.keep_alive {
            Some(interval) => keep_alive(core, connection, interval).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        reason = connection.gone() => reason,
        () = keep => connection.gone().await,
    }
}

/// Sends pings until one fails, which closes the connection.
async fn keep_alive(core: &Core, connection: &Arc<Connection>, interval: Duration) {
    loop {
        sleep(interval).await;
        // A server may process one request at a time; requests have their own timeouts.
        if connection.is_busy() {
            continue;
        }
        let mut options = Options::new(&core.shared);
        options.timeouts.silence = options.timeouts.silence.min(interval);
        let pong = core.send_on(connection, Method::Ping.as_str(), &RawJson::empty_object(), options).await;
        match pong {
            Err(error) if !error.is_rpc() => {
                tracing::warn!(%error, "a ping failed");
                connection.close(&Error::closed("a ping was not answered in time"));
                return;
            }
            _ => {}
        }
    }
}

/// Applies the connect timeout. The caller closes what was opened.
async fn in_time<T>(core: &Core, opening: impl Future<Output = Result<T>>) -> Result<T> {
    let Some(limit) = core.shared.settings.connect else { return opening.await };
    timeout(limit, opening).await.unwrap_or_else(|_| {
        let connection = core.current();
        let stderr = connection.as_ref().and_then(|connection| connection.transport()?.stderr());
        let error = Error::timeout("starting the server", limit);
        Err(error.with_stderr(stderr.map(Stderr::tail).unwrap_or_default()))
    })
}

/// Connects and negotiates. A server that exits because of the probe is connected to again, with the legacy handshake.
async fn establish(core: &Core, target: &dyn Connect, known: Option<Era>) -> Result<(Arc<Connection>, Era)> {
    let connection = connect(core, target, known).await?;
    let (error, probing) = match open(core, &connection, known).await {
        Ok(era) => return Ok((connection, era)),
        Err(failed) => failed,
    };
    let error = end_unopened(core, &connection, error).await;
    if !(probing
        && error.is_closed()
        && !error.is_unreachable()
        && core.shared.profile.revisions.newest_legacy().is_some())
    {
        return Err(error);
    }
    let Ok(connection) = connect(core, target, Some(Era::Legacy)).await else { return Err(error) };
    match open(core, &connection, Some(Era::Legacy)).await {
        Ok(era) => Ok((connection, era)),
        Err((error, _)) => Err(end_unopened(core, &connection, error).await),
    }
}

/// Closes a connection that could not be opened, and adds the standard error of the program to the error.
async fn end_unopened(core: &Core, connection: &Connection, error: Error) -> Error {
    let stderr = connection.transport().and_then(|transport| transport.stderr()).cloned();
    connection.close(&error);
    close(core, connection).await;
    // Everything has been read by now.
    error.with_stderr(stderr.map(|stderr| stderr.tail()).unwrap_or_default())
}

async fn connect(core: &Core, target: &dyn Connect, known: Option<Era>) -> Result<Arc<Connection>> {
    let connection = Arc::new(Connection::new(Arc::clone(&core.shared), known));
    core.set_current(Some(Arc::clone(&connection)));
    let transport = target.connect(Inbox::new(&connection, core.shared.settings.max_frame)).await?;
    connection.attach(transport);
    Ok(connection)
}

/// Detects the era and negotiates a revision. The error says whether the probe failed.
async fn open(core: &Core, connection: &Arc<Connection>, known: Option<Era>) -> Result<Era, (Error, bool)> {
    let shared = &core.shared;
    let mut known = known;
    let (mut opening, mut step) = Opening::start(Arc::clone(&shared.profile), known);
    // A probe that timed out. A server that starts slowly answers it later.
    let mut unanswered: Option<Asked> = None;
    loop {
        match step {
            Step::Request(method, params) => {
                let probing = method == Method::Discover;
                let is_question_of_era = opening.is_era_open();
                let answer = if is_question_of_era {
                    let mut probe = ask(connection, method, params);
                    let wait = shared.settings.probe.min(shared.settings.timeouts.silence);
                    if let Ok(answer) = timeout(wait, &mut probe).await {
                        answer
                    } else {
                        unanswered = Some(probe);
                        Err(Error::timeout(method.as_str(), wait))
                    }
                } else if probing {
                    ask(connection, method, params).await
                } else {
                    complete_handshake(core, ask(connection, method, params), &mut opening, &mut unanswered)
                        .await
                };
                let reaction = match answer {
                    Ok(result) => Reaction::Result(result),
                    Err(error) => match error.as_rpc() {
                        Some(rpc) => Reaction::Error(rpc.clone()),
                        None if error.is_timeout() && (is_question_of_era || !probing) => Reaction::Silence,
                        None if is_question_of_era && is_no_answer(&error) => Reaction::Silence,
                        None if !probing && opening.has_late() && !error.is_closed() => Reaction::Silence,
                        // The remembered era is wrong, and the server refused the connection.
                        None if known == Some(Era::Legacy) && is_refusal(&error) => {
                            known = None;
                            (opening, step) = Opening::start(Arc::clone(&shared.profile), None);
                            continue;
                        }
                        None => return Err((error, probing)),
                    },
                };
                step = opening.next(reaction);
            }
            // The remembered era is wrong: the server was replaced.
            Step::Failed(OpenError::Refused(_) | OpenError::NoCommonRevision { .. })
                if known == Some(Era::Legacy) =>
            {
                known = None;
                (opening, step) = Opening::start(Arc::clone(&shared.profile), None);
            }
            Step::Failed(error) => return Err((error.into(), false)),
            Step::Open(negotiated) => {
                let era = negotiated.revision.era();
                finish_opening(core, connection, *negotiated).await.map_err(|error| (error, false))?;
                return Ok(era);
            }
        }
    }
}

/// A running request of the handshake.
type Asked = BoxFuture<'static, Result<RawJson>>;

fn ask(connection: &Arc<Connection>, method: Method, params: RawJson) -> Asked {
    let connection = Arc::clone(connection);
    Box::pin(async move {
        let timeouts = connection.shared.settings.timeouts;
        let ticket = Ticket { timeouts, progress: None, key: None, is_opening: true };
        connection.request(method.as_str(), |_| params, ticket).await
    })
}

/// Waits for the response to `initialize`, and for a late response to the probe if one is pending.
///
/// After the first response, the other one has only the time of a probe. A successful handshake wins, because the
/// server has created a session.
async fn complete_handshake(
    core: &Core,
    mut greeting: Asked,
    opening: &mut Opening,
    unanswered: &mut Option<Asked>,
) -> Result<RawJson> {
    let Some(mut probe) = unanswered.take() else { return greeting.await };
    let wait = core.shared.settings.probe;
    tokio::select! {
        biased;
        answer = &mut greeting => {
            let is_refused = answer.as_ref().is_err_and(|error| !error.is_closed());
            if is_refused && let Ok(Ok(result)) = timeout(wait, probe).await {
                opening.accept_late(&result);
            }
            answer
        }
        late = &mut probe => match late {
            Ok(result) if opening.accept_late(&result) => {
                timeout(wait, greeting).await.unwrap_or_else(|_| {
                    Err(Error::timeout(Method::Initialize.as_str(), wait))
                })
            }
            _ => greeting.await,
        },
    }
}

/// Returns whether a probe was refused without an answer about the era. This is treated like a timeout.
fn is_no_answer(error: &Error) -> bool {
    error.is_malformed() || error.http_status().is_some_and(|status| status != 401)
}

fn is_refusal(error: &Error) -> bool {
    error.http_status().is_some_and(|status| (400..500).contains(&status) && status != 401)
}

/// Sends the messages that follow the handshake.
async fn finish_opening(core: &Core, connection: &Arc<Connection>, negotiated: Negotiated) -> Result<()> {
    tracing::debug!(revision = %negotiated.revision, "the connection is open");
    let logs = negotiated.capabilities.has(Capability::Logging);
    connection.open(negotiated);
    if connection.is_modern() {
        return Ok(());
    }
    connection.notify(Method::Initialized.as_str(), None);
    let Some(level) = core.shared.log_level().filter(|_| logs) else { return Ok(()) };
    let (params, options) = (json!({ "level": level }).into(), Options::new(&core.shared));
    match core.send_on(connection, Method::SetLevel.as_str(), &params, options).await {
        Err(error) if error.is_closed() => Err(error),
        Err(error) => {
            tracing::warn!(%error, "the log level could not be set");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}
