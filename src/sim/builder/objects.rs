//! A plan written down as objects of the wire.

use std::sync::Arc;

use k8s_openapi::jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::START;
use super::plan::{Binding, Claim, Export, Form, Home, Plan, Schema};
use super::pool::{Resource, path_of};
use crate::api::{CLUSTER_ANNOTATION, ClusterName, Kind, PATH_ANNOTATION};
use crate::reconcile::FIELD_MANAGER;
use crate::snapshot::{Layer, Layout};

impl Plan {
    /// All that is there, in an order in which it may have come about.
    pub fn objects(self) -> impl Iterator<Item = Value> + use<> {
        let plan = Arc::new(self);
        let all = |count: usize, write: fn(&Plan, usize) -> Vec<Value>| {
            let plan = plan.clone();
            (0..count).flat_map(move |at| write(&plan, at))
        };
        let clusters = all(plan.homes.len(), |plan, at| {
            let home = plan.homes.get(at).filter(|home| home.is_there);
            home.map(|home| plan.stored_home(home)).into_iter().collect()
        });
        let schemas = all(plan.schemas.len(), |plan, at| match plan.schemas.get(at) {
            Some(schema) => plan.stored_schema(schema),
            None => Vec::new(),
        });
        let exports = all(plan.exports.len(), |plan, at| {
            let export = plan.exports.get(at).filter(|export| export.is_there);
            export.map(|export| plan.stored_export(export)).into_iter().collect()
        });
        let crds = all(plan.crds.len(), Plan::stored_crd);
        let bindings = all(plan.bindings.len(), |plan, at| {
            let binding = plan.bindings.get(at).filter(|binding| binding.is_there);
            binding.map(|binding| plan.stored_binding(binding)).into_iter().collect()
        });
        let objects = clusters.chain(schemas).chain(exports).chain(crds).chain(bindings);
        objects.zip(1u64..).map(|(mut object, version)| {
            set(&mut object, "metadata", "resourceVersion", json!(version.to_string()));
            object
        })
    }

    fn stored_home(&self, home: &Home) -> Value {
        let mut object = self.home(home);
        for (layer, text) in &home.locks {
            annotate(&mut object, layer.annotation(), text);
        }
        let managers = home.locks.iter().map(|(layer, _)| {
            let name = match (layer, self.layout) {
                (Layer::Crds, _) => "kcp-logicalclustercleanup",
                (Layer::Bindings, _) => FIELD_MANAGER,
                (Layer::Pending, _) => "kcp-crdnooverlappinggvr",
                (Layer::Legacy, Layout::Single) => "apibinding-reconciler-locks",
                (Layer::Legacy, _) => "kcp",
            };
            let operation = if name == "kcp" { "Update" } else { "Apply" };
            let annotation = format!("f:{}", layer.annotation());
            let fields = json!({"f:metadata": {"f:annotations": {annotation: {}}}});
            managed(Kind::LogicalCluster, name, operation, "", fields)
        });
        let managers: Vec<Value> = managers.collect();
        set(&mut object, "metadata", "managedFields", json!(managers));
        set(&mut object, "metadata", "finalizers", json!(["core.kcp.io/logicalcluster-deletion"]));
        set(&mut object, "status", "phase", json!("Ready"));
        stored(object, format!("home-{}", home.cluster), 120)
    }

    /// A LogicalCluster as it is created.
    pub fn home(&self, home: &Home) -> Value {
        let spec = json!({"directlyDeletable": false});
        let mut object = object(Kind::LogicalCluster, &home.cluster, "cluster", spec);
        annotate(&mut object, PATH_ANNOTATION, &path_of(&home.cluster));
        object
    }

    fn stored_schema(&self, schema: &Schema) -> Vec<Value> {
        let mut objects = Vec::new();
        if schema.has_conversion {
            let uid = format!("{}-{}-conversion", schema.cluster, schema.name);
            objects.push(stored(conversion(schema), uid, 100));
        }
        let Some(resource) = self.resources.get(schema.resource).filter(|_| schema.is_there) else { return objects };
        let whole = self.schema(schema);
        if schema.has_crd && schema.form.is_sound() {
            objects.push(bound_crd(schema, resource, &whole));
        }
        objects.push(stored(whole, schema.uid.clone(), 100));
        objects
    }

