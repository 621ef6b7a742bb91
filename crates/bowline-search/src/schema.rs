//! Reads the parameters of a tool from its input schema.
//!
//! The schema is untrusted: a member of an unexpected type is treated as absent.

use bowline_types::RawJson;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// One parameter of a tool.
#[derive(Debug, PartialEq)]
pub(super) struct Parameter {
    pub(super) name: String,
    /// The JSON types it may have; empty if the schema does not state them directly.
    pub(super) kinds: Vec<String>,
    pub(super) description: Option<String>,
    pub(super) is_required: bool,
}

/// Returns the parameters in the order of the schema.
pub(super) fn parameters(schema: &RawJson) -> Vec<Parameter> {
    let root: Node = schema.decode().unwrap_or_default();
    let Node { properties, required, .. } = root;
    let parameters = properties.into_iter().map(|(name, node)| Parameter {
        is_required: required.contains(&name),
        name,
        kinds: node.kinds,
        description: node.description,
    });
    parameters.collect()
}

/// A JSON value, reduced to what schemas use.
#[derive(Default)]
struct Node {
    /// The value if it is a string, or the strings of an array.
    texts: Vec<String>,
    kinds: Vec<String>,
    description: Option<String>,
    required: Vec<String>,
    properties: Vec<(String, Self)>,
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::default())
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::default())
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node { texts: vec![text.to_owned()], ..Node::default() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut texts = Vec::new();
        while let Some(item) = items.next_element::<Node>()? {
            texts.extend(item.texts);
        }
        Ok(Node { texts, ..Node::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let mut node = Node::default();
        while let Some(key) = members.next_key::<String>()? {
            match key.as_str() {
                "type" => node.kinds = members.next_value::<Node>()?.texts,
                "description" => node.description = members.next_value::<Node>()?.texts.into_iter().next(),
                "required" => node.required = members.next_value::<Node>()?.texts,
                "properties" => node.properties = members.next_value::<Properties>()?.0,
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(node)
    }
}

/// The members of `properties`, whose keys are parameter names.
struct Properties(Vec<(String, Node)>);

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PropertiesVisitor).map(Self)
    }
}

struct PropertiesVisitor;

impl<'de> Visitor<'de> for PropertiesVisitor {
    type Value = Vec<(String, Node)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object of schemas")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut properties = Vec::new();
        while let Some(member) = members.next_entry()? {
            properties.push(member);
        }
        Ok(properties)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(schema: &str) -> Vec<(String, String, Option<String>, bool)> {
        parameters(&RawJson::parse(schema.to_owned()).unwrap())
            .into_iter()
            .map(|it| (it.name, it.kinds.join("|"), it.description, it.is_required))
            .collect()
    }

    #[test]
    fn parameters_are_read_in_order() {
        let found = read(
            r#"{"type":"object","required":["b"],"properties":{
                "b":{"type":["string","null"],"description":"The second."},
                "a":{"type":"integer","enum":[1,2.5]},
                "type":{"anyOf":[{"type":"string"}]}}}"#,
        );
        assert_eq!(
            found,
            [
                ("b".into(), "string|null".into(), Some("The second.".into()), true),
                ("a".into(), "integer".into(), None, false),
                ("type".into(), String::new(), None, false),
            ],
        );
    }

    #[test]
    fn an_invalid_schema_is_empty() {
        for schema in
            ["null", "true", "7", "[]", r#""x""#, "{}", r#"{"properties":[1]}"#, r#"{"properties":null}"#]
        {
            assert_eq!(read(schema), [], "{schema}");
        }
        let odd =
            r#"{"required":"a","properties":{"a":true,"b":{"description":[1,{"x":2}],"type":{"y":null}}}}"#;
        assert_eq!(
            read(odd),
            [("a".into(), String::new(), None, true), ("b".into(), String::new(), None, false)],
        );
    }
}
