//! Recorded runs of the original, with the deviations of SPEC 9, played through `Pass`; and what it
//! put on its queue, against `wakeup`.
//!
//! `CONFORMANCE_CASES` and `CONFORMANCE_TRIGGERS` name other files of the same form. A failure prints
//! the case's id and a diff; the last line counts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::process::ExitCode;

use apibinding::api::{BindingKey, Kind, Object};
use apibinding::effect::{Effect, Outcome, Patch, Retry};
use apibinding::pass::{Pass, Step};
use apibinding::snapshot::{Change, Layout, Origin, Snapshot};
use apibinding::wakeup::wakeup;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Case {
    id: String,
    #[serde(default)]
    layout: Layout,
    now: String,
    key: String,
    local: BTreeMap<String, Vec<Value>>,
    global: BTreeMap<String, Vec<Value>>,
    #[serde(default)]
    answers: Vec<Answer>,
    expect: Expect,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    verb: String,
    resource: String,
    name: String,
    status: Option<Value>,
    current: Option<Value>,
    #[serde(default)]
    gone: bool,
    #[serde(default)]
    no_answer: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Expect {
    calls: Vec<Value>,
    status: Option<Value>,
    retry: String,
    after: Option<String>,
    retry_after_seconds: Option<u64>,
}

#[derive(Deserialize)]
struct Trigger {
    case: String,
    scope: Origin,
    kind: String,
    object: String,
    keys: Vec<String>,
}

fn object(kind: Kind, value: &Value) -> Object {
    Object::from_json(kind, &value.to_string()).unwrap_or_else(|error| panic!("{error}"))
}

impl Case {
    fn objects(&self) -> impl Iterator<Item = (Origin, Kind, &Value)> {
        let local = self.local.iter().map(|lists| (Origin::Local, lists));
        let global = self.global.iter().map(|lists| (Origin::Global, lists));
        local.chain(global).flat_map(|(origin, (plural, list))| {
            let kind = Kind::of_plural(plural).unwrap();
            list.iter().map(move |value| (origin, kind, value))
        })
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot_of(|_, _| true)
    }

    fn snapshot_without(&self, origin: Origin, kind: Kind, key: &BindingKey) -> Snapshot {
        self.snapshot_of(|found, object| (found, object.kind(), &object.key()) != (origin, kind, key))
    }

    fn snapshot_of(&self, wanted: impl Fn(Origin, &Object) -> bool) -> Snapshot {
        let mut snapshot = Snapshot::new(self.layout);
        snapshot.set_now(self.now.parse().unwrap());
        for (origin, kind, value) in self.objects() {
            let object = object(kind, value);
            if wanted(origin, &object) {
                snapshot.apply(Change::Put { origin, object: Box::new(object) });
            }
        }
        snapshot
    }
}

/// The server of a case: answers in order, objects where no answer is given.
struct Server<'a> {
    case: &'a Case,
    /// By kind, cluster and name.
    objects: BTreeMap<(Kind, String), Value>,
    asked: BTreeMap<(String, String, String), usize>,
    calls: Vec<Value>,
    versions: u32,
}

impl<'a> Server<'a> {
    fn new(case: &'a Case) -> Self {
        let local = case.objects().filter(|(origin, _, _)| *origin == Origin::Local);
        let objects = local.map(|(_, kind, value)| ((kind, object(kind, value).key().to_string()), value.clone()));
        Self { case, objects: objects.collect(), asked: BTreeMap::new(), calls: Vec::new(), versions: 1_000_000 }
    }

