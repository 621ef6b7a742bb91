//! Servers that start, crash, hang, idle and end behind a host, as real processes.

mod isolation;
mod support;

use bowline_host::{Health, Share, Start};
use bowline_policy::{Gate, Guard, Policy, Question, Rule, Verdict};
use bowline_proto::service::BoxFuture;
use futures_util::FutureExt as _;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use support::{PATIENCE, Program, ask, call, caller, guarded, health, host, tools, until};

#[tokio::test]
async fn a_server_that_crashes_is_started_again_and_its_neighbor_notices_nothing() {
    // V-112
    let (frail, firm) = (Program::new("crash", "frail"), Program::new("crash", "firm"));
    let (host, handle) = host([("frail", frail.upstream()), ("firm", firm.upstream())]);
    let mut peer = caller(&handle).await;
    assert_eq!(tools(&mut peer).await.len(), 8);

    // The neighbor has a call under way the whole time.
    let mut neighbor = caller(&handle).await;
    let waiting = neighbor.start("tools/call", serde_json::json!({ "name": "firm__wait" })).await.unwrap();
    until("the neighbor is called", || firm.has("waiting")).await;
    let mut ids = vec![call(&mut peer, "frail__id").await.unwrap()];
    for _ in 0..2 {
        let error = call(&mut peer, "frail__die").await.unwrap_err();
        assert!(error.contains("exited with code 3") && error.contains("dying of it"), "{error}");
        ids.push(call(&mut peer, "frail__id").await.unwrap());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "each start is another process");
    assert_eq!((frail.starts().len(), frail.alive()), (3, 1));

    firm.tell("go");
    let waited = neighbor.response(&waiting).await.unwrap();
    assert_eq!(waited["result"]["content"][0]["text"], "waited");
    assert_eq!((firm.starts().len(), firm.alive()), (1, 1));
    host.close().await;
    assert_eq!((frail.alive(), firm.alive()), (0, 0));
}

#[tokio::test]
async fn calls_of_a_neighbor_succeed_while_a_server_keeps_crashing() {
    // V-112
    let (frail, firm) = (Program::new("storm", "frail"), Program::new("storm", "firm"));
    let (host, handle) = host([("frail", frail.upstream()), ("firm", firm.upstream())]);
    let (mut peer, mut neighbor) = (caller(&handle).await, caller(&handle).await);
    assert_eq!(tools(&mut peer).await.len(), 8);
    let (end, mut ended) = tokio::sync::oneshot::channel::<()>();
    let calls = tokio::spawn(async move {
        let mut answered = 0;
        while ended.try_recv().is_err_and(|error| error == tokio::sync::oneshot::error::TryRecvError::Empty) {
            call(&mut neighbor, "firm__id").await.expect("a neighbor's call does not fail");
            answered += 1;
        }
        answered
    });
    // Often enough that its client gives it up.
    for _ in 0..5 {
        call(&mut peer, "frail__die").await.unwrap_err();
    }
    let is_lost = |health: Option<Health>| matches!(health, Some(Health::Failed(reason)) if reason.contains("exited with code 3"));
    until("it is given up", || is_lost(health(&host, "frail"))).await;
    // Who needs it has it started again.
    assert!(call(&mut peer, "frail__id").await.is_ok());
    drop(end);
    assert!(calls.await.expect("the calls come to an end") > 0);
    assert_eq!((frail.starts().len(), frail.alive()), (6, 1));
    assert_eq!((firm.starts().len(), firm.alive()), (1, 1));
    host.close().await;
    assert_eq!((frail.alive(), firm.alive()), (0, 0));
}

#[tokio::test]
async fn a_failed_start_is_reported_with_exit_status_and_standard_error() {
    let (bad, good) = (Program::new("broken", "bad"), Program::new("broken", "good"));
    bad.tell("broken");
    let (host, handle) = host([("bad", bad.upstream()), ("good", good.upstream())]);
    let mut peer = caller(&handle).await;
    assert_eq!(tools(&mut peer).await, ["good__id", "good__wait", "good__die", "good__of_good"]);
    assert!(call(&mut peer, "good__id").await.is_ok());
    let error = call(&mut peer, "bad__id").await.unwrap_err();
    for part in ["`bad` is not available", "exited with code 7", "the first word", "no key for bad"] {
        assert!(error.contains(part), "{error}");
    }
    let Some(Health::Failed(reason)) = health(&host, "bad") else { panic!("{:?}", host.status()) };
    assert!(error.ends_with(&reason), "{error}");
    assert_eq!(health(&host, "good"), Some(Health::Ready));
    host.close().await;
}

