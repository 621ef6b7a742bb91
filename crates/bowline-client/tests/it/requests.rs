//! Requests and their answers: correlation, giving up, time running out, progress.

use crate::support::*;
use bowline_client::{Client, Error};
use bowline_types::{LoggingLevel, Meta, RawJson, Revision};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn answers_find_their_requests_in_any_order() {
    // proves: BASE-01, BASE-04, BASE-05, BASE-06, BASE-07, BASE-13, BASE-21, STDIO-03, STDIO-04
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, json!({ "tools": {} })).await;
        let calls = async { tokio::join!(client.call("a", ()), client.call("b", ()), client.call("c", ())) };
        let (results, ()) = both(calls, async {
            let requests = [peer.next().await, peer.next().await, peer.next().await];
            for request in requests.iter().rev() {
                let name = request["params"]["name"].as_str().unwrap();
                peer.reply(request, text_result(name)).await;
            }
        })
        .await;
        let texts = [results.0, results.1, results.2].map(|result| result.unwrap().text());
        assert_eq!(texts, ["a", "b", "c"], "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_under_another_type_of_id_is_not_ours() {
    // proves: BASE-08
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, json!({ "tools": {} })).await;
    let (result, ()) = both(client.call("a", ()), async {
        let request = peer.expect("tools/call").await;
        let id = request["id"].to_string();
        peer.send(json!({ "jsonrpc": "2.0", "id": id, "result": text_result("wrong") })).await;
        peer.send(json!({ "jsonrpc": "2.0", "id": 999, "result": text_result("stranger") })).await;
        peer.reply(&request, text_result("right")).await;
        peer.reply(&request, text_result("again")).await;
    })
    .await;
    assert_eq!(result.unwrap().text(), "right");
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_server_differ_from_local_ones() {
    // proves: BASE-43, BASE-39
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, json!({ "tools": {} })).await;
    for code in [-32001, -32019, 7] {
        let (result, ()) = both(client.call("a", ()), async {
            let request = peer.expect("tools/call").await;
            peer.fail(&request, code, "no").await;
        })
        .await;
        let error = result.unwrap_err();
        assert_eq!(error.as_rpc().unwrap().code, code);
        assert!(!error.is_timeout() && !error.is_closed() && !error.is_resource_not_found());
    }
    let (result, _) = both(client.call("a", ()), peer.expect("tools/call")).await;
    let error: Error = result.unwrap_err();
    assert!(error.is_timeout() && error.as_rpc().is_none());
}

