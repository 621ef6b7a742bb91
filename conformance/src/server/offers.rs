//! Resources and prompts.

use crate::content::{PIXEL, embedded};
use bowline::prelude::*;

pub(crate) fn add(server: Server) -> Server {
    server
        .resource(static_text)
        .resource(static_binary)
        .resource(watched_resource)
        .resource(template)
        .prompt(test_simple_prompt)
        .prompt(test_prompt_with_arguments)
        .prompt(test_prompt_with_embedded_resource)
        .prompt(test_prompt_with_image)
}

/// A text.
#[resource("test://static-text", mime_type = "text/plain")]
fn static_text() -> &'static str {
    "This is the content of the static text resource."
}

/// A picture.
#[resource("test://static-binary", mime_type = "image/png")]
fn static_binary() -> Vec<u8> {
    PIXEL.to_vec()
}

/// A text to subscribe to.
#[resource("test://watched-resource", mime_type = "text/plain")]
fn watched_resource() -> &'static str {
    "Watched resource content"
}

#[data]
struct Row {
    id: String,
    data: String,
}

/// A row of data, by its id.
#[resource("test://template/{id}/data")]
fn template(id: String) -> Json<Row> {
    Json(Row { data: format!("Data for ID: {id}"), id })
}

/// A prompt without arguments.
#[prompt]
fn test_simple_prompt() -> &'static str {
    "This is a simple prompt for testing."
}

fn suggestions(Typing { value, .. }: Typing) -> Vec<&'static str> {
    ["paris", "park", "party", "test", "testing"]
        .into_iter()
        .filter(move |known| known.starts_with(&value))
        .collect()
}

/// A prompt with two arguments.
#[prompt]
fn test_prompt_with_arguments(
    /// The first.
    #[complete(suggestions)]
    arg1: String,
    /// The second.
    arg2: String,
) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

/// A prompt that brings a resource along.
#[prompt]
fn test_prompt_with_embedded_resource(
    /// Which one.
    #[serde(rename = "resourceUri")]
    resource_uri: String,
) -> Vec<PromptMessage> {
    vec![
        PromptMessage::new(Role::User, embedded(&resource_uri)),
        PromptMessage::new(Role::User, Content::text("Please process the embedded resource above.")),
    ]
}

/// A prompt that brings a picture along.
#[prompt]
fn test_prompt_with_image() -> Vec<PromptMessage> {
    vec![
        PromptMessage::new(Role::User, Content::image(PIXEL, "image/png")),
        PromptMessage::new(Role::User, Content::text("Please analyze the image above.")),
    ]
}
