//! What is known: facts by logical cluster, indexes across them, and the changes that make them.
//!
//! A [`Snapshot`] is one value that is cheap to clone: clones share what they have in common, and
//! a change copies one narrow path. It holds facts, not objects: what the controller reads of each
//! object, interpreted once, when it comes in.

mod bound_crd;
mod change;
mod cluster;
mod dump;
mod entries;
mod facts;
mod index;
mod locks;
pub(crate) mod names;
mod openapi;
mod pool;
pub(crate) mod version;
pub(crate) mod world;

use std::fmt;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) use change::HOME;
pub use change::{Applied, Change, STREAMS};
pub(crate) use cluster::Cluster;
pub use cluster::Origin;
pub use entries::Locks;
pub use facts::{AcceptedClaim, Binding, Crd, Export, Home, Meta, Schema};
pub use locks::{Annotation, Layer, Lock};
pub use world::ExportKey;

use crate::api::{ApiBinding, BindingKey, ClusterName, ClusterPath, LogicalCluster, Phase, Text};
use change::Memory;
use pool::Pool;
use world::World;

/// How the lock annotations are laid out (SPEC 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Layout {
    /// Each writer of locks has its own annotation.
    #[default]
    Split,
    /// One annotation for all: that of the kcp releases so far.
    Single,
}

impl Layout {
    /// The layout that a LogicalCluster shows (SPEC 5). `None`: it shows none.
    ///
    /// One that has an annotation of the split layout is of that, whatever else it has: the legacy
    /// annotation stays behind when a kcp moves to the split layout. One that has the legacy annotation
    /// only is of the single layout.
    pub fn of(cluster: &LogicalCluster) -> Option<Self> {
        let annotations = cluster.metadata.annotations.as_ref()?;
        let has = |layer: &Layer| annotations.contains_key(layer.annotation());
        if [Layer::Crds, Layer::Bindings, Layer::Pending].iter().any(has) {
            Some(Self::Split)
        } else {
            has(&Layer::Legacy).then_some(Self::Single)
        }
    }
}

/// Everything that reconciling reads: objects, the time, and the layout of locks.
///
/// Cloning one costs next to nothing, whatever it holds.
#[derive(Clone)]
pub struct Snapshot {
    world: Arc<World>,
    memory: Arc<Memory>,
    pool: Arc<Pool>,
}

impl Snapshot {
    /// A snapshot that knows nothing, at the beginning of 1970.
    pub fn new(layout: Layout) -> Self {
        Self { world: Arc::new(World::new(layout)), memory: Arc::default(), pool: Arc::default() }
    }

    /// How the lock annotations are laid out.
    pub fn layout(&self) -> Layout {
        self.world.layout
    }

    /// The time that reconciling takes for the present.
    pub fn now(&self) -> Timestamp {
        self.world.now
    }

