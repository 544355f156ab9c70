//! What else a server keeps: Leases, and the namespaces they are in. Just enough of it for leader election,
//! and for people who look.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::ask::{Ask, Stocked};
use super::call::{Call, Doing};
use super::house::House;
use super::refusal;
use super::reply::Reply;
use crate::api::{CLUSTER_ANNOTATION, Text};

/// Of which kind, where, and its name: cluster, namespace, name.
type Key = (Stocked, Text, Text, Text);

/// The objects that the front keeps itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Stock {
    objects: BTreeMap<Key, Value>,
    /// How many there have been.
    serial: u64,
}

impl Stocked {
    fn api_version(self) -> &'static str {
        match self {
            Self::Leases => "coordination.k8s.io/v1",
            Self::Namespaces | Self::Events => "v1",
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Leases => "Lease",
            Self::Namespaces => "Namespace",
            Self::Events => "Event",
        }
    }
}

impl House {
    pub(super) fn do_stock(&mut self, ask: &Ask, stocked: Stocked, call: Call) -> Reply {
        let Call { doing, dry_run, .. } = call;
        let cluster = match self.kcp.resolve(&ask.cluster) {
            Ok(cluster) => Text::from(cluster.as_str()),
            Err(status) => return Reply::Status(status),
        };
        if !ask.subresource.is_empty() {
            return refusal::no_such_part();
        }
        let key = |name: &str| (stocked, cluster.clone(), ask.namespace.clone(), Text::from(name));
        let is_read = matches!(doing, Doing::Get | Doing::List(_) | Doing::Watch(_));
        if !is_read
            && (&*cluster == "*"
                || stocked == Stocked::Events
                || stocked == Stocked::Leases && ask.namespace.is_empty())
        {
            return refusal::not_allowed();
        }
        match doing {
            Doing::Get => match self.stocked(&key(&ask.name)) {
                Some(object) => Reply::Json(object),
                None => refusal::not_found(ask, &ask.name),
            },
            Doing::List(_) => Reply::Json(self.list_stock(ask, stocked, &cluster)),
            // Nobody here waits for one.
            Doing::Watch(_) | Doing::DeleteAll(_) | Doing::JsonPatch(_) => refusal::not_allowed(),
            Doing::Create(body) => {
                let name = Text::from(text(&body, "/metadata/name"));
                if name.is_empty() {
                    return refusal::bad_request("metadata.name: Required value: name or generateName is required");
                }
                let key = key(&name);
                if self.stock.objects.contains_key(&key) {
                    return refusal::already_exists(ask, &name);
                }
                self.keep(key, body, 201, dry_run)
            }
            Doing::Update(body) => self.replace(ask, key(&ask.name), body, dry_run),
            Doing::Merge(patch) => {
                let key = key(&ask.name);
                let Some(mut next) = self.stocked(&key) else { return refusal::not_found(ask, &ask.name) };
                let version = text(&patch, "/metadata/resourceVersion").to_owned();
                merge(&mut next, patch);
                if version.is_empty()
                    && let Some(metadata) = next.get_mut("metadata").and_then(Value::as_object_mut)
                {
                    metadata.remove("resourceVersion");
                }
                self.replace(ask, key, next, dry_run)
            }
            Doing::Apply { body, .. } => {
                let key = key(&ask.name);
                let Some(mut next) = self.stocked(&key) else { return self.keep(key, body, 201, dry_run) };
                merge(&mut next, body);
                self.replace(ask, key, next, dry_run)
            }
            Doing::Delete(preconditions) => {
                let key = key(&ask.name);
                let Some(object) = self.stock.objects.get(&key) else { return refusal::not_found(ask, &ask.name) };
                let is_other = |wanted: &Text, field| !wanted.is_empty() && **wanted != *text(object, field);
                if is_other(&preconditions.uid, "/metadata/uid")
                    || is_other(&preconditions.resource_version, "/metadata/resourceVersion")
                {
                    return refusal::stale(ask);
                }
                if !dry_run {
                    self.stock.objects.remove(&key);
                    self.next_version();
                }
                Reply::Json(json!({
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Success",
                    "details": {"name": ask.name, "group": ask.group, "kind": ask.resource},
                }))
            }
        }
    }

