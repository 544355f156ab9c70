//! The input as one world: a snapshot to plan on, and the objects behind it.

use std::collections::BTreeMap;

use apibinding::api::{ApiBinding, BindingKey, ClusterName, ClusterPath, Kind, Object, cluster_of, path_of};
use apibinding::snapshot::{Change, Layout, Origin, Snapshot};
use k8s_openapi::jiff::Timestamp;

use super::args::LayoutChoice;
use super::failure::Failure;
use super::layout;
use super::notes::{self, Few, skipped};
use super::objects::{Objects, name_uid};
use super::read::{Found, Source};

/// The name of every LogicalCluster.
const HOME: &str = "cluster";

/// A guess that is wrong for every kcp there is must not go without a word.
const UNTOLD_LAYOUT: &str = "no LogicalCluster has an annotation of locks to tell their layout, so it is taken to be \
                             split: for a kcp release so far, say --layout single";

/// The input as one world.
pub struct World {
    /// What is planned on.
    pub snapshot: Snapshot,
    /// What a server would have.
    pub objects: Objects,
    /// The paths of logical clusters, where some object tells.
    pub paths: BTreeMap<ClusterName, ClusterPath>,
    /// What a person would want to know of the input.
    pub notes: Vec<String>,
}

impl World {
    /// Puts together what was read. Objects without uid or resourceVersion get some, in the order of
    /// their names, whatever order they were read in. No object is made up.
    pub fn new(local: Found, global: Found, layout: LayoutChoice, now: Timestamp) -> Result<Self, Failure> {
        let mut notes = Vec::new();
        let others = [&local.others, &global.others].into_iter().flatten().map(|(kind, count)| (kind.clone(), *count));
        notes.extend(skipped(others, "that this controller does not read"));
        notes.extend([&local, &global].into_iter().flat_map(Found::missing_pages));
        let mut unknown = local.unknown;
        unknown.append(global.unknown);
        notes.extend(unknown.told("unknown fields"));

        let (global_copies, local_only): (Vec<_>, Vec<_>) =
            global.objects.into_iter().partition(|(_, object)| has_global_copies(object.kind()));
        let local_only = local_only.iter().map(|(_, object)| (object.kind().to_string(), 1));
        notes.extend(skipped(local_only, "that this controller does not read from the cache server"));

        let mut objects = Objects::default();
        let mut sorted = BTreeMap::new();
        let local = local.objects.into_iter().map(|found| (Origin::Local, found));
        for (origin, (at, object)) in local.chain(global_copies.into_iter().map(|found| (Origin::Global, found))) {
            check_name(&at, &object)?;
            objects.note_version(&object);
            add(&mut sorted, origin, at, object)?;
        }
        let mut nowhere = Few::default();
        for (at, object) in sorted.values_mut() {
            if cluster_of(object.metadata()).is_empty() {
                let what = || format!("{} {} ({at})", object.kind(), object.key().name);
                nowhere.push(|| format!("{} has no annotation kcp.io/cluster: it is in no logical cluster", what()));
            }
            name_uid(object);
            if object.metadata().resource_version.as_deref().unwrap_or_default().is_empty() {
                objects.renew_version(object);
            }
        }

        notes.extend(nowhere.told("objects without annotation kcp.io/cluster"));
        notes.extend(notes::missing(|wanted| sorted.keys().any(|(_, kind, _)| *kind == wanted)));

        let has_clusters = sorted.keys().any(|(_, kind, _)| *kind == Kind::LogicalCluster);
        let clusters = sorted.values().filter_map(|(_, object)| match object {
            Object::LogicalCluster(cluster) => Some(cluster),
            _ => None,
        });
        let layout = match layout {
            LayoutChoice::Split => Layout::Split,
            LayoutChoice::Single => Layout::Single,
            LayoutChoice::Auto => layout::detect(clusters)?.unwrap_or_else(|| {
                // Without LogicalClusters nothing is locked, and another note says so.
                notes.extend(has_clusters.then(|| UNTOLD_LAYOUT.to_owned()));
                Layout::Split
            }),
        };
        let mut snapshot = Snapshot::new(layout);
        snapshot.set_now(now);
        let mut paths = BTreeMap::new();
        for ((origin, ..), (_, object)) in sorted {
            let path = path_of(object.metadata());
            if !path.is_empty() {
                paths.insert(cluster_of(object.metadata()), path);
            }
            snapshot.apply(Change::Put { origin, object: Box::new(object.clone()) });
            if !has_global_copies(object.kind()) {
                objects.put(object);
            }
        }
        notes.extend(notes::homeless(&snapshot));
        Ok(Self { snapshot, objects, paths, notes })
    }

    /// A binding, whole.
    pub fn binding(&self, key: &BindingKey) -> Option<&ApiBinding> {
        match self.objects.get(Kind::ApiBinding, key)? {
            Object::ApiBinding(binding) => Some(binding),
            _ => None,
        }
    }
}

/// The kinds that the controller reads from the cache server too; they are never written.
fn has_global_copies(kind: Kind) -> bool {
    matches!(kind, Kind::ApiExport | Kind::ApiResourceSchema | Kind::ApiConversion)
}

/// Objects in the order of their names, each with its place.
type Sorted = BTreeMap<(Origin, Kind, BindingKey), (Source, Object)>;

/// A copy to the letter does no harm. Of two that differ nobody can tell which one was meant.
fn add(sorted: &mut Sorted, origin: Origin, at: Source, object: Object) -> Result<(), Failure> {
    let (kind, key) = (object.kind(), object.key());
    match sorted.get(&(origin, kind, key.clone())) {
        Some((_, same)) if *same == object => {}
        Some((first, _)) => {
            return Err(Failure::Twice { kind, key, first: first.clone().into(), second: at.into() });
        }
        None => {
            sorted.insert((origin, kind, key), (at, object));
        }
    }
    Ok(())
}

fn check_name(at: &Source, object: &Object) -> Result<(), Failure> {
    let (kind, key) = (object.kind(), object.key());
    let problem = match kind {
        _ if key.name.is_empty() => "there is none, so nothing can find the object: give it one",
        Kind::LogicalCluster if key.name != HOME => "every LogicalCluster is called `cluster`",
        _ => return Ok(()),
    };
    Err(Failure::Name { kind, key, at: at.clone().into(), problem })
}
