//! Parses `name=value` words into the arguments of a tool or prompt.

use crate::{
    failure::{Code, Failure},
    schema::{Entry, Schema},
    session::Session,
};
use bowline_text::visible;
use serde_json::{Map, Value};
use std::{fs, io};

/// The syntax of arguments, for `--help`.
pub(crate) const GRAMMAR: &str = "\
Argument syntax:
  name=value       a value of the type that the tool's schema asks for; repeat it for arrays
  a.b=value        a member of an object
  name:=json       raw JSON; use it for strings that start with `@`: name:='\"@home\"'
  name=@file       the content of a file; `name=@-` reads standard input
  {\"name\": ...}    all arguments as a JSON object; same as `--args JSON`
  @file            all arguments as a JSON object from a file
  -                all arguments as a JSON object from standard input; same as `@-`

Arguments are checked against the tool's schema before the call; `--unchecked` disables this.
At a terminal, you are prompted for missing arguments.

Examples:
  bowline call everything sum numbers=1 numbers=2.5
  bowline call files write_file path=notes.txt content=@draft.txt
  echo '{\"message\": \"hi\"}' | bowline call everything echo -";

/// Parses arguments without checking names, types or required arguments against the schema.
pub(crate) fn unchecked(
    owner: &str,
    schema: &Schema,
    words: &[String],
    json: Option<&str>,
) -> Result<Map<String, Value>, Failure> {
    let refused = |reason: String| Failure::misused(format!("{}: {reason}", visible(owner)));
    let mut arguments = given_object(json).map_err(refused)?;
    let untyped = Schema::any();
    for word in words {
        let typed = put(&mut arguments, schema, word);
        typed.or_else(|_| put(&mut arguments, &untyped, word)).map_err(refused)?;
    }
    Ok(arguments)
}

/// Returns the arguments that `--args` gives as one JSON object.
fn given_object(json: Option<&str>) -> Result<Map<String, Value>, String> {
    let mut arguments = Map::new();
    if let Some(text) = json {
        merge(&mut arguments, &content(text)?)?;
    }
    Ok(arguments)
}

/// Parses and checks the arguments of a tool or prompt, and prompts for missing ones. If the user cannot be prompted, the error
/// suggests running `look`.
pub(crate) async fn arguments(
    session: &Session<'_>,
    owner: &str,
    look: &str,
    schema: &Schema,
    words: &[String],
    json: Option<&str>,
) -> Result<Map<String, Value>, Failure> {
    let refused = |reason: String| Failure::misused(format!("{}: {reason}", visible(owner)));
    let mut arguments = given_object(json).map_err(refused)?;
    for word in words {
        put(&mut arguments, schema, word).map_err(refused)?;
    }
    schema.check(&arguments).map_err(refused)?;
    let missing = schema.missing(&arguments);
    if missing.is_empty() {
        return Ok(arguments);
    }
    if !session.context.interactive() {
        let names: Vec<String> =
            missing.iter().map(|property| format!("`{}`", visible(property.name))).collect();
        let failure = refused(format!("missing required argument {}", names.join(", ")));
        return Err(failure.advise(format!("run `{look}` to see its arguments")));
    }
    let screen = session.context.screen;
    for property in missing {
        if let Some(description) = property.description() {
            screen.note(&format!("  | {}", visible(description)));
        }
        loop {
            let prompt = format!("{} ({}): ", visible(property.name), visible(&property.kind()));
            let line =
                session.user.line(&prompt).await.map_err(|_| Failure::new(Code::Denied, "no input"))?;
            match schema.put(&mut arguments, property.name, Entry::Text(&line)) {
                Ok(()) => break,
                Err(reason) => screen.note(&format!("  ! {}", visible(&reason))),
            }
        }
    }
    Ok(arguments)
}

fn put(arguments: &mut Map<String, Value>, schema: &Schema, word: &str) -> Result<(), String> {
    if word.starts_with('{') {
        return merge(arguments, word);
    }
    if word == "-" || word.starts_with('@') {
        return merge(arguments, &content(word)?);
    }
    let Some((name, text)) = word.split_once('=') else {
        return Err(format!("expected `name=value`, got `{word}`"));
    };
    if let Some(name) = name.strip_suffix(':') {
        let value = serde_json::from_str(text).map_err(|error| format!("{name}: invalid JSON: {error}"))?;
        return schema.put(arguments, name, Entry::Value(value));
    }
    match text.strip_prefix('@') {
        Some(file) => schema.put(arguments, name, Entry::Text(&read(file)?)),
        None => schema.put(arguments, name, Entry::Text(text)),
    }
}

fn merge(arguments: &mut Map<String, Value>, text: &str) -> Result<(), String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => {
            arguments.extend(members);
            Ok(())
        }
        Ok(_) => Err("expected the arguments as a JSON object".to_owned()),
        Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
    }
}

/// Resolves `@file` to the content of a file, and `-` or `@-` to standard input. Other words stand for themselves.
pub(crate) fn content(word: &str) -> Result<String, String> {
    match word.strip_prefix('@') {
        Some(file) => read(file),
        None if word == "-" => read("-"),
        None => Ok(word.to_owned()),
    }
}

fn read(file: &str) -> Result<String, String> {
    let text = if file == "-" { io::read_to_string(io::stdin()) } else { fs::read_to_string(file) };
    text.map_err(|error| format!("cannot read `{file}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_all(words: &[&str]) -> Result<Value, String> {
        let schema = Schema::new(&json!({ "properties": { "a": { "type": "string" }, "n": {} } }).into());
        let mut arguments = Map::new();
        words.iter().try_for_each(|word| put(&mut arguments, &schema, word))?;
        Ok(Value::Object(arguments))
    }

    #[test]
    fn arguments_are_values_json_or_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("text");
        fs::write(&file, "from=file").unwrap();
        let from_file = format!("a=@{}", file.display());
        assert_eq!(read_all(&["a=x=y"]), Ok(json!({ "a": "x=y" })));
        assert_eq!(read_all(&["n:=[1]", "a="]), Ok(json!({ "n": [1], "a": "" })));
        assert_eq!(read_all(&[&from_file]), Ok(json!({ "a": "from=file" })));
        assert_eq!(read_all(&[r#"{"a": "1"}"#, "n=2"]), Ok(json!({ "a": "1", "n": 2 })));
    }

    #[test]
    fn unknown_arguments_are_refused() {
        for (word, reason) in [
            ("plain", "expected `name=value`, got `plain`"),
            ("{", "the arguments are not valid JSON"),
            ("n:=x", "n: invalid JSON"),
            ("a=@/no/such/file", "cannot read `/no/such/file`"),
        ] {
            let error = read_all(&[word]).unwrap_err();
            assert!(error.starts_with(reason), "{error}");
        }
    }
}
