//! Which bindings a change concerns (SPEC 11).
//!
//! No wake-up is missed: if a change alters what reconciling a binding gives, other than times and
//! preconditions, that binding is woken. Others are woken only where an index cannot tell better.

use std::collections::BTreeSet;

use crate::api::{BindingKey, ClusterName, IdentityHash, ResourceNames, Text};
use crate::snapshot::names::{Name, NameQuery};
use crate::snapshot::world::{Event, FactChange, World};
use crate::snapshot::{Applied, Binding, Cluster, Crd, Export, Home, Layer, Layout, Locks, Origin, Schema, Snapshot};

/// The keys that are to be processed after a change: those of bindings that are gone and left
/// locks behind first, then the others in order.
///
/// `snapshot` is the one that the change was applied to.
///
/// ```
/// use apibinding::api::ApiBinding;
/// use apibinding::snapshot::{Change, Layout, Snapshot};
/// use apibinding::wakeup::wakeup;
///
/// let binding: ApiBinding =
///     serde_json::from_str(r#"{"metadata": {"name": "geese", "annotations": {"kcp.io/cluster": "meadow"}}}"#)?;
/// let mut snapshot = Snapshot::new(Layout::Split);
/// let applied = snapshot.apply(Change::put(binding.clone()));
/// assert_eq!(wakeup(&snapshot, &applied), [binding.key()]);
///
/// let doubled = snapshot.apply(Change::put(binding));
/// assert!(wakeup(&snapshot, &doubled).is_empty());
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn wakeup(snapshot: &Snapshot, applied: &Applied) -> Vec<BindingKey> {
    let mut woken = Woken::new(snapshot);
    let mut doubts = BTreeSet::new();
    for event in &applied.events {
        woken.event(event);
        doubts.extend(event.doubt.then_some(&event.cluster));
    }
    // Whoever comes next asks the server about them; of a list each cluster is gone through once.
    for cluster in doubts {
        woken.all(cluster);
        woken.ghosts(cluster);
    }
    woken.in_order()
}

/// All the keys that a start has to process: those of bindings that are gone and left locks behind
/// first, then all bindings in order.
///
/// A list of CRDs or bindings after a watch that broke is such a start: nothing tells of what came and
/// went in between (`DEVIATIONS.md`, "What no event tells").
pub fn all(snapshot: &Snapshot) -> Vec<BindingKey> {
    let mut woken = Woken::new(snapshot);
    for (cluster, _) in snapshot.world().clusters() {
        woken.all(cluster);
        woken.ghosts(cluster);
    }
    woken.in_order()
}

struct Woken<'a> {
    world: &'a World,
    /// Keys of bindings that do not exist.
    gone: BTreeSet<BindingKey>,
    /// Keys of any others, some of them several times.
    keys: Vec<BindingKey>,
}

