//! The bound CRD of a schema (SPEC 8).

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinitionNames, CustomResourceSubresources, SelectableField,
};
use serde::Serialize;
use serde_json::Value;

use super::openapi;
use crate::api::{
    ApiResourceSchema, CLUSTER_ANNOTATION, ClusterName, Json, Kind, SchemaConversion, SchemaVersion, Text, cluster_of,
    name_of,
};

/// On every bound CRD, empty.
pub(crate) const BOUND_ANNOTATION: &str = "apis.kcp.io/bound-crd";
/// The logical cluster of the schema that a bound CRD was made of.
pub(crate) const SCHEMA_CLUSTER_ANNOTATION: &str = "apis.kcp.io/schema-cluster";
/// The name of the schema that a bound CRD was made of.
pub(crate) const SCHEMA_NAME_ANNOTATION: &str = "apis.kcp.io/schema-name";
const APPROVED_ANNOTATION: &str = "api-approved.kubernetes.io";
const VALIDATE_NAME_ANNOTATION: &str = "internal.kcp.io/validate-name";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Metadata<'a>,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    annotations: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct Spec<'a> {
    group: &'a str,
    names: &'a CustomResourceDefinitionNames,
    scope: &'a str,
    versions: Vec<Version<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversion: Option<Conversion<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version<'a> {
    name: &'a str,
    served: bool,
    storage: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deprecated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecation_warning: &'a Option<Text>,
    schema: Validation,
    subresources: &'a CustomResourceSubresources,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    additional_printer_columns: &'a [CustomResourceColumnDefinition],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    selectable_fields: &'a [SelectableField],
}

#[derive(Serialize)]
struct Validation {
    #[serde(rename = "openAPIV3Schema")]
    schema: Value,
}

#[derive(Serialize)]
struct Conversion<'a> {
    strategy: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<Webhook<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Webhook<'a> {
    client_config: ClientConfig<'a>,
    conversion_review_versions: &'a [Text],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClientConfig<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    ca_bundle: &'a str,
}

/// The body that creates the bound CRD of a schema.
///
/// # Errors
/// Why there can be none.
pub(crate) fn generate(schema: &ApiResourceSchema) -> Result<Json, String> {
    let uid = schema.metadata.uid.as_deref().unwrap_or_default();
    let (cluster, name) = (cluster_of(&schema.metadata), name_of(&schema.metadata));
    let mut annotations = BTreeMap::from([
        (CLUSTER_ANNOTATION, ClusterName::BOUND_CRDS),
        (BOUND_ANNOTATION, ""),
        (SCHEMA_CLUSTER_ANNOTATION, cluster.as_str()),
        (SCHEMA_NAME_ANNOTATION, &name),
    ]);
    if let Some(approved) = schema.metadata.annotations.as_ref().and_then(|all| all.get(APPROVED_ANNOTATION)) {
        annotations.insert(APPROVED_ANNOTATION, approved);
    }
    if schema.spec.name_validation == "PathSegmentName" {
        annotations.insert(VALIDATE_NAME_ANNOTATION, "path-segment");
    }
    let conversion = match schema.spec.versions.len() {
        0 | 1 => None,
        _ => Some(conversion(schema.spec.conversion.as_ref())?),
    };
    let mut names = schema.spec.names.clone();
    for name in [&mut names.singular, &mut names.list_kind] {
        name.take_if(|name| name.is_empty());
    }
    Ok(Json::of(&Body {
        api_version: Kind::Crd.api_version(),
        kind: Kind::Crd.as_str(),
        metadata: Metadata { name: uid, annotations },
        spec: Spec {
            group: &schema.spec.group,
            names: &names,
            scope: &schema.spec.scope,
            versions: schema.spec.versions.iter().map(version).collect::<Result<_, _>>()?,
            conversion,
        },
    }))
}

fn version(version: &SchemaVersion) -> Result<Version<'_>, String> {
    let schema = version.schema.as_ref().ok_or("no schema".into()).and_then(validation);
    Ok(Version {
        name: &version.name,
        served: version.served,
        storage: version.storage,
        deprecated: version.deprecated,
        deprecation_warning: &version.deprecation_warning,
        schema: schema.map_err(|why| format!("version {}: {why}", version.name))?,
        subresources: &version.subresources,
        additional_printer_columns: &version.additional_printer_columns,
        selectable_fields: &version.selectable_fields,
    })
}

/// Reads a raw schema as a CRD has it: unknown fields are dropped, a wrong type fails.
fn validation(raw: &Json) -> Result<Validation, String> {
    let schema = raw.read().map_err(|error| error.to_string())?;
    Ok(Validation { schema: openapi::read(schema)? })
}

