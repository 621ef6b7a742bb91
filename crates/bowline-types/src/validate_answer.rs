//! Validates answers against the form of the elicitation.

use serde_json::{Number, Value};

use crate::RawMap;
use crate::form::{
    ElicitSchema, EnumSchema, MultiSelectSchema, NumberKind, NumberSchema, PrimitiveSchema, StringFormat,
    StringSchema,
};
use bowline_json::RawJson;

impl ElicitSchema {
    /// Validates an answer. The error names the field and the problem.
    ///
    /// Fields that the form does not have are ignored.
    pub fn validate(&self, content: &RawJson) -> Result<(), String> {
        let members: RawMap =
            content.decode().map_err(|error| format!("expected the answer to be an object: {error}"))?;
        self.validate_members(&members)
    }

    /// Validates the fields of an answer. The error names the field and the problem.
    pub fn validate_members(&self, members: &RawMap) -> Result<(), String> {
        if let Some(missing) = self.required.iter().find(|name| !members.contains_key(name)) {
            return Err(format!("missing required field `{missing}`"));
        }
        for (name, schema) in &self.properties {
            let Some(raw) = members.get(name) else { continue };
            let value = raw.to_value().map_err(|error| format!("`{name}`: {error}"))?;
            schema.validate(&value).map_err(|reason| format!("`{name}`: {reason}"))?;
        }
        Ok(())
    }

    /// Adds the defaults of absent fields.
    pub fn with_defaults(&self, mut members: RawMap) -> RawMap {
        for (name, schema) in &self.properties {
            if members.contains_key(name) {
                continue;
            }
            if let Some(default) = schema.default_value() {
                members.insert(name, default);
            }
        }
        members
    }
}

impl PrimitiveSchema {
    /// Validates one value. The error states what was expected and what was found.
    pub fn validate(&self, value: &Value) -> Result<(), String> {
        match self {
            Self::String(schema) => validate_string(schema, value),
            Self::Number(schema) => validate_number(schema, value),
            Self::Boolean(_) if value.is_boolean() => Ok(()),
            Self::Boolean(_) => Err(unexpected("a boolean", value)),
            Self::Enum(schema) => validate_enum(schema, value),
            Self::MultiSelect(schema) => validate_multi_select(schema, value),
            // The type of such a field is unknown, but it cannot be an object.
            Self::Unknown(_) if value.is_object() || value.is_null() => {
                Err(unexpected("a string, number, boolean or list", value))
            }
            Self::Unknown(_) => Ok(()),
        }
    }

    /// Returns the default of the field.
    pub fn default_value(&self) -> Option<RawJson> {
        match self {
            Self::String(schema) => schema.default.as_ref().map(crate::to_json),
            Self::Number(schema) => schema.default.as_ref().map(crate::to_json),
            Self::Boolean(schema) => schema.default.as_ref().map(crate::to_json),
            Self::Enum(schema) => schema.default.as_ref().map(crate::to_json),
            Self::MultiSelect(schema) => schema.default.as_ref().map(crate::to_json),
            Self::Unknown(_) => None,
        }
    }
}

fn unexpected(expected: &str, value: &Value) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("expected {expected}, got {kind}")
}

fn length(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

fn validate_string(schema: &StringSchema, value: &Value) -> Result<(), String> {
    let Value::String(text) = value else { return Err(unexpected("a string", value)) };
    let count = length(text.chars().count());
    if let Some(least) = schema.min_length
        && count < least
    {
        return Err(format!("expected at least {least} characters, got {count}"));
    }
    if let Some(most) = schema.max_length
        && count > most
    {
        return Err(format!("expected at most {most} characters, got {count}"));
    }
    let (fits, expected) = match &schema.format {
        Some(StringFormat::Email) => (is_email(text), "an email address"),
        Some(StringFormat::Uri) => (is_uri(text), "an absolute URI"),
        Some(StringFormat::Date) => (is_date(text), "a date such as 2026-07-28"),
        Some(StringFormat::DateTime) => (is_date_time(text), "a time such as 2026-07-28T12:00:00Z"),
        // A format nobody has defined constrains nothing.
        Some(StringFormat::Other(_)) | None => return Ok(()),
    };
    if fits { Ok(()) } else { Err(format!("expected {expected}, got `{text}`")) }
}

fn validate_number(schema: &NumberSchema, value: &Value) -> Result<(), String> {
    let Value::Number(number) = value else { return Err(unexpected("a number", value)) };
    if schema.kind == NumberKind::Integer && !is_integral(number) {
        return Err(format!("expected an integer, got {number}"));
    }
    if let Some(least) = &schema.minimum
        && less(number, least)
    {
        return Err(format!("expected at least {least}, got {number}"));
    }
    if let Some(most) = &schema.maximum
        && less(most, number)
    {
        return Err(format!("expected at most {most}, got {number}"));
    }
    Ok(())
}

fn is_integral(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|value| value.fract() == 0.0)
}

