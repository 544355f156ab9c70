use serde_json::{Value, json};

use super::*;
use crate::fixtures::*;
use crate::snapshot::Layout::{Single, Split};

fn meadow(locks: Value) -> Vec<Seen> {
    [farm(&["hens"]), vec![binding("mine", json!({})), home(locks)]].concat()
}

/// Plays `mine` with these answers: the log, with locks cut short, and the rest of what came of it.
fn run(objects: &[Seen], answer: impl FnMut(&str, usize) -> Option<Outcome>) -> (Vec<String>, Played) {
    let played = play_with(world(Split, objects), objects, "mine", answer);
    let short = |line: &String| match line.strip_prefix("lock bindings ") {
        Some(rest) if rest.starts_with("forced") => "lock forced".to_owned(),
        Some(_) => "lock".into(),
        None => line.clone(),
    };
    (played.log.iter().map(short).collect(), played)
}

fn check(objects: &[Seen], answer: impl FnMut(&str, usize) -> Option<Outcome>, expect: &[&str]) -> Played {
    let (log, played) = run(objects, answer);
    assert_eq!(log, expect);
    played
}

/// A LogicalCluster as others made it, at a later version.
fn newer(version: &str, locks: Value) -> Seen {
    home(locks).but(json!({"metadata": {"resourceVersion": version}}))
}

fn is_lock(line: &str) -> bool {
    line.starts_with("lock")
}

/// `mine` at a later version.
fn touched(version: &str, more: Value) -> Seen {
    binding("mine", json!({"metadata": {"resourceVersion": version}})).but(more)
}

fn wait(seconds: u64) -> Value {
    json!({"details": {"retryAfterSeconds": seconds}})
}

// The lock.

#[test]
fn after_a_conflict_the_lock_is_planned_again_on_what_was_read() {
    let locks = json!({"bindings": {"goats.farm.test": {"n": "other"}}});
    let mut objects = meadow(json!({}));
    objects.push(binding("other", json!({})));
    let answer = |line: &str, before| {
        (is_lock(line) && before == 0 && !line.contains("goats")).then(|| conflict(Some(&newer("8", locks.clone()))))
    };
    let played = check(&objects, answer, &["lock", "lock", "commit", "forget"]);
    let both = r#"lock bindings {"goats.farm.test":{"n":"other"},"hens.farm.test":{"n":"mine","u":"u-mine"}}"#;
    assert_eq!(played.log[1], both);
}

#[test]
fn a_lock_that_was_lost_meanwhile_is_another_snapshot() {
    let mut objects = meadow(json!({}));
    objects.push(binding("other", json!({})));
    let taken = newer("8", json!({"bindings": {"hens.farm.test": {"n": "other"}}}));
    let played =
        check(&objects, |line, _| is_lock(line).then(|| conflict(Some(&taken))), &["lock", "commit", "forget"]);
    assert!(played.why().ends_with("hens.farm.test (APIBinding \"other\")"), "{}", played.why());
}

#[test]
fn a_logical_cluster_that_is_gone_after_a_conflict_is_not_found() {
    let played =
        check(&meadow(json!({})), |line, _| is_lock(line).then(|| conflict(None)), &["lock", "commit", "forget"]);
    assert!(played.why().starts_with("False LogicalClusterNotFound"), "{}", played.why());
}

#[test]
fn d13_five_conflicts_of_the_lock_fail_both_and_are_retried() {
    let mut version = 7;
    let answer = |line: &str, _| {
        version += 1;
        is_lock(line).then(|| conflict(Some(&newer(&version.to_string(), json!({})))))
    };
    let played = check(&meadow(json!({})), answer, &["lock", "lock", "lock", "lock", "lock", "commit", "backoff"]);
    assert_eq!(played.why(), "False InternalError Error Unable to bind APIs: Conflict it is");
    assert!(played.bound().is_empty());
}

