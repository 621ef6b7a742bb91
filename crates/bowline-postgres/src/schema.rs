//! The table, and how it is created.

use bowline_store::StoreError;

use crate::connection::{Connection, Connector};
use crate::failure::Failure;

/// The format of the table. A table of a later format is refused.
const FORMAT: i32 = 1;

/// The oldest version that is supported, as `server_version_num` writes it.
const OLDEST_SERVER: i32 = 140_000;

/// Two processes may create the table at the same time; one waits for the other.
const LOCK: i64 = 0x626f_776c_696e_6531;

const TABLES: &str = r#"
    CREATE TABLE IF NOT EXISTS bowline_records (
        namespace text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, value bytea NOT NULL, version bigint NOT NULL,
        node bigint, claim bigint, lapses bigint NOT NULL, due bigint, queue text COLLATE "C", grp text COLLATE "C",
        expires bigint NOT NULL,
        PRIMARY KEY (namespace, key)
    ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
            autovacuum_vacuum_insert_scale_factor = 0.05);
    ALTER TABLE bowline_records ALTER COLUMN value SET STORAGE EXTERNAL;
    CREATE INDEX IF NOT EXISTS bowline_records_due ON bowline_records (namespace, queue, due, key)
        WHERE due IS NOT NULL AND queue IS NOT NULL;
    CREATE INDEX IF NOT EXISTS bowline_records_group ON bowline_records (namespace, grp, key) WHERE grp IS NOT NULL;
    CREATE INDEX IF NOT EXISTS bowline_records_node ON bowline_records (namespace, node) WHERE node IS NOT NULL;
    CREATE INDEX IF NOT EXISTS bowline_records_expires ON bowline_records (namespace, expires);
    CREATE TABLE IF NOT EXISTS bowline_format (format integer NOT NULL);
"#;

/// Checks the server and creates what is missing.
pub(crate) async fn prepare(connector: &Connector) -> Result<(), StoreError> {
    let connection = connector.connect().await?;
    let failed = |error| Failure::Statement(error).of_read();
    let row = connection
        .client
        .query_one(
            "SELECT current_setting('server_version_num')::int, current_setting('server_version')",
            &[],
        )
        .await
        .map_err(failed)?;
    if row.get::<_, i32>(0) < OLDEST_SERVER {
        return Err(StoreError::invalid(format!(
            "PostgreSQL {} is too old; version 14 or later is needed",
            row.get::<_, String>(1)
        )));
    }
    // A role that may only use the table must not need the right to create one.
    if format(&connection).await.map_err(failed)? == Some(FORMAT) {
        return Ok(());
    }
    tracing::debug!("creating the table of the store");
    let create = format!(
        "BEGIN; SELECT pg_advisory_xact_lock({LOCK}); {TABLES}
         INSERT INTO bowline_format SELECT {FORMAT} WHERE NOT EXISTS (SELECT FROM bowline_format); COMMIT"
    );
    connection.client.batch_execute(&create).await.map_err(|error| {
        let failure = Failure::Statement(error).of_read();
        StoreError::invalid(format!("the tables of the store cannot be created: {failure}"))
            .with_source(failure)
    })?;
    match format(&connection).await.map_err(failed)? {
        Some(FORMAT) => Ok(()),
        other => Err(StoreError::invalid(format!(
            "the tables have format {}, and this version knows {FORMAT}; use a newer version of the program",
            other.unwrap_or_default()
        ))),
    }
}

/// The format of the tables that exist.
async fn format(connection: &Connection) -> Result<Option<i32>, tokio_postgres::Error> {
    let exists: bool =
        connection.client.query_one("SELECT to_regclass('bowline_format') IS NOT NULL", &[]).await?.get(0);
    if !exists {
        return Ok(None);
    }
    Ok(connection.client.query_opt("SELECT format FROM bowline_format", &[]).await?.map(|row| row.get(0)))
}
