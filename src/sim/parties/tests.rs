//! The others on a server of their own, with a small agenda for a clock.

mod locks;
mod objects;

use std::collections::BTreeMap;

use k8s_openapi::jiff::SignedDuration;

use super::*;
use crate::snapshot::Layer;

const KINDS: [Kind; 6] =
    [Kind::ApiBinding, Kind::ApiExport, Kind::ApiResourceSchema, Kind::ApiConversion, Kind::LogicalCluster, Kind::Crd];
const IDENTITY: &str = "h";

struct World {
    kcp: Kcp,
    parties: Parties,
    chance: Chance,
    agenda: BTreeMap<(Timestamp, u64), Chore>,
    serial: u64,
    told: u64,
    steps: u64,
}

impl World {
    fn new(layout: Layout, habits: Habits) -> Self {
        let mut kcp = Kcp::new(1);
        kcp.set_now("2026-06-01T12:00:00Z".parse().unwrap());
        let parties = Parties::new(layout, habits);
        let chance = Chance::new(7);
        let mut world = Self { kcp, parties, chance, agenda: BTreeMap::new(), serial: 0, told: 0, steps: 0 };
        let annotations = if layout == Layout::Single { json!({Layer::Legacy.annotation(): "{}"}) } else { json!({}) };
        let home = json!({
            "apiVersion": "core.kcp.io/v1alpha1",
            "kind": "LogicalCluster",
            "metadata": {"name": HOME, "annotations": annotations},
        });
        world.sends(Request::create(Kind::LogicalCluster, "meadow", home));
        world
    }

    fn split() -> Self {
        Self::new(Layout::Split, Habits::default())
    }

    fn single() -> Self {
        Self::new(Layout::Single, Habits::default())
    }

    fn plan(&mut self, next: Vec<(Duration, Chore)>) {
        for (delay, chore) in next {
            self.serial += 1;
            self.agenda.insert((after(self.kcp.now(), delay), self.serial), chore);
        }
    }

    /// Tells the parties what happened since it last did.
    fn tell(&mut self) {
        let mut events = Vec::new();
        for origin in [Origin::Local, Origin::Global] {
            for kind in KINDS {
                let since = self.kcp.events_since(origin, kind, self.told).unwrap();
                events.extend(since.map(|event| (origin, kind, event.clone())));
            }
        }
        events.sort_by_key(|(.., event)| event.version);
        self.told = self.kcp.version();
        for (origin, kind, event) in events {
            let next = self.parties.react(&self.kcp, origin, kind, &event, &mut self.chance);
            self.plan(next);
        }
    }

    fn sends(&mut self, request: Request) {
        self.kcp.handle(request).unwrap();
        self.tell();
    }

    fn admits(&mut self, request: Request) {
        let next = self.parties.admit(&self.kcp, request, &mut self.chance);
        self.plan(next);
    }

    /// The next step of the agenda, if it comes before a time.
    fn step(&mut self, until: Timestamp) -> Option<(String, Option<String>)> {
        let (&(time, serial), _) = self.agenda.first_key_value().filter(|((time, _), _)| *time <= until)?;
        let chore = self.agenda.remove(&(time, serial))?;
        self.kcp.set_now(time);
        self.steps += 1;
        assert!(self.steps < 5_000, "no end: {chore}");
        let name = chore.to_string();
        assert!(!name.contains('\n') && !name.is_empty());
        let (done, next) = self.parties.act(&mut self.kcp, chore, &mut self.chance);
        self.plan(next);
        self.tell();
        Some((name, done))
    }

    fn runs(&mut self, seconds: i64) -> Vec<String> {
        let until = self.kcp.now() + SignedDuration::from_secs(seconds);
        let mut told = Vec::new();
        while let Some((_, done)) = self.step(until) {
            told.extend(done);
        }
        self.kcp.set_now(until);
        told
    }

    /// Until nothing is left to do.
    fn rests(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Some((_, done)) = self.step(Timestamp::MAX) {
            told.extend(done);
        }
        told
    }

