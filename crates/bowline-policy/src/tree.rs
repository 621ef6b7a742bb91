//! A lossless JSON tree: keeps duplicate members, numbers as written, and invalid strings.
//!
//! Decisions, pins and displays must refer to exactly what the server reads. A parser that keeps only the last of two
//! members, or rounds numbers, could read something else.

use bowline_types::RawJson;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

use bowline_text::is_hidden;

/// The maximum depth of parsing. Deeper values stay raw.
const MAX_DEPTH: usize = 64;

/// A JSON value. Members are sorted by name; members with the same name keep their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    /// As written.
    Number(String),
    String(String),
    /// Raw JSON of a string that is not valid Unicode (half a surrogate pair), or of a value that is nested too deeply.
    Unread(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// How many spellings of a text must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Readings {
    /// At least one, so that no spelling evades a rule that restricts.
    Any,
    /// All, so that no spelling passes a rule that allows.
    Every,
}

/// The format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// On one line, unescaped. This form is digested.
    Canonical,
    /// On one line, with invisible characters escaped.
    Line,
    /// One member or item per line, with invisible characters escaped.
    Pretty,
}

impl Tree {
    pub(crate) fn of(json: &RawJson) -> Self {
        Self::read(json.as_str(), 0)
    }

    fn read(text: &str, depth: usize) -> Self {
        let unread = || Self::Unread(text.to_owned());
        match text.as_bytes().first() {
            Some(b'{' | b'[') if depth >= MAX_DEPTH => unread(),
            Some(b'{') => {
                let Ok(Members(members)) = serde_json::from_str(text) else { return unread() };
                let mut members: Vec<(String, Self)> =
                    members.into_iter().map(|(key, raw)| (key, Self::read(raw.get(), depth + 1))).collect();
                members.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
                Self::Object(members)
            }
            Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(text) {
                Ok(items) => {
                    Self::List(items.into_iter().map(|raw| Self::read(raw.get(), depth + 1)).collect())
                }
                Err(_) => unread(),
            },
            Some(b'"') => serde_json::from_str(text).map_or_else(|_| unread(), Self::String),
            Some(b't') => Self::Bool(true),
            Some(b'f') => Self::Bool(false),
            Some(b'n') => Self::Null,
            _ => Self::Number(text.to_owned()),
        }
    }

    /// Returns why this value is ambiguous, if it is.
    pub(crate) fn ambiguity(&self) -> Option<String> {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => None,
            Self::Unread(_) => Some("a value that is not valid text or is nested too deeply".to_owned()),
            Self::List(items) => items.iter().find_map(Self::ambiguity),
            Self::Object(members) => {
                let twice = members.windows(2).find_map(|pair| match pair {
                    [(one, _), (other, _)] if one == other => Some(format!("two members named `{one}`")),
                    _ => None,
                });
                twice.or_else(|| members.iter().find_map(|(_, value)| value.ambiguity()))
            }
        }
    }

    /// Returns the value at a JSON pointer (RFC 6901).
    pub(crate) fn at(&self, pointer: &str) -> Option<&Self> {
        if pointer.is_empty() {
            return Some(self);
        }
        let mut found = self;
        for step in pointer.strip_prefix('/')?.split('/') {
            let step = step.replace("~1", "/").replace("~0", "~");
            found = match found {
                Self::Object(members) => {
                    members.iter().find(|(key, _)| *key == step).map(|(_, value)| value)?
                }
                Self::List(items) => items.get(step.parse::<usize>().ok()?)?,
                Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Unread(_) => {
                    return None;
                }
            };
        }
        Some(found)
    }

    /// Returns the text of a scalar: the content of a string, the JSON of other values.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match self {
            Self::Null => Some("null"),
            Self::Bool(true) => Some("true"),
            Self::Bool(false) => Some("false"),
            Self::Number(text) | Self::String(text) | Self::Unread(text) => Some(text),
            Self::List(_) | Self::Object(_) => None,
        }
    }

    /// Returns whether this is a scalar whose text passes the test. For numbers with several spellings, tests the text
    /// as written, the normal form, or both.
    pub(crate) fn is_text(&self, readings: Readings, test: &dyn Fn(&str) -> bool) -> bool {
        let plain = match self {
            Self::Number(text) => plain(text),
            _ => None,
        };
        let as_written = self.scalar().is_some_and(test);
        match (plain, readings) {
            (None, _) => as_written,
            (Some(plain), Readings::Any) => as_written || test(&plain),
            (Some(plain), Readings::Every) => as_written && test(&plain),
        }
    }

    /// Returns whether any scalar or member name, at any depth, passes the test.
    pub(crate) fn any_text(&self, readings: Readings, test: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Self::List(items) => items.iter().any(|item| item.any_text(readings, test)),
            Self::Object(members) => {
                members.iter().any(|(key, value)| test(key) || value.any_text(readings, test))
            }
            _ => self.is_text(readings, test),
        }
    }

    /// Returns whether two values are equal. `1` and `1.0` are.
    pub(crate) fn means(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => {
                one == other
                    || matches!(
                        (one.parse::<f64>(), other.parse::<f64>()),
                        (Ok(one), Ok(other)) if one.to_bits() == other.to_bits() && one.abs() < 9e15
                    )
            }
            (Self::List(one), Self::List(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.means(other))
            }
            (Self::Object(one), Self::Object(other)) => {
                one.len() == other.len()
                    && one
                        .iter()
                        .zip(other)
                        .all(|((key, one), (name, other))| key == name && one.means(other))
            }
            _ => self == other,
        }
    }

    pub(crate) fn to_text(&self, layout: Layout) -> String {
        let mut out = String::new();
        self.write(&mut out, layout, 0);
        out
    }

    fn write(&self, out: &mut String, layout: Layout, depth: usize) {
        match self {
            Self::String(text) => write_string(out, text, layout),
            Self::List(items) => {
                write_group(out, ['[', ']'], items.len(), layout, depth, |out, place| {
                    if let Some(item) = items.get(place) {
                        item.write(out, layout, depth + 1);
                    }
                });
            }
            Self::Object(members) => {
                write_group(out, ['{', '}'], members.len(), layout, depth, |out, place| {
                    if let Some((key, value)) = members.get(place) {
                        write_string(out, key, layout);
                        out.push_str(if layout == Layout::Pretty { ": " } else { ":" });
                        value.write(out, layout, depth + 1);
                    }
                });
            }
            Self::Unread(text) => escape_into(out, text, layout),
            Self::Null | Self::Bool(_) | Self::Number(_) => out.push_str(self.scalar().unwrap_or_default()),
        }
    }
}

