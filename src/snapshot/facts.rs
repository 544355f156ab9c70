//! What is kept of each object: what the controller reads of it, and no more.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::bound_crd;
use super::locks::{Annotation, Layer, Lock};
use super::names::{Name, NameKey, NameQuery};
use crate::api::{
    self, ApiBinding, ApiBindingStatus, ApiExport, ApiResourceSchema, BoundResource, ClusterName, ClusterPath,
    ExportReference, ExportedResource, GroupResource, IdentityHash, Json, List, LogicalCluster, ObservedCrd,
    PermissionClaim, ResourceNames, Text,
};

fn text(text: &Option<String>) -> Text {
    text.as_deref().map(Text::from).unwrap_or_default()
}

/// What every object has.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Meta {
    /// The uid; empty for an object without.
    #[serde(skip_serializing_if = "Text::is_empty")]
    pub uid: Text,
    /// The resourceVersion; empty for an object without.
    #[serde(skip_serializing_if = "Text::is_empty")]
    pub resource_version: Text,
}

impl From<&ObjectMeta> for Meta {
    fn from(metadata: &ObjectMeta) -> Self {
        Self { uid: text(&metadata.uid), resource_version: text(&metadata.resource_version) }
    }
}

/// What is known of an APIBinding.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Binding {
    /// Uid and resourceVersion.
    #[serde(flatten)]
    pub meta: Meta,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// What it binds.
    pub reference: Option<ExportReference>,
    /// The reference's path joined with its name, the binding's own cluster for an empty path:
    /// under this the export is looked up.
    pub target: Option<ClusterPath>,
    /// The claims that were accepted and name an identity.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub claims: Box<[AcceptedClaim]>,
    /// The status, whole.
    pub status: ApiBindingStatus,
    /// What the status lists as bound, as keys.
    #[serde(skip)]
    pub(super) bound: Arc<Bound>,
    /// True if the conditions are those of a binding with which all is well.
    #[serde(skip)]
    pub(crate) is_well: bool,
}

/// A list of bound resources, and the resources as keys. All bindings that list the same share one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bound {
    pub(super) list: List<BoundResource>,
    pub(super) resources: Box<[GroupResource]>,
}

impl From<&List<BoundResource>> for Bound {
    fn from(list: &List<BoundResource>) -> Self {
        Self { list: list.clone(), resources: list.iter().map(BoundResource::group_resource).collect() }
    }
}

/// A claim that its binding accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedClaim {
    /// What is claimed.
    pub resource: GroupResource,
    /// Whose it is.
    pub identity: IdentityHash,
}

impl From<&ApiBinding> for Binding {
    fn from(binding: &ApiBinding) -> Self {
        let bound = Arc::new(Bound::from(&binding.status.bound_resources));
        Self { bound, ..Self::of(binding, binding.status.clone()) }
    }
}

impl Binding {
    /// The same as `From`, without a copy of the status, and what is bound still to be put in.
    pub(super) fn new(mut binding: ApiBinding) -> Self {
        let status = std::mem::take(&mut binding.status);
        Self::of(&binding, status)
    }

    fn of(binding: &ApiBinding, status: ApiBindingStatus) -> Self {
        let reference = binding.spec.reference.export.clone();
        let target = reference.as_ref().map(|export| match export.path.is_empty() {
            true => api::cluster_of(&binding.metadata).path().join(&export.name),
            false => export.path.join(&export.name),
        });
        let accepted = binding.spec.permission_claims.iter();
        Self {
            meta: (&binding.metadata).into(),
            created: binding.metadata.creation_timestamp.as_ref().map(|time| time.0),
            reference,
            target,
            claims: accepted
                .filter(|claim| claim.is_accepted() && !claim.identity_hash.is_empty())
                .map(|claim| AcceptedClaim { resource: claim.group_resource(), identity: claim.identity_hash.clone() })
                .collect(),
            bound: Arc::default(),
            is_well: status.is_well(),
            status,
        }
    }

    /// The path under which the export is looked up, if one is named.
    pub(crate) fn target(&self) -> Option<&Text> {
        self.target.as_ref().map(ClusterPath::as_text)
    }

