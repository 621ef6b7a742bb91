//! Whether every kind of reply gets through whole: long ones, JSON, interrupted streams, the end of a session.

use crate::{
    Finding, Result, Way,
    caller::{Caller, expect},
};
use bowline::prelude::*;
use serde_json::Value;

const MEBIBYTE: usize = 1024 * 1024;

pub(crate) async fn check(way: &Way) -> Vec<Finding> {
    let mut findings = vec![
        Finding::of(way, "reply of 1 MiB", long(way).await),
        Finding::of(way, "JSON reply", json_reply(way).await),
    ];
    // The modern era has neither.
    if way.revision.is_legacy() {
        findings.push(Finding::of(way, "resumption, on a socket", resumption(way).await));
        findings.push(Finding::of(way, "resumption, by the client", client_resumption(way).await));
        findings.push(Finding::of(way, "DELETE", deletion(way).await));
    }
    findings
}

async fn long(way: &Way) -> Result<String> {
    let client = Client::builder().revisions([way.revision]).connect(http(way.url())).await?;
    let text = client.call("letters", json!({ "count": MEBIBYTE })).await?.text();
    client.close().await;
    if text.len() == MEBIBYTE && text.bytes().all(|letter| letter == b'x') {
        return Ok("all of it".into());
    }
    Err(format!("expected {MEBIBYTE} letters, got {}", text.len()).into())
}

async fn json_reply(way: &Way) -> Result<String> {
    let caller = Caller::open(&way.address, way.revision).await?;
    let mut reply = caller.call("now", json!({})).await?;
    expect(reply.status, 200)?;
    let (kind, body) = (reply.header("content-type").unwrap_or_default().to_owned(), reply.whole().await?);
    let message: Value = serde_json::from_str(&body)?;
    caller.delete().await?;
    if kind != "application/json" || message["result"]["content"][0]["text"] != "now" {
        return Err(format!("got {kind}: {body}").into());
    }
    Ok(kind)
}

async fn resumption(way: &Way) -> Result<String> {
    let caller = Caller::open(&way.address, way.revision).await?;
    let mut reply = caller.call("stamp", json!({ "milliseconds": 500 })).await?;
    let (event, _) = reply.event_with("notifications/progress").await?;
    let last = event.lines().find_map(|line| line.strip_prefix("id:")).ok_or("an event without an id")?;
    let last = last.trim().to_owned();
    drop(reply);
    let mut again = caller.get(Some(&last)).await?;
    expect(again.status, 200)?;
    let next = again.event().await?.unwrap_or_default();
    if !next.contains("the second half") {
        return Err(format!("expected what follows event {last}, got {next}").into());
    }
    again.event_with("stamped").await?;
    if let Some(more) = again.event().await? {
        return Err(format!("expected the end of the stream, got {more}").into());
    }
    caller.delete().await?;
    Ok(format!("exactly what follows event {last}"))
}

async fn client_resumption(way: &Way) -> Result<String> {
    let client = Client::builder().revisions([way.revision]).connect(http(way.url())).await?;
    let text = client.call("leave", json!({ "milliseconds": 300 })).await?.text();
    client.close().await;
    if text == "found again" { Ok(text) } else { Err(text.into()) }
}

async fn deletion(way: &Way) -> Result<String> {
    let caller = Caller::open(&way.address, way.revision).await?;
    expect(caller.call("now", json!({})).await?.status, 200)?;
    expect(caller.delete().await?.status, 204)?;
    expect(caller.call("now", json!({})).await?.status, 404)?;
    Ok("204, and the session is gone".into())
}
