//! Calls while they run: progress, logs, cancellation, panics, batches.

use crate::wire::Peer;
use bowline_server::{Ctx, Result, Server, Tool};
use bowline_types::LoggingLevel;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use tokio::sync::Notify;

/// Reports three steps, one of them backwards, and logs at two levels.
fn work() -> Tool {
    Tool::new("work").handler(|ctx: Ctx| async move {
        ctx.progress_with(1.0, 3.0, "first");
        ctx.progress(0.5, 3.0);
        ctx.log(LoggingLevel::Debug, "details");
        ctx.log(LoggingLevel::Error, json!({ "disk": "full" }));
        tokio::task::yield_now().await;
        ctx.progress(3.0, 3.0);
        "done"
    })
}

fn notes(frames: &[Value], method: &str) -> Vec<Value> {
    frames.iter().filter(|frame| frame["method"] == method).map(|frame| frame["params"].clone()).collect()
}

/// Runs `work` and gives the notifications before its response.
async fn watch(peer: &mut Peer, params: Value) -> Vec<Value> {
    let id = peer.start("tools/call", params).await;
    let mut before = Vec::new();
    loop {
        let frame = peer.recv().await;
        if frame["id"] == id {
            assert_eq!(frame["result"]["content"][0]["text"], "done", "{frame}");
            return before;
        }
        before.push(frame);
    }
}

#[tokio::test]
async fn progress_goes_out_under_its_token_and_only_grows() {
    // proves: PROG-03, PROG-04, PROG-05, PROG-09, PROG-11, BASE-13
    for token in [json!(7), json!("7")] {
        let mut peer = Peer::new(Server::new("shop").tool(work()));
        peer.initialize("2025-11-25").await;
        let before = watch(&mut peer, json!({ "name": "work", "_meta": { "progressToken": token } })).await;
        let progress = notes(&before, "notifications/progress");
        let expected = [
            json!({ "progressToken": token, "progress": 1, "total": 3, "message": "first" }),
            json!({ "progressToken": token, "progress": 3, "total": 3 }),
        ];
        assert_eq!(progress, expected);
        assert!(before.iter().all(|frame| frame.get("id").is_none()));
        // Nothing follows the response.
        let pong = peer.request("ping", json!({})).await;
        assert_eq!(pong["result"], json!({}));
    }
}

#[tokio::test]
async fn without_a_token_there_is_no_progress() {
    // proves: PROG-09
    let mut peer = Peer::new(Server::new("shop").tool(work()));
    peer.initialize("2025-11-25").await;
    let before = watch(&mut peer, json!({ "name": "work" })).await;
    assert!(notes(&before, "notifications/progress").is_empty());
}

#[tokio::test]
async fn the_first_revision_has_no_progress_message() {
    let mut peer = Peer::new(Server::new("shop").tool(work()));
    peer.initialize("2024-11-05").await;
    let before = watch(&mut peer, json!({ "name": "work", "_meta": { "progressToken": 1 } })).await;
    assert!(notes(&before, "notifications/progress").iter().all(|params| params.get("message").is_none()));
}

// proves: LOG-02
#[tokio::test]
async fn log_levels_are_ordered_by_severity() {
    const NAMES: [&str; 8] =
        ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    let all = Tool::new("work").handler(|ctx: Ctx| async move {
        for level in [
            LoggingLevel::Debug,
            LoggingLevel::Info,
            LoggingLevel::Notice,
            LoggingLevel::Warning,
            LoggingLevel::Error,
            LoggingLevel::Critical,
            LoggingLevel::Alert,
            LoggingLevel::Emergency,
        ] {
            ctx.log(level, "logged");
        }
        "done"
    });
    let mut peer = Peer::new(Server::new("shop").tool(all));
    peer.initialize("2025-06-18").await;
    for (place, threshold) in NAMES.into_iter().enumerate() {
        let set = peer.request("logging/setLevel", json!({ "level": threshold })).await;
        assert_eq!(set["result"], json!({}), "{threshold}");
        let before = watch(&mut peer, json!({ "name": "work" })).await;
        let levels: Vec<Value> =
            notes(&before, "notifications/message").iter().map(|note| note["level"].clone()).collect();
        assert_eq!(levels, NAMES[place..], "{threshold}");
    }
}

