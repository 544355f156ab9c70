//! Whether somebody else writes what only this controller writes.

use crate::api::{ApiBindingStatus, BindingKey, Condition, Kind};
use crate::snapshot::{Home, Layer, Snapshot};

/// What of an object changed that nobody else may change. It was not this controller.
pub(super) fn foreign(before: &Snapshot, after: &Snapshot, kind: Kind, key: &BindingKey) -> Option<&'static str> {
    let is_foreign = match kind {
        Kind::ApiBinding => is_changed(&before.binding(key)?.status, &after.binding(key)?.status),
        Kind::LogicalCluster => {
            has_new_locks(before.logical_cluster(&key.cluster)?, after.logical_cluster(&key.cluster)?)
        }
        _ => false,
    };
    is_foreign.then_some(if kind == Kind::ApiBinding { "its status" } else { "locks of bindings there" })
}

fn is_changed(before: &ApiBindingStatus, after: &ApiBindingStatus) -> bool {
    let ours = [Condition::READY, Condition::API_EXPORT_VALID, Condition::INITIAL_BINDING_COMPLETED];
    let said = |status: &ApiBindingStatus| ours.map(|kind| status.condition(kind).map(|it| it.status.clone()));
    before.phase != after.phase || before.bound_resources != after.bound_resources || said(before) != said(after)
}

/// The clean-up makes an annotation anew that is missing or unreadable; to any other it adds no entry of a binding
/// (SPEC 13).
fn has_new_locks(before: &Home, after: &Home) -> bool {
    Layer::ALL.into_iter().any(|layer| {
        let (Some(known), Some(now)) = (before.layer(layer).locks(), after.layer(layer).locks()) else { return false };
        now.iter().any(|(resource, lock)| {
            lock.is_of_binding() && known.get(resource).is_none_or(|known| known.name != lock.name)
        })
    })
}
