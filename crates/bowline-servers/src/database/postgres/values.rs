//! Converts PostgreSQL values to JSON, and JSON to parameters.

use super::times;
use crate::database::{
    error::Error,
    rows::{binary, binary_size, float, lossy, too_long},
};
use bytes::BytesMut;
use serde_json::Value;
use std::{error::Error as StdError, fmt::Write as _};
use tokio_postgres::types::{Format, FromSql, IsNull, Kind, ToSql, Type, to_sql_checked};

type BoxError = Box<dyn StdError + Sync + Send>;

/// A received value, decoded once the size limit is known.
#[derive(Clone, Debug)]
pub(super) struct Raw<'a> {
    kind: Type,
    /// `None` for NULL.
    bytes: Option<&'a [u8]>,
}

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, BoxError> {
        Ok(Self { kind: kind.clone(), bytes: Some(raw) })
    }

    fn from_sql_null(kind: &Type) -> Result<Self, BoxError> {
        Ok(Self { kind: kind.clone(), bytes: None })
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl Raw<'_> {
    /// Returns the approximate size of the value as JSON.
    pub(super) fn size(&self) -> usize {
        match self.bytes {
            None => 8,
            Some(raw) if self.kind == Type::BYTEA => binary_size(raw.len()),
            Some(raw) => raw.len(),
        }
    }

    /// Returns the value as JSON, cut to `max` bytes.
    pub(super) fn value(&self, max: usize) -> Result<Value, Error> {
        let Some(raw) = self.bytes else { return Ok(Value::Null) };
        if raw.len() > max {
            return Ok(shortened(&self.kind, raw, max));
        }
        let unreadable = || Error::new(format!("cannot decode a value of type `{}`", self.kind));
        decode(&self.kind, raw).ok_or_else(unreadable)
    }
}

/// Returns the placeholder for a value that is too long to decode.
fn shortened(kind: &Type, raw: &[u8], max: usize) -> Value {
    match kind.kind() {
        Kind::Domain(base) => return shortened(base, raw, max),
        Kind::Array(_) => return too_long(),
        _ => {}
    }
    match *kind {
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::XML | Type::UNKNOWN => lossy(raw, max),
        Type::JSON | Type::JSONB | Type::NUMERIC => too_long(),
        _ => binary(raw),
    }
}

/// Reads numbers from the start of a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueReader<'a>(pub(super) &'a [u8]);

impl<'a> ValueReader<'a> {
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn short(&mut self) -> Option<i16> {
        self.take().map(i16::from_be_bytes)
    }

    pub(super) fn int(&mut self) -> Option<i32> {
        self.take().map(i32::from_be_bytes)
    }

    pub(super) fn long(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }
}

/// Decodes the binary format of a type; `None` if the bytes are invalid. Unknown types are returned as binary.
fn decode(kind: &Type, raw: &[u8]) -> Option<Value> {
    match kind.kind() {
        Kind::Array(element) => return array(element, raw),
        Kind::Domain(base) => return decode(base, raw),
        Kind::Enum(_) => return text(raw),
        _ => {}
    }
    let mut reader = ValueReader(raw);
    Some(match *kind {
        Type::BOOL => (reader.take::<1>()? != [0]).into(),
        Type::INT2 => reader.short()?.into(),
        Type::INT4 => reader.int()?.into(),
        Type::INT8 => reader.long()?.into(),
        Type::OID | Type::XID | Type::CID => u32::from_be_bytes(reader.take()?).into(),
        Type::FLOAT4 => float(f32::from_be_bytes(reader.take()?).to_string().parse().ok()?),
        Type::FLOAT8 => float(f64::from_be_bytes(reader.take()?)),
        Type::NUMERIC => numeric(&mut reader)?.into(),
        Type::BYTEA => binary(raw),
        Type::JSON => serde_json::from_slice(raw).ok()?,
        // The first byte is the version of the format.
        Type::JSONB => serde_json::from_slice(raw.strip_prefix(&[1])?).ok()?,
        Type::UUID => uuid(reader.take()?).into(),
        Type::DATE => times::date(reader.int()?).into(),
        Type::TIME => times::time(reader.long()?)?.into(),
        Type::TIMETZ => times::time_with_zone(reader.long()?, reader.int()?)?.into(),
        Type::TIMESTAMP => times::timestamp(reader.long()?)?.into(),
        Type::TIMESTAMPTZ => times::timestamp_with_zone(reader.long()?)?.into(),
        Type::INTERVAL => times::interval(reader.long()?, reader.int()?, reader.int()?).into(),
        Type::INET | Type::CIDR => network(&mut reader)?.into(),
        Type::TEXT
        | Type::VARCHAR
        | Type::BPCHAR
        | Type::NAME
        | Type::CHAR
        | Type::XML
        | Type::UNKNOWN
        | Type::VOID => text(raw)?,
        // Types of extensions, such as `citext`, are usually text.
        _ => match std::str::from_utf8(raw) {
            Ok(text) if !text.is_empty() && !text.contains(char::is_control) => text.into(),
            _ => binary(raw),
        },
    })
}

