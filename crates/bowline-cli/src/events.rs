//! Notifications and log messages of a server, as text and JSON.

use crate::{
    screen::{Screen, Tone},
    table,
};
use bowline_client::Notification;
use bowline_text::visible;
use bowline_types::{LogMessageParams, LoggingLevel};
use serde_json::{Value, json};

/// A notification or log message.
#[derive(Debug)]
pub(crate) enum ServerEvent {
    Log(LogMessageParams),
    Notification(Notification),
}

/// Formats an event.
pub(crate) fn line(screen: Screen, events: &ServerEvent) -> String {
    match events {
        ServerEvent::Log(message) => log_line(message, |tone, text| screen.paint(tone, text)),
        ServerEvent::Notification(event) => match event {
            Notification::ToolsChanged => "tool list changed".to_owned(),
            Notification::PromptsChanged => "prompt list changed".to_owned(),
            Notification::ResourcesChanged => "resource list changed".to_owned(),
            Notification::ResourceUpdated(about) => format!("resource {} changed", visible(&about.uri)),
            Notification::ElicitationComplete(about) => {
                format!("URL elicitation {} completed", visible(&about.elicitation_id))
            }
            Notification::Other { method, params } => {
                let params = params.as_ref().map(|params| format!(" {params}")).unwrap_or_default();
                visible(&format!("{method}{params}"))
            }
            other => visible(&format!("{other:?}")),
        },
    }
}

/// Formats a log message.
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

/// Returns an event as JSON: time, method and parameters.
pub(crate) fn as_json(time: &str, events: &ServerEvent) -> Value {
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
