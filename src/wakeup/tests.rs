use serde_json::{Value, json};

use super::*;
use crate::api::Kind;
use crate::fixtures::*;
use crate::snapshot::Change;
use crate::snapshot::Layout::{Single, Split};

/// A farm of hens and one of ducks, a meadow with a binding of each, and a binding of hens on a hill.
fn base() -> Vec<Seen> {
    let pond = export(&["ducks"], json!({"metadata": {"name": "pond"}, "status": {"identityHash": "id-pond"}}));
    let on_the_hill = json!({"metadata": {"annotations": {"kcp.io/cluster": "hill"}}});
    let mut objects = farm(&["hens"]);
    objects.extend([pond, schema("ducks", json!({})), bound_crd("ducks", json!({}))]);
    objects.extend([wants_hens(), wants_ducks(), binding("hens", on_the_hill), home(json!({"legacy": {}}))]);
    objects
}

fn wants_hens() -> Seen {
    binding("hens", json!({}))
}

fn wants_ducks() -> Seen {
    binding("ducks", json!({"spec": {"reference": {"export": {"name": "pond"}}}}))
}

/// A binding that wants nothing that there is.
fn idle(name: &str) -> Seen {
    binding(name, json!({"spec": {"reference": {"export": {"path": "nowhere"}}}}))
}

/// Later than whatever is there.
fn later(seen: Seen) -> Seen {
    seen.but(json!({"metadata": {"resourceVersion": "50"}}))
}

fn woken(layout: Layout, before: &[Seen], change: Change) -> Vec<String> {
    let mut snapshot = world(layout, before);
    let applied = snapshot.apply(change);
    wakeup(&snapshot, &applied).iter().map(ToString::to_string).collect()
}

/// Who is woken in either layout.
fn check(before: &[Seen], change: Change, expect: &[&str]) {
    for layout in [Split, Single] {
        assert_eq!(woken(layout, before, change.clone()), expect, "{layout:?}");
    }
}

/// Who is woken when an object comes, changes in nothing but its version, and goes.
fn check_life(before: &[Seen], seen: &Seen, expect: &[&str]) {
    check(before, seen.put(), expect);
    let there = [before, std::slice::from_ref(seen)].concat();
    check(&there, later(seen.clone()).put(), expect);
    check(&there, seen.put(), &[]);
    check(&there, seen.delete(), expect);
}

fn without(kind: Kind, name: &str) -> Vec<Seen> {
    let mut objects = base();
    let count = objects.len();
    objects.retain(|seen| seen.1 != kind || seen.object().key().name != *name);
    assert_eq!(objects.len(), count - 1);
    objects
}

// The table of SPEC 11.

#[test]
fn a_binding_wakes_itself() {
    check_life(&base(), &idle("new"), &["meadow|new"]);
    check_life(&base(), &binding("new", json!({})), &["meadow|new"]);
}

#[test]
fn an_export_wakes_its_bindings_local_and_global() {
    let hens = ["hill|hens", "meadow|hens"];
    check_life(&without(Kind::ApiExport, "farm"), &export(&["hens"], json!({})), &hens);
    check_life(&base(), &export(&["hens"], json!({})).global(), &hens);
    let by_cluster = binding("hens", json!({"spec": {"reference": {"export": {"path": "farm"}}}}));
    check(&[by_cluster], export(&["hens"], json!({})).put(), &["meadow|hens"]);
    let own =
        export(&["hens"], json!({"metadata": {"annotations": {"kcp.io/cluster": "meadow", "kcp.io/path": null}}}));
    let local = binding("hens", json!({"spec": {"reference": {"export": {"path": null}}}}));
    check(&[local], own.put(), &["meadow|hens"]);
}

#[test]
fn an_export_whose_path_changed_wakes_under_both_paths() {
    let moved = binding("moved", json!({"spec": {"reference": {"export": {"path": "root:new"}}}}));
    let change = later(export(&["hens"], json!({"metadata": {"annotations": {"kcp.io/path": "root:new"}}}))).put();
    check(&[base(), vec![moved]].concat(), change, &["hill|hens", "meadow|hens", "meadow|moved"]);
}

#[test]
fn a_schema_wakes_the_bindings_of_the_exports_that_name_it_local_and_global() {
    let hens = ["hill|hens", "meadow|hens"];
    check_life(&without(Kind::ApiResourceSchema, "v1.hens.farm.test"), &schema("hens", json!({})), &hens);
    check_life(&base(), &schema("hens", json!({})).global(), &hens);
    let mut global = without(Kind::ApiExport, "farm");
    global.push(export(&["hens"], json!({})).global());
    check_life(&global, &schema("hens", json!({})).global(), &hens);
}

