//! Whom the table of SPEC 11 names: the least that `woken` asks for.

use std::collections::{BTreeMap, BTreeSet};

use super::Model;
use crate::api::{
    ApiBinding, ApiExport, BindingKey, ClusterName, GroupResource, IdentityHash, Kind, Object, Text, cluster_of,
    path_of,
};
use crate::snapshot::{Annotation, Home, Layer, Layout, Lock, Origin};

/// The keys of the bindings that are to be woken when what was known becomes what is known, told the long way.
pub(super) fn named(before: &Model, after: &Model) -> BTreeSet<BindingKey> {
    let mut named = Named { after, keys: BTreeSet::new() };
    let at = |model: &Model| -> BTreeMap<_, _> {
        model.all().map(|(origin, object)| ((origin, object.kind(), object.key()), object.clone())).collect()
    };
    let (then, now) = (at(before), at(after));
    for place @ (_, _, key) in then.keys().chain(now.keys().filter(|place| !then.contains_key(*place))) {
        let (old, new) = (then.get(place).map(|object| &**object), now.get(place).map(|object| &**object));
        let version = |object: &Object| object.metadata().resource_version.clone();
        if old.map(version) != new.map(version) {
            named.changed(key, old, new);
        }
    }
    named.keys
}

struct Named<'a> {
    after: &'a Model,
    keys: BTreeSet<BindingKey>,
}

impl<'a> Named<'a> {
    fn bindings(&self) -> impl Iterator<Item = &'a ApiBinding> + use<'a> {
        self.after.of_kind(Origin::Local, Kind::ApiBinding).filter_map(|object| match &**object {
            Object::ApiBinding(binding) => Some(binding),
            _ => None,
        })
    }

    fn add(&mut self, fits: impl Fn(&ApiBinding) -> bool) {
        let keys: Vec<BindingKey> = self.bindings().filter(|binding| fits(binding)).map(ApiBinding::key).collect();
        self.keys.extend(keys);
    }

    fn changed(&mut self, key: &BindingKey, old: Option<&Object>, new: Option<&Object>) {
        let either = || old.into_iter().chain(new);
        match either().next().map(Object::kind) {
            Some(Kind::ApiBinding) => drop(self.keys.insert(key.clone())),
            Some(Kind::ApiExport) => {
                for object in either() {
                    if let Object::ApiExport(export) = object {
                        self.export(export);
                    }
                }
            }
            Some(Kind::ApiResourceSchema) => self.schema(&key.cluster, &key.name),
            Some(Kind::ApiConversion) => self.schema_that_exists(&key.cluster, &key.name),
            Some(Kind::Crd) if key.cluster.as_str() == ClusterName::BOUND_CRDS => {
                for object in either() {
                    let annotation = |name: &str| {
                        let annotations = object.metadata().annotations.as_ref();
                        annotations.and_then(|annotations| annotations.get(name)).map_or("", String::as_str)
                    };
                    let cluster = annotation("apis.kcp.io/schema-cluster").into();
                    self.schema_that_exists(&cluster, annotation("apis.kcp.io/schema-name"));
                }
                let uid = &key.name;
                self.add(|binding| binding.status.bound_resources.iter().any(|bound| bound.schema.uid == *uid));
            }
            Some(Kind::LogicalCluster) => {
                let home = |object: Option<&Object>| match object {
                    Some(Object::LogicalCluster(home)) if home.metadata.resource_version.is_some() => {
                        Some(Home::from(home))
                    }
                    _ => None,
                };
                self.home(&key.cluster, home(old), home(new));
            }
            Some(Kind::Crd) | None => {}
        }
    }

    /// The bindings of an export.
    fn export_only(&mut self, export: &ApiExport) {
        let name = export.metadata.name.as_deref().unwrap_or_default();
        let (cluster, path) = (cluster_of(&export.metadata), path_of(&export.metadata));
        let mut addresses = vec![cluster.path().join(name)];
        if !path.is_empty() {
            addresses.push(path.join(name));
        }
        self.add(|binding| {
            let reference = binding.spec.reference.export.as_ref();
            let target = reference.map(|export| match export.path.is_empty() {
                true => cluster_of(&binding.metadata).path().join(&export.name),
                false => export.path.join(&export.name),
            });
            target.is_some_and(|target| addresses.contains(&target))
        });
    }

