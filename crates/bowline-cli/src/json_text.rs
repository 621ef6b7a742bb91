//! Formats JSON for a terminal: indented, colored, and as a table if it is a list of similar objects.

use crate::{
    screen::{Screen, Tone},
    table::{cut, one_line},
};
use bowline_text::{hidden_characters, visible};
use serde_json::{Map, Value};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// The maximum number of columns and rows of a table.
const MAX_COLUMNS: usize = 12;
const MAX_ROWS: usize = 1_000;
/// The minimum width of a column, unless its content is narrower.
const MIN_WIDTH: usize = 6;
/// The gap between columns.
const GAP: usize = 2;

/// Formats an object or array with one line per member. Only white space changes.
pub(crate) fn laid_out(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let (mut page, mut depth, mut quoted, mut escaped) = (String::new(), 0_usize, false, false);
    let broken = |page: &mut String, depth: usize| {
        page.push('\n');
        page.push_str(&"  ".repeat(depth));
    };
    for letter in text.chars() {
        if quoted {
            quoted = letter != '"' || escaped;
            escaped = letter == '\\' && !escaped;
            page.push(letter);
            continue;
        }
        let is_fresh = page.ends_with(['{', '[']);
        match letter {
            ' ' | '\t' | '\r' | '\n' => continue,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !is_fresh {
                    broken(&mut page, depth);
                }
            }
            _ if is_fresh || page.ends_with(',') => broken(&mut page, depth),
            _ => {}
        }
        page.push(letter);
        match letter {
            '{' | '[' => depth += 1,
            ':' => page.push(' '),
            '"' => quoted = true,
            _ => {}
        }
    }
    Some(page)
}

/// Escapes invisible and control characters as JSON escapes. The value stays the same.
pub(crate) fn escaped(text: String) -> String {
    if text.is_ascii() && !text.contains('\u{7f}') || text.lines().all(|line| hidden_characters(line) == 0) {
        return text;
    }
    let mut page = String::with_capacity(text.len());
    for letter in text.chars() {
        let is_plain = letter == '\n' || letter.is_ascii() && letter != '\u{7f}';
        if is_plain || hidden_characters(letter.encode_utf8(&mut [0; 4])) == 0 {
            page.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            let _ = write!(page, "\\u{unit:04x}");
        }
    }
    page
}

/// Colors formatted JSON.
pub(crate) fn colored(screen: Screen, text: &str) -> String {
    let mut page = String::with_capacity(text.len() * 2);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (tone, end) = match first {
            '"' => {
                let end = end_of_string(rest);
                let is_name = rest[end..].starts_with(':');
                (Some(if is_name { Tone::Name } else { Tone::Good }), end)
            }
            'a'..='z' | '0'..='9' | '-' => {
                let is_end = |letter: char| !letter.is_ascii_alphanumeric() && !"+-.".contains(letter);
                (Some(Tone::Warning), rest.find(is_end).unwrap_or(rest.len()))
            }
            _ => (
                None,
                rest.find(|letter: char| letter == '"' || letter == '-' || letter.is_ascii_alphanumeric())
                    .unwrap_or(rest.len()),
            ),
        };
        let (part, after) = rest.split_at(end.max(first.len_utf8()));
        match tone {
            Some(tone) => page.push_str(&screen.paint(tone, part)),
            None => page.push_str(part),
        }
        rest = after;
    }
    page
}

/// Returns the end of the string literal at the start of a text.
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (place, letter) in text.char_indices().skip(1) {
        match letter {
            '"' if !is_escaped => return place + 1,
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    text.len()
}

/// Returns the lines of a table for a list of similar objects, or an object that contains only such a list.
///
/// Returns `None` if a table would not be readable: nested values, too many columns, or a narrow terminal.
pub(crate) fn table(screen: Screen, text: &str) -> Option<Vec<String>> {
    let width = screen.width()?;
    let text = text.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let rows = match &value {
        Value::Array(rows) => rows,
        Value::Object(members) if members.len() == 1 => members.values().next()?.as_array()?,
        _ => return None,
    };
    let rows: Vec<&Map<String, Value>> = rows.iter().map(Value::as_object).collect::<Option<_>>()?;
    let mut names: Vec<&str> = Vec::new();
    for name in rows.iter().flat_map(|row| row.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
        if names.len() > MAX_COLUMNS {
            return None;
        }
    }
    if rows.is_empty() || rows.len() > MAX_ROWS || names.is_empty() {
        return None;
    }
    let columns: Vec<Vec<String>> = names
        .iter()
        .map(|name| rows.iter().map(|row| cell(row.get(*name))).collect())
        .collect::<Option<_>>()?;
    let names: Vec<String> = names.into_iter().map(visible).collect();
    let widest = |(name, cells): (&String, &Vec<String>)| {
        cells.iter().map(|cell| cell.width()).chain([name.width()]).max().unwrap_or_default()
    };
    let widths = fitted(&names.iter().zip(&columns).map(widest).collect::<Vec<_>>(), width)?;
    let line = |cells: Vec<&str>| {
        let cells = cells.into_iter().zip(&widths).map(|(cell, width)| {
            let cell = cut(cell, *width);
            let gap = width.saturating_sub(cell.width());
            cell + &" ".repeat(gap)
        });
        cells.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
    };
    let mut lines = vec![screen.paint(Tone::Heading, &line(names.iter().map(String::as_str).collect()))];
    lines.extend((0..rows.len()).map(|row| line(columns.iter().map(|cells| cells[row].as_str()).collect())));
    Some(lines)
}

/// Formats a value as a cell; `None` if it is nested.
fn cell(value: Option<&Value>) -> Option<String> {
    match value {
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::String(text)) => Some(visible(&one_line(text))),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => Some(value.to_string()),
        Some(Value::Array(_) | Value::Object(_)) => None,
    }
}

