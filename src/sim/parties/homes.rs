//! The clean-up of LogicalClusters: it keeps the locks of CRDs, and in the single layout all locks
//! (SPEC 13).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::jiff::civil::DateTime;
use k8s_openapi::jiff::tz::Offset;
use serde_json::{Value, json};

use super::crds::{is_true, resource_of};
use super::{Calls, Chore, Duty, field, home, is_ending, is_gone, list_at, text_at, told};
use crate::api::{ClusterName, GroupResource, Kind, Text};
use crate::sim::kcp::{Event, Kcp, Request, annotation};
use crate::snapshot::{Annotation, HOME, Layer, Layout, Lock, Locks, Origin};

const MANAGER: &str = "kcp-logicalclustercleanup";

/// A binding as the clean-up saw it. They are in order of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    name: Text,
    bound: Vec<GroupResource>,
}

type Entries = BTreeMap<GroupResource, Lock>;

pub(super) fn react(event: &Event, calls: &mut Calls<'_>) {
    if is_gone(event) {
        return;
    }
    calls.look(Duty::CleanUp, event.key.clone());
    if is_ending(&event.object) {
        calls.look(Duty::EndHome, event.key.clone());
    }
}

/// Looks at the locks of a workspace.
pub(super) fn clean_up(kcp: &mut Kcp, layout: Layout, cluster: &ClusterName, calls: &mut Calls<'_>) -> Option<String> {
    kcp.get(Origin::Local, Kind::LogicalCluster, &home(cluster))?;
    if layout == Layout::Split {
        return clean_up_split(kcp, cluster, calls);
    }
    let bindings = kcp.list(Origin::Local, Kind::ApiBinding, Some(cluster));
    let seen: Arc<[Seen]> = bindings.map(|binding| see(binding)).collect();
    if calls.habits.stale_cleanup {
        let delay = calls.delay(5..500);
        calls.then(delay, Chore::CleanUp(cluster.clone(), seen));
        return Some(format!("the clean-up has read the bindings of {cluster}"));
    }
    clean_up_single(kcp, cluster, &seen, calls)
}

fn see(binding: &Value) -> Seen {
    let bound = list_at(binding, &["status", "boundResources"]);
    let bound = bound.map(|bound| GroupResource::new(field(bound, "group"), field(bound, "resource")));
    Seen { name: text_at(binding, &["metadata", "name"]).into(), bound: bound.collect() }
}

/// The workspace's own CRDs, and whether they are established.
fn crds(kcp: &Kcp, cluster: &ClusterName) -> BTreeMap<GroupResource, bool> {
    let crds = kcp.list(Origin::Local, Kind::Crd, Some(cluster));
    crds.map(|crd| (resource_of(crd), is_true(crd, "Established"))).collect()
}

fn entries(annotation: &Annotation) -> Entries {
    annotation.locks().map(|locks| locks.iter().cloned().collect()).unwrap_or_default()
}

fn of_crd(expiry: Option<DateTime>) -> Lock {
    Lock { crd: true, expiry, ..Lock::default() }
}

/// Makes locks-crds anew. One that is unreadable counts as empty.
fn clean_up_split(kcp: &mut Kcp, cluster: &ClusterName, calls: &mut Calls<'_>) -> Option<String> {
    let home = kcp.get(Origin::Local, Kind::LogicalCluster, &home(cluster))?;
    let found = annotation(home, Layer::Crds.annotation());
    let mut locks = entries(&Annotation::read(found));
    if locks.is_empty() {
        locks = entries(&Annotation::read(annotation(home, Layer::Legacy.annotation())));
    }
    let now = Offset::UTC.to_datetime(calls.now);
    locks.retain(|_, lock| lock.crd && lock.expiry.is_none_or(|expiry| expiry >= now));
    let established = crds(kcp, cluster).into_iter().filter(|(_, established)| *established);
    locks.extend(established.map(|(resource, _)| (resource, of_crd(None))));
    look_at_expiry(&locks, cluster, now, calls);

    let text = Locks::new(locks).to_text();
    if text == found {
        return None;
    }
    let what = format!("writes the locks for CRDs of {cluster}: {text}");
    let body = json!({
        "apiVersion": Kind::LogicalCluster.api_version(),
        "kind": Kind::LogicalCluster.as_str(),
        "metadata": {"name": HOME, "annotations": {Layer::Crds.annotation(): text}},
    });
    // By force: only its own annotation is in it, and it is made anew each time.
    let request = Request::apply(Kind::LogicalCluster, cluster.clone(), HOME, body, true).managed_by(MANAGER);
    Some(told(kcp, request, what))
}

