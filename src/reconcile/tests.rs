use serde_json::{Value, json};

use crate::api::{ApiBinding, Object};
use crate::effect::Effect;
use crate::fixtures::*;
use crate::snapshot::Layout::{Single, Split};

fn read(seen: &Seen) -> ApiBinding {
    let Object::ApiBinding(binding) = seen.object() else { panic!() };
    binding
}

fn lines(effects: &[Effect]) -> Vec<String> {
    effects.iter().map(line).collect()
}

#[test]
fn a_binding_without_phase_begins_and_comes_back_at_once_without_a_summary() {
    let waiting = "InitialBindingCompleted False WaitingForEstablished Info Waiting for API(s) to be established";
    let ready = json!([{"type": "Ready", "status": "True"}]);
    for (before, expect) in
        [(json!(null), vec![waiting]), (json!({"phase": "", "conditions": ready}), vec!["Ready True", waiting])]
    {
        for layout in [Split, Single] {
            let new = binding("mine", json!({"status": null})).but(json!({"status": before}));
            let played = play(layout, &[farm(&["hens"]), vec![new, home(json!({}))]].concat(), "mine");
            assert_eq!(played.log, ["commit", "now"]);
            assert_eq!(played.conditions(), expect);
            assert_eq!(played.status.phase.as_str(), "Binding");
        }
    }
}

#[test]
fn an_unknown_phase_is_left_alone_but_for_the_summary() {
    let initial = json!([{"type": "InitialBindingCompleted", "status": "True"}]);
    let seen = binding("mine", json!({"status": {"phase": "Dancing", "conditions": initial}}));
    let played = play(Split, &[farm(&["hens"]), vec![seen, home(json!({}))]].concat(), "mine");
    assert_eq!(played.log, ["commit", "forget"]);
    assert_eq!(played.conditions(), ["Ready True", "InitialBindingCompleted True"]);
    assert_eq!(played.status.phase.as_str(), "Dancing");
}

#[test]
fn bound_is_bound_again_when_its_export_grows() {
    let mut objects = farm(&["hens", "ducks"]);
    objects.extend([binding("mine", has_bound(&["hens"])), home(json!({}))]);
    assert_eq!(play(Split, &objects, "mine").bound(), ["hens", "ducks"]);
}

#[test]
fn a_plan_is_complete_and_in_order_reads_lock_creations_commit_and_a_later_look() {
    let locks = json!({"bindings": {"a.x": {"n": "ghost"}}, "crds": {"ducks.farm.test": {"c": true, "e": NOW}}});
    let claim = json!({"group": "farm.test", "resource": "goats", "identityHash": "id-farm", "state": "Accepted"});
    let objects =
        [export(&["hens", "ducks"], json!({})), schema("hens", json!({})), schema("ducks", json!({})), home(locks)];
    let mine = read(&binding("mine", json!({"spec": {"permissionClaims": [claim]}})));
    let (after, effects) = crate::reconcile(&world(Split, &objects), &mine);
    let expect = [
        "read binding ghost",
        r#"lock bindings {"hens.farm.test":{"n":"mine","u":"u-mine"}}"#,
        "create s-hens",
        "commit",
        &format!("after {}", at(75)),
    ];
    assert_eq!(lines(&effects), expect);
    assert_eq!((&after.metadata, &after.spec), (&mine.metadata, &mine.spec), "metadata and spec never change");
    let waits = after.status.condition("BindingUpToDate").map(show).unwrap_or_default();
    assert!(waits.ends_with("to be established: v1.hens.farm.test"), "what is to be created is waited for: {waits}");
}

#[test]
fn the_binding_given_stands_in_for_the_one_in_the_snapshot() {
    let objects =
        [farm(&["hens"]), vec![binding("mine", json!({"metadata": {"resourceVersion": "99"}})), home(json!({}))]];
    let snapshot = world(Split, &objects.concat());
    let given = read(&binding("mine", json!({"status": null})));
    let (after, effects) = crate::reconcile(&snapshot, &given);
    assert_eq!(lines(&effects), ["commit", "now"], "though the snapshot's has a phase and a higher version");
    assert_eq!(after.status.phase.as_str(), "Binding");
    assert_eq!(snapshot.binding(&given.key()).unwrap().meta.resource_version, "99", "the snapshot is not touched");
}

#[test]
fn nothing_to_do_is_an_empty_plan_and_an_equal_binding() {
    let objects = [farm(&["hens"]), vec![binding("mine", json!({})), home(json!({}))]].concat();
    let played = play(Split, &objects, "mine");
    let mut rest = binding("mine", json!({}));
    rest.2["status"] = json!(played.status);
    let rest = read(&rest);
    assert_eq!(crate::reconcile(&played.snapshot, &rest), (rest, vec![]));
}

