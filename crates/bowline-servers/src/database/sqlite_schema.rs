//! Reads the SQLite schema. The queries are limited, because a file of unknown origin can define any number of tables.

use super::schema::{ForeignKey, Index, Table, TableColumn, TableName};
use rusqlite::{Connection, OptionalExtension, Result};

pub(super) fn tables(connection: &Connection) -> Result<Vec<TableName>> {
    let mut statement = connection.prepare(
        "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
         ORDER BY name LIMIT 10000",
    )?;
    let found = statement.query_map([], |row| Ok(TableName { name: row.get(0)?, kind: row.get(1)? }))?;
    found.collect()
}

/// Describes a table or view; `None` if it does not exist.
pub(super) fn describe(connection: &Connection, name: &str) -> Result<Option<Table>> {
    let found: Option<(String, String, Option<String>)> = connection
        .query_row(
            "SELECT name, type, sql FROM sqlite_schema WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE",
            [name],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()?;
    let Some((name, kind, sql)) = found else { return Ok(None) };
    Ok(Some(Table {
        columns: columns(connection, &name)?,
        foreign_keys: foreign_keys(connection, &name)?,
        indexes: indexes(connection, &name)?,
        sql: sql.unwrap_or_default(),
        name,
        kind,
    }))
}

fn columns(connection: &Connection, table: &str) -> Result<Vec<TableColumn>> {
    let mut statement = connection.prepare(
        "SELECT name, type, \"notnull\", pk, dflt_value FROM pragma_table_xinfo(?1) WHERE hidden <> 1",
    )?;
    let found = statement.query_map([table], |row| {
        let primary_key: i64 = row.get(3)?;
        Ok(TableColumn {
            name: row.get(0)?,
            kind: row.get(1)?,
            nullable: !row.get::<_, bool>(2)? && primary_key == 0,
            primary_key: primary_key > 0,
            default: row.get(4)?,
        })
    })?;
    found.collect()
}

fn foreign_keys(connection: &Connection, table: &str) -> Result<Vec<ForeignKey>> {
    let mut statement = connection.prepare(
        "SELECT id, \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?1) ORDER BY id, seq LIMIT 10000",
    )?;
    let mut rows = statement.query([table])?;
    let mut keys: Vec<(i64, ForeignKey)> = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, from): (i64, String) = (row.get(0)?, row.get(2)?);
        // Without columns, the key references the primary key of the other table.
        let to: Option<String> = row.get(3)?;
        match keys.last_mut() {
            Some((last, key)) if *last == id => {
                key.columns.push(from);
                key.references.extend(to);
            }
            _ => {
                let references = to.into_iter().collect();
                keys.push((id, ForeignKey { columns: vec![from], table: row.get(1)?, references }));
            }
        }
    }
    Ok(keys.into_iter().map(|(_, key)| key).collect())
}

fn indexes(connection: &Connection, table: &str) -> Result<Vec<Index>> {
    let mut statement =
        connection.prepare("SELECT name, \"unique\" FROM pragma_index_list(?1) ORDER BY name LIMIT 1000")?;
    let named = statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut indexes = Vec::new();
    for found in named {
        let (name, unique): (String, bool) = found?;
        let mut statement = connection.prepare("SELECT name FROM pragma_index_info(?1) ORDER BY seqno")?;
        let columns = statement
            .query_map([&name], |row| Ok(row.get::<_, Option<String>>(0)?.unwrap_or_default()))?
            .collect::<Result<_>>()?;
        indexes.push(Index { name, unique, columns });
    }
    Ok(indexes)
}
