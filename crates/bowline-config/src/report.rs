//! Errors and notices about a file, each with its position.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;

use bowline_text::visible;

/// A position in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The file, as it was passed to the loader.
    pub file: Arc<Path>,
    /// The line, starting at one.
    pub line: u32,
    /// The column in characters, starting at one.
    pub column: u32,
}

impl Origin {
    /// Returns the start of a file, for messages about the whole file.
    pub fn start(file: &Path) -> Self {
        Self { file: Arc::from(file), line: 1, column: 1 }
    }

    /// Formats the file and line without the column, as in notices and explanations.
    pub fn short(&self) -> String {
        format!("{}:{}", self.file.display(), self.line)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// An error in a file. The server or section that contains it is dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The position of the error.
    pub origin: Origin,
    /// The path of the member, such as `mcpServers.github.args`. Empty for the whole file.
    pub field: String,
    /// What was expected, and what was found.
    pub message: String,
    /// What to write instead, if known.
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

/// A message about something that is not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// Where it is.
    pub origin: Origin,
    /// The path of the member. Empty for the whole file.
    pub field: String,
    /// The kind of the notice.
    pub kind: NoticeKind,
    /// The message.
    pub message: String,
}

/// The kinds of [`Notice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NoticeKind {
    /// An unknown member, which is kept.
    Unknown,
    /// An entry that works only inside the program it was written for.
    Skipped,
    /// An entry that replaces one with the same name from another file.
    Replaced,
    /// A setting that the scope of the file does not allow.
    Ignored,
    /// A suggestion.
    Advice,
    /// A setting that is dangerous for the child process.
    Danger,
    /// The exact command of a registry entry.
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

/// The format of a file, which determines how examples are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    Jsonc,
    Yaml,
    Toml,
}

impl Format {
    /// Chooses the format by the extension of the file. The default is JSON with comments.
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

    /// Returns whether this is the first call with `what`, so that something is reported once per file.
    pub(crate) fn first(&self, what: &str) -> bool {
        self.reported.borrow_mut().insert(what.to_owned())
    }

    /// Returns the number of errors so far.
    pub(crate) fn mark(&self) -> usize {
        self.errors.borrow().len()
    }

    /// Formats a member as an example in the format of the file.
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

/// Formats a value on one line, with the format's separator between names and values.
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
