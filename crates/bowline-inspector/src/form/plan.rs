//! Turns a JSON Schema into fields.

use super::{Choice, Field, FormPlan, Input, Variant};
use crate::render::Shown;
use bowline_text::is_secret_name;
use serde_json::{Map, Value, json};

/// How deep fields nest at most. Deeper ones are JSON fields, which also ends recursion.
const MAX_DEPTH: usize = 8;
/// How many fields a form has at most.
const MAX_FIELDS: usize = 2000;
/// How many choices a field has at most.
const MAX_CHOICES: usize = 1000;

/// Plans the form of a schema.
pub(crate) fn plan(schema: &Value) -> FormPlan {
    let mut planner = Planner { root: schema, budget: MAX_FIELDS };
    let root = planner.field("", schema, true, 0);
    let value = start(&root).unwrap_or_else(|| json!({}));
    FormPlan { root, value }
}

/// Plans the form of arguments that are all text: of a prompt or a template.
pub(crate) fn plan_of_arguments<'a>(
    arguments: impl Iterator<Item = (&'a str, Option<&'a str>, bool)>,
) -> FormPlan {
    let fields = arguments.take(MAX_FIELDS).map(|(name, description, required)| Field {
        name: name.to_owned(),
        label: Shown::line(name),
        description: description.map(Shown::text),
        required,
        nullable: false,
        default: None,
        input: text_input(name, &Map::new()),
    });
    let root = Field {
        name: String::new(),
        label: Shown::line(""),
        description: None,
        required: true,
        nullable: false,
        default: None,
        input: Input::Object { fields: fields.collect(), open: false },
    };
    FormPlan { root, value: json!({}) }
}

struct Planner<'a> {
    root: &'a Value,
    budget: usize,
}

impl<'a> Planner<'a> {
    fn field(&mut self, name: &str, schema: &'a Value, required: bool, depth: usize) -> Field {
        let (schema, problem) = self.resolve(schema);
        let empty = Map::new();
        let members = schema.as_object().unwrap_or(&empty);
        let text = |member: &str| members.get(member).and_then(Value::as_str);
        let (input, nullable) = match problem {
            Some(why) => (Input::Json { why }, false),
            None => self.input(name, schema, depth),
        };
        Field {
            name: name.to_owned(),
            label: Shown::line(text("title").unwrap_or(name)),
            description: text("description").map(Shown::text),
            required,
            nullable,
            default: members.get("default").cloned(),
            input,
        }
    }

