//! The laws of DESIGN.md as properties of generated worlds.
//!
//! `PROPTEST_CASES` sets how many worlds each law is asked in, `PROPTEST_RNG_SEED` which ones; without
//! them it is the same few each time. A failure prints the smallest world found.

#![cfg(feature = "proptest")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

#[path = "laws/model.rs"]
mod model;
#[path = "laws/server.rs"]
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};

use apibinding::api::{
    ApiBinding, ApiBindingStatus, BindingKey, ClusterName, Condition, GroupResource, Kind, Object, Text,
};
use apibinding::effect::{Effect, Outcome, Patch};
use apibinding::pass::{Pass, Step};
use apibinding::reconcile;
use apibinding::snapshot::{Annotation, Change, Layer, Layout, Origin, Snapshot};
use apibinding::strategies::{History, World, change, history, outcome, world};
use apibinding::wakeup::wakeup;
use model::Model;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use serde_json::{Value, json};
use server::{Course, Reads, Server, run};

/// Asks a law in so many worlds.
fn law<S>(cases: u32, worlds: S, ask: impl Fn(S::Value) -> Result<(), String>)
where
    S: Strategy,
    S::Value: Debug,
{
    let mut config = Config { failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(7);
    }
    match TestRunner::new(config).run(&worlds, |world| ask(world).map_err(TestCaseError::fail)) {
        Ok(()) => {}
        Err(TestError::Fail(why, world)) => panic!("{why}\n\nin {world:?}"),
        Err(TestError::Abort(why)) => panic!("gave up: {why}"),
    }
}

/// Answers that go wrong, some of them, or one and the same again and again.
fn faults() -> impl Strategy<Value = Vec<Option<Outcome>>> {
    prop_oneof![
        2 => vec(weighted(0.5, outcome()), 0..24),
        1 => (outcome(), 0..4usize).prop_map(|(outcome, at)| {
            let before = std::iter::repeat_n(None, at);
            before.chain(std::iter::repeat_n(Some(outcome), 24)).collect()
        }),
    ]
}

fn reads() -> impl Strategy<Value = Reads> {
    prop_oneof![3 => Just(Reads::Expected), 2 => Just(Reads::True), 1 => Just(Reads::Found)]
}