/// Returns a number without exponent and unnecessary zeros, if all parsers agree on its value.
fn plain(number: &str) -> Option<String> {
    let value: f64 = number.parse().ok().filter(|value: &f64| value.abs() < 9e15)?;
    Some(if value == 0.0 { "0".to_owned() } else { value.to_string() })
}

fn write_group(
    out: &mut String,
    [open, close]: [char; 2],
    count: usize,
    layout: Layout,
    depth: usize,
    write: impl Fn(&mut String, usize),
) {
    let new_line = |out: &mut String, depth: usize| {
        if layout == Layout::Pretty {
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth));
        }
    };
    out.push(open);
    for place in 0..count {
        if place > 0 {
            out.push(',');
        }
        new_line(out, depth + 1);
        write(out, place);
    }
    if count > 0 {
        new_line(out, depth);
    }
    out.push(close);
}

fn write_string(out: &mut String, text: &str, layout: Layout) {
    let written = serde_json::to_string(text).expect("a string always has a JSON form");
    escape_into(out, &written, layout);
}

fn escape_into(out: &mut String, written: &str, layout: Layout) {
    if layout == Layout::Canonical {
        return out.push_str(written);
    }
    for character in written.chars() {
        // Spaces between the tokens of an unparsed value are not content.
        if is_hidden(character) && !matches!(character, '\n' | '\r' | '\t') {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.extend(["\\u", &format!("{unit:04x}")]);
            }
        } else {
            out.push(if character.is_control() { ' ' } else { character });
        }
    }
}

/// The members of an object in order, including duplicates.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Tree {
        Tree::of(&RawJson::parse(text.to_owned()).unwrap())
    }

    #[test]
    fn the_canonical_form_ignores_order_and_spaces() {
        assert_eq!(
            tree(" {\"b\" : [ 1.0 , {} ],\n\"a\":\"\\u00e9\\n\", \"a\":null}").to_text(Layout::Canonical),
            "{\"a\":\"\u{e9}\\n\",\"a\":null,\"b\":[1.0,{}]}"
        );
        assert_eq!(tree("18446744073709551617").to_text(Layout::Canonical), "18446744073709551617");
    }

    #[test]
    fn the_pretty_form_shows_hidden_characters() {
        assert_eq!(
            tree("{\"a\u{202e}\":[\"\u{e0041}\",1],\"b\":{}}").to_text(Layout::Pretty),
            "{\n  \"a\\u202e\": [\n    \"\\udb40\\udc41\",\n    1\n  ],\n  \"b\": {}\n}"
        );
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        assert!(tree(&deep).to_text(Layout::Pretty).lines().count() < 200);
    }

    #[test]
    fn ambiguous_uris_are_found() {
        for text in [r#"{"a":1,"\u0061":2}"#, r#"[{"x":{"a":1,"a":1}}]"#, r#"{"a":"\ud800"}"#] {
            assert!(tree(text).ambiguity().is_some(), "{text}");
        }
        assert_eq!(tree(r#"{"a":1,"b":{"a":2}}"#).ambiguity(), None);
    }

    #[test]
    fn pointers_lead_into_the_tree() {
        let tree = tree(r#"{"a/b":{"~":[10,20]}}"#);
        assert_eq!(tree.at("/a~1b/~0/1"), Some(&Tree::Number("20".to_owned())));
        assert_eq!(tree.at(""), Some(&tree));
        for nowhere in ["a", "/x", "/a~1b/~0/2", "/a~1b/~0/x", "/a~1b/~0/1/0"] {
            assert_eq!(tree.at(nowhere), None, "{nowhere}");
        }
    }

    #[test]
    fn numbers_have_their_value() {
        assert!(tree("[1,{\"a\":2.0}]").means(&tree("[1.0,{\"a\":2}]")));
        assert!(!tree("9007199254740993").means(&tree("9007199254740992")));
        assert!(!tree("\"1\"").means(&tree("1")));
    }
}
