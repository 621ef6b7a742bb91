//! Consent of a gateway without a terminal: what passes, what is put to the caller's user, what is refused and how.

use super::{Far, Folder, call, config, config_of, environment, text};
use crate::sampling::site::{Site, reply};
use bowline_config::Scope;
use bowline_host::{Gateway, gateway::GatewayBuilder};
use bowline_policy::{Consent, Rule};
use bowline_server::{Ctx, Result, Server, Tool};
use bowline_testing::{Log, Peer};
use bowline_types::{CreateMessageParams, Revision, SamplingMessage};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};

/// A gateway over standard streams, with these rules.
fn headless(far: &Far, rules: &str, folder: Option<&Path>) -> Gateway {
    let config = config(&format!("{rules}\n[servers.far]\nurl = \"{}\"\n", far.url));
    assert_eq!(config.errors, []);
    let mut builder = Gateway::builder(config).environment(environment()).serves(None);
    if let Some(folder) = folder {
        builder = builder.folder(folder);
    }
    builder.build().unwrap()
}

/// A client whose user answers every form in the same way.
struct Caller {
    peer: Peer,
    revision: Revision,
    answer: Value,
    /// What its user was shown.
    asked: Vec<Value>,
    may_fail: bool,
}

impl Caller {
    async fn new(gateway: &Gateway, revision: Revision, answer: Value) -> Self {
        let peer = Peer::memory(gateway.open().unwrap()).unwrap().deadline(Duration::from_secs(20));
        let mut peer = peer.capabilities(json!({ "elicitation": {} }));
        if !revision.is_modern() {
            peer.initialize(revision).await.unwrap();
        }
        Self { peer, revision, answer, asked: Vec::new(), may_fail: false }
    }

    /// Like `call`, and the call may fail.
    async fn ends(&mut self, name: &str) -> Value {
        self.may_fail = true;
        self.call(name).await
    }

    async fn call(&mut self, name: &str) -> Value {
        let mut params = json!({ "name": name, "arguments": { "path": "/srv" } });
        for _ in 0..4 {
            if self.revision.is_modern() {
                params["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": self.revision.as_str(),
                    "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
                    "io.modelcontextprotocol/clientInfo": { "name": "near", "version": "1" },
                });
            }
            let id = self.peer.start("tools/call", params.clone()).await.unwrap();
            let result = self.settle(&id).await;
            if result["resultType"] != "input_required" {
                return result;
            }
            let requests = result["inputRequests"].as_object().cloned().unwrap_or_default();
            let mut responses = json!({});
            for (key, request) in requests {
                self.asked.push(request["params"].clone());
                responses[key] = self.answer.clone();
            }
            params["inputResponses"] = responses;
            params["requestState"] = result["requestState"].clone();
        }
        panic!("it asks for ever")
    }

    async fn settle(&mut self, id: &Value) -> Value {
        loop {
            let frame = self.peer.recv().await.unwrap();
            match frame["method"].as_str() {
                None if frame["id"] == *id && self.may_fail && frame.get("error").is_some() => {
                    return frame["error"].clone();
                }
                None if frame["id"] == *id => {
                    assert!(frame.get("error").is_none(), "{frame}");
                    return frame["result"].clone();
                }
                Some("elicitation/create") => {
                    self.asked.push(frame["params"].clone());
                    let answer = self.answer.clone();
                    self.peer.reply(&frame, answer).await.unwrap();
                }
                _ => {}
            }
        }
    }
}

const ERAS: [Revision; 3] = [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28];

const ASK: &str = "[[rules]]\neffect = \"ask\"\ntool = \"fast\"\nreason = \"think first\"\n";

#[tokio::test]
async fn calls_pass_under_the_clients_own_consent() {
    let far = Far::start().await;
    let gateway = headless(&far, "", None);
    assert_eq!(gateway.consent(), Consent::Client);
    let mut peer = super::client(gateway.open().unwrap()).await;
    let result = call(&mut peer, "far__fast", json!({})).await;
    assert_eq!(text(&result), "fast is done");
    gateway.close().await;
}

#[tokio::test]
async fn questions_of_rules_reach_the_callers_user_in_both_eras() {
    let far = Far::start().await;
    for revision in ERAS {
        let gateway = headless(&far, ASK, None);
        let mut caller = Caller::new(&gateway, revision, json!({ "action": "accept", "content": {} })).await;
        assert_eq!(text(&caller.call("far__fast").await), "fast is done", "{revision}");
        let [asked] = &caller.asked[..] else { panic!("{revision}: {:?}", caller.asked) };
        let message = asked["message"].as_str().unwrap();
        assert!(message.contains("[far] Allow this tool call?"), "{message}");
        assert!(message.contains("rule: ask * fast (bowline.toml:1: think first)"), "{message}");
        assert!(message.contains("\"path\": \"/srv\""), "{message}");
        // An answer for once holds for once.
        assert_eq!(text(&caller.call("far__fast").await), "fast is done");
        assert_eq!(caller.asked.len(), 2);
        // What no rule is about is not asked.
        caller.call("far__trace").await;
        assert_eq!(caller.asked.len(), 2);
        gateway.close().await;
    }
}

