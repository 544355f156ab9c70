//! kcp's kinds as they are on the wire (SPEC 1).
//!
//! They are serde types over k8s-openapi's: `ObjectMeta`, label selectors and the types of
//! CustomResourceDefinitions are its own, and each kind implements
//! [`k8s_openapi::Resource`] and [`k8s_openapi::Metadata`], so that `kube::Api<ApiBinding>`
//! works for whoever uses kube.
//!
//! They are made to be read: fields of a spec that the controller does not use are not kept. So get,
//! list and watch them, and send an effect's body as it is; but do not `create` or `replace` objects with
//! them, which would drop those fields.
//!
//! Reading is tolerant: unknown fields are read past (those of a binding's status are carried
//! through), `null` is the empty value, and an empty [`Text`] is an absent field.

mod binding;
mod condition;
mod crd;
mod export;
mod list;
mod names;
mod object;
mod others;
mod schema;
pub(crate) mod strict;
mod text;
pub(crate) mod wire;

pub use binding::{
    ApiBinding, ApiBindingSpec, ApiBindingStatus, BindingReference, BoundResource, BoundSchema, ClaimSelector,
    ExportReference, PermissionClaim, Phase,
};
pub use condition::Condition;
pub use crd::{ObservedCondition, ObservedCrd, ObservedCrdSpec, ObservedCrdStatus, ResourceNames};
pub use export::{
    ApiExport, ApiExportSpec, ApiExportStatus, CrdStorage, ExportedResource, ResourceStorage, StorageReference,
    VirtualStorage,
};
pub use list::List;
pub(crate) use names::cmp_joined;
pub use names::{BindingKey, ClusterName, ClusterPath, GroupResource, IdentityHash, NameError};
pub use object::{Kind, Object, ObjectError};
pub use others::{ApiConversion, LogicalCluster};
pub use schema::{
    ApiResourceSchema, ApiResourceSchemaSpec, SchemaConversion, SchemaVersion, WebhookClientConfig, WebhookConversion,
};
pub use text::Text;
pub use wire::{Extra, Json};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The annotation that names an object's logical cluster.
pub const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";
/// The annotation that tells the path of an object's logical cluster, where it is known.
pub const PATH_ANNOTATION: &str = "kcp.io/path";

/// The logical cluster of an object; empty for one that does not say.
pub fn cluster_of(metadata: &ObjectMeta) -> ClusterName {
    annotation(metadata, CLUSTER_ANNOTATION).into()
}

/// The path of an object's logical cluster; empty where it is not known.
pub fn path_of(metadata: &ObjectMeta) -> ClusterPath {
    annotation(metadata, PATH_ANNOTATION).into()
}

pub(crate) fn name_of(metadata: &ObjectMeta) -> Text {
    metadata.name.as_deref().unwrap_or_default().into()
}

pub(crate) fn annotation(metadata: &ObjectMeta, name: &str) -> Text {
    metadata.annotations.as_ref().and_then(|all| all.get(name)).map(Text::from).unwrap_or_default()
}
