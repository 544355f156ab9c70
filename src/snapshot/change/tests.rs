use serde_json::json;

use super::*;
use crate::fixtures::*;
use crate::snapshot::{Layout, Meta};

/// Hens at a version, with a uid and an identity that tell which.
fn hens(version: &str) -> Seen {
    let more = json!({"metadata": {"resourceVersion": version}, "status": {"identityHash": format!("id-{version}")}});
    export(&["hens"], more)
}

fn gone(version: &str) -> Change {
    hens(version).delete()
}

fn bookmark(version: &str) -> Change {
    Change::Bookmark { origin: Origin::Local, kind: Kind::ApiExport, resource_version: version.into() }
}

fn list(version: &str, objects: &[Seen]) -> Change {
    let objects = objects.iter().map(Seen::object).collect();
    Change::List { origin: Origin::Local, kind: Kind::ApiExport, objects, resource_version: version.into() }
}

fn apply(changes: impl IntoIterator<Item = Change>) -> Snapshot {
    let mut snapshot = Snapshot::new(Layout::Split);
    changes.into_iter().for_each(|change| _ = snapshot.apply(change));
    snapshot
}

/// The version of hens that is known after these changes.
fn known(changes: impl IntoIterator<Item = Change>) -> Option<String> {
    let snapshot = apply(changes);
    snapshot.export(Origin::Local, &"farm".into(), "farm").map(|export| export.meta.resource_version.to_string())
}

fn check(changes: impl IntoIterator<Item = Change>, expect: Option<&str>) {
    assert_eq!(known(changes).as_deref(), expect);
}

#[test]
fn what_is_newer_replaces_what_is_older_and_never_the_other_way() {
    check([hens("9").put(), hens("10").put()], Some("10"));
    check([hens("10").put(), hens("9").put()], Some("10"));
    let recreated = hens("9").but(json!({"metadata": {"uid": "u-another"}}));
    check([hens("10").put(), recreated.put()], Some("10"));
    let long = "100000000000000000000000000000000";
    check([hens(long).put(), hens("99999999999999999999").put()], Some(long));
}

#[test]
fn a_doubled_event_is_no_change() {
    let mut snapshot = apply([hens("9").put()]);
    assert!(snapshot.apply(hens("9").put()).is_empty());
    assert!(snapshot.apply(hens("8").put()).is_empty(), "nor a late one");
    assert!(!snapshot.apply(hens("10").put()).is_empty());
    assert!(!snapshot.apply(gone("11")).is_empty());
    assert!(snapshot.apply(gone("11")).is_empty());
}

#[test]
fn where_a_version_is_no_number_the_later_arrival_counts() {
    check([hens("10").put(), hens("x").put()], Some("x"));
    check([hens("x").put(), hens("9").put()], Some("9"));
    check([hens("10").put(), gone("x")], None);
    check([hens("10").put(), gone("x"), hens("9").put()], Some("9"));
    check([hens("x").put(), gone("9"), hens("y").put()], Some("y"));
}

#[test]
fn a_deletion_that_is_late_changes_nothing() {
    check([hens("10").put(), gone("9")], Some("10"));
    check([hens("10").put(), gone("10")], None);
    check([hens("10").put(), gone("11")], None);
}

#[test]
fn a_deletion_without_version_is_one_of_what_is_known() {
    check([hens("10").put(), gone(""), hens("10").put()], None);
    check([hens("10").put(), gone(""), hens("11").put()], Some("11"));
}

#[test]
fn an_object_that_was_deleted_does_not_come_back_by_a_late_event() {
    check([hens("10").put(), gone("12"), hens("11").put()], None);
    check([hens("10").put(), gone("12"), hens("12").put()], None);
    check([hens("10").put(), gone("12"), hens("13").put()], Some("13"));
    check([hens("10").put(), gone("12"), hens("13").put(), gone("12")], Some("13"));
    check([gone("12"), hens("11").put()], None);
    check([gone("12"), gone("11"), hens("12").put()], None);
}

