//! Loads files in order and merges them into one configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::dialect::Dialect;
use super::entry::{Context, Entry};
use super::environment::Environment;
use super::expand::{Strictness, absolute};
use super::fields::Fields;
use super::model::{Config, Scope, UpstreamConfig};
use super::node::{self, Node, Value};
use super::open::read_regular;
use super::report::{Format, Notice, NoticeKind, Origin, Report};
use super::{bowline, bowline_sections, codex, goose, mcp_servers, registry, vscode, zed};

/// The maximum size of a file.
pub const MAX_FILE: usize = 4 << 20;

/// The maximum depth of includes.
const MAX_INCLUDES: usize = 8;

/// A file to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The path.
    pub path: PathBuf,
    /// The scope.
    pub scope: Scope,
    /// The dialect, if it is known. A file of a known dialect may have no servers.
    pub dialect: Option<Dialect>,
    /// Whether the file must exist.
    pub presence: Presence,
}

/// Whether a file must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Presence {
    /// A missing file is an error.
    Required,
    /// A missing file is ignored.
    Optional,
}

impl Source {
    /// Creates a required source whose dialect is recognized by its content.
    pub fn new(path: impl Into<PathBuf>, scope: Scope) -> Self {
        Self { path: path.into(), scope, dialect: None, presence: Presence::Required }
    }
}

/// Reads files. Implemented by [`Disk`], and by maps for tests.
pub trait ReadFile {
    /// Reads the text of a file.
    fn read(&self, path: &Path) -> io::Result<String>;
}

/// Reads files of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl ReadFile for Disk {
    fn read(&self, path: &Path) -> io::Result<String> {
        let bytes = read_regular(path, MAX_FILE)?;
        String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "expected UTF-8"))
    }
}

/// Reads files in memory.
impl ReadFile for BTreeMap<PathBuf, String> {
    fn read(&self, path: &Path) -> io::Result<String> {
        self.get(path).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

/// Reads files of any dialect into one [`Config`].
///
/// ```
/// use bowline_config::{Environment, Loader, Scope, Source};
/// use std::{collections::BTreeMap, path::PathBuf};
///
/// let text = r#"{ "mcpServers": { "time": { "command": "uvx", "args": ["mcp-server-time"] } } }"#;
/// let files = BTreeMap::from([(PathBuf::from("mcp.json"), text.to_owned())]);
/// let environment = Environment::new([("HOME", "/srv/ada")]);
/// let config = Loader::new(environment).source(Source::new("mcp.json", Scope::User)).load(&files);
/// assert!(config.errors.is_empty());
/// assert_eq!(config.upstreams[0].name, "time");
/// ```
#[derive(Debug, Clone)]
#[must_use = "it does nothing until `load` is called"]
pub struct Loader {
    environment: Environment,
    strictness: Strictness,
    sources: Vec<Source>,
}

impl Loader {
    /// Creates a loader that expands variables with `environment`.
    pub fn new(environment: Environment) -> Self {
        Self { environment, strictness: Strictness::Strict, sources: Vec::new() }
    }

    /// Sets how variables without a value are treated.
    pub fn strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Adds a file. A higher [`Scope`] takes precedence; within a scope the later file does.
    pub fn source(mut self, source: impl Into<Source>) -> Self {
        self.sources.push(source.into());
        self
    }

    /// Adds files in order.
    pub fn sources<S: Into<Source>>(mut self, sources: impl IntoIterator<Item = S>) -> Self {
        self.sources.extend(sources.into_iter().map(Into::into));
        self
    }

    /// Reads all files. Never fails as a whole: invalid parts are reported in [`Config::errors`].
    pub fn load(&self, files: &dyn ReadFile) -> Config {
        let mut run =
            Run { loader: self, files, loaded: Vec::new(), open: Vec::new(), seen: BTreeSet::new() };
        for source in &self.sources {
            run.file(source, None);
        }
        Config { files: run.seen.into_iter().collect(), ..merge(self, run.loaded) }
    }

    fn context<'a>(
        &'a self,
        path: &'a Path,
        scope: Scope,
        dialect: Dialect,
        report: &'a Report,
    ) -> Context<'a> {
        let environment = &self.environment;
        Context {
            path,
            environment,
            strictness: self.strictness,
            scope,
            dialect,
            report,
            inputs: BTreeMap::new(),
        }
    }
}

