use serde_json::{Value, json};

use crate::effect::Outcome;
use crate::fixtures::*;
use crate::snapshot::Layout::{Single, Split};

/// `mine` and a home without locks for the annotation of either layout.
fn meadow(more: Value) -> Vec<Seen> {
    vec![binding("mine", more), home(json!({"legacy": {}}))]
}

fn check(objects: &[Seen], expect: &[&str]) -> Played {
    check_with(objects, expect, |_| None)
}

/// Plays `mine`: the log without lock and commit, then why it is not up to date.
fn check_with(objects: &[Seen], expect: &[&str], answer: impl Fn(&str) -> Option<Outcome>) -> Played {
    let played = play_with(world(Split, objects), objects, "mine", |line, _| answer(line));
    let mut gist = played.log.clone();
    gist.retain(|line| line != "commit" && !line.starts_with("lock"));
    gist.push(played.why());
    assert_eq!(gist, expect);
    played
}

const WAITS: &str = "False WaitingForEstablished Info Waiting for API(s) to be established: v1.hens.farm.test";

#[test]
fn everything_there_is_bound_at_once() {
    for layout in [Split, Single] {
        let played = play(layout, &[farm(&["hens"]), meadow(json!({}))].concat(), "mine");
        let all = ["Ready True", "APIExportValid True", "BindingUpToDate True", "InitialBindingCompleted True"];
        assert_eq!(played.conditions(), all);
        assert_eq!(played.status.phase.as_str(), "Bound");
        assert_eq!(json!(played.status.bound_resources), json!([bound("hens")]));
        assert_eq!(played.status.api_export_cluster_name.as_str(), "farm");
        assert_eq!(played.log.len(), 3, "lock, commit, forget");
        assert_eq!(&played.log[1..], ["commit", "forget"]);
    }
}

#[test]
fn a_bound_crd_that_is_absent_is_created_and_waited_for() {
    let objects = [vec![export(&["hens"], json!({})), schema("hens", json!({}))], meadow(json!({}))].concat();
    let played = check(&objects, &["create s-hens", "forget", WAITS]);
    assert!(played.bound().is_empty());
    assert_eq!(played.status.phase.as_str(), "Binding");
    assert!(played.snapshot.bound_crd("s-hens").is_some(), "what was observed is known");
}

#[test]
fn the_lock_comes_before_anything_is_created() {
    let objects = [vec![export(&["hens"], json!({})), schema("hens", json!({}))], meadow(json!({}))].concat();
    let log = play(Split, &objects, "mine").log;
    assert!(log[0].starts_with("lock") && log[1] == "create s-hens", "{log:?}");
}

#[test]
fn a_bound_crd_that_is_not_established_or_terminating_is_waited_for() {
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
    for conditions in [
        json!([]),
        json!([condition("Established", "False")]),
        json!([condition("Established", "Unknown")]),
        json!([condition("Established", "True"), condition("Terminating", "True")]),
    ] {
        let crd = bound_crd("hens", json!({"status": {"conditions": conditions}}));
        let objects = [farm(&["hens"]), vec![crd], meadow(json!({}))].concat();
        check(&objects, &["forget", WAITS]);
    }
    let established = json!([condition("Established", "True"), condition("Terminating", "False")]);
    let crd = bound_crd("hens", json!({"status": {"conditions": established}}));
    check(&[farm(&["hens"]), vec![crd], meadow(json!({}))].concat(), &["forget", "True"]);
}

#[test]
fn what_is_waited_for_is_listed_once_for_each_entry_and_sorted() {
    let schemas = ["hens", "ducks"].map(|plural| schema(plural, json!({})));
    let mut objects = [&[export(&["hens", "ducks", "hens"], json!({}))], &schemas[..], &meadow(json!({}))[..]].concat();
    let waits = "False WaitingForEstablished Info Waiting for API(s) to be established: \
                 v1.ducks.farm.test, v1.hens.farm.test, v1.hens.farm.test";
    check(&objects, &["create s-hens", "create s-ducks", "forget", waits]);
    objects.extend(["hens", "ducks"].map(|plural| bound_crd(plural, json!({}))));
    let played = check(&objects, &["forget", "True"]);
    assert_eq!(played.bound(), ["hens", "ducks"], "one entry for each resource");
}

