//! OpenAPI documents: references and positions.

use super::{super::error::Error, yaml};
use serde_json::{Map, Value};

/// The maximum length of a chain of references.
const MAX_REFERENCES: usize = 32;

/// A document.
#[derive(Clone, Debug)]
pub(super) struct Document(Value);

/// A value with its position, in the format of a `$ref`.
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    pub(super) value: &'a Value,
    pub(super) place: String,
}

impl Document {
    /// Parses JSON or YAML and checks the OpenAPI version.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let value = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| Error::new("", format!("invalid JSON: {error}")))?
        } else {
            yaml::parse(text).map_err(|reason| Error::new("", format!("invalid YAML: {reason}")))?
        };
        let found = match (value.get("openapi").and_then(Value::as_str), value.get("swagger")) {
            (Some(version), _) if version.starts_with("3.0") || version.starts_with("3.1") => {
                return Ok(Self(value));
            }
            (Some(version), _) => format!("`{version}`"),
            (None, Some(version)) => format!("Swagger {version}, which must be converted first"),
            (None, None) => "none".into(),
        };
        Err(Error::new("#/openapi", format!("expected OpenAPI 3.0 or 3.1, got {found}")))
    }

    pub(super) fn root(&self) -> At<'_> {
        At { value: &self.0, place: "#".into() }
    }

    /// Resolves a reference.
    pub(super) fn resolve<'a>(&'a self, at: At<'a>) -> Result<At<'a>, Error> {
        let mut at = at;
        for _ in 0..MAX_REFERENCES {
            let Some(reference) = at.value.get("$ref") else { return Ok(at) };
            let Some(reference) = reference.as_str() else {
                return Err(at.wrong("`$ref` must be a string"));
            };
            at = self.find(reference).map_err(|reason| at.wrong(reason))?;
        }
        Err(at.wrong("circular reference"))
    }

    /// Looks up a reference inside the document. External references are not supported.
    pub(super) fn find(&self, reference: &str) -> Result<At<'_>, String> {
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(format!(
                "external reference `{reference}` is not supported; bundle the document into one file"
            ));
        };
        let decoded = percent_decoded(pointer);
        let value = self.0.pointer(&decoded).ok_or_else(|| format!("reference `{reference}` not found"))?;
        Ok(At { value, place: reference.to_owned() })
    }
}

fn percent_decoded(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits =
            after.get(..2).filter(|_| *byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            decoded.push(byte);
            rest = after.get(2..).unwrap_or_default();
        } else {
            decoded.push(*byte);
            rest = after;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

impl<'a> At<'a> {
    /// Returns a member, if present.
    pub(super) fn get(&self, name: &str) -> Option<Self> {
        let value = self.value.get(name)?;
        Some(Self { value, place: format!("{}/{}", self.place, name.replace('~', "~0").replace('/', "~1")) })
    }

    /// Returns a string member, if present.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.value.get(name).and_then(Value::as_str)
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.value.get(name).and_then(Value::as_bool) == Some(true)
    }

    /// Returns the members of an object.
    pub(super) fn members(&self) -> Result<Vec<(&'a str, Self)>, Error> {
        let object = self.object()?;
        Ok(object.keys().filter_map(|name| Some((name.as_str(), self.get(name)?))).collect())
    }

    pub(super) fn object(&self) -> Result<&'a Map<String, Value>, Error> {
        self.value.as_object().ok_or_else(|| self.wrong("expected an object"))
    }

    /// Returns the items of an array member; empty if absent.
    pub(super) fn items(&self, name: &str) -> Result<Vec<Self>, Error> {
        let Some(list) = self.get(name) else { return Ok(Vec::new()) };
        let items = list.value.as_array().ok_or_else(|| list.wrong("expected an array"))?;
        Ok((0..)
            .zip(items)
            .map(|(index, value): (usize, _)| Self { value, place: format!("{}/{index}", list.place) })
            .collect())
    }

    pub(super) fn wrong(&self, reason: impl std::fmt::Display) -> Error {
        Error::new(self.place.clone(), reason)
    }
}