/// Puts the one annotation in order, on what was seen of the bindings.
pub(super) fn clean_up_single(
    kcp: &mut Kcp,
    cluster: &ClusterName,
    seen: &[Seen],
    calls: &mut Calls<'_>,
) -> Option<String> {
    let home = kcp.get(Origin::Local, Kind::LogicalCluster, &home(cluster))?;
    let found = annotation(home, Layer::Legacy.annotation());
    let version = text_at(home, &["metadata", "resourceVersion"]).to_owned();
    let now = Offset::UTC.to_datetime(calls.now);
    let locks = match Annotation::read(found) {
        Annotation::Locks(locks) => tidy(locks.iter().cloned().collect(), seen, &crds(kcp, cluster), now),
        // The locks for CRDs come with the next look, which this write asks for.
        Annotation::Missing | Annotation::Unreadable(_) => made_anew(seen),
    };
    look_at_expiry(&locks, cluster, now, calls);
    let text = Locks::new(locks).to_text();
    // What only looks different is left as it is.
    if Annotation::read(found).locks().is_some_and(|found| found.to_text() == text) {
        return None;
    }
    let what = format!("writes the locks of {cluster}: {text}");
    let patch = json!({
        "metadata": {"resourceVersion": version, "annotations": {Layer::Legacy.annotation(): text}},
    });
    let request = Request::merge(Kind::LogicalCluster, cluster.clone(), HOME, patch).managed_by(super::KCP);
    Some(told(kcp, request, what))
}

/// Of several bindings that list a resource the first by name has it.
fn made_anew(seen: &[Seen]) -> Entries {
    let mut locks = Entries::new();
    for Seen { name, bound } in seen {
        for resource in bound {
            let lock = || Lock::of_binding(name.clone(), Text::default());
            locks.entry(resource.clone()).or_insert_with(lock);
        }
    }
    locks
}

fn tidy(mut locks: Entries, seen: &[Seen], crds: &BTreeMap<GroupResource, bool>, now: DateTime) -> Entries {
    locks.retain(|resource, lock| match lock.crd {
        true => crds.contains_key(resource) || lock.expiry.is_some_and(|expiry| expiry >= now),
        // An entry that names nobody stays: nobody can be seen to be gone (D7).
        false => lock.name.is_empty() || seen.binary_search_by(|binding| binding.name.cmp(&lock.name)).is_ok(),
    });
    for (resource, _) in crds.iter().filter(|(_, established)| **established) {
        let lock = locks.entry(resource.clone()).or_insert_with(|| of_crd(None));
        if lock.crd {
            lock.expiry = None;
        }
    }
    locks
}

/// No event tells that a lock has ended.
fn look_at_expiry(locks: &Entries, cluster: &ClusterName, now: DateTime, calls: &mut Calls<'_>) {
    let first = locks.values().filter(|lock| lock.crd).filter_map(|lock| lock.expiry).filter(|end| *end >= now).min();
    if let Some(first) = first {
        let left = first.duration_since(now).unsigned_abs();
        calls.look_after(left.saturating_add(Duration::from_millis(1)), Duty::Expiry, home(cluster));
    }
}
