//! From a Rust type to the form a user fills in.

use crate::{Error, schema};
use bowline_types::{ElicitSchema, PrimitiveSchema, RawJson};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

/// Returns the form of `T`: a flat object of strings, numbers, booleans and choices.
///
/// Fails for what a form cannot ask: nested structs, maps, lists of anything but choices.
pub(crate) fn schema_of<T: JsonSchema>() -> Result<ElicitSchema, Error> {
    let root = schema::of::<T>().to_value()?;
    form(&root)
        .map_err(|reason| Error::internal(format!("`{}` cannot be asked for: {reason}", T::schema_name())))
}

fn form(root: &Value) -> Result<ElicitSchema, String> {
    let no_properties = Map::new();
    if root.get("type").and_then(Value::as_str) != Some("object") {
        return Err("expected a struct with named fields".into());
    }
    let definitions = root.get("$defs");
    let properties = root.get("properties").and_then(Value::as_object).unwrap_or(&no_properties);
    let mut required: Vec<String> = Vec::new();
    for name in root.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        required.push(name.to_owned());
    }
    let mut form = json!({ "type": "object", "properties": {}, "required": required });
    for (name, property) in properties {
        let field = field(property, definitions).map_err(|reason| format!("field `{name}`: {reason}"))?;
        form["properties"][name] = field;
    }
    let raw = RawJson::of(&form).map_err(|error| error.to_string())?;
    let form: ElicitSchema = raw.decode().map_err(|error| error.to_string())?;
    for (name, property) in &form.properties {
        if matches!(property, PrimitiveSchema::Unknown(_)) {
            return Err(format!("field `{name}`: expected text, a number, a boolean or a choice"));
        }
    }
    Ok(form)
}

/// Converts one field: resolves references, and removes keywords that only Rust types need.
fn field(property: &Value, definitions: Option<&Value>) -> Result<Value, String> {
    let mut property = resolve(property, definitions)?;
    let Some(members) = property.as_object_mut() else { return Ok(json!({ "type": "string" })) };
    // `Option<T>` is a field that may be left out, not one that may be null.
    if let Some(Value::Array(kinds)) = members.get("type") {
        let kind = kinds.iter().find(|kind| *kind != "null").cloned();
        members.insert("type".into(), kind.unwrap_or_else(|| "string".into()));
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(options)) = members.get("anyOf").cloned() {
        let mut options = options.into_iter().filter(|option| option.get("type") != Some(&"null".into()));
        if let (Some(only), None) = (options.next(), options.next()) {
            let mut inner = field(&only, definitions)?;
            let own_keywords = ["title", "description", "default"]
                .into_iter()
                .filter_map(|key| Some((key, members.get(key).filter(|value| !value.is_null())?)));
            if let Some(inner) = inner.as_object_mut() {
                inner.extend(own_keywords.map(|(key, value)| (key.to_owned(), value.clone())));
            }
            return Ok(inner);
        }
    }
    if let Some(Value::Array(options)) = members.remove("oneOf") {
        members.insert("type".into(), "string".into());
        members.insert("oneOf".into(), choices(&options)?.into());
    }
    if members.get("type").and_then(Value::as_str) == Some("array") {
        let items =
            members.get("items").map(|items| field(items, definitions)).transpose()?.unwrap_or_default();
        let items = match items.get("oneOf") {
            Some(titled) => json!({ "anyOf": titled }),
            None => items,
        };
        members.insert("items".into(), items);
        members.remove("uniqueItems");
    }
    if members.contains_key("const")
        && let Some(only) = members.remove("const")
    {
        members.insert("type".into(), "string".into());
        members.insert("enum".into(), json!([only]));
    }
    let width = members.get("format").and_then(Value::as_str);
    if width.is_some_and(|format| !matches!(format, "email" | "uri" | "date" | "date-time")) {
        members.remove("format");
    }
    Ok(property)
}

