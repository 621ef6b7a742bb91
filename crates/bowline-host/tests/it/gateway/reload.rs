//! A configuration that changes while everything runs.

use super::{Far, Folder, call, client, config, config_of, environment, gateway, open_file, text, tools};
use bowline_config::{Disk, Loader, Scope, Source};
use bowline_host::{Gateway, gateway::EntryState};
use bowline_policy::audit::Redactor;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_running_call_finishes_at_the_replaced_server() {
    let far = Far::start().await;
    let file = open_file(&far);
    let gateway = gateway(&file);
    let mut peer = client(gateway.open().unwrap()).await;
    let slow = peer.start("tools/call", json!({ "name": "far__slow" })).await.unwrap();
    far.started.notified().await;

    let changed = format!("{file}request_timeout = 120\n[servers.more]\nurl = \"{}\"\n", far.url);
    let applied = gateway.apply(config(&changed)).unwrap();
    assert_eq!((applied.diff.added, applied.diff.changed), (vec!["more".to_owned()], vec!["far".to_owned()]));
    assert_eq!(applied.problems, []);
    assert_eq!(text(&call(&mut peer, "far__fast", json!({})).await), "fast is done");
    assert_eq!(text(&call(&mut peer, "more__fast", json!({})).await), "fast is done");
    far.release.notify_one();
    let done = peer.response(&slow).await.unwrap();
    assert_eq!(text(&done["result"]), "slow is done", "{done}");

    let applied = gateway.apply(config(&file.replace("far]", "other]"))).unwrap();
    assert_eq!(applied.diff.removed, ["far", "more"]);
    assert_eq!(tools(&mut peer).await, ["other__fast", "other__slow", "other__trace"]);
    gateway.close().await;
}

#[tokio::test]
async fn unchanged_servers_are_not_restarted() {
    let far = Far::start().await;
    let file = open_file(&far);
    let gateway = gateway(&file);
    let mut peer = client(gateway.open().unwrap()).await;
    call(&mut peer, "far__fast", json!({})).await;
    let applied = gateway.apply(config(&format!("# moved\n\n{file}"))).unwrap();
    assert!(applied.diff.is_empty(), "{applied:?}");
    call(&mut peer, "far__fast", json!({})).await;
    let status = gateway.status();
    let instances = &status[0].instances;
    assert_eq!((instances.len(), instances[0].starts, instances[0].calls), (1, 1, 2), "{status:?}");
    gateway.close().await;
}

#[tokio::test]
async fn rules_apply_from_the_next_call() {
    let far = Far::start().await;
    let file = open_file(&far);
    let gateway = gateway(&file);
    let mut peer = client(gateway.open().unwrap()).await;
    assert_eq!(text(&call(&mut peer, "far__fast", json!({})).await), "fast is done");
    let denies = format!("[[rules]]\neffect = \"deny\"\ntool = \"fast\"\nreason = \"not now\"\n{file}");
    assert_eq!(gateway.apply(config(&denies)).unwrap().diff.sections, ["rules"]);
    let refused = call(&mut peer, "far__fast", json!({})).await;
    assert!(refused["isError"] == true && text(&refused).contains("not now"), "{refused}");
    gateway.close().await;
}

#[tokio::test]
async fn a_broken_configuration_changes_nothing() {
    // V-66
    let far = Far::start().await;
    let file = open_file(&far);
    let gateway = gateway(&file);
    let mut peer = client(gateway.open().unwrap()).await;
    for broken in
        ["[servers", "[[rules]]\neffect = \"dny\"\n", "[gateway]\ntoken_env = 5\n", "[audit]\nfile = 1\n"]
    {
        let error = gateway.apply(config(broken)).unwrap_err();
        assert_eq!(gateway.problems(), error.problems(), "{broken}");
        assert_eq!(text(&call(&mut peer, "far__fast", json!({})).await), "fast is done", "{broken}");
    }
    let error = gateway.apply(config_of(&[("mcp.json", Scope::User, "{")])).unwrap_err();
    assert!(error.to_string().starts_with("mcp.json:1:"), "{error}");
    // One that works puts an end to the complaint.
    gateway.apply(config(&file)).unwrap();
    assert_eq!(gateway.problems(), []);
    gateway.close().await;
}

