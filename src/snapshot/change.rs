//! Changes: what watches and answers tell, and what a snapshot makes of it.
//!
//! Events come late, doubled and out of order. What makes that harmless is that nothing older
//! replaces anything newer, deletions included: a deletion is remembered until its stream has
//! passed it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Snapshot;
use super::cluster::{Cluster, Origin};
use super::facts::{Binding, Crd, Export, Home, Meta, Schema};
use super::index::Table;
use super::locks::{Annotation, Layer};
use super::version::{compare, older};
use super::world::{Event, Fact, World};
use crate::api::{BindingKey, Kind, Object, Text};

/// Something that was seen: an event of a watch, a list, or the answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Change {
    /// An object is there: added, updated, or just seen.
    #[serde(rename_all = "camelCase")]
    Put {
        /// Where it was seen. What has no global copies is always local.
        origin: Origin,
        /// The object.
        object: Box<Object>,
    },
    /// An object is gone.
    #[serde(rename_all = "camelCase")]
    Delete {
        /// Where that was seen.
        origin: Origin,
        /// Its kind.
        kind: Kind,
        /// Its logical cluster and name.
        key: BindingKey,
        /// The version at which it is gone: that of the deletion, or the last that is known of
        /// the object. Empty: not known.
        resource_version: Text,
    },
    /// A stream has come to a version: nothing older will come.
    #[serde(rename_all = "camelCase")]
    Bookmark {
        /// Which stream.
        origin: Origin,
        /// Which stream.
        kind: Kind,
        /// The version.
        resource_version: Text,
    },
    /// All objects of a kind, at a version. What is not in it is gone. A list older than one that
    /// was seen before (of a server restored from a back-up) replaces all that is known of the kind.
    #[serde(rename_all = "camelCase")]
    List {
        /// Where it was taken.
        origin: Origin,
        /// Of which kind; objects of others are ignored.
        kind: Kind,
        /// The objects.
        objects: Vec<Object>,
        /// The version. Empty where the list tells none: then it counts as newer than all that is known.
        resource_version: Text,
    },
}

impl Change {
    /// A local object is there.
    pub fn put(object: impl Into<Object>) -> Self {
        Self::Put { origin: Origin::Local, object: Box::new(object.into()) }
    }

    /// A global copy is there.
    pub fn put_global(object: impl Into<Object>) -> Self {
        Self::Put { origin: Origin::Global, object: Box::new(object.into()) }
    }

    /// A local object is gone, as of the version at which it was last seen.
    pub fn delete(object: &Object) -> Self {
        Self::Delete {
            origin: Origin::Local,
            kind: object.kind(),
            key: object.key(),
            resource_version: Meta::from(object.metadata()).resource_version,
        }
    }
}

/// Where a snapshot learns from: the six kinds of the server, and three of them of its cache server as well.
pub const STREAMS: [(Origin, Kind); 9] = [
    (Origin::Local, Kind::LogicalCluster),
    (Origin::Local, Kind::ApiBinding),
    (Origin::Local, Kind::ApiExport),
    (Origin::Local, Kind::ApiResourceSchema),
    (Origin::Local, Kind::ApiConversion),
    (Origin::Local, Kind::Crd),
    (Origin::Global, Kind::ApiExport),
    (Origin::Global, Kind::ApiResourceSchema),
    (Origin::Global, Kind::ApiConversion),
];

/// What a [`Change`] did to a snapshot, for [`crate::wakeup`] to read.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    pub(crate) events: Vec<Event>,
}

impl Applied {
    /// True if nothing changed: the change was late, doubled, or told nothing new.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

/// What a stream has told so far: it keeps late events from undoing anything, and is no part of
/// what a snapshot is equal to.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    streams: BTreeMap<(Origin, Kind), Stream>,
}

#[derive(Clone, Debug, Default)]
struct Stream {
    /// The highest version of a list or bookmark.
    seen: Text,
    /// Deletions that the stream may not have passed yet.
    deleted: Table<BindingKey, Text>,
}

impl Stream {
    fn pass(&mut self, version: &Text) {
        if self.seen.is_empty() || older(&self.seen, version) {
            self.seen = version.clone();
        }
        if !self.deleted.is_empty() {
            self.deleted.retain(|_, deleted| older(version, deleted));
        }
    }
}

fn version_of(object: &Object) -> &str {
    object.metadata().resource_version.as_deref().unwrap_or_default()
}

/// Kinds without global copies are local, whatever is said.
fn origin_of(kind: Kind, origin: Origin) -> Origin {
    match kind {
        Kind::ApiExport | Kind::ApiResourceSchema | Kind::ApiConversion => origin,
        Kind::ApiBinding | Kind::LogicalCluster | Kind::Crd => Origin::Local,
    }
}

