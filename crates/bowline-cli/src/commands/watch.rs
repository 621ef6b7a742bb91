//! `bowline watch`: what a server tells by itself, for as long as somebody listens.

use crate::{
    clock,
    context::Context,
    failure::Failure,
    json_text,
    screen::{Screen, Tone},
    session::Session,
    table,
    target::{TargetArguments, duration},
};
use bowline_client::Notification;
use bowline_text::visible;
use bowline_types::{Capability, LogMessageParams, LoggingLevel};
use clap::Args;
use serde_json::{Value, json};
use std::{
    future::pending,
    time::{Duration, SystemTime},
};
use tokio::sync::mpsc;

/// How much events may wait to be shown before some is left out.
const MAX_QUEUED_EVENTS: usize = 10_000;

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
    /// Show log messages from this level on: debug, info, notice, warning, error, critical, alert, emergency
    #[arg(long, alias = "log-level", value_name = "LEVEL", default_value = "info")]
    level: LoggingLevel,
    /// Tell when this resource changes; may be given more than once
    #[arg(long = "resource", value_name = "URI")]
    resources: Vec<String>,
    /// Stop after this long
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Stop after this much events
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
}

/// Something a server tells.
#[derive(Debug)]
pub(crate) enum ServerEvent {
    Log(LogMessageParams),
    Notification(Notification),
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let (sender, mut events) = mpsc::channel(MAX_QUEUED_EVENTS);
    let logs = sender.clone();
    let target = arguments.target.target(context)?.long_lived();
    let add_handlers = move |builder: bowline_client::ClientBuilder| {
        builder
            .log_level(arguments.level)
            // What finds no room is left out: a reader that has stopped must not stop the connection.
            .on_log(move |message| drop(logs.try_send((SystemTime::now(), ServerEvent::Log(message)))))
            .on_notification(move |event| {
                drop(sender.try_send((SystemTime::now(), ServerEvent::Notification(event))))
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
        context.screen.note(&format!("listening to `{}`; Ctrl-C ends it", visible(&session.name)));
        let end = async {
            match time {
                Some(time) => tokio::time::sleep(time).await,
                None => pending().await,
            }
        };
        tokio::select! {
            shown = show(context, &mut events, count) => shown,
            lost = client.closed() => Err(lost.into()),
            () = end => Ok(()),
        }
    })
    .await
}

async fn show(
    context: &Context,
    events: &mut mpsc::Receiver<(SystemTime, ServerEvent)>,
    count: Option<u64>,
) -> Result<(), Failure> {
    let mut shown = 0;
    while count.is_none_or(|count| shown < count) {
        let Some((time, event)) = events.recv().await else { break };
        let (screen, time) = (context.screen, clock::rfc3339(time));
        if context.json() {
            screen.line(&json_text::escaped(as_json(&time, &event).to_string()))?;
        } else {
            screen.line(&format!("{} {}", screen.paint(Tone::Faint, &time), line(screen, &event)))?;
        }
        shown += 1;
    }
    Ok(())
}

/// ServerEvent on a line.
pub(crate) fn line(screen: Screen, events: &ServerEvent) -> String {
    match events {
        ServerEvent::Log(message) => log_line(message, |tone, text| screen.paint(tone, text)),
        ServerEvent::Notification(event) => match event {
            Notification::ToolsChanged => "the tools have changed".to_owned(),
            Notification::PromptsChanged => "the prompts have changed".to_owned(),
            Notification::ResourcesChanged => "the resources have changed".to_owned(),
            Notification::ResourceUpdated(about) => format!("{} has changed", visible(&about.uri)),
            Notification::ElicitationComplete(about) => {
                format!("the page of question {} is done with", visible(&about.elicitation_id))
            }
            Notification::Other { method, params } => {
                let params = params.as_ref().map(|params| format!(" {params}")).unwrap_or_default();
                visible(&format!("{method}{params}"))
            }
            other => visible(&format!("{other:?}")),
        },
    }
}

/// A log message on a line.
pub(crate) fn log_line(message: &LogMessageParams, paint: impl Fn(Tone, &str) -> String) -> String {
    let tone = match message.level {
        LoggingLevel::Debug => Tone::Faint,
        LoggingLevel::Info | LoggingLevel::Notice => Tone::Good,
        LoggingLevel::Warning => Tone::Warning,
        LoggingLevel::Error | LoggingLevel::Critical | LoggingLevel::Alert | LoggingLevel::Emergency => {
            Tone::Bad
        }
    };
    let logger = message.logger.as_deref().map(|logger| format!(" {}", visible(logger))).unwrap_or_default();
    let text = message.data.decode::<String>().unwrap_or_else(|_| message.data.as_str().to_owned());
    format!("{}{logger}: {}", paint(tone, message.level.as_str()), visible(&table::one_line(&text)))
}

/// ServerEvent as the message it came in: when, the method, and its parameters.
fn as_json(time: &str, events: &ServerEvent) -> Value {
    let (method, params) = match events {
        ServerEvent::Log(message) => ("notifications/message", json!(message)),
        ServerEvent::Notification(event) => match event {
            Notification::ToolsChanged => ("notifications/tools/list_changed", json!({})),
            Notification::PromptsChanged => ("notifications/prompts/list_changed", json!({})),
            Notification::ResourcesChanged => ("notifications/resources/list_changed", json!({})),
            Notification::ResourceUpdated(about) => ("notifications/resources/updated", json!(about)),
            Notification::ElicitationComplete(about) => ("notifications/elicitation/complete", json!(about)),
            Notification::Other { method, params } => (&**method, json!(params)),
            _ => ("", json!({})),
        },
    };
    json!({ "time": time, "method": method, "params": params })
}
