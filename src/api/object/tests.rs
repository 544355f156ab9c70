use super::*;

fn refusal(json: &str) -> String {
    Object::from_typed_json(json).map_or_else(|error| error.to_string(), |object| panic!("{object:?}"))
}

#[test]
fn an_object_says_its_kind_or_is_told_it() {
    for (json, kind, key) in [
        (r#"{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIBinding","metadata":{"name":"b"}}"#, Kind::ApiBinding, "b"),
        (
            r#"{"kind":"LogicalCluster","apiVersion":"core.kcp.io/v1alpha1","metadata":{"name":"cluster","annotations":{"kcp.io/cluster":"c"}}}"#,
            Kind::LogicalCluster,
            "c|cluster",
        ),
    ] {
        let object = Object::from_typed_json(json).unwrap();
        assert_eq!((object.kind(), object.key().to_string().as_str()), (kind, key));
        assert_eq!(serde_json::from_str::<Object>(json).unwrap(), object);
    }
    for kind in Kind::ALL {
        let object = Object::from_json(kind, r#"{"metadata":{"name":"x"}}"#).unwrap();
        assert_eq!(object.kind(), kind);
        let written = serde_json::to_string(&object).unwrap();
        assert_eq!(Object::from_typed_json(&written).unwrap(), object, "written with its kind: {written}");
    }
}

#[test]
fn nulls_and_what_is_missing_are_empty() {
    for kind in Kind::ALL {
        let empty = Object::from_json(kind, "{}").unwrap();
        for json in [
            r#"{"metadata":null,"spec":null,"status":null}"#,
            r#"{"apiVersion":null,"kind":null}"#,
            r#"{"apiVersion":"","kind":"","more":[1]}"#,
        ] {
            assert_eq!(Object::from_json(kind, json).unwrap(), empty, "{kind} {json}");
        }
    }
}

#[test]
fn an_object_of_another_kind_is_refused_by_its_name() {
    let other = refusal(r#"{"apiVersion":"v1","kind":"Secret"}"#);
    assert!(other.starts_with("apiVersion `v1` and kind `Secret` are none that are read here"), "{other}");
    assert!(Kind::ALL.iter().all(|kind| other.contains(kind.as_str()) && other.contains(kind.api_version())));
    assert!(refusal("{}").starts_with("apiVersion `` and kind `` are none"));
    let version = refusal(r#"{"apiVersion":"apis.kcp.io/v1alpha1","kind":"APIBinding"}"#);
    assert!(version.starts_with("apiVersion `apis.kcp.io/v1alpha1` and kind `APIBinding`"), "{version}");
    let told = Object::from_json(Kind::ApiExport, r#"{"kind":"APIBinding"}"#).unwrap_err().to_string();
    assert!(told.starts_with("APIExport: kind: ") && told.contains("APIBinding"), "{told}");
}

#[test]
fn what_is_no_json_object_is_refused() {
    for text in ["", "{", "7", "{} x", "null"] {
        let problem = refusal(text);
        assert!(problem.starts_with("expected a JSON object: "), "{text}: {problem}");
    }
    let cut = Object::from_json(Kind::Crd, "{\"metadata\":{").unwrap_err();
    assert!(matches!(cut, ObjectError::Syntax(_)), "{cut:?}");
}

#[test]
fn a_field_that_does_not_fit_is_told_with_kind_object_and_path() {
    let check = |kind: Kind, spec: &str, start: &str| {
        let json = format!(r#"{{"metadata":{{"name":"n","annotations":{{"kcp.io/cluster":"c"}}}},{spec}}}"#);
        let problem = Object::from_json(kind, &json).unwrap_err().to_string();
        assert!(problem.starts_with(start), "{problem}");
        assert!(!problem.contains(" at line "), "{problem}");
    };
    check(
        Kind::ApiExport,
        r#""spec":{"resources":[{"name":"a"},{"schema":7}]}"#,
        "APIExport c|n: spec.resources[1].schema: invalid type: integer `7`, expected a string",
    );
    check(Kind::ApiBinding, r#""spec":{"reference":{"export":7}}"#, "APIBinding c|n: spec.reference.export: ");
    check(
        Kind::ApiBinding,
        r#""status":{"boundResources":[{"schema":{"UID":{}}}]}"#,
        "APIBinding c|n: status.boundResources[0].schema.UID: ",
    );
    check(
        Kind::ApiBinding,
        r#""status":{"conditions":[{"status":true}]}"#,
        "APIBinding c|n: status.conditions[0].status: ",
    );
    check(
        Kind::Crd,
        r#""status":{"acceptedNames":{"shortNames":"x"}}"#,
        "CustomResourceDefinition c|n: status.acceptedNames.shortNames: ",
    );
    check(
        Kind::ApiResourceSchema,
        r#""spec":{"versions":[{"served":"yes"}]}"#,
        "APIResourceSchema c|n: spec.versions[0].served: ",
    );
}

#[test]
fn an_array_is_no_object() {
    assert!(refusal("[]").starts_with("expected a JSON object: "));
    for json in ["[]", r#"{"spec":{"resources":[["hens","farm.test","v1"]]}}"#] {
        assert!(Object::from_json(Kind::ApiExport, json).is_err(), "{json}");
    }
}

#[test]
fn an_object_that_cannot_be_told_is_told_as_far_as_can_be() {
    let name = Object::from_json(Kind::ApiConversion, r#"{"metadata":{"name":5}}"#).unwrap_err().to_string();
    assert!(name.starts_with("APIConversion: metadata.name: "), "{name}");
    let metadata = Object::from_json(Kind::ApiConversion, r#"{"metadata":"x"}"#).unwrap_err().to_string();
    assert!(metadata.starts_with("APIConversion: metadata: "), "{metadata}");
}

#[test]
fn kinds_are_found_by_what_stands_on_the_wire() {
    for kind in Kind::ALL {
        assert_eq!(Kind::of(kind.api_version(), kind.as_str()), Some(kind));
        assert_eq!(Kind::of_plural(kind.plural()), Some(kind));
        assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
        assert!(kind.api_version().starts_with(&format!("{}/", kind.group())));
    }
    assert_eq!(Kind::of("apis.kcp.io/v1alpha2", "APIResourceSchema"), None);
    assert_eq!(Kind::of_plural("secrets"), None);
    let versions: Vec<&str> = Kind::ALL.into_iter().map(Kind::api_version).collect();
    let expect = ["apis.kcp.io/v1alpha2", "apis.kcp.io/v1alpha2", "apis.kcp.io/v1alpha1", "apis.kcp.io/v1alpha1"];
    assert_eq!(versions[..4], expect);
    assert_eq!(versions[4..], ["core.kcp.io/v1alpha1", "apiextensions.k8s.io/v1"]);
}

#[test]
fn a_list_is_no_object_at_any_depth() {
    for (json, field) in [
        (r#"{"spec": []}"#, "spec"),
        (r#"{"spec": {"reference": ["x"]}}"#, "spec.reference"),
        (r#"{"spec": {"reference": {"export": ["root", "x"]}}}"#, "spec.reference.export"),
        (r#"{"spec": {"permissionClaims": [["g"]]}}"#, "spec.permissionClaims[0]"),
        (r#"{"status": {"boundResources": [{"schema": ["x"]}]}}"#, "status.boundResources[0].schema"),
    ] {
        match Object::from_json(Kind::ApiBinding, json) {
            Err(ObjectError::Field { field: found, .. }) => assert_eq!(found, field, "{json}"),
            other => panic!("{json}: {other:?}"),
        }
    }
    let export = r#"{"spec": {"resources": [["geese", "farm.example"]]}}"#;
    assert!(Object::from_json(Kind::ApiExport, export).is_err());
}