#[tokio::test]
async fn a_server_with_an_invalid_entry_keeps_its_previous_configuration() {
    let far = Far::start().await;
    let file = open_file(&far);
    let gateway = gateway(&file);
    let mut peer = client(gateway.open().unwrap()).await;
    let wrong = format!("{file}deny = \"slow\"\n[servers.more]\nurl = \"{}\"\n", far.url);
    let applied = gateway.apply(config(&wrong)).unwrap();
    assert_eq!((applied.diff.added, applied.problems.len()), (vec!["more".to_owned()], 1));
    assert_eq!(text(&call(&mut peer, "far__fast", json!({})).await), "fast is done");
    // A gateway that begins with it does not use the server: what was meant to be denied would not be.
    let config = config(&wrong);
    let fresh = Gateway::builder(config).build().unwrap();
    let states: Vec<_> = fresh.status().into_iter().map(|status| (status.name, status.state)).collect();
    assert_eq!(states, [("more".to_owned(), EntryState::Active)]);
    gateway.close().await;
}

#[tokio::test]
async fn settings_that_need_a_restart_are_reported() {
    let gateway = gateway("");
    let changed = "[gateway]\nname = \"other\"\n[audit]\nkeep = 2\n[disclosure]\nmode = \"on\"\n";
    let applied = gateway.apply(config(changed)).unwrap();
    assert_eq!(applied.restart, ["gateway", "audit"]);
    assert_eq!(applied.diff.sections, ["gateway", "audit", "disclosure"]);
}

#[test]
fn errors_in_protection_prevent_the_build() {
    // V-66
    let refused = |text: &str| Gateway::builder(config(text)).build().unwrap_err().to_string();
    assert!(refused("[[rules]]\neffect = \"dny\"\n").contains("rules[0].effect"));
    assert!(refused("[servers").starts_with("bowline.toml:1"));
    assert!(refused("[audit]\nfile = \"/proc/nothing/audit.jsonl\"\n").starts_with("audit: cannot write"));
    let folder = Folder::new("damaged");
    std::fs::write(folder.path().join("answers.json"), "{").unwrap();
    let error = Gateway::builder(config("")).folder(folder.path()).build().unwrap_err();
    assert!(error.to_string().contains("answers.json"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn files_are_reloaded_when_they_change() {
    let folder = Folder::new("watch");
    let path = folder.path().join("bowline.toml");
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    write("[servers.one]\ncommand = \"one\"\n");
    let loader = Loader::new(environment()).source(Source::new(&path, Scope::User));
    let gateway = Gateway::builder(loader.load(&Disk)).build().unwrap();
    gateway.watch(loader);
    let names = || gateway.status().into_iter().map(|status| status.name).collect::<Vec<_>>();
    let until = async |is_so: &dyn Fn() -> bool| {
        let waiting = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("it happens");
    };
    // Until the watcher has seen how things are.
    tokio::time::sleep(Duration::from_secs(2)).await;
    write("[servers.one]\ncommand = \"one\"\n[servers.two]\ncommand = \"two\"\n");
    until(&|| names() == ["one", "two"]).await;
    write("[servers.one]\ncommand = \"one\"\n[[rules]]\n");
    until(&|| !gateway.problems().is_empty()).await;
    assert_eq!(names(), ["one", "two"]);
    write("[servers.three]\ncommand = \"three\"\n");
    until(&|| names() == ["three"]).await;
    assert_eq!(gateway.problems(), []);
    gateway.close().await;
}

#[tokio::test]
async fn a_redactor_learns_the_secrets_of_servers_also_of_later_configurations() {
    let far = Far::start().await;
    let with = |token: &str| {
        let header = format!("headers = {{ Authorization = \"Bearer {token}\" }}");
        config(&format!("[servers.far]\nurl = \"{}\"\n{header}\n", far.url))
    };
    let redactor = Redactor::default();
    let gateway = Gateway::builder(with("first-token-1")).redactor(redactor.clone()).token("gateway-token");
    let gateway = gateway.build().unwrap();
    let shown = || redactor.text("first-token-1 second-token-2 gateway-token");
    assert_eq!(shown(), "*** second-token-2 ***");
    gateway.apply(with("second-token-2")).unwrap();
    assert_eq!(shown(), "*** *** ***");
    gateway.close().await;
}