#[tokio::test]
async fn a_session_sets_the_threshold_of_its_logs() {
    // proves: LOG-03, LOG-05, LOG-07
    let mut peer = Peer::new(Server::new("shop").tool(work()));
    peer.initialize("2025-06-18").await;
    // Before that the level is `info`.
    let before = watch(&mut peer, json!({ "name": "work" })).await;
    let logs = notes(&before, "notifications/message");
    assert_eq!(logs, [json!({ "level": "error", "data": { "disk": "full" } })]);
    let set = peer.request("logging/setLevel", json!({ "level": "debug" })).await;
    assert_eq!(set["result"], json!({}));
    let before = watch(&mut peer, json!({ "name": "work" })).await;
    let logs = notes(&before, "notifications/message");
    assert_eq!(
        logs,
        [
            json!({ "level": "debug", "data": "details" }),
            json!({ "level": "error", "data": { "disk": "full" } })
        ]
    );
    peer.request("logging/setLevel", json!({ "level": "emergency" })).await;
    let before = watch(&mut peer, json!({ "name": "work" })).await;
    assert!(notes(&before, "notifications/message").is_empty());
    let refused = peer.request("logging/setLevel", json!({ "level": "loud" })).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[tokio::test]
async fn a_modern_request_gets_logs_only_when_it_asks() {
    // proves: LOG-11
    let mut peer = Peer::new(Server::new("shop").tool(work()));
    let meta = |level: Option<&str>| {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        if let Some(level) = level {
            meta["io.modelcontextprotocol/logLevel"] = level.into();
        }
        meta
    };
    let silent = watch(&mut peer, json!({ "name": "work", "_meta": meta(None) })).await;
    assert!(silent.is_empty(), "{silent:?}");
    let loud = watch(&mut peer, json!({ "name": "work", "_meta": meta(Some("warning")) })).await;
    assert_eq!(
        notes(&loud, "notifications/message"),
        [json!({ "level": "error", "data": { "disk": "full" } })]
    );
}

/// A tool that reports when it starts and when it is dropped.
struct Watched {
    started: Arc<Notify>,
    dropped: Arc<AtomicBool>,
}

impl Watched {
    fn tool(&self) -> Tool {
        let (started, dropped) = (Arc::clone(&self.started), Arc::clone(&self.dropped));
        Tool::new("slow").handler(move |ctx: Ctx| {
            let guard = Dropped(Arc::clone(&dropped));
            let started = Arc::clone(&started);
            async move {
                let _guard = guard;
                started.notify_one();
                std::future::pending::<()>().await;
                ctx.progress(1.0, None);
            }
        })
    }

    fn new() -> Self {
        Self { started: Arc::default(), dropped: Arc::default() }
    }
}

struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_its_handler_and_sends_nothing() {
    // proves: STDIO-15
    // proves: STDIO-14, CANCEL-11
    for revision in [Some("2024-11-05"), Some("2025-11-25"), None] {
        let watched = Watched::new();
        let mut peer = Peer::new(Server::new("slow").tool(watched.tool()));
        let mut params = json!({ "name": "slow" });
        match revision {
            Some(revision) => drop(peer.initialize(revision).await),
            None => {
                params["_meta"] = json!({
                    "progressToken": 1,
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                });
            }
        }
        let id = peer.start("tools/call", params).await;
        watched.started.notified().await;
        peer.send(
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
        )
        .await;
        // A second one, and one for a request that never was, change nothing.
        peer.send(
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }),
        )
        .await;
        peer.send(
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 99 } }),
        )
        .await;
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {} })).await;
        let next = match revision {
            Some(_) => peer.start("ping", json!({})).await,
            None => {
                peer.start(
                    "server/discover",
                    json!({ "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            } }),
                )
                .await
            }
        };
        let frame = peer.recv().await;
        assert_eq!(
            frame["id"], next,
            "the first frame after a cancellation answers the next request: {frame}"
        );
        assert!(watched.dropped.load(Ordering::Acquire));
    }
}

