use serde_json::json;

use super::*;
use crate::fixtures::*;
use crate::snapshot::Snapshot;

fn at_path(snapshot: &Snapshot, path: &str) -> Vec<String> {
    let found = snapshot.exports_at(&path.into()).into_iter();
    found.map(|(origin, key)| format!("{origin:?} {}/{}", key.cluster, key.name)).collect()
}

fn export_in(cluster: &str, path: &str) -> Seen {
    export(&["hens"], json!({"metadata": {"annotations": {"kcp.io/cluster": cluster, "kcp.io/path": path}}}))
}

#[test]
fn exports_are_found_by_path_and_by_cluster_local_ones_first() {
    let mut snapshot = world(Layout::Split, &[export_in("farm", "root:farm"), export_in("twin", "root:farm").global()]);
    assert_eq!(at_path(&snapshot, "root:farm:farm"), ["Local farm/farm"]);
    assert_eq!(at_path(&snapshot, "farm:farm"), ["Local farm/farm"]);
    assert_eq!(at_path(&snapshot, "twin:farm"), ["Global twin/farm"]);
    assert_eq!(at_path(&snapshot, "farm"), [""; 0]);
    snapshot.apply(export_in("zoo", "root:farm").put());
    assert_eq!(at_path(&snapshot, "root:farm:farm"), ["Local farm/farm", "Local zoo/farm"]);
    snapshot.apply(export_in("farm", "root:moved").but(json!({"metadata": {"resourceVersion": "11"}})).put());
    snapshot.apply(export_in("zoo", "").but(json!({"metadata": {"resourceVersion": "11"}})).put());
    assert_eq!(at_path(&snapshot, "root:farm:farm"), ["Global twin/farm"]);
    assert_eq!(at_path(&snapshot, "root:moved:farm"), ["Local farm/farm"]);
}

#[test]
fn exports_are_sorted_as_the_text_of_cluster_and_name() {
    let key = |cluster: &str, name: &str| ExportKey { cluster: cluster.into(), name: name.into() };
    let mut keys = [key("coop", "b"), key("coop-b", "a"), key("coop", "a")];
    keys.sort();
    let texts = keys.map(|key| format!("{}/{}", key.cluster, key.name));
    assert_eq!(texts, ["coop-b/a", "coop/a", "coop/b"]);
    assert!(texts.is_sorted());
}

#[test]
fn exports_are_found_by_identity_each_origin_for_itself() {
    let mut snapshot =
        world(Layout::Split, &[export_in("zoo", ""), export_in("farm", ""), export_in("far", "").global()]);
    let of = |snapshot: &Snapshot, origin, identity: &str| -> Vec<String> {
        let keys = snapshot.world().exports_of(origin, &identity.into()).into_iter().flat_map(Set::iter);
        keys.map(|key| key.cluster.to_string()).collect()
    };
    assert_eq!(of(&snapshot, Origin::Local, "id-farm"), ["farm", "zoo"]);
    assert_eq!(of(&snapshot, Origin::Global, "id-farm"), ["far"]);
    let changed = json!({"metadata": {"resourceVersion": "11"}, "status": {"identityHash": ""}});
    snapshot.apply(export_in("zoo", "").but(changed).put());
    assert_eq!(of(&snapshot, Origin::Local, "id-farm"), ["farm"]);
    assert_eq!(of(&snapshot, Origin::Local, ""), [""; 0], "no identity is none");
}

#[test]
fn a_schema_is_found_local_then_global() {
    let global = schema("hens", json!({"metadata": {"uid": "s-global"}})).global();
    let mut snapshot = world(Layout::Split, &[schema("hens", json!({})), global]);
    let uid = |snapshot: &Snapshot| {
        snapshot.schema(&"farm".into(), "v1.hens.farm.test").map(|schema| schema.meta.uid.to_string())
    };
    assert_eq!(uid(&snapshot).as_deref(), Some("s-hens"));
    snapshot.apply(schema("hens", json!({})).delete());
    assert_eq!(uid(&snapshot).as_deref(), Some("s-global"));
    assert_eq!(snapshot.schema(&"meadow".into(), "v1.hens.farm.test"), None);
}

#[test]
fn workspaces_are_found_by_what_their_bindings_want_until_the_last_one_is_gone() {
    let claims = json!([{"resource": "r", "identityHash": "id", "state": "Accepted"}]);
    let wants = |name: &str| binding(name, has_bound(&["hens"])).but(json!({"spec": {"permissionClaims": claims}}));
    let hill = wants("c").but(json!({"metadata": {"annotations": {"kcp.io/cluster": "hill"}}}));
    let mut snapshot = world(Layout::Split, &[wants("a"), wants("b"), hill]);
    fn names<'a>(found: impl Iterator<Item = (&'a ClusterName, &'a Cluster)>) -> Vec<&'a str> {
        found.map(|(name, _)| name.as_str()).collect()
    }
    let check = |snapshot: &Snapshot, expect: &[&str]| {
        let world = snapshot.world();
        assert_eq!(names(world.clusters_with_target("root:farm:farm")), expect);
        assert_eq!(names(world.clusters_with_claim(&"id".into())), expect);
        assert_eq!(names(world.clusters_listing("s-hens")), expect);
    };
    check(&snapshot, &["hill", "meadow"]);
    snapshot.apply(wants("a").delete());
    check(&snapshot, &["hill", "meadow"]);
    snapshot.apply(wants("b").delete());
    check(&snapshot, &["hill"]);
}

