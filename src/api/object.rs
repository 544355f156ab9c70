//! An object of any of the six kinds, and reading one from JSON.

use std::fmt;

use k8s_openapi::Resource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::strict::Strict;
use super::wire::without_position;
use super::{
    ApiBinding, ApiConversion, ApiExport, ApiResourceSchema, BindingKey, LogicalCluster, ObservedCrd, Text, cluster_of,
    name_of,
};

/// One of the six kinds that the controller reads (SPEC 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Kind {
    /// `apis.kcp.io/v1alpha2`
    #[serde(rename = "APIBinding")]
    ApiBinding,
    /// `apis.kcp.io/v1alpha2`
    #[serde(rename = "APIExport")]
    ApiExport,
    /// `apis.kcp.io/v1alpha1`
    #[serde(rename = "APIResourceSchema")]
    ApiResourceSchema,
    /// `apis.kcp.io/v1alpha1`
    #[serde(rename = "APIConversion")]
    ApiConversion,
    /// `core.kcp.io/v1alpha1`
    LogicalCluster,
    /// `apiextensions.k8s.io/v1`
    #[serde(rename = "CustomResourceDefinition")]
    Crd,
}

/// An object of one of the six kinds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Object {
    /// An APIBinding.
    ApiBinding(ApiBinding),
    /// An APIExport.
    ApiExport(ApiExport),
    /// An APIResourceSchema.
    ApiResourceSchema(ApiResourceSchema),
    /// An APIConversion.
    ApiConversion(ApiConversion),
    /// A LogicalCluster.
    LogicalCluster(LogicalCluster),
    /// A CustomResourceDefinition.
    Crd(ObservedCrd),
}

/// A document that is no object of the six kinds, or does not fit its kind.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// No JSON, or no JSON object.
    #[error("expected a JSON object: {0}")]
    Syntax(String),
    /// An object of another kind, or of none.
    #[error(
        "apiVersion `{api_version}` and kind `{kind}` are none that are read here, which are APIBinding and APIExport \
         (apis.kcp.io/v1alpha2), APIResourceSchema and APIConversion (apis.kcp.io/v1alpha1), LogicalCluster \
         (core.kcp.io/v1alpha1) and CustomResourceDefinition (apiextensions.k8s.io/v1)"
    )]
    Kind {
        /// The `apiVersion` found, empty if none.
        api_version: String,
        /// The `kind` found, empty if none.
        kind: String,
    },
    /// A field that does not fit its kind.
    #[error("{kind}{}{object}: {field}: {problem}", if object.is_empty() { "" } else { " " })]
    Field {
        /// The kind that the object says it is.
        kind: Kind,
        /// `cluster|name`, as far as that could be told.
        object: String,
        /// The path to the field, such as `spec.resources[1].schema`.
        field: String,
        /// What was expected there and what was found.
        problem: String,
    },
}

macro_rules! kinds {
    ($($kind:ident: $type:ty),*) => {
        impl Kind {
            /// All kinds, in the order in which SPEC 1 lists them.
            pub const ALL: [Kind; 6] = [$(Kind::$kind),*];

            /// The `kind` on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$kind => <$type>::KIND),* }
            }

            /// The `apiVersion` on the wire.
            pub fn api_version(self) -> &'static str {
                match self { $(Self::$kind => <$type>::API_VERSION),* }
            }

            /// The API group.
            pub fn group(self) -> &'static str {
                match self { $(Self::$kind => <$type>::GROUP),* }
            }

            /// The name in paths.
            pub fn plural(self) -> &'static str {
                match self { $(Self::$kind => <$type>::URL_PATH_SEGMENT),* }
            }
        }

        impl Object {
            /// Which kind it is.
            pub fn kind(&self) -> Kind {
                match self { $(Self::$kind(_) => Kind::$kind),* }
            }

            /// Its metadata.
            pub fn metadata(&self) -> &ObjectMeta {
                match self { $(Self::$kind(object) => &object.metadata),* }
            }

            /// Its metadata, to be changed.
            pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
                match self { $(Self::$kind(object) => &mut object.metadata),* }
            }

            /// Reads the JSON of an object whose kind is known; `apiVersion` and `kind` may be
            /// missing, as in the items of lists.
            ///
            /// # Errors
            /// [`ObjectError`] says which field does not fit.
            pub fn from_json(kind: Kind, json: &str) -> Result<Self, ObjectError> {
                match kind { $(Kind::$kind => read::<$type>(kind, json).map(Object::$kind)),* }
            }
        }

        $(
            impl From<$type> for Object {
                fn from(object: $type) -> Self {
                    Object::$kind(object)
                }
            }
        )*
    };
}
kinds! {
    ApiBinding: ApiBinding,
    ApiExport: ApiExport,
    ApiResourceSchema: ApiResourceSchema,
    ApiConversion: ApiConversion,
    LogicalCluster: LogicalCluster,
    Crd: ObservedCrd
}

impl Kind {
    /// The kind of an `apiVersion` and a `kind`, if it is one of the six.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == kind && known.api_version() == api_version)
    }

    /// The kind of a plural name, if it is one of the six.
    pub fn of_plural(plural: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.plural() == plural)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Object {
    /// Its logical cluster and name.
    pub fn key(&self) -> BindingKey {
        BindingKey::new(cluster_of(self.metadata()), name_of(self.metadata()))
    }

    /// Reads the JSON of an object that says its kind.
    ///
    /// # Errors
    /// [`ObjectError`] if it is of none of the six kinds, or a field does not fit.
    pub fn from_typed_json(json: &str) -> Result<Self, ObjectError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct TypeMeta {
            #[serde(default)]
            api_version: String,
            #[serde(default)]
            kind: String,
        }
        let Strict(meta): Strict<TypeMeta> =
            serde_json::from_str(json).map_err(|error| ObjectError::Syntax(error.to_string()))?;
        match Kind::of(&meta.api_version, &meta.kind) {
            Some(kind) => Self::from_json(kind, json),
            None => Err(ObjectError::Kind { api_version: meta.api_version, kind: meta.kind }),
        }
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<serde_json::value::RawValue>::deserialize(deserializer)?;
        Self::from_typed_json(json.get()).map_err(serde::de::Error::custom)
    }
}

fn read<T: DeserializeOwned>(kind: Kind, json: &str) -> Result<T, ObjectError> {
    let fast = serde_json::from_str(json);
    // Tracking the path costs time that only a failure is worth.
    fast.or_else(|_| {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            if error.inner().is_syntax() || error.inner().is_eof() {
                return ObjectError::Syntax(error.inner().to_string());
            }
            ObjectError::Field {
                kind,
                object: identify(json),
                field: error.path().to_string(),
                problem: without_position(error.inner()),
            }
        })
    })
}

/// Which object it was, told from what can be read of one that does not fit.
fn identify(json: &str) -> String {
    #[derive(Default, Deserialize)]
    struct Metadata {
        #[serde(default)]
        name: serde_json::Value,
        #[serde(default)]
        annotations: serde_json::Value,
    }
    #[derive(Default, Deserialize)]
    struct Named {
        #[serde(default)]
        metadata: Metadata,
    }
    let named: Named = serde_json::from_str(json).unwrap_or_default();
    let text =
        |value: Option<&serde_json::Value>| Text::from(value.and_then(|value| value.as_str()).unwrap_or_default());
    let cluster = text(named.metadata.annotations.get(super::CLUSTER_ANNOTATION));
    BindingKey::new(cluster, text(Some(&named.metadata.name))).to_string()
}

#[cfg(test)]
mod tests;