    fn execute(&mut self, effect: &Effect) -> Outcome {
        let (verb, kind, key) = match effect {
            Effect::CreateCrd(create) => {
                ("create", Kind::Crd, BindingKey::new(create.cluster.clone(), create.name.clone()))
            }
            Effect::ReadApiBinding(key) => ("get", Kind::ApiBinding, key.clone()),
            Effect::ReadCrd(read) => ("get", Kind::Crd, BindingKey::new(read.cluster.clone(), read.name.clone())),
            Effect::PatchLogicalCluster(patch) => ("apply", Kind::LogicalCluster, patch_key(patch)),
            Effect::PatchApiBindingStatus(patch) => ("apply", Kind::ApiBinding, patch_key(patch)),
            other => panic!("no effect to execute: {other}"),
        };
        let mut call = json!({"verb": verb, "cluster": key.cluster, "resource": kind.plural(), "name": key.name});
        let body = match effect {
            Effect::CreateCrd(create) => {
                let mut body = create.body.to_value();
                body.as_object_mut().unwrap().retain(|field, _| field != "apiVersion" && field != "kind");
                Some(body)
            }
            Effect::PatchLogicalCluster(patch) | Effect::PatchApiBindingStatus(patch) => {
                let mut body = patch.body.to_value();
                let precondition = body["metadata"].as_object_mut().unwrap().remove("resourceVersion");
                call["fieldManager"] = json!(patch.field_manager);
                call["force"] = json!(patch.force);
                if !patch.subresource.is_empty() {
                    call["subresource"] = json!(patch.subresource);
                }
                if let Some(version) = precondition {
                    assert_eq!(version, json!(patch.resource_version));
                    call["precondition"] = json!({"resourceVersion": version});
                }
                Some(body)
            }
            _ => None,
        };
        if let Some(body) = &body {
            call["body"] = body.clone();
        }
        self.calls.push(call);
        let (answer, key) = (self.answer(verb, kind, &key), (kind, key.to_string()));
        match answer {
            None => self.succeed(verb, key, body),
            Some(answer) if answer.no_answer => Outcome::NoAnswer("connection lost".into()),
            Some(Answer { status: None, current, .. }) => Outcome::done(object(kind, &current.unwrap())),
            Some(Answer { status: Some(status), current, gone, .. }) => {
                let is_conflict = status["reason"] == "Conflict";
                let status = Box::new(serde_json::from_value(status).unwrap());
                if !is_conflict {
                    return Outcome::Refused(status);
                }
                match current {
                    Some(current) => self.objects.insert(key.clone(), current),
                    None if gone => self.objects.remove(&key),
                    None => None,
                };
                let current = self.objects.get(&key).map(|current| Box::new(object(kind, current)));
                Outcome::Conflict { status, current }
            }
        }
    }

    /// The nth call of a verb, resource and name gets the nth answer that names it.
    fn answer(&mut self, verb: &str, kind: Kind, key: &BindingKey) -> Option<Answer> {
        let asked = (verb.to_owned(), kind.plural().to_owned(), key.name.to_string());
        let mut named = self
            .case
            .answers
            .iter()
            .filter(|answer| (&answer.verb, &answer.resource, &answer.name) == (&asked.0, &asked.1, &asked.2));
        let nth = self.asked.entry(asked.clone()).or_default();
        *nth += 1;
        named.nth(*nth - 1).cloned()
    }

    fn succeed(&mut self, verb: &str, key: (Kind, String), body: Option<Value>) -> Outcome {
        let kind = key.0;
        let not_found = json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404});
        match (verb, body) {
            ("create", Some(mut body)) => {
                body["metadata"]["uid"] = json!(format!("created-{}", key.1));
                self.objects.insert(key.clone(), body);
            }
            ("apply", Some(body)) => {
                let object = self.objects.entry(key.clone()).or_insert_with(|| json!({"metadata": body["metadata"]}));
                if kind == Kind::LogicalCluster {
                    self.versions += 1;
                    object["metadata"]["resourceVersion"] = json!(self.versions.to_string());
                    for (name, text) in body["metadata"]["annotations"].as_object().unwrap() {
                        object["metadata"]["annotations"][name] = text.clone();
                    }
                } else {
                    object["status"] = body["status"].clone();
                }
            }
            _ => {}
        }
        match self.objects.get(&key) {
            Some(found) => Outcome::done(object(kind, found)),
            None => Outcome::Refused(Box::new(serde_json::from_value(not_found).unwrap())),
        }
    }
}

fn patch_key(patch: &Patch) -> BindingKey {
    BindingKey::new(patch.cluster.clone(), patch.name.clone())
}

/// Runs a case; the difference between what was expected and what came, if there is one.
fn run(case: &Case) -> Option<String> {
    let mut snapshot = case.snapshot();
    let mut server = Server::new(case);
    let mut pass = Pass::new(case.key.parse().unwrap());
    let retry = loop {
        match pass.poll(&snapshot) {
            Step::Act(effect) => {
                let outcome = server.execute(&effect);
                for change in pass.observe(outcome) {
                    snapshot.apply(change);
                }
            }
            Step::Done(retry) => break retry,
            step => panic!("unknown step {step:?}"),
        }
        assert!(server.calls.len() < 500, "{}: no end", case.id);
    };
    let mut actual = json!({"calls": server.calls, "status": pass.status()});
    match retry {
        Retry::Forget => actual["retry"] = json!("none"),
        Retry::Now => actual["retry"] = json!("now"),
        Retry::After(time) => {
            actual["retry"] = json!("after");
            actual["after"] = json!(time.to_string());
        }
        Retry::Backoff { at_least } => {
            actual["retry"] = json!("backoff");
            actual["retryAfterSeconds"] = json!(at_least.map(|wait| wait.as_secs()));
        }
        retry => panic!("unknown retry {retry:?}"),
    }
    let expect = &case.expect;
    let expected = json!({
        "calls": expect.calls, "status": expect.status, "retry": expect.retry,
        "after": expect.after, "retryAfterSeconds": expect.retry_after_seconds,
    });
    let (expected, actual) = (normal(expected), normal(actual));
    (expected != actual).then(|| {
        let pretty = |value: &Value| format!("{value:#}\n");
        let (expected, actual) = (pretty(&expected), pretty(&actual));
        let diff = similar::TextDiff::from_lines(&expected, &actual);
        diff.unified_diff().context_radius(4).header("expected", "actual").to_string()
    })
}