#[test]
fn d13_a_lock_that_cannot_be_written_fails_both_and_is_retried() {
    let lock = |outcome: fn() -> Outcome, retry: &str| {
        let answer = |line: &str, _| is_lock(line).then(outcome);
        check(&meadow(json!({})), answer, &["lock", "commit", retry]).why()
    };
    let why = lock(|| refused("Forbidden", json!({"message": "not you"})), "backoff");
    assert_eq!(why, "False InternalError Error Unable to bind APIs: not you");
    let why = lock(|| Outcome::NoAnswer("connection lost".into()), "backoff");
    assert_eq!(why, "False InternalError Error Unable to bind APIs: ", "empty if no answer came");
    let why = lock(|| refused("Invalid", json!({"message": "too long"})), "forget");
    assert_eq!(why, "False InternalError Error Unable to bind APIs: too long", "a verdict");
}

#[test]
fn d13_in_the_single_layout_too() {
    let objects = meadow(json!({"legacy": {}}));
    let played = play_with(world(Single, &objects), &objects, "mine", |line, _| {
        is_lock(line).then(|| refused("Invalid", json!({"message": "too long"})))
    });
    assert_eq!(played.log[1..], ["commit", "forget"]);
    assert_eq!(played.why(), "False InternalError Error Unable to bind APIs: too long");
}

#[test]
fn a_lock_that_is_lost_again_each_time_ends_after_five_writes() {
    let mut version = 7;
    let answer = |line: &str, _| {
        version += 1;
        is_lock(line).then(|| Outcome::done(newer(&version.to_string(), json!({})).object()))
    };
    let played = check(&meadow(json!({})), answer, &["lock", "lock", "lock", "lock", "lock", "commit", "backoff"]);
    assert!(played.why().starts_with("False InternalError"), "{}", played.why());
}

#[test]
fn d23_after_a_conflict_of_field_managers_the_pass_goes_on_forced() {
    let owned = || {
        let causes =
            json!({"details": {"causes": [{"reason": "Other"}, {"reason": "FieldManagerConflict", "field": "x"}]}});
        Outcome::Conflict { status: status("Conflict", causes), current: Some(Box::new(home(json!({})).object())) }
    };
    let expect = ["lock", "lock forced", "commit", "forget"];
    let played = check(&meadow(json!({})), |line, _| line.starts_with("lock bindings {").then(owned), &expect);
    let force = |effect: &Effect| matches!(effect, Effect::PatchLogicalCluster(patch) if patch.force);
    assert_eq!(played.effects.iter().map(force).collect::<Vec<_>>(), [false, true, false], "the lock, and only then");
    // The force holds for the whole pass.
    let answer = |line: &str, before| match line {
        "commit" if before == 0 => Some(conflict(Some(&touched("6", json!({}))))),
        line if line.starts_with("lock bindings {") => Some(owned()),
        line if is_lock(line) && before == 0 => Some(conflict(Some(&newer("8", json!({}))))),
        _ => None,
    };
    let expect = ["lock", "lock forced", "lock forced", "commit", "commit", "forget"];
    check(&meadow(json!({})), answer, &expect);
}

#[test]
fn a_plain_conflict_does_not_force() {
    let answer = |line: &str, before| (is_lock(line) && before == 0).then(|| conflict(Some(&newer("8", json!({})))));
    check(&meadow(json!({})), answer, &["lock", "lock", "commit", "forget"]);
}

// The commit.

#[test]
fn d8_after_a_conflict_the_binding_is_planned_again_as_it_is_now() {
    let further = json!({"status": {"further": "written since"}});
    let answer =
        |line: &str, before| (line == "commit" && before == 0).then(|| conflict(Some(&touched("6", further.clone()))));
    let played = check(&meadow(json!({})), answer, &["lock", "commit", "commit", "forget"]);
    assert_eq!(played.status.extra.get("further"), Some(&json!("written since")));
    assert_eq!(played.bound(), ["hens"]);
}