impl Snapshot {
    /// Takes in what was seen; tells what came of it.
    ///
    /// Late, doubled and reordered changes end in the same snapshot: an object or a deletion
    /// with a lower resourceVersion than what is known of that name changes nothing, whatever its
    /// uid. Where a version is no number, what arrives later counts.
    pub fn apply(&mut self, change: Change) -> Applied {
        let mut events = Vec::new();
        match change {
            Change::Put { origin, object } => {
                let origin = origin_of(object.kind(), origin);
                if !self.was_deleted(origin, &object) {
                    events.extend(self.put(origin, *object));
                }
            }
            Change::Delete { origin, kind, key, resource_version } => {
                events.extend(self.delete(origin_of(kind, origin), kind, key, resource_version));
            }
            Change::Bookmark { origin, kind, resource_version } => {
                self.stream(origin_of(kind, origin), kind).pass(&resource_version);
            }
            Change::List { origin, kind, objects, resource_version } => {
                self.list(origin_of(kind, origin), kind, objects, &resource_version, &mut events);
            }
        }
        Applied { events }
    }

    fn stream(&mut self, origin: Origin, kind: Kind) -> &mut Stream {
        Arc::make_mut(&mut self.memory).streams.entry((origin, kind)).or_default()
    }

    /// True if the stream has passed the version of an object that is not known: what is told of it
    /// comes so late that even its deletion is forgotten.
    fn was_deleted(&self, origin: Origin, object: &Object) -> bool {
        let (kind, version) = (object.kind(), version_of(object));
        let seen = self.memory.streams.get(&(origin, kind)).map(|stream| &stream.seen);
        let has_passed = seen.is_some_and(|seen| compare(version, seen).is_some_and(Ordering::is_le));
        has_passed && older("0", version) && self.known(origin, kind, &object.key()).is_none()
    }

    fn put(&mut self, origin: Origin, object: Object) -> Option<Event> {
        let (kind, key) = (object.kind(), object.key());
        if kind == Kind::LogicalCluster && key.name != HOME {
            return None;
        }
        let version = version_of(&object);
        let deleted = self.memory.streams.get(&(origin, kind)).and_then(|stream| stream.deleted.get(&key));
        if deleted.is_some_and(|deleted| !older(deleted, version) && older("0", version)) {
            return None;
        }
        if deleted.is_some() {
            self.stream(origin, kind).deleted.remove(&key);
        }
        if self.known(origin, kind, &key).is_some_and(|known| older(version, &known.resource_version)) {
            return None;
        }
        self.insert(origin, key, object)
    }

    /// Puts an object whatever its version; `None` if it is known just so.
    fn insert(&mut self, origin: Origin, mut key: BindingKey, object: Object) -> Option<Event> {
        if matches!(object.kind(), Kind::ApiExport | Kind::ApiResourceSchema | Kind::Crd) {
            // By these names others refer to them.
            Arc::make_mut(&mut self.pool).share(&mut key.name);
        }
        let fact = self.fact(origin, &key, object);
        if self.world.knows(&key, &fact) {
            return None;
        }
        Some(self.world_mut().put(&key.cluster, &key.name, fact))
    }

    /// What is kept of an object. It shares what it can with what was known of it, and with others.
    fn fact(&mut self, origin: Origin, key: &BindingKey, object: Object) -> Fact {
        let cluster = self.world.cluster(&key.cluster);
        let pool = Arc::make_mut(&mut self.pool);
        match object {
            Object::ApiBinding(binding) => {
                let mut new = Binding::new(binding);
                pool.share_binding(&mut new, cluster.and_then(|known| known.binding(&key.name)).map(|old| &**old));
                Fact::Binding(Some(Arc::new(new)))
            }
            Object::ApiExport(export) => {
                let mut new = Export::from(&export);
                pool.share_export(&mut new);
                Fact::Export(origin, Some(Arc::new(new)))
            }
            Object::ApiResourceSchema(schema) => {
                let mut schema = Schema::from(&schema);
                pool.share_schema(&mut schema);
                let mut copies = Origin::ALL.into_iter().filter_map(|origin| cluster?.schema_of(origin, &key.name));
                if let Some(copy) = copies.find(|copy| copy.crd == schema.crd) {
                    schema.crd = copy.crd.clone();
                }
                Fact::Schema(origin, Some(Arc::new(schema)))
            }
            Object::ApiConversion(it) => Fact::Conversion(origin, Some(Arc::new(Meta::from(&it.metadata)))),
            Object::LogicalCluster(it) => {
                let mut new = Home::from(&it);
                let old = cluster.and_then(Cluster::home);
                for layer in Layer::ALL {
                    let old = old.and_then(|old| old.layer(layer).locks());
                    if let Annotation::Locks(locks) = new.layer_mut(layer) {
                        pool.share_locks(locks, old, cluster);
                    }
                }
                Fact::Home(Some(Arc::new(new)))
            }
            Object::Crd(crd) => {
                let mut new = Crd::from(&crd);
                pool.share_crd(&mut new);
                Fact::Crd(Some(Arc::new(new)))
            }
        }
    }

