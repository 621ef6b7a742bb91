//! Updates of a task, sent by the server or polled.

use super::*;

#[tokio::test(start_paused = true)]
async fn updates_are_sent_by_the_server_where_it_can() {
    let (client, mut peer) = connected(Client::builder()).await;
    let task = started(&client, &mut peer).await;
    let mut updates = task.updates();
    let ((), ()) = both(
        async {
            let mut statuses = Vec::new();
            while let Some(state) = updates.next().await {
                let task = state.unwrap().task;
                statuses.push((task.status, task.status_message));
            }
            let (working, done) = (TaskStatus::Working, TaskStatus::Completed);
            assert_eq!(statuses, [(working.clone(), None), (working, Some("half".into())), (done, None)]);
        },
        async {
            let listen = peer.expect("subscriptions/listen").await;
            assert_eq!(listen["params"]["notifications"], json!({ "taskIds": ["t1"] }));
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": listen["id"] });
            let granted = json!({ "notifications": { "taskIds": ["t1"] }, "_meta": meta });
            peer.notify("notifications/subscriptions/acknowledged", granted).await;
            // The state from before the subscription is asked for once, then rarely.
            let get = peer.expect("tasks/get").await;
            peer.reply(&get, state("working", json!({}))).await;
            let before = Instant::now();
            let mut half = state("working", json!({ "statusMessage": "half", "_meta": meta }));
            half.as_object_mut().unwrap().remove("resultType");
            // For nobody's subscription.
            let mut foreign = half.clone();
            foreign["statusMessage"] = json!("not ours");
            foreign["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": 999 });
            peer.notify("notifications/tasks", foreign).await;
            peer.notify("notifications/tasks", half.clone()).await;
            let get = peer.expect("tasks/get").await;
            assert_eq!(before.elapsed(), Duration::from_secs(30));
            half.as_object_mut().unwrap().remove("_meta");
            half["resultType"] = json!("complete");
            peer.reply(&get, half).await;
            let mut done = completed("done");
            done["_meta"] = meta;
            peer.notify("notifications/tasks", done).await;
            // The end of the stream ends the subscription.
            let cancelled = peer.expect("notifications/cancelled").await;
            assert_eq!(cancelled["params"]["requestId"], listen["id"]);
        },
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn updates_are_polled_where_the_server_sends_none() {
    let (client, mut peer) = connected(Client::builder()).await;
    let mut updates = client.task("t1").updates();
    let ((), ()) = both(
        async {
            let mut statuses = Vec::new();
            while let Some(state) = updates.next().await {
                statuses.push(state.unwrap().task.status);
            }
            assert_eq!(statuses, [TaskStatus::Working, TaskStatus::InputRequired, TaskStatus::Cancelled]);
        },
        async {
            let listen = peer.expect("subscriptions/listen").await;
            peer.fail(&listen, -32601, "no such method").await;
            let asks = json!({ "inputRequests": { "q1": question("who") } });
            for state in
                [state("working", json!({})), state("working", json!({})), state("input_required", asks)]
            {
                let get = peer.expect("tasks/get").await;
                peer.reply(&get, state).await;
            }
            let get = peer.expect("tasks/get").await;
            peer.reply(&get, state("cancelled", json!({}))).await;
        },
    )
    .await;
}