    /// The bindings of an export, and those that accept claims on its identity.
    fn export(&mut self, export: &ApiExport) {
        self.export_only(export);
        let identity: &IdentityHash = &export.status.identity_hash;
        if !identity.is_empty() {
            self.add(|binding| {
                let mut claims = binding.spec.permission_claims.iter();
                claims.any(|claim| claim.is_accepted() && claim.identity_hash == *identity)
            });
        }
    }

    fn exports(&self) -> impl Iterator<Item = &'a ApiExport> + use<'a> {
        let objects = Origin::ALL.into_iter().flat_map(|origin| self.after.of_kind(origin, Kind::ApiExport));
        objects.filter_map(|object| match &**object {
            Object::ApiExport(export) => Some(export),
            _ => None,
        })
    }

    fn schema(&mut self, cluster: &ClusterName, name: &str) {
        for export in self.exports().filter(|export| cluster_of(&export.metadata) == *cluster) {
            if export.spec.resources.iter().any(|resource| resource.schema == *name) {
                self.export(export);
            }
        }
    }

    fn schema_that_exists(&mut self, cluster: &ClusterName, name: &str) {
        let key = BindingKey::new(cluster.clone(), Text::from(name));
        if Origin::ALL.into_iter().any(|origin| self.after.get(origin, Kind::ApiResourceSchema, &key).is_some()) {
            self.schema(cluster, name);
        }
    }

    fn home(&mut self, cluster: &ClusterName, old: Option<Home>, new: Option<Home>) {
        let in_it = |binding: &ApiBinding| cluster_of(&binding.metadata) == *cluster;
        // Keys of their own: names of which no binding is known, or one of another uid.
        let locks = new.iter().filter_map(|home| home.bindings.locks());
        let locks = locks.flat_map(|locks| locks.iter()).filter(|_| self.after.layout == Layout::Split);
        for (_, lock) in locks.filter(|(_, lock)| !lock.crd && !lock.name.is_empty()) {
            let key = BindingKey::new(cluster.clone(), lock.name.clone());
            let binding = self.after.get(Origin::Local, Kind::ApiBinding, &key);
            let uid = binding.map(|binding| binding.metadata().uid.clone().unwrap_or_default());
            if uid.is_none_or(|uid| !lock.uid.is_empty() && *lock.uid != *uid) {
                self.keys.insert(key);
            }
        }
        let (Some(old), Some(new)) = (&old, &new) else {
            if old.is_some() || new.is_some() {
                self.add(in_it);
            }
            return;
        };
        let layers: &[Layer] = match self.after.layout {
            Layout::Split => &Layer::ALL,
            Layout::Single => &[Layer::Legacy],
        };
        let is_readable = |home: &Home, layer| !matches!(home.layer(layer), Annotation::Unreadable(_));
        if layers.iter().any(|layer| is_readable(old, *layer) != is_readable(new, *layer)) {
            self.add(in_it);
        }
        // Who holds what by the annotations: the first layer decides.
        let holders = |home: &Home| -> BTreeMap<GroupResource, Lock> {
            let entries = layers.iter().rev().filter_map(|layer| home.layer(*layer).locks());
            let entries = entries.flat_map(|locks| locks.iter().filter(|(_, lock)| lock.holds()).cloned());
            entries.collect()
        };
        let (then, now) = (holders(old), holders(new));
        let differs = |resource: &GroupResource| then.get(resource) != now.get(resource);
        let exports: Vec<&ApiExport> = self.exports().collect();
        for resource in then.keys().chain(now.keys()).filter(|resource| differs(resource)) {
            for export in &exports {
                let cluster_of_export = cluster_of(&export.metadata);
                let offers = export.spec.resources.iter().any(|entry| {
                    let key = BindingKey::new(cluster_of_export.clone(), entry.schema.clone());
                    let mut copies = Origin::ALL.into_iter();
                    let schema = copies.find_map(|at| self.after.get(at, Kind::ApiResourceSchema, &key));
                    schema.is_some_and(|schema| match &**schema {
                        Object::ApiResourceSchema(schema) => schema.group_resource() == *resource,
                        _ => false,
                    })
                });
                if offers {
                    let mut wanting = Named { after: self.after, keys: BTreeSet::new() };
                    wanting.export_only(export);
                    self.keys.extend(wanting.keys.into_iter().filter(|key| key.cluster == *cluster));
                }
            }
        }
    }
}
