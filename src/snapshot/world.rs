//! All clusters, and what is found across them.

use std::cmp::Ordering;
use std::hash::Hash;
use std::sync::Arc;

use super::Layout;
use super::cluster::{ByOrigin, Cluster, Origin, of};
use super::facts::{Binding, Crd, Export, Home, Meta, Schema};
use super::index::{Set, Table, file, reindex, unfile};
use super::names::{NameKey, NameQuery};
use crate::api::{BindingKey, ClusterName, IdentityHash, Text, cmp_joined};
use k8s_openapi::jiff::Timestamp;

/// Which export. The order is that of the text `cluster/name` (SPEC 7).
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct ExportKey {
    /// Its logical cluster.
    pub cluster: ClusterName,
    /// Its name.
    pub name: Text,
}

impl Ord for ExportKey {
    fn cmp(&self, other: &Self) -> Ordering {
        cmp_joined((self.cluster.as_str(), b'/', &self.name), (other.cluster.as_str(), b'/', &other.name))
    }
}

impl PartialOrd for ExportKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Which schema, and which copy of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SchemaKey {
    pub(crate) origin: Origin,
    pub(crate) cluster: ClusterName,
    pub(crate) name: Text,
}

/// One change of one object, as it was carried out.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) cluster: ClusterName,
    pub(crate) name: Text,
    pub(crate) fact: FactChange,
    /// True if locks of the cluster became doubtful, or are not any more.
    pub(crate) doubt: bool,
}

/// What an object was and is.
#[derive(Clone, Debug)]
pub(crate) enum FactChange {
    Binding(Option<Arc<Binding>>, Option<Arc<Binding>>),
    Export(Option<Arc<Export>>, Option<Arc<Export>>),
    Schema,
    Conversion,
    Crd(Option<Arc<Crd>>, Option<Arc<Crd>>),
    Home(Option<Arc<Home>>, Option<Arc<Home>>),
}

