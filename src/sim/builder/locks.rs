//! The lock annotations of a world at its start.
//!
//! Whatever else is drawn, a resource that a binding lists as bound is nobody else's in any of them:
//! on that the law rests that no two bindings of a workspace ever have one resource.

use std::collections::{BTreeMap, BTreeSet};

use super::START;
use super::plan::{Home, Plan};
use super::pool::GONE;
use crate::api::{GroupResource, Text};
use crate::sim::Chance;
use crate::snapshot::{Layer, Layout, Lock, Locks};
use k8s_openapi::jiff::SignedDuration;
use k8s_openapi::jiff::tz::Offset;

type Entries = BTreeMap<Text, Option<Lock>>;

/// What no reader takes for a map of locks.
pub(super) const UNREADABLE: [&str; 4] =
    ["no json", "[]", r#"{"geese.farm.example":{"n":7}}"#, r#"{"eggs":{"c":true,"e":"soon"}}"#];

/// The annotation in which this layout keeps the locks of bindings.
pub(super) fn own_layer(layout: Layout) -> Layer {
    match layout {
        Layout::Split => Layer::Bindings,
        Layout::Single => Layer::Legacy,
    }
}

/// What bindings have bound, as the controller itself writes it.
pub(super) fn write(plan: &mut Plan) {
    let layer = own_layer(plan.layout);
    let texts: Vec<String> = plan.homes.iter().map(|home| text(&bound(plan, home, |_| true), false)).collect();
    for (home, text) in plan.homes.iter_mut().zip(texts) {
        // In the single layout the annotation is there from the beginning; in the other from the first lock.
        if layer == Layer::Legacy || !home.bindings.is_empty() {
            home.locks = vec![(layer, text)];
        }
    }
}

/// The locks of a workspace's bindings. `with_uid`: whether its holder's uid stands in one, of each.
fn bound(plan: &Plan, home: &Home, mut with_uid: impl FnMut(&GroupResource) -> bool) -> Entries {
    let locks = plan.bound_in(home).map(|(binding, resource)| {
        let key = resource.key();
        let uid = if plan.layout == Layout::Split && with_uid(&key) { binding.uid.as_str() } else { "" };
        (Text::from(key.as_str()), Some(Lock::of_binding(binding.name.as_str().into(), uid.into())))
    });
    locks.collect()
}

/// As it is written; `spaced`: as somebody else would.
fn text(entries: &Entries, spaced: bool) -> String {
    let one = |(key, lock): (&Text, &Option<Lock>)| match lock {
        Some(lock) => Locks::new([(GroupResource::from(key.as_str()), lock.clone())])
            .to_text()
            .trim_start_matches('{')
            .strip_suffix('}')
            .map(ToOwned::to_owned)
            .unwrap_or_default(),
        None => format!("\"{key}\":null"),
    };
    let all: Vec<String> = entries.iter().map(one).collect();
    if spaced { format!("{{ {} }}", all.join(", ")) } else { format!("{{{}}}", all.join(",")) }
}

/// Draws the annotations of all workspaces.
pub(super) fn draw(plan: &mut Plan, chance: &mut Chance) {
    for at in 0..plan.homes.len() {
        let Some(home) = plan.homes.get(at) else { continue };
        let locks = match plan.layout {
            Layout::Split => draw_split(plan, chance, at, home),
            Layout::Single => draw_single(plan, chance, at, home),
        };
        if let Some(home) = plan.homes.get_mut(at) {
            home.locks = locks;
        }
    }
}

fn draw_split(plan: &Plan, chance: &mut Chance, at: usize, home: &Home) -> Vec<(Layer, String)> {
    let free = free(plan, home);
    let mut annotations = Vec::new();
    // Of each workspace one way of writing uids, so that each is met in full.
    let uids = [0, 500, 1000].get(usize::try_from(chance.below(3)).unwrap_or_default()).copied().unwrap_or(1000);
    let mut own = bound(plan, home, |_| chance.permille(uids));
    match chance.below(25) {
        0 => annotations.push((Layer::Bindings, unreadable(chance))),
        // What the bindings list as bound stands for their locks then.
        1 | 2 => {}
        _ => {
            for resource in &free {
                if chance.permille(150) {
                    own.insert(resource.as_str().into(), draw_stray(plan, chance, home));
                }
            }
            annotations.push((Layer::Bindings, text(&own, chance.permille(80))));
        }
    }
    let crds = plan.crds.iter().filter(|crd| crd.home == at && crd.is_accepted);
    let crds: BTreeSet<Text> =
        crds.filter_map(|crd| plan.resources.get(crd.resource)).map(|it| it.key().as_str().into()).collect();
    if !crds.is_empty() || chance.permille(200) {
        let mut locks: Entries = crds.iter().map(|key| (key.clone(), Some(crd_lock(None)))).collect();
        draw_crd_locks(chance, &free, &mut locks, 150);
        annotations.push((Layer::Crds, rarely_unreadable(chance, text(&locks, false))));
    }
    if chance.permille(200) {
        let mut locks = Entries::new();
        draw_crd_locks(chance, &free, &mut locks, 250);
        annotations.push((Layer::Pending, rarely_unreadable(chance, text(&locks, false))));
    }
    if chance.permille(350) {
        // Before the migration all stood here.
        let is_copy = chance.permille(500);
        let mut locks = bound(plan, home, |_| false);
        locks.retain(|_, _| is_copy);
        for resource in free.iter().filter(|_| chance.permille(150)).collect::<Vec<_>>() {
            locks.insert(resource.as_str().into(), draw_stray(plan, chance, home));
        }
        annotations.push((Layer::Legacy, rarely_unreadable(chance, text(&locks, false))));
    }
    annotations
}

fn draw_single(plan: &Plan, chance: &mut Chance, at: usize, home: &Home) -> Vec<(Layer, String)> {
    match chance.below(25) {
        0 => return vec![(Layer::Legacy, unreadable(chance))],
        1 => return Vec::new(),
        _ => {}
    }
    let free = free(plan, home);
    let mut locks = bound(plan, home, |_| false);
    for resource in free.iter().filter(|_| chance.permille(120)).collect::<Vec<_>>() {
        locks.insert(resource.as_str().into(), draw_stray(plan, chance, home));
    }
    draw_crd_locks(chance, &free, &mut locks, 50);
    for crd in plan.crds.iter().filter(|crd| crd.home == at && crd.is_accepted) {
        if let Some(resource) = plan.resources.get(crd.resource) {
            locks.insert(resource.key().as_str().into(), Some(crd_lock(None)));
        }
    }
    vec![(Layer::Legacy, text(&locks, chance.permille(80)))]
}

/// The resources that no binding of the workspace has.
fn free(plan: &Plan, home: &Home) -> Vec<GroupResource> {
    let bound: BTreeSet<GroupResource> = plan.bound_in(home).map(|(_, resource)| resource.key()).collect();
    plan.resources.iter().map(|resource| resource.key()).filter(|key| !bound.contains(key)).collect()
}

/// A lock of something that nobody has bound: of a binding that still is to bind it, or does not want
/// it, or is not there any more; or of nobody.
fn draw_stray(plan: &Plan, chance: &mut Chance, home: &Home) -> Option<Lock> {
    let binding = chance.one_of(&home.bindings).and_then(|at| plan.bindings.get(*at));
    let name: Text = binding.map_or(GONE, |binding| &binding.name).into();
    let lock = match chance.below(8) {
        0 | 1 => Lock::of_binding(GONE.into(), Text::default()),
        2 => Lock::of_binding(GONE.into(), format!("{}-{GONE}-0", home.cluster).into()),
        3 => Lock::default(),
        4 => return None,
        5 => Lock::of_binding(name, Text::default()),
        6 => {
            let uid = binding.map_or("", |binding| &binding.uid);
            Lock::of_binding(name, uid.into())
        }
        // Of the one that had the name before.
        _ => {
            let uid = format!("{}-{name}-before", home.cluster);
            Lock::of_binding(name, uid.into())
        }
    };
    Some(lock)
}

/// Locks for CRDs that are not there: with no end, with one that is long past, and with one to come.
fn draw_crd_locks(chance: &mut Chance, free: &[GroupResource], locks: &mut Entries, permille: u64) {
    for resource in free {
        if !locks.contains_key(resource.as_str()) && chance.permille(permille) {
            let end = match chance.below(4) {
                0 => None,
                1 => Some(chance.within(0..60).cast_signed()),
                _ => Some(-chance.within(1..300).cast_signed()),
            };
            locks.insert(resource.as_str().into(), Some(crd_lock(end)));
        }
    }
}

/// The lock of a CRD. `expiry`: seconds from the start.
fn crd_lock(expiry: Option<i64>) -> Lock {
    let time =
        |seconds| Offset::UTC.to_datetime(START.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(START));
    Lock { crd: true, expiry: expiry.map(time), ..Lock::default() }
}

fn rarely_unreadable(chance: &mut Chance, text: String) -> String {
    if chance.permille(30) { unreadable(chance) } else { text }
}

fn unreadable(chance: &mut Chance) -> String {
    chance.one_of(&UNREADABLE).copied().unwrap_or_default().into()
}
