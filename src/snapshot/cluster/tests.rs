use serde_json::{Value, json};

use super::*;
use crate::fixtures::*;
use crate::snapshot::{Change, Layout, Snapshot};

fn meadow(objects: &[Seen]) -> Snapshot {
    world(Layout::Split, objects)
}

fn cluster(snapshot: &Snapshot) -> &Cluster {
    snapshot.world().cluster(&"meadow".into()).unwrap()
}

/// In the order in which they come.
fn texts<'a>(names: impl Iterator<Item = &'a Text>) -> Vec<&'a str> {
    names.map(Text::as_str).collect()
}

/// For what has no order of its own.
fn sorted<'a>(names: impl Iterator<Item = &'a Text>) -> Vec<&'a str> {
    names.map(Text::as_str).collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

#[test]
fn bindings_are_found_by_target_claim_and_bound_crd() {
    let claims = json!([{"group": "g", "resource": "r", "identityHash": "id", "state": "Accepted"}]);
    let mut snapshot = meadow(&[
        binding("b", has_bound(&["hens"])),
        binding("a", has_bound(&["hens", "ducks"])),
        binding("c", json!({"spec": {"permissionClaims": claims, "reference": {"export": {"path": null}}}})),
    ]);
    let meadow = cluster(&snapshot);
    assert_eq!(texts(meadow.with_target(&"root:farm:farm".into())), ["a", "b"]);
    assert_eq!(texts(meadow.with_target(&"meadow:farm".into())), ["c"], "the own cluster for an empty path");
    assert_eq!(texts(meadow.with_claim(&"id".into())), ["c"]);
    assert_eq!(texts(meadow.listing(&"s-hens".into())), ["a", "b"]);
    assert_eq!(sorted(meadow.listed()), ["s-ducks", "s-hens"]);
    assert_eq!((meadow.target_count(), meadow.listed_count()), (2, 2));
    snapshot.apply(binding("a", json!({"metadata": {"resourceVersion": "6"}})).put());
    snapshot.apply(binding("c", json!({})).delete());
    let meadow = cluster(&snapshot);
    assert_eq!(texts(meadow.listing(&"s-hens".into())), ["b"]);
    assert_eq!(sorted(meadow.listed()), ["s-hens"]);
    assert_eq!((meadow.with_claim(&"id".into()).count(), meadow.target_count()), (0, 1));
}

#[test]
fn claims_that_are_rejected_or_without_identity_are_no_claims() {
    let claims =
        json!([{"resource": "r", "identityHash": "id", "state": "Rejected"}, {"resource": "r", "state": "Accepted"}]);
    let snapshot = meadow(&[binding("a", json!({"spec": {"permissionClaims": claims}}))]);
    assert_eq!(cluster(&snapshot).with_claim(&"id".into()).count(), 0);
    assert_eq!(cluster(&snapshot).with_claim(&"".into()).count(), 0);
}

#[test]
fn d18_the_binder_of_a_resource_is_the_oldest_then_the_first_by_name() {
    let born = |name: &str, time: Value| {
        binding(name, has_bound(&["hens"])).but(json!({"metadata": {"creationTimestamp": time}}))
    };
    let binder =
        |bindings: &[Seen]| cluster(&meadow(bindings)).binder(&"hens.farm.test".into()).map(ToString::to_string);
    assert_eq!(binder(&[born("a", json!(at(1))), born("b", json!(at(0)))]).as_deref(), Some("b"));
    assert_eq!(binder(&[born("b", json!(at(0))), born("a", json!(at(0)))]).as_deref(), Some("a"));
    assert_eq!(binder(&[binding("a", json!({}))]), None);
}