/// Compares integers exactly; as floating-point numbers large ones would look equal.
fn less(left: &Number, right: &Number) -> bool {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => left < right,
        _ => left.as_f64() < right.as_f64(),
    }
}

fn validate_enum(schema: &EnumSchema, value: &Value) -> Result<(), String> {
    let Value::String(text) = value else { return Err(unexpected("a string", value)) };
    validate_choice(&schema.choices(), text)
}

fn validate_choice(choices: &[(&str, &str)], text: &str) -> Result<(), String> {
    if choices.iter().any(|(value, _)| *value == text) {
        return Ok(());
    }
    let values: Vec<String> = choices.iter().map(|(value, _)| format!("`{value}`")).collect();
    Err(format!("expected one of {}, got `{text}`", values.join(", ")))
}

fn validate_multi_select(schema: &MultiSelectSchema, value: &Value) -> Result<(), String> {
    let Value::Array(items) = value else { return Err(unexpected("a list", value)) };
    let count = length(items.len());
    if let Some(least) = schema.min_items
        && count < least
    {
        return Err(format!("expected at least {least} values, got {count}"));
    }
    if let Some(most) = schema.max_items
        && count > most
    {
        return Err(format!("expected at most {most} values, got {count}"));
    }
    let choices = schema.choices();
    for item in items {
        let Value::String(text) = item else { return Err(unexpected("a list of strings", item)) };
        validate_choice(&choices, text)?;
    }
    Ok(())
}

/// One `@` between a local part and a domain without blanks. Stricter checks reject valid
/// addresses more often than they catch invalid ones.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let plain = |part: &str| {
        !part.is_empty() && !part.chars().any(|letter| letter.is_whitespace() || letter.is_control())
    };
    plain(local)
        && !local.contains('@')
        && !local.starts_with('.')
        && !local.ends_with('.')
        && plain(domain)
        && domain.split('.').all(|label| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.chars().all(|letter| letter.is_alphanumeric() || letter == '-')
        })
}

/// Returns whether this is a URI: a scheme, then characters that RFC 3986 allows, with valid percent-encoding.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.chars();
    if !letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        || !letters.all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
        || rest.is_empty()
    {
        return false;
    }
    let mut bytes = rest.bytes();
    while let Some(byte) = bytes.next() {
        let fits = match byte {
            b'%' => {
                let hex = |digit: Option<u8>| digit.is_some_and(|digit| digit.is_ascii_hexdigit());
                hex(bytes.next()) && hex(bytes.next())
            }
            _ => byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte),
        };
        if !fits {
            return false;
        }
    }
    true
}

/// Splits a number of exactly `digits` digits from the start.
fn digits(text: &str, digits: usize) -> Option<(u32, &str)> {
    let (number, rest) = text.split_at_checked(digits)?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((number.parse().ok()?, rest))
}

/// Skips a full date (RFC 3339) and returns the rest.
fn date(text: &str) -> Option<&str> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    (1..=days).contains(&day).then_some(rest)
}

fn is_date(text: &str) -> bool {
    date(text) == Some("")
}

