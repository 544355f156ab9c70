//! Taking and releasing locks (SPEC 5, and "Release" and "Asking the server" of SPEC 11).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::Planning;
use super::conditions::Verdict;
use super::export::Offered;
use super::notes::{BindingRead, CrdRead};
use super::trace::{Finding, HomeFound, LockFound, Trace};
use crate::api::{BindingKey, GroupResource, Json, Kind, Text};
use crate::effect::{Effect, Patch, ReadCrd};
use crate::snapshot::{Annotation, Cluster, HOME, Home, Layer, Layout, Lock, Locks};

/// Who holds a resource that the binding does not get.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Holder {
    /// The binding; empty if a CRD holds it.
    pub(crate) binding: Text,
    pub(crate) crd: bool,
}

/// The resources that others hold.
pub(crate) type Skipped = BTreeMap<GroupResource, Holder>;

/// What stands in the way of a resource, by the annotations alone.
enum Standing<'a> {
    /// Nothing. `over`: a CRD lock that is over would be taken. `own`: the binding's own lock, where it was seen.
    Free { over: Option<&'a Lock>, own: Option<&'a Lock> },
    /// A lock. `layer`: where; `None` for a bound resource without lock (D18).
    Held { lock: Cow<'a, Lock>, layer: Option<Layer> },
}

/// The locks of a workspace, as a pass over one binding sees them.
struct View<'a, 'p, T: Trace> {
    planning: &'a mut Planning<'p, T>,
    workspace: &'p Cluster,
    home: &'p Home,
    /// The annotation that this controller writes.
    own_layer: Layer,
    /// What stands in it.
    own: Cow<'p, Locks>,
    /// Bindings to ask the server for, in order of their names.
    ask_bindings: BTreeSet<Text>,
    /// CRDs to ask the server for.
    ask_crds: Vec<GroupResource>,
}

/// Step 7 of SPEC 4: takes all of `wanted` that is free. `Err`: the verdict that stops the pass.
pub(crate) fn take<T: Trace>(planning: &mut Planning<'_, T>, wanted: &Offered<'_>) -> Result<Skipped, Verdict> {
    if let Some(message) = &planning.notes.lock_failure {
        return Err(Verdict::error("InternalError", format!("Unable to bind APIs: {message}")));
    }
    let missing = "Unable to bind APIs: logicalcluster.core.kcp.io \"cluster\" not found";
    let Some((workspace, home)) = home_of(planning) else {
        planning.trace.note(|| Finding::Home(HomeFound::Missing));
        return Err(Verdict::error("LogicalClusterNotFound", missing));
    };
    if let Some((layer, message)) = unreadable(planning.world.layout(), home) {
        let message = format!("Unable to bind APIs: {message}");
        let annotation = layer.annotation().into();
        planning.trace.note(|| Finding::Home(HomeFound::Unreadable { annotation, message: message.clone() }));
        return Err(Verdict::error("NamingConflicts", message));
    }
    planning.trace.note(|| {
        Finding::Home(match home.bindings.why().filter(|_| planning.world.layout() == Layout::Split) {
            Some(why) => {
                HomeFound::WrittenAnew { annotation: Layer::Bindings.annotation().into(), message: why.clone() }
            }
            None => HomeFound::Readable,
        })
    });
    Ok(View::new(planning, workspace, home).take(wanted))
}

/// The key of a binding that does not exist: its dead locks, and those of others, are removed.
pub(crate) fn release<T: Trace>(planning: &mut Planning<'_, T>) {
    if planning.world.layout() != Layout::Split || planning.notes.lock_failure.is_some() {
        return;
    }
    let Some((workspace, home)) = home_of(planning) else { return };
    if unreadable(Layout::Split, home).is_none() {
        View::new(planning, workspace, home).release();
    }
}

/// A LogicalCluster without resourceVersion counts as not found: nothing could guard a write (D6).
fn home_of<'p, T: Trace>(planning: &Planning<'p, T>) -> Option<(&'p Cluster, &'p Home)> {
    let workspace = planning.workspace?;
    let home = workspace.home().filter(|home| !home.meta.resource_version.is_empty())?;
    Some((workspace, home))
}

