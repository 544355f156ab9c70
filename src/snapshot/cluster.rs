//! What is known of one logical cluster: all that a pass over one of its bindings reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::facts::{Binding, Crd, Export, Home, Meta, Schema};
use super::index::{Map, Set, members, reindex};
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
    bindings: Map<Text, Arc<Binding>>,
    crds: Map<Text, Arc<Crd>>,
    home: Option<Arc<Home>>,
    /// What it offers: of most clusters, nothing.
    offers: ByOrigin<Option<Box<Offers>>>,
    /// Bindings by the path under which they look their export up.
    targets: Map<Text, Set<Text>>,
    /// Bindings by the identities that their accepted claims name.
    claims: Map<IdentityHash, Set<Text>>,
    /// Bindings by the bound CRDs that they list.
    listed: Map<Text, Set<Text>>,
    /// Bindings by the resources that they have bound.
    bound: Map<GroupResource, Set<Text>>,
    /// CRDs by the names that they take or ask for.
    names: Map<NameKey, Set<Text>>,
    /// The CRDs that have a name in common with another one.
    crowded: Map<Text, ()>,
    /// The keys of locks-bindings whose holder is not known, or known with another uid.
    doubtful: im::OrdSet<GroupResource>,
}

/// What a provider offers, in one of its two copies.
#[derive(Clone, Debug, Default, PartialEq)]
struct Offers {
    exports: Map<Text, Arc<Export>>,
    schemas: Map<Text, Arc<Schema>>,
    conversions: Map<Text, Arc<Meta>>,
    /// Exports by the schemas that they name.
    by_schema: Map<Text, Set<Text>>,
}

impl Offers {
    fn is_empty(&self) -> bool {
        self.exports.is_empty() && self.schemas.is_empty() && self.conversions.is_empty()
    }
}

impl Cluster {
    pub(super) fn is_empty(&self) -> bool {
        self.bindings.is_empty()
            && self.crds.is_empty()
            && self.home.is_none()
            && Origin::ALL.into_iter().all(|origin| self.offers.of(origin).is_none())
    }

    pub(crate) fn binding(&self, name: &Text) -> Option<&Arc<Binding>> {
        self.bindings.get(name)
    }

    /// The name, if there is such a binding.
    pub(super) fn binding_name(&self, name: &Text) -> Option<&Text> {
        self.bindings.get_key(name)
    }

    pub(crate) fn export(&self, origin: Origin, name: &str) -> Option<&Arc<Export>> {
        self.offers.of(origin).as_ref()?.exports.get(name)
    }

    /// A schema, local, else global.
    pub(crate) fn schema(&self, name: &Text) -> Option<&Arc<Schema>> {
        Origin::ALL.into_iter().find_map(|origin| self.schema_of(origin, name))
    }

    pub(crate) fn schema_of(&self, origin: Origin, name: &Text) -> Option<&Arc<Schema>> {
        self.offers.of(origin).as_ref()?.schemas.get(name)
    }

    pub(super) fn conversion(&self, origin: Origin, name: &Text) -> Option<&Arc<Meta>> {
        self.offers.of(origin).as_ref()?.conversions.get(name)
    }

    pub(crate) fn crd(&self, name: &Text) -> Option<&Arc<Crd>> {
        self.crds.get(name)
    }

    pub(crate) fn home(&self) -> Option<&Arc<Home>> {
        self.home.as_ref()
    }

    pub(crate) fn bindings(&self) -> impl Iterator<Item = (&Text, &Arc<Binding>)> {
        self.bindings.iter()
    }

    pub(crate) fn binding_count(&self) -> usize {
        self.bindings.len()
    }

    pub(crate) fn binding_names(&self) -> impl Iterator<Item = &Text> {
        self.bindings.keys()
    }

    pub(crate) fn crds(&self) -> impl Iterator<Item = (&Text, &Arc<Crd>)> {
        self.crds.iter()
    }

    pub(super) fn exports(&self, origin: Origin) -> impl Iterator<Item = (&Text, &Arc<Export>)> {
        self.offers.of(origin).iter().flat_map(|offers| offers.exports.iter())
    }