    /// Follows local references.
    fn resolve(&self, mut schema: &'a Value) -> (&'a Value, Option<String>) {
        for _ in 0..MAX_DEPTH {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return (schema, None) };
            let Some(target) = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer))
            else {
                return (schema, Some("refers to a schema that is not in this one".into()));
            };
            schema = target;
        }
        (schema, Some("refers to itself".into()))
    }

    fn input(&mut self, name: &str, schema: &'a Value, depth: usize) -> (Input, bool) {
        let json_field = |why: &str| (Input::Json { why: why.to_owned() }, false);
        let Some(members) = schema.as_object() else { return json_field("allows any value") };
        let Some(budget) = self.budget.checked_sub(1) else { return json_field("is too large for a form") };
        self.budget = budget;
        if depth > MAX_DEPTH {
            return json_field("is nested too deeply, or refers to itself");
        }
        for keyword in ["if", "not", "allOf", "dependentSchemas", "patternProperties", "prefixItems"] {
            if members.contains_key(keyword) && !members.contains_key("properties") {
                return json_field(&format!("uses `{keyword}`"));
            }
        }
        if let Some(value) = members.get("const") {
            return (Input::Choice { choices: vec![choice(value, None)] }, false);
        }
        if let Some(Value::Array(values)) = members.get("enum") {
            let names = members.get("enumNames").and_then(Value::as_array);
            let title = |place: usize| names.and_then(|names| names.get(place)).and_then(Value::as_str);
            let nullable = values.contains(&Value::Null);
            let values = values.iter().enumerate().filter(|(_, value)| !value.is_null()).take(MAX_CHOICES);
            let choices = values.map(|(place, value)| choice(value, title(place))).collect();
            return (Input::Choice { choices }, nullable);
        }
        if let Some(Value::Array(options)) = members.get("oneOf").or_else(|| members.get("anyOf")) {
            return self.one_of(name, members, options, depth);
        }
        let (kind, nullable) = match members.get("type") {
            Some(Value::String(kind)) => (kind.as_str(), false),
            Some(Value::Array(kinds)) => {
                let nullable = kinds.iter().any(|kind| kind == "null");
                let mut kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
                match (kinds.next(), kinds.next()) {
                    (Some(kind), None) => (kind, nullable),
                    _ => return json_field("has several types"),
                }
            }
            _ if members.contains_key("properties") => ("object", false),
            _ if members.contains_key("items") => ("array", false),
            _ => return json_field("allows any value"),
        };
        (self.typed(name, kind, members, depth), nullable)
    }

    fn typed(&mut self, name: &str, kind: &str, members: &'a Map<String, Value>, depth: usize) -> Input {
        let number = |member: &str| members.get(member).and_then(Value::as_f64);
        let count = |member: &str| members.get(member).and_then(Value::as_u64);
        match kind {
            "string" => text_input(name, members),
            "integer" | "number" => Input::Number {
                integer: kind == "integer",
                minimum: number("minimum").or_else(|| number("exclusiveMinimum")),
                maximum: number("maximum").or_else(|| number("exclusiveMaximum")),
            },
            "boolean" => Input::Switch,
            "array" => {
                static ANY: Value = Value::Bool(true);
                let items = members.get("items").unwrap_or(&ANY);
                let item = self.field("", items, true, depth + 1);
                match item.input {
                    Input::Choice { choices } if !item.nullable => Input::Several { choices },
                    input => Input::List {
                        item: Box::new(Field { input, ..item }),
                        min_items: count("minItems"),
                        max_items: count("maxItems"),
                    },
                }
            }
            "object" => self.object(members, depth),
            "null" => Input::Choice { choices: vec![choice(&Value::Null, None)] },
            other => Input::Json { why: format!("has the unknown type `{other}`") },
        }
    }

    fn object(&mut self, members: &'a Map<String, Value>, depth: usize) -> Input {
        let properties = members.get("properties").and_then(Value::as_object);
        let required: Vec<&str> = members
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let additional = members.get("additionalProperties");
        match (properties.filter(|properties| !properties.is_empty()), additional) {
            (None, Some(values @ Value::Object(_))) => {
                Input::Map { value: Box::new(self.field("", values, true, depth + 1)) }
            }
            (properties, additional) => {
                let fields = properties.into_iter().flatten().map(|(name, schema)| {
                    self.field(name, schema, required.contains(&name.as_str()), depth + 1)
                });
                let fields = fields.collect();
                Input::Object { fields, open: additional != Some(&Value::Bool(false)) }
            }
        }
    }

    /// Plans alternatives: titled constants, a value or `null`, or several shapes.
    fn one_of(
        &mut self,
        name: &str,
        members: &'a Map<String, Value>,
        options: &'a [Value],
        depth: usize,
    ) -> (Input, bool) {
        let is_null = |option: &&Value| option.get("type").is_some_and(|kind| kind == "null");
        let nullable = options.iter().any(|option| is_null(&option));
        let rest: Vec<&Value> = options.iter().filter(|option| !is_null(option)).take(MAX_CHOICES).collect();
        if rest.iter().all(|option| option.get("const").is_some()) && !rest.is_empty() {
            let titled = |option: &&Value| {
                let value = option.get("const").unwrap_or(&Value::Null);
                choice(value, option.get("title").and_then(Value::as_str))
            };
            return (Input::Choice { choices: rest.iter().map(titled).collect() }, nullable);
        }
        if let [only] = rest.as_slice() {
            let field = self.field(name, only, true, depth + 1);
            return (field.input, nullable || field.nullable);
        }
        if members.contains_key("properties") {
            return (Input::Json { why: "combines members with alternatives".into() }, nullable);
        }
        let default = members.get("default");
        let mut selected = 0;
        let variants: Vec<_> = (rest.iter().enumerate())
            .map(|(place, option)| {
                let mut field = self.field("", option, true, depth + 1);
                let fixed = fix(&mut field);
                if default.is_some_and(|default| fits(&field, fixed.as_ref(), default)) {
                    selected = place;
                }
                let label = if field.label.text.is_empty() {
                    describe(&field, fixed.as_ref())
                } else {
                    field.label.clone()
                };
                Variant { label, field, fixed }
            })
            .collect();
        (Input::OneOf { variants, selected }, nullable)
    }
}

