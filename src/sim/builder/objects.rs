//! The objects of a world, as JSON.

use serde_json::{Value, json};

use super::{BindingPlan, ExportPlan, GHOST, path_of};
use crate::sim::{Chance, PRESENT};
use crate::snapshot::{Layer, Layout};

/// A resource, with the names that its schema asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    pub group: String,
    pub plural: String,
    singular: String,
    kind: String,
    list_kind: String,
    short: String,
}

/// Group, plural, singular, kind, kind of lists, short name.
const CROWD: [[&str; 6]; 7] = [
    ["farm.example", "geese", "goose", "Goose", "GooseList", "gs"],
    // These take names of the first.
    ["farm.example", "ganders", "goose", "Gander", "GanderList", ""],
    ["farm.example", "gaggles", "gaggle", "Gaggle", "GooseList", "gg"],
    ["farm.example", "goslings", "gosling", "Gosling", "GoslingList", "gs"],
    ["farm.example", "flocks", "flock", "Goose", "FlockList", ""],
    // Another group has names of its own.
    ["pond.example", "geese", "goose", "Goose", "GooseList", "gs"],
    ["", "eggs", "egg", "Egg", "EggList", ""],
];

/// Which resource of a crowd.
pub(super) type Which = [&'static str; 6];

impl Resource {
    pub const CROWD: [Which; CROWD.len()] = CROWD;

    fn of(which: &Which) -> Self {
        let [group, plural, singular, kind, list_kind, short] = which.map(str::to_owned);
        Self { group, plural, singular, kind, list_kind, short }
    }

    pub fn any(chance: &mut Chance) -> Option<Self> {
        chance.one_of(&CROWD).map(Self::of)
    }

    /// The name of its CRD.
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, if self.group.is_empty() { "core" } else { &self.group })
    }

    /// As locks name it.
    fn lock_key(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    fn names(&self) -> Value {
        let mut names = json!({
            "plural": self.plural, "singular": self.singular, "kind": self.kind, "listKind": self.list_kind,
        });
        if !self.short.is_empty() {
            names["shortNames"] = json!([self.short]);
        }
        names
    }
}

/// What an export offers of a resource.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub resource: Resource,
    revision: u64,
    is_virtual: bool,
}

impl Entry {
    pub fn any(chance: &mut Chance) -> Option<Self> {
        let resource = Resource::any(chance)?;
        Some(Self { resource, revision: 1 + chance.below(2), is_virtual: chance.permille(80) })
    }

    /// One whose names nobody else has.
    pub fn numbered(number: usize) -> Self {
        let resource = Resource {
            group: "farm.example".into(),
            plural: format!("geese{number}"),
            singular: format!("goose{number}"),
            kind: format!("Goose{number}"),
            list_kind: format!("Goose{number}List"),
            short: String::new(),
        };
        Self { resource, revision: 1, is_virtual: false }
    }

    /// The name of its schema.
    pub fn schema(&self) -> String {
        format!("v{}.{}", self.revision, self.resource.crd_name())
    }

    pub fn to_json(&self) -> Value {
        let storage = match self.is_virtual {
            true => json!({"virtual": {
                "reference": {"apiGroup": "farm.example", "kind": "Replication", "name": "replicas"},
                "identityHash": "id-of-replicas",
            }}),
            false => json!({"crd": {}}),
        };
        json!({
            "name": self.resource.plural, "group": self.resource.group, "schema": self.schema(), "storage": storage,
        })
    }
}

/// A claim, of an export or accepted by a binding.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    resource: Resource,
    /// The identity of which provider's export; `None`: of nobody's.
    provider: Option<String>,
    is_accepted: bool,
}

impl Claim {
    pub fn any(chance: &mut Chance) -> Option<Self> {
        let export = ["farm/birds", "farm/beasts", "dairy/birds", "dairy/beasts"];
        let provider =
            chance.one_of(&export).filter(|_| !chance.clone().permille(100)).map(|export| (*export).to_owned());
        Some(Self { resource: Resource::any(chance)?, provider, is_accepted: !chance.permille(200) })
    }