#[test]
fn schemas_are_found_by_name_and_by_uid() {
    let mut snapshot = world(Layout::Split, &[schema("hens", json!({})), schema("hens", json!({})).global()]);
    let count = |snapshot: &Snapshot| {
        let hens = crate::api::GroupResource::from("hens.farm.test");
        let named = snapshot.world().schemas_named(NameQuery::plural(&hens)).map_or(0, Set::len);
        (named, snapshot.world().schemas_with_uid("s-hens").count())
    };
    assert_eq!(count(&snapshot), (2, 2));
    snapshot.apply(schema("hens", json!({})).global().delete());
    let anew = json!({"metadata": {"resourceVersion": "11", "uid": "s-new"}, "spec": {"names": names("ducks")}});
    assert_eq!(count(&snapshot), (1, 1));
    snapshot.apply(schema("hens", anew).put());
    assert_eq!(count(&snapshot), (0, 0));
}

#[test]
fn getters_give_what_is_known_in_order() {
    let hill = binding("a", json!({"metadata": {"annotations": {"kcp.io/cluster": "hill"}}}));
    let objects =
        [farm(&["hens"]), vec![binding("b", json!({})), binding("a", json!({})), hill, home(json!({}))]].concat();
    let snapshot = world(Layout::Single, &objects);
    let keys: Vec<String> = snapshot.bindings().iter().map(ToString::to_string).collect();
    assert_eq!(keys, ["hill|a", "meadow|a", "meadow|b"]);
    let clusters: Vec<String> = snapshot.clusters().iter().map(ToString::to_string).collect();
    assert_eq!(clusters, ["farm", "hill", "meadow", "system:bound-crds"]);
    assert_eq!((snapshot.layout(), snapshot.now().to_string()), (Layout::Single, NOW.to_owned()));
    assert_eq!(snapshot.binding(&key("hill|a")).unwrap().meta.uid, "u-a");
    assert_eq!(snapshot.logical_cluster(&"meadow".into()).unwrap().meta.uid, "u-meadow");
    assert_eq!(snapshot.bound_crd("s-hens").unwrap().schema, Some(("farm".into(), "v1.hens.farm.test".into())));
    assert_eq!(snapshot.crd(&"system:bound-crds".into(), "s-hens"), snapshot.bound_crd("s-hens"));
    assert_eq!(
        (snapshot.binding(&key("x|y")), snapshot.bound_crd("x"), snapshot.logical_cluster(&"x".into())),
        (None, None, None)
    );
}

#[test]
fn a_time_that_is_out_of_range_counts_as_the_nearest_that_is_not() {
    let mut snapshot = Snapshot::new(Layout::Split);
    assert_eq!(snapshot.now(), Timestamp::UNIX_EPOCH);
    for (seconds, now) in [
        (1_780_315_200, "2026-06-01T12:00:00Z".to_owned()),
        (-1, "1969-12-31T23:59:59Z".to_owned()),
        (i64::MIN, Timestamp::MIN.to_string()),
        (i64::MAX, Timestamp::MAX.to_string()),
    ] {
        snapshot.set_unix_time(seconds);
        assert_eq!(snapshot.now().to_string(), now);
    }
}

#[test]
fn a_snapshot_is_shown_as_json_each_object_in_its_place() {
    let objects = [
        vec![export(&["hens"], json!({})).global(), schema("hens", json!({})).global(), conversion("hens").global()],
        vec![binding("mine", json!({})), home(json!({})), conversion("hens")],
        farm(&["hens"]),
    ];
    let snapshot = world(Layout::Single, &objects.concat());
    let shown: serde_json::Value = serde_json::from_str(&format!("{snapshot:?}")).unwrap();
    assert_eq!(shown, serde_json::to_value(&snapshot).unwrap());
    assert_eq!((&shown["layout"], &shown["now"]), (&json!("single"), &json!(NOW)));
    let (clusters, hens) = (&shown["clusters"], "v1.hens.farm.test");
    assert_eq!(clusters["meadow"]["logicalCluster"]["uid"], "u-meadow");
    for (cluster, field, name, uid) in [
        ("meadow", "bindings", "mine", "u-mine"),
        ("farm", "exports", "farm", "u-farm"),
        ("farm", "schemas", hens, "s-hens"),
        ("farm", "conversions", hens, "u-v1.hens.farm.test"),
        ("farm", "globalExports", "farm", "u-farm"),
        ("farm", "globalSchemas", hens, "s-hens"),
        ("farm", "globalConversions", hens, "u-v1.hens.farm.test"),
        ("system:bound-crds", "crds", "s-hens", "u-s-hens"),
    ] {
        let found = &clusters[cluster][field];
        assert_eq!((&found[name]["uid"], found.as_object().map(|all| all.len())), (&json!(uid), Some(1)), "{field}");
    }
}
