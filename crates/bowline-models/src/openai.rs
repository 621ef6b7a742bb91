//! The OpenAI chat completions API, which many providers implement.

use super::{
    alias::Aliases,
    metadata::{self, Known},
    quirks::Limit,
    request::{
        EncodedRequest, Media, Mode, ModelRequest, ModelResponse, Part, number, part, result_parts, shown,
        tools,
    },
    stop_sequences::StopSequences,
    usage::Tokens,
};
use bowline_types::{
    ContentBlock, RawJson, Role, SamplingMessage, StopReason, ToolResultContent, ToolUseContent,
};
use serde::{Deserialize, Serialize};

/// The maximum length of a tool name.
const NAME: usize = 64;
/// The maximum length of a call id.
const ID: usize = 40;
/// The maximum number of stop sequences.
const STOPS: usize = 4;

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: Vec<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<serde_json::Number>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(flatten)]
    metadata: metadata::Map,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message {
    System {
        content: String,
    },
    User {
        content: Content,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call>,
    },
    Tool {
        tool_call_id: String,
        content: String,
    },
}

/// A single text is sent as a string, which every provider supports.
#[derive(Serialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Pieces(Vec<Piece>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Piece {
    Text { text: String },
    ImageUrl { image_url: Image },
    InputAudio { input_audio: Audio },
}

#[derive(Serialize)]
struct Image {
    url: String,
}

#[derive(Serialize)]
struct Audio {
    data: String,
    format: &'static str,
}

#[derive(Serialize)]
struct Call {
    id: String,
    r#type: &'static str,
    function: Function,
}

#[derive(Serialize)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Definition<'a>,
}

#[derive(Serialize)]
struct Definition<'a> {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: &'a RawJson,
}

/// The members of `metadata` that are passed on.
const KNOWN: &[(&str, Known)] = &[
    ("user", Known::Text),
    ("seed", Known::Whole),
    ("top_p", Known::Number),
    ("frequency_penalty", Known::Number),
    ("presence_penalty", Known::Number),
    ("reasoning_effort", Known::Text),
];

/// Encodes a request. Fails if the provider does not support its content.
pub(super) fn write(request: &ModelRequest<'_>) -> Result<EncodedRequest, String> {
    let params = request.params;
    let mut names = Aliases::new(NAME);
    let (offered, tool_choice) = match tools(params)? {
        None => (Vec::new(), None),
        Some((tools, mode)) => {
            let tools = tools.iter().map(|tool| {
                let description = tool.description.as_deref();
                let name = names.sent(&tool.name);
                Tool {
                    r#type: "function",
                    function: Definition { name, description, parameters: &tool.input_schema },
                }
            });
            let choice = match mode {
                Mode::Auto => "auto",
                Mode::Required => "required",
                Mode::None => "none",
            };
            (tools.collect(), Some(choice))
        }
    };
    let stops = params.stop_sequences.as_deref().unwrap_or_default();
    let stops = StopSequences::new(stops, if request.quirks.no_stops { 0 } else { STOPS }, |_| true);
    let limit = Some(request.max_tokens);
    let named = request.quirks.limit;
    let request = Request {
        model: request.model,
        messages: messages(request, &mut names)?,
        max_tokens: limit.filter(|_| named == Limit::Tokens),
        max_completion_tokens: limit.filter(|_| named == Limit::CompletionTokens),
        temperature: number(params.temperature.map(|value| value.clamp(0.0, 2.0)))
            .filter(|_| !request.quirks.no_temperature),
        stop: &stops.sent,
        tools: offered,
        tool_choice,
        metadata: metadata::known(params.metadata.as_ref(), KNOWN),
    };
    let body = serde_json::to_vec(&request).map_err(|error| error.to_string())?;
    Ok(EncodedRequest { body: body.into(), tools: names, stops })
}

