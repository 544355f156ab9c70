//! Dumps of a real kcp (`tests/data/kcp`), at rest under the original controller, and just started.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use apibinding::api::{BindingKey, Object};
use apibinding::effect::{Effect, Outcome};
use apibinding::pass::settle;
use apibinding::snapshot::{Change, Layout, Origin, Snapshot};
use serde_json::{Value, json};

use super::run::{Folder, run};

const NOW: &str = "2026-11-30T20:30:00Z";

fn unpack(path: &str) -> String {
    let packed = std::fs::read(format!("{}/tests/data/kcp/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*packed).read_to_string(&mut text).unwrap();
    text
}

/// The lists of a dump: name and text.
fn lists(name: &str) -> BTreeMap<String, String> {
    let folder = format!("{}/tests/data/kcp/{name}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    files.map(|file| (file.trim_end_matches(".gz").to_owned(), unpack(&format!("{name}/{file}")))).collect()
}

/// A dump as files, with those from the cache server apart.
fn files(name: &str) -> (Folder, Vec<String>) {
    let folder = Folder::new(name);
    let paths = lists(name).into_iter().map(|(file, text)| (file.starts_with("cache-"), folder.write(&file, &text)));
    let global = paths.filter(|(is_global, _)| *is_global).map(|(_, path)| path).collect();
    (folder, global)
}

fn plan(name: &str, more: &[&str]) -> (i32, Value) {
    let (folder, global) = files(name);
    let mut args: Vec<String> = ["plan", "-o", "json", "--now", NOW, "-f", &folder.path()].map(Into::into).into();
    args.extend(more.iter().map(ToString::to_string));
    if !global.is_empty() {
        args.push("--global".into());
        args.extend(global);
    }
    let plan = run(&args);
    assert_eq!(plan.err, "");
    (plan.code, plan.json())
}

fn conditions(status: &Value) -> BTreeMap<&str, &Value> {
    let conditions = status["conditions"].as_array().unwrap().iter();
    conditions.map(|condition| (condition["type"].as_str().unwrap(), condition)).collect()
}

/// The conditions that differ, with the messages before and after.
fn changes<'a>(before: &'a Value, after: &'a Value) -> BTreeMap<&'a str, (&'a str, &'a str)> {
    let (before, after) = (conditions(before), conditions(after));
    let message =
        |condition: Option<&&'a Value>| condition.map_or("", |found| found["message"].as_str().unwrap_or_default());
    let types: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    let differ = types.into_iter().filter(|kind| before.get(kind) != after.get(kind));
    differ.map(|kind| (kind, (message(before.get(kind)), message(after.get(kind))))).collect()
}

const FAILED: [&str; 3] = ["BindingUpToDate", "InitialBindingCompleted", "Ready"];

/// What the original brought to rest has nothing to do here, but for these. Nothing but their
/// conditions changes.
#[test]
fn what_the_original_brought_to_rest() {
    let (code, plan) = plan("objects", &[]);
    assert_eq!(code, 2);
    let bindings = plan["bindings"].as_array().unwrap();
    assert_eq!(bindings.len(), 28);
    let busy = bindings.iter().filter(|binding| binding["effects"] != json!([]));
    let busy: BTreeMap<&str, &Value> =
        busy.map(|binding| (binding["binding"]["name"].as_str().unwrap(), binding)).collect();
    assert_eq!(busy.keys().copied().collect::<Vec<_>>(), ["badhook", "badhook2", "farm2", "farm3", "sky"]);
    for binding in busy.values() {
        let [mut before, mut after] = ["before", "after"].map(|when| binding["status"][when].clone());
        for status in [&mut before, &mut after] {
            status.as_object_mut().unwrap().remove("conditions");
        }
        assert_eq!(before, after);
        assert_eq!(binding["retry"], "forget");
    }
    let changes = |name: &str| changes(&busy[name]["status"]["before"], &busy[name]["status"]["after"]);

    // D17: the list of what is held is told in words.
    for (name, before, after) in [
        ("farm2", "map[sheep.farm.test:{farm false}]", r#"sheep.farm.test (APIBinding "farm")"#),
        ("sky", "map[kites.sky.test:{ true}]", "kites.sky.test (CustomResourceDefinition)"),
    ] {
        let text = "Unable to bind APIs because they are bound by other APIBindings or CRDs: ";
        let (before, after) = (format!("{text}{before}"), format!("{text}{after}"));
        assert_eq!(changes(name), FAILED.map(|kind| (kind, (&*before, &*after))).into());
    }
    // D10: the summary is made after a naming conflict, too.
    let conflict = "Unable to bind APIs: naming conflict with APIBinding \"farm\" bound to APIExport root:prov:farm: \
                    spec.names.kind=Sheep is forbidden";
    let waiting = "Waiting for API(s) to be established: v1.ewes.farm.test, v1.hens.farm.test";
    assert_eq!(changes("farm3"), [("Ready", (waiting, conflict))].into());
    // No deviation: a CRD that was refused is tried once in every pass. A plan takes it to succeed;
    // see below for what comes of it.
    for name in ["badhook", "badhook2"] {
        let effects = busy[name]["effects"].as_array().unwrap();
        let kinds: Vec<_> = effects.iter().flat_map(|effect| effect.as_object().unwrap().keys()).collect();
        assert_eq!(kinds, ["createCrd", "patchApiBindingStatus"]);
    }
}

/// Where the CRD is refused as it was then, the causes are told in words (D17), and the export, which
/// was found, is told to be valid (D11).
#[test]
fn what_the_server_refuses_is_refused_again() {
    let mut snapshot = Snapshot::new(Layout::Single);
    snapshot.set_now(NOW.parse().unwrap());
    let mut objects = Vec::new();
    for (file, text) in lists("objects") {
        let list: Value = serde_json::from_str(&text).unwrap();
        let kind = list["kind"].as_str().unwrap().trim_end_matches("List");
        let origin = if file.starts_with("cache-") { Origin::Global } else { Origin::Local };
        for item in list["items"].as_array().unwrap() {
            let mut item = item.clone();
            item["kind"] = kind.into();
            item["apiVersion"] = list["apiVersion"].clone();
            let object = Object::from_typed_json(&item.to_string()).unwrap();
            objects.push(object.clone());
            snapshot.apply(Change::Put { origin, object: Box::new(object) });
        }
    }
    let requests = unpack("requests.jsonl.gz");
    let exchanges = requests.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let refused: BTreeMap<String, Value> = exchanges
        .filter(|exchange| exchange["response"]["status"] == 422)
        .map(|exchange| {
            (
                exchange["request"]["body"]["metadata"]["name"].as_str().unwrap().into(),
                exchange["response"]["body"].clone(),
            )
        })
        .collect();

    for (name, causes) in [
        (
            "badhook",
            r#"spec.conversion.conversionReviewVersions: Invalid value: ["v9"]: must include at least one of v1, v1beta1"#,
        ),
        (
            "badhook2",
            "spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; \
             desired format: https://host[/path]; spec.conversion.conversionReviewVersions: Invalid value: [\"v9\"]: must \
             include at least one of v1, v1beta1",
        ),
    ] {
        let key = BindingKey::new("12cw3b6gdd4isl8m", name);
        let before = serde_json::to_value(&snapshot.binding(&key).unwrap().status).unwrap();
        let mut after = Value::Null;
        settle(&mut snapshot.clone(), key.clone(), |effect| match effect {
            Effect::CreateCrd(create) => {
                Outcome::Refused(serde_json::from_value(refused[create.name.as_str()].clone()).unwrap())
            }
            Effect::PatchApiBindingStatus(patch) => {
                after = patch.body.to_value()["status"].clone();
                let is_it = |object: &&Object| matches!(object, Object::ApiBinding(_)) && object.key() == key;
                Outcome::done(objects.iter().find(is_it).unwrap().clone())
            }
            other => panic!("{other}"),
        });
        let found = changes(&before, &after);
        assert_eq!(
            found.keys().copied().collect::<Vec<_>>(),
            ["APIExportValid", FAILED[0], FAILED[1], FAILED[2]],
            "D11"
        );
        let told = |text: &str| text.split_once(" is invalid: ").map(|(_, causes)| causes.to_owned());
        for kind in FAILED {
            let (before, after) = found[kind];
            assert!(told(before).unwrap().starts_with("[{FieldValueInvalid "), "{before}");
            assert_eq!(told(after).as_deref(), Some(causes), "D17");
        }
    }
}

/// Drops what says nothing: nulls, and empty texts, lists and maps.
/// Why the bindings of the dump that are not bound are not, as they were set up.
#[test]
fn explain_names_the_true_cause() {
    let (folder, global) = files("objects");
    let ask = |binding: &str| {
        let mut args: Vec<String> =
            ["explain", "--now", NOW, "--layout", "single", "-f", &folder.path()].map(Into::into).into();
        args.extend(["--global".to_owned()].into_iter().chain(global.iter().cloned()));
        args.push(binding.into());
        run(&args)
    };
    for (binding, cause) in [
        ("root:cons/farm2", "✗ lock: held by APIBinding `farm`"),
        (
            "root:cons/farm3",
            "✗ names: naming conflict with APIBinding \"farm\" bound to APIExport root:prov:farm: spec.names.kind=Sheep",
        ),
        ("root:mix/sky", "✗ lock: held by a CustomResourceDefinition of the workspace"),
        ("root:mix/badhook", "must include at least one of v1, v1beta1"),
        ("root:mix/badhook2", "'https' is the only allowed URL scheme"),
        ("root:mix/badtwo", "|v1.twos.bad.test: not found"),
        ("root:mix/ghost", "|v1.ghosts.bad.test: not found"),
        ("root:cons/lost", "✗ export `nothere` at 2e2998xln4qwlca7: not found"),
        ("root:cons/lost-root", "✗ export `nothere` at root: not found"),
        ("root:cons/brief", "✗ export `brief` at root:prov: not found"),
    ] {
        let told = ask(binding);
        assert_eq!(told.code, 2, "{binding}: {}", told.err);
        assert!(told.out.contains(cause), "{binding}: {cause}: {}", told.out);
        assert!(told.out.contains("waits for ") && told.out.contains("cure: "), "{binding}: {}", told.out);
    }
    let bound = ask("root:cons/farm");
    assert_eq!(bound.code, 0, "{}", bound.out);
    assert!(bound.out.contains("✓ bound"), "{}", bound.out);
}

fn without_empties(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| (name.clone(), without_empties(field)));
            fields.filter(|(_, field)| !is_empty(field)).collect()
        }
        Value::Array(items) => items.iter().map(without_empties).collect(),
        other => other.clone(),
    }
}

fn is_empty(value: &Value) -> bool {
    [Value::Null, json!(""), json!([]), json!({})].contains(value)
}

/// CRDs by the name of their schema, without their own, which is another in every kcp; and without what
/// the original sends, but a server ignores or would say itself.
fn by_schema(bodies: impl Iterator<Item = Value>) -> BTreeMap<String, Value> {
    let named = bodies.map(|mut body| {
        body["metadata"].as_object_mut().unwrap().remove("name");
        body.as_object_mut().unwrap().remove("status");
        if body["spec"]["conversion"] == json!({"strategy": "None"}) {
            body["spec"].as_object_mut().unwrap().remove("conversion");
        }
        let schema = body["metadata"]["annotations"]["apis.kcp.io/schema-name"].as_str().unwrap().to_owned();
        (schema, without_empties(&body))
    });
    named.collect()
}

#[test]
fn a_kcp_that_has_just_started_is_bound() {
    let (code, settled) = plan("bootstrap", &["--settle"]);
    assert_eq!(code, 2);
    let bindings = settled["bindings"].as_array().unwrap();
    assert_eq!(bindings.len(), 8);
    for binding in bindings {
        assert_eq!(binding["phase"], json!({"before": "", "after": "Bound"}), "{}", binding["binding"]);
    }
    let effects = bindings.iter().flat_map(|binding| binding["effects"].as_array().unwrap());
    let created = by_schema(effects.filter_map(|effect| effect.get("createCrd")).map(|create| create["body"].clone()));
    assert_eq!(created.len(), 10);

    let requests = unpack("requests.jsonl.gz");
    let exchanges = requests.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let posts = exchanges
        .filter(|exchange| exchange["request"]["path"].as_str().unwrap().contains("/customresourcedefinitions"));
    let original = by_schema(posts.map(|exchange| exchange["request"]["body"].clone()));
    for (schema, body) in &created {
        pretty_eq(body, &original[schema]);
    }
}

#[track_caller]
fn pretty_eq(left: &Value, right: &Value) {
    let [left, right] = [left, right].map(|value| serde_json::to_string_pretty(value).unwrap());
    assert!(left == right, "{}", similar::TextDiff::from_lines(&left, &right).unified_diff());
}
