//! Small worlds for tests: a farm that exports, and a meadow that binds.
//!
//! Objects are JSON with defaults that make a binding succeed; a test says only what is different,
//! as JSON that is merged in (`null` takes a field out). Resources are plurals that end in `s`; all
//! other names, uids and groups follow from them: `hens` is `hens.farm.test`, of kind `Hen`, with the
//! schema `farm|v1.hens.farm.test` of uid `s-hens`, which is also the name of its bound CRD.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use serde_json::{Value, json};

use crate::api::{ApiBindingStatus, BindingKey, Condition, Kind, Object};
use crate::effect::{Effect, Outcome, Patch, Retry};
use crate::pass::{Pass, Step};
use crate::snapshot::{Change, Layout, Origin, Snapshot};

/// The time in every world, unless a test sets another.
pub(crate) const NOW: &str = "2026-06-01T12:00:00Z";

/// An object, and where it is seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen(pub(crate) Origin, pub(crate) Kind, pub(crate) Value);

impl Seen {
    pub(crate) fn object(&self) -> Object {
        Object::from_json(self.1, &self.2.to_string()).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn put(&self) -> Change {
        Change::Put { origin: self.0, object: Box::new(self.object()) }
    }

    pub(crate) fn delete(&self) -> Change {
        let object = self.object();
        let version = object.metadata().resource_version.as_deref().unwrap_or_default().into();
        Change::Delete { origin: self.0, kind: self.1, key: object.key(), resource_version: version }
    }

    /// The copy on the cache server.
    pub(crate) fn global(mut self) -> Self {
        self.0 = Origin::Global;
        self
    }

    /// The same, but for what is merged in.
    pub(crate) fn but(mut self, more: Value) -> Self {
        merge(&mut self.2, more);
        self
    }
}

/// Merges like a JSON merge patch.
pub(crate) fn merge(value: &mut Value, more: Value) {
    match more {
        Value::Object(fields) => {
            if !value.is_object() {
                *value = json!({});
            }
            for (name, field) in fields {
                match field {
                    Value::Null => _ = value.as_object_mut().and_then(|object| object.remove(&name)),
                    field => merge(&mut value[&name], field),
                }
            }
        }
        other => *value = other,
    }
}

fn named(kind: Kind, cluster: &str, name: &str, spec: Value) -> Seen {
    let metadata = json!({"name": name, "uid": format!("u-{name}"), "resourceVersion": "10",
        "annotations": {"kcp.io/cluster": cluster}});
    let seen = Seen(Origin::Local, kind, json!({"metadata": metadata}));
    seen.but(spec)
}

/// The binding `meadow|<name>` of the export `root:farm:farm`, at phase `Binding`.
pub(crate) fn binding(name: &str, more: Value) -> Seen {
    let base = json!({
        "metadata": {"resourceVersion": "5"},
        "spec": {"reference": {"export": {"path": "root:farm", "name": "farm"}}},
        "status": {"phase": "Binding"},
    });
    named(Kind::ApiBinding, "meadow", name, base).but(more)
}

/// The entry in `status.boundResources` of a resource that is bound.
pub(crate) fn bound(plural: &str) -> Value {
    let schema =
        json!({"name": format!("v1.{plural}.farm.test"), "UID": format!("s-{plural}"), "identityHash": "id-farm"});
    json!({"group": "farm.test", "resource": plural, "schema": schema, "storageVersions": ["v1"]})
}

/// A status with these resources bound.
pub(crate) fn has_bound(plurals: &[&str]) -> Value {
    let entries: Vec<Value> = plurals.iter().map(|plural| bound(plural)).collect();
    json!({"status": {"phase": "Bound", "boundResources": entries}})
}

/// The export `farm|farm` (at `root:farm`) of these resources.
pub(crate) fn export(plurals: &[&str], more: Value) -> Seen {
    let resource = |plural: &&str| json!({"name": plural, "group": "farm.test", "schema": format!("v1.{plural}.farm.test"), "storage": {"crd": {}}});
    let base = json!({
        "metadata": {"annotations": {"kcp.io/path": "root:farm"}},
        "spec": {"resources": plurals.iter().map(resource).collect::<Vec<_>>()},
        "status": {"identityHash": "id-farm"},
    });
    named(Kind::ApiExport, "farm", "farm", base).but(more)
}

/// The names of a resource.
pub(crate) fn names(plural: &str) -> Value {
    let singular = plural.strip_suffix('s').unwrap_or(plural);
    let kind = singular[..1].to_uppercase() + &singular[1..];
    json!({"plural": plural, "singular": singular, "kind": kind, "listKind": format!("{kind}List")})
}

/// The schema `farm|v1.<plural>.farm.test`.
pub(crate) fn schema(plural: &str, more: Value) -> Seen {
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}});
    let base = json!({
        "metadata": {"uid": format!("s-{plural}")},
        "spec": {"group": "farm.test", "scope": "Namespaced", "names": names(plural), "versions": [version]},
    });
    named(Kind::ApiResourceSchema, "farm", &format!("v1.{plural}.farm.test"), base).but(more)
}