fn text(raw: &[u8]) -> Option<Value> {
    std::str::from_utf8(raw).ok().map(Value::from)
}

/// Decodes an array: the size of every dimension, then the elements in row-major order.
fn array(element: &Type, raw: &[u8]) -> Option<Value> {
    let mut reader = ValueReader(raw);
    let dimensions = usize::try_from(reader.int()?).ok().filter(|count| *count <= 6)?;
    let (_has_nulls, _element) = (reader.int()?, reader.int()?);
    let mut sizes = Vec::with_capacity(dimensions);
    for _ in 0..dimensions {
        sizes.push(usize::try_from(reader.int()?).ok()?);
        let _lower_bound = reader.int()?;
    }
    if sizes.is_empty() {
        return Some(Value::Array(Vec::new()));
    }
    nested(element, &mut reader, &sizes)
}

fn nested(element: &Type, reader: &mut ValueReader<'_>, sizes: &[usize]) -> Option<Value> {
    let Some((size, inner)) = sizes.split_first() else {
        let Ok(length) = usize::try_from(reader.int()?) else { return Some(Value::Null) };
        return decode(element, reader.bytes(length)?);
    };
    // Every element needs at least the four bytes of its length.
    if *size > reader.0.len() / 4 {
        return None;
    }
    (0..*size).map(|_| nested(element, reader, inner)).collect::<Option<Vec<_>>>().map(Value::Array)
}