#[test]
fn a_conversion_wakes_as_its_schema() {
    let hens = ["hill|hens", "meadow|hens"];
    for seen in [conversion("hens"), conversion("hens").global()] {
        check(&base(), seen.put(), &hens);
        check(&[base(), vec![seen.clone()]].concat(), seen.delete(), &hens);
        check(&[base(), vec![seen.clone()]].concat(), later(seen.clone()).put(), &hens);
        check(&[base(), vec![seen.clone()]].concat(), seen.put(), &[]);
    }
}

#[test]
fn a_conversion_without_its_schema_wakes_nobody() {
    check(&without(Kind::ApiResourceSchema, "v1.hens.farm.test"), conversion("hens").put(), &[]);
}

#[test]
fn a_bound_crd_wakes_the_bindings_of_its_schema() {
    let hens = ["hill|hens", "meadow|hens"];
    check_life(&without(Kind::Crd, "s-hens"), &bound_crd("hens", json!({})), &hens);
    let anonymous =
        json!({"metadata": {"annotations": {"apis.kcp.io/schema-cluster": null, "apis.kcp.io/schema-name": null}}});
    check_life(&without(Kind::Crd, "s-hens"), &bound_crd("hens", anonymous), &hens);
}

#[test]
fn a_logical_cluster_that_comes_or_goes_wakes_every_binding_in_it() {
    let before = without(Kind::LogicalCluster, "cluster");
    let home = home(json!({"legacy": {}}));
    let all = ["meadow|ducks", "meadow|hens"];
    check(&before, home.put(), &all);
    check(&base(), home.delete(), &all);
    let elsewhere = home.but(json!({"metadata": {"annotations": {"kcp.io/cluster": "hill"}}}));
    check(&before, elsewhere.put(), &["hill|hens"]);
}

#[test]
fn a_logical_cluster_that_changed_otherwise_wakes_nobody() {
    check(&base(), later(home(json!({"legacy": {}}))).put(), &[]);
}

#[test]
fn an_annotation_that_became_readable_or_unreadable_wakes_every_binding_in_it() {
    let all = ["meadow|ducks", "meadow|hens"];
    for layer in ["crds", "bindings", "pending", "legacy"] {
        let mut locks = json!({"legacy": {}});
        locks[layer] = json!("?");
        check(&base(), later(home(locks.clone())).put(), &all);
        let before = [base(), vec![home(locks)]].concat();
        check(&before, later(home(json!({"legacy": {}}))).put(), &all);
    }
}

/// Who is woken by a change of locks.
fn relock(layout: Layout, before: Value, after: Value, others: &[Seen]) -> Vec<String> {
    let objects = [&base()[..], others, &[home(before)]].concat();
    woken(layout, &objects, later(home(after)).put())
}

#[test]
fn a_changed_holder_wakes_only_those_that_want_the_resource() {
    let other = [idle("other"), idle("another")];
    let lock = |name: &str| json!({"hens.farm.test": {"n": name}});
    for layer in ["crds", "bindings", "pending", "legacy"] {
        let none = json!({layer: {}});
        let (one, two) = (json!({layer: lock("other")}), json!({layer: lock("another")}));
        for (before, after) in [(&none, &one), (&one, &two), (&two, &none)] {
            assert_eq!(
                relock(Split, before.clone(), after.clone(), &other),
                ["meadow|hens"],
                "{layer} {before} {after}"
            );
        }
        let unwanted = json!({layer: {"goats.farm.test": {"n": "other"}}});
        assert_eq!(relock(Split, none, unwanted, &other), [""; 0], "{layer}");
    }
    let legacy = |locks: Value| json!({"legacy": locks});
    assert_eq!(relock(Single, legacy(json!({})), legacy(lock("other")), &other), ["meadow|hens"]);
    assert_eq!(relock(Single, legacy(json!({})), legacy(json!({"goats.farm.test": {"n": "other"}})), &other), [""; 0]);
}

#[test]
fn an_expiry_that_changed_wakes_those_that_wait_for_it() {
    let lock = |e: Value| json!({"legacy": {"hens.farm.test": {"c": true, "e": e}}});
    for layout in [Split, Single] {
        assert_eq!(relock(layout, lock(json!(at(0))), lock(json!(at(9))), &[]), ["meadow|hens"]);
    }
}

// What is added.

