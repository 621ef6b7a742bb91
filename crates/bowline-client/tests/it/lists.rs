//! Lists page by page, and what is kept of them.

use crate::support::*;
use bowline_client::{Client, Error};
use bowline_types::Revision;
use serde_json::{Value, json};
use std::time::Duration;

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

fn page(names: &[&str], next: Option<&str>) -> Value {
    let mut result =
        json!({ "resultType": "complete", "tools": names.iter().map(|name| tool(name)).collect::<Vec<_>>() });
    if let Some(next) = next {
        result["nextCursor"] = json!(next);
    }
    result
}

fn kept(mut result: Value, milliseconds: i64) -> Value {
    result["ttlMs"] = json!(milliseconds);
    result["cacheScope"] = json!("private");
    result
}

/// Answers one request for tools, after looking at its cursor.
async fn serve(peer: &mut Peer, cursor: Option<&str>, result: Value) {
    let request = peer.expect("tools/list").await;
    assert_eq!(request["params"].get("cursor"), cursor.map(|cursor| json!(cursor)).as_ref());
    peer.reply(&request, result).await;
}

fn names(tools: &[bowline_types::Tool]) -> Vec<&str> {
    tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn all_pages_are_followed_by_their_cursors() {
    // proves: PAGE-01, PAGE-02, PAGE-04, PAGE-05, PAGE-06, PAGE-07
    for revision in Revision::ALL {
        let (client, mut peer) = connect(Client::builder(), revision, everything()).await;
        let odd = "ünïcode \" \\ \n %20 eyJhIjoxfQ==";
        let (tools, ()) = both(client.tools(), async {
            serve(&mut peer, None, page(&["a", "b", "c"], Some(odd))).await;
            serve(&mut peer, Some(odd), page(&[], Some(""))).await;
            serve(&mut peer, Some(""), page(&["d"], Some("3"))).await;
            serve(&mut peer, Some("3"), page(&["e", "f"], None)).await;
        })
        .await;
        assert_eq!(names(&tools.unwrap()), ["a", "b", "c", "d", "e", "f"]);
        let (tools, ()) = both(client.tools(), serve(&mut peer, None, page(&["only"], None))).await;
        assert_eq!(names(&tools.unwrap()), ["only"]);
        peer.quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_list_is_read() {
    // proves: PRM-16
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, everything()).await;
    let (prompts, ()) = both(client.prompts(), async {
        let request = peer.expect("prompts/list").await;
        peer.reply(&request, json!({ "prompts": [{ "name": "p" }], "nextCursor": "x" })).await;
        let request = peer.expect("prompts/list").await;
        assert_eq!(request["params"], json!({ "cursor": "x" }));
        peer.reply(&request, json!({ "prompts": [{ "name": "q" }] })).await;
    })
    .await;
    assert_eq!(prompts.unwrap().len(), 2);
    let (resources, ()) = both(client.resources(), async {
        let request = peer.expect("resources/list").await;
        peer.reply(&request, json!({ "resources": [{ "uri": "a:b", "name": "r" }] })).await;
    })
    .await;
    assert_eq!(resources.unwrap()[0].uri, "a:b");
    let (templates, ()) = both(client.templates(), async {
        let request = peer.expect("resources/templates/list").await;
        peer.reply(&request, json!({ "resourceTemplates": [{ "uriTemplate": "a:{b}", "name": "t" }] })).await;
    })
    .await;
    assert_eq!(templates.unwrap()[0].uri_template, "a:{b}");
}

#[tokio::test(start_paused = true)]
async fn a_list_with_a_repeated_cursor_is_an_error() {
    // proves: PAGE-12
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, everything()).await;
    let (tools, ()) = both(client.tools(), async {
        serve(&mut peer, None, page(&["a"], Some("1"))).await;
        serve(&mut peer, Some("1"), page(&["b"], Some("2"))).await;
        serve(&mut peer, Some("2"), page(&["c"], Some("1"))).await;
    })
    .await;
    assert!(tools.unwrap_err().is_malformed());
    let mut stream = client.tools_stream();
    let (items, ()) =
        both(async { [stream.next().await, stream.next().await, stream.next().await] }, async {
            serve(&mut peer, None, page(&["a"], Some("1"))).await;
            serve(&mut peer, Some("1"), page(&["b"], Some("1"))).await;
        })
        .await;
    let oks = items.map(|item| item.map(|item| item.is_ok()));
    assert_eq!(oks, [Some(true), Some(false), None]);
    peer.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn one_bad_entry_does_not_hide_the_others() {
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, everything()).await;
    let entries = json!({ "tools": [tool("a"), { "name": 7 }, "tool", tool("b")], "nextCursor": null });
    let (tools, ()) = both(client.tools(), serve(&mut peer, None, entries)).await;
    assert_eq!(names(&tools.unwrap()), ["a", "b"]);
    for bad in [json!({ "tools": 7 }), json!({ "tools": [], "nextCursor": 7 }), json!([])] {
        let (tools, ()) = both(client.tools(), serve(&mut peer, None, bad)).await;
        assert!(tools.unwrap_err().is_malformed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_fetches_pages_when_they_are_wanted() {
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, everything()).await;
    let mut stream = client.tools_stream();
    peer.quiet().await;
    let (first, ()) = both(stream.next(), serve(&mut peer, None, page(&["a", "b"], Some("1")))).await;
    assert_eq!(first.unwrap().unwrap().name, "a");
    assert_eq!(stream.next().await.unwrap().unwrap().name, "b");
    peer.quiet().await;
    let (third, ()) = both(stream.next(), serve(&mut peer, Some("1"), page(&["c"], None))).await;
    assert_eq!(third.unwrap().unwrap().name, "c");
    assert!(stream.next().await.is_none());
    let mut broken = client.tools_stream();
    let (error, ()) = both(broken.next(), async {
        let request = peer.expect("tools/list").await;
        peer.fail(&request, -32603, "no").await;
    })
    .await;
    assert!(error.unwrap().is_err());
    assert!(broken.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_list_is_cached_for_its_ttl() {
    // proves: CACHE-07, CACHE-08, CACHE-09, CACHE-10, CACHE-11, CACHE-12
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
    for stale in [page(&["a"], None), kept(page(&["a"], None), 0), kept(page(&["a"], None), -5)] {
        let (tools, ()) = both(client.tools(), serve(&mut peer, None, stale)).await;
        tools.unwrap();
    }
    let (tools, ()) = both(client.tools(), serve(&mut peer, None, kept(page(&["b"], None), 10_000))).await;
    tools.unwrap();
    tokio::time::sleep(Duration::from_millis(9_999)).await;
    assert_eq!(names(&client.tools().await.unwrap()), ["b"]);
    tokio::time::sleep(Duration::from_millis(1)).await;
    let (tools, ()) = both(client.tools(), serve(&mut peer, None, kept(page(&["c"], None), 1000))).await;
    assert_eq!(names(&tools.unwrap()), ["c"]);
    // Time alone sends nothing.
    let waited = tokio::time::timeout(Duration::from_secs(3600), peer.next()).await;
    assert!(waited.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_cached_page_answers_for_itself_only() {
    // proves: CACHE-05, CACHE-19, CACHE-20, CACHE-23
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
    let (tools, ()) = both(client.tools(), async {
        serve(&mut peer, None, kept(page(&["a"], Some("1")), 60_000)).await;
        serve(&mut peer, Some("1"), kept(page(&["b"], None), 1000)).await;
    })
    .await;
    tools.unwrap();
    assert_eq!(names(&client.tools().await.unwrap()), ["a", "b"]);
    assert_eq!(names(&client.tools_page(Some("1")).await.unwrap().items), ["b"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    // The first page is fresh; the second is asked for by its own cursor.
    assert_eq!(client.tools_page(None).await.unwrap().next_cursor.as_deref(), Some("1"));
    let (second, ()) =
        both(client.tools_page(Some("1")), serve(&mut peer, Some("1"), kept(page(&["b2"], None), 1000)))
            .await;
    assert_eq!(names(&second.unwrap().items), ["b2"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    // A whole list is not put together from pages of different times.
    let (tools, ()) = both(client.tools(), async {
        serve(&mut peer, None, page(&["x"], Some("9"))).await;
        serve(&mut peer, Some("9"), page(&["y"], None)).await;
    })
    .await;
    assert_eq!(names(&tools.unwrap()), ["x", "y"]);

    for uri in ["a:1", "a:2"] {
        let (read, ()) = both(client.read(uri), async {
            let request = peer.expect("resources/read").await;
            assert_eq!(request["params"]["uri"], uri);
            let contents = json!([{ "uri": uri, "text": uri }]);
            peer.reply(&request, kept(json!({ "contents": contents }), 60_000)).await;
        })
        .await;
        assert_eq!(read.unwrap().contents[0].uri(), uri);
    }
    assert_eq!(client.read("a:1").await.unwrap().contents[0].uri(), "a:1");
    // What was sent with metadata of its own is not taken from the cache.
    let (_, request) =
        both(client.read("a:1").meta("x", json!(1)).timeout(Duration::from_secs(1)), peer.next()).await;
    assert_eq!(request["params"]["uri"], "a:1");
}

#[tokio::test(start_paused = true)]
async fn an_expired_cursor_restarts_the_list() {
    // proves: CACHE-21
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
    let (tools, ()) = both(client.tools(), async {
        serve(&mut peer, None, kept(page(&["a"], Some("1")), 60_000)).await;
        let request = peer.expect("tools/list").await;
        peer.fail(&request, -32602, "no such cursor").await;
        serve(&mut peer, None, kept(page(&["x"], Some("2")), 60_000)).await;
        serve(&mut peer, Some("2"), kept(page(&["y"], None), 60_000)).await;
    })
    .await;
    assert_eq!(names(&tools.unwrap()), ["x", "y"]);
    // At most once, and only for a cursor.
    client.clear_cache();
    let (tools, ()) = both(client.tools(), async {
        let request = peer.expect("tools/list").await;
        peer.fail(&request, -32602, "no").await;
        peer.quiet().await;
    })
    .await;
    assert!(tools.unwrap_err().is_rpc());
}

#[tokio::test(start_paused = true)]
async fn each_client_has_its_own_cache() {
    for _ in 0..2 {
        let (client, mut peer) = connect(Client::builder(), V2026_07_28, everything()).await;
        let (tools, ()) =
            both(client.tools(), serve(&mut peer, None, kept(page(&["a"], None), 60_000))).await;
        tools.unwrap();
        client.clear_cache();
        let (tools, ()) =
            both(client.tools(), serve(&mut peer, None, kept(page(&["a"], None), 60_000))).await;
        tools.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_notification_invalidates_a_cached_list() {
    // proves: CACHE-18
    let builder = Client::builder().on_notification(|_| {});
    let (end, server) = bowline_client::memory();
    let mut peer = Peer::new(server);
    let (client, subscription) = both(builder.connect(end), async {
        peer.open(V2026_07_28, everything()).await;
        let request = peer.expect("subscriptions/listen").await;
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": request["id"] });
        let granted = &request["params"]["notifications"];
        peer.notify(
            "notifications/subscriptions/acknowledged",
            json!({ "_meta": meta, "notifications": granted }),
        )
        .await;
        meta
    })
    .await;
    let client = client.unwrap();
    for changed in ["notifications/prompts/list_changed", "notifications/tools/list_changed"] {
        let (tools, ()) =
            both(client.tools(), serve(&mut peer, None, kept(page(&["a"], None), 60_000))).await;
        tools.unwrap();
        peer.notify(changed, json!({ "_meta": subscription })).await;
        peer.quiet().await;
        if changed.contains("prompts") {
            client.tools().await.unwrap();
            client.clear_cache();
        }
    }
    let (tools, ()) = both(client.tools(), serve(&mut peer, None, page(&["b"], None))).await;
    assert_eq!(names(&tools.unwrap()), ["b"]);
    // A change that no subscription of ours brings is not for us.
    let (tools, ()) = both(client.tools(), serve(&mut peer, None, kept(page(&["c"], None), 60_000))).await;
    tools.unwrap();
    peer.notify(
        "notifications/tools/list_changed",
        json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": "x" } }),
    )
    .await;
    peer.notify("notifications/tools/list_changed", json!({})).await;
    peer.quiet().await;
    assert_eq!(names(&client.tools().await.unwrap()), ["c"]);
    // The resource that changed, and what lies below it.
    let read = async |peer: &mut Peer, uri: &str| {
        let (read, ()) = both(client.read(uri), async {
            let request = peer.expect("resources/read").await;
            peer.reply(&request, kept(json!({ "contents": [] }), 60_000)).await;
        })
        .await;
        read.unwrap();
    };
    for uri in ["file:///a/b", "file:///c"] {
        read(&mut peer, uri).await;
    }
    peer.notify("notifications/resources/updated", json!({ "uri": "file:///a", "_meta": subscription }))
        .await;
    peer.quiet().await;
    client.read("file:///c").await.unwrap();
    read(&mut peer, "file:///a/b").await;
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_is_asked_each_time() {
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, everything()).await;
    for name in ["a", "b"] {
        let (tools, ()) = both(client.tools(), serve(&mut peer, None, page(&[name], None))).await;
        assert_eq!(names(&tools.unwrap()), [name]);
    }
}

#[tokio::test(start_paused = true)]
async fn discover_can_be_repeated() {
    let (client, mut peer) = connect(Client::builder(), V2026_07_28, json!({})).await;
    let (discovered, ()) = both(client.discover(), async {
        let request = peer.expect("server/discover").await;
        let result = json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
        peer.reply(&request, kept(result, 60_000)).await;
    })
    .await;
    assert!(discovered.unwrap().capabilities.tools.is_some());
    client.discover().await.unwrap();
    let (client, _peer) = connect(Client::builder(), V2025_11_25, json!({})).await;
    let error: Error = client.discover().await.unwrap_err();
    assert!(error.is_unsupported());
}

#[tokio::test(start_paused = true)]
async fn a_list_longer_than_its_limit_is_an_error() {
    // V-112
    use bowline_client::ListLimits;
    let limits = ListLimits::default().bytes(2000).entries(5);
    let connect_limited = || connect(Client::builder().list_limits(limits), V2026_07_28, everything());

    // Too many entries, in pages that are harmless by themselves.
    let (client, mut peer) = connect_limited().await;
    let (tools, ()) = both(client.tools(), async {
        serve(&mut peer, None, kept(page(&["a", "b", "c"], Some("1")), 60_000)).await;
        serve(&mut peer, Some("1"), kept(page(&["d", "e", "f"], Some("2")), 60_000)).await;
    })
    .await;
    let error = tools.unwrap_err();
    assert!(error.is_too_large(), "{error}");
    assert_eq!(
        error.to_string(),
        "the result of `tools/list` (page 2) exceeds the limit of 5 entries for a list"
    );
    // Nothing of it is taken from the cache either, and the next try starts over.
    peer.quiet().await;
    let (tools, ()) = both(client.tools(), serve(&mut peer, None, page(&["a"], None))).await;
    assert_eq!(names(&tools.unwrap()), ["a"]);

    // Too many bytes: at once, page by page, and in cursors.
    let long = "x".repeat(1500);
    for (pages, reason) in [
        (vec![json!({ "tools": [], "padding": "x".repeat(3000) })], "2000 bytes"),
        (
            vec![
                json!({ "tools": [], "padding": long, "nextCursor": "1" }),
                json!({ "tools": [], "padding": long }),
            ],
            "(page 2) exceeds the limit of 2000 bytes",
        ),
    ] {
        let (client, mut peer) = connect_limited().await;
        let (tools, ()) = both(client.tools(), async {
            for page in pages.clone() {
                let request = peer.expect("tools/list").await;
                peer.reply(&request, page).await;
            }
        })
        .await;
        let error = tools.unwrap_err();
        assert!(error.is_too_large() && error.to_string().contains(reason), "{error}");
        let mut stream = client.tools_stream();
        let (end, ()) = both(stream.next(), async {
            for page in pages {
                let request = peer.expect("tools/list").await;
                peer.reply(&request, page).await;
            }
        })
        .await;
        assert!(end.unwrap().unwrap_err().is_too_large());
        assert!(stream.next().await.is_none());
    }
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, everything()).await;
    let (tools, ()) = both(client.tools(), async {
        serve(&mut peer, None, page(&["a"], Some(&"c".repeat(70_000)))).await;
    })
    .await;
    assert!(tools.unwrap_err().is_too_large());
    peer.quiet().await;
}