#[test]
fn storage_versions_are_the_sorted_union_with_the_previous_ones() {
    let before = json!({"boundResources": [bound("goats"), bound("hens")]});
    let mut objects = [farm(&["hens"]), meadow(json!({"status": before}))].concat();
    objects.push(bound_crd("hens", json!({"status": {"storedVersions": ["v3", "v2", "v3"]}})));
    let played = check(&objects, &["forget", "True"]);
    assert_eq!(played.bound(), ["goats", "hens"], "replaced where it stood, and nothing is removed");
    assert_eq!(json!(played.status.bound_resources[1].storage_versions), json!(["v1", "v2", "v3"]));
}

#[test]
fn storage_elsewhere_has_no_storage_versions() {
    let r#virtual = json!({"virtual": {"reference": {"kind": "Barn", "name": "b"}, "identityHash": "x"}});
    for storage in [r#virtual, json!({})] {
        let resource = json!({"name": "hens", "group": "farm.test", "schema": "v1.hens.farm.test", "storage": storage});
        let mut objects = [farm(&["hens"]), meadow(json!({"status": {"boundResources": [bound("hens")]}}))].concat();
        objects.push(export(&[], json!({"spec": {"resources": [resource]}})));
        let played = check(&objects, &["forget", "True"]);
        assert!(played.status.bound_resources[0].storage_versions.is_empty());
    }
}

#[test]
fn a_changed_identity_and_a_new_schema_uid_are_taken_over_and_the_entrys_further_fields_go_with_it() {
    let mut old = bound("hens");
    merge(&mut old, json!({"schema": {"UID": "s-old", "identityHash": "id-old"}, "further": 1}));
    let objects =
        [farm(&["hens"]), meadow(json!({"status": {"boundResources": [old], "further": {"a": []}}}))].concat();
    let played = check(&objects, &["forget", "True"]);
    assert_eq!(json!(played.status.bound_resources), json!([bound("hens")]));
    assert_eq!(played.status.extra.get("further"), Some(&json!({"a": []})), "of the status itself they stay");
}

#[test]
fn d1_ones_own_bound_crd_that_is_missing_is_created_again() {
    let mut objects = vec![export(&["hens"], json!({})), schema("hens", json!({}))];
    objects.extend(meadow(has_bound(&["hens", "goats"])));
    let played = check(&objects, &["create s-hens", "forget", WAITS]);
    assert_eq!(played.bound(), ["hens", "goats"]);
}

#[test]
fn several_versions_without_conversion_stop_and_say_that_the_export_is_invalid() {
    let version = |name: &str| json!({"name": name, "served": true, "storage": name == "v1", "schema": {}});
    let several = json!({"spec": {"versions": [version("v1"), version("v2")]}});
    for crd in [vec![], vec![bound_crd("hens", json!({}))]] {
        let mut objects = vec![export(&["hens", "ducks"], json!({})), schema("hens", several.clone())];
        objects.extend([schema("ducks", json!({})), bound_crd("ducks", json!({}))]);
        objects.extend(meadow(json!({})));
        objects.extend(crd);
        let played = check(&objects, &["forget", ""]);
        let owner = "False InternalError Error Invalid APIExport. Please contact the APIExport owner to resolve";
        assert_eq!(played.condition("APIExportValid"), format!("APIExportValid {owner}"));
        assert!(played.bound().is_empty(), "it stops");
    }
}