/// Takes members with a single value out of an object, because choosing the variant sets them.
fn fix(field: &mut Field) -> Option<Value> {
    let Input::Object { fields, .. } = &mut field.input else { return None };
    let mut fixed = Map::new();
    fields.retain(|field| match &field.input {
        Input::Choice { choices } if field.required => match choices.as_slice() {
            [only] => {
                fixed.insert(field.name.clone(), only.value.clone());
                false
            }
            _ => true,
        },
        _ => true,
    });
    (!fixed.is_empty()).then_some(Value::Object(fixed))
}

/// Returns whether a default is of a variant: its fixed members, or its type.
fn fits(field: &Field, fixed: Option<&Value>, value: &Value) -> bool {
    match (&field.input, fixed.and_then(Value::as_object)) {
        (Input::Object { .. }, Some(fixed)) => fixed.iter().all(|(name, one)| value.get(name) == Some(one)),
        (Input::Object { .. } | Input::Map { .. }, _) => value.is_object(),
        (Input::List { .. } | Input::Several { .. }, _) => value.is_array(),
        (Input::Number { .. }, _) => value.is_number(),
        (Input::Switch, _) => value.is_boolean(),
        (Input::Text { .. } | Input::LongText | Input::DateTime { .. } | Input::File { .. }, _) => {
            value.is_string()
        }
        (Input::Choice { choices }, _) => choices.iter().any(|choice| choice.value == *value),
        (Input::OneOf { .. } | Input::Json { .. }, _) => false,
    }
}

fn describe(field: &Field, fixed: Option<&Value>) -> Shown {
    if let Some(fixed) = fixed.and_then(Value::as_object).and_then(|fixed| fixed.values().next()) {
        return choice(fixed, None).label;
    }
    Shown::line(match &field.input {
        Input::Text { .. } | Input::LongText | Input::DateTime { .. } | Input::File { .. } => "text",
        Input::Number { .. } => "number",
        Input::Switch => "true or false",
        Input::Choice { .. } => "choice",
        Input::Several { .. } | Input::List { .. } => "list",
        Input::Map { .. } | Input::Object { .. } => "object",
        Input::OneOf { .. } => "alternatives",
        Input::Json { .. } => "JSON",
    })
}

fn text_input(name: &str, members: &Map<String, Value>) -> Input {
    let text = |member: &str| members.get(member).and_then(Value::as_str).map(str::to_owned);
    let count = |member: &str| members.get(member).and_then(Value::as_u64);
    let format = text("format");
    if text("contentEncoding").as_deref() == Some("base64") || format.as_deref() == Some("byte") {
        return Input::File { mime: text("contentMediaType") };
    }
    match format.as_deref() {
        Some(format @ ("date" | "time" | "date-time")) => Input::DateTime { format: format.to_owned() },
        Some("textarea" | "multiline" | "markdown") => Input::LongText,
        _ if count("maxLength").is_some_and(|length| length > 500) => Input::LongText,
        _ if ["text", "content", "body", "sql", "code", "prompt", "query", "message", "script"]
            .contains(&name)
            && format.is_none()
            && count("maxLength").is_none() =>
        {
            Input::LongText
        }
        _ => Input::Text {
            secret: is_secret_name(name) || format.as_deref() == Some("password"),
            format,
            min_length: count("minLength"),
            max_length: count("maxLength"),
            example: members
                .get("examples")
                .and_then(|examples| examples.get(0))
                .and_then(Value::as_str)
                .map(str::to_owned),
        },
    }
}

fn choice(value: &Value, title: Option<&str>) -> Choice {
    let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Choice { value: value.clone(), label: Shown::line(title.unwrap_or(&shown)) }
}

