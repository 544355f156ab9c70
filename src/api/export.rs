//! APIExport: what a provider offers.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::strict::{list, null, optional};
use super::wire::{is_default, kind};
use super::{Condition, IdentityHash, List, PermissionClaim, Text};

/// Offers resources to be bound (`apis.kcp.io/v1alpha2`). Only what SPEC 1 names is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApiExport {
    /// Standard metadata; the logical cluster is its annotation `kcp.io/cluster`.
    pub metadata: ObjectMeta,
    /// What is offered.
    pub spec: ApiExportSpec,
    /// Its identity.
    pub status: ApiExportStatus,
}

kind!(ApiExport, "APIExport", "apiexports", "apis.kcp.io", "v1alpha2", {
    spec: ApiExportSpec,
    status: ApiExportStatus
});

/// What is offered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiExportSpec {
    /// The resources, each with its schema.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "is_default")]
    pub resources: List<ExportedResource>,
    /// What the provider wants of its consumers' resources.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "is_default")]
    pub permission_claims: List<PermissionClaim>,
}

/// One resource that is offered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExportedResource {
    /// The resource's plural name.
    #[serde(default, deserialize_with = "null")]
    pub name: Text,
    /// Its group; empty for the core group.
    #[serde(default, deserialize_with = "null")]
    pub group: Text,
    /// The name of its APIResourceSchema, in the export's logical cluster.
    #[serde(default, deserialize_with = "null")]
    pub schema: Text,
    /// Where objects are stored.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub storage: ResourceStorage,
}

/// Where objects of a resource are stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceStorage {
    /// As objects of the bound CRD, in the consumer's logical cluster.
    #[serde(default, deserialize_with = "optional", skip_serializing_if = "is_default")]
    pub crd: Option<CrdStorage>,
    /// Somewhere else, named by a reference.
    #[serde(default, deserialize_with = "optional", skip_serializing_if = "is_default")]
    pub r#virtual: Option<VirtualStorage>,
}

/// Stored as objects of the bound CRD.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrdStorage {}

/// Stored behind an endpoint of the provider's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualStorage {
    /// What tells the endpoint.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub reference: StorageReference,
    /// The identity of what is stored there.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub identity_hash: IdentityHash,
}

/// An object in the export's logical cluster that tells an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageReference {
    /// Its group; empty for the core group.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub api_group: Text,
    /// Its kind.
    #[serde(default, deserialize_with = "null")]
    pub kind: Text,
    /// Its name.
    #[serde(default, deserialize_with = "null")]
    pub name: Text,
}

/// The identity of an export, as others report it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiExportStatus {
    /// The identity; empty until it is made, and it may change.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub identity_hash: IdentityHash,
    /// Conditions that this controller does not read.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "is_default")]
    pub conditions: Vec<Condition>,
}
