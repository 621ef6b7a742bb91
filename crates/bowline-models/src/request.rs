//! The parts of a model request and response that all providers share.

use super::{alias::Aliases, quirks::Quirks, stop_sequences::StopSequences, usage::Tokens};
use bowline_types::{
    ContentBlock, CreateMessageParams, RawJson, ResourceContents, StopReason, Tool, ToolChoiceMode,
    ToolResultContent,
};
use bytes::Bytes;

/// A request to a model.
#[derive(Debug)]
pub(super) struct ModelRequest<'a> {
    pub(super) params: &'a CreateMessageParams,
    pub(super) model: &'a str,
    pub(super) max_tokens: u64,
    /// The system prompt, after the context if there is one.
    pub(super) system: Option<String>,
    pub(super) quirks: Quirks,
}

/// An encoded request, and the data needed to decode its response.
#[derive(Debug)]
pub(super) struct EncodedRequest {
    pub(super) body: Bytes,
    pub(super) tools: Aliases,
    pub(super) stops: StopSequences,
}

/// A response of a model.
#[derive(Debug)]
pub(super) struct ModelResponse {
    pub(super) content: Vec<ContentBlock>,
    /// The model that responded, if the provider reports it.
    pub(super) model: Option<String>,
    pub(super) stop_reason: Option<StopReason>,
    pub(super) tokens: Option<Tokens>,
}

/// Returns the tools to send and their mode, or `None` if there are no tools to choose from.
pub(super) fn tools(params: &CreateMessageParams) -> Result<Option<(&[Tool], Mode)>, String> {
    let mode = params.tool_choice.as_ref().and_then(|choice| choice.mode.as_ref());
    let mode = match mode {
        None | Some(ToolChoiceMode::Auto) => Mode::Auto,
        Some(ToolChoiceMode::Required) => Mode::Required,
        Some(ToolChoiceMode::None) => Mode::None,
        Some(mode) => return Err(format!("unknown mode of `toolChoice`: `{mode}`")),
    };
    match params.tools.as_deref() {
        Some(tools) if !tools.is_empty() => Ok(Some((tools, mode))),
        _ if mode == Mode::Required => Err("`toolChoice` requires a tool, but there are none".into()),
        _ => Ok(None),
    }
}

/// How the model may use tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Auto,
    Required,
    None,
}

/// A content block that models support.
#[derive(Debug)]
pub(super) enum Part<'a> {
    Text(String),
    Image(Media<'a>),
    Audio(Media<'a>),
    ToolUse { id: &'a str, name: &'a str, input: &'a RawJson },
    ToolResult(&'a ToolResultContent),
}

/// Base64 data of an image or audio.
#[derive(Clone, Debug)]
pub(super) struct Media<'a> {
    /// In lower case, without parameters.
    pub(super) kind: String,
    pub(super) data: &'a str,
}

/// Converts a content block. Resources, which occur in tool results, are replaced by their content.
pub(super) fn part(block: &ContentBlock) -> Result<Part<'_>, String> {
    Ok(match block {
        ContentBlock::Text(block) => Part::Text(block.text.clone()),
        ContentBlock::Image(block) => Part::Image(media(&block.mime_type, "image/", &block.data)?),
        ContentBlock::Audio(block) => Part::Audio(media(&block.mime_type, "audio/", &block.data)?),
        ContentBlock::ResourceLink(link) => {
            Part::Text(format!("[{}]({})", link.title.as_deref().unwrap_or(&link.name), link.uri))
        }
        ContentBlock::Resource(block) => match &block.resource {
            ResourceContents::Text(contents) => Part::Text(contents.text.clone()),
            ResourceContents::Blob(contents) => match contents.mime_type.as_deref() {
                Some(kind) if kind.starts_with("image/") => {
                    Part::Image(media(kind, "image/", &contents.blob)?)
                }
                Some(kind) if kind.starts_with("audio/") => {
                    Part::Audio(media(kind, "audio/", &contents.blob)?)
                }
                _ => Part::Text(format!("[{}]", contents.uri)),
            },
        },
        ContentBlock::ToolUse(block) if block.input.is_object() => {
            Part::ToolUse { id: &block.id, name: &block.name, input: &block.input }
        }
        ContentBlock::ToolUse(block) => {
            return Err(format!("expected the input of the tool use `{}` to be an object", block.id));
        }
        ContentBlock::ToolResult(block) => Part::ToolResult(block),
        _ => {
            let kind = block.kind();
            return Err(format!("unknown content type `{}`", kind.as_deref().unwrap_or_default()));
        }
    })
}

/// Validates data that is sent unchanged.
fn media<'a>(kind: &str, family: &str, data: &'a str) -> Result<Media<'a>, String> {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_token = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    if !kind.strip_prefix(family).is_some_and(is_token) {
        return Err(format!("expected a media type `{family}…`, got `{}`", shown(&kind)));
    }
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    if data.is_empty() || !data.bytes().all(is_base64) {
        return Err(format!("expected the data of `{kind}` to be Base64"));
    }
    Ok(Media { kind, data })
}

