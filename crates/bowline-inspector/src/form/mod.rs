//! Forms: from a JSON Schema to fields, and from arguments to errors at their fields.

mod check;
mod plan;

pub(crate) use check::check;
pub(crate) use plan::{plan, plan_of_arguments};

use crate::render::Shown;
use serde::Serialize;
use serde_json::Value;

/// A form. The page draws it and keeps one JSON value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FormPlan {
    /// The root: an object field, or a JSON field for schemas that are not about an object.
    pub root: Field,
    /// The value to start with: defaults, and required members that have only one possible value.
    pub value: Value,
}

/// One field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Field {
    /// The member name in the object that contains it; empty for the root, list items and variants.
    pub name: String,
    /// The label: the title of the schema, or the name.
    pub label: Shown,
    /// The description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Shown>,
    /// Whether the member must be present.
    pub required: bool,
    /// Whether `null` is a value of it.
    pub nullable: bool,
    /// The default of the schema. It is not sent unless the user keeps it in the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// What is drawn.
    pub input: Input,
}

/// One choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Choice {
    /// The value to send.
    pub value: Value,
    /// What is shown.
    pub label: Shown,
}

/// A variant of a one-of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Variant {
    /// What is shown.
    pub label: Shown,
    /// Its field. Members of an object that have a single value (`const`) are in `fixed` only.
    pub field: Field,
    /// Members that choosing this variant sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed: Option<Value>,
}

/// The kinds of fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Input {
    /// A line of text.
    Text {
        /// The format, such as `email`, `uri`.
        #[serde(skip_serializing_if = "Option::is_none")]
        format: Option<String>,
        /// The shortest length.
        #[serde(skip_serializing_if = "Option::is_none")]
        min_length: Option<u64>,
        /// The greatest length.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_length: Option<u64>,
        /// An example to show in the empty field.
        #[serde(skip_serializing_if = "Option::is_none")]
        example: Option<String>,
        /// Whether the name says that it is a secret; shown as a password field.
        secret: bool,
    },
    /// Several lines of text.
    LongText,
    /// A number. Its text is sent as typed, so long numbers stay exact.
    Number {
        /// Whether it is an integer.
        integer: bool,
        /// The smallest value.
        #[serde(skip_serializing_if = "Option::is_none")]
        minimum: Option<f64>,
        /// The greatest value.
        #[serde(skip_serializing_if = "Option::is_none")]
        maximum: Option<f64>,
    },
    /// True or false.
    Switch,
    /// One of some values.
    Choice {
        /// The choices.
        choices: Vec<Choice>,
    },
    /// Several of some values: a list.
    Several {
        /// The choices.
        choices: Vec<Choice>,
    },
    /// A date, a time, or both.
    DateTime {
        /// `date`, `time` or `date-time`.
        format: String,
    },
    /// A file, sent as base64.
    File {
        /// The MIME type, if the schema names one.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime: Option<String>,
    },
    /// A list.
    List {
        /// The field of each item.
        item: Box<Field>,
        /// The smallest number of items.
        #[serde(skip_serializing_if = "Option::is_none")]
        min_items: Option<u64>,
        /// The greatest number of items.
        #[serde(skip_serializing_if = "Option::is_none")]
        max_items: Option<u64>,
    },
    /// An object with members of any name.
    Map {
        /// The field of each value.
        value: Box<Field>,
    },
    /// An object.
    Object {
        /// Its fields, in the order of the schema.
        fields: Vec<Field>,
        /// Whether other members are allowed.
        open: bool,
    },
    /// One of several shapes.
    OneOf {
        /// The shapes.
        variants: Vec<Variant>,
        /// The variant that the default value is of.
        selected: usize,
    },
    /// JSON text, for what the other kinds cannot express.
    Json {
        /// Why, for example "uses `if`".
        why: String,
    },
}

/// An error at a position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FormProblem {
    /// A JSON pointer into the value; empty for the whole.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}
