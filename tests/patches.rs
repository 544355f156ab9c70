//! What goes over the wire: every kind of effect, every reason of a condition, both layouts of locks.
//!
//! A snapshot holds all effects of a pass (or of a plan, where it says so), each in words and as data.
//! Where the layouts do not differ there is one text for both.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use apibinding::effect::{Effect, Outcome};
use apibinding::snapshot::Layout;
// The crate's own small worlds, which use nothing but its public interface.
use apibinding::{api, effect, pass, snapshot};
use serde_json::{Value, json};

#[allow(dead_code)]
#[path = "../src/fixtures.rs"]
mod fixtures;
use fixtures::*;

fn shown(effects: &[Effect]) -> String {
    let show = |effect: &Effect| {
        let data = serde_json::to_value(effect).unwrap();
        format!("# {effect}\n{data:#}\n")
    };
    effects.iter().map(show).collect::<Vec<_>>().join("\n")
}

/// One text, or one for each layout.
fn both(of: impl Fn(Layout) -> String) -> String {
    let (split, single) = (of(Layout::Split), of(Layout::Single));
    if split == single {
        format!("=== either layout\n{split}")
    } else {
        format!("=== split\n{split}\n=== single\n{single}")
    }
}

/// What the server says to effects that begin so in the log.
type Answers = Vec<(&'static str, fn() -> Outcome)>;

/// A pass over `mine` that ends with a reason.
struct Scene {
    objects: Vec<Seen>,
    answers: Answers,
}

impl Scene {
    fn new(objects: impl IntoIterator<Item = Seen>) -> Self {
        Self { objects: objects.into_iter().collect(), answers: Vec::new() }
    }

    fn answer(mut self, start: &'static str, outcome: fn() -> Outcome) -> Self {
        self.answers.push((start, outcome));
        self
    }

    fn patches(&self, reason: &str) -> String {
        both(|layout| {
            let played = play_with(world(layout, &self.objects), &self.objects, "mine", |line, _| {
                self.answers.iter().find(|(start, _)| line.starts_with(start)).map(|(_, outcome)| outcome())
            });
            let text = shown(&played.effects);
            assert!(text.contains(&format!("\"reason\": \"{reason}\"")), "no {reason} in {text}");
            text
        })
    }
}

/// A home whose annotations in either layout are empty.
fn empty_home() -> Seen {
    home(json!({"bindings": {}, "legacy": {}}))
}

/// Hens that are there, wanted by `mine`.
fn hens(more: impl IntoIterator<Item = Seen>) -> Scene {
    let mut objects = farm(&["hens"]);
    objects.extend([binding("mine", json!({})), empty_home()]);
    objects.extend(more);
    Scene::new(objects)
}

/// Hens whose bound CRD is not there.
fn new_hens(schema_more: Value) -> Scene {
    Scene::new([export(&["hens"], json!({})), schema("hens", schema_more), binding("mine", json!({})), empty_home()])
}

#[test]
fn every_kind_of_effect_in_one_plan() {
    let over = json!({"c": true, "e": at(-99)});
    let coming = json!({"c": true, "e": NOW});
    let locks = json!({
        "bindings": {"a.x": {"n": "ghost"}},
        "crds": {"hens.farm.test": over, "ducks.farm.test": coming},
        "legacy": {"hens.farm.test": over, "ducks.farm.test": coming},
    });
    let objects =
        [export(&["hens", "ducks"], json!({})), schema("hens", json!({})), schema("ducks", json!({})), home(locks)];
    let api::Object::ApiBinding(mine) = binding("mine", json!({})).object() else { panic!() };
    insta::assert_snapshot!(both(|layout| shown(&apibinding::reconcile(&world(layout, &objects), &mine).1)));
}

#[test]
fn later_looks() {
    use effect::Retry;
    let retries = [
        Retry::Now,
        Retry::After(NOW.parse().unwrap()),
        Retry::Backoff { at_least: None },
        Retry::Backoff { at_least: Some(std::time::Duration::from_secs(9)) },
    ];
    insta::assert_snapshot!(shown(&retries.map(Effect::Requeue)));
}

#[test]
fn releasing_the_locks_of_a_binding_that_is_gone() {
    let objects =
        [home(json!({"bindings": {"hens.farm.test": {"n": "mine", "u": "u-mine"}, "ducks.farm.test": {"c": true}}}))];
    let played = play(Layout::Split, &objects, "mine");
    insta::assert_snapshot!(shown(&played.effects));
}

#[test]
fn a_forced_lock_after_a_conflict_of_field_managers() {
    let owned = || {
        let causes = json!({"details": {"causes": [{"reason": "FieldManagerConflict"}]}});
        Outcome::Conflict { status: status("Conflict", causes), current: Some(Box::new(empty_home().object())) }
    };
    let objects = hens([]).objects;
    let played = play_with(world(Layout::Split, &objects), &objects, "mine", |line, _| {
        line.starts_with("lock bindings {").then(owned)
    });
    insta::assert_snapshot!(shown(&played.effects));
}

#[test]
fn bound() {
    let claims = json!([{"group": "g", "resource": "r", "verbs": ["get"], "identityHash": "i", "defaultSelector": {"matchAll": true}}]);
    let further = json!({"status": {"appliedPermissionClaims": [{"resource": "secrets", "selector": {"further": 1}}], "further": {"a": 1}}});
    let crd = bound_crd("hens", json!({"status": {"storedVersions": ["v2", "v1"]}}));
    let scene = hens([export(&["hens"], json!({"spec": {"permissionClaims": claims}})), binding("mine", further), crd]);
    insta::assert_snapshot!(both(|layout| shown(&play(layout, &scene.objects, "mine").effects)));
}

#[test]
fn a_bound_crd_with_everything() {
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == "v2", "deprecated": name == "v1",
            "deprecationWarning": "old", "schema": {"type": "object", "unknown": 1, "properties": {"a": {"type": "string"}}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".a", "statusReplicasPath": ".b"}},
            "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a", "priority": 1}],
            "selectableFields": [{"jsonPath": ".spec.a"}]})
    };
    let webhook =
        json!({"clientConfig": {"url": "https://hook.test", "caBundle": "Q0E="}, "conversionReviewVersions": ["v1"]});
    let spec = json!({
        "versions": [version("v1"), version("v2")], "nameValidation": "PathSegmentName", "scope": "Cluster",
        "names": {"shortNames": ["h"], "categories": ["birds"]}, "conversion": {"strategy": "Webhook", "webhook": webhook},
    });
    let approved = json!({"api-approved.kubernetes.io": "https://approved.test"});
    let scene = new_hens(json!({"spec": spec, "metadata": {"annotations": approved}}));
    insta::assert_snapshot!(scene.patches("WaitingForEstablished"));
}