    /// As an export claims it.
    pub fn to_json(&self) -> Value {
        let mut claim = json!({"group": self.resource.group, "resource": self.resource.plural, "verbs": ["*"]});
        if let Some((cluster, name)) = self.provider.as_deref().and_then(|provider| provider.split_once('/')) {
            claim["identityHash"] = json!(identity(cluster, name));
        }
        claim
    }

    /// As a binding answers it.
    pub fn answer(&self) -> Value {
        let mut claim = self.to_json();
        claim["selector"] = json!({"matchAll": true});
        claim["state"] = json!(if self.is_accepted { "Accepted" } else { "Rejected" });
        claim
    }
}

/// The identity that an export has, unless it is changed.
pub(super) fn identity(cluster: &str, name: &str) -> String {
    format!("id-of-{cluster}-{name}")
}

/// Of what form a schema is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    /// Two versions and a conversion.
    Converted,
    /// Two versions and no conversion.
    Unconvertible,
    /// What no bound CRD can be made of.
    Broken,
    /// What the server refuses.
    Invalid,
}

fn metadata(cluster: &str, name: &str) -> Value {
    json!({"name": name, "annotations": {"kcp.io/cluster": cluster}})
}

pub(super) fn schema(cluster: &str, entry: &Entry, form: Form) -> Value {
    let openapi = match form {
        Form::Broken => json!({"type": 7}),
        Form::Invalid => json!({"type": "object", "properties": {"wings": {"type": "feathers"}}}),
        _ => json!({"type": "object", "properties": {"wings": {"type": "integer", "minimum": entry.revision}}}),
    };
    let version = |name: &str, is_stored: bool| json!({"name": name, "served": true, "storage": is_stored, "schema": openapi, "subresources": {"status": {}}});
    let mut spec = json!({
        "group": entry.resource.group,
        "names": entry.resource.names(),
        "scope": "Namespaced",
        "versions": [version("v1", true)],
    });
    if matches!(form, Form::Converted | Form::Unconvertible) {
        spec["versions"] = json!([version("v1", false), version("v2", true)]);
    }
    if form == Form::Converted {
        spec["conversion"] = json!({"strategy": "None"});
    }
    let mut metadata = metadata(cluster, &entry.schema());
    if entry.resource.group.is_empty() {
        metadata["annotations"]["api-approved.kubernetes.io"] = json!("unapproved, for a simulation");
    }
    json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": metadata, "spec": spec})
}

/// The rules of conversion that belong to a schema of two versions.
pub(super) fn conversion(cluster: &str, entry: &Entry, form: Form) -> Option<Value> {
    (form == Form::Converted).then(|| {
        json!({
            "apiVersion": "apis.kcp.io/v1alpha1",
            "kind": "APIConversion",
            "metadata": metadata(cluster, &entry.schema()),
            "spec": {"conversions": [{"from": "v1", "to": "v2", "rules": [{"field": "spec", "destination": "spec"}]}]},
        })
    })
}

pub(super) fn export(plan: &ExportPlan) -> Value {
    let ExportPlan { cluster, name, entries, claims, has_identity } = plan;
    let mut metadata = metadata(cluster, name);
    metadata["annotations"]["kcp.io/path"] = json!(path_of(cluster));
    let mut export = json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIExport",
        "metadata": metadata,
        "spec": {"resources": offered(entries), "permissionClaims": claims.iter().map(Claim::to_json).collect::<Vec<_>>()},
    });
    if *has_identity {
        export["status"] = json!({"identityHash": identity(cluster, name)});
    }
    export
}

/// The list of what an export offers, each resource once.
pub(super) fn offered(entries: &[Entry]) -> Value {
    let mut offered: Vec<&Entry> = Vec::new();
    for entry in entries {
        if !offered.iter().any(|other| other.resource == entry.resource) {
            offered.push(entry);
        }
    }
    offered.into_iter().map(Entry::to_json).collect()
}

