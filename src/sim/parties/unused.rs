//! The clean-up of CRDs: bound ones that nobody uses go when they are old (SPEC 13).

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::crds::resource_of;
use super::uses::Uses;
use super::{Calls, Duty, bound, field, is_ending, list_at, told};
use crate::api::{BindingKey, ClusterName, Kind};
use crate::sim::kcp::{Kcp, Request, annotation, text_at};
use crate::snapshot::Origin;

/// Of what a bound CRD was made.
const SCHEMA_CLUSTER: &str = "apis.kcp.io/schema-cluster";
const SCHEMA_NAME: &str = "apis.kcp.io/schema-name";

/// Somebody will look for users of a bound CRD, but not before it is old enough to be deleted.
pub(super) fn look(crd: &Value, uid: &str, calls: &mut Calls<'_>) {
    if let Some(left) = left(crd, calls) {
        calls.look_after(left, Duty::Unused, bound(uid));
    }
}

/// An export changed, by which claims find what they want: those of its schemas that only claims may want
/// are looked at.
pub(super) fn look_by_export(kcp: &Kcp, uses: &Uses, export: &BindingKey, calls: &mut Calls<'_>) {
    for uid in uses.made_in(&export.cluster).filter(|uid| uses.listing(uid).next().is_none()) {
        if let Some(crd) = kcp.get(Origin::Local, Kind::Crd, &bound(uid)) {
            look(crd, uid, calls);
        }
    }
}

/// How long it takes until a bound CRD is old; zero if it is. `None`: there is no clean-up.
fn left(crd: &Value, calls: &Calls<'_>) -> Option<Duration> {
    let age = calls.habits.old?;
    let created: Option<Timestamp> = text_at(crd, &["metadata", "creationTimestamp"]).parse().ok();
    let old = super::after(created.unwrap_or_default(), age);
    Some(match old < calls.now {
        true => Duration::ZERO,
        false => old.duration_since(calls.now).unsigned_abs() + Duration::from_millis(1),
    })
}

/// Deletes a bound CRD that is old and has no users.
pub(super) fn delete(kcp: &mut Kcp, uses: &Uses, key: &BindingKey, calls: &mut Calls<'_>) -> Option<String> {
    let crd = kcp.get(Origin::Local, Kind::Crd, key).filter(|crd| !is_ending(crd))?;
    if is_used(kcp, uses, key, crd) {
        return None;
    }
    if !left(crd, calls)?.is_zero() {
        // Created anew under the same name since this look was asked for.
        look(crd, &key.name, calls);
        return None;
    }
    let request = Request::delete(Kind::Crd, key.cluster.clone(), key.name.clone()).managed_by(super::KCP);
    Some(told(kcp, request, format!("deletes CRD {key}, which nobody uses")))
}

/// True if a binding lists it by UID, or an accepted claim wants what it was made for.
fn is_used(kcp: &Kcp, uses: &Uses, key: &BindingKey, crd: &Value) -> bool {
    if uses.listing(&key.name).next().is_some() {
        return true;
    }
    let resource = resource_of(crd);
    let mut claimed = uses.identities(&resource).peekable();
    if claimed.peek().is_none() {
        return false;
    }
    let cluster = ClusterName::from(annotation(crd, SCHEMA_CLUSTER));
    let schema = annotation(crd, SCHEMA_NAME);
    let offered: Vec<&str> = [Origin::Local, Origin::Global]
        .into_iter()
        .flat_map(|origin| kcp.list(origin, Kind::ApiExport, Some(&cluster)))
        .filter(|export| list_at(export, &["spec", "resources"]).any(|offer| field(offer, "schema") == schema))
        .map(|export| text_at(export, &["status", "identityHash"]))
        .collect();
    claimed.any(|identity| offered.contains(&identity.as_str()))
}
