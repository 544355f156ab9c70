use serde_json::{Value, json};

use super::*;
use crate::fixtures::{NOW, show};

fn status(conditions: Value) -> ApiBindingStatus {
    serde_json::from_value(json!({"phase": "Binding", "conditions": conditions})).unwrap()
}

/// The conditions, a line each with its time, after a draft did something at a time with a fraction.
fn check(before: Value, change: impl Fn(&mut Draft<'_>), expect: &[&str]) {
    let before = status(before);
    let now: Timestamp = NOW.replace('Z', ".987Z").parse().unwrap();
    let mut draft = Draft::new(&before);
    change(&mut draft);
    draft.set_verdicts(now);
    draft.summarise(now);
    let after = draft.finish();
    let conditions = &after.as_ref().unwrap_or(&before).conditions;
    let lines: Vec<String> =
        conditions.iter().map(|condition| format!("{} @{}", show(condition), condition.last_transition_time)).collect();
    assert_eq!(lines, expect);
}

fn old(kind: &str, status: &str, more: Value) -> Value {
    let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": "old"});
    crate::fixtures::merge(&mut condition, more);
    condition
}

fn why() -> Value {
    json!({"reason": "R", "severity": "Error", "message": "m"})
}

#[test]
fn a_condition_that_says_the_same_keeps_its_time() {
    let before = json!([old("BindingUpToDate", "False", why())]);
    check(
        before,
        |draft| draft.export_is_valid(),
        &["APIExportValid True @2026-06-01T12:00:00Z", "BindingUpToDate False R Error m @old"],
    );
    let before = json!([old("APIExportValid", "False", why())]);
    let same = |draft: &mut Draft<'_>| draft.export_is_invalid(Verdict::error("R", "m"));
    check(before, same, &["APIExportValid False R Error m @old"]);
    check(
        json!([old("APIExportValid", "True", json!({}))]),
        |draft| draft.export_is_valid(),
        &["APIExportValid True @old"],
    );
}

#[test]
fn a_condition_that_differs_in_anything_is_replaced_whole_at_whole_seconds() {
    for differs in
        [json!({"reason": "Q"}), json!({"severity": "Info"}), json!({"message": "n"}), json!({"status": "True"})]
    {
        let mut before = old("APIExportValid", "False", why());
        crate::fixtures::merge(&mut before, json!({"further": 1}));
        crate::fixtures::merge(&mut before, differs);
        let set = |draft: &mut Draft<'_>| draft.export_is_invalid(Verdict::error("R", "m"));
        check(json!([before]), set, &["APIExportValid False R Error m @2026-06-01T12:00:00Z"]);
    }
    let leftover = json!([old("APIExportValid", "True", json!({"reason": "Left"}))]);
    check(leftover, |draft| draft.export_is_valid(), &["APIExportValid True @2026-06-01T12:00:00Z"]);
}

#[test]
fn the_list_is_sorted_ready_first_then_by_type() {
    let before =
        json!([old("Zebra", "True", json!({})), old("Ready", "True", json!({})), old("Ant", "True", json!({}))]);
    let expect = ["Ready True @old", "APIExportValid True @2026-06-01T12:00:00Z", "Ant True @old", "Zebra True @old"];
    check(before, |draft| draft.export_is_valid(), &expect);
}

#[test]
fn nothing_set_nothing_is_sorted() {
    let before = json!([old("Zebra", "True", json!({})), old("Ant", "True", json!({}))]);
    check(before, |_| {}, &["Zebra True @old", "Ant True @old"]);
}

#[test]
fn ready_is_the_summary_of_initial_binding_completed() {
    let initial = |status: &str, more: Value| json!([old("InitialBindingCompleted", status, more)]);
    let now = "@2026-06-01T12:00:00Z";
    check(initial("True", json!({})), |_| {}, &[&format!("Ready True {now}"), "InitialBindingCompleted True @old"]);
    check(
        initial("True", why()),
        |_| {},
        &[&format!("Ready True {now}"), "InitialBindingCompleted True R Error m @old"],
    );
    check(
        initial("False", why()),
        |_| {},
        &[&format!("Ready False R Error m {now}"), "InitialBindingCompleted False R Error m @old"],
    );
    check(
        initial("Unknown", why()),
        |_| {},
        &[&format!("Ready Unknown R  m {now}"), "InitialBindingCompleted Unknown R Error m @old"],
    );
}

#[test]
fn without_initial_binding_completed_ready_is_left_as_it_is() {
    check(json!([old("Ready", "False", why())]), |_| {}, &["Ready False R Error m @old"]);
    check(json!([]), |_| {}, &[]);
}

#[test]
fn d16_fail_both_sets_initial_binding_completed_unless_it_is_true() {
    let fail = |draft: &mut Draft<'_>| draft.fail_both(Verdict::error("R", "m"));
    let now = "@2026-06-01T12:00:00Z";
    let both = [
        format!("Ready False R Error m {now}"),
        format!("BindingUpToDate False R Error m {now}"),
        format!("InitialBindingCompleted False R Error m {now}"),
    ];
    let both: Vec<&str> = both.iter().map(String::as_str).collect();
    check(json!([]), fail, &both);
    check(json!([old("InitialBindingCompleted", "Unknown", json!({}))]), fail, &both);
    let kept = [&*format!("Ready True {now}"), both[1], "InitialBindingCompleted True @old"];
    check(json!([old("InitialBindingCompleted", "True", json!({}))]), fail, &kept);
}

#[test]
fn d11_a_later_verdict_of_the_pass_wins_and_each_condition_is_set_once() {
    let before = json!([old("APIExportValid", "False", why())]);
    let both = |draft: &mut Draft<'_>| {
        draft.export_is_valid();
        draft.export_is_invalid(Verdict::error("R", "m"));
    };
    check(before, both, &["APIExportValid False R Error m @old"]);
}

