//! `confined`.

use std::collections::BTreeMap;

use k8s_openapi::jiff::tz::Offset;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{Verdict, same};
use crate::api::{BindingKey, ClusterName, GroupResource};
use crate::effect::{Effect, Patch};
use crate::sim::kcp::at;
use crate::snapshot::{Annotation, Home, Layer, Layout, Lock, Snapshot};

/// Every write goes to the binding's own LogicalCluster, its own status, or `system:bound-crds`, on what was
/// `seen`; locks of others that hold keep their value, and nothing is taken that one of them holds.
///
/// `lives`: whether the binding of a lock exists, with the lock's uid if it has one. `exists`: whether the
/// workspace has a CRD for a resource.
///
/// # Errors
/// What is written where it must not be.
pub fn confined(
    key: &BindingKey,
    seen: &Snapshot,
    effect: &Effect,
    lives: impl Fn(&Lock) -> bool,
    exists: impl Fn(&GroupResource) -> bool,
) -> Verdict {
    match effect {
        Effect::CreateCrd(create) => {
            same("where a CRD is created", create.cluster.as_str(), ClusterName::BOUND_CRDS)?;
            let body = create.body.to_value();
            same("its name", at(&body, &["metadata", "name"]), &json!(create.name))?;
            same(
                "its cluster",
                at(&body, &["metadata", "annotations", "kcp.io/cluster"]),
                &json!(ClusterName::BOUND_CRDS),
            )
        }
        Effect::PatchApiBindingStatus(patch) => {
            same("whose status", &BindingKey::new(patch.cluster.clone(), patch.name.clone()), key)?;
            same("subresource", patch.subresource.as_str(), "status")?;
            let body = patch.body.to_value();
            let fields: Vec<&str> = body.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            same("fields", &fields[..], &["apiVersion", "kind", "metadata", "status"])?;
            let known = seen.binding(key).ok_or("a commit for nobody")?;
            same("precondition", &patch.resource_version, &known.meta.resource_version)?;
            let metadata: Vec<&str> =
                at(&body, &["metadata"]).as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            let has_version = !patch.resource_version.is_empty();
            same("metadata", &metadata[..], if has_version { &["name", "resourceVersion"] } else { &["name"] })?;
            same(
                "precondition in the body",
                at(&body, &["metadata", "resourceVersion"]).as_str().unwrap_or_default(),
                &patch.resource_version,
            )
        }
        Effect::PatchLogicalCluster(patch) => lock(key, seen, patch, lives, exists),
        Effect::ReadApiBinding(read) => same("where is read", &read.cluster, &key.cluster),
        Effect::ReadCrd(read) => same("where is read", &read.cluster, &key.cluster),
        Effect::Requeue(_) => Err("a later look is nothing to carry out".into()),
    }
}

fn lock(
    key: &BindingKey,
    seen: &Snapshot,
    patch: &Patch,
    lives: impl Fn(&Lock) -> bool,
    exists: impl Fn(&GroupResource) -> bool,
) -> Verdict {
    same("whose locks", &patch.cluster, &key.cluster)?;
    same("name", patch.name.as_str(), "cluster")?;
    same("subresource", patch.subresource.as_str(), "")?;
    let home = seen.logical_cluster(&key.cluster).ok_or("locks of no LogicalCluster")?;
    same("precondition", &patch.resource_version, &home.meta.resource_version)?;
    let layer = own_layer(seen.layout());
    let body = patch.body.to_value();
    let text = at(&body, &["metadata", "annotations", layer.annotation()]).as_str().ok_or("no locks in it")?.to_owned();
    let expected = json!({
        "apiVersion": "core.kcp.io/v1alpha1", "kind": "LogicalCluster",
        "metadata": {
            "name": "cluster", "resourceVersion": patch.resource_version,
            "annotations": {layer.annotation(): text},
        },
    });
    same("body", &body, &expected)?;
    let after: BTreeMap<String, Value> = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let locks = View { key, seen, home, lives, exists };
    for (resource, lock) in after.iter().filter(|(_, lock)| at(lock, &["n"]) == &json!(key.name)) {
        let resource = GroupResource::from(resource.as_str());
        let stood = home.layer(layer).get(&resource).is_some_and(|before| json!(before) == *lock);
        // Of an annotation that cannot be read what is bound is written anew, without uids (D18).
        let is_rescued = matches!(home.layer(layer), Annotation::Unreadable(_))
            && seen.binding(key).is_some_and(|known| known.status.bound(&resource).is_some());
        if !stood && !is_rescued {
            same(format_args!("how {resource} is taken"), lock, &locks.own())?;
            locks.is_free(&resource).map_err(|why| format!("{resource} is taken: {why}"))?;
        }
    }
    let Annotation::Locks(before) = home.layer(layer) else { return Ok(()) };
    // What nobody writes, a lock of the binding among those of CRDs, decides before what stands in our
    // annotation (SPEC 5): there the law as DESIGN.md words it asks for more than the rules give.
    let is_hidden = |resource: &GroupResource| {
        let above = home.crds.get(resource).filter(|_| layer == Layer::Bindings);
        above.is_some_and(|lock| lock.is_of_binding() && lock.name == key.name)
    };
    for (resource, lock) in before.iter() {
        let kept = after.get(resource.as_str()) == Some(&json!(lock));
        if kept || is_hidden(resource) {
            continue;
        }
        let told = || format!("{resource} was {lock:?}, becomes {:?}", after.get(resource.as_str()));
        if lock.crd {
            if !locks.is_over(lock, resource) {
                return Err(format!("a CRD lock that is not over: {}", told()));
            }
        } else if locks.is_of_another(lock) && (locks.lives)(lock) {
            return Err(format!("a lock of a binding that exists: {}", told()));
        }
    }
    Ok(())
}