/// A file that was read.
#[derive(Debug)]
struct Loaded {
    path: PathBuf,
    scope: Scope,
    report: Report,
    entries: Vec<Entry>,
    /// The tree of a `bowline.toml`. Its sections are applied in order of precedence.
    sections: Option<Node>,
}

struct Run<'a> {
    loader: &'a Loader,
    files: &'a dyn ReadFile,
    loaded: Vec<Loaded>,
    /// The files that include the current one.
    open: Vec<PathBuf>,
    seen: BTreeSet<PathBuf>,
}

impl Run<'_> {
    /// Reads a file and the files it includes. `included` is the position of the include, if there is one.
    fn file(&mut self, source: &Source, included: Option<(&Origin, &Report)>) {
        let format = Format::of(&source.path);
        let report = Report::new(format);
        let start = Origin::start(&source.path);
        // An error about an included file as a whole is reported at the include.
        let complain = |message: String| match included {
            Some((origin, report)) => report.error(origin, "include", message),
            None => report.error(&start, "", message),
        };
        let name = source.path.display();
        let mut text = None;
        if self.open.contains(&source.path) {
            complain(format!("`{name}` includes itself"));
        } else if self.open.len() > MAX_INCLUDES {
            complain(format!("includes are nested more than {MAX_INCLUDES} deep"));
        } else if self.seen.insert(source.path.clone()) {
            match self.files.read(&source.path) {
                Ok(content) if content.len() > MAX_FILE => {
                    complain(format!("`{name}` is longer than {MAX_FILE} bytes"));
                }
                Ok(content) => text = Some(content),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if source.presence == Presence::Required {
                        complain(format!("there is no file `{name}`"));
                    }
                }
                Err(error) => complain(format!("`{name}` could not be read: {error}")),
            }
        }
        let mut loaded = Loaded {
            path: source.path.clone(),
            scope: source.scope,
            report,
            entries: Vec::new(),
            sections: None,
        };
        if let Some(root) = text.and_then(|text| node::parse(&source.path, &text, format, &loaded.report)) {
            self.tree(source, format, root, &mut loaded);
        }
        self.loaded.push(loaded);
    }

    fn tree(&mut self, source: &Source, format: Format, root: Node, loaded: &mut Loaded) {
        let report = &loaded.report;
        let dialect = match source.dialect {
            Some(dialect) => dialect,
            None => match Dialect::recognize(&source.path, &root, format, report) {
                Some(dialect) => dialect,
                None => return,
            },
        };
        let mut context = self.loader.context(&source.path, source.scope, dialect, report);
        loaded.entries = match dialect {
            Dialect::Bowline => bowline::read(&mut context, &root),
            Dialect::McpServers => mcp_servers::read(&context, &root),
            Dialect::VsCode => vscode::read(&mut context, &root),
            Dialect::Zed => zed::read(&context, &root),
            Dialect::Goose => goose::read(&context, &root),
            Dialect::Codex => codex::read(&context, &root),
            Dialect::Registry => registry::read(&context, &root),
        };
        if dialect == Dialect::Bowline {
            self.open.push(source.path.clone());
            self.includes(&context, &root);
            self.open.pop();
            loaded.sections = Some(root);
        }
    }

    /// Reads the included files. They come before this file, so that it can adjust them.
    fn includes(&mut self, context: &Context<'_>, root: &Node) {
        let Some(fields) = Fields::new(root, "", context.report) else { return };
        let Some(node) = fields.get("include") else { return };
        let Some(items) = node.as_array() else {
            let meant = node.as_str().unwrap_or(".mcp.json");
            fields.report_invalid(node, "include", "an array of paths", &json!([meant]));
            return;
        };
        for (index, item) in items.iter().enumerate() {
            let Value::String(written) = &item.value else {
                fields.report_invalid_with(
                    item,
                    &format!("include[{index}]"),
                    "a path",
                    "write `\".mcp.json\"`",
                );
                continue;
            };
            let outside =
                written.starts_with(['~', '/', '\\']) || written.contains("..") || written.contains(':');
            if outside && !context.scope.is_own() {
                context.report.notice(
                    &item.origin,
                    "include",
                    NoticeKind::Ignored,
                    "ignored: project files can only include files of the same project",
                );
                continue;
            }
            let path = absolute(written, context.environment.home(), &context.base());
            let is_own = |own: &Source| own.scope.is_own() && own.path == Path::new(&path);
            if !context.scope.is_own() && self.loader.sources.iter().any(is_own) {
                // A file of the user keeps its scope, no matter which file includes it.
                continue;
            }
            let source = Source::new(path, context.scope);
            self.file(&source, Some((&item.origin, context.report)));
        }
    }
}

