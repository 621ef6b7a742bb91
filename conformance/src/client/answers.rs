//! What the client answers when it is asked.

use bowline::{
    client::{Answer, Ask},
    types::{
        BooleanSchema, ContentBlock, CreateMessageParams, CreateMessageResult, PrimitiveSchema, Role,
        RpcError,
    },
};
use serde_json::Map;

/// Says yes to everything. What has a default gets it without being mentioned.
pub(crate) async fn form(ask: Ask) -> Answer {
    let mut content = Map::new();
    for (name, field) in &ask.schema.properties {
        if let PrimitiveSchema::Boolean(BooleanSchema { default: None, .. }) = field {
            content.insert(name.to_owned(), true.into());
        }
    }
    Answer::accept(content)
}

/// A model of few words.
pub(crate) async fn message(_: CreateMessageParams) -> Result<CreateMessageResult, RpcError> {
    Ok(CreateMessageResult::new(Role::Assistant, ContentBlock::text("Yes."), "few-words"))
}
