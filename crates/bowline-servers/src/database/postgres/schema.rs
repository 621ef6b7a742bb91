//! Reads the PostgreSQL schema.

use super::Postgres;
use crate::database::{
    engine::{Limits, Statement, Tool},
    error::Error,
    queue::Slot,
    schema::{ForeignKey, Index, Table, TableColumn, TableName, create_statement},
};
use serde_json::{Value, json};

/// Lists user tables and views by the name that resolves to them.
const TABLES: &str = "
SELECT CASE WHEN pg_table_is_visible(c.oid) THEN quote_ident(relname)
            ELSE quote_ident(nspname) || '.' || quote_ident(relname) END,
       CASE WHEN relkind IN ('v', 'm') THEN 'view' ELSE 'table' END
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND nspname <> 'information_schema' AND nspname !~ '^pg_'
ORDER BY 1";

const TABLE: &str = "
SELECT c.oid::text, c.oid::regclass::text, CASE WHEN relkind IN ('v', 'm') THEN 'view' ELSE 'table' END,
       CASE WHEN relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid, true) END
FROM pg_class c WHERE c.oid = to_regclass($1) AND relkind IN ('r', 'p', 'v', 'm', 'f')";

const COLUMNS: &str = "
SELECT attname::text, format_type(atttypid, atttypmod), NOT attnotnull, pg_get_expr(adbin, adrelid),
       EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indisprimary AND attnum = ANY (indkey))
FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid = $1::text::oid AND attnum > 0 AND NOT attisdropped
ORDER BY attnum";

const FOREIGN_KEYS: &str = "
SELECT ARRAY(SELECT attname::text FROM unnest(conkey) WITH ORDINALITY AS k (n, i)
             JOIN pg_attribute ON attrelid = conrelid AND attnum = n ORDER BY i),
       confrelid::regclass::text,
       ARRAY(SELECT attname::text FROM unnest(confkey) WITH ORDINALITY AS k (n, i)
             JOIN pg_attribute ON attrelid = confrelid AND attnum = n ORDER BY i)
FROM pg_constraint WHERE conrelid = $1::text::oid AND contype = 'f'
ORDER BY conname";

const INDEXES: &str = "
SELECT indexrelid::regclass::text, indisunique,
       ARRAY(SELECT pg_get_indexdef(indexrelid, i, true) FROM generate_series(1, indnkeyatts) AS k (i) ORDER BY i)
FROM pg_index WHERE indrelid = $1::text::oid
ORDER BY 1";

pub(super) async fn tables(postgres: &Postgres, limits: Limits, slot: Slot) -> Result<Vec<TableName>, Error> {
    let rows = ask(postgres, TABLES, None, limits, slot).await?;
    Ok(rows.iter().map(|row| TableName { name: text(row, 0), kind: text(row, 1) }).collect())
}

pub(super) async fn describe(
    postgres: &Postgres,
    name: String,
    limits: Limits,
    slot: Slot,
) -> Result<Table, Error> {
    let found = ask(postgres, TABLE, Some(&name), limits, slot.clone()).await?;
    let Some(found) = found.first() else { return Err(Error::no_table(&name)) };
    let id = text(found, 0);
    let columns = ask(postgres, COLUMNS, Some(&id), limits, slot.clone()).await?;
    let foreign_keys = ask(postgres, FOREIGN_KEYS, Some(&id), limits, slot.clone()).await?;
    let indexes = ask(postgres, INDEXES, Some(&id), limits, slot).await?;
    let mut table = Table {
        name: text(found, 1),
        kind: text(found, 2),
        columns: columns.iter().map(|row| column(row)).collect(),
        foreign_keys: foreign_keys
            .iter()
            .map(|row| ForeignKey { columns: texts(row, 0), table: text(row, 1), references: texts(row, 2) })
            .collect(),
        indexes: indexes
            .iter()
            .map(|row| Index { name: text(row, 0), unique: is(row, 1), columns: texts(row, 2) })
            .collect(),
        sql: String::new(),
    };
    table.sql = match found.get(3).and_then(Value::as_str) {
        Some(definition) => format!("CREATE VIEW {} AS\n{definition}", table.name),
        None => create_statement(&table),
    };
    Ok(table)
}

fn column(row: &[Value]) -> TableColumn {
    TableColumn {
        name: text(row, 0),
        kind: text(row, 1),
        nullable: is(row, 2),
        default: row.get(3).and_then(Value::as_str).map(str::to_owned),
        primary_key: is(row, 4),
    }
}

/// Runs an internal query. The result is bounded by the size of the schema.
async fn ask(
    postgres: &Postgres,
    sql: &str,
    parameter: Option<&str>,
    limits: Limits,
    slot: Slot,
) -> Result<Vec<Vec<Value>>, Error> {
    let parameters = parameter.map(|parameter| json!(parameter)).into_iter().collect();
    let statement = Statement { sql: sql.into(), parameters, tool: Tool::Query };
    let limits = Limits { rows: 10_000, bytes: 16 * 1024 * 1024, ..limits };
    Ok(postgres.query(statement, limits, slot).await?.rows)
}

fn text(row: &[Value], index: usize) -> String {
    row.get(index).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn texts(row: &[Value], index: usize) -> Vec<String> {
    let items = row.get(index).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn is(row: &[Value], index: usize) -> bool {
    row.get(index).and_then(Value::as_bool).unwrap_or_default()
}
