//! The life of a CRD: it gets its names, is served, and when it is deleted its objects go first
//! (SPEC 13).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::uses::Uses;
use super::{Calls, Duty, KCP, bound, field, is_ending, is_gone, list_at, take_off, told, unused};
use crate::api::{BindingKey, ClusterName, GroupResource, Kind, Text};
use crate::sim::kcp::{Event, Kcp, Request, at, seconds, text_at};
use crate::snapshot::Origin;

const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) fn react(kcp: &Kcp, uses: &mut Uses, event: &Event, calls: &mut Calls<'_>) {
    let (key, crd) = (&event.key, &event.object);
    if is_bound(key) {
        uses.note_bound(event);
        if !is_gone(event) && uses.listing(&key.name).next().is_none() {
            unused::look(crd, &key.name, calls);
        }
        let mut last = None;
        for binding in
            uses.listing(&key.name).filter(|binding| last.replace(&binding.cluster) != Some(&binding.cluster))
        {
            judge_again(uses, &binding.cluster, "", calls);
        }
        if is_gone(event) || is_true(crd, "Established") {
            for binding in uses.claiming(&resource_of(crd)) {
                calls.look(Duty::Claims, binding.clone());
            }
        }
    } else {
        uses.note_crd(event);
        judge_again(uses, &key.cluster, &key.name, calls);
    }
    if is_gone(event) {
        return;
    }
    if is_ending(crd) {
        if has_finalizer(crd) {
            calls.look(Duty::EndCrd, key.clone());
        }
    } else if judge(kcp, key, crd).is_some() {
        calls.look(Duty::Names, key.clone());
    } else if waits_for_serving(crd) {
        calls.look_after(calls.habits.establishing, Duty::Establish, key.clone());
    }
}

/// Names may have become free for those that do not have theirs.
fn judge_again(uses: &Uses, cluster: &ClusterName, but: &str, calls: &mut Calls<'_>) {
    for name in uses.nameless(cluster).filter(|name| ***name != *but) {
        calls.look(Duty::Names, BindingKey::new(cluster.clone(), name.clone()));
    }
}

fn is_bound(key: &BindingKey) -> bool {
    key.cluster.as_str() == ClusterName::BOUND_CRDS
}

pub(super) fn resource_of(crd: &Value) -> GroupResource {
    GroupResource::new(text_at(crd, &["spec", "group"]), text_at(crd, &["spec", "names", "plural"]))
}

pub(super) fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a Value> {
    list_at(crd, &["status", "conditions"]).find(|condition| field(condition, "type") == kind)
}

pub(super) fn is_true(crd: &Value, kind: &str) -> bool {
    condition(crd, kind).is_some_and(|condition| field(condition, "status") == "True")
}

fn has_finalizer(crd: &Value) -> bool {
    list_at(crd, &["metadata", "finalizers"]).any(|finalizer| finalizer.as_str() == Some(CLEANUP))
}

fn waits_for_serving(crd: &Value) -> bool {
    !is_ending(crd) && is_true(crd, "NamesAccepted") && !is_true(crd, "Established")
}

/// Judges the names of a CRD.
pub(super) fn accept_names(kcp: &mut Kcp, key: &BindingKey) -> Option<String> {
    let crd = kcp.get(Origin::Local, Kind::Crd, key).filter(|crd| !is_ending(crd))?;
    let status = judge(kcp, key, crd)?;
    let said = list_at(&status, &["conditions"]).find(|condition| field(condition, "type") == "NamesAccepted");
    let what = format!("judges the names of CRD {key}: {}", said.map_or("", |said| field(said, "message")));
    Some(write_status(kcp, key, &status, what))
}

/// Says that a CRD is served.
pub(super) fn establish(kcp: &mut Kcp, key: &BindingKey) -> Option<String> {
    let crd = kcp.get(Origin::Local, Kind::Crd, key).filter(|crd| waits_for_serving(crd))?;
    let mut conditions = conditions(crd);
    let message = "the initial names have been accepted";
    set(&mut conditions, "Established", true, "InitialNamesAccepted", message, &seconds(kcp.now()));
    Some(write_status(kcp, key, &json!({"conditions": conditions}), format!("establishes CRD {key}")))
}

/// Takes the next step of a CRD's deletion: its objects go, then it goes.
pub(super) fn end(kcp: &mut Kcp, key: &BindingKey) -> Option<String> {
    const IN_PROGRESS: &str = "InstanceDeletionInProgress";
    let crd = kcp.get(Origin::Local, Kind::Crd, key).filter(|crd| is_ending(crd) && has_finalizer(crd))?;
    if condition(crd, "Terminating").is_some_and(|condition| field(condition, "reason") == IN_PROGRESS) {
        return take_off(kcp, Kind::Crd, key, CLEANUP);
    }
    let mut conditions = conditions(crd);
    let message = "CustomResource deletion is in progress";
    set(&mut conditions, "Terminating", true, IN_PROGRESS, message, &seconds(kcp.now()));
    Some(write_status(kcp, key, &json!({"conditions": conditions}), format!("deletes the objects of CRD {key}")))
}

fn write_status(kcp: &mut Kcp, key: &BindingKey, status: &Value, what: String) -> String {
    let patch = json!({"status": status});
    let request = Request::merge(Kind::Crd, key.cluster.clone(), key.name.clone(), patch).of_status().managed_by(KCP);
    told(kcp, request, what)
}

fn conditions(crd: &Value) -> Vec<Value> {
    list_at(crd, &["status", "conditions"]).cloned().collect()
}