#[test]
fn a_crd_that_cannot_be_made_says_that_the_export_is_invalid_only_where_it_is_absent() {
    let wrong = json!({"spec": {"versions": [{"name": "v1", "schema": {"type": 5}}]}});
    let mut objects = vec![export(&["hens"], json!({})), schema("hens", wrong)];
    objects.extend(meadow(json!({})));
    let played = check(&objects, &["forget", ""]);
    let owner = "False InternalError Error Invalid APIExport. Please contact the APIExport owner to resolve";
    assert_eq!(played.condition("APIExportValid"), format!("APIExportValid {owner}"));
    objects.push(bound_crd("hens", json!({})));
    check(&objects, &["forget", "True"]);
}

/// Hens that are absent, ducks after them that are there; what the creation of hens gets.
fn create(outcome: fn() -> Outcome, expect: &[&str]) -> Played {
    let mut objects = farm(&["ducks"]);
    objects.extend([export(&["hens", "ducks"], json!({})), schema("hens", json!({}))]);
    objects.extend(meadow(json!({})));
    check_with(&objects, expect, |line| line.starts_with("create").then(outcome))
}

#[test]
fn d17_an_invalid_schema_is_told_by_its_causes() {
    let prefix = "False APIResourceSchemaInvalid Error APIResourceSchema farm|v1.hens.farm.test is invalid: ";
    let causes = || {
        let causes = json!([{"field": "spec.a", "message": "bad", "reason": "x"}, {"message": "worse"}, {"field": "", "message": ""}]);
        refused("Invalid", json!({"details": {"causes": causes}}))
    };
    let played = create(causes, &["create s-hens", "forget", &format!("{prefix}spec.a: bad; worse; ")]);
    assert!(played.bound().is_empty(), "it stops");
    assert_eq!(played.condition("Ready"), "Ready ".to_owned() + &played.why());
    let no_causes = || refused("Invalid", json!({"message": "as it is"}));
    create(no_causes, &["create s-hens", "forget", &format!("{prefix}as it is")]);
}

#[test]
fn d5_already_exists_is_success() {
    let exists = || refused("AlreadyExists", json!({}));
    let played = create(exists, &["create s-hens", "forget", WAITS]);
    assert_eq!(played.bound(), ["ducks"], "it goes on");
}

#[test]
fn any_other_failure_to_create_is_an_internal_error_that_is_retried() {
    let internal = "False InternalError Error An internal error prevented the APIBinding process from completing. \
                    Please contact your system administrator for assistance";
    for failed in [|| refused("Forbidden", json!({})), || Outcome::NoAnswer("lost".into())] {
        create(failed, &["create s-hens", "backoff", internal]);
    }
}

#[test]
fn d17_what_is_held_by_others_is_listed_by_group_then_resource() {
    let group = |plural: &str, group: &str| {
        let version = json!([{"name": "v1", "storage": true, "schema": {}}]);
        let spec = json!({"group": group, "names": names(plural), "versions": version});
        (
            json!({"name": plural, "group": group, "schema": plural}),
            schema(plural, json!({"metadata": {"name": plural}, "spec": spec})),
        )
    };
    let resources =
        [group("hens", "zoo.test"), group("ducks", "farm.test"), group("ants", ""), group("bats", "zoo.test")];
    let mut objects: Vec<Seen> = resources.iter().map(|(_, schema)| schema.clone()).collect();
    let exported: Vec<&Value> = resources.iter().map(|(resource, _)| resource).collect();
    objects.push(export(&[], json!({"spec": {"resources": exported}})));
    objects.extend([binding("mine", json!({})), binding("other", json!({}))]);
    objects.push(home(json!({
        "crds": {"ducks.farm.test": {"c": true}},
        "pending": {"ants": {"n": "other"}, "hens.zoo.test": {"n": "other"}, "bats.zoo.test": {"n": "other", "c": true}},
    })));
    let held = r#"False NamingConflicts Error Unable to bind APIs because they are bound by other APIBindings or CRDs: ants (APIBinding "other"), ducks.farm.test (CustomResourceDefinition), bats.zoo.test (CustomResourceDefinition), hens.zoo.test (APIBinding "other")"#;
    check(&objects, &["forget", held]);
}

