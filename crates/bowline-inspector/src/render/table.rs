//! Finds a table in structured content: a list of objects, alone or as the only list of an object.

use super::{Cell, Column, Shown, Table};
use serde_json::{Map, Value};

/// How many rows and columns a table has at most.
const MAX_ROWS: usize = 1000;
const MAX_COLUMNS: usize = 50;
/// The longest text of a cell.
const MAX_CELL: usize = 1000;

/// Returns the table in a value, if there is one.
pub(crate) fn table(value: &Value) -> Option<Table> {
    let list = match value {
        Value::Array(list) => list,
        Value::Object(members) => {
            if let (Some(Value::Array(columns)), Some(Value::Array(rows))) =
                (members.get("columns"), members.get("rows"))
                && let Some(table) = columns_and_rows(columns, rows)
            {
                return Some(table);
            }
            let mut lists = members.values().filter_map(|member| match member {
                Value::Array(list) if list.first().is_some_and(Value::is_object) => Some(list),
                _ => None,
            });
            let only = lists.next()?;
            if lists.next().is_some() {
                return None;
            }
            only
        }
        _ => return None,
    };
    let rows: Option<Vec<&Map<String, Value>>> = list.iter().take(MAX_ROWS).map(Value::as_object).collect();
    let rows = rows.filter(|rows| !rows.is_empty())?;
    let mut names: Vec<&String> = Vec::new();
    for name in rows.iter().flat_map(|row| row.keys()) {
        if !names.contains(&name) && names.len() < MAX_COLUMNS {
            names.push(name);
        }
    }
    let cells = rows.iter().map(|row| names.iter().map(|name| cell(row.get(*name))).collect()).collect();
    Some(made(names.into_iter().map(String::as_str), cells, list.len()))
}

/// Reads `{"columns": ["a", …], "rows": [[1, …], …]}`, as databases answer.
fn columns_and_rows(columns: &[Value], rows: &[Value]) -> Option<Table> {
    let names: Vec<&str> = columns
        .iter()
        .take(MAX_COLUMNS)
        .map(|column| column.as_str().or_else(|| column.get("name").and_then(Value::as_str)))
        .collect::<Option<_>>()?;
    let cells = rows.iter().take(MAX_ROWS).map(|row| match row {
        Value::Array(row) => Some((0..names.len()).map(|place| cell(row.get(place))).collect()),
        Value::Object(row) => Some(names.iter().map(|name| cell(row.get(*name))).collect()),
        _ => None,
    });
    let cells = cells.collect::<Option<_>>()?;
    Some(made(names.into_iter(), cells, rows.len()))
}

fn made<'a>(names: impl Iterator<Item = &'a str>, rows: Vec<Vec<Cell>>, total: usize) -> Table {
    let columns = names.enumerate().map(|(place, name)| {
        let mut cells =
            rows.iter().filter_map(|row| row.get(place)).filter(|cell| !cell.text.is_empty()).peekable();
        let has_any = cells.peek().is_some();
        Column { name: Shown::line(name), numeric: has_any && cells.all(|cell| cell.number.is_some()) }
    });
    Table { columns: columns.collect(), rows, total }
}

fn cell(value: Option<&Value>) -> Cell {
    let text = match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let text: String = bowline_text::visible(&text).chars().take(MAX_CELL).collect();
    Cell { text, number: value.and_then(Value::as_f64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_of_objects_are_tables() {
        let found =
            table(&json!({"rows":[{"city":"Lyon","n":4},{"city":"Bern","n":2,"x":null}],"count":2})).unwrap();
        assert_eq!(
            found
                .columns
                .iter()
                .map(|column| (column.name.text.as_str(), column.numeric))
                .collect::<Vec<_>>(),
            [("city", false), ("n", true), ("x", false)]
        );
        assert_eq!((found.rows.len(), found.total, found.rows[0][1].number), (2, 2, Some(4.0)));
        let found = table(&json!({"columns":["a","b"],"rows":[[1,"x"]]})).unwrap();
        assert_eq!((found.columns.len(), found.rows[0][1].text.as_str()), (2, "x"));
        for other in [json!({"a":1}), json!([1, 2]), json!([]), json!({"a":[{}],"b":[{}]}), json!("x")] {
            assert!(table(&other).is_none(), "{other}");
        }
    }
}