/// Decodes a `numeric` as text, so that no digit is lost: groups of four digits, the weight of the first group, the sign, and the
/// number of decimal places.
fn numeric(reader: &mut ValueReader<'_>) -> Option<String> {
    let (count, weight) = (reader.short()?, i32::from(reader.short()?));
    let sign = match u16::from_be_bytes(reader.take()?) {
        0x0000 => "",
        0x4000 => "-",
        0xC000 => return Some("NaN".into()),
        0xD000 => return Some("Infinity".into()),
        0xF000 => return Some("-Infinity".into()),
        _ => return None,
    };
    let scale = usize::try_from(reader.short()?).ok()?;
    let groups: Vec<i16> = (0..count).map(|_| reader.short()).collect::<Option<_>>()?;
    let group = |place: i32| {
        let index = usize::try_from(weight - place).ok();
        index.and_then(|index| groups.get(index)).copied().unwrap_or(0)
    };
    let mut whole = digits((0..=weight).rev().map(group));
    let leading = whole.len() - whole.trim_start_matches('0').len();
    whole.drain(..leading);
    if whole.is_empty() {
        whole.push('0');
    }
    let places = i32::try_from(scale.div_ceil(4)).ok()?;
    let fraction = digits((1..=places).map(|place| group(-place)));
    let fraction = fraction.get(..scale)?;
    let point = if scale > 0 { "." } else { "" };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

fn digits(groups: impl Iterator<Item = i16>) -> String {
    groups.fold(String::new(), |mut text, group| {
        // Writing to a string does not fail.
        let _ = write!(text, "{group:04}");
        text
    })
}

fn uuid(bytes: [u8; 16]) -> String {
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default();
    [part(0..8), part(8..12), part(12..16), part(16..20), part(20..32)].join("-")
}

/// Decodes an address: family, mask bits, network flag, length, bytes.
fn network(reader: &mut ValueReader<'_>) -> Option<String> {
    let [_family, bits, is_network, length] = reader.take()?;
    let (address, whole) = match length {
        4 => (std::net::IpAddr::from(reader.take::<4>()?), 32),
        16 => (std::net::IpAddr::from(reader.take::<16>()?), 128),
        _ => return None,
    };
    Some(if is_network == 0 && bits == whole { address.to_string() } else { format!("{address}/{bits}") })
}

/// Encodes a JSON value as a text parameter, which the server converts to the type of the placeholder.
#[derive(Debug)]
pub(super) struct Parameter<'a>(pub(super) &'a Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        let is_json = matches!(*kind, Type::JSON | Type::JSONB);
        match (self.0, kind.kind()) {
            (Value::Null, _) => return Ok(IsNull::Yes),
            (Value::String(text), _) if !is_json => out.extend_from_slice(text.as_bytes()),
            (Value::Array(items), Kind::Array(_)) => out.extend_from_slice(list(items).as_bytes()),
            (value, _) => out.extend_from_slice(value.to_string().as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// Formats an array literal.
fn list(items: &[Value]) -> String {
    let written = items.iter().map(|item| match item {
        Value::Null => "NULL".to_owned(),
        Value::Array(inner) => list(inner),
        Value::String(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        Value::Object(_) => {
            format!("\"{}\"", item.to_string().replace('\\', "\\\\").replace('"', "\\\""))
        }
        Value::Bool(_) | Value::Number(_) => item.to_string(),
    });
    format!("{{{}}}", written.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(kind: &Type, raw: &[u8], expected: &Value) {
        assert_eq!(decode(kind, raw).as_ref(), Some(expected), "{kind}");
    }

    #[test]
    fn common_types_are_decoded() {
        check(&Type::BOOL, &[1], &json!(true));
        check(&Type::INT2, &(-2i16).to_be_bytes(), &json!(-2));
        check(&Type::INT4, &7i32.to_be_bytes(), &json!(7));
        check(&Type::INT8, &i64::MAX.to_be_bytes(), &json!(i64::MAX));
        check(&Type::OID, &u32::MAX.to_be_bytes(), &json!(u32::MAX));
        check(&Type::FLOAT4, &0.1f32.to_be_bytes(), &json!(0.1));
        check(&Type::FLOAT8, &f64::NEG_INFINITY.to_be_bytes(), &json!("-inf"));
        check(&Type::TEXT, "grün".as_bytes(), &json!("grün"));
        check(&Type::BYTEA, &[0, 255], &json!({ "base64": "AP8=", "bytes": 2 }));
        check(&Type::JSON, br#"{"a":[1]}"#, &json!({ "a": [1] }));
        check(&Type::JSONB, b"\x01[true]", &json!([true]));
        check(&Type::INET, &[2, 32, 0, 4, 10, 0, 0, 1], &json!("10.0.0.1"));
        check(&Type::CIDR, &[2, 8, 1, 4, 10, 0, 0, 0], &json!("10.0.0.0/8"));
        let bytes: Vec<u8> = (0..16).collect();
        check(&Type::UUID, &bytes, &json!("00010203-0405-0607-0809-0a0b0c0d0e0f"));
        check(&Type::POINT, &[0; 16], &json!({ "base64": "AAAAAAAAAAAAAAAAAAAAAA==", "bytes": 16 }));
    }

    #[test]
    fn values_that_are_too_long_are_cut_before_they_are_decoded() {
        let check = |kind: Type, expected: Value| {
            let raw = Raw { kind, bytes: Some(&[b'1'; 100]) };
            assert_eq!(raw.value(4).unwrap(), expected);
        };
        check(Type::TEXT, json!("11111111"));
        check(Type::JSON, json!("… (too long)"));
        check(Type::INT4_ARRAY, json!("… (too long)"));
        check(Type::BYTEA, binary(&[b'1'; 100]));
    }

    #[test]
    fn numbers_keep_every_digit() {
        let check = |weight: i16, sign: u16, scale: i16, groups: &[i16], expected: &str| {
            let mut raw = Vec::new();
            raw.extend_from_slice(&i16::try_from(groups.len()).unwrap().to_be_bytes());
            raw.extend_from_slice(&weight.to_be_bytes());
            raw.extend_from_slice(&sign.to_be_bytes());
            raw.extend_from_slice(&scale.to_be_bytes());
            for group in groups {
                raw.extend_from_slice(&group.to_be_bytes());
            }
            assert_eq!(decode(&Type::NUMERIC, &raw), Some(json!(expected)));
        };
        check(0, 0, 0, &[], "0");
        check(0, 0, 2, &[12, 5000], "12.50");
        check(1, 0x4000, 0, &[1, 2345], "-12345");
        check(2, 0, 0, &[1], "100000000");
        check(-1, 0, 4, &[1], "0.0001");
        check(-2, 0, 6, &[1200], "0.000012");
        check(0, 0xC000, 0, &[], "NaN");
    }

    #[test]
    fn arrays_nest() {
        let int = |value: i32| value.to_be_bytes().to_vec();
        let element = |value: i32| [int(4), int(value)].concat();
        let raw = [
            [int(2), int(0), int(23), int(2), int(1), int(2), int(1)].concat(),
            [element(1), element(2), element(3), int(-1)].concat(),
        ]
        .concat();
        check(&Type::INT4_ARRAY, &raw, &json!([[1, 2], [3, null]]));
        check(&Type::INT4_ARRAY, &[int(0), int(0), int(23)].concat(), &json!([]));
    }

    #[test]
    fn bytes_of_the_wrong_type_are_rejected() {
        for kind in [
            Type::BOOL,
            Type::INT8,
            Type::NUMERIC,
            Type::JSONB,
            Type::UUID,
            Type::TIMESTAMP,
            Type::INTERVAL,
            Type::INET,
            Type::INT4_ARRAY,
        ] {
            assert_eq!(decode(&kind, &[]), None, "{kind}");
        }
        assert_eq!(decode(&Type::TEXT, &[0xff]), None);
        // Lengths that lie.
        let huge = [1i32, 0, 23, i32::MAX, 1].map(i32::to_be_bytes).concat();
        assert_eq!(decode(&Type::INT4_ARRAY, &huge), None);
        let deep = [i32::MAX, 0, 23].map(i32::to_be_bytes).concat();
        assert_eq!(decode(&Type::INT4_ARRAY, &deep), None);
        assert_eq!(decode(&Type::NUMERIC, &[0x7f, 0xff, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn parameters_are_sent_as_text() {
        let encoded = |value: Value, kind: &Type| {
            let mut out = BytesMut::new();
            let is_null = Parameter(&value).to_sql(kind, &mut out).unwrap();
            match is_null {
                IsNull::Yes => None,
                IsNull::No => Some(String::from_utf8(out.to_vec()).unwrap()),
            }
        };
        assert_eq!(encoded(json!(null), &Type::INT4), None);
        assert_eq!(encoded(json!(5), &Type::INT4).as_deref(), Some("5"));
        assert_eq!(encoded(json!(true), &Type::BOOL).as_deref(), Some("true"));
        assert_eq!(encoded(json!("'; DROP"), &Type::TEXT).as_deref(), Some("'; DROP"));
        assert_eq!(encoded(json!("a"), &Type::JSONB).as_deref(), Some("\"a\""));
        assert_eq!(encoded(json!({ "a": 1 }), &Type::JSON).as_deref(), Some(r#"{"a":1}"#));
        let texts = json!(["a,b", "q\"\\", null, 1, ["x"]]);
        assert_eq!(encoded(texts, &Type::TEXT_ARRAY).as_deref(), Some(r#"{"a,b","q\"\\",NULL,1,{"x"}}"#));
    }
}
