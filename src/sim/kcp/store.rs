//! Everything that is stored: objects by kind, cluster and name, and what happened to them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::managers::Managers;
use super::metadata;
use super::refusal::{Refusal, expired};
use crate::api::{BindingKey, ClusterName, Kind, Text};
use crate::snapshot::Origin;

/// An object at one version.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub object: Arc<Value>,
    pub managers: Managers,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happened {
    /// It came to be.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

impl Happened {
    /// As the events of a watch name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One event of a kind's history.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// What happened.
    pub happened: Happened,
    /// The version at which it did.
    pub version: u64,
    /// To which object.
    pub key: BindingKey,
    /// The object at that version; of one that is gone the last state, at the version of its end.
    pub object: Arc<Value>,
    /// Who owned what of it then.
    #[cfg_attr(not(feature = "shell"), expect(dead_code, reason = "told over HTTP only"))]
    pub(super) managers: Managers,
    /// What it was before.
    pub(super) before: Option<Stored>,
}

#[cfg(feature = "shell")]
impl Event {
    /// The object as it was before, if there was one.
    pub(crate) fn object_before(&self) -> Option<&Value> {
        self.before.as_ref().map(|before| &*before.object)
    }

    /// Who owned what of the object then.
    pub(crate) fn owners(&self, kind: Kind) -> super::Owners {
        self.managers.of_kind(kind)
    }
}

/// The objects of one kind in one place.
#[derive(Clone, Debug, Default)]
struct Shelf {
    objects: BTreeMap<ClusterName, BTreeMap<Text, Stored>>,
    history: VecDeque<Event>,
}

/// All objects and their history, under one sequence of versions.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    version: u64,
    /// Nothing is known of what happened up to this version.
    forgotten: u64,
    shelves: BTreeMap<(Origin, Kind), Shelf>,
}

impl Store {
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The next version is later than this.
    pub fn raise(&mut self, version: u64) {
        self.version = self.version.max(version);
    }

    pub fn get(&self, origin: Origin, kind: Kind, key: &BindingKey) -> Option<&Stored> {
        self.shelves.get(&(origin, kind))?.objects.get(&key.cluster)?.get(&key.name)
    }

