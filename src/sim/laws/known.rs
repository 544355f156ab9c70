//! `indexed` and `late`: what is known does not depend on how it came to be known.

use std::collections::BTreeSet;

use super::{Model, Verdict, same};
use crate::api::{BindingKey, Kind};
use crate::sim::Chance;
use crate::snapshot::{Change, Origin, Snapshot};

/// A snapshot equals the one built from scratch, its indexes included.
///
/// # Errors
/// Both.
pub fn indexed(snapshot: &Snapshot, model: &Model) -> Verdict {
    let mut scratch = model.snapshot();
    scratch.set_now(snapshot.now());
    same("what is known, and what is built from scratch", snapshot, &scratch)
}

/// Changes that are told late, twice, in another order, and of several to one object only the last, end
/// in the same snapshot as when they are told in order.
///
/// # Errors
/// Both.
pub fn late(model: &Model, changes: &[Change], chance: &mut Chance) -> Verdict {
    let in_order = model.snapshot_of(changes.iter().cloned());
    let mut told = Vec::new();
    let mut later = BTreeSet::new();
    for change in changes.iter().rev() {
        let is_last = subject(change).is_none_or(|subject| later.insert(subject));
        if is_last || chance.permille(700) {
            told.push(change.clone());
        }
        if chance.permille(200) {
            told.push(change.clone());
        }
    }
    chance.shuffle(&mut told);
    same("what was told anyhow, and what was told in order", &model.snapshot_of(told), &in_order)
}

fn subject(change: &Change) -> Option<(Origin, Kind, BindingKey)> {
    match change {
        Change::Put { origin, object } => Some((*origin, object.kind(), object.key())),
        Change::Delete { origin, kind, key, .. } => Some((*origin, *kind, key.clone())),
        Change::Bookmark { .. } | Change::List { .. } => None,
    }
}