    pub(super) fn schemas(&self, origin: Origin) -> impl Iterator<Item = (&Text, &Arc<Schema>)> {
        self.offers.of(origin).iter().flat_map(|offers| offers.schemas.iter())
    }

    pub(super) fn conversions(&self, origin: Origin) -> impl Iterator<Item = (&Text, &Arc<Meta>)> {
        self.offers.of(origin).iter().flat_map(|offers| offers.conversions.iter())
    }

    /// Names of the bindings that look their export up under this path, in order.
    pub(crate) fn with_target(&self, path: &Text) -> impl Iterator<Item = &Text> {
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
    pub(crate) fn listing(&self, uid: &Text) -> impl Iterator<Item = &Text> {
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
    pub(crate) fn exporting(&self, origin: Origin, schema: &Text) -> impl Iterator<Item = &Text> {
        self.offers.of(origin).iter().flat_map(|offers| members(&offers.by_schema, schema))
    }

    /// True if there is a CRD of any name.
    pub(crate) fn has_names(&self) -> bool {
        !self.names.is_empty()
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

    pub(super) fn put_binding(&mut self, name: &Text, new: Option<&Arc<Binding>>) -> BindingChange {
        let old = replace(&mut self.bindings, name, new);
        let change = BindingChange::new(old, new.cloned());
        let BindingChange { old, new, .. } = &change;
        if change.target {
            reindex(&mut self.targets, &keys(old, Binding::target), &keys(new, Binding::target), name);
        }
        if change.claims {
            let identities = |it: &Binding| it.claims.iter().map(|claim| claim.identity.clone()).collect();
            reindex(&mut self.claims, &of(old, identities), &of(new, identities), name);
        }
        if change.bound {
            reindex(&mut self.listed, &keys(old, Binding::bound_uids), &keys(new, Binding::bound_uids), name);
            let resources = Binding::bound_resources;
            reindex(&mut self.bound, &keys(old, resources), &keys(new, resources), name);
        }
        change
    }

    pub(super) fn put_export(&mut self, origin: Origin, name: &Text, new: Option<&Arc<Export>>) -> Option<Arc<Export>> {
        self.change_offers(origin, |offers| {
            let old = replace(&mut offers.exports, name, new);
            let new = new.cloned();
            reindex(&mut offers.by_schema, &of(&old, Export::schemas), &of(&new, Export::schemas), name);
            old
        })
    }

    pub(super) fn put_schema(&mut self, origin: Origin, name: &Text, new: Option<&Arc<Schema>>) -> Option<Arc<Schema>> {
        self.change_offers(origin, |offers| replace(&mut offers.schemas, name, new))
    }

    pub(super) fn put_conversion(&mut self, origin: Origin, name: &Text, new: Option<&Arc<Meta>>) {
        self.change_offers(origin, |offers| replace(&mut offers.conversions, name, new));
    }

    fn change_offers<T>(&mut self, origin: Origin, change: impl FnOnce(&mut Offers) -> T) -> T {
        let slot = self.offers.of_mut(origin);
        let changed = change(slot.get_or_insert_default());
        if slot.as_ref().is_some_and(|offers| offers.is_empty()) {
            *slot = None;
        }
        changed
    }

    pub(super) fn put_crd(&mut self, name: &Text, new: Option<&Arc<Crd>>) -> Option<Arc<Crd>> {
        let old = replace(&mut self.crds, name, new);
        let (before, after) = (of(&old, Crd::name_keys), of(&new.cloned(), Crd::name_keys));
        if before != after {
            reindex(&mut self.names, &before, &after, name);
            // Where more than two have a name, they have had company before and have it still.
            let few = before.iter().chain(&after).filter_map(|key| self.names.get(key)).filter(|set| set.len() <= 2);
            let judged: BTreeSet<Text> = few.flat_map(Set::iter).chain([name]).cloned().collect();
            judged.iter().for_each(|name| self.judge_company(name));
        }
        old
    }

    fn judge_company(&mut self, name: &Text) {
        let is_shared = |key: &NameKey| self.names.get(key).is_some_and(|set| set.len() > 1);
        match self.crds.get(name).is_some_and(|crd| crd.name_keys().iter().any(is_shared)) {
            true => self.crowded.insert(name.clone(), ()),
            false => self.crowded.remove(name),
        };
    }

    /// True if the CRD has a name in common with another one.
    pub(crate) fn is_crowded(&self, crd: &Text) -> bool {
        self.crowded.get(crd).is_some()
    }

    /// True as well if other locks are doubtful than were, or others hold the same resources.
    pub(super) fn put_home(&mut self, new: Option<&Arc<Home>>) -> (Option<Arc<Home>>, bool) {
        let old = std::mem::replace(&mut self.home, new.cloned());
        let locks = self.home.as_ref().and_then(|home| home.bindings.locks());
        let doubtful = locks.into_iter().flat_map(|locks| locks.iter());
        let doubtful = doubtful.filter(|(_, lock)| lock.is_doubtful(self.bindings.get(&lock.name).map(|it| &**it)));
        let doubtful = doubtful.map(|(resource, _)| resource.clone()).collect();
        let before = std::mem::replace(&mut self.doubtful, doubtful);
        let lock = |home: &Option<Arc<Home>>, resource| home.as_ref()?.bindings.get(resource).cloned();
        let differs =
            before != self.doubtful || before.iter().any(|resource| lock(&old, resource) != lock(&self.home, resource));
        (old, differs)
    }

    /// Judges anew the locks of one holder; true if others are doubtful than were.
    pub(super) fn doubt(&mut self, name: &Text) -> bool {
        let Some(locks) = self.home.as_ref().and_then(|home| home.bindings.locks()) else { return false };
        let binding = self.bindings.get(name).map(|binding| &**binding);
        let mut differs = false;
        for (resource, lock) in locks.of_name(name) {
            differs |= if lock.is_doubtful(binding) {
                self.doubtful.insert(resource.clone()).is_none()
            } else {
                self.doubtful.remove(resource).is_some()
            };
        }
        differs
    }
}

/// A binding before and after, and what of it that is a key has changed.
pub(super) struct BindingChange {
    pub(super) old: Option<Arc<Binding>>,
    pub(super) new: Option<Arc<Binding>>,
    pub(super) target: bool,
    pub(super) claims: bool,
    pub(super) bound: bool,
    pub(super) uid: bool,
}

impl BindingChange {
    fn new(old: Option<Arc<Binding>>, new: Option<Arc<Binding>>) -> Self {
        let (target, claims, bound, uid) = match (&old, &new) {
            (Some(old), Some(new)) => (
                old.target != new.target,
                old.claims != new.claims,
                old.status.bound_resources != new.status.bound_resources,
                old.meta.uid != new.meta.uid,
            ),
            _ => (true, true, true, true),
        };
        Self { old, new, target, claims, bound, uid }
    }

    /// All keys of both.
    pub(super) fn keys<'a, K: Clone + 'a, I>(&'a self, keys: fn(&'a Binding) -> I) -> Vec<K>
    where
        I: IntoIterator<Item = &'a K>,
    {
        self.old.iter().chain(&self.new).flat_map(|binding| keys(binding)).cloned().collect()
    }
}

/// Puts or takes an object; gives the one that was there.
fn replace<T>(map: &mut Map<Text, Arc<T>>, name: &Text, new: Option<&Arc<T>>) -> Option<Arc<T>> {
    match new {
        Some(new) => map.insert(name.clone(), new.clone()),
        None => map.remove(name),
    }
}

/// The keys of an object that may be missing.
pub(super) fn of<T, K>(object: &Option<Arc<T>>, keys: impl Fn(&T) -> Vec<K>) -> Vec<K> {
    object.as_ref().map(|object| keys(object)).unwrap_or_default()
}

/// The same for keys that the object has.
fn keys<'a, T, K: Clone + 'a, I>(object: &'a Option<Arc<T>>, keys: fn(&'a T) -> I) -> Vec<K>
where
    I: IntoIterator<Item = &'a K>,
{
    object.iter().flat_map(|object| keys(object)).cloned().collect()
}

#[cfg(test)]
mod tests;
