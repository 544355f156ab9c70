//! Reads everything that a real kcp sends (`tests/data/kcp`, recorded), and makes of its schemas the
//! CRDs that its own controller made.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;
use std::io::Read;

use apibinding::api::{ApiBinding, ApiExport, ApiResourceSchema, Kind, LogicalCluster, Object, ObservedCrd};
use apibinding::effect::Outcome;
use apibinding::snapshot::{Change, Layout, Snapshot};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use serde_json::{Value, json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/kcp");

fn unpack(path: &str) -> String {
    let packed = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*packed).read_to_string(&mut text).unwrap();
    text
}

/// Single exchanges with a real kcp.
fn exchanges() -> Vec<Value> {
    let packed = include_bytes!("data/wire/exchanges.json.gz");
    serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).unwrap()
}

fn lines(name: &str) -> Vec<Value> {
    unpack(&format!("{FOLDER}/{name}")).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every list that was taken of a server: where, of which kind, and its items.
fn lists() -> Vec<(String, Kind, Vec<Value>)> {
    let mut lists = Vec::new();
    for folder in ["objects", "bootstrap"] {
        let mut files: Vec<_> =
            std::fs::read_dir(format!("{FOLDER}/{folder}")).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        for path in files {
            let name = path.file_name().unwrap().to_str().unwrap().trim_end_matches(".json.gz").to_owned();
            let kind = Kind::of_plural(name.trim_start_matches("cache-")).unwrap_or_else(|| panic!("{name}"));
            let list: Value = serde_json::from_str(&unpack(path.to_str().unwrap())).unwrap();
            assert_eq!(list["kind"], format!("{kind}List"));
            lists.push((format!("{folder}/{name}"), kind, list["items"].as_array().unwrap().clone()));
        }
    }
    lists
}

/// Every object of a kind that is read, in whatever was said over the wire: where, and the JSON.
fn said() -> Vec<(String, Kind, Value)> {
    let mut said = Vec::new();
    for exchange in exchanges() {
        let place = exchange["file"].as_str().unwrap().to_owned();
        gather(&place, &exchange["object"], &mut said);
        gather_both(&place, &exchange, &mut said);
    }
    for (at, exchange) in lines("requests.jsonl.gz").iter().enumerate() {
        gather_both(&format!("requests.jsonl:{}", at + 1), exchange, &mut said);
    }
    said
}

/// The answer, and the request unless it was refused: some were wrong on purpose.
fn gather_both(place: &str, exchange: &Value, said: &mut Vec<(String, Kind, Value)>) {
    gather(place, &exchange["response"]["body"], said);
    if exchange["response"]["status"].as_u64() < Some(300) {
        gather(place, &exchange["request"]["body"], said);
    }
}

fn gather(place: &str, body: &Value, said: &mut Vec<(String, Kind, Value)>) {
    let text = |field: &str| body[field].as_str().unwrap_or_default();
    if let Some(kind) = Kind::of(text("apiVersion"), text("kind")) {
        said.push((place.to_owned(), kind, body.clone()));
    } else if let Some(kind) = text("kind").strip_suffix("List").and_then(|kind| Kind::of(text("apiVersion"), kind)) {
        said.extend(body["items"].as_array().unwrap().iter().map(|item| (place.to_owned(), kind, item.clone())));
    }
    for line in body.as_array().into_iter().flatten().filter_map(Value::as_str) {
        let event: Value = serde_json::from_str(line).unwrap();
        gather(place, &event["object"], said);
    }
}

/// All objects that there are.
fn everything() -> Vec<(String, Kind, Value)> {
    let listed = lists()
        .into_iter()
        .flat_map(|(place, kind, items)| items.into_iter().map(move |item| (place.clone(), kind, item)));
    listed.chain(said()).collect()
}

fn read(place: &str, kind: Kind, json: &Value) -> Object {
    Object::from_json(kind, &json.to_string()).unwrap_or_else(|error| panic!("{place}: {error}"))
}

/// Without empty values; numbers by their value.
fn normal(value: &Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(_) => false,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), normal(value)));
            Value::Object(fields.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(normal).collect()),
        Value::Number(number) => json!(number.as_f64()),
        other => other.clone(),
    }
}

