//! Errors and notices about a file, each with its position.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;

use bowline_text::visible;

/// The place in a file a value was written at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The file, named as it was given to the loader.
    pub file: Arc<Path>,
    /// The line, counted from one.
    pub line: u32,
    /// The column in characters, counted from one.
    pub column: u32,
}

impl Origin {
    /// The beginning of a file, for what concerns the file as a whole.
    pub fn start(file: &Path) -> Self {
        Self { file: Arc::from(file), line: 1, column: 1 }
    }

    /// The file and line without the column, as notices and explanations show it.
    pub fn short(&self) -> String {
        format!("{}:{}", self.file.display(), self.line)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// A mistake that loses the value, and with it the server or section it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Where the mistake is.
    pub origin: Origin,
    /// The path of members that leads to it, such as `mcpServers.github.args`; empty for the file as a whole.
    pub field: String,
    /// What was expected and what came.
    pub message: String,
    /// What to write instead, where that can be said.
    pub help: Option<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.origin)?;
        if !self.field.is_empty() {
            write!(formatter, "{}: ", visible(&self.field))?;
        }
        formatter.write_str(&visible(&self.message))?;
        if let Some(help) = &self.help {
            write!(formatter, "; {}", visible(help))?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// Something that was read and is worth telling, but loses nothing that could have worked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// Where it is.
    pub origin: Origin,
    /// The path of members that leads to it; empty for the file as a whole.
    pub field: String,
    /// What kind of notice it is.
    pub kind: NoticeKind,
    /// What there is to say.
    pub message: String,
}

/// The kinds of [`Notice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NoticeKind {
    /// A member that is not known; it is kept as it is.
    Unknown,
    /// An entry that cannot run outside of the program it was written for.
    Skipped,
    /// An entry that replaces one of the same name from another file.
    Replaced,
    /// A setting that a file of its scope may not make.
    Ignored,
    /// A better way to write what was meant.
    Advice,
    /// A setting that is dangerous for the child process.
    Danger,
    /// The exact command an entry of the registry leads to.
    Command,
}

impl fmt::Display for Notice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.origin.short())?;
        if !self.field.is_empty() {
            write!(formatter, "{}: ", visible(&self.field))?;
        }
        formatter.write_str(&visible(&self.message))
    }
}

/// The notation of a file, which decides how an example is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    Jsonc,
    Yaml,
    Toml,
}

impl Format {
    /// Picks the notation by the ending of the file's name; JSON with comments where it says nothing.
    pub(crate) fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Self::Toml,
            Some("yaml" | "yml") => Self::Yaml,
            _ => Self::Jsonc,
        }
    }
}

/// Collects the errors and notices of one file.
#[derive(Debug)]
pub(crate) struct Report {
    format: Format,
    errors: RefCell<Vec<ConfigError>>,
    notices: RefCell<Vec<Notice>>,
    reported: RefCell<BTreeSet<String>>,
}

impl Report {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, errors: RefCell::default(), notices: RefCell::default(), reported: RefCell::default() }
    }

    pub(crate) fn error(&self, origin: &Origin, field: &str, message: impl Into<String>) {
        self.push_error(origin, field, message.into(), None);
    }

    pub(crate) fn error_with(
        &self,
        origin: &Origin,
        field: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push_error(origin, field, message.into(), Some(help.into()));
    }

    fn push_error(&self, origin: &Origin, field: &str, message: String, help: Option<String>) {
        let error = ConfigError { origin: origin.clone(), field: field.to_owned(), message, help };
        self.errors.borrow_mut().push(error);
    }

    pub(crate) fn notice(&self, origin: &Origin, field: &str, kind: NoticeKind, message: impl Into<String>) {
        let notice =
            Notice { origin: origin.clone(), field: field.to_owned(), kind, message: message.into() };
        self.notices.borrow_mut().push(notice);
    }

    /// Whether `what` is asked about for the first time, so that a thing is told once in a file.
    pub(crate) fn first(&self, what: &str) -> bool {
        self.reported.borrow_mut().insert(what.to_owned())
    }

    /// How many errors there are so far; a part that adds none was read well.
    pub(crate) fn mark(&self) -> usize {
        self.errors.borrow().len()
    }

    /// Writes a member in the notation of the file.
    pub(crate) fn example(&self, name: &str, value: &Json) -> String {
        match self.format {
            Format::Jsonc => format!("`\"{name}\": {}`", inline(value, ": ")),
            Format::Yaml => format!("`{name}: {}`", inline(value, ": ")),
            Format::Toml => format!("`{name} = {}`", inline(value, " = ")),
        }
    }

    pub(crate) fn into_parts(self) -> (Vec<ConfigError>, Vec<Notice>) {
        let mut errors = self.errors.into_inner();
        errors.sort_by(|left, right| left.origin.cmp(&right.origin));
        (errors, self.notices.into_inner())
    }
}

/// A value on one line, with the separator of the notation between names and values.
fn inline(value: &Json, separator: &str) -> String {
    match value {
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| inline(item, separator)).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(members) => {
            let quote = if separator == ": " { "\"" } else { "" };
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{quote}{name}{quote}{separator}{}", inline(value, separator)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        scalar => scalar.to_string(),
    }
}
