//! Worlds: what a controller of one shard can see at one moment.

use std::collections::BTreeMap;
use std::fmt;

use proptest::array::uniform2;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::bindings::{BindingSpec, binding_spec};
use super::exports::{
    Copies, EntrySpec, ExportSpec, OwnCrdSpec, entry_spec, export_spec, own_crd_spec, resource, version,
};
use super::locks::{AnnotationSpec, annotation_spec};
use super::pools::{CONSUMERS, IDENTITIES, PROVIDERS, Resource, SchemaId, path_of};
use crate::api::{
    BindingKey, CLUSTER_ANNOTATION, ClaimSelector, Kind, LogicalCluster, Object, PATH_ANNOTATION, PermissionClaim,
};
use crate::snapshot::{Change, Layer, Layout, Origin, Snapshot};

/// About when generated worlds are: 2026-06-01T12:00:00Z.
pub const PRESENT: Timestamp = Timestamp::constant(1_780_315_200, 0);

/// Objects, the time and the layout of locks: all that a snapshot is made of, as wire objects.
///
/// No two objects are of the same origin, kind, cluster and name. [`Debug`] shows one object a line.
#[derive(Clone, PartialEq)]
pub struct World {
    /// How the lock annotations are laid out.
    pub layout: Layout,
    /// The time.
    pub now: Timestamp,
    /// The objects, each with where it is seen.
    pub objects: Vec<(Origin, Object)>,
}

impl World {
    /// A world without objects.
    pub fn new(layout: Layout, now: Timestamp) -> Self {
        Self { layout, now, objects: Vec::new() }
    }

    /// The changes that tell a snapshot of all objects.
    pub fn changes(&self) -> Vec<Change> {
        let put =
            |(origin, object): &(Origin, Object)| Change::Put { origin: *origin, object: Box::new(object.clone()) };
        self.objects.iter().map(put).collect()
    }

    /// A snapshot of all objects.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::new(self.layout);
        snapshot.set_now(self.now);
        for change in self.changes() {
            snapshot.apply(change);
        }
        snapshot
    }

    /// The keys of all bindings, in order.
    pub fn bindings(&self) -> Vec<BindingKey> {
        let bindings = self.objects.iter().filter(|(_, object)| object.kind() == Kind::ApiBinding);
        let mut keys: Vec<BindingKey> = bindings.map(|(_, object)| object.key()).collect();
        keys.sort();
        keys
    }

    /// An object, if there is one.
    pub fn get(&self, origin: Origin, kind: Kind, key: &BindingKey) -> Option<&Object> {
        let mut objects = self.objects.iter().filter(|(seen, object)| *seen == origin && object.kind() == kind);
        objects.find(|(_, object)| object.key() == *key).map(|(_, object)| object)
    }

    /// Puts an object in the place of the one that has its origin, kind, cluster and name.
    pub fn put(&mut self, origin: Origin, object: Object) {
        let is_it = |(seen, other): &&mut (Origin, Object)| {
            *seen == origin && other.kind() == object.kind() && other.key() == object.key()
        };
        match self.objects.iter_mut().find(is_it) {
            Some((_, other)) => *other = object,
            None => self.objects.push((origin, object)),
        }
    }

    /// Takes an object out.
    pub fn remove(&mut self, origin: Origin, kind: Kind, key: &BindingKey) {
        self.objects.retain(|(seen, object)| *seen != origin || object.kind() != kind || object.key() != *key);
    }

    fn add(&mut self, origin: Origin, object: impl Into<Object>) {
        let object = object.into();
        if self.get(origin, object.kind(), &object.key()).is_none() {
            self.objects.push((origin, object));
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "a world, {:?}, {}", self.layout, self.now)?;
        for (origin, object) in &self.objects {
            let json = serde_json::to_string(object).map_err(|_| fmt::Error)?;
            writeln!(f, "  {origin:?} {json}")?;
        }
        Ok(())
    }
}

pub(super) fn metadata(cluster: &str, name: &str, uid: Option<String>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        uid,
        annotations: Some(BTreeMap::from([(CLUSTER_ANNOTATION.to_owned(), cluster.to_owned())])),
        ..ObjectMeta::default()
    }
}

