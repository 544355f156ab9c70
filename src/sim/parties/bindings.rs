//! What others do to bindings: the claims that their consumers accepted, and the end of their deletion
//! (SPEC 13).

use serde_json::{Value, json};

use super::crds::is_true;
use super::uses::Uses;
use super::{Calls, Chore, Duty, bound, field, is_ending, is_gone, list_at, unused, words};
use crate::api::{BindingKey, GroupResource, Kind, Text};
use crate::sim::kcp::{Event, Kcp, Request, at, seconds, text_at};
use crate::snapshot::Origin;

pub(super) fn react(kcp: &Kcp, uses: &mut Uses, event: &Event, calls: &mut Calls<'_>) {
    let change = uses.note_binding(event);
    if change.is_any {
        // Names may have become free for CRDs of the workspace.
        for name in uses.nameless(&event.key.cluster) {
            calls.look(Duty::Names, BindingKey::new(event.key.cluster.clone(), name.clone()));
        }
        let claimed = change.lost_claims.iter().flat_map(|resource| uses.serving(resource));
        for uid in change.lost_uids.iter().chain(claimed) {
            if let Some(crd) = kcp.get(Origin::Local, Kind::Crd, &bound(uid)) {
                unused::look(crd, uid, calls);
            }
        }
    }
    if is_gone(event) {
        return;
    }
    if is_ending(&event.object) {
        calls.look(Duty::EndBinding, event.key.clone());
    } else if claims(kcp, uses, &event.object).is_some() {
        calls.look(Duty::Claims, event.key.clone());
    }
}

/// Reads a binding, and finds what its status has to say of claims. It is sent a little later.
pub(super) fn read_claims(kcp: &Kcp, uses: &Uses, key: &BindingKey, calls: &mut Calls<'_>) -> Option<String> {
    let binding = kcp.get(Origin::Local, Kind::ApiBinding, key)?;
    let status = claims(kcp, uses, binding)?;
    let patch =
        json!({"metadata": {"resourceVersion": at(binding, &["metadata", "resourceVersion"])}, "status": status});
    let delay = calls.delay(1..20);
    calls.then(delay, Chore::Claims(key.clone(), Box::new(patch)));
    Some(format!("the controller of claims has read APIBinding {key}"))
}

/// Sends what was found; if the binding is another by now it is read again.
pub(super) fn write_claims(kcp: &mut Kcp, key: &BindingKey, patch: Value, calls: &mut Calls<'_>) -> Option<String> {
    let request = Request::merge(Kind::ApiBinding, key.cluster.clone(), key.name.clone(), patch).of_status();
    Some(match kcp.handle(request.managed_by(super::KCP)) {
        Ok(_) => format!("writes the claims of APIBinding {key}"),
        Err(status) => {
            if status.code == Some(409) {
                calls.look(Duty::Claims, key.clone());
            }
            format!("cannot write the claims of APIBinding {key}: {}", words(&status))
        }
    })
}

/// What a status has to say of claims, as a merge patch. `None`: it says so already, or the export is not
/// known yet, whose claims they are.
fn claims(kcp: &Kcp, uses: &Uses, binding: &Value) -> Option<Value> {
    let status = at(binding, &["status"]);
    if is_ending(binding) || field(status, "apiExportClusterName").is_empty() {
        return None;
    }
    let offered =
        |claim: &&Value| list_at(status, &["exportPermissionClaims"]).any(|offer| key_of(offer) == key_of(claim));
    let accepted = list_at(binding, &["spec", "permissionClaims"]).filter(|claim| field(claim, "state") == "Accepted");
    let (valid, unknown): (Vec<&Value>, Vec<&Value>) = accepted.partition(offered);
    let (mut applied, waiting): (Vec<&Value>, Vec<&Value>) =
        valid.into_iter().partition(|claim| is_served(kcp, uses, claim));
    applied.sort_by_key(|claim| key_of(claim));
    let applied: Vec<Value> = applied.into_iter().map(as_applied).collect();

    let now = seconds(kcp.now());
    let mut conditions: Vec<Value> = list_at(status, &["conditions"]).cloned().collect();
    let is_valid = set(&mut conditions, "PermissionClaimsValid", &unknown, "the export does not make the claim", &now);
    let is_applied = set(&mut conditions, "PermissionClaimsApplied", &waiting, "nothing serves", &now);
    let mut found: Vec<&Value> = list_at(status, &["appliedPermissionClaims"]).collect();
    found.sort_by_key(|claim| key_of(claim));
    let is_same = found.into_iter().eq(&applied);
    if is_valid && is_applied && is_same {
        return None;
    }
    let mut patch = json!({"conditions": conditions});
    if let (false, Some(patch)) = (is_same, patch.as_object_mut()) {
        let applied = if applied.is_empty() { Value::Null } else { applied.into() };
        patch.insert("appliedPermissionClaims".into(), applied);
    }
    Some(patch)
}

/// By which claims are told apart.
fn key_of(claim: &Value) -> (&str, &str, &str) {
    (field(claim, "group"), field(claim, "resource"), field(claim, "identityHash"))
}

/// A claim on something that another exports can be applied when that is served.
fn is_served(kcp: &Kcp, uses: &Uses, claim: &Value) -> bool {
    let (group, resource, identity) = key_of(claim);
    let is_established =
        |uid: &Text| kcp.get(Origin::Local, Kind::Crd, &bound(uid)).is_some_and(|crd| is_true(crd, "Established"));
    identity.is_empty() || uses.serving(&GroupResource::new(group, resource)).any(is_established)
}

/// A claim without its answer.
fn as_applied(claim: &Value) -> Value {
    let (group, resource, identity) = key_of(claim);
    let mut applied = json!({"group": group, "resource": resource, "identityHash": identity});
    if let Some(fields) = applied.as_object_mut() {
        let others = ["defaultSelector", "selector", "verbs"];
        let others = others.into_iter().filter_map(|name| Some((name.to_owned(), claim.get(name)?.clone())));
        fields.extend(others);
    }
    applied
}

/// Sets a condition that is True if nothing is amiss. Tells if it was so before.
fn set(conditions: &mut Vec<Value>, kind: &str, amiss: &[&Value], why: &str, now: &str) -> bool {
    let mut condition = json!({"type": kind, "status": if amiss.is_empty() { "True" } else { "False" }});
    if let (false, Some(fields)) = (amiss.is_empty(), condition.as_object_mut()) {
        let claims = amiss.iter().map(|claim| {
            let (group, resource, _) = key_of(claim);
            GroupResource::new(group, resource).to_string()
        });
        let message = format!("{why}: {}", claims.collect::<Vec<_>>().join(", "));
        fields.insert("severity".into(), json!("Error"));
        fields.insert("reason".into(), json!("InvalidPermissionClaims"));
        fields.insert("message".into(), json!(message));
    }
    let says = ["status", "severity", "reason", "message"];
    let known = conditions.iter().find(|known| field(known, "type") == kind);
    if known.is_some_and(|known| says.iter().all(|name| field(known, name) == field(&condition, name))) {
        return true;
    }
    if let Some(fields) = condition.as_object_mut() {
        fields.insert("lastTransitionTime".into(), json!(now));
    }
    conditions.retain(|known| field(known, "type") != kind);
    conditions.push(condition);
    let place = |condition: &Value| {
        let kind = text_at(condition, &["type"]);
        (kind != "Ready", kind.to_owned())
    };
    conditions.sort_by_cached_key(place);
    false
}
