use serde_json::{Value, json};

use super::*;
use crate::fixtures::*;
use crate::snapshot::Layout::Split;

/// All effects of a plan that has one of each kind but for the later look.
fn effects() -> Vec<Effect> {
    let locks = json!({"bindings": {"a.x": {"n": "ghost"}}, "crds": {"hens.farm.test": {"c": true, "e": at(-99)}}});
    let objects = [export(&["hens"], json!({})), schema("hens", json!({})), home(locks)];
    let Object::ApiBinding(mine) = binding("mine", json!({})).object() else { panic!() };
    crate::reconcile(&world(Split, &objects), &mine).1
}

#[test]
fn each_effect_is_printed_in_one_line() {
    let lines: Vec<String> = effects().iter().map(ToString::to_string).collect();
    let expect = [
        "ask whether APIBinding meadow|ghost exists",
        "ask whether CustomResourceDefinition meadow|hens.farm.test exists",
        "apply locks to LogicalCluster meadow|cluster as kcp-apibinding, at resourceVersion 7",
        "create CustomResourceDefinition system:bound-crds|s-hens of APIResourceSchema farm|v1.hens.farm.test",
        "apply status to APIBinding meadow|mine as kcp-apibinding, forced, at resourceVersion 5",
    ];
    assert_eq!(lines, expect);
}

#[test]
fn reads_ask_and_all_else_does_something() {
    let reads: Vec<bool> = effects().iter().map(Effect::is_read).collect();
    assert_eq!(reads, [true, true, false, false, false]);
    assert!(!Effect::Requeue(Retry::Now).is_read());
}

#[test]
fn effects_and_outcomes_survive_being_written_and_read() {
    for effect in effects() {
        let text = serde_json::to_string(&effect).unwrap();
        assert_eq!(serde_json::from_str::<Effect>(&text).unwrap(), effect, "{text}");
    }
    for outcome in [
        Outcome::done(binding("mine", json!({})).object()),
        conflict(Some(&home(json!({})))),
        conflict(None),
        refused("Invalid", json!({"details": {"retryAfterSeconds": 3}})),
        Outcome::NoAnswer("lost".into()),
    ] {
        let text = serde_json::to_string(&outcome).unwrap();
        assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), outcome, "{text}");
    }
}

#[test]
fn when_to_look_again_is_printed() {
    let shown = |retry: Retry| Effect::Requeue(retry).to_string();
    assert_eq!(shown(Retry::Now), "look again at once");
    assert_eq!(shown(Retry::After(NOW.parse().unwrap())), "look again just after 2026-06-01T12:00:00Z");
    assert_eq!(shown(Retry::Backoff { at_least: None }), "look again after its back-off");
    let wait = Retry::Backoff { at_least: Some(Duration::from_secs(9)) };
    assert_eq!(shown(wait), "look again after its back-off, not sooner than in 9 s");
    assert_eq!(Retry::Forget.to_string(), "when something happens");
}

#[test]
fn outcomes_are_printed() {
    let shown = |outcome: Outcome| outcome.to_string();
    assert_eq!(shown(Outcome::done(binding("mine", json!({})).object())), "done: APIBinding meadow|mine");
    assert_eq!(shown(conflict(Some(&home(json!({}))))), "conflict: Conflict it is");
    assert_eq!(shown(conflict(None)), "conflict, and gone: Conflict it is");
    assert_eq!(shown(refused("Invalid", json!({}))), "refused: Invalid: Invalid it is");
    assert_eq!(shown(Outcome::Refused(Box::default())), "refused: no reason given: ");
    assert_eq!(shown(Outcome::NoAnswer("lost".into())), "no answer: lost");
}

#[test]
fn the_wait_that_a_server_asks_for_is_a_positive_number_of_seconds() {
    let wait = |details: Value| refused("TooManyRequests", json!({"details": details})).retry_after();
    assert_eq!(wait(json!({"retryAfterSeconds": 3})), Some(Duration::from_secs(3)));
    for none in [json!({}), json!({"retryAfterSeconds": 0}), json!({"retryAfterSeconds": -5})] {
        assert_eq!(wait(none), None);
    }
    assert_eq!(Outcome::NoAnswer("5".into()).retry_after(), None);
}

#[test]
fn a_patch_without_precondition_says_nothing_of_one() {
    let Object::ApiBinding(new) = binding("mine", json!({"metadata": {"resourceVersion": null}})).object() else {
        panic!()
    };
    let (_, effects) = crate::reconcile(&world(Split, &[]), &new);
    let written = serde_json::to_value(&effects[0]).unwrap();
    assert_eq!(written["patchApiBindingStatus"]["resourceVersion"], json!(null));
    assert_eq!(effects[0].to_string(), "apply status to APIBinding meadow|mine as kcp-apibinding, forced");
}