#[test]
fn a_draft_that_changes_nothing_has_no_status() {
    let before = status(json!([old("Ready", "True", json!({})), old("InitialBindingCompleted", "True", json!({}))]));
    let (no_cluster, no_claims) = ("".into(), List::default());
    let mut draft = Draft::new(&before);
    draft.set_export_cluster(&no_cluster);
    draft.set_export_claims(&no_claims);
    draft.summarise(NOW.parse().unwrap());
    assert_eq!(draft.finish(), None);
}

#[test]
fn completing_is_three_things() {
    let before = status(json!([]));
    let mut draft = Draft::new(&before);
    draft.complete();
    draft.set_verdicts(NOW.parse().unwrap());
    let after = draft.finish().unwrap();
    assert_eq!(after.phase, Phase::Bound);
    let lines: Vec<String> = after.conditions.iter().map(show).collect();
    assert_eq!(lines, ["BindingUpToDate True", "InitialBindingCompleted True"]);
}

/// A long list is found by an index, a short one gone through: both tell the same.
#[test]
fn entries_of_long_and_short_lists_are_found_alike() {
    let entry = |resource: usize, uid: &str| {
        let schema = json!({"name": "s", "UID": uid, "identityHash": "h"});
        serde_json::from_value::<BoundResource>(
            json!({"group": "farm.test", "resource": format!("r{resource}"), "schema": schema}),
        )
        .unwrap()
    };
    for len in [3, 15, 16, 40] {
        let bound_resources = (0..len).map(|at| entry(at, if at < 2 { "twice" } else { "once" })).collect();
        let before = ApiBindingStatus { bound_resources, ..ApiBindingStatus::default() };
        let mut draft = Draft::new(&before);
        draft.set_bound(entry(0, "new"));
        assert!(draft.lists("twice") && draft.lists("new"), "{len}");
        draft.set_bound(entry(1, "new"));
        assert!(!draft.lists("twice"), "{len}: nobody lists it any more");
        draft.set_bound(entry(len, "last"));
        assert_eq!(draft.bound(&entry(len, "").group_resource()), Some(&entry(len, "last")), "{len}");
        assert_eq!(draft.bound(&entry(len + 1, "").group_resource()), None, "{len}");
        let status = draft.finish().unwrap();
        assert_eq!(status.bound_resources.len(), len + 1, "{len}: replaced where they stood");
        assert_eq!(status.bound_resources[1], entry(1, "new"), "{len}");
    }
}