#[test]
fn the_time_is_a_property_of_the_snapshot() {
    let mut snapshot = world(Split, &[]);
    snapshot.set_now("2031-02-03T04:05:06.7Z".parse().unwrap());
    let (after, _) = crate::reconcile(&snapshot, &read(&binding("mine", json!({"status": null}))));
    assert_eq!(after.status.conditions[0].last_transition_time, "2031-02-03T04:05:06Z");
}

#[test]
fn a_schema_without_body_creates_nothing() {
    let wrong = json!({"spec": {"versions": [{"name": "v1"}]}});
    let objects = [vec![export(&["hens"], json!({})), schema("hens", wrong), home(json!({}))]].concat();
    let (_, effects) = crate::reconcile(&world(Split, &objects), &read(&binding("mine", json!({}))));
    assert!(effects.iter().all(|effect| !matches!(effect, Effect::CreateCrd(_))), "{effects:?}");
}

#[test]
fn a_creation_names_its_schema() {
    let objects = [export(&["hens"], json!({})), schema("hens", json!({})), home(json!({}))];
    let (_, effects) = crate::reconcile(&world(Split, &objects), &read(&binding("mine", json!({}))));
    let create = effects.iter().find_map(|effect| match effect {
        Effect::CreateCrd(create) => Some(create),
        _ => None,
    });
    let create = create.unwrap();
    let which = [create.cluster.as_str(), &create.name, create.schema_cluster.as_str(), &create.schema_name];
    assert_eq!(which, ["system:bound-crds", "s-hens", "farm", "v1.hens.farm.test"]);
    let body: Value = create.body.to_value();
    assert_eq!(body["metadata"]["name"], "s-hens");
}

/// A neighbour lists the bound CRDs of these plurals, none of which is there.
fn lists(plurals: &[&str]) -> Seen {
    let entry = |plural: &&str| {
        let mut entry = bound(plural);
        entry["resource"] = json!(format!("old-{plural}"));
        entry
    };
    let entries: Vec<Value> = plurals.iter().map(entry).collect();
    binding("other", json!({"status": {"phase": "Bound", "boundResources": entries}}))
}

/// The plan of `mine`, and that a pass does just that.
fn foreseen(objects: &[Seen]) -> Vec<String> {
    let mine = objects.iter().find(|seen| seen.object().key().name == *"mine").map(read).unwrap();
    let (after, effects) = crate::reconcile(&world(Split, objects), &mine);
    let planned = lines(&effects);
    let played = play(Split, objects, "mine");
    assert_eq!([planned.clone(), vec!["forget".into()]].concat(), played.log);
    assert_eq!(after.status, played.status);
    let why = played.why();
    assert!(why.starts_with("False NamingConflicts Error Unable to bind APIs: naming conflict"), "{why}");
    planned
}

/// What a plan creates takes names, if a neighbour lists it.
#[test]
fn the_first_creation_that_stops_the_binding_is_the_last_that_is_planned() {
    let takes_hens = json!({"spec": {"names": {"shortNames": ["hens"]}}});
    let objects = [
        export(&["ducks", "hens", "goats"], json!({})),
        schema("ducks", takes_hens),
        schema("hens", json!({})),
        schema("goats", json!({})),
        lists(&["ducks"]),
        binding("mine", json!({})),
        home(json!({"bindings": {"a.x": {"n": "ghost"}}})),
    ];
    let own = |plural: &str| format!(r#""{plural}.farm.test":{{"n":"mine","u":"u-mine"}}"#);
    let lock = format!("lock bindings {{{},{},{}}}", own("ducks"), own("goats"), own("hens"));
    assert_eq!(foreseen(&objects), ["read binding ghost", &lock, "create s-ducks", "commit"]);
}

#[test]
fn creations_for_claims_go_on_after_the_one_that_stops_the_binding() {
    let takes_hens = json!({"spec": {"names": {"shortNames": ["hens"]}}});
    let claimed = ["cats", "bats", "ducks", "ants", "rats"];
    let claim = |plural: &str| json!({"group": "farm.test", "resource": plural, "identityHash": "id-pond", "state": "Accepted"});
    let claims = json!({"spec": {"permissionClaims": claimed.map(claim)}});
    for at in 0..claimed.len() {
        let pond = export(&claimed, json!({"metadata": {"name": "pond"}, "status": {"identityHash": "id-pond"}}));
        let mut objects = vec![export(&["hens"], json!({})), schema("hens", json!({})), pond, lists(&claimed)];
        objects.extend(
            claimed
                .iter()
                .enumerate()
                .map(|(position, plural)| schema(plural, if position == at { takes_hens.clone() } else { json!({}) })),
        );
        objects.extend([binding("mine", claims.clone()), home(json!({"bindings": {"a.x": {"n": "ghost"}}}))]);
        let mut expect: Vec<String> = claimed.iter().map(|plural| format!("create s-{plural}")).collect();
        let lock = r#"lock bindings {"hens.farm.test":{"n":"mine","u":"u-mine"}}"#;
        expect.extend(["read binding ghost", lock, "commit"].map(Into::into));
        assert_eq!(foreseen(&objects), expect);
    }
}
