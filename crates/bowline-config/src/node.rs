//! The tree that all file formats are parsed into: values with their positions.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Number, Value as Json};

use super::report::{Format, Origin, Report};

/// The maximum nesting of a file, the same as for messages.
pub(crate) const MAX_DEPTH: usize = 128;

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// The value itself.
    pub(crate) value: Value,
    /// The start position.
    pub(crate) origin: Origin,
}

/// A value of any file format.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string. Dates of TOML are strings, too.
    String(String),
    /// A list.
    Array(Vec<Node>),
    /// Members in the order of the file. Names are unique.
    Object(Vec<Member>),
    /// A name that occurs more than once, first on this line. Parsers differ in which value they use, so this one uses
    /// none.
    Twice(u32),
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    /// The name.
    pub(crate) name: String,
    /// The position of the name.
    pub(crate) origin: Origin,
    /// The value.
    pub(crate) node: Node,
}

impl Node {
    /// Returns the member with this name, if this is an object that has it.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match &self.value {
            Value::Object(members) => {
                members.iter().find(|member| member.name == name).map(|member| &member.node)
            }
            _ => None,
        }
    }

    /// Returns the string, if this is one.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the members, if this is an object.
    pub(crate) fn as_object(&self) -> Option<&[Member]> {
        match &self.value {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Returns the elements, if this is a list.
    pub(crate) fn as_array(&self) -> Option<&[Self]> {
        match &self.value {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the type of the value with its article, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
            Value::Twice(_) => "the name twice",
        }
    }

    /// Converts to JSON, without positions.
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            Value::Null | Value::Twice(_) => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(number) => Json::Number(number.clone()),
            Value::String(text) => Json::String(text.clone()),
            Value::Array(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Value::Object(members) => {
                let members = members.iter().map(|member| (member.name.clone(), member.node.to_json()));
                Json::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

/// Parses a text. Reports an error and returns `None` if it is invalid.
pub(crate) fn parse(path: &Path, text: &str, format: Format, report: &Report) -> Option<Node> {
    // Editors on Windows write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let file: Arc<Path> = Arc::from(path);
    match format {
        Format::Jsonc => super::jsonc::parse(&file, text, report),
        Format::Yaml => super::yaml::parse(&file, text, report),
        Format::Toml => super::toml::parse(&file, text, report),
    }
}

/// Collects the members of an object.
#[derive(Debug, Default)]
pub(crate) struct Members {
    list: Vec<Member>,
    /// The index of each name in the list.
    places: HashMap<String, usize>,
}

impl Members {
    /// Adds a member. A duplicate name makes both values unusable.
    pub(crate) fn push(&mut self, member: Member) {
        let place = self.places.get(&member.name);
        let Some(first) = place.and_then(|place| self.list.get_mut(*place)) else {
            self.places.insert(member.name.clone(), self.list.len());
            self.list.push(member);
            return;
        };
        let line = match first.node.value {
            Value::Twice(line) => line,
            _ => first.origin.line,
        };
        first.node = Node { value: Value::Twice(line), origin: member.origin };
    }

    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.list)
    }
}

/// Converts byte offsets to lines and columns.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    file: &'a Arc<Path>,
    text: &'a str,
    starts: Vec<usize>,
    /// The last offset and its column. Offsets mostly increase, and a line may be the whole file.
    last: Cell<(usize, usize)>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(file: &'a Arc<Path>, text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { file, text, starts, last: Cell::default() }
    }

    pub(crate) fn origin(&self, offset: usize) -> Origin {
        let offset = (0..=offset).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0);
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let (from, before) = match self.last.get() {
            (last, column) if (start..=offset).contains(&last) && column > 0 => (last, column),
            _ => (start, 1),
        };
        let column = self.text.get(from..offset).map_or(0, |between| between.chars().count()) + before;
        self.last.set((offset, column));
        at(self.file, line, column)
    }
}

/// Creates an origin from a line and column that start at one.
pub(crate) fn at(file: &Arc<Path>, line: usize, column: usize) -> Origin {
    let clamp = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Origin { file: Arc::clone(file), line: clamp(line), column: clamp(column) }
}
