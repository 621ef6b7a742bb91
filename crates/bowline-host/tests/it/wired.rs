//! A host in front of a server whose frames a test writes, on a single channel for everything.

use bowline_client::{BoxFuture, Connect, Inbox, Result, Stream, Transport};
use bowline_host::{Host, Upstream};
use bowline_policy::{Guard, Policy, Rule};
use bowline_server::{Server, ServerHandle, Tool};
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A server whose frames the test writes.
#[derive(Clone, Debug)]
pub(super) struct Wired(pub(super) mpsc::UnboundedSender<Peer>);

impl Connect for Wired {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        let (peer, other) = Peer::pair();
        self.0.send(peer).expect("the test wants the server");
        let (read, write) = tokio::io::split(other);
        Box::pin(async move { Stream::new(read, write).connect(inbox).await })
    }
}

/// A host in front of such a server and a well-behaved one, and the server.
pub(super) async fn hosted() -> (Host, ServerHandle, Peer) {
    let (sender, mut started) = mpsc::unbounded_channel();
    let guard = Guard::builder().policy(Policy::new([Rule::allow()])).build();
    let upstream = Upstream::to(Wired(sender)).revision(Revision::V2025_11_25);
    let neighbor = Server::new("near").tool(Tool::new("hello").handler(|| "done"));
    let neighbor = neighbor.build().expect("the neighbor can be built");
    let host = Host::builder().add("far", upstream).add("near", neighbor).guard(guard).build();
    let handle = host.open(Server::new("gateway")).expect("the gateway can be built");
    // Listing the tools starts it.
    let mut near = caller(&handle).await;
    let listed = near.start("tools/list", json!({})).await.expect("the host listens");
    let mut far = started.recv().await.expect("the server is started");
    let greeting = far.recv_method("initialize").await.expect("the host begins");
    let server = json!({ "name": "far", "version": "1" });
    let capabilities = json!({ "tools": {} });
    let greeted =
        json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": server });
    far.reply(&greeting, greeted).await.expect("the host listens");
    let list = far.recv_method("tools/list").await.expect("the host wants to know");
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    far.reply(&list, json!({ "tools": [tool("ask"), tool("plain")] })).await.expect("the host listens");
    near.response(&listed).await.expect("the host answers");
    (host, handle, far)
}

/// A client with a session, whose user can be asked.
pub(super) async fn caller(handle: &ServerHandle) -> Peer {
    let peer = Peer::memory(handle).expect("the host is served");
    let mut peer = peer.capabilities(json!({ "elicitation": { "form": {}, "url": {} } }));
    peer.initialize(Revision::V2025_11_25).await.expect("the host takes the handshake");
    peer
}

pub(super) async fn start(near: &mut Peer, tool: &str) -> Value {
    near.start("tools/call", json!({ "name": format!("far__{tool}") })).await.expect("the host listens")
}

/// The call that the server gets next.
pub(super) async fn called(far: &mut Peer, tool: &str) -> Value {
    let call = far.recv_method("tools/call").await.expect("the call arrives");
    assert_eq!(call["params"]["name"], tool);
    call
}

pub(super) async fn question(far: &mut Peer) -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let asked = json!({ "message": "Who?", "requestedSchema": schema });
    far.start("elicitation/create", asked).await.expect("the host listens")
}

pub(super) async fn done(far: &mut Peer, call: &Value) {
    let content = json!([{ "type": "text", "text": "done" }]);
    far.reply(call, json!({ "content": content })).await.expect("the host listens");
}

pub(super) async fn finished(near: &mut Peer, call: &Value) {
    let answer = near.response(call).await.expect("the call ends");
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
}

#[tokio::test]
async fn servers_that_report_the_same_name_are_distinguished_by_their_configured_names() {
    // proves: TOOL-16
    let server = |text: &'static str| {
        Server::new("same").tool(Tool::new("hello").handler(move || text)).build().expect("it can be built")
    };
    let guard = Guard::builder().policy(Policy::new([Rule::allow()])).build();
    let host = Host::builder().add("one", server("1")).add("two", server("2")).guard(guard).build();
    let handle = host.open(Server::new("gateway")).expect("the gateway can be built");
    let mut near = caller(&handle).await;
    for (name, text) in [("one__hello", "1"), ("two__hello", "2")] {
        let answer = near.request("tools/call", json!({ "name": name })).await.expect("the call ends");
        assert_eq!(answer["result"]["content"][0]["text"], text, "{answer}");
    }
    host.close().await;
}