    fn get(&self, kind: Kind, cluster: &str, name: &str) -> Option<Value> {
        self.kcp.get(Origin::Local, kind, &BindingKey::new(cluster, name)).map(|object| Value::clone(object))
    }

    fn crd(&self, name: &str) -> Value {
        self.get(Kind::Crd, "meadow", name).unwrap()
    }

    fn locks(&self, layer: Layer) -> String {
        let home = self.get(Kind::LogicalCluster, "meadow", HOME).unwrap();
        home["metadata"]["annotations"][layer.annotation()].as_str().unwrap_or("none").into()
    }

    fn lock(&mut self, layer: Layer, text: &str) {
        let patch = json!({"metadata": {"annotations": {layer.annotation(): text}}});
        self.sends(Request::merge(Kind::LogicalCluster, "meadow", HOME, patch).managed_by("somebody"));
    }

    fn binds(&mut self, name: &str, claims: Value) {
        let binding = json!({
            "apiVersion": "apis.kcp.io/v1alpha2",
            "kind": "APIBinding",
            "metadata": {"name": name},
            "spec": {"reference": {"export": {"name": "geese", "path": "root:farm"}}, "permissionClaims": claims},
        });
        self.sends(Request::create(Kind::ApiBinding, "meadow", binding));
    }

    fn status(&mut self, binding: &str, status: Value) {
        let patch = json!({"status": status});
        self.sends(Request::merge(Kind::ApiBinding, "meadow", binding, patch).of_status());
    }

    fn lists(&mut self, binding: &str, resource: &str, uid: &str) {
        let schema = json!({"name": format!("v1.{resource}.farm.test"), "UID": uid, "identityHash": IDENTITY});
        let bound = json!([{"group": "farm.test", "resource": resource, "schema": schema}]);
        self.status(binding, json!({"apiExportClusterName": "farm", "boundResources": bound}));
    }

    fn deletes(&mut self, kind: Kind, cluster: &str, name: &str) {
        self.sends(Request::delete(kind, cluster, name));
    }
}

fn crd(name: &str, resource: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": {
            "apis.kcp.io/schema-cluster": "farm",
            "apis.kcp.io/schema-name": format!("v1.{resource}.farm.test"),
        }},
        "spec": {
            "group": "farm.test",
            "names": {"plural": resource, "kind": kind},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
            ],
        },
    })
}

fn own(resource: &str, kind: &str) -> Request {
    Request::create(Kind::Crd, "meadow", crd(&format!("{resource}.farm.test"), resource, kind))
}

fn bound_crd(uid: &str, resource: &str, kind: &str) -> Request {
    Request::create(Kind::Crd, ClusterName::BOUND_CRDS, crd(uid, resource, kind))
}

fn export() -> Request {
    let export = json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIExport",
        "metadata": {"name": "geese"},
        "spec": {"resources": [{"group": "farm.test", "name": "geese", "schema": "v1.geese.farm.test"}]},
    });
    Request::create(Kind::ApiExport, "farm", export)
}

fn claim(resource: &str, identity: &str, state: &str) -> Value {
    json!({
        "group": "farm.test", "resource": resource, "identityHash": identity, "verbs": ["*"],
        "selector": {"matchAll": true}, "state": state,
    })
}

/// Status, reason and message of a condition.
fn said(object: &Value, kind: &str) -> (String, String, String) {
    let condition = crds::condition(object, kind).cloned().unwrap_or_default();
    let text = |name: &str| field(&condition, name).to_owned();
    (text("status"), text("reason"), text("message"))
}

fn says(status: &str, reason: &str, message: &str) -> (String, String, String) {
    (status.into(), reason.into(), message.into())
}