/// What is kept of an object, or that there is none.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    Binding(Option<Arc<Binding>>),
    Export(Origin, Option<Arc<Export>>),
    Schema(Origin, Option<Arc<Schema>>),
    Conversion(Origin, Option<Arc<Meta>>),
    Crd(Option<Arc<Crd>>),
    Home(Option<Arc<Home>>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct World {
    pub(super) now: Timestamp,
    pub(super) layout: Layout,
    clusters: Table<ClusterName, Arc<Cluster>>,
    exports_by_path: ByOrigin<Table<Text, Set<ExportKey>>>,
    exports_by_identity: ByOrigin<Table<IdentityHash, Set<ExportKey>>>,
    /// Clusters with bindings that look their export up under a path.
    targets: Table<Text, Set<ClusterName>>,
    /// Clusters with bindings that accept claims on an identity.
    claims: Table<IdentityHash, Set<ClusterName>>,
    /// Clusters with bindings that list a bound CRD.
    listed: Table<Text, Set<ClusterName>>,
    schemas_by_name: Table<NameKey, Set<SchemaKey>>,
    schemas_by_uid: Table<Text, Set<SchemaKey>>,
}

impl World {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            now: Timestamp::UNIX_EPOCH,
            layout,
            clusters: Table::default(),
            exports_by_path: ByOrigin::default(),
            exports_by_identity: ByOrigin::default(),
            targets: Table::default(),
            claims: Table::default(),
            listed: Table::default(),
            schemas_by_name: Table::default(),
            schemas_by_uid: Table::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn cluster(&self, name: &ClusterName) -> Option<&Cluster> {
        self.clusters.get(name).map(|cluster| &**cluster)
    }

    /// All clusters, sorted by name.
    pub(crate) fn clusters(&self) -> Vec<(&ClusterName, &Cluster)> {
        let mut clusters: Vec<_> = self.clusters.iter().map(|(name, cluster)| (name, &**cluster)).collect();
        clusters.sort_by_key(|(name, _)| *name);
        clusters
    }

    pub(crate) fn binding(&self, key: &BindingKey) -> Option<&Arc<Binding>> {
        self.cluster(&key.cluster)?.binding(&key.name)
    }

    pub(crate) fn export(&self, origin: Origin, key: &ExportKey) -> Option<&Arc<Export>> {
        self.cluster(&key.cluster)?.export(origin, &key.name)
    }

    /// A schema by cluster and name, local, else global.
    pub(crate) fn schema(&self, cluster: &ClusterName, name: &Text) -> Option<&Arc<Schema>> {
        self.cluster(cluster)?.schema(name)
    }

    /// Both copies of a schema, as far as they are there.
    pub(crate) fn schema_copies(&self, cluster: &ClusterName, name: &Text) -> impl Iterator<Item = &Schema> {
        let known = self.cluster(cluster);
        Origin::ALL.into_iter().filter_map(move |origin| known?.schema_of(origin, name).map(|schema| &**schema))
    }

    /// The cluster of the bound CRDs.
    pub(crate) fn bound_crds(&self) -> Option<&Cluster> {
        self.clusters.get(ClusterName::BOUND_CRDS).map(|cluster| &**cluster)
    }

    pub(crate) fn exports_at(&self, origin: Origin, path: &str) -> Option<&Set<ExportKey>> {
        self.exports_by_path.of(origin).get(path)
    }

    pub(crate) fn exports_of(&self, origin: Origin, identity: &IdentityHash) -> Option<&Set<ExportKey>> {
        self.exports_by_identity.of(origin).get(identity)
    }

    pub(crate) fn clusters_with_target(&self, path: &str) -> impl Iterator<Item = (&ClusterName, &Cluster)> {
        self.those(self.targets.get(path))
    }

    pub(crate) fn clusters_with_claim(
        &self,
        identity: &IdentityHash,
    ) -> impl Iterator<Item = (&ClusterName, &Cluster)> {
        self.those(self.claims.get(identity))
    }

    pub(crate) fn clusters_listing(&self, uid: &str) -> impl Iterator<Item = (&ClusterName, &Cluster)> {
        self.those(self.listed.get(uid))
    }

    fn those<'a>(
        &'a self,
        names: Option<&'a Set<ClusterName>>,
    ) -> impl Iterator<Item = (&'a ClusterName, &'a Cluster)> {
        names.into_iter().flat_map(Set::iter).filter_map(|name| Some((name, self.cluster(name)?)))
    }

    pub(crate) fn schemas_named(&self, query: NameQuery<'_>) -> Option<&Set<SchemaKey>> {
        self.schemas_by_name.get(&query)
    }

    pub(crate) fn schemas_with_uid(&self, uid: &str) -> impl Iterator<Item = &SchemaKey> {
        self.schemas_by_uid.get(uid).into_iter().flat_map(Set::iter)
    }

    /// Puts or takes one object and brings every index up to date.
    pub(super) fn put(&mut self, name: &ClusterName, object: &Text, fact: Fact) -> Event {
        let cluster = match self.clusters.get_mut(name) {
            Some(cluster) => cluster,
            None => self.clusters.entry(name.clone()).or_default(),
        };
        let cluster = Arc::make_mut(cluster);
        let mut doubt = false;
        let fact = match fact {
            Fact::Binding(new) => {
                let change = cluster.put_binding(object, new.as_ref());
                doubt = change.uid && cluster.doubt(object);
                if change.target {
                    let present = |path: &Text| cluster.with_target(path).next().is_some();
                    set_members(&mut self.targets, change.keys(Binding::target), name, present);
                }
                if change.bound {
                    let present = |uid: &Text| cluster.listing(uid).next().is_some();
                    set_members(&mut self.listed, change.keys(Binding::bound_uids), name, present);
                }
                if change.claims {
                    let both = change.old.iter().chain(&change.new).flat_map(|binding| &binding.claims);
                    let identities = both.map(|claim| claim.identity.clone()).collect();
                    let present = |identity: &IdentityHash| cluster.with_claim(identity).next().is_some();
                    set_members(&mut self.claims, identities, name, present);
                }
                FactChange::Binding(change.old, change.new)
            }
            Fact::Export(origin, new) => {
                let old = cluster.put_export(origin, object, new.as_ref());
                let key = ExportKey { cluster: name.clone(), name: object.clone() };
                let addresses = |export: &Export| export.addresses.to_vec();
                reindex(self.exports_by_path.of_mut(origin), &of(&old, addresses), &of(&new, addresses), &key);
                let index = self.exports_by_identity.of_mut(origin);
                reindex(index, &of(&old, Export::identities), &of(&new, Export::identities), &key);
                FactChange::Export(old, new)
            }
            Fact::Schema(origin, new) => {
                let old = cluster.put_schema(origin, object, new.as_ref());
                let key = SchemaKey { origin, cluster: name.clone(), name: object.clone() };
                let uid = |schema: &Schema| vec![schema.meta.uid.clone()];
                reindex(&mut self.schemas_by_name, &of(&old, Schema::name_keys), &of(&new, Schema::name_keys), &key);
                reindex(&mut self.schemas_by_uid, &of(&old, uid), &of(&new, uid), &key);
                FactChange::Schema
            }
            Fact::Conversion(origin, new) => {
                cluster.put_conversion(origin, object, new.as_ref());
                FactChange::Conversion
            }
            Fact::Crd(new) => FactChange::Crd(cluster.put_crd(object, new.as_ref()), new),
            Fact::Home(new) => {
                let (old, differs) = cluster.put_home(new.as_ref());
                doubt = differs;
                FactChange::Home(old, new)
            }
        };
        if cluster.is_empty() {
            self.clusters.remove(name);
        }
        Event { cluster: name.clone(), name: object.clone(), fact, doubt }
    }
}

/// Puts `item` under each key or takes it out, without a change where there is none to make.
fn set_members<K, T>(index: &mut Table<K, Set<T>>, keys: Vec<K>, item: &T, present: impl Fn(&K) -> bool)
where
    K: Hash + Eq + Clone,
    T: Ord + Clone,
{
    for key in keys {
        let was = index.get(&key).is_some_and(|set| set.contains(item));
        match (was, present(&key)) {
            (true, false) => unfile(index, &key, item),
            (false, true) => file(index, key, item),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
