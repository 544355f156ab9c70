//! The server: from a request to an answer, and to what is stored after it.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::fields::{Difference, Fields};
use super::managers::{Managers, Operation, Writer};
use super::refusal::{self, Cause, Refusal};
use super::request::{Answer, Preconditions, Request, Verb};
use super::store::Stored;
use super::{Kcp, annotation, at, crd, entries, merge, metadata, same_but_for_version, seconds, shape, text_at, valid};
use crate::api::{BindingKey, CLUSTER_ANNOTATION, Kind, PATH_ANNOTATION, Text};
use crate::snapshot::Origin;

/// What a manager is called that does not say its name.
const UNKNOWN: &str = "unknown";

/// What the writes have in common.
struct Write {
    kind: Kind,
    key: BindingKey,
    is_status: bool,
    writer: Writer,
    dry_run: bool,
}

impl Kcp {
    /// Does what a client wants.
    ///
    /// # Errors
    /// The server's refusal, as it goes over the wire.
    pub fn handle(&mut self, request: Request) -> Result<Answer, Refusal> {
        let Request { origin, kind, cluster, name, subresource, verb, field_manager, dry_run } = request;
        let is_status = subresource == "status";
        if !(subresource.is_empty() || is_status && shape::has_status(kind)) {
            return Err(refusal::not_served());
        }
        let key = BindingKey { cluster, name };
        if !matches!(verb, Verb::Get | Verb::List) && (origin == Origin::Global || key.cluster.as_str() == "*") {
            return Err(refusal::not_allowed("nothing is written here"));
        }
        let operation = if matches!(verb, Verb::Apply { .. }) { Operation::Apply } else { Operation::Update };
        let writer = Writer { name: field_manager, operation, subresource };
        let mut write = Write { kind, key, is_status, writer, dry_run };
        if operation == Operation::Update && write.writer.name.is_empty() {
            write.writer.name = UNKNOWN.into();
        }
        match verb {
            Verb::Get => {
                let stored = self.store.get(origin, kind, &write.key);
                let stored = stored.ok_or_else(|| refusal::not_found(kind, &write.key.name))?;
                Ok(Answer { code: 200, body: stored.object.clone() })
            }
            Verb::List => Ok(Answer { code: 200, body: Arc::new(self.list_body(origin, kind, &write.key)) }),
            Verb::Create(body) => self.create(write, body),
            Verb::Update(body) => self.update(&write, body),
            Verb::Merge(patch) => self.merge(&write, patch),
            Verb::Apply { body, force } => self.apply(write, body, force),
            Verb::Delete(preconditions) => self.delete(&write, &preconditions),
        }
    }

    fn list_body(&self, origin: Origin, kind: Kind, key: &BindingKey) -> Value {
        let cluster = (key.cluster.as_str() != "*").then_some(&key.cluster);
        let items = self.list(origin, kind, cluster).map(|object| {
            let mut item = Value::clone(object);
            if let (Kind::Crd, Some(item)) = (kind, item.as_object_mut()) {
                // Items of lists of built-in kinds do not say what they are.
                item.remove("apiVersion");
                item.remove("kind");
            }
            item
        });
        json!({
            "apiVersion": kind.api_version(),
            "kind": format!("{}List", kind.as_str()),
            "metadata": {"resourceVersion": self.version().to_string(), "continue": ""},
            "items": items.collect::<Vec<_>>(),
        })
    }

    fn live(&self, write: &Write) -> Result<&Stored, Refusal> {
        let stored = self.store.get(Origin::Local, write.kind, &write.key);
        stored.ok_or_else(|| refusal::not_found(write.kind, &write.key.name))
    }