#[test]
fn d8_five_conflicts_of_the_commit_end_the_pass() {
    let mut version = 5;
    let answer = |line: &str, _| {
        version += 1;
        (line == "commit").then(|| conflict(Some(&touched(&version.to_string(), json!({})))))
    };
    let expect = ["lock", "commit", "commit", "commit", "commit", "commit", "backoff"];
    assert_eq!(check(&meadow(json!({})), answer, &expect).bound(), ["hens"], "what the last plan wanted");
}

#[test]
fn d8_a_conflict_that_shows_the_work_done_ends_the_pass_well() {
    let done = play(Split, &meadow(json!({})), "mine").status;
    let mut current = touched("6", json!({}));
    current.2["status"] = json!(done);
    check(
        &meadow(json!({})),
        |line, _| (line == "commit").then(|| conflict(Some(&current))),
        &["lock", "commit", "forget"],
    );
}

#[test]
fn a_binding_that_is_gone_while_committing_needs_nothing_more() {
    let gone = |line: &str, _| (line == "commit").then(|| refused("NotFound", json!({})));
    check(&meadow(json!({})), gone, &["lock", "commit", "forget"]);
    let new = [binding("mine", json!({"status": null}))];
    check(&new, gone, &["commit", "forget"]);
    let waiting = meadow(json!({"crds": {"hens.farm.test": {"c": true, "e": NOW}}}));
    check(&waiting, gone, &["commit", "forget"]);
}

#[test]
fn gone_after_a_conflict_the_pass_goes_on_as_for_a_binding_that_does_not_exist() {
    let answer = |line: &str, _| match line {
        "commit" => Some(conflict(None)),
        line if line.starts_with("read") => Some(refused("NotFound", json!({}))),
        _ => None,
    };
    let expect = ["lock", "commit", "read binding mine", "lock", "forget"];
    let played = check(&meadow(json!({})), answer, &expect);
    assert_eq!(played.log[3], "lock bindings {}", "what it took is released");
    assert_eq!(played.bound(), ["hens"], "the status of the last plan that saw it");
}

