//! Collects the rows of a result within the limits, and formats them.

use super::engine::Limits;
use crate::text::cut;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bowline::{
    prelude::*,
    server::IntoOutput,
    types::{CallToolResult, RawJson},
};
use serde_json::Value;
use std::fmt::Write as _;

/// The maximum number of bytes shown of a binary value.
const MAX_BINARY: usize = 4096;
/// The maximum width of a column in the text table.
const MAX_WIDTH: usize = 60;

/// The result of a query.
#[data]
#[derive(PartialEq)]
pub struct Rows {
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// One array per row, with one value per column. Binary values are objects with `base64` and their size in `bytes`.
    pub rows: Vec<Vec<Value>>,
    /// Whether the result is incomplete.
    pub truncated: bool,
    /// Why the result is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A column of a result.
#[data]
#[derive(PartialEq, Eq)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The type, if the database provides it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// Collects rows until a limit is reached.
#[derive(Debug)]
pub(super) struct Collector {
    limits: Limits,
    rows: Rows,
    bytes: usize,
}

/// Whether to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    More,
    Enough,
}

/// How to take a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    Whole,
    /// Cut each value to this many bytes.
    Shortened(usize),
    Nothing,
}

impl Collector {
    pub(super) fn new(columns: Vec<Column>, limits: Limits) -> Self {
        Self { limits, rows: Rows { columns, rows: Vec::new(), truncated: false, note: None }, bytes: 0 }
    }

    /// Decides how to take a row of about `size` bytes, before its values are copied.
    pub(super) fn fit(&mut self, size: usize) -> Fit {
        if self.rows.rows.len() >= self.limits.rows {
            self.enough(format!("only the first {} rows are shown", self.limits.rows));
            return Fit::Nothing;
        }
        if self.bytes.saturating_add(size) <= self.limits.bytes {
            return Fit::Whole;
        }
        if self.rows.rows.is_empty() {
            // A part of the first row is better than nothing.
            return Fit::Shortened(self.limits.bytes / self.rows.columns.len().max(1));
        }
        self.enough(format!("the result was cut at {} bytes", self.limits.bytes));
        Fit::Nothing
    }

    /// Adds a row if it fits.
    pub(super) fn push(&mut self, row: Vec<Value>) -> Wanted {
        let size = row.iter().map(size_of).sum();
        match self.fit(size) {
            Fit::Nothing => Wanted::Enough,
            Fit::Shortened(share) => self.push_shortened(row, share),
            Fit::Whole => {
                self.bytes += size;
                self.rows.rows.push(row);
                Wanted::More
            }
        }
    }

    /// Adds a row with values cut to `share` bytes each. It is the last row.
    pub(super) fn push_shortened(&mut self, mut row: Vec<Value>, share: usize) -> Wanted {
        for value in &mut row {
            shorten(value, share);
        }
        self.bytes += row.iter().map(size_of).sum::<usize>();
        self.rows.rows.push(row);
        self.enough(format!("long values were cut to fit into {} bytes", self.limits.bytes))
    }

    fn enough(&mut self, note: String) -> Wanted {
        self.rows.truncated = true;
        self.rows.note = Some(note);
        Wanted::Enough
    }

    pub(super) fn finish(self) -> Rows {
        self.rows
    }
}

/// Returns the approximate size of the value as JSON.
fn size_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(size_of).sum::<usize>() + 2,
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + 4 + size_of(value)).sum::<usize>() + 2
        }
    }
}

fn shorten(value: &mut Value, bytes: usize) {
    match value {
        Value::String(text) if text.len() > bytes => {
            text.truncate(cut(text, bytes).len());
            text.push('…');
        }
        Value::Array(_) | Value::Object(_) if size_of(value) > bytes => {
            *value = too_long();
        }
        _ => {}
    }
}

/// Returns the placeholder for a value that cannot be cut.
pub(super) fn too_long() -> Value {
    Value::from("… (too long)")
}

/// Cuts a text to slightly more than `max` bytes, so that the caller notices that it is too long.
pub(super) fn lossy(text: &[u8], max: usize) -> Value {
    String::from_utf8_lossy(text.get(..max.saturating_add(4)).unwrap_or(text)).into()
}

/// Returns the approximate size of a binary value of this length as JSON.
pub(super) fn binary_size(length: usize) -> usize {
    length.min(MAX_BINARY) / 3 * 4 + 40
}

