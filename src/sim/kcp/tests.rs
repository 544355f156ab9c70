//! What no recorded exchange shows.

use serde_json::{Value, json};

use super::*;
use crate::api::Text;
use crate::effect::{Effect, Outcome, Patch};

const BINDINGS: Kind = Kind::ApiBinding;
const HOMES: Kind = Kind::LogicalCluster;

fn kcp() -> Kcp {
    let mut kcp = Kcp::new(1);
    kcp.set_now("2026-06-01T12:00:00.5Z".parse().unwrap());
    kcp.handle(apply_to_home(json!({"a": "1"}), "one", false)).unwrap();
    kcp
}

fn home(annotations: Value) -> Value {
    json!({"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster", "metadata": {"name": "cluster", "annotations": annotations}})
}

fn apply_to_home(annotations: Value, manager: &str, force: bool) -> Request {
    Request::apply(HOMES, "meadow", "cluster", home(annotations), force).managed_by(manager)
}

fn binding(name: &str) -> Value {
    json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": {"name": name},
        "spec": {"reference": {"export": {"name": "geese", "path": "root:farm"}}},
    })
}

fn status(status: Value) -> Value {
    json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": {"name": "geese"}, "status": status})
}

fn apply_status(sent: Value, manager: &str, force: bool) -> Request {
    Request::apply(BINDINGS, "meadow", "geese", status(sent), force).managed_by(manager).of_status()
}

fn bound(resource: &str) -> Value {
    json!({"group": "farm.test", "resource": resource, "schema": {"name": "n", "UID": "u", "identityHash": "h"}})
}

fn key(name: &str) -> BindingKey {
    BindingKey::new("meadow", name)
}

fn refused(kcp: &mut Kcp, request: Request) -> Status {
    *kcp.handle(request).unwrap_err()
}

/// Code, reason, and for each cause its reason and field.
fn verdict(status: &Status) -> (i32, &str, Vec<(&str, &str)>) {
    let causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
    let causes =
        causes.map(|cause| (cause.reason.as_deref().unwrap_or_default(), cause.field.as_deref().unwrap_or_default()));
    (status.code.unwrap_or_default(), status.reason.as_deref().unwrap_or_default(), causes.collect())
}

fn own_annotations(body: &Value) -> Vec<(&str, &str)> {
    let annotations = body["metadata"]["annotations"].as_object().unwrap().iter();
    annotations
        .filter(|(name, _)| !name.starts_with("kcp.io/"))
        .map(|(name, text)| (name.as_str(), text.as_str().unwrap()))
        .collect()
}

#[test]
fn a_field_of_another_manager_is_taken_by_force_only() {
    let mut kcp = kcp();
    let conflict = refused(&mut kcp, apply_to_home(json!({"a": "2"}), "two", false));
    assert_eq!(verdict(&conflict), (409, "Conflict", vec![("FieldManagerConflict", ".metadata.annotations.a")]));
    assert_eq!(
        conflict.message.as_deref(),
        Some("Apply failed with 1 conflict: conflict with \"one\": .metadata.annotations.a")
    );
    assert_eq!(conflict.details.unwrap().name, None);

    let forced = kcp.handle(apply_to_home(json!({"a": "2"}), "two", true)).unwrap();
    assert_eq!(own_annotations(&forced.body), [("a", "2")]);
    // The first sends nothing any more: what is not its own stays.
    let rest = kcp.handle(apply_to_home(json!({}), "one", false)).unwrap();
    assert_eq!(own_annotations(&rest.body), [("a", "2")]);
}

#[test]
fn what_its_only_owner_stops_sending_goes_and_what_is_shared_stays() {
    let mut kcp = kcp();
    let shared = kcp.handle(apply_to_home(json!({"a": "1", "b": "1"}), "two", false)).unwrap();
    assert_eq!(own_annotations(&shared.body), [("a", "1"), ("b", "1")]);
    let less = kcp.handle(apply_to_home(json!({"c": "1"}), "two", false)).unwrap();
    assert_eq!(own_annotations(&less.body), [("a", "1"), ("c", "1")]);
    let none = kcp.handle(apply_to_home(json!({}), "one", false)).unwrap();
    assert_eq!(own_annotations(&none.body), [("c", "1")]);
    assert_eq!(none.body["metadata"]["annotations"]["kcp.io/cluster"], "meadow");
}

