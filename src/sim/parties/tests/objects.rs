//! What becomes of CRDs, and what of claims.

use super::*;

#[test]
fn a_crd_has_its_names_at_once_and_is_served_five_seconds_later() {
    let mut world = World::split();
    world.sends(own("geese", "Goose"));
    world.runs(1);
    let crd = world.crd("geese.farm.test");
    let names = json!({"plural": "geese", "singular": "goose", "kind": "Goose", "listKind": "GooseList"});
    assert_eq!(crd["status"]["acceptedNames"], names);
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(said(&crd, "NamesAccepted"), says("True", "NoConflicts", "no conflicts found"));
    assert_eq!(said(&crd, "Established"), says("False", "Installing", "the initial names have been accepted"));
    world.runs(3);
    assert!(!crds::is_true(&world.crd("geese.farm.test"), "Established"));
    world.runs(2);
    // As recorded of a real server: `objects/customresourcedefinitions.json`, but for names and times.
    let conditions = json!([
        {
            "type": "NamesAccepted", "status": "True", "lastTransitionTime": "2026-06-01T12:00:00Z",
            "reason": "NoConflicts", "message": "no conflicts found",
        },
        {
            "type": "Established", "status": "True", "lastTransitionTime": "2026-06-01T12:00:05Z",
            "reason": "InitialNamesAccepted", "message": "the initial names have been accepted",
        },
    ]);
    assert_eq!(world.crd("geese.farm.test")["status"]["conditions"], conditions);
    let key = BindingKey::new("meadow", "geese.farm.test");
    let owners = world.kcp.managed_fields(Origin::Local, Kind::Crd, &key).unwrap();
    assert!(owners.as_array().unwrap().iter().any(|owner| {
        owner["manager"] == "kcp" && owner["subresource"] == "status" && owner["operation"] == "Update"
    }));
}

#[test]
fn names_that_another_crd_has_are_refused_until_they_are_free() {
    let mut world = World::split();
    world.sends(own("geese", "Goose"));
    world.runs(10);
    world.sends(own("swans", "Goose"));
    world.runs(10);
    let swans = world.crd("swans.farm.test");
    let message = "\"GooseList\" is already in use";
    assert_eq!(said(&swans, "NamesAccepted"), says("False", "ListKindConflict", message));
    assert_eq!(said(&swans, "Established"), says("False", "NotAccepted", "not all names are accepted"));
    let accepted = json!({"plural": "swans", "kind": ""});
    assert_eq!(swans["status"]["acceptedNames"], accepted, "it has those that are free");

    world.deletes(Kind::Crd, "meadow", "geese.farm.test");
    world.rests();
    assert!(crds::is_true(&world.crd("swans.farm.test"), "Established"));
}

#[test]
fn names_of_a_bound_crd_are_taken_only_where_a_binding_lists_it() {
    let mut world = World::split();
    world.sends(bound_crd("u1", "geese", "Goose"));
    world.sends(bound_crd("u2", "geese", "Goose"));
    world.binds("alder", json!([]));
    world.runs(10);
    for uid in ["u1", "u2"] {
        let crd = world.get(Kind::Crd, ClusterName::BOUND_CRDS, uid).unwrap();
        assert!(crds::is_true(&crd, "Established"), "twice the same names");
    }
    world.lists("alder", "geese", "u1");
    world.sends(own("geese", "Goose"));
    world.runs(10);
    assert_eq!(said(&world.crd("geese.farm.test"), "NamesAccepted").0, "False");
    world.deletes(Kind::ApiBinding, "meadow", "alder");
    world.runs(100);
    assert!(world.get(Kind::ApiBinding, "meadow", "alder").is_none(), "its finalizer is taken off");
    assert!(crds::is_true(&world.crd("geese.farm.test"), "Established"));
}

#[test]
fn a_new_storage_version_is_stored_too() {
    let mut world = World::split();
    world.sends(own("geese", "Goose"));
    world.rests();
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let versions = json!([
        {"name": "v1", "served": true, "storage": false, "schema": schema},
        {"name": "v2", "served": true, "storage": true, "schema": schema},
    ]);
    world.sends(Request::merge(Kind::Crd, "meadow", "geese.farm.test", json!({"spec": {"versions": versions}})));
    world.rests();
    assert_eq!(world.crd("geese.farm.test")["status"]["storedVersions"], json!(["v1", "v2"]));
}

#[test]
fn a_crd_goes_after_its_objects() {
    let mut world = World::split();
    world.sends(own("geese", "Goose"));
    world.rests();
    world.deletes(Kind::Crd, "meadow", "geese.farm.test");
    let told = world.rests();
    assert!(told[0].starts_with("deletes the objects of CRD") && told[1].starts_with("takes the finalizer off"));
    assert!(world.get(Kind::Crd, "meadow", "geese.farm.test").is_none());
}