/// Shortens a foreign text for a message.
pub(super) fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(64).collect()
}

/// Returns the content of a tool result. Structured content without text becomes text.
pub(super) fn result_parts(result: &ToolResultContent) -> Result<Vec<Part<'_>>, String> {
    if let (true, Some(data)) = (result.content.is_empty(), &result.structured_content) {
        return Ok(vec![Part::Text(data.as_str().to_owned())]);
    }
    let parts: Result<Vec<_>, _> = result.content.iter().map(part).collect();
    let parts = parts?;
    if parts.iter().any(|part| matches!(part, Part::ToolUse { .. } | Part::ToolResult(_))) {
        return Err("a tool result must not contain tool uses or tool results".into());
    }
    Ok(parts)
}

/// Formats an integral number without a fraction.
pub(super) fn number(value: Option<f64>) -> Option<serde_json::Number> {
    let value = value?;
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked first")]
    if value.fract() == 0.0 && value.abs() < 1e9 {
        return Some((value as i64).into());
    }
    serde_json::Number::from_f64(value)
}

/// Estimates the number of input tokens from the number of characters. Each image or audio counts the same.
pub(super) fn estimate(params: &CreateMessageParams, system: Option<&str>) -> u64 {
    const MEDIA: usize = 1_500;
    fn blocks(content: &[ContentBlock]) -> usize {
        content.iter().map(block).fold(0, usize::saturating_add)
    }
    fn block(block: &ContentBlock) -> usize {
        match block {
            ContentBlock::Text(block) => block.text.len() / 4,
            ContentBlock::Image(_) | ContentBlock::Audio(_) => MEDIA,
            ContentBlock::ResourceLink(link) => link.uri.len() / 4,
            ContentBlock::Resource(block) => match &block.resource {
                ResourceContents::Text(contents) => contents.text.len() / 4,
                ResourceContents::Blob(_) => MEDIA,
            },
            ContentBlock::ToolUse(block) => (block.name.len() + block.input.as_bytes().len()) / 4,
            ContentBlock::ToolResult(result) => {
                let data = result.structured_content.as_ref().map_or(0, |data| data.as_bytes().len() / 4);
                blocks(&result.content).max(data)
            }
            other => RawJson::of(other).map_or(0, |json| json.as_bytes().len() / 4),
        }
    }
    let messages = params.messages.iter().map(|message| blocks(message.content.as_slice()) + 4);
    let tools = params.tools.iter().flatten().map(|tool| {
        let description = tool.description.as_deref().map_or(0, str::len);
        (tool.name.len() + description + tool.input_schema.as_bytes().len()) / 4
    });
    let system = system.map_or(0, str::len) / 4;
    let total = messages.chain(tools).fold(system, usize::saturating_add);
    u64::try_from(total).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_types::{ImageContent, SamplingMessage};

    #[test]
    fn media_are_checked_before_they_are_sent() {
        let check = |kind: &str, data: &str| {
            part(&ContentBlock::Image(ImageContent::new(data, kind))).map(|part| match part {
                Part::Image(media) => media.kind,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(check("image/png", "iVBOR+/=").unwrap(), "image/png");
        assert_eq!(check("Image/SVG+xml; charset=utf-8", "aa").unwrap(), "image/svg+xml");
        for (kind, data) in [
            ("image/", "aa"),
            ("text/plain", "aa"),
            ("image/png,x", "aa"),
            ("image/png", ""),
            ("image/png", "a a"),
        ] {
            assert!(check(kind, data).is_err(), "{kind} {data}");
        }
    }

    #[test]
    fn numbers_keep_their_notation() {
        let check = |value: f64, text: &str| assert_eq!(number(Some(value)).unwrap().to_string(), text);
        check(1.0, "1");
        check(0.0, "0");
        check(0.7, "0.7");
        assert_eq!(number(None), None);
        assert_eq!(number(Some(f64::NAN)), None);
    }

    #[test]
    fn a_picture_is_not_counted_by_its_size() {
        let with = |content: ContentBlock| {
            estimate(&CreateMessageParams::new(vec![SamplingMessage::user(content)], 1_u64), Some("be brief"))
        };
        assert_eq!(with("x".repeat(400).into()), 106);
        assert_eq!(with(ContentBlock::image(vec![0; 3_000_000], "image/png")), 1_506);
    }
}
