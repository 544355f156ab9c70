//! CustomResourceDefinitions as far as this controller reads them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionNames,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::Text;
use super::strict::{list, null};
use super::wire::{is_default, kind};

/// A CustomResourceDefinition without its OpenAPI schemas: what the controller reads of one.
///
/// It reads the JSON of a whole CRD and skips the rest, so tens of kilobytes of schema are
/// neither parsed nor kept. k8s-openapi's type converts into it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedCrd {
    /// Standard metadata; the logical cluster is its annotation `kcp.io/cluster`.
    pub metadata: ObjectMeta,
    /// The names asked for.
    pub spec: ObservedCrdSpec,
    /// What the server made of them.
    pub status: ObservedCrdStatus,
}

kind!(ObservedCrd, "CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io", "v1", {
    spec: ObservedCrdSpec,
    status: ObservedCrdStatus
});

/// The names that a CRD asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedCrdSpec {
    /// The group.
    #[serde(default, deserialize_with = "null")]
    pub group: Text,
    /// The names.
    #[serde(default, deserialize_with = "null")]
    pub names: ResourceNames,
}

/// What the server made of a CRD.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedCrdStatus {
    /// The names that the server granted.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub accepted_names: ResourceNames,
    /// `Established`, `NamesAccepted`, `Terminating` and others.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "is_default")]
    pub conditions: Vec<ObservedCondition>,
    /// Versions in which objects may be stored.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub stored_versions: Vec<Text>,
}

/// The names of a resource, as a CRD or a schema has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceNames {
    /// The name in paths.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub plural: Text,
    /// The name of one.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub singular: Text,
    /// Short names for people.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub short_names: Vec<Text>,
    /// The kind of an object.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub kind: Text,
    /// The kind of a list.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub list_kind: Text,
}

/// A condition's type and status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedCondition {
    /// What the condition is about.
    #[serde(rename = "type", default, deserialize_with = "null")]
    pub kind: Text,
    /// `True`, `False` or `Unknown`.
    #[serde(default, deserialize_with = "null")]
    pub status: Text,
}

impl From<&CustomResourceDefinitionNames> for ResourceNames {
    fn from(names: &CustomResourceDefinitionNames) -> Self {
        let text = |name: &Option<String>| name.as_deref().map(Text::from).unwrap_or_default();
        Self {
            plural: (&names.plural).into(),
            singular: text(&names.singular),
            short_names: names.short_names.iter().flatten().map(Text::from).collect(),
            kind: (&names.kind).into(),
            list_kind: text(&names.list_kind),
        }
    }
}

impl From<CustomResourceDefinition> for ObservedCrd {
    fn from(crd: CustomResourceDefinition) -> Self {
        let status = crd.status.unwrap_or_default();
        Self {
            spec: ObservedCrdSpec { group: crd.spec.group.into(), names: (&crd.spec.names).into() },
            status: ObservedCrdStatus {
                accepted_names: status.accepted_names.as_ref().map(ResourceNames::from).unwrap_or_default(),
                conditions: (status.conditions.iter().flatten())
                    .map(|condition| ObservedCondition {
                        kind: (&condition.type_).into(),
                        status: (&condition.status).into(),
                    })
                    .collect(),
                stored_versions: status.stored_versions.iter().flatten().map(Text::from).collect(),
            },
            metadata: crd.metadata,
        }
    }
}
