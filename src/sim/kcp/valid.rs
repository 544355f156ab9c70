//! What a server checks of every object before it keeps it.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::fields::item_step;
use super::refusal::Cause;
use super::shape::{self, Shape};
use super::{at, crd, text_at};
use crate::api::Kind;

/// How many bytes all annotations of an object may have.
pub(super) const ANNOTATIONS: usize = 256 * 1024;

/// Everything that is wrong with an object.
pub(super) fn causes(kind: Kind, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    annotations(object, &mut causes);
    if kind == Kind::Crd {
        crd::causes(object, &mut causes);
        return causes;
    }
    name(kind, object, &mut causes);
    let before = causes.len();
    walk(object, shape::of(kind), &Place::Top, &mut causes);
    if causes.len() > before && shape::has_rules(kind) {
        let why = "some validation rules were not checked because the object was invalid; correct the existing \
                   errors to complete validation";
        causes.push(Cause::invalid("<nil>", "null", why));
    }
    if causes.is_empty() {
        rules(kind, object, &mut causes);
    }
    causes
}

/// What has to stay as it is.
pub(super) fn changes(kind: Kind, old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let reference = ["spec", "reference"];
    if kind == Kind::ApiBinding && at(old, &reference) != at(new, &reference) {
        let why = "APIExport reference must not be changed";
        causes.push(Cause::invalid("spec.reference", at(new, &reference), why));
    }
    let finalizers = |object| at(object, &["metadata", "finalizers"]).as_array().into_iter().flatten();
    let is_new = |finalizer: &Value| !finalizers(old).any(|other| other == finalizer);
    if !at(old, &["metadata", "deletionTimestamp"]).is_null() && finalizers(new).any(is_new) {
        causes.push(Cause {
            reason: "FieldValueForbidden",
            message: "Forbidden: no new finalizers can be added if the object is being deleted".into(),
            field: "metadata.finalizers".into(),
        });
    }
    causes
}

fn annotations(object: &Value, causes: &mut Vec<Cause>) {
    let annotations = at(object, &["metadata", "annotations"]).as_object().into_iter().flatten();
    let bytes: usize = annotations.map(|(name, text)| name.len() + text.as_str().map_or(0, str::len)).sum();
    if bytes > ANNOTATIONS {
        causes.push(Cause {
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {ANNOTATIONS} bytes"),
            field: "metadata.annotations".into(),
        });
    }
}

fn name(kind: Kind, object: &Value, causes: &mut Vec<Cause>) {
    let name = text_at(object, &["metadata", "name"]);
    if kind == Kind::LogicalCluster && name != "cluster" {
        causes.push(unsupported("metadata.name", name, &["cluster"]));
        return;
    }
    let is_end = |end: Option<char>| end.is_some_and(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    let is_label = |label: &str| {
        let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        label.chars().all(inner) && is_end(label.chars().next()) && is_end(label.chars().next_back())
    };
    if name.len() > 253 || !name.split('.').all(is_label) {
        let why =
            "must be lower-case letters, digits, `-` and `.`, each part beginning and ending with a letter or digit";
        causes.push(Cause::invalid("metadata.name", format_args!("{name:?}"), why));
    }
}

fn unsupported(field: &str, found: &str, supported: &[&str]) -> Cause {
    let supported: Vec<String> = supported.iter().map(|text| format!("{text:?}")).collect();
    Cause {
        reason: "FieldValueNotSupported",
        message: format!("Unsupported value: {found:?}: supported values: {}", supported.join(", ")),
        field: field.into(),
    }
}

fn wrong_type(path: &Place, value: &Value, expected: &str) -> Cause {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) => {
            if number.is_f64() {
                "number"
            } else {
                "integer"
            }
        }
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    Cause {
        reason: "FieldValueTypeInvalid",
        message: format!("Invalid value: {found:?}: {path} in body must be of type {expected}: {found:?}"),
        field: path.to_string(),
    }
}

/// Where in an object something stands, printed only where it is wrong.
#[derive(Clone, Copy)]
enum Place<'a> {
    Top,
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => Ok(()),
            Self::Field(Self::Top, name) => f.write_str(name),
            Self::Field(above, name) => write!(f, "{above}.{name}"),
            Self::Item(above, at) => write!(f, "{above}[{at}]"),
        }
    }
}

