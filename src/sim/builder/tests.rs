mod shapes;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::*;
use crate::api::{CLUSTER_ANNOTATION, Kind, Object};
use crate::pass::settle as settle_one;
use crate::sim::Kcp;
use crate::snapshot::{Annotation, Change, Lock, Origin, Snapshot};

const LAYOUTS: [Layout; 2] = [Layout::Split, Layout::Single];

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn cluster_of(object: &Value) -> &str {
    object["metadata"]["annotations"][CLUSTER_ANNOTATION].as_str().unwrap_or_default()
}

fn is(object: &Value, kind: Kind) -> bool {
    object["kind"] == kind.as_str()
}

fn list<'a>(value: &'a Value, path: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(path).and_then(Value::as_array).into_iter().flatten()
}

fn snapshot(layout: Layout, objects: &[Value]) -> Snapshot {
    let mut snapshot = Snapshot::new(layout);
    snapshot.set_now(START);
    for object in objects {
        let object = Object::from_typed_json(&object.to_string()).unwrap();
        snapshot.apply(Change::Put { origin: Origin::Local, object: Box::new(object) });
    }
    snapshot
}

fn loaded(builder: &Builder) -> Kcp {
    let mut kcp = Kcp::new(1);
    kcp.set_now(START);
    kcp.load(Origin::Local, builder.build());
    kcp
}

/// All bindings that list a resource, by workspace and resource.
fn binders(objects: &[Value]) -> BTreeMap<(String, String), Vec<&Value>> {
    let mut binders: BTreeMap<_, Vec<&Value>> = BTreeMap::new();
    for binding in objects.iter().filter(|object| is(object, Kind::ApiBinding)) {
        for bound in list(binding, "/status/boundResources") {
            let (group, resource) = (text(bound, "/group"), text(bound, "/resource"));
            let key = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
            binders.entry((cluster_of(binding).to_owned(), key)).or_default().push(binding);
        }
    }
    binders
}

fn check_locks(builder: &Builder) {
    let objects: Vec<Value> = builder.build().collect();
    let homes: Vec<Value> = objects.iter().filter(|object| is(object, Kind::LogicalCluster)).cloned().collect();
    let snapshot = snapshot(builder.layout, &homes);
    let mut uids: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for ((cluster, resource), binders) in &binders(&objects) {
        let [binding] = binders.as_slice() else { panic!("{builder:?}: {cluster} {resource} is bound twice") };
        let home = snapshot.logical_cluster(&cluster.as_str().into()).unwrap();
        let own = match builder.layout {
            Layout::Split => &home.bindings,
            Layout::Single => &home.legacy,
        };
        let resource = resource.as_str().into();
        let name = text(binding, "/metadata/name");
        let is_own = |lock: &Lock| {
            lock.is_of_binding()
                && lock.name == *name
                && (lock.uid.is_empty() || lock.uid == *text(binding, "/metadata/uid"))
        };
        if let Annotation::Locks(locks) = own {
            assert!(locks.get(&resource).is_some_and(is_own), "{builder:?}: {cluster}|{name} lacks {resource}");
        }
        // Nothing else may say that it is somebody else's: that could be all that is left.
        for layer in [&home.crds, &home.pending, &home.legacy] {
            assert!(layer.get(&resource).is_none_or(is_own), "{builder:?}: {cluster} {resource}");
        }
        for bound in list(binding, "/status/boundResources") {
            let uid = text(bound, "/schema/UID");
            assert_eq!(*uids.entry((cluster, uid)).or_insert(name), name, "{builder:?}: {uid} has two owners");
        }
    }
}

#[test]
fn what_is_bound_is_locked_and_nobody_elses() {
    for seed in 0..500 {
        for layout in LAYOUTS {
            check_locks(&Builder::new(seed).layout(layout));
        }
        if seed % 50 == 0 {
            LAYOUTS.into_iter().for_each(|layout| check_locks(&Builder::new(seed).layout(layout).bound(true)));
        }
    }
    LAYOUTS.into_iter().for_each(|layout| check_locks(&fleet(layout)));
}

fn fleet(layout: Layout) -> Builder {
    Builder::new(1).layout(layout).crowded(false).bound(true).workspaces(6).bindings(60).exports(12).claims(1)
}

/// What the controller writes, if it looks at everything, and is told the truth.
fn writes(builder: &Builder) -> Vec<String> {
    let objects: Vec<Value> = builder.build().collect();
    let mut kcp = loaded(builder);
    let mut snapshot = snapshot(builder.layout, &objects);
    let mut writes = Vec::new();
    for key in settle::keys(&snapshot) {
        settle_one(&mut snapshot, key, |effect| {
            if !effect.is_read() {
                writes.push(effect.to_string());
            }
            kcp.execute(effect)
        });
    }
    writes
}