    /// An APIResourceSchema as it is created.
    pub fn schema(&self, schema: &Schema) -> Value {
        let Some(resource) = self.resources.get(schema.resource) else { return Value::Null };
        let is_rich = schema.form == Form::Rich;
        let mut spec = json!({
            "group": resource.group,
            "names": names(resource, false),
            "scope": "Namespaced",
            "nameValidation": if is_rich { "PathSegmentName" } else { "DNS1123Subdomain" },
        });
        let url = if schema.form == Form::BadHook { "http://hooks.example/" } else { "https://hooks.example/" };
        let webhook = json!({"clientConfig": {"url": url}, "conversionReviewVersions": ["v1"]});
        let conversion = match schema.form {
            Form::ConvertedByNone => Some(json!({"strategy": "None"})),
            Form::ConvertedByWebhook | Form::BadHook => Some(json!({"strategy": "Webhook", "webhook": webhook})),
            Form::LacksClientConfig => {
                Some(json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}))
            }
            _ => None,
        };
        let versions = match schema.form {
            Form::Plain | Form::Rich | Form::WrongType | Form::Untyped => &["v1"] as &[&str],
            _ => &["v1", "v2"],
        };
        let versions: Vec<Value> = versions.iter().map(|name| self.version(schema.form, name)).collect();
        insert(&mut spec, "versions", json!(versions));
        if let Some(conversion) = conversion {
            insert(&mut spec, "conversion", conversion);
        }
        let mut object = object(Kind::ApiResourceSchema, &schema.cluster, &schema.name, spec);
        if is_rich {
            annotate(&mut object, "api-approved.kubernetes.io", "unapproved, an experiment");
        }
        object
    }

    fn version(&self, form: Form, name: &str) -> Value {
        let schema = match form {
            Form::WrongType => json!({"type": "object", "required": 5}),
            Form::Untyped => json!({"type": "object", "properties": {"spec": {"description": "anything"}}}),
            _ => sized(self.schema_bytes),
        };
        let mut version =
            json!({"name": name, "served": true, "storage": name == "v1", "schema": schema, "subresources": {}});
        if form == Form::Rich {
            insert(&mut version, "deprecated", json!(true));
            insert(&mut version, "deprecationWarning", json!("old"));
            insert(&mut version, "subresources", json!({"status": {}}));
            let column = json!({"name": "Colour", "type": "string", "jsonPath": ".spec.colour"});
            insert(&mut version, "additionalPrinterColumns", json!([column]));
        }
        version
    }

    fn stored_export(&self, export: &Export) -> Value {
        let mut object = self.export(export);
        if !export.path.is_empty() {
            annotate(&mut object, PATH_ANNOTATION, &export.path);
        }
        if !export.identity.is_empty() {
            insert(&mut object, "status", json!({"identityHash": export.identity}));
        }
        stored(object, format!("export-{}-{}", export.cluster, export.name), 100)
    }

    /// An APIExport as it is created.
    pub fn export(&self, export: &Export) -> Value {
        let mut spec = json!({"resources": self.offered(export)});
        if !export.claims.is_empty() {
            insert(&mut spec, "permissionClaims", json!(claims(&export.claims)));
        }
        object(Kind::ApiExport, &export.cluster, &export.name, spec)
    }

    /// An export's resources.
    pub fn offered(&self, export: &Export) -> Vec<Value> {
        let offered = export.entries.iter().filter_map(|entry| {
            let schema = self.schemas.get(entry.schema)?;
            let resource = self.resources.get(schema.resource)?;
            let slice = json!({"reference": {"kind": "Slice", "name": "slice"}, "identityHash": "id-slice"});
            let storage = if entry.is_virtual { json!({"virtual": slice}) } else { json!({"crd": {}}) };
            let Resource { group, plural, .. } = resource;
            Some(json!({"group": group, "name": plural, "schema": schema.name, "storage": storage}))
        });
        offered.collect()
    }

    fn stored_crd(&self, at: usize) -> Vec<Value> {
        let found = self.crds.get(at).filter(|crd| crd.is_there);
        let Some(crd) = found else { return Vec::new() };
        let (Some(home), Some(resource)) = (self.homes.get(crd.home), self.resources.get(crd.resource)) else {
            return Vec::new();
        };
        let mut object = crd_of(&home.cluster, resource);
        let uid = format!("{}-{}-0", home.cluster, resource.key().crd_name());
        insert(&mut object, "status", crd_status(resource, crd.is_accepted));
        vec![stored(object, uid, 90)]
    }

    fn stored_binding(&self, binding: &Binding) -> Value {
        let mut object = self.binding(binding);
        annotate(&mut object, PATH_ANNOTATION, &path_of(self.cluster_of(binding)));
        set(&mut object, "metadata", "finalizers", json!(["apis.kcp.io/apibinding-finalizer"]));
        if let Some((status, fields)) = self.status(binding) {
            insert(&mut object, "status", status);
            let fields = managed(Kind::ApiBinding, FIELD_MANAGER, "Apply", "status", json!({"f:status": fields}));
            set(&mut object, "metadata", "managedFields", json!([fields]));
        }
        stored(object, binding.uid.clone(), binding.age_minutes)
    }

    /// An APIBinding as it is created.
    pub fn binding(&self, binding: &Binding) -> Value {
        let reference = match &binding.reference {
            Some((path, name)) if path.is_empty() => json!({"export": {"name": name}}),
            Some((path, name)) => json!({"export": {"path": path, "name": name}}),
            None => json!({}),
        };
        let mut spec = json!({"reference": reference});
        if !binding.claims.is_empty() {
            insert(&mut spec, "permissionClaims", json!(answers(&binding.claims)));
        }
        object(Kind::ApiBinding, self.cluster_of(binding), &binding.name, spec)
    }

    /// What the controller has made of a binding's status, and which fields of that are its own.
    fn status(&self, binding: &Binding) -> Option<(Value, Value)> {
        if binding.phase.is_empty() {
            return None;
        }
        let (mut entries, mut owned) = (Vec::new(), Map::new());
        let export = binding.export.and_then(|at| self.exports.get(at)).filter(|_| !binding.bound.is_empty());
        for entry in &binding.bound {
            let (Some(schema), Some(resource), Some(export)) =
                (self.schemas.get(entry.schema), self.resource_of(entry.schema), export)
            else {
                continue;
            };
            let of = json!({"name": schema.name, "UID": schema.uid, "identityHash": export.identity});
            let mut bound = json!({"group": resource.group, "resource": resource.plural, "schema": of});
            let mut own = json!({
                ".": {},
                "f:group": {},
                "f:resource": {},
                "f:schema": {"f:UID": {}, "f:identityHash": {}, "f:name": {}},
            });
            if !entry.is_virtual {
                insert(&mut bound, "storageVersions", json!(["v1"]));
                insert(&mut own, "f:storageVersions", json!({"v:\"v1\"": {}}));
            }
            entries.push(bound);
            owned.insert(format!("k:{}", json!({"group": resource.group, "resource": resource.plural})), own);
        }
        let mut status = json!({"phase": binding.phase, "conditions": conditions(binding.phase == "Bound")});
        let mut fields = json!({"f:phase": {}, "f:conditions": {}});
        if let Some(export) = export {
            insert(&mut status, "apiExportClusterName", json!(export.cluster));
            insert(&mut fields, "f:apiExportClusterName", json!({}));
            if !export.claims.is_empty() {
                insert(&mut status, "exportPermissionClaims", json!(claims(&export.claims)));
                insert(&mut fields, "f:exportPermissionClaims", json!({}));
            }
        }
        if !entries.is_empty() {
            insert(&mut status, "boundResources", json!(entries));
            insert(&mut fields, "f:boundResources", Value::Object(owned));
        }
        Some((status, fields))
    }
}