    fn delete(&mut self, origin: Origin, kind: Kind, key: BindingKey, version: Text) -> Option<Event> {
        if kind == Kind::LogicalCluster && key.name != HOME {
            return None;
        }
        let known = self.known(origin, kind, &key).map(|known| known.resource_version.clone());
        if known.as_ref().is_some_and(|known| older(&version, known)) {
            return None;
        }
        let version = Some(version).filter(|version| !version.is_empty()).or_else(|| known.clone());
        if let Some(version) = version.filter(|version| older("0", version)) {
            let deleted = &mut self.stream(origin, kind).deleted;
            if deleted.get(&key).is_none_or(|before| older(before, &version)) {
                deleted.insert(key.clone(), version);
            }
        }
        known?;
        Some(self.world_mut().put(&key.cluster, &key.name, nothing(origin, kind)))
    }

    fn list(&mut self, origin: Origin, kind: Kind, objects: Vec<Object>, version: &Text, events: &mut Vec<Event>) {
        let stream = self.stream(origin, kind);
        let restored = older(version, &stream.seen);
        if restored {
            *stream = Stream::default();
        }
        // Before what this list finds deleted is remembered: answers may still tell of that.
        stream.pass(version);
        let listed: BTreeSet<BindingKey> =
            objects.iter().filter(|object| object.kind() == kind).map(Object::key).collect();
        for key in self.keys(origin, kind).into_iter().filter(|key| !listed.contains(key)) {
            match restored {
                true => events.push(self.world_mut().put(&key.cluster, &key.name, nothing(origin, kind))),
                false => events.extend(self.delete(origin, kind, key, version.clone())),
            }
        }
        for object in objects.into_iter().filter(|object| object.kind() == kind) {
            let event = if restored { self.insert(origin, object.key(), object) } else { self.put(origin, object) };
            events.extend(event);
        }
    }

    fn known(&self, origin: Origin, kind: Kind, key: &BindingKey) -> Option<&Meta> {
        let cluster = self.world.cluster(&key.cluster)?;
        match kind {
            Kind::ApiBinding => cluster.binding(&key.name).map(|known| &known.meta),
            Kind::ApiExport => cluster.export(origin, &key.name).map(|known| &known.meta),
            Kind::ApiResourceSchema => cluster.schema_of(origin, &key.name).map(|known| &known.meta),
            Kind::ApiConversion => cluster.conversion(origin, &key.name).map(|known| &**known),
            Kind::Crd => cluster.crd(&key.name).map(|known| &known.meta),
            Kind::LogicalCluster => cluster.home().map(|known| &known.meta),
        }
    }

    /// In the order of clusters; those of one cluster in no order.
    fn keys(&self, origin: Origin, kind: Kind) -> Vec<BindingKey> {
        let clusters = self.world.clusters();
        let keys = clusters.into_iter().flat_map(|(name, cluster)| {
            let names: Vec<Text> = match kind {
                Kind::ApiBinding => cluster.binding_names().cloned().collect(),
                Kind::ApiExport => cluster.exports(origin).map(|(name, _)| name.clone()).collect(),
                Kind::ApiResourceSchema => cluster.schemas(origin).map(|(name, _)| name.clone()).collect(),
                Kind::ApiConversion => cluster.conversions(origin).map(|(name, _)| name.clone()).collect(),
                Kind::Crd => cluster.crds().map(|(name, _)| name.clone()).collect(),
                Kind::LogicalCluster => cluster.home().map(|_| HOME.into()).into_iter().collect(),
            };
            names.into_iter().map(move |object| BindingKey::new(name.clone(), object))
        });
        keys.collect()
    }
}

fn nothing(origin: Origin, kind: Kind) -> Fact {
    match kind {
        Kind::ApiBinding => Fact::Binding(None),
        Kind::ApiExport => Fact::Export(origin, None),
        Kind::ApiResourceSchema => Fact::Schema(origin, None),
        Kind::ApiConversion => Fact::Conversion(origin, None),
        Kind::Crd => Fact::Crd(None),
        Kind::LogicalCluster => Fact::Home(None),
    }
}

impl World {
    /// True if the object is known just so.
    fn knows(&self, key: &BindingKey, fact: &Fact) -> bool {
        let Some(cluster) = self.cluster(&key.cluster) else { return false };
        match fact {
            Fact::Binding(new) => cluster.binding(&key.name) == new.as_ref(),
            Fact::Export(origin, new) => cluster.export(*origin, &key.name) == new.as_ref(),
            Fact::Schema(origin, new) => cluster.schema_of(*origin, &key.name) == new.as_ref(),
            Fact::Conversion(origin, new) => cluster.conversion(*origin, &key.name) == new.as_ref(),
            Fact::Crd(new) => cluster.crd(&key.name) == new.as_ref(),
            Fact::Home(new) => cluster.home() == new.as_ref(),
        }
    }
}

/// The name that the object of every logical cluster has.
pub(crate) const HOME: &str = "cluster";

#[cfg(test)]
mod tests;
