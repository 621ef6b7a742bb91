//! Schemas of the fields of an elicitation form.
//!
//! The validation of answers is in `validate_answer.rs`.

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::adapt::Adapt;
use crate::record::{open_enum, record};
use crate::revision::Revision;
use crate::{OrderedMap, RawMap};
use bowline_json::{RawJson, borrow::RawText};

record! {
    /// The schema of a form: an object without nesting.
    #[derive(Default)]
    pub struct ElicitSchema ["type" = "object"] {
        /// JSON Schema dialect (from 2025-11-25).
        optional schema: String = "$schema",
        /// Fields in display order.
        lenient properties: OrderedMap<PrimitiveSchema> = "properties",
        /// Names of the required fields.
        default required: Vec<String> = "required",
    }
}

record! {
    /// A text field.
    #[derive(Default)]
    pub struct StringSchema ["type" = "string"] {
        /// Display name.
        optional title: String = "title",
        /// Description.
        optional description: String = "description",
        /// Minimum length in characters.
        whole min_length: u64 = "minLength",
        /// Maximum length in characters.
        whole max_length: u64 = "maxLength",
        /// Regular expression that part of the text has to match.
        optional pattern: String = "pattern",
        /// Format of the text.
        optional format: StringFormat = "format",
        /// Default value.
        bare default: String = "default",
    }
}

open_enum! {
    /// Format of a text field.
    pub enum StringFormat {
        /// An email address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A date.
        Date = "date",
        /// A date with a time.
        DateTime = "date-time",
    }
}

record! {
    /// A number field.
    pub struct NumberSchema {
        /// Whether fractions are allowed.
        required kind: NumberKind = "type",
        /// Display name.
        optional title: String = "title",
        /// Description.
        optional description: String = "description",
        /// Minimum value.
        optional minimum: Number = "minimum",
        /// Maximum value.
        optional maximum: Number = "maximum",
        /// Default value.
        bare default: Number = "default",
    }
}

open_enum! {
    /// Type of a number field.
    pub enum NumberKind {
        /// Any number.
        Number = "number",
        /// Integers only.
        Integer = "integer",
    }
}

record! {
    /// A yes-or-no field.
    #[derive(Default)]
    pub struct BooleanSchema ["type" = "boolean"] {
        /// Display name.
        optional title: String = "title",
        /// Description.
        optional description: String = "description",
        /// Default value.
        bare default: bool = "default",
    }
}

record! {
    /// A single-choice field.
    ///
    /// The values are in `values`, or with titles in `one_of` (from 2025-11-25); in 2025-06-18 the titles
    /// are in `names`, at the places of their values.
    #[derive(Default)]
    pub struct EnumSchema ["type" = "string"] {
        /// Display name.
        optional title: String = "title",
        /// Description.
        optional description: String = "description",
        /// Values; their titles, if any, are in `names`.
        bare values: Vec<String> = "enum",
        /// Titles of `values`.
        bare names: Vec<String> = "enumNames",
        /// Values with their titles.
        bare one_of: Vec<EnumOption> = "oneOf",
        /// Default value.
        bare default: String = "default",
    }
}

record! {
    /// A value with its title.
    pub struct EnumOption {
        /// The value.
        required value: String = "const",
        /// The title.
        required title: String = "title",
    }
}

record! {
    /// A multiple-choice field (from 2025-11-25).
    pub struct MultiSelectSchema ["type" = "array"] {
        /// Display name.
        optional title: String = "title",
        /// Description.
        optional description: String = "description",
        /// Minimum number of values.
        whole min_items: u64 = "minItems",
        /// Maximum number of values.
        whole max_items: u64 = "maxItems",
        /// Allowed values.
        required items: MultiSelectItems = "items",
        /// Default value.
        bare default: Vec<String> = "default",
    }
}

record! {
    /// Allowed values of a multiple-choice field: `values`, or `any_of` with titles.
    #[derive(Default)]
    pub struct MultiSelectItems {
        /// Type of a value; `string` if `values` is set.
        bare kind: String = "type",
        /// Values.
        bare values: Vec<String> = "enum",
        /// Values with their titles.
        bare any_of: Vec<EnumOption> = "anyOf",
    }
}

/// One field of a form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum PrimitiveSchema {
    /// Text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// A boolean.
    Boolean(BooleanSchema),
    /// A single choice.
    Enum(EnumSchema),
    /// A multiple choice.
    MultiSelect(MultiSelectSchema),
    /// A schema that forms do not allow, unchanged.
    Unknown(RawJson),
}