#[tokio::test]
async fn decline_and_cancel_of_the_callers_user_refuse_the_call() {
    let far = Far::start().await;
    for revision in ERAS {
        let gateway = headless(&far, ASK, None);
        for (action, reason) in
            [("decline", "declined when asked"), ("cancel", "the question was not answered")]
        {
            let mut caller = Caller::new(&gateway, revision, json!({ "action": action })).await;
            let result = caller.call("far__fast").await;
            assert_eq!((result["isError"].as_bool(), text(&result)), (Some(true), reason), "{revision}");
        }
        gateway.close().await;
    }
}

#[tokio::test]
async fn an_answer_of_the_callers_user_is_remembered() {
    let (far, folder) = (Far::start().await, Folder::new("consent-always"));
    let always = json!({ "action": "accept", "content": { "remember": "always" } });
    for (revision, questions) in [(Revision::V2026_07_28, 1), (Revision::V2025_11_25, 0)] {
        let gateway = headless(&far, ASK, Some(folder.path()));
        let mut caller = Caller::new(&gateway, revision, always.clone()).await;
        for _ in 0..2 {
            assert_eq!(text(&caller.call("far__fast").await), "fast is done");
        }
        assert_eq!(caller.asked.len(), questions, "{revision}");
        gateway.close().await;
    }
}

