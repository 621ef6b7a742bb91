//! Resources: static, with a URI template, and with a dynamic list.

use super::content::PIXEL;
use bowline::{
    prelude::*,
    server::{BoxFuture, ResourceSource},
    types::{self, CacheScope, ReadResourceResult, ResourceContents},
};
use std::time::Duration;

/// The URI of the resource that changes.
pub(super) const WATCHED: &str = "test://watched-resource";

pub(super) fn add(server: Server) -> Server {
    server
        .resource(static_text::resource())
        .resource(static_binary::resource())
        .resource(watched_resource::resource())
        .resource(template::resource())
        .resource(rules())
        .resources(Planets)
}

/// A static text resource.
#[resource("test://static-text", mime_type = "text/plain")]
fn static_text() -> &'static str {
    "This is the content of the static text resource."
}

/// A static image resource.
#[resource("test://static-binary", mime_type = "image/png")]
fn static_binary() -> Vec<u8> {
    PIXEL.to_vec()
}

/// A resource to subscribe to.
#[resource("test://watched-resource", mime_type = "text/plain")]
fn watched_resource() -> &'static str {
    "Watched resource content"
}

#[data]
struct Row {
    id: String,
    data: String,
}

/// A row of data by id.
#[resource("test://template/{id}/data")]
fn template(id: String) -> Json<Row> {
    Json(Row { data: format!("Data for ID: {id}"), id })
}

/// A resource built without an attribute, which clients may cache for a day.
fn rules() -> Resource {
    Resource::new("test://rules", "rules")
        .title("The rules")
        .mime_type("text/plain")
        .cache(Duration::from_secs(24 * 60 * 60), CacheScope::Public)
        .text("There are none.")
}

/// A dynamic list of resources, such as rows of a table or files in a directory.
struct Planets;

const PLANETS: [(&str, &str); 3] =
    [("mercury", "has no moon"), ("venus", "turns the other way"), ("earth", "has readers")];

impl ResourceSource for Planets {
    fn list(&self, _: Ctx) -> BoxFuture<'_, Result<Vec<types::Resource>>> {
        let listed = PLANETS.map(|(name, _)| {
            types::Resource::new(format!("test://planets/{name}"), name).mime_type("text/plain")
        });
        Box::pin(async { Ok(listed.into()) })
    }

    fn read(&self, _: Ctx, uri: String) -> BoxFuture<'_, Result<Option<ReadResourceResult>>> {
        let name = uri.strip_prefix("test://planets/");
        let found = PLANETS.into_iter().find(|(known, _)| Some(*known) == name);
        let read = found.map(|(name, fact)| {
            let contents = ResourceContents::text(&uri, format!("{name} {fact}")).mime_type("text/plain");
            ReadResourceResult::new(vec![contents])
        });
        Box::pin(async { Ok(read) })
    }
}