/// Adds the object of a trigger to the world of its case; the keys that were missed, if any.
fn woken(case: &Case, trigger: &Trigger) -> Option<String> {
    let kind = Kind::of_plural(&trigger.kind).unwrap();
    let key: BindingKey = trigger.object.parse().unwrap();
    let found = case.objects().find(|(origin, kind, value)| {
        (*origin, kind.plural()) == (trigger.scope, trigger.kind.as_str()) && object(*kind, value).key() == key
    });
    let added = match found {
        Some((_, _, value)) => object(kind, value),
        None if kind == Kind::ApiConversion => {
            let metadata = json!({"name": key.name, "annotations": {"kcp.io/cluster": key.cluster}});
            object(kind, &json!({"metadata": metadata}))
        }
        None => return Some("there is no such object".into()),
    };
    let mut snapshot = case.snapshot_without(trigger.scope, kind, &key);
    let applied = snapshot.apply(Change::Put { origin: trigger.scope, object: Box::new(added) });
    let woken: BTreeSet<String> = wakeup(&snapshot, &applied).iter().map(ToString::to_string).collect();
    let missed: Vec<&String> = trigger.keys.iter().filter(|key| !woken.contains(*key)).collect();
    (!missed.is_empty()).then(|| format!("not woken: {missed:?}\nwoken: {woken:?}"))
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Local => "local",
        Origin::Global => "global",
    }
}

/// Without what is not compared: empty lists and maps, how numbers are written, our own words
/// for why an annotation cannot be read (D25).
fn normal(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, normal(value)));
            let is_empty = |value: &Value| {
                value.is_null()
                    || value.as_array().is_some_and(Vec::is_empty)
                    || value.as_object().is_some_and(|o| o.is_empty())
            };
            Value::Object(fields.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(normal).collect()),
        Value::Number(number) => number.as_f64().map_or(Value::Number(number), |number| json!(number)),
        Value::String(text) => {
            let opaque = "failed to unmarshal ResourceBindings annotation: ";
            match text.find(opaque) {
                Some(start) => json!(&text[..start + opaque.len()]),
                None => Value::String(text),
            }
        }
        other => other,
    }
}

fn lines<T: for<'de> Deserialize<'de>>(variable: &str, packed: &[u8]) -> Vec<T> {
    let mut text = String::new();
    match std::env::var_os(variable) {
        Some(path) => {
            text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{variable}: {path:?}: {error}"));
        }
        None => {
            flate2::read::GzDecoder::new(packed).read_to_string(&mut text).unwrap();
        }
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{variable}: line {}: {error}", at + 1))
        })
        .collect()
}

fn main() -> ExitCode {
    let cases: Vec<Case> = lines("CONFORMANCE_CASES", include_bytes!("data/cases.jsonl.gz"));
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let (mut passed, mut failed) = (0, 0);
    let mut check = |id: &str, problem: Option<String>| match problem {
        None => passed += 1,
        Some(problem) => {
            failed += 1;
            println!("{id}: FAILED\n{problem}");
        }
    };
    let wanted = |id: &str| only.as_deref().is_none_or(|only| id == only);
    for case in cases.iter().filter(|case| wanted(&case.id)) {
        check(&case.id, run(case));
    }
    let triggers: Vec<Trigger> = lines("CONFORMANCE_TRIGGERS", include_bytes!("data/triggers.jsonl.gz"));
    for trigger in triggers.iter().filter(|trigger| wanted(&trigger.case)) {
        let id = format!("{} {} {} {}", trigger.case, origin(trigger.scope), trigger.kind, trigger.object);
        match cases.iter().find(|case| case.id == trigger.case) {
            Some(case) => check(&id, woken(case, trigger)),
            None => check(&id, Some("there is no such case".into())),
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
