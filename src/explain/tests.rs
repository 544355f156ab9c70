//! Explanations of small worlds: what is found, what it waits for, and the cure.

use serde_json::{Value, json};

use super::*;
use crate::api::{Kind, Object};
use crate::snapshot::{Change, Layer, Layout};

/// A binding `geese` of `meadow` that wants the geese of `farm`, with everything it needs.
struct Scene {
    layout: Layout,
    objects: Vec<(Kind, Value)>,
}

fn metadata(cluster: &str, name: &str) -> Value {
    json!({
        "name": name, "uid": format!("{cluster}-{name}"), "resourceVersion": "5",
        "annotations": {"kcp.io/cluster": cluster},
    })
}

fn names(plural: &str, kind: &str) -> Value {
    json!({"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")})
}

fn schema(plural: &str, kind: &str) -> Value {
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}});
    json!({
        "metadata": metadata("farm", &format!("v1.{plural}")),
        "spec": {"group": "farm.example", "scope": "Cluster", "names": names(plural, kind), "versions": [version]},
    })
}

fn crd(cluster: &str, name: &str, names: &Value, established: bool) -> Value {
    let condition = |kind: &str| json!({"type": kind, "status": if established { "True" } else { "False" }});
    json!({
        "metadata": metadata(cluster, name), "spec": {"group": "farm.example", "names": names},
        "status": {"acceptedNames": names, "conditions": [condition("Established"), condition("NamesAccepted")]},
    })
}

impl Scene {
    fn new() -> Self {
        let export = json!({
            "metadata": metadata("farm", "geese"), "status": {"identityHash": "h0nk"},
            "spec": {"resources": [
                {"name": "geese", "group": "farm.example", "schema": "v1.geese", "storage": {"crd": {}}},
            ]},
        });
        let binding = json!({
            "metadata": metadata("meadow", "geese"), "status": {"phase": "Binding"},
            "spec": {"reference": {"export": {"path": "farm", "name": "geese"}}},
        });
        let objects = vec![
            (Kind::LogicalCluster, json!({"metadata": metadata("meadow", "cluster")})),
            (Kind::ApiExport, export),
            (Kind::ApiResourceSchema, schema("geese", "Goose")),
            (Kind::Crd, crd(ClusterName::BOUND_CRDS, "farm-v1.geese", &names("geese", "Goose"), true)),
            (Kind::ApiBinding, binding),
        ];
        Self { layout: Layout::Split, objects }
    }

    fn without(mut self, kind: Kind) -> Self {
        self.objects.retain(|(found, _)| *found != kind);
        self
    }

    fn with(mut self, kind: Kind, object: Value) -> Self {
        self.objects.push((kind, object));
        self
    }

    /// Sets a field of the last object of a kind, by JSON pointer to its parent.
    fn set(mut self, kind: Kind, parent: &str, field: &str, value: Value) -> Self {
        let object = self.objects.iter_mut().rev().find(|(found, _)| *found == kind);
        object.unwrap().1.pointer_mut(parent).unwrap()[field] = value;
        self
    }

    fn lock(self, layer: Layer, text: &str) -> Self {
        self.set(Kind::LogicalCluster, "/metadata/annotations", layer.annotation(), json!(text))
    }

    fn explain(&self) -> Explanation {
        let mut snapshot = Snapshot::new(self.layout);
        snapshot.set_now("2026-06-01T12:00:00Z".parse().unwrap());
        for (kind, object) in &self.objects {
            snapshot.apply(Change::put(Object::from_json(*kind, &object.to_string()).unwrap()));
        }
        explain(&snapshot, &"meadow|geese".parse().unwrap())
    }

    /// The state, and parts of what it waits for and of the cure; empty: there is none.
    #[track_caller]
    fn check(self, state: State, waits_for: &str, cure: &str) -> Explanation {
        let explanation = self.explain();
        let shown = explanation.to_string();
        assert_eq!(explanation.verdict.state, state, "{shown}");
        let contains = |lines: &[String], part: &str| match part {
            "" => lines.is_empty(),
            part => lines.iter().any(|line| line.contains(part)),
        };
        assert!(contains(&explanation.waits_for, waits_for), "waits for {waits_for}: {shown}");
        assert!(contains(&explanation.cures, cure), "cure {cure}: {shown}");
        explanation
    }
}

