use serde_json::{Value, json};

use super::*;

fn read(json: &Value) -> ApiBinding {
    serde_json::from_value(json.clone()).unwrap()
}

#[test]
fn a_status_is_carried_through_whole_at_any_depth() {
    let claim = json!({"group": "g", "resource": "r", "verbs": ["get"], "identityHash": "i", "x": 1,
        "defaultSelector": {"matchAll": true, "x": 2}, "selector": {"matchLabels": {"a": "b"}, "x": {"y": []}}, "state": "Accepted"});
    let status = json!({
        "apiExportClusterName": "c", "phase": "Bound", "x": {"y": null},
        "boundResources": [{"group": "", "resource": "pods", "x": 3, "storageVersions": ["v1"],
            "schema": {"name": "s", "UID": "u", "identityHash": "i", "x": 4}}],
        "conditions": [{"type": "T", "status": "Maybe", "severity": "S", "reason": "R", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00.5+02:00", "observedGeneration": 5}],
        "appliedPermissionClaims": [claim], "exportPermissionClaims": [claim],
    });
    assert_eq!(serde_json::to_value(read(&json!({"status": status})).status).unwrap(), status);
}

#[test]
fn empties_are_left_out_but_for_what_bound_resources_always_have() {
    let nulls = json!({"apiExportClusterName": "", "phase": null, "boundResources": [], "conditions": null,
        "appliedPermissionClaims": null, "exportPermissionClaims": []});
    assert_eq!(serde_json::to_value(read(&json!({"status": nulls})).status).unwrap(), json!({}));
    let bound = json!({"status": {"boundResources": [{"group": null, "schema": null, "storageVersions": null}]}});
    let entry = json!({"group": "", "resource": "", "schema": {"name": "", "UID": "", "identityHash": ""}});
    assert_eq!(serde_json::to_value(read(&bound).status).unwrap(), json!({"boundResources": [entry]}));
    let claim = json!({"status": {"exportPermissionClaims": [{"group": "", "resource": "r", "verbs": [], "identityHash": ""}]}});
    assert_eq!(
        serde_json::to_value(read(&claim).status).unwrap(),
        json!({"exportPermissionClaims": [{"resource": "r"}]})
    );
}

#[test]
fn phases_are_texts_and_an_unknown_one_is_kept() {
    for (text, phase) in [
        ("", Phase::New),
        ("Binding", Phase::Binding),
        ("Bound", Phase::Bound),
        ("Dancing", Phase::Other("Dancing".into())),
    ] {
        assert_eq!(read(&json!({"status": {"phase": text}})).status.phase, phase);
        assert_eq!(
            (phase.as_str(), phase.to_string(), serde_json::to_value(&phase).unwrap()),
            (text, text.into(), json!(text))
        );
    }
    assert_eq!(read(&json!({})).status.phase, Phase::New);
}

#[test]
fn a_binding_has_a_key_conditions_and_entries() {
    let binding = read(&json!({
        "metadata": {"name": "n", "annotations": {"kcp.io/cluster": "c"}},
        "spec": {"permissionClaims": [{"resource": "r", "state": "Accepted"}, {"resource": "s", "group": "g", "state": "Rejected"}]},
        "status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B"}], "boundResources": [{"resource": "pods"}]},
    }));
    assert_eq!(binding.key().to_string(), "c|n");
    assert!(binding.status.condition("A").unwrap().is_true() && !binding.status.condition("B").unwrap().is_true());
    assert_eq!(binding.status.condition("C"), None);
    assert!(binding.status.bound(&"pods".into()).is_some() && binding.status.bound(&"pods.g".into()).is_none());
    let claims: Vec<_> = binding
        .spec
        .permission_claims
        .iter()
        .map(|claim| (claim.group_resource().to_string(), claim.is_accepted()))
        .collect();
    assert_eq!(claims, [("r".to_owned(), true), ("s.g".to_owned(), false)]);
}

#[test]
fn an_export_reference_may_be_missing_at_every_level() {
    for none in [
        json!({}),
        json!({"spec": null}),
        json!({"spec": {"reference": null}}),
        json!({"spec": {"reference": {"export": null}}}),
    ] {
        assert_eq!(read(&none).spec.reference.export, None);
    }
    let named = read(&json!({"spec": {"reference": {"export": {"name": "n", "path": null}}}}));
    assert_eq!(named.spec.reference.export.unwrap().name, "n");
}
