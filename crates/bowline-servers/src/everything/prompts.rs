//! Prompts: with and without arguments, with completion, images and resources.

use super::content::{PIXEL, embedded};
use bowline::prelude::*;

pub(super) fn add(server: Server) -> Server {
    server
        .prompt(test_simple_prompt::prompt())
        .prompt(test_prompt_with_arguments::prompt())
        .prompt(test_prompt_with_embedded_resource::prompt())
        .prompt(test_prompt_with_image::prompt())
        .prompt(travel::prompt())
}

/// A prompt without arguments.
#[prompt]
fn test_simple_prompt() -> &'static str {
    "This is a simple prompt for testing."
}

fn suggestions(CompletionRequest { value, .. }: CompletionRequest) -> Vec<&'static str> {
    ["paris", "park", "party", "test", "testing"]
        .into_iter()
        .filter(move |known| known.starts_with(&value))
        .collect()
}

/// A prompt with two arguments.
#[prompt]
fn test_prompt_with_arguments(
    /// The first argument.
    #[complete(suggestions)]
    arg1: String,
    /// The second argument.
    arg2: String,
) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

/// A prompt with an embedded resource.
#[prompt]
fn test_prompt_with_embedded_resource(
    /// The URI of the resource.
    #[serde(rename = "resourceUri")]
    resource_uri: String,
) -> Vec<PromptMessage> {
    vec![
        PromptMessage::new(Role::User, embedded(&resource_uri)),
        PromptMessage::new(Role::User, Content::text("Please process the embedded resource above.")),
    ]
}

/// A prompt with an image.
#[prompt]
fn test_prompt_with_image() -> Vec<PromptMessage> {
    vec![
        PromptMessage::new(Role::User, Content::image(PIXEL, "image/png")),
        PromptMessage::new(Role::User, Content::text("Please analyze the image above.")),
    ]
}

fn countries(CompletionRequest { value, .. }: CompletionRequest) -> Vec<&'static str> {
    ["France", "Italy"].into_iter().filter(|name| name.starts_with(&value)).collect()
}

fn cities(CompletionRequest { value, arguments, .. }: CompletionRequest) -> Vec<&'static str> {
    let known: &[&str] = match arguments.get("country").map(String::as_str) {
        Some("France") => &["Lyon", "Paris"],
        Some("Italy") => &["Pisa", "Rome"],
        _ => &["Lyon", "Paris", "Pisa", "Rome"],
    };
    known.iter().copied().filter(|name| name.starts_with(&value)).collect()
}

/// Plan a trip. The completion of the city depends on the country.
#[prompt(title = "Plan a trip")]
fn travel(
    /// The country.
    #[complete(countries)]
    country: String,
    /// The city [default: any].
    #[complete(cities)]
    city: Option<String>,
) -> Vec<PromptMessage> {
    let place = city.map_or_else(|| country.clone(), |city| format!("{city}, {country}"));
    vec![
        PromptMessage::user(Content::text(format!("Plan a weekend in {place}."))),
        PromptMessage::assistant(Content::text("Gladly. What do you like to see?")),
    ]
}