/// A claim, of an export or of a binding.
#[derive(Clone, Debug)]
pub(super) struct ClaimSpec {
    /// Which of the exports is claimed from, counted round, and which of its entries.
    which: (u8, u8),
    /// Claims something else.
    other: Option<(Resource, Option<&'static str>)>,
    accepted: bool,
}

impl ClaimSpec {
    pub(super) fn claim(&self, exports: &[ExportSpec], state: Option<&str>) -> PermissionClaim {
        let round = |which: u8, count: usize| usize::from(which).checked_rem(count);
        let export = round(self.which.0, exports.len()).and_then(|at| exports.get(at));
        let entry = export.and_then(|export| export.entries.get(round(self.which.1, export.entries.len())?));
        let (resource, identity) = match (self.other, export, entry) {
            (None, Some(export), Some(entry)) => (Some(entry.resource), export.identity),
            (Some((resource, identity)), ..) => (Some(resource), identity),
            _ => (None, None),
        };
        PermissionClaim {
            group: resource.map(|resource| resource.group).unwrap_or_default().into(),
            resource: resource.map_or("configmaps", |resource| resource.plural).into(),
            verbs: vec!["*".into()],
            identity_hash: identity.unwrap_or_default().into(),
            selector: state.map(|_| ClaimSelector { match_all: true, ..ClaimSelector::default() }),
            state: match state {
                Some(accepted) if self.accepted => accepted.into(),
                Some(_) => "Rejected".into(),
                None => "".into(),
            },
            ..PermissionClaim::default()
        }
    }
}

pub(super) fn claim_spec() -> BoxedStrategy<ClaimSpec> {
    let identity = weighted(0.8, select(&IDENTITIES));
    ((0u8..6, 0u8..4), weighted(0.4, (resource(), identity)), prop::bool::weighted(0.85))
        .prop_map(|(which, other, accepted)| ClaimSpec { which, other, accepted })
        .boxed()
}

/// The LogicalCluster of one workspace.
#[derive(Clone, Debug)]
pub(super) struct HomeSpec {
    crds: AnnotationSpec,
    bindings: AnnotationSpec,
    pending: AnnotationSpec,
    legacy: AnnotationSpec,
    version: Option<u32>,
}

impl HomeSpec {
    fn make_sound(&mut self) {
        self.version = self.version.or(Some(100));
        for annotation in [&mut self.crds, &mut self.bindings, &mut self.pending, &mut self.legacy] {
            annotation.make_sound();
        }
    }

    pub(super) fn home(&self, cluster: &str, bound: &[(String, String, Vec<String>)]) -> LogicalCluster {
        let mut metadata = metadata(cluster, "cluster", Some(format!("home-{cluster}")));
        metadata.resource_version = self.version.map(|version| version.to_string());
        if let Some(annotations) = &mut metadata.annotations {
            annotations.insert(PATH_ANNOTATION.into(), path_of(cluster));
            for (layer, spec) in [
                (Layer::Crds, &self.crds),
                (Layer::Bindings, &self.bindings),
                (Layer::Pending, &self.pending),
                (Layer::Legacy, &self.legacy),
            ] {
                if let Some(text) = spec.to_text(cluster, bound) {
                    annotations.insert(layer.annotation().into(), text);
                }
            }
        }
        LogicalCluster { metadata }
    }
}

pub(super) fn home_spec() -> BoxedStrategy<HomeSpec> {
    // In the single layout nearly everything stands in `legacy`, which must not be missing then.
    let layers = (annotation_spec(0), annotation_spec(3), annotation_spec(0), annotation_spec(3));
    let rare = prop::bool::weighted(0.5);
    (layers, uniform2(rare), weighted(0.97, version()))
        .prop_map(|((crds, bindings, pending, legacy), [crds_there, pending_there], version)| HomeSpec {
            crds: if crds_there { crds } else { AnnotationSpec::Missing },
            bindings,
            pending: if pending_there { pending } else { AnnotationSpec::Missing },
            legacy,
            version,
        })
        .boxed()
}

/// The LogicalCluster of a workspace, with lock annotations of every kind.
pub fn logical_cluster() -> BoxedStrategy<LogicalCluster> {
    (select(&CONSUMERS), home_spec()).prop_map(|(cluster, home)| home.home(cluster, &[])).boxed()
}

#[derive(Clone, Debug)]
pub(super) struct WorldSpec {
    layout: Layout,
    now: SignedDuration,
    pub(super) exports: Vec<ExportSpec>,
    schemas: Vec<(&'static str, EntrySpec)>,
    bindings: Vec<BindingSpec>,
    homes: [Option<HomeSpec>; 2],
    crds: Vec<OwnCrdSpec>,
}

impl WorldSpec {
    /// The same without what stops a binding before it comes to its neighbours: all in one workspace, each with
    /// an export that can be bound. What is rare elsewhere, that one is in another's way, is the rule here.
    fn sound(mut self) -> Self {
        let [workspace, ..] = CONSUMERS;
        self.exports.iter_mut().for_each(ExportSpec::make_sound);
        for binding in &mut self.bindings {
            binding.cluster = workspace;
            binding.make_sound();
        }
        self.crds.iter_mut().for_each(|crd| crd.cluster = workspace);
        for home in self.homes.iter_mut().flatten() {
            home.make_sound();
        }
        self
    }

