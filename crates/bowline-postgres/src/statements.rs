//! The statements. Each operation is one, so that it is applied as a whole or not at all.

use std::time::Duration;

use bowline_store::{
    ClaimChange, ClaimId, ClaimRequest, Depth, DueChange, Durability, Expect, Group, Key, NodeId, Owner, Put,
    PutError, Queue, Record, StoreError, Time, TtlChange, Version,
};
use bytes::Bytes;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::connection::{Parameter, Pool};
use crate::failure::Failure;

/// The columns of a record, in the order in which [`record`] reads them.
const COLUMNS: &str =
    "r.key, r.value, r.version, r.node, r.claim, r.lapses, r.due, r.queue, r.grp, r.expires";

/// The clock, read once per statement: an index cannot be searched for a value that changes while it is searched.
const CLOCK: &str =
    "clock AS MATERIALIZED (SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now)";

/// The latest [`Time`].
const LAST: &str = "9007199254740991";

/// PostgreSQL has signed integers. Bits are kept as they are; times are small enough.
fn bits(value: u64) -> i64 {
    value.cast_signed()
}

/// A duration in milliseconds, rounded up; small enough to be added to a time.
fn millis(duration: Duration) -> i64 {
    bits(Time::default().after(duration).as_millis())
}

fn time(millis: i64) -> Time {
    Time::from_millis(millis.max(0).cast_unsigned())
}

fn count_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn names(keys: &[Key]) -> Vec<&str> {
    keys.iter().map(Key::as_str).collect()
}

fn damaged(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::invalid(format!("a row of the store cannot be read: {error}")).with_source(error)
}

/// Reads the columns of [`COLUMNS`], and the clock after them.
fn record(row: &Row) -> Result<Record, StoreError> {
    let key = Key::new(row.try_get::<_, String>(0).map_err(damaged)?).map_err(damaged)?;
    let value = Bytes::from(row.try_get::<_, Vec<u8>>(1).map_err(damaged)?);
    let version = Version::from_bits(row.try_get::<_, i64>(2).map_err(damaged)?.cast_unsigned());
    let expires = time(row.try_get(9).map_err(damaged)?);
    let now = time(row.try_get(10).map_err(damaged)?);
    let mut record = Record::new(key, value, version, expires, now);
    let node: Option<i64> = row.try_get(3).map_err(damaged)?;
    let claim: Option<i64> = row.try_get(4).map_err(damaged)?;
    record.owner = node.zip(claim).map(|(node, claim)| Owner {
        node: NodeId::from_bits(node.cast_unsigned()),
        claim: ClaimId::from_bits(claim.cast_unsigned()),
    });
    record.lapses = u32::try_from(row.try_get::<_, i64>(5).map_err(damaged)?).unwrap_or(u32::MAX);
    record.due = row.try_get::<_, Option<i64>>(6).map_err(damaged)?.map(time);
    let queue: Option<String> = row.try_get(7).map_err(damaged)?;
    record.queue = queue.map(Queue::new).transpose().map_err(damaged)?;
    let group: Option<String> = row.try_get(8).map_err(damaged)?;
    record.group = group.map(Group::new).transpose().map_err(damaged)?;
    Ok(record)
}