#[test]
fn a_deletion_is_remembered_until_its_stream_has_passed_it() {
    let events = |passed: Change| [hens("10").put(), gone("12"), passed, hens("11").put()];
    check(events(bookmark("11")), None);
    // Then what is told of an unknown object at such a version is as late as can be.
    check(events(bookmark("13")), None);
    check(events(list("13", &[])), None);
    check([hens("10").put(), gone("12"), bookmark("13"), hens("14").put()], Some("14"));
    let other_kind = Change::Bookmark { origin: Origin::Local, kind: Kind::ApiBinding, resource_version: "13".into() };
    check(events(other_kind), None);
    let other_stream =
        Change::Bookmark { origin: Origin::Global, kind: Kind::ApiExport, resource_version: "13".into() };
    check(events(other_stream), None);
}

/// How many deletions are remembered.
fn remembered(changes: impl IntoIterator<Item = Change>) -> usize {
    apply(changes).memory.streams.values().map(|stream| stream.deleted.len()).sum()
}

#[test]
fn a_deletion_that_its_stream_has_passed_is_forgotten() {
    assert_eq!(remembered([hens("10").put(), gone("12")]), 1);
    assert_eq!(remembered([hens("10").put(), gone("12"), bookmark("11")]), 1);
    assert_eq!(remembered([hens("10").put(), gone("12"), bookmark("12")]), 0);
    assert_eq!(remembered([hens("10").put(), gone("12"), list("13", &[])]), 0);
    assert_eq!(remembered([hens("10").put(), gone("12"), hens("13").put()]), 0, "it is there again");
}

#[test]
fn what_is_not_in_a_list_is_gone() {
    check([hens("10").put(), list("12", &[])], None);
    check([list("12", &[hens("11")])], Some("11"));
    check([hens("13").put(), list("12", &[])], Some("13"));
    check([hens("13").put(), list("12", &[hens("10")])], Some("13"));
    check([hens("9").put(), list("12", &[hens("10")])], Some("10"));
}

#[test]
fn a_deletion_found_by_a_list_has_the_lists_version() {
    check([hens("10").put(), list("12", &[]), hens("13").put()], Some("13"));
    check([hens("10").put(), list("12", &[]), hens("11").put()], None);
}

#[test]
fn a_list_older_than_one_before_replaces_all_that_is_known() {
    let restored = list("7", &[hens("5")]);
    check([list("12", &[hens("10")]), restored.clone()], Some("5"));
    check([bookmark("12"), hens("13").put(), restored.clone()], Some("5"));
    check([list("12", &[hens("10")]), list("7", &[])], None);
    check([list("12", &[hens("10")]), gone("14"), restored.clone(), hens("6").put()], Some("6"));
    let mut snapshot = apply([list("12", &[hens("10")])]);
    assert_eq!(snapshot.apply(restored).events.len(), 1);
}

#[test]
fn an_equal_list_is_no_change_and_a_list_tells_each_change() {
    let mut snapshot = apply([hens("10").put()]);
    assert!(snapshot.apply(list("12", &[hens("10")])).is_empty());
    let other = hens("11").but(json!({"metadata": {"name": "other"}}));
    assert_eq!(snapshot.apply(list("13", &[other])).events.len(), 2, "one came, one went");
}

#[test]
fn a_list_ignores_objects_of_other_kinds() {
    let snapshot = apply([list("12", &[hens("10"), binding("mine", json!({}))])]);
    assert!(snapshot.bindings().is_empty());
}

#[test]
fn local_and_global_copies_live_apart() {
    let mut snapshot = apply([hens("10").put(), hens("5").global().put()]);
    let version = |snapshot: &Snapshot, origin| {
        snapshot.export(origin, &"farm".into(), "farm").map(|export| export.meta.resource_version.to_string())
    };
    assert_eq!(version(&snapshot, Origin::Global).as_deref(), Some("5"));
    snapshot.apply(list("12", &[]));
    assert_eq!((version(&snapshot, Origin::Local), version(&snapshot, Origin::Global).as_deref()), (None, Some("5")));
    snapshot.apply(hens("5").global().delete());
    assert!(snapshot.clusters().is_empty());
}

#[test]
fn kinds_without_global_copies_are_local_whatever_is_said() {
    for seen in [binding("mine", json!({})), home(json!({})), own_crd("hens", json!({}))] {
        let (local, global) = (apply([seen.put()]), apply([seen.clone().global().put()]));
        assert_eq!(local, global);
        assert_eq!(local.clusters().len(), 1);
        assert!(apply([seen.put(), seen.clone().global().delete()]).clusters().is_empty());
        let listed =
            Change::List { origin: Origin::Global, kind: seen.1, objects: vec![], resource_version: "99".into() };
        assert!(apply([seen.put(), listed]).clusters().is_empty());
    }
}