#[tokio::test]
async fn an_id_used_again_after_its_cancellation_names_the_new_call() {
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (starting, dropping) = (Arc::clone(&started), Arc::clone(&dropped));
    let slow = Tool::new("slow").handler(move || {
        let (started, dropped) = (Arc::clone(&starting), Counted(Arc::clone(&dropping)));
        async move {
            let _dropped = dropped;
            started.notify_one();
            std::future::pending::<()>().await;
        }
    });
    let mut peer = Peer::new(Server::new("slow").tool(slow));
    peer.initialize("2025-11-25").await;
    let call = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": { "name": "slow" } });
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "a" } });
    // All three are there before the first call learns that it is cancelled.
    peer.send_all(&[call.clone(), cancel.clone(), call]).await;
    started.notified().await;
    peer.request("ping", json!({})).await;
    assert_eq!(dropped.load(Ordering::Acquire), 1);
    peer.send(cancel).await;
    peer.request("ping", json!({})).await;
    assert_eq!(dropped.load(Ordering::Acquire), 2);
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

#[tokio::test]
async fn a_slow_call_does_not_delay_others() {
    let watched = Watched::new();
    let mut peer = Peer::new(Server::new("slow").tool(watched.tool()));
    peer.initialize("2025-11-25").await;
    let slow = peer.start("tools/call", json!({ "name": "slow" })).await;
    watched.started.notified().await;
    for _ in 0..3 {
        let pong = peer.request("ping", json!({})).await;
        assert_eq!(pong["result"], json!({}));
    }
    // The id of a running request cannot be used again, and using it does not hurt the one that runs.
    peer.send(json!({ "jsonrpc": "2.0", "id": slow, "method": "ping" })).await;
    let refused = peer.recv().await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert!(!watched.dropped.load(Ordering::Acquire));
}

#[tokio::test]
async fn a_panic_is_an_error_response_and_the_connection_continues() {
    async fn in_time() -> String {
        tokio::task::yield_now().await;
        panic!("later")
    }
    let at_once = Tool::new("now").handler(|| -> String { panic!("at once") });
    let later = Tool::new("later").handler(in_time);
    let mut peer = Peer::new(Server::new("bang").tool(at_once).tool(later));
    peer.initialize("2025-11-25").await;
    for name in ["now", "later"] {
        let reply = peer.request("tools/call", json!({ "name": name })).await;
        assert_eq!(reply["error"]["code"], -32603, "{reply}");
    }
    assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn a_blocking_handler_runs_on_another_thread() {
    fn thread() -> String {
        std::thread::current().name().map(str::to_owned).unwrap_or_default()
    }
    // Whichever is said first.
    let server = Server::new("slow")
        .tool(Tool::new("after").handler(thread).blocking())
        .tool(Tool::new("before").blocking().handler(thread));
    let mut peer = Peer::new(server);
    peer.initialize("2025-11-25").await;
    for name in ["after", "before"] {
        let reply = peer.request("tools/call", json!({ "name": name })).await;
        assert_ne!(reply["result"]["content"][0]["text"], thread(), "{reply}");
    }
}

#[tokio::test]
async fn a_batch_is_answered_together_where_batches_exist() {
    // proves: BASE-20, BASE-23
    let batch = json!([
        { "jsonrpc": "2.0", "id": "a", "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/nothing" },
        { "jsonrpc": "2.0", "id": "b", "method": "tools/call", "params": { "name": "work" } },
        { "jsonrpc": "2.0", "id": "c", "method": "no/such" },
    ]);
    let mut peer = Peer::new(Server::new("shop").tool(work()));
    peer.initialize("2025-03-26").await;
    peer.request("logging/setLevel", json!({ "level": "emergency" })).await;
    peer.send(batch.clone()).await;
    let reply = peer.recv().await;
    let ids: Vec<_> = reply.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a", "c", "b"], "{reply}");
    // Only notifications: nothing to answer.
    peer.send(json!([{ "jsonrpc": "2.0", "method": "notifications/nothing" }])).await;
    assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));

    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut peer = Peer::new(Server::new("shop").tool(work()));
        peer.initialize(revision).await;
        peer.send(batch.clone()).await;
        let reply = peer.recv().await;
        assert_eq!(reply["error"]["code"], -32600, "{reply}");
        assert!(reply.get("id").is_none());
    }
}