/// The bindings of a world, with their keys.
fn bindings(world: &World) -> Vec<(BindingKey, ApiBinding)> {
    let bindings = world.objects.iter().filter_map(|(_, object)| match object {
        Object::ApiBinding(binding) => Some((binding.key(), binding.clone())),
        _ => None,
    });
    bindings.collect()
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

/// All keys that are processed in a snapshot.
fn keys(snapshot: &Snapshot) -> BTreeSet<BindingKey> {
    let mut keys = ghosts(snapshot);
    keys.extend(snapshot.bindings());
    keys
}

fn lines(effects: &[Effect]) -> String {
    let lines: Vec<String> = effects
        .iter()
        .map(|effect| {
            let body = match effect {
                Effect::PatchLogicalCluster(patch) | Effect::PatchApiBindingStatus(patch) => patch.body.as_str(),
                _ => "",
            };
            format!("    {effect} {body}\n")
        })
        .collect();
    lines.concat()
}

fn same<T: PartialEq + Debug>(what: impl fmt::Display, left: &T, right: &T) -> Result<(), String> {
    if left == right { Ok(()) } else { Err(format!("{what}:\n  {left:?}\nis not\n  {right:?}")) }
}

fn is_read(effect: &Effect) -> bool {
    matches!(effect, Effect::ReadApiBinding(_) | Effect::ReadCrd(_))
}

#[test]
fn total() {
    let strategy = (history(6), vec(change(), 0..4), vec(outcome(), 0..12));
    law(150, strategy, |(history, noise, garbage)| {
        let mut snapshot = history.before.snapshot();
        let mut seen = keys(&snapshot);
        for change in history.changes.iter().chain(&noise) {
            let applied = snapshot.apply(change.clone());
            wakeup(&snapshot, &applied);
            seen.extend(keys(&snapshot));
        }
        let _ = format!("{snapshot:?}");
        for (_, binding) in bindings(&history.before).into_iter().chain(bindings(&history.after)) {
            let (_, effects) = reconcile(&snapshot, &binding);
            lines(&effects);
        }
        // Answers that have nothing to do with what was asked.
        for key in seen {
            let (mut snapshot, mut garbage) = (snapshot.clone(), garbage.iter().cycle());
            let mut pass = Pass::new(key);
            for _ in 0..200 {
                match pass.poll(&snapshot) {
                    Step::Done(_) => break,
                    _ => {
                        let outcome = garbage.next().cloned().unwrap_or_else(server::not_found);
                        for change in pass.observe(outcome) {
                            snapshot.apply(change);
                        }
                    }
                }
            }
        }
        Ok(())
    });
}

#[test]
fn deterministic() {
    let strategy = world().prop_flat_map(|world| (Just(world.clone()), Just(world.changes()).prop_shuffle()));
    law(150, strategy, |(world, shuffled)| {
        let first = world.snapshot();
        let mut second = Snapshot::new(world.layout);
        for change in shuffled {
            second.apply(change);
        }
        second.set_now(world.now);
        same("the snapshot built in another order", &second, &first)?;
        let bytes = |value: &dyn erased::Json| value.bytes();
        same("its bytes", &bytes(&first), &bytes(&second))?;
        for (key, binding) in bindings(&world) {
            let (left, right) = (reconcile(&first, &binding), reconcile(&second, &binding));
            same(format_args!("plan of {key}"), &left, &right)?;
            same(format_args!("bytes of the plan of {key}"), &bytes(&left), &bytes(&right))?;
        }
        Ok(())
    });
}

/// `Serialize` as an object, for a closure over several types.
mod erased {
    pub trait Json {
        fn bytes(&self) -> Vec<u8>;
    }
    impl<T: serde::Serialize> Json for T {
        fn bytes(&self) -> Vec<u8> {
            serde_json::to_vec(self).unwrap()
        }
    }
}

#[test]
fn predicts() {
    law(400, world(), |world| {
        let before = world.snapshot();
        for (key, binding) in bindings(&world) {
            let (planned, effects) = reconcile(&before, &binding);
            let mut server = Server::new(&world, Reads::Expected);
            let mut observed = before.clone();
            for effect in &effects {
                if matches!(effect, Effect::Requeue(_) | Effect::PatchApiBindingStatus(_)) {
                    continue;
                }
                match server.execute(&key, effect) {
                    Outcome::Done(_) if is_read(effect) => {}
                    Outcome::Done(object) => drop(observed.apply(Change::put(*object))),
                    _ if is_read(effect) => {}
                    other => return Err(format!("{key}: {effect}: {other}")),
                }
            }
            let again = run(&mut observed, &mut server, &key, &[]);
            let told = || format!("{key}: planned\n{}then\n{}", lines(&effects), lines(&again.effects()));
            let allowed = |effect: &Effect| is_read(effect) || matches!(effect, Effect::PatchApiBindingStatus(_));
            if let Some(other) = again.effects().iter().find(|effect| !allowed(effect)) {
                return Err(format!("{}not expected: {other}", told()));
            }
            same(format_args!("{}status", told()), &again.status.unwrap_or_default(), &planned.status)?;
            // And what the pass really does is what was planned.
            let mut server = Server::new(&world, Reads::Expected);
            let course = run(&mut before.clone(), &mut server, &key, &[]);
            let planned: Vec<Effect> =
                effects.iter().filter(|effect| !matches!(effect, Effect::Requeue(_))).cloned().collect();
            same(format_args!("{key}: what is done is not what was planned"), &course.effects(), &planned)?;
        }
        Ok(())
    });
}

/// The resources that a binding's export offers, each with the uid of its schema and whether it is
/// stored in the CRD.
fn offered(snapshot: &Snapshot, key: &BindingKey) -> Vec<(GroupResource, Text, bool)> {
    let target = snapshot.binding(key).and_then(|binding| binding.target.clone());
    let exports = target.map(|target| snapshot.exports_at(&target)).unwrap_or_default();
    let exports =
        exports.iter().filter_map(|(origin, at)| Some((at, snapshot.export(*origin, &at.cluster, &at.name)?)));
    let entries = exports.flat_map(|(at, export)| export.resources.iter().map(move |entry| (at, entry)));
    let offered = entries.filter_map(|(at, entry)| {
        let schema = snapshot.schema(&at.cluster, &entry.schema)?;
        Some((schema.resource.clone(), schema.meta.uid.clone(), entry.storage.crd.is_some()))
    });
    offered.collect()
}

/// True if the binding and a neighbour list one bound CRD, which `exclusive` keeps from happening. While the
/// binding lists it, it is no rival (D9); when a pass has put another one in its place, it is. So what
/// this pass binds may be in conflict in the next.
fn shares_a_crd(snapshot: &Snapshot, key: &BindingKey) -> bool {
    let Some(binding) = snapshot.binding(key) else { return false };
    let neighbours = snapshot.bindings().into_iter().filter(|other| other.cluster == key.cluster && other != key);
    let mut neighbours = neighbours.filter_map(|other| snapshot.binding(&other));
    neighbours.any(|other| binding.status.bound_resources.iter().any(|bound| other.lists(&bound.schema.uid)))
}

#[test]
fn settles() {
    law(300, (world(), reads()), |(world, reads)| {
        let before = world.snapshot();
        for key in keys(&before) {
            if before.binding(&key).is_some_and(|binding| binding.status.phase.as_str().is_empty()) {
                continue;
            }
            if shares_a_crd(&before, &key) {
                continue;
            }
            let (mut snapshot, mut server) = (before.clone(), Server::new(&world, reads));
            let first = run(&mut snapshot, &mut server, &key, &[]);
            let second = run(&mut snapshot, &mut server, &key, &[]);
            let told = || format!("{key}: first\n{}then\n{}", lines(&first.effects()), lines(&second.effects()));
            if let Some(other) = second.effects().iter().find(|effect| !is_read(effect)) {
                return Err(format!("{}not expected: {other}", told()));
            }
            same(format_args!("{}status", told()), &second.status, &first.status)?;
        }
        Ok(())
    });
}

#[test]
fn bounded() {
    law(300, (history(6), faults()), |(history, faults)| {
        // What is known is older than what is there.
        for key in keys(&history.before.snapshot()) {
            let (mut snapshot, mut server) = (history.before.snapshot(), Server::new(&history.after, Reads::True));
            let course = run(&mut snapshot, &mut server, &key, &faults);
            is_bounded(&course).map_err(|why| format!("{key}: {why}:\n{}", lines(&course.effects())))?;
        }
        Ok(())
    });
}

fn is_bounded(course: &Course) -> Result<(), String> {
    let (mut creates, mut reads) = (BTreeSet::new(), BTreeSet::new());
    let (mut locks, mut commits) = (0, 0);
    for exchange in &course.exchanges {
        match &exchange.effect {
            Effect::CreateCrd(create) if !creates.insert(create.name.clone()) => {
                return Err(format!("{} created twice", create.name));
            }
            Effect::CreateCrd(_) => {}
            Effect::PatchLogicalCluster(_) => {
                locks += 1;
                if locks > 5 {
                    return Err("six lock writes".into());
                }
            }
            Effect::PatchApiBindingStatus(_) => {
                commits += 1;
                if commits > 5 {
                    return Err("six commits".into());
                }
                locks = 0;
            }
            read => {
                if !reads.insert(read.to_string()) {
                    return Err(format!("twice in one attempt: {read}"));
                }
            }
        }
        if matches!(exchange.outcome, Outcome::Conflict { .. }) {
            reads.clear();
        }
    }
    Ok(())
}

#[test]
fn confined() {
    law(300, (history(6), faults(), reads()), |(history, faults, reads)| {
        for key in keys(&history.before.snapshot()) {
            let (mut snapshot, mut server) = (history.before.snapshot(), Server::new(&history.after, reads));
            let course = run(&mut snapshot, &mut server, &key, &faults);
            is_confined(&key, reads, &course).map_err(|why| format!("{key}: {why}:\n{}", lines(&course.effects())))?;
        }
        Ok(())
    });
}

fn is_confined(key: &BindingKey, reads: Reads, course: &Course) -> Result<(), String> {
    for exchange in &course.exchanges {
        match &exchange.effect {
            Effect::CreateCrd(create) => {
                same("where a CRD is created", &create.cluster.as_str(), &"system:bound-crds")?;
                let body = create.body.to_value();
                same("its name", &body["metadata"]["name"], &json!(create.name))?;
                same("its cluster", &body["metadata"]["annotations"]["kcp.io/cluster"], &json!("system:bound-crds"))?;
            }
            Effect::PatchApiBindingStatus(patch) => {
                same("whose status", &BindingKey::new(patch.cluster.clone(), patch.name.clone()), key)?;
                same("subresource", &patch.subresource.as_str(), &"status")?;
                let body = patch.body.to_value();
                let fields: Vec<&String> = body.as_object().unwrap().keys().collect();
                same(
                    "fields",
                    &fields,
                    &["apiVersion", "kind", "metadata", "status"]
                        .iter()
                        .map(|s| s.to_string())
                        .collect::<Vec<_>>()
                        .iter()
                        .collect(),
                )?;
                let known = exchange.seen.binding(key).ok_or("a commit for nobody")?;
                same("precondition", &patch.resource_version, &known.meta.resource_version)?;
            }
            Effect::PatchLogicalCluster(patch) => lock_is_confined(key, reads, exchange, patch)?,
            Effect::ReadApiBinding(read) => same("where is read", &read.cluster, &key.cluster)?,
            Effect::ReadCrd(read) => same("where is read", &read.cluster, &key.cluster)?,
            other => return Err(format!("unknown: {other}")),
        }
    }
    Ok(())
}

fn lock_is_confined(key: &BindingKey, reads: Reads, exchange: &server::Exchange, patch: &Patch) -> Result<(), String> {
    same("whose locks", &patch.cluster, &key.cluster)?;
    same("name", &patch.name.as_str(), &"cluster")?;
    same("subresource", &patch.subresource.as_str(), &"")?;
    let seen = &exchange.seen;
    let home = seen.logical_cluster(&key.cluster).ok_or("locks of no LogicalCluster")?;
    same("precondition", &patch.resource_version, &home.meta.resource_version)?;
    let layer = if seen.layout() == Layout::Split { Layer::Bindings } else { Layer::Legacy };
    let body = patch.body.to_value();
    let text = body["metadata"]["annotations"][layer.annotation()].as_str().ok_or("no locks in it")?.to_owned();
    let expected = json!({
        "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
        "metadata": {
            "name": "cluster", "resourceVersion": patch.resource_version,
            "annotations": {layer.annotation(): text},
        },
    });
    same("body", &body, &expected)?;
    let Annotation::Locks(before) = home.layer(layer) else { return Ok(()) };
    // What nobody writes, a lock of the binding among those of CRDs, decides before what stands in our
    // annotation (SPEC 5): there the law as DESIGN.md words it asks for more than the rules give.
    let is_hidden = |resource: &GroupResource| {
        let above = home.crds.get(resource).filter(|_| layer == Layer::Bindings);
        above.is_some_and(|lock| lock.is_of_binding() && lock.name == key.name)
    };
    let after: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    for (resource, lock) in before.iter() {
        let kept = after.get(resource.as_str()) == Some(&serde_json::to_value(lock).unwrap());
        if kept || is_hidden(resource) {
            continue;
        }
        let told = || format!("{resource} was {lock:?}, becomes {:?}", after.get(resource.as_str()));
        if lock.crd {
            let is_over = lock.end().is_some_and(|end| seen.now() > end);
            let crd = BindingKey::new(key.cluster.clone(), resource.crd_name());
            let exists =
                reads == Reads::Found || reads == Reads::True && exchange.objects.contains_key(&(Kind::Crd, crd));
            if !is_over || exists {
                return Err(format!("a CRD lock that is not over: {}", told()));
            }
        } else if lock.is_of_binding() && lock.name != key.name {
            let holder = BindingKey::new(key.cluster.clone(), lock.name.clone());
            let there = exchange.objects.get(&(Kind::ApiBinding, holder));
            let lives = match reads {
                Reads::Expected => seen
                    .binding(&BindingKey::new(key.cluster.clone(), lock.name.clone()))
                    .is_some_and(|binding| lock.uid.is_empty() || lock.uid == binding.meta.uid),
                Reads::True => there.is_some_and(|object| {
                    lock.uid.is_empty() || object.metadata().uid.as_deref() == Some(lock.uid.as_str())
                }),
                Reads::Found => lock.uid.is_empty(),
            };
            if lives {
                return Err(format!("a lock of a binding that exists: {}", told()));
            }
        }
    }
    Ok(())
}

#[test]
fn monotone() {
    law(300, (world(), faults()), |(world, faults)| {
        let before = world.snapshot();
        for (key, binding) in bindings(&world) {
            let (planned, _) = reconcile(&before, &binding);
            is_monotone(&before, &key, &binding.status, &planned.status).map_err(|why| format!("{key}: {why}"))?;
            let (mut snapshot, mut server) = (before.clone(), Server::new(&world, Reads::True));
            let course = run(&mut snapshot, &mut server, &key, &faults);
            for exchange in &course.exchanges {
                let Effect::PatchApiBindingStatus(patch) = &exchange.effect else { continue };
                let status: ApiBindingStatus = serde_json::from_value(patch.body.to_value()["status"].clone()).unwrap();
                let old = &exchange.seen.binding(&key).unwrap().status;
                is_monotone(&exchange.seen, &key, old, &status).map_err(|why| format!("{key}: committed: {why}"))?;
            }
        }
        Ok(())
    });
}

fn is_monotone(
    snapshot: &Snapshot,
    key: &BindingKey,
    old: &ApiBindingStatus,
    new: &ApiBindingStatus,
) -> Result<(), String> {
    let is_complete = |status: &ApiBindingStatus| {
        status.condition(Condition::INITIAL_BINDING_COMPLETED).is_some_and(Condition::is_true)
    };
    if is_complete(old) && !is_complete(new) {
        return Err("InitialBindingCompleted went back".into());
    }
    for bound in &old.bound_resources {
        let Some(now) = new.bound(&bound.group_resource()) else {
            return Err(format!("{} is not bound any more", bound.group_resource()));
        };
        let shrank = bound.storage_versions.iter().any(|version| !now.storage_versions.contains(version));
        let stays = offered(snapshot, key).iter().all(|(offered, _, crd)| !now.is(offered) || *crd);
        if shrank && stays {
            return Err(format!("{}: storage versions shrank", bound.group_resource()));
        }
        if now.schema.uid != bound.schema.uid && !snapshot.bound_crd(&now.schema.uid).is_some_and(|crd| crd.serving) {
            return Err(format!("{} moved to a CRD that does not serve", bound.group_resource()));
        }
    }
    Ok(())
}

/// The locks on which a lock write is planned: those that stand there; where they cannot be read, what
/// the bindings list (D18).
fn basis(snapshot: &Snapshot, cluster: &ClusterName, layer: Layer) -> BTreeMap<String, Value> {
    let mut locks = BTreeMap::new();
    match snapshot.logical_cluster(cluster).map(|home| home.layer(layer)) {
        Some(Annotation::Locks(there)) => {
            locks.extend(
                there.iter().map(|(resource, lock)| (resource.to_string(), serde_json::to_value(lock).unwrap())),
            );
        }
        Some(Annotation::Unreadable(_)) => {
            let keys = snapshot.bindings().into_iter().filter(|key| key.cluster == *cluster);
            let mut keys: Vec<BindingKey> = keys.collect();
            keys.sort_by_key(|key| (snapshot.binding(key).unwrap().created, key.name.clone()));
            for key in keys {
                for bound in &snapshot.binding(&key).unwrap().status.bound_resources {
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
    let effects: Vec<Value> = effects
        .iter()
        .map(|effect| {
            let Effect::PatchLogicalCluster(patch) = effect else { return serde_json::to_value(effect).unwrap() };
            let layer = if snapshot.layout() == Layout::Split { Layer::Bindings } else { Layer::Legacy };
            let text = patch.body.to_value()["metadata"]["annotations"][layer.annotation()].clone();
            let after: BTreeMap<String, Value> = serde_json::from_str(text.as_str().unwrap()).unwrap();
            let before = basis(snapshot, &patch.cluster, layer);
            let gone: Vec<&String> = before.keys().filter(|at| !after.contains_key(*at)).collect();
            let put: BTreeMap<_, _> = after.iter().filter(|(at, lock)| before.get(*at) != Some(lock)).collect();
            json!({"locks": patch.cluster, "gone": gone, "put": put, "force": patch.force})
        })
        .collect();
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

/// What reconciling a key gives, or releasing what it left.
fn gives(snapshot: &Snapshot, world: &Model, key: &BindingKey) -> Value {
    match world.get(Origin::Local, Kind::ApiBinding, key) {
        Some(Object::ApiBinding(binding)) => {
            let (binding, effects) = reconcile(snapshot, binding);
            bare(snapshot, &effects, Some(&binding.status))
        }
        _ => {
            // All that a pass does if the dead are dead.
            let mut server = Server::new(&World::new(snapshot.layout(), snapshot.now()), Reads::Expected);
            for object in world.local() {
                server.objects.insert((object.kind(), object.key()), object.clone());
            }
            let course = run(&mut snapshot.clone(), &mut server, key, &[]);
            bare(snapshot, &course.effects(), None)
        }
    }
}

#[test]
fn woken() {
    law(400, (history(6), vec(change(), 0..3)), |(history, noise)| {
        let mut snapshot = history.before.snapshot();
        let mut world = Model::of(&history.before);
        for change in history.changes.iter().chain(&noise) {
            let (before, known) = (snapshot.clone(), world.clone());
            let applied = snapshot.apply(change.clone());
            world.apply(change);
            let woken = wakeup(&snapshot, &applied);
            let mut asked: BTreeSet<BindingKey> = snapshot.bindings().into_iter().chain(before.bindings()).collect();
            asked.extend(ghosts(&snapshot));
            for key in asked {
                let (then, now) = (gives(&before, &known, &key), gives(&snapshot, &world, &key));
                if then != now && !woken.contains(&key) {
                    let change = serde_json::to_string(change).unwrap();
                    let shown = |what: &Value| format!("{what:#}\n");
                    let (then, now) = (shown(&then), shown(&now));
                    let diff = similar::TextDiff::from_lines(&then, &now);
                    let diff = diff.unified_diff().context_radius(2).header("gave", "gives").to_string();
                    return Err(format!("{key} is not woken by {change}, only {woken:?}\n{diff}\non {before:?}"));
                }
            }
        }
        Ok(())
    });
}

#[test]
fn indexed() {
    law(300, (history(10), vec(change(), 0..12)), |(history, noise)| {
        let mut snapshot = history.before.snapshot();
        let mut model = Model::of(&history.before);
        for change in history.changes.iter().chain(&noise) {
            snapshot.apply(change.clone());
            model.apply(change);
            let scratch = model.snapshot(snapshot.layout(), snapshot.now());
            same(format_args!("after {}", serde_json::to_string(change).unwrap()), &snapshot, &scratch)?;
        }
        Ok(())
    });
}

/// What happened, told late, twice, in another order, and with only the last word on some objects.
#[derive(Clone)]
struct Rumour {
    history: History,
    told: Vec<Change>,
}

impl Debug for Rumour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.history.before)?;
        for (what, changes) in [("happened", self.history.changes.clone()), ("told", self.told.clone())] {
            writeln!(f, "{what}:")?;
            for change in changes {
                writeln!(f, "  {}", serde_json::to_string(&change).unwrap())?;
            }
        }
        Ok(())
    }
}

fn subject(change: &Change) -> Option<(Origin, Kind, BindingKey)> {
    match change {
        Change::Put { origin, object } => Some((*origin, object.kind(), object.key())),
        Change::Delete { origin, kind, key, .. } => Some((*origin, *kind, key.clone())),
        _ => None,
    }
}

fn rumour() -> impl Strategy<Value = Rumour> {
    let history = history(10).prop_map(|mut history| {
        // Where a version is missing the later arrival counts, so order matters.
        for (_, object) in history.before.objects.iter_mut().chain(&mut history.after.objects) {
            object.metadata_mut().resource_version.get_or_insert("99".into());
        }
        history
    });
    history.prop_flat_map(|history| {
        let all: Vec<Change> = history.before.changes().into_iter().chain(history.changes.clone()).collect();
        let count = all.len();
        let told = (Just(all), vec(0..count.max(1), 0..6), vec(prop::bool::weighted(0.3), count)).prop_map(
            |(all, twice, coalesced)| {
                let is_last = |at: usize| !all[at + 1..].iter().any(|later| subject(later) == subject(&all[at]));
                let told = (0..all.len()).filter(|at| is_last(*at) || !coalesced[*at]);
                let doubled = twice.iter().copied().filter(|at| *at < all.len());
                told.chain(doubled).map(|at| all[at].clone()).collect::<Vec<_>>()
            },
        );
        (Just(history), told.prop_flat_map(|told| Just(told).prop_shuffle()))
            .prop_map(|(history, told)| Rumour { history, told })
    })
}

#[test]
fn late() {
    law(300, rumour(), |rumour| {
        let after = rumour.history.after.snapshot();
        let mut in_order = rumour.history.before.snapshot();
        for change in &rumour.history.changes {
            in_order.apply(change.clone());
        }
        same("told in order", &in_order, &after)?;
        let mut snapshot = Snapshot::new(after.layout());
        snapshot.set_now(after.now());
        for change in &rumour.told {
            snapshot.apply(change.clone());
        }
        same("told anyhow", &snapshot, &after)
    });
}

/// As `late`, with bookmarks and lists that tell the truth, after which old events still arrive: the
/// answer to a request overtakes no watch, but a watch may overtake an answer.
#[test]
fn late_after_lists() {
    let strategy = rumour().prop_flat_map(|rumour| {
        let steps = rumour.history.changes.len();
        (Just(rumour), vec((0..=steps, any::<u8>(), any::<bool>()), 0..4))
    });
    law(300, strategy, |(rumour, lists)| {
        let history = &rumour.history;
        let after = history.after.snapshot();
        let mut snapshot = history.before.snapshot();
        let mut truth = Model::of(&history.before);
        for at in 0..=history.changes.len() {
            for (_, which, is_bookmark) in lists.iter().filter(|(step, ..)| *step == at) {
                let version = (999 + at).to_string().as_str().into();
                let origin = Origin::ALL[usize::from(which >> 4) % 2];
                let kind = Kind::ALL[usize::from(*which) % 6];
                let origin = if truth.has_copies(kind) { origin } else { Origin::Local };
                let change = match is_bookmark {
                    true => Change::Bookmark { origin, kind, resource_version: version },
                    false => {
                        Change::List { origin, kind, objects: truth.of_kind(origin, kind), resource_version: version }
                    }
                };
                snapshot.apply(change);
            }
            if let Some(change) = history.changes.get(at) {
                snapshot.apply(change.clone());
                truth.apply(change);
            }
        }
        same("told in order, with lists", &snapshot, &after)?;
        for change in &rumour.told {
            snapshot.apply(change.clone());
        }
        same("and then told again", &snapshot, &after)
    });
}

/// Worlds in which a law did not hold once, as small as they get.
mod found {
    use super::*;

    fn object(kind: Kind, json: Value) -> Object {
        Object::from_json(kind, &json.to_string()).unwrap()
    }

    fn metadata(cluster: &str, name: &str, uid: &str) -> Value {
        json!({"name": name, "uid": uid, "resourceVersion": "100", "annotations": {"kcp.io/cluster": cluster}})
    }

    fn binding(name: &str, export: &str, bound: Value) -> Object {
        object(
            Kind::ApiBinding,
            json!({
                "metadata": metadata("meadow", name, &format!("uid-{name}")),
                "spec": {"reference": {"export": {"path": "farm", "name": export}}},
                "status": {"phase": "Bound", "boundResources": bound},
            }),
        )
    }

    fn home(locks: &str) -> Object {
        let mut home = metadata("meadow", "cluster", "uid-meadow");
        home["annotations"]["internal.apis.kcp.io/locks-bindings"] = json!(locks);
        object(Kind::LogicalCluster, json!({"metadata": home}))
    }

    fn world(objects: Vec<Object>) -> World {
        let mut world = World::new(Layout::Split, apibinding::strategies::PRESENT);
        for object in objects {
            world.put(Origin::Local, object);
        }
        world
    }

    fn export(name: &str, resources: Value) -> Object {
        let (metadata, status) = (metadata("farm", name, name), json!({"identityHash": format!("id-{name}")}));
        object(Kind::ApiExport, json!({"metadata": metadata, "spec": {"resources": resources}, "status": status}))
    }

    fn schema(plural: &str, singular: &str) -> Object {
        let names = json!({"plural": plural, "singular": singular, "kind": plural});
        let versions = json!([{"name": "v1", "served": true, "storage": true, "schema": {}}]);
        let spec = json!({"group": "farm.example", "names": names, "scope": "Namespaced", "versions": versions});
        object(
            Kind::ApiResourceSchema,
            json!({"metadata": metadata("farm", plural, &format!("uid-{plural}")), "spec": spec}),
        )
    }

    fn entry(plural: &str) -> Value {
        json!({"name": plural, "group": "farm.example", "schema": plural, "storage": {"crd": {}}})
    }

    /// The bound CRD of `geese`, which a neighbour has bound, is missing. A claim creates it, after which
    /// it takes the name `goose` from `ganders`. The plan has to foresee that: D9 speaks of CRDs
    /// without a uid of their own yet.
    #[test]
    fn a_crd_that_a_plan_creates_takes_names_in_it() {
        let listed = json!([{"group": "farm.example", "resource": "geese",
            "schema": {"name": "geese", "UID": "uid-geese", "identityHash": "id-one"}}]);
        let mut claimant = binding("alder", "two", json!([]));
        let Object::ApiBinding(alder) = &mut claimant else { unreachable!() };
        alder.spec.permission_claims = serde_json::from_value(json!([{"group": "farm.example", "resource": "geese",
            "identityHash": "id-one", "verbs": ["*"], "state": "Accepted"}]))
        .unwrap();
        let alder = alder.clone();
        let world = world(vec![
            export("one", json!([entry("geese")])),
            export("two", json!([entry("ganders")])),
            schema("geese", "goose"),
            schema("ganders", "goose"),
            claimant,
            binding("birch", "one", listed),
            home("{}"),
        ]);
        let snapshot = world.snapshot();
        let (planned, _) = reconcile(&snapshot, &alder);
        let course = run(&mut snapshot.clone(), &mut Server::new(&world, Reads::Expected), &alder.key(), &[]);
        assert_eq!(course.status, Some(planned.status), "what the pass arrives at is not what was planned");
    }

    /// The only doubtful lock changes its holder, not its resource. Alder, as any binding of the
    /// workspace, asks for holders in doubt: now for another one.
    #[test]
    fn a_lock_that_comes_into_doubt_in_the_place_of_another_wakes() {
        let before = world(vec![
            export("one", json!([])),
            binding("alder", "one", json!([])),
            home(r#"{"barns.hill.example":{"n":"yew"}}"#),
        ]);
        let mut after = home(r#"{"barns.hill.example":{"n":"cedar"}}"#);
        after.metadata_mut().resource_version = Some("101".into());
        let mut snapshot = before.snapshot();
        let applied = snapshot.apply(Change::put(after));
        let alder = BindingKey::new("meadow", "alder");
        assert!(wakeup(&snapshot, &applied).contains(&alder));
    }

    fn crd(uid: &str, group: &str) -> Object {
        let names = json!({"plural": "geese", "singular": "goose", "kind": "geese"});
        let conditions =
            json!([{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]);
        object(
            Kind::Crd,
            json!({
                "metadata": metadata("system:bound-crds", uid, &format!("crd-{uid}")),
                "spec": {"group": group, "names": names},
                "status": {"acceptedNames": names, "conditions": conditions},
            }),
        )
    }

    /// A neighbour has bound a resource of the same names in another group, and there are more bound CRDs
    /// of these names than the workspace lists: whichever of the two sets is gone through, only
    /// those of the schema's group are rivals (SPEC 6).
    #[test]
    fn names_of_another_group_are_free() {
        let listed = json!([{"group": "pond.example", "resource": "geese",
            "schema": {"name": "geese", "UID": "uid-pond", "identityHash": "id-one"}}]);
        let world = world(vec![
            export("one", json!([])),
            export("two", json!([entry("geese")])),
            schema("geese", "goose"),
            crd("uid-pond", "pond.example"),
            crd("uid-geese", "farm.example"),
            crd("uid-other", "farm.example"),
            binding("alder", "two", json!([])),
            binding("birch", "one", listed),
            home("{}"),
        ]);
        let key = BindingKey::new("meadow", "alder");
        let course = run(&mut world.snapshot(), &mut Server::new(&world, Reads::Expected), &key, &[]);
        let status = course.status.unwrap();
        assert!(status.condition(Condition::READY).unwrap().is_true(), "{status:?}");
    }

    /// An export that offers a resource twice, whose schema was created anew: the second entry is not in
    /// conflict with what the first one has just replaced.
    #[test]
    fn a_binding_is_no_rival_of_its_former_self() {
        let former = json!([{"group": "farm.example", "resource": "geese",
            "schema": {"name": "geese", "UID": "uid-former", "identityHash": "id-one"}}]);
        let world = world(vec![
            export("one", json!([entry("geese"), entry("geese")])),
            schema("geese", "goose"),
            crd("uid-geese", "farm.example"),
            crd("uid-former", "farm.example"),
            binding("alder", "one", former),
            home("{}"),
        ]);
        let (mut snapshot, mut server) = (world.snapshot(), Server::new(&world, Reads::Expected));
        let key = BindingKey::new("meadow", "alder");
        let first = run(&mut snapshot, &mut server, &key, &[]);
        let second = run(&mut snapshot, &mut server, &key, &[]);
        assert_eq!(second.status, first.status);
    }
}