/// Returns the value to start with: the default, or required members that have a start.
fn start(field: &Field) -> Option<Value> {
    if let Some(default) = &field.default {
        return Some(default.clone());
    }
    match &field.input {
        Input::Object { fields, .. } => {
            let members = fields.iter().filter_map(|field| {
                let value = start(field).filter(|_| field.required || field.default.is_some())?;
                Some((field.name.clone(), value))
            });
            Some(Value::Object(members.collect()))
        }
        Input::Choice { choices } => match choices.as_slice() {
            [only] => Some(only.value.clone()),
            _ => None,
        },
        Input::OneOf { variants, selected } => variants.get(*selected)?.fixed.clone(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a plan as lines.
    fn lines(field: &Field, indent: usize, out: &mut String) {
        use std::fmt::Write as _;
        let input = serde_json::to_value(&field.input).unwrap();
        let marks =
            format!("{}{}", if field.required { "*" } else { "" }, if field.nullable { "?" } else { "" });
        let _ =
            writeln!(out, "{:indent$}{}{marks}: {}", "", field.label.text, input["kind"].as_str().unwrap());
        match &field.input {
            Input::Object { fields, .. } => fields.iter().for_each(|field| lines(field, indent + 2, out)),
            Input::List { item, .. } => lines(item, indent + 2, out),
            Input::Map { value } => lines(value, indent + 2, out),
            Input::OneOf { variants, .. } => {
                for variant in variants {
                    let _ = writeln!(
                        out,
                        "{:indent$}  | {} {}",
                        "",
                        variant.label.text,
                        variant.fixed.clone().unwrap_or_default()
                    );
                    lines(&variant.field, indent + 4, out);
                }
            }
            Input::Choice { choices } | Input::Several { choices } => {
                let labels: Vec<_> =
                    choices.iter().map(|choice| format!("{}={}", choice.label.text, choice.value)).collect();
                let _ = writeln!(out, "{:indent$}  {}", "", labels.join(" "));
            }
            _ => {}
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "calls with literals are easier to read")]
    fn check(schema: Value, expected: expect_test::Expect) {
        let plan = plan(&schema);
        let mut out = String::new();
        lines(&plan.root, 0, &mut out);
        out.push_str(&plan.value.to_string());
        expected.assert_eq(&out);
    }

    #[test]
    fn a_nested_schema_becomes_a_form() {
        check(
            json!({"type":"object","required":["path","mode","o"],"properties":{
                "path":{"type":"string","title":"Path"},
                "mode":{"enum":["text","base64"],"enumNames":["Text","Base 64"],"default":"text"},
                "lines":{"type":"array","items":{"type":"string","minLength":1}},
                "tags":{"type":"array","items":{"enum":["a","b"]}},
                "when":{"type":["string","null"],"format":"date-time"},
                "data":{"type":"string","contentEncoding":"base64"},
                "env":{"type":"object","additionalProperties":{"type":"integer"}},
                "o":{"$ref":"#/$defs/o"},
                "any":true,
                "no":{"not":{"type":"string"}}
            },"$defs":{"o":{"type":"object","properties":{"deep":{"type":"boolean"}}}}}),
            expect_test::expect![[r#"
                *: object
                  Path*: text
                  mode*: choice
                    Text="text" Base 64="base64"
                  lines: list
                    *: text
                  tags: several
                    a="a" b="b"
                  when?: date_time
                  data: file
                  env: map
                    *: number
                  o*: object
                    deep: switch
                  any: json
                  no: json
                {"mode":"text","o":{}}"#]],
        );
    }

    #[test]
    fn alternatives_become_variants() {
        check(
            json!({"type":"object","required":["shape"],"properties":{
                "shape":{"oneOf":[
                    {"type":"object","required":["kind","r"],"properties":{"kind":{"const":"circle"},"r":{"type":"number"}}},
                    {"type":"object","title":"Box","required":["kind"],"properties":{"kind":{"const":"box"},"w":{"type":"number"}}}]},
                "level":{"oneOf":[{"const":1,"title":"Low"},{"const":2,"title":"High"}]},
                "maybe":{"anyOf":[{"type":"string"},{"type":"null"}]}
            }}),
            expect_test::expect![[r#"
                *: object
                  shape*: one_of
                    | circle {"kind":"circle"}
                      *: object
                        r*: number
                    | Box {"kind":"box"}
                      Box*: object
                        w: number
                  level: choice
                    Low=1 High=2
                  maybe?: text
                {"shape":{"kind":"circle"}}"#]],
        );
    }

    #[test]
    fn recursion_and_large_schemas_end() {
        let recursive = json!({"type":"object","properties":{"next":{"$ref":"#"}}});
        let text = serde_json::to_string(&plan(&recursive)).unwrap();
        assert!(text.contains("refers to itself") && text.len() < 5000);
        let loops = json!({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}});
        assert!(matches!(plan(&loops).root.input, Input::Json { .. }));
        let wide: Map<String, Value> =
            (0..5000).map(|number| (format!("f{number}"), json!({"type":"string"}))).collect();
        assert!(
            serde_json::to_string(&plan(&json!({"type":"object","properties":wide})))
                .unwrap()
                .contains("too large")
        );
    }
}
