//! What is done to the tables.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bowline_store::{
    ClaimChange, ClaimId, ClaimRequest, Depth, DueChange, Expect, Group, Key, NodeId, Owner, Put, PutError,
    Queue, Record, Time, TtlChange, Version,
};
use bytes::Bytes;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

const COLUMNS: &str = "key, value, version, node, claim, lapses, due, queue, grp, expires";

/// The wall clock: it is the same for all processes of the machine.
pub(crate) fn now() -> Time {
    Time::default().after(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// SQLite has signed integers. Bits are kept as they are; times are small enough.
fn bits(value: u64) -> i64 {
    value.cast_signed()
}

fn millis(time: Time) -> i64 {
    bits(time.as_millis())
}

fn time(millis: i64) -> Time {
    Time::from_millis(millis.max(0).cast_unsigned())
}

fn count_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Reads the columns of [`COLUMNS`].
fn record(row: &Row<'_>, now: Time) -> rusqlite::Result<Record> {
    let damaged = |column: usize, error: bowline_store::InvalidName| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
    };
    let key = Key::new(row.get::<_, String>(0)?).map_err(|error| damaged(0, error))?;
    let mut record = Record::new(
        key,
        Bytes::from(row.get::<_, Vec<u8>>(1)?),
        Version::from_bits(row.get::<_, i64>(2)?.cast_unsigned()),
        time(row.get(9)?),
        now,
    );
    record.owner = owner(row.get(3)?, row.get(4)?);
    record.lapses = row.get(5)?;
    record.due = row.get::<_, Option<i64>>(6)?.map(time);
    record.queue =
        row.get::<_, Option<String>>(7)?.map(Queue::new).transpose().map_err(|error| damaged(7, error))?;
    record.group =
        row.get::<_, Option<String>>(8)?.map(Group::new).transpose().map_err(|error| damaged(8, error))?;
    Ok(record)
}

fn owner(node: Option<i64>, claim: Option<i64>) -> Option<Owner> {
    Some(Owner {
        node: NodeId::from_bits(node?.cast_unsigned()),
        claim: ClaimId::from_bits(claim?.cast_unsigned()),
    })
}

fn find(connection: &Connection, namespace: &str, key: &Key, now: Time) -> rusqlite::Result<Option<Record>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM records WHERE namespace = ?1 AND key = ?2 AND expires > ?3"
        ))?
        .query_row(params![namespace, key.as_str(), millis(now)], |row| record(row, now))
        .optional()
}

pub(crate) fn get(
    connection: &Connection,
    namespace: &str,
    keys: &[Key],
) -> rusqlite::Result<Vec<Option<Record>>> {
    let now = now();
    keys.iter().map(|key| find(connection, namespace, key, now)).collect()
}

pub(crate) fn put(
    connection: &Connection,
    namespace: &str,
    put: &Put,
) -> rusqlite::Result<Result<Version, PutError>> {
    let now = now();
    if let Some(required) = &put.required_claim {
        let claim: Option<Option<i64>> = connection
            .prepare_cached("SELECT claim FROM records WHERE namespace = ?1 AND key = ?2 AND expires > ?3")?
            .query_row(params![namespace, required.key.as_str(), millis(now)], |row| row.get(0))
            .optional()?;
        if claim.flatten() != Some(bits(required.claim.bits())) {
            return Ok(Err(PutError::ClaimLost));
        }
    }
    let mut next = match (find(connection, namespace, &put.key, now)?, put.expect) {
        (None, Expect::Absent) => {
            let mut new = Record::new(put.key.clone(), Bytes::new(), Version::first(), now, now);
            (new.queue, new.group) = (put.queue.clone(), put.group.clone());
            new
        }
        (Some(mut old), Expect::Version(version)) if old.version == version => {
            old.version = version.next();
            old
        }
        _ => return Ok(Err(PutError::Conflict)),
    };
    next.value = put.value.clone();
    match put.due {
        DueChange::In(duration) => next.due = Some(now.after(duration)),
        DueChange::Never => next.due = None,
        _ => {}
    }
    match put.claim {
        ClaimChange::Release => next.owner = None,
        ClaimChange::Take { owner, lease } => {
            next.owner = Some(owner);
            next.due = Some(now.after(lease));
        }
        _ => {}
    }
    if let TtlChange::In(ttl) = put.ttl {
        next.expires = now.after(ttl);
    }
    save(connection, namespace, &next)?;
    Ok(Ok(next.version))
}

fn save(connection: &Connection, namespace: &str, record: &Record) -> rusqlite::Result<()> {
    connection
        .prepare_cached(&format!(
            "INSERT OR REPLACE INTO records (namespace, {COLUMNS})
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
        ))?
        .execute(params![
            namespace,
            record.key.as_str(),
            record.value.as_ref(),
            bits(record.version.bits()),
            record.owner.map(|owner| bits(owner.node.bits())),
            record.owner.map(|owner| bits(owner.claim.bits())),
            record.lapses,
            record.due.map(millis),
            record.queue.as_ref().map(Queue::as_str),
            record.group.as_ref().map(Group::as_str),
            millis(record.expires),
        ])?;
    Ok(())
}

pub(crate) fn remove(connection: &Connection, namespace: &str, keys: &[Key]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("DELETE FROM records WHERE namespace = ?1 AND key = ?2")?;
    for key in keys {
        statement.execute(params![namespace, key.as_str()])?;
    }
    Ok(())
}

