//! What is known of one logical cluster: all that a pass over one of its bindings reads.

use std::sync::Arc;

use super::facts::{Binding, Crd, Export, Home, Meta, Schema};
use super::index::{OrdMap, Set, members, reindex};
use super::locks::Lock;
use super::names::{NameKey, NameQuery};
use crate::api::{GroupResource, IdentityHash, Text};

/// Local objects come from the shard itself, global ones from the cache server, which copies
/// those of all shards, late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// From the shard itself.
    Local,
    /// From the cache server.
    Global,
}

impl Origin {
    /// Both, in the order in which look-ups ask them.
    pub const ALL: [Origin; 2] = [Origin::Local, Origin::Global];
}

/// One thing for each origin.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ByOrigin<T> {
    local: T,
    global: T,
}

impl<T> ByOrigin<T> {
    pub(crate) fn of(&self, origin: Origin) -> &T {
        match origin {
            Origin::Local => &self.local,
            Origin::Global => &self.global,
        }
    }

    pub(crate) fn of_mut(&mut self, origin: Origin) -> &mut T {
        match origin {
            Origin::Local => &mut self.local,
            Origin::Global => &mut self.global,
        }
    }
}

/// One logical cluster: its objects by name, and what is found in them by other keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cluster {
    pub(super) bindings: OrdMap<Text, Arc<Binding>>,
    pub(super) exports: ByOrigin<OrdMap<Text, Arc<Export>>>,
    pub(super) schemas: ByOrigin<OrdMap<Text, Arc<Schema>>>,
    pub(super) conversions: ByOrigin<OrdMap<Text, Arc<Meta>>>,
    pub(super) crds: OrdMap<Text, Arc<Crd>>,
    pub(super) home: Option<Arc<Home>>,
    /// Bindings by the path under which they look their export up.
    targets: OrdMap<Text, Set<Text>>,
    /// Bindings by the identities that their accepted claims name.
    claims: OrdMap<IdentityHash, Set<Text>>,
    /// Bindings by the bound CRDs that they list.
    listed: OrdMap<Text, Set<Text>>,
    /// Bindings by the resources that they have bound.
    bound: OrdMap<GroupResource, Set<Text>>,
    /// Exports by the schemas that they name.
    exports_by_schema: ByOrigin<OrdMap<Text, Set<Text>>>,
    /// CRDs by the names that they take or ask for.
    names: OrdMap<NameKey, Set<Text>>,
    /// The keys of locks-bindings whose holder is not known, or known with another uid.
    doubtful: im::OrdSet<GroupResource>,
}

impl Cluster {
    pub(super) fn is_empty(&self) -> bool {
        self.bindings.is_empty()
            && self.crds.is_empty()
            && self.home.is_none()
            && Origin::ALL.into_iter().all(|origin| {
                self.exports.of(origin).is_empty()
                    && self.schemas.of(origin).is_empty()
                    && self.conversions.of(origin).is_empty()
            })
    }

    pub(crate) fn binding(&self, name: &str) -> Option<&Arc<Binding>> {
        self.bindings.get(name)
    }

    pub(crate) fn export(&self, origin: Origin, name: &str) -> Option<&Arc<Export>> {
        self.exports.of(origin).get(name)
    }

    /// A schema, local, else global.
    pub(crate) fn schema(&self, name: &str) -> Option<&Arc<Schema>> {
        Origin::ALL.into_iter().find_map(|origin| self.schemas.of(origin).get(name))
    }

    pub(crate) fn crd(&self, name: &str) -> Option<&Arc<Crd>> {
        self.crds.get(name)
    }

    pub(crate) fn home(&self) -> Option<&Arc<Home>> {
        self.home.as_ref()
    }

    pub(crate) fn binding_names(&self) -> impl Iterator<Item = &Text> {
        self.bindings.keys()
    }

    /// Names of the bindings that look their export up under this path, in order.
    pub(crate) fn with_target(&self, path: &str) -> impl Iterator<Item = &Text> {
        members(&self.targets, path)
    }

    /// The paths under which bindings look their exports up, with the bindings' names.
    pub(crate) fn targets(&self) -> impl Iterator<Item = (&Text, impl Iterator<Item = &Text>)> {
        self.targets.iter().map(|(path, names)| (path, names.iter()))
    }

    pub(crate) fn target_count(&self) -> usize {
        self.targets.len()
    }

    /// Names of the bindings whose accepted claims name this identity, in order.
    pub(crate) fn with_claim(&self, identity: &IdentityHash) -> impl Iterator<Item = &Text> {
        members(&self.claims, identity)
    }

    /// Names of the bindings that list this bound CRD, in order.
    pub(crate) fn listing(&self, uid: &str) -> impl Iterator<Item = &Text> {
        members(&self.listed, uid)
    }

