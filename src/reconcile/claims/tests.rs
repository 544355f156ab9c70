use serde_json::{Value, json};

use crate::api::Object;
use crate::effect::{Effect, Outcome};
use crate::fixtures::*;
use crate::snapshot::Layout::Split;

/// A claim on hens that `mine` accepts.
fn claim(more: Value) -> Value {
    let mut claim =
        json!({"group": "farm.test", "resource": "hens", "identityHash": "id-claimed", "state": "Accepted"});
    merge(&mut claim, more);
    claim
}

/// An export of the claimed identity in a cluster of its own, and its schema with uid `s-<cluster>`.
fn provider(cluster: &str) -> [Seen; 2] {
    let place = json!({"metadata": {"annotations": {"kcp.io/cluster": cluster, "kcp.io/path": null}}});
    let uid = json!({"metadata": {"uid": format!("s-{cluster}")}});
    [
        export(&["hens"], json!({"status": {"identityHash": "id-claimed"}})).but(place.clone()),
        schema("hens", place).but(uid),
    ]
}

/// What is created for `mine`, whose own export offers nothing, and when it looks again.
fn created(claims: Value, objects: &[Seen], answer: impl Fn(&str) -> Option<Outcome>) -> Vec<String> {
    let mine = binding("mine", json!({"spec": {"permissionClaims": claims}}));
    let objects = [&[mine, export(&[], json!({})), home(json!({}))], objects].concat();
    let played = play_with(world(Split, &objects), &objects, "mine", |line, _| answer(line));
    assert_eq!(played.why(), "True", "claims never change the binding");
    let mut log = played.log;
    log.retain(|line| line != "commit");
    log
}

fn check(claims: Value, objects: &[Seen], expect: &[&str]) {
    assert_eq!(created(claims.clone(), objects, |_| None), expect, "{claims}");
}

#[test]
fn the_bound_crd_of_an_accepted_claim_is_created_where_it_is_absent() {
    check(json!([claim(json!({}))]), &provider("coop"), &["create s-coop", "forget"]);
    let there = bound_crd("coop", unjudged());
    check(json!([claim(json!({}))]), &[&provider("coop")[..], &[there]].concat(), &["forget"]);
}

#[test]
fn claims_that_are_not_accepted_or_name_no_identity_do_nothing() {
    for no in [
        json!({"state": "Rejected"}),
        json!({"state": null}),
        json!({"identityHash": ""}),
        json!({"identityHash": null}),
    ] {
        check(json!([claim(no)]), &provider("coop"), &["forget"]);
    }
}

#[test]
fn a_claim_is_met_by_identity_group_and_resource() {
    for no in [json!({"identityHash": "id-farm"}), json!({"group": "zoo.test"}), json!({"resource": "ducks"})] {
        check(json!([claim(no)]), &provider("coop"), &["forget"]);
    }
}

#[test]
fn the_first_export_by_cluster_and_name_whose_schema_is_found_is_taken() {
    let claims = json!([claim(json!({}))]);
    // `coop-b/…` sorts before `coop/…`, as texts do.
    let both = [provider("coop"), provider("coop-b")].concat();
    check(claims.clone(), &both, &["create s-coop-b", "forget"]);
    let [without_schema, _] = provider("coop-b");
    check(claims, &[&provider("coop")[..], &[without_schema]].concat(), &["create s-coop", "forget"]);
}

#[test]
fn d12_all_local_exports_then_all_global_ones_until_a_schema_is_found() {
    let claims = json!([claim(json!({}))]);
    let [local_without_schema, _] = provider("zoo");
    let global = provider("aviary").map(Seen::global);
    check(claims.clone(), &[&global[..], &[local_without_schema]].concat(), &["create s-aviary", "forget"]);
    check(claims, &[&global[..], &provider("zoo")].concat(), &["create s-zoo", "forget"]);
}

#[test]
fn claims_are_met_even_of_a_binding_that_is_new() {
    let new = json!({"spec": {"permissionClaims": [claim(json!({}))]}, "status": null});
    let objects = [&[binding("mine", new)], &provider("coop")[..]].concat();
    assert_eq!(play(Split, &objects, "mine").log, ["create s-coop", "commit", "now"]);
    let failing = play_with(world(Split, &objects), &objects, "mine", |line, _| {
        line.starts_with("create").then(|| refused("Forbidden", json!({"details": {"retryAfterSeconds": 9}})))
    });
    assert_eq!(failing.log, ["create s-coop", "commit", "now"], "a failure is forgotten: the key comes at once anyway");
}

#[test]
fn d22_a_claim_that_failed_is_tried_again_later_and_the_next_goes_on() {
    let ducks = [
        export(&["ducks"], json!({"metadata": {"name": "pond"}, "status": {"identityHash": "id-pond"}})),
        schema("ducks", json!({})),
    ];
    let claims = json!([claim(json!({})), claim(json!({"resource": "ducks", "identityHash": "id-pond"}))]);
    let objects = [provider("coop"), ducks].concat();
    let first =
        |outcome: fn() -> Outcome| created(claims.clone(), &objects, |line| (line == "create s-coop").then(outcome));
    let both = ["create s-coop", "create s-ducks"];
    assert_eq!(first(|| refused("Forbidden", json!({}))), [&both[..], &["backoff"]].concat());
    assert_eq!(first(|| Outcome::NoAnswer("lost".into())), [&both[..], &["backoff"]].concat());
    assert_eq!(first(|| refused("Invalid", json!({}))), [&both[..], &["forget"]].concat());
    assert_eq!(first(|| refused("AlreadyExists", json!({}))), [&both[..], &["forget"]].concat());
}