/// Skips an hour and a minute and returns the rest.
fn hour_and_minute(text: &str) -> Option<&str> {
    let (hour, rest) = digits(text, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    (hour < 24 && minute < 60).then_some(rest)
}

fn is_date_time(text: &str) -> bool {
    fn rest_of(text: &str) -> Option<&str> {
        let rest = date(text)?.strip_prefix(['T', 't', ' '])?;
        let rest = hour_and_minute(rest)?;
        let (second, mut rest) = digits(rest.strip_prefix(':')?, 2)?;
        // A leap second is 60.
        if second > 60 {
            return None;
        }
        if let Some(fraction) = rest.strip_prefix('.') {
            rest = fraction.trim_start_matches(|letter: char| letter.is_ascii_digit());
            if rest.len() == fraction.len() {
                return None;
            }
        }
        match rest.strip_prefix(['Z', 'z']) {
            Some(rest) => Some(rest),
            None => hour_and_minute(rest.strip_prefix(['+', '-'])?),
        }
    }
    rest_of(text) == Some("")
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "snapshots are updated in this form")]
mod tests {
    use super::*;
    use crate::form::BooleanSchema;
    use expect_test::{Expect, expect};
    use serde_json::json;

    fn fits(schema: impl Into<PrimitiveSchema>, values: &[Value]) {
        let schema = schema.into();
        for value in values {
            assert_eq!(schema.validate(value), Ok(()), "{value}");
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "that is how snapshots are written at the call")]
    fn fails(schema: impl Into<PrimitiveSchema>, values: &[Value], expected: Expect) {
        let schema = schema.into();
        let reasons: Vec<String> =
            values.iter().map(|value| format!("{}\n", schema.validate(value).unwrap_err())).collect();
        expected.assert_eq(&reasons.concat());
    }

    fn format(format: &str) -> StringSchema {
        StringSchema::new().format(format)
    }