pub(crate) fn conversion(plural: &str) -> Seen {
    named(Kind::ApiConversion, "farm", &format!("v1.{plural}.farm.test"), json!({}))
}

fn established(plural: &str) -> Value {
    let conditions = json!([{"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]);
    json!({
        "spec": {"group": "farm.test", "names": names(plural)},
        "status": {"acceptedNames": names(plural), "conditions": conditions, "storedVersions": ["v1"]},
    })
}

/// The bound CRD of a schema, established.
pub(crate) fn bound_crd(plural: &str, more: Value) -> Seen {
    let annotations =
        json!({"apis.kcp.io/schema-cluster": "farm", "apis.kcp.io/schema-name": format!("v1.{plural}.farm.test")});
    let seen = named(Kind::Crd, "system:bound-crds", &format!("s-{plural}"), established(plural));
    seen.but(json!({"metadata": {"annotations": annotations}})).but(more)
}

/// A CRD of the meadow's own, established.
pub(crate) fn own_crd(plural: &str, more: Value) -> Seen {
    named(Kind::Crd, "meadow", &format!("{plural}.farm.test"), established(plural)).but(more)
}

/// A CRD as it is right after its creation: nothing is judged yet.
pub(crate) fn unjudged() -> Value {
    json!({"status": null})
}

/// The meadow's LogicalCluster, at resourceVersion 7, with lock annotations by layer: `crds`,
/// `bindings`, `pending`, `legacy`. A text is taken as it is.
pub(crate) fn home(locks: Value) -> Seen {
    let mut annotations = json!({});
    for (layer, locks) in locks.as_object().into_iter().flatten() {
        let text = locks.as_str().map_or_else(|| locks.to_string(), Into::into);
        annotations[annotation(layer)] = json!(text);
    }
    let more = json!({"metadata": {"uid": "u-meadow", "resourceVersion": "7", "annotations": annotations}});
    named(Kind::LogicalCluster, "meadow", "cluster", more)
}

/// A layer's annotation.
pub(crate) fn annotation(layer: &str) -> &'static str {
    match layer {
        "crds" => "internal.apis.kcp.io/locks-crds",
        "bindings" => "internal.apis.kcp.io/locks-bindings",
        "pending" => "internal.apis.kcp.io/locks-pending",
        "legacy" => "internal.apis.kcp.io/resource-bindings",
        other => panic!("no layer {other}"),
    }
}

/// The time of [`NOW`] and so many seconds.
pub(crate) fn at(seconds: i64) -> String {
    let now: k8s_openapi::jiff::Timestamp = NOW.parse().unwrap();
    k8s_openapi::jiff::Timestamp::from_second(now.as_second() + seconds).unwrap().to_string()
}

/// A snapshot of these objects.
pub(crate) fn world<'a>(layout: Layout, objects: impl IntoIterator<Item = &'a Seen>) -> Snapshot {
    let mut snapshot = Snapshot::new(layout);
    snapshot.set_now(NOW.parse().unwrap());
    for seen in objects {
        snapshot.apply(seen.put());
    }
    snapshot
}

/// A farm that exports these resources, all established, without bindings and locks.
pub(crate) fn farm(plurals: &[&str]) -> Vec<Seen> {
    let mut objects = vec![export(plurals, json!({}))];
    objects.extend(plurals.iter().flat_map(|plural| [schema(plural, json!({})), bound_crd(plural, json!({}))]));
    objects
}

pub(crate) fn key(text: &str) -> BindingKey {
    text.parse().unwrap()
}

/// A refusal with this reason.
pub(crate) fn refused(reason: &str, more: Value) -> Outcome {
    Outcome::Refused(status(reason, more))
}

pub(crate) fn status(reason: &str, more: Value) -> Box<Status> {
    let mut status = json!({"status": "Failure", "reason": reason, "message": format!("{reason} it is")});
    merge(&mut status, more);
    Box::new(serde_json::from_value(status).unwrap())
}

/// A conflict, and the object as it is now.
pub(crate) fn conflict(current: Option<&Seen>) -> Outcome {
    Outcome::Conflict { status: status("Conflict", json!({})), current: current.map(|seen| Box::new(seen.object())) }
}

/// What the server says to an effect as the log has it, which came so often before.
type Answer<'a> = Box<dyn FnMut(&str, usize) -> Option<Outcome> + 'a>;

/// A server of one pass: it does what it is asked, unless the test answers, and keeps a log.
struct Server<'a> {
    objects: BTreeMap<(Kind, BindingKey), Value>,
    answer: Answer<'a>,
    log: Vec<String>,
    effects: Vec<Effect>,
    versions: u32,
}

