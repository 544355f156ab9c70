//! What is sent is what kcp's own controller sends, but for the deviations.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use apibinding::api::BindingKey;
use apibinding::effect::{Effect, Outcome};
use apibinding::shell::Controller;
use serde_json::{Value, json};

use crate::stage::{Actor, client, rest};
use crate::worlds::World;

/// A request of the original, to one logical cluster.
struct Recorded {
    cluster: String,
    verb: String,
    path: String,
    body: Value,
}

fn recorded() -> Vec<Recorded> {
    let file = std::fs::File::open("tests/data/kcp/requests.jsonl.gz").unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let requests = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let field = |value: &Value| value.as_str().unwrap().to_owned();
        let request = &line["request"];
        Recorded {
            cluster: field(&line["cluster"]),
            verb: field(&request["verb"]),
            path: field(&request["path"]),
            body: request["body"].clone(),
        }
    });
    requests.collect()
}

/// A path without the name of a binding.
fn shape(path: &str) -> String {
    let Some((before, rest)) = path.split_once("/apibindings/") else { return path.to_owned() };
    format!("{before}/apibindings/NAME{}", rest.find('/').map_or("", |end| &rest[end..]))
}

/// What a status says, without times, and without uids and identities, which are others in each kcp.
fn said(body: &Value) -> Value {
    let status = &body["status"];
    let conditions: BTreeMap<&str, Value> = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| (one["type"].as_str().unwrap(), json!([one["status"], one["reason"], one["message"]])))
        .collect();
    let bound: BTreeSet<String> = status["boundResources"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| json!([one["group"], one["resource"], one["schema"]["name"], one["storageVersions"]]).to_string())
        .collect();
    json!({
        "phase": status["phase"],
        "cluster": status["apiExportClusterName"],
        "conditions": conditions,
        "bound": bound,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kcp_that_starts_is_asked_for_what_the_original_asks_for() {
    let world = World::bootstrap();
    let front = world.front();
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout)).await;
    rest(&front, &[&actor]).await;
    let recorded = recorded();

    // The same paths and parameters.
    let theirs: BTreeSet<_> = recorded.iter().map(|one| (one.verb.clone(), shape(&one.path))).collect();
    let log = front.log();
    let writes = log.iter().map(|entry| &entry.ask).filter(|ask| ["create", "patch"].contains(&ask.verb));
    let ours: BTreeSet<_> = writes
        .map(|ask| {
            let path = ask.path.split_once("/apis/").unwrap().1;
            let query = if ask.query.is_empty() { String::new() } else { format!("?{}", ask.query) };
            (ask.verb.to_owned(), shape(&format!("/apis/{path}{query}")))
        })
        .collect();
    assert_eq!(ours, theirs);

    // The same beginning and the same end of each binding.
    let mut statuses: BTreeMap<BindingKey, Vec<Value>> = BTreeMap::new();
    let mut specs = BTreeMap::new();
    for (key, effect, outcome) in actor.done() {
        match (effect, outcome) {
            (Effect::PatchApiBindingStatus(patch), Outcome::Done(_)) => {
                statuses.entry(key).or_default().push(said(&patch.body.to_value()));
            }
            (Effect::CreateCrd(create), Outcome::Done(_)) => {
                specs.insert(create.schema_name.to_string(), create.body.to_value()["spec"].clone());
            }
            _ => {}
        }
    }
    assert_eq!(statuses.len(), 8);
    for (key, ours) in &statuses {
        let path = format!("/apibindings/{}/status", key.name);
        let theirs = recorded.iter().filter(|one| one.cluster == key.cluster.as_str() && one.path.contains(&path));
        let theirs: Vec<Value> = theirs.map(|one| said(&one.body)).collect();
        assert_eq!(ours.first().unwrap(), theirs.first().unwrap(), "{key}: how it begins");
        assert_eq!(ours.last().unwrap(), theirs.last().unwrap(), "{key}: how it ends");
    }

    // The same CRDs.
    let mut same = 0;
    for one in recorded.iter().filter(|one| one.verb == "create") {
        let name = one.body.pointer("/metadata/annotations/apis.kcp.io~1schema-name").unwrap().as_str().unwrap();
        if let Some(spec) = specs.get(name) {
            let mut theirs = one.body["spec"].clone();
            if theirs["conversion"] == json!({"strategy": "None"}) {
                // What a server makes of none.
                theirs.as_object_mut().unwrap().remove("conversion");
            }
            assert!(&theirs == spec, "the CRD of {name}");
            same += 1;
        }
    }
    assert!(same >= specs.len(), "{same} of {}", specs.len());
    actor.stop().await;
}
