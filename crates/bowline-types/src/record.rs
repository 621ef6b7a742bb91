//! How the structs of the vocabulary are declared, read and written: three macros.
//!
//! `record!` declares a struct together with its JSON form. Known members are matched by their wire
//! names in one pass over the input; members it does not name are kept in `extra`, byte for byte, and
//! written back after the known ones. A known member that occurs twice is an error.
//!
//! Each field has a kind:
//!
//! | kind | field type | absent | `null` | written |
//! | --- | --- | --- | --- | --- |
//! | `required` | `T` | error | as `T` says | always |
//! | `lenient` | `T` | default | default | always |
//! | `default` | `T` | default | default | unless empty |
//! | `optional` | `Option<T>` | `None` | `None` | when `Some` |
//! | `bare` | `Option<T>` | `None` | `None` | when `Some`; no setter |
//! | `nullable` | `Option<RawJson>` | `None` | `Some(null)` | when `Some` |
//! | `explicit` | `Option<u64>` | `None` | `None` | always, `None` as `null` |
//! | `number` | `f64` | error | error | always |
//! | `fraction` | `Option<f64>` | `None` | `None` | when `Some` |
//! | `flat` | `Vec<ContentBlock>` | error | error | always |
//! | `whole` | `Option<u64>` | `None` | `None` | when `Some` |
//!
//! `flat` reads blocks that cannot hold others. `whole` and `explicit` forgive peers that write counts as
//! fractions or below zero. Numbers without a fraction are written without one. Every struct gets
//! `new(required fields)`, and every kind that is not required, except `bare`, a setter of the field's name.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

macro_rules! record {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident $([$tag:literal = $tag_value:literal])? {
            $( $(#[$field_attribute:meta])* $kind:ident $field:ident : $type:ty = $wire:literal ),* $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[$field_attribute])* pub $field: $crate::record::field_type!($kind $type), )*
            /// Members not named above, as they came.
            pub extra: $crate::RawMap,
        }

        impl $name {
            $crate::record::constructor! { [] [] $($kind $field $type,)* }
            $( $crate::record::setter! { $kind $field $type, $wire } )*
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $( map.serialize_entry($tag, $tag_value)?; )?
                $( $crate::record::write_field! { $kind map self.$field, $wire } )*
                for (key, value) in &self.extra {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct RecordVisitor;

                impl<'de> serde::de::Visitor<'de> for RecordVisitor {
                    type Value = $name;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        formatter.write_str(concat!("a ", stringify!($name), " object"))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        $( let mut tag = $crate::record::unseen($tag); )?
                        $( let mut $field = None::<$crate::record::field_type!($kind $type)>; )*
                        let mut extra = $crate::RawMap::new();
                        while let Some(bowline_json::borrow::Text(key)) = map.next_key()? {
                            match key.as_ref() {
                                $( $tag => {
                                    $crate::record::once(tag.as_ref(), $tag)?;
                                    let found = map.next_value()?;
                                    tag = Some($crate::record::expect_tag(&found, $tag, $tag_value)?);
                                } )?
                                $( $wire => {
                                    $crate::record::once($field.as_ref(), $wire)?;
                                    $field = Some($crate::record::read_field!($kind map));
                                } )*
                                _ => extra.push_unchecked(key.into_owned(), map.next_value()?),
                            }
                        }
                        $( $crate::record::present(tag, $tag)?; )?
                        $crate::record::unique(&extra)?;
                        Ok($name {
                            $( $field: $crate::record::finish_field!($kind $field, $wire), )*
                            extra,
                        })
                    }
                }

                deserializer.deserialize_map(RecordVisitor)
            }
        }
    };
}

macro_rules! field_type {
    (required $type:ty) => { $type };
    (lenient $type:ty) => { $type };
    (default $type:ty) => { $type };
    (number $type:ty) => { $type };
    (flat $type:ty) => { $type };
    ($optional:ident $type:ty) => { Option<$type> };
}