#[test]
fn reason_waiting_for_established_of_a_new_binding() {
    let new = binding("mine", json!({"status": null}));
    insta::assert_snapshot!(hens([new]).patches("WaitingForEstablished"));
}

#[test]
fn reason_api_export_invalid_reference() {
    let nothing = binding("mine", json!({"spec": {"reference": {"export": null}}}));
    insta::assert_snapshot!(Scene::new([nothing]).patches("APIExportInvalidReference"));
}

#[test]
fn reason_api_export_not_found() {
    insta::assert_snapshot!(Scene::new([binding("mine", json!({}))]).patches("APIExportNotFound"));
}

#[test]
fn reason_missing_identity_hash() {
    let anonymous = export(&["hens"], json!({"status": null}));
    insta::assert_snapshot!(hens([anonymous]).patches("MissingIdentityHash"));
}

#[test]
fn reason_internal_error_of_an_ambiguous_export() {
    let twin = export(&[], json!({"metadata": {"annotations": {"kcp.io/cluster": "twin"}}}));
    insta::assert_snapshot!(hens([twin]).patches("InternalError"));
}

#[test]
fn reason_internal_error_of_a_missing_schema() {
    insta::assert_snapshot!(hens([export(&["hens", "ducks"], json!({}))]).patches("InternalError"));
}

#[test]
fn reason_internal_error_of_versions_without_conversion() {
    let versions = json!({"spec": {"versions": [{"name": "v1", "schema": {}}, {"name": "v2", "schema": {}}]}});
    insta::assert_snapshot!(new_hens(versions).patches("InternalError"));
}

#[test]
fn reason_internal_error_of_a_creation_that_failed() {
    let scene = new_hens(json!({})).answer("create", || refused("Forbidden", json!({})));
    insta::assert_snapshot!(scene.patches("InternalError"));
}

#[test]
fn reason_internal_error_of_a_lock_that_could_not_be_written() {
    let scene = hens([]).answer("lock", || refused("Invalid", json!({"message": "annotations end at 256 KiB"})));
    insta::assert_snapshot!(scene.patches("InternalError"));
}

#[test]
fn reason_logical_cluster_not_found() {
    let mut scene = hens([]);
    scene.objects.retain(|seen| seen.1 != api::Kind::LogicalCluster);
    insta::assert_snapshot!(scene.patches("LogicalClusterNotFound"));
}

#[test]
fn reason_naming_conflicts_of_an_unreadable_annotation() {
    insta::assert_snapshot!(hens([home(json!({"legacy": {"hens.farm.test": {"n": 7}}}))]).patches("NamingConflicts"));
}

#[test]
fn reason_naming_conflicts_of_a_missing_annotation() {
    let mut objects = farm(&["hens"]);
    objects.extend([binding("mine", json!({})), home(json!({}))]);
    let scene = Scene::new(objects);
    insta::assert_snapshot!(shown(&play(Layout::Single, &scene.objects, "mine").effects));
}

#[test]
fn reason_naming_conflicts_of_a_name_that_is_taken() {
    insta::assert_snapshot!(hens([own_crd("hens", json!({}))]).patches("NamingConflicts"));
}

#[test]
fn reason_naming_conflicts_of_what_others_hold() {
    let locks = json!({"hens.farm.test": {"n": "other"}, "ducks.farm.test": {"c": true}});
    let mut scene =
        hens([export(&["hens", "ducks"], json!({})), schema("ducks", json!({})), binding("other", json!({}))]);
    scene.objects.push(home(json!({"bindings": locks, "legacy": locks})));
    insta::assert_snapshot!(scene.patches("NamingConflicts"));
}

#[test]
fn reason_api_resource_schema_invalid() {
    let invalid = || {
        let causes =
            json!([{"field": "spec.names.kind", "message": "must be a DNS label", "reason": "FieldValueInvalid"}]);
        refused("Invalid", json!({"details": {"causes": causes}}))
    };
    insta::assert_snapshot!(new_hens(json!({})).answer("create", invalid).patches("APIResourceSchemaInvalid"));
}