pub(super) fn binding(plan: &BindingPlan) -> Value {
    let BindingPlan { cluster, name, target: (path, export), claims } = plan;
    let mut reference = json!({"name": export});
    if !path.is_empty() {
        reference["path"] = json!(path);
    }
    json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": {
            "name": name,
            "annotations": {"kcp.io/cluster": cluster},
            "finalizers": ["apis.kcp.io/apibinding-finalizer"],
        },
        "spec": {"reference": {"export": reference}, "permissionClaims": claims.iter().map(Claim::answer).collect::<Vec<_>>()},
    })
}

/// A CRD of a workspace, as new as it comes.
pub(super) fn crd(cluster: &str, which: &super::objects::Which) -> Value {
    let resource = Resource::of(which);
    let mut metadata = metadata(cluster, &resource.crd_name());
    if resource.group.is_empty() {
        metadata["annotations"]["api-approved.kubernetes.io"] = json!("unapproved, for a simulation");
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": resource.group,
            "names": resource.names(),
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
        "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": ["v1"]},
    })
}

pub(super) fn home(cluster: &str, locks: Vec<(Layer, String)>) -> Value {
    let mut metadata = metadata(cluster, "cluster");
    metadata["annotations"]["kcp.io/path"] = json!(path_of(cluster));
    for (layer, text) in locks {
        metadata["annotations"][layer.annotation()] = json!(text);
    }
    json!({"apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster", "metadata": metadata, "spec": {}})
}

/// The annotations of a workspace where nothing is locked.
pub(super) fn no_locks(layout: Layout) -> Vec<(Layer, String)> {
    match layout {
        Layout::Split => Vec::new(),
        Layout::Single => vec![(Layer::Legacy, "{}".into())],
    }
}

/// The annotations of a workspace in which locks stand about: of former days, of who is gone, of CRDs.
pub(super) fn locks(layout: Layout, bindings: &[&str], chance: &mut Chance) -> Vec<(Layer, String)> {
    let mut layers = no_locks(layout);
    match layout {
        Layout::Single if chance.permille(60) => layers.clear(),
        Layout::Single => {
            if chance.permille(400) {
                layers = vec![(Layer::Legacy, entries(bindings, false, chance).to_string())];
            }
        }
        Layout::Split => {
            if chance.permille(300) {
                layers.push((Layer::Legacy, entries(bindings, false, chance).to_string()));
            }
            if chance.permille(400) {
                let text =
                    if chance.permille(80) { "no json".into() } else { entries(bindings, true, chance).to_string() };
                layers.push((Layer::Bindings, text));
            }
            if chance.permille(300) {
                let names: &[&str] = &[];
                layers.push((Layer::Crds, entries(names, false, chance).to_string()));
            }
            if chance.permille(200) {
                let names: &[&str] = &[];
                layers.push((Layer::Pending, entries(names, false, chance).to_string()));
            }
        }
    }
    layers
}

/// Some entries: of bindings, if there may be such, also of one that is not there; and of CRDs.
fn entries(bindings: &[&str], with_uids: bool, chance: &mut Chance) -> Value {
    let mut entries = serde_json::Map::new();
    for _ in 0..1 + chance.below(3) {
        let Some(resource) = Resource::any(chance) else { continue };
        let end = |seconds: i64| {
            let end = PRESENT.as_second() + seconds;
            k8s_openapi::jiff::Timestamp::from_second(end).unwrap_or(PRESENT).to_string()
        };
        let entry = match chance.below(8) {
            0 => json!({"c": true, "e": end(-600)}),
            1 => json!({"c": true, "e": end(-60)}),
            2 => json!({"c": true, "e": end(10)}),
            3 if !bindings.is_empty() => Value::Null,
            4 if !bindings.is_empty() && with_uids => json!({"n": GHOST, "u": "a-uid-of-yore"}),
            5 if !bindings.is_empty() && with_uids => {
                json!({"n": chance.one_of(bindings), "u": "a-uid-of-yore"})
            }
            6 if !bindings.is_empty() => json!({"n": GHOST}),
            _ => match chance.one_of(bindings) {
                Some(name) => json!({"n": name}),
                None => json!({"c": true, "e": end(-30)}),
            },
        };
        entries.insert(resource.lock_key(), entry);
    }
    Value::Object(entries)
}
