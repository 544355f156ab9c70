//! All clusters, and what is found across them.

use std::cmp::Ordering;
use std::hash::Hash;
use std::sync::Arc;

use super::Layout;
use super::cluster::{ByOrigin, Cluster, Origin, by, of, replace};
use super::facts::{Binding, Crd, Export, Home, Meta, Schema};
use super::index::{HashMap, Set, reindex};
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
    clusters: HashMap<ClusterName, Arc<Cluster>>,
    exports_by_path: ByOrigin<HashMap<Text, Set<ExportKey>>>,
    exports_by_identity: ByOrigin<HashMap<IdentityHash, Set<ExportKey>>>,
    /// Clusters with bindings that look their export up under a path.
    targets: HashMap<Text, Set<ClusterName>>,
    /// Clusters with bindings that accept claims on an identity.
    claims: HashMap<IdentityHash, Set<ClusterName>>,
    /// Clusters with bindings that list a bound CRD.
    listed: HashMap<Text, Set<ClusterName>>,
    schemas_by_name: HashMap<NameKey, Set<SchemaKey>>,
    schemas_by_uid: HashMap<Text, Set<SchemaKey>>,
}

impl World {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            now: Timestamp::UNIX_EPOCH,
            layout,
            clusters: HashMap::default(),
            exports_by_path: ByOrigin::default(),
            exports_by_identity: ByOrigin::default(),
            targets: HashMap::default(),
            claims: HashMap::default(),
            listed: HashMap::default(),
            schemas_by_name: HashMap::default(),
            schemas_by_uid: HashMap::default(),
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
    pub(crate) fn schema(&self, cluster: &ClusterName, name: &str) -> Option<&Arc<Schema>> {
        self.cluster(cluster)?.schema(name)
    }

    /// Both copies of a schema, as far as they are there.
    pub(crate) fn schema_copies(&self, cluster: &ClusterName, name: &str) -> impl Iterator<Item = &Schema> {
        let known = self.cluster(cluster);
        Origin::ALL.into_iter().filter_map(move |origin| known?.schemas.of(origin).get(name).map(|schema| &**schema))
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
        let cluster = Arc::make_mut(self.clusters.entry(name.clone()).or_default());
        let doubts = (cluster.doubtful().clone(), cluster.home().cloned());
        let fact = match fact {
            Fact::Binding(new) => {
                let old = cluster.put_binding(object, new.as_ref());
                let keys = |keys: fn(&Binding) -> Vec<Text>| [of(&old, keys), of(&new, keys)].concat();
                for path in keys(Binding::targets) {
                    let present = cluster.with_target(&path).next().is_some();
                    set_member(&mut self.targets, path, name, present);
                }
                for uid in keys(Binding::bound_uids) {
                    let present = cluster.listing(&uid).next().is_some();
                    set_member(&mut self.listed, uid, name, present);
                }
                for identity in [of(&old, Binding::claimed_identities), of(&new, Binding::claimed_identities)].concat()
                {
                    let present = cluster.with_claim(&identity).next().is_some();
                    set_member(&mut self.claims, identity, name, present);
                }
                FactChange::Binding(old, new)
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
                let old = replace(cluster.schemas.of_mut(origin), object, new.as_ref());
                let key = SchemaKey { origin, cluster: name.clone(), name: object.clone() };
                let uid = |schema: &Schema| vec![schema.meta.uid.clone()];
                reindex(&mut self.schemas_by_name, &of(&old, Schema::name_keys), &of(&new, Schema::name_keys), &key);
                reindex(&mut self.schemas_by_uid, &of(&old, uid), &by(new.as_ref(), uid), &key);
                FactChange::Schema
            }
            Fact::Conversion(origin, new) => {
                replace(cluster.conversions.of_mut(origin), object, new.as_ref());
                FactChange::Conversion
            }
            Fact::Crd(new) => FactChange::Crd(cluster.put_crd(object, new.as_ref()), new),
            Fact::Home(new) => FactChange::Home(cluster.put_home(new.as_ref()), new),
        };
        let doubt = cluster.doubts_differ(&doubts.0, doubts.1.as_deref());
        if cluster.is_empty() {
            self.clusters.remove(name);
        }
        Event { cluster: name.clone(), name: object.clone(), fact, doubt }
    }
}

/// Puts `item` under `key` or takes it out, without a change where there is none to make.
fn set_member<K, T>(index: &mut HashMap<K, Set<T>>, key: K, item: &T, present: bool)
where
    K: Hash + Eq + Clone,
    T: Ord + Clone,
{
    let was = index.get(&key).is_some_and(|set| set.contains(item));
    let keys = [key];
    match (was, present) {
        (true, false) => reindex(index, &keys, &[], item),
        (false, true) => reindex(index, &[], &keys, item),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