impl StringSchema {
    /// Sets `pattern`.
    pub fn with_pattern(mut self, pattern: impl Into<String>) -> Self {
        self.pattern = Some(pattern.into());
        self
    }

    /// Sets `default`.
    pub fn with_default(mut self, default: impl Into<String>) -> Self {
        self.default = Some(default.into());
        self
    }
}

impl NumberSchema {
    /// Creates a field for any number.
    pub fn number() -> Self {
        Self::new(NumberKind::Number)
    }

    /// Creates a field for integers.
    pub fn integer() -> Self {
        Self::new(NumberKind::Integer)
    }

    /// Sets `default`.
    pub fn with_default(mut self, default: impl Into<Number>) -> Self {
        self.default = Some(default.into());
        self
    }
}

impl BooleanSchema {
    /// Sets `default`.
    pub fn with_default(mut self, default: bool) -> Self {
        self.default = Some(default);
        self
    }
}

impl EnumOption {
    fn pair(&self) -> (&str, &str) {
        (&self.value, &self.title)
    }
}

fn options<V: Into<String>, T: Into<String>>(choices: impl IntoIterator<Item = (V, T)>) -> Vec<EnumOption> {
    choices.into_iter().map(|(value, title)| EnumOption::new(value, title)).collect()
}

fn texts<V: Into<String>>(values: impl IntoIterator<Item = V>) -> Vec<String> {
    values.into_iter().map(Into::into).collect()
}

impl EnumSchema {
    /// Creates a choice of values without titles.
    pub fn untitled<V: Into<String>>(values: impl IntoIterator<Item = V>) -> Self {
        Self { values: Some(texts(values)), ..Self::new() }
    }

    /// Creates a choice of values with titles.
    pub fn titled<V: Into<String>, T: Into<String>>(choices: impl IntoIterator<Item = (V, T)>) -> Self {
        Self { one_of: Some(options(choices)), ..Self::new() }
    }

    /// Returns the values with their titles. A value without a title is its own title.
    pub fn choices(&self) -> Vec<(&str, &str)> {
        if let Some(one_of) = &self.one_of {
            return one_of.iter().map(EnumOption::pair).collect();
        }
        let names = self.names.as_deref().unwrap_or_default();
        let values = self.values.as_deref().unwrap_or_default();
        values
            .iter()
            .enumerate()
            .map(|(place, value)| (value.as_str(), names.get(place).unwrap_or(value).as_str()))
            .collect()
    }

    /// Sets `default`.
    pub fn with_default(mut self, default: impl Into<String>) -> Self {
        self.default = Some(default.into());
        self
    }
}

impl MultiSelectSchema {
    /// Creates a choice of values without titles.
    pub fn untitled<V: Into<String>>(values: impl IntoIterator<Item = V>) -> Self {
        Self::new(MultiSelectItems {
            kind: Some("string".to_owned()),
            values: Some(texts(values)),
            ..MultiSelectItems::new()
        })
    }

    /// Creates a choice of values with titles.
    pub fn titled<V: Into<String>, T: Into<String>>(choices: impl IntoIterator<Item = (V, T)>) -> Self {
        Self::new(MultiSelectItems { any_of: Some(options(choices)), ..MultiSelectItems::new() })
    }

    /// Returns the values with their titles. A value without a title is its own title.
    pub fn choices(&self) -> Vec<(&str, &str)> {
        match (&self.items.any_of, &self.items.values) {
            (Some(any_of), _) => any_of.iter().map(EnumOption::pair).collect(),
            (None, Some(values)) => values.iter().map(|value| (value.as_str(), value.as_str())).collect(),
            (None, None) => Vec::new(),
        }
    }

    /// Sets `default`.
    pub fn with_default<V: Into<String>>(mut self, default: impl IntoIterator<Item = V>) -> Self {
        self.default = Some(texts(default));
        self
    }
}

impl ElicitSchema {
    /// Adds an optional field.
    pub fn field(mut self, name: impl Into<String>, schema: impl Into<PrimitiveSchema>) -> Self {
        self.properties.insert(name, schema.into());
        self
    }

    /// Adds a required field.
    pub fn required_field(mut self, name: impl Into<String>, schema: impl Into<PrimitiveSchema>) -> Self {
        let name = name.into();
        self.required.push(name.clone());
        self.field(name, schema)
    }
}

