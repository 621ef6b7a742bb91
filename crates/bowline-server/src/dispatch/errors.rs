//! Errors of handlers as the caller sees them.

use crate::{Error, error::Kind};
use bowline_proto::service::ClientView;
use bowline_types::{CallToolResult, ContentBlock, Era, RpcError};

/// Only tools become tasks, and only those that say so.
#[cfg(feature = "tasks")]
pub(super) fn not_a_task(name: &str) -> RpcError {
    RpcError::internal(format!("`{name}` cannot become a task"))
}

pub(super) fn call_panicked() -> RpcError {
    RpcError::internal("the call panicked")
}

pub(super) fn panicked(name: &str) -> RpcError {
    RpcError::internal(format!("`{name}` panicked"))
}

pub(super) fn returned(name: &str, reason: &str) -> RpcError {
    RpcError::internal(format!("`{name}` returned an invalid result: {reason}"))
}

/// Returns the error of a failed handler as a tool result.
pub(super) fn tool_error(error: Error, client: &ClientView) -> Result<CallToolResult, RpcError> {
    let text = error.to_string();
    match error.into_kind() {
        Kind::Rpc(error) => Err(error),
        // 2026-07-28 has an error code for this; in older revisions the model is informed.
        Kind::Missing { needed, .. } if client.revision.era() == Era::Modern => {
            Err(RpcError::missing_capability(&needed))
        }
        Kind::Tool(_)
        | Kind::Other(_)
        | Kind::Arguments(_)
        | Kind::NotFound(_)
        | Kind::Missing { .. }
        | Kind::Visit(_)
        | Kind::Suspended => {
            let mut result = CallToolResult::new().content(vec![ContentBlock::text(text)]);
            result.is_error = Some(true);
            Ok(result)
        }
    }
}

/// Returns the error of a failed handler for other requests than tool calls.
pub(crate) fn rpc_error(error: Error, client: &ClientView) -> RpcError {
    let text = error.to_string();
    match error.into_kind() {
        Kind::Rpc(error) => error,
        Kind::Missing { needed, .. } if client.revision.era() == Era::Modern => {
            RpcError::missing_capability(&needed)
        }
        Kind::Arguments(_) | Kind::NotFound(_) => RpcError::invalid_params(text),
        Kind::Tool(_) | Kind::Other(_) | Kind::Missing { .. } | Kind::Visit(_) | Kind::Suspended => {
            RpcError::internal(text)
        }
    }
}

/// Returns what a failed read reports.
pub(super) fn read_error(error: Error, client: &ClientView, uri: &str) -> RpcError {
    match error.into_kind() {
        Kind::NotFound(None) => RpcError::resource_not_found(uri),
        Kind::NotFound(Some(message)) => {
            RpcError { message: message.into(), ..RpcError::resource_not_found(uri) }
        }
        kind => rpc_error(kind.into(), client),
    }
}
