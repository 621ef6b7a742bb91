//! Random JSON: the parts that values of the vocabulary are made of.

use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any, prop_oneof},
    strategy::BoxedStrategy,
};
use serde_json::{Map, Value, json};

pub(crate) type Values = BoxedStrategy<Value>;

/// A member of an object: always there, or there half of the time.
pub(crate) enum Member {
    Always(&'static str, Values),
    Sometimes(&'static str, Values),
}

use Member::{Always, Sometimes};

pub(crate) fn object(members: Vec<Member>) -> Values {
    let start = Just(Map::new()).boxed();
    let add = |object: BoxedStrategy<Map<String, Value>>, member| {
        let (name, value) = match member {
            Always(name, value) => (name, value.prop_map(Some).boxed()),
            Sometimes(name, value) => (name, proptest::option::of(value).boxed()),
        };
        let insert = move |(mut object, value): (Map<String, Value>, Option<Value>)| {
            object.extend(value.map(|value| (name.to_owned(), value)));
            object
        };
        (object, value).prop_map(insert).boxed()
    };
    members.into_iter().fold(start, add).prop_map(Value::Object).boxed()
}

pub(crate) fn one_of(values: &'static [&'static str]) -> Values {
    proptest::sample::select(values).prop_map(Value::from).boxed()
}

pub(crate) fn list(items: Values) -> Values {
    vec(items, 0..3).prop_map(Value::Array).boxed()
}

pub(crate) fn text() -> Values {
    prop_oneof!["[a-z]{0,8}", Just("with \"quotes\",\nlines and ünïcödé 🪢".to_owned()),]
        .prop_map(Value::from)
        .boxed()
}

pub(crate) fn name() -> Values {
    "[a-z][a-z0-9_]{0,8}".prop_map(Value::from).boxed()
}

pub(crate) fn flag() -> Values {
    any::<bool>().prop_map(Value::from).boxed()
}

pub(crate) fn count() -> Values {
    (0..10_000_u64).prop_map(Value::from).boxed()
}

/// A number that is whole as often as not.
pub(crate) fn number() -> Values {
    prop_oneof![(-1000..1000_i64).prop_map(Value::from), (-10.0..10.0_f64).prop_map(Value::from)].boxed()
}

pub(crate) fn share() -> Values {
    prop_oneof![Just(json!(0)), Just(json!(1)), Just(json!(0.25))].boxed()
}

pub(crate) fn uri() -> Values {
    "test://[a-z]{1,8}/[a-z0-9]{0,4}".prop_map(Value::from).boxed()
}

pub(crate) fn base64() -> Values {
    one_of(&["", "cG5n", "AP8B"])
}

/// Any JSON, `null` and fractions included.
pub(crate) fn anything() -> Values {
    let leaf = prop_oneof![Just(Value::Null), flag(), number(), text()].boxed();
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            list(inner.clone().boxed()),
            object(vec![Sometimes("a", inner.clone().boxed()), Sometimes("b", inner.boxed())]),
        ]
    })
    .boxed()
}

pub(crate) fn any_object() -> Values {
    object(vec![Sometimes("a", anything()), Sometimes("b", anything())])
}

pub(crate) fn settings() -> Values {
    object(vec![Sometimes("com.example/feature", any_object())])
}

pub(crate) fn meta() -> Values {
    object(vec![Sometimes("com.example/key", anything()), Sometimes("traceparent", text())])
}