#[test]
fn crds_are_found_by_the_names_they_take_or_ask_for() {
    let mut snapshot = meadow(&[own_crd("hens", json!({})), own_crd("ducks", unjudged())]);
    let named = |snapshot: &Snapshot, resource: &str| {
        let resource = GroupResource::from(resource);
        let count = cluster(snapshot).named(NameQuery::plural(&resource)).count();
        assert_eq!(cluster(snapshot).named_count(NameQuery::plural(&resource)), count);
        texts(cluster(snapshot).named(NameQuery::plural(&resource)).map(|(name, _)| name)).join(" ")
    };
    assert_eq!(named(&snapshot, "hens.farm.test"), "hens.farm.test");
    assert_eq!(named(&snapshot, "hen.farm.test"), "hens.farm.test", "singular and plural are one sort");
    assert_eq!(named(&snapshot, "ducks.farm.test"), "ducks.farm.test", "asked for");
    assert_eq!(named(&snapshot, "hens.zoo.test"), "");
    snapshot.apply(
        own_crd("hens", json!({"metadata": {"resourceVersion": "11"}, "status": {"acceptedNames": null}})).put(),
    );
    assert_eq!(named(&snapshot, "hens.farm.test"), "", "judged, and not granted");
    assert!(cluster(&snapshot).has_crd(&"hens.farm.test".into()), "D15: by the plural it asks for");
    assert!(!cluster(&snapshot).has_crd(&"hen.farm.test".into()));
}

/// The doubtful keys of locks-bindings.
fn doubtful(snapshot: &Snapshot) -> Vec<String> {
    cluster(snapshot).doubtful().iter().map(ToString::to_string).collect()
}

#[test]
fn locks_of_unknown_bindings_or_other_uids_are_doubtful_whatever_came_first() {
    let locks = json!({"bindings": {
        "a.x": {"n": "mine"}, "b.x": {"n": "mine", "u": "u-mine"}, "c.x": {"n": "mine", "u": "u-old"},
        "d.x": {"n": "ghost"}, "e.x": {"c": true}, "f.x": {"c": true, "n": "ghost"}, "g.x": {},
    }});
    let (mine, home) = (binding("mine", json!({})), home(locks));
    for objects in [[mine.clone(), home.clone()], [home.clone(), mine.clone()]] {
        assert_eq!(doubtful(&meadow(&objects)), ["c.x", "d.x"]);
    }
    let mut snapshot = meadow(&[home, mine.clone()]);
    snapshot.apply(mine.delete());
    assert_eq!(doubtful(&snapshot), ["a.x", "b.x", "c.x", "d.x"]);
    snapshot.apply(binding("mine", json!({"metadata": {"uid": "u-old", "resourceVersion": "9"}})).put());
    assert_eq!(doubtful(&snapshot), ["b.x", "d.x"]);
    snapshot.apply(crate::fixtures::home(json!({})).but(json!({"metadata": {"resourceVersion": "8"}})).put());
    assert_eq!(doubtful(&snapshot), [""; 0]);
}

#[test]
fn exports_are_found_by_the_schemas_they_name_each_origin_for_itself() {
    let mut snapshot =
        meadow(&[export(&["hens"], json!({})), export(&["ducks"], json!({"metadata": {"name": "pond"}})).global()]);
    let naming = |snapshot: &Snapshot, origin, plural: &str| {
        let farm = snapshot.world().cluster(&"farm".into()).unwrap();
        texts(farm.exporting(origin, &format!("v1.{plural}.farm.test").into())).join(" ")
    };
    assert_eq!(naming(&snapshot, Origin::Local, "hens"), "farm");
    assert_eq!(naming(&snapshot, Origin::Global, "ducks"), "pond");
    assert_eq!(naming(&snapshot, Origin::Local, "ducks"), "");
    snapshot.apply(export(&["goats"], json!({"metadata": {"resourceVersion": "11"}})).put());
    assert_eq!(naming(&snapshot, Origin::Local, "hens") + &naming(&snapshot, Origin::Local, "goats"), "farm");
}

#[test]
fn a_cluster_of_which_nothing_is_left_is_forgotten() {
    let objects = [
        vec![conversion("hens"), conversion("hens").global(), schema("hens", json!({})).global()],
        farm(&["hens"]),
        vec![binding("mine", has_bound(&["hens"])), home(json!({})), own_crd("hens", json!({}))],
    ]
    .concat();
    let mut snapshot = meadow(&objects);
    objects.iter().map(Seen::delete).for_each(|change: Change| _ = snapshot.apply(change));
    assert_eq!(snapshot, meadow(&[]));
}
