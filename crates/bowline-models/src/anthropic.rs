//! The Anthropic messages API.

use super::{
    alias::Aliases,
    metadata::{self, Known},
    request::{
        EncodedRequest, Media, Mode, ModelRequest, ModelResponse, Part, number, part, result_parts, shown,
        tools,
    },
    stop_sequences::StopSequences,
    usage::Tokens,
};
use bowline_types::{ContentBlock, RawJson, Role, StopReason, ToolUseContent};
use serde::{Deserialize, Serialize};

/// The maximum length of tool names and call ids.
const NAME: usize = 64;

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    messages: Vec<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<serde_json::Number>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice>,
    #[serde(skip_serializing_if = "metadata::Map::is_empty")]
    metadata: metadata::Map,
    #[serde(flatten)]
    parameters: metadata::Map,
}

#[derive(Serialize)]
struct Message {
    role: &'static str,
    content: Vec<Block>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    Image {
        source: Source,
    },
    ToolUse {
        id: String,
        name: String,
        input: RawJson,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<Self>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct Source {
    r#type: &'static str,
    media_type: &'static str,
    data: String,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: &'a RawJson,
}

#[derive(Serialize)]
struct Choice {
    r#type: &'static str,
}

/// The members of `metadata` that are passed on.
const KNOWN_METADATA: &[(&str, Known)] = &[("user_id", Known::Text)];
const KNOWN_PARAMETERS: &[(&str, Known)] = &[("top_k", Known::Whole), ("top_p", Known::Number)];

/// Encodes a request. Fails if the provider does not support its content.
pub(super) fn write(request: &ModelRequest<'_>) -> Result<EncodedRequest, String> {
    let params = request.params;
    let mut names = Aliases::new(NAME);
    let (offered, tool_choice) = match tools(params)? {
        None => (Vec::new(), None),
        Some((tools, mode)) => {
            let tools = tools.iter().map(|tool| {
                let (description, input_schema) = (tool.description.as_deref(), &tool.input_schema);
                Tool { name: names.sent(&tool.name), description, input_schema }
            });
            let r#type = match mode {
                Mode::Auto => "auto",
                Mode::Required => "any",
                Mode::None => "none",
            };
            (tools.collect(), Some(Choice { r#type }))
        }
    };
    let sequences = params.stop_sequences.as_deref().unwrap_or_default();
    let most = if request.quirks.no_stops { 0 } else { usize::MAX };
    // The API rejects stop sequences of only whitespace.
    let stops = StopSequences::new(sequences, most, |sequence| !sequence.trim().is_empty());
    let temperature = number(params.temperature.map(|value| value.clamp(0.0, 1.0)));
    let request = Request {
        model: request.model,
        max_tokens: request.max_tokens,
        system: request.system.as_deref(),
        messages: messages(request, &mut names)?,
        temperature: temperature.filter(|_| !request.quirks.no_temperature),
        stop_sequences: &stops.sent,
        tools: offered,
        tool_choice,
        metadata: metadata::known(params.metadata.as_ref(), KNOWN_METADATA),
        parameters: metadata::known(params.metadata.as_ref(), KNOWN_PARAMETERS),
    };
    let body = serde_json::to_vec(&request).map_err(|error| error.to_string())?;
    Ok(EncodedRequest { body: body.into(), tools: names, stops })
}

/// Returns the messages, merging consecutive ones of the same role, because the API requires alternating roles.
fn messages(request: &ModelRequest<'_>, names: &mut Aliases) -> Result<Vec<Message>, String> {
    let mut ids = Aliases::new(NAME);
    let mut out: Vec<Message> = Vec::new();
    for message in &request.params.messages {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let mut content = Vec::new();
        for found in &message.content {
            content.extend(block(part(found)?, role, names, &mut ids)?);
        }
        match out.last_mut() {
            _ if content.is_empty() => {}
            Some(last) if last.role == role => last.content.append(&mut content),
            _ => out.push(Message { role, content }),
        }
    }
    // The last message of the assistant must not end in whitespace.
    if let Some(Message { role: "assistant", content }) = out.last_mut()
        && let Some(Block::Text { text }) = content.last_mut()
    {
        text.truncate(text.trim_end().len());
        if text.is_empty() {
            content.pop();
        }
    }
    out.retain(|message| !message.content.is_empty());
    if out.is_empty() {
        return Err("there is no content to send to the model".into());
    }
    Ok(out)
}

fn block(
    part: Part<'_>,
    role: &str,
    names: &mut Aliases,
    ids: &mut Aliases,
) -> Result<Option<Block>, String> {
    Ok(Some(match part {
        // The API rejects texts of only whitespace.
        Part::Text(text) if text.trim().is_empty() => return Ok(None),
        Part::Text(text) => Block::Text { text },
        Part::Image(_) if role == "assistant" => {
            return Err("an assistant message cannot contain an image".into());
        }
        Part::Image(media) => image(&media)?,
        Part::Audio(_) => return Err("the model does not support audio".into()),
        Part::ToolUse { id, name, input } => {
            Block::ToolUse { id: ids.sent(id), name: names.sent(name), input: input.clone() }
        }
        Part::ToolResult(result) => {
            let mut content = Vec::new();
            for part in result_parts(result)? {
                content.extend(block(part, role, names, ids)?);
            }
            let tool_use_id = ids.sent(&result.tool_use_id);
            Block::ToolResult { tool_use_id, content, is_error: result.is_error == Some(true) }
        }
    }))
}

fn image(media: &Media<'_>) -> Result<Block, String> {
    let media_type = match media.kind.as_str() {
        "image/jpeg" | "image/jpg" => "image/jpeg",
        "image/png" => "image/png",
        "image/gif" => "image/gif",
        "image/webp" => "image/webp",
        other => return Err(format!("unsupported image type `{other}`; expected JPEG, PNG, GIF or WebP")),
    };
    Ok(Block::Image { source: Source { r#type: "base64", media_type, data: media.data.to_owned() } })
}

#[derive(Deserialize)]
struct Answer {
    model: Option<String>,
    content: Vec<ResponseBlock>,
    stop_reason: Option<String>,
    usage: Option<Usage>,
}

/// A content block of a response. A single struct keeps the input of a tool call as raw JSON.
#[derive(Deserialize)]
struct ResponseBlock {
    r#type: String,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<RawJson>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default, rename = "input_tokens")]
    input: u64,
    #[serde(default, rename = "output_tokens")]
    output: u64,
    #[serde(rename = "cache_creation_input_tokens")]
    cached: Option<u64>,
    #[serde(rename = "cache_read_input_tokens")]
    from_cache: Option<u64>,
}

/// Decodes a response. Fails if it is invalid.
pub(super) fn read(body: &[u8], written: &EncodedRequest) -> Result<ModelResponse, String> {
    let answer: Answer = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let cut_off = answer.stop_reason.as_deref() == Some("max_tokens");
    let mut content: Vec<ContentBlock> = Vec::new();
    for block in answer.content {
        let kind = block.r#type.clone();
        match (kind.as_str(), block) {
            ("text", ResponseBlock { text: Some(text), .. }) => content.push(text.into()),
            ("tool_use", ResponseBlock { id: Some(id), name: Some(name), input: Some(input), .. })
                if input.is_object() =>
            {
                content.push(ToolUseContent::new(id, written.tools.name(&name), input).into());
            }
            // A tool call that was cut off by the token limit is dropped.
            ("tool_use", _) if cut_off => {}
            ("tool_use", _) => return Err("it contains a tool use without name, id or input".into()),
            ("text", _) => return Err("it contains an empty text block".into()),
            // Thinking blocks and unknown blocks are not passed to the server.
            _ => {}
        }
    }
    let stop_reason = answer.stop_reason.map(|reason| match reason.as_str() {
        "end_turn" => StopReason::EndTurn,
        "stop_sequence" => StopReason::StopSequence,
        "max_tokens" => StopReason::MaxTokens,
        "tool_use" => StopReason::ToolUse,
        _ => StopReason::Other(shown(&reason).into()),
    });
    let tokens = answer.usage.map(|usage| {
        let cached = [usage.cached, usage.from_cache];
        let input = cached.into_iter().flatten().fold(usage.input, u64::saturating_add);
        Tokens { input, output: usage.output }
    });
    Ok(ModelResponse { content, model: answer.model, stop_reason, tokens })
}
