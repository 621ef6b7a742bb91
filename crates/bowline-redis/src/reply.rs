//! Reads what the scripts return.

use bowline_store::{
    ClaimId, Depth, Group, Key, NodeId, Owner, Page, Queue, Record, StoreError, Time, Version,
};
use bytes::Bytes;
use redis::Value;
use std::time::Duration;

fn damaged(what: &str) -> StoreError {
    StoreError::invalid(format!("a record in Redis cannot be read: {what}"))
}

/// The records after the time in the first place. A missing one is `None`.
pub(crate) fn records(reply: Value) -> Result<Vec<Option<Record>>, StoreError> {
    let Value::Array(mut items) = reply else { return Err(damaged("the reply is not a list")) };
    if items.is_empty() {
        return Err(damaged("the reply has no time"));
    }
    let rest = items.split_off(1);
    let now = Time::from_millis(number(items.pop().as_ref(), "time")?);
    rest.into_iter()
        .map(|item| match item {
            Value::Nil => Ok(None),
            Value::Array(fields) => record(fields, now).map(Some),
            _ => Err(damaged("it is not a list")),
        })
        .collect()
}

/// Reads the fields in the order of `reply` in `shared.lua`.
fn record(fields: Vec<Value>, now: Time) -> Result<Record, StoreError> {
    let [value, version, node, claim, lapses, due, queue, group, expires, key] =
        <[Value; 10]>::try_from(fields).map_err(|_| damaged("wrong number of fields"))?;
    let key = Key::new(text(&key, "key")?).map_err(|error| damaged(&error.to_string()))?;
    let Value::BulkString(value) = value else { return Err(damaged("no value")) };
    let version = Version::from_bits(hex(&version, "version")?);
    let expires = Time::from_millis(number(Some(&expires), "expiry")?);
    let mut record = Record::new(key, Bytes::from(value), version, expires, now);
    if !matches!(node, Value::Nil) {
        record.owner = Some(owner(hex(&node, "node")?, &claim)?);
    }
    record.lapses = u32::try_from(number(Some(&lapses), "lapses")?).unwrap_or(u32::MAX);
    if !matches!(due, Value::Nil) {
        record.due = Some(Time::from_millis(number(Some(&due), "due time")?));
    }
    if !matches!(queue, Value::Nil) {
        record.queue = Some(Queue::new(text(&queue, "queue")?).map_err(|error| damaged(&error.to_string()))?);
    }
    if !matches!(group, Value::Nil) {
        record.group = Some(Group::new(text(&group, "group")?).map_err(|error| damaged(&error.to_string()))?);
    }
    Ok(record)
}

/// Where the next page begins, and the records of this one.
pub(crate) fn page(reply: Value) -> Result<Page, StoreError> {
    let Value::Array(items) = reply else { return Err(damaged("the reply is not a list")) };
    let [next, found] = <[Value; 2]>::try_from(items).map_err(|_| damaged("wrong number of parts"))?;
    let next = text(&next, "cursor")?;
    let records = records(found)?.into_iter().flatten().collect();
    Ok(Page::new(records, (next != "0").then(|| next.to_owned())))
}

/// Counts and a time.
pub(crate) fn depth(reply: &Value) -> Result<Depth, StoreError> {
    let Value::Array(items) = reply else { return Err(damaged("the reply is not a list")) };
    let count = |place: usize| match items.get(place) {
        Some(Value::Int(count)) => Ok(count.max(&0).cast_unsigned()),
        _ => Err(damaged("a count is not a number")),
    };
    Ok(Depth::new(count(0)?, count(1)?, count(2)?, Duration::from_millis(count(3)?)))
}

/// Pairs of keys and claims.
pub(crate) fn claims(reply: Value, node: NodeId) -> Result<Vec<(Key, Owner)>, StoreError> {
    let Value::Array(items) = reply else { return Err(damaged("the reply is not a list")) };
    items
        .chunks_exact(2)
        .map(|pair| {
            let key = Key::new(text(&pair[0], "key")?).map_err(|error| damaged(&error.to_string()))?;
            Ok((key, owner(node.bits(), &pair[1])?))
        })
        .collect()
}

fn owner(node: u64, claim: &Value) -> Result<Owner, StoreError> {
    Ok(Owner { node: NodeId::from_bits(node), claim: ClaimId::from_bits(hex(claim, "claim")?) })
}

fn text<'a>(value: &'a Value, what: &str) -> Result<&'a str, StoreError> {
    match value {
        Value::BulkString(bytes) => {
            std::str::from_utf8(bytes).map_err(|_| damaged(&format!("the {what} is not UTF-8")))
        }
        _ => Err(damaged(&format!("no {what}"))),
    }
}

fn hex(value: &Value, what: &str) -> Result<u64, StoreError> {
    u64::from_str_radix(text(value, what)?, 16).map_err(|_| damaged(&format!("the {what} is not a number")))
}

fn number(value: Option<&Value>, what: &str) -> Result<u64, StoreError> {
    let text = text(value.unwrap_or(&Value::Nil), what)?;
    text.parse().map_err(|_| damaged(&format!("the {what} is not a number")))
}
