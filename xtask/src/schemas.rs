//! `cargo xtask schemas`: the structure of the official schemas, without their prose.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::{Verdict, files};

/// Where the extracted schemas lie, relative to the root.
const FOLDER: &str = "spec/schema";

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Keywords that are text for people. They are left out.
const PROSE: [&str; 6] = ["title", "description", "$comment", "examples", "example", "default"];

/// Keywords whose value is a schema, or a list of schemas.
const SCHEMAS: [&str; 8] =
    ["items", "additionalProperties", "anyOf", "allOf", "oneOf", "not", "contains", "propertyNames"];

/// Keywords whose value maps names to schemas.
const MAPS: [&str; 4] = ["properties", "patternProperties", "definitions", "$defs"];

/// Keywords whose value is taken as it is.
const FACTS: [&str; 19] = [
    "$schema",
    "$ref",
    "$id",
    "type",
    "required",
    "enum",
    "const",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
];

pub(crate) fn run(root: &Path, folder: &Path) -> Result<Verdict, String> {
    let target = root.join(FOLDER);
    fs::create_dir_all(&target).map_err(|error| format!("cannot create {}: {error}", target.display()))?;
    for revision in REVISIONS {
        let source = folder.join(revision).join("schema.json");
        let located = |problem: String| format!("{}: {problem}", source.display());
        let schema =
            serde_json::from_str(&files::read(&source)?).map_err(|error| located(error.to_string()))?;
        let text = print(&structure(&schema).map_err(located)?);
        let path = target.join(format!("{revision}.json"));
        fs::write(&path, &text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        println!("{}: {} bytes", path.display(), text.len());
    }
    Ok(Verdict::Clean)
}

/// Returns a schema without its prose. Fails at a keyword that is not known, so that nothing is lost unnoticed.
fn structure(schema: &Value) -> Result<Value, String> {
    let keywords = match schema {
        Value::Object(keywords) => keywords,
        Value::Array(schemas) => {
            return schemas.iter().map(structure).collect::<Result<_, _>>().map(Value::Array);
        }
        other => return Ok(other.clone()),
    };
    let mut kept = Map::new();
    for (keyword, value) in keywords {
        let value = match (keyword.as_str(), value) {
            (prose, _) if PROSE.contains(&prose) => continue,
            (fact, _) if FACTS.contains(&fact) => value.clone(),
            (nested, _) if SCHEMAS.contains(&nested) => structure(value)?,
            (map, Value::Object(members)) if MAPS.contains(&map) => {
                let mut named = Map::new();
                for (name, schema) in members {
                    named.insert(name.clone(), structure(schema)?);
                }
                Value::Object(named)
            }
            (unknown, _) => {
                return Err(format!("unknown keyword `{unknown}`: add it to xtask/src/schemas.rs"));
            }
        };
        kept.insert(keyword.clone(), value);
    }
    Ok(Value::Object(kept))
}

/// Prints one definition per line, so that a change shows as the lines it touches.
fn print(schema: &Value) -> String {
    let members = schema.as_object().into_iter().flatten().map(|(keyword, value)| {
        let value = match value {
            Value::Object(definitions) if MAPS.contains(&keyword.as_str()) => {
                let lines: Vec<String> = definitions
                    .iter()
                    .map(|(name, schema)| format!("{}:{schema}", Value::from(&**name)))
                    .collect();
                format!("{{\n{}\n}}", lines.join(",\n"))
            }
            other => other.to_string(),
        };
        format!("{}:{value}", Value::from(&**keyword))
    });
    format!("{{{}}}\n", members.collect::<Vec<_>>().join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::{REVISIONS, run, structure};
    use crate::files;
    use crate::scratch::Tree;
    use serde_json::{Value, json};

    #[test]
    fn prose_is_removed_and_member_names_are_kept() {
        let schema = json!({
            "$defs": { "Tool": {
                "description": "Prose.", "title": "Prose", "type": "object", "required": ["title"],
                "properties": { "title": { "type": "string", "description": "Prose." }, "description": { "const": "x" } },
                "anyOf": [{ "$ref": "#/$defs/Other", "$comment": "Prose." }],
            } },
        });
        let expected = json!({
            "$defs": { "Tool": {
                "type": "object", "required": ["title"],
                "properties": { "title": { "type": "string" }, "description": { "const": "x" } },
                "anyOf": [{ "$ref": "#/$defs/Other" }],
            } },
        });
        assert_eq!(structure(&schema).unwrap(), expected);
        let error = structure(&json!({ "items": { "if": {} } })).unwrap_err();
        assert_eq!(error, "unknown keyword `if`: add it to xtask/src/schemas.rs");
    }

    #[test]
    fn one_file_per_revision_is_written() {
        let schema =
            r#"{"$schema":"x","description":"Prose.","$defs":{"A":{"type":"object"},"B":{"enum":[1]}}}"#;
        let sources: Vec<(String, &str)> =
            REVISIONS.iter().map(|revision| (format!("official/{revision}/schema.json"), schema)).collect();
        let tree = Tree::new(&sources.iter().map(|(path, text)| (&**path, *text)).collect::<Vec<_>>());
        run(tree.root(), &tree.root().join("official")).unwrap();
        for revision in REVISIONS {
            let text = files::read(&tree.root().join(format!("spec/schema/{revision}.json"))).unwrap();
            assert_eq!(text.lines().count(), 5, "{text}");
            let written: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                written,
                json!({ "$schema": "x", "$defs": { "A": { "type": "object" }, "B": { "enum": [1] } } })
            );
        }
    }

    #[test]
    fn the_committed_schemas_have_no_prose() {
        for revision in REVISIONS {
            let path = crate::workspace::root().unwrap().join(format!("spec/schema/{revision}.json"));
            let schema: Value = serde_json::from_str(&files::read(&path).unwrap()).unwrap();
            assert_eq!(structure(&schema).unwrap(), schema, "{revision}");
        }
    }
}