    /// The bound CRDs that bindings list.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Text> {
        self.listed.keys()
    }

    pub(crate) fn listed_count(&self) -> usize {
        self.listed.len()
    }

    /// The binding that has bound a resource: of several the oldest, then the first by name (D18).
    pub(crate) fn binder(&self, resource: &GroupResource) -> Option<&Text> {
        members(&self.bound, resource).min_by_key(|name| self.binding(name).map(|binding| (binding.created, *name)))
    }

    /// All resources that bindings have bound, each with its binder.
    pub(crate) fn binders(&self) -> impl Iterator<Item = (&GroupResource, &Text)> {
        self.bound.keys().filter_map(|resource| Some((resource, self.binder(resource)?)))
    }

    /// Names of the exports that name this schema, in order.
    pub(crate) fn exporting(&self, origin: Origin, schema: &str) -> impl Iterator<Item = &Text> {
        members(self.exports_by_schema.of(origin), schema)
    }

    /// CRDs under a name, in order of their own names.
    pub(crate) fn named(&self, query: NameQuery<'_>) -> impl Iterator<Item = (&Text, &Arc<Crd>)> + use<'_> {
        let names = self.names.get(&query).into_iter().flat_map(Set::iter);
        names.filter_map(|name| Some((name, self.crd(name)?)))
    }

    pub(crate) fn named_count(&self, query: NameQuery<'_>) -> usize {
        self.names.get(&query).map_or(0, Set::len)
    }

    /// True if the cluster has a CRD of this resource, whatever its name (D15).
    pub(crate) fn has_crd(&self, resource: &GroupResource) -> bool {
        self.names.get(&NameQuery::asked(resource)).is_some()
    }

    /// The keys of locks-bindings whose holder is not known, or known with another uid (SPEC 11).
    pub(crate) fn doubtful(&self) -> &im::OrdSet<GroupResource> {
        &self.doubtful
    }

    /// True if other locks are doubtful than were, or others hold the same resources.
    pub(super) fn doubts_differ(&self, doubtful: &im::OrdSet<GroupResource>, home: Option<&Home>) -> bool {
        fn lock<'a>(home: Option<&'a Home>, resource: &GroupResource) -> Option<&'a Lock> {
            home?.bindings.get(resource)
        }
        let now = self.home.as_deref();
        self.doubtful != *doubtful || doubtful.iter().any(|resource| lock(home, resource) != lock(now, resource))
    }

    pub(super) fn put_binding(&mut self, name: &Text, new: Option<&Arc<Binding>>) -> Option<Arc<Binding>> {
        let old = replace(&mut self.bindings, name, new);
        reindex(&mut self.targets, &of(&old, Binding::targets), &by(new, Binding::targets), name);
        reindex(&mut self.claims, &of(&old, Binding::claimed_identities), &by(new, Binding::claimed_identities), name);
        reindex(&mut self.listed, &of(&old, Binding::bound_uids), &by(new, Binding::bound_uids), name);
        reindex(&mut self.bound, &of(&old, Binding::bound_resources), &by(new, Binding::bound_resources), name);
        if old.as_ref().map(|old| &old.meta.uid) != new.map(|new| &new.meta.uid) {
            self.doubt(name);
        }
        old
    }

    pub(super) fn put_export(&mut self, origin: Origin, name: &Text, new: Option<&Arc<Export>>) -> Option<Arc<Export>> {
        let old = replace(self.exports.of_mut(origin), name, new);
        let index = self.exports_by_schema.of_mut(origin);
        reindex(index, &of(&old, Export::schemas), &by(new, Export::schemas), name);
        old
    }

    pub(super) fn put_crd(&mut self, name: &Text, new: Option<&Arc<Crd>>) -> Option<Arc<Crd>> {
        let old = replace(&mut self.crds, name, new);
        reindex(&mut self.names, &of(&old, Crd::name_keys), &by(new, Crd::name_keys), name);
        old
    }

    pub(super) fn put_home(&mut self, new: Option<&Arc<Home>>) -> Option<Arc<Home>> {
        let old = std::mem::replace(&mut self.home, new.cloned());
        let locks = self.home.as_ref().and_then(|home| home.bindings.locks());
        let doubtful = locks.into_iter().flat_map(|locks| locks.iter());
        self.doubtful = doubtful
            .filter(|(_, lock)| lock.is_doubtful(self.bindings.get(&lock.name).map(|binding| &**binding)))
            .map(|(resource, _)| resource.clone())
            .collect();
        old
    }

    /// Judges anew the locks of one holder.
    fn doubt(&mut self, name: &Text) {
        let Some(locks) = self.home.as_ref().and_then(|home| home.bindings.locks()) else { return };
        let binding = self.bindings.get(name);
        for (resource, lock) in locks.of_name(name) {
            if lock.is_doubtful(binding.map(|binding| &**binding)) {
                self.doubtful.insert(resource.clone());
            } else {
                self.doubtful.remove(resource);
            }
        }
    }
}

/// Puts or takes an object; gives the one that was there.
pub(super) fn replace<T>(map: &mut OrdMap<Text, Arc<T>>, name: &Text, new: Option<&Arc<T>>) -> Option<Arc<T>> {
    match new {
        Some(new) => map.insert(name.clone(), new.clone()),
        None => map.remove(&**name),
    }
}

/// The keys of an object that may be missing.
pub(super) fn of<T, K>(object: &Option<Arc<T>>, keys: impl Fn(&T) -> Vec<K>) -> Vec<K> {
    by(object.as_ref(), keys)
}

/// The keys of an object that may be missing.
pub(super) fn by<T, K>(object: Option<&Arc<T>>, keys: impl Fn(&T) -> Vec<K>) -> Vec<K> {
    object.map(|object| keys(object)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
