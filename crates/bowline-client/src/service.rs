//! A client as a service: calls of someone else go to its server as they are.

use crate::{
    client::Client,
    request::{Options, split_meta},
};
use bowline_proto::service::{BoxFuture, Call, Notice, Outcome, Outlet, Reply, Service};
use bowline_types::{Meta, Method, ProgressParams, RawJson, RawMap, RpcError, meta};
use std::sync::Arc;

/// Forwards calls with all their members. What the server asks back is answered by this client's own handlers.
impl Service for Client {
    fn call(&self, call: Call, outlet: Outlet) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            match forward(self, call, outlet).await {
                Ok(result) => Outcome::Complete(Reply::Raw(result)),
                Err(error) => Outcome::Failed(error),
            }
        })
    }
}

async fn forward(client: &Client, call: Call, outlet: Outlet) -> Result<RawJson, RpcError> {
    let core = client.core();
    let params = without_state(call.params.raw())?;
    let (params, meta) = split_meta(&params).map_err(|error| RpcError::invalid_params(error.to_string()))?;
    let mut options = Options::new(&core.shared);
    options.meta = passed_on(meta);
    options.progress = call.progress_token.map(|_| {
        let emit = move |progress: ProgressParams| {
            let ProgressParams { progress, total, message, .. } = progress;
            outlet.emit(Notice::Progress { progress, total, message });
        };
        Arc::new(emit) as _
    });
    let asked = core.ask(Method::as_str(call.method), &params, options).await;
    asked.map(|(result, _)| result).map_err(|error| match error.as_rpc() {
        Some(error) => error.clone(),
        None => RpcError::internal(error.to_string()),
    })
}

/// The rounds with the caller are its own; those with the server start anew.
fn without_state(params: &RawJson) -> Result<RawJson, RpcError> {
    let invalid = |error: serde_json::Error| RpcError::invalid_params(error.to_string());
    let mut members: RawMap = params.decode().map_err(invalid)?;
    let had = [members.remove("inputResponses"), members.remove("requestState")];
    if had.iter().all(Option::is_none) {
        return Ok(params.clone());
    }
    RawJson::of(&members).map_err(invalid)
}

/// What of the caller's metadata is for the server: all but what describes the caller's own connection.
fn passed_on(meta: Meta) -> Meta {
    const OWN: [&str; 6] = [
        meta::key::PROGRESS_TOKEN,
        meta::key::PROTOCOL_VERSION,
        meta::key::CLIENT_INFO,
        meta::key::CLIENT_CAPABILITIES,
        meta::key::LOG_LEVEL,
        meta::key::SUBSCRIPTION_ID,
    ];
    let mut members = meta.into_map();
    members.retain(|key, _| !OWN.contains(&key));
    members.into()
}