    /// Sets the time, in seconds since 1970; what is out of range counts as the nearest that is not.
    ///
    /// Its owner does so before it plans, since nothing here looks at a clock:
    ///
    /// ```
    /// # use apibinding::snapshot::{Layout, Snapshot};
    /// # let mut snapshot = Snapshot::new(Layout::Split);
    /// let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed()?;
    /// snapshot.set_unix_time(i64::try_from(since_1970.as_secs())?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_unix_time(&mut self, seconds: i64) {
        let nearest = if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
        self.set_now(Timestamp::from_second(seconds).unwrap_or(nearest));
    }

    /// Sets the time. See [`Snapshot::set_unix_time`].
    pub fn set_now(&mut self, now: Timestamp) {
        if self.world.now != now {
            self.world_mut().now = now;
        }
    }

    /// What is known of a binding.
    pub fn binding(&self, key: &BindingKey) -> Option<&Binding> {
        self.world.binding(key).map(|binding| &**binding)
    }

    /// The keys of all bindings, in order.
    pub fn bindings(&self) -> Vec<BindingKey> {
        let clusters = self.world.clusters();
        let keys = clusters.into_iter().flat_map(|(cluster, known)| {
            known.binding_names().map(move |name| BindingKey::new(cluster.clone(), name.clone()))
        });
        let mut keys: Vec<BindingKey> = keys.collect();
        keys.sort();
        keys
    }

    /// The names of all logical clusters of which anything is known, in order.
    pub fn clusters(&self) -> Vec<ClusterName> {
        self.world.clusters().into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// What is known of a LogicalCluster's own object.
    pub fn logical_cluster(&self, cluster: &ClusterName) -> Option<&Home> {
        self.world.cluster(cluster)?.home().map(|home| &**home)
    }

    /// What is known of an export, local or global.
    pub fn export(&self, origin: Origin, cluster: &ClusterName, name: &str) -> Option<&Export> {
        self.world.cluster(cluster)?.export(origin, name).map(|export| &**export)
    }

    /// The exports under a path joined with their name: the local ones, and only where there are
    /// none, the global ones (SPEC 2).
    pub fn exports_at(&self, path: &ClusterPath) -> Vec<(Origin, ExportKey)> {
        let found =
            Origin::ALL.into_iter().find_map(|origin| Some((origin, self.world.exports_at(origin, path.as_str())?)));
        found.into_iter().flat_map(|(origin, keys)| keys.iter().map(move |key| (origin, key.clone()))).collect()
    }

    /// What is known of a schema: its local copy, else its global one (SPEC 2).
    pub fn schema(&self, cluster: &ClusterName, name: &str) -> Option<&Schema> {
        self.world.schema(cluster, &name.into()).map(|schema| &**schema)
    }

    /// What is known of a CustomResourceDefinition of a logical cluster.
    pub fn crd(&self, cluster: &ClusterName, name: &str) -> Option<&Crd> {
        self.world.cluster(cluster)?.crd(&name.into()).map(|crd| &**crd)
    }

    /// The CustomResourceDefinitions of a logical cluster with their names, in order.
    pub fn crds(&self, cluster: &ClusterName) -> Vec<(&Text, &Crd)> {
        let crds = self.world.cluster(cluster).into_iter().flat_map(Cluster::crds);
        let mut crds: Vec<(&Text, &Crd)> = crds.map(|(name, crd)| (name, &**crd)).collect();
        crds.sort_by_key(|(name, _)| *name);
        crds
    }

    /// What is known of the bound CRD of a schema, by the schema's uid.
    pub fn bound_crd(&self, uid: &str) -> Option<&Crd> {
        self.world.bound_crds()?.crd(&uid.into()).map(|crd| &**crd)
    }

    /// A snapshot in which this binding stands for what is known under its key.
    pub(crate) fn with_binding(&self, key: &BindingKey, binding: &ApiBinding) -> Self {
        let mut snapshot = self.clone();
        let binding = Binding::from(binding);
        if self.binding(key) != Some(&binding) {
            let fact = world::Fact::Binding(Some(Arc::new(binding)));
            snapshot.world_mut().put(&key.cluster, &key.name, fact);
        }
        snapshot
    }

    /// A snapshot in which a binding of phase `from` is of phase `to`.
    pub(crate) fn with_phase(&self, key: &BindingKey, from: &Phase, to: Phase) -> Self {
        let mut snapshot = self.clone();
        if let Some(binding) = self.world.binding(key).filter(|binding| binding.status.phase == *from) {
            let mut binding = Binding::clone(binding);
            binding.status.phase = to;
            snapshot.world_mut().put(&key.cluster, &key.name, world::Fact::Binding(Some(Arc::new(binding))));
        }
        snapshot
    }

    /// Takes a bound CRD for one that was just created of a schema: there, and not judged yet.
    pub(crate) fn expect_crd(&mut self, cluster: &ClusterName, schema: &Text) {
        let Some(schema) = self.world.schema(cluster, schema).cloned() else { return };
        let group = schema.resource.group().into();
        let crd = Crd { group, names: schema.names.clone(), ..Crd::default() };
        let fact = world::Fact::Crd(Some(Arc::new(crd)));
        self.world_mut().put(&ClusterName::BOUND_CRDS.into(), &schema.meta.uid, fact);
    }

    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    fn world_mut(&mut self) -> &mut World {
        Arc::make_mut(&mut self.world)
    }
}

/// Equal if the same is known, whatever way it came to be known.
impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.world, &other.world) || self.world == other.world
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string_pretty(self).map_err(|_| fmt::Error)?;
        f.write_str(&json)
    }
}

/// A time cut to whole seconds, as servers keep times.
pub(crate) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
