//! Restricts a server to the roots of its client.
//!
//! A client that declares roots is asked for them in every call, so changes take effect with the next call.

use crate::{
    files::jail::{Jail, Root},
    text,
};
use bowline::server::{Ctx, Error, Result};
use std::path::PathBuf;

/// Returns the client's roots; `None` if the client does not declare roots.
pub(crate) async fn of(ctx: &Ctx) -> Result<Option<Vec<PathBuf>>> {
    if ctx.client().capabilities().roots.is_none() {
        return Ok(None);
    }
    let roots = ctx.roots().await?;
    Ok(Some(roots.iter().filter_map(|root| text::file_path(&root.uri)).collect()))
}

/// Restricts `jail` to the client's roots.
pub(crate) fn narrow(jail: &Jail, folders: &[PathBuf]) -> Result<Jail> {
    let mut roots: Vec<Root> = Vec::new();
    for root in folders.iter().flat_map(|folder| jail.roots.iter().filter_map(|root| root.within(folder))) {
        if !roots.iter().any(|known| known.path == root.path) {
            roots.push(root);
        }
    }
    if roots.is_empty() {
        return Err(nothing_in_common(&jail.names(), folders));
    }
    Ok(Jail { roots })
}

/// Checks that one of the client's roots contains a directory or is inside it. The directory may have two names.
pub(crate) fn check(names: [&PathBuf; 2], folders: &[PathBuf]) -> Result<()> {
    let common = |root: &PathBuf| names.iter().any(|name| name.starts_with(root) || root.starts_with(name));
    if folders.iter().any(common) {
        return Ok(());
    }
    let [name, _] = names;
    Err(nothing_in_common(&format!("`{}`", name.display()), folders))
}

fn nothing_in_common(served: &str, folders: &[PathBuf]) -> Error {
    let names: Vec<_> = folders.iter().map(|folder| format!("`{}`", folder.display())).collect();
    let theirs = if names.is_empty() { "no directory".to_owned() } else { names.join(", ") };
    Error::tool(format!(
        "this server serves {served}, but the roots of the client are {theirs}, which do not overlap; \
         add a root to the client, or serve another directory with `--root DIR`"
    ))
}
