//! Questions of a task.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_caller_can_answer_by_itself() {
    let (client, mut peer) = connected(Client::builder()).await;
    let task = client.task("t1");
    let (found, ()) = both(task.status(), async {
        let get = peer.expect("tasks/get").await;
        let asks = json!({ "inputRequests": { "q1": question("who") } });
        peer.reply(&get, state("input_required", asks)).await;
    })
    .await;
    let questions = found.unwrap().questions;
    assert_eq!(questions.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["q1"]);
    let mut answers = InputResponses::new();
    answers.insert("q1", RawJson::from(json!({ "action": "decline" })));
    let (sent, ()) = both(task.answer(answers), async {
        let update = peer.expect("tasks/update").await;
        assert_eq!(update["params"]["inputResponses"], json!({ "q1": { "action": "decline" } }));
        peer.reply(&update, json!({ "resultType": "complete" })).await;
    })
    .await;
    sent.unwrap();
    // The wait does not ask again.
    let (result, ()) = both(task.wait(), async {
        let get = peer.expect("tasks/get").await;
        let asks = json!({ "inputRequests": { "q1": question("who") } });
        peer.reply(&get, state("input_required", asks)).await;
        let get = peer.expect("tasks/get").await;
        peer.reply(&get, completed("done")).await;
    })
    .await;
    result.unwrap();
}

#[tokio::test(start_paused = true)]
async fn open_questions_are_answered_without_waiting() {
    let builder = Client::builder().on_ask(|_| async { Answer::accept(json!({ "name": "ada" })) });
    let (client, mut peer) = connected(builder).await;
    let task = client.task("t1");
    for (asks, count) in [(true, 1), (true, 0), (false, 0)] {
        let (answered, ()) = both(task.answer_open(), async {
            let get = peer.expect("tasks/get").await;
            let asking = state("input_required", json!({ "inputRequests": { "q1": question("who") } }));
            peer.reply(&get, if asks { asking } else { state("working", json!({})) }).await;
            if count > 0 {
                let update = peer.expect("tasks/update").await;
                let answer = json!({ "action": "accept", "content": { "name": "ada" } });
                assert_eq!(update["params"]["inputResponses"], json!({ "q1": answer }));
                peer.reply(&update, json!({ "resultType": "complete" })).await;
            }
            peer.quiet().await;
        })
        .await;
        assert_eq!(answered.unwrap(), count);
    }
}

/// What became of a question: what the handlers of the client were shown, what the server got, and the error of the call.
async fn handled(
    request: &Value,
    in_task: bool,
    has_handlers: bool,
) -> (Vec<String>, Option<Value>, Option<String>) {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let show = |shown: &Arc<Mutex<Vec<String>>>, what: String| shown.lock().unwrap().push(what);
    let mut builder = Client::builder();
    if has_handlers {
        let (asked, visited, sampled) = (Arc::clone(&shown), Arc::clone(&shown), Arc::clone(&shown));
        builder = builder
            .on_ask(move |ask: bowline_client::Ask| {
                show(&asked, format!("{ask:?}"));
                async { Answer::accept(json!({ "name": "Ada" })) }
            })
            .on_url(move |page: bowline_client::AskUrl| {
                show(&visited, format!("{page:?}"));
                async { Answer::<()>::Decline }
            })
            .on_sample(move |params: CreateMessageParams| {
                show(&sampled, format!("{params:?}"));
                async { CreateMessageResult::new(Role::Assistant, "sampled", "model") }
            })
            .roots([Root::new("file:///src")]);
    }
    let (client, mut peer) = connected(builder).await;
    let asks = json!({ "q1": request });
    let mut got = None;
    let outcome = {
        let mut call = std::pin::pin!(client.call("index", ()).into_future());
        loop {
            let frame = tokio::select! {
                biased;
                outcome = &mut call => break outcome,
                frame = peer.next() => frame,
            };
            let responses = frame["params"].get("inputResponses").cloned();
            let reply = match frame["method"].as_str().unwrap() {
                "tools/call" if responses.is_some() => json!({ "resultType": "complete", "content": [] }),
                "tools/call" if in_task => created(),
                "tools/call" => {
                    json!({ "resultType": "input_required", "inputRequests": asks, "requestState": "s" })
                }
                "tasks/get" if got.is_some() => completed("done"),
                "tasks/get" => state("input_required", json!({ "inputRequests": asks })),
                "tasks/update" | "tasks/cancel" => json!({ "resultType": "complete" }),
                _ => continue,
            };
            got = responses.or(got);
            peer.reply(&frame, reply).await;
        }
    };
    let error = outcome.err().map(|error| {
        // Both name the message that was malformed.
        let text = error.to_string().replace(" (task `t1`)", "");
        let is_malformed = text.contains("violates the protocol: ");
        if is_malformed { "violates the protocol".to_owned() } else { text }
    });
    let shown = shown.lock().unwrap().clone();
    (shown, got, error)
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_task_is_handled_like_one_of_a_call() {
    // proves: TASKX-25
    let sample = json!({
        "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }], "maxTokens": 10,
    });
    let page = |url: &str| json!({ "method": "elicitation/create", "params": { "mode": "url", "message": "log in", "url": url } });
    // Shown to the user, or answered for the user.
    let good = [
        question("who"),
        page("https://login.example.com/a?b"),
        page("https://user@login.example.com@evil.example"),
        json!({ "method": "sampling/createMessage", "params": sample }),
        json!({ "method": "roots/list" }),
    ];
    // Refused before the user sees it.
    let bad = [
        page("javascript:alert(1)"),
        json!({ "method": "elicitation/create", "params": { "message": "no form" } }),
        json!({ "method": "tools/call", "params": { "name": "index" } }),
    ];
    for request in good.iter().chain(&bad) {
        for has_handlers in [true, false] {
            let direct = handled(request, false, has_handlers).await;
            assert_eq!(handled(request, true, has_handlers).await, direct, "{request}");
            // A client that has not declared what it takes answers nothing.
            assert!(has_handlers || (direct.0.is_empty() && direct.1.is_none()), "{request}: {direct:?}");
        }
    }
    for request in &good {
        let (_, got, error) = handled(request, true, true).await;
        assert!(got.is_some() && error.is_none(), "{request}: {error:?}");
    }
    for request in &bad {
        let (shown, _, _) = handled(request, true, true).await;
        assert!(shown.is_empty(), "{request}: {shown:?}");
    }
}