#[test]
fn every_list_is_read_with_the_right_type() {
    let lists = lists();
    assert_eq!(lists.len(), 14);
    for (place, kind, items) in lists {
        assert!(!items.is_empty(), "{place}");
        for item in items {
            let object = read(&place, kind, &item);
            assert_eq!(object.kind(), kind);
            let key = object.key();
            assert_eq!(item["metadata"]["annotations"]["kcp.io/cluster"], key.cluster.as_str(), "{place}");
            assert_eq!(item["metadata"]["name"], key.name.as_str(), "{place}");
            if item["kind"].is_string() {
                assert_eq!(Object::from_typed_json(&item.to_string()).unwrap(), object, "{place}");
            } else {
                assert_eq!(kind, Kind::Crd, "{place}: only CRDs come without their kind");
            }
        }
    }
}

#[test]
fn everything_that_is_said_over_the_wire_is_read() {
    let mut count = BTreeMap::new();
    for (place, kind, json) in said() {
        let object = read(&place, kind, &json);
        *count.entry(kind).or_insert(0) += 1;
        let back: Object = serde_json::from_value(serde_json::to_value(&object).unwrap()).unwrap();
        assert_eq!(back, object, "{place}");
    }
    assert!(count.len() >= 5 && count.values().all(|count| *count >= 3), "{count:?}");
    assert!(count[&Kind::ApiBinding] >= 180 && count[&Kind::Crd] >= 50, "{count:?}");
}