    pub(crate) fn bound_uids(&self) -> impl Iterator<Item = &Text> {
        self.status.bound_resources.iter().map(|bound| &bound.schema.uid)
    }

    pub(crate) fn bound_resources(&self) -> &[GroupResource] {
        &self.bound.resources
    }

    /// True if the binding lists the bound CRD of that name.
    pub fn lists(&self, uid: &str) -> bool {
        self.status.bound_resources.iter().any(|bound| bound.schema.uid == *uid)
    }
}

/// What is known of an APIExport.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Export {
    /// Uid and resourceVersion.
    #[serde(flatten)]
    pub meta: Meta,
    /// The path of its logical cluster; empty where it is not known.
    #[serde(skip_serializing_if = "ClusterPath::is_empty")]
    pub path: ClusterPath,
    /// Its identity; empty until it is made.
    pub identity: IdentityHash,
    /// What it offers.
    pub resources: List<ExportedResource>,
    /// What it claims.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub claims: List<PermissionClaim>,
    /// The paths under which it is found.
    #[serde(skip)]
    pub(super) addresses: Box<[Text]>,
}

impl From<&ApiExport> for Export {
    fn from(export: &ApiExport) -> Self {
        let name = api::name_of(&export.metadata);
        let path = api::path_of(&export.metadata);
        let by_cluster = api::cluster_of(&export.metadata).path().join(&name);
        let by_path = (!path.is_empty()).then(|| path.join(&name)).filter(|by_path| *by_path != by_cluster);
        Self {
            meta: (&export.metadata).into(),
            addresses: by_path.iter().chain([&by_cluster]).map(|address| address.as_text().clone()).collect(),
            path,
            identity: export.status.identity_hash.clone(),
            resources: export.spec.resources.clone(),
            claims: export.spec.permission_claims.clone(),
        }
    }
}

impl Export {
    /// The paths under which it is found: its cluster's name, and its path where it is known, each
    /// joined with its name.
    pub(crate) fn addresses(&self) -> &[Text] {
        &self.addresses
    }

    pub(super) fn identities(&self) -> Vec<IdentityHash> {
        let identity = Some(self.identity.clone()).filter(|identity| !identity.is_empty());
        identity.into_iter().collect()
    }

    pub(super) fn schemas(&self) -> Vec<Text> {
        self.resources.iter().map(|resource| resource.schema.clone()).collect()
    }
}

/// What is known of an APIResourceSchema.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Schema {
    /// Uid and resourceVersion.
    #[serde(flatten)]
    pub meta: Meta,
    /// The resource that it is the schema of.
    pub resource: GroupResource,
    /// The resource's names.
    pub names: ResourceNames,
    /// True if it has more than one version and says nothing of conversion.
    pub lacks_conversion: bool,
    /// The body that creates its bound CRD, or why there can be none. Made once, here.
    pub crd: Result<Json, String>,
}

impl From<&ApiResourceSchema> for Schema {
    fn from(schema: &ApiResourceSchema) -> Self {
        Self {
            meta: (&schema.metadata).into(),
            resource: schema.group_resource(),
            names: (&schema.spec.names).into(),
            lacks_conversion: schema.spec.versions.len() > 1 && schema.spec.conversion.is_none(),
            crd: bound_crd::generate(schema),
        }
    }
}

impl Schema {
    pub(crate) fn has_name(&self, query: NameQuery<'_>) -> bool {
        Name::all(&self.names).any(|name| NameQuery::new(self.resource.group(), name) == query)
    }

    pub(super) fn name_keys(&self) -> Vec<NameKey> {
        Name::all(&self.names).map(|name| NameKey::new(self.resource.group(), name)).collect()
    }
}

/// What is known of a CustomResourceDefinition.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Crd {
    /// Uid and resourceVersion.
    #[serde(flatten)]
    pub meta: Meta,
    /// The group.
    pub group: Text,
    /// The names asked for.
    pub names: ResourceNames,
    /// The names granted.
    pub accepted_names: ResourceNames,
    /// True if the server has judged the names (the condition `NamesAccepted` is there).
    pub names_judged: bool,
    /// True if it is established and not terminating: objects can be stored.
    pub serving: bool,
    /// Versions in which objects may be stored.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub stored_versions: Box<[Text]>,
    /// The schema that a bound CRD says it was made of.
    pub schema: Option<(ClusterName, Text)>,
}

