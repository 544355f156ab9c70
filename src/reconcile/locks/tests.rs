use serde_json::{Value, json};

use crate::effect::Outcome;
use crate::fixtures::*;
use crate::snapshot::Layout::{self, Single, Split};

const HENS: &str = "hens.farm.test";
/// A lock for a CRD that ended long ago.
fn over() -> Value {
    json!({"c": true, "e": at(-3600)})
}

/// What `mine`, which wants hens, does in the meadow: reads, lock writes, when it looks again unless
/// never, and what it could not have.
fn take(layout: Layout, locks: Value, others: &[Seen]) -> Vec<String> {
    take_with(layout, locks, others, |_| None)
}

fn take_with(layout: Layout, locks: Value, others: &[Seen], answer: impl Fn(&str) -> Option<Outcome>) -> Vec<String> {
    let mut objects = farm(&["hens"]);
    objects.extend([binding("mine", json!({})), home(locks)]);
    objects.extend_from_slice(others);
    gist(play_with(world(layout, &objects), &objects, "mine", |line, _| answer(line)))
}

fn gist(played: Played) -> Vec<String> {
    let why = played.why();
    let mut gist = played.log;
    gist.retain(|line| line != "commit" && line != "forget");
    let held = "because they are bound by other APIBindings or CRDs: ";
    gist.extend(why.split_once(held).map(|(_, held)| format!("held: {held}")));
    gist
}

fn check(layout: Layout, locks: Value, others: &[Seen], expect: &[&str]) {
    assert_eq!(take(layout, locks.clone(), others), expect, "{layout:?} {locks}");
}

