//! Tools that return each kind of content.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bowline::{
    prelude::*,
    types::{Annotations, ResourceContents, ResourceLink, TextContent},
};

pub(super) const PIXEL: &[u8] = include_bytes!("data/pixel.png");
const SILENCE: &[u8] = include_bytes!("data/silence.wav");

pub(super) fn add(server: Server) -> Server {
    server
        .tool(test_simple_text::tool())
        .tool(test_image_content::tool())
        .tool(test_audio_content::tool())
        .tool(test_embedded_resource::tool())
        .tool(test_multiple_content_types::tool())
        .tool(test_error_handling::tool())
        .tool(links::tool())
        .tool(annotated::tool())
}

/// Return text.
#[tool(read_only)]
fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Return an image.
#[tool(read_only)]
fn test_image_content() -> Content {
    Content::image(PIXEL, "image/png")
}

/// Return audio.
#[tool(read_only)]
fn test_audio_content() -> Content {
    Content::audio(SILENCE, "audio/wav")
}

/// Return an embedded resource.
#[tool(read_only)]
fn test_embedded_resource() -> Content {
    embedded("test://embedded-resource")
}

/// Return text, an image and a resource.
#[tool(read_only)]
fn test_multiple_content_types() -> Vec<Content> {
    vec![
        Content::text("Multiple content types:"),
        Content::image(PIXEL, "image/png"),
        embedded("test://mixed-content-resource"),
    ]
}

/// Return an error that the model can read.
#[tool(read_only)]
fn test_error_handling() -> Result<String> {
    Err(Error::tool("This tool intentionally returns an error for testing"))
}

/// Return links to resources.
#[tool(title = "Links", read_only, open_world = false)]
fn links() -> Vec<Content> {
    vec![
        Content::text("Two resources to look at:"),
        Content::link(ResourceLink::new("test://static-text", "static_text").mime_type("text/plain")),
        Content::link(ResourceLink::new("test://template/7/data", "row 7").description("The seventh row")),
    ]
}

/// Return annotated text: some for the user, some for the model.
#[tool(title = "Annotated", read_only, open_world = false)]
fn annotated() -> Vec<Content> {
    let text = |text: &str, audience: Role, priority: f64| {
        let hints = Annotations::default().audience(vec![audience]).priority(priority);
        Content::Text(TextContent::new(text).annotations(hints.last_modified("2026-07-28T12:00:00Z")))
    };
    vec![
        text("All is well.", Role::User, 1.0),
        text("17 of 17 checks passed in 2.1 s.", Role::Assistant, 0.3),
    ]
}

pub(super) fn pixel_uri() -> String {
    format!("data:image/png;base64,{}", BASE64_STANDARD.encode(PIXEL))
}

pub(super) fn embedded(uri: &str) -> Content {
    let contents = ResourceContents::text(uri, "This is an embedded resource.").mime_type("text/plain");
    Content::resource(contents)
}