fn messages(request: &ModelRequest<'_>, names: &mut Aliases) -> Result<Vec<Message>, String> {
    let mut ids = Aliases::new(ID);
    let mut out = Vec::new();
    out.extend(request.system.clone().map(|content| Message::System { content }));
    for message in &request.params.messages {
        if message.role == Role::Assistant {
            out.push(assistant(message, names, &mut ids)?);
        } else {
            user(message, &mut ids, &mut out)?;
        }
    }
    if out.is_empty() {
        return Err("there is no content to send to the model".into());
    }
    Ok(out)
}

fn assistant(message: &SamplingMessage, names: &mut Aliases, ids: &mut Aliases) -> Result<Message, String> {
    let (mut texts, mut tool_calls) = (Vec::new(), Vec::new());
    for block in &message.content {
        match part(block)? {
            Part::Text(text) => texts.push(text),
            Part::ToolUse { id, name, input } => {
                let function = Function { name: names.sent(name), arguments: input.as_str().to_owned() };
                tool_calls.push(Call { id: ids.sent(id), r#type: "function", function });
            }
            Part::Image(_) => return Err("an assistant message cannot contain an image".into()),
            Part::Audio(_) => return Err("an assistant message cannot contain audio".into()),
            Part::ToolResult(_) => return Err("tool results are only allowed in user messages".into()),
        }
    }
    let content = if texts.is_empty() && !tool_calls.is_empty() { None } else { Some(texts.join("\n")) };
    Ok(Message::Assistant { content, tool_calls })
}

/// Encodes a user message. Each tool result becomes its own message; content that such a message cannot hold follows
/// after all of them.
fn user(message: &SamplingMessage, ids: &mut Aliases, out: &mut Vec<Message>) -> Result<(), String> {
    let mut pieces = Vec::new();
    for block in &message.content {
        match part(block)? {
            Part::Text(text) => pieces.push(Piece::Text { text }),
            Part::Image(media) => pieces.push(image(&media)),
            Part::Audio(media) => pieces.push(audio(&media)?),
            Part::ToolResult(result) => {
                let id = ids.sent(&result.tool_use_id);
                out.push(tool_result(result, id, &mut pieces)?);
            }
            Part::ToolUse { .. } => return Err("tool uses are only allowed in assistant messages".into()),
        }
    }
    let content = match pieces.as_mut_slice() {
        [] => return Ok(()),
        [Piece::Text { text }] => Content::Text(std::mem::take(text)),
        _ => Content::Pieces(pieces),
    };
    out.push(Message::User { content });
    Ok(())
}

fn tool_result(
    result: &ToolResultContent,
    tool_call_id: String,
    pieces: &mut Vec<Piece>,
) -> Result<Message, String> {
    let mut texts = Vec::new();
    let mut attached = Vec::new();
    for part in result_parts(result)? {
        match part {
            Part::Text(text) => texts.push(text),
            Part::Image(media) => {
                texts.push(format!("[{}, attached below]", media.kind));
                attached.push(image(&media));
            }
            Part::Audio(media) => {
                texts.push(format!("[{}, attached below]", media.kind));
                attached.push(audio(&media)?);
            }
            // `result_parts` never returns these.
            Part::ToolUse { .. } | Part::ToolResult(_) => {}
        }
    }
    if !attached.is_empty() {
        pieces.push(Piece::Text { text: format!("Attached to the result of the call {tool_call_id}:") });
        pieces.append(&mut attached);
    }
    let mut content = texts.join("\n");
    if result.is_error == Some(true) {
        // The API has no field for errors.
        content.insert_str(0, "The tool failed: ");
    }
    Ok(Message::Tool { tool_call_id, content })
}

fn image(media: &Media<'_>) -> Piece {
    Piece::ImageUrl { image_url: Image { url: format!("data:{};base64,{}", media.kind, media.data) } }
}

fn audio(media: &Media<'_>) -> Result<Piece, String> {
    let format = match media.kind.as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        other => return Err(format!("unsupported audio type `{other}`; expected WAV or MP3")),
    };
    Ok(Piece::InputAudio { input_audio: Audio { data: media.data.to_owned(), format } })
}

#[derive(Deserialize)]
struct Completion {
    model: Option<String>,
    choices: Vec<Choice>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Answer,
    finish_reason: Option<String>,
    /// The matched stop sequence, as vLLM reports it. A number is a token.
    stop_reason: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Answer {
    content: Option<ResponseContent>,
    refusal: Option<String>,
    tool_calls: Option<Vec<ResponseCall>>,
}

/// Some providers return a list of parts.
#[derive(Deserialize)]
#[serde(untagged)]
enum ResponseContent {
    Text(String),
    Pieces(Vec<ResponsePart>),
}

#[derive(Deserialize)]
struct ResponsePart {
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct ResponseCall {
    #[serde(default)]
    id: String,
    function: ResponseFunction,
}

#[derive(Deserialize)]
struct ResponseFunction {
    name: String,
    arguments: Option<RawJson>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

/// Decodes a response. Fails if it is invalid.
pub(super) fn read(body: &[u8], written: &EncodedRequest) -> Result<ModelResponse, String> {
    let completion: Completion = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let choice = completion.choices.into_iter().next().ok_or("it contains no choices")?;
    let message = choice.message;
    let cut_off = choice.finish_reason.as_deref() == Some("length");
    let mut content: Vec<ContentBlock> = Vec::new();
    let text = match message.content {
        Some(ResponseContent::Text(text)) => text,
        Some(ResponseContent::Pieces(pieces)) => pieces.into_iter().map(|piece| piece.text).collect(),
        None => String::new(),
    };
    let refusal = message.refusal.filter(|refusal| !refusal.is_empty() && text.is_empty());
    let refused = refusal.is_some();
    content.extend(Some(refusal.unwrap_or(text)).filter(|text| !text.is_empty()).map(ContentBlock::from));
    let mut called = false;
    for (place, call) in message.tool_calls.unwrap_or_default().into_iter().enumerate() {
        let Some(input) = arguments(call.function.arguments) else {
            // A tool call that was cut off by the token limit is dropped.
            if cut_off {
                continue;
            }
            return Err(format!("the arguments for `{}` are not an object", shown(&call.function.name)));
        };
        let id = if call.id.is_empty() { format!("unnamed_{place}") } else { call.id };
        content.push(ToolUseContent::new(id, written.tools.name(&call.function.name), input).into());
        called = true;
    }
    let met = choice.stop_reason.is_some_and(|reason| reason.is_string());
    let stop_reason = choice.finish_reason.map(|reason| match reason.as_str() {
        "stop" if refused => StopReason::Other("refusal".into()),
        // Some providers report `stop` after a tool call.
        "stop" | "tool_calls" | "function_call" if called => StopReason::ToolUse,
        "stop" if met => StopReason::StopSequence,
        "stop" => StopReason::EndTurn,
        "length" => StopReason::MaxTokens,
        _ => StopReason::Other(shown(&reason).into()),
    });
    let tokens =
        completion.usage.map(|usage| Tokens { input: usage.prompt_tokens, output: usage.completion_tokens });
    Ok(ModelResponse { content, model: completion.model, stop_reason, tokens })
}

/// Returns the arguments of a call: a string that contains an object. The string may be empty, and some providers send
/// the object itself.
fn arguments(value: Option<RawJson>) -> Option<RawJson> {
    let value = value.filter(|value| !value.is_null()).unwrap_or_else(RawJson::empty_object);
    if !value.is_string() {
        return value.is_object().then_some(value);
    }
    let text: String = value.decode().ok()?;
    if text.trim().is_empty() {
        return Some(RawJson::empty_object());
    }
    RawJson::parse(text).ok().filter(RawJson::is_object)
}
