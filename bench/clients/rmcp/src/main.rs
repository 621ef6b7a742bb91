//! rmcp's client in a closed loop: see `bench-drive` for the arguments.

use bench_drive::{Arguments, drive};
use rmcp::{
    ClientLifecycleMode, ClientServiceExt,
    model::{CallToolRequestParams, ClientConfig, ContentBlock, ProtocolVersion},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::json;
use std::rc::Rc;
use tokio::process::Command;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::read();
    let lifecycle = if arguments.revision == "2026-07-28" {
        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
    } else {
        ClientLifecycleMode::Initialize
    };
    let handler = ClientConfig::default();
    let client = match arguments.target.as_slice() {
        [url] if url.starts_with("http:") => {
            handler
                .serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url.clone()), lifecycle)
                .await?
        }
        [program, words @ ..] => {
            let mut command = Command::new(program);
            command.args(words);
            handler.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
        }
        [] => unreachable!("the arguments name a target"),
    };
    let client = Rc::new(client);
    let (caller, message) = (client.clone(), Arguments::message());
    drive(&arguments, move || {
        let (client, message) = (caller.clone(), message.clone());
        async move {
            let words = json!({ "message": message }).as_object().cloned().unwrap_or_default();
            let params = CallToolRequestParams::new("echo").with_arguments(words);
            let called = client.call_tool(params).await.map_err(|error| error.to_string())?;
            match called.content.first().and_then(ContentBlock::as_text) {
                Some(text) if text.text == message => Ok(()),
                _ => Err(format!("{called:?}")),
            }
        }
    })
    .await;
    if let Ok(client) = Rc::try_unwrap(client) {
        client.cancel().await?;
    }
    Ok(())
}