    fn create(&mut self, mut write: Write, mut body: Value) -> Result<Answer, Refusal> {
        check_type(write.kind, &body)?;
        write.key.name = text_at(&body, &["metadata", "name"]).into();
        if write.key.name.is_empty() {
            let cause = Cause::required("metadata.name", "name or generateName is required");
            return Err(refusal::invalid(write.kind, "", vec![cause]));
        }
        if !text_at(&body, &["metadata", "resourceVersion"]).is_empty() {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(refusal::failure(500, "InternalError", why));
        }
        if shape::has_status(write.kind) {
            entries(&mut body).remove("status");
        }
        let shape = shape::of(write.kind);
        merge::tidy(&mut body, shape);
        let mut managers = Managers::default();
        let nothing = match write.kind {
            // A built-in kind is never without these.
            Kind::Crd => {
                json!({"metadata": {}, "spec": {"group": "", "scope": "", "names": {"plural": "", "kind": ""}}})
            }
            _ => json!({"metadata": {}}),
        };
        let mut own = Value::clone(&body);
        entries(&mut own).remove("status");
        managers.update(&write.writer, &nothing, &own, shape, self.now);
        self.add(&write, body, managers)
    }

    fn update(&mut self, write: &Write, body: Value) -> Result<Answer, Refusal> {
        check_type(write.kind, &body)?;
        check_name(write, &body)?;
        let live = self.live(write)?;
        let uid = text_at(&body, &["metadata", "uid"]);
        check_uid_precondition(write, &live.object, uid)?;
        let version = text_at(&body, &["metadata", "resourceVersion"]);
        if version.is_empty() {
            let cause = Cause::invalid("metadata.resourceVersion", "0x0", "must be specified for an update");
            return Err(refusal::invalid(write.kind, &write.key.name, vec![cause]));
        }
        check_version(write, &live.object, version)?;
        self.replace(write, body)
    }

    fn merge(&mut self, write: &Write, mut patch: Value) -> Result<Answer, Refusal> {
        let live = self.live(write)?;
        if !patch.is_object() {
            return Err(refusal::bad_request("a merge patch is a JSON object"));
        }
        check_version(write, &live.object, text_at(&patch, &["metadata", "resourceVersion"]))?;
        if let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let mut body = Value::clone(&live.object);
        merge::merge_patch(&mut body, patch);
        check_type(write.kind, &body)?;
        check_name(write, &body)?;
        self.replace(write, body)
    }

    /// A write that is no apply, with all its preconditions met.
    fn replace(&mut self, write: &Write, mut next: Value) -> Result<Answer, Refusal> {
        let live = self.live(write)?;
        if !write.is_status {
            check_uid(write, &live.object, text_at(&next, &["metadata", "uid"]))?;
        }
        let shape = shape::of(write.kind);
        restore(write, &live.object, &mut next);
        merge::tidy(&mut next, shape);
        let mut managers = live.managers.clone();
        managers.update(&write.writer, &live.object, &next, shape, self.now);
        self.change(write, next, managers)
    }

    fn apply(&mut self, write: Write, mut body: Value, force: bool) -> Result<Answer, Refusal> {
        if write.writer.name.is_empty() {
            return Err(refusal::no_field_manager());
        }
        check_type(write.kind, &body)?;
        if at(&body, &["metadata", "managedFields"]).as_array().is_some_and(|owners| !owners.is_empty()) {
            return Err(refusal::bad_request("metadata.managedFields must be nil"));
        }
        let shape = shape::of(write.kind);
        if let Some((path, why)) = merge::misfit(&body, shape) {
            return Err(refusal::untyped(write.kind, text_at(&body, &["metadata", "name"]), &format!("{path}: {why}")));
        }
        check_name(&write, &body)?;
        let version = Text::from(text_at(&body, &["metadata", "resourceVersion"]));
        let uid = Text::from(text_at(&body, &["metadata", "uid"]));
        merge::restrict(&mut body, shape::has_status(write.kind), write.is_status);
        let own = Fields::applied(&body, shape);
        let Some(live) = self.store.get(Origin::Local, write.kind, &write.key) else {
            return self.apply_to_nothing(write, body, own, &version, &uid);
        };

        let mut managers = live.managers.clone();
        let last = managers.of(&write.writer);
        let sends_all = last.is_within(&own);
        managers.set(&write.writer, own, self.now);
        let mut next = Value::clone(&live.object);
        merge::apply(&mut next, body, shape);
        if !sends_all {
            merge::prune(&mut next, shape, &last, Some(&managers.all()));
        }
        if !write.is_status {
            keep_cluster(&write, &mut next);
        }
        merge::tidy(&mut next, shape);
        let difference = Difference::between(&live.object, &next, shape);
        let conflicts = managers.conflicts(&write.writer, &difference, write.kind);
        if !force && !conflicts.is_empty() {
            return Err(refusal::managers_conflict(conflicts));
        }
        managers.lose(&write.writer, &difference);
        check_version(&write, &live.object, &version)?;
        if !write.is_status {
            check_uid(&write, &live.object, &uid)?;
        }
        self.change(&write, next, managers)
    }

