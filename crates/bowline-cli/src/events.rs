//! Notifications and log messages of a server, as text and JSON.

use crate::{client_handlers::log_line, screen::Screen};
use bowline_client::Notification;
use bowline_text::visible;
use bowline_types::LogMessageParams;
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
