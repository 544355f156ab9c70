//! What the front answers, and how that is written out.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::watch::Watch;
use crate::api::Kind;
use crate::sim::Owners;

/// An object, with who owns what of it, if that is to be told.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub object: Arc<Value>,
    pub owners: Option<Owners>,
}

/// A list of objects.
#[derive(Debug)]
pub(super) struct List {
    pub api_version: &'static str,
    /// The kind of the list.
    pub kind: String,
    /// Items of lists of built-in kinds do not say what they are.
    pub is_bare: bool,
    pub items: Vec<Body>,
    pub version: u64,
    /// How to get what comes after this.
    pub next: String,
    pub remaining: Option<usize>,
}

/// An answer that is not written out yet.
#[derive(Debug)]
pub(super) enum Reply {
    Object(u16, Body),
    List(Box<List>),
    Status(Box<Status>),
    Json(Value),
    Text(u16, String),
    Watch(Box<Watch>),
}

/// The body of an answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Content {
    /// All of it.
    Whole(Bytes),
    /// Lines that come as things happen.
    Watch(Box<Watch>),
}

impl Reply {
    /// Writes it out.
    pub fn encode(self) -> Response<Content> {
        match self {
            Self::Object(code, body) => json(code, &body),
            Self::List(list) => json(200, &*list),
            Self::Status(status) => {
                let code = status.code.and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
                let mut response = json(code, &*status);
                let seconds = status.details.and_then(|details| details.retry_after_seconds);
                if let Some(seconds) = seconds {
                    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
                }
                response
            }
            Self::Json(value) => json(200, &value),
            Self::Text(code, text) => {
                let response = response(code, Content::Whole(text.into()));
                with_type(response, "text/plain; charset=utf-8")
            }
            Self::Watch(watch) => with_type(response(200, Content::Watch(watch)), "application/json"),
        }
    }
}

fn response(code: u16, content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn with_type(mut response: Response<Content>, media: &'static str) -> Response<Content> {
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

fn json(code: u16, value: &impl Serialize) -> Response<Content> {
    with_type(response(code, Content::Whole(written(value))), "application/json")
}

/// A value as JSON, with the line break that ends an answer.
fn written(value: &impl Serialize) -> Bytes {
    let mut text = Vec::with_capacity(4096);
    // Nothing that is written here can fail to be.
    let _ = serde_json::to_writer(&mut text, value);
    text.push(b'\n');
    text.into()
}

impl Body {
    /// One line of a watch.
    pub fn line(&self, event: &str) -> Bytes {
        written(&Line { event, object: self })
    }
}

struct Line<'a, T> {
    event: &'a str,
    object: &'a T,
}

/// A line that tells of no object.
pub(super) fn line(event: &str, object: &impl Serialize) -> Bytes {
    written(&Line { event, object })
}

impl<T: Serialize> Serialize for Line<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", self.event)?;
        map.serialize_entry("object", self.object)?;
        map.end()
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written { body: self, is_bare: false }.serialize(serializer)
    }
}

/// An object as it goes over the wire. Nothing of it is copied for that.
struct Written<'a> {
    body: &'a Body,
    is_bare: bool,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Body { object, owners } = self.body;
        let Value::Object(fields) = &**object else { return object.serialize(serializer) };
        let owners = owners.as_ref().filter(|owners| !owners.is_empty());
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in fields {
            match (name.as_str(), value, owners) {
                ("apiVersion" | "kind", ..) if self.is_bare => {}
                ("metadata", Value::Object(metadata), Some(owners)) => {
                    map.serialize_entry(name, &Metadata { metadata, owners })?;
                }
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

struct Metadata<'a> {
    metadata: &'a Map<String, Value>,
    owners: &'a Owners,
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const NAME: &str = "managedFields";
        let mut map = serializer.serialize_map(None)?;
        let (before, after): (Vec<_>, Vec<_>) = self.metadata.iter().partition(|(name, _)| name.as_str() < NAME);
        for (name, value) in before {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry(NAME, self.owners)?;
        for (name, value) in after {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Serialize for List {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let items: Vec<Written> = self.items.iter().map(|body| Written { body, is_bare: self.is_bare }).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("apiVersion", self.api_version)?;
        map.serialize_entry("items", &items)?;
        map.serialize_entry("kind", &self.kind)?;
        map.serialize_entry("metadata", &ListMetadata(self))?;
        map.end()
    }
}

struct ListMetadata<'a>(&'a List);

impl Serialize for ListMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("continue", &self.0.next)?;
        if let Some(remaining) = self.0.remaining {
            map.serialize_entry("remainingItemCount", &remaining)?;
        }
        map.serialize_entry("resourceVersion", &self.0.version.to_string())?;
        map.end()
    }
}

/// The object of a bookmark: of no name and no cluster.
pub(super) fn bookmark(kind: Kind, version: u64, ends_initial_events: bool) -> Value {
    let mut metadata = serde_json::json!({"resourceVersion": version.to_string()});
    if ends_initial_events {
        metadata = serde_json::json!({
            "annotations": {"k8s.io/initial-events-end": "true"},
            "resourceVersion": version.to_string(),
        });
    }
    let mut object = serde_json::json!({
        "apiVersion": kind.api_version(),
        "kind": kind.as_str(),
        "metadata": metadata,
    });
    if let (Kind::Crd, Some(object)) = (kind, object.as_object_mut()) {
        // A built-in type has all its fields, even where it says nothing.
        let names = serde_json::json!({"plural": "", "kind": ""});
        object.insert("spec".into(), serde_json::json!({"group": "", "names": names, "scope": "", "versions": null}));
        object.insert(
            "status".into(),
            serde_json::json!({"conditions": null, "acceptedNames": names, "storedVersions": null}),
        );
    }
    object
}