/// The lock write that gives hens to `mine`, with these other entries.
fn locked(others: &str) -> String {
    format!(r#"lock bindings {{{others}"hens.farm.test":{{"n":"mine","u":"u-mine"}}}}"#)
}

fn other() -> Seen {
    binding("other", json!({}))
}

/// A binding that has hens bound.
fn owner(name: &str, created: &str) -> Seen {
    binding(name, has_bound(&["hens"])).but(json!({"metadata": {"creationTimestamp": created}}))
}

const HELD_BY_OTHER: &str = r#"held: hens.farm.test (APIBinding "other")"#;
const HELD_BY_CRD: &str = "held: hens.farm.test (CustomResourceDefinition)";

#[test]
fn what_nobody_holds_is_taken_and_other_entries_stay() {
    check(Split, json!({}), &[], &[&locked("")]);
    let locks = json!({"bindings": {"goats.farm.test": {"n": "other"}, "ants.x": {"c": true, "e": NOW}}});
    let stay = r#""ants.x":{"c":true,"e":"2026-06-01T12:00:00Z"},"goats.farm.test":{"n":"other"},"#;
    check(Split, locks, &[other()], &[&locked(stay)]);
    check(Single, json!({"legacy": {}}), &[], &[r#"lock legacy forced {"hens.farm.test":{"n":"mine"}}"#]);
}

#[test]
fn what_another_holds_is_skipped() {
    let lock = json!({HENS: {"n": "other"}});
    for layer in ["bindings", "pending", "legacy"] {
        check(Split, json!({layer: lock}), &[other()], &[HELD_BY_OTHER]);
    }
    check(Single, json!({"legacy": lock}), &[other()], &[HELD_BY_OTHER]);
    for layer in ["crds", "bindings", "pending", "legacy"] {
        check(Split, json!({layer: {HENS: {"c": true}}}), &[], &[HELD_BY_CRD]);
    }
    check(Single, json!({"legacy": {HENS: {"c": true}}}), &[], &[HELD_BY_CRD]);
}

#[test]
fn crds_come_before_bindings_before_pending_before_legacy_before_what_is_bound() {
    let layers = ["crds", "bindings", "pending", "legacy"];
    for top in 0..layers.len() {
        let mut locks = json!({});
        layers[top..].iter().for_each(|layer| locks[layer] = json!({HENS: {"n": layer}}));
        let neighbours: Vec<Seen> = layers.iter().map(|name| binding(name, json!({}))).collect();
        let expect = format!(r#"held: hens.farm.test (APIBinding "{}")"#, layers[top]);
        check(Split, locks, &[&neighbours[..], &[owner("owner", NOW)]].concat(), &[&expect]);
    }
}

#[test]
fn the_single_layout_reads_the_legacy_annotation_only() {
    let taken = json!({HENS: {"n": "other"}});
    let locks = json!({"crds": taken, "bindings": taken, "pending": "[", "legacy": {}});
    check(Single, locks, &[other()], &[r#"lock legacy forced {"hens.farm.test":{"n":"mine"}}"#]);
}

#[test]
fn missing_empty_and_null_annotations_are_empty_maps_in_the_split_layout() {
    for none in [json!({}), json!({"crds": "", "bindings": "", "pending": "", "legacy": ""})] {
        check(Split, none, &[], &[&locked("")]);
    }
    let null = json!({"crds": "null", "bindings": "null", "pending": "null", "legacy": "null"});
    check(Split, null, &[], &[&locked("")]);
}

#[test]
fn in_the_single_layout_a_missing_annotation_is_a_verdict_and_null_is_an_empty_map() {
    let play = |locks: Value| {
        let mut objects = farm(&["hens"]);
        objects.extend([binding("mine", json!({})), home(locks)]);
        play(Single, &objects, "mine")
    };
    for missing in [json!({}), json!({"legacy": ""})] {
        let played = play(missing);
        assert_eq!(
            played.why(),
            "False NamingConflicts Error Unable to bind APIs: internal.apis.kcp.io/resource-bindings annotation not \
             found, migration has to happen first"
        );
        assert_eq!(played.log, ["commit", "forget"]);
    }
    assert_eq!(gist(play(json!({"legacy": "null"}))), [r#"lock legacy forced {"hens.farm.test":{"n":"mine"}}"#]);
}

#[test]
fn d25_of_several_unreadable_annotations_the_first_of_legacy_pending_crds_is_told_in_our_words() {
    let why = |layout, locks: Value| {
        let mut objects = farm(&["hens"]);
        objects.extend([binding("mine", json!({})), home(locks)]);
        let played = play(layout, &objects, "mine");
        assert_eq!(played.log, ["commit", "forget"], "a verdict (D19)");
        played.why()
    };
    let bad = |at: &str| json!({at: {"n": 7}}).to_string();
    let all = json!({"legacy": bad("l"), "pending": bad("p"), "bindings": bad("b"), "crds": bad("c")});
    let prefix = "False NamingConflicts Error Unable to bind APIs: failed to unmarshal ResourceBindings annotation: ";
    for (gone, first) in [("", "l"), ("legacy", "p"), ("pending", "c")] {
        let mut locks = all.clone();
        for layer in ["legacy", "pending"].into_iter().take_while(|_| !gone.is_empty()) {
            locks.as_object_mut().unwrap().remove(layer);
            if layer == gone {
                break;
            }
        }
        let why = why(Split, locks);
        assert!(why.starts_with(&format!("{prefix}at key {first}.n: ")), "{why}");
    }
    assert!(why(Single, json!({"legacy": bad("l"), "crds": "["})).starts_with(&format!("{prefix}at key l.n: ")));
}

#[test]
fn an_array_is_no_lock_so_its_annotation_is_unreadable() {
    for array in ["[]", r#"["other"]"#] {
        let mut objects = farm(&["hens"]);
        objects
            .extend([binding("mine", json!({})), home(json!({"legacy": format!(r#"{{"hens.farm.test":{array}}}"#)}))]);
        let why = play(Split, &objects, "mine").why();
        assert!(why.contains("failed to unmarshal ResourceBindings annotation: at key hens.farm.test: "), "{why}");
    }
}

#[test]
fn d7_an_entry_with_neither_name_nor_crd_flag_holds_nothing() {
    for nobody in [json!({}), json!(null), json!({"e": NOW}), json!({"u": "x"}), json!({"n": ""}), json!({"c": false})]
    {
        for layer in ["crds", "bindings", "pending", "legacy"] {
            // As text: merging would take the null out.
            let text = json!({layer: format!(r#"{{"hens.farm.test":{nobody}}}"#)});
            check(Split, text, &[], &[&locked("")]);
        }
        let text = json!({"legacy": format!(r#"{{"hens.farm.test":{nobody}}}"#)});
        check(Single, text, &[], &[r#"lock legacy forced {"hens.farm.test":{"n":"mine"}}"#]);
    }
}

#[test]
fn d7_a_crd_flag_beside_the_own_name_holds() {
    check(Split, json!({"bindings": {HENS: {"n": "mine", "c": true}}}), &[], &[HELD_BY_CRD]);
    check(Single, json!({"legacy": {HENS: {"n": "mine", "c": true}}}), &[], &[HELD_BY_CRD]);
}

#[test]
fn the_annotation_is_written_if_something_is_free_and_its_bytes_differ() {
    let right = r#"{"hens.farm.test":{"n":"mine","u":"u-mine"}}"#;
    check(Split, json!({"bindings": right}), &[], &[]);
    for wrong in [r#"{"hens.farm.test":{"u":"u-mine","n":"mine"}}"#, r#" {"hens.farm.test":{"n":"mine","u":"u-mine"}}"#]
    {
        check(Split, json!({"bindings": wrong}), &[], &[&locked("")]);
    }
    check(Split, json!({"bindings": r#"{ "hens.farm.test": {"n": "other"}}"#}), &[other()], &[HELD_BY_OTHER]);
    check(Single, json!({"legacy": r#"{"hens.farm.test":{"n":"mine"}}"#}), &[], &[]);
    let spaced = json!({"legacy": r#"{"hens.farm.test": {"n":"mine"}}"#});
    check(Single, spaced, &[], &[r#"lock legacy forced {"hens.farm.test":{"n":"mine"}}"#]);
}

#[test]
fn an_entry_carries_the_uid_of_its_binding_if_it_has_one() {
    let anonymous = binding("mine", json!({"metadata": {"uid": null}}));
    let lock = r#"lock bindings {"hens.farm.test":{"n":"mine"}}"#;
    assert_eq!(take(Split, json!({}), &[anonymous]), [lock]);
}

#[test]
fn what_stands_below_in_the_own_name_is_written_into_locks_bindings() {
    for layer in ["pending", "legacy"] {
        check(Split, json!({layer: {HENS: {"n": "mine"}}}), &[], &[&locked("")]);
    }
}

// CRD locks: over, and not over.

#[test]
fn d24_a_crd_lock_is_over_strictly_after_75_seconds() {
    for (layout, layer) in [(Split, "crds"), (Split, "bindings"), (Split, "pending"), (Single, "legacy")] {
        let held = take(layout, json!({layer: {HENS: {"c": true, "e": at(-75)}}}), &[]);
        assert_eq!(held, [&format!("after {NOW}"), HELD_BY_CRD], "{layer}");
        let over = take(layout, json!({layer: {HENS: {"c": true, "e": "2026-06-01T11:58:44.999Z"}}}), &[]);
        assert_eq!(over[0], "read crd hens.farm.test", "{layer}");
        assert!(over[1].starts_with("lock "), "{over:?}");
    }
}

#[test]
fn d24_the_server_is_asked_for_the_crd_before_its_lock_is_taken_over() {
    let take = |answer: fn() -> Option<Outcome>| {
        take_with(Split, json!({"pending": {HENS: over()}}), &[], |line| {
            (line == "read crd hens.farm.test").then(answer).flatten()
        })
    };
    let read = "read crd hens.farm.test";
    assert_eq!(take(|| Some(refused("NotFound", json!({})))), [read, &locked("")]);
    assert_eq!(take(|| Some(Outcome::done(own_crd("hens", json!({})).object()))), [read, HELD_BY_CRD]);
    for unknown in [|| Some(Outcome::NoAnswer("lost".into())), || Some(refused("Forbidden", json!({})))] {
        assert_eq!(take(unknown), [read, "backoff", HELD_BY_CRD]);
    }
}

#[test]
fn d24_in_the_single_layout_too() {
    let expect = ["read crd hens.farm.test", r#"lock legacy forced {"hens.farm.test":{"n":"mine"}}"#];
    check(Single, json!({"legacy": {HENS: over()}}), &[], &expect);
}

#[test]
fn nothing_is_asked_where_the_own_entry_stands_as_it_would_be_written() {
    let own = json!({HENS: {"n": "mine", "u": "u-mine"}});
    check(Split, json!({"crds": {HENS: over()}, "bindings": own}), &[], &[]);
}

#[test]
fn a_crd_lock_is_never_over_while_its_crd_is_there_or_without_expiry() {
    let expired = json!({"crds": {HENS: over()}});
    let names =
        json!({"spec": {"names": {"singular": "x", "kind": "X", "listKind": "Y"}}, "status": {"acceptedNames": null}});
    check(Split, expired, &[own_crd("hens", names)], &[HELD_BY_CRD]);
    check(Split, json!({"crds": {HENS: {"c": true}}}), &[], &[HELD_BY_CRD]);
    check(Split, json!({"bindings": {HENS: {"n": "other", "e": at(-3600)}}}), &[other()], &[HELD_BY_OTHER]);
}

#[test]
fn d15_the_crd_of_a_lock_is_told_by_group_and_plural() {
    let core = |name: &str, plural: &str| {
        let core = json!({"spec": {"group": ""}});
        let mut objects = vec![
            export(
                &["pods"],
                json!({"spec": {"resources": [{"name": "pods", "group": "", "schema": "v1.pods.farm.test"}]}}),
            ),
            schema("pods", core.clone()),
            bound_crd("pods", core.clone()),
            binding("mine", json!({})),
            home(json!({"crds": {"pods": over()}})),
        ];
        objects.push(own_crd(plural, core).but(json!({"metadata": {"name": name}, "status": null})));
        gist(play(Split, &objects, "mine"))
    };
    assert_eq!(core("whatever", "pods"), ["held: pods (CustomResourceDefinition)"]);
    let taken = ["read crd pods.core", r#"lock bindings {"pods":{"n":"mine","u":"u-mine"}}"#];
    assert_eq!(core("pods", "bats"), taken, "by group and plural, not by name");
}

#[test]
fn d19_a_crd_lock_that_is_not_over_is_looked_at_just_after_the_earliest_one_is() {
    let objects = |locks: Value, more: Vec<Seen>| {
        let mut objects = farm(&["hens", "ducks", "goats"]);
        objects.extend([binding("mine", json!({})), home(locks)]);
        [objects, more].concat()
    };
    let locks = json!({"crds": {
        HENS: {"c": true, "e": at(100)}, "ducks.farm.test": {"c": true, "e": at(50)}, "goats.farm.test": {"c": true},
    }});
    assert_eq!(play(Split, &objects(locks.clone(), vec![]), "mine").log, ["commit", &format!("after {}", at(125))]);
    let ducks = own_crd("ducks", unjudged());
    let played = play(Split, &objects(locks, vec![ducks]), "mine");
    assert_eq!(played.log, ["commit", &format!("after {}", at(175))], "the CRD of the other one is there");
}

#[test]
fn d26_a_lock_that_is_over_holds_nothing_and_the_next_decides() {
    let crds = json!({HENS: over()});
    let bindings = json!({HENS: {"n": "other"}});
    check(Split, json!({"crds": crds, "bindings": bindings}), &[other()], &[HELD_BY_OTHER]);
    let pending = json!({HENS: {"c": true, "e": at(0)}});
    let expect = [&*format!("after {}", at(75)), HELD_BY_CRD];
    check(Split, json!({"crds": crds, "pending": pending}), &[], &expect);
    for layout in [Split, Single] {
        let layer = if layout == Split { "crds" } else { "legacy" };
        let held = take(layout, json!({layer: crds}), &[owner("other", NOW)]);
        assert_eq!(held, [HELD_BY_OTHER], "{layout:?}: bound is a lock");
    }
    let both_over = json!({"crds": crds, "pending": {HENS: over()}});
    check(Split, both_over, &[], &["read crd hens.farm.test", &locked("")]);
    let below = json!({"crds": crds, "legacy": {HENS: {"n": "mine"}}});
    check(Split, below, &[], &["read crd hens.farm.test", &locked("")]);
}

// What is bound is locked.

#[test]
fn d18_a_bound_resource_whose_lock_is_missing_is_held_by_its_binding() {
    for (layout, locks) in [(Split, json!({})), (Single, json!({"legacy": {}}))] {
        check(layout, locks.clone(), &[owner("other", NOW)], &[HELD_BY_OTHER]);
        let older = [owner("zebra", &at(-1)), owner("ape", NOW)];
        check(layout, locks.clone(), &older, &[r#"held: hens.farm.test (APIBinding "zebra")"#]);
        let equal = [owner("zebra", NOW), owner("ape", NOW)];
        check(layout, locks, &equal, &[r#"held: hens.farm.test (APIBinding "ape")"#]);
    }
}

#[test]
fn d18_what_the_binding_itself_has_bound_it_takes_again() {
    check(Split, json!({}), &[binding("mine", has_bound(&["hens"]))], &[&locked("")]);
}

#[test]
fn d18_an_unreadable_locks_bindings_is_written_anew_with_what_is_bound() {
    let goats = binding("other", has_bound(&["goats"]));
    check(Split, json!({"bindings": "what?"}), &[goats], &[&locked(r#""goats.farm.test":{"n":"other"},"#)]);
    check(Split, json!({"bindings": "what?"}), &[owner("other", NOW)], &[HELD_BY_OTHER]);
    let own = [binding("mine", has_bound(&["hens"]))];
    let left_alone = r#"lock bindings {"hens.farm.test":{"n":"mine"}}"#;
    assert_eq!(take(Split, json!({"bindings": "what?"}), &own), [left_alone]);
}

// Entries in the binding's own name.

#[test]
fn d7_an_own_entry_without_uid_is_rewritten_once_the_server_knows_this_very_binding() {
    let entry = json!({"bindings": {HENS: {"n": "mine"}}});
    check(Split, entry, &[], &["read binding mine", &locked("")]);
    let other_uid = json!({"bindings": {HENS: {"n": "mine", "u": "u-old"}}});
    check(Split, other_uid, &[], &["read binding mine", &locked("")]);
    let expiry = json!({"bindings": {HENS: {"n": "mine", "u": "u-mine", "e": NOW}}});
    check(Split, expiry, &[], &["read binding mine", &locked("")]);
}

#[test]
fn d7_an_own_entry_that_cannot_be_vouched_for_holds_against_its_binding() {
    let entry = || json!({"bindings": {HENS: {"n": "mine", "u": "u-old"}}});
    let held = r#"held: hens.farm.test (APIBinding "mine")"#;
    let answered =
        |answer: fn() -> Outcome| take_with(Split, entry(), &[], |line| line.starts_with("read").then(answer));
    assert_eq!(answered(|| refused("NotFound", json!({}))), ["read binding mine", held]);
    let newer = || Outcome::done(binding("mine", json!({"metadata": {"uid": "u-new"}})).object());
    assert_eq!(answered(newer), ["read binding mine", held]);
    assert_eq!(answered(|| Outcome::NoAnswer(String::new())), ["read binding mine", "backoff", held]);
}

#[test]
fn d7_an_entry_as_others_wrote_it_is_left_alone_where_the_resource_is_bound() {
    let owner = [binding("mine", has_bound(&["hens"]))];
    check(Split, json!({"bindings": r#"{"hens.farm.test":{"n":"mine"}}"#}), &owner, &[]);
    for more in [json!({"u": "u-old"}), json!({"e": NOW})] {
        let mut lock = json!({"n": "mine"});
        merge(&mut lock, more);
        check(Split, json!({"bindings": {HENS: lock}}), &owner, &["read binding mine", &locked("")]);
    }
}

#[test]
fn in_the_single_layout_an_own_entry_is_just_the_name_and_nobody_is_asked() {
    for more in [json!({"u": "x"}), json!({"e": NOW})] {
        let mut lock = json!({"n": "mine"});
        merge(&mut lock, more);
        let expect = [r#"lock legacy forced {"hens.farm.test":{"n":"mine"}}"#];
        check(Single, json!({"legacy": {HENS: lock}}), &[], &expect);
    }
}

// Doubtful and dead entries of others.

#[test]
fn d7_an_entry_of_a_binding_that_the_server_does_not_have_is_removed_in_the_same_write() {
    let locks = json!({"bindings": {"goats.farm.test": {"n": "ghost"}, HENS: {"n": "mine", "u": "u-mine"}}});
    check(Split, locks, &[], &["read binding ghost", &locked("")]);
    let wanted = json!({"bindings": {HENS: {"n": "ghost"}}});
    check(Split, wanted, &[], &["read binding ghost", &locked("")]);
}

#[test]
fn d7_an_entry_with_the_uid_of_a_predecessor_is_removed() {
    let locks = json!({"bindings": {HENS: {"n": "other", "u": "u-old"}}});
    check(Split, locks, &[other()], &["read binding other", &locked("")]);
    let right = json!({"bindings": {HENS: {"n": "other", "u": "u-other"}}});
    check(Split, right, &[other()], &[HELD_BY_OTHER]);
}

#[test]
fn d7_a_doubtful_entry_that_the_server_vouches_for_stays() {
    let held = r#"held: hens.farm.test (APIBinding "ghost")"#;
    for uid in ["", "u-ghost"] {
        let locks = json!({"bindings": {HENS: {"n": "ghost", "u": uid}}});
        let there = || Some(Outcome::done(binding("ghost", json!({})).object()));
        let found = take_with(Split, locks.clone(), &[], |line| line.starts_with("read").then(there).flatten());
        assert_eq!(found, ["read binding ghost", held]);
        let unknown =
            take_with(Split, locks, &[], |line| line.starts_with("read").then(|| Outcome::NoAnswer("".into())));
        assert_eq!(unknown, ["read binding ghost", "backoff", held], "no answer counts as there");
    }
    let locks = json!({"bindings": {HENS: {"n": "ghost", "u": "u-old"}}});
    let there = |line: &str| line.starts_with("read").then(|| Outcome::done(binding("ghost", json!({})).object()));
    assert_eq!(take_with(Split, locks, &[], there), ["read binding ghost", &locked("")], "it has another uid");
}

#[test]
fn locks_of_crds_and_other_annotations_are_never_doubtful() {
    let locks = json!({
        "bindings": r#"{"goats.farm.test":{"c":true,"u":"x","n":"ghost"},"hens.farm.test":{"n":"mine","u":"u-mine"}}"#,
        "crds": {"a.b": {"n": "ghost"}}, "pending": {"a.b": {"n": "ghost"}}, "legacy": {"a.b": {"n": "ghost"}},
    });
    let gist = take(Split, locks, &[]);
    assert!(gist.iter().all(|line| !line.starts_with("read")), "{gist:?}");
}

#[test]
fn d7_a_dead_legacy_entry_of_a_wanted_resource_counts_as_absent() {
    let ghost = json!({HENS: {"n": "ghost"}});
    check(Split, json!({"legacy": ghost}), &[], &["read binding ghost", &locked("")]);
    check(
        Split,
        json!({"legacy": {HENS: {"n": "other", "u": "u-old"}}}),
        &[other()],
        &["read binding other", &locked("")],
    );
    check(Split, json!({"legacy": {"goats.farm.test": {"n": "ghost"}}}), &[], &[&locked("")]);
    let above = json!({"legacy": ghost, "pending": {HENS: {"n": "other"}}});
    check(Split, above, &[other()], &[HELD_BY_OTHER]);
    let bound_below = ["read binding ghost", HELD_BY_OTHER];
    check(Split, json!({"legacy": ghost}), &[owner("other", NOW)], &bound_below);
    check(Single, json!({"legacy": ghost}), &[], &[r#"held: hens.farm.test (APIBinding "ghost")"#]);
}

#[test]
fn bindings_are_asked_for_by_name_before_crds_in_the_order_of_the_export() {
    let mut objects = farm(&["hens", "ducks"]);
    objects.push(binding("mine", json!({})));
    objects.push(home(json!({
        "crds": {"ducks.farm.test": over(), HENS: over()},
        "bindings": {"a.x": {"n": "zed"}, "b.x": {"n": "ann"}, "c.x": {"n": "ann"}},
    })));
    let reads = ["read binding ann", "read binding zed", "read crd hens.farm.test", "read crd ducks.farm.test"];
    let log = gist(play(Split, &objects, "mine"));
    assert_eq!(log[..4], reads);
    let both =
        r#"lock bindings {"ducks.farm.test":{"n":"mine","u":"u-mine"},"hens.farm.test":{"n":"mine","u":"u-mine"}}"#;
    assert_eq!(log[4..], [both]);
}

// The LogicalCluster.

#[test]
fn d6_a_logical_cluster_without_resource_version_counts_as_not_found() {
    let locked = |layout, home: Option<Seen>| {
        let mut objects = farm(&["hens"]);
        objects.push(binding("mine", json!({})));
        objects.extend(home);
        let played = play(layout, &objects, "mine");
        assert_eq!(played.log, ["commit", "forget"]);
        played.why()
    };
    let expect =
        "False LogicalClusterNotFound Error Unable to bind APIs: logicalcluster.core.kcp.io \"cluster\" not found";
    for layout in [Split, Single] {
        assert_eq!(locked(layout, None), expect);
        let without = home(json!({"legacy": {}})).but(json!({"metadata": {"resourceVersion": null}}));
        assert_eq!(locked(layout, Some(without)), expect);
    }
}

#[test]
fn d6_a_lock_is_written_on_the_version_that_was_read_and_with_nothing_else() {
    let objects = [&farm(&["hens"])[..], &[binding("mine", json!({})), home(json!({"legacy": {}}))]].concat();
    for (layout, layer, manager, text) in [
        (Split, "bindings", "kcp-apibinding", r#"{"hens.farm.test":{"n":"mine","u":"u-mine"}}"#),
        (Single, "legacy", "apibinding-reconciler-locks", r#"{"hens.farm.test":{"n":"mine"}}"#),
    ] {
        let crate::api::Object::ApiBinding(mine) = binding("mine", json!({})).object() else { panic!() };
        let (_, effects) = crate::reconcile(&world(layout, &objects), &mine);
        let crate::effect::Effect::PatchLogicalCluster(patch) = &effects[0] else { panic!("{effects:?}") };
        let body = json!({
            "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
            "metadata": {"name": "cluster", "resourceVersion": "7", "annotations": {annotation(layer): text}},
        });
        assert_eq!(patch.body.to_value(), body);
        let which = (&*patch.cluster.to_string(), &*patch.name, &*patch.resource_version, &*patch.field_manager);
        assert_eq!(which, ("meadow", "cluster", "7", manager));
        assert_eq!((patch.force, patch.subresource.is_empty()), (layout == Single, true));
    }
}

// Releasing.

/// What the key of a binding that does not exist does.
fn release(layout: Layout, locks: Value, others: &[Seen]) -> Vec<String> {
    let objects = [&[home(locks)], others].concat();
    play(layout, &objects, "gone").log
}

#[test]
fn d7_the_key_of_a_binding_that_is_gone_removes_dead_entries() {
    let locks = json!({"bindings": {
        "a.x": {"n": "gone"}, "b.x": {"n": "other"}, "c.x": {"n": "other", "u": "u-old"}, "d.x": {"c": true},
    }});
    let expect = ["read binding gone", "read binding other", r#"lock bindings {"b.x":{"n":"other"},"d.x":{"c":true}}"#];
    assert_eq!(release(Split, locks, &[other()]), [&expect[..], &["forget"]].concat());
}

#[test]
fn d7_nothing_is_released_where_there_is_nothing_dead() {
    assert_eq!(release(Split, json!({"bindings": {"a.x": {"n": "other"}}}), &[other()]), ["forget"]);
    assert_eq!(release(Split, json!({"bindings": r#" {"a.x": null}"#}), &[]), ["forget"], "however it is written");
    assert_eq!(release(Split, json!({"legacy": {"a.x": {"n": "gone"}}}), &[]), ["forget"]);
}

#[test]
fn d7_nothing_is_released_on_annotations_that_cannot_be_read_or_in_the_single_layout() {
    let dead = json!({"a.x": {"n": "gone"}});
    for layer in ["crds", "pending", "legacy"] {
        assert_eq!(release(Split, json!({"bindings": dead, layer: "?"}), &[]), ["forget"], "{layer}");
    }
    assert_eq!(release(Split, json!({"bindings": "?"}), &[]), ["forget"]);
    assert_eq!(release(Single, json!({"bindings": dead, "legacy": dead}), &[]), ["forget"]);
    assert_eq!(play(Split, &[], "gone").log, ["forget"], "no LogicalCluster");
    let crate::effect::Effect::ReadApiBinding(_) =
        &crate::release(&world(Split, &[home(json!({"bindings": dead}))]), &key("meadow|gone"))[0]
    else {
        panic!()
    };
}

#[test]
fn release_of_a_binding_that_exists_is_nothing() {
    let objects = [home(json!({"bindings": {"a.x": {"n": "ghost"}}})), other()];
    assert!(crate::release(&world(Split, &objects), &key("meadow|other")).is_empty());
}
