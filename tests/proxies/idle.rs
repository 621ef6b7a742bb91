//! Whether what is silent for minutes outlives the patience of a proxy.

use crate::{Finding, Result, Way, caller::Caller};
use bowline::{client::Change, prelude::*, types::SubscriptionFilter};
use std::{future::Future, time::Duration};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

/// What an event may take when there is one at last.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts everything that is to be silent for so long.
pub(crate) fn start(waiting: &mut JoinSet<Finding>, way: &Way, idle: Duration) {
    let mut add = |what: &'static str, check: Box<dyn FnOnce(Way) -> Checking>| {
        let (own, running) = (way.clone(), check(way.clone()));
        waiting.spawn(async move { Finding::of(&own, what, running.await) });
    };
    add("silent standing stream, on a socket", Box::new(move |way| Box::pin(stream(way, idle))));
    add("silent standing stream, by the client", Box::new(move |way| Box::pin(client_stream(way, idle))));
    add("silent call, on a socket", Box::new(move |way| Box::pin(call(way, idle))));
    add("silent call, by the client", Box::new(move |way| Box::pin(client_call(way, idle))));
}

type Checking = std::pin::Pin<Box<dyn Future<Output = Result<String>> + Send>>;

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

async fn stream(way: Way, idle: Duration) -> Result<String> {
    let caller = Caller::open(&way.address, way.revision).await?;
    let uri = way.watched("idle-socket");
    let mut stream = caller.listen(&uri).await?;
    // One connection by its making: whatever comes on it is of the same stream.
    let hearing = async { stream.event_with("resources/updated").await };
    let changing = async {
        sleep(idle).await;
        caller.call("change", json!({ "uri": uri })).await
    };
    let both = async { tokio::join!(hearing, changing) };
    let (heard, changed) = timeout(idle + PATIENCE, both).await?;
    changed?;
    let (_, comments) = heard?;
    caller.delete().await?;
    Ok(format!("an event after {idle:?} and {comments} comments, on the same connection"))
}

async fn client_stream(way: Way, idle: Duration) -> Result<String> {
    let client = Client::builder().revisions([way.revision]).connect(http(way.url())).await?;
    let uri = way.watched("idle-client");
    let mut listen =
        client.listen(SubscriptionFilter::new().resource_subscriptions(vec![uri.clone()])).await?;
    // A stream that was opened anew reports a change of its own, because it may have missed one.
    if let Ok(early) = timeout(idle, listen.next()).await {
        return Err(format!("expected silence, got {early:?}").into());
    }
    let changed = client.call("change", json!({ "uri": uri }));
    let (changed, heard) = tokio::join!(changed, timeout(PATIENCE, listen.next()));
    changed?;
    if heard? != Some(Change::Resource(uri)) {
        return Err("the stream ended".into());
    }
    client.close().await;
    Ok(format!("an event after {idle:?}"))
}

async fn call(way: Way, idle: Duration) -> Result<String> {
    let caller = Caller::open(&way.address, way.revision).await?;
    let arguments = json!({ "milliseconds": milliseconds(idle), "word": "at last" });
    let answering = async { caller.call("quiet", arguments).await?.event_with("at last").await };
    let (_, comments) = timeout(idle + PATIENCE, answering).await??;
    caller.delete().await?;
    Ok(format!("answered after {idle:?} and {comments} comments, on the same connection"))
}

async fn client_call(way: Way, idle: Duration) -> Result<String> {
    let client = Client::builder().revisions([way.revision]).connect(http(way.url())).await?;
    let arguments = json!({ "milliseconds": milliseconds(idle), "word": "at last" });
    // The default would give up a call that reports nothing for a minute.
    let called = client.call("quiet", arguments).timeout(idle + PATIENCE).await?;
    client.close().await;
    if called.text() == "at last" {
        Ok(format!("answered after {idle:?}"))
    } else {
        Err(called.text().into())
    }
}