#[test]
fn a_bound_crd_that_nobody_uses_goes_when_it_is_old() {
    let mut world = World::split();
    world.binds("alder", json!([]));
    world.sends(bound_crd("u1", "geese", "Goose"));
    world.sends(bound_crd("u2", "geese", "Goose"));
    world.lists("alder", "geese", "u1");
    world.runs(30 * 60);
    assert!(world.get(Kind::Crd, ClusterName::BOUND_CRDS, "u2").is_some(), "it is not old yet");
    world.rests();
    assert!(world.get(Kind::Crd, ClusterName::BOUND_CRDS, "u2").is_none());
    assert!(world.get(Kind::Crd, ClusterName::BOUND_CRDS, "u1").is_some());
    world.deletes(Kind::ApiBinding, "meadow", "alder");
    world.runs(200);
    assert!(world.get(Kind::Crd, ClusterName::BOUND_CRDS, "u1").is_none());
}

#[test]
fn a_bound_crd_that_a_claim_wants_stays_while_it_does() {
    let mut world = World::split();
    world.sends(export());
    world.rests();
    let first = world.get(Kind::ApiExport, "farm", "geese").unwrap();
    let identity = first["status"]["identityHash"].as_str().unwrap();
    assert_eq!(identity.len(), 64);
    world.binds("alder", json!([claim("geese", identity, "Accepted")]));
    world.sends(bound_crd("u1", "geese", "Goose"));
    world.rests();
    assert!(world.get(Kind::Crd, ClusterName::BOUND_CRDS, "u1").is_some());
    let rejected = json!({"spec": {"permissionClaims": [claim("geese", identity, "Rejected")]}});
    world.sends(Request::merge(Kind::ApiBinding, "meadow", "alder", rejected));
    world.runs(3600);
    assert!(world.get(Kind::Crd, ClusterName::BOUND_CRDS, "u1").is_none());

    world.deletes(Kind::ApiExport, "farm", "geese");
    world.rests();
    assert!(world.kcp.get(Origin::Global, Kind::ApiExport, &BindingKey::new("farm", "geese")).is_none());
    world.sends(export());
    world.rests();
    let again = world.get(Kind::ApiExport, "farm", "geese").unwrap();
    assert_eq!(again["status"]["identityHash"], identity, "the secret stays");
}

#[test]
fn accepted_claims_are_applied_when_they_are_served() {
    let mut world = World::split();
    let claims = json!([
        claim("geese", IDENTITY, "Accepted"),
        claim("swans", "", "Accepted"),
        claim("ducks", "", "Rejected"),
        claim("owls", "", "Accepted"),
    ]);
    world.binds("alder", claims);
    world.rests();
    assert_eq!(world.get(Kind::ApiBinding, "meadow", "alder").unwrap()["status"].get("conditions"), None);

    let offered = |resource: &str, identity: &str| json!({"group": "farm.test", "resource": resource, "identityHash": identity, "verbs": ["*"]});
    let offered = json!([offered("geese", IDENTITY), offered("swans", ""), offered("ducks", "")]);
    world.status(
        "alder",
        json!({
            "apiExportClusterName": "farm",
            "exportPermissionClaims": offered,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-06-01T12:00:00Z"}],
        }),
    );
    world.rests();
    let binding = world.get(Kind::ApiBinding, "meadow", "alder").unwrap();
    let swans = json!({
        "group": "farm.test", "resource": "swans", "identityHash": "", "verbs": ["*"],
        "selector": {"matchAll": true},
    });
    assert_eq!(binding["status"]["appliedPermissionClaims"], json!([swans]));
    let kinds: Vec<&str> = list_at(&binding, &["status", "conditions"]).map(|it| field(it, "type")).collect();
    assert_eq!(kinds, ["Ready", "PermissionClaimsApplied", "PermissionClaimsValid"]);
    let invalid = says("False", "InvalidPermissionClaims", "the export does not make the claim: owls.farm.test");
    assert_eq!(said(&binding, "PermissionClaimsValid"), invalid);
    assert_eq!(said(&binding, "PermissionClaimsApplied").2, "nothing serves: geese.farm.test");

    world.sends(bound_crd("u1", "geese", "Goose"));
    world.runs(60);
    let binding = world.get(Kind::ApiBinding, "meadow", "alder").unwrap();
    assert_eq!(binding["status"]["appliedPermissionClaims"].as_array().map(Vec::len), Some(2));
    assert_eq!(said(&binding, "PermissionClaimsApplied"), says("True", "", ""));
}

#[test]
fn claims_that_were_read_too_early_are_read_again() {
    let mut world = World::split();
    world.binds("alder", json!([]));
    world.rests();
    world.status("alder", json!({"apiExportClusterName": "farm"}));
    while !world.agenda.values().any(|chore| matches!(chore, Chore::Claims(..))) {
        world.step(Timestamp::MAX).unwrap();
    }
    world.status("alder", json!({"phase": "Binding"}));
    let told = world.rests();
    assert!(told.iter().any(|told| told.starts_with("cannot write the claims")), "{told:?}");
    let binding = world.get(Kind::ApiBinding, "meadow", "alder").unwrap();
    assert_eq!(said(&binding, "PermissionClaimsValid"), says("True", "", ""));
    assert_eq!(binding["status"]["phase"], "Binding");
}