/// The first annotation that cannot be read. An unreadable locks-bindings is none: it is written
/// anew, and nothing in it is doubtful (D18).
fn unreadable(layout: Layout, home: &Home) -> Option<(Layer, String)> {
    let describe = |why: &Text| format!("failed to unmarshal ResourceBindings annotation: {why}");
    match layout {
        Layout::Single if home.legacy == Annotation::Missing => {
            let message = "annotation not found, migration has to happen first";
            Some((Layer::Legacy, format!("{} {message}", Layer::Legacy.annotation())))
        }
        Layout::Single => home.legacy.why().map(|why| (Layer::Legacy, describe(why))),
        Layout::Split => {
            let mut told = [Layer::Legacy, Layer::Pending, Layer::Crds].into_iter();
            told.find_map(|layer| home.layer(layer).why().map(|why| (layer, describe(why))))
        }
    }
}

impl<'a, 'p, T: Trace> View<'a, 'p, T> {
    fn new(planning: &'a mut Planning<'p, T>, workspace: &'p Cluster, home: &'p Home) -> Self {
        let own_layer = match planning.world.layout() {
            Layout::Split => Layer::Bindings,
            Layout::Single => Layer::Legacy,
        };
        let own = match home.layer(own_layer) {
            Annotation::Locks(locks) => Cow::Borrowed(locks),
            Annotation::Missing => Cow::Owned(Locks::default()),
            // Taken to hold just what the bindings have bound (D18).
            Annotation::Unreadable(_) => {
                let bound = workspace.binders();
                Cow::Owned(Locks::new(
                    bound.map(|(resource, name)| (resource.clone(), Lock::of_binding(name.clone(), Text::default()))),
                ))
            }
        };
        Self { planning, workspace, home, own_layer, own, ask_bindings: BTreeSet::new(), ask_crds: Vec::new() }
    }

    fn is_split(&self) -> bool {
        self.own_layer == Layer::Bindings
    }