#[tokio::test]
async fn a_call_cancelled_in_its_own_batch_does_not_begin() {
    let started = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (at_once, later) = (Arc::clone(&started), Arc::clone(&started));
    let server = Server::new("shop")
        .tool(Tool::new("now").handler(move || at_once.lock().unwrap().push("now")))
        .tool(Tool::new("later").handler(move || {
            let later = Arc::clone(&later);
            async move { later.lock().unwrap().push("later") }
        }));
    let mut peer = Peer::new(server);
    peer.initialize("2025-03-26").await;
    for name in ["now", "later"] {
        peer.send(json!([
            { "jsonrpc": "2.0", "id": name, "method": "tools/call", "params": { "name": name } },
            { "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": name } },
        ]))
        .await;
    }
    assert_eq!(peer.request("ping", json!({})).await["result"], json!({}));
    assert_eq!(*started.lock().unwrap(), [""; 0]);
}

#[tokio::test]
async fn errors_of_a_handler_are_for_the_model_unless_it_says_otherwise() {
    let parse = Tool::new("parse").handler(|| async { Result::<_>::Ok("x".parse::<i64>()?) });
    let refuse = Tool::new("refuse")
        .handler(|| Result::<()>::Err(bowline_server::Error::invalid_params("not like this")));
    let mut peer = Peer::new(Server::new("shop").tool(parse).tool(refuse));
    peer.initialize("2025-11-25").await;
    let failed = peer.request("tools/call", json!({ "name": "parse" })).await;
    assert_eq!(failed["result"]["isError"], true);
    assert_eq!(failed["result"]["content"][0]["text"], "invalid digit found in string");
    let refused = peer.request("tools/call", json!({ "name": "refuse" })).await;
    assert_eq!(refused["error"], json!({ "code": -32602, "message": "not like this" }));
}

/// Sends `count` progress notifications and log messages in one go.
fn flood(count: u32) -> Tool {
    Tool::new("flood").handler(move |ctx: Ctx| async move {
        for step in 1..=count {
            ctx.progress(f64::from(step), f64::from(count));
            ctx.log(LoggingLevel::Error, step);
        }
        "done"
    })
}

#[tokio::test(start_paused = true)]
async fn progress_and_log_messages_are_limited_in_rate() {
    // proves: PROG-13, LOG-19
    use bowline_server::Limits;
    let limits = Limits::default().progress_rate(3).log_rate(5);
    for modern in [false, true] {
        let mut peer = Peer::new(Server::new("shop").tool(flood(1000)).limits(limits));
        let mut params = json!({ "name": "flood", "_meta": { "progressToken": 7 } });
        if modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
            params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        } else {
            peer.initialize("2025-11-25").await;
        }
        let before = watch(&mut peer, params).await;
        let progress = notes(&before, "notifications/progress");
        let steps: Vec<_> = progress.iter().map(|progress| progress["progress"].clone()).collect();
        // A burst, and the last state when the call ends.
        assert_eq!(steps, [1, 2, 3, 1000]);
        let logs = notes(&before, "notifications/message");
        let data: Vec<_> = logs.iter().map(|message| message["data"].clone()).collect();
        let dropped = json!("995 log messages dropped: more than 5 per second");
        assert_eq!(data, [json!(1), json!(2), json!(3), json!(4), json!(5), dropped]);
        assert_eq!(logs[5]["level"], "warning");
    }
}

#[tokio::test(start_paused = true)]
async fn rate_limited_progress_and_logs_are_sent_later() {
    let limits = bowline_server::Limits::default().progress_rate(1).log_rate(1);
    let tool = Tool::new("flood").handler(|ctx: Ctx| async move {
        for step in 1..=4 {
            ctx.progress(f64::from(step), None);
            ctx.log(LoggingLevel::Error, step);
            if step % 2 == 0 {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
        }
        "done"
    });
    let mut peer = Peer::new(Server::new("shop").tool(tool).limits(limits));
    peer.initialize("2025-11-25").await;
    let before = watch(&mut peer, json!({ "name": "flood", "_meta": { "progressToken": 7 } })).await;
    let steps: Vec<_> = notes(&before, "notifications/progress")
        .iter()
        .map(|progress| progress["progress"].as_f64().unwrap())
        .collect();
    // The second was replaced by the third; the fourth is the last.
    assert_eq!(steps, [1.0, 3.0, 4.0]);
    let logs: Vec<_> =
        notes(&before, "notifications/message").iter().map(|log| log["data"].clone()).collect();
    let dropped = json!("1 log messages dropped: more than 1 per second");
    assert_eq!(logs, [json!(1), dropped.clone(), json!(3), dropped]);
}
