//! Checks arguments against a schema before they are sent.

use super::{Schema, is_of, members, not_a_choice, text_of};
use serde_json::{Map, Value};
use std::cell::Cell;

/// The maximum depth of the check. The server checks the rest.
const MAX_DEPTH: usize = 32;
/// The maximum number of values that are checked.
const MAX_STEPS: usize = 10_000;

impl Schema {
    /// Checks names, types and allowed values.
    pub(crate) fn check(&self, given: &Map<String, Value>) -> Result<(), String> {
        given.iter().try_for_each(|(name, value)| {
            let node = self.step(&self.root, name)?;
            self.check_value(node, value, name, Budget { depth: MAX_DEPTH, left: &Cell::new(MAX_STEPS) })
        })
    }

    /// Checks a value and its members.
    fn check_value(
        &self,
        node: &Value,
        value: &Value,
        place: &str,
        budget: Budget<'_>,
    ) -> Result<(), String> {
        let Some(budget) = budget.spend() else { return Ok(()) };
        let node = self.resolve(node);
        if let Some(choices) = self.choices(node) {
            let is_known = choices.contains(&value);
            let refused = || format!("{place}: {}", not_a_choice(&text_of(value), &choices));
            return if is_known { Ok(()) } else { Err(refused()) };
        }
        let kinds = self.kinds(node);
        if !kinds.is_empty() && !kinds.iter().any(|kind| is_of(value, kind)) {
            return Err(format!("{place}: expected {}, got `{value}`", self.kind(node)));
        }
        let branches: Vec<&Value> = self.branches(node).collect();
        if let [only] = branches[..] {
            return self.check_members(only, value, place, budget);
        }
        // Alternatives for other types have no useful errors.
        let is_for_it = |branch: &&&Value| {
            let kinds = self.kinds(branch);
            kinds.is_empty() || kinds.iter().any(|kind| is_of(value, kind))
        };
        let mut result = Ok(());
        for branch in branches.iter().filter(is_for_it) {
            match self.check_value(branch, value, place, budget) {
                Ok(()) => return Ok(()),
                Err(reason) => result = result.and(Err(reason)),
            }
        }
        result
    }

    /// Checks the members of an object or array.
    fn check_members(
        &self,
        node: &Value,
        value: &Value,
        place: &str,
        budget: Budget<'_>,
    ) -> Result<(), String> {
        match value {
            Value::Object(given) => {
                let required = node.get("required").and_then(Value::as_array).into_iter().flatten();
                let mut required = required.filter_map(Value::as_str);
                if let Some(name) = required.find(|name| !given.contains_key(*name)) {
                    return Err(format!("{place}: missing required member `{name}`"));
                }
                let is_closed = node.get("additionalProperties") == Some(&Value::Bool(false));
                given.iter().try_for_each(|(name, value)| {
                    let known = members(node).and_then(|known| known.get(name));
                    let wanted = match known {
                        None if is_closed => {
                            self.step(node, name).map_err(|reason| format!("{place}: {reason}"))?
                        }
                        known => known.unwrap_or(&Value::Null),
                    };
                    self.check_value(wanted, value, &format!("{place}.{name}"), budget)
                })
            }
            Value::Array(items) => {
                let wanted = node.get("items").unwrap_or(&Value::Null);
                let mut items = items.iter().enumerate();
                items.try_for_each(|(index, item)| {
                    self.check_value(wanted, item, &format!("{place}[{index}]"), budget)
                })
            }
            _ => Ok(()),
        }
    }
}

/// The remaining budget of the check.
#[derive(Clone, Copy, Debug)]
struct Budget<'a> {
    depth: usize,
    left: &'a Cell<usize>,
}

impl Budget<'_> {
    /// Takes one step; `None` if the budget is used up.
    fn spend(self) -> Option<Self> {
        self.left.set(self.left.get().checked_sub(1)?);
        Some(Self { depth: self.depth.checked_sub(1)?, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    #[test]
    fn nested_values_are_checked() {
        let schema = json!({
            "type": "object",
            "properties": {
                "people": { "type": "array", "items": { "$ref": "#/$defs/person" } },
                "either": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/person" }] },
                "open": { "type": "object", "properties": { "x": { "type": "number" } } },
            },
            "$defs": { "person": {
                "type": "object",
                "properties": { "name": { "type": "string" }, "friends": { "type": "array", "items": { "$ref": "#/$defs/person" } } },
                "required": ["name"],
                "additionalProperties": false,
            } },
        });
        let schema = Schema::new(&schema.into());
        let check = |given: Value| {
            let result = schema.check(given.as_object().unwrap());
            result.map_or_else(|reason| reason, |()| "right".to_owned())
        };
        let result = [
            json!({ "people": [{ "name": "a", "friends": [{ "name": "b" }] }], "either": null }),
            json!({ "open": { "x": 1, "y": [] }, "either": { "name": "a" } }),
            json!({ "people": [{ "name": "a" }, {}] }),
            json!({ "people": [{ "name": 7 }] }),
            json!({ "people": [{ "name": "a", "friends": [{ "nam": "b", "name": "b" }] }] }),
            json!({ "people": "a" }),
            json!({ "either": {} }),
            json!({ "either": 7 }),
            json!({ "open": { "x": "1" } }),
        ]
        .map(check);
        expect![[r#"
            right
            right
            people[1]: missing required member `name`
            people[0].name: expected string, got `7`
            people[0].friends[0]: unknown argument `nam`; did you mean `name`?
            people: expected array of object, got `"a"`
            either: missing required member `name`
            either: expected null or object, got `7`
            open.x: expected number, got `"1"`"#]]
        .assert_eq(&result.join("\n"));
    }
}
