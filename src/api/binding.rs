//! APIBinding: what a consumer wants, and what came of it.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelectorRequirement, ObjectMeta};
use serde::{Deserialize, Serialize};

use super::strict::{list, null, optional};
use super::wire::{Extra, is_default, kind};
use super::{BindingKey, ClusterName, ClusterPath, Condition, GroupResource, IdentityHash, List, Text};

/// Binds the APIs of an APIExport into the logical cluster in which it stands
/// (`apis.kcp.io/v1alpha2`).
///
/// Of the spec only what SPEC 1 names is kept; of the status everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApiBinding {
    /// Standard metadata; the logical cluster is its annotation `kcp.io/cluster`.
    pub metadata: ObjectMeta,
    /// What the consumer wants.
    pub spec: ApiBindingSpec,
    /// What this controller and others report.
    pub status: ApiBindingStatus,
}

kind!(ApiBinding, "APIBinding", "apibindings", "apis.kcp.io", "v1alpha2", {
    spec: ApiBindingSpec,
    status: ApiBindingStatus
});

impl ApiBinding {
    /// The binding's key in the queue: its logical cluster and name.
    pub fn key(&self) -> BindingKey {
        BindingKey::new(super::cluster_of(&self.metadata), super::name_of(&self.metadata))
    }
}

/// What a consumer wants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiBindingSpec {
    /// What is bound.
    #[serde(default, deserialize_with = "null")]
    pub reference: BindingReference,
    /// Answers to the export's claims.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "is_default")]
    pub permission_claims: Vec<PermissionClaim>,
}

/// What is bound: so far always an export.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BindingReference {
    /// The export, if there is one.
    #[serde(default, deserialize_with = "optional", skip_serializing_if = "is_default")]
    pub export: Option<ExportReference>,
}

/// An export, named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportReference {
    /// The path (or name) of the export's logical cluster; empty for the binding's own.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub path: ClusterPath,
    /// The export's name.
    #[serde(default, deserialize_with = "null")]
    pub name: Text,
}

/// A claim of an export on resources of its consumers, and a consumer's answer to it.
///
/// One type serves the four places where claims stand: an export's spec, a binding's spec
/// (with `selector` and `state`), and the two lists of a binding's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionClaim {
    /// The group claimed; empty for the core group.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub group: Text,
    /// The resource (plural) claimed.
    #[serde(default, deserialize_with = "null")]
    pub resource: Text,
    /// What the provider may do with it.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub verbs: Vec<Text>,
    /// The identity of the API that the resource belongs to; empty for one that is built in.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub identity_hash: IdentityHash,
    /// What the export proposes as `selector`.
    #[serde(default, deserialize_with = "optional", skip_serializing_if = "is_default")]
    pub default_selector: Option<ClaimSelector>,
    /// Which objects the consumer lets the provider have.
    #[serde(default, deserialize_with = "optional", skip_serializing_if = "is_default")]
    pub selector: Option<ClaimSelector>,
    /// `Accepted` or `Rejected`.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub state: Text,
    /// Further fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl PermissionClaim {
    /// What is claimed.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.resource)
    }

    /// True if the consumer accepted the claim.
    pub fn is_accepted(&self) -> bool {
        self.state == "Accepted"
    }
}

/// Which objects a claim is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSelector {
    /// Labels that an object has to have.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements on an object's labels.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "is_default")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
    /// All objects.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub match_all: bool,
    /// Further fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What came of a binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiBindingStatus {
    /// The logical cluster of the export.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub api_export_cluster_name: ClusterName,
    /// What is bound.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "is_default")]
    pub bound_resources: List<BoundResource>,
    /// How far binding has come.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub phase: Phase,
    /// `Ready` first, then by type.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "is_default")]
    pub conditions: List<Condition>,
    /// Written by another controller.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "is_default")]
    pub applied_permission_claims: List<PermissionClaim>,
    /// What the export claims.
    #[serde(default, deserialize_with = "list", skip_serializing_if = "is_default")]
    pub export_permission_claims: List<PermissionClaim>,
    /// Further fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ApiBindingStatus {
    /// The condition of a type, if it is there.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == *kind)
    }

    /// True if the conditions are in order, and those that this controller sets say that all is well, and no more.
    pub(crate) fn is_well(&self) -> bool {
        let kinds = [
            Condition::READY,
            Condition::API_EXPORT_VALID,
            Condition::BINDING_UP_TO_DATE,
            Condition::INITIAL_BINDING_COMPLETED,
        ];
        let holds = |kind| self.condition(kind).is_some_and(Condition::is_plainly_true);
        kinds.into_iter().all(holds) && self.conditions.is_sorted_by(|one, other| one.rank() <= other.rank())
    }

    /// The entry of a resource, if it is bound.
    pub fn bound(&self, resource: &GroupResource) -> Option<&BoundResource> {
        self.bound_resources.iter().find(|bound| bound.is(resource))
    }
}

/// How far binding has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Text", into = "Text")]
pub enum Phase {
    /// No phase: nobody has looked at the binding yet.
    #[default]
    New,
    /// Not all resources have been bound yet.
    Binding,
    /// All resources were bound once.
    Bound,
    /// A phase that this controller does not know, and leaves alone.
    Other(Text),
}

impl From<Text> for Phase {
    fn from(text: Text) -> Self {
        match text.as_str() {
            "" => Self::New,
            "Binding" => Self::Binding,
            "Bound" => Self::Bound,
            _ => Self::Other(text),
        }
    }
}

impl From<Phase> for Text {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Other(text) => text,
            known => known.as_str().into(),
        }
    }
}

impl Phase {
    /// The text as it stands on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::New => "",
            Self::Binding => "Binding",
            Self::Bound => "Bound",
            Self::Other(text) => text,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One resource that is bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundResource {
    /// The group; empty for the core group.
    #[serde(default, deserialize_with = "null")]
    pub group: Text,
    /// The resource (plural).
    #[serde(default, deserialize_with = "null")]
    pub resource: Text,
    /// The schema it is bound with.
    #[serde(default, deserialize_with = "null")]
    pub schema: BoundSchema,
    /// The versions in which objects may be stored.
    #[serde(default, deserialize_with = "null", skip_serializing_if = "is_default")]
    pub storage_versions: Vec<Text>,
    /// Further fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl BoundResource {
    /// The resource and its group.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.resource)
    }

    /// True if this is the entry of that resource.
    pub fn is(&self, resource: &GroupResource) -> bool {
        self.resource == *resource.resource() && self.group == *resource.group()
    }
}

/// The schema with which a resource is bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundSchema {
    /// The schema's name.
    #[serde(default, deserialize_with = "null")]
    pub name: Text,
    /// The schema's uid, which is the name of the bound CRD.
    #[serde(rename = "UID", default, deserialize_with = "null")]
    pub uid: Text,
    /// The export's identity.
    #[serde(default, deserialize_with = "null")]
    pub identity_hash: IdentityHash,
    /// Further fields.
    #[serde(flatten)]
    pub extra: Extra,
}

#[cfg(test)]
mod tests;
