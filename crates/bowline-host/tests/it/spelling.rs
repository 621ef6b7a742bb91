//! Rules that hold however a caller writes a URI or a path.

use super::wired::Wired;
use bowline_host::{Host, Upstream};
use bowline_policy::{Action, ArgumentTest, Caller, Effect, Guard, Policy, Request, Rule, Trust};
use bowline_proto::subscribe::Change;
use bowline_server::{CompletionRequest, Resource, Server, ServerHandle};
use bowline_testing::Peer;
use bowline_types::{Completion, RawJson, Revision};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Spellings of `file:///srv/secret/a`, each read as that by some server.
const SECRET: [&str; 22] = [
    "file:///srv/secret/a",
    "FILE:///srv/secret/a",
    "file:/srv/secret/a",
    "file://localhost/srv/secret/a",
    "file://LOCALHOST/srv/secret/a",
    "file:////srv/secret/a",
    "file:///srv//secret//a",
    "file:///srv/./secret/a",
    "file:///srv/secret/./a",
    "file:///srv/%73ecret/a",
    "file:///srv/%73%65%63%72%65%74/a",
    "file:///srv/%2573ecret/a",
    "file:///srv%2Fsecret%2Fa",
    "file:///srv/x/../secret/a",
    "file:///srv/x/%2e%2e/secret/a",
    "file:///srv/secret/a?x=1",
    "file:///srv/secret/a#x",
    "file:///srv/secret/a/",
    "file:///srv/secret./a",
    "file:///srv/secret%20/a",
    "file:///srv\\secret\\a",
    "file:///srv/secret%5Ca",
];

fn request(action: Action, name: &str) -> Request<'_> {
    Request {
        action,
        server: "files",
        trust: Trust::Untrusted,
        caller: Caller::default(),
        name,
        annotations: None,
        arguments: None,
    }
}

fn effect(rules: &[Rule], request: &Request<'_>) -> Effect {
    Policy::new(rules.to_vec()).decide(request).effect
}

#[test]
fn a_rule_that_denies_reading_applies_to_every_spelling() {
    // V-105
    for pattern in
        ["file:///srv/secret/*", "FILE://localhost/srv/secret/*", "file:/srv/%73ecret/*", "*/secret/*"]
    {
        for uri in SECRET {
            let rules = [Rule::deny().server("files").action(Action::Read).tool(pattern)];
            assert_eq!(effect(&rules, &request(Action::Read, uri)), Effect::Deny, "{pattern} {uri}");
        }
    }
    let rules = [Rule::deny().action(Action::Read).tool("file:///srv/secret/a")];
    for uri in SECRET {
        assert_eq!(effect(&rules, &request(Action::Read, uri)), Effect::Deny, "{uri}");
    }
    for uri in ["file:///srv/public/a", "file:///srv/secrets/a", "note:///srv/secret/a"] {
        let rules = [Rule::deny().action(Action::Read).tool("file:///srv/secret/*")];
        assert_eq!(effect(&rules, &request(Action::Read, uri)), Effect::Allow, "{uri}");
    }
}

#[test]
fn a_rule_that_allows_reading_does_not_apply_to_uris_that_resolve_elsewhere() {
    // V-105
    let rules = [Rule::allow().action(Action::Read).tool("file:///srv/public/*"), Rule::deny()];
    for uri in [
        "file:///srv/public/../secret/a",
        "file:///srv/public/%2e%2e/secret/a",
        "file:///srv/public/%252e%252e/secret/a",
        "file:///srv/public/..%2fsecret/a",
        "file:///srv/public/..\\secret/a",
        "file:///srv/public/a%00",
        "file:///srv/public/%zz",
    ] {
        assert_eq!(effect(&rules, &request(Action::Read, uri)), Effect::Deny, "{uri}");
    }
    for uri in ["file:///srv/public/a", "file:///srv/public/My%20Files/%C3%A4", "file:///srv/public/a/"] {
        assert_eq!(effect(&rules, &request(Action::Read, uri)), Effect::Allow, "{uri}");
    }
    let decision = Policy::new(rules).decide(&request(Action::Read, "file:///srv/public/../a"));
    assert_eq!(
        decision.reason,
        "the URI can be read in two ways (it contains a `..` segment), see rule: allow * file:///srv/public/*"
    );
}

