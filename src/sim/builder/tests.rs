use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::*;
use crate::api::{ApiBinding, BindingKey, CLUSTER_ANNOTATION, Kind, Object, PATH_ANNOTATION};
use crate::pass::{Pass, Step};
use crate::sim::Kcp;
use crate::snapshot::{Annotation, Change, Layer, Lock, Origin, Snapshot};

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
    for seed in 0..3000 {
        for layout in LAYOUTS {
            check_locks(&Builder::new(seed).layout(layout));
        }
        if seed % 20 == 0 {
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
        let mut pass = Pass::new(key);
        while let Step::Act(effect) = pass.poll(&snapshot) {
            if !effect.is_read() {
                writes.push(effect.to_string());
            }
            for change in pass.observe(kcp.execute(&effect)) {
                snapshot.apply(change);
            }
        }
    }
    writes
}

#[test]
fn a_world_that_is_bound_is_at_rest() {
    for layout in LAYOUTS {
        assert_eq!(writes(&fleet(layout)), [""; 0], "{layout:?}");
        for seed in 0..300 {
            let builder = Builder::new(seed).layout(layout).bound(true);
            assert_eq!(writes(&builder), [""; 0], "{builder:?}");
        }
    }
}

#[test]
fn a_world_that_is_new_was_never_looked_at() {
    for seed in 0..300 {
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
    for seed in 0..50 {
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

/// The shapes that a world has, told from its objects.
fn shapes(builder: &Builder) -> BTreeSet<&'static str> {
    let objects: Vec<Value> = builder.build().collect();
    let snapshot = snapshot(builder.layout, &objects);
    let mut shapes = BTreeSet::new();
    let mut note = |is_so: bool, shape| {
        if is_so {
            shapes.insert(shape);
        }
    };
    let of = |kind| objects.iter().filter(move |object| is(object, kind));
    let mut offered: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut keys = BTreeSet::new();
    for export in of(Kind::ApiExport) {
        let at = &export["metadata"]["annotations"][PATH_ANNOTATION];
        note(at.is_null(), "export without path");
        note(!at.is_null() && *at != format!("root:{}", cluster_of(export)), "export under another path");
        note(text(export, "/status/identityHash").is_empty(), "export without identity");
        note(list(export, "/spec/resources").next().is_none(), "export without resources");
        keys.insert((cluster_of(export), text(export, "/metadata/name")));
        for resource in list(export, "/spec/resources") {
            *offered.entry((text(resource, "/group"), text(resource, "/name"))).or_default() += 1;
            note(resource["storage"].get("crd").is_some(), "storage crd");
            note(resource["storage"].get("virtual").is_some(), "storage virtual");
            note(text(resource, "/group").is_empty(), "core group");
            let schema = snapshot.schema(&cluster_of(export).into(), text(resource, "/schema"));
            note(schema.is_none(), "schema missing");
        }
        for claim in list(export, "/spec/permissionClaims") {
            note(text(claim, "/identityHash").is_empty(), "claim without identity");
            note(!text(claim, "/identityHash").is_empty(), "claim with identity");
        }
    }
    note(offered.values().any(|count| *count > 1), "offered by several exports");
    for schema in of(Kind::ApiResourceSchema) {
        let strategy = text(schema, "/spec/conversion/strategy");
        let is_several = list(schema, "/spec/versions").count() > 1;
        note(is_several && strategy == "None", "converted by nobody");
        note(is_several && strategy == "Webhook", "converted by webhook");
        note(is_several && strategy.is_empty(), "conversion lacking");
        let client = schema.pointer("/spec/conversion/webhook/clientConfig");
        note(strategy == "Webhook" && client.is_none(), "client config lacking");
        note(client.is_some_and(|client| text(client, "/url").starts_with("http:")), "refused by the server");
        let raw = &schema["spec"]["versions"][0]["schema"];
        note(raw["required"].is_i64(), "no CRD can be made");
        note(raw.pointer("/properties/spec").is_some(), "refused for its types");
        note(text(schema, "/spec/nameValidation") == "PathSegmentName", "rich schema");
    }
    note(of(Kind::ApiConversion).next().is_some(), "conversion");
    for crd in of(Kind::Crd) {
        let is_bound = cluster_of(crd) == "system:bound-crds";
        note(is_bound, "bound CRD");
        note(!is_bound && text(crd, "/status/conditions/0/status") == "True", "own CRD");
        note(!is_bound && text(crd, "/status/conditions/0/status") == "False", "own CRD without its names");
    }
    let names: Vec<&str> = of(Kind::ApiBinding).map(|binding| text(binding, "/metadata/name")).collect();
    for binding in of(Kind::ApiBinding) {
        let binding: ApiBinding = serde_json::from_value(binding.clone()).unwrap();
        let key = binding.key();
        match &binding.spec.reference.export {
            None => note(true, "no reference"),
            Some(export) => {
                let path = export.path.as_str();
                note(path.is_empty(), "by nothing");
                note(path.starts_with("root:"), "by path");
                note(!path.is_empty() && !path.contains(':'), "by cluster name");
                let found = if path.is_empty() { key.cluster.as_str() } else { path.trim_start_matches("root:") };
                note(!keys.contains(&(found, export.name.as_str())), "export missing");
            }
        }
        for claim in &binding.spec.permission_claims {
            note(claim.is_accepted(), "claim accepted");
            note(!claim.is_accepted(), "claim rejected");
        }
        note(snapshot.logical_cluster(&key.cluster).is_none(), "LogicalCluster late");
        note(binding.status.phase.as_str().is_empty(), "new");
        note(binding.status.phase.as_str() == "Binding", "begun");
        note(binding.status.phase.as_str() == "Bound", "bound");
        let bound = &binding.status.bound_resources;
        note(bound.iter().any(|bound| snapshot.bound_crd(&bound.schema.uid).is_none()), "bound CRD missing");
    }
    let homes = snapshot
        .clusters()
        .into_iter()
        .filter_map(|cluster| Some((cluster.clone(), snapshot.logical_cluster(&cluster)?)));
    for (cluster, home) in homes {
        let own = if builder.layout == Layout::Split { &home.bindings } else { &home.legacy };
        note(matches!(own, Annotation::Missing), "own annotation missing");
        note(own.why().is_some(), "own annotation unreadable");
        note(home.crds.why().or(home.pending.why()).is_some(), "other annotation unreadable");
        let is_there = |lock: &Lock| snapshot.binding(&BindingKey::new(cluster.clone(), lock.name.clone())).is_some();
        for (resource, lock) in own.locks().into_iter().flat_map(|locks| locks.iter()) {
            if lock.is_of_binding() {
                note(!lock.uid.is_empty() && is_there(lock), "lock with uid");
                note(lock.uid.is_empty() && is_there(lock), "lock without uid");
                note(!is_there(lock) && names.contains(&lock.name.as_str()), "lock of a name that may come");
                note(!is_there(lock), "dead lock");
                note(lock.uid.ends_with("before"), "lock of a predecessor");
                let key = BindingKey::new(cluster.clone(), lock.name.clone());
                let binding = snapshot.binding(&key);
                note(binding.is_some_and(|binding| binding.status.bound(resource).is_some()), "lock of what is bound");
            }
            note(!lock.holds(), "lock of nobody");
        }
        note(home.legacy.locks().is_some_and(|locks| locks.iter().any(|(_, lock)| is_there(lock))), "legacy lock");
        let layers = [Layer::Crds, Layer::Pending, Layer::Legacy].map(|layer| match layer {
            Layer::Crds => &home.crds,
            Layer::Pending => &home.pending,
            _ => &home.legacy,
        });
        for (resource, lock) in layers.into_iter().filter_map(|layer| layer.locks()).flat_map(|locks| locks.iter()) {
            let is_crd_there = snapshot.crd(&cluster, &resource.crd_name()).is_some();
            note(lock.crd && is_crd_there, "CRD lock");
            note(lock.crd && !is_crd_there && lock.expiry.is_none(), "CRD lock without CRD and end");
            note(!is_crd_there && lock.end().is_some_and(|end| end < START), "CRD lock that is over");
            note(!is_crd_there && lock.end().is_some_and(|end| end > START), "CRD lock that soon is over");
        }
    }
    shapes
}

#[test]
fn crowded_worlds_have_everything() {
    const BOTH: [&str; 50] = [
        "export without path",
        "export under another path",
        "export without identity",
        "export without resources",
        "storage crd",
        "storage virtual",
        "core group",
        "schema missing",
        "claim without identity",
        "claim with identity",
        "offered by several exports",
        "converted by nobody",
        "converted by webhook",
        "conversion lacking",
        "client config lacking",
        "refused by the server",
        "no CRD can be made",
        "refused for its types",
        "rich schema",
        "conversion",
        "bound CRD",
        "own CRD",
        "own CRD without its names",
        "no reference",
        "by nothing",
        "by path",
        "by cluster name",
        "export missing",
        "claim accepted",
        "claim rejected",
        "LogicalCluster late",
        "new",
        "begun",
        "bound",
        "bound CRD missing",
        "own annotation missing",
        "own annotation unreadable",
        "lock without uid",
        "dead lock",
        "lock of a name that may come",
        "lock of what is bound",
        "lock of nobody",
        "legacy lock",
        "CRD lock",
        "CRD lock without CRD and end",
        "CRD lock that is over",
        "CRD lock that soon is over",
        "lock with uid",
        "lock of a predecessor",
        "other annotation unreadable",
    ];
    for layout in LAYOUTS {
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for seed in 0..2000 {
            for shape in shapes(&Builder::new(seed).layout(layout)) {
                *counts.entry(shape).or_default() += 1;
            }
        }
        let rare = |shape: &&&str| counts.get(**shape).is_none_or(|count| *count < 10);
        let missing: Vec<&&str> = BOTH.iter().filter(rare).collect();
        let split_only = layout == Layout::Single && missing == [&"other annotation unreadable"];
        assert!(missing.is_empty() || split_only, "{layout:?}: {missing:?} of {counts:?}");
    }
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
