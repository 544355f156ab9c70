//! Reading that takes an object for an object only.
//!
//! serde's derived types also take a list, as their fields in order. In YAML one `-` too many would
//! then be read as something that nobody wrote.

use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Visitor};

/// Reads `null` as the empty value: servers send it where lists and maps are expected.
pub(crate) fn null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(optional(deserializer)?.unwrap_or_default())
}

/// Reads `null` as nothing.
pub(crate) fn optional<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Strict<T>>::deserialize(deserializer)?.map(|strict| strict.0))
}

/// Reads a list whose items are objects; `null` is the empty one.
pub(crate) fn list<'de, D, T, L>(deserializer: D) -> Result<L, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
    L: FromIterator<T> + Deref<Target = [T]>,
{
    let items: Vec<Strict<T>> = null(deserializer)?;
    Ok(items.into_iter().map(|strict| strict.0).collect())
}

/// A type that is read from an object, never from a list in its stead.
pub(crate) struct Strict<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Strict<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(ObjectOnly(deserializer)).map(Strict)
    }
}

struct ObjectOnly<D>(D);

macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {
        $(
            fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
                self.0.$method($($argument,)* visitor)
            }
        )*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectOnly<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    forward! {
        deserialize_any() deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_f32() deserialize_f64()
        deserialize_char() deserialize_str() deserialize_string() deserialize_bytes() deserialize_byte_buf()
        deserialize_option() deserialize_unit() deserialize_seq() deserialize_map() deserialize_identifier()
        deserialize_ignored_any() deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str) deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }
}