    /// An apply to an object that is not there creates it, unless it says which one it means.
    fn apply_to_nothing(
        &mut self,
        write: Write,
        mut sent: Value,
        own: Fields,
        version: &str,
        uid: &str,
    ) -> Result<Answer, Refusal> {
        if write.is_status {
            return Err(refusal::not_found(write.kind, &write.key.name));
        }
        if !version.is_empty() {
            return Err(refusal::stale(write.kind, &write.key.name));
        }
        check_uid(&write, &Value::Null, uid)?;
        merge::tidy(&mut sent, shape::of(write.kind));
        let mut managers = Managers::default();
        managers.set(&write.writer, own, self.now);
        self.add(&write, sent, managers)
    }

    /// Keeps a new object.
    fn add(&mut self, write: &Write, mut object: Value, managers: Managers) -> Result<Answer, Refusal> {
        let Write { kind, ref key, .. } = *write;
        if kind == Kind::Crd {
            crd::admit(&object, &key.name)?;
            crd::prepare(&mut object);
        }
        let path = self.path_for(write);
        let metadata = metadata(&mut object);
        metadata
            .retain(|name, _| ["name", "annotations", "labels", "finalizers", "ownerReferences"].contains(&&**name));
        let annotations = entries(metadata.entry("annotations").or_insert(Value::Null));
        annotations.insert(CLUSTER_ANNOTATION.into(), json!(key.cluster));
        if let Some(path) = path {
            annotations.entry(PATH_ANNOTATION).or_insert(json!(path));
        }
        if let Some(finalizer) = finalizer(kind) {
            let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
            if let Some(finalizers) = finalizers.as_array_mut().filter(|list| !list.contains(&json!(finalizer))) {
                finalizers.push(json!(finalizer));
            }
        }
        metadata.insert("generation".into(), json!(1));
        metadata.insert("creationTimestamp".into(), json!(seconds(self.now)));
        check_sound(kind, &key.name, valid::causes(kind, &object))?;
        if self.store.get(Origin::Local, kind, key).is_some() {
            return Err(refusal::already_exists(kind, &key.name));
        }
        let uid = json!(self.next_uid());
        super::metadata(&mut object).insert("uid".into(), uid);
        let body = if write.dry_run {
            Arc::new(object)
        } else {
            self.store.put(Origin::Local, kind, key.clone(), object, managers)
        };
        Ok(Answer { code: 201, body })
    }

    /// The path of the object's cluster, for the kinds that are told it.
    fn path_for(&self, write: &Write) -> Option<Text> {
        if !matches!(write.kind, Kind::ApiBinding | Kind::ApiExport) {
            return None;
        }
        let home = BindingKey::new(write.key.cluster.clone(), "cluster");
        let home = self.get(Origin::Local, Kind::LogicalCluster, &home);
        let path = home.map(|home| annotation(home, PATH_ANNOTATION)).filter(|path| !path.is_empty());
        path.map(Text::from).or_else(|| (write.key.cluster.as_str() == "root").then(|| "root".into()))
    }

