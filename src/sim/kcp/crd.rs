//! What a server does to CRDs only: it fills in names, looks into their schemas, and takes its time
//! to delete them.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::refusal::{Cause, Refusal, forbidden};
use super::{at, metadata, seconds, text_at};
use crate::api::{ClusterName, Kind};

/// Put on a CRD that is being deleted, until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
const APPROVED: &str = "api-approved.kubernetes.io";

/// A CRD as it is created: names that can be told from others, and a status that says nothing yet.
pub(super) fn prepare(object: &mut Value) {
    let storage = versions(object).find(|version| at(version, &["storage"]) == &json!(true));
    let stored: Vec<String> = storage.map(|version| text_at(version, &["name"]).to_owned()).into_iter().collect();
    if let Some(names) = object.pointer_mut("/spec/names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        names.entry("singular").or_insert_with(|| json!(kind.to_lowercase()));
        names.entry("listKind").or_insert_with(|| json!(format!("{kind}List")));
    }
    if let Some(object) = object.as_object_mut() {
        let names = json!({"plural": "", "kind": ""});
        let status = json!({"conditions": null, "acceptedNames": names, "storedVersions": stored});
        object.insert("status".into(), status);
    }
}

/// Groups that only kcp itself may use.
pub(super) fn admit(object: &Value, name: &str) -> Result<(), Refusal> {
    let group = text_at(object, &["spec", "group"]);
    if group.ends_with("apis.kcp.io") {
        return Err(forbidden(Kind::Crd, name, &format!("{group} is a reserved group")));
    }
    Ok(())
}

