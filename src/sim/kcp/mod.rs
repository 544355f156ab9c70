//! What kcp's API server does with objects of the six kinds, without a network, a
//! clock or chance.
//!
//! It is told the time ([`Kcp::set_now`]), takes requests as data ([`Request`]) and answers as a real
//! server answers: the same codes, reasons and causes, the same effect on the object, field managers
//! included. What happened is kept as history ([`Kcp::events_since`]), so that watches of any lag can
//! be served from it, each at its own pace.
//!
//! ```
//! use apibinding::api::Kind;
//! use apibinding::sim::{Kcp, Request};
//! use serde_json::json;
//!
//! let mut kcp = Kcp::new(7);
//! kcp.set_now("2026-06-01T12:00:00Z".parse()?);
//! let export = json!({
//!     "apiVersion": "apis.kcp.io/v1alpha2",
//!     "kind": "APIExport",
//!     "metadata": {"name": "geese"},
//! });
//! let answer = kcp.handle(Request::create(Kind::ApiExport, "meadow", export)).map_err(|status| format!("{status:?}"))?;
//! assert_eq!((answer.code, &answer.body["metadata"]["generation"]), (201, &json!(1)));
//!
//! let missing = kcp.handle(Request::get(Kind::ApiExport, "meadow", "ducks"));
//! assert_eq!(missing.err().and_then(|status| status.reason), Some("NotFound".into()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What other parties do to the objects (SPEC 13) is not done here: they are clients as well.

mod crd;
mod execute;
mod fields;
mod managers;
mod merge;
mod refusal;
mod request;
mod server;
mod shape;
mod store;
#[cfg(test)]
mod tests;
mod valid;

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::chance::mix;
use crate::api::{BindingKey, CLUSTER_ANNOTATION, ClusterName, Kind, PATH_ANNOTATION};
use crate::snapshot::Origin;
use managers::Managers;
#[cfg(feature = "shell")]
pub(crate) use managers::Owners;
#[cfg(feature = "shell")]
pub(super) use refusal::forbidden;
pub use request::{Answer, Preconditions, Request, Verb};
pub use store::{Event, Happened};

/// An in-memory kcp: one shard and its cache server.
#[derive(Clone, Debug)]
pub struct Kcp {
    store: store::Store,
    now: Timestamp,
    seed: u64,
    /// How many uids were given out.
    uids: u64,
}

impl Kcp {
    /// An empty one. The seed decides the uids.
    pub fn new(seed: u64) -> Self {
        Self { store: store::Store::default(), now: Timestamp::UNIX_EPOCH, seed, uids: 0 }
    }

    /// Sets the time.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The version of the last write to anything.
    pub fn version(&self) -> u64 {
        self.store.version()
    }

    /// Puts objects there as they are: uids, times and managed fields are theirs, and so are their
    /// versions if nothing has happened since. What they lack is made up. Objects of other kinds and
    /// without a name are passed over.
    pub fn load(&mut self, origin: Origin, objects: impl IntoIterator<Item = Value>) {
        let mut objects: Vec<(u64, Value)> = objects
            .into_iter()
            .map(|object| (text_at(&object, &["metadata", "resourceVersion"]).parse().unwrap_or(0), object))
            .collect();
        objects.sort_by_key(|(version, _)| *version);
        for (version, mut object) in objects {
            let kind = Kind::of(text_at(&object, &["apiVersion"]), text_at(&object, &["kind"]));
            let key = key_of(&object);
            let Some(kind) = kind.filter(|_| !key.name.is_empty()) else { continue };
            let managers = metadata(&mut object).remove("managedFields");
            let managers = managers.map(|json| Managers::from_json(&json)).unwrap_or_default();
            let (uid, now) = (self.next_uid(), seconds(self.now));
            let metadata = metadata(&mut object);
            metadata.entry("uid").or_insert(json!(uid));
            metadata.entry("creationTimestamp").or_insert(json!(now));
            metadata.entry("generation").or_insert(json!(1));
            self.store.raise(version.saturating_sub(1));
            self.store.put(origin, kind, key, object, managers);
        }
    }

    /// An object as it is now.
    pub fn get(&self, origin: Origin, kind: Kind, key: &BindingKey) -> Option<&Arc<Value>> {
        self.store.get(origin, kind, key).map(|stored| &stored.object)
    }