#[tokio::test]
async fn an_answer_that_was_not_offered_is_a_refusal() {
    let far = Far::start().await;
    let gateway = headless(&far, ASK, None);
    for content in [json!({ "remember": "server" }), json!({ "remember": 7 })] {
        let answer = json!({ "action": "accept", "content": content });
        let mut caller = Caller::new(&gateway, Revision::V2026_07_28, answer).await;
        let result = caller.call("far__fast").await;
        assert!(text(&result).starts_with("the client could not ask its user"), "{result}");
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_refusal_for_a_client_without_elicitation_names_what_allows_the_call() {
    let far = Far::start().await;
    let gateway = headless(&far, ASK, None);
    let mut peer = super::client(gateway.open().unwrap()).await;
    let result = call(&mut peer, "far__fast", json!({})).await;
    assert_eq!(
        text(&result),
        "`fast` of `far` needs approval (rule: ask * fast (bowline.toml:1: think first)), and nobody can be asked: the \
         client does not support elicitation; start the gateway with `--allow far__fast`, add a rule with effect = \
         \"allow\", server = \"far\", tool = \"fast\", or change that rule"
    );
    gateway.close().await;
}

#[tokio::test]
async fn a_changed_definition_is_accepted_through_the_client() {
    // V-101
    let (log, _guard) = Log::start();
    let folder = Folder::new("consent-changed");
    let of = |description: &str| {
        let tool = Tool::new("greet").description(description).handler(|| "hello");
        Server::new("far").tool(tool)
    };
    for revision in ERAS {
        let (first, second) = (format!("Greets {revision}."), format!("Greets and mails {revision}."));
        let before = Far::with(of(&first)).await;
        let file = |far: &Far| far.url.clone();
        let open = |url: String| {
            // The entry is the same; only what it leads to has changed.
            let config = config(&format!("[servers.far]\nurl = \"{url}\"\n"));
            Gateway::builder(config)
                .environment(environment())
                .serves(None)
                .folder(folder.path())
                .build()
                .unwrap()
        };
        let url = file(&before);
        let gateway = open(url.clone());
        let mut peer = super::client(gateway.open().unwrap()).await;
        assert_eq!(text(&call(&mut peer, "far__greet", json!({})).await), "hello");
        gateway.close().await;
        let address = before.stop().await;
        let after = Far::at(of(&second), address).await;
        assert_eq!(file(&after), url);

        let gateway = open(url.clone());
        // A client without elicitation is told the commands.
        let mut peer = super::client(gateway.open().unwrap()).await;
        let refused = call(&mut peer, "far__greet", json!({})).await;
        assert_eq!(
            text(&refused),
            "the definition of `greet` of `far` changed since it was accepted; run `bowline pins diff far` to see it \
             and `bowline pins accept far greet` to accept it"
        );
        let mut caller = Caller::new(&gateway, revision, json!({ "action": "accept", "content": {} })).await;
        assert_eq!(text(&caller.call("far__greet").await), "hello", "{revision}");
        let [asked] = &caller.asked[..] else { panic!("{revision}: {:?}", caller.asked) };
        let message = asked["message"].as_str().unwrap();
        assert!(message.contains(&format!("+   \"description\": \"{second}\"")), "{message}");
        // It is accepted for everybody.
        assert_eq!(text(&call(&mut peer, "far__greet", json!({})).await), "hello");
        gateway.close().await;
    }
    // One line for each change of state.
    for line in
        ["the definition of a tool changed since it was approved", "the definition of a tool was accepted"]
    {
        assert_eq!(log.count(&[line]), ERAS.len(), "{:?}", log.lines());
    }
}

#[tokio::test]
async fn callers_of_a_shared_gateway_answer_for_themselves_only() {
    // V-111
    let far = Far::start().await;
    let file = format!("[servers.far]\nurl = \"{}\"\n", far.url);
    let listen = Some("0.0.0.0:7337".parse().unwrap());
    let gateway = Gateway::builder(config(&file)).environment(environment()).serves(listen).build().unwrap();
    assert_eq!(gateway.consent(), Consent::Ask);
    let run = json!({ "action": "accept", "content": { "remember": "run" } });
    let mut caller = Caller::new(&gateway, Revision::V2025_11_25, run).await;
    let result = caller.call("far__fast").await;
    // Nobody knows who this is, so its answer cannot hold for the next.
    assert!(text(&result).contains("`run` is not one of the choices"), "{result}");
    assert_eq!(
        caller.asked[0]["requestedSchema"]["properties"]["remember"]["oneOf"].as_array().unwrap().len(),
        1
    );
    let mut caller =
        Caller::new(&gateway, Revision::V2025_11_25, json!({ "action": "accept", "content": {} })).await;
    assert_eq!(text(&caller.call("far__fast").await), "fast is done");
    gateway.close().await;
}

#[tokio::test]
async fn consent_can_be_denied_and_allowed_from_the_command_line() {
    let far = Far::start().await;
    let file = format!(
        "[gateway]\nconsent = \"deny\"\n\n[[rules]]\neffect = \"deny\"\ntool = \"trace\"\n\n[servers.far]\nurl = \"{}\"\n",
        far.url
    );
    let build = |rules: Vec<Rule>| {
        let builder = Gateway::builder(config(&file)).environment(environment()).serves(None);
        builder.without_asking(rules).build().unwrap()
    };
    let gateway = build(Vec::new());
    let mut caller =
        Caller::new(&gateway, Revision::V2025_11_25, json!({ "action": "accept", "content": {} })).await;
    let result = caller.call("far__fast").await;
    assert_eq!(
        text(&result),
        "no rule matches, and this tool may change things; consent = \"deny\" refuses what would be asked"
    );
    assert_eq!(caller.asked, [] as [Value; 0]);
    gateway.close().await;

    let gateway = build(vec![Rule::allow().server("far").origin("--allow")]);
    let mut peer = super::client(gateway.open().unwrap()).await;
    assert_eq!(text(&call(&mut peer, "far__fast", json!({})).await), "fast is done");
    // A rule that denies still does, also after the configuration was read again.
    gateway.apply(config(&file)).unwrap();
    assert!(text(&call(&mut peer, "far__trace", json!({})).await).starts_with("rule: deny * trace"));
    assert_eq!(text(&call(&mut peer, "far__fast", json!({})).await), "fast is done");
    gateway.close().await;
}

#[tokio::test]
async fn a_server_of_the_project_is_approved_through_the_client() {
    // V-70
    let far = Far::start().await;
    let file = json!({ "mcpServers": { "far": { "url": far.url } } }).to_string();
    for revision in ERAS {
        let folder = Folder::new(&format!("consent-project-{revision}"));
        let build = |listen: Option<&str>| {
            let config = config_of(&[(".mcp.json", Scope::Project, &file)]);
            let listen = listen.map(|address| address.parse().unwrap());
            let builder = Gateway::builder(config).environment(environment()).serves(listen);
            builder.folder(folder.path()).build().unwrap()
        };
        let refusal =
            "the server `far` of .mcp.json:1 is not approved; run `bowline up` in a terminal to approve it";
        let yes = json!({ "action": "accept", "content": {} });
        // A client without elicitation, and a caller among many, are told what to do.
        let gateway = build(None);
        let mut peer = super::client(gateway.open().unwrap()).await;
        assert_eq!(text(&call(&mut peer, "far__fast", json!({})).await), refusal);
        let shared = build(Some("0.0.0.0:7337"));
        let mut caller = Caller::new(&shared, revision, yes.clone()).await;
        assert_eq!(text(&caller.call("far__fast").await), refusal);
        shared.close().await;

        let mut caller = Caller::new(&gateway, revision, json!({ "action": "decline" })).await;
        assert_eq!(text(&caller.call("far__fast").await), "the server `far` was not approved");
        let mut caller = Caller::new(&gateway, revision, yes).await;
        let answer = caller.call("far__approve_server").await;
        assert_eq!(text(&answer), "the server `far` is approved; its tools are now listed", "{revision}");
        let message = caller.asked[0]["message"].as_str().unwrap();
        assert!(message.contains("[far] This server is defined by the project."), "{message}");
        assert!(message.contains(&far.url), "{message}");
        assert_eq!(text(&caller.call("far__fast").await), "fast is done");
        // The approval holds for the next run as well.
        gateway.close().await;
        let gateway = build(None);
        let mut peer = super::client(gateway.open().unwrap()).await;
        assert_eq!(text(&call(&mut peer, "far__fast", json!({})).await), "fast is done");
        gateway.close().await;
    }
}

#[tokio::test]
async fn clients_with_elicitation_see_servers_that_wait_for_approval() {
    let far = Far::start().await;
    let file = json!({ "mcpServers": { "far": { "url": far.url } } }).to_string();
    let config = config_of(&[(".mcp.json", Scope::Project, &file)]);
    let gateway = Gateway::builder(config).environment(environment()).serves(None).build().unwrap();
    let mut caller = Caller::new(&gateway, Revision::V2025_11_25, json!({ "action": "cancel" })).await;
    assert_eq!(super::tools(&mut caller.peer).await, ["far__approve_server"]);
    let mut peer = super::client(gateway.open().unwrap()).await;
    assert!(super::tools(&mut peer).await.is_empty());
    gateway.close().await;
}

/// The configuration of a gateway with a model, behind which a server samples.
fn with_model(site: &Site, far: &Far, more: &str) -> GatewayBuilder {
    let text = format!(
        "[sampling.providers.local]\nkind = \"openai\"\nbase_url = \"http://{}/v1\"\n\
         [[sampling.models]]\nname = \"m\"\nprovider = \"local\"\n[servers.far]\nurl = \"{}\"\n{more}\n",
        site.address, far.url
    );
    let config = config(&text);
    assert_eq!(config.errors, []);
    Gateway::builder(config).environment(environment())
}

#[tokio::test]
async fn the_use_of_a_model_of_the_gateway_is_put_to_the_callers_user() {
    let done =
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"four"},"finish_reason":"stop"}]}"#;
    let add = Tool::new("add").handler(|ctx: Ctx| async move {
        let request = CreateMessageParams::new(vec![SamplingMessage::user("two and two?")], 100_u64);
        let result = ctx.sample(request).await?;
        let text = result.content.as_slice().first().and_then(|block| block.as_text()).unwrap_or_default();
        Result::<_>::Ok(text.to_owned())
    });
    let far = Far::with(Server::new("far").tool(add)).await;
    for upstream in ["", "revision = \"2025-11-25\""] {
        for revision in ERAS {
            let site = Site::new([reply(200, done)]).await;
            let gateway = with_model(&site, &far, upstream).serves(None).build().unwrap();
            let accept = json!({ "action": "accept", "content": { "remember": "once" } });
            let mut caller = Caller::new(&gateway, revision, accept).await;
            assert_eq!(text(&caller.call("far__add").await), "four", "{upstream} {revision}");
            let [asked] = &caller.asked[..] else { panic!("{revision}: {:?}", caller.asked) };
            let message = asked["message"].as_str().unwrap();
            assert!(message.contains("[far] Send this to a model of the gateway?"), "{message}");
            assert!(message.contains("two and two?"), "{message}");
            gateway.close().await;

            // A user who declines keeps the request from the model, whose script is empty.
            let site = Site::new([]).await;
            let gateway = with_model(&site, &far, upstream).serves(None).build().unwrap();
            let mut caller = Caller::new(&gateway, revision, json!({ "action": "decline" })).await;
            let refused = caller.ends("far__add").await;
            assert!(refused.to_string().contains("declined"), "{upstream} {revision}: {refused}");
            assert_eq!((caller.asked.len(), site.seen().len()), (1, 0));
            gateway.close().await;

            // One of many callers cannot allow the use of the operator's models.
            let rules = format!("{upstream}\n[[rules]]\neffect = \"allow\"\n");
            let gateway = with_model(&site, &far, &rules).build().unwrap();
            let accept = json!({ "action": "accept", "content": {} });
            let mut caller = Caller::new(&gateway, revision, accept).await;
            let refused = caller.ends("far__add").await;
            assert!(refused.to_string().contains("nobody can be asked"), "{upstream} {revision}: {refused}");
            assert_eq!((caller.asked.len(), site.seen().len()), (0, 0));
            gateway.close().await;
        }
    }
}
