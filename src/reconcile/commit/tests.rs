use serde_json::json;

use crate::api::Object;
use crate::effect::Effect;
use crate::fixtures::*;
use crate::snapshot::Layout::Split;

/// The body that commits the status of a binding for which no export is found.
fn committed(seen: Seen) -> Option<crate::effect::Patch> {
    let Object::ApiBinding(binding) = seen.object() else { panic!() };
    let (_, effects) = crate::reconcile(&world(Split, &[]), &binding);
    match effects.into_iter().next() {
        Some(Effect::PatchApiBindingStatus(patch)) => Some(patch),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_whole_status_is_applied_forced_and_nothing_else() {
    let claims = json!([{"group": "g", "resource": "r", "verbs": ["*"], "further": null}]);
    let before = json!({"phase": "Binding", "boundResources": [bound("hens")], "appliedPermissionClaims": claims, "further": [1]});
    let patch = committed(binding("mine", json!({"status": before}))).unwrap();
    let invalid = json!({
        "type": "APIExportValid", "status": "False", "severity": "Error", "reason": "APIExportNotFound",
        "message": "APIExport root:farm|farm not found", "lastTransitionTime": "2026-06-01T12:00:00Z",
    });
    let mut status = before;
    merge(&mut status, json!({"conditions": [invalid]}));
    let body = json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding",
        "metadata": {"name": "mine", "resourceVersion": "5"}, "status": status,
    });
    assert_eq!(patch.body.to_value(), body);
    let which = (&*patch.cluster.to_string(), &*patch.name, &*patch.subresource, &*patch.field_manager, patch.force);
    assert_eq!(which, ("meadow", "mine", "status", "kcp-apibinding", true));
}

#[test]
fn d8_it_carries_the_version_that_was_read_if_there_was_one() {
    let patch = committed(binding("mine", json!({}))).unwrap();
    assert_eq!(patch.resource_version, "5");
    assert_eq!(patch.body.to_value()["metadata"]["resourceVersion"], "5");
    let patch = committed(binding("mine", json!({"metadata": {"resourceVersion": null}}))).unwrap();
    assert!(patch.resource_version.is_empty());
    assert_eq!(patch.body.to_value()["metadata"], json!({"name": "mine"}));
}

#[test]
fn nothing_changed_nothing_is_sent() {
    let invalid = json!({
        "type": "APIExportValid", "status": "False", "severity": "Error", "reason": "APIExportNotFound",
        "message": "APIExport root:farm|farm not found", "lastTransitionTime": "2020-01-01T00:00:00Z",
    });
    let so = json!({"status": {"conditions": [invalid]}});
    assert!(committed(binding("mine", so.clone())).is_none());
    let empties = json!({"boundResources": [], "appliedPermissionClaims": [], "apiExportClusterName": ""});
    assert!(committed(binding("mine", so).but(json!({"status": empties}))).is_none(), "missing and empty are equal");
}

#[test]
fn what_is_empty_is_left_out_and_bound_resources_have_all_their_fields() {
    let seen = binding("mine", json!({"status": {"boundResources": [{}], "phase": "Bound"}}));
    let status = committed(seen).unwrap().body.to_value()["status"].clone();
    let entry = json!({"group": "", "resource": "", "schema": {"name": "", "UID": "", "identityHash": ""}});
    assert_eq!(status["boundResources"], json!([entry]));
    let fields: Vec<&String> = status.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["boundResources", "conditions", "phase"]);
}
