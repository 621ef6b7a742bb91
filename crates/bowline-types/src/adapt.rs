//! Adapts values to a revision.
//!
//! Reading is lenient: every type accepts what any revision may send. Writing is exact: after
//! [`Adapt::adapt`] a value has no member that is newer than the revision, and has the members that the
//! revision requires. The rules are next to the types; this file contains the trait and shared code.

use crate::RawMap;
use crate::cache::CacheScope;
use crate::meta::{Meta, key};
use crate::result::ResultType;
use crate::revision::Revision;
use bowline_json::RawJson;

/// Rewrites a value for a revision.
pub trait Adapt {
    /// Makes the value valid for `to`. What the revision cannot represent is dropped or becomes text.
    fn adapt(&mut self, to: Revision);
}

impl<T: Adapt> Adapt for [T] {
    fn adapt(&mut self, to: Revision) {
        for item in self {
            item.adapt(to);
        }
    }
}

impl<T: Adapt> Adapt for Vec<T> {
    fn adapt(&mut self, to: Revision) {
        self.as_mut_slice().adapt(to);
    }
}

impl<T: Adapt> Adapt for Option<T> {
    fn adapt(&mut self, to: Revision) {
        if let Some(value) = self {
            value.adapt(to);
        }
    }
}

impl<T: Adapt + ?Sized> Adapt for Box<T> {
    fn adapt(&mut self, to: Revision) {
        (**self).adapt(to);
    }
}

/// Objects other than params and results have `_meta` from 2025-06-18 on.
pub(crate) fn adapt_meta(meta: &mut Option<Meta>, to: Revision) {
    if to < Revision::V2025_06_18 {
        *meta = None;
    }
}

/// Keys of `_meta` that a revision does not define.
impl Adapt for Meta {
    fn adapt(&mut self, to: Revision) {
        if to < Revision::V2026_07_28 {
            for key in [
                key::PROTOCOL_VERSION,
                key::CLIENT_INFO,
                key::CLIENT_CAPABILITIES,
                key::LOG_LEVEL,
                key::SERVER_INFO,
                key::SUBSCRIPTION_ID,
            ] {
                self.remove(key);
            }
        }
        if to != Revision::V2025_11_25 {
            self.remove(key::RELATED_TASK);
            self.remove(key::MODEL_IMMEDIATE_RESPONSE);
        }
    }
}

/// Adapts the `_meta` of params or of a result, which every revision has.
pub(crate) fn adapt_message_meta(meta: &mut Option<Meta>, to: Revision) {
    let Some(members) = meta else { return };
    let count = members.len();
    members.adapt(to);
    if members.is_empty() && count > 0 {
        *meta = None;
    }
}

/// Implements [`Adapt`] for params and results that differ between revisions only in their `_meta`.
macro_rules! adapt_only_meta {
    ($($type:ident),* $(,)?) => {
        $(impl $crate::adapt::Adapt for $type {
            fn adapt(&mut self, to: $crate::revision::Revision) {
                $crate::adapt::adapt_message_meta(&mut self.meta, to);
            }
        })*
    };
}

pub(crate) use adapt_only_meta;

/// Only 2026-07-28 has a type in results.
pub(crate) fn adapt_result_type(result_type: &mut Option<ResultType>, to: Revision) {
    if to < Revision::V2026_07_28 {
        *result_type = None;
    } else {
        result_type.get_or_insert(ResultType::Complete);
    }
}

/// Only 2026-07-28 has cache hints in results. Without a hint from the author the
/// result must not be cached.
pub(crate) fn adapt_cache(ttl_ms: &mut Option<u64>, cache_scope: &mut Option<CacheScope>, to: Revision) {
    if to < Revision::V2026_07_28 {
        *ttl_ms = None;
        *cache_scope = None;
    } else {
        ttl_ms.get_or_insert(0);
        cache_scope.get_or_insert(CacheScope::Private);
    }
}

/// Maximum depth of nested properties that are adapted. Deeper ones stay unchanged.
const MAX_SCHEMA_DEPTH: usize = 64;

/// Adapts a JSON Schema to a revision: `$schema` was added in 2025-11-25, and before 2026-07-28 there is no
/// `x-mcp-header` and the schema of a property is always an object. Text that needs no change stays
/// unchanged.
pub(crate) fn adapt_schema(schema: &mut RawJson, to: Revision) {
    if to >= Revision::V2026_07_28 {
        return;
    }
    let Ok(mut map) = schema.decode::<RawMap>() else { return };
    let mut changed = to < Revision::V2025_11_25 && map.remove("$schema").is_some();
    changed |= adapt_properties(&mut map, MAX_SCHEMA_DEPTH);
    if changed {
        *schema = crate::to_json(&map);
    }
}

fn adapt_properties(schema: &mut RawMap, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let Some(raw) = schema.get_mut("properties") else { return false };
    let Ok(mut properties) = raw.decode::<RawMap>() else { return false };
    let mut changed = false;
    for (_, property) in properties.iter_mut() {
        changed |= adapt_property(property, depth);
    }
    if changed {
        *raw = crate::to_json(&properties);
    }
    changed
}

fn adapt_property(property: &mut RawJson, depth: usize) -> bool {
    match property.as_bytes() {
        b"true" => {
            *property = RawJson::empty_object();
            return true;
        }
        b"false" => {
            *property = crate::to_json(&RawMap::from([("not", RawJson::empty_object())]));
            return true;
        }
        _ => {}
    }
    let Ok(mut map) = property.decode::<RawMap>() else { return false };
    let mut changed = map.remove("x-mcp-header").is_some();
    changed |= adapt_properties(&mut map, depth);
    if changed {
        *property = crate::to_json(&map);
    }
    changed
}

/// Returns whether a schema describes objects only. Before 2026-07-28 output schemas had to.
pub(crate) fn describes_object(schema: &RawJson) -> bool {
    let Ok(map) = schema.decode::<RawMap>() else { return false };
    map.decode::<String>("type").is_ok_and(|kind| kind.as_deref() == Some("object"))
}