#[test]
fn only_the_logical_cluster_of_that_name_counts() {
    let phantom = home(json!({})).but(json!({"metadata": {"name": "phantom"}}));
    assert!(apply([phantom.put()]).clusters().is_empty());
}

#[test]
fn each_kind_comes_changes_and_goes() {
    let seen = [
        binding("mine", json!({})),
        export(&["hens"], json!({})),
        schema("hens", json!({})),
        conversion("hens"),
        home(json!({})),
        bound_crd("hens", json!({})),
    ];
    assert_eq!(seen.each_ref().map(|seen| seen.1), Kind::ALL);
    for seen in seen {
        let mut snapshot = apply([]);
        let empty = snapshot.clone();
        let newer = seen.clone().but(json!({"metadata": {"resourceVersion": "20"}}));
        assert_eq!(snapshot.apply(seen.put()).events.len(), 1, "{:?} comes", seen.1);
        assert_eq!(snapshot.apply(newer.put()).events.len(), 1, "{:?} changes", seen.1);
        assert!(snapshot.apply(seen.put()).is_empty(), "{:?} is late", seen.1);
        assert!(snapshot.apply(seen.delete()).is_empty(), "{:?} is late", seen.1);
        assert_eq!(snapshot.apply(newer.delete()).events.len(), 1, "{:?} goes", seen.1);
        assert_eq!(snapshot, empty);
    }
}

#[test]
fn the_order_of_changes_and_what_is_remembered_make_no_difference() {
    let objects = [farm(&["hens", "ducks"]), vec![binding("mine", has_bound(&["hens"])), home(json!({}))]].concat();
    let forth = apply(objects.iter().map(Seen::put));
    let back = apply(objects.iter().rev().map(Seen::put));
    assert_eq!(forth, back);
    assert_eq!(format!("{forth:?}"), format!("{back:?}"));
    let by_detour = apply([gone("3"), bookmark("4")].into_iter().chain(objects.iter().map(Seen::put)));
    assert_eq!(forth, by_detour);
    assert_ne!(forth, apply(objects[1..].iter().map(Seen::put)));
}

#[test]
fn a_clone_does_not_hear_of_later_changes() {
    let mut snapshot = apply([hens("10").put()]);
    let before = snapshot.clone();
    snapshot.apply(gone("11"));
    snapshot.set_now(NOW.parse().unwrap());
    assert_eq!(before, apply([hens("10").put()]));
    assert_ne!(before, snapshot);
}

#[test]
fn equal_copies_of_a_schema_share_their_body() {
    let snapshot = apply([schema("hens", json!({})).put(), schema("hens", json!({})).global().put()]);
    let cluster = snapshot.world.cluster(&"farm".into()).unwrap();
    let body = |origin| cluster.schema_of(origin, &"v1.hens.farm.test".into()).unwrap().crd.clone().unwrap();
    let (local, global) = (body(Origin::Local), body(Origin::Global));
    assert!(std::ptr::eq(local.as_str(), global.as_str()));
}

#[test]
fn changes_survive_being_written_and_read_and_are_made_of_objects() {
    for change in [hens("1").put(), hens("1").global().put(), gone("2"), bookmark("3"), list("4", &[hens("1")])] {
        let text = serde_json::to_string(&change).unwrap();
        assert_eq!(serde_json::from_str::<Change>(&text).unwrap(), change, "{text}");
    }
    assert_eq!(Change::put(hens("1").object()), hens("1").put());
    assert_eq!(Change::put_global(hens("1").object()), hens("1").global().put());
    assert_eq!(Change::delete(&hens("1").object()), gone("1"));
    assert_eq!(Meta::from(hens("1").object().metadata()).resource_version, "1");
}

#[test]
fn only_the_object_called_cluster_is_the_logical_cluster() {
    let mut snapshot = Snapshot::new(Layout::Split);
    let home = home(json!({})).put();
    snapshot.apply(home);
    let key = BindingKey::new("meadow", "other");
    let other =
        Change::Delete { origin: Origin::Local, kind: Kind::LogicalCluster, key, resource_version: "99".into() };
    assert!(snapshot.apply(other).is_empty());
    assert!(snapshot.logical_cluster(&"meadow".into()).is_some());
}