pub(crate) async fn get(
    pool: &Pool,
    namespace: &str,
    keys: &[Key],
) -> Result<Vec<Option<Record>>, StoreError> {
    let statement = format!(
        "WITH {CLOCK} SELECT {COLUMNS}, (SELECT now FROM clock) FROM bowline_records r
         WHERE r.namespace = $1 AND r.key = ANY($2) AND r.expires > (SELECT now FROM clock)"
    );
    let parameters: [Parameter<'_>; 2] = [(&namespace, Type::TEXT), (&names(keys), Type::TEXT_ARRAY)];
    let rows = pool.query(&statement, &parameters).await.map_err(Failure::of_read)?;
    let found = rows.iter().map(record).collect::<Result<Vec<Record>, _>>()?;
    Ok(keys.iter().map(|key| found.iter().find(|record| record.key == *key).cloned()).collect())
}

pub(crate) async fn put(pool: &Pool, namespace: &str, put: &Put) -> Result<Version, PutError> {
    let (key, value) = (put.key.as_str(), put.value.as_ref());
    let version = match put.expect {
        Expect::Version(version) => version.next(),
        _ => Version::first(),
    };
    let (keep_owner, owner, lease) = match put.claim {
        ClaimChange::Take { owner, lease } => (false, Some(owner), Some(lease)),
        ClaimChange::Release => (false, None, None),
        _ => (true, None, None),
    };
    let due = match (lease, put.due) {
        (Some(time), _) | (None, DueChange::In(time)) => Some(millis(time)),
        _ => None,
    };
    let keep_due = lease.is_none() && matches!(put.due, DueChange::Keep);
    let ttl = match put.ttl {
        TtlChange::In(ttl) => Some(millis(ttl)),
        _ => None,
    };
    let version_bits = bits(version.bits());
    let node = owner.map(|owner| bits(owner.node.bits()));
    let claim = owner.map(|owner| bits(owner.claim.bits()));
    let (queue, group) = (put.queue.as_ref().map(Queue::as_str), put.group.as_ref().map(Group::as_str));
    let required_key = put.required_claim.as_ref().map(|required| required.key.as_str());
    let required_claim = put.required_claim.as_ref().map(|required| bits(required.claim.bits()));
    let mut parameters: Vec<Parameter<'_>> = vec![
        (&namespace, Type::TEXT),
        (&key, Type::TEXT),
        (&value, Type::BYTEA),
        (&version_bits, Type::INT8),
        (&node, Type::INT8),
        (&claim, Type::INT8),
        (&due, Type::INT8),
        (&ttl, Type::INT8),
        (&required_key, Type::TEXT),
        (&required_claim, Type::INT8),
    ];
    let expected;
    let written = if let Expect::Version(version) = put.expect {
        expected = bits(version.bits());
        parameters.extend([
            (&expected as _, Type::INT8),
            (&keep_owner as _, Type::BOOL),
            (&keep_due as _, Type::BOOL),
        ]);
        format!(
            "UPDATE bowline_records r SET value = $3, version = $4,
                 node = CASE WHEN $12 THEN r.node ELSE $5 END, claim = CASE WHEN $12 THEN r.claim ELSE $6 END,
                 due = CASE WHEN $13 THEN r.due WHEN $7 IS NOT NULL THEN LEAST((SELECT now FROM clock) + $7, {LAST}) END,
                 expires = CASE WHEN $8 IS NULL THEN r.expires ELSE LEAST((SELECT now FROM clock) + $8, {LAST}) END
             WHERE r.namespace = $1 AND r.key = $2 AND r.version = $11 AND r.expires > (SELECT now FROM clock)
                 AND ($9 IS NULL OR EXISTS (SELECT FROM claimed))
             RETURNING 1"
        )
    } else {
        parameters.extend([(&queue as _, Type::TEXT), (&group as _, Type::TEXT)]);
        format!(
            "INSERT INTO bowline_records AS r
                 (namespace, key, value, version, node, claim, lapses, due, queue, grp, expires)
             SELECT $1, $2, $3, $4, $5, $6, 0, CASE WHEN $7 IS NOT NULL THEN LEAST(now + $7, {LAST}) END, $11, $12,
                 LEAST(now + coalesce($8, 0), {LAST})
             FROM clock WHERE $9 IS NULL OR EXISTS (SELECT FROM claimed)
             ON CONFLICT (namespace, key) DO UPDATE SET value = EXCLUDED.value, version = EXCLUDED.version,
                 node = EXCLUDED.node, claim = EXCLUDED.claim, lapses = 0, due = EXCLUDED.due,
                 queue = EXCLUDED.queue, grp = EXCLUDED.grp, expires = EXCLUDED.expires
             WHERE r.expires <= (SELECT now FROM clock)
             RETURNING 1"
        )
    };
    // Two writers that share a lock on the row they both write would wait for each other.
    let lock = if required_key == Some(key) { "FOR NO KEY UPDATE" } else { "FOR SHARE" };
    let statement = format!(
        "WITH {CLOCK}, claimed AS MATERIALIZED (
             SELECT 1 FROM bowline_records WHERE namespace = $1 AND key = $9 AND claim = $10
                 AND expires > (SELECT now FROM clock) {lock}),
         written AS ({written})
         SELECT $9 IS NULL OR EXISTS (SELECT FROM claimed), EXISTS (SELECT FROM written){}",
        relaxed(put.durability)
    );
    let rows = pool.query(&statement, &parameters).await.map_err(Failure::of_write)?;
    let row = rows.first().ok_or_else(|| StoreError::unknown("PostgreSQL returned no row for a write"))?;
    match (row.try_get(0).map_err(damaged)?, row.try_get(1).map_err(damaged)?) {
        (false, _) => Err(PutError::ClaimLost),
        (true, false) => Err(PutError::Conflict),
        (true, true) => Ok(version),
    }
}

