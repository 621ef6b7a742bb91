//! The tree that all file formats are parsed into: values with their positions.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Number, Value as Json};

use super::report::{Format, Origin, Report};

/// How deep a file may nest; the same as for messages.
pub(crate) const MAX_DEPTH: usize = 128;

/// A value and the place it was written at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// The value itself.
    pub(crate) value: Value,
    /// Where it begins.
    pub(crate) origin: Origin,
}

/// A value of any of the notations.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Nothing, which JSON and YAML can write.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// Text; dates of TOML are text too.
    String(String),
    /// A list.
    Array(Vec<Node>),
    /// Members in the order of the file, each name once.
    Object(Vec<Member>),
    /// What a name stands for that is there more than once, first at that line. Readers differ in which of the values
    /// counts, so none is guessed.
    Twice(u32),
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    /// The name.
    pub(crate) name: String,
    /// Where the name is written.
    pub(crate) origin: Origin,
    /// The value.
    pub(crate) node: Node,
}

impl Node {
    /// The value of the member of that name, if this is an object that has it.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match &self.value {
            Value::Object(members) => {
                members.iter().find(|member| member.name == name).map(|member| &member.node)
            }
            _ => None,
        }
    }

    /// The text, if this is text.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The members, if this is an object.
    pub(crate) fn as_object(&self) -> Option<&[Member]> {
        match &self.value {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The elements, if this is a list.
    pub(crate) fn as_array(&self) -> Option<&[Self]> {
        match &self.value {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// What kind of value this is, with its article, for messages.
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

    /// The same value without places.
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

/// Reads a text of the given notation; `None` where it is broken, with the reason in the report.
pub(crate) fn parse(path: &Path, text: &str, format: Format, report: &Report) -> Option<Node> {
    // Editors on Windows put a byte order mark in front of text files.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let file: Arc<Path> = Arc::from(path);
    match format {
        Format::Jsonc => super::jsonc::parse(&file, text, report),
        Format::Yaml => super::yaml::parse(&file, text, report),
        Format::Toml => super::toml::parse(&file, text, report),
    }
}

/// The members of an object while they are read.
#[derive(Debug, Default)]
pub(crate) struct Members {
    list: Vec<Member>,
    /// Where in the list each name is.
    places: HashMap<String, usize>,
}

impl Members {
    /// Adds a member; one whose name is there already makes both unusable.
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

/// Turns byte offsets of a text into lines and columns.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    file: &'a Arc<Path>,
    text: &'a str,
    starts: Vec<usize>,
    /// The last place that was asked for and its column. Places come in order, and a line may be the whole file.
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

/// A place given by counts from one.
pub(crate) fn at(file: &Arc<Path>, line: usize, column: usize) -> Origin {
    let clamp = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Origin { file: Arc::clone(file), line: clamp(line), column: clamp(column) }
}
