//! A server as a process of its own: how it ends, and what does not end it.

use bowline::{
    client::{Change, Client},
    prelude::{command, http, json},
    types::{Revision, SubscriptionFilter},
};
use std::{
    net::TcpListener,
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};
use tokio::{
    process::{Child, Command as Program},
    time::timeout,
};

const SERVED: &str = env!("CARGO_BIN_EXE_served");
/// What must happen is waited for this long. The server's own window for calls to finish is 10 s.
const PATIENCE: Duration = Duration::from_secs(8);
const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// A server on a port of its own.
struct Served {
    process: Child,
    url: String,
}

impl Served {
    async fn start() -> Self {
        // A port that is free now can be taken by the time the server wants it; then another will do.
        for _ in 0..10 {
            let free = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
            let address = free.local_addr().expect("a bound socket has an address");
            drop(free);
            let mut process = Program::new(SERVED)
                .arg(address.to_string())
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()
                .expect("the server can be started");
            let deadline = Instant::now() + PATIENCE;
            while process.try_wait().expect("a child can be waited for").is_none() {
                if tokio::net::TcpStream::connect(address).await.is_ok() {
                    return Self { process, url: format!("http://{address}/mcp") };
                }
                assert!(Instant::now() < deadline, "the server does not answer");
                tokio::task::yield_now().await;
            }
        }
        panic!("no port stays free");
    }

    async fn connect(&self, revision: Revision) -> Client {
        let connected = Client::builder().revisions([revision]).connect(http(&self.url)).await;
        connected.unwrap_or_else(|error| panic!("{revision}: {error}"))
    }

    fn terminate(&self) {
        let id = self.process.id().expect("the server runs").to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status().expect("there is a program `kill`");
        assert!(told.success());
    }

    async fn ended(mut self) -> ExitStatus {
        timeout(PATIENCE, self.process.wait()).await.expect("it ends in time").expect("it can be waited for")
    }
}

/// Starts a call and waits until the server has it.
async fn start(
    client: &Client,
    milliseconds: u64,
) -> tokio::task::JoinHandle<bowline::client::Result<bowline::client::ToolResult>> {
    let (begun, begins) = tokio::sync::oneshot::channel();
    let begun = std::sync::Mutex::new(Some(begun));
    let call = client.call("stamp", json!({ "milliseconds": milliseconds })).progress(move |_| {
        let begun = begun.lock().ok().and_then(|mut begun| begun.take());
        begun.map(|begun| begun.send(()));
    });
    let call = tokio::spawn(call.into_future());
    timeout(PATIENCE, begins).await.expect("it begins in time").expect("it begins");
    call
}

#[tokio::test]
async fn shutdown_finishes_running_calls_and_refuses_new_ones() {
    let served = Served::start().await;
    let (mut clients, mut calls, mut listens) = (Vec::new(), Vec::new(), Vec::new());
    for revision in ERAS {
        let client = served.connect(revision).await;
        // A call that has begun to answer, and one that is silent so far.
        calls.push(start(&client, 1000).await);
        let silent = client.call("quiet", json!({ "milliseconds": 1000, "word": "stamped" }));
        calls.push(tokio::spawn(silent.into_future()));
        clients.push(client);
    }
    let modern = &clients[1];
    let filter = SubscriptionFilter::new().resource_subscriptions(vec!["watched://one".to_owned()]);
    let mut listen = modern.listen(filter.clone()).await.expect("it can listen");
    modern.call("change", json!({ "uri": "watched://one" })).await.expect("it changes");
    assert_eq!(listen.next().await, Some(Change::Resource("watched://one".into())));
    listens.push(listen);

    served.terminate();
    for mut listen in listens {
        assert_eq!(timeout(PATIENCE, listen.next()).await.expect("the stream ends in time"), None);
        assert!(listen.error().is_none(), "it ends with its result: {:?}", listen.error());
    }
    // The stream has ended, so the server has heard the signal.
    for client in &clients {
        let refused = client.call("now", ()).await.expect_err("it takes nothing new");
        assert!(
            // A connection kept from before may be closed under the request.
            refused.is_unreachable()
                || refused.is_closed()
                || refused.http_status() == Some(503)
                || refused.is_rpc(),
            "{refused}"
        );
    }
    let refused = Client::builder().connect(http(&served.url)).await;
    refused.expect_err("nobody new is let in");
    for call in calls {
        let answered = call.await.expect("the call does not panic");
        assert_eq!(answered.expect("what runs is answered").text(), "stamped");
    }
    assert!(served.ended().await.success());
}

#[tokio::test]
async fn a_second_shutdown_signal_ends_immediately() {
    let served = Served::start().await;
    let client = served.connect(Revision::V2026_07_28).await;
    let call = start(&client, 600_000).await;
    let mut listen = client
        .listen(SubscriptionFilter::new().resource_subscriptions(vec!["watched://one".to_owned()]))
        .await
        .expect("it can listen");
    served.terminate();
    assert_eq!(timeout(PATIENCE, listen.next()).await.expect("the stream ends in time"), None);
    assert!(!call.is_finished(), "the call still runs");
    served.terminate();
    assert!(served.ended().await.success());
    call.await.expect("the call does not panic").expect_err("there is nobody left to answer");
}

#[tokio::test]
async fn a_server_whose_input_ends_is_done() {
    let mut process = Program::new(SERVED)
        .arg("stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the server can be started");
    drop(process.stdin.take());
    let status = timeout(PATIENCE, process.wait()).await.expect("it ends in time");
    assert!(status.expect("it can be waited for").success());
}

#[tokio::test]
async fn a_tool_that_panics_fails_its_call_and_nothing_else() {
    let served = Served::start().await;
    for revision in ERAS {
        let over_stdio = Client::builder().revisions([revision]).connect(command(SERVED, ["stdio"])).await;
        let over_stdio = over_stdio.unwrap_or_else(|error| panic!("{revision}: {error}"));
        for client in [served.connect(revision).await, over_stdio] {
            for later in [false, true] {
                let failed = client.call("panic", json!({ "later": later })).await;
                let failed = failed.expect_err("a panic is no result");
                assert_eq!(failed.as_rpc().map(|error| error.code), Some(-32603), "{revision}: {failed}");
                let word = client.call("now", ()).await.unwrap_or_else(|error| panic!("{revision}: {error}"));
                assert_eq!(word.text(), "now");
            }
            client.close().await;
        }
    }
}
