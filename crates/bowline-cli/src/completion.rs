//! Completion candidates for command lines: commands, names and arguments.

use crate::cache::Names;

/// The commands that address one server.
pub(crate) const COMMANDS: [&str; 11] = [
    "call",
    "complete",
    "info",
    "ping",
    "prompt",
    "prompts",
    "read",
    "request",
    "resources",
    "templates",
    "tools",
];

/// Returns the candidates for `current`, which follows `words`. The first word is the command. All candidates start with `current`.
pub(crate) fn candidates(names: &Names, words: &[String], current: &str) -> Vec<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let found: Vec<String> = match words.as_slice() {
        [] => COMMANDS.iter().map(|command| (*command).to_owned()).collect(),
        ["call" | "tools"] => names.tools.keys().cloned().collect(),
        ["prompt" | "complete"] => names.prompts.keys().cloned().collect(),
        ["read"] => names.resources.clone(),
        ["call", tool, given @ ..] => match names.tools.get(*tool) {
            None => Vec::new(),
            Some(arguments) => match current.split_once('=') {
                Some((name, _)) => {
                    let choices = arguments.get(name).into_iter().flatten();
                    // Values that start with `@` would be read as file names.
                    let choices = choices.filter(|choice| !choice.starts_with('@'));
                    choices.map(|choice| format!("{name}={choice}")).collect()
                }
                None => without_value(arguments.keys(), given),
            },
        },
        ["prompt" | "complete", prompt, given @ ..] => {
            without_value(names.prompts.get(*prompt).into_iter().flatten(), given)
        }
        [_, ..] => Vec::new(),
    };
    found.into_iter().filter(|candidate| candidate.starts_with(current) && !is_option(candidate)).collect()
}

/// Returns whether a name would be parsed as an option. A server could use this to write files or select a configuration.
pub(crate) fn is_option(name: &str) -> bool {
    name.starts_with('-')
}

/// Returns the arguments that have no value yet.
fn without_value<'a>(names: impl Iterator<Item = &'a String>, given: &[&str]) -> Vec<String> {
    let is_given = |name: &str| given.iter().any(|word| word.split(['=', ':']).next() == Some(name));
    // Other names would be parsed as a file, as JSON, or as a different name.
    let is_name = |name: &str| !name.starts_with(['@', '{']) && !name.ends_with(':') && !name.contains('=');
    names.filter(|name| is_name(name) && !is_given(name)).map(|name| format!("{name}=")).collect()
}

/// Splits a line into words like a shell, with quotes and backslashes. The last word is the one at the end of the line and can
/// be empty. An unclosed quote extends to the end.
pub(crate) fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut quote, mut inside) = (None, false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let escapes = letter == '\\' && quote != Some('\'');
        let last = words.last_mut().expect("there is always a last word");
        match (letter, quote) {
            (_, _) if escapes => {
                last.extend(letters.next());
                inside = true;
            }
            (_, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => last.push(letter),
            ('"' | '\'', None) => {
                quote = Some(letter);
                inside = true;
            }
            (blank, None) if blank.is_whitespace() => {
                if inside {
                    words.push(String::new());
                }
                inside = false;
            }
            (_, None) => {
                last.push(letter);
                inside = true;
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn lines_are_split_like_in_a_shell() {
        let check = |line: &str, words: &[&str]| assert_eq!(split(line), words, "{line}");
        check("", &[""]);
        check("call ", &["call", ""]);
        check("  call  echo a='b c' d=\"e f\"", &["call", "echo", "a=b c", "d=e f"]);
        check(r#"x\ y '\' "\"" "open"#, &["x y", "\\", "\"", "open"]);
        check("'' a", &["", "a"]);
    }

    #[test]
    fn matching_candidates_are_offered() {
        let arguments = |names: &[(&str, &[&str])]| -> BTreeMap<String, Vec<String>> {
            let owned = |choices: &[&str]| choices.iter().map(ToString::to_string).collect();
            names.iter().map(|(name, choices)| ((*name).to_owned(), owned(choices))).collect()
        };
        let names = Names {
            tools: [("paint".to_owned(), arguments(&[("color", &["red", "green"]), ("size", &[])]))].into(),
            prompts: [("code".to_owned(), vec!["language".to_owned()])].into(),
            resources: vec!["file:///a".to_owned()],
        };
        let check = |line: &str, expected: &[&str]| {
            let mut words = split(line);
            let current = words.pop().unwrap();
            assert_eq!(candidates(&names, &words, &current), expected, "{line}");
        };
        check("ca", &["call"]);
        check("call p", &["paint"]);
        check("call paint ", &["color=", "size="]);
        check("call paint color=red ", &["size="]);
        check("call paint color=g", &["color=green"]);
        check("prompt code ", &["language="]);
        check("read f", &["file:///a"]);
        check("call other ", &[]);
    }

    #[test]
    fn ambiguous_names_are_not_completed() {
        let choices = ["@/etc/passwd", "red"].map(ToOwned::to_owned).to_vec();
        let arguments =
            [("@/etc/passwd", vec![]), ("{}", vec![]), ("-o", vec![]), ("a:", vec![]), ("color", choices)];
        let arguments: BTreeMap<String, Vec<String>> =
            arguments.into_iter().map(|(name, choices)| (name.to_owned(), choices)).collect();
        let names = Names {
            tools: [("paint".to_owned(), arguments), ("--record=x".to_owned(), BTreeMap::new())].into(),
            prompts: BTreeMap::new(),
            resources: vec!["--config=x".to_owned()],
        };
        let check = |words: &[&str], current: &str, expected: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            assert_eq!(candidates(&names, &words, current), expected);
        };
        check(&["call"], "", &["paint"]);
        check(&["read"], "", &[]);
        check(&["call", "paint"], "", &["color="]);
        check(&["call", "paint"], "color=", &["color=red"]);
    }
}