    /// All objects of a kind as they are now, of one cluster or of all, sorted by cluster and name.
    /// They are those of [`Kcp::version`].
    pub fn list<'a>(
        &'a self,
        origin: Origin,
        kind: Kind,
        cluster: Option<&'a ClusterName>,
    ) -> impl Iterator<Item = &'a Arc<Value>> {
        self.store.list(origin, kind, cluster)
    }

    /// What happened to a kind after a version, oldest first.
    ///
    /// # Errors
    /// 410 if that was [forgotten](Kcp::compact).
    pub fn events_since(
        &self,
        origin: Origin,
        kind: Kind,
        version: u64,
    ) -> Result<impl Iterator<Item = &Event>, Box<Status>> {
        self.store.events_since(origin, kind, version)
    }

    /// Forgets what happened up to a version: watches from before it have to list again.
    pub fn compact(&mut self, version: u64) {
        self.store.compact(version);
    }

    /// Brings the cache server's copy of an object up to date: it is written, or taken away. When that
    /// happens is the caller's business; nothing is written where nothing changed.
    pub fn replicate(&mut self, kind: Kind, key: &BindingKey) {
        let Some(local) = self.store.get(Origin::Local, kind, key) else {
            return self.store.remove(Origin::Global, kind, key);
        };
        let mut copy = Value::clone(&local.object);
        let managers = local.managers.clone();
        let origin = [("UID", "uid"), ("version", "resourceVersion")].map(|(name, field)| {
            (format!("cache.kcp.io/original-resource-{name}"), at(&copy, &["metadata", field]).clone())
        });
        let annotations = entries(metadata(&mut copy).entry("annotations").or_insert(Value::Null));
        annotations.extend(origin);
        annotations.insert("kcp.io/shard".into(), json!("root"));
        self.keep_copy(kind, key, copy, managers);
    }

    /// Puts into the cache server what another shard has there; `None`: it has nothing any more.
    pub fn set_copy(&mut self, kind: Kind, key: &BindingKey, copy: Option<&Value>) {
        match copy {
            None => self.store.remove(Origin::Global, kind, key),
            Some(copy) => self.keep_copy(kind, key, copy.clone(), Managers::default()),
        }
    }

    fn keep_copy(&mut self, kind: Kind, key: &BindingKey, copy: Value, managers: Managers) {
        let known = self.store.get(Origin::Global, kind, key).map(|stored| &stored.object);
        if known.is_none_or(|known| !same_but_for_version(known, &copy)) {
            self.store.put(Origin::Global, kind, key.clone(), copy, managers);
        }
    }

    /// Who owns which field of an object, as `metadata.managedFields` tells it. The objects themselves
    /// are kept without.
    pub fn managed_fields(&self, origin: Origin, kind: Kind, key: &BindingKey) -> Option<Value> {
        self.store.get(origin, kind, key).map(|stored| stored.managers.to_json(kind))
    }

    /// A version for something that happened to an object that is kept elsewhere.
    #[cfg(feature = "shell")]
    pub(crate) fn tick(&mut self) -> u64 {
        self.store.raise(self.store.version() + 1);
        self.store.version()
    }

    /// All that is there, as if it had just come: what whoever has to be told of everything is told first.
    #[cfg(feature = "shell")]
    pub(crate) fn arrivals(&self, origin: Origin, kind: Kind) -> Vec<Event> {
        self.store.arrivals(origin, kind)
    }

    /// An object as it is now, with who owns what of it.
    #[cfg(feature = "shell")]
    pub(crate) fn get_owned(&self, origin: Origin, kind: Kind, key: &BindingKey) -> Option<(Arc<Value>, Owners)> {
        let stored = self.store.get(origin, kind, key)?;
        Some((stored.object.clone(), stored.managers.of_kind(kind)))
    }

    /// All objects of a kind as they were at a version, by cluster and name, each with who owns what of it.
    #[cfg(feature = "shell")]
    pub(crate) fn list_at(
        &self,
        origin: Origin,
        kind: Kind,
        cluster: Option<&ClusterName>,
        version: u64,
    ) -> Result<Vec<(Arc<Value>, Owners)>, Box<Status>> {
        let stored = self.store.list_at(origin, kind, cluster, version)?;
        Ok(stored.into_iter().map(|stored| (stored.object.clone(), stored.managers.of_kind(kind))).collect())
    }

    /// The logical cluster of a path, or of what is the name of one already. A name of which nothing
    /// is known is a name: a cluster is there once something is in it.
    ///
    /// # Errors
    /// 404 for a path that leads nowhere.
    pub fn resolve(&self, path: &str) -> Result<ClusterName, Box<Status>> {
        if !path.contains(':') || path.starts_with("system:") {
            return Ok(path.into());
        }
        self.list(Origin::Local, Kind::LogicalCluster, None)
            .find(|home| annotation(home, PATH_ANNOTATION) == path)
            .map(|home| annotation(home, CLUSTER_ANNOTATION).into())
            .ok_or_else(|| refusal::no_workspace(path))
    }

    fn next_uid(&mut self) -> String {
        self.uids += 1;
        let (high, low) = (mix(self.seed ^ mix(self.uids)), mix(self.seed.wrapping_add(self.uids)));
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0x0fff,
            (low >> 48) & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        )
    }
}

/// A time as objects have it, in whole seconds.
pub(super) fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// The value at a path; `null` where there is none.
pub(super) fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().try_fold(value, |value, name| value.get(name)).unwrap_or(&Value::Null)
}

pub(super) fn text_at<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

pub(super) fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    text_at(object, &["metadata", "annotations", name])
}

pub(super) fn key_of(object: &Value) -> BindingKey {
    BindingKey::new(annotation(object, CLUSTER_ANNOTATION), text_at(object, &["metadata", "name"]))
}

/// The fields of a value, which is made an object if it is none.
fn entries(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("it was just made an object"),
    }
}

fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    entries(entries(object).entry("metadata").or_insert(Value::Null))
}

/// True if two states of an object differ in nothing but their resourceVersion.
fn same_but_for_version(left: &Value, right: &Value) -> bool {
    let fields = |value: &Value, path: &[&str]| at(value, path).as_object().map_or(0, Map::len);
    let same = |path: &[&str], but: &str| {
        let mut left_fields = at(left, path).as_object().into_iter().flatten();
        fields(left, path) == fields(right, path)
            && left_fields.all(|(name, value)| name == but || at(right, path).get(name) == Some(value))
    };
    same(&[], "metadata") && same(&["metadata"], "resourceVersion")
}