fn conditions(is_bound: bool) -> Vec<Value> {
    let time = START.saturating_sub(SignedDuration::from_mins(30)).unwrap_or(START).to_string();
    if is_bound {
        let kinds = ["Ready", "APIExportValid", "BindingUpToDate", "InitialBindingCompleted"];
        return kinds.map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": time})).to_vec();
    }
    vec![json!({
        "type": "InitialBindingCompleted",
        "status": "False",
        "severity": "Info",
        "reason": "WaitingForEstablished",
        "message": "Waiting for API(s) to be established",
        "lastTransitionTime": time,
    })]
}

/// Claims as an export makes them.
pub(super) fn claims(claims: &[Claim]) -> Vec<Value> {
    claims.iter().map(claim).collect()
}

fn claim(claim: &Claim) -> Value {
    let Claim { group, resource, identity } = claim;
    json!({"group": group, "resource": resource, "identityHash": identity, "verbs": ["*"]})
}

/// Claims as a consumer answers them.
pub(super) fn answers(answers: &[(Claim, bool)]) -> Vec<Value> {
    let answer = |(of, is_accepted): &(Claim, bool)| {
        let mut answer = claim(of);
        insert(&mut answer, "selector", json!({"matchAll": true}));
        insert(&mut answer, "state", json!(if *is_accepted { "Accepted" } else { "Rejected" }));
        answer
    };
    answers.iter().map(answer).collect()
}

/// An APIConversion as it is created.
pub(super) fn conversion(schema: &Schema) -> Value {
    let rules = json!([{"destination": ".spec.colour", "field": ".spec.colour"}]);
    let spec = json!({"conversions": [{"from": "v1", "to": "v2", "rules": rules}]});
    object(Kind::ApiConversion, &schema.cluster, &schema.name, spec)
}

/// A CRD of a workspace as it is created.
pub(super) fn crd_of(cluster: &str, resource: &Resource) -> Value {
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
    let spec = json!({
        "group": resource.group,
        "names": names(resource, true),
        "scope": "Namespaced",
        "versions": [version],
        "conversion": {"strategy": "None"},
    });
    object(Kind::Crd, cluster, &resource.key().crd_name(), spec)
}

