//! What has to be the same.

use serde_json::{Value, json};

pub fn same(what: &str, recorded: &Value, replayed: &Value) -> Result<(), String> {
    if recorded == replayed {
        return Ok(());
    }
    let (recorded, replayed) =
        (serde_json::to_string_pretty(recorded).unwrap(), serde_json::to_string_pretty(replayed).unwrap());
    let diff = similar::TextDiff::from_lines(&recorded, &replayed);
    Err(format!("{what}:\n{}", diff.unified_diff().context_radius(2).header("recorded", "replayed")))
}

/// What of a `Status` has to be the same.
pub fn verdict(status: &Value) -> Value {
    let details = &status["details"];
    let causes = details["causes"].as_array().into_iter().flatten();
    let causes: Vec<Value> = causes.map(|cause| json!([cause["reason"], cause["field"]])).collect();
    json!({
        "status": status["status"],
        "code": status["code"],
        "reason": status["reason"],
        "message": status["message"],
        "details": [details["name"], details["group"], details["kind"], details["retryAfterSeconds"]],
        "causes": causes,
    })
}

/// An object without what differs from server to server.
pub fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(items) = object.get_mut("items").and_then(Value::as_array_mut) {
        items.iter_mut().for_each(|item| *item = bare(item));
    }
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return object };
    for field in ["managedFields", "uid", "resourceVersion", "creationTimestamp"] {
        metadata.remove(field);
    }
    if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
        // Hashes that kcp puts there for its own use, and nobody reads here.
        labels.retain(|name, _| !name.contains("internal.apis.kcp.io/"));
        if labels.is_empty() {
            metadata.remove("labels");
        }
    }
    object
}

/// Who owns what, without times, in one order.
pub fn bare_owners(owners: &Value) -> Value {
    let owners = owners.as_array().into_iter().flatten();
    let mut owners: Vec<String> = owners
        .map(|owner| json!([owner["manager"], owner["operation"], owner["subresource"], owner["fieldsV1"]]).to_string())
        .collect();
    owners.sort();
    json!(owners)
}
