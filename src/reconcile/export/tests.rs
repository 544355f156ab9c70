use serde_json::{Value, json};

use crate::fixtures::*;
use crate::snapshot::Layout::Split;

/// What `mine` says of its export, and the rest of what came of it.
fn look(objects: &[Seen]) -> (String, Played) {
    let played = play(Split, &[objects, &[home(json!({}))]].concat(), "mine");
    (played.condition("APIExportValid").trim_start_matches("APIExportValid ").to_owned(), played)
}

fn check(objects: &[Seen], expect: &str) -> Played {
    let (valid, played) = look(objects);
    assert_eq!(valid, expect);
    if expect != "True" {
        assert_eq!(played.log, ["commit", "forget"], "a verdict waits for a wake-up (D19)");
    }
    played
}

fn mine(reference: Value) -> Seen {
    binding("mine", json!({"spec": {"reference": null}})).but(json!({"spec": {"reference": reference}}))
}

fn hens(more: &[Seen]) -> Vec<Seen> {
    [&[schema("hens", json!({})), bound_crd("hens", json!({}))], more].concat()
}

fn exported(cluster: &str, path: &str) -> Seen {
    export(&["hens"], json!({"metadata": {"annotations": {"kcp.io/cluster": cluster, "kcp.io/path": path}}}))
}

#[test]
fn a_binding_needs_a_reference() {
    check(&[mine(json!({}))], "False APIExportInvalidReference Error Missing APIExport reference");
}

#[test]
fn an_export_that_is_not_there() {
    let of = |reference: Value| mine(json!({"export": reference}));
    check(
        &[of(json!({"path": "root:farm", "name": "farm"}))],
        "False APIExportNotFound Error APIExport root:farm|farm not found",
    );
    check(&[of(json!({"name": "farm"}))], "False APIExportNotFound Error APIExport meadow|farm not found");
}

#[test]
fn an_export_is_found_by_path_or_by_cluster() {
    let by = |path: &str| mine(json!({"export": {"path": path, "name": "farm"}}));
    for path in ["root:farm", "farm"] {
        check(&hens(&[by(path), exported("farm", "root:farm")]), "True");
    }
    let without_path = export(&["hens"], json!({"metadata": {"annotations": {"kcp.io/path": null}}}));
    check(&hens(&[by("farm"), without_path.clone()]), "True");
    check(&hens(&[by("root:farm"), without_path]), "False APIExportNotFound Error APIExport root:farm|farm not found");
}

#[test]
fn an_empty_path_is_the_own_cluster() {
    let annotations = json!({"metadata": {"annotations": {"kcp.io/cluster": "meadow", "kcp.io/path": "root:meadow"}}});
    let objects = [
        mine(json!({"export": {"name": "farm"}})),
        export(&["hens"], annotations.clone()),
        schema("hens", annotations),
        bound_crd("hens", json!({})),
    ];
    check(&objects, "True");
}

#[test]
fn the_local_exports_decide_and_the_global_ones_only_where_there_are_none() {
    let anonymous = exported("farm", "root:farm").but(json!({"status": null}));
    let missing = "False MissingIdentityHash Warning APIExport root:farm|farm is missing status.identityHash";
    let global = exported("farm", "root:farm").global();
    check(&hens(&[binding("mine", json!({})), anonymous.clone(), global.clone()]), missing);
    check(&hens(&[binding("mine", json!({})), anonymous.global(), exported("farm", "root:farm")]), "True");
    check(&hens(&[binding("mine", json!({})), global]), "True");
}

