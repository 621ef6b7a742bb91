//! Servers of a project: not used before the user has approved what they are.

use super::{Far, Folder, call, client, config_of, environment, text, tools};
use bowline_host::{
    Gateway,
    config::{Config, Scope},
    gateway::{Approvals, Candidate, Standing},
};
use serde_json::json;

fn project(far: &Far, header: &str) -> Config {
    let entry = json!({ "url": far.url, "headers": { "X-Team": header } });
    let file = json!({ "mcpServers": { "far": entry } }).to_string();
    let own = "[[rules]]\neffect = \"allow\"\n";
    config_of(&[("bowline.toml", Scope::User, own), (".mcp.json", Scope::Project, &file)])
}

fn waiting(gateway: &Gateway) -> Option<Candidate> {
    gateway.status().into_iter().find_map(|status| match status.standing {
        Standing::NeedsApproval(candidate) => Some(candidate),
        _ => None,
    })
}

#[tokio::test]
async fn an_approval_is_for_what_was_looked_at() {
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
async fn without_anybody_who_knows_nothing_is_approved() {
    // V-70
    let far = Far::start().await;
    let gateway = Gateway::builder(project(&far, "a")).build().unwrap();
    assert!(waiting(&gateway).is_some());
    let gateway = Gateway::builder(project(&far, "a")).approve(|_: &Candidate| true).build().unwrap();
    assert_eq!(waiting(&gateway), None);
}