#[test]
fn a_rule_about_arguments_applies_to_every_spelling_of_a_path() {
    // V-105
    let spellings = [
        "/etc/shadow",
        "//etc/shadow",
        "/etc//shadow",
        "/etc/./shadow",
        "/srv/../etc/shadow",
        "/etc/shadow/",
        "/etc/shadow/.",
        "/etc\\shadow",
        " /etc/shadow",
        "/etc/shadow\n",
        "/etc/%73hadow",
        "file:/etc/shadow",
        "file://localhost/etc/shadow",
        "file:///etc/shadow",
        "FILE:///etc/%73hadow",
        "file:///srv/..//etc/shadow?x",
        "/etc/shadow\u{0}.txt",
    ];
    let tests = [
        ArgumentTest::Matches("/etc/*".into()),
        ArgumentTest::Matches("file:///etc/*".into()),
        ArgumentTest::Equals(RawJson::of("/etc/shadow").unwrap()),
        ArgumentTest::Equals(RawJson::of("file:///etc/shadow").unwrap()),
        ArgumentTest::StartsWith("/etc/".into()),
        ArgumentTest::Within("/etc".into()),
    ];
    for path in spellings {
        let arguments = RawJson::of(&json!({ "path": path, "deep": [{ "x": path }] })).unwrap();
        let request = Request { arguments: Some(&arguments), ..request(Action::Call, "read") };
        for test in &tests {
            for rule in [
                Rule::deny().argument("/path", test.clone()),
                Rule::deny().argument("/deep/0/x", test.clone()),
                Rule::deny().any_argument(test.clone()),
            ] {
                assert_eq!(effect(&[rule, Rule::allow()], &request), Effect::Deny, "{path:?} {test:?}");
            }
        }
    }
    let arguments =
        RawJson::of(&json!({ "path": "/srv/etc/shadow", "text": "see etc: it is 100% fine" })).unwrap();
    let other = Request { arguments: Some(&arguments), ..request(Action::Call, "read") };
    for test in tests {
        assert_eq!(
            effect(&[Rule::deny().any_argument(test.clone()), Rule::allow()], &other),
            Effect::Allow,
            "{test:?}"
        );
    }
}

#[test]
fn a_rule_that_allows_arguments_does_not_apply_to_paths_that_resolve_elsewhere() {
    // V-105
    for (test, path, expected) in [
        (ArgumentTest::Matches("/srv/*".into()), "/srv/a", Effect::Allow),
        (ArgumentTest::Matches("/srv/*".into()), "/srv//a/", Effect::Allow),
        (ArgumentTest::Matches("/srv/*".into()), "/srv/../etc/shadow", Effect::Ask),
        (ArgumentTest::Matches("/srv/*".into()), "/srv/link/../a", Effect::Ask),
        (ArgumentTest::Matches("/srv/*".into()), "/srv/%2e%2e/etc/shadow", Effect::Ask),
        (ArgumentTest::StartsWith("/srv/".into()), "/srv/../etc/shadow", Effect::Ask),
        (ArgumentTest::Matches("file:///srv/*".into()), "file:///srv/%2e%2e/etc", Effect::Ask),
        (ArgumentTest::Matches("*".into()), "/srv/../etc/shadow", Effect::Allow),
    ] {
        let arguments = RawJson::of(&json!({ "path": path })).unwrap();
        let request = Request { arguments: Some(&arguments), ..request(Action::Call, "read") };
        let rule = Rule::allow().argument("/path", test.clone());
        assert_eq!(effect(&[rule], &request), expected, "{test:?} {path}");
    }
}

/// A server that has every path below a template, and completes it.
fn files() -> ServerHandle {
    let proposals = |_: CompletionRequest| {
        Completion::new(["srv/public", "srv/secret/a", "srv//secret/b"].map(str::to_owned)).total(3_u64)
    };
    let file = Resource::new("file:///{+path}", "file").complete("path", proposals).text("text");
    Server::new("files").resource(file).build().expect("the server can be built")
}

async fn caller(host: &Host) -> Peer {
    let handle = host.open(Server::new("gateway")).expect("the gateway can be built");
    let mut peer = Peer::memory(&handle).expect("the host is served");
    peer.initialize(Revision::V2025_11_25).await.expect("the host takes the handshake");
    peer
}

fn guarded(upstream: impl Into<Upstream>, rule: Rule) -> Host {
    Host::builder().add("files", upstream).guard(Guard::builder().policy(Policy::new([rule])).build()).build()
}

async fn is_refused(peer: &mut Peer, method: &str, uri: &str) -> bool {
    let answer = peer.request(method, json!({ "uri": uri })).await.expect("the host answers");
    answer.get("error").is_some()
}

