//! Reads a raw schema as an API server reads the `openAPIV3Schema` of a CRD (SPEC 8).
//!
//! k8s-openapi's `JSONSchemaProps` would do, but takes tens of kilobytes of stack for every level:
//! a schema that nests deep enough takes the process with it. This takes some hundred bytes, and
//! the JSON parser ends at 128 levels.

use serde_json::{Map, Value};

/// What a field of a schema may be. `null` is an absent field, whatever it may be.
#[derive(Clone, Copy)]
enum Shape {
    /// Left out if empty.
    Text,
    /// Kept even if empty.
    OptionalText,
    /// Left out if false.
    Flag,
    /// Kept even if false.
    OptionalFlag,
    Integer,
    Number,
    Texts,
    /// Any JSON.
    Any,
    /// A list of any JSON.
    Anys,
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrFlag,
    SchemaOrSchemas,
    /// A map to schemas or lists of strings.
    Dependencies,
    /// An object with these fields.
    Fields(&'static [(&'static str, Shape)]),
    /// A list of objects with these fields.
    Objects(&'static [(&'static str, Shape)]),
}

const SCHEMA: &[(&str, Shape)] = &[
    ("$ref", Shape::OptionalText),
    ("$schema", Shape::Text),
    ("additionalItems", Shape::SchemaOrFlag),
    ("additionalProperties", Shape::SchemaOrFlag),
    ("allOf", Shape::Schemas),
    ("anyOf", Shape::Schemas),
    ("default", Shape::Any),
    ("definitions", Shape::SchemaMap),
    ("dependencies", Shape::Dependencies),
    ("description", Shape::Text),
    ("enum", Shape::Anys),
    ("example", Shape::Any),
    ("exclusiveMaximum", Shape::Flag),
    ("exclusiveMinimum", Shape::Flag),
    ("externalDocs", Shape::Fields(&[("description", Shape::Text), ("url", Shape::Text)])),
    ("format", Shape::Text),
    ("id", Shape::Text),
    ("items", Shape::SchemaOrSchemas),
    ("maxItems", Shape::Integer),
    ("maxLength", Shape::Integer),
    ("maxProperties", Shape::Integer),
    ("maximum", Shape::Number),
    ("minItems", Shape::Integer),
    ("minLength", Shape::Integer),
    ("minProperties", Shape::Integer),
    ("minimum", Shape::Number),
    ("multipleOf", Shape::Number),
    ("not", Shape::Schema),
    ("nullable", Shape::Flag),
    ("oneOf", Shape::Schemas),
    ("pattern", Shape::Text),
    ("patternProperties", Shape::SchemaMap),
    ("properties", Shape::SchemaMap),
    ("required", Shape::Texts),
    ("title", Shape::Text),
    ("type", Shape::Text),
    ("uniqueItems", Shape::Flag),
    ("x-kubernetes-embedded-resource", Shape::Flag),
    ("x-kubernetes-int-or-string", Shape::Flag),
    ("x-kubernetes-list-map-keys", Shape::Texts),
    ("x-kubernetes-list-type", Shape::OptionalText),
    ("x-kubernetes-map-type", Shape::OptionalText),
    ("x-kubernetes-preserve-unknown-fields", Shape::OptionalFlag),
    (
        "x-kubernetes-validations",
        Shape::Objects(&[
            ("fieldPath", Shape::Text),
            ("message", Shape::Text),
            ("messageExpression", Shape::Text),
            ("optionalOldSelf", Shape::OptionalFlag),
            ("reason", Shape::OptionalText),
            ("rule", Shape::OptionalText),
        ]),
    ),
];

/// Where a schema is wrong, from the inside out, and how.
struct Wrong {
    path: Vec<String>,
    problem: String,
}

/// The schema without unknown and empty fields.
///
/// # Errors
/// Which field has the wrong type, and which it should have.
pub(super) fn read(mut schema: Value) -> Result<Value, String> {
    match object(&mut schema, SCHEMA) {
        Ok(()) => Ok(schema),
        Err(Wrong { mut path, problem }) => {
            path.reverse();
            let at = if path.is_empty() { "the schema".into() } else { path.join(".") };
            Err(format!("{at}: {problem}"))
        }
    }
}