#[test]
fn another_binding_of_that_name_after_a_conflict_is_planned_as_it_is() {
    let successor = touched("6", json!({"metadata": {"uid": "u-new"}, "status": {"phase": "Binding"}}));
    let answer = |line: &str, before| (line == "commit" && before == 0).then(|| conflict(Some(&successor)));
    let (log, played) = run(&meadow(json!({})), answer);
    assert_eq!(log, ["lock", "commit", "read binding mine", "lock", "commit", "forget"]);
    assert_eq!(played.log[3], r#"lock bindings {"hens.farm.test":{"n":"mine","u":"u-new"}}"#);
}

#[test]
fn any_other_failure_to_commit_is_retried_and_the_status_stays_known() {
    for failed in [|| refused("Forbidden", json!({})), || Outcome::NoAnswer("lost".into())] {
        let answer = |line: &str, _| (line == "commit").then(failed);
        assert_eq!(check(&meadow(json!({})), answer, &["lock", "commit", "backoff"]).bound(), ["hens"]);
    }
}

#[test]
fn with_each_commit_conflict_the_lock_starts_anew_but_a_failure_stays() {
    let answer = |line: &str, before| match line {
        "commit" if before == 0 => Some(conflict(Some(&touched("6", json!({}))))),
        line if is_lock(line) && before == 0 => Some(refused("Forbidden", json!({}))),
        _ => None,
    };
    let played = check(&meadow(json!({})), answer, &["lock", "commit", "lock", "commit", "backoff"]);
    assert_eq!(played.why(), "True");
}

#[test]
fn d21_a_creation_that_failed_is_not_tried_again_after_a_commit_conflict() {
    let objects = [
        vec![export(&["hens"], json!({})), schema("hens", json!({}))],
        vec![binding("mine", json!({})), home(json!({}))],
    ]
    .concat();
    let answer = |line: &str, before| match line {
        "commit" if before == 0 => Some(conflict(Some(&touched("6", json!({}))))),
        line if line.starts_with("create") => Some(refused("Forbidden", json!({}))),
        _ => None,
    };
    let played = check(&objects, answer, &["lock", "create s-hens", "commit", "commit", "backoff"]);
    assert!(played.why().starts_with("False InternalError"));
}

// Reads.

/// An own entry of a predecessor: `mine` is asked for before it is rewritten.
fn predecessor() -> Value {
    json!({"bindings": {"hens.farm.test": {"n": "mine", "u": "u-old"}}})
}

#[test]
fn each_thing_is_asked_once_an_attempt() {
    let locks = json!({"bindings": {"a.x": {"n": "ghost"}, "b.x": {"n": "ghost"}, "hens.farm.test": {"n": "mine", "u": "u-old"}}});
    check(&meadow(locks), |_, _| None, &["read binding ghost", "read binding mine", "lock", "commit", "forget"]);
}

#[test]
fn a_new_attempt_asks_anew() {
    let answer =
        |line: &str, before| (is_lock(line) && before == 0).then(|| conflict(Some(&newer("8", predecessor()))));
    let expect = ["read binding mine", "lock", "read binding mine", "lock", "commit", "forget"];
    check(&meadow(predecessor()), answer, &expect);
    let same_version =
        |line: &str, before| (is_lock(line) && before == 0).then(|| conflict(Some(&home(predecessor()))));
    check(&meadow(predecessor()), same_version, &expect);
    let waits = |line: &str, before| match line {
        "commit" if before == 0 => Some(conflict(Some(&touched("6", json!({}))))),
        line if line.starts_with("read") => Some(Outcome::NoAnswer("lost".into())),
        _ => None,
    };
    check(&meadow(predecessor()), waits, &["read binding mine", "commit", "read binding mine", "commit", "backoff"]);
}

#[test]
fn an_answer_that_is_not_known_asks_for_a_retry_only_in_the_last_attempt() {
    let answer = |line: &str, before| match line {
        "read binding mine" if before == 0 => Some(Outcome::NoAnswer("lost".into())),
        "commit" if before == 0 => Some(conflict(Some(&touched("6", json!({}))))),
        _ => None,
    };
    let expect = ["read binding mine", "commit", "read binding mine", "lock", "commit", "forget"];
    check(&meadow(predecessor()), answer, &expect);
}

#[test]
fn answers_count_only_on_the_logical_cluster_that_they_were_asked_on() {
    let objects = meadow(predecessor());
    let mut snapshot = world(Split, &objects);
    let mut pass = Pass::new(key("meadow|mine"));
    let act = |pass: &mut Pass, snapshot: &Snapshot| match pass.poll(snapshot) {
        Step::Act(effect) => line(&effect),
        Step::Done(retry) => format!("{retry}"),
    };
    let mine = Outcome::done(objects[3].object());
    assert_eq!(act(&mut pass, &snapshot), "read binding mine");
    assert_eq!(pass.observe(mine.clone()), [], "answers never enter the snapshot");
    snapshot.apply(newer("8", predecessor()).put());
    assert_eq!(act(&mut pass, &snapshot), "read binding mine", "asked anew");
    pass.observe(mine);
    assert!(is_lock(&act(&mut pass, &snapshot)));
    let changes = pass.observe(Outcome::done(
        newer("9", json!({"bindings": {"hens.farm.test": {"n": "mine", "u": "u-mine"}}})).object(),
    ));
    changes.into_iter().for_each(|change| _ = snapshot.apply(change));
    assert_eq!(act(&mut pass, &snapshot), "commit", "the pass's own write leaves its answers standing");
}

#[test]
fn answers_count_on_what_the_own_write_made_of_the_logical_cluster() {
    let doubtful = json!({"bindings": {"a.x": {"n": "ghost"}}});
    let there =
        |line: &str, _| (line == "read binding ghost").then(|| Outcome::done(binding("ghost", json!({})).object()));
    check(&meadow(doubtful), there, &["read binding ghost", "lock", "commit", "forget"]);
}

#[test]
fn a_logical_cluster_that_never_rests_does_not_keep_the_pass_from_its_end() {
    let mut snapshot = world(Split, &meadow(predecessor()));
    let mut pass = Pass::new(key("meadow|mine"));
    let mut steps = Vec::new();
    for version in 8..40 {
        match pass.poll(&snapshot) {
            Step::Act(effect) => {
                steps.push(line(&effect));
                pass.observe(Outcome::done(binding("mine", json!({})).object()));
                snapshot.apply(newer(&version.to_string(), predecessor()).put());
            }
            Step::Done(retry) => {
                assert_eq!(retry, Retry::Backoff { at_least: None });
                assert_eq!(steps, [&["read binding mine"; 5][..], &["commit"]].concat());
                return;
            }
        }
    }
    panic!("no end: {steps:?}");
}

// When to look again.

#[test]
fn the_wait_is_the_longest_that_an_answer_that_failed_asked_for() {
    let objects = [
        vec![export(&["hens", "ducks"], json!({})), schema("hens", json!({})), schema("ducks", json!({}))],
        vec![binding("mine", json!({})), home(json!({"bindings": {"a.x": {"n": "ghost"}}}))],
    ]
    .concat();
    let answers = |creation: u64, commit: u64, read: u64| {
        run(&objects, move |line, _| match line {
            "read binding ghost" => Some(refused("TooManyRequests", wait(read))),
            "create s-hens" => Some(refused("TooManyRequests", wait(creation))),
            "commit" => Some(refused("TooManyRequests", wait(commit))),
            _ => None,
        })
        .0
        .pop()
        .unwrap()
    };
    assert_eq!(answers(1, 2, 3), "backoff 3 s");
    assert_eq!(answers(3, 2, 1), "backoff 3 s");
    assert_eq!(answers(1, 3, 2), "backoff 3 s");
    assert_eq!(answers(0, 0, 0), "backoff");
}

#[test]
fn what_did_not_fail_asks_for_no_wait() {
    let invalid = |line: &str, _| is_lock(line).then(|| refused("Invalid", wait(9)));
    check(&meadow(json!({})), invalid, &["lock", "commit", "forget"]);
    let answer = |line: &str, before| {
        (is_lock(line) && before == 0).then(|| match conflict(Some(&newer("8", json!({})))) {
            Outcome::Conflict { current, .. } => Outcome::Conflict { status: status("Conflict", wait(9)), current },
            other => other,
        })
    };
    check(&meadow(json!({})), answer, &["lock", "lock", "commit", "forget"]);
}

#[test]
fn a_failure_comes_before_a_lock_to_wait_for() {
    let mut objects = farm(&["hens", "ducks"]);
    let locks = json!({"crds": {"ducks.farm.test": {"c": true, "e": NOW}}, "bindings": {"a.x": {"n": "ghost"}}});
    objects.extend([binding("mine", json!({})), home(locks)]);
    let expect = ["read binding ghost", "lock", "commit", &format!("after {}", at(75))];
    check(&objects, |_, _| None, &expect);
    let failing = |line: &str, _| (line == "commit").then(|| refused("Forbidden", json!({})));
    check(&objects, failing, &["read binding ghost", "lock", "commit", "backoff"]);
}

#[test]
fn a_crd_lock_is_waited_for_also_where_binding_stopped_after_the_lock() {
    let mut objects = farm(&["hens", "ducks"]);
    let locks = json!({"crds": {"ducks.farm.test": {"c": true, "e": NOW}}});
    objects.extend([
        binding("mine", json!({})),
        home(locks),
        own_crd("goats", json!({"status": {"acceptedNames": names("hens")}})),
    ]);
    let played = check(&objects, |_, _| None, &["lock", "commit", &format!("after {}", at(75))]);
    assert!(played.why().contains("naming conflict"), "{}", played.why());
}

// Keys of bindings that do not exist.

#[test]
fn releasing_is_tried_five_times_and_retried_like_a_lock() {
    let objects = [home(json!({"bindings": {"a.x": {"n": "mine"}}}))];
    check(&objects, |_, _| None, &["read binding mine", "lock", "forget"]);
    let mut version = 7;
    let conflicts = |line: &str, _| {
        version += 1;
        let current = newer(&version.to_string(), json!({"bindings": {"a.x": {"n": "mine"}}}));
        is_lock(line).then(|| conflict(Some(&current)))
    };
    let (log, _) = run(&objects, conflicts);
    assert_eq!(log, [&["read binding mine", "lock"].repeat(5)[..], &["backoff"]].concat());
    let refusal = |reason: &'static str| move |line: &str, _| is_lock(line).then(|| refused(reason, json!({})));
    check(&objects, refusal("Forbidden"), &["read binding mine", "lock", "backoff"]);
    check(&objects, refusal("Invalid"), &["read binding mine", "lock", "forget"]);
    check(
        &objects,
        |line, _| line.starts_with("read").then(|| Outcome::NoAnswer(String::new())),
        &["read binding mine", "backoff"],
    );
}

// The machine.

#[test]
fn polling_twice_plans_twice_and_an_observation_without_effect_is_nothing() {
    let snapshot = world(Split, &meadow(json!({})));
    let mut pass = Pass::new(key("meadow|mine"));
    assert_eq!(pass.observe(Outcome::NoAnswer("to what?".into())), []);
    let first = pass.poll(&snapshot);
    assert_eq!(pass.poll(&snapshot), first);
    assert_eq!(pass.status().map(|status| status.phase.as_str()), Some("Bound"), "the plan's");
    assert_eq!(pass.key(), &key("meadow|mine"));
}

#[test]
fn a_pass_that_is_over_stays_over() {
    let mut pass = Pass::new(key("meadow|nobody"));
    let mut snapshot = world(Split, &[]);
    assert_eq!(pass.poll(&snapshot), Step::Done(Retry::Forget));
    assert_eq!(pass.status(), None);
    snapshot.apply(binding("nobody", json!({"status": null})).put());
    assert_eq!(pass.poll(&snapshot), Step::Done(Retry::Forget));
}

#[test]
fn a_conflict_tells_the_snapshot_what_is_there_now_or_that_nothing_is() {
    let objects = meadow(json!({}));
    let mut pass = Pass::new(key("meadow|mine"));
    pass.poll(&world(Split, &objects));
    let current = newer("8", json!({}));
    assert_eq!(pass.clone().observe(conflict(Some(&current))), [current.put()]);
    assert_eq!(pass.clone().observe(conflict(None)), [home(json!({})).delete()]);
    assert_eq!(pass.clone().observe(refused("Forbidden", json!({}))), []);
    assert_eq!(pass.observe(Outcome::NoAnswer(String::new())), []);
}

#[test]
fn settle_drives_a_pass_to_its_end_on_the_callers_snapshot() {
    let mut snapshot = world(Split, &[binding("mine", json!({"status": null}))]);
    let mut asked = Vec::new();
    let retry = settle(&mut snapshot, key("meadow|mine"), |effect| {
        asked.push(line(effect));
        let Effect::PatchApiBindingStatus(patch) = effect else { panic!("{effect}") };
        let status = json!({"status": patch.body.to_value()["status"], "metadata": {"resourceVersion": "6"}});
        Outcome::done(binding("mine", status).object())
    });
    assert_eq!((asked, retry), (vec!["commit".to_owned()], Retry::Now));
    assert_eq!(snapshot.binding(&key("meadow|mine")).unwrap().status.phase.as_str(), "Binding");
}
