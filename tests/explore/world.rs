//! What there is: one resource, of which a farm has the export, and the bindings of a meadow that want it;
//! and what parties other than the controller do to it (SPEC 13).

use std::collections::BTreeMap;

use apibinding::api::{ApiBinding, BindingKey, Kind, Object};
use apibinding::sim::PRESENT;
use apibinding::snapshot::{Layer, Layout, Lock};
use serde_json::{Value, json};

use super::lab::Lab;

/// The objects that change, each in its place.
pub const HOME: usize = 0;
pub const EXPORT: usize = 1;
/// The bound CRD.
pub const BOUND: usize = 2;
/// The workspace's own CRD of the same resource.
pub const OWN: usize = 3;
/// The bindings.
pub const BIRDS: usize = 4;
pub const SLOTS: usize = 7;

const MEADOW: &str = "meadow";
const RESOURCE: &str = "geese.farm.example";
const NAMES: [&str; 3] = ["heron", "egret", "stork"];
const SCHEMA: &str = "v1.geese.farm.example";

/// Time comes in steps, each longer than a CRD lock holds after its expiry.
pub fn time(clock: u8) -> i64 {
    PRESENT.as_second() + 100 * i64::from(clock)
}

pub fn name(slot: usize) -> (Kind, BindingKey) {
    let (kind, cluster, name) = match slot {
        HOME => (Kind::LogicalCluster, MEADOW, "cluster"),
        EXPORT => (Kind::ApiExport, "farm", "geese"),
        BOUND => (Kind::Crd, "system:bound-crds", "s1"),
        OWN => (Kind::Crd, MEADOW, RESOURCE),
        bird => (Kind::ApiBinding, MEADOW, NAMES[bird - BIRDS]),
    };
    (kind, BindingKey::new(cluster, name))
}

fn object(kind: Kind, key: &BindingKey, uid: &str, mut body: Value) -> Object {
    let annotations = json!({"kcp.io/cluster": key.cluster});
    body["metadata"] = json!({"name": key.name, "uid": uid, "annotations": annotations, "resourceVersion": "1"});
    Object::from_json(kind, &body.to_string()).unwrap()
}

fn names() -> Value {
    json!({"plural": "geese", "singular": "goose", "kind": "Goose", "listKind": "GooseList"})
}