fn merge(loader: &Loader, mut loaded: Vec<Loaded>) -> Config {
    let mut config = Config::default();
    let mut entries: Vec<Entry> =
        loaded.iter_mut().flat_map(|file| std::mem::take(&mut file.entries)).collect();
    entries.sort_by_key(|entry| entry.scope);
    let mut late = Vec::new();
    let mut adjustments = Vec::new();
    for entry in entries {
        match entry.into_upstream() {
            Ok(upstream) => place(&mut config.upstreams, upstream, &mut late),
            Err(entry) => adjustments.push(entry),
        }
    }
    // The user's own file can adjust a server of any file, so servers are placed first.
    let adjusted = Report::new(Format::Toml);
    for entry in adjustments {
        adjust(&mut config.upstreams, *entry, &adjusted);
    }

    loaded.sort_by_key(|file| file.scope);
    for file in &loaded {
        if let Some(root) = &file.sections {
            let context = loader.context(&file.path, file.scope, Dialect::Bowline, &file.report);
            bowline_sections::apply(&context, root, &mut config);
        }
    }
    for report in loaded.into_iter().map(|file| file.report).chain([adjusted]) {
        let (errors, notices) = report.into_parts();
        config.errors.extend(errors);
        config.notices.extend(notices);
    }
    config.notices.extend(late);
    config
}

/// Replaces the server with the same name. A project cannot replace a server of the user.
fn place(upstreams: &mut Vec<UpstreamConfig>, upstream: UpstreamConfig, notices: &mut Vec<Notice>) {
    let Some(present) = upstreams.iter_mut().find(|present| present.name == upstream.name) else {
        upstreams.push(upstream);
        return;
    };
    let place = present.origin.short();
    // Rules and stored answers refer to servers by name, so what the user allowed one server must not apply to another.
    let is_taken = present.scope.is_own() && !upstream.scope.is_own();
    let (kind, message) = if is_taken {
        let message = format!("ignored: your server at {place} has the same name; rename one of them");
        (NoticeKind::Ignored, message)
    } else {
        (NoticeKind::Replaced, format!("replaces the server of the same name at {place}"))
    };
    let (origin, field) = (upstream.origin.clone(), upstream.name.clone());
    notices.push(Notice { origin, field, kind, message });
    if !is_taken {
        *present = upstream;
    }
}

/// Applies an entry without a command or URL to the server with its name.
fn adjust(upstreams: &mut [UpstreamConfig], entry: Entry, report: &Report) {
    let path = format!("servers.{}", entry.name);
    let Some(present) = upstreams.iter_mut().find(|present| present.name == entry.name) else {
        report.error_with(
            &entry.origin,
            &path,
            "missing `command` or `url`; no other file defines this server",
            format!(
                "write {} or {}",
                report.example("command", &json!("npx")),
                report.example("url", &json!("https://example.com/mcp"))
            ),
        );
        return;
    };
    if present.scope.is_own() && !entry.scope.is_own() {
        report.notice(
            &entry.origin,
            &path,
            NoticeKind::Ignored,
            "ignored: project files cannot change servers of your user configuration",
        );
        return;
    }
    for (name, origin) in entry.origins {
        if present.settings.take(&name, &entry.settings) {
            present.origins.insert(name, origin);
        }
    }
    present.unknown.0.extend(entry.unknown);
}