    /// Keeps the next state of an object, if it is another one.
    fn change(&mut self, write: &Write, mut next: Value, managers: Managers) -> Result<Answer, Refusal> {
        let Write { kind, ref key, .. } = *write;
        let live = self.live(write)?;
        // A status does not make the schemas of a CRD wrong, and to look into them takes long.
        let is_checked = !(write.is_status && kind == Kind::Crd);
        let mut causes = if is_checked { valid::causes(kind, &next) } else { Vec::new() };
        if causes.is_empty() {
            causes = valid::changes(kind, &live.object, &next);
        }
        check_sound(kind, &key.name, causes)?;
        if kind == Kind::ApiResourceSchema && at(&live.object, &["spec"]) != at(&next, &["spec"]) {
            return Err(refusal::forbidden(kind, &key.name, "spec: field is immutable"));
        }
        let is_same = same_but_for_version(&live.object, &next);
        if is_same && live.managers == managers {
            return Ok(Answer { code: 200, body: live.object.clone() });
        }
        if !is_same && !write.is_status && differs_in_content(&live.object, &next) {
            raise_generation(&mut next);
        }
        if write.dry_run {
            return Ok(Answer { code: 200, body: Arc::new(next) });
        }
        let is_over = !at(&next, &["metadata", "deletionTimestamp"]).is_null()
            && at(&next, &["metadata", "finalizers"]).as_array().is_none_or(Vec::is_empty);
        if is_over {
            self.store.remove(Origin::Local, kind, key);
            return Ok(Answer { code: 200, body: Arc::new(next) });
        }
        Ok(Answer { code: 200, body: self.store.put(Origin::Local, kind, key.clone(), next, managers) })
    }

    fn delete(&mut self, write: &Write, preconditions: &Preconditions) -> Result<Answer, Refusal> {
        let Write { kind, ref key, .. } = *write;
        let live = self.live(write)?;
        check_uid_precondition(write, &live.object, &preconditions.uid)?;
        let version = text_at(&live.object, &["metadata", "resourceVersion"]);
        if !preconditions.resource_version.is_empty() && preconditions.resource_version != *version {
            let wanted = &preconditions.resource_version;
            let why = format!(
                "Precondition failed: ResourceVersion in precondition: {wanted}, ResourceVersion in object meta: {version}"
            );
            return Err(refusal::conflict(kind, &key.name, &why));
        }
        let is_held = at(&live.object, &["metadata", "finalizers"]).as_array().is_some_and(|list| !list.is_empty());
        if !is_held && kind != Kind::Crd {
            let details = json!({
                "name": key.name,
                "group": kind.group(),
                "kind": kind.plural(),
                "uid": at(&live.object, &["metadata", "uid"]),
            });
            let body = json!({
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": details,
            });
            if !write.dry_run {
                self.store.remove(Origin::Local, kind, key);
            }
            return Ok(Answer { code: 200, body: Arc::new(body) });
        }
        if !at(&live.object, &["metadata", "deletionTimestamp"]).is_null() {
            return Ok(Answer { code: 200, body: live.object.clone() });
        }
        let (mut next, managers) = (Value::clone(&live.object), live.managers.clone());
        if kind == Kind::Crd {
            crd::terminate(&mut next, self.now);
        } else {
            metadata(&mut next).insert("deletionTimestamp".into(), json!(seconds(self.now)));
            metadata(&mut next).insert("deletionGracePeriodSeconds".into(), json!(0));
            raise_generation(&mut next);
        }
        if write.dry_run {
            return Ok(Answer { code: 200, body: Arc::new(next) });
        }
        Ok(Answer { code: 200, body: self.store.put(Origin::Local, kind, key.clone(), next, managers) })
    }
}

/// What is put on every object of a kind, so that it is cleaned up before it goes.
fn finalizer(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::ApiBinding => Some("apis.kcp.io/apibinding-finalizer"),
        Kind::LogicalCluster => Some("core.kcp.io/logicalcluster-deletion"),
        _ => None,
    }
}