fn conversion(conversion: Option<&SchemaConversion>) -> Result<Conversion<'_>, String> {
    let conversion = conversion.ok_or("more than one version and no conversion")?;
    let webhook = match conversion.strategy.as_str() {
        "Webhook" => {
            let webhook = conversion.webhook.as_ref().ok_or("conversion by webhook without a webhook")?;
            let client = webhook.client_config.as_ref().ok_or("conversion by webhook without a clientConfig")?;
            Some(Webhook {
                client_config: ClientConfig { url: &client.url, ca_bundle: &client.ca_bundle },
                conversion_review_versions: &webhook.conversion_review_versions,
            })
        }
        _ => None,
    };
    Ok(Conversion { strategy: &conversion.strategy, webhook })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(versions: Value, more: Value) -> ApiResourceSchema {
        let mut spec = json!({
            "group": "farm.example", "scope": "Namespaced", "versions": versions,
            "names": {"plural": "geese", "singular": "goose", "kind": "Goose", "listKind": "GooseList"},
        });
        if let (Value::Object(spec), Value::Object(more)) = (&mut spec, more) {
            spec.extend(more);
        }
        let metadata = json!({
            "name": "v1.geese.farm.example", "uid": "u-1",
            "annotations": {"kcp.io/cluster": "farms", "api-approved.kubernetes.io": "yes"},
        });
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap_or_default()
    }

    fn v(name: &str, schema: Value) -> Value {
        json!({"name": name, "served": true, "storage": name == "v1", "schema": schema, "subresources": {}})
    }

    #[test]
    fn one_version_needs_no_conversion() {
        let schema = schema(
            json!([v("v1", json!({"type": "object", "unknown": 1}))]),
            json!({"nameValidation": "PathSegmentName", "conversion": {"strategy": "Webhook"}}),
        );
        let body = generate(&schema).map(|body| body.to_value());
        let expected = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "u-1", "annotations": {
                "kcp.io/cluster": "system:bound-crds", "apis.kcp.io/bound-crd": "",
                "apis.kcp.io/schema-cluster": "farms", "apis.kcp.io/schema-name": "v1.geese.farm.example",
                "api-approved.kubernetes.io": "yes", "internal.kcp.io/validate-name": "path-segment",
            }},
            "spec": {
                "group": "farm.example", "scope": "Namespaced",
                "names": {"plural": "geese", "singular": "goose", "kind": "Goose", "listKind": "GooseList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {},
                    "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        });
        assert_eq!(body, Ok(expected));
    }

    #[test]
    fn d20_selectable_fields_are_copied() {
        let fields = json!([{"jsonPath": ".spec.feathers"}]);
        let mut version = v("v1", json!({}));
        version["selectableFields"] = fields.clone();
        let body = generate(&schema(json!([version]), json!({}))).map(|body| body.to_value());
        assert_eq!(body.map(|body| body["spec"]["versions"][0]["selectableFields"].clone()), Ok(fields));
    }

    #[test]
    fn empty_names_are_left_out() {
        let names = json!({"names": {"plural": "geese", "singular": "", "kind": "Goose", "listKind": ""}});
        let body = generate(&schema(json!([v("v1", json!({}))]), names)).map(|body| body.to_value());
        let names = body.map(|body| body["spec"]["names"].clone());
        assert_eq!(names, Ok(json!({"plural": "geese", "kind": "Goose"})));
    }

    #[test]
    fn d3_several_versions_need_a_whole_conversion() {
        let versions = || json!([v("v1", json!({})), v("v2", json!({}))]);
        let conversion = |conversion: Value| {
            let generated = generate(&schema(versions(), json!({"conversion": conversion})));
            generated.map(|body| body.to_value()["spec"]["conversion"].clone())
        };
        assert!(generate(&schema(versions(), json!({}))).is_err());
        assert_eq!(conversion(json!({"strategy": "None"})), Ok(json!({"strategy": "None"})));
        for incomplete in [json!({"strategy": "Webhook"}), json!({"strategy": "Webhook", "webhook": {}})] {
            assert!(conversion(incomplete).is_err(), "D3");
        }
        let webhook = json!({"clientConfig": {"url": ""}, "conversionReviewVersions": ["v1"]});
        let whole = json!({"strategy": "Webhook", "webhook": webhook});
        assert_eq!(conversion(whole.clone()), Ok(whole));
    }

    #[test]
    fn a_schema_of_wrong_types_is_none() {
        let generated = |raw: Value| generate(&schema(json!([v("v1", raw)]), json!({})));
        for wrong in [
            json!(null),
            json!([]),
            json!("object"),
            json!({"type": 5}),
            json!({"properties": {"a": {"maxLength": 1.5}}}),
            json!({"properties": {"a": {"items": {"required": "x"}}}}),
            json!({"additionalProperties": "yes"}),
        ] {
            let why = generated(wrong.clone()).err().unwrap_or_default();
            assert!(why.starts_with("version v1: "), "{wrong}: {why}");
        }
        assert!(generate(&schema(json!([{"name": "v1"}]), json!({}))).is_err(), "absent");
    }

    #[test]
    fn a_schema_that_nests_too_deep_is_none() {
        let deep = format!("{}{{}}{}", r#"{"not":"#.repeat(200), "}".repeat(200));
        let mut schema = schema(json!([v("v1", json!({}))]), json!({}));
        schema.spec.versions[0].schema = serde_json::from_str(&deep).ok();
        let why = generate(&schema).err().unwrap_or_default();
        assert!(why.contains("recursion limit"), "{why}");
    }
}