    /// All objects of a kind, of one cluster or of all, by cluster and name.
    pub fn list<'a>(
        &'a self,
        origin: Origin,
        kind: Kind,
        cluster: Option<&'a ClusterName>,
    ) -> impl Iterator<Item = &'a Arc<Value>> {
        let shelf = self.shelves.get(&(origin, kind));
        let (one, all) = match cluster {
            Some(cluster) => (shelf.and_then(|shelf| shelf.objects.get(cluster)), None),
            None => (None, shelf),
        };
        let all = all.into_iter().flat_map(|shelf| shelf.objects.values());
        one.into_iter().chain(all).flat_map(|names| names.values()).map(|stored| &stored.object)
    }

    /// The same as it was at a version.
    ///
    /// # Errors
    /// 410 if what happened since then was forgotten.
    pub fn list_at(
        &self,
        origin: Origin,
        kind: Kind,
        cluster: Option<&ClusterName>,
        version: u64,
    ) -> Result<Vec<&Stored>, Refusal> {
        let since = self.events_since(origin, kind, version)?;
        let Some(shelf) = self.shelves.get(&(origin, kind)) else { return Ok(Vec::new()) };
        // What happened since is undone, the last first.
        let mut then: BTreeMap<(&ClusterName, &Text), Option<&Stored>> = BTreeMap::new();
        let is_asked = |of: &ClusterName| cluster.is_none_or(|cluster| cluster == of);
        for event in since {
            if is_asked(&event.key.cluster) {
                then.entry((&event.key.cluster, &event.key.name)).or_insert(event.before.as_ref());
            }
        }
        let is_same = then.is_empty();
        let now = shelf.objects.iter().filter(|(of, _)| is_asked(of));
        let now = now.flat_map(|(cluster, names)| names.iter().map(move |(name, stored)| ((cluster, name), stored)));
        if is_same {
            return Ok(now.map(|(_, stored)| stored).collect());
        }
        for (key, stored) in now {
            then.entry(key).or_insert(Some(stored));
        }
        Ok(then.into_values().flatten().collect())
    }

    /// All objects of a kind, each as if it had just come.
    #[cfg(feature = "shell")]
    pub fn arrivals(&self, origin: Origin, kind: Kind) -> Vec<Event> {
        let shelf = self.shelves.get(&(origin, kind));
        let clusters = shelf.into_iter().flat_map(|shelf| &shelf.objects);
        let all = clusters.flat_map(|(cluster, names)| {
            names.iter().map(move |(name, stored)| Event {
                happened: Happened::Added,
                version: super::text_at(&stored.object, &["metadata", "resourceVersion"]).parse().unwrap_or(0),
                key: BindingKey { cluster: cluster.clone(), name: name.clone() },
                object: stored.object.clone(),
                managers: stored.managers.clone(),
                before: None,
            })
        });
        all.collect()
    }

    /// Keeps an object under the next version, which it is given.
    pub fn put(
        &mut self,
        origin: Origin,
        kind: Kind,
        key: BindingKey,
        mut object: Value,
        managers: Managers,
    ) -> Arc<Value> {
        let version = self.stamp(&mut object);
        let object = Arc::new(object);
        let stored = Stored { object: object.clone(), managers };
        let shelf = self.shelves.entry((origin, kind)).or_default();
        let event = Event {
            happened: Happened::Added,
            version,
            key,
            object: object.clone(),
            managers: stored.managers.clone(),
            before: None,
        };
        let names = shelf.objects.entry(event.key.cluster.clone()).or_default();
        let before = names.insert(event.key.name.clone(), stored);
        let happened = if before.is_some() { Happened::Modified } else { Happened::Added };
        shelf.history.push_back(Event { happened, before, ..event });
        object
    }

    /// Takes an object away. What is told of it is its last state.
    pub fn remove(&mut self, origin: Origin, kind: Kind, key: &BindingKey) {
        let Some(shelf) = self.shelves.get_mut(&(origin, kind)) else { return };
        let Some(names) = shelf.objects.get_mut(&key.cluster) else { return };
        let Some(last) = names.remove(&key.name) else { return };
        if names.is_empty() {
            shelf.objects.remove(&key.cluster);
        }
        let mut object = Value::clone(&last.object);
        let version = self.stamp(&mut object);
        let event = Event {
            happened: Happened::Deleted,
            version,
            key: key.clone(),
            object: Arc::new(object),
            managers: last.managers.clone(),
            before: Some(last),
        };
        self.shelves.entry((origin, kind)).or_default().history.push_back(event);
    }

    fn stamp(&mut self, object: &mut Value) -> u64 {
        self.version += 1;
        metadata(object).insert("resourceVersion".into(), json!(self.version.to_string()));
        self.version
    }

    /// What happened to a kind after a version, oldest first.
    pub fn events_since(
        &self,
        origin: Origin,
        kind: Kind,
        version: u64,
    ) -> Result<impl Iterator<Item = &Event>, Refusal> {
        if version < self.forgotten {
            return Err(expired(version, self.forgotten));
        }
        let history = self.shelves.get(&(origin, kind)).map(|shelf| &shelf.history);
        Ok(history
            .into_iter()
            .flat_map(move |history| history.range(history.partition_point(|event| event.version <= version)..)))
    }

    /// Forgets what happened up to a version.
    pub fn compact(&mut self, version: u64) {
        self.forgotten = self.forgotten.max(version.min(self.version));
        for shelf in self.shelves.values_mut() {
            let gone = shelf.history.partition_point(|event| event.version <= self.forgotten);
            shelf.history.drain(..gone);
        }
    }
}
