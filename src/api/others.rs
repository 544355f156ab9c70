//! The kinds of which only the metadata matters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::wire::kind;

/// A logical cluster's own object (`core.kcp.io/v1alpha1`), named `cluster` in each. It carries
/// the locks as annotations; nothing else of it is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogicalCluster {
    /// Standard metadata; the locks are among the annotations (SPEC 5).
    pub metadata: ObjectMeta,
}

kind!(LogicalCluster, "LogicalCluster", "logicalclusters", "core.kcp.io", "v1alpha1", {});

/// How objects of a schema are converted (`apis.kcp.io/v1alpha1`). It has the name of its
/// schema and only triggers; nothing else of it is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApiConversion {
    /// Standard metadata.
    pub metadata: ObjectMeta,
}

kind!(ApiConversion, "APIConversion", "apiconversions", "apis.kcp.io", "v1alpha1", {});