/// What came of a pass.
pub(crate) struct Played {
    /// One line an effect, then when to look again.
    pub(crate) log: Vec<String>,
    /// The effects that were carried out.
    pub(crate) effects: Vec<Effect>,
    /// The status that the last plan wanted.
    pub(crate) status: ApiBindingStatus,
    pub(crate) snapshot: Snapshot,
}

impl Played {
    /// The conditions, a line each.
    pub(crate) fn conditions(&self) -> Vec<String> {
        self.status.conditions.iter().map(show).collect()
    }

    /// A condition as one line; empty if it is not there.
    pub(crate) fn condition(&self, kind: &str) -> String {
        self.status.condition(kind).map(show).unwrap_or_default()
    }

    /// Why the binding is not up to date.
    pub(crate) fn why(&self) -> String {
        self.condition("BindingUpToDate").trim_start_matches("BindingUpToDate ").to_owned()
    }

    /// The plural names that are bound.
    pub(crate) fn bound(&self) -> Vec<&str> {
        self.status.bound_resources.iter().map(|bound| bound.resource.as_str()).collect()
    }
}

/// A condition as one line.
pub(crate) fn show(condition: &Condition) -> String {
    let Condition { kind, status, severity, reason, message, .. } = condition;
    match reason.is_empty() {
        true => format!("{kind} {status}"),
        false => format!("{kind} {status} {reason} {severity} {message}"),
    }
}

/// Plays one pass against a server that does what it is asked.
pub(crate) fn play(layout: Layout, objects: &[Seen], name: &str) -> Played {
    play_with(world(layout, objects), objects, name, |_, _| None)
}

/// Plays one pass. `answer` hears each effect as the log has it, and how often that one came before;
/// `None`: the server does what it is asked.
pub(crate) fn play_with(
    mut snapshot: Snapshot,
    objects: &[Seen],
    name: &str,
    answer: impl FnMut(&str, usize) -> Option<Outcome>,
) -> Played {
    let local = objects.iter().filter(|seen| seen.0 == Origin::Local);
    let mut server = Server {
        objects: local.map(|seen| ((seen.1, seen.object().key()), seen.2.clone())).collect(),
        answer: Box::new(answer),
        log: Vec::new(),
        effects: Vec::new(),
        versions: 1000,
    };
    let mut pass = Pass::new(BindingKey::new("meadow", name));
    let retry = loop {
        match pass.poll(&snapshot) {
            Step::Act(effect) => {
                let outcome = server.execute(&effect);
                for change in pass.observe(outcome) {
                    snapshot.apply(change);
                }
            }
            Step::Done(retry) => break retry,
            #[allow(unreachable_patterns)]
            other => panic!("{other:?}"),
        }
        assert!(server.log.len() < 100, "no end: {:#?}", server.log);
    };
    let Server { mut log, effects, .. } = server;
    log.push(when(retry));
    Played { log, effects, status: pass.status().cloned().unwrap_or_default(), snapshot }
}