pub(crate) fn list(
    connection: &Connection,
    namespace: &str,
    group: &Group,
    after: Option<&Key>,
    limit: usize,
) -> rusqlite::Result<Vec<Record>> {
    let now = now();
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM records
         WHERE namespace = ?1 AND grp = ?2 AND key > ?3 AND expires > ?4 ORDER BY key LIMIT ?5"
    ))?;
    // No key is empty, so all keys are after the empty text.
    let after = after.map_or("", Key::as_str);
    let rows = statement
        .query_map(params![namespace, group.as_str(), after, millis(now), count_of(limit)], |row| {
            record(row, now)
        })?;
    rows.collect()
}

pub(crate) fn scan(
    connection: &Connection,
    namespace: &str,
    after: &str,
    limit: usize,
) -> rusqlite::Result<Vec<Record>> {
    let now = now();
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM records WHERE namespace = ?1 AND key > ?2 AND expires > ?3 ORDER BY key LIMIT ?4"
    ))?;
    let rows = statement
        .query_map(params![namespace, after, millis(now), count_of(limit)], |row| record(row, now))?;
    rows.collect()
}

pub(crate) fn depth(connection: &Connection, namespace: &str, queues: &[Queue]) -> rusqlite::Result<Depth> {
    let now = now();
    let mut statement = connection.prepare_cached(
        "SELECT count(*) FILTER (WHERE due <= ?3), count(*) FILTER (WHERE due > ?3 AND node IS NOT NULL),
             count(*) FILTER (WHERE due > ?3 AND node IS NULL), min(due)
         FROM records WHERE namespace = ?1 AND queue = ?2 AND due IS NOT NULL AND expires > ?3",
    )?;
    let mut depth = Depth::default();
    for queue in queues {
        statement.query_row(params![namespace, queue.as_str(), millis(now)], |row| {
            depth.due += row.get::<_, i64>(0)?.cast_unsigned();
            depth.claimed += row.get::<_, i64>(1)?.cast_unsigned();
            depth.scheduled += row.get::<_, i64>(2)?.cast_unsigned();
            if let Some(due) = row.get::<_, Option<i64>>(3)? {
                depth.oldest = depth.oldest.max(now.since(time(due)));
            }
            Ok(())
        })?;
    }
    Ok(depth)
}

pub(crate) fn count(connection: &Connection, namespace: &str, group: &Group) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT count(*) FROM records WHERE namespace = ?1 AND grp = ?2 AND expires > ?3")?
        .query_row(params![namespace, group.as_str(), millis(now())], |row| row.get::<_, i64>(0))
        .map(i64::cast_unsigned)
}

pub(crate) fn claim(
    connection: &Connection,
    namespace: &str,
    claim: &ClaimRequest,
) -> rusqlite::Result<Vec<Record>> {
    let now = now();
    let mut due = Vec::new();
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM records
         WHERE namespace = ?1 AND queue = ?2 AND due <= ?3 AND expires > ?3 AND (?4 OR node IS NULL)
         ORDER BY due, key LIMIT ?5"
    ))?;
    for queue in &claim.queues {
        let rows = statement.query_map(
            params![namespace, queue.as_str(), millis(now), claim.lapsed, count_of(claim.limit)],
            |row| record(row, now),
        )?;
        for row in rows {
            due.push(row?);
        }
    }
    due.sort_by(|a, b| (a.due, &a.key).cmp(&(b.due, &b.key)));
    due.truncate(claim.limit);
    for record in &mut due {
        record.lapses = record.lapses.saturating_add(u32::from(record.owner.is_some()));
        record.owner = Some(Owner { node: claim.node, claim: ClaimId::random() });
        record.due = Some(now.after(claim.lease));
        record.version = record.version.next();
        // The value stays where it is.
        connection
            .prepare_cached(
                "UPDATE records SET version = ?3, node = ?4, claim = ?5, lapses = ?6, due = ?7
                 WHERE namespace = ?1 AND key = ?2",
            )?
            .execute(params![
                namespace,
                record.key.as_str(),
                bits(record.version.bits()),
                record.owner.map(|owner| bits(owner.node.bits())),
                record.owner.map(|owner| bits(owner.claim.bits())),
                record.lapses,
                record.due.map(millis),
            ])?;
    }
    Ok(due)
}

pub(crate) fn renew(
    connection: &Connection,
    namespace: &str,
    node: NodeId,
    lease: Duration,
) -> rusqlite::Result<Vec<(Key, Owner)>> {
    let now = now();
    let mut statement = connection.prepare_cached(
        "UPDATE records SET due = ?3 WHERE namespace = ?1 AND node = ?2 AND expires > ?4 RETURNING key, claim",
    )?;
    let rows = statement.query_map(
        params![namespace, bits(node.bits()), millis(now.after(lease)), millis(now)],
        |row| {
            let key = Key::new(row.get::<_, String>(0)?)
                .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))?;
            Ok((key, Owner { node, claim: ClaimId::from_bits(row.get::<_, i64>(1)?.cast_unsigned()) }))
        },
    )?;
    rows.collect()
}

pub(crate) fn touch(
    connection: &Connection,
    namespace: &str,
    keys: &[Key],
    ttl: Duration,
) -> rusqlite::Result<()> {
    let now = now();
    let mut statement = connection.prepare_cached(
        "UPDATE records SET expires = max(expires, ?3) WHERE namespace = ?1 AND key = ?2 AND expires > ?4",
    )?;
    for key in keys {
        statement.execute(params![namespace, key.as_str(), millis(now.after(ttl)), millis(now)])?;
    }
    Ok(())
}

pub(crate) fn sweep(connection: &Connection, namespace: &str, limit: usize) -> rusqlite::Result<usize> {
    connection
        .prepare_cached(
            "DELETE FROM records WHERE namespace = ?1 AND key IN
             (SELECT key FROM records WHERE namespace = ?1 AND expires <= ?2 ORDER BY expires LIMIT ?3)",
        )?
        .execute(params![namespace, millis(now()), count_of(limit)])
}