fn expected(what: &str, found: &Value) -> Wrong {
    let found = match found {
        Value::Null => "null".into(),
        Value::Bool(_) | Value::Number(_) => format!("`{found}`"),
        Value::String(_) => "a string".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    };
    Wrong { path: Vec::new(), problem: format!("expected {what}, found {found}") }
}

/// Keeps the known fields, if each has its shape.
fn object(value: &mut Value, known: &[(&str, Shape)]) -> Result<(), Wrong> {
    let Value::Object(fields) = value else { return Err(expected("an object", value)) };
    let mut kept = Map::new();
    for (name, mut field) in std::mem::take(fields) {
        let Ok(position) = known.binary_search_by_key(&name.as_str(), |(name, _)| name) else { continue };
        let Some((_, shape)) = known.get(position).filter(|_| !field.is_null()) else { continue };
        check(&mut field, *shape).map_err(|wrong| below(&name, wrong))?;
        if !is_left_out(&field, *shape) {
            kept.insert(name, field);
        }
    }
    *fields = kept;
    Ok(())
}

fn below(name: &str, mut wrong: Wrong) -> Wrong {
    wrong.path.push(name.to_owned());
    wrong
}

fn is_left_out(field: &Value, shape: Shape) -> bool {
    match (field, shape) {
        (Value::String(text), Shape::Text) => text.is_empty(),
        (Value::Bool(flag), Shape::Flag) => !flag,
        _ => false,
    }
}

fn check(field: &mut Value, shape: Shape) -> Result<(), Wrong> {
    let is_right = match shape {
        Shape::Any => true,
        Shape::Anys => field.is_array(),
        Shape::Text | Shape::OptionalText => field.is_string(),
        Shape::Flag | Shape::OptionalFlag => field.is_boolean(),
        Shape::Integer => field.is_i64(),
        Shape::Number => field.is_number(),
        Shape::SchemaOrFlag if field.is_boolean() => true,
        Shape::Texts => return each(field, "a list of strings", text),
        Shape::Schemas => return each(field, "a list of schemas", schema),
        Shape::SchemaOrSchemas if field.is_array() => return each(field, "a list of schemas", schema),
        Shape::Objects(known) => return each(field, "a list of objects", |item| object_or_null(item, known)),
        Shape::SchemaMap => return each(field, "an object", schema),
        Shape::Dependencies => {
            return each(field, "an object", |item| match item {
                Value::Array(_) => each(item, "a list of strings", text),
                _ => schema(item),
            });
        }
        Shape::Fields(known) => return object(field, known),
        Shape::Schema | Shape::SchemaOrFlag | Shape::SchemaOrSchemas => return schema(field),
    };
    let what = match shape {
        Shape::Anys => "a list",
        Shape::Text | Shape::OptionalText => "a string",
        Shape::Integer => "an integer",
        Shape::Number => "a number",
        _ => "a boolean",
    };
    if is_right { Ok(()) } else { Err(expected(what, field)) }
}

/// Checks the items of a list or the values of an object, whichever `what` says.
fn each(field: &mut Value, what: &str, check: impl Fn(&mut Value) -> Result<(), Wrong>) -> Result<(), Wrong> {
    match field {
        Value::Array(items) if what.starts_with("a list") => {
            for (at, item) in items.iter_mut().enumerate() {
                check(item).map_err(|wrong| below(&at.to_string(), wrong))?;
            }
        }
        Value::Object(fields) if what == "an object" => {
            for (name, value) in fields {
                check(value).map_err(|wrong| below(name, wrong))?;
            }
        }
        other => return Err(expected(what, other)),
    }
    Ok(())
}

/// `null` among strings is an empty one.
fn text(item: &mut Value) -> Result<(), Wrong> {
    if item.is_null() {
        *item = Value::String(String::new());
    }
    if item.is_string() { Ok(()) } else { Err(expected("a string", item)) }
}

/// `null` among schemas is an empty one.
fn schema(item: &mut Value) -> Result<(), Wrong> {
    object_or_null(item, SCHEMA)
}

