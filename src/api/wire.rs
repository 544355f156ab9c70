//! What the kinds share in how they are read and written.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Text;
use super::strict::null;

/// What a JSON error says, without where: the path to the field says that better, and a line that
/// nobody has seen says nothing.
pub(crate) fn without_position(error: &serde_json::Error) -> String {
    error.to_string().split(" at line ").next().unwrap_or_default().into()
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Fields that a type does not name, carried through as they came.
///
/// Almost always there are none, which costs one word.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(clippy::box_collection)] // one word instead of three in every condition and bound resource
pub struct Extra(Option<Box<BTreeMap<String, Value>>>);

impl Extra {
    /// True if there is no further field.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The value of a field.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.0.as_ref()?.get(field)
    }
}

impl FromIterator<(String, Value)> for Extra {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(fields: I) -> Self {
        let fields: BTreeMap<_, _> = fields.into_iter().collect();
        Self((!fields.is_empty()).then(|| Box::new(fields)))
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(fields) => fields.serialize(serializer),
            None => serializer.collect_map::<&str, &Value, _>([]),
        }
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(BTreeMap::<String, Value>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// A JSON text that is passed on as it is.
#[derive(Clone, Debug, Default, Eq)]
pub struct Json(Text);

/// The order of fields and white space make no difference.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.to_value() == other.to_value()
    }
}

impl Json {
    /// The compact JSON of a value; `null` for a value that has none, which no type of this crate is.
    pub(crate) fn of(value: &impl Serialize) -> Self {
        Self(serde_json::to_string(value).unwrap_or_else(|_| "null".into()).into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text read as a value.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// The text read as a type of the caller's.
    ///
    /// # Errors
    /// What serde says when the text does not fit the type.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Box::<RawValue>::deserialize(deserializer)?.get().into()))
    }
}

/// Implements what `kube::Api` and JSON want of one of kcp's kinds: its names, its
/// metadata, and an `apiVersion` and `kind` that are always written and, where they are
/// there, have to be the right ones when it is read.
macro_rules! kind {
    ($kind:ident, $name:literal, $plural:literal, $group:literal, $version:literal, { $($field:ident: $type:ty),* }) => {
        impl k8s_openapi::Resource for $kind {
            const API_VERSION: &'static str = concat!($group, "/", $version);
            const GROUP: &'static str = $group;
            const KIND: &'static str = $name;
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = k8s_openapi::ClusterResourceScope;
        }

        impl k8s_openapi::Metadata for $kind {
            type Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }

        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeStruct;
                let fields = 3 $(+ { let _ = stringify!($field); 1 })*;
                let mut object = serializer.serialize_struct($name, fields)?;
                object.serialize_field("apiVersion", <Self as k8s_openapi::Resource>::API_VERSION)?;
                object.serialize_field("kind", $name)?;
                object.serialize_field("metadata", &self.metadata)?;
                $(
                    if $crate::api::wire::is_default(&self.$field) {
                        object.skip_field(stringify!($field))?;
                    } else {
                        object.serialize_field(stringify!($field), &self.$field)?;
                    }
                )*
                object.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[derive(serde::Deserialize)]
                #[serde(rename_all = "camelCase", rename = $name)]
                struct Wire {
                    #[serde(default, deserialize_with = "api_version")]
                    #[allow(dead_code)]
                    api_version: (),
                    #[serde(default, deserialize_with = "kind")]
                    #[allow(dead_code)]
                    kind: (),
                    #[serde(default, deserialize_with = "crate::api::strict::null")]
                    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
                    $(
                        #[serde(default, deserialize_with = "crate::api::strict::null")]
                        $field: $type,
                    )*
                }

                fn api_version<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
                    $crate::api::wire::expect(deserializer, <$kind as k8s_openapi::Resource>::API_VERSION)
                }

                fn kind<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
                    $crate::api::wire::expect(deserializer, $name)
                }

                let $crate::api::strict::Strict(wire) = $crate::api::strict::Strict::<Wire>::deserialize(deserializer)?;
                Ok(Self { metadata: wire.metadata, $($field: wire.$field),* })
            }
        }
    };
}
pub(crate) use kind;

/// Accepts this text, the empty one and `null`.
pub(crate) fn expect<'de, D: Deserializer<'de>>(deserializer: D, text: &str) -> Result<(), D::Error> {
    let found: Text = null(deserializer)?;
    if found.is_empty() || found == *text {
        return Ok(());
    }
    Err(serde::de::Error::invalid_value(serde::de::Unexpected::Str(&found), &&*format!("`{text}`")))
}

#[cfg(test)]
mod tests;