#[test]
fn a_world_that_is_bound_is_at_rest() {
    for layout in LAYOUTS {
        assert_eq!(writes(&fleet(layout)), [""; 0], "{layout:?}");
        for seed in 0..60 {
            let builder = Builder::new(seed).layout(layout).bound(true);
            assert_eq!(writes(&builder), [""; 0], "{builder:?}");
        }
    }
}

#[test]
fn a_world_that_is_new_was_never_looked_at() {
    for seed in 0..60 {
        for builder in [Builder::new(seed).bound(false), fleet(Layout::Split).bound(false)] {
            let bindings = builder.build().filter(|object| is(object, Kind::ApiBinding));
            assert!(bindings.into_iter().all(|binding| binding.get("status").is_none()), "{builder:?}");
        }
    }
}

/// What is written by hand is what the controller and the server would have made.
#[test]
fn a_fleet_that_is_bound_is_what_the_controller_makes_of_a_new_one() {
    for layout in LAYOUTS {
        let fleet = || fleet(layout).bindings(12);
        let settled = settle::settle(fleet().bound(false).build(), layout, 1);
        let tidy = |mut object: Value| {
            let time = |times: &mut Value| drop(times.as_object_mut().map(|it| it.remove("lastTransitionTime")));
            object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten().for_each(time);
            let metadata = object["metadata"].as_object_mut().unwrap();
            let is_crd = metadata["annotations"].get("apis.kcp.io/bound-crd").is_some();
            for field in ["resourceVersion", "creationTimestamp"].into_iter().chain(is_crd.then_some("uid")) {
                metadata.remove(field);
            }
            // Of the managers only ours count, and when does not.
            let managers = metadata.remove("managedFields");
            let managers = managers.iter().flat_map(|managers| managers.as_array().into_iter().flatten());
            let ours: Vec<Value> = managers
                .filter(|entry| entry["operation"] == "Apply")
                .map(|entry| json!([entry["manager"], entry["subresource"], entry["fieldsV1"]]))
                .collect();
            object["ours"] = json!(ours);
            object
        };
        let key = |object: &Value| format!("{} {} {}", object["kind"], cluster_of(object), object["metadata"]["name"]);
        let by_key = |objects: Vec<Value>| -> BTreeMap<String, Value> {
            objects.into_iter().map(|object| (key(&object), tidy(object))).collect()
        };
        let (made, built) = (by_key(settled), by_key(fleet().build().collect()));
        assert!(made.keys().eq(built.keys()));
        for (key, made) in made {
            let built = &built[&key];
            for part in ["metadata", "spec", "status", "ours"] {
                assert_eq!(made.get(part), built.get(part), "{layout:?}: {part} of {key}");
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let bytes = |builder: &Builder| {
        let objects: Vec<String> = builder.build().map(|object| object.to_string()).collect();
        let deeds: Vec<String> = builder.deeds(30).iter().map(|deed| format!("{:?}", deed)).collect();
        (objects, deeds)
    };
    for seed in 0..20 {
        for builder in [Builder::new(seed), Builder::new(seed).bound(true), fleet(Layout::Split)] {
            assert_eq!(bytes(&builder), bytes(&builder));
        }
    }
    assert_ne!(bytes(&Builder::new(1)), bytes(&Builder::new(2)));
}

#[test]
fn deeds_are_in_the_order_of_time() {
    let deeds = Builder::new(3).deeds(40);
    assert_eq!(deeds.len(), 40);
    assert!(deeds.is_sorted_by_key(|deed| deed.after));
    assert!(Builder::new(3).vandals(10).is_sorted_by_key(|deed| deed.after));
}

/// Performs deeds as they come, and cleans up at once after what is deleted. How many are refused.
fn refused(builder: &Builder, deeds: &[Deed]) -> Vec<String> {
    let mut kcp = loaded(builder);
    let mut refused = Vec::new();
    for deed in deeds {
        kcp.set_now(START + deed.after);
        if let Err(status) = kcp.handle(deed.request.clone()) {
            refused.push(format!("{deed}: {}", status.message.unwrap_or_default()));
            continue;
        }
        let Request { kind, cluster, name, verb, .. } = &deed.request;
        if matches!(verb, Verb::Delete(_)) && matches!(kind, Kind::ApiBinding | Kind::Crd) {
            let patch = json!({"metadata": {"finalizers": null}});
            kcp.handle(Request::merge(*kind, cluster.clone(), name.clone(), patch)).unwrap();
        }
    }
    refused
}

#[test]
fn most_deeds_are_not_refused() {
    let sorts: [&dyn Fn(u64) -> Builder; 4] = [
        &Builder::new,
        &|seed| Builder::new(seed).layout(Layout::Single),
        &|seed| Builder::new(seed).bound(true),
        &|seed| Builder { seed, ..fleet(Layout::Split) },
    ];
    for sort in sorts {
        let (mut all, mut no) = (0, Vec::new());
        for seed in 0..100 {
            let builder = sort(seed);
            for deeds in [builder.deeds(40), builder.vandals(10)] {
                all += deeds.len();
                no.extend(refused(&builder, &deeds));
            }
        }
        assert!(all >= 100 * 50 * 9 / 10, "{all}");
        let share = no.len() * 100 / all;
        no.truncate(40);
        assert!(share <= 20, "{share} % of {all}: {no:#?}");
    }
}

#[test]
fn every_sort_of_deed_is_done() {
    let all: Vec<String> =
        (0..300).flat_map(|seed| Builder::new(seed).deeds(40)).map(|deed| deed.to_string()).collect();
    let mut wanted = vec![
        "create APIBinding",
        "delete APIBinding",
        "merge APIBinding",
        "create APIExport",
        "delete APIExport",
        "merge APIExport",
        "merge status of APIExport",
        "create APIResourceSchema",
        "delete APIResourceSchema",
        "create APIConversion",
        "delete APIConversion",
        "create CustomResourceDefinition",
        "delete CustomResourceDefinition meadow|",
        "delete CustomResourceDefinition system:bound-crds|",
        "create LogicalCluster",
    ];
    wanted.retain(|wanted| !all.iter().any(|deed| deed.starts_with(wanted)));
    assert_eq!(wanted, [""; 0]);
    for part in [
        "note",
        "\"spec\":{\"reference\"",
        "Accepted",
        "Rejected",
        "kcp.io/path\":null",
        "kcp.io/path\":\"root:",
        "{\"spec\":{\"resources\"",
        "{\"spec\":{\"permissionClaims\"",
    ] {
        assert!(all.iter().any(|deed| deed.starts_with("merge") && deed.contains(part)), "{part}");
    }
    let locks = |deed: &Deed| deed.to_string().contains("internal.apis.kcp.io/locks");
    assert!((0..100).all(|seed| !Builder::new(seed).deeds(40).iter().any(locks)));
    let vandals: Vec<String> =
        (0..50).flat_map(|seed| Builder::new(seed).vandals(20)).map(|it| it.to_string()).collect();
    for part in ["merge LogicalCluster", "merge status of APIBinding", "locks-bindings\":null", "no json"] {
        assert!(vandals.iter().any(|deed| deed.contains(part)), "{part}");
    }
}

#[test]
fn a_binding_comes_back_under_its_name() {
    let again = (0..100).map(|seed| {
        let mut gone = BTreeSet::new();
        let deeds = Builder::new(seed).deeds(40);
        let deeds = deeds.iter().filter(|deed| deed.request.kind == Kind::ApiBinding).map(Deed::to_string);
        let mut again = 0;
        for deed in deeds {
            match deed.split_once(' ') {
                Some(("delete", key)) => drop(gone.insert(key.to_owned())),
                Some(("create", key)) if gone.remove(key) => again += 1,
                _ => {}
            }
        }
        again
    });
    assert!(again.sum::<u32>() > 300);
}

#[test]
fn a_large_world_has_what_was_asked_for() {
    let builder = Builder::new(1).crowded(false).bound(true).workspaces(1000).bindings(10_000).schema_bytes(4000);
    let mut exports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for object in builder.build() {
        *kinds.entry(text(&object, "/kind").to_owned()).or_default() += 1;
        if is(&object, Kind::ApiBinding) {
            let export = text(&object, "/spec/reference/export/name").to_owned();
            exports.entry(cluster_of(&object).to_owned()).or_default().insert(export);
            assert_eq!(list(&object, "/status/boundResources").count(), 3);
        } else if is(&object, Kind::ApiResourceSchema) {
            let size = object["spec"]["versions"][0]["schema"].to_string().len();
            assert!((3500..4500).contains(&size), "{size}");
        }
    }
    assert!(exports.len() == 1000 && exports.values().all(|exports| exports.len() == 10));
    let counts = ["APIBinding", "APIExport", "APIResourceSchema", "CustomResourceDefinition", "LogicalCluster"];
    assert_eq!(counts.map(|kind| kinds[kind]), [10_000, 100, 300, 300, 1001]);
}