#[test]
fn a_binding_that_is_bound() {
    let bound = json!([{
        "group": "farm.example", "resource": "geese",
        "schema": {"name": "v1.geese", "UID": "farm-v1.geese", "identityHash": "h0nk"},
    }]);
    let scene = Scene::new()
        .set(Kind::ApiBinding, "/status", "phase", json!("Bound"))
        .set(Kind::ApiBinding, "/status", "boundResources", bound)
        .lock(Layer::Bindings, r#"{"geese.farm.example":{"n":"geese","u":"meadow-geese"}}"#);
    let explanation = scene.check(State::Bound, "", "");
    assert!(explanation.is_bound());
    assert!(explanation.resources.iter().all(|resource| resource.bound));
    assert_eq!(explanation.export.and_then(|export| export.identity), Some("h0nk".into()));
}

#[test]
fn one_that_can_go_on_by_itself() {
    Scene::new().check(State::Progressing, "", "");
    let waits = Scene::new().set(Kind::Crd, "/status/conditions/0", "status", json!("False"));
    waits.check(State::Progressing, "farm-v1.geese (geese.farm.example) to be Established", "");
    Scene::new().without(Kind::Crd).check(State::Progressing, "", "");
}

#[test]
fn one_without_a_phase_is_looked_ahead_for() {
    let scene = Scene::new().set(Kind::ApiBinding, "/status", "phase", json!(""));
    let explanation = scene.check(State::Progressing, "", "");
    assert_eq!(explanation.phase, Some(Phase::New));
    assert_eq!(explanation.resources.len(), 1, "the chain is told to its end");
    assert_eq!(explanation.next.last(), Some(&Effect::Requeue(Retry::Now)), "what comes next is told as it is");
    let scene = Scene::new().without(Kind::ApiExport).set(Kind::ApiBinding, "/status", "phase", json!(""));
    scene.check(State::Stuck, "an APIExport `geese`", "create the APIExport");
}

#[test]
fn the_export() {
    let none = Scene::new().set(Kind::ApiBinding, "/spec", "reference", json!({}));
    none.check(State::Stuck, "", "spec.reference.export");
    Scene::new().without(Kind::ApiExport).check(State::Stuck, "an APIExport `geese`", "is `farm` the path");
    let local = Scene::new().set(Kind::ApiBinding, "/spec/reference/export", "path", json!(""));
    local.check(State::Stuck, "an APIExport `geese`", "no path");
    let mut twin = metadata("barn", "geese");
    twin["annotations"]["kcp.io/path"] = json!("farm");
    let several = Scene::new().with(Kind::ApiExport, json!({"metadata": twin}));
    several.check(State::Stuck, "barn|geese, farm|geese", "by the id of its logical cluster");
    let new = Scene::new().set(Kind::ApiExport, "/status", "identityHash", json!(""));
    new.check(State::Stuck, "status.identityHash of APIExport farm|geese", "");
    let schema = Scene::new().without(Kind::ApiResourceSchema);
    schema.check(State::Stuck, "APIResourceSchema farm|v1.geese", "owner of the APIExport");
}

#[test]
fn the_locks() {
    let lock = |text: &str| Scene::new().lock(Layer::Bindings, text);
    Scene::new().without(Kind::LogicalCluster).check(State::Stuck, "LogicalCluster meadow|cluster", "");
    let unreadable = Scene::new().lock(Layer::Crds, "[]");
    unreadable.check(State::Stuck, "locks-crds", "correct the annotation");
    let mut single = Scene::new();
    single.layout = Layout::Single;
    single.check(State::Stuck, "resource-bindings of LogicalCluster meadow|cluster to be there", "none is needed");
    let mut single = Scene::new().lock(Layer::Legacy, "[]");
    single.layout = Layout::Single;
    single.check(State::Stuck, "to be readable", "remove the annotation");

    let pond = json!({"metadata": metadata("meadow", "pond")});
    let held = lock(r#"{"geese.farm.example":{"n":"pond"}}"#).with(Kind::ApiBinding, pond);
    let explanation = held.explain();
    let found = explanation.resources.first().and_then(|resource| resource.lock.clone());
    let holder = LockFound::Held {
        binding: "pond".into(),
        crd: false,
        layer: Some(Layer::Bindings),
        over: None,
        crd_exists: false,
    };
    assert_eq!(found, Some(holder));
    held.check(State::Stuck, "APIBinding `pond` to give up geese.farm.example", "delete APIBinding `pond`");
}

#[test]
fn locks_that_are_put_right() {
    let unreadable = Scene::new().lock(Layer::Bindings, "[]").check(State::Progressing, "", "");
    assert!(matches!(unreadable.locks, Some(HomeFound::WrittenAnew { .. })), "{unreadable}");
    assert!(unreadable.to_string().contains("locks-bindings is written anew"));
    let gone = Scene::new().lock(Layer::Bindings, r#"{"geese.farm.example":{"n":"pond"}}"#);
    let gone = gone.check(State::Progressing, "", "");
    let found = gone.resources.first().and_then(|resource| resource.lock.clone());
    assert_eq!(found, Some(LockFound::Abandoned { binding: "pond".into() }));
}

#[test]
fn locks_that_are_had_or_to_be_had() {
    let found = |scene: Scene| scene.explain().resources.first().and_then(|resource| resource.lock.clone());
    let own = |text: &str| found(Scene::new().lock(Layer::Bindings, text));
    assert_eq!(found(Scene::new()), Some(LockFound::Free));
    assert_eq!(own(r#"{"geese.farm.example":{}}"#), Some(LockFound::Free), "D7");
    assert_eq!(own(r#"{"geese.farm.example":{"n":"geese","u":"meadow-geese"}}"#), Some(LockFound::Own));
    let over = Scene::new().lock(Layer::Pending, r#"{"geese.farm.example":{"c":true,"e":"2020-06-01T12:00:00Z"}}"#);
    let ended = "2020-06-01T12:01:15Z".parse().unwrap();
    assert_eq!(found(over), Some(LockFound::TakenOver { ended }));
}

#[test]
fn locks_of_crds() {
    let crds = |text: &str| Scene::new().lock(Layer::Crds, text);
    let crd = crd("meadow", "geese.farm.example", &names("geese", "Gander"), true);
    let exists = crds(r#"{"geese.farm.example":{"c":true}}"#).with(Kind::Crd, crd);
    exists.check(
        State::Stuck,
        "geese.farm.example to be deleted",
        "delete CustomResourceDefinition `geese.farm.example`",
    );

    let coming = crds(r#"{"geese.farm.example":{"c":true,"e":"2026-06-01T12:00:00Z"}}"#);
    let explanation = coming.check(State::Stuck, "just after 2026-06-01T12:01:15Z", "");
    let time = "2026-06-01T12:01:15Z".parse().unwrap();
    assert_eq!(explanation.next.last(), Some(&Effect::Requeue(Retry::After(time))));

    let gone = crds(r#"{"geese.farm.example":{"c":true}}"#);
    let entry = "remove the entry `geese.farm.example` from annotation internal.apis.kcp.io/locks-crds of LogicalCluster \
                 meadow|cluster";
    gone.check(State::Stuck, "the entry `geese.farm.example`", entry);
}

#[test]
fn names_and_crds() {
    let crd = crd("meadow", "ganders.farm.example", &names("ganders", "Goose"), true);
    let conflict = Scene::new().with(Kind::Crd, crd);
    let explanation = conflict.check(State::Stuck, "the name that geese.farm.example needs", "`ganders.farm.example`");
    let conflict = explanation.resources.first().and_then(|resource| resource.conflict.clone());
    assert_eq!(conflict.map(|conflict| (conflict.binding, conflict.crd)), Some((None, "ganders.farm.example".into())));

    let broken =
        Scene::new().without(Kind::Crd).set(Kind::ApiResourceSchema, "/spec/versions/0", "schema", json!({"type": 7}));
    broken.check(State::Stuck, "another schema than farm|v1.geese", "type: expected a string, found `7`");
}

#[test]
fn what_was_tried_and_refused_is_not_forgotten() {
    let message = "APIResourceSchema farm|v1.geese is invalid: spec.scope: no";
    let reported = json!([
        {"type": "BindingUpToDate", "status": "False", "reason": "APIResourceSchemaInvalid", "message": message},
    ]);
    let refused = || Scene::new().set(Kind::ApiBinding, "/status", "conditions", reported.clone());
    let explanation = refused().without(Kind::Crd).check(State::Stuck, "another schema", "the server accepts");
    assert_eq!(explanation.verdict.message, message);
    refused().check(State::Progressing, "", "");
}

#[test]
fn bindings_that_nobody_binds() {
    let absent = Scene::new().without(Kind::ApiBinding).check(State::Absent, "", "");
    assert!(absent.to_string().contains("does not exist"));
    let unknown = Scene::new().set(Kind::ApiBinding, "/status", "phase", json!("Resting"));
    let unknown = unknown.check(State::Unknown, "", "");
    assert!(unknown.verdict.message.contains("Resting"));
}

#[test]
fn an_explanation_is_a_tree_and_data() {
    let held = Scene::new().lock(Layer::Bindings, r#"{"geese.farm.example":{"n":"pond"}}"#);
    let held = held.with(Kind::ApiBinding, json!({"metadata": metadata("meadow", "pond")})).explain();
    let expected = "\
APIBinding meadow|geese, in phase Binding
├─ ✓ export `geese` at farm: farm|geese, on this shard
├─ ✓ identity h0nk
├─ geese.farm.example, schema farm|v1.geese
│  ├─ ✗ lock: held by APIBinding `pond` (annotation internal.apis.kcp.io/locks-bindings)
│  └─ · names and CRD are not looked at while it is held
└─ ✗ not bound (NamingConflicts): Unable to bind APIs because they are bound by other APIBindings or CRDs: \
                    geese.farm.example (APIBinding \"pond\")
   ├─ next: apply status to APIBinding meadow|geese as kcp-apibinding, forced, at resourceVersion 5
   ├─ waits for APIBinding `pond` to give up geese.farm.example
   └─ cure: delete APIBinding `pond`, or do without this one: both want geese.farm.example
";
    assert_eq!(held.to_string(), expected);
    let data = serde_json::to_value(&held).unwrap();
    assert_eq!(data["resources"][0]["lock"]["held"]["binding"], json!("pond"));
    assert_eq!(data["verdict"]["state"], json!("stuck"));
}