    fn stocked(&self, key: &Key) -> Option<Value> {
        let (stocked, cluster, _, name) = key;
        match self.stock.objects.get(key) {
            // Every namespace is there that anybody asks for.
            None if *stocked == Stocked::Namespaces => Some(namespace(cluster, name, &self.began())),
            object => object.cloned(),
        }
    }

    fn list_stock(&self, ask: &Ask, stocked: Stocked, cluster: &Text) -> Value {
        let is_asked = |(kind, of, namespace, _): &Key| {
            *kind == stocked
                && (&**cluster == "*" || of == cluster)
                && (ask.namespace.is_empty() || *namespace == ask.namespace)
        };
        let mut items: Vec<Value> =
            self.stock.objects.iter().filter(|(key, _)| is_asked(key)).map(|(_, object)| object.clone()).collect();
        if stocked == Stocked::Namespaces
            && &**cluster != "*"
            && !self.stock.objects.contains_key(&(stocked, cluster.clone(), Text::default(), "default".into()))
        {
            items.push(namespace(cluster, "default", &self.began()));
        }
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            item.remove("apiVersion");
            item.remove("kind");
        }
        json!({
            "apiVersion": stocked.api_version(),
            "kind": format!("{}List", stocked.kind()),
            "metadata": {"resourceVersion": self.kcp.version().to_string()},
            "items": items,
        })
    }

    /// Writes what was read before, if it is still that.
    fn replace(&mut self, ask: &Ask, key: Key, mut next: Value, dry_run: bool) -> Reply {
        let Some(live) = self.stocked(&key) else { return refusal::not_found(ask, &ask.name) };
        let is_other = |field| !text(&next, field).is_empty() && text(&next, field) != text(&live, field);
        if is_other("/metadata/resourceVersion") || is_other("/metadata/uid") {
            return refusal::stale(ask);
        }
        if text(&next, "/metadata/name") != &*ask.name {
            return refusal::bad_request("the name of the object does not match the name on the URL");
        }
        for field in ["uid", "creationTimestamp"] {
            let kept = live.get("metadata").and_then(|metadata| metadata.get(field)).cloned();
            if let (Some(kept), Some(metadata)) = (kept, next.get_mut("metadata").and_then(Value::as_object_mut)) {
                metadata.insert(field.into(), kept);
            }
        }
        self.keep(key, next, 200, dry_run)
    }

    fn keep(&mut self, key: Key, mut object: Value, code: u16, dry_run: bool) -> Reply {
        let (stocked, ref cluster, ref namespace, ref name) = key;
        let Value::Object(fields) = &mut object else { return refusal::bad_request("the body is no object") };
        fields.insert("apiVersion".into(), json!(stocked.api_version()));
        fields.insert("kind".into(), json!(stocked.kind()));
        let metadata = fields.entry("metadata").or_insert(Value::Null);
        if !metadata.is_object() {
            *metadata = Value::Object(Map::new());
        }
        let (serial, now) = (self.stock.serial + 1, self.now());
        let version = if dry_run { self.kcp.version() } else { self.next_version() };
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("name".into(), json!(name));
            if !namespace.is_empty() {
                metadata.insert("namespace".into(), json!(namespace));
            }
            metadata.entry("uid").or_insert_with(|| json!(format!("00000000-0000-4000-8000-{serial:012x}")));
            metadata.entry("creationTimestamp").or_insert(json!(now));
            metadata.insert("resourceVersion".into(), json!(version.to_string()));
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.insert(CLUSTER_ANNOTATION.into(), json!(cluster));
            }
        }
        if !dry_run {
            self.stock.serial = serial;
            self.stock.objects.insert(key, object.clone());
        }
        Reply::Object(code, super::reply::Body { object: object.into(), owners: None })
    }
}

/// A namespace that is there because it was asked for.
fn namespace(cluster: &str, name: &str, began: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "uid": "00000000-0000-4000-8000-000000000000",
            "resourceVersion": "1",
            "creationTimestamp": began,
            "annotations": {CLUSTER_ANNOTATION: cluster},
            "labels": {"kubernetes.io/metadata.name": name},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    })
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// JSON merge patch.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(target) = target.as_object_mut() else { return };
    for (name, value) in patch {
        if value.is_null() {
            target.remove(&name);
        } else {
            merge(target.entry(name).or_insert(Value::Null), value);
        }
    }
}