#[test]
fn waiting_hides_what_was_skipped() {
    let objects = [
        vec![export(&["hens", "ducks"], json!({})), schema("hens", json!({})), schema("ducks", json!({}))],
        vec![binding("mine", json!({})), home(json!({"crds": {"ducks.farm.test": {"c": true}}}))],
    ];
    check(&objects.concat(), &["create s-hens", "forget", WAITS]);
}

#[test]
fn the_first_conflict_stops_the_resources_after_it_and_keeps_those_before() {
    let mut objects = farm(&["ants", "hens", "ducks"]);
    objects.extend(meadow(json!({})));
    objects.push(own_crd("hens", json!({})));
    let conflict = "False NamingConflicts Error Unable to bind APIs: naming conflict with \
                    CustomResourceDefinition \"hens.farm.test\": spec.names.plural=hens is forbidden";
    let played = check(&objects, &["forget", conflict]);
    assert_eq!(played.bound(), ["ants"]);
}

#[test]
fn d10_a_naming_conflict_is_summarised() {
    let mut objects = farm(&["hens"]);
    objects.extend(meadow(json!({})));
    objects.push(own_crd("hens", json!({})));
    let conflict = "False NamingConflicts Error Unable to bind APIs: naming conflict with \
                    CustomResourceDefinition \"hens.farm.test\": spec.names.plural=hens is forbidden";
    assert_eq!(check(&objects, &["forget", conflict]).condition("Ready"), format!("Ready {conflict}"));
}

#[test]
fn what_the_export_dropped_stays_bound() {
    let objects = [farm(&["hens"]), meadow(has_bound(&["goats"]))].concat();
    assert_eq!(check(&objects, &["forget", "True"]).bound(), ["goats", "hens"]);
}

#[test]
fn d16_an_absent_initial_binding_completed_is_set() {
    let objects = [farm(&["hens"]), meadow(json!({"status": {"phase": "Bound"}}))].concat();
    let played = check(&objects, &["forget", "True"]);
    assert_eq!(played.condition("InitialBindingCompleted"), "InitialBindingCompleted True");
    let objects = [vec![export(&["hens"], json!({})), schema("hens", json!({}))], meadow(json!({}))].concat();
    let played = check(&objects, &["create s-hens", "forget", WAITS]);
    assert_eq!(played.condition("InitialBindingCompleted"), format!("InitialBindingCompleted {WAITS}"));
}

#[test]
fn once_true_initial_binding_completed_never_goes_back() {
    let done =
        json!({"type": "InitialBindingCompleted", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"});
    let before = json!({"status": {"phase": "Bound", "conditions": [done]}});
    let objects = [vec![export(&["hens"], json!({})), schema("hens", json!({}))], meadow(before)].concat();
    let played = check(&objects, &["create s-hens", "forget", WAITS]);
    assert_eq!(played.condition("InitialBindingCompleted"), "InitialBindingCompleted True");
    assert_eq!(played.condition("Ready"), "Ready True");
    assert_eq!(played.status.phase.as_str(), "Bound", "nor does the phase");
}

#[test]
fn an_export_without_resources_is_bound_without_a_lock() {
    let objects = [vec![export(&[], json!({}))], meadow(json!({}))].concat();
    assert_eq!(play(Split, &objects, "mine").log, ["commit", "forget"]);
}

#[test]
fn a_binding_that_is_being_deleted_is_still_bound() {
    let deleted = json!({"metadata": {"deletionTimestamp": NOW, "finalizers": ["apis.kcp.io/apibinding-finalizer"]}});
    assert_eq!(check(&[farm(&["hens"]), meadow(deleted)].concat(), &["forget", "True"]).bound(), ["hens"]);
}