    fn name(&self) -> &'p Text {
        &self.planning.key.name
    }

    fn take(mut self, wanted: &Offered<'_>) -> Skipped {
        let wanted = || wanted.iter().map(|(_, schema)| &schema.resource);
        let desired = match self.is_split() {
            true => Lock::of_binding(self.name().clone(), self.planning.binding.meta.uid.clone()),
            false => Lock::of_binding(self.name().clone(), Text::default()),
        };
        let dead =
            self.dead(|lock, resource| lock.name == *self.planning.key.name && wanted().any(|it| it == resource));
        let mut skipped = Skipped::new();
        let mut is_any_free = false;
        let mut rewritten: Vec<&GroupResource> = Vec::new();
        for resource in wanted() {
            match self.claim(resource, &desired, &dead) {
                Err(holder) => {
                    skipped.insert(resource.clone(), holder);
                }
                Ok(is_written) => {
                    is_any_free = true;
                    if is_written {
                        rewritten.push(resource);
                    }
                }
            }
        }
        self.ask();
        let canonical = matches!(self.home.layer(self.own_layer), Annotation::Locks(locks) if locks.is_canonical());
        let rewrites = is_any_free && (!canonical || !rewritten.is_empty());
        if rewrites || !dead.is_empty() {
            self.write(&dead, rewritten.into_iter().map(|resource| (resource.clone(), desired.clone())));
        }
        skipped
    }

    fn release(mut self) {
        let dead = self.dead(|_, _| false);
        self.ask();
        if !dead.is_empty() {
            self.write(&dead, []);
        }
    }

    /// The entries of locks-bindings to be removed: those that are doubtful, and dead by the
    /// server's word. `spared`: the binding's own wanted ones.
    fn dead(&mut self, spared: impl Fn(&Lock, &GroupResource) -> bool) -> BTreeSet<GroupResource> {
        if !self.is_split() {
            return BTreeSet::new();
        }
        let mut dead = BTreeSet::new();
        for resource in self.workspace.doubtful() {
            let Some(lock) = self.home.bindings.get(resource) else { continue };
            if !spared(lock, resource) && self.is_dead(lock) {
                dead.insert(resource.clone());
            }
        }
        dead
    }

    /// Whether a doubtful lock is dead. What was not asked yet, is asked.
    fn is_dead(&mut self, lock: &Lock) -> bool {
        match self.read(&lock.name) {
            BindingRead::Absent => true,
            BindingRead::Present(uid) => !lock.uid.is_empty() && lock.uid != uid,
            BindingRead::Unknown => false,
        }
    }

    /// The server's answer about a binding. Until it is there: that there is none, or, of the
    /// binding's own name, the binding itself.
    fn read(&mut self, name: &Text) -> BindingRead {
        if let Some(read) = self.planning.notes.bindings.get(name) {
            return read.clone();
        }
        if self.planning.notes.ask_no_more {
            return BindingRead::Unknown;
        }
        self.ask_bindings.insert(name.clone());
        match *name == self.planning.key.name && self.planning.exists {
            true => BindingRead::Present(self.planning.binding.meta.uid.clone()),
            false => BindingRead::Absent,
        }
    }

    fn crd_read(&mut self, resource: &GroupResource) -> CrdRead {
        if let Some(read) = self.planning.notes.crds.get(resource) {
            return *read;
        }
        if self.planning.notes.ask_no_more {
            return CrdRead::Unknown;
        }
        if !self.ask_crds.contains(resource) {
            self.ask_crds.push(resource.clone());
        }
        CrdRead::Absent
    }

    /// Claims one resource. `Ok(true)`: its entry has to be written; `Ok(false)`: it stands as it
    /// should. `Err`: who holds it.
    fn claim(
        &mut self,
        resource: &GroupResource,
        desired: &Lock,
        dead: &BTreeSet<GroupResource>,
    ) -> Result<bool, Holder> {
        let (over, seen) = match self.standing(resource, dead) {
            Standing::Held { lock, layer } => {
                let crd_exists = lock.crd && self.workspace.has_crd(resource);
                let over = lock.end().filter(|_| !crd_exists);
                self.planning.look_after(over);
                let found = LockFound::Held { binding: lock.name.clone(), crd: lock.crd, layer, over, crd_exists };
                return Err(self.held(resource, &lock, found));
            }
            Standing::Free { over, own } => (over.and_then(Lock::end), own),
        };
        let standing =
            seen.or_else(|| self.own.get(resource)).filter(|lock| lock.is_of_binding() && lock.name == *self.name());
        let is_right = standing.is_some_and(|lock| lock == desired || self.is_left_alone(lock, resource));
        if standing.is_some() && !is_right && self.is_split() && !self.is_own(self.planning.binding.meta.uid.clone()) {
            let layer = Some(self.own_layer);
            let binding = self.name().clone();
            let found = LockFound::Held { binding, crd: false, layer, over: None, crd_exists: false };
            return Err(self.held(resource, desired, found));
        }
        if let Some(ended) = over.filter(|_| !is_right) {
            if self.crd_read(resource) != CrdRead::Absent {
                let lock = Lock { crd: true, ..Lock::default() };
                let found =
                    LockFound::Held { binding: Text::default(), crd: true, layer: None, over: None, crd_exists: true };
                return Err(self.held(resource, &lock, found));
            }
            self.planning.trace.note(|| Finding::Lock(resource.clone(), LockFound::TakenOver { ended }));
            return Ok(true);
        }
        let abandoned = self.own.get(resource).filter(|_| dead.contains(resource));
        let found = match abandoned {
            _ if is_right => LockFound::Own,
            Some(lock) => LockFound::Abandoned { binding: lock.name.clone() },
            None => LockFound::Free,
        };
        self.planning.trace.note(|| Finding::Lock(resource.clone(), found));
        Ok(!is_right)
    }

    /// The holder of a resource that this lock keeps from the binding.
    fn held(&mut self, resource: &GroupResource, lock: &Lock, found: LockFound) -> Holder {
        self.planning.trace.note(|| Finding::Lock(resource.clone(), found));
        let binding = if lock.crd { Text::default() } else { lock.name.clone() };
        Holder { binding, crd: lock.crd }
    }

    /// True if the server has the binding with this very uid, so that its entry may be rewritten.
    fn is_own(&mut self, uid: Text) -> bool {
        let name = self.name();
        self.read(name) == BindingRead::Present(uid)
    }

    /// An own entry as others wrote it, of a resource that is bound already (SPEC 11).
    fn is_left_alone(&self, lock: &Lock, resource: &GroupResource) -> bool {
        self.is_split()
            && lock.uid.is_empty()
            && lock.expiry.is_none()
            && self.planning.binding.status.bound(resource).is_some()
    }

    /// Goes down the layers to the first lock that holds (D26).
    fn standing(&mut self, resource: &GroupResource, dead: &BTreeSet<GroupResource>) -> Standing<'p> {
        let layers: &[Layer] = if self.is_split() { &Layer::ALL } else { &[Layer::Legacy] };
        let mut over = None;
        for &layer in layers {
            let lock = match (layer == self.own_layer, &self.own) {
                (true, Cow::Owned(own)) => own.get(resource).cloned().map(Cow::Owned),
                (true, Cow::Borrowed(own)) => own.get(resource).map(Cow::Borrowed),
                (false, _) => self.home.layer(layer).get(resource).map(Cow::Borrowed),
            };
            let Some(lock) = lock.filter(|lock| lock.holds()) else { continue };
            if lock.crd {
                if let Cow::Borrowed(lock) = lock
                    && self.is_over(lock, resource)
                {
                    over = over.or(Some(lock));
                    continue;
                }
                return Standing::Held { lock, layer: Some(layer) };
            }
            if lock.name == *self.name() && self.planning.exists {
                let own = match lock {
                    Cow::Borrowed(lock) if layer == self.own_layer => Some(lock),
                    _ => None,
                };
                return Standing::Free { over, own };
            }
            let is_dead = match layer {
                Layer::Bindings => dead.contains(resource),
                Layer::Legacy if self.is_split() => self.is_dead_legacy(&lock),
                _ => false,
            };
            if !is_dead {
                return Standing::Held { lock, layer: Some(layer) };
            }
        }
        match self.workspace.binder(resource).filter(|name| *name != self.name()) {
            Some(name) => {
                let lock = Lock::of_binding(name.clone(), Text::default());
                Standing::Held { lock: Cow::Owned(lock), layer: None }
            }
            None => Standing::Free { over, own: None },
        }
    }

    fn is_over(&self, lock: &Lock, resource: &GroupResource) -> bool {
        lock.end().is_some_and(|end| self.planning.world.now() > end) && !self.workspace.has_crd(resource)
    }

    fn is_dead_legacy(&mut self, lock: &Lock) -> bool {
        let binding = self.workspace.binding(&lock.name);
        lock.is_doubtful(binding.map(|binding| &**binding)) && self.is_dead(lock)
    }

    /// The reads come before anything that is planned on their answers.
    fn ask(&mut self) {
        let cluster = &self.planning.key.cluster;
        let bindings = std::mem::take(&mut self.ask_bindings).into_iter();
        let bindings = bindings.map(|name| Effect::ReadApiBinding(BindingKey::new(cluster.clone(), name)));
        let crds = std::mem::take(&mut self.ask_crds)
            .into_iter()
            .map(|resource| Effect::ReadCrd(ReadCrd { cluster: cluster.clone(), name: resource.crd_name(), resource }));
        self.planning.effects.extend(bindings.chain(crds));
    }

    /// Writes what stands in the annotation, without the dead entries and with those that are taken.
    fn write(&mut self, dead: &BTreeSet<GroupResource>, taken: impl IntoIterator<Item = (GroupResource, Lock)>) {
        if !self.planning.wants_more() {
            return;
        }
        let kept = self.own.iter().filter(|(resource, _)| !dead.contains(resource)).cloned();
        let text = Locks::text_of(kept.chain(taken));
        let (field_manager, force) = match self.own_layer {
            Layer::Bindings => (super::FIELD_MANAGER, self.planning.notes.force),
            _ => ("apibinding-reconciler-locks", true),
        };
        let resource_version = &self.home.meta.resource_version;
        let body = Json::of(&json!({
            "apiVersion": Kind::LogicalCluster.api_version(),
            "kind": Kind::LogicalCluster.as_str(),
            "metadata": {
                "name": HOME,
                "resourceVersion": resource_version,
                "annotations": { self.own_layer.annotation(): text },
            },
        }));
        self.planning.effects.push(Effect::PatchLogicalCluster(Patch {
            cluster: self.planning.key.cluster.clone(),
            name: HOME.into(),
            subresource: Text::default(),
            field_manager: field_manager.into(),
            force,
            resource_version: resource_version.clone(),
            body,
        }));
    }
}

#[cfg(test)]
mod tests;
