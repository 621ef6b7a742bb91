//! Changes that servers report, and which clients hear of them.

use bowline_host::{Host, Share, Upstream};
use bowline_policy::{Guard, Policy, Rule};
use bowline_proto::subscribe::Change;
use bowline_server::{Announcer, Resource, Server, ServerHandle, Tool};
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::json;
use tokio::sync::watch;

/// A server with one resource, the way to change it, and the resources it is subscribed to.
fn notes() -> (Upstream, Announcer, watch::Receiver<usize>) {
    let (count, subscribed) = watch::channel(0);
    let server = Server::new("notes")
        .resource(Resource::new("note:///a", "a").handler(|| "text"))
        .on_subscriptions(move |wanted, _| {
            count.send_replace(wanted.len());
        })
        .build()
        .expect("the server can be built");
    let announcer = server.announcer();
    (server.into(), announcer, subscribed)
}

fn tools(name: &str) -> ServerHandle {
    Server::new(name).tool(Tool::new("hello").handler(|| "hello")).build().expect("the server can be built")
}

#[tokio::test]
async fn updates_of_a_shared_server_arrive_although_another_is_per_client() {
    for lists_first in [true, false] {
        let (notes, announcer, mut subscribed) = notes();
        let private = Upstream::from(tools("private")).share(Share::PerClient);
        let guard = Guard::builder().policy(Policy::new([Rule::allow()])).build();
        let host = Host::builder().add("notes", notes).add("private", private).guard(guard).build();
        let handle = host.open(Server::new("gateway")).unwrap();
        let mut peer = Peer::memory(&handle).unwrap();
        peer.initialize(Revision::V2025_11_25).await.unwrap();
        if lists_first {
            peer.request("resources/list", json!({})).await.unwrap();
        }
        peer.request("resources/subscribe", json!({ "uri": "note:///a" })).await.unwrap();
        subscribed.wait_for(|count| *count == 1).await.unwrap();
        announcer.publish(&Change::Resource("note:///a".into()));
        let told = peer.recv_method("notifications/resources/updated").await.unwrap();
        assert_eq!(told["params"]["uri"], "note:///a");
        let of_nobody =
            host.status().iter().filter(|status| status.name == "private" && status.starts > 0).count();
        assert_eq!(
            of_nobody,
            usize::from(lists_first),
            "a per-client server is started for its clients only"
        );
        host.close().await;
    }
}