    #[test]
    fn text_has_a_length_in_characters() {
        let schema = StringSchema::new().min_length(2_u64).max_length(3_u64);
        fits(schema.clone(), &[json!("ab"), json!("äöü")]);
        fails(
            schema,
            &[json!("ä"), json!("abcd"), json!(1), json!(null)],
            expect![[r#"
                expected at least 2 characters, got 1
                expected at most 3 characters, got 4
                expected a string, got a number
                expected a string, got null
            "#]],
        );
    }

    #[test]
    fn email_addresses() {
        fits(format("email"), &["a@b", "a.b+c@example.co.uk", "ü@exämple.org"].map(Value::from));
        for text in ["", "a", "@b", "a@", "a b@c", "a@b c", "a@@b", "a@.b", "a@b..c", "a@-b", ".a@b", "a@b\n"]
        {
            assert!(PrimitiveSchema::from(format("email")).validate(&json!(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn uris() {
        let good =
            ["https://example.com/a?b=c#d", "mailto:a@b", "urn:isbn:1", "file:///x%20y", "http://[::1]/"];
        fits(format("uri"), &good.map(Value::from));
        for text in
            ["", "example.com", "/a", "1a:b", "a b:c", "http:", "http://a b", "x:%2", "x:%zz", "x:ü", ":x"]
        {
            assert!(PrimitiveSchema::from(format("uri")).validate(&json!(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn dates_and_times() {
        fits(format("date"), &["2026-07-28", "2024-02-29", "2000-02-29"].map(Value::from));
        for text in [
            "",
            "2026-7-28",
            "2026-13-01",
            "2025-02-29",
            "1900-02-29",
            "2026-04-31",
            "2026-01-00",
            "2026-01-01T",
        ] {
            assert!(PrimitiveSchema::from(format("date")).validate(&json!(text)).is_err(), "{text}");
        }
        let good = ["2026-07-28T12:00:00Z", "2026-07-28t23:59:60.123+05:30", "2026-07-28 00:00:00-00:00"];
        fits(format("date-time"), &good.map(Value::from));
        for text in [
            "2026-07-28",
            "2026-07-28T12:00Z",
            "2026-07-28T24:00:00Z",
            "2026-07-28T12:00:00",
            "2026-07-28T12:00:00.Z",
            "2026-07-28T12:00:61Z",
            "2026-07-28T12:00:00+1",
        ] {
            assert!(PrimitiveSchema::from(format("date-time")).validate(&json!(text)).is_err(), "{text}");
        }
        fits(format("color"), &[json!("anything")]);
    }

    #[test]
    fn numbers_have_a_range_and_maybe_no_fraction() {
        fits(NumberSchema::number(), &[json!(1), json!(-1.5), json!(1e300)]);
        fits(NumberSchema::integer(), &[json!(1), json!(2.0), json!(u64::MAX)]);
        let schema = NumberSchema::integer().minimum(1).maximum(9_007_199_254_740_993_i64);
        fits(schema.clone(), &[json!(1), json!(9_007_199_254_740_993_i64)]);
        fails(
            schema,
            &[json!(0), json!(9_007_199_254_740_994_i64), json!(1.5), json!("1"), json!(true)],
            expect![[r#"
                expected at least 1, got 0
                expected at most 9007199254740993, got 9007199254740994
                expected an integer, got 1.5
                expected a number, got a string
                expected a number, got a boolean
            "#]],
        );
    }

    #[test]
    fn booleans() {
        fits(BooleanSchema::new(), &[json!(true), json!(false)]);
        fails(
            BooleanSchema::new(),
            &[json!("true"), json!(0)],
            expect![[r#"
                expected a boolean, got a string
                expected a boolean, got a number
            "#]],
        );
    }

    #[test]
    fn choices_are_made_by_value() {
        let legacy = json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]});
        for schema in [
            EnumSchema::untitled(["a", "b"]),
            EnumSchema::titled([("a", "A"), ("b", "B")]),
            serde_json::from_value(legacy).unwrap(),
        ] {
            fits(schema.clone(), &[json!("a"), json!("b")]);
            fails(
                schema,
                &[json!("A"), json!(["a"])],
                expect![[r#"
                    expected one of `a`, `b`, got `A`
                    expected a string, got a list
                "#]],
            );
        }
    }

    #[test]
    fn multiple_choices_have_a_count() {
        for schema in [
            MultiSelectSchema::untitled(["a", "b", "c"]),
            MultiSelectSchema::titled([("a", "A"), ("b", "B"), ("c", "C")]),
        ] {
            let schema = schema.min_items(1_u64).max_items(2_u64);
            fits(schema.clone(), &[json!(["a"]), json!(["b", "c"])]);
            fails(
                schema,
                &[json!([]), json!(["a", "b", "c"]), json!(["d"]), json!([1]), json!("a")],
                expect![[r#"
                    expected at least 1 values, got 0
                    expected at most 2 values, got 3
                    expected one of `a`, `b`, `c`, got `d`
                    expected a list of strings, got a number
                    expected a list, got a string
                "#]],
            );
        }
    }

    fn form() -> ElicitSchema {
        ElicitSchema::new()
            .required_field("name", StringSchema::new().max_length(5_u64))
            .field("age", NumberSchema::integer().with_default(18))
            .field("tags", MultiSelectSchema::titled([("a", "Apple"), ("b", "Bee")]).with_default(["a"]))
    }

    #[test]
    fn every_field_of_an_answer_is_checked() {
        let check = |answer: Value| form().validate(&RawJson::from(answer));
        assert_eq!(check(json!({"name": "Ann", "age": 3, "tags": ["b"], "other": null})), Ok(()));
        assert_eq!(check(json!({"age": 3})), Err("missing required field `name`".to_owned()));
        assert_eq!(
            check(json!({"name": "Annabel"})),
            Err("`name`: expected at most 5 characters, got 7".to_owned()),
        );
        assert_eq!(
            check(json!({"name": "Ann", "age": null})),
            Err("`age`: expected a number, got null".to_owned()),
        );
        assert!(check(json!([])).unwrap_err().starts_with("expected the answer to be an object"));
    }

    #[test]
    fn defaults_fill_missing_members() {
        let given = RawMap::from([("age", RawJson::parse("3").unwrap())]);
        let filled = serde_json::to_string(&form().with_defaults(given)).unwrap();
        assert_eq!(filled, r#"{"age":3,"tags":["a"]}"#);
    }

    #[test]
    fn lists_are_restored_from_clients_that_have_none() {
        let restored = |text: &str| {
            let mut answer = RawMap::from([("tags", RawJson::from(json!(text)))]);
            form().restore_lists(&mut answer);
            answer.get("tags").unwrap().to_string()
        };
        assert_eq!(restored("a, Bee"), r#"["a","b"]"#);
        assert_eq!(restored("b (Bee),"), r#"["b"]"#);
        assert_eq!(restored("cherry"), r#"["cherry"]"#);
        assert_eq!(restored(""), "[]");
    }
}
