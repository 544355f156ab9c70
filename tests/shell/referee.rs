//! Who watches the kcp itself: what has to hold at every event.

use std::collections::{BTreeMap, BTreeSet};

use apibinding::api::{ApiBinding, BindingKey, ClusterName, Kind};
use apibinding::front::Front;
use apibinding::sim::laws::Owners;
use apibinding::sim::{Event, Happened};
use apibinding::snapshot::{Layer, Origin};
use serde::Deserialize;
use serde_json::Value;

use crate::worlds::annotation;

/// Sees every event, as long as it looks before they are forgotten.
#[derive(Default)]
pub struct Referee {
    begun: u64,
    version: u64,
    owners: Owners,
    created: BTreeMap<String, u32>,
}

impl Referee {
    /// Begins with what is there.
    pub fn new(front: &Front) -> Self {
        let mut referee = Self::default();
        front.with(|kcp| {
            referee.version = kcp.version();
            referee.begun = kcp.version();
            for binding in kcp.list(Origin::Local, Kind::ApiBinding, None) {
                let binding = ApiBinding::deserialize(&**binding).unwrap();
                referee.note(&binding.key(), Some(&binding));
            }
        });
        referee
    }

    fn note(&mut self, key: &BindingKey, binding: Option<&ApiBinding>) {
        let status = binding.map(|binding| binding.status.clone());
        self.owners.note(key, status.as_ref()).expect("exclusive");
    }

    /// Looks at what has happened since it last did.
    pub fn look(&mut self, front: &Front) {
        let since = self.version;
        let events = |kind| -> Vec<Event> {
            front.with(|kcp| kcp.events_since(Origin::Local, kind, since).expect("its history").cloned().collect())
        };
        let (bindings, crds) = (events(Kind::ApiBinding), events(Kind::Crd));
        let last = |events: &[Event]| events.last().map_or(since, |event| event.version);
        // Of one kind there may be later events than of the other: those are looked at twice.
        self.version = last(&bindings).min(last(&crds)).max(since);
        for event in &bindings {
            let binding =
                (event.happened != Happened::Deleted).then(|| ApiBinding::deserialize(&*event.object).unwrap());
            self.note(&event.key, binding.as_ref());
        }
        for event in crds.iter().filter(|event| event.key.cluster.as_str() == ClusterName::BOUND_CRDS) {
            if event.happened == Happened::Added {
                let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap().to_owned();
                *self.created.entry(format!("{} {}", event.key, uid(&event.object))).or_default() = 1;
            }
        }
    }

    /// How many bound CRDs were created; each once.
    pub fn created(&self) -> usize {
        let names: BTreeSet<&str> = self.created.keys().filter_map(|name| Some(name.split_once(' ')?.0)).collect();
        assert_eq!(names.len(), self.created.len(), "bound CRDs were created twice: {:?}", self.created);
        names.len()
    }

    /// No lock of a binding is ever taken away again, where no binding is deleted.
    pub fn assert_no_lock_lost(&self, front: &Front) {
        let events: Vec<Event> = front.with(|kcp| {
            kcp.events_since(Origin::Local, Kind::LogicalCluster, self.begun).expect("its history").cloned().collect()
        });
        let mut known = BTreeMap::<BindingKey, BTreeSet<String>>::new();
        for event in events {
            let held = Layer::ALL.into_iter().flat_map(|layer| {
                let locks = serde_json::from_str(annotation(&event.object, layer.annotation()));
                let locks: serde_json::Map<String, Value> = locks.unwrap_or_default();
                locks.into_iter().filter_map(|(resource, lock)| Some(format!("{resource} {}", lock["n"].as_str()?)))
            });
            let held: BTreeSet<String> = held.collect();
            let before = known.insert(event.key.clone(), held.clone()).unwrap_or_default();
            let lost: Vec<&String> = before.difference(&held).collect();
            assert!(lost.is_empty(), "{} lost {lost:?} at {}", event.key, event.version);
        }
    }
}