/// Puts back what a write may not change: the server's own fields, the cluster, and the half of the
/// object that it is not about.
fn restore(write: &Write, live: &Value, next: &mut Value) {
    let has_status = shape::has_status(write.kind);
    if write.is_status {
        let status = next.get_mut("status").map(Value::take);
        next.clone_from(live);
        match status {
            Some(status) => drop(entries(next).insert("status".into(), status)),
            None => drop(entries(next).remove("status")),
        }
        return;
    }
    if has_status {
        copy("status", live.as_object(), entries(next));
    }
    let old = at(live, &["metadata"]).as_object();
    let metadata = metadata(next);
    for name in [
        "name",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
        "namespace",
    ] {
        copy(name, old, metadata);
    }
    keep_cluster(write, next);
}

/// Whatever a client writes, an object is where it is.
fn keep_cluster(write: &Write, object: &mut Value) {
    let annotations = entries(metadata(object).entry("annotations").or_insert(Value::Null));
    annotations.insert(CLUSTER_ANNOTATION.into(), json!(write.key.cluster));
}

fn copy(name: &str, from: Option<&Map<String, Value>>, to: &mut Map<String, Value>) {
    match from.and_then(|from| from.get(name)) {
        Some(value) if to.get(name) == Some(value) => {}
        Some(value) => drop(to.insert(name.into(), value.clone())),
        None => drop(to.remove(name)),
    }
}

/// True if more than metadata and status differ.
fn differs_in_content(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return true };
    let names = old.keys().chain(new.keys()).filter(|name| !["metadata", "status"].contains(&name.as_str()));
    names.into_iter().any(|name| old.get(name) != new.get(name))
}

fn raise_generation(object: &mut Value) {
    let generation = at(object, &["metadata", "generation"]).as_i64().unwrap_or(0);
    metadata(object).insert("generation".into(), json!(generation + 1));
}

fn check_type(kind: Kind, body: &Value) -> Result<(), Refusal> {
    let (version, name) = (text_at(body, &["apiVersion"]), text_at(body, &["kind"]));
    if version != kind.api_version() || name != kind.as_str() {
        let why = format!("the body is of `{version}` `{name}`, expected `{}` `{kind}`", kind.api_version());
        return Err(refusal::bad_request(why));
    }
    if !matches!(at(body, &["metadata"]), Value::Object(_) | Value::Null) {
        return Err(refusal::bad_request("metadata has to be an object"));
    }
    Ok(())
}

fn check_name(write: &Write, body: &Value) -> Result<(), Refusal> {
    let name = text_at(body, &["metadata", "name"]);
    // An apply need not repeat the name that stands in the path.
    if name == &*write.key.name || name.is_empty() && write.writer.operation == Operation::Apply {
        return Ok(());
    }
    let wanted = &write.key.name;
    Err(refusal::bad_request(format!("the name of the object ({name}) does not match the name on the URL ({wanted})")))
}

fn check_version(write: &Write, live: &Value, version: &str) -> Result<(), Refusal> {
    if version.is_empty() || version == "0" || version == text_at(live, &["metadata", "resourceVersion"]) {
        return Ok(());
    }
    Err(refusal::stale(write.kind, &write.key.name))
}

fn check_uid_precondition(write: &Write, live: &Value, uid: &str) -> Result<(), Refusal> {
    let found = text_at(live, &["metadata", "uid"]);
    if uid.is_empty() || uid == found {
        return Ok(());
    }
    let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {found}");
    Err(refusal::conflict(write.kind, &write.key.name, &why))
}

fn check_uid(write: &Write, live: &Value, uid: &str) -> Result<(), Refusal> {
    if uid.is_empty() || uid == text_at(live, &["metadata", "uid"]) {
        return Ok(());
    }
    let cause = Cause::invalid("metadata.uid", format_args!("{uid:?}"), "field is immutable");
    // Two of the server's layers find it.
    Err(refusal::invalid(write.kind, &write.key.name, vec![cause.clone(), cause]))
}

fn check_sound(kind: Kind, name: &str, causes: Vec<Cause>) -> Result<(), Refusal> {
    if causes.is_empty() { Ok(()) } else { Err(refusal::invalid(kind, name, causes)) }
}
