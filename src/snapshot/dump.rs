//! A snapshot as a person reads it.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::cluster::{Cluster, Origin};
use super::facts::{Binding, Crd, Export, Home, Meta, Schema};
use super::{Layout, Snapshot};
use crate::api::{ClusterName, Text};
use k8s_openapi::jiff::Timestamp;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dump<'a> {
    now: Timestamp,
    layout: Layout,
    clusters: BTreeMap<&'a ClusterName, Entry<'a>>,
}

type Named<'a, T> = BTreeMap<&'a Text, &'a T>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    logical_cluster: Option<&'a Home>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    bindings: Named<'a, Binding>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    exports: Named<'a, Export>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    schemas: Named<'a, Schema>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    conversions: Named<'a, Meta>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    crds: Named<'a, Crd>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    global_exports: Named<'a, Export>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    global_schemas: Named<'a, Schema>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    global_conversions: Named<'a, Meta>,
}

impl<'a> From<&'a Cluster> for Entry<'a> {
    fn from(cluster: &'a Cluster) -> Self {
        fn named<'a, T>(map: impl IntoIterator<Item = (&'a Text, &'a std::sync::Arc<T>)>) -> Named<'a, T> {
            map.into_iter().map(|(name, fact)| (name, &**fact)).collect()
        }
        let (local, global) = (Origin::Local, Origin::Global);
        Self {
            logical_cluster: cluster.home().map(|home| &**home),
            bindings: named(cluster.bindings()),
            exports: named(cluster.exports(local)),
            schemas: named(cluster.schemas(local)),
            conversions: named(cluster.conversions(local)),
            crds: named(cluster.crds()),
            global_exports: named(cluster.exports(global)),
            global_schemas: named(cluster.schemas(global)),
            global_conversions: named(cluster.conversions(global)),
        }
    }
}

impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let clusters =
            self.world().clusters().into_iter().map(|(name, cluster)| (name, Entry::from(cluster))).collect();
        Dump { now: self.now(), layout: self.layout(), clusters }.serialize(serializer)
    }
}
