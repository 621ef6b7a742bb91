//! Calls, sessions and answers of several users stay apart.

use super::*;

#[tokio::test]
async fn a_gateway_with_access_tokens_serves_several_users() {
    let issuer = Issuer::new("auth-shared");
    let at = |text: &str, listen: &str| {
        let builder = Gateway::builder(config(text)).environment(environment());
        builder.serves(Some(listen.parse().unwrap())).build()
    };
    let alone = at("[gateway]\ntoken_env = \"GATE_TOKEN\"\n", "127.0.0.1:7337").unwrap();
    assert_eq!((alone.audience(), alone.consent()), (Audience::SingleUser, Consent::Client));
    let section = issuer.section("");
    let both = at(&format!("[gateway]\ntoken_env = \"GATE_TOKEN\"\n{section}"), "127.0.0.1:7337").unwrap();
    assert_eq!((both.audience(), both.consent()), (Audience::Shared, Consent::Ask));
    // Other machines may connect, and no token of the gateway is needed.
    let public = format!("[gateway]\nlisten = \"0.0.0.0:7337\"\nallowed_hosts = [\"*\"]\n{section}");
    let public = at(&public, "0.0.0.0:7337").unwrap();
    assert_eq!(public.problems(), []);
    assert!(public.http().is_ok());
    // Over standard streams there are no access tokens.
    let stdio = Gateway::builder(config(&section)).environment(environment()).serves(None).build().unwrap();
    assert_eq!(stdio.audience(), Audience::SingleUser);
}

#[tokio::test]
async fn v30_what_one_user_opened_does_not_exist_for_another() {
    // proves: SEC-23, SEC-25, SEC-26, SEC-27
    // V-30
    let (far, issuer) = (Far::start().await, Issuer::new("auth-mix"));
    let gateway = build(&format!(
        "{}[[rules]]\neffect = \"allow\"\ntool = \"fast\"\n[servers.far]\nurl = \"{}\"\n",
        issuer.section(""),
        far.url
    ));
    let endpoint = gateway.http().unwrap();
    let ada = issuer.of("ada");
    // Another user, and the same user with another client.
    let thieves = [issuer.of("bob"), issuer.token(&json!({ "client_id": "other" }))];
    let session = Session::open(&endpoint, &ada).await;
    for thief in &thieves {
        assert_eq!(session.call(&endpoint, thief, "far__fast").await.status, 404);
        for last_event in [None, Some("0-0"), Some("1")] {
            let mut request = Request::builder().method(Method::GET).uri("/mcp");
            request = request.header("accept", "text/event-stream");
            request = request.header("authorization", format!("Bearer {thief}"));
            if let Some(id) = last_event {
                request = request.header("last-event-id", id);
            }
            assert_eq!(send(&endpoint, session.within(request), String::new()).await.status, 404);
        }
        let end = Request::builder().method(Method::DELETE).uri("/mcp");
        let end = end.header("authorization", format!("Bearer {thief}"));
        assert_eq!(send(&endpoint, session.within(end), String::new()).await.status, 404);
    }
    assert_eq!(session.call(&endpoint, &ada, "far__fast").await.result(), "fast is done");
    // A new token of the same user and client continues.
    let again = issuer.token(&json!({ "scope": "mcp more" }));
    assert_eq!(session.call(&endpoint, &again, "far__fast").await.result(), "fast is done");

    // The state of a call that waits for an answer.
    let asked = call(&endpoint, Some(&ada), "far__trace", json!({})).await.json();
    let state = asked["result"]["requestState"].clone();
    assert!(state.is_string(), "{asked}");
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let retry = json!({
        "name": "far__trace", "arguments": {}, "requestState": state,
        "inputResponses": { key: { "action": "accept", "content": {} } },
    });
    for thief in &thieves {
        let reply = modern(&endpoint, Some(thief), "tools/call", retry.clone()).await;
        assert_eq!(reply.json()["error"]["code"], -32602, "{}", reply.text);
    }
    let reply = modern(&endpoint, Some(&ada), "tools/call", retry).await;
    assert_eq!(reply.result(), "none", "{}", reply.text);

    // Lists of the gateway have one page, so a cursor is unknown, whoever sends it.
    for token in thieves.iter().chain([&ada]) {
        let reply = modern(&endpoint, Some(token), "tools/list", json!({ "cursor": "x" })).await;
        assert_eq!(reply.json()["error"]["code"], -32602, "{}", reply.text);
    }
    gateway.close().await;
}

