//! What a database says of its tables, in one form for every engine.

use bowline::prelude::*;
use std::fmt::Write as _;

/// A table or view, by name.
#[data]
#[derive(PartialEq, Eq)]
pub struct TableName {
    /// The name to use in statements.
    pub name: String,
    /// `table` or `view`.
    pub kind: String,
}

/// A table or view.
#[data]
#[derive(PartialEq, Eq)]
pub struct Table {
    /// The name to use in statements.
    pub name: String,
    /// `table` or `view`.
    pub kind: String,
    /// Its columns, in order.
    pub columns: Vec<TableColumn>,
    /// What refers to other tables.
    pub foreign_keys: Vec<ForeignKey>,
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// The statement that creates it; written from the rest where the database does not keep it.
    pub sql: String,
}

/// A column of a table.
#[data]
#[derive(Default, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether it is of the primary key.
    pub primary_key: bool,
    /// The expression for rows that do not name a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// Columns that refer to those of another table.
#[data]
#[derive(PartialEq, Eq)]
pub struct ForeignKey {
    /// The columns here.
    pub columns: Vec<String>,
    /// The other table.
    pub table: String,
    /// The columns there.
    pub references: Vec<String>,
}

/// An index of a table.
#[data]
#[derive(PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Whether no two rows have the same values.
    pub unique: bool,
    /// What it covers; an expression is left empty.
    pub columns: Vec<String>,
}

/// A name as SQL spells it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The statement that would create the table.
pub(super) fn create_statement(table: &Table) -> String {
    let quote = |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let mut parts: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let mut part = format!("{} {}", quoted(&column.name), column.kind);
            if !column.nullable {
                part += " NOT NULL";
            }
            if let Some(default) = &column.default {
                // Writing to a string does not fail.
                let _ = write!(part, " DEFAULT {default}");
            }
            part
        })
        .collect();
    let key: Vec<String> =
        table.columns.iter().filter(|column| column.primary_key).map(|column| column.name.clone()).collect();
    if !key.is_empty() {
        parts.push(format!("PRIMARY KEY ({})", quote(&key)));
    }
    for key in &table.foreign_keys {
        parts.push(format!(
            "FOREIGN KEY ({}) REFERENCES {} ({})",
            quote(&key.columns),
            key.table,
            quote(&key.references)
        ));
    }
    format!("CREATE TABLE {} (\n    {}\n)", table.name, parts.join(",\n    "))
}