/// The commit of this statement does not wait for the disk.
fn relaxed(durability: Durability) -> &'static str {
    match durability {
        Durability::Relaxed => ", set_config('synchronous_commit', 'off', true)",
        _ => "",
    }
}

pub(crate) async fn remove(pool: &Pool, namespace: &str, keys: &[Key]) -> Result<(), StoreError> {
    let statement = "DELETE FROM bowline_records WHERE namespace = $1 AND key = ANY($2)";
    let parameters: [Parameter<'_>; 2] = [(&namespace, Type::TEXT), (&names(keys), Type::TEXT_ARRAY)];
    pool.query(statement, &parameters).await.map(drop).map_err(Failure::of_write)
}

pub(crate) async fn list(
    pool: &Pool,
    namespace: &str,
    group: &Group,
    after: Option<&Key>,
    limit: usize,
) -> Result<Vec<Record>, StoreError> {
    let statement = format!(
        "WITH {CLOCK} SELECT {COLUMNS}, (SELECT now FROM clock) FROM bowline_records r
         WHERE r.namespace = $1 AND r.grp = $2 AND r.key > $3 AND r.expires > (SELECT now FROM clock)
         ORDER BY r.key LIMIT $4"
    );
    // No key is empty, so all keys are after the empty text.
    let after = after.map_or("", Key::as_str);
    let parameters: [Parameter<'_>; 4] = [
        (&namespace, Type::TEXT),
        (&group.as_str(), Type::TEXT),
        (&after, Type::TEXT),
        (&count_of(limit), Type::INT8),
    ];
    let rows = pool.query(&statement, &parameters).await.map_err(Failure::of_read)?;
    rows.iter().map(record).collect()
}

pub(crate) async fn scan(
    pool: &Pool,
    namespace: &str,
    after: &str,
    limit: usize,
) -> Result<Vec<Record>, StoreError> {
    let statement = format!(
        "WITH {CLOCK} SELECT {COLUMNS}, (SELECT now FROM clock) FROM bowline_records r
         WHERE r.namespace = $1 AND r.key > $2 AND r.expires > (SELECT now FROM clock) ORDER BY r.key LIMIT $3"
    );
    let parameters: [Parameter<'_>; 3] =
        [(&namespace, Type::TEXT), (&after, Type::TEXT), (&count_of(limit), Type::INT8)];
    let rows = pool.query(&statement, &parameters).await.map_err(Failure::of_read)?;
    rows.iter().map(record).collect()
}

pub(crate) async fn depth(pool: &Pool, namespace: &str, queues: &[Queue]) -> Result<Depth, StoreError> {
    let statement = format!(
        "WITH {CLOCK} SELECT count(*) FILTER (WHERE r.due <= clock.now),
             count(*) FILTER (WHERE r.due > clock.now AND r.node IS NOT NULL),
             count(*) FILTER (WHERE r.due > clock.now AND r.node IS NULL), min(r.due), max(clock.now)
         FROM bowline_records r, clock
         WHERE r.namespace = $1 AND r.queue = ANY($2) AND r.due IS NOT NULL AND r.expires > clock.now"
    );
    let queues: Vec<&str> = queues.iter().map(Queue::as_str).collect();
    let parameters: [Parameter<'_>; 2] = [(&namespace, Type::TEXT), (&queues, Type::TEXT_ARRAY)];
    let rows = pool.query(&statement, &parameters).await.map_err(Failure::of_read)?;
    let Some(row) = rows.first() else { return Ok(Depth::default()) };
    let count = |column: usize| row.try_get::<_, i64>(column).map(|count| count.max(0).cast_unsigned());
    let due: Option<i64> = row.try_get(3).map_err(damaged)?;
    let now: Option<i64> = row.try_get(4).map_err(damaged)?;
    let oldest = due.zip(now).map_or(Duration::ZERO, |(due, now)| time(now).since(time(due)));
    Ok(Depth::new(count(0).map_err(damaged)?, count(1).map_err(damaged)?, count(2).map_err(damaged)?, oldest))
}

pub(crate) async fn count(pool: &Pool, namespace: &str, group: &Group) -> Result<u64, StoreError> {
    let statement = format!(
        "WITH {CLOCK} SELECT count(*) FROM bowline_records r
         WHERE r.namespace = $1 AND r.grp = $2 AND r.expires > (SELECT now FROM clock)"
    );
    let parameters: [Parameter<'_>; 2] = [(&namespace, Type::TEXT), (&group.as_str(), Type::TEXT)];
    let rows = pool.query(&statement, &parameters).await.map_err(Failure::of_read)?;
    let count = rows.first().map(|row| row.try_get::<_, i64>(0)).transpose().map_err(damaged)?;
    Ok(count.unwrap_or_default().max(0).cast_unsigned())
}

pub(crate) async fn claim(
    pool: &Pool,
    namespace: &str,
    claim: &ClaimRequest,
) -> Result<Vec<Record>, StoreError> {
    // Each queue is read in the order of its index, and no further than the limit.
    let statement = format!(
        "WITH {CLOCK}, due AS MATERIALIZED (
             SELECT found.key, found.due FROM unnest($2) AS wanted (queue), LATERAL (
                 SELECT r.key, r.due FROM bowline_records r
                 WHERE r.namespace = $1 AND r.queue = wanted.queue AND r.due <= (SELECT now FROM clock)
                     AND r.expires > (SELECT now FROM clock) AND ($3 OR r.node IS NULL)
                 ORDER BY r.due, r.key LIMIT $4 FOR UPDATE SKIP LOCKED) AS found
             ORDER BY found.due, found.key LIMIT $4)
         UPDATE bowline_records r SET
             version = ((((r.version >> 32) + 1) & 4294967295) << 32) | floor(random() * 4294967296)::bigint,
             lapses = r.lapses + (r.node IS NOT NULL)::int, node = $5,
             claim = (floor(random() * 4294967296)::bigint << 32) | floor(random() * 4294967296)::bigint,
             due = LEAST((SELECT now FROM clock) + $6, {LAST})
         FROM due WHERE r.namespace = $1 AND r.key = due.key
         RETURNING {COLUMNS}, (SELECT now FROM clock), due.due"
    );
    let mut queues: Vec<&str> = claim.queues.iter().map(Queue::as_str).collect();
    queues.sort_unstable();
    queues.dedup();
    let parameters: [Parameter<'_>; 6] = [
        (&namespace, Type::TEXT),
        (&queues, Type::TEXT_ARRAY),
        (&claim.lapsed, Type::BOOL),
        (&count_of(claim.limit), Type::INT8),
        (&bits(claim.node.bits()), Type::INT8),
        (&millis(claim.lease), Type::INT8),
    ];
    let rows = pool.query(&statement, &parameters).await.map_err(Failure::of_write)?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in &rows {
        claimed.push((row.try_get::<_, i64>(11).map_err(damaged)?, record(row)?));
    }
    claimed.sort_by(|(a_due, a), (b_due, b)| (a_due, &a.key).cmp(&(b_due, &b.key)));
    Ok(claimed.into_iter().map(|(_, record)| record).collect())
}

pub(crate) async fn renew(
    pool: &Pool,
    namespace: &str,
    node: NodeId,
    lease: Duration,
) -> Result<Vec<(Key, Owner)>, StoreError> {
    let statement = format!(
        "WITH {CLOCK} UPDATE bowline_records r SET due = LEAST((SELECT now FROM clock) + $3, {LAST})
         WHERE r.namespace = $1 AND r.node = $2 AND r.expires > (SELECT now FROM clock) RETURNING r.key, r.claim"
    );
    let parameters: [Parameter<'_>; 3] =
        [(&namespace, Type::TEXT), (&bits(node.bits()), Type::INT8), (&millis(lease), Type::INT8)];
    let rows = pool.query(&statement, &parameters).await.map_err(Failure::of_write)?;
    let renewed = |row: &Row| {
        let key = Key::new(row.try_get::<_, String>(0).map_err(damaged)?).map_err(damaged)?;
        let claim = ClaimId::from_bits(row.try_get::<_, i64>(1).map_err(damaged)?.cast_unsigned());
        Ok((key, Owner { node, claim }))
    };
    rows.iter().map(renewed).collect()
}

pub(crate) async fn touch(
    pool: &Pool,
    namespace: &str,
    keys: &[Key],
    ttl: Duration,
) -> Result<(), StoreError> {
    // Rows are locked in the order of their keys, so that two of these never wait for each other.
    let statement = format!(
        "WITH {CLOCK}, found AS MATERIALIZED (
             SELECT key FROM bowline_records WHERE namespace = $1 AND key = ANY($2) AND expires > (SELECT now FROM clock)
             ORDER BY key FOR NO KEY UPDATE),
         touched AS (
             UPDATE bowline_records r SET expires = GREATEST(r.expires, LEAST((SELECT now FROM clock) + $3, {LAST}))
             FROM found WHERE r.namespace = $1 AND r.key = found.key RETURNING 1)
         SELECT count(*) FROM touched, set_config('synchronous_commit', 'off', true)"
    );
    let parameters: [Parameter<'_>; 3] =
        [(&namespace, Type::TEXT), (&names(keys), Type::TEXT_ARRAY), (&millis(ttl), Type::INT8)];
    pool.query(&statement, &parameters).await.map(drop).map_err(Failure::of_write)
}

pub(crate) async fn sweep(pool: &Pool, namespace: &str, limit: usize) -> Result<usize, StoreError> {
    // Several nodes sweep; each takes other rows.
    let statement = format!(
        "WITH {CLOCK}, expired AS MATERIALIZED (
             SELECT key FROM bowline_records WHERE namespace = $1 AND expires <= (SELECT now FROM clock)
             ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED),
         deleted AS (
             DELETE FROM bowline_records r USING expired WHERE r.namespace = $1 AND r.key = expired.key RETURNING 1)
         SELECT count(*) FROM deleted"
    );
    let parameters: [Parameter<'_>; 2] = [(&namespace, Type::TEXT), (&count_of(limit), Type::INT8)];
    let rows = pool.query(&statement, &parameters).await.map_err(Failure::of_write)?;
    let count = rows.first().map(|row| row.try_get::<_, i64>(0)).transpose().map_err(damaged)?;
    Ok(usize::try_from(count.unwrap_or_default()).unwrap_or_default())
}
