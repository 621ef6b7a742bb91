//! Rules of the host in front of built-in servers.

use bowline_host::Host;
use bowline_policy::{Action, Guard, Policy, Rule};
use bowline_server::Server;
use bowline_servers::Files;
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::json;

#[tokio::test]
async fn no_spelling_of_a_denied_file_is_read_through_the_host() {
    // V-105
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("secret")).unwrap();
    std::fs::write(root.join("secret/key"), "hunter22").unwrap();
    std::fs::write(root.join("note"), "hello").unwrap();
    let root = root.to_str().unwrap().to_owned();
    let files = Files::new([&root]).unwrap().server().build().unwrap();
    let rule = Rule::deny().action(Action::Read).tool(format!("file://{root}/secret/*"));
    let guard = Guard::builder().policy(Policy::new([rule])).build();
    let host = Host::builder().add("files", files).guard(guard).build();
    let mut peer = Peer::memory(host.open(Server::new("gateway")).unwrap()).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    let answer =
        peer.request("resources/read", json!({ "uri": format!("file://{root}/note") })).await.unwrap();
    assert_eq!(answer["result"]["contents"][0]["text"], "hello", "{answer}");
    for inside in [
        "/secret/key",
        "/%73ecret/key",
        "/%73%65cret/k%65y",
        "//secret/key",
        "/./secret/key",
        "/secret/./key",
        "/secret//key",
        "/secret/../secret/key",
        "/x/%2e%2e/secret/key",
        "%2Fsecret%2Fkey",
        "/secret/key/",
        "/secret/key?x",
        "/secret/key#x",
    ] {
        for start in ["file://", "FILE://", "file:", "file:///", "file://localhost"] {
            let uri = format!("{start}{root}{inside}");
            let answer = peer.request("resources/read", json!({ "uri": uri })).await.unwrap();
            assert!(
                answer.get("error").is_some() && !answer.to_string().contains("hunter22"),
                "{uri}: {answer}"
            );
        }
    }
    host.close().await;
}
