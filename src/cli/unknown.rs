//! Fields that nobody knows. Reading passes over them, so a misspelt one looks as if it had been left
//! out.

use std::fmt;

use apibinding::api::Kind;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use similar::get_close_matches;

/// How near a known name has to be to be the one that was meant.
const LIKENESS: f32 = 0.7;

/// The names of an object's fields, and the shapes of some. Without names, there may be any.
struct Shape(&'static [&'static str], &'static [(&'static str, &'static Shape)]);

const TOP: &[&str] = &["apiVersion", "kind", "metadata", "spec", "status"];
/// Of metadata, what a person would write one level too far out.
const METADATA: &[&str] = &["annotations", "deletionTimestamp", "labels", "name", "resourceVersion", "uid"];

static EXPORT_REFERENCE: Shape = Shape(&["path", "name"], &[]);
static REFERENCE: Shape = Shape(&["export"], &[("export", &EXPORT_REFERENCE)]);
static BINDING_SPEC: Shape = Shape(&["reference", "permissionClaims"], &[("reference", &REFERENCE)]);
static BINDING: Shape = Shape(TOP, &[("spec", &BINDING_SPEC)]);
static RESOURCE: Shape = Shape(&["group", "name", "schema", "storage"], &[]);
static EXPORT_SPEC: Shape = Shape(&[], &[("resources", &RESOURCE)]);
static EXPORT: Shape = Shape(TOP, &[("spec", &EXPORT_SPEC)]);
static NAMES: Shape = Shape(&["plural", "singular", "shortNames", "kind", "listKind", "categories"], &[]);
static SCHEMA_SPEC: Shape = Shape(&[], &[("names", &NAMES)]);
static SCHEMA: Shape = Shape(TOP, &[("spec", &SCHEMA_SPEC)]);
static OTHER: Shape = Shape(TOP, &[]);

/// The unknown fields of an object, each as a path, with what may have been meant.
pub fn fields(kind: Kind, json: &str) -> Vec<String> {
    let shape = match kind {
        Kind::ApiBinding => &BINDING,
        Kind::ApiExport => &EXPORT,
        Kind::ApiResourceSchema => &SCHEMA,
        Kind::LogicalCluster | Kind::Crd => &OTHER,
        // What kcp has in an APIConversion is not all known here.
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    // What does not fit has been told of: this only looks at what has been read already.
    let _ = Look { shape, path: "", found: &mut found }.deserialize(&mut serde_json::Deserializer::from_str(json));
    found
}

/// Walks along the fields that have a shape, and skips all others.
struct Look<'a> {
    shape: &'static Shape,
    path: &'a str,
    found: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, or a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { shape, path, found } = self;
        let Shape(fields, below) = shape;
        while let Some(field) = map.next_key::<String>()? {
            let dot = if path.is_empty() { "" } else { "." };
            if let Some((_, shape)) = below.iter().find(|(name, _)| *name == field) {
                let path = format!("{path}{dot}{field}");
                map.next_value_seed(Look { shape, path: &path, found })?;
                continue;
            }
            if !fields.is_empty() && !fields.contains(&field.as_str()) {
                found.push(format!(
                    "`{path}{dot}{field}` is not known here, and is ignored{}",
                    meant(fields, path, &field)
                ));
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        for index in 0.. {
            let path = format!("{}[{index}]", self.path);
            if list.next_element_seed(Look { shape: self.shape, path: &path, found: self.found })?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

fn meant(known: &[&str], path: &str, field: &str) -> String {
    if path.is_empty() && METADATA.contains(&field) {
        return format!(": did you mean `metadata.{field}`?");
    }
    let near = get_close_matches(field, known, 1, LIKENESS);
    near.first().map(|near| format!(": did you mean `{near}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: Kind, json: &str, expect: &[&str]) {
        assert_eq!(fields(kind, json).join("\n").replace(" is not known here, and is ignored", ""), expect.join("\n"));
    }

    #[test]
    fn what_is_misspelt_or_misplaced() {
        let binding = r#"{"statsu":{"a":1},"annotations":{},"spec":{"reference":{"exprot":{"path":1}},"x":[{}]}}"#;
        let told = ["`statsu`: did you mean `status`?", "`annotations`: did you mean `metadata.annotations`?"];
        check(
            Kind::ApiBinding,
            binding,
            &[told[0], told[1], "`spec.reference.exprot`: did you mean `export`?", "`spec.x`"],
        );
        let export = r#"{"spec":{"any":1,"resources":[{"group":""},{"schemas":"","storage":{"any":1}}]}}"#;
        check(Kind::ApiExport, export, &["`spec.resources[1].schemas`: did you mean `schema`?"]);
        let schema = r#"{"spec":{"names":{"plurals":"a","categories":[],"shortNames":["b"]},"any":1}}"#;
        check(Kind::ApiResourceSchema, schema, &["`spec.names.plurals`: did you mean `plural`?"]);
        check(Kind::Crd, r#"{"spec":{"any":{}},"Status":1}"#, &["`Status`: did you mean `status`?"]);
    }

    #[test]
    fn what_is_known_or_empty_is_not_told() {
        check(Kind::ApiConversion, r#"{"any":1}"#, &[]);
        check(Kind::ApiBinding, r#"{"spec":null,"metadata":{"any":[]}}"#, &[]);
        check(Kind::ApiBinding, r#"{"spec":{"reference":{"export":null}}}"#, &[]);
        check(Kind::ApiExport, r#"{"spec":{"resources":[null,{"group":null}]},"kind":"APIExport"}"#, &[]);
    }
}