/// Shrinks the widest columns to fit the terminal. `None` if they would become too narrow.
fn fitted(widths: &[usize], total: usize) -> Option<Vec<usize>> {
    let room = total.checked_sub(GAP * widths.len().saturating_sub(1))?;
    let mut fitted = widths.to_vec();
    while fitted.iter().sum::<usize>() > room {
        let widest = fitted.iter_mut().max()?;
        if *widest <= MIN_WIDTH {
            return None;
        }
        *widest = (*widest / 2).max(MIN_WIDTH);
    }
    // Give back the space that halving freed.
    let mut left = room - fitted.iter().sum::<usize>();
    for (width, wanted) in fitted.iter_mut().zip(widths) {
        let more = wanted.saturating_sub(*width).min(left);
        *width += more;
        left -= more;
    }
    Some(fitted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[test]
    fn formatting_changes_only_white_space() {
        let text = r#" {"a{,\"":[1.50,{},[ ]],"b" : {"c":"\\","d":12345678901234567890123}}"#;
        expect![[r#"
            {
              "a{,\"": [
                1.50,
                {},
                []
              ],
              "b": {
                "c": "\\",
                "d": 12345678901234567890123
              }
            }"#]]
        .assert_eq(&laid_out(text).unwrap());
        assert_eq!(laid_out("[1, 2"), None);
        assert_eq!(laid_out("17"), None);
        assert_eq!(laid_out("[brackets] in a text"), None);
    }

    #[test]
    fn json_is_colored_by_type() {
        let text = r#"{ "a\"": "b: \\", "n": -1.5e3, "t": [true, null] }"#;
        let shown = colored(Screen::colored(None), text).replace('\u{1b}', "^");
        expect![[r#"{ ^[36m"a\""^[0m: ^[32m"b: \\"^[0m, ^[36m"n"^[0m: ^[33m-1.5e3^[0m, ^[36m"t"^[0m: [^[33mtrue^[0m, ^[33mnull^[0m] }"#]]
            .assert_eq(&shown);
        assert_eq!(colored(Screen::plain(None), text), text);
    }

    #[test]
    fn hidden_characters_are_escaped_as_json() {
        let text = "{\n  \"a\": \"\u{9b}2J\u{202e}\u{e0041}ä\u{7f}\"\n}";
        let shown = escaped(text.to_owned());
        expect![[r#"
            {
              "a": "\u009b2J\u202e\udb40\udc41ä\u007f"
            }"#]]
        .assert_eq(&shown);
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(read(&shown), read(text));
    }

    fn check(width: usize, text: &str, expected: &Expect) {
        let lines = table(Screen::plain(Some(width)), text);
        expected.assert_eq(&lines.map_or_else(|| "no table".to_owned(), |lines| lines.join("\n")));
    }

    #[test]
    fn lists_of_objects_become_tables() {
        let text =
            r#"[{"id":1,"name":"Ann","note":"likes\nlong walks"},{"id":20,"name":"漢字","done":true}]"#;
        check(
            80,
            text,
            &expect![[r"
            id  name  note              done
            1   Ann   likes long walks
            20  漢字                    true"]],
        );
        check(
            30,
            text,
            &expect![[r"
                id  name  note            done
                1   Ann   likes long wa…
                20  漢字                  true"]],
        );
        check(
            80,
            r#"{"rows":[{"a":1}]}"#,
            &expect![[r"
            a
            1"]],
        );
    }

    #[test]
    fn unsuitable_json_is_not_shown_as_a_table() {
        for text in [
            "[]",
            "[1]",
            r#"[{"a":[1]}]"#,
            r#"[{"a":1},2]"#,
            r#"{"a":1}"#,
            r#"{"a":[{"b":1}],"c":2}"#,
            "text",
            "[{}]",
        ] {
            check(80, text, &expect!["no table"]);
        }
        check(10, r#"[{"first column":1,"second column":2}]"#, &expect!["no table"]);
    }
}
