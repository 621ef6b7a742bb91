//! Files as resources: top-level files are listed, all files can be read and subscribed to by URI.

use super::{
    ToolState,
    jail::{Jail, Place},
    kind::{Kind, text_type},
    lines::Part,
    off_thread,
    reading::{self, EntryKind},
    watching::Watching,
};
use crate::text;
use bowline::{
    prelude::*,
    server::{BoxFuture, ResourceSource},
    types::{self, Completion, ReadResourceResult, ResourceContents},
};
use std::{path::Path, sync::Arc};

/// The maximum number of listed entries per directory.
const LISTED: usize = 1000;
/// The MIME type of a directory.
const DIRECTORY: &str = "inode/directory";

/// The variable of the URI template.
#[data]
struct Named {
    /// The path of the file, without the leading slash.
    path: String,
}

/// Adds the resources and watches the subscribed ones.
pub(super) fn add_to(server: Server, state: ToolState) -> Server {
    let watching = Watching::new(Arc::clone(&state.jail));
    let jail = Arc::clone(&state.jail);
    let suggest = move |typing: CompletionRequest| {
        let jail = Arc::clone(&jail);
        async move { off_thread(move || Ok(suggestions(&jail, &typing.value))).await.unwrap_or_default() }
    };
    let reader = state.clone();
    let files = Resource::new("file:///{+path}", "file")
        .title("File")
        .description("A file or directory by path.")
        .complete("path", suggest)
        .handler(move |ctx: Ctx, Named { path }: Named| {
            let state = reader.clone();
            async move { read(&state, &ctx, &path).await }
        });
    server
        .resource(files)
        .resources(TopLevel(state.jail))
        .on_subscriptions(move |wanted, updates| watching.follow(wanted, updates))
}

async fn read(state: &ToolState, ctx: &Ctx, path: &str) -> Result<ResourceContents> {
    let jail = state.view(ctx).await.map_err(|error| Error::invalid_params(error.to_string()))?;
    let (path, limit) = (text::absolute(path), state.max_bytes);
    let not_found = Error::resource_not_found(&text::file_uri(&path).unwrap_or_default());
    off_thread(move || {
        let Some(place) = path.to_str().and_then(|path| jail.place(path).ok()) else { return Err(not_found) };
        if place.metadata().is_ok_and(|found| found.is_dir()) {
            let Ok((_, entries)) = reading::entries(&place) else { return Err(not_found) };
            return Ok(ResourceContents::text("", listing(&entries)).mime_type(DIRECTORY));
        }
        // Forbidden and missing files give the same error.
        if place.open_file().is_err() {
            return Err(not_found);
        }
        let wrong = |error: Error| Error::invalid_params(error.to_string());
        let (kind, bytes) = reading::read(&place, Part::Whole, limit).map_err(wrong)?;
        Ok(match kind {
            Kind::Text => ResourceContents::text("", String::from_utf8_lossy(&bytes))
                .mime_type(text_type(&place.inside)),
            Kind::Image(mime_type) | Kind::Audio(mime_type) | Kind::Other(mime_type) => {
                ResourceContents::blob("", bytes).mime_type(mime_type)
            }
        })
    })
    .await
}

/// Lists a directory, one name per line. Directories end with a slash.
fn listing(entries: &[reading::Entry]) -> String {
    let mut text = String::new();
    for entry in entries.iter().take(LISTED) {
        text.extend(entry.name.chars().map(|character| if character.is_control() { '?' } else { character }));
        text.push_str(if entry.kind == EntryKind::Folder { "/\n" } else { "\n" });
    }
    if entries.len() > LISTED {
        text.push_str("… (incomplete; use `list_directory` to list all)\n");
    }
    text
}

/// Lists the top-level entries of each root directory. Other files are available through the template and the tools.
///
/// A list cannot ask the client for its roots, so it includes files outside of them. Reading checks the roots.
struct TopLevel(Arc<Jail>);

impl ResourceSource for TopLevel {
    fn list(&self, _: Ctx) -> BoxFuture<'_, Result<Vec<types::Resource>>> {
        let jail = Arc::clone(&self.0);
        Box::pin(off_thread(move || {
            let mut files = Vec::new();
            for root in &jail.roots {
                let top = Place { root: root.clone(), inside: "".into() };
                let (_, entries) = reading::entries(&top)?;
                let is_listed =
                    |entry: &reading::Entry| matches!(entry.kind, EntryKind::File | EntryKind::Folder);
                files.extend(entries.into_iter().filter(is_listed).take(LISTED).filter_map(|entry| {
                    let uri = text::file_uri(&root.path.join(&entry.name))?;
                    let mut resource = types::Resource::new(uri, entry.name);
                    resource.size = entry.size;
                    resource.mime_type = (entry.kind == EntryKind::Folder).then(|| DIRECTORY.into());
                    Some(resource)
                }));
            }
            Ok(files)
        }))
    }

    /// Reading is done by the template.
    fn read(&self, _: Ctx, _: String) -> BoxFuture<'_, Result<Option<ReadResourceResult>>> {
        Box::pin(async { Ok(None) })
    }
}

/// Completes paths, without the leading slash like the template.
fn suggestions(jail: &Jail, typed: &str) -> Completion {
    let path = text::absolute(typed);
    let shown = |path: &Path| path.to_string_lossy().trim_start_matches('/').to_owned();
    let mut values: Vec<String> = Vec::new();
    for root in &jail.roots {
        // Complete to the root itself if the path is a prefix of it.
        if root.path.to_string_lossy().starts_with(&*path.to_string_lossy()) && root.path != path {
            values.push(format!("{}/", shown(&root.path)));
        }
    }
    let (folder, start) = match typed.rsplit_once('/') {
        Some((folder, start)) => (text::absolute(folder), start),
        None => (text::absolute(""), typed),
    };
    let listed = folder.to_str().and_then(|folder| reading::entries(&jail.place(folder).ok()?).ok());
    for entry in listed.map(|(_, entries)| entries).unwrap_or_default() {
        let slash = match entry.kind {
            EntryKind::Folder => "/",
            EntryKind::File | EntryKind::Link => "",
            EntryKind::Other => continue,
        };
        if entry.name.starts_with(start) {
            values.push(format!("{}{slash}", shown(&folder.join(&entry.name))));
        }
    }
    Completion::new(values)
}