impl From<&ObservedCrd> for Crd {
    fn from(crd: &ObservedCrd) -> Self {
        let condition = |kind| crd.status.conditions.iter().find(|condition| condition.kind == kind);
        let is_true = |kind| condition(kind).is_some_and(|condition| condition.status == "True");
        let cluster = api::annotation(&crd.metadata, bound_crd::SCHEMA_CLUSTER_ANNOTATION);
        let name = api::annotation(&crd.metadata, bound_crd::SCHEMA_NAME_ANNOTATION);
        Self {
            meta: (&crd.metadata).into(),
            group: crd.spec.group.clone(),
            names: crd.spec.names.clone(),
            accepted_names: crd.status.accepted_names.clone(),
            names_judged: condition("NamesAccepted").is_some(),
            serving: is_true("Established") && !is_true("Terminating"),
            stored_versions: crd.status.stored_versions.as_slice().into(),
            schema: (!name.is_empty()).then(|| (cluster.into(), name)),
        }
    }
}

impl Crd {
    /// The names that it takes away from a schema (SPEC 6): those granted; until the server has
    /// judged, those asked for, unless the schema is bound already (D14).
    pub fn taken_names(&self, schema_is_bound: bool) -> &ResourceNames {
        if self.names_judged || schema_is_bound { &self.accepted_names } else { &self.names }
    }

    /// All the names that it may take away from some schema, and the plural that it asks for,
    /// by which locks know it (D15).
    pub(crate) fn name_keys(&self) -> Vec<NameKey> {
        let asked = Name::all(&self.names).filter(|_| !self.names_judged);
        let names = Name::all(&self.accepted_names).chain(asked);
        let plural = Name::Asked(&self.names.plural);
        names.chain([plural]).map(|name| NameKey::new(&self.group, name)).collect()
    }
}

/// What is known of a LogicalCluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Home {
    /// Uid and resourceVersion.
    #[serde(flatten)]
    pub meta: Meta,
    /// The path of the logical cluster, where it is known.
    #[serde(skip_serializing_if = "ClusterPath::is_empty")]
    pub path: ClusterPath,
    /// Locks for CRDs that are established.
    pub crds: Annotation,
    /// Locks of bindings.
    pub bindings: Annotation,
    /// Locks for CRDs that are on their way.
    pub pending: Annotation,
    /// All locks in the single layout; those of former days in the split one.
    pub legacy: Annotation,
}

impl From<&LogicalCluster> for Home {
    fn from(cluster: &LogicalCluster) -> Self {
        let read = |layer: Layer| Annotation::read(&api::annotation(&cluster.metadata, layer.annotation()));
        Self {
            meta: (&cluster.metadata).into(),
            path: api::path_of(&cluster.metadata),
            crds: read(Layer::Crds),
            bindings: read(Layer::Bindings),
            pending: read(Layer::Pending),
            legacy: read(Layer::Legacy),
        }
    }
}

impl Home {
    pub(super) fn layer_mut(&mut self, layer: Layer) -> &mut Annotation {
        match layer {
            Layer::Crds => &mut self.crds,
            Layer::Bindings => &mut self.bindings,
            Layer::Pending => &mut self.pending,
            Layer::Legacy => &mut self.legacy,
        }
    }

    /// One of the annotations.
    pub fn layer(&self, layer: Layer) -> &Annotation {
        match layer {
            Layer::Crds => &self.crds,
            Layer::Bindings => &self.bindings,
            Layer::Pending => &self.pending,
            Layer::Legacy => &self.legacy,
        }
    }
}

impl Lock {
    /// True if the lock is of a binding that is not known, or known with another uid (SPEC 11).
    pub(crate) fn is_doubtful(&self, binding: Option<&Binding>) -> bool {
        self.is_of_binding() && binding.is_none_or(|binding| !self.uid.is_empty() && self.uid != binding.meta.uid)
    }
}
