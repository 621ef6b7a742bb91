//! The words of a command line that stand for the arguments of a tool or prompt.

use crate::{
    failure::{Code, Failure},
    schema::{Entry, Schema},
    session::Session,
};
use bowline_text::visible;
use serde_json::{Map, Value};
use std::{fs, io};

/// How words become arguments, for the help of the commands that take them.
pub(crate) const GRAMMAR: &str = "\
How arguments are written:
  name=value       a value of the type in the tool's schema; repeat it for more items of an array
  a.b=value        a member of an object
  name:=json       exactly this JSON; use it for a text that begins with `@`: name:='\"@home\"'
  name=@file       the content of a file; `name=@-` reads standard input
  {\"name\": ...}    all arguments as a JSON object; also `--args JSON`
  @file            all arguments as a JSON object in a file
  -                all arguments as a JSON object on standard input; also `@-`

Arguments are checked against the tool's schema before they are sent; `--unchecked` turns that off.
At a terminal, missing arguments are asked for.

Examples:
  bowline call everything sum numbers=1 numbers=2.5
  bowline call files write_file path=notes.txt content=@draft.txt
  echo '{\"message\": \"hi\"}' | bowline call everything echo -";

/// The arguments that words stand for, as the schema suggests, without checking names, types or what is missing.
pub(crate) fn unchecked(
    owner: &str,
    schema: &Schema,
    words: &[String],
    json: Option<&str>,
) -> Result<Map<String, Value>, Failure> {
    let refused = |reason: String| Failure::misused(format!("{}: {reason}", visible(owner)));
    let mut arguments = Map::new();
    if let Some(text) = json {
        merge(&mut arguments, &content(text).map_err(refused)?).map_err(refused)?;
    }
    let untyped = Schema::any();
    for word in words {
        let typed = put(&mut arguments, schema, word);
        typed.or_else(|_| put(&mut arguments, &untyped, word)).map_err(refused)?;
    }
    Ok(arguments)
}

/// The arguments of a tool or prompt that words stand for, complete: what is missing is asked for, where somebody can be
/// asked. Who cannot be is told to `look`.
pub(crate) async fn arguments(
    session: &Session<'_>,
    owner: &str,
    look: &str,
    schema: &Schema,
    words: &[String],
    json: Option<&str>,
) -> Result<Map<String, Value>, Failure> {
    let refused = |reason: String| Failure::misused(format!("{}: {reason}", visible(owner)));
    let mut arguments = Map::new();
    if let Some(text) = json {
        merge(&mut arguments, &content(text).map_err(refused)?).map_err(refused)?;
    }
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
        let failure = refused(format!("expected {}, which is required", names.join(", ")));
        return Err(failure.advise(format!("`{look}` shows what it takes")));
    }
    let screen = session.context.screen;
    for property in missing {
        if let Some(description) = property.description() {
            screen.note(&format!("  | {}", visible(description)));
        }
        loop {
            let prompt = format!("{} ({}): ", visible(property.name), visible(&property.kind()));
            let line =
                session.user.line(&prompt).await.map_err(|_| Failure::new(Code::Denied, "no answer"))?;
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
        return Err(format!("expected an argument as `name=value`, got `{word}`"));
    };
    if let Some(name) = name.strip_suffix(':') {
        let value = serde_json::from_str(text).map_err(|error| format!("{name}: expected JSON: {error}"))?;
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
        Ok(_) => Err("expected the arguments to be a JSON object".to_owned()),
        Err(error) => Err(format!("expected the arguments as JSON: {error}")),
    }
}

/// What a word stands for: the content of a file (`@file`), of standard input (`-`, `@-`), or itself.
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
    fn words_are_values_json_or_files() {
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
    fn what_is_no_argument_is_refused() {
        for (word, reason) in [
            ("plain", "expected an argument as `name=value`, got `plain`"),
            ("{", "expected the arguments as JSON"),
            ("n:=x", "n: expected JSON"),
            ("a=@/no/such/file", "cannot read `/no/such/file`"),
        ] {
            let told = read_all(&[word]).unwrap_err();
            assert!(told.starts_with(reason), "{told}");
        }
    }
}