/// Sets a condition; the time is that of the last change of its status.
fn set(conditions: &mut Vec<Value>, kind: &str, is_true: bool, reason: &str, message: &str, now: &str) {
    let status = if is_true { "True" } else { "False" };
    let known = conditions.iter_mut().find(|condition| field(condition, "type") == kind);
    let since = known.as_ref().filter(|known| field(known, "status") == status);
    let since = since.map_or(now, |known| field(known, "lastTransitionTime")).to_owned();
    let condition =
        json!({"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message});
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// The names that a CRD cannot have.
#[derive(Default)]
struct Taken<'a> {
    resources: BTreeSet<&'a str>,
    kinds: BTreeSet<&'a str>,
}

impl<'a> Taken<'a> {
    /// Those of the other CRDs of the workspace, and of the bound ones that its bindings list. Bound CRDs
    /// take nothing from each other: each is seen in other workspaces.
    fn from(kcp: &'a Kcp, key: &'a BindingKey, group: &str) -> Self {
        let mut taken = Self::default();
        if is_bound(key) {
            return taken;
        }
        let crds = kcp.list(Origin::Local, Kind::Crd, Some(&key.cluster));
        let others = crds.filter(|crd| text_at(crd, &["metadata", "name"]) != &*key.name);
        others.for_each(|crd| taken.add(crd, group));
        for binding in kcp.list(Origin::Local, Kind::ApiBinding, Some(&key.cluster)) {
            let listed = list_at(binding, &["status", "boundResources"]);
            for listed in listed.filter(|listed| field(listed, "group") == group) {
                if let Some(crd) = kcp.get(Origin::Local, Kind::Crd, &bound(text_at(listed, &["schema", "UID"]))) {
                    taken.add(crd, group);
                }
            }
        }
        taken
    }

    fn add(&mut self, crd: &'a Value, group: &str) {
        if text_at(crd, &["spec", "group"]) != group {
            return;
        }
        let names = at(crd, &["status", "acceptedNames"]);
        let short = list_at(names, &["shortNames"]).filter_map(Value::as_str);
        self.resources.extend([field(names, "plural"), field(names, "singular")].into_iter().chain(short));
        self.kinds.extend([field(names, "kind"), field(names, "listKind")]);
    }
}

/// What the status of a CRD has to say of its names, as a merge patch. `None`: it says so already.
fn judge(kcp: &Kcp, key: &BindingKey, crd: &Value) -> Option<Value> {
    let (wanted, had) = (at(crd, &["spec", "names"]), at(crd, &["status", "acceptedNames"]));
    let stored = at(crd, &["status", "storedVersions"]);
    let next_stored = stored_versions(crd);
    let is_stored = stored.as_array().is_some_and(|stored| *stored == next_stored);
    if wanted == had && is_stored && is_true(crd, "NamesAccepted") {
        return None;
    }
    let taken = Taken::from(kcp, key, text_at(crd, &["spec", "group"]));
    let mut accepted = had.as_object().cloned().unwrap_or_default();
    let mut conflict: Option<(&str, String)> = None;
    // A name that it has, it keeps; of several that it cannot have the last one is told.
    for (name, taken, reason) in [
        ("plural", &taken.resources, "PluralConflict"),
        ("singular", &taken.resources, "SingularConflict"),
        ("shortNames", &taken.resources, "ShortNamesConflict"),
        ("kind", &taken.kinds, "KindConflict"),
        ("listKind", &taken.kinds, "ListKindConflict"),
    ] {
        let texts = |names: &Value| -> Vec<Text> {
            let value = names.get(name).unwrap_or(&Value::Null);
            let list = value.as_array().into_iter().flatten().chain(value.is_string().then_some(value));
            list.filter_map(Value::as_str).map(Text::from).collect()
        };
        let has = texts(had);
        let in_use: Vec<String> = texts(wanted)
            .iter()
            .filter(|name| !has.contains(name) && taken.contains(name.as_str()))
            .map(|name| format!("{:?} is already in use", name.as_str()))
            .collect();
        if in_use.is_empty() {
            accepted.insert(name.into(), wanted.get(name).cloned().unwrap_or_default());
        } else {
            conflict = Some((reason, in_use.join(", ")));
        }
    }
    accepted.insert("categories".into(), wanted.get("categories").cloned().unwrap_or_default());
    // A null takes a name away, and none is written where there is none.
    accepted.retain(|name, value| !value.is_null() || had.get(name).is_some());

    let now = seconds(kcp.now());
    let mut next = conditions(crd);
    let (reason, message) =
        conflict.as_ref().map_or(("NoConflicts", "no conflicts found"), |(reason, message)| (*reason, message));
    set(&mut next, "NamesAccepted", conflict.is_none(), reason, message, &now);
    if !is_true(crd, "Established") {
        match (conflict.is_none(), condition(crd, "Established")) {
            (true, _) => {
                set(&mut next, "Established", false, "Installing", "the initial names have been accepted", &now);
            }
            (false, None) => set(&mut next, "Established", false, "NotAccepted", "not all names are accepted", &now),
            (false, Some(_)) => {}
        }
    }
    let is_same = is_stored
        && next == conditions(crd)
        && accepted.iter().all(|(name, value)| had.get(name).unwrap_or(&Value::Null) == value);
    (!is_same).then(|| json!({"acceptedNames": accepted, "conditions": next, "storedVersions": next_stored}))
}

/// The versions in which objects may be stored: those of before, and the one of now.
fn stored_versions(crd: &Value) -> Vec<Value> {
    let mut stored: Vec<Value> = list_at(crd, &["status", "storedVersions"]).cloned().collect();
    let storage = list_at(crd, &["spec", "versions"]).find(|version| version.get("storage") == Some(&json!(true)));
    if let Some(name) = storage.and_then(|version| version.get("name")).filter(|name| !stored.contains(name)) {
        stored.push(name.clone());
    }
    stored
}