macro_rules! from_schema {
    ($($schema:ident => $variant:ident;)*) => {
        $(impl From<$schema> for PrimitiveSchema {
            fn from(schema: $schema) -> Self {
                Self::$variant(schema)
            }
        })*
    };
}

from_schema! {
    StringSchema => String;
    NumberSchema => Number;
    BooleanSchema => Boolean;
    EnumSchema => Enum;
    MultiSelectSchema => MultiSelect;
}

impl Serialize for PrimitiveSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::String(schema) => schema.serialize(serializer),
            Self::Number(schema) => schema.serialize(serializer),
            Self::Boolean(schema) => schema.serialize(serializer),
            Self::Enum(schema) => schema.serialize(serializer),
            Self::MultiSelect(schema) => schema.serialize(serializer),
            Self::Unknown(raw) => raw.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PrimitiveSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = RawText::deserialize(deserializer)?;
        let members = text.decode::<RawMap, D::Error>()?;
        match members.decode::<String>("type").ok().flatten().as_deref() {
            Some("string") if members.contains_key("enum") || members.contains_key("oneOf") => {
                text.decode().map(Self::Enum)
            }
            Some("string") => text.decode().map(Self::String),
            Some("number" | "integer") => text.decode().map(Self::Number),
            Some("boolean") => text.decode().map(Self::Boolean),
            Some("array") if lists_choices(&members) => text.decode().map(Self::MultiSelect),
            _ => Ok(Self::Unknown(text.into())),
        }
    }
}

fn lists_choices(array: &RawMap) -> bool {
    let items = array.decode::<RawMap>("items").ok().flatten();
    items.is_some_and(|items| items.contains_key("enum") || items.contains_key("anyOf"))
}

impl Adapt for ElicitSchema {
    fn adapt(&mut self, to: Revision) {
        if to >= Revision::V2025_11_25 {
            return;
        }
        self.schema = None;
        for (_, property) in self.properties.iter_mut() {
            property.adapt(to);
        }
    }
}

impl Adapt for PrimitiveSchema {
    fn adapt(&mut self, to: Revision) {
        if to >= Revision::V2025_11_25 {
            return;
        }
        // 2025-06-18 has defaults only for booleans, titles of values only beside them, and no lists.
        match self {
            Self::String(schema) => schema.default = None,
            Self::Number(schema) => schema.default = None,
            Self::Enum(schema) => {
                schema.default = None;
                if let Some(options) = schema.one_of.take() {
                    let (values, names) =
                        options.into_iter().map(|option| (option.value, option.title)).unzip();
                    schema.values = Some(values);
                    schema.names = Some(names);
                }
            }
            Self::MultiSelect(schema) => *self = Self::String(as_text_field(schema)),
            Self::Boolean(_) | Self::Unknown(_) => {}
        }
    }
}

/// Converts a multiple choice to a text field, for clients without multiple choices.
fn as_text_field(schema: &MultiSelectSchema) -> StringSchema {
    let choices = schema
        .choices()
        .into_iter()
        .map(|(value, title)| if value == title { value.to_owned() } else { format!("{value} ({title})") });
    let choices = format!("Any of, separated by commas: {}", choices.collect::<Vec<_>>().join(", "));
    let description = match &schema.description {
        Some(description) => format!("{description}\n{choices}"),
        None => choices,
    };
    StringSchema { title: schema.title.clone(), description: Some(description), ..StringSchema::new() }
}

impl ElicitSchema {
    /// Converts the answer of a client without multiple choices to the form of this schema: the text of a multiple
    /// choice is split at commas, and titles are replaced by their values.
    pub fn restore_lists(&self, content: &mut RawMap) {
        for (name, property) in &self.properties {
            let PrimitiveSchema::MultiSelect(schema) = property else { continue };
            let Some(answer) = content.get_mut(name) else { continue };
            let Ok(text) = answer.decode::<String>() else { continue };
            let choices = schema.choices();
            let chosen = text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(|part| {
                let same = |(value, title): &&(&str, &str)| {
                    part == *value || part == *title || part == format!("{value} ({title})")
                };
                choices.iter().find(same).map_or(part, |(value, _)| *value)
            });
            *answer = crate::to_json(&chosen.collect::<Vec<_>>());
        }
    }
}

/// Joins lists of strings into one string each, for servers without multiple choices.
pub(crate) fn join_lists(content: &mut RawMap) {
    for (_, value) in content.iter_mut() {
        if value.is_array()
            && let Ok(items) = value.decode::<Vec<String>>()
        {
            *value = crate::to_json(&items.join(", "));
        }
    }
}
