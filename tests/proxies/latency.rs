//! How long an event is under way, from the handler that sends it to the client behind the proxy.

use crate::{Finding, Result, Way, caller::Caller};
use bowline::{client::Change, prelude::*, types::SubscriptionFilter};
use serde_json::Value;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// How often each is measured.
const TIMES: usize = 50;
/// What half of all events must not exceed.
const LIMIT: Duration = Duration::from_millis(50);
/// How long a call goes on behind its first event. A proxy that keeps events back keeps them this long.
const HOLD: u64 = 200;

/// The time since a moment that the server names.
fn since(nanoseconds: &str) -> Result<Duration> {
    let sent = Duration::from_nanos(nanoseconds.parse()?);
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.saturating_sub(sent))
}

pub(crate) async fn check(way: &Way) -> Vec<Finding> {
    let finding = |what: &str, taken: Result<Vec<Duration>>| Finding::of(way, what, taken.and_then(judge));
    vec![
        finding("first event of a call, on a socket", calls(way).await),
        finding("first event of a call, by the client", client_calls(way).await),
        finding("change on a standing stream, on a socket", changes(way).await),
        finding("change on a standing stream, by the client", client_changes(way).await),
    ]
}

fn judge(mut taken: Vec<Duration>) -> Result<String> {
    taken.sort();
    let (median, longest) = match (taken.get(taken.len() / 2), taken.last()) {
        (Some(median), Some(longest)) if taken.len() == TIMES => (median, longest),
        _ => return Err(format!("expected {TIMES} events, got {}", taken.len()).into()),
    };
    let seen = format!("p50 {median:.1?}, max {longest:.1?}");
    if *median <= LIMIT { Ok(seen) } else { Err(format!("{seen}, expected at most {LIMIT:?}").into()) }
}

async fn calls(way: &Way) -> Result<Vec<Duration>> {
    let caller = Caller::open(&way.address, way.revision).await?;
    let mut taken = Vec::new();
    for _ in 0..TIMES {
        let mut reply = caller.call("stamp", json!({ "milliseconds": HOLD })).await?;
        let (event, _) = reply.event_with("notifications/progress").await?;
        let data = event.lines().find_map(|line| line.strip_prefix("data:")).unwrap_or_default();
        let progress: Value = serde_json::from_str(data)?;
        taken.push(since(progress["params"]["message"].as_str().unwrap_or_default())?);
        reply.event_with("stamped").await?;
    }
    caller.delete().await?;
    Ok(taken)
}

async fn client_calls(way: &Way) -> Result<Vec<Duration>> {
    let client = Client::builder().revisions([way.revision]).connect(http(way.url())).await?;
    let taken = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..TIMES {
        let heard = Arc::clone(&taken);
        let call = client.call("stamp", json!({ "milliseconds": HOLD })).progress(move |progress| {
            if let Some(Ok(time)) = progress.message.as_deref().filter(|_| progress.progress < 2.0).map(since)
            {
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(time);
            }
        });
        call.await?;
    }
    client.close().await;
    let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(taken.clone())
}

async fn changes(way: &Way) -> Result<Vec<Duration>> {
    let caller = Caller::open(&way.address, way.revision).await?;
    let uri = way.watched("socket");
    let mut stream = caller.listen(&uri).await?;
    let mut taken = Vec::new();
    for _ in 0..TIMES {
        let changing = caller.call("change", json!({ "uri": uri }));
        let hearing = async {
            stream.event_with("resources/updated").await?;
            Result::<_>::Ok(SystemTime::now())
        };
        let (changed, heard) = tokio::join!(changing, hearing);
        let reply: Value = serde_json::from_str(&changed?.whole().await?)?;
        let sent = reply["result"]["content"][0]["text"].as_str().unwrap_or_default().parse()?;
        taken.push(heard?.duration_since(UNIX_EPOCH + Duration::from_nanos(sent))?);
    }
    caller.delete().await?;
    Ok(taken)
}

async fn client_changes(way: &Way) -> Result<Vec<Duration>> {
    let client = Client::builder().revisions([way.revision]).connect(http(way.url())).await?;
    let uri = way.watched("client");
    let mut listen =
        client.listen(SubscriptionFilter::new().resource_subscriptions(vec![uri.clone()])).await?;
    let mut taken = Vec::new();
    for _ in 0..TIMES {
        let hearing = async {
            let heard = listen.next().await;
            (heard == Some(Change::Resource(uri.clone()))).then(SystemTime::now).ok_or("the stream ended")
        };
        let (changed, heard) = tokio::join!(client.call("change", json!({ "uri": uri })), hearing);
        let sent = changed?.text().parse()?;
        taken.push(heard?.duration_since(UNIX_EPOCH + Duration::from_nanos(sent))?);
    }
    client.close().await;
    Ok(taken)
}