#[test]
fn claims_are_woken_by_the_exports_schemas_and_crds_that_they_point_at() {
    let claim = json!([{"group": "farm.test", "resource": "hens", "identityHash": "id-farm", "state": "Accepted"}]);
    let claimant = idle("claims").but(json!({"spec": {"permissionClaims": claim}}));
    let with_hens = ["hill|hens", "meadow|claims", "meadow|hens"];
    let before = |objects: Vec<Seen>| [objects, vec![claimant.clone()]].concat();
    check_life(&before(without(Kind::ApiExport, "farm")), &export(&["hens"], json!({})), &with_hens);
    check_life(&before(without(Kind::ApiResourceSchema, "v1.hens.farm.test")), &schema("hens", json!({})), &with_hens);
    check_life(&before(without(Kind::Crd, "s-hens")), &bound_crd("hens", json!({})), &with_hens);
    let identity = later(export(&["hens"], json!({"status": {"identityHash": "id-new"}})));
    check(&before(base()), identity.put(), &with_hens);
    check(
        &before(base()),
        later(export(&["ducks"], json!({"metadata": {"name": "pond"}}))).put(),
        &["meadow|claims", "meadow|ducks"],
    );
    check(&before(base()), later(schema("ducks", json!({}))).put(), &["meadow|ducks"]);
}

#[test]
fn a_bound_crd_wakes_the_bindings_that_list_it_though_their_export_has_moved_on() {
    let lists = idle("lists").but(has_bound(&["goats"]));
    let goats = bound_crd("goats", json!({}));
    check_life(&[base(), vec![lists]].concat(), &goats, &["meadow|lists"]);
}

#[test]
fn an_own_crd_wakes_those_that_want_one_of_its_names_when_its_names_change() {
    let hens = own_crd("hens", json!({}));
    check(&base(), hens.put(), &["meadow|hens"]);
    let before = [base(), vec![hens.clone()]].concat();
    check(&before, hens.delete(), &["meadow|hens"]);
    check(&before, later(hens.clone()).put(), &[]);
    let stored = json!({"status": {"storedVersions": ["v9"]}});
    check(&before, later(hens.clone().but(stored)).put(), &[]);
    let renamed = json!({"status": {"acceptedNames": {"singular": "duck"}}});
    check(&before, later(hens.clone().but(renamed)).put(), &["meadow|ducks", "meadow|hens"]);
    check(&base(), own_crd("goats", json!({})).put(), &[]);
    check(&base(), own_crd("goats", json!({"status": {"acceptedNames": {"kind": "Hen"}}})).put(), &["meadow|hens"]);
    let group = json!({"spec": {"group": "zoo.test"}});
    check(&base(), own_crd("hens", group).put(), &[]);
}

#[test]
fn an_own_crd_that_only_asks_for_the_plural_wakes_who_waits_for_its_lock() {
    let refused =
        json!({"status": {"acceptedNames": null, "conditions": [{"type": "NamesAccepted", "status": "False"}]}});
    check(&base(), own_crd("hens", refused.clone()).put(), &["meadow|hens"]);
    let there = [base(), vec![own_crd("hens", refused.clone())]].concat();
    check(&there, own_crd("hens", refused).delete(), &["meadow|hens"]);
}

#[test]
fn what_a_neighbour_has_bound_wakes_those_that_want_it_or_a_name_of_it() {
    let taken = bound_crd("goats", json!({"status": {"acceptedNames": {"singular": "duck"}}}));
    let before = [base(), vec![taken]].concat();
    let goats = idle("other").but(has_bound(&["goats"]));
    check(&before, goats.put(), &["meadow|ducks", "meadow|other"]);
    let hens = idle("other").but(has_bound(&["hens"]));
    check(&before, hens.put(), &["meadow|hens", "meadow|other"]);
    let there = [&before[..], std::slice::from_ref(&hens)].concat();
    check(&there, hens.delete(), &["meadow|hens", "meadow|other"]);
    check(&there, later(hens.clone()).put(), &["meadow|other"]);
    let swapped = idle("other").but(has_bound(&["goats"]));
    check(&there, later(swapped).put(), &["meadow|ducks", "meadow|hens", "meadow|other"]);
    let reference = json!({"spec": {"reference": {"export": {"name": "renamed"}}}});
    check(&there, later(hens.clone().but(reference)).put(), &["meadow|hens", "meadow|other"]);
    let younger = json!({"metadata": {"creationTimestamp": NOW}});
    check(&there, later(hens.but(younger)).put(), &["meadow|hens", "meadow|other"]);
}

#[test]
fn names_that_a_listed_bound_crd_takes_wake_those_that_want_them() {
    let lists = idle("lists").but(has_bound(&["goats"]));
    let takes = bound_crd("goats", json!({"status": {"acceptedNames": {"singular": "duck"}}}));
    let before = [base(), vec![lists, bound_crd("goats", json!({}))]].concat();
    check(&before, later(takes.clone()).put(), &["meadow|ducks", "meadow|lists"]);
    check(&base(), takes.put(), &[]);
}

