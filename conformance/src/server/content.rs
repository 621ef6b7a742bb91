//! Tools that return each kind of content.

use bowline::{prelude::*, types::ResourceContents};

pub(crate) const PIXEL: &[u8] = include_bytes!("../../data/pixel.png");
const SILENCE: &[u8] = include_bytes!("../../data/silence.wav");

pub(crate) fn add(server: Server) -> Server {
    server
        .tool(test_simple_text)
        .tool(test_image_content)
        .tool(test_audio_content)
        .tool(test_embedded_resource)
        .tool(test_multiple_content_types)
        .tool(test_error_handling)
}

/// Return a text.
#[tool(read_only)]
fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Return a picture.
#[tool(read_only)]
fn test_image_content() -> Content {
    Content::image(PIXEL, "image/png")
}

/// Return a recording.
#[tool(read_only)]
fn test_audio_content() -> Content {
    Content::audio(SILENCE, "audio/wav")
}

/// Return a resource along with its contents.
#[tool(read_only)]
fn test_embedded_resource() -> Content {
    embedded("test://embedded-resource")
}

/// Return text, picture and resource together.
#[tool(read_only)]
fn test_multiple_content_types() -> Vec<Content> {
    vec![
        Content::text("Several kinds of content:"),
        Content::image(PIXEL, "image/png"),
        embedded("test://mixed-content-resource"),
    ]
}

/// Fail in a way the model can read.
#[tool(read_only)]
fn test_error_handling() -> Result<String> {
    Err(Error::tool("This tool intentionally returns an error for testing"))
}

pub(crate) fn embedded(uri: &str) -> Content {
    let contents = ResourceContents::text(uri, "This is an embedded resource.").mime_type("text/plain");
    Content::resource(contents)
}