#[test]
fn watch_events_are_objects_bookmarks_with_nulls_or_errors() {
    let mut count = BTreeMap::new();
    for exchange in exchanges() {
        for line in exchange["response"]["body"].as_array().into_iter().flatten() {
            let event: Value = serde_json::from_str(line.as_str().unwrap()).unwrap();
            // A watch that is refused answers with the status alone.
            let sort = event["type"].as_str().unwrap_or("REFUSED");
            let object = if sort == "REFUSED" { &event } else { &event["object"] };
            *count.entry(sort.to_owned()).or_insert(0) += 1;
            if ["ERROR", "REFUSED"].contains(&sort) {
                let status: Status = serde_json::from_value(object.clone()).unwrap();
                assert!(status.code.is_some(), "{status:?}");
                continue;
            }
            let object = Object::from_typed_json(&object.to_string()).unwrap_or_else(|error| panic!("{line}: {error}"));
            let version = object.metadata().resource_version.as_deref().unwrap();
            assert!(version.parse::<u64>().is_ok(), "{version}");
            assert_eq!(object.key().name.is_empty(), sort == "BOOKMARK", "{line}");
        }
    }
    assert!(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"].iter().all(|sort| count[*sort] > 0), "{count:?}");
}

#[test]
fn refusals_are_read_with_their_reason_wait_and_causes() {
    let mut reasons = BTreeMap::new();
    for exchange in exchanges().iter().chain(&lines("requests.jsonl.gz")) {
        let body = &exchange["response"]["body"];
        if body["kind"] == "Status" {
            let status: Status = serde_json::from_value(body.clone()).unwrap();
            assert_eq!(exchange["response"]["status"], json!(status.code), "{}", exchange["file"]);
            let outcome: Outcome = serde_json::from_value(json!({"refused": body})).unwrap();
            assert!(outcome.to_string().starts_with("refused: "), "{outcome}");
            *reasons.entry(status.reason.unwrap_or_default()).or_insert(0) += 1;
        }
    }
    for reason in ["NotFound", "Conflict", "AlreadyExists", "Invalid", "Forbidden", "TooManyRequests"] {
        assert!(reasons.contains_key(reason), "{reason}: {reasons:?}");
    }
}

#[test]
fn a_status_is_written_as_it_was_read_unknown_fields_included() {
    let mut count = 0;
    for (place, kind, json) in everything() {
        if let Object::ApiBinding(binding) = read(&place, kind, &json)
            && json["status"].is_object()
        {
            count += 1;
            let written = serde_json::to_value(&binding.status).unwrap();
            assert_eq!(normal(&written), normal(&json["status"]), "{place}: {}", binding.key());
            let mut more = json.clone();
            more["status"]["further"] = json!({"field": [null, 1.5]});
            for entry in more["status"]["boundResources"].as_array_mut().into_iter().flatten() {
                entry["schema"]["further"] = json!("x");
            }
            let Object::ApiBinding(binding) = read(&place, kind, &more) else { panic!() };
            let written = serde_json::to_value(&binding.status).unwrap();
            assert_eq!(normal(&written), normal(&more["status"]), "{place}: {}", binding.key());
        }
    }
    assert!(count > 150, "{count}");
}

/// The recorded schemas by uid.
fn schemas() -> BTreeMap<String, Value> {
    let schemas = lists().into_iter().filter(|(_, kind, _)| *kind == Kind::ApiResourceSchema);
    let items = schemas.flat_map(|(_, _, items)| items);
    items.map(|item| (item["metadata"]["uid"].as_str().unwrap().to_owned(), item)).collect()
}

/// The body that creates the bound CRD of a recorded schema.
fn bound_crd(schema: &Value) -> Value {
    let object = read("schema", Kind::ApiResourceSchema, schema);
    let mut snapshot = Snapshot::new(Layout::Single);
    snapshot.apply(Change::put(object.clone()));
    let known = snapshot.schema(&object.key().cluster, &object.key().name).unwrap();
    known.crd.as_ref().unwrap_or_else(|why| panic!("{}: {why}", object.key())).to_value()
}

/// Without what the real controller's client fills in before it sends, and any server would.
fn undefaulted(body: &Value) -> Value {
    let mut body = body.clone();
    body.as_object_mut().unwrap().remove("status");
    if body["spec"]["versions"].as_array().unwrap().len() == 1 {
        assert_eq!(body["spec"].as_object_mut().unwrap().remove("conversion"), Some(json!({"strategy": "None"})));
    }
    body
}

#[test]
fn the_bound_crds_of_recorded_schemas_are_those_that_the_real_controller_created() {
    let schemas = schemas();
    let (mut names, mut lost) = (std::collections::BTreeSet::new(), 0);
    for exchange in lines("requests.jsonl.gz") {
        let (request, body) = (&exchange["request"], &exchange["request"]["body"]);
        if request["verb"] != "create" || body["kind"] != "CustomResourceDefinition" {
            continue;
        }
        assert_eq!(exchange["cluster"], "system:bound-crds");
        let name = body["metadata"]["name"].as_str().unwrap();
        let Some(schema) = schemas.get(name) else {
            lost += 1;
            continue;
        };
        assert_eq!(normal(&bound_crd(schema)), normal(&undefaulted(body)), "{name}");
        names.insert(name.to_owned());
    }
    assert!(names.len() >= 15, "{names:?} compared, {lost} of schemas that were not recorded");
}

#[test]
fn every_recorded_schema_has_a_bound_crd_and_it_is_a_whole_one() {
    for (uid, schema) in schemas() {
        let body = bound_crd(&schema);
        assert_eq!(body["metadata"]["name"], uid.as_str());
        let crd: CustomResourceDefinition = serde_json::from_value(body.clone()).unwrap();
        assert_eq!(normal(&serde_json::to_value(&crd).unwrap()), normal(&body), "{uid}: nothing is lost");
    }
}

#[test]
fn a_crd_that_is_read_whole_says_the_same_as_one_that_is_skimmed() {
    let mut count = 0;
    for (place, kind, json) in everything().into_iter().filter(|(_, kind, _)| *kind == Kind::Crd) {
        // The library's own type does not take the nulls that servers send.
        if let (Ok(whole), Object::Crd(skimmed)) =
            (serde_json::from_value::<CustomResourceDefinition>(json.clone()), read(&place, kind, &json))
        {
            count += 1;
            assert_eq!(ObservedCrd::from(whole), skimmed, "{place}");
        }
    }
    assert!(count >= 40, "{count}");
}

#[test]
fn a_recorded_world_fits_into_a_snapshot() {
    let mut snapshot = Snapshot::new(Layout::Single);
    let (mut bindings, mut lists) = (0, lists());
    lists.retain(|(place, _, _)| place.starts_with("objects/"));
    for (place, kind, items) in &lists {
        for item in items {
            let object = read(place, *kind, item);
            let global = place.contains("cache-");
            bindings += usize::from(*kind == Kind::ApiBinding);
            snapshot.apply(if global { Change::put_global(object) } else { Change::put(object) });
        }
    }
    assert_eq!(snapshot.bindings().len(), bindings);
    for (place, kind, items) in &lists {
        for item in items {
            let object = read(place, *kind, item);
            let change = if place.contains("cache-") { Change::put_global(object) } else { Change::put(object) };
            assert!(snapshot.apply(change).is_empty(), "{place}: doubled");
        }
    }
}

#[test]
fn a_recorded_binding_that_is_broken_is_told_by_kind_object_and_field() {
    let (_, _, items) = lists().into_iter().find(|(place, _, _)| place == "objects/apibindings").unwrap();
    let mut item = items.into_iter().find(|item| item["status"]["boundResources"][0].is_object()).unwrap();
    let key = format!(
        "{}|{}",
        item["metadata"]["annotations"]["kcp.io/cluster"].as_str().unwrap(),
        item["metadata"]["name"].as_str().unwrap()
    );
    item["status"]["boundResources"][0]["schema"]["UID"] = json!(7);
    let problem = Object::from_typed_json(&item.to_string()).unwrap_err().to_string();
    let expect =
        format!("APIBinding {key}: status.boundResources[0].schema.UID: invalid type: integer `7`, expected a string");
    assert_eq!(problem, expect);
}

// With kube.

#[test]
fn kube_knows_the_paths_of_our_kinds() {
    fn path<K: kube::Resource<DynamicType = ()>>() -> String {
        K::url_path(&(), None)
    }
    assert_eq!(path::<ApiBinding>(), "/apis/apis.kcp.io/v1alpha2/apibindings");
    assert_eq!(path::<ApiExport>(), "/apis/apis.kcp.io/v1alpha2/apiexports");
    assert_eq!(path::<ApiResourceSchema>(), "/apis/apis.kcp.io/v1alpha1/apiresourceschemas");
    assert_eq!(path::<apibinding::api::ApiConversion>(), "/apis/apis.kcp.io/v1alpha1/apiconversions");
    assert_eq!(path::<LogicalCluster>(), "/apis/core.kcp.io/v1alpha1/logicalclusters");
    assert_eq!(path::<ObservedCrd>(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
}

/// Never run: that it compiles is the test.
#[allow(dead_code)]
async fn kube_gets_and_lists_our_kinds(client: kube::Client) -> kube::Result<Option<String>> {
    let bindings: kube::Api<ApiBinding> = kube::Api::all(client.clone());
    let exports: kube::Api<ApiExport> = kube::Api::all(client);
    let one = bindings.get("geese").await?;
    let all = exports.list(&kube::api::ListParams::default()).await?;
    let patch = kube::api::Patch::Apply(json!({"status": one.status}));
    let params = kube::api::PatchParams::apply(apibinding::FIELD_MANAGER).force();
    bindings.patch_status("geese", &params, &patch).await?;
    Ok(all.items.into_iter().next().and_then(|export| export.metadata.name))
}

#[test]
fn a_list_that_kube_reads_has_our_items() {
    let (_, _, items) = lists().into_iter().find(|(place, _, _)| place == "objects/apibindings").unwrap();
    let count = items.len();
    let list = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBindingList", "metadata": {}, "items": items});
    let list: kube::core::ObjectList<ApiBinding> = serde_json::from_value(list).unwrap();
    assert_eq!(list.items.len(), count);
}