impl<'a> Woken<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        Self { world: snapshot.world(), gone: BTreeSet::new(), keys: Vec::new() }
    }

    fn in_order(self) -> Vec<BindingKey> {
        let Self { gone, mut keys, .. } = self;
        // In most cases they come nearly sorted.
        keys.sort();
        keys.dedup();
        if gone.is_empty() {
            return keys;
        }
        keys.retain(|key| !gone.contains(key));
        gone.into_iter().chain(keys).collect()
    }

    fn event(&mut self, event: &Event) {
        let (cluster, name) = (&event.cluster, &event.name);
        match &event.fact {
            FactChange::Binding(before, after) => {
                self.add(cluster, name);
                self.neighbours(cluster, name, before.as_deref(), after.as_deref());
            }
            FactChange::Export(before, after) => {
                before.iter().chain(after).for_each(|export| self.export(export));
            }
            FactChange::Schema => self.schema(cluster, name),
            FactChange::Conversion => self.schema_that_exists(cluster, name),
            FactChange::Crd(before, after) => self.crd(cluster, name, before.as_deref(), after.as_deref()),
            FactChange::Home(before, after) => self.home(cluster, before.as_deref(), after.as_deref()),
        }
    }

    fn add(&mut self, cluster: &ClusterName, name: &Text) {
        self.keys.push(BindingKey::new(cluster.clone(), name.clone()));
    }

    fn all(&mut self, cluster: &ClusterName) {
        for name in self.world.cluster(cluster).into_iter().flat_map(Cluster::binding_names) {
            self.add(cluster, name);
        }
    }

    /// The names in locks-bindings that no binding has, or has with another uid.
    fn ghosts(&mut self, cluster: &ClusterName) {
        let Some(known) = self.world.cluster(cluster).filter(|_| self.world.layout() == Layout::Split) else { return };
        for lock in known.doubtful().iter().filter_map(|resource| known.home()?.bindings.get(resource)) {
            let key = BindingKey::new(cluster.clone(), lock.name.clone());
            match known.binding(&lock.name) {
                Some(_) => self.keys.push(key),
                None => drop(self.gone.insert(key)),
            }
        }
    }

    /// The bindings of an export, and those with accepted claims on its identity.
    fn export(&mut self, export: &Export) {
        let world = self.world;
        for path in export.addresses() {
            for (cluster, known) in world.clusters_with_target(path) {
                known.with_target(path).for_each(|name| self.add(cluster, name));
            }
        }
        self.claimants(&export.identity);
    }

    fn claimants(&mut self, identity: &IdentityHash) {
        let world = self.world;
        for (cluster, known) in world.clusters_with_claim(identity) {
            known.with_claim(identity).for_each(|name| self.add(cluster, name));
        }
    }

    /// The bindings of the exports that name a schema, local and global ones.
    fn schema(&mut self, cluster: &ClusterName, schema: &Text) {
        let world = self.world;
        for export in exporting(world, cluster, schema) {
            self.export(export);
        }
    }

    /// The same, for what tells of a schema: without the schema it has nothing to tell.
    fn schema_that_exists(&mut self, cluster: &ClusterName, schema: &Text) {
        if self.world.schema(cluster, schema).is_some() {
            self.schema(cluster, schema);
        }
    }

    fn crd(&mut self, cluster: &ClusterName, name: &Text, before: Option<&Crd>, after: Option<&Crd>) {
        let world = self.world;
        let takes_other_names = taken(before) != taken(after);
        if takes_other_names {
            self.wanting_names_of(cluster, before, after);
        }
        if cluster.as_str() != ClusterName::BOUND_CRDS {
            return;
        }
        for (cluster, schema) in before.into_iter().chain(after).filter_map(|crd| crd.schema.as_ref()) {
            self.schema_that_exists(cluster, schema);
        }
        for schema in world.schemas_with_uid(name) {
            self.schema(&schema.cluster, &schema.name);
        }
        for (cluster, known) in world.clusters_listing(name) {
            known.listing(name).for_each(|name| self.add(cluster, name));
            if takes_other_names && known.binding_count() > 1 {
                self.wanting_names_of(cluster, before, after);
            }
        }
    }

    /// A binding's neighbours: those that want what it has bound, or a name of it.
    fn neighbours<'b>(
        &mut self,
        cluster: &ClusterName,
        name: &Text,
        before: Option<&'b Binding>,
        after: Option<&'b Binding>,
    ) {
        let (world, layout) = (self.world, self.world.layout());
        let others = world.cluster(cluster).map_or(0, |known| known.binding_count() - usize::from(after.is_some()));
        if others == 0 {
            return;
        }
        let age = |binding: Option<&Binding>| binding.map(|binding| binding.created);
        for resource in changed(before, after, age(before) != age(after), Binding::bound_resources) {
            self.wanting(cluster, NameQuery::plural(resource));
        }
        let differs = before.map(|before| &before.reference) != after.map(|after| &after.reference);
        for uid in changed(before, after, differs, Binding::bound_uids) {
            let crd = world.bound_crds().and_then(|crds| crds.crd(uid));
            match crd {
                Some(crd) => self.wanting_names_of(cluster, Some(crd), None),
                None => self.wanting_names_to_come(cluster, uid),
            }
        }
        let uid = |binding: Option<&'b Binding>| binding.map(|binding| &binding.meta.uid);
        if layout == Layout::Split && uid(before) != uid(after) {
            let home = world.cluster(cluster).and_then(Cluster::home);
            let legacy = home.and_then(|home| home.legacy.locks());
            for (resource, _) in legacy.into_iter().flat_map(|locks| locks.of_name(name)) {
                self.wanting(cluster, NameQuery::plural(resource));
            }
        }
    }

    fn home<'b>(&mut self, cluster: &ClusterName, before: Option<&'b Home>, after: Option<&'b Home>) {
        let own = match self.world.layout() {
            Layout::Split => Layer::Bindings,
            Layout::Single => Layer::Legacy,
        };
        if guise(before, own) != guise(after, own) {
            self.all(cluster);
        }
        for layer in Layer::ALL {
            let none = Locks::default();
            let locks = |home: Option<&'b Home>| home.and_then(|home| home.layer(layer).locks());
            let (before, after) = (locks(before).unwrap_or(&none), locks(after).unwrap_or(&none));
            for resource in before.differing(after) {
                self.wanting(cluster, NameQuery::plural(resource));
            }
        }
        self.ghosts(cluster);
    }

    fn wanting_names_of(&mut self, cluster: &ClusterName, before: Option<&Crd>, after: Option<&Crd>) {
        let keys: BTreeSet<_> = before.into_iter().chain(after).flat_map(Crd::name_keys).collect();
        for key in &keys {
            self.wanting(cluster, NameQuery::from(key).of_schemas());
        }
    }

    /// The same for a bound CRD that is missing: a plan that creates it foresees whose names it takes.
    fn wanting_names_to_come(&mut self, cluster: &ClusterName, uid: &str) {
        let world = self.world;
        for key in world.schemas_with_uid(uid) {
            let copies = world.schema_copies(&key.cluster, &key.name);
            for schema in copies.filter(|schema| schema.meta.uid == *uid) {
                for name in Name::all(&schema.names) {
                    self.wanting(cluster, NameQuery::new(schema.resource.group(), name));
                }
            }
        }
    }

    /// The bindings of a cluster whose export has a schema of that name. Of the two ways to find
    /// them, from the schemas or from the cluster's bindings, the shorter one is gone.
    fn wanting(&mut self, cluster: &ClusterName, query: NameQuery<'_>) {
        let world = self.world;
        let Some(known) = world.cluster(cluster) else { return };
        let Some(schemas) = world.schemas_named(query) else { return };
        if schemas.len() <= known.target_count() {
            for schema in schemas.iter() {
                for path in exporting(world, &schema.cluster, &schema.name).flat_map(Export::addresses) {
                    known.with_target(path).for_each(|name| self.add(cluster, name));
                }
            }
            return;
        }
        for (path, names) in known.targets() {
            let keys = Origin::ALL.into_iter().flat_map(|origin| {
                let keys = world.exports_at(origin, path).into_iter().flat_map(|keys| keys.iter());
                keys.map(move |key| (origin, key))
            });
            let mut offers = keys.filter_map(|(origin, key)| Some((key, world.export(origin, key)?)));
            let is_named = |(cluster, schema): (&ClusterName, &Text)| {
                world.schema_copies(cluster, schema).any(|schema: &Schema| schema.has_name(query))
            };
            if offers
                .any(|(key, export)| export.resources.iter().any(|resource| is_named((&key.cluster, &resource.schema))))
            {
                names.for_each(|name| self.add(cluster, name));
            }
        }
    }
}

