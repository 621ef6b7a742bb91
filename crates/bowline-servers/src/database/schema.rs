//! The schema of a database, independent of the engine.

use bowline::prelude::*;
use std::fmt::Write as _;

/// The name and kind of a table or view.
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
    /// The columns, in order.
    pub columns: Vec<TableColumn>,
    /// The foreign keys.
    pub foreign_keys: Vec<ForeignKey>,
    /// The indexes.
    pub indexes: Vec<Index>,
    /// The statement that creates it, generated if the database does not store it.
    pub sql: String,
}

/// A column of a table.
#[data]
#[derive(Default, PartialEq, Eq)]
pub struct TableColumn {
    /// The name.
    pub name: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// Whether it is part of the primary key.
    pub primary_key: bool,
    /// The default expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// A foreign key.
#[data]
#[derive(PartialEq, Eq)]
pub struct ForeignKey {
    /// The referencing columns.
    pub columns: Vec<String>,
    /// The referenced table.
    pub table: String,
    /// The referenced columns.
    pub references: Vec<String>,
}

/// An index of a table.
#[data]
#[derive(PartialEq, Eq)]
pub struct Index {
    /// The name.
    pub name: String,
    /// Whether the index is unique.
    pub unique: bool,
    /// The indexed columns; empty for an expression.
    pub columns: Vec<String>,
}

/// Quotes an identifier.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Generates the statement that creates the table.
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