#[test]
fn what_others_change_or_take_away_is_no_longer_an_appliers() {
    let mut kcp = kcp();
    let gone = json!({"metadata": {"annotations": {"a": null}}});
    kcp.handle(Request::merge(HOMES, "meadow", "cluster", gone)).unwrap();
    let owners = kcp.managed_fields(Origin::Local, HOMES, &key("cluster")).unwrap();
    assert!(!owners.to_string().contains("f:a\""), "{owners}");
    kcp.handle(apply_to_home(json!({"a": "2"}), "two", false)).unwrap();

    kcp.handle(apply_to_home(json!({"a": "3"}), "one", true)).unwrap();
    let rest = kcp.handle(apply_to_home(json!({}), "two", false)).unwrap();
    assert_eq!(own_annotations(&rest.body), [("a", "3")], "taken by force");
}

#[test]
fn an_apply_that_changes_nothing_keeps_the_version_and_leaves_no_trace() {
    let mut kcp = kcp();
    let version = kcp.version();
    kcp.handle(apply_to_home(json!({"a": "1"}), "one", false)).unwrap();
    kcp.handle(apply_to_home(json!({"a": "9"}), "one", false).dry_run()).unwrap();
    assert_eq!(kcp.version(), version);
    // Another owner is a change.
    kcp.handle(apply_to_home(json!({"a": "1"}), "two", false)).unwrap();
    assert_eq!(kcp.version(), version + 1);
}

#[test]
fn an_apply_to_nothing_creates_unless_it_says_which_one_it_means() {
    let mut kcp = kcp();
    let request = |field: &str| {
        let mut body = home(json!({}));
        body["metadata"][field] = json!("7");
        Request::apply(HOMES, "elsewhere", "cluster", body, true).managed_by("one")
    };
    assert_eq!(verdict(&refused(&mut kcp, request("resourceVersion"))), (409, "Conflict", vec![]));
    assert_eq!(verdict(&refused(&mut kcp, request("uid"))).0, 422);
    assert!(kcp.get(Origin::Local, HOMES, &BindingKey::new("elsewhere", "cluster")).is_none());
}

#[test]
fn annotations_end_at_256_kib() {
    let mut kcp = kcp();
    let room = valid::ANNOTATIONS - "akcp.io/clustermeadow".len();
    kcp.handle(apply_to_home(json!({"a": "x".repeat(room)}), "one", false)).unwrap();
    let over = refused(&mut kcp, apply_to_home(json!({"a": "x".repeat(room + 1)}), "one", false));
    assert_eq!(verdict(&over), (422, "Invalid", vec![("FieldValueTooLong", "metadata.annotations")]));
}

#[test]
fn bound_resources_are_owned_each_for_itself_and_conditions_all_together() {
    let mut kcp = kcp();
    kcp.handle(Request::create(BINDINGS, "meadow", binding("geese"))).unwrap();
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-06-01T12:00:00.25Z"});
    let one = json!({"boundResources": [bound("geese")], "conditions": [condition("A")]});
    kcp.handle(apply_status(one, "one", false)).unwrap();
    let two = json!({"boundResources": [bound("ducks")]});
    let both = kcp.handle(apply_status(two, "two", false)).unwrap();
    let resources = |body: &Value| -> Vec<Value> {
        body["status"]["boundResources"].as_array().unwrap().iter().map(|entry| entry["resource"].clone()).collect()
    };
    assert_eq!(resources(&both.body).len(), 2);
    assert_eq!(both.body["status"]["conditions"][0]["lastTransitionTime"], "2026-06-01T12:00:00Z");

    let conditions = json!({"boundResources": [bound("ducks")], "conditions": [condition("B")]});
    let conflict = refused(&mut kcp, apply_status(conditions, "two", false));
    assert_eq!(verdict(&conflict).2, [("FieldManagerConflict", ".status.conditions")]);
    let rest = kcp.handle(apply_status(json!({"conditions": [condition("A")]}), "one", false)).unwrap();
    assert_eq!(resources(&rest.body), ["ducks"]);
}

