//! News that stays news: what a watch tells of one object again and again.

use apibinding::api::{Kind, Object};
use apibinding::snapshot::{Change, Layer};
use serde_json::{Value, json};

use super::World;

/// An object that changes to and fro. Each turn has a version of its own, since a snapshot takes nothing that it
/// knows already.
pub struct Turns {
    variants: [Object; 2],
    version: u64,
}

impl Turns {
    /// Between the object and what this makes of it.
    pub fn of(object: Object, edit: impl FnOnce(&mut Value)) -> Self {
        let other = edited(&object, edit);
        // Above what any world has, whatever its size.
        Self { variants: [other, object], version: 1 << 40 }
    }

    /// A binding with the message of a condition.
    pub fn binding(world: &World) -> Self {
        Self::of(world.sample(Kind::ApiBinding), |object| object["status"]["conditions"][0]["message"] = json!("other"))
    }

    /// A LogicalCluster with one lock more or less.
    pub fn home(world: &World) -> Self {
        let locks = format!("/metadata/annotations/{}", Layer::Legacy.annotation().replace('/', "~1"));
        Self::of(world.sample(Kind::LogicalCluster), |object| {
            let text = object.pointer_mut(&locks).expect("bound bindings have locks");
            let mut entries: Value = serde_json::from_str(text.as_str().unwrap_or_default()).expect("locks are JSON");
            let first = entries.as_object().and_then(|entries| entries.keys().next().cloned()).expect("a lock");
            entries.as_object_mut().expect("locks are a map").remove(&first);
            *text = json!(entries.to_string());
        })
    }

    /// An export that offers one resource more or less.
    pub fn export(world: &World) -> Self {
        Self::of(world.sample(Kind::ApiExport), |object| {
            object["spec"]["resources"].as_array_mut().expect("an export offers resources").pop();
        })
    }

    /// A schema with another short name.
    pub fn schema(world: &World) -> Self {
        let kind = Kind::ApiResourceSchema;
        Self::of(world.sample(kind), |object| object["spec"]["names"]["shortNames"] = json!(["other"]))
    }

    /// A bound CRD that serves, or not yet.
    pub fn crd(world: &World) -> Self {
        Self::of(world.sample(Kind::Crd), |object| object["status"]["conditions"] = json!([]))
    }

    /// The object as it is next.
    pub fn object(&mut self) -> Object {
        self.version += 1;
        let [one, other] = &self.variants;
        let mut object = if self.version.is_multiple_of(2) { other.clone() } else { one.clone() };
        object.metadata_mut().resource_version = Some(self.version.to_string());
        object
    }

    pub fn change(&mut self) -> Change {
        Change::put(self.object())
    }
}

/// The object with something else in it.
fn edited(object: &Object, edit: impl FnOnce(&mut Value)) -> Object {
    let mut value = serde_json::to_value(object).expect("objects are JSON");
    edit(&mut value);
    Object::from_json(object.kind(), &value.to_string()).expect("it is an object still")
}