#[test]
fn all_come_to_rest_and_a_second_look_writes_nothing() {
    for layout in [Layout::Split, Layout::Single] {
        for seed in 0..8 {
            let switch = seed % 2 == 0;
            let habits =
                Habits { stale_admission: switch, stale_cleanup: switch, slow_permille: 200, ..Habits::default() };
            let mut world = World::new(layout, habits);
            world.chance = Chance::new(seed);
            world.sends(export());
            world.sends(bound_crd("u1", "geese", "Goose"));
            world.sends(bound_crd("u2", "swans", "Swan"));
            for binding in ["alder", "birch"] {
                world.binds(binding, json!([claim("swans", IDENTITY, "Accepted")]));
                world.lists(binding, "geese", "u1");
            }
            world.admits(own("geese", "Goose"));
            world.admits(own("ducks", "Goose"));
            world.lock(Layer::Legacy, r#"{"a.g":{"c":true,"e":"2026-06-01T12:10:00Z"},"b.g":{"n":"birch"}}"#);
            world.runs(7);
            world.deletes(Kind::ApiBinding, "meadow", "birch");
            world.rests();

            let version = world.kcp.version();
            world.told = 0;
            world.tell();
            assert!(!world.agenda.is_empty());
            world.rests();
            assert_eq!(world.kcp.version(), version, "{layout:?} {seed}");
            assert!(world.parties.due.is_empty());
        }
    }
}

#[test]
fn a_logical_cluster_goes_after_its_finalizer() {
    let mut world = World::split();
    world.rests();
    world.deletes(Kind::LogicalCluster, "meadow", HOME);
    world.rests();
    assert!(world.get(Kind::LogicalCluster, "meadow", HOME).is_none());
    world.sends(own("geese", "Goose"));
    world.rests();
    assert!(world.get(Kind::LogicalCluster, "meadow", HOME).is_none(), "no phantom of the clean-up");
}

#[test]
fn the_names_of_chores_are_lines() {
    let key = BindingKey::new("meadow", "geese");
    let text = |duty| Chore::Look(duty, key.clone()).to_string();
    assert_eq!(text(Duty::CleanUp), "clean-up of LogicalCluster meadow");
    assert_eq!(text(Duty::Copy(Kind::ApiExport)), "copy of APIExport meadow|geese in the cache server");
    assert_eq!(Chore::Create(Box::new(own("geese", "Goose"))).to_string(), "creation of CRD meadow|geese.farm.test");
}

/// All objects of a real kcp at rest, in the single layout: its own parties had nothing more to do.
#[test]
#[allow(clippy::disallowed_methods)]
fn in_a_real_world_at_rest_nobody_finds_anything_to_do() {
    let mut world = World::single();
    world.kcp = Kcp::new(1);
    world.kcp.set_now("2026-11-30T20:40:00Z".parse().unwrap());
    let read = |kind: Kind, prefix: &str| -> Vec<Value> {
        let path = format!("{}/tests/data/kcp/objects/{prefix}{}.json.gz", env!("CARGO_MANIFEST_DIR"), kind.plural());
        let Ok(packed) = std::fs::read(path) else { return Vec::new() };
        let mut all: Value = serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).unwrap();
        let mut items = if all.is_array() { all } else { all["items"].take() };
        let items = items.as_array_mut().unwrap();
        for item in items.iter_mut() {
            // Items of lists of built-in kinds do not say what they are.
            item["apiVersion"] = json!(kind.api_version());
            item["kind"] = json!(kind.as_str());
        }
        std::mem::take(items)
    };
    for (origin, prefix) in [(Origin::Local, ""), (Origin::Global, "cache-")] {
        world.kcp.load(origin, KINDS.into_iter().flat_map(|kind| read(kind, prefix)));
    }
    if world.kcp.version() == 0 {
        // The recordings are no part of the package.
        return;
    }
    world.parties.due.clear();
    world.agenda.clear();
    world.told = 0;
    world.tell();
    let told = world.runs(120);
    // A real cache server does not copy an object whose resourceVersion is all that changed.
    let told: Vec<&String> = told.iter().filter(|told| !told.starts_with("copies APIExport")).collect();
    assert_eq!(told, Vec::<&String>::new());
}
