//! What an operator wants to know about the server.

use bowline_store::{Finding, StoreError};

use crate::connection::{Connection, Connector};
use crate::failure::Failure;

pub(crate) async fn inspect(connector: &Connector) -> Result<Vec<Finding>, StoreError> {
    let connection = connector.connect().await?;
    let version = setting(&connection, "server_version").await?;
    let mut findings = vec![Finding::ok("version", format!("PostgreSQL {version}"))];
    let rights = one(
        &connection,
        "SELECT string_agg(wanted, ', ') FROM unnest(ARRAY['SELECT','INSERT','UPDATE','DELETE']) AS wanted
         WHERE NOT has_table_privilege('bowline_records', wanted)",
    )
    .await?;
    findings.push(match rights {
        None => Finding::ok("rights", "read and write"),
        Some(missing) => Finding::error("rights", format!("{missing} missing"))
            .advice("grant SELECT, INSERT, UPDATE and DELETE on bowline_records to the role"),
    });
    let fsync = setting(&connection, "fsync").await?;
    let commit = setting(&connection, "synchronous_commit").await?;
    let durability = format!("fsync {fsync}, synchronous_commit {commit}");
    findings.push(match (fsync.as_str(), commit.as_str()) {
        ("on", "off") => Finding::warning("durability", durability)
            .advice("a crash loses the last commits; set synchronous_commit = on"),
        ("on", _) => Finding::ok("durability", durability),
        _ => {
            Finding::error("durability", durability).advice("a crash can damage the database; set fsync = on")
        }
    });
    let replica: bool = connection
        .client
        .query_one("SELECT pg_is_in_recovery()", &[])
        .await
        .map_err(|error| Failure::Statement(error).of_read())?
        .get(0);
    if replica {
        findings.push(Finding::error("role", "standby").advice("name the primary in the URL"));
    }
    let rows = one(
        &connection,
        "SELECT reltuples::bigint::text FROM pg_class WHERE oid = 'bowline_records'::regclass",
    )
    .await?
    .filter(|rows| !rows.starts_with('-'));
    findings.push(Finding::ok(
        "rows",
        rows.map_or_else(|| "not counted yet".to_owned(), |rows| format!("about {rows}")),
    ));
    let oldest = one(
        &connection,
        "SELECT extract(epoch FROM max(clock_timestamp() - xact_start))::bigint::text FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .await?;
    let seconds: u64 = oldest.and_then(|seconds| seconds.parse().ok()).unwrap_or_default();
    let value = format!("{seconds} s");
    findings.push(if seconds > 300 {
        Finding::warning("oldest transaction", value)
            .advice("rows that are no longer needed cannot be cleaned up, and claims become slow; find it in pg_stat_activity")
    } else {
        Finding::ok("oldest transaction", value)
    });
    Ok(findings)
}

async fn setting(connection: &Connection, name: &str) -> Result<String, StoreError> {
    Ok(one(connection, &format!("SELECT current_setting('{name}')")).await?.unwrap_or_default())
}

async fn one(connection: &Connection, statement: &str) -> Result<Option<String>, StoreError> {
    let row = connection.client.query_one(statement, &[]).await;
    row.and_then(|row| row.try_get(0)).map_err(|error| Failure::Statement(error).of_read())
}