#[test]
fn an_object_with_finalizers_goes_when_the_last_is_taken_off() {
    let mut kcp = kcp();
    let created = kcp.handle(Request::create(BINDINGS, "meadow", binding("geese"))).unwrap();
    let start = kcp.version();
    assert_eq!(created.body["metadata"]["finalizers"], json!(["apis.kcp.io/apibinding-finalizer"]));

    let held = kcp.handle(Request::delete(BINDINGS, "meadow", "geese")).unwrap();
    assert_eq!(held.body["metadata"]["deletionTimestamp"], "2026-06-01T12:00:00Z");
    assert_eq!(held.body["metadata"]["generation"], 2);
    kcp.handle(Request::delete(BINDINGS, "meadow", "geese")).unwrap();

    let freed = json!({"metadata": {"finalizers": null}});
    kcp.handle(Request::merge(BINDINGS, "meadow", "geese", freed)).unwrap();
    assert_eq!(verdict(&refused(&mut kcp, Request::get(BINDINGS, "meadow", "geese"))).1, "NotFound");

    let events: Vec<_> = kcp.events_since(Origin::Local, BINDINGS, start).unwrap().collect();
    assert_eq!(events.iter().map(|event| event.happened).collect::<Vec<_>>(), [Happened::Modified, Happened::Deleted]);
    assert_eq!(events[1].object["metadata"]["resourceVersion"], json!(events[1].version.to_string()));
    assert_eq!(events[1].object["metadata"]["finalizers"], json!(["apis.kcp.io/apibinding-finalizer"]));

    // The next of this name is another.
    let again = kcp.handle(Request::create(BINDINGS, "meadow", binding("geese"))).unwrap();
    assert_ne!(again.body["metadata"]["uid"], created.body["metadata"]["uid"]);
}

#[test]
fn history_that_was_forgotten_is_expired() {
    let mut kcp = kcp();
    kcp.handle(apply_to_home(json!({"a": "2"}), "one", false)).unwrap();
    let version = kcp.version();
    kcp.compact(version);
    assert_eq!(verdict(&kcp.events_since(Origin::Local, HOMES, version - 1).err().unwrap()).0, 410);
    assert_eq!(kcp.events_since(Origin::Local, HOMES, version).unwrap().count(), 0);
    assert_eq!(kcp.events_since(Origin::Local, HOMES, version + 100).unwrap().count(), 0, "of the future: silence");
}

#[test]
fn a_list_of_the_past_is_that_of_now_with_what_happened_since_undone() {
    let mut kcp = kcp();
    let create =
        |kcp: &mut Kcp, name: &str| drop(kcp.handle(Request::create(BINDINGS, "meadow", binding(name))).unwrap());
    let take_finalizers = json!({"metadata": {"finalizers": null}});
    let mut then = Vec::new();
    let mut remember = |kcp: &Kcp| then.push((kcp.version(), kcp.relist(Origin::Local, BINDINGS)));
    remember(&kcp);
    create(&mut kcp, "geese");
    create(&mut kcp, "ducks");
    remember(&kcp);
    kcp.handle(apply_status(json!({"phase": "Binding"}), "one", false)).unwrap();
    kcp.handle(Request::merge(BINDINGS, "meadow", "ducks", take_finalizers)).unwrap();
    remember(&kcp);
    kcp.handle(Request::delete(BINDINGS, "meadow", "ducks")).unwrap();
    create(&mut kcp, "ducks");
    kcp.handle(Request::delete(BINDINGS, "meadow", "geese")).unwrap();
    remember(&kcp);
    for (version, list) in &then {
        assert_eq!(kcp.relist_at(Origin::Local, BINDINGS, *version).unwrap(), *list, "at {version}");
    }
    kcp.compact(then[1].0);
    assert_eq!(kcp.relist_at(Origin::Local, BINDINGS, then[0].0).unwrap_err().code, Some(410));
    assert_eq!(kcp.relist_at(Origin::Local, BINDINGS, then[1].0).unwrap(), then[1].1);
}

#[test]
fn an_update_needs_a_version_and_leaves_the_status_alone() {
    let mut kcp = kcp();
    kcp.handle(Request::create(BINDINGS, "meadow", binding("geese"))).unwrap();
    kcp.handle(apply_status(json!({"phase": "Binding"}), "one", false)).unwrap();
    let none = refused(&mut kcp, Request::update(BINDINGS, "meadow", "geese", binding("geese")));
    assert_eq!(verdict(&none), (422, "Invalid", vec![("FieldValueInvalid", "metadata.resourceVersion")]));

    let mut body = Value::clone(kcp.get(Origin::Local, BINDINGS, &key("geese")).unwrap());
    body["status"]["phase"] = json!("Bound");
    body["metadata"]["labels"] = json!({"a": "b"});
    let labelled = kcp.handle(Request::update(BINDINGS, "meadow", "geese", body.clone())).unwrap();
    assert_eq!(labelled.body["status"]["phase"], "Binding");
    assert_eq!(labelled.body["metadata"]["generation"], 1);

    body["metadata"]["resourceVersion"] = labelled.body["metadata"]["resourceVersion"].clone();
    body["spec"]["permissionClaims"] = json!([
        {"resource": "ducks", "verbs": ["*"], "state": "Accepted", "selector": {"matchAll": true}}
    ]);
    let claimed = kcp.handle(Request::update(BINDINGS, "meadow", "geese", body.clone())).unwrap();
    assert_eq!(claimed.body["spec"]["permissionClaims"][0]["identityHash"], "", "a default");
    assert_eq!(claimed.body["metadata"]["generation"], 2);

    body["metadata"]["resourceVersion"] = claimed.body["metadata"]["resourceVersion"].clone();
    body["metadata"]["uid"] = json!("another");
    assert_eq!(verdict(&refused(&mut kcp, Request::update(BINDINGS, "meadow", "geese", body))).1, "Conflict");
}

