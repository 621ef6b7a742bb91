//! Filters the `metadata` of a server: only listed parameters reach the provider, and none of them changes the user's
//! settings or the cost of a call.

use bowline_types::{RawJson, RawMap};
use std::collections::BTreeMap;

/// The type of a parameter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known {
    Text,
    Whole,
    Number,
}

/// Parameters that are passed on unchanged.
pub(super) type Map = BTreeMap<&'static str, RawJson>;

/// The maximum length of a text.
const LONGEST: usize = 256;

/// Returns the listed parameters that have the right type.
pub(super) fn known(metadata: Option<&RawMap>, list: &[(&'static str, Known)]) -> Map {
    let Some(metadata) = metadata else { return Map::new() };
    let fits = |value: &RawJson, kind: Known| match kind {
        Known::Text => value.decode::<String>().is_ok_and(|text| text.len() <= LONGEST),
        Known::Whole => value.decode::<i64>().is_ok(),
        Known::Number => value.decode::<f64>().is_ok(),
    };
    let found = list.iter().filter_map(|(name, kind)| Some((*name, metadata.get(name)?, *kind)));
    found
        .filter(|(_, value, kind)| fits(value, *kind))
        .map(|(name, value, _)| (name, value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_parameters_pass() {
        let list = [("user", Known::Text), ("seed", Known::Whole), ("top_p", Known::Number)];
        let metadata: RawMap = serde_json::from_str(
            r#"{"user":"ann","seed":7,"top_p":"much","n":100,"model":"dear","max_tokens":1000000}"#,
        )
        .unwrap();
        let passed = known(Some(&metadata), &list);
        assert_eq!(serde_json::to_string(&passed).unwrap(), r#"{"seed":7,"user":"ann"}"#);
        assert!(known(None, &list).is_empty());
        let long: RawMap = serde_json::from_str(&format!(r#"{{"user":"{}"}}"#, "a".repeat(257))).unwrap();
        assert!(known(Some(&long), &list).is_empty());
    }
}
