//! Transports of others: what the client gives them, and what it takes from them.

use crate::support::*;
use bowline_client::{
    BoxFuture, CancelWay, Client, Connect, Error, Inbox, Outgoing, OutgoingKind, Result, Stream, Transport,
    memory,
};
use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// A transport without bytes: frames go to the test and come from it.
#[derive(Clone)]
struct Direct {
    sent: mpsc::UnboundedSender<Outgoing>,
    inbox: Arc<Mutex<Option<Inbox>>>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Connect for Direct {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        assert_eq!(inbox.known_era(), None);
        *self.inbox.lock().unwrap() = Some(inbox);
        Box::pin(async { Ok(Box::new(self.clone()) as _) })
    }
}

impl Transport for Direct {
    fn send(&self, outgoing: Outgoing) {
        self.sent.send(outgoing).unwrap();
    }

    fn cancel(&self, id: &bowline_types::Id) -> CancelWay {
        self.log.lock().unwrap().push(format!("cancel {id}"));
        CancelWay::Closed
    }

    fn opened(&self, negotiated: &bowline_client::Negotiated) {
        self.log.lock().unwrap().push(format!("opened {}", negotiated.revision));
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.log.lock().unwrap().push("close".into());
        Box::pin(async {})
    }
}

#[tokio::test(start_paused = true)]
async fn a_transport_gets_what_it_needs_without_parsing_frames() {
    // proves: BASE-44, BASE-45
    let (sent, mut frames) = mpsc::unbounded_channel();
    let direct = Direct { sent, inbox: Arc::default(), log: Arc::default() };
    let inbox = || direct.inbox.lock().unwrap().clone().unwrap();
    let answer = |frame: &Outgoing, result: Value| {
        let request: Value = serde_json::from_slice(&frame.frame).unwrap();
        let frame = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        inbox().accept(&Bytes::from(frame.to_string()));
    };
    let (client, ()) = both(Client::builder().max_frame(77).connect(direct.clone()), async {
        let probe = frames.recv().await.unwrap();
        assert!(
            matches!(&probe.kind, OutgoingKind::Request { method, .. } if &**method == "server/discover")
        );
        assert_eq!(probe.name(), None);
        assert_eq!(inbox().max_frame(), 77);
        let capabilities = json!({ "tools": {}, "resources": {} });
        answer(&probe, json!({ "supportedVersions": ["2026-07-28"], "capabilities": capabilities }));
    })
    .await;
    let client = client.unwrap();
    let mut named = async |kind: &str| {
        let frame: Outgoing = frames.recv().await.unwrap();
        let OutgoingKind::Request { id, method, .. } = frame.kind.clone() else {
            panic!("expected a request")
        };
        assert_eq!(&*method, kind);
        // The frame is JSON-RPC as everywhere, and describes itself.
        let sent: Value = serde_json::from_slice(&frame.frame).unwrap();
        assert_eq!((&sent["jsonrpc"], &sent["method"]), (&json!("2.0"), &json!(kind)), "{sent}");
        assert_eq!(sent["id"], serde_json::to_value(&id).unwrap(), "{sent}");
        let meta = &sent["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{sent}");
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object(), "{sent}");
        let name = frame.name();
        (frame, id, name)
    };
    // The name of what a request is about comes with the frame.
    let (result, ()) = both(client.call("say \"hi\"", ()), async {
        let (frame, _, name) = named("tools/call").await;
        assert_eq!(name.as_deref(), Some("say \"hi\""));
        answer(&frame, text_result("done"));
    })
    .await;
    result.unwrap();
    // One request fails by itself.
    let (result, ()) = both(client.read("a:b"), async {
        let (_, id, name) = named("resources/read").await;
        assert_eq!(name.as_deref(), Some("a:b"));
        inbox().fail(&id, Error::closed("this stream broke"));
    })
    .await;
    assert_eq!(result.unwrap_err().to_string(), "the connection is closed: this stream broke");
    // The transport cancels in its own way: no notification is sent.
    let given_up = tokio::time::timeout(std::time::Duration::from_secs(1), client.call("slow", ())).await;
    assert!(given_up.is_err());
    let (_, id, _) = named("tools/call").await;
    inbox().noise(b"odd");
    assert_eq!(client.noise().count, 1);
    // All end together.
    let (result, ()) = both(client.call("last", ()), async {
        named("tools/call").await;
        inbox().close(Error::closed("gone"));
        inbox().close(Error::closed("gone again"));
    })
    .await;
    assert_eq!(result.unwrap_err().to_string(), "the connection is closed: gone");
    client.close().await;
    assert_eq!(
        *direct.log.lock().unwrap(),
        ["opened 2026-07-28".to_owned(), format!("cancel {id}"), "close".into()]
    );
    drop(client);
    assert!(frames.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_stream_connects_once() {
    let (end, server) = memory();
    let end = Arc::new(end);
    let mut peer = Peer::new(server);
    let (first, _) = both(Client::connect(Arc::clone(&end)), peer.open(V2026_07_28, json!({}))).await;
    let _first = first.unwrap();
    let error = Client::connect(end).await.unwrap_err();
    assert_eq!(error.to_string(), "the connection is closed: a stream can be connected only once");
}

#[cfg(unix)]
#[tokio::test]
async fn a_socket_uses_the_same_frames() {
    // proves: STDIO-20
    let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
    let (read, write) = ours.into_split();
    let server = bowline_server::Server::new("socket");
    let serving = tokio::spawn(async move {
        let (read, write) = theirs.into_split();
        server.serve(read, write).await.map_err(|error| error.to_string())
    });
    let client = Client::connect(Stream::new(read, write)).await.unwrap();
    client.ping().await.unwrap();
    assert_eq!(client.server().server_info.as_ref().unwrap().name, "socket");
    client.close().await;
    serving.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_a_reader_that_does_not_keep_up() {
    // More than the buffers of the pair and of the outbox hold.
    let (client, mut peer) = connect(Client::builder(), V2025_11_25, json!({ "tools": {} })).await;
    let big = json!({ "text": "x".repeat(400_000) });
    let calls = async {
        let call = || client.call("big", big.clone());
        tokio::join!(call(), call(), call(), call(), call(), call())
    };
    let (results, ()) = both(calls, async {
        for _ in 0..6 {
            let request = peer.expect("tools/call").await;
            peer.reply(&request, text_result("done")).await;
        }
    })
    .await;
    assert!(results.0.is_ok() && results.5.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_never_sent_times_out_or_ends_with_the_connection() {
    let (client, peer) = connect(Client::builder(), V2025_11_25, json!({ "tools": {} })).await;
    let big = json!({ "text": "x".repeat(2_000_000) });
    let call = || client.call("big", big.clone()).timeout(std::time::Duration::from_secs(5));
    let (first, second) = tokio::join!(call(), call());
    assert!(first.unwrap_err().is_timeout() && second.unwrap_err().is_timeout());
    let (third, ()) = both(client.call("x", ()), async {
        tokio::task::yield_now().await;
        peer.hang_up();
    })
    .await;
    assert!(third.unwrap_err().is_closed());
}
