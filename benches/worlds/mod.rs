//! Worlds to measure in, the same ones for every bench.

#![allow(dead_code)] // each bench uses a part of it

pub mod rehearsal;
pub mod turns;

use std::collections::BTreeMap;

use apibinding::api::{ApiBinding, BindingKey, Kind, Object};
use apibinding::sim::{Builder, Chance};
use apibinding::snapshot::{Change, Layout, Snapshot};
use serde_json::Value;

const SEED: u64 = 1;

/// So many bindings in all, `each` of them in a workspace, every one of them bound and with nothing left to do.
pub fn fleet(bindings: usize, each: usize) -> Builder {
    Builder::new(SEED)
        .layout(Layout::Single)
        .crowded(false)
        .bound(true)
        .workspaces((bindings / each).max(1))
        .bindings(bindings)
}

/// As [`fleet`], with one export more, `flock-<the number returned>`, that nobody has bound.
pub fn fleet_with_spare_export(bindings: usize, each: usize) -> (Builder, usize) {
    // The builder deals exports out by the number of the workspace and that of the binding in it.
    let spare = bindings / each + each;
    (fleet(bindings, each).exports(spare + 1), spare)
}

/// What a server would send of this world, an object at a time.
pub fn texts(builder: &Builder) -> impl Iterator<Item = String> + use<> {
    builder.build().map(|object| object.to_string())
}

/// A snapshot of a world, and one object of each kind.
pub struct World {
    pub snapshot: Snapshot,
    /// The first of its kind; binding and LogicalCluster are of one workspace, and schema and CRD are of the
    /// binding's export.
    samples: BTreeMap<Kind, Object>,
}

impl World {
    /// Takes objects in one by one and keeps none: a million of them as objects would not fit beside the snapshot.
    pub fn of(builder: &Builder) -> Self {
        let mut snapshot = Snapshot::new(Layout::Single);
        snapshot.set_now(Builder::START);
        let mut samples = BTreeMap::new();
        for text in texts(builder) {
            let object = Object::from_typed_json(&text).expect("the builder writes objects");
            samples.entry(object.kind()).or_insert_with(|| object.clone());
            snapshot.apply(Change::put(object));
        }
        Self { snapshot, samples }
    }

    pub fn sample(&self, kind: Kind) -> Object {
        self.samples.get(&kind).expect("a fleet has objects of each kind").clone()
    }

    pub fn sample_binding(&self) -> ApiBinding {
        match self.sample(Kind::ApiBinding) {
            Object::ApiBinding(binding) => binding,
            other => panic!("{} is no binding", other.key()),
        }
    }

    /// All bindings, in an order that no cache can guess.
    pub fn keys(&self) -> Vec<BindingKey> {
        let mut keys = self.snapshot.bindings();
        Chance::new(SEED).shuffle(&mut keys);
        keys
    }
}

/// The first object of a kind, as the server would send it, without a snapshot of the rest.
pub fn sample_text(builder: &Builder, kind: Kind) -> String {
    let is_of_kind = |object: &Value| object["kind"] == kind.as_str();
    builder.build().find(is_of_kind).expect("a fleet has objects of each kind").to_string()
}
