//! Reads the JSON Schema of a tool: names, types, defaults and allowed values of its arguments.

mod check;

use bowline_text::nearest;
use bowline_types::RawJson;
use serde_json::{Map, Value};

/// The maximum length of a chain of references.
const MAX_HOPS: usize = 16;
/// The maximum depth of nested arrays.
const MAX_ARRAYS: usize = 4;

/// The schema of an object, with its properties in their original order.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    root: Value,
    order: Vec<String>,
}

/// A property of a schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Property<'a> {
    pub(crate) name: &'a str,
    pub(crate) required: bool,
    schema: &'a Schema,
    node: &'a Value,
}

impl Schema {
    pub(crate) fn new(schema: &RawJson) -> Self {
        let root = schema.to_value().unwrap_or_default();
        let properties = schema.members().ok().and_then(|members| members.get("properties").cloned());
        let members = properties.and_then(|properties| properties.members().ok()).unwrap_or_default();
        Self { root, order: members.iter().map(|(name, _)| name.to_owned()).collect() }
    }

    /// Returns a schema that allows everything.
    pub(crate) fn any() -> Self {
        Self { root: Value::Object(Map::new()), order: Vec::new() }
    }

    /// Returns the properties in their original order.
    pub(crate) fn properties(&self) -> impl Iterator<Item = Property<'_>> {
        self.order.iter().filter_map(|name| self.property(name))
    }

    pub(crate) fn property(&self, name: &str) -> Option<Property<'_>> {
        let (name, node) = members(&self.root)?.get_key_value(name)?;
        Some(Property { name, required: requires(&self.root, name), schema: self, node })
    }

    /// Returns the required properties that are not given.
    pub(crate) fn missing(&self, given: &Map<String, Value>) -> Vec<Property<'_>> {
        self.properties().filter(|property| property.required && !given.contains_key(property.name)).collect()
    }

    /// Sets the value at a dotted path, converted to the type that the schema asks for. Arrays collect repeated values.
    pub(crate) fn put(
        &self,
        into: &mut Map<String, Value>,
        key: &str,
        entry: Entry<'_>,
    ) -> Result<(), String> {
        // A property name can contain dots.
        let path: Vec<&str> = match members(&self.root) {
            Some(members) if members.contains_key(key) => vec![key],
            _ => key.split('.').collect(),
        };
        let (last, parents) = path.split_last().ok_or("expected a name")?;
        let (mut place, mut node) = (into, self.resolve(&self.root));
        for name in parents {
            node = self.resolve(self.step(node, name)?);
            let inner = place.entry(*name).or_insert_with(|| Value::Object(Map::new()));
            place = inner.as_object_mut().ok_or_else(|| format!("`{name}` is given twice"))?;
        }
        let node = self.step(node, last)?;
        let value = match entry {
            Entry::Value(value) => value,
            Entry::Text(text) => {
                self.read(node, text, MAX_ARRAYS).map_err(|reason| format!("{key}: {reason}"))?
            }
        };
        match (place.get_mut(*last), value) {
            (None, value) => {
                place.insert((*last).to_owned(), value);
                Ok(())
            }
            (Some(Value::Array(items)), Value::Array(more)) => {
                items.extend(more);
                Ok(())
            }
            (Some(_), _) => Err(format!("`{key}` is given twice")),
        }
    }

    /// Returns the schema of a member.
    fn step<'a>(&'a self, node: &'a Value, name: &str) -> Result<&'a Value, String> {
        let node = self.resolve(node);
        let known = members(node);
        if let Some(found) = known.and_then(|known| known.get(name)) {
            return Ok(found);
        }
        let open = match node.get("additionalProperties") {
            None | Some(Value::Bool(false)) => {
                known.is_none_or(Map::is_empty) && node.get("additionalProperties").is_none()
            }
            Some(_) => true,
        };
        if open || node.get("patternProperties").is_some() {
            return Ok(node
                .get("additionalProperties")
                .filter(|schema| schema.is_object())
                .unwrap_or(&Value::Null));
        }
        let names = || known.into_iter().flat_map(Map::keys).map(String::as_str);
        let near = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names().next().is_none() => "it takes no arguments".to_owned(),
            None => format!("known arguments: {}", names().collect::<Vec<_>>().join(", ")),
        };
        Err(format!("unknown argument `{name}`; {near}"))
    }

    /// Converts a text to the type that the schema asks for.
    fn read(&self, node: &Value, text: &str, arrays: usize) -> Result<Value, String> {
        let node = self.resolve(node);
        if let Some(choices) = self.choices(node) {
            let found = choices.iter().find(|choice| text_of(choice) == text);
            return found.map(|choice| (*choice).clone()).ok_or_else(|| not_a_choice(text, &choices));
        }
        let kinds = self.kinds(node);
        if kinds.is_empty() {
            return Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)));
        }
        // Every text is a valid string, so try strings last.
        let parsed = || serde_json::from_str::<Value>(text).ok();
        for kind in ["null", "boolean", "integer", "number", "object", "array"] {
            if !kinds.contains(&kind) {
                continue;
            }
            if let Some(value) = parsed().filter(|value| is_of(value, kind)) {
                return Ok(value);
            }
            if let Some(arrays) = arrays.checked_sub(1)
                && kind == "array"
                && !text.starts_with('[')
            {
                let items =
                    self.branches(node).find_map(|branch| branch.get("items")).unwrap_or(&Value::Null);
                return self.read(items, text, arrays).map(|item| Value::Array(vec![item]));
            }
        }
        if kinds.contains(&"string") {
            return Ok(Value::from(text));
        }
        Err(format!("expected {}, got `{text}`", self.kind(node)))
    }

    /// Returns the allowed values, if the schema lists them.
    fn choices<'a>(&'a self, node: &'a Value) -> Option<Vec<&'a Value>> {
        let mut choices = Vec::new();
        for branch in self.branches(node) {
            match (branch.get("enum").and_then(Value::as_array), branch.get("const")) {
                (Some(values), _) => choices.extend(values),
                (None, Some(value)) => choices.push(value),
                (None, None) => return None,
            }
        }
        Some(choices).filter(|choices| !choices.is_empty())
    }

    /// Returns the allowed types; empty if any type is allowed.
    fn kinds<'a>(&'a self, node: &'a Value) -> Vec<&'a str> {
        let mut kinds = Vec::new();
        for branch in self.branches(node) {
            match branch.get("type") {
                Some(Value::String(kind)) => kinds.push(kind.as_str()),
                Some(Value::Array(several)) => kinds.extend(several.iter().filter_map(Value::as_str)),
                _ if branch.get("properties").is_some() => kinds.push("object"),
                _ => return Vec::new(),
            }
        }
        kinds.dedup();
        kinds
    }

    /// Describes the expected type.
    fn kind(&self, node: &Value) -> String {
        self.kind_within(node, MAX_ARRAYS)
    }

    /// Describes the expected type, up to a depth of nested arrays.
    fn kind_within(&self, node: &Value, arrays: usize) -> String {
        let node = self.resolve(node);
        if let Some(choices) = self.choices(node) {
            let choices: Vec<String> = choices.into_iter().map(text_of).collect();
            return format!("one of {}", choices.join(", "));
        }
        let kinds: Vec<String> =
            self.kinds(node).into_iter().map(|kind| self.kind_of(node, kind, arrays)).collect();
        let kinds = if kinds.is_empty() { "any value".to_owned() } else { kinds.join(" or ") };
        let bound = |names: &[&str]| names.iter().find_map(|name| node.get(name)).map(ToString::to_string);
        let least = bound(&["minimum", "minLength", "minItems"]);
        let range = match (least, bound(&["maximum", "maxLength", "maxItems"])) {
            (Some(least), Some(most)) => format!(", {least} to {most}"),
            (Some(least), None) => format!(", at least {least}"),
            (None, Some(most)) => format!(", at most {most}"),
            (None, None) => String::new(),
        };
        let format = node.get("format").and_then(Value::as_str);
        let format = format.map(|format| format!(" ({format})")).unwrap_or_default();
        format!("{kinds}{range}{format}")
    }

    fn kind_of(&self, node: &Value, kind: &str, arrays: usize) -> String {
        let items = self.branches(node).find_map(|branch| branch.get("items"));
        match (kind, items.zip(arrays.checked_sub(1))) {
            ("array", Some((items, arrays))) => format!("array of {}", self.kind_within(items, arrays)),
            _ => kind.to_owned(),
        }
    }

    /// Returns the alternatives of a schema, or the schema itself.
    fn branches<'a>(&'a self, node: &'a Value) -> impl Iterator<Item = &'a Value> {
        let node = self.resolve(node);
        let several = ["anyOf", "oneOf"].iter().find_map(|name| node.get(name)?.as_array());
        let alone = if several.is_none() { Some(node) } else { None };
        several.into_iter().flatten().map(|branch| self.resolve(branch)).chain(alone)
    }

    /// Follows references within the schema.
    fn resolve<'a>(&'a self, mut node: &'a Value) -> &'a Value {
        for _ in 0..MAX_HOPS {
            let target = node.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
            match target.and_then(|pointer| self.root.pointer(pointer)) {
                Some(found) => node = found,
                None => break,
            }
        }
        node
    }
}