macro_rules! constructor {
    ([] [$($other:ident)*]) => {
        /// Creates an empty value.
        pub fn new() -> Self {
            Self { $($other: Default::default(),)* extra: $crate::RawMap::new() }
        }
    };
    ([$($field:ident $type:ty,)+] [$($other:ident)*]) => {
        /// Creates a value from its required members.
        pub fn new($($field: impl Into<$type>),+) -> Self {
            Self {
                $($field: $field.into(),)*
                $($other: Default::default(),)*
                extra: $crate::RawMap::new(),
            }
        }
    };
    ([$($done:tt)*] [$($other:ident)*] required $field:ident $type:ty, $($rest:tt)*) => {
        $crate::record::constructor! { [$($done)* $field $type,] [$($other)*] $($rest)* }
    };
    ([$($done:tt)*] [$($other:ident)*] number $field:ident $type:ty, $($rest:tt)*) => {
        $crate::record::constructor! { [$($done)* $field $type,] [$($other)*] $($rest)* }
    };
    ([$($done:tt)*] [$($other:ident)*] flat $field:ident $type:ty, $($rest:tt)*) => {
        $crate::record::constructor! { [$($done)* $field $type,] [$($other)*] $($rest)* }
    };
    ([$($done:tt)*] [$($other:ident)*] $kind:ident $field:ident $type:ty, $($rest:tt)*) => {
        $crate::record::constructor! { [$($done)*] [$($other)* $field] $($rest)* }
    };
}

macro_rules! setter {
    (required $field:ident $type:ty, $wire:literal) => {};
    (number $field:ident $type:ty, $wire:literal) => {};
    (flat $field:ident $type:ty, $wire:literal) => {};
    (bare $field:ident $type:ty, $wire:literal) => {};
    (lenient $field:ident $type:ty, $wire:literal) => {
        $crate::record::setter! { default $field $type, $wire }
    };
    (default $field:ident $type:ty, $wire:literal) => {
        #[doc = concat!("Sets `", $wire, "`.")]
        #[must_use = "the setter returns the changed value"]
        pub fn $field(mut self, $field: impl Into<$type>) -> Self {
            self.$field = $field.into();
            self
        }
    };
    ($optional:ident $field:ident $type:ty, $wire:literal) => {
        #[doc = concat!("Sets `", $wire, "`.")]
        #[must_use = "the setter returns the changed value"]
        pub fn $field(mut self, $field: impl Into<$type>) -> Self {
            self.$field = Some($field.into());
            self
        }
    };
}

macro_rules! write_field {
    (required $map:ident $value:expr, $wire:literal) => {
        $map.serialize_entry($wire, &$value)?;
    };
    (flat $map:ident $value:expr, $wire:literal) => {
        $map.serialize_entry($wire, &$value)?;
    };
    (lenient $map:ident $value:expr, $wire:literal) => {
        $map.serialize_entry($wire, &$value)?;
    };
    (explicit $map:ident $value:expr, $wire:literal) => {
        $map.serialize_entry($wire, &$value)?;
    };
    (number $map:ident $value:expr, $wire:literal) => {
        $map.serialize_entry($wire, &$crate::record::Number($value))?;
    };
    (fraction $map:ident $value:expr, $wire:literal) => {
        if let Some(value) = $value {
            $map.serialize_entry($wire, &$crate::record::Number(value))?;
        }
    };
    (default $map:ident $value:expr, $wire:literal) => {
        if !$value.is_empty() {
            $map.serialize_entry($wire, &$value)?;
        }
    };
    ($optional:ident $map:ident $value:expr, $wire:literal) => {
        if let Some(value) = &$value {
            $map.serialize_entry($wire, value)?;
        }
    };
}