/// Documented variants become titled choices: the doc comment is the title.
fn choices(options: &[Value]) -> Result<Vec<Value>, String> {
    let mut choices = Vec::new();
    for option in options {
        let title = option.get("description").and_then(Value::as_str);
        let values: Vec<&Value> = match (option.get("const"), option.get("enum").and_then(Value::as_array)) {
            (Some(value), _) => vec![value],
            (None, Some(values)) => values.iter().collect(),
            (None, None) => return Err("expected an enum without fields".into()),
        };
        for value in values {
            let Some(value) = value.as_str() else { return Err("expected an enum of names".into()) };
            choices.push(json!({ "const": value, "title": title.unwrap_or(value) }));
        }
    }
    Ok(choices)
}

fn resolve(property: &Value, definitions: Option<&Value>) -> Result<Value, String> {
    let Some(reference) = property.get("$ref").and_then(Value::as_str) else { return Ok(property.clone()) };
    let name = reference.strip_prefix("#/$defs/").unwrap_or(reference);
    let target = definitions.and_then(|definitions| definitions.get(name));
    let mut resolved = target.cloned().ok_or_else(|| format!("`{reference}` is not defined"))?;
    // A description at the use of a type takes precedence over that of the type.
    if let (Some(resolved), Some(used)) = (resolved.as_object_mut(), property.as_object()) {
        resolved.extend(
            used.iter().filter(|(key, _)| *key != "$ref").map(|(key, value)| (key.clone(), value.clone())),
        );
    }
    if resolved.get("properties").is_some() {
        return Err("a form cannot contain a struct; use separate fields".into());
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde::{Deserialize, Serialize};

    #[derive(Deserialize, JsonSchema)]
    enum Size {
        /// A small one.
        Small,
        /// A large one.
        Large,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    enum Color {
        Red,
        Green,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Order {
        /// Who orders.
        name: String,
        count: u8,
        express: Option<bool>,
        size: Size,
        color: Option<Color>,
        extras: Vec<Color>,
        #[schemars(email)]
        contact: Option<String>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Nested {
        order: Order,
    }

    #[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
    fn check<T: JsonSchema>(expected: Expect) {
        let actual = match schema_of::<T>() {
            Ok(form) => serde_json::to_string_pretty(&form).unwrap(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&actual);
    }

    #[test]
    fn a_flat_struct_is_a_form() {
        // proves: ELIF-10, ELIF-11, ELIF-12, ELIF-14
        check::<Order>(expect![[r#"
            {
              "type": "object",
              "properties": {
                "name": {
                  "type": "string",
                  "description": "Who orders."
                },
                "count": {
                  "type": "integer",
                  "minimum": 0,
                  "maximum": 255
                },
                "express": {
                  "type": "boolean"
                },
                "size": {
                  "type": "string",
                  "oneOf": [
                    {
                      "const": "Small",
                      "title": "A small one."
                    },
                    {
                      "const": "Large",
                      "title": "A large one."
                    }
                  ]
                },
                "color": {
                  "type": "string",
                  "enum": [
                    "Red",
                    "Green"
                  ]
                },
                "extras": {
                  "type": "array",
                  "items": {
                    "type": "string",
                    "enum": [
                      "Red",
                      "Green"
                    ]
                  }
                },
                "contact": {
                  "type": "string",
                  "format": "email"
                }
              },
              "required": [
                "name",
                "count",
                "size",
                "extras"
              ]
            }"#]]);
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Paint {
        /// On the outside.
        #[schemars(title = "Shade")]
        #[serde(default = "green")]
        shade: Option<Color>,
    }

    #[expect(clippy::unnecessary_wraps, reason = "a default has the type of its field")]
    fn green() -> Option<Color> {
        Some(Color::Green)
    }

    #[test]
    fn an_optional_choice_keeps_what_its_field_says() {
        check::<Paint>(expect![[r#"
            {
              "type": "object",
              "properties": {
                "shade": {
                  "type": "string",
                  "title": "Shade",
                  "description": "On the outside.",
                  "enum": [
                    "Red",
                    "Green"
                  ],
                  "default": "Green"
                }
              }
            }"#]]);
    }

    #[test]
    fn a_nested_struct_is_refused_in_words() {
        check::<Nested>(expect![
            "`Nested` cannot be asked for: field `order`: a form cannot contain a struct; use separate fields (-32603)"
        ]);
    }
}