/// A value to set.
#[derive(Clone, Debug)]
pub(crate) enum Entry<'a> {
    /// A text, to be converted to the expected type.
    Text(&'a str),
    /// A value that is used unchanged.
    Value(Value),
}

impl<'a> Property<'a> {
    /// Describes the expected type.
    pub(crate) fn kind(&self) -> String {
        self.schema.kind(self.node)
    }

    /// Returns the members of an object or of an array of objects.
    pub(crate) fn members(&self) -> Vec<Self> {
        let mut node = self.schema.resolve(self.node);
        for _ in 0..MAX_HOPS {
            let items = self.schema.branches(node).find_map(|branch| branch.get("items"));
            match items {
                Some(items) => node = self.schema.resolve(items),
                None => break,
            }
        }
        let inner = self.schema.branches(node).find_map(|branch| Some((branch, members(branch)?)));
        let Some((owner, known)) = inner else { return Vec::new() };
        let member = |(name, node)| Self { name, required: requires(owner, name), schema: self.schema, node };
        known.iter().map(|(name, node): (&'a String, &'a Value)| member((name.as_str(), node))).collect()
    }

    pub(crate) fn description(&self) -> Option<&str> {
        let own = self.node.get("description");
        own.or_else(|| self.schema.resolve(self.node).get("description")).and_then(Value::as_str)
    }

