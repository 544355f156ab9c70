//! Who locks what for CRDs: their admission, and the clean-up of LogicalClusters.

use super::*;

#[test]
fn the_admission_locks_before_the_crd_is_there() {
    let mut world = World::split();
    world.rests();
    world.admits(own("geese", "Goose"));
    let (name, done) = world.step(Timestamp::MAX).unwrap();
    assert_eq!(name, "admission of CRD meadow|geese.farm.test");
    assert_eq!(done.as_deref(), Some("locks meadow|geese.farm.test for its CRD"));
    let expiry = crate::snapshot::whole_seconds(world.kcp.now());
    assert_eq!(world.locks(Layer::Pending), format!(r#"{{"geese.farm.test":{{"c":true,"e":"{expiry}"}}}}"#));
    assert!(world.get(Kind::Crd, "meadow", "geese.farm.test").is_none());
    world.rests();
    assert_eq!(world.locks(Layer::Crds), r#"{"geese.farm.test":{"c":true}}"#);
}

#[test]
fn a_crd_is_forbidden_what_a_binding_holds() {
    let mut world = World::split();
    world.lock(Layer::Bindings, r#"{"geese.farm.test":{"n":"alder"}}"#);
    world.admits(own("geese", "Goose"));
    let told = world.rests();
    assert!(told.iter().any(|told| told.contains("is forbidden: geese.farm.test is held by APIBinding")), "{told:?}");
    assert!(world.get(Kind::Crd, "meadow", "geese.farm.test").is_none());
    assert_eq!(world.locks(Layer::Pending), "none");
}

#[test]
fn a_lock_that_another_manager_wrote_stops_the_admission_after_five_tries() {
    let mut world = World::split();
    world.lock(Layer::Pending, r#"{"swans.farm.test":{"c":true}}"#);
    world.admits(own("geese", "Goose"));
    let told = world.rests();
    assert_eq!(told.iter().filter(|told| told.starts_with("cannot lock")).count(), 4, "{told:?}");
    assert!(told.iter().any(|told| told.contains("is not admitted: Apply failed")), "{told:?}");
}

#[test]
fn a_stale_admission_does_not_see_what_a_binding_just_took() {
    for stale_admission in [false, true] {
        let mut world = World::new(Layout::Split, Habits { stale_admission, ..Habits::default() });
        world.rests();
        world.admits(own("geese", "Goose"));
        world.step(Timestamp::MAX);
        world.lock(Layer::Bindings, r#"{"geese.farm.test":{"n":"alder"}}"#);
        let is_locked = world.locks(Layer::Pending) != "none";
        assert_eq!(is_locked, !stale_admission);
        world.rests();
        assert!(world.get(Kind::Crd, "meadow", "geese.farm.test").is_some());
    }
}

#[test]
fn nobody_admits_in_the_single_layout_and_bound_crds() {
    let mut world = World::single();
    world.lock(Layer::Legacy, r#"{"geese.farm.test":{"n":"alder"}}"#);
    world.admits(own("geese", "Goose"));
    world.admits(bound_crd("u1", "geese", "Goose"));
    world.runs(10);
    assert!(world.get(Kind::Crd, "meadow", "geese.farm.test").is_some());
    assert!(world.get(Kind::Crd, ClusterName::BOUND_CRDS, "u1").is_some());
    let mut world = World::split();
    world.admits(bound_crd("u1", "geese", "Goose"));
    world.runs(10);
    assert!(world.get(Kind::Crd, ClusterName::BOUND_CRDS, "u1").is_some());
}

#[test]
fn split_other_locks_for_crds_stay_until_an_expiry_that_is_past() {
    let mut world = World::split();
    let legacy = r#"{"a.g":{"c":true,"e":"2026-06-01T12:00:30Z"},"b.g":{"n":"alder"},"c.g":{"c":true}}"#;
    world.lock(Layer::Legacy, legacy);
    world.runs(20);
    let both = r#"{"a.g":{"c":true,"e":"2026-06-01T12:00:30Z"},"c.g":{"c":true}}"#;
    assert_eq!(world.locks(Layer::Crds), both, "an empty one starts from the legacy one");
    world.rests();
    assert_eq!(world.locks(Layer::Crds), r#"{"c.g":{"c":true}}"#, "looked at when the lock ended");
    assert_eq!(world.locks(Layer::Legacy), legacy);

    world.sends(own("geese", "Goose"));
    world.rests();
    world.deletes(Kind::Crd, "meadow", "geese.farm.test");
    world.rests();
    assert_eq!(world.locks(Layer::Crds), r#"{"c.g":{"c":true},"geese.farm.test":{"c":true}}"#, "for ever");
}

#[test]
fn single_a_missing_or_unreadable_annotation_is_made_of_what_is_bound() {
    for text in ["", "no json", r#"{"a.g":7}"#] {
        let mut world = World::single();
        for binding in ["alder", "birch"] {
            world.binds(binding, json!([]));
            world.lists(binding, "geese", "u1");
        }
        world.rests();
        assert_eq!(world.locks(Layer::Legacy), "{}", "an annotation that is there is not filled");
        world.lock(Layer::Legacy, text);
        world.rests();
        assert_eq!(world.locks(Layer::Legacy), r#"{"geese.farm.test":{"n":"alder"}}"#);
    }
    let mut world = World::single();
    world.lock(Layer::Legacy, "null");
    world.rests();
    assert_eq!(world.locks(Layer::Legacy), "null", "an empty map");
}

#[test]
fn single_entries_go_with_their_bindings_and_crds() {
    let mut world = World::single();
    world.binds("alder", json!([]));
    world.sends(own("geese", "Goose"));
    let text = r#"{"a.g":{"n":"alder"},"b.g":{"n":"birch"},"c.g":{"c":true},"d.g":{"c":true,"e":"2026-06-01T13:00:00Z"},"geese.farm.test":{"c":true,"e":"2026-06-01T12:30:00Z"}}"#;
    world.lock(Layer::Legacy, text);
    world.runs(60);
    let left = r#"{"a.g":{"n":"alder"},"d.g":{"c":true,"e":"2026-06-01T13:00:00Z"},"geese.farm.test":{"c":true}}"#;
    assert_eq!(world.locks(Layer::Legacy), left);
    world.runs(3600);
    assert_eq!(world.locks(Layer::Legacy), r#"{"a.g":{"n":"alder"},"geese.farm.test":{"c":true}}"#);
    world.deletes(Kind::Crd, "meadow", "geese.farm.test");
    world.deletes(Kind::ApiBinding, "meadow", "alder");
    world.rests();
    assert_eq!(world.locks(Layer::Legacy), "{}");
}

#[test]
fn single_a_stale_clean_up_takes_the_lock_of_a_binding_that_it_has_not_seen() {
    for stale_cleanup in [false, true] {
        let mut world = World::new(Layout::Single, Habits { stale_cleanup, ..Habits::default() });
        world.rests();
        world.lock(Layer::Legacy, r#"{"a.g":{"c":true}}"#);
        world.step(Timestamp::MAX);
        world.binds("alder", json!([]));
        world.lock(Layer::Legacy, r#"{"geese.farm.test":{"n":"alder"}}"#);
        world.rests();
        let kept = world.locks(Layer::Legacy) != "{}";
        assert_eq!(kept, !stale_cleanup);
    }
}