/// The deletion of a CRD begins: its objects have to go first.
pub(super) fn terminate(object: &mut Value, now: Timestamp) {
    let metadata = metadata(object);
    metadata.insert("deletionTimestamp".into(), json!(seconds(now)));
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut().filter(|list| !list.contains(&json!(CLEANUP))) {
        finalizers.push(json!(CLEANUP));
    }
    let condition = json!({
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": seconds(now),
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    match status.entry("conditions").or_insert(Value::Null) {
        Value::Array(conditions) => {
            conditions.retain(|other| text_at(other, &["type"]) != "Terminating");
            conditions.push(condition);
        }
        none => *none = json!([condition]),
    }
}

fn versions(object: &Value) -> impl Iterator<Item = &Value> {
    at(object, &["spec", "versions"]).as_array().into_iter().flatten()
}

/// Everything that is wrong with a CRD, in the order in which a server tells it.
pub(super) fn causes(object: &Value, causes: &mut Vec<Cause>) {
    let spec = at(object, &["spec"]);
    let name = text_at(object, &["metadata", "name"]);
    let (group, plural) = (text_at(spec, &["group"]), text_at(spec, &["names", "plural"]));
    let cluster = text_at(object, &["metadata", "annotations", crate::api::CLUSTER_ANNOTATION]);
    let expected = format!("{plural}.{}", if group.is_empty() { "core" } else { group });
    // Bound CRDs have the uid of their schema for a name.
    if !cluster.is_empty() && cluster != ClusterName::BOUND_CRDS && name != expected {
        causes.push(Cause::invalid(
            "metadata.name",
            format_args!("{name:?}"),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    for field in ["plural", "kind"] {
        if text_at(spec, &["names", field]).is_empty() {
            causes.push(Cause::required(format!("spec.names.{field}"), ""));
        }
    }
    if !["Namespaced", "Cluster"].contains(&text_at(spec, &["scope"])) {
        causes.push(Cause::required("spec.scope", "Namespaced or Cluster"));
    }
    let storage = versions(object).filter(|version| at(version, &["storage"]) == &json!(true)).count();
    if storage != 1 {
        let why = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", storage, why));
    }
    approval(object, group, causes);
    schemas(object, causes);
    conversion(at(spec, &["conversion"]), causes);
}

fn approval(object: &Value, group: &str, causes: &mut Vec<Cause>) {
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|end| group.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    let approval = text_at(object, &["metadata", "annotations", APPROVED]);
    if !is_protected || approval.starts_with("unapproved") || approval.contains("://") {
        return;
    }
    let field = format!("metadata.annotations[{APPROVED}]");
    if approval.is_empty() {
        let why = format!(
            "protected groups must have approval annotation {APPROVED:?}, see \
             https://github.com/kubernetes/enhancements/pull/1111"
        );
        causes.push(Cause::required(field, &why));
    } else {
        causes.push(Cause::invalid(field, format_args!("{approval:?}"), "must be a URL, or begin with `unapproved`"));
    }
}

/// Every schema has to say the type of all that it names.
fn schemas(object: &Value, causes: &mut Vec<Cause>) {
    let of = |version| at(version, &["schema", "openAPIV3Schema"]);
    let mut schemas: Vec<&Value> = versions(object).map(of).collect();
    let count = schemas.len();
    // One schema for all versions is told as that of the whole.
    schemas.dedup();
    let is_shared = schemas.len() == 1;
    let all = if is_shared { schemas } else { versions(object).map(of).collect() };
    for (index, schema) in all.into_iter().enumerate() {
        let path = if is_shared {
            "spec.validation.openAPIV3Schema".to_owned()
        } else {
            format!("spec.versions[{index}].schema.openAPIV3Schema")
        };
        if schema.is_null() {
            for index in 0..if is_shared { count } else { 1 } {
                let field = format!("spec.versions[{index}].schema.openAPIV3Schema");
                causes.push(Cause::required(field, "schemas are required"));
            }
            continue;
        }
        match text_at(schema, &["type"]) {
            "object" => {}
            "" => causes.push(Cause::required(format!("{path}.type"), "must not be empty at the root")),
            other => causes.push(Cause::invalid(
                format!("{path}.type"),
                format_args!("{other:?}"),
                "must be object at the root",
            )),
        }
        types_below(schema, &path, causes);
    }
}

fn types_below(schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let mut check = |inner: &Value, path: String, what: &str| {
        let is_free = |mark: &str| at(inner, &[mark]) == &json!(true);
        let is_free = is_free("x-kubernetes-int-or-string") || is_free("x-kubernetes-preserve-unknown-fields");
        if text_at(inner, &["type"]).is_empty() && !is_free {
            let why = format!("must not be empty for specified {what}");
            causes.push(Cause::required(format!("{path}.type"), &why));
        }
        types_below(inner, &path, causes);
    };
    for (name, inner) in at(schema, &["properties"]).as_object().into_iter().flatten() {
        check(inner, format!("{path}.properties[{name}]"), "object fields");
    }
    if let inner @ Value::Object(_) = at(schema, &["items"]) {
        check(inner, format!("{path}.items"), "array items");
    }
    if let inner @ Value::Object(_) = at(schema, &["additionalProperties"]) {
        check(inner, format!("{path}.additionalProperties"), "object fields");
    }
}

fn conversion(conversion: &Value, causes: &mut Vec<Cause>) {
    if text_at(conversion, &["strategy"]) != "Webhook" {
        return;
    }
    let client = at(conversion, &["webhook", "clientConfig"]);
    if client.is_null() {
        let why = "required when strategy is set to Webhook";
        causes.push(Cause::required("spec.conversion.webhookClientConfig", why));
    }
    let url = text_at(client, &["url"]);
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    if !url.is_empty() && scheme != "https" {
        let why = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
        causes.push(Cause::invalid("spec.conversion.webhookClientConfig.url", format_args!("{scheme:?}"), why));
    }
    let reviews = at(conversion, &["webhook", "conversionReviewVersions"]);
    let known = |review: &Value| ["v1", "v1beta1"].contains(&review.as_str().unwrap_or_default());
    let field = "spec.conversion.conversionReviewVersions";
    if reviews.is_null() {
        causes.push(Cause::required(field, ""));
    } else if !reviews.as_array().is_some_and(|reviews| reviews.iter().any(known)) {
        causes.push(Cause::invalid(field, reviews, "must include at least one of v1, v1beta1"));
    }
}