fn walk(value: &Value, shape: &Shape, place: &Place, causes: &mut Vec<Cause>) {
    match (value, shape) {
        (_, Shape::Any) => {}
        (Value::Object(map), Shape::Object(fields)) => {
            for field in *fields {
                let inner = Place::Field(place, field.name);
                match map.get(field.name) {
                    Some(value) => walk(value, &field.shape, &inner, causes),
                    None if field.required => causes.push(Cause::required(inner.to_string(), "")),
                    None => {}
                }
            }
        }
        (Value::Object(map), Shape::Map(each)) => {
            map.iter().for_each(|(name, value)| walk(value, each, &Place::Field(place, name), causes));
        }
        (Value::Array(list), Shape::List(each) | Shape::Keyed(_, each)) => {
            list.iter().enumerate().for_each(|(at, item)| walk(item, each, &Place::Item(place, at), causes));
            twice(list, shape, place, causes);
        }
        (Value::Array(list), Shape::Set) => {
            list.iter().enumerate().for_each(|(at, item)| walk(item, &Shape::Text, &Place::Item(place, at), causes));
            twice(list, shape, place, causes);
        }
        (value, Shape::Whole(inner)) => walk(value, inner, place, causes),
        (Value::String(text), Shape::OneOf(known)) => {
            if !known.contains(&text.as_str()) {
                causes.push(unsupported(&place.to_string(), text, known));
            }
        }
        (Value::String(text), Shape::Filled) => {
            if text.is_empty() {
                let why = format!("{place} in body should be at least 1 chars long");
                causes.push(Cause::invalid(place.to_string(), "\"\"", &why));
            }
        }
        (Value::String(text), Shape::Time) => {
            if text.parse::<k8s_openapi::jiff::Timestamp>().is_err() {
                let why = format!("{place} in body must be of type date-time: {text:?}");
                causes.push(Cause::invalid(place.to_string(), value, &why));
            }
        }
        (Value::String(_), Shape::Text) | (Value::Bool(_), Shape::Boolean) => {}
        (Value::Number(number), Shape::Integer) if !number.is_f64() => {}
        (_, Shape::Object(_) | Shape::Map(_)) => causes.push(wrong_type(place, value, "object")),
        (_, Shape::List(_) | Shape::Set | Shape::Keyed(..)) => causes.push(wrong_type(place, value, "array")),
        (_, Shape::Boolean) => causes.push(wrong_type(place, value, "boolean")),
        (_, Shape::Integer) => causes.push(wrong_type(place, value, "integer")),
        (_, Shape::Text | Shape::Filled | Shape::Time | Shape::OneOf(_)) => {
            causes.push(wrong_type(place, value, "string"));
        }
    }
}

fn twice(list: &[Value], shape: &Shape, place: &Place, causes: &mut Vec<Cause>) {
    if list.len() < 2 || !shape.is_granular() {
        return;
    }
    let mut seen = BTreeSet::new();
    for (at, item) in list.iter().enumerate() {
        let step = item_step(shape, item);
        if !seen.insert(step.clone()) {
            let key = step.split_once(':').map_or("", |(_, key)| key);
            let message = format!("Duplicate value: {key}");
            let field = Place::Item(place, at).to_string();
            causes.push(Cause { reason: "FieldValueDuplicate", message, field });
        }
    }
}

/// Rules between fields.
fn rules(kind: Kind, object: &Value, causes: &mut Vec<Cause>) {
    match kind {
        Kind::ApiExport => {
            let resources = at(object, &["spec", "resources"]).as_array().into_iter().flatten();
            for (index, resource) in resources.enumerate() {
                let has = |storage: &str| resource.get("storage").is_some_and(|kinds| kinds.get(storage).is_some());
                if has("crd") == has("virtual") {
                    let field = format!("spec.resources[{index}].storage");
                    causes.push(Cause::invalid(field, at(resource, &["storage"]), "exactly one of crd and virtual"));
                }
            }
        }
        Kind::ApiResourceSchema => {
            let versions = at(object, &["spec", "versions"]).as_array().map_or(0, Vec::len);
            let conversion = at(object, &["spec", "conversion"]);
            if versions > 1 && conversion.is_null() {
                causes.push(Cause::invalid(
                    "spec",
                    "\"object\"",
                    "conversion must be specified when multiple versions exist",
                ));
            }
            let is_webhook = text_at(conversion, &["strategy"]) == "Webhook";
            if !conversion.is_null() && is_webhook != conversion.get("webhook").is_some() {
                let why = "webhook is wanted with the strategy Webhook, and with no other";
                causes.push(Cause::invalid("spec.conversion", "\"object\"", why));
            }
        }
        _ => {}
    }
}