#[tokio::test]
async fn answers_are_remembered_for_one_user() {
    let (far, issuer) = (Far::start().await, Issuer::new("auth-answers"));
    let gateway = build(&format!("{}[servers.far]\nurl = \"{}\"\n", issuer.section(""), far.url));
    let endpoint = gateway.http().unwrap();
    let asks = async |token: &str| {
        let reply = call(&endpoint, Some(token), "far__fast", json!({})).await.json();
        (reply["result"]["resultType"] == "input_required").then_some(reply)
    };
    let (ada, bob) = (issuer.of("ada"), issuer.of("bob"));
    let asked = asks(&ada).await.unwrap();
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let answer = json!({
        "name": "far__fast", "arguments": {}, "requestState": asked["result"]["requestState"],
        "inputResponses": { key: { "action": "accept", "content": { "remember": "run" } } },
    });
    let reply = modern(&endpoint, Some(&ada), "tools/call", answer).await;
    assert_eq!(reply.result(), "fast is done");
    assert!(asks(&ada).await.is_none());
    assert!(asks(&bob).await.is_some());
    gateway.close().await;
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    user: String,
    number: u32,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v36_ten_thousand_interleaved_calls_keep_their_users_apart() {
    // proves: SEC-43
    // V-36
    const CALLS: u32 = 10_000;
    const USERS: [&str; 4] = ["ada", "bob", "cleo", "dan"];
    let echo = || Tool::new("echo").handler(|Echo { user, number }: Echo| format!("{user} {number}"));
    let far = Far::with(Server::new("far").tool(echo())).await;
    let issuer = Issuer::new("auth-interleaved");
    // Each user may name only herself or himself.
    let rule = |user: &&str| {
        format!(
            "[[rules]]\neffect = \"allow\"\nprincipal = \"{user}\"\narguments = {{ user = \"{user}\" }}\n"
        )
    };
    let rules = USERS.iter().map(rule).collect::<Vec<_>>().concat();
    let gateway = build(&format!(
        "{}{rules}[[rules]]\neffect = \"deny\"\n[servers.far]\nurl = \"{}\"\n",
        issuer.section(""),
        far.url
    ));
    gateway.host().add("here", Server::new("here").tool(echo()).build().unwrap());
    let endpoint = gateway.http().unwrap();
    let mut callers = tokio::task::JoinSet::new();
    let lanes = 16;
    for lane in 0..lanes {
        let (endpoint, tokens) = (endpoint.clone(), USERS.map(|user| issuer.of(user)));
        callers.spawn(async move {
            for number in (0..CALLS).filter(|number| number % lanes == lane) {
                let (by, named) = (number as usize % 4, (number as usize / 4) % 4);
                // One upstream is shared over HTTP, the other in this process; few calls of the slower one suffice.
                let tool = if number % 10 == 0 { "far__echo" } else { "here__echo" };
                let arguments = json!({ "user": USERS[named], "number": number });
                let reply = call(&endpoint, Some(&tokens[by]), tool, arguments).await;
                let json = reply.json();
                let text = json["result"]["content"][0]["text"].as_str().unwrap_or_default();
                if by == named {
                    assert_eq!(text, format!("{} {number}", USERS[by]), "{json}");
                } else {
                    assert_eq!(json["result"]["isError"], true, "{json}");
                }
            }
        });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap();
    }
    gateway.close().await;
}

#[tokio::test]
async fn the_audit_log_says_whose_token_was_used() {
    // V-57
    let (far, issuer) = (Far::start().await, Issuer::new("auth-audit"));
    let path = issuer.folder.path().join("audit.jsonl");
    let gateway = build(&format!(
        "[audit]\nfile = {:?}\n{}[[rules]]\neffect = \"allow\"\ntool = \"fast\"\n[servers.far]\nurl = \"{}\"\n",
        path.to_str().unwrap(),
        issuer.section(""),
        far.url
    ));
    let endpoint = gateway.http().unwrap();
    let token = issuer.token(&json!({ "scope": "mcp far:call" }));
    assert_eq!(call(&endpoint, Some(&token), "far__fast", json!({})).await.result(), "fast is done");
    let lacking = issuer.token(&json!({ "sub": "bob", "scope": "other" }));
    assert_eq!(call(&endpoint, Some(&lacking), "far__fast", json!({})).await.status, 403);
    assert_eq!(call(&endpoint, Some("canary.of.a-token"), "far__fast", json!({})).await.status, 401);
    for _ in 0..200 {
        assert_eq!(call(&endpoint, None, "far__fast", json!({})).await.status, 401);
    }
    gateway.host().guard().audit().unwrap().flush();
    let log = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    for event in ["decision", "call"] {
        let [line] = of(event)[..] else { panic!("{log}") };
        assert_eq!(
            json!([
                line["client"],
                line["principal"],
                line["issuer"],
                line["clientId"],
                line["scopes"],
                line["tokenDigest"]
            ]),
            json!(["editor", "ada", ISSUER, "app", "mcp far:call", token_digest(&token)])
        );
    }
    let refusals = of("refusal");
    let by_reason = |start: &str| {
        refusals.iter().filter(|line| line["reason"].as_str().unwrap().starts_with(start)).collect::<Vec<_>>()
    };
    let [scope] = by_reason("insufficient_scope")[..] else { panic!("{log}") };
    assert_eq!(
        json!([scope["principal"], scope["scopes"], scope["tokenDigest"], scope["decision"]]),
        json!(["bob", "other", token_digest(&lacking), "deny"])
    );
    assert!(scope["reason"].as_str().unwrap().ends_with("required: mcp"), "{scope}");
    let [invalid] = by_reason("invalid_token")[..] else { panic!("{log}") };
    assert_eq!(invalid["tokenDigest"], token_digest("canary.of.a-token"));
    // A flood of requests without a token does not fill the log.
    let missing = by_reason("missing_token").len();
    assert!((50..=60).contains(&missing), "{missing}");
    for secret in [token.as_str(), lacking.as_str(), "canary"] {
        assert!(!log.contains(secret), "{log}");
    }
    gateway.close().await;
}

#[tokio::test]
async fn a_subscription_is_refused_where_a_rule_may_deny_its_caller() {
    let server = Server::new("far").resource(Resource::new("notes://all", "all").text("none"));
    let (far, issuer) = (Far::with(server).await, Issuer::new("auth-subscribe"));
    let gateway = build(&format!(
        "{}[[rules]]\neffect = \"deny\"\naction = \"read\"\ntool = \"notes://all\"\nclaims = {{ groups = \"guests\" }}\n\
         [servers.far]\nurl = \"{}\"\nstart = \"eager\"\n",
        issuer.section(""),
        far.url
    ));
    let endpoint = gateway.http().unwrap();
    let (ada, guest) = (issuer.of("ada"), issuer.token(&json!({ "groups": ["guests"] })));
    let read = async |token: &str| {
        let reply = modern(&endpoint, Some(token), "resources/read", json!({ "uri": "notes://all" })).await;
        reply.json()["result"]["contents"][0]["text"].clone()
    };
    assert_eq!(read(&ada).await, "none");
    assert_eq!(read(&guest).await, Value::Null);
    // The claims are not known when a client subscribes, so the rule holds for everybody.
    let session = Session::open(&endpoint, &guest).await;
    let reply =
        session.request(&endpoint, &guest, "resources/subscribe", json!({ "uri": "notes://all" })).await;
    assert!(reply.text.contains("error"), "{}", reply.text);
    gateway.close().await;
}
