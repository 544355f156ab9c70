//! `woken`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::confined::{own_layer, written};
use super::{Model, Reads, Server, Verdict, run, triggers};
use crate::api::{ApiBindingStatus, BindingKey, ClusterName, Kind, Object};
use crate::effect::Effect;
use crate::reconcile::reconcile;
use crate::snapshot::{Annotation, Layer, Origin, Snapshot};

/// A change that alters what reconciling a binding gives, other than times and preconditions, wakes that
/// binding; and so do the events that SPEC 11 names for it. `before` and `after`: what was known, each with the
/// objects.
///
/// # Errors
/// Who sleeps on, and what changed for it.
pub fn woken(before: (&Snapshot, &Model), after: (&Snapshot, &Model), woken: &[BindingKey]) -> Verdict {
    let named = triggers::named(before.1, after.1);
    if let Some(key) = named.iter().find(|key| !woken.contains(key)) {
        return Err(format!("{key} is not woken, only {woken:?}; but the table of SPEC 11 names it"));
    }
    let mut asked: BTreeSet<BindingKey> = before.0.bindings().into_iter().chain(after.0.bindings()).collect();
    asked.extend(ghosts(after.0));
    for key in asked.into_iter().filter(|key| !woken.contains(key)) {
        let (then, now) = (gives(before.0, before.1, &key)?, gives(after.0, after.1, &key)?);
        if then != now {
            return Err(format!("{key} is not woken, only {woken:?}; it gave\n{then:#}\nit gives\n{now:#}"));
        }
    }
    Ok(())
}

/// Names in locks-bindings that no binding has: keys that are processed too.
fn ghosts(snapshot: &Snapshot) -> BTreeSet<BindingKey> {
    let mut keys = BTreeSet::new();
    for cluster in snapshot.clusters() {
        let locks = snapshot.logical_cluster(&cluster).and_then(|home| home.bindings.locks());
        for (_, lock) in locks.into_iter().flat_map(|locks| locks.iter()).filter(|(_, lock)| lock.is_of_binding()) {
            let key = BindingKey::new(cluster.clone(), lock.name.clone());
            if snapshot.binding(&key).is_none() {
                keys.insert(key);
            }
        }
    }
    keys
}

/// What reconciling a key gives, or releasing what it left, without times and preconditions.
fn gives(snapshot: &Snapshot, model: &Model, key: &BindingKey) -> Result<Value, String> {
    if let Some(Object::ApiBinding(binding)) = model.get(Origin::Local, Kind::ApiBinding, key).map(|object| &**object) {
        let (binding, effects) = reconcile(snapshot, binding);
        return Ok(bare(snapshot, &effects, Some(&binding.status)));
    }
    // All that a pass does if the dead are dead.
    let mut server = Server::new(model, Reads::Expected);
    let course = run(&mut snapshot.clone(), &mut server, key)?;
    Ok(bare(snapshot, &course.effects(), None))
}

/// The locks on which a lock write is planned: those that stand there; where they cannot be read, what
/// the bindings list (D18).
fn basis(snapshot: &Snapshot, cluster: &ClusterName, layer: Layer) -> BTreeMap<String, Value> {
    let mut locks = BTreeMap::new();
    match snapshot.logical_cluster(cluster).map(|home| home.layer(layer)) {
        Some(Annotation::Locks(there)) => {
            locks.extend(there.iter().map(|(resource, lock)| (resource.to_string(), json!(lock))));
        }
        Some(Annotation::Unreadable(_)) => {
            let keys = snapshot.bindings().into_iter().filter(|key| key.cluster == *cluster);
            let bindings = keys.filter_map(|key| Some((snapshot.binding(&key)?, key)));
            let mut bindings: Vec<_> = bindings.collect();
            bindings.sort_by_key(|(binding, key)| (binding.created, key.name.clone()));
            for (binding, key) in bindings {
                for bound in &binding.status.bound_resources {
                    locks.entry(bound.group_resource().to_string()).or_insert_with(|| json!({"n": key.name}));
                }
            }
        }
        _ => {}
    }
    locks
}

/// What is planned, without times and preconditions. Of a lock write it is what it changes that
/// counts: the other entries stand in it only because an apply is whole.
fn bare(snapshot: &Snapshot, effects: &[Effect], status: Option<&ApiBindingStatus>) -> Value {
    let effects = effects.iter().map(|effect| {
        let Effect::PatchLogicalCluster(patch) = effect else { return json!(effect) };
        let layer = own_layer(snapshot.layout());
        let (before, after) = (basis(snapshot, &patch.cluster, layer), written(patch, layer));
        let gone: Vec<&String> = before.keys().filter(|at| !after.contains_key(*at)).collect();
        let put: Map<_, _> = after
            .iter()
            .filter(|(at, lock)| before.get(*at) != Some(lock))
            .map(|(at, lock)| (at.clone(), lock.clone()))
            .collect();
        json!({"locks": patch.cluster, "gone": gone, "put": put, "force": patch.force})
    });
    let effects: Vec<Value> = effects.collect();
    let mut shown = json!([effects, status]);
    strip(&mut shown);
    shown
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("resourceVersion");
            fields.remove("lastTransitionTime");
            fields.entry("after").and_modify(|time| *time = Value::Null);
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
