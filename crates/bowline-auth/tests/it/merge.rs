//! Changes members of a JSON object.

use serde_json::Value;

/// Returns `own` with the members of `other`; `null` removes a member.
pub(crate) fn merge(mut own: Value, other: &Value) -> Value {
    for (name, value) in other.as_object().unwrap() {
        let members = own.as_object_mut().unwrap();
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    own
}