macro_rules! read_field {
    (flat $map:ident) => {
        $map.next_value::<$crate::content::FlatBlocks>()?.0
    };
    (nullable $map:ident) => {
        Some($map.next_value()?)
    };
    (lenient $map:ident) => {
        $map.next_value::<Option<_>>()?.unwrap_or_default()
    };
    (default $map:ident) => {
        $map.next_value::<Option<_>>()?.unwrap_or_default()
    };
    (explicit $map:ident) => {
        $map.next_value::<Option<$crate::record::Whole>>()?.map(|whole| whole.0)
    };
    (whole $map:ident) => {
        $map.next_value::<Option<$crate::record::Whole>>()?.map(|whole| whole.0)
    };
    ($plain:ident $map:ident) => {
        $map.next_value()?
    };
}

macro_rules! finish_field {
    (required $slot:ident, $wire:literal) => {
        $crate::record::present($slot, $wire)?
    };
    (flat $slot:ident, $wire:literal) => {
        $crate::record::present($slot, $wire)?
    };
    (number $slot:ident, $wire:literal) => {
        $crate::record::present($slot, $wire)?
    };
    ($other:ident $slot:ident, $wire:literal) => {
        $slot.unwrap_or_default()
    };
}

/// Declares an enum of strings that keeps the values it does not know.
macro_rules! open_enum {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident { $( $(#[$variant_attribute:meta])* $variant:ident = $wire:literal ),* $(,)? }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$variant_attribute])* $variant, )*
            /// A value not named above, as it came.
            Other(Box<str>),
        }

        impl $name {
            /// Returns the value on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $wire, )*
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $( $wire => Self::$variant, )*
                    other => Self::Other(other.into()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                bowline_json::borrow::Text::deserialize(deserializer).map(|text| Self::from(text.0.as_ref()))
            }
        }
    };
}

pub(crate) use {constructor, field_type, finish_field, open_enum, read_field, record, setter, write_field};

/// Returns the state of a tag before it is read.
pub(crate) fn unseen(_: &'static str) -> Option<()> {
    None
}

/// Refuses a member that was read before.
pub(crate) fn once<T, E: de::Error>(slot: Option<&T>, wire: &'static str) -> Result<(), E> {
    match slot {
        Some(_) => Err(E::duplicate_field(wire)),
        None => Ok(()),
    }
}

/// Refuses the absence of a required member.
pub(crate) fn present<T, E: de::Error>(slot: Option<T>, wire: &'static str) -> Result<T, E> {
    slot.ok_or_else(|| E::missing_field(wire))
}

/// Refuses unknown members that occur twice.
pub(crate) fn unique<E: de::Error>(extra: &crate::RawMap) -> Result<(), E> {
    match extra.first_duplicate() {
        Some(key) => Err(E::custom(format_args!("duplicate field `{key}`"))),
        None => Ok(()),
    }
}

/// Refuses any tag but the one of the type.
pub(crate) fn expect_tag<E: de::Error>(
    found: &bowline_json::borrow::Text<'_>,
    tag: &'static str,
    expected: &'static str,
) -> Result<(), E> {
    if found.0 == expected {
        return Ok(());
    }
    Err(E::custom(format_args!("expected `{tag}` to be `{expected}`, got `{}`", found.0)))
}

/// Writes a number without a fraction where it has none, as most writers do.
pub(crate) struct Number(pub(crate) f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if self.0.fract() == 0.0 && self.0.abs() <= EXACT && !(self.0 == 0.0 && self.0.is_sign_negative()) {
            #[expect(clippy::cast_possible_truncation, reason = "the value is integral and within ±2^53")]
            return serializer.serialize_i64(self.0 as i64);
        }
        serializer.serialize_f64(self.0)
    }
}

/// A count as peers write it: fractions are cut off, what is below zero counts as zero.
pub(crate) struct Whole(pub(crate) u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WholeVisitor;

        impl Visitor<'_> for WholeVisitor {
            type Value = Whole;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Whole, E> {
                Ok(Whole(value))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Whole, E> {
                Ok(Whole(u64::try_from(value).unwrap_or(0)))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Whole, E> {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "the cast saturates at both ends, which is what is wanted"
                )]
                Ok(Whole(value as u64))
            }
        }

        deserializer.deserialize_any(WholeVisitor)
    }
}