#[test]
fn references_and_schemas_do_not_change() {
    let mut kcp = kcp();
    kcp.handle(Request::create(BINDINGS, "meadow", binding("geese"))).unwrap();
    let other = json!({"spec": {"reference": {"export": {"name": "ducks"}}}});
    assert_eq!(
        verdict(&refused(&mut kcp, Request::merge(BINDINGS, "meadow", "geese", other))),
        (422, "Invalid", vec![("FieldValueInvalid", "spec.reference")])
    );
    let schema = json!({
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": {"name": "v1.geese.farm.test"},
        "spec": {
            "group": "farm.test",
            "names": {"plural": "geese", "kind": "Goose"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}}],
        },
    });
    kcp.handle(Request::create(Kind::ApiResourceSchema, "meadow", schema)).unwrap();
    let scope = json!({"spec": {"scope": "Namespaced"}});
    let request = Request::merge(Kind::ApiResourceSchema, "meadow", "v1.geese.farm.test", scope);
    assert_eq!(verdict(&refused(&mut kcp, request)).1, "Forbidden");
}

#[test]
fn the_cache_is_a_copy_under_the_same_sequence() {
    let mut kcp = kcp();
    let export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "geese"}});
    let local = kcp.handle(Request::create(Kind::ApiExport, "meadow", export)).unwrap().body;
    kcp.replicate(Kind::ApiExport, &key("geese"));
    let version = kcp.version();
    kcp.replicate(Kind::ApiExport, &key("geese"));
    assert_eq!(kcp.version(), version, "nothing changed");
    let copy = kcp.get(Origin::Global, Kind::ApiExport, &key("geese")).unwrap();
    assert_eq!(copy["metadata"]["uid"], local["metadata"]["uid"]);
    assert_eq!(copy["metadata"]["resourceVersion"], json!(version.to_string()));
    assert_eq!(
        copy["metadata"]["annotations"]["cache.kcp.io/original-resource-version"],
        local["metadata"]["resourceVersion"]
    );

    kcp.handle(Request::delete(Kind::ApiExport, "meadow", "geese")).unwrap();
    kcp.replicate(Kind::ApiExport, &key("geese"));
    assert!(kcp.get(Origin::Global, Kind::ApiExport, &key("geese")).is_none());
}

fn lock(version: &Value, force: bool) -> Effect {
    let mut body = home(json!({"a": "2"}));
    body["metadata"]["resourceVersion"] = version.clone();
    let body = serde_json::from_value(body).unwrap();
    Effect::PatchLogicalCluster(Patch {
        cluster: "meadow".into(),
        name: "cluster".into(),
        subresource: Text::default(),
        field_manager: "kcp-apibinding".into(),
        force,
        resource_version: version.as_str().unwrap().into(),
        body,
    })
}

#[test]
fn an_effect_in_conflict_brings_the_object() {
    let mut kcp = kcp();
    let version = kcp.get(Origin::Local, HOMES, &key("cluster")).unwrap()["metadata"]["resourceVersion"].clone();
    let Outcome::Conflict { current: Some(current), .. } = kcp.execute(&lock(&version, false)) else { panic!() };
    assert_eq!(json!(current.metadata().resource_version), version);
    let Outcome::Done(done) = kcp.execute(&lock(&version, true)) else { panic!() };
    assert_eq!(done.metadata().annotations.as_ref().unwrap()["a"], "2");
    let Outcome::Conflict { status, .. } = kcp.execute(&lock(&version, true)) else { panic!() };
    assert_eq!(verdict(&status), (409, "Conflict", vec![]));

    let Outcome::Refused(no) = kcp.execute(&Effect::ReadApiBinding(key("geese"))) else { panic!() };
    assert_eq!(verdict(&no).1, "NotFound");
}

#[test]
fn the_same_seed_and_requests_give_the_same_bytes() {
    let run = || {
        let mut kcp = kcp();
        kcp.handle(Request::create(BINDINGS, "meadow", binding("geese"))).unwrap().body.to_string()
    };
    assert_eq!(run(), run());
}