fn when(retry: Retry) -> String {
    match retry {
        Retry::Forget => "forget".into(),
        Retry::Now => "now".into(),
        Retry::After(time) => format!("after {time}"),
        Retry::Backoff { at_least: None } => "backoff".into(),
        Retry::Backoff { at_least: Some(wait) } => format!("backoff {} s", wait.as_secs()),
        #[allow(unreachable_patterns)]
        other => panic!("{other:?}"),
    }
}

/// An effect as the log has it.
pub(crate) fn line(effect: &Effect) -> String {
    match effect {
        Effect::CreateCrd(create) => format!("create {}", create.name),
        Effect::ReadApiBinding(key) => format!("read binding {}", key.name),
        Effect::ReadCrd(read) => format!("read crd {}", read.name),
        Effect::PatchLogicalCluster(patch) => {
            let body = patch.body.to_value();
            let annotations = body["metadata"]["annotations"].as_object().unwrap();
            let (name, text) = annotations.iter().next().unwrap();
            assert_eq!(annotations.len(), 1, "exactly one annotation");
            let layer = ["crds", "bindings", "pending", "legacy"].into_iter().find(|layer| annotation(layer) == name);
            let force = if patch.force { " forced" } else { "" };
            format!("lock {}{force} {}", layer.unwrap(), text.as_str().unwrap())
        }
        Effect::PatchApiBindingStatus(_) => "commit".into(),
        Effect::Requeue(retry) => when(*retry),
        #[allow(unreachable_patterns)]
        other => panic!("{other:?}"),
    }
}

impl Server<'_> {
    fn execute(&mut self, effect: &Effect) -> Outcome {
        let line = line(effect);
        let before = self.log.iter().filter(|known| **known == line).count();
        self.log.push(line.clone());
        self.effects.push(effect.clone());
        if let Some(outcome) = (self.answer)(&line, before) {
            if let Outcome::Conflict { current: Some(current), .. } = &outcome {
                let value = serde_json::to_value(current).unwrap();
                self.objects.insert((current.kind(), current.key()), value);
            }
            return outcome;
        }
        match effect {
            Effect::CreateCrd(create) => {
                let mut body = create.body.to_value();
                merge(
                    &mut body,
                    json!({"metadata": {"uid": format!("made-{}", create.name), "resourceVersion": "900"}}),
                );
                self.done(Kind::Crd, BindingKey::new(create.cluster.clone(), create.name.clone()), body)
            }
            Effect::ReadApiBinding(key) => self.find(Kind::ApiBinding, key.clone()),
            Effect::ReadCrd(read) => self.find(Kind::Crd, BindingKey::new(read.cluster.clone(), read.name.clone())),
            Effect::PatchLogicalCluster(patch) => self.apply(Kind::LogicalCluster, patch, "metadata"),
            Effect::PatchApiBindingStatus(patch) => self.apply(Kind::ApiBinding, patch, "status"),
            other => panic!("not to be carried out: {other}"),
        }
    }

    fn apply(&mut self, kind: Kind, patch: &Patch, field: &str) -> Outcome {
        let key = BindingKey::new(patch.cluster.clone(), patch.name.clone());
        let mut object = self.objects.get(&(kind, key.clone())).cloned().unwrap_or_default();
        assert_eq!(object["metadata"]["resourceVersion"].as_str().unwrap_or_default(), patch.resource_version.as_str());
        let body = patch.body.to_value();
        match field {
            "status" => object["status"] = body["status"].clone(),
            _ => merge(&mut object, json!({"metadata": body["metadata"]})),
        }
        self.versions += 1;
        object["metadata"]["resourceVersion"] = json!(self.versions.to_string());
        self.done(kind, key, object)
    }

    fn done(&mut self, kind: Kind, key: BindingKey, value: Value) -> Outcome {
        let object = Object::from_json(kind, &value.to_string()).unwrap();
        self.objects.insert((kind, key), value);
        Outcome::done(object)
    }

    fn find(&self, kind: Kind, key: BindingKey) -> Outcome {
        match self.objects.get(&(kind, key)) {
            Some(value) => Outcome::done(Object::from_json(kind, &value.to_string()).unwrap()),
            None => refused("NotFound", json!({})),
        }
    }
}
