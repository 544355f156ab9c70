//! What a snapshot should know, told the long way: objects, and the rules of DESIGN.md for changes.

use std::collections::BTreeMap;

use apibinding::api::{BindingKey, Kind, Object};
use apibinding::snapshot::{Change, Layout, Origin, Snapshot};
use apibinding::strategies::World;
use k8s_openapi::jiff::Timestamp;

type Stream = (Origin, Kind);

#[derive(Clone, Debug, Default)]
pub struct Model {
    objects: BTreeMap<Stream, BTreeMap<BindingKey, Object>>,
    gone: BTreeMap<Stream, BTreeMap<BindingKey, String>>,
    seen: BTreeMap<Stream, String>,
}

fn version(object: &Object) -> String {
    object.metadata().resource_version.clone().unwrap_or_default()
}

/// Nothing in the pools is larger than this but one number, which is compared as text would be.
fn number(text: &str) -> Option<u128> {
    text.parse().ok()
}

fn older(left: &str, right: &str) -> bool {
    matches!((number(left), number(right)), (Some(left), Some(right)) if left < right)
}

impl Model {
    pub fn of(world: &World) -> Self {
        let mut model = Self::default();
        for change in world.changes() {
            model.apply(&change);
        }
        model
    }

    pub fn has_copies(&self, kind: Kind) -> bool {
        matches!(kind, Kind::ApiExport | Kind::ApiResourceSchema | Kind::ApiConversion)
    }

    fn stream(&self, origin: Origin, kind: Kind) -> Stream {
        (if self.has_copies(kind) { origin } else { Origin::Local }, kind)
    }

    pub fn get(&self, origin: Origin, kind: Kind, key: &BindingKey) -> Option<&Object> {
        self.objects.get(&(origin, kind))?.get(key)
    }

    pub fn of_kind(&self, origin: Origin, kind: Kind) -> Vec<Object> {
        self.objects.get(&(origin, kind)).into_iter().flat_map(|objects| objects.values().cloned()).collect()
    }

    pub fn local(&self) -> impl Iterator<Item = &Object> {
        self.objects
            .iter()
            .filter(|((origin, _), _)| *origin == Origin::Local)
            .flat_map(|(_, objects)| objects.values())
    }

    pub fn snapshot(&self, layout: Layout, now: Timestamp) -> Snapshot {
        let mut snapshot = Snapshot::new(layout);
        snapshot.set_now(now);
        for ((origin, _), objects) in &self.objects {
            for object in objects.values() {
                snapshot.apply(Change::Put { origin: *origin, object: Box::new(object.clone()) });
            }
        }
        snapshot
    }

    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Put { origin, object } => {
                let stream = self.stream(*origin, object.kind());
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
                self.delete(self.stream(*origin, *kind), key, resource_version);
            }
            Change::Bookmark { origin, kind, resource_version } => {
                self.pass(self.stream(*origin, *kind), resource_version);
            }
            Change::List { origin, kind, objects, resource_version } => {
                let stream = self.stream(*origin, *kind);
                let objects: Vec<&Object> = objects.iter().filter(|object| object.kind() == *kind).collect();
                let is_restored = self.seen.get(&stream).is_some_and(|seen| older(resource_version, seen));
                if is_restored {
                    // Of a server restored from a back-up: nothing from before counts.
                    self.objects.remove(&stream);
                    self.gone.remove(&stream);
                    self.seen.remove(&stream);
                }
                self.pass(stream, resource_version);
                if is_restored {
                    for object in objects {
                        self.objects.entry(stream).or_default().insert(object.key(), object.clone());
                    }
                } else {
                    let known: Vec<BindingKey> =
                        self.objects.get(&stream).into_iter().flat_map(|objects| objects.keys().cloned()).collect();
                    for key in known.iter().filter(|key| !objects.iter().any(|object| object.key() == **key)) {
                        self.delete(stream, key, resource_version);
                    }
                    for object in objects {
                        self.put(stream, object);
                    }
                }
            }
            other => panic!("unknown change {other:?}"),
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
            known.insert(key, object.clone());
        }
    }

    fn delete(&mut self, stream: Stream, key: &BindingKey, at: &str) {
        let known = self.objects.entry(stream).or_default();
        let last = known.get(key).map(version);
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
