//! Checks the result of a handler against the rules of the protocol.

use bowline_proto::uri;
use bowline_types::{
    Annotations, CallToolResult, ContentBlock, GetPromptResult, RawJson, ResourceContents, Role,
};

/// Checks the blocks of a tool result, and adds structured content as text where the protocol requires both.
pub(crate) fn tool_result(result: &mut CallToolResult) -> Result<(), String> {
    result.content.iter().try_for_each(block)?;
    if let Some(structured) = &result.structured_content
        && !is_in_text(structured, &result.content)
    {
        result.content.push(ContentBlock::text(structured.as_str()));
    }
    Ok(())
}

/// Returns whether the text contains everything that clients need that ignore structured content. An object may be
/// described in other words; any other value must be in the text.
fn is_in_text(structured: &RawJson, content: &[ContentBlock]) -> bool {
    if structured.is_object() {
        return !content.is_empty();
    }
    content.iter().filter_map(ContentBlock::as_text).any(|text| {
        let values = || serde_json::from_str::<serde_json::Value>(text).ok().zip(structured.to_value().ok());
        text == structured.as_str() || values().is_some_and(|(values, meant)| values == meant)
    })
}

/// Checks the messages of a prompt, and completes the resources they carry.
pub(crate) fn prompt_result(result: &mut GetPromptResult) -> Result<(), String> {
    for message in &mut result.messages {
        role(&message.role)?;
        block(&message.content)?;
        if let ContentBlock::Resource(embedded) = &mut message.content {
            let (uri, mime_type, usual) = match &mut embedded.resource {
                ResourceContents::Text(text) => (&text.uri, &mut text.mime_type, "text/plain"),
                ResourceContents::Blob(blob) => (&blob.uri, &mut blob.mime_type, "application/octet-stream"),
            };
            uri::validate_uri(uri).map_err(|error| format!("the URI `{uri}`: {error}"))?;
            mime_type.get_or_insert_with(|| usual.to_owned());
        }
    }
    Ok(())
}

fn block(block: &ContentBlock) -> Result<(), String> {
    annotations(block.annotations())?;
    match block {
        ContentBlock::Image(image) => media(&image.data, &image.mime_type),
        ContentBlock::Audio(audio) => media(&audio.data, &audio.mime_type),
        _ => Ok(()),
    }
}

fn media(data: &str, mime_type: &str) -> Result<(), String> {
    let named = mime_type.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty());
    if !named {
        return Err(format!("expected a media type such as `image/png`, got `{mime_type}`"));
    }
    let text = data.trim_end_matches('=');
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let whole = data.len().is_multiple_of(4) && data.len() - text.len() <= 2;
    if whole && text.bytes().all(known) { Ok(()) } else { Err("the data of a block is not Base64".into()) }
}

/// Checks for whom something is and how much it matters.
pub(crate) fn annotations(annotations: Option<&Annotations>) -> Result<(), String> {
    let Some(annotations) = annotations else { return Ok(()) };
    annotations.audience.iter().try_for_each(role)?;
    match annotations.priority {
        Some(priority) if !(0.0..=1.0).contains(&priority) => {
            Err("the priority must lie between 0 and 1".into())
        }
        _ => Ok(()),
    }
}

fn role(role: &Role) -> Result<(), String> {
    match role {
        Role::User | Role::Assistant => Ok(()),
        other => Err(format!("expected the role `user` or `assistant`, got `{other}`")),
    }
}