#[tokio::test(start_paused = true)]
async fn invalid_arguments_may_be_an_error_or_a_failed_result() {
    // proves: TOOL-30
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, json!({ "tools": {} })).await;
        let (result, ()) = both(client.call("a", json!({ "x": 1 })), async {
            let request = peer.expect("tools/call").await;
            peer.fail(&request, -32602, "expected `x` to be a string").await;
        })
        .await;
        let error = result.unwrap_err();
        assert_eq!(error.as_rpc().map(|error| error.code), Some(-32602), "{revision}: {error}");
        let (result, ()) = both(client.call("a", json!({ "x": 1 })), async {
            let request = peer.expect("tools/call").await;
            let mut failed = text_result("expected `x` to be a string");
            failed["isError"] = json!(true);
            peer.reply(&request, failed).await;
        })
        .await;
        let result = result.unwrap();
        assert!(result.is_error() && result.text() == "expected `x` to be a string", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn subscribing_needs_its_own_capability() {
    // proves: RES-04
    for (resources, can_subscribe) in [
        (json!({}), false),
        (json!({ "listChanged": true }), false),
        (json!({ "subscribe": true }), true),
        (json!({ "subscribe": true, "listChanged": true }), true),
    ] {
        let capabilities = json!({ "resources": resources });
        let (client, mut peer) = connect(Client::builder(), V2025_11_25, capabilities.clone()).await;
        let (listed, ()) = both(client.resources(), async {
            let request = peer.expect("resources/list").await;
            peer.reply(&request, json!({ "resources": [] })).await;
        })
        .await;
        assert!(listed.is_ok(), "{capabilities}");
        if can_subscribe {
            let (subscribed, ()) = both(client.subscribe("a:1"), async {
                let request = peer.expect("resources/subscribe").await;
                peer.reply(&request, json!({})).await;
            })
            .await;
            assert!(subscribed.is_ok(), "{capabilities}");
        } else {
            assert!(client.subscribe("a:1").await.unwrap_err().is_unsupported(), "{capabilities}");
            peer.quiet().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_request_cancels_it_once() {
    // proves: CANCEL-01, CANCEL-02, CANCEL-05, CANCEL-06, CANCEL-10, CANCEL-11, CANCEL-14, STDIO-13
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, json!({ "tools": {} })).await;
        let mut call = Box::pin(client.call("slow", ()));
        let request = tokio::select! {
            _ = &mut call => panic!("nobody has answered"),
            request = peer.expect("tools/call") => request,
        };
        drop(call);
        let cancelled = peer.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], request["id"], "{revision}");
        assert!(cancelled.get("id").is_none());
        // The answer that was on its way does no harm, and the next call works.
        peer.reply(&request, text_result("late")).await;
        let (result, ()) = both(client.call("next", ()), async {
            let request = peer.expect("tools/call").await;
            peer.reply(&request, text_result("fine")).await;
        })
        .await;
        assert_eq!(result.unwrap().text(), "fine");
        peer.quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_answered_or_never_sent_is_not_cancelled() {
    // proves: CANCEL-01, CANCEL-02
    let (client, mut peer) = connect(Client::builder(), V2025_06_18, json!({ "tools": {} })).await;
    drop(client.call("never polled", ()));
    let mut call = Box::pin(client.call("answered", ()));
    tokio::select! {
        _ = &mut call => panic!("nobody has answered"),
        request = peer.expect("tools/call") => peer.reply(&request, text_result("done")).await,
    }
    // The answer is there, but nobody has looked at it yet.
    peer.settle().await;
    drop(call);
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_request_and_notifies_the_server() {
    // proves: LIFE-21, LIFE-22, LIFE-23, TOOL-52, CANCEL-14
    let builder = Client::builder().timeout(Duration::from_secs(5));
    let (client, mut peer) = connect(builder, V2025_11_25, json!({ "tools": {} })).await;
    for (limit, seconds) in [(None, 5), (Some(2), 2), (Some(70), 70)] {
        let started = tokio::time::Instant::now();
        let call = client.call("slow", ());
        let call = match limit {
            Some(limit) => call.timeout(Duration::from_secs(limit)),
            None => call,
        };
        let (result, request) = both(call, peer.expect("tools/call")).await;
        assert_eq!(started.elapsed(), Duration::from_secs(seconds));
        assert_eq!(result.unwrap_err().to_string(), format!("tools/call timed out after {seconds}s"));
        let cancelled = peer.expect("notifications/cancelled").await;
        assert_eq!(cancelled["params"]["requestId"], request["id"]);
        peer.reply(&request, text_result("late")).await;
    }
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_short_timeout_fires_before_a_longer_one_that_started_earlier() {
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, json!({ "tools": {} })).await;
    let started = tokio::time::Instant::now();
    let calls = async {
        tokio::join!(client.call("long", ()), async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let result = client.call("short", ()).timeout(Duration::from_secs(3)).await;
            (result, started.elapsed())
        })
    };
    let ((long, (short, after)), _) = both(calls, async {
        peer.expect("tools/call").await;
        peer.expect("tools/call").await
    })
    .await;
    assert!(short.unwrap_err().is_timeout());
    assert_eq!(after, Duration::from_secs(4));
    assert!(long.unwrap_err().is_timeout());
    assert_eq!(started.elapsed(), MINUTE);
}

#[tokio::test(start_paused = true)]
async fn progress_keeps_a_request_alive_but_not_forever() {
    // proves: LIFE-24, LIFE-25, PROG-01, PROG-04, PROG-06
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, json!({ "tools": {} })).await;
    let received = Arc::new(Mutex::new(Vec::new()));
    let started = tokio::time::Instant::now();
    let call =
        client.call("slow", ()).timeout(Duration::from_secs(10)).max_total(Duration::from_secs(25)).progress(
            {
                let received = Arc::clone(&received);
                move |progress| {
                    received.lock().unwrap().push((progress.progress, progress.total, progress.message));
                }
            },
        );
    let script = async {
        let request = peer.expect("tools/call").await;
        let token = &request["params"]["_meta"]["progressToken"];
        assert!(token.is_i64() || token.is_string());
        for step in 1..=3 {
            tokio::time::sleep(Duration::from_secs(9)).await;
            let params = json!({ "progressToken": token, "progress": f64::from(step) / 4.0, "total": 1, "message": "on it" });
            peer.notify("notifications/progress", params).await;
        }
        peer.expect("notifications/cancelled").await
    };
    let (result, _) = both(call, script).await;
    assert_eq!(result.unwrap_err().to_string(), "tools/call timed out after 25s");
    assert_eq!(started.elapsed(), Duration::from_secs(27));
    let received = received.lock().unwrap();
    let on_it = Some("on it".to_owned());
    assert_eq!(*received, [(0.25, Some(1.0), on_it.clone()), (0.5, Some(1.0), on_it)]);
}

#[tokio::test(start_paused = true)]
async fn progress_goes_to_the_request_it_names_and_nowhere_else() {
    // V-113
    // proves: PROG-02, PROG-12, PROG-10
    let received = Arc::new(Mutex::new(Vec::<String>::new()));
    let note = |who: &'static str| {
        let received = Arc::clone(&received);
        move |_| received.lock().unwrap().push(who.into())
    };
    let builder = Client::builder().on_progress(note("anyone"));
    let (client, mut peer) = connect(builder, V2026_07_28, json!({ "tools": {} })).await;
    let calls = async {
        tokio::join!(
            client.call("a", ()).progress(note("a")),
            client.call("b", ()).progress(note("b")),
            client.call("c", ())
        )
    };
    let script = async {
        let requests = [peer.next().await, peer.next().await, peer.next().await];
        let token = |request: &Value| request["params"]["_meta"]["progressToken"].clone();
        let tokens: Vec<_> = requests.iter().map(token).collect();
        assert!(tokens[0] != tokens[1] && tokens[1] != tokens[2] && tokens[0] != tokens[2]);
        for token in [&tokens[2], &json!("stranger"), &json!(99), &tokens[0], &json!(null), &tokens[1]] {
            peer.notify("notifications/progress", json!({ "progressToken": token, "progress": 1 })).await;
        }
        for request in &requests {
            peer.reply(request, text_result("done")).await;
            // Too late: the request is over.
            peer.notify("notifications/progress", json!({ "progressToken": token(request), "progress": 2 }))
                .await;
        }
    };
    let ((a, b, c), ()) = both(calls, script).await;
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    let (pong, ()) = both(client.ping(), async {
        let ping = peer.expect("server/discover").await;
        peer.reply(&ping, json!({})).await;
    })
    .await;
    pong.unwrap();
    assert_eq!(*received.lock().unwrap(), ["anyone", "a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn progress_is_requested_only_with_a_handler() {
    // proves: PROG-10
    let (client, mut peer) = connect(Client::builder(), V2025_03_26, json!({ "tools": {} })).await;
    let (result, ()) = both(client.call("a", ()), async {
        let request = peer.expect("tools/call").await;
        assert_eq!(request["params"], json!({ "name": "a" }));
        peer.reply(&request, text_result("done")).await;
    })
    .await;
    result.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_fails_everything_at_once() {
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, json!({ "tools": {} })).await;
        let started = tokio::time::Instant::now();
        let calls = async { tokio::join!(client.call("a", ()), client.call("b", ())) };
        let ((a, b), ()) = both(calls, async {
            peer.next().await;
            peer.next().await;
            peer.hang_up();
        })
        .await;
        for error in [
            a.unwrap_err(),
            b.unwrap_err(),
            client.call("later", ()).await.unwrap_err(),
            client.closed().await,
        ] {
            assert_eq!(
                error.to_string(),
                "the connection is closed: the server ended its output",
                "{revision}"
            );
            assert!(error.is_closed());
        }
        assert!(started.elapsed() < Duration::from_secs(1));
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_is_sent_and_cannot_break_the_protocol() {
    // proves: META-08, META-26, META-01, META-02, META-04
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, json!({ "tools": {} })).await;
    let call = client
        .call("a", json!({ "x": 1 }))
        .meta("com.example/key", json!([1]))
        .meta("traceparent", json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
        .meta("io.modelcontextprotocol/protocolVersion", json!("1900-01-01"))
        .metas(&Meta::new().with("baggage", json!("a=b")));
    let (result, ()) = both(call, async {
        let request = peer.expect("tools/call").await;
        let meta = &request["params"]["_meta"];
        assert_eq!(meta["com.example/key"], json!([1]));
        assert_eq!(meta["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        assert_eq!(meta["baggage"], "a=b");
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(request["params"]["arguments"], json!({ "x": 1 }));
        let result =
            json!({ "content": [], "_meta": { "com.example/unknown": { "deep": [null] } }, "other": 1 });
        peer.reply(&request, result).await;
    })
    .await;
    assert!(result.unwrap().meta.unwrap().get("com.example/unknown").is_some());
    for bad in ["1a/x", "a-/x", "a..b/x", "-x", "x y"] {
        let error = client.call("a", ()).meta(bad, json!(1)).await.unwrap_err().to_string();
        assert!(error.contains(bad), "{error}");
    }
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn log_levels_are_set_as_each_era_has_it() {
    // proves: LOG-04, LOG-10
    let logs = Arc::new(Mutex::new(Vec::new()));
    let builder = Client::builder().log_level(LoggingLevel::Warning).on_log({
        let logs = Arc::clone(&logs);
        move |message| logs.lock().unwrap().push(message.data.to_string())
    });
    let (end, server) = bowline_client::memory();
    let mut peer = Peer::new(server);
    let (client, ()) = both(builder.clone().connect(end), async {
        peer.open(V2025_06_18, json!({ "logging": {} })).await;
        let request = peer.expect("logging/setLevel").await;
        assert_eq!(request["params"], json!({ "level": "warning" }));
        peer.reply(&request, json!({})).await;
    })
    .await;
    let client = client.unwrap();
    peer.notify("notifications/message", json!({ "level": "error", "data": "first" })).await;
    let (set, ()) = both(client.set_level(LoggingLevel::Debug), async {
        let request = peer.expect("logging/setLevel").await;
        assert_eq!(request["params"], json!({ "level": "debug" }));
        peer.reply(&request, json!({})).await;
    })
    .await;
    set.unwrap();
    assert_eq!(*logs.lock().unwrap(), ["\"first\""]);

    // A server that declares no logging is not asked for it.
    let (client, mut peer) = connect(builder.clone(), V2025_06_18, json!({})).await;
    peer.quiet().await;
    assert!(client.set_level(LoggingLevel::Debug).await.unwrap_err().is_unsupported());

    let (client, mut peer) = connect(builder, V2026_07_28, json!({ "logging": {}, "tools": {} })).await;
    for (level, text) in [(None, "warning"), (Some(LoggingLevel::Info), "info")] {
        if let Some(level) = level {
            client.set_level(level).await.unwrap();
        }
        let (result, ()) = both(client.call("a", ()), async {
            let request = peer.expect("tools/call").await;
            assert_eq!(request["params"]["_meta"]["io.modelcontextprotocol/logLevel"], text);
            peer.notify("notifications/message", json!({ "level": "error", "data": text })).await;
            peer.reply(&request, text_result("done")).await;
        })
        .await;
        result.unwrap();
    }
    assert_eq!(*logs.lock().unwrap(), ["\"first\"", "\"warning\"", "\"info\""]);
}

#[tokio::test(start_paused = true)]
async fn pings_ask_whether_the_server_is_alive() {
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, json!({})).await;
        let method = if revision.is_modern() { "server/discover" } else { "ping" };
        let (pong, ()) = both(client.ping(), async {
            let ping = peer.expect(method).await;
            peer.reply(&ping, json!({})).await;
        })
        .await;
        pong.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_that_stops_answering_pings_is_closed() {
    // proves: PING-02, PING-04, PING-06
    let builder = Client::builder().keep_alive(Duration::from_secs(10));
    let (client, mut peer) = connect(builder.clone(), V2025_06_18, json!({})).await;
    let started = tokio::time::Instant::now();
    for round in 1..=2 {
        let ping = peer.expect("ping").await;
        assert_eq!(started.elapsed(), Duration::from_secs(round * 10));
        peer.reply(&ping, json!({})).await;
    }
    // An error is an answer too.
    let ping = peer.expect("ping").await;
    peer.fail(&ping, -32603, "busy").await;
    peer.expect("ping").await;
    let reason = client.closed().await;
    assert_eq!(reason.to_string(), "the connection is closed: a ping was not answered in time");
    assert_eq!(started.elapsed(), Duration::from_secs(50));

    let (_client, mut peer) = connect(builder, V2026_07_28, json!({})).await;
    let waited = tokio::time::timeout(MINUTE, peer.next()).await;
    assert!(waited.is_err(), "a modern server is not pinged");
    let (_client, mut peer) = connect(Client::builder(), V2025_06_18, json!({})).await;
    let waited = tokio::time::timeout(60 * MINUTE, peer.next()).await;
    assert!(waited.is_err(), "nobody is pinged who was not asked for it");
}

#[tokio::test(start_paused = true)]
async fn closing_fails_running_requests() {
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, json!({ "tools": {} })).await;
    let other = client.clone();
    let (result, ()) = both(client.call("slow", ()), async {
        peer.expect("tools/call").await;
        other.close().await;
        peer.ended().await;
    })
    .await;
    assert_eq!(result.unwrap_err().to_string(), "the connection is closed: the client was closed");
    assert!(client.ping().await.unwrap_err().is_closed());
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_closes_the_connection() {
    // proves: BASE-33
    for revision in Revision::ALL {
        let builder = Client::builder().on_notification(|_| {});
        let (client, mut peer) = connect(builder, revision, json!({})).await;
        let clone = client.clone();
        drop(client);
        peer.quiet().await;
        drop(clone);
        peer.ended().await;
    }
}

#[tokio::test(start_paused = true)]
async fn only_declared_capabilities_are_used() {
    // proves: LIFE-15, LIFE-16, RES-17, PRM-17, COMP-02
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, json!({})).await;
        assert_eq!(client.tools().await.unwrap(), []);
        assert_eq!(client.resources().await.unwrap(), []);
        assert_eq!(client.templates().await.unwrap(), []);
        assert_eq!(client.prompts().await.unwrap(), []);
        let unsupported = [
            client.call("a", ()).await.unwrap_err(),
            client.read("a:b").await.unwrap_err(),
            client.prompt("a", ()).await.unwrap_err(),
            client.subscribe("a:b").await.unwrap_err(),
            client.unsubscribe("a:b").await.unwrap_err(),
        ];
        assert!(unsupported.iter().all(Error::is_unsupported), "{unsupported:?}");
        peer.quiet().await;
        let reference = bowline_types::Reference::prompt("a");
        let complete = client.complete_with(reference, "x", "", [("y", "z")]);
        if revision > V2024_11_05 {
            assert!(complete.await.unwrap_err().is_unsupported());
            peer.quiet().await;
        } else {
            // There was nothing to declare yet.
            let (result, ()) = both(complete, async {
                let request = peer.expect("completion/complete").await;
                peer.fail(&request, -32601, "method not found").await;
            })
            .await;
            assert_eq!(result.unwrap_err().as_rpc().unwrap().code, -32601);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn any_request_and_notification_can_be_sent() {
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, json!({})).await;
    let params = json!({ "a": 1, "_meta": { "com.example/k": 2 } });
    let (result, ()) = both(client.request::<RawJson>("com.example/do \"it\"", params), async {
        let request = peer.expect("com.example/do \"it\"").await;
        assert_eq!(request["params"]["a"], 1);
        assert_eq!(request["params"]["_meta"]["com.example/k"], 2);
        peer.reply(&request, json!({ "done": true })).await;
    })
    .await;
    assert_eq!(result.unwrap().as_str(), r#"{"done":true}"#);
    client.notify("com.example/told", json!({ "b": 1 })).await.unwrap();
    let notification = peer.expect("com.example/told").await;
    assert_eq!(notification, json!({ "jsonrpc": "2.0", "method": "com.example/told", "params": { "b": 1 } }));
    let error = client.notify("notifications/roots/list_changed", ()).await.unwrap_err();
    assert_eq!(error.to_string(), "clients cannot send `notifications/roots/list_changed` in 2026-07-28");
    assert!(client.request::<RawJson>("x", json!([1])).await.is_err());
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_progress_and_log_messages_is_cut() {
    // proves: PROG-13
    // V-112
    use std::sync::atomic::{AtomicUsize, Ordering};
    let (logs, steps) = (std::sync::Arc::new(AtomicUsize::new(0)), std::sync::Arc::new(AtomicUsize::new(0)));
    let (logged, stepped) = (std::sync::Arc::clone(&logs), std::sync::Arc::clone(&steps));
    let builder = Client::builder()
        .max_log_rate(10)
        .max_progress_rate(5)
        .on_log(move |_| _ = logged.fetch_add(1, Ordering::Relaxed))
        .on_progress(move |_| _ = stepped.fetch_add(1, Ordering::Relaxed));
    let (client, mut peer) = connect(builder, V2025_11_25, json!({ "tools": {}, "logging": {} })).await;
    let (result, ()) = both(client.call("flood", ()), async {
        let request = peer.expect("tools/call").await;
        let token = request["params"]["_meta"]["progressToken"].clone();
        for round in 0..2 {
            for step in 1..=500 {
                let progress = json!({ "progressToken": token, "progress": round * 500 + step });
                peer.notify("notifications/progress", progress).await;
                peer.notify("notifications/message", json!({ "level": "info", "data": step })).await;
            }
            peer.settle_as(&format!("round {round}")).await;
            let allowed = 1 + round;
            // Twice the rate in a burst; a second later as many as the rate.
            assert_eq!(logs.load(Ordering::Relaxed), 10 + 10 * allowed);
            assert_eq!(steps.load(Ordering::Relaxed), 5 + 5 * allowed);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        peer.reply(&request, text_result("done")).await;
    })
    .await;
    result.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_with_a_running_request_is_not_pinged() {
    // proves: PING-06
    let builder = Client::builder().keep_alive(Duration::from_secs(10)).timeout(5 * MINUTE);
    let (client, mut peer) = connect(builder, V2025_06_18, json!({ "tools": {} })).await;
    let (result, ()) = both(client.call("slow", ()), async {
        let request = peer.expect("tools/call").await;
        let pinged = tokio::time::timeout(2 * MINUTE, peer.next()).await;
        assert!(pinged.is_err(), "pinged while it was busy: {pinged:?}");
        peer.reply(&request, text_result("done")).await;
    })
    .await;
    result.unwrap();
    let ping = peer.expect("ping").await;
    peer.reply(&ping, json!({})).await;
}