/// Formats a binary value, or the start of a long one.
pub(super) fn binary(bytes: &[u8]) -> Value {
    let shown = bytes.get(..MAX_BINARY).unwrap_or(bytes);
    json!({ "base64": STANDARD.encode(shown), "bytes": bytes.len() })
}

/// Formats a number; as text if JSON cannot represent it.
pub(super) fn float(number: f64) -> Value {
    serde_json::Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
}

impl Rows {
    /// Formats the rows as a text table.
    pub fn to_text(&self) -> String {
        let header: Vec<String> = self.columns.iter().map(|column| cell(&column.name)).collect();
        let body: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(|value| cell(&text(value))).collect()).collect();
        let mut widths: Vec<usize> = header.iter().map(|name| name.chars().count()).collect();
        for row in &body {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut table = line(&header, &widths);
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat((*width).max(1))).collect();
        table += &line(&rule, &widths);
        for row in &body {
            table += &line(row, &widths);
        }
        let count = self.rows.len();
        let rows = if count == 1 { "row" } else { "rows" };
        // Writing to a string does not fail.
        let _ = match &self.note {
            Some(note) => write!(table, "({count} {rows}; {note})"),
            None => write!(table, "({count} {rows})"),
        };
        table
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<String> =
        cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
    format!("{}\n", padded.join(" | ").trim_end())
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::String(text) => text.clone(),
        Value::Object(members) if members.contains_key("base64") => {
            format!("({} bytes)", members.get("bytes").unwrap_or(&Value::Null))
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Formats a value on one line of limited width.
fn cell(text: &str) -> String {
    let mut shown = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == MAX_WIDTH {
            shown.push('…');
            break;
        }
        shown.push(if character.is_control() { ' ' } else { character });
    }
    shown
}

/// Returns structured content and a text table.
impl IntoOutput for Rows {
    fn into_output(self) -> Result<CallToolResult> {
        let table = self.to_text();
        let mut result = Json(self).into_output()?;
        result.content = vec![Content::text(table)];
        Ok(result)
    }

    fn output_schema() -> Option<RawJson> {
        Json::<Self>::output_schema()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn collect(limits: Limits, rows: Vec<Vec<Value>>) -> Rows {
        let columns = ["id", "name"].map(|name| Column { name: name.into(), kind: None });
        let mut collector = Collector::new(columns.into(), limits);
        for row in rows {
            if collector.push(row) == Wanted::Enough {
                break;
            }
        }
        collector.finish()
    }

    #[test]
    fn rows_become_a_table() {
        let rows = vec![
            vec![json!(1), json!("Ann")],
            vec![json!(null), json!("two\nlines")],
            vec![json!(3.5), binary(b"abc")],
        ];
        expect![[r"
            id   | name
            ---- | ---------
            1    | Ann
            NULL | two lines
            3.5  | (3 bytes)
            (3 rows)"]]
        .assert_eq(&collect(Limits::default(), rows).to_text());
    }

    #[test]
    fn rows_above_the_limit_are_reported() {
        let rows = || (0..5).map(|id| vec![json!(id), json!("x".repeat(10))]).collect::<Vec<_>>();
        let exact = collect(Limits { rows: 5, ..Limits::default() }, rows());
        assert_eq!((exact.rows.len(), exact.truncated), (5, false));
        let fewer = collect(Limits { rows: 4, ..Limits::default() }, rows());
        assert_eq!((fewer.rows.len(), fewer.truncated), (4, true));
        assert_eq!(fewer.note.as_deref(), Some("only the first 4 rows are shown"));
        // Each row is taken for 20 bytes.
        let exact = collect(Limits { bytes: 100, ..Limits::default() }, rows());
        assert_eq!((exact.rows.len(), exact.truncated), (5, false));
        let fewer = collect(Limits { bytes: 99, ..Limits::default() }, rows());
        assert_eq!((fewer.rows.len(), fewer.truncated), (4, true));
    }

    #[test]
    fn a_single_long_row_is_cut() {
        let rows = vec![vec![json!(1), json!("ä".repeat(1000))], vec![json!(2), json!("b")]];
        let cut = collect(Limits { bytes: 100, ..Limits::default() }, rows);
        assert_eq!(cut.rows, [[json!(1), json!(format!("{}…", "ä".repeat(25)))]]);
        assert!(cut.truncated);
    }

    #[test]
    fn numbers_without_a_json_form_become_text() {
        assert_eq!(float(f64::NAN), "NaN");
        assert_eq!(float(f64::INFINITY), "inf");
        assert_eq!(float(0.5), 0.5);
    }
}