#[test]
fn d22_a_claim_whose_crd_cannot_be_made_is_no_failure() {
    let [export, schema] = provider("coop");
    let wrong = schema.but(json!({"spec": {"versions": [{"name": "v1"}]}}));
    check(json!([claim(json!({}))]), &[export, wrong], &["forget"]);
}

#[test]
fn d21_one_try_a_pass_for_all_that_want_a_crd() {
    let claims = json!([claim(json!({})), claim(json!({})), claim(json!({"identityHash": "id-farm"}))]);
    let mine = binding("mine", json!({"spec": {"permissionClaims": claims}}));
    let own = [export(&["hens", "hens"], json!({})), schema("hens", json!({"metadata": {"uid": "s-coop"}}))];
    let objects = [&[mine, home(json!({}))], &own[..], &provider("coop")[..]].concat();
    let played = play_with(world(Split, &objects), &objects, "mine", |line, _| {
        line.starts_with("create").then(|| refused("Invalid", json!({"message": "no"})))
    });
    let creations = played.log.iter().filter(|line| line.starts_with("create")).count();
    assert_eq!(creations, 1, "{:?}", played.log);
    let expect = "False APIResourceSchemaInvalid Error APIResourceSchema farm|v1.hens.farm.test is invalid: no";
    assert_eq!(played.why(), expect, "the claim's outcome holds for the resource");
}

#[test]
fn a_crd_that_was_deleted_is_absent_whatever_a_late_event_says() {
    let crd = bound_crd("coop", json!({}));
    let mine = binding("mine", json!({"spec": {"permissionClaims": [claim(json!({}))]}}));
    let objects = [&[mine, export(&[], json!({})), home(json!({})), crd.clone()], &provider("coop")[..]].concat();
    let mut snapshot = world(Split, &objects);
    snapshot.apply(crd.but(json!({"metadata": {"resourceVersion": "12"}})).delete());
    snapshot.apply(bound_crd("coop", json!({"metadata": {"resourceVersion": "11"}})).put());
    let played = play_with(snapshot, &objects, "mine", |_, _| None);
    assert_eq!(played.log[0], "create s-coop");
}

/// Between two attempts somebody else gave the binding its phase: then nothing comes back at once, and
/// the failure would be forgotten for good.
#[test]
fn d22_a_failure_counts_when_the_binding_has_got_a_phase_by_the_last_plan() {
    let claims = json!({"permissionClaims": [claim(json!({}))]});
    let new = binding("mine", json!({"spec": claims, "status": null}));
    let begun = binding("mine", json!({"spec": claims, "metadata": {"resourceVersion": "6"}}));
    let objects = [&[new, export(&[], json!({})), home(json!({}))], &provider("coop")[..]].concat();
    let played = play_with(world(Split, &objects), &objects, "mine", |line, before| match line {
        "create s-coop" => Some(refused("Forbidden", json!({"details": {"retryAfterSeconds": 9}}))),
        "commit" if before == 0 => Some(conflict(Some(&begun))),
        _ => None,
    });
    assert_eq!(played.log, ["create s-coop", "commit", "commit", "backoff 9 s"]);
}

/// What a neighbour lists takes names as soon as it is there. Of many the plan finds the one that
/// stops the binding without a plan for each.
#[test]
fn a_plan_foresees_the_names_of_many_creations_for_a_neighbour() {
    let plurals: Vec<String> = (0..300).map(|n| format!("birds{n:03}")).collect();
    let listed: Vec<&str> = plurals.iter().map(String::as_str).collect();
    let claims: Vec<Value> =
        listed.iter().map(|plural| claim(json!({"resource": plural, "identityHash": "id-pond"}))).collect();
    let pond = export(&listed, json!({"metadata": {"name": "pond"}, "status": {"identityHash": "id-pond"}}));
    let schemas = listed.iter().map(|plural| match *plural {
        "birds200" => schema(plural, json!({"spec": {"names": {"singular": "hen"}}})),
        plural => schema(plural, json!({})),
    });
    let mut objects: Vec<Seen> = farm(&["hens"]);
    objects.extend([pond, home(json!({})), binding("other", has_bound(&listed))]);
    objects.extend(schemas);
    let mine = binding("mine", json!({"spec": {"permissionClaims": claims}}));
    objects.push(mine.clone());
    let Object::ApiBinding(binding) = mine.object() else { panic!("a binding") };
    let (planned, effects) = crate::reconcile(&world(Split, &objects), &binding);
    let why = planned.status.condition("BindingUpToDate").map(|condition| condition.reason.to_string());
    assert_eq!(why.as_deref(), Some("NamingConflicts"));
    assert_eq!(
        effects.iter().filter(|effect| matches!(effect, Effect::CreateCrd(_))).count(),
        300,
        "claims do not stop"
    );
}