#[test]
fn the_order_of_crds_is_told_by_their_uid_so_it_wakes_too() {
    let crd = own_crd("hens", json!({}));
    let before = [base(), vec![crd.clone()]].concat();
    check(&before, later(crd.but(json!({"metadata": {"uid": "another"}}))).put(), &["meadow|hens"]);
}

#[test]
fn what_is_wanted_is_told_by_spec_and_export_not_by_status() {
    let uncommitted = binding("hens", json!({"status": null}));
    let objects = [base(), vec![later(uncommitted)]].concat();
    for layout in [Split, Single] {
        let change = later(home(json!({"legacy": {"hens.farm.test": {"c": true}}}))).put();
        assert_eq!(woken(layout, &objects, change), ["meadow|hens"]);
    }
}

#[test]
fn wanting_is_found_from_either_side() {
    // Many exports of the same names, and many references: the two ways to look give the same.
    let mut objects = base();
    for n in 0..5 {
        let place = json!({"metadata": {"annotations": {"kcp.io/cluster": format!("farm-{n}"), "kcp.io/path": null}}});
        objects.extend([export(&["hens"], place.clone()), schema("hens", place)]);
    }
    check(&objects, own_crd("hens", json!({})).put(), &["meadow|hens"]);
    objects.extend((0..9).map(|n| {
        let reference = json!({"export": {"path": format!("nowhere-{n}")}});
        binding(&format!("idle-{n}"), json!({"spec": {"reference": reference}}))
    }));
    check(&objects, own_crd("hens", json!({})).put(), &["meadow|hens"]);
}

// Keys of bindings that are gone.

#[test]
fn d7_names_in_locks_bindings_that_no_binding_has_are_keys_of_their_own_and_come_first() {
    let locks = json!({"bindings": {"x.y": {"n": "zombie"}, "z.y": {"n": "hens", "u": "u-old"}, "a.y": {"c": true}}});
    let change = later(home(locks.clone())).put();
    assert_eq!(woken(Split, &base(), change.clone()), ["meadow|zombie", "meadow|ducks", "meadow|hens"]);
    assert_eq!(
        woken(Single, &base(), change),
        ["meadow|ducks", "meadow|hens"],
        "the annotation that it reads is missing"
    );
    let again = [base(), vec![home(locks.clone())]].concat();
    let touched = later(home(locks)).put();
    assert_eq!(woken(Split, &again, touched), ["meadow|zombie", "meadow|hens"], "by name, or by uid");
}

#[test]
fn d7_a_binding_that_ends_leaves_its_key_to_be_processed() {
    let locks = json!({"bindings": {"x.y": {"n": "other", "u": "u-other"}}});
    let before = [base(), vec![idle("other"), home(locks)]].concat();
    assert_eq!(woken(Split, &before, idle("other").delete()), ["meadow|other", "meadow|ducks", "meadow|hens"]);
    let successor = later(idle("other").but(json!({"metadata": {"uid": "u-new"}})));
    assert_eq!(woken(Split, &before, successor.put()), ["meadow|ducks", "meadow|hens", "meadow|other"]);
}

#[test]
fn d7_the_end_of_the_holder_of_a_legacy_lock_wakes_those_that_want_it() {
    let before = [base(), vec![idle("other"), home(json!({"legacy": {"hens.farm.test": {"n": "other"}}}))]].concat();
    assert_eq!(woken(Split, &before, idle("other").delete()), ["meadow|hens", "meadow|other"]);
    assert_eq!(woken(Single, &before, idle("other").delete()), ["meadow|other"], "only the clean-up releases there");
}

#[test]
fn a_start_processes_ghosts_first_then_all_bindings() {
    let locks = json!({"bindings": {"x.y": {"n": "zombie"}}, "legacy": {}});
    let objects = [base(), vec![home(locks)]].concat();
    let keys = |layout| all(&world(layout, &objects)).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(keys(Split), ["meadow|zombie", "hill|hens", "meadow|ducks", "meadow|hens"]);
    assert_eq!(keys(Single), ["hill|hens", "meadow|ducks", "meadow|hens"]);
}

#[test]
fn a_list_wakes_for_each_change_in_it_and_a_bookmark_nobody() {
    let bindings = [idle("hens"), wants_ducks()].map(|seen| later(seen).object()).to_vec();
    let list = Change::List {
        origin: Origin::Local,
        kind: Kind::ApiBinding,
        objects: bindings,
        resource_version: "60".into(),
    };
    check(&base(), list, &["hill|hens", "meadow|ducks", "meadow|hens"]);
    let bookmark = Change::Bookmark { origin: Origin::Local, kind: Kind::ApiBinding, resource_version: "60".into() };
    check(&base(), bookmark, &[]);
}