fn object_or_null(item: &mut Value, known: &[(&str, Shape)]) -> Result<(), Wrong> {
    if item.is_null() {
        *item = Value::Object(Map::new());
    }
    object(item, known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_sorted_for_the_search() {
        assert!(SCHEMA.is_sorted_by_key(|(name, _)| name));
        for (_, shape) in SCHEMA {
            if let Shape::Fields(known) | Shape::Objects(known) = shape {
                assert!(known.is_sorted_by_key(|(name, _)| name));
            }
        }
    }

    #[test]
    fn known_fields_are_kept_and_others_dropped() {
        let raw = json!({
            "type": "object", "title": "", "nullable": false, "what": 1, "x-kubernetes-preserve-unknown-fields": false,
            "properties": {
                "a": {"type": "integer", "maximum": 10, "multipleOf": 0.5, "minLength": 0, "default": {"what": null}},
                "b": {"items": [{"enum": [null, 1, "x"]}], "additionalProperties": true},
                "c": {"items": {"what": 1}, "additionalProperties": {"type": "string"}},
            },
            "dependencies": {"a": ["b"], "c": {"what": 1}},
            "x-kubernetes-validations": [{"rule": "true", "message": "", "what": 1}],
        });
        let expected = json!({
            "type": "object", "x-kubernetes-preserve-unknown-fields": false,
            "properties": {
                "a": {"type": "integer", "maximum": 10, "multipleOf": 0.5, "minLength": 0, "default": {"what": null}},
                "b": {"items": [{"enum": [null, 1, "x"]}], "additionalProperties": true},
                "c": {"items": {}, "additionalProperties": {"type": "string"}},
            },
            "dependencies": {"a": ["b"], "c": {}},
            "x-kubernetes-validations": [{"rule": "true"}],
        });
        assert_eq!(read(raw), Ok(expected));
    }

    #[test]
    fn a_wrong_type_is_told_with_its_place() {
        for (raw, told) in [
            (json!([]), "the schema: expected an object, found a list"),
            (json!({"type": 5}), "type: expected a string, found `5`"),
            (json!({"properties": []}), "properties: expected an object, found a list"),
            (
                json!({"properties": {"a": {"maxLength": 1.0}}}),
                "properties.a.maxLength: expected an integer, found `1.0`",
            ),
            (json!({"allOf": [{}, {"required": "x"}]}), "allOf.1.required: expected a list of strings, found a string"),
            (json!({"additionalProperties": "yes"}), "additionalProperties: expected an object, found a string"),
            (json!({"items": true}), "items: expected an object, found `true`"),
            (json!({"nullable": "no"}), "nullable: expected a boolean, found a string"),
            (json!({"maximum": "1"}), "maximum: expected a number, found a string"),
            (json!({"enum": {}}), "enum: expected a list, found an object"),
            (json!({"required": {"a": "b"}}), "required: expected a list of strings, found an object"),
            (json!({"allOf": {"a": {}}}), "allOf: expected a list of schemas, found an object"),
            (
                json!({"x-kubernetes-validations": {"a": {}}}),
                "x-kubernetes-validations: expected a list of objects, found an object",
            ),
            (json!({"dependencies": [{}]}), "dependencies: expected an object, found a list"),
            (json!({"externalDocs": []}), "externalDocs: expected an object, found a list"),
            (json!({"not": [{}]}), "not: expected an object, found a list"),
            (
                json!({"minItems": 9_223_372_036_854_775_808_u64}),
                "minItems: expected an integer, found `9223372036854775808`",
            ),
            (json!({"dependencies": {"a": [1]}}), "dependencies.a.0: expected a string, found `1`"),
        ] {
            assert_eq!(read(raw), Err(told.to_owned()));
        }
    }

    #[test]
    fn nulls_are_absent_or_empty() {
        let raw = json!({
            "properties": {"a": null, "b": {"items": null, "default": null, "not": {"allOf": [null]}}},
            "required": [null],
        });
        let expected = json!({"properties": {"a": {}, "b": {"not": {"allOf": [{}]}}}, "required": [""]});
        assert_eq!(read(raw), Ok(expected));
    }
}
