//! Servers of a project: not used before the user has approved what they are.

use super::{Far, Folder, call, client, config_of, environment, text, tools};
use bowline_config::{Config, Scope};
use bowline_host::{
    Gateway,
    gateway::{Approvals, Candidate, EntryState},
};
use serde_json::json;

fn project(far: &Far, header: &str) -> Config {
    let entry = json!({ "url": far.url, "headers": { "X-Team": header } });
    let file = json!({ "mcpServers": { "far": entry } }).to_string();
    let own = "[[rules]]\neffect = \"allow\"\n";
    config_of(&[("bowline.toml", Scope::User, own), (".mcp.json", Scope::Project, &file)])
}

fn waiting(gateway: &Gateway) -> Option<Candidate> {
    gateway.status().into_iter().find_map(|status| match status.state {
        EntryState::NeedsApproval(candidate) => Some(candidate),
        _ => None,
    })
}

#[tokio::test]
async fn an_approval_is_bound_to_the_shown_content() {
    // V-70
    let (far, folder) = (Far::start().await, Folder::new("approvals"));
    let gateway = Gateway::builder(project(&far, "a"))
        .environment(environment())
        .folder(folder.path())
        .build()
        .unwrap();
    let mut peer = client(gateway.open().unwrap()).await;
    let candidate = waiting(&gateway).unwrap();
    assert_eq!(candidate.server(), "far");
    assert!(tools(&mut peer).await.is_empty());

    let approvals = Approvals::open(folder.path().join("approvals.json")).unwrap();
    approvals.approve(&candidate).unwrap();
    gateway.review();
    assert_eq!(waiting(&gateway), None);
    assert_eq!(text(&call(&mut peer, "far__fast", json!({})).await), "fast is done");

    // The file is changed behind the user's back: the server is stopped, and has to be approved again.
    gateway.apply(project(&far, "b")).unwrap();
    let changed = waiting(&gateway).unwrap();
    assert_ne!(changed.digest(), candidate.digest());
    assert!(tools(&mut peer).await.is_empty());
    gateway.apply(project(&far, "a")).unwrap();
    assert_eq!(waiting(&gateway), None);

    approvals.revoke("far").unwrap();
    gateway.review();
    assert!(waiting(&gateway).is_some() && tools(&mut peer).await.is_empty());
    gateway.close().await;
}

#[tokio::test]
async fn without_an_approval_handler_nothing_is_approved() {
    // V-70
    let far = Far::start().await;
    let gateway = Gateway::builder(project(&far, "a")).build().unwrap();
    assert!(waiting(&gateway).is_some());
    let gateway = Gateway::builder(project(&far, "a")).approve(|_: &Candidate| true).build().unwrap();
    assert_eq!(waiting(&gateway), None);
}

#[cfg(unix)]
#[tokio::test]
async fn a_script_that_changed_after_its_approval_is_not_run() {
    // V-70
    let folder = Folder::new("approved-script");
    let script = folder.path().join("server.sh");
    std::fs::write(&script, "exit 1\n").unwrap();
    let entry = json!({ "command": "/bin/sh", "args": [script], "cwd": folder.path() });
    let file = json!({ "mcpServers": { "theirs": entry } }).to_string();
    let path = folder.path().join(".mcp.json");
    let own = "[[rules]]\neffect = \"allow\"\n";
    let config =
        config_of(&[("bowline.toml", Scope::User, own), (path.to_str().unwrap(), Scope::Project, &file)]);
    let gateway = Gateway::builder(config)
        .environment(environment())
        .workspace(folder.path())
        .approve(|_: &Candidate| true)
        .build()
        .unwrap();
    let ran = folder.path().join("ran");
    std::fs::write(&script, format!("touch {}\n", ran.display())).unwrap();
    let mut peer = client(gateway.open().unwrap()).await;
    let answer = peer.request("tools/call", json!({ "name": "theirs__any", "arguments": {} })).await.unwrap();
    assert!(answer.to_string().contains("changed since it was approved"), "{answer}");
    assert!(!ran.exists(), "the script ran");
    gateway.close().await;
}

#[tokio::test]
async fn a_server_of_a_project_gets_nothing_of_a_server_of_the_user_with_its_name() {
    // V-70
    let far = Far::start().await;
    let own =
        format!("[servers.shop]\nurl = \"{}\"\n[[rules]]\neffect = \"allow\"\nserver = \"shop\"\n", far.url);
    let file = json!({ "mcpServers": { "shop": { "command": "/no/such/program" } } }).to_string();
    let config = config_of(&[("bowline.toml", Scope::User, &own), (".mcp.json", Scope::Project, &file)]);
    let told: Vec<String> = config.notices.iter().map(ToString::to_string).collect();
    let gateway =
        Gateway::builder(config).environment(environment()).approve(|_: &Candidate| true).build().unwrap();
    let mut peer = client(gateway.open().unwrap()).await;
    assert_eq!(text(&call(&mut peer, "shop__fast", json!({})).await), "fast is done");
    assert!(
        told.iter().any(|line| line.contains("your server at bowline.toml:1 has the same name")),
        "{told:?}"
    );
    gateway.close().await;
}
