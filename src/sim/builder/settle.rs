//! A world after the controller has done all that it wants to.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::START;
use super::objects::{insert, set};
use super::pool::{BINDINGS, GONE};
use crate::api::{BindingKey, ClusterName, Kind};
use crate::pass::settle as settle_one;
use crate::sim::kcp::key_of;
use crate::sim::{Kcp, Request};
use crate::snapshot::{Layout, Origin, Snapshot};

/// More rounds than any world takes: locks, CRDs, and what was in the way of others.
const ROUNDS: usize = 20;

/// Lets the controller itself, alone and undisturbed, bring these objects to rest.
pub(super) fn settle(objects: impl Iterator<Item = Value>, layout: Layout, seed: u64) -> Vec<Value> {
    let mut kcp = Kcp::new(seed);
    kcp.set_now(START);
    kcp.load(Origin::Local, objects);
    for _ in 0..ROUNDS {
        let before = kcp.version();
        let mut snapshot = Snapshot::new(layout);
        snapshot.set_now(START);
        for kind in Kind::ALL {
            snapshot.apply(kcp.relist(Origin::Local, kind));
        }
        for key in keys(&snapshot) {
            settle_one(&mut snapshot, key, |effect| kcp.execute(effect));
        }
        establish(&mut kcp);
        if kcp.version() == before {
            break;
        }
    }
    let all = Kind::ALL.into_iter().flat_map(|kind| {
        kcp.list(Origin::Local, kind, None).map(|object| with_managers(&kcp, kind, object)).collect::<Vec<_>>()
    });
    all.collect()
}

/// The bindings, and those that may have left locks behind.
pub(super) fn keys(snapshot: &Snapshot) -> BTreeSet<BindingKey> {
    let mut keys: BTreeSet<BindingKey> = snapshot.bindings().into_iter().collect();
    for cluster in snapshot.clusters() {
        keys.extend(BINDINGS.iter().chain([&GONE]).map(|name| BindingKey::new(cluster.clone(), *name)));
    }
    keys
}

/// Lets bound CRDs serve, under all names that they want.
fn establish(kcp: &mut Kcp) {
    let cluster = ClusterName::from(ClusterName::BOUND_CRDS);
    let is_new = |crd: &&std::sync::Arc<Value>| {
        crd.pointer("/status/conditions").and_then(Value::as_array).is_none_or(Vec::is_empty)
    };
    let new = kcp.list(Origin::Local, Kind::Crd, Some(&cluster)).filter(is_new);
    let patches = new.map(|crd| {
        let time = START.to_string();
        let conditions = ["NamesAccepted", "Established"].map(
            |kind| json!({"type": kind, "status": "True", "lastTransitionTime": time, "reason": "", "message": ""}),
        );
        let mut status = json!({"conditions": conditions});
        insert(&mut status, "acceptedNames", crd.pointer("/spec/names").cloned().unwrap_or_default());
        let name = crd.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        Request::merge(Kind::Crd, cluster.clone(), name, json!({"status": status})).of_status()
    });
    for patch in patches.collect::<Vec<_>>() {
        // A CRD that is there takes a status.
        drop(kcp.handle(patch));
    }
}

fn with_managers(kcp: &Kcp, kind: Kind, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(managers) = kcp.managed_fields(Origin::Local, kind, &key_of(&object)) {
        set(&mut object, "metadata", "managedFields", managers);
    }
    object
}