#[tokio::test]
async fn no_spelling_of_a_denied_resource_reaches_the_server() {
    // V-105
    let deny = Rule::deny().action(Action::Read).tool("file:///srv/secret/*");
    let by_rule = guarded(files(), deny);
    let by_entry = guarded(Upstream::from(files()).deny("file:///srv/secret/*"), Rule::allow());
    for host in [by_rule, by_entry] {
        let mut peer = caller(&host).await;
        for uri in SECRET {
            assert!(is_refused(&mut peer, "resources/read", uri).await, "{uri}");
        }
        assert!(!is_refused(&mut peer, "resources/read", "file:///srv/public/a").await);
        host.close().await;
    }
}

#[tokio::test]
async fn subscriptions_follow_the_rules_for_reading() {
    // V-105
    let rule = Rule::deny().action(Action::Read).tool("file:///srv/secret/*");
    let host = guarded(files(), rule);
    let handle = host.open(Server::new("gateway")).unwrap();
    let mut peer = Peer::memory(&handle).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    for uri in SECRET {
        assert!(is_refused(&mut peer, "resources/subscribe", uri).await, "{uri}");
    }
    // A folder above it can be subscribed to, and tells nothing of what is denied below.
    assert!(!is_refused(&mut peer, "resources/subscribe", "file:///srv").await);
    peer.request("resources/list", json!({})).await.unwrap();
    handle.announcer().publish(&Change::Resource("file:///srv/secret/a".into()));
    handle.announcer().publish(&Change::Resource("file:///srv/public/a".into()));
    let told = peer.recv_method("notifications/resources/updated").await.unwrap();
    assert_eq!(told["params"]["uri"], "file:///srv/public/a");

    // A listen of 2026-07-28 is granted what may be read.
    let mut modern = Peer::memory(&handle).unwrap();
    let wanted = json!(["file:///srv/secret/a", "file:///srv/public/a", "file:///srv/%73ecret/a"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "notifications": { "resourceSubscriptions": wanted }, "_meta": meta });
    modern.start("subscriptions/listen", params).await.unwrap();
    let granted = modern.recv_method("notifications/subscriptions/acknowledged").await.unwrap();
    assert_eq!(granted["params"]["notifications"]["resourceSubscriptions"], json!(["file:///srv/public/a"]));
    host.close().await;
}

#[tokio::test]
async fn completions_propose_nothing_that_may_not_be_read() {
    // V-105
    let rule = Rule::deny().action(Action::Read).tool("file:///srv/secret/*");
    for host in
        [guarded(files(), rule), guarded(Upstream::from(files()).deny("file:///srv/secret/*"), Rule::allow())]
    {
        let mut peer = caller(&host).await;
        let params = json!({
            "ref": { "type": "ref/resource", "uri": "file:///{+path}" },
            "argument": { "name": "path", "value": "srv/" },
        });
        let answer = peer.request("completion/complete", params).await.unwrap();
        let completion = &answer["result"]["completion"];
        assert_eq!(completion["values"], json!(["srv/public"]), "{answer}");
        assert_eq!(completion.get("total"), None, "{answer}");
        host.close().await;
    }
}

#[tokio::test]
async fn a_prompt_that_is_denied_is_not_completed() {
    // V-105
    let (sender, mut started) = mpsc::unbounded_channel();
    let host = guarded(
        Upstream::to(Wired(sender)).revision(Revision::V2025_11_25),
        Rule::deny().action(Action::Prompt).tool("secret"),
    );
    let far = tokio::spawn(async move {
        let mut far = started.recv().await.expect("the server is started");
        while let Ok(frame) = far.recv().await {
            let result = match frame["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "prompts": {}, "completions": {} },
                    "serverInfo": { "name": "far", "version": "1" },
                }),
                Some("prompts/list") => json!({ "prompts": [{ "name": "secret" }, { "name": "public" }] }),
                Some("completion/complete") => json!({ "completion": { "values": ["a"] } }),
                _ => continue,
            };
            if far.reply(&frame, result).await.is_err() {
                return;
            }
        }
    });
    let mut peer = caller(&host).await;
    for (name, is_completed) in [("secret", false), ("public", true)] {
        let params = json!({
            "ref": { "type": "ref/prompt", "name": format!("files__{name}") },
            "argument": { "name": "x", "value": "" },
        });
        let answer: Value = peer.request("completion/complete", params).await.unwrap();
        assert_eq!(answer.get("result").is_some(), is_completed, "{answer}");
    }
    host.close().await;
    far.abort();
}
