//! The files of the page, which are part of the program.

use bytes::Bytes;
use ring::digest;
use std::{borrow::Cow, collections::HashMap, sync::Arc};

/// The placeholder for the path of the assets in documents.
const PLACE: &str = "{{assets}}";

macro_rules! assets {
    ($($path:literal,)*) => {
        /// Every file of `web`, by its path there.
        const FILES: &[(&str, &[u8])] = &[$(($path, include_bytes!(concat!("../web/", $path)))),*];
    };
}

assets! {
    "app.js",
    "core/api.js",
    "core/dialog.js",
    "core/dom.js",
    "core/grid.js",
    "core/json.js",
    "core/keys.js",
    "core/model.js",
    "core/palette.js",
    "core/route.js",
    "core/signal.js",
    "core/stream.js",
    "core/text.js",
    "css/base.css",
    "css/controls.css",
    "css/tokens.css",
    "css/views.css",
    "explore/content.js",
    "explore/explore.js",
    "explore/field.js",
    "explore/form.js",
    "explore/list.js",
    "explore/result.js",
    "home/home.js",
    "home/try.js",
    "inbox/inbox.js",
    "inbox/notify.js",
    "inbox/question.js",
    "index.html",
    "open.html",
    "open.js",
    "rules/answers.js",
    "rules/audit.js",
    "rules/definitions.js",
    "rules/rules.js",
    "server/checks.js",
    "server/server.js",
    "traffic/bar.js",
    "traffic/compare.js",
    "traffic/detail.js",
    "traffic/filter.js",
    "traffic/list.js",
    "traffic/revisions.js",
    "traffic/stats.js",
    "traffic/store.js",
    "traffic/task.js",
    "traffic/traffic.js",
    "traffic/waterfall.js",
}

/// The files of the page.
#[derive(Clone, Debug)]
pub(crate) struct Assets {
    /// A digest of all files, which is part of their paths. Another version of the program has other paths.
    digest: Arc<str>,
    files: Arc<HashMap<&'static str, &'static [u8]>>,
}

impl Assets {
    pub(crate) fn new() -> Self {
        let mut hash = digest::Context::new(&digest::SHA256);
        for (path, content) in FILES {
            hash.update(path.as_bytes());
            hash.update(&[0]);
            hash.update(content);
        }
        let digest = bowline_text::hex(hash.finish().as_ref());
        let digest = digest.get(..16).unwrap_or(&digest).into();
        Self { digest, files: Arc::new(FILES.iter().copied().collect()) }
    }

    /// Returns a document with the paths of its assets.
    pub(crate) fn document(&self, name: &str) -> Option<Bytes> {
        let text = self.read(name)?;
        let text = String::from_utf8_lossy(&text);
        Some(text.replace(PLACE, &format!("/a/{}", self.digest)).into())
    }

    /// Returns the file at a path below `/a/`, and its content type.
    pub(crate) fn file(&self, path: &str) -> Option<(Bytes, &'static str)> {
        let name = path.strip_prefix(&*self.digest)?.strip_prefix('/')?;
        let kind = match name.rsplit_once('.')?.1 {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            _ => return None,
        };
        Some((self.read(name)?.into_owned().into(), kind))
    }

    /// Returns a file of the table. A debug build reads the folder, so that a change is seen after a reload.
    fn read(&self, name: &str) -> Option<Cow<'static, [u8]>> {
        let content = *self.files.get(name)?;
        #[cfg(debug_assertions)]
        if let Ok(current) = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/web/").to_owned() + name) {
            return Some(Cow::Owned(current));
        }
        Some(Cow::Borrowed(content))
    }

    /// Returns how long browsers may keep a file: for ever, because another version has another path.
    pub(crate) const fn cache() -> &'static str {
        if cfg!(debug_assertions) { "no-store" } else { "public, max-age=31536000, immutable" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, path::Path};

    /// Files that are not served: types, and the settings of the type checker.
    const NOT_SERVED: [&str; 2] = ["api.d.ts", "jsconfig.json"];

    fn walk(folder: &Path, root: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, found);
            } else {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
                found.insert(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_page_is_in_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
        let mut found = BTreeSet::new();
        walk(&root, &root, &mut found);
        found.retain(|name| !NOT_SERVED.contains(&name.as_str()));
        let listed: BTreeSet<_> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(found, listed, "the table in `assets.rs` must list the files of `web`");
    }

    #[test]
    fn only_files_of_the_table_are_served() {
        let assets = Assets::new();
        let digest = assets.digest.to_string();
        assert!(assets.file(&format!("{digest}/app.js")).is_some());
        for path in [
            "app.js",
            "0/app.js",
            "../Cargo.toml",
            "{}/../Cargo.toml",
            "{}//etc/passwd",
            "{}/index.html",
            "{}/api.d.ts",
        ] {
            assert!(assets.file(&path.replace("{}", &digest)).is_none(), "{path}");
        }
        assert!(!String::from_utf8_lossy(&assets.document("index.html").unwrap()).contains(PLACE));
    }
}