#[test]
fn d19_an_ambiguous_reference_is_a_verdict_without_fallback() {
    let twin = exported("twin", "root:farm");
    let ambiguous = "False InternalError Error Error getting APIExport root:farm|farm: \
                     multiple apiexports.apis.kcp.io found for root:farm:farm";
    let local = [binding("mine", json!({})), exported("farm", "root:farm"), twin.clone()];
    let played = check(&hens(&local), ambiguous);
    assert!(played.status.export_permission_claims.is_empty());
    let global = [binding("mine", json!({})), exported("farm", "root:farm").global(), twin.clone().global()];
    check(&hens(&global), ambiguous);
    check(&hens(&[binding("mine", json!({})), exported("farm", "root:farm"), twin.global()]), "True");
}

#[test]
fn an_export_counts_once_though_both_its_spellings_are_the_same() {
    let same = [mine(json!({"export": {"path": "farm", "name": "farm"}})), exported("farm", "farm")];
    check(&hens(&same), "True");
}

#[test]
fn the_claims_of_an_export_are_copied_before_its_identity_is_asked_for() {
    let claims = json!([{"group": "g", "resource": "secrets", "verbs": ["get"], "x": {"y": 1}}]);
    let more = json!({"status": null, "spec": {"permissionClaims": claims}});
    let played = check(
        &[binding("mine", json!({})), export(&["hens"], more)],
        "False MissingIdentityHash Warning APIExport root:farm|farm is missing status.identityHash",
    );
    assert_eq!(json!(played.status.export_permission_claims), claims);
    assert!(played.status.api_export_cluster_name.is_empty());
}

#[test]
fn claims_that_the_export_dropped_go() {
    let before = json!({"status": {"exportPermissionClaims": [{"resource": "secrets"}]}});
    let played = check(&hens(&[binding("mine", before), export(&["hens"], json!({}))]), "True");
    assert!(played.status.export_permission_claims.is_empty());
}

#[test]
fn a_schema_that_is_missing_is_the_owners_fault() {
    let played = check(
        &hens(&[binding("mine", json!({})), export(&["hens", "ducks", "goats"], json!({}))]),
        "False InternalError Error Invalid APIExport. Please contact the APIExport owner to resolve: \
         APIResourceSchema \"v1.ducks.farm.test\" not found",
    );
    assert_eq!(played.status.api_export_cluster_name.as_str(), "farm", "step 5 came before");
    assert!(played.bound().is_empty());
}

#[test]
fn a_schema_is_local_else_global_and_of_the_exports_cluster() {
    let objects = |schemas: &[Seen]| {
        let mut objects = vec![binding("mine", json!({})), export(&["hens"], json!({})), bound_crd("hens", json!({}))];
        objects.extend_from_slice(schemas);
        objects
    };
    let other_uid = schema("hens", json!({"metadata": {"uid": "s-other"}})).global();
    let bound_uid = |played: &Played| played.status.bound_resources[0].schema.uid.to_string();
    let played = check(&objects(&[schema("hens", json!({})), other_uid]), "True");
    assert_eq!(bound_uid(&played), "s-hens");
    let played = check(&objects(&[schema("hens", json!({})).global()]), "True");
    assert_eq!(bound_uid(&played), "s-hens");
    let elsewhere = schema("hens", json!({"metadata": {"annotations": {"kcp.io/cluster": "meadow"}}}));
    let (valid, _) = look(&objects(&[elsewhere]));
    assert!(valid.ends_with("\"v1.hens.farm.test\" not found"), "{valid}");
}

#[test]
fn d11_the_export_is_valid_once_export_identity_and_schemas_are_found_whatever_comes_later() {
    let failed = json!({"type": "APIExportValid", "status": "False", "severity": "Error", "reason": "InternalError",
        "message": "of old", "lastTransitionTime": "2020-01-01T00:00:00Z"});
    let before = json!({"status": {"conditions": [failed]}});
    let objects = hens(&[binding("mine", before), exported("farm", "root:farm")]);
    // No LogicalCluster stops the pass at step 7.
    let played = play(Split, &objects, "mine");
    assert_eq!(played.condition("APIExportValid"), "APIExportValid True");
    assert!(played.why().starts_with("False LogicalClusterNotFound"));
}