#[tokio::test]
async fn a_server_that_hangs_at_its_start_does_not_delay_calls_to_others() {
    // V-112
    let (hung, good) = (Program::new("hung", "hung"), Program::new("hung", "good"));
    hung.tell("hung");
    let upstream = hung.upstream().startup_timeout(PATIENCE * 10).start(Start::Eager);
    let (host, handle) = host([("good", good.upstream()), ("hung", upstream)]);
    let mut peer = caller(&handle).await;
    until("it begins to start", || hung.starts().len() == 1).await;
    assert!(call(&mut peer, "good__id").await.is_ok());
    assert_eq!(health(&host, "hung"), Some(Health::Starting));
    host.close().await;
}

#[tokio::test]
async fn a_list_has_the_running_servers_and_clients_are_notified_of_the_others() {
    let (late, good) = (Program::new("grace", "late"), Program::new("grace", "good"));
    late.tell("held");
    let upstream = late.upstream().startup_timeout(PATIENCE * 10);
    let (host, handle) = host([("good", good.upstream()), ("late", upstream)]);
    let mut peer = caller(&handle).await;
    assert_eq!(tools(&mut peer).await.len(), 4);
    // The list names what it lacks.
    let listed = ask(&mut peer, "tools/list", serde_json::json!({})).await.unwrap();
    assert_eq!(listed["_meta"], serde_json::json!({ "bowline/starting": ["late"] }));
    // Whoever comes later does not wait for as long again.
    assert_eq!(tools(&mut caller(&handle).await).await.len(), 4);
    assert!(call(&mut peer, "good__id").await.is_ok());
    assert_eq!(health(&host, "late"), Some(Health::Starting));

    // What may be its own waits for it.
    let mut patient = caller(&handle).await;
    let waiting = patient.start("tools/call", serde_json::json!({ "name": "late__id" })).await.unwrap();
    while peer.recv_method("notifications/tools/list_changed").now_or_never().is_some() {}
    late.untell("held");
    let answer = patient.response(&waiting).await.unwrap();
    assert!(answer.get("result").is_some(), "{answer}");
    peer.recv_method("notifications/tools/list_changed").await.unwrap();
    assert_eq!(tools(&mut peer).await.len(), 8);
    let listed = ask(&mut peer, "tools/list", serde_json::json!({})).await.unwrap();
    assert_eq!(listed.get("_meta"), None);
    host.close().await;
}

/// A gate that nobody answers at.
#[derive(Default)]
struct Silent(Arc<AtomicUsize>);

impl Gate for Silent {
    fn ask(&self, _question: Question) -> BoxFuture<'_, Verdict> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn waiting_calls_are_cancelled_and_running_calls_finish() {
    let (hung, good) = (Program::new("waiting", "hung"), Program::new("waiting", "good"));
    hung.tell("hung");
    let asked = Arc::new(AtomicUsize::new(0));
    let policy = Policy::new([Rule::allow().tool("wait"), Rule::ask().tool("id")]);
    let guard = Guard::builder().policy(policy).gate(Silent(Arc::clone(&asked))).build();
    let upstream = hung.upstream().startup_timeout(PATIENCE * 10);
    let (host, handle) = guarded(guard, [("good", good.upstream()), ("hung", upstream)]);
    let mut peer = caller(&handle).await;
    let mut ids = Vec::new();
    // Two ask the same: one of them waits for the other's answer.
    for tool in ["good__wait", "good__id", "good__id", "hung__id"] {
        ids.push(peer.start("tools/call", serde_json::json!({ "name": tool })).await.unwrap());
    }
    until("all of them wait", || {
        good.has("waiting") && asked.load(Ordering::SeqCst) == 1 && hung.starts().len() == 1
    })
    .await;

