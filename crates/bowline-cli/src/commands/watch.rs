//! `bowline watch`: prints the notifications and log messages of a server.

use crate::{
    context::Context,
    events::{self, ServerEvent},
    failure::Failure,
    json_text,
    screen::Tone,
    session::Session,
    target::{TargetArguments, duration},
};
use bowline_text::{rfc3339, visible};
use bowline_types::{Capability, LoggingLevel};
use clap::Args;
use std::{
    future::pending,
    time::{Duration, SystemTime},
};
use tokio::sync::mpsc;

/// The maximum number of queued events. Further received are dropped.
const MAX_QUEUED_EVENTS: usize = 10_000;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
    /// Print log messages at this level and above: debug, info, notice, warning, error, critical, alert, emergency
    #[arg(long, alias = "log-level", value_name = "LEVEL", default_value = "info")]
    level: LoggingLevel,
    /// Subscribe to this resource; can be repeated
    #[arg(long = "resource", value_name = "URI")]
    resources: Vec<String>,
    /// Stop after this time: `500ms`, `10s`, `5m`
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Stop after this many events
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let (sender, mut received) = mpsc::channel(MAX_QUEUED_EVENTS);
    let logs = sender.clone();
    let target = arguments.target.target(context)?.long_lived();
    let add_handlers = move |builder: bowline_client::ClientBuilder| {
        builder
            .log_level(arguments.level)
            // Drop received if the queue is full: a slow reader must not block the connection.
            .on_log(move |message| drop(logs.try_send((SystemTime::now(), ServerEvent::Log(message)))))
            .on_notification(move |event| {
                drop(sender.try_send((SystemTime::now(), ServerEvent::Notification(event))));
            })
    };
    let (time, count) = (arguments.time, arguments.count);
    Session::listening(target, context, add_handlers, async |session| {
        let client = &session.client;
        if client.server().capabilities.has(Capability::Logging) {
            client.set_level(arguments.level).await?;
        }
        for uri in &arguments.resources {
            client.subscribe(uri).await?;
        }
        context.screen.note(&format!("watching `{}`; press Ctrl-C to stop", visible(&session.name)));
        let end = async {
            match time {
                Some(time) => tokio::time::sleep(time).await,
                None => pending().await,
            }
        };
        tokio::select! {
            shown = show(context, &mut received, count) => shown,
            lost = client.closed() => Err(lost.into()),
            () = end => Ok(()),
        }
    })
    .await
}

async fn show(
    context: &Context,
    received: &mut mpsc::Receiver<(SystemTime, ServerEvent)>,
    count: Option<u64>,
) -> Result<(), Failure> {
    let mut shown = 0;
    while count.is_none_or(|count| shown < count) {
        let Some((time, event)) = received.recv().await else { break };
        let (screen, time) = (context.screen, rfc3339(time));
        if context.json() {
            screen.line(&json_text::escaped(events::as_json(&time, &event).to_string()))?;
        } else {
            screen.line(&format!("{} {}", screen.paint(Tone::Faint, &time), events::line(screen, &event)))?;
        }
        shown += 1;
    }
    Ok(())
}