    /// Returns the default value.
    pub(crate) fn default(&self) -> Option<&Value> {
        self.node.get("default")
    }

    /// Returns the allowed values, if the schema lists them.
    pub(crate) fn choices(&self) -> Vec<String> {
        let choices = self.schema.choices(self.schema.resolve(self.node));
        choices.unwrap_or_default().into_iter().map(text_of).collect()
    }
}

fn members(node: &Value) -> Option<&Map<String, Value>> {
    node.get("properties")?.as_object()
}

fn requires(node: &Value, name: &str) -> bool {
    let required = node.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|required| required == name))
}

/// Returns whether a value has a type. Unknown types match everything.
fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        _ => true,
    }
}

/// Formats a value as the user types it.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn not_a_choice(text: &str, choices: &[&Value]) -> String {
    let choices: Vec<String> = choices.iter().map(|choice| text_of(choice)).collect();
    let near = nearest(text, choices.iter().map(String::as_str));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("expected one of {}, got `{text}`{near}", choices.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::json;

    fn schema() -> Schema {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "minLength": 1 },
                "count": { "type": "integer", "minimum": 1, "maximum": 5 },
                "ratio": { "type": "number" },
                "sure": { "type": "boolean" },
                "color": { "enum": ["red", "green", 7] },
                "tags": { "type": "array", "items": { "type": "string" } },
                "sizes": { "type": "array", "items": { "type": "integer" } },
                "place": { "$ref": "#/$defs/place" },
                "maybe": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
                "free": {},
                "a.b": { "type": "string" },
            },
            "required": ["text"],
            "$defs": { "place": { "type": "object", "properties": { "x": { "type": "number" }, "name": { "type": "string" } } } },
        });
        Schema::new(&schema.into())
    }

    fn check(words: &[(&str, &str)], expected: &Expect) {
        let mut arguments = Map::new();
        let put = |arguments: &mut Map<String, Value>, (key, text): &(&str, &str)| {
            schema().put(arguments, key, Entry::Text(text))
        };
        let result = words.iter().try_for_each(|word| put(&mut arguments, word));
        expected.assert_eq(&result.map_or_else(|reason| reason, |()| Value::Object(arguments).to_string()));
    }

    #[test]
    fn arguments_are_converted_by_the_schema() {
        check(
            &[
                ("text", "5"),
                ("count", "5"),
                ("ratio", "1.5"),
                ("sure", "true"),
                ("color", "7"),
                ("a.b", "x"),
            ],
            &expect![[r#"{"text":"5","count":5,"ratio":1.5,"sure":true,"color":7,"a.b":"x"}"#]],
        );
        check(
            &[("tags", "a"), ("tags", "b"), ("sizes", "[1, 2]"), ("sizes", "3")],
            &expect![[r#"{"tags":["a","b"],"sizes":[1,2,3]}"#]],
        );
        check(
            &[("place.x", "1"), ("place.name", "2"), ("maybe", "null"), ("free", "[1]")],
            &expect![[r#"{"place":{"x":1,"name":"2"},"maybe":null,"free":[1]}"#]],
        );
        check(&[("free", "plain"), ("maybe", "3")], &expect![[r#"{"free":"plain","maybe":3}"#]]);
    }

    #[test]
    fn invalid_values_are_reported_with_the_expected_type() {
        check(&[("count", "many")], &expect!["count: expected integer, 1 to 5, got `many`"]);
        check(&[("count", "1.5")], &expect!["count: expected integer, 1 to 5, got `1.5`"]);
        check(&[("sure", "maybe")], &expect!["sure: expected boolean, got `maybe`"]);
        check(
            &[("color", "gren")],
            &expect!["color: expected one of red, green, 7, got `gren`; did you mean `green`?"],
        );
        check(&[("txet", "x")], &expect!["unknown argument `txet`; did you mean `text`?"]);
        check(&[("place.z", "x")], &expect!["unknown argument `z`; known arguments: x, name"]);
        check(&[("text", "a"), ("text", "b")], &expect!["`text` is given twice"]);
        check(&[("sizes", "a")], &expect!["sizes: expected integer, got `a`"]);
    }

    #[test]
    fn a_recursive_schema_terminates() {
        let schema = json!({
            "properties": { "list": { "$ref": "#/$defs/list" }, "any": { "$ref": "#/$defs/any" } },
            "$defs": {
                "list": { "type": "array", "items": { "$ref": "#/$defs/list" } },
                "any": { "anyOf": [{ "$ref": "#/$defs/any" }, { "$ref": "#/$defs/any" }] },
            },
        });
        let schema = Schema::new(&schema.into());
        let list = schema.property("list").unwrap();
        assert_eq!(list.kind(), "array of array of array of array of array");
        assert!(list.members().is_empty());
        assert!(schema.put(&mut Map::new(), "list", Entry::Text("x")).is_err());
        assert_eq!(schema.check(json!({ "list": [[[]]], "any": [1] }).as_object().unwrap()), Ok(()));
    }

    #[test]
    fn missing_arguments_are_listed_in_order() {
        let schema = schema();
        let missing: Vec<&str> = schema.missing(&Map::new()).iter().map(|property| property.name).collect();
        assert_eq!(missing, ["text"]);
    }
}
