//! Placeholders: compares server frames with expectations, and fills in client frames.

use bowline_types::{Revision, meta};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The placeholder for a masked secret.
pub(crate) const MASKED: &str = "<masked>";

/// The captured values by name.
pub type Kept = BTreeMap<String, Value>;

/// Compares a frame with the expected one. Fails with the differences, each with its position.
pub fn compare(expected: &Value, actual: &Value, kept: &mut Kept) -> Result<(), Vec<String>> {
    let mut differences = Vec::new();
    differ("", expected, actual, kept, &mut differences);
    if differences.is_empty() { Ok(()) } else { Err(differences) }
}

fn differ(place: &str, expected: &Value, actual: &Value, kept: &mut Kept, differences: &mut Vec<String>) {
    let at = if place.is_empty() { "/" } else { place };
    match (expected, actual) {
        (Value::String(text), _) if text == MASKED => {}
        (Value::String(text), Value::String(actual)) if text.contains(MASKED) => {
            if !fits_around(text, actual) {
                differences.push(format!("{at}: expected {expected}, got {actual:?}"));
            }
        }
        (Value::String(text), actual) if is_placeholder(text) => {
            if let Err(reason) = hold(text, actual, kept) {
                differences.push(format!("{at}: {reason}"));
            }
        }
        (Value::Object(expected), Value::Object(actual)) => {
            let open = expected.contains_key("...");
            for (key, value) in expected.iter().filter(|(key, _)| *key != "...") {
                match actual.get(key) {
                    Some(actual) => differ(&format!("{place}/{key}"), value, actual, kept, differences),
                    None => differences.push(format!("{at}: member `{key}` is missing; expected {value}")),
                }
            }
            for (key, value) in actual.iter().filter(|(key, _)| !open && !expected.contains_key(*key)) {
                differences.push(format!("{at}: member `{key}` is not expected; got {value}"));
            }
        }
        (Value::Array(expected), Value::Array(actual)) => {
            if expected.len() != actual.len() {
                differences.push(format!("{at}: expected {} elements, got {}", expected.len(), actual.len()));
            }
            for (position, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                differ(&format!("{place}/{position}"), expected, actual, kept, differences);
            }
        }
        (expected, actual) if expected == actual => {}
        (expected, actual) => differences.push(format!("{at}: expected {expected}, got {actual}")),
    }
}

/// Returns whether a text matches one with masked parts.
fn fits_around(masked: &str, actual: &str) -> bool {
    let Some((first, behind)) = masked.split_once(MASKED) else { return masked == actual };
    let Some(mut rest) = actual.strip_prefix(first) else { return false };
    let (middle, last) = behind.rsplit_once(MASKED).unwrap_or(("", behind));
    for piece in middle.split(MASKED) {
        let Some((_, behind)) = rest.split_once(piece) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

fn is_placeholder(text: &str) -> bool {
    text.starts_with('<') && text.ends_with('>')
}

fn hold(placeholder: &str, actual: &Value, kept: &mut Kept) -> Result<(), String> {
    let name = placeholder.trim_start_matches('<').trim_end_matches('>');
    let fits = match name {
        "any" => true,
        "string" => actual.is_string(),
        "number" => actual.is_number(),
        "object" => actual.is_object(),
        "array" => actual.is_array(),
        _ => {
            if let Some(name) = name.strip_prefix("capture:") {
                kept.insert(name.to_owned(), actual.clone());
                return Ok(());
            }
            let expected = match name.strip_prefix("use:") {
                Some(name) => lookup(name, kept)?,
                None => &json!(placeholder),
            };
            if expected == actual {
                return Ok(());
            }
            return Err(format!("expected {expected}, got {actual}"));
        }
    };
    if fits { Ok(()) } else { Err(format!("expected any {name}, got {actual}")) }
}

fn lookup<'a>(name: &str, kept: &'a Kept) -> Result<&'a Value, String> {
    kept.get(name).ok_or_else(|| format!("nothing was captured as `{name}`"))
}

/// Replaces the placeholders of a client frame.
pub fn fill(value: &Value, kept: &Kept) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => fill_text(text, kept)?,
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill(item, kept)).collect::<Result<_, _>>()?)
        }
        Value::Object(members) => {
            let mut filled = Map::new();
            for (key, value) in members {
                match (key.as_str(), value.as_str()) {
                    ("<modern>", _) => filled.extend(modern(&fill(value, kept)?)),
                    ("_meta", Some("<modern>")) => {
                        filled.insert(key.clone(), Value::Object(modern(&json!({}))));
                    }
                    _ => {
                        filled.insert(key.clone(), fill(value, kept)?);
                    }
                }
            }
            Value::Object(filled)
        }
        other => other.clone(),
    })
}

/// Returns the `_meta` members that describe a request of 2026-07-28.
fn modern(capabilities: &Value) -> Map<String, Value> {
    let mut params = json!({});
    describe(&mut params, capabilities);
    match params.get_mut("_meta").map(Value::take) {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    }
}

