//! What a snapshot should know, told the long way: objects, and the rules for changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

use crate::api::{BindingKey, Kind, Object};
use crate::snapshot::{Change, Layout, Origin, Snapshot};

type Stream = (Origin, Kind);

/// What is known, without an index: whole objects, by origin, kind and name.
#[derive(Clone, Debug)]
pub struct Model {
    /// How the lock annotations are laid out.
    pub layout: Layout,
    /// The time.
    pub now: Timestamp,
    objects: BTreeMap<Stream, BTreeMap<BindingKey, Arc<Object>>>,
    gone: BTreeMap<Stream, BTreeMap<BindingKey, String>>,
    seen: BTreeMap<Stream, String>,
}

fn version(object: &Object) -> String {
    object.metadata().resource_version.clone().unwrap_or_default()
}

/// Versions that do not fit count as no numbers here: a test's business, not a server's.
fn number(text: &str) -> Option<u128> {
    text.parse().ok()
}

fn older(left: &str, right: &str) -> bool {
    matches!((number(left), number(right)), (Some(left), Some(right)) if left < right)
}

fn has_copies(kind: Kind) -> bool {
    matches!(kind, Kind::ApiExport | Kind::ApiResourceSchema | Kind::ApiConversion)
}

fn stream(origin: Origin, kind: Kind) -> Stream {
    (if has_copies(kind) { origin } else { Origin::Local }, kind)
}

impl Model {
    /// One that knows nothing.
    pub fn new(layout: Layout, now: Timestamp) -> Self {
        Self { layout, now, objects: BTreeMap::new(), gone: BTreeMap::new(), seen: BTreeMap::new() }
    }

    /// An object.
    pub fn get(&self, origin: Origin, kind: Kind, key: &BindingKey) -> Option<&Arc<Object>> {
        self.objects.get(&stream(origin, kind))?.get(key)
    }

    /// All objects of a kind.
    pub fn of_kind(&self, origin: Origin, kind: Kind) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.get(&stream(origin, kind)).into_iter().flat_map(BTreeMap::values)
    }

    /// All objects, each with where it is seen.
    pub fn all(&self) -> impl Iterator<Item = (Origin, &Arc<Object>)> {
        self.objects.iter().flat_map(|((origin, _), objects)| objects.values().map(|object| (*origin, object)))
    }

    /// All objects as changes that tell of them.
    pub fn changes(&self) -> Vec<Change> {
        let put =
            |(origin, object): (Origin, &Arc<Object>)| Change::Put { origin, object: Box::new(Object::clone(object)) };
        self.all().map(put).collect()
    }

    /// A snapshot of these objects, built from nothing.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_of(self.changes())
    }

    /// A snapshot of these changes.
    pub fn snapshot_of(&self, changes: impl IntoIterator<Item = Change>) -> Snapshot {
        let mut snapshot = Snapshot::new(self.layout);
        snapshot.set_now(self.now);
        for change in changes {
            snapshot.apply(change);
        }
        snapshot
    }

    /// The keys of all bindings.
    pub fn bindings(&self) -> BTreeSet<BindingKey> {
        self.of_kind(Origin::Local, Kind::ApiBinding).map(|binding| binding.key()).collect()
    }

    /// Takes in a change, by the rules of [`Snapshot::apply`].
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Put { origin, object } => {
                let stream = stream(*origin, object.kind());
                let (key, version) = (object.key(), number(&version(object)));
                let is_known = self.objects.get(&stream).is_some_and(|known| known.contains_key(&key));
                let seen = self.seen.get(&stream).and_then(|seen| number(seen));
                // So late that even its deletion is forgotten.
                let is_past = version.zip(seen).is_some_and(|(version, seen)| 0 < version && version <= seen);
                if is_known || !is_past {
                    self.put(stream, object);
                }
            }
            Change::Delete { origin, kind, key, resource_version } => {
                self.delete(stream(*origin, *kind), key, resource_version);
            }
            Change::Bookmark { origin, kind, resource_version } => {
                self.pass(stream(*origin, *kind), resource_version);
            }
            Change::List { origin, kind, objects, resource_version } => {
                self.list(stream(*origin, *kind), *kind, objects, resource_version);
            }
        }
    }

    fn list(&mut self, stream: Stream, kind: Kind, objects: &[Object], version: &str) {
        let objects: Vec<&Object> = objects.iter().filter(|object| object.kind() == kind).collect();
        let is_restored = self.seen.get(&stream).is_some_and(|seen| older(version, seen));
        if is_restored {
            // Of a server restored from a back-up: nothing from before counts.
            self.objects.remove(&stream);
            self.gone.remove(&stream);
            self.seen.remove(&stream);
        }
        self.pass(stream, version);
        if is_restored {
            for object in objects {
                self.objects.entry(stream).or_default().insert(object.key(), Arc::new(object.clone()));
            }
            return;
        }
        let listed: BTreeSet<BindingKey> = objects.iter().map(|object| object.key()).collect();
        let known: Vec<BindingKey> =
            self.objects.get(&stream).into_iter().flat_map(|objects| objects.keys().cloned()).collect();
        for key in known.iter().filter(|key| !listed.contains(key)) {
            self.delete(stream, key, version);
        }
        for object in objects {
            self.put(stream, object);
        }
    }

    fn put(&mut self, stream: Stream, object: &Object) {
        if object.kind() == Kind::LogicalCluster && object.key().name != "cluster" {
            return;
        }
        let (key, version) = (object.key(), version(object));
        if let Some(gone) = self.gone.get(&stream).and_then(|gone| gone.get(&key)) {
            if number(&version).is_some_and(|version| version > 0) && !older(gone, &version) {
                return;
            }
            self.gone.entry(stream).or_default().remove(&key);
        }
        let known = self.objects.entry(stream).or_default();
        if known.get(&key).is_none_or(|known| !older(&version, &self::version(known))) {
            known.insert(key, Arc::new(object.clone()));
        }
    }

    fn delete(&mut self, stream: Stream, key: &BindingKey, at: &str) {
        let known = self.objects.entry(stream).or_default();
        let last = known.get(key).map(|known| version(known));
        if last.as_deref().is_some_and(|last| older(at, last)) {
            return;
        }
        known.remove(key);
        let at = if at.is_empty() { last.unwrap_or_default() } else { at.to_owned() };
        if number(&at).is_some_and(|at| at > 0) {
            let gone = self.gone.entry(stream).or_default().entry(key.clone()).or_insert_with(|| at.clone());
            if older(gone, &at) {
                *gone = at;
            }
        }
    }

    fn pass(&mut self, stream: Stream, version: &str) {
        let seen = self.seen.entry(stream).or_default();
        if seen.is_empty() || older(seen, version) {
            *seen = version.into();
        }
        if let Some(gone) = self.gone.get_mut(&stream) {
            gone.retain(|_, at| older(version, at));
        }
    }
}