    host.cancel_waiting();
    for id in &ids[1..3] {
        let refused = peer.response(id).await.unwrap();
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        assert_eq!(refused["result"]["content"][0]["text"], "the question was not answered");
    }
    let given_up = peer.response(&ids[3]).await.unwrap();
    let message = given_up["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("`hung` is not available"), "{given_up}");
    until("its process ends", || hung.alive() == 0).await;
    // Nobody is asked any more.
    assert_eq!(call(&mut peer, "good__id").await.unwrap(), "the question was not answered");
    assert_eq!(asked.load(Ordering::SeqCst), 1);

    good.tell("go");
    let ran = peer.response(&ids[0]).await.unwrap();
    assert_eq!(ran["result"]["content"][0]["text"], "waited");
    host.close().await;
}

#[tokio::test]
async fn a_server_that_starts_too_slowly_times_out() {
    let (hung, good) = (Program::new("late", "hung"), Program::new("late", "good"));
    hung.tell("hung");
    let upstream = hung.upstream().startup_timeout(Duration::from_millis(300));
    let (host, handle) = host([("good", good.upstream()), ("hung", upstream)]);
    let mut peer = caller(&handle).await;
    assert_eq!(tools(&mut peer).await.len(), 4);
    let error = call(&mut peer, "hung__id").await.unwrap_err();
    assert!(error.contains("`hung` is not available: starting the server timed out after 300ms"), "{error}");
    until("its process ends", || hung.alive() == 0).await;
    host.close().await;
}

#[tokio::test]
async fn a_host_that_is_closed_waits_for_no_start() {
    let hung = Program::new("close", "hung");
    hung.tell("hung");
    let (host, handle) = host([("hung", hung.upstream().startup_timeout(PATIENCE * 10))]);
    let mut peer = caller(&handle).await;
    peer.start("tools/list", serde_json::json!({})).await.unwrap();
    until("it begins to start", || hung.starts().len() == 1).await;
    tokio::time::timeout(PATIENCE, host.close()).await.expect("the host ends");
    until("its process ends", || hung.alive() == 0).await;
    assert_eq!(hung.starts().len(), 1);
}

#[tokio::test]
async fn lazy_servers_start_when_they_are_needed_and_eager_ones_at_once() {
    let (lazy, eager, other) =
        (Program::new("start", "lazy"), Program::new("start", "eager"), Program::new("start", "other"));
    let upstreams = [
        ("lazy", lazy.upstream().start(Start::Lazy)),
        ("eager", eager.upstream().start(Start::Eager)),
        ("other", other.upstream()),
    ];
    let (host, handle) = host(upstreams);
    until("it is started without being asked", || health(&host, "eager") == Some(Health::Ready)).await;
    // Neither a session nor another's call is a need.
    let mut peer = caller(&handle).await;
    assert!(call(&mut peer, "eager__id").await.is_ok());
    assert_eq!((lazy.starts().len(), eager.starts().len(), other.starts().len()), (0, 1, 0));
    let id = call(&mut peer, "lazy__id").await.unwrap();
    assert_eq!(lazy.starts().iter().map(ToString::to_string).collect::<Vec<_>>(), [id]);
    assert_eq!(other.starts().len(), 0);
    assert_eq!(tools(&mut peer).await.len(), 12);
    assert_eq!((lazy.starts().len(), eager.starts().len(), other.starts().len()), (1, 1, 1));
    host.close().await;
}

#[tokio::test]
async fn an_idle_server_is_stopped_and_started_again_by_the_next_call() {
    let (idle, busy) = (Program::new("idle", "idle"), Program::new("idle", "busy"));
    let limit = Some(Duration::from_millis(100));
    let (host, handle) =
        host([("idle", idle.upstream().idle_stop(limit)), ("busy", busy.upstream().idle_stop(limit))]);
    let mut peer = caller(&handle).await;
    assert_eq!(tools(&mut peer).await.len(), 8);
    let mut neighbor = caller(&handle).await;
    let waiting = neighbor.start("tools/call", serde_json::json!({ "name": "busy__wait" })).await.unwrap();
    until("the neighbor is called", || busy.has("waiting")).await;
    let first = call(&mut peer, "idle__id").await.unwrap();
    until("it is stopped", || health(&host, "idle") == Some(Health::Idle) && idle.alive() == 0).await;
    // What it has is known without it.
    assert_eq!(tools(&mut peer).await.len(), 8);
    assert_eq!(idle.starts().len(), 1);
    assert_ne!(call(&mut peer, "idle__id").await.unwrap(), first);
    assert_eq!(idle.starts().len(), 2);
    until("it is stopped again", || health(&host, "idle") == Some(Health::Idle) && idle.alive() == 0).await;
    // One that has a call under way is not idle.
    assert_eq!((busy.starts().len(), busy.alive()), (1, 1));
    busy.tell("go");
    assert_eq!(neighbor.response(&waiting).await.unwrap()["result"]["content"][0]["text"], "waited");
    host.close().await;
}

#[tokio::test]
async fn each_session_has_its_own_process_that_ends_with_it() {
    // V-111
    let (own, common) = (Program::new("session", "own"), Program::new("session", "common"));
    let (host, handle) =
        host([("own", own.upstream().share(Share::PerClient)), ("common", common.upstream())]);
    let (mut first, mut second) = (caller(&handle).await, caller(&handle).await);
    let ids = [call(&mut first, "own__id").await.unwrap(), call(&mut second, "own__id").await.unwrap()];
    assert_ne!(ids[0], ids[1]);
    assert_eq!(call(&mut first, "own__id").await.unwrap(), ids[0], "it stays the session's");
    assert_eq!(call(&mut first, "common__id").await, call(&mut second, "common__id").await);
    assert_eq!((own.starts().len(), own.alive(), common.alive()), (2, 2, 1));
    first.close().await.expect("the session ends");
    drop(first);
    until("the process ends with its session", || own.alive() == 1).await;
    assert_eq!(call(&mut second, "own__id").await.unwrap(), ids[1]);
    assert_eq!((own.starts().len(), common.alive()), (2, 1));
    host.close().await;
    assert_eq!((own.alive(), common.alive()), (0, 0));
}

#[tokio::test]
async fn a_dropped_host_leaves_no_process() {
    // V-72
    let (one, other) = (Program::new("drop", "one"), Program::new("drop", "other").modern());
    let (host, handle) = host([("one", one.upstream()), ("other", other.upstream())]);
    let mut peer = caller(&handle).await;
    assert_eq!(tools(&mut peer).await.len(), 8);
    assert_eq!((one.alive(), other.alive()), (1, 1));
    peer.close().await.expect("the session ends");
    drop((peer, handle, host));
    until("nothing is left", || one.alive() + other.alive() == 0).await;
}

#[tokio::test]
async fn a_dropped_host_cancels_starts() {
    // V-72
    let hung = Program::new("drop-start", "hung");
    hung.tell("hung");
    let upstream = hung.upstream().startup_timeout(PATIENCE * 10).start(Start::Eager);
    let (host, handle) = host([("hung", upstream)]);
    until("it begins to start", || hung.starts().len() == 1).await;
    drop((host, handle));
    until("nothing is left", || hung.alive() == 0).await;
}

#[tokio::test]
async fn a_server_that_is_removed_ends_after_its_calls() {
    let program = Program::new("remove", "one");
    let (host, handle) = host([("one", program.upstream())]);
    let mut peer = caller(&handle).await;
    let waiting = peer.start("tools/call", serde_json::json!({ "name": "one__wait" })).await.unwrap();
    until("it is called", || program.has("waiting")).await;
    assert!(host.remove("one"));
    let error = ask(&mut caller(&handle).await, "tools/call", serde_json::json!({ "name": "one__id" }))
        .await
        .unwrap_err();
    assert_eq!(error, "unknown tool `one__id`");
    program.tell("go");
    assert_eq!(peer.response(&waiting).await.unwrap()["result"]["content"][0]["text"], "waited");
    until("it ends", || program.alive() == 0).await;
}