/// The exports that name a schema of their cluster, local and global ones.
fn exporting<'a>(world: &'a World, cluster: &ClusterName, schema: &Text) -> impl Iterator<Item = &'a Export> {
    let known = world.cluster(cluster);
    Origin::ALL.into_iter().flat_map(move |origin| {
        let names = known.into_iter().flat_map(move |known| known.exporting(origin, schema));
        names.filter_map(move |name| known?.export(origin, name).map(|export| &**export))
    })
}

/// All that decides which names a CRD takes, and from whom first.
fn taken(crd: Option<&Crd>) -> Option<(&Text, &Text, &ResourceNames, &ResourceNames, bool)> {
    crd.map(|crd| (&crd.meta.uid, &crd.group, &crd.names, &crd.accepted_names, crd.names_judged))
}

/// The keys that only one of two objects has; all of both where `all`.
fn changed<'b, K: Ord + 'b, I>(
    before: Option<&'b Binding>,
    after: Option<&'b Binding>,
    all: bool,
    keys: fn(&'b Binding) -> I,
) -> BTreeSet<&'b K>
where
    I: IntoIterator<Item = &'b K>,
{
    let list = |binding: Option<&'b Binding>| binding.map(|binding| &binding.status.bound_resources);
    if !all && list(before) == list(after) {
        return BTreeSet::new();
    }
    let set = |binding: Option<&'b Binding>| -> BTreeSet<&'b K> { binding.into_iter().flat_map(keys).collect() };
    let (before, after) = (set(before), set(after));
    if all { before.union(&after).copied().collect() } else { before.symmetric_difference(&after).copied().collect() }
}

/// What every binding of a cluster sees of its LogicalCluster, whatever it wants: whether it is
/// there, which annotations cannot be read and why, and whether its own is there and would be
/// written anew.
fn guise(home: Option<&Home>, own: Layer) -> Option<([Option<&Text>; 4], Option<bool>)> {
    let home = home.filter(|home| !home.meta.resource_version.is_empty())?;
    let is_canonical = home.layer(own).locks().map(Locks::is_canonical);
    Some((Layer::ALL.map(|layer| home.layer(layer).why()), is_canonical))
}

#[cfg(test)]
mod tests;