fn fill_text(text: &str, kept: &Kept) -> Result<Value, String> {
    // A placeholder that is the whole text keeps the type of its value.
    if let Some(name) = whole(text, "<use:") {
        return lookup(name, kept).cloned();
    }
    let mut filled = String::new();
    let mut rest = text;
    loop {
        let starts = ["<use:", "<tamper:"].map(|start| rest.find(start).map(|position| (position, start)));
        let Some((position, start)) = starts.into_iter().flatten().min() else { break };
        let (before, placeholder) = rest.split_at(position);
        let inner = placeholder.strip_prefix(start).unwrap_or_default();
        let Some((name, behind)) = inner.split_once('>') else { break };
        let value = lookup(name, kept)?;
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        filled.push_str(before);
        filled.push_str(&if start == "<tamper:" { tampered(&value)? } else { value });
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled.into())
}

fn whole<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let name = text.strip_prefix(start)?.strip_suffix('>')?;
    (!name.contains(['<', '>'])).then_some(name)
}

/// Changes the character in the middle of a text to another valid one.
fn tampered(text: &str) -> Result<String, String> {
    let middle = text.chars().count() / 2;
    let other = |character: char| match character {
        'a'..='y' | 'A'..='Y' | '0'..='8' => char::from_u32(u32::from(character) + 1).unwrap_or('a'),
        _ => 'a',
    };
    if text.is_empty() {
        return Err("an empty text cannot be tampered with".into());
    }
    let change = |(position, character)| if position == middle { other(character) } else { character };
    Ok(text.chars().enumerate().map(change).collect())
}

/// Adds the `_meta` members that 2026-07-28 requires of every request, unless they are present.
pub fn describe(params: &mut Value, capabilities: &Value) {
    if params.is_null() {
        *params = json!({});
    }
    let Some(params) = params.as_object_mut() else { return };
    let meta = params.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
    let Some(meta) = meta.as_object_mut() else { return };
    meta.entry(meta::key::PROTOCOL_VERSION).or_insert_with(|| Revision::V2026_07_28.as_str().into());
    meta.entry(meta::key::CLIENT_CAPABILITIES).or_insert_with(|| capabilities.clone());
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
    fn check(expected: Value, actual: Value, differences: Expect) {
        let found = compare(&expected, &actual, &mut Kept::new()).err().unwrap_or_default();
        differences.assert_eq(&found.join("\n"));
    }

    #[test]
    fn every_difference_is_reported_with_its_position() {
        check(
            json!({ "id": 1, "result": { "gone": 1, "tools": [{ "name": "a" }] } }),
            json!({ "id": "1", "result": { "tools": [{ "name": "b" }, {}], "new": null } }),
            expect![[r#"
                /id: expected 1, got "1"
                /result: member `gone` is missing; expected 1
                /result/tools: expected 1 elements, got 2
                /result/tools/0/name: expected "a", got "b"
                /result: member `new` is not expected; got null"#]],
        );
    }

    #[test]
    fn placeholders_match_their_kind() {
        let all = json!({ "a": "<any>", "b": "<string>", "c": "<number>", "d": "<object>", "e": "<array>", "...": "..." });
        check(all.clone(), json!({ "a": null, "b": "x", "c": 1.5, "d": {}, "e": [], "f": 1 }), expect![[""]]);
        check(
            all,
            json!({ "a": 1, "b": 1, "c": "x", "d": [], "e": {} }),
            expect![[r#"
                /b: expected any string, got 1
                /c: expected any number, got "x"
                /d: expected any object, got []
                /e: expected any array, got {}"#]],
        );
    }

    #[test]
    fn masked_values_match_anything() {
        let secrets = json!(["<masked>", "Bearer <masked>", "<masked>, <masked>!", "<masked>"]);
        check(secrets.clone(), json!(["a", "Bearer b", "c, d!", 1]), expect![[""]]);
        check(
            secrets,
            json!(["", "bearer b", "c; d!", null]),
            expect![[r#"
                /1: expected "Bearer <masked>", got "bearer b"
                /2: expected "<masked>, <masked>!", got "c; d!""#]],
        );
    }

    #[test]
    fn a_captured_value_is_used_tampered_with_and_compared() {
        let mut kept = Kept::new();
        compare(&json!(["<capture:n>", "<capture:s>"]), &json!([7, "abcd"]), &mut kept).unwrap();
        let filled =
            fill(&json!({ "a": "<use:n>", "b": "<use:s>/<use:n>", "c": "<tamper:s>" }), &kept).unwrap();
        assert_eq!(filled, json!({ "a": 7, "b": "abcd/7", "c": "abdd" }));
        assert!(compare(&json!("<use:n>"), &json!(7), &mut kept).is_ok());
        assert!(compare(&json!("<use:n>"), &json!("7"), &mut kept).is_err());
        assert!(fill(&json!("<use:x>"), &kept).unwrap_err().contains("`x`"));
    }

    #[test]
    fn a_modern_meta_is_written_out() {
        let version = json!("2026-07-28");
        let short = fill(&json!({ "_meta": "<modern>" }), &Kept::new()).unwrap();
        assert_eq!(short["_meta"]["io.modelcontextprotocol/protocolVersion"], version);
        assert_eq!(short["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({}));
        let long =
            fill(&json!({ "_meta": { "<modern>": { "roots": {} }, "progressToken": 1 } }), &Kept::new())
                .unwrap();
        assert_eq!(long["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({ "roots": {} }));
        assert_eq!(long["_meta"]["progressToken"], 1);
    }
}