/// What the controller makes of a schema, once it serves.
fn bound_crd(schema: &Schema, resource: &Resource, whole: &Value) -> Value {
    let mut spec = whole.get("spec").cloned().unwrap_or_default();
    insert(&mut spec, "names", names(resource, true));
    let conversion = spec.get("conversion").cloned().unwrap_or_else(|| json!({"strategy": "None"}));
    insert(&mut spec, "conversion", conversion);
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("nameValidation");
    }
    for version in spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
        let schema = version.get_mut("schema").map(Value::take).unwrap_or_default();
        insert(version, "schema", json!({"openAPIV3Schema": schema}));
    }
    let mut crd = object(Kind::Crd, ClusterName::BOUND_CRDS, &schema.uid, spec);
    annotate(&mut crd, "apis.kcp.io/bound-crd", "");
    annotate(&mut crd, "apis.kcp.io/schema-cluster", &schema.cluster);
    annotate(&mut crd, "apis.kcp.io/schema-name", &schema.name);
    if schema.form == Form::Rich {
        annotate(&mut crd, "api-approved.kubernetes.io", "unapproved, an experiment");
        annotate(&mut crd, "internal.kcp.io/validate-name", "path-segment");
    }
    insert(&mut crd, "status", crd_status(resource, true));
    stored(crd, format!("bound-{}", schema.uid), 95)
}

pub(super) fn crd_status(resource: &Resource, is_accepted: bool) -> Value {
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": START.to_string(), "reason": "", "message": ""});
    match is_accepted {
        true => json!({
            "acceptedNames": names(resource, true),
            "conditions": [condition("NamesAccepted", "True"), condition("Established", "True")],
            "storedVersions": ["v1"],
        }),
        false => json!({
            "acceptedNames": {"plural": "", "kind": ""},
            "conditions": [condition("NamesAccepted", "False"), condition("Established", "False")],
            "storedVersions": ["v1"],
        }),
    }
}

/// `full`: with those that a server fills in.
fn names(resource: &Resource, full: bool) -> Value {
    let mut names = json!({"plural": resource.plural, "kind": resource.kind});
    if full || !resource.singular.is_empty() {
        insert(&mut names, "singular", json!(resource.full_singular()));
    }
    if full || !resource.list_kind.is_empty() {
        insert(&mut names, "listKind", json!(resource.full_list_kind()));
    }
    if !resource.short.is_empty() {
        insert(&mut names, "shortNames", json!(resource.short));
    }
    names
}

/// A schema of about so many bytes.
fn sized(bytes: usize) -> Value {
    const FIELD: &str = "What this says of the animal, and what to do if it does not say it.";
    let field = || json!({"type": "string", "description": FIELD});
    // A field takes up its description and fifty bytes around it.
    let fields = bytes / (FIELD.len() + 50);
    let properties: Map<String, Value> = (0..fields).map(|at| (format!("field{at:04}"), field())).collect();
    let mut schema = json!({"type": "object"});
    if fields > 0 {
        insert(&mut schema, "properties", json!({"spec": {"type": "object", "properties": properties}}));
    }
    schema
}

fn object(kind: Kind, cluster: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.as_str(),
        "metadata": {"name": name, "annotations": {CLUSTER_ANNOTATION: cluster}},
        "spec": spec,
    })
}

/// The object as a server has it since so many minutes before the start.
fn stored(mut object: Value, uid: String, minutes: i64) -> Value {
    let created = START.saturating_sub(SignedDuration::from_mins(minutes)).unwrap_or(START);
    set(&mut object, "metadata", "uid", json!(uid));
    set(&mut object, "metadata", "creationTimestamp", json!(created.to_string()));
    set(&mut object, "metadata", "generation", json!(1));
    object
}

/// One entry of `managedFields`.
fn managed(kind: Kind, manager: &str, operation: &str, subresource: &str, fields: Value) -> Value {
    let mut entry = json!({
        "manager": manager,
        "operation": operation,
        "apiVersion": kind.api_version(),
        "time": START.to_string(),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    });
    if !subresource.is_empty() {
        insert(&mut entry, "subresource", json!(subresource));
    }
    entry
}

/// Sets a field of an object.
pub(super) fn insert(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

/// The same, one level below.
pub(super) fn set(object: &mut Value, above: &str, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        insert(fields.entry(above).or_insert_with(|| json!({})), field, value);
    }
}

fn annotate(object: &mut Value, name: &str, text: &str) {
    if let Some(annotations) = object.pointer_mut("/metadata/annotations") {
        insert(annotations, name, json!(text));
    }
}