/// The locks of a workspace, as a binding should see them: SPEC 5, told the long way. Asking the code that is
/// judged would see no fault in it.
struct View<'a, L, E> {
    key: &'a BindingKey,
    seen: &'a Snapshot,
    home: &'a Home,
    lives: L,
    exists: E,
}

/// For how long a CRD lock still holds after its expiry (D24).
const GRACE: SignedDuration = SignedDuration::from_secs(75);

impl<L: Fn(&Lock) -> bool, E: Fn(&GroupResource) -> bool> View<'_, L, E> {
    /// A lock as this binding takes it (SPEC 5, 11).
    fn own(&self) -> Value {
        let uid = self.seen.binding(self.key).map(|binding| &binding.meta.uid);
        match uid.filter(|uid| self.seen.layout() == Layout::Split && !uid.is_empty()) {
            Some(uid) => json!({"n": self.key.name, "u": uid}),
            None => json!({"n": self.key.name}),
        }
    }

    fn is_over(&self, lock: &Lock, resource: &GroupResource) -> bool {
        let expiry = lock.expiry.and_then(|expiry| Offset::UTC.to_timestamp(expiry).ok());
        let is_past = |expiry: Timestamp| self.seen.now().duration_since(expiry) > GRACE;
        expiry.is_some_and(is_past) && !(self.exists)(resource) && !self.has_crd(resource)
    }

    fn has_crd(&self, resource: &GroupResource) -> bool {
        let crds = self.seen.crds(&self.key.cluster);
        crds.iter().any(|(_, crd)| crd.group == resource.group() && crd.names.plural == resource.resource())
    }

    /// True for a lock of another binding: of another name, or of one that had this name before or has it now.
    fn is_of_another(&self, lock: &Lock) -> bool {
        let own = self.seen.binding(self.key).map(|binding| &binding.meta.uid);
        let is_namesake = || !lock.uid.is_empty() && own.is_some_and(|own| *own != lock.uid);
        lock.is_of_binding() && (lock.name != self.key.name || is_namesake())
    }

    /// Goes down the layers to the first lock that holds.
    fn is_free(&self, resource: &GroupResource) -> Verdict {
        let layers = match self.seen.layout() {
            Layout::Split => &Layer::ALL[..],
            Layout::Single => &[Layer::Legacy],
        };
        for &layer in layers {
            let Some(lock) = self.home.layer(layer).get(resource) else { continue };
            let told = || format!("it is held in {} by {lock:?}", layer.annotation());
            if lock.crd && !self.is_over(lock, resource) {
                return Err(told());
            }
            if !lock.is_of_binding() {
                continue;
            }
            if lock.name == self.key.name {
                return Ok(());
            }
            // Only those that this controller wrote die before they are removed.
            let may_die = self.seen.layout() == Layout::Split && matches!(layer, Layer::Bindings | Layer::Legacy);
            if !may_die || (self.lives)(lock) {
                return Err(told());
            }
        }
        // What is bound is locked, whatever the locks say (D18).
        let keys = self.seen.bindings().into_iter().filter(|key| key.cluster == self.key.cluster);
        let bindings = keys.filter_map(|key| Some((self.seen.binding(&key)?, key)));
        let binders = bindings.filter(|(binding, _)| binding.status.bound(resource).is_some());
        match binders.min_by_key(|(binding, key)| (binding.created, key.clone())) {
            Some((_, binder)) if binder != *self.key => Err(format!("{binder} has bound it")),
            _ => Ok(()),
        }
    }
}

/// The annotation that this controller writes.
pub(super) fn own_layer(layout: Layout) -> Layer {
    match layout {
        Layout::Split => Layer::Bindings,
        Layout::Single => Layer::Legacy,
    }
}

/// The locks of a patch, as it writes them.
pub(super) fn written(patch: &Patch, layer: Layer) -> Map<String, Value> {
    let body = patch.body.to_value();
    let text = at(&body, &["metadata", "annotations", layer.annotation()]).as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}
