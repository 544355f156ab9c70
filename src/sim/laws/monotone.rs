//! `monotone`.

use super::{Verdict, offers};
use crate::api::{ApiBindingStatus, BindingKey, Condition, Phase};
use crate::snapshot::Snapshot;

/// `InitialBindingCompleted` never leaves True once there is a phase; nothing that is bound is bound no more; storage versions never
/// shrink while the storage stays `crd`; and a bound UID is replaced only by one that is established.
///
/// # Errors
/// What goes back.
pub fn monotone(seen: &Snapshot, key: &BindingKey, old: &ApiBindingStatus, new: &ApiBindingStatus) -> Verdict {
    let is_complete = |status: &ApiBindingStatus| {
        status.condition(Condition::INITIAL_BINDING_COMPLETED).is_some_and(Condition::is_true)
    };
    // Without a phase a binding counts as new, whatever else stands there (SPEC 3).
    if is_complete(old) && !is_complete(new) && old.phase != Phase::New {
        return Err("InitialBindingCompleted went back".into());
    }
    for bound in &old.bound_resources {
        let Some(now) = new.bound(&bound.group_resource()) else {
            return Err(format!("{} is not bound any more", bound.group_resource()));
        };
        let shrank = bound.storage_versions.iter().any(|version| !now.storage_versions.contains(version));
        let offered = offers(seen, key);
        let stays = offered.iter().all(|(is_crd, schema)| !now.is(&schema.resource) || *is_crd);
        if shrank && stays {
            return Err(format!("{}: storage versions shrank", bound.group_resource()));
        }
        if now.schema.uid != bound.schema.uid && !seen.bound_crd(&now.schema.uid).is_some_and(|crd| crd.serving) {
            return Err(format!("{} moved to a CRD that does not serve", bound.group_resource()));
        }
    }
    Ok(())
}