/// What never changes.
pub fn schema() -> Object {
    let key = BindingKey::new("farm", SCHEMA);
    let versions = json!([{"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}}]);
    let spec = json!({"group": "farm.example", "scope": "Namespaced", "names": names(), "versions": versions});
    object(Kind::ApiResourceSchema, &key, "s1", json!({"spec": spec}))
}

pub fn home(layout: Layout) -> Object {
    let (kind, key) = name(HOME);
    let home = object(kind, &key, "home", json!({}));
    if layout == Layout::Single { with(home, Layer::Legacy, None) } else { home }
}

pub fn export(offers: bool) -> Object {
    let (kind, key) = name(EXPORT);
    let resource = json!({"name": "geese", "group": "farm.example", "schema": SCHEMA, "storage": {"crd": {}}});
    let resources = if offers { json!([resource]) } else { json!([]) };
    object(kind, &key, "export", json!({"spec": {"resources": resources}, "status": {"identityHash": "h0nk"}}))
}

/// A bound CRD that serves.
pub fn bound_crd() -> Object {
    let (kind, key) = name(BOUND);
    let spec = json!({"group": "farm.example", "names": names()});
    let status = json!({"storedVersions": ["v1"]});
    established(named(object(kind, &key, "bound", json!({"spec": spec, "status": status})), true))
}

fn own_crd(uid: &str) -> Object {
    let (kind, key) = name(OWN);
    object(kind, &key, uid, json!({"spec": {"group": "farm.example", "names": names()}}))
}

pub fn binding(bird: usize, uid: &str, phase: &str) -> Object {
    let (kind, key) = name(BIRDS + bird);
    let export = json!({"path": "farm", "name": "geese"});
    object(kind, &key, uid, json!({"spec": {"reference": {"export": export}}, "status": {"phase": phase}}))
}

fn named(mut crd: Object, accepted: bool) -> Object {
    if let Object::Crd(crd) = &mut crd {
        let status = if accepted { "True" } else { "False" };
        crd.status.conditions.push(serde_json::from_value(json!({"type": "NamesAccepted", "status": status})).unwrap());
        if accepted {
            crd.status.accepted_names = crd.spec.names.clone();
        }
    }
    crd
}

fn established(mut crd: Object) -> Object {
    if let Object::Crd(crd) = &mut crd {
        crd.status.conditions.push(serde_json::from_value(json!({"type": "Established", "status": "True"})).unwrap());
    }
    crd
}

fn has(crd: &Object, kind: &str, value: &str) -> bool {
    let Object::Crd(crd) = crd else { return false };
    crd.status.conditions.iter().any(|condition| condition.kind == *kind && condition.status == *value)
}

/// A binding, which it has to be.
pub fn as_binding(object: &Object) -> &ApiBinding {
    let Object::ApiBinding(binding) = object else { panic!("{object:?} is no binding") };
    binding
}

/// True if a binding lists the resource.
pub fn lists(binding: &ApiBinding) -> bool {
    !binding.status.bound_resources.is_empty()
}

/// True if a binding is bound and lists the resource.
pub fn is_bound(object: &Object) -> bool {
    let binding = as_binding(object);
    binding.status.phase.as_str() == "Bound" && lists(binding)
}

/// True if an export offers the resource.
pub fn offers(object: &Object) -> bool {
    matches!(object, Object::ApiExport(export) if !export.spec.resources.is_empty())
}

/// The server's objects, one in each place.
pub type Server = [u32; SLOTS];

/// Something that a user does. Each is one request, but for what comes of it in the workspace's admission.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Deed {
    Create(usize),
    Delete(usize),
    DropResource,
    OfferResource,
    /// The admission of the workspace's CRD, on fresh locks (what `exclusive` cannot promise is out).
    AdmitCrd,
    /// The same CRD comes to the store.
    StoreCrd,
    DeleteCrd,
}

impl Deed {
    /// What is under way will come to an end, whatever else happens.
    pub fn is_under_way(self) -> bool {
        self == Self::StoreCrd
    }

    /// Does it. `false`: it was refused.
    pub fn act(self, lab: &mut Lab, layout: Layout, server: &mut Server, clock: u8) -> bool {
        let (slot, object) = match self {
            Self::Create(bird) => {
                let slot = BIRDS + bird;
                let uid = format!("{}-{}", NAMES[bird], lab.things[server[slot] as usize].version + 1);
                (slot, Some(binding(bird, &uid, "")))
            }
            Self::Delete(bird) => (BIRDS + bird, None),
            Self::DropResource => (EXPORT, Some(export(false))),
            Self::OfferResource => (EXPORT, Some(export(true))),
            Self::AdmitCrd => match admit(lab, layout, server, clock) {
                Some(home) => (HOME, Some(home)),
                None => return false,
            },
            Self::StoreCrd => {
                let version = lab.things[server[OWN] as usize].version + 1;
                (OWN, Some(own_crd(&format!("own-{version}"))))
            }
            Self::DeleteCrd => (OWN, None),
        };
        server[slot] = lab.write(server[slot], object);
        true
    }
}

/// The entry of the resource in an annotation.
fn entry(home: &Object, layer: Layer) -> Option<Lock> {
    let text = home.metadata().annotations.as_ref()?.get(layer.annotation())?;
    let mut locks: BTreeMap<String, Lock> = serde_json::from_str(text).unwrap();
    locks.remove(RESOURCE)
}

/// True if the resource is held for a CRD without an end, which only its owner takes away (DEVIATIONS.md).
pub fn is_held_for_ever(home: &Object) -> bool {
    entry(home, Layer::Crds).is_some_and(|lock| lock.crd && lock.expiry.is_none())
}

/// True if a binding has the resource in the one annotation of the single layout.
pub fn has_legacy_lock(home: &Object, bird: usize) -> bool {
    entry(home, Layer::Legacy).is_some_and(|lock| lock.name == *NAMES[bird])
}

fn with(mut home: Object, layer: Layer, lock: Option<Lock>) -> Object {
    let text = lock.map_or("{}".into(), |lock| json!({ RESOURCE: lock }).to_string());
    home.metadata_mut().annotations.get_or_insert_default().insert(layer.annotation().into(), text);
    home
}

fn crd_lock(clock: Option<u8>) -> Lock {
    let expiry = clock.map(|clock| k8s_openapi::jiff::Timestamp::from_second(time(clock)).unwrap().to_string());
    serde_json::from_value(json!({"c": true, "e": expiry})).unwrap()
}

/// True if a lock's time is past at a clock, by the admission's and the clean-up's word: without grace.
fn is_past(lock: &Lock, clock: u8) -> bool {
    lock.expiry.is_some_and(|_| lock.expiry < crd_lock(Some(clock)).expiry)
}

/// The admission of CRDs: the home with its lock. It looks at all annotations, by the rule of SPEC 5, and not for
/// CRDs. In the single layout it is off.
fn admit(lab: &Lab, layout: Layout, server: &Server, clock: u8) -> Option<Object> {
    let home = lab.object(server[HOME])?;
    if layout == Layout::Single {
        return Some(home.clone());
    }
    let holder = [Layer::Crds, Layer::Bindings, Layer::Pending].into_iter().find_map(|layer| entry(home, layer));
    let is_free = holder.is_none_or(|lock| lock.crd && is_past(&lock, clock));
    is_free.then(|| with(home.clone(), Layer::Pending, Some(crd_lock(Some(clock)))))
}

/// What other controllers do: on fresh state, each as soon as it likes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Party {
    /// Judges the names of a CRD.
    Judge(usize),
    /// Lets it serve.
    Establish(usize),
    /// The clean-up of LogicalClusters.
    CleanUp,
}

impl Party {
    pub const ALL: [Self; 5] =
        [Self::Judge(BOUND), Self::Establish(BOUND), Self::Judge(OWN), Self::Establish(OWN), Self::CleanUp];

    /// The thing that it would write, and in which place; the present one if there is nothing to do.
    pub fn act(self, lab: &mut Lab, layout: Layout, server: &Server, clock: u8) -> (usize, u32) {
        let (slot, after) = match self {
            Self::Judge(slot) | Self::Establish(slot) => {
                let Some(crd) = lab.object(server[slot]) else { return (slot, server[slot]) };
                let is_judged = has(crd, "NamesAccepted", "True") || has(crd, "NamesAccepted", "False");
                let after = match self {
                    Self::Judge(_) if !is_judged => {
                        let birds = server[BIRDS..].iter().filter_map(|bird| lab.object(*bird));
                        let taken = slot == OWN && birds.map(as_binding).any(lists);
                        named(crd.clone(), !taken)
                    }
                    Self::Establish(_) if has(crd, "NamesAccepted", "True") && !has(crd, "Established", "True") => {
                        let mut crd = established(crd.clone());
                        if let Object::Crd(crd) = &mut crd {
                            crd.status.stored_versions = vec!["v1".into()];
                        }
                        crd
                    }
                    _ => crd.clone(),
                };
                (slot, after)
            }
            Self::CleanUp => (HOME, cleaned(lab, layout, server, clock)),
        };
        (slot, lab.write(server[slot], Some(after)))
    }
}

fn cleaned(lab: &Lab, layout: Layout, server: &Server, clock: u8) -> Object {
    let home = lab.object(server[HOME]).unwrap();
    let crd = lab.object(server[OWN]);
    let is_established = crd.is_some_and(|crd| has(crd, "Established", "True"));
    let layer = if layout == Layout::Split { Layer::Crds } else { Layer::Legacy };
    let before = entry(home, layer);
    let after = match (layout, &before) {
        (Layout::Single, Some(lock)) if !lock.crd => {
            let mut birds = server[BIRDS..].iter().filter_map(|bird| lab.object(*bird));
            birds.any(|bird| bird.metadata().name.as_deref() == Some(&lock.name)).then(|| lock.clone())
        }
        _ if is_established => Some(crd_lock(None)),
        (Layout::Single, Some(lock)) if crd.is_none() && lock.expiry.is_none() => None,
        (_, Some(lock)) if is_past(lock, clock) => None,
        _ => before.clone(),
    };
    if after == before { home.clone() } else { with(home.clone(), layer, after) }
}

/// The locks of the meadow, for people.
pub fn show_locks(home: &Object) -> String {
    let annotations = home.metadata().annotations.iter().flatten();
    let locks = annotations.filter(|(name, _)| name.starts_with("internal."));
    let shown: Vec<String> =
        locks.map(|(name, text)| format!("{} {text}", name.rsplit('/').next().unwrap_or_default())).collect();
    shown.join(", ")
}