    pub(super) fn world(&self) -> World {
        let mut world = World::new(self.layout, PRESENT.checked_add(self.now).unwrap_or(PRESENT));
        for export in &self.exports {
            if export.copies != Copies::Global {
                world.add(Origin::Local, export.export());
            }
            if export.copies != Copies::Local {
                let behind = ExportSpec { entries: Vec::new(), ..export.clone() };
                world.add(Origin::Global, if export.behind { behind.export() } else { export.export() });
            }
            for entry in &export.entries {
                add_schema(&mut world, export.schema_id(entry), entry);
            }
        }
        for (cluster, entry) in &self.schemas {
            add_schema(&mut world, SchemaId { cluster, resource: entry.resource, revision: entry.revision }, entry);
        }
        for binding in &self.bindings {
            world.add(Origin::Local, binding.binding(&self.exports));
        }
        for crd in &self.crds {
            world.add(Origin::Local, crd.crd());
        }
        for (cluster, home) in CONSUMERS.into_iter().zip(&self.homes) {
            let bindings = self.bindings.iter().filter(|binding| binding.cluster == cluster);
            let bound: Vec<_> = bindings
                .map(|binding| {
                    let listed = binding.bound_resources(&self.exports);
                    let keys = listed.iter().map(|bound| bound.group_resource().to_string()).collect();
                    (binding.name.to_owned(), binding.uid(), keys)
                })
                .collect();
            if let Some(home) = home {
                world.add(Origin::Local, home.home(cluster, &bound));
            }
        }
        world
    }
}

/// An entry's schema and what belongs to it.
fn add_schema(world: &mut World, id: SchemaId, entry: &EntrySpec) {
    let Some(spec) = &entry.schema else { return };
    for (origin, other) in [(Origin::Local, Copies::Global), (Origin::Global, Copies::Local)] {
        if spec.copies != other {
            world.add(origin, spec.schema(id));
            if spec.converted {
                world.add(origin, spec.conversion_object(id));
            }
        }
    }
    if let Some(crd) = &spec.crd {
        world.add(Origin::Local, crd.bound(id, &spec.uid(id)));
    }
}

pub(super) fn world_spec() -> BoxedStrategy<WorldSpec> {
    let layout = prop_oneof![4 => Just(Layout::Split), 1 => Just(Layout::Single)];
    let now = prop_oneof![3 => Just(0i64), 1 => Just(500), 1 => Just(1000)].prop_map(SignedDuration::from_millis);
    let exports = vec(export_spec(), 0..4);
    let schemas = vec((select(&PROVIDERS), entry_spec()), 0..2);
    let bindings = vec(binding_spec(), 1..5);
    // Few: each one takes its resource from all bindings there.
    let crds =
        prop_oneof![3 => Just(0usize), 2 => Just(1), 1 => Just(2)].prop_flat_map(|count| vec(own_crd_spec(), count));
    let homes = uniform2(weighted(0.95, home_spec()));
    (layout, now, exports, schemas, bindings, homes, crds, any::<bool>())
        .prop_map(|(layout, now, exports, schemas, bindings, homes, crds, is_sound)| {
            let world = WorldSpec { layout, now, exports, schemas, bindings, homes, crds };
            if is_sound { world.sound() } else { world }
        })
        .boxed()
}

/// A world: two workspaces with bindings, three logical clusters with exports, whose bound CRDs and
/// locks are as the bindings say, or not at all.
///
/// References are drawn as positions and made into names at the end, so they stay consistent while a
/// world shrinks.
pub fn world() -> BoxedStrategy<World> {
    world_spec().prop_map(|spec| spec.world()).boxed()
}
