//! What is seen of a controller: metrics, probes, what others write, dumps, and what it would do.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apibinding::api::{ApiBinding, ClusterName, Kind, Object};
use apibinding::front::{Fault, Front};
use apibinding::reconcile;
use apibinding::shell::{Controller, Server, dump};
use apibinding::sim::Request;
use apibinding::snapshot::{Change, Layout, Origin, STREAMS, Snapshot};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::stage::{Actor, DEADLINE, asked, assert_quiet, client, metric, rest, until};
use crate::worlds::World;

/// By the name of a metric, of each sample its labels and its value.
type Samples = BTreeMap<String, Vec<(BTreeMap<String, String>, f64)>>;

/// What a text of metrics tells.
fn samples(text: &str) -> Samples {
    let mut samples = BTreeMap::<_, Vec<_>>::new();
    let mut types = BTreeSet::new();
    assert!(text.ends_with("# EOF\n"), "{text}");
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            if let Some(family) = comment.strip_prefix("TYPE ") {
                assert!(types.insert(family.to_owned()), "{family} twice");
            }
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').expect(line);
        let (name, labels) = sample.split_once('{').unwrap_or((sample, "}"));
        let labels = labels.strip_suffix('}').expect(line);
        let labels = labels.split_terminator(',').map(|label| {
            let (name, value) = label.split_once('=').expect(line);
            let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).expect(line);
            (name.to_owned(), value.to_owned())
        });
        samples.entry(name.to_owned()).or_default().push((labels.collect(), value.parse().expect(line)));
    }
    samples
}

fn labels(samples: &Samples, name: &str, label: &str) -> BTreeSet<String> {
    samples[name].iter().map(|(labels, _)| labels[label].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_have_the_names_that_people_know() {
    let world = World::bootstrap();
    let front = world.front();
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout).shard("amber")).await;
    rest(&front, &[&actor]).await;
    let text = actor.handle.metrics();
    let samples = samples(&text);
    let value = |name: &str| samples[name].iter().map(|(_, value)| value).sum::<f64>();
    let bound = &samples["kcp_apibinding_phase"];
    assert_eq!(bound.len(), 1, "{bound:?}");
    assert_eq!((bound[0].0["phase"].as_str(), bound[0].0["shard"].as_str(), bound[0].1), ("Bound", "amber", 8.0));
    assert!(labels(&samples, "kcp_apibinding_condition_status", "condition").contains("Ready"));
    assert_eq!(value("kcp_apibinding_ready_duration_ms_count"), 8.0);
    for (label, name) in [
        ("name", "workqueue_adds_total"),
        ("name", "workqueue_depth"),
        ("name", "workqueue_retries_total"),
        ("name", "workqueue_queue_duration_seconds_count"),
        ("name", "workqueue_work_duration_seconds_count"),
        ("name", "workqueue_unfinished_work_seconds"),
        ("name", "workqueue_longest_running_processor_seconds"),
    ] {
        assert_eq!(labels(&samples, name, label), BTreeSet::from(["kcp-apibinding".to_owned()]), "{name}");
    }
    assert!(value("workqueue_adds_total") >= 8.0);
    assert_eq!(
        (value("workqueue_depth"), value("apibinding_waiting_keys"), value("apibinding_restless_keys")),
        (0.0, 0.0, 0.0)
    );
    assert_eq!((value("apibinding_is_leader"), value("apibinding_lists_are_in")), (1.0, 1.0));
    let created = samples["apibinding_effects_total"]
        .iter()
        .find(|(labels, _)| labels["effect"] == "create_crd" && labels["outcome"] == "done");
    let crds = front.with(|kcp| kcp.list(Origin::Local, Kind::Crd, Some(&ClusterName::BOUND_CRDS.into())).count());
    assert_eq!(created.map(|(_, value)| *value), Some(crds as f64));
    actor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_objects_say_makes_no_labels() {
    let mut world = World::bootstrap();
    for number in 0..50 {
        world.objects.push(json!({
            "apiVersion": "apis.kcp.io/v1alpha2",
            "kind": "APIBinding",
            "metadata": {"name": format!("hostile-{number}"), "annotations": {"kcp.io/cluster": "root"}},
            "spec": {"reference": {"export": {"name": "nothing"}}},
            "status": {
                "phase": format!("Phase{number}\"}}\n"),
                "conditions": [{
                    "type": format!("Type{number}\"}}\n"),
                    "status": format!("Perhaps{number}"),
                    "lastTransitionTime": "2026-06-01T12:00:00Z",
                }],
            },
        }));
    }
    let front = world.front();
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout).dry_run(true)).await;
    rest(&front, &[&actor]).await;
    let samples = samples(&actor.handle.metrics());
    assert!(labels(&samples, "kcp_apibinding_phase", "phase").is_subset(&["", "other"].map(str::to_owned).into()));
    assert!(labels(&samples, "kcp_apibinding_condition_status", "condition").len() <= 7);
    assert!(labels(&samples, "kcp_apibinding_condition_status", "status").len() <= 4);
    actor.stop().await;
}

async fn get(address: SocketAddr, path: &'static str) -> (u16, String) {
    let asked = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    });
    let text = asked.await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_tell_whether_it_is_ready() {
    let world = World::bootstrap();
    let front = world.front();
    let is_away = Arc::new(AtomicBool::new(true));
    let away = is_away.clone();
    front.intercept(move |ask| {
        let strikes = ask.kind == Some(Kind::Crd) && ask.verb == "list" && away.load(Ordering::Relaxed);
        strikes.then(|| Fault::text(503, "starting"))
    });
    let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout).probes(address)).await;
    let address = actor.handle.probes().unwrap();
    until("requests", || front.count(|entry| entry.ask.kind == Some(Kind::Crd)) > 1).await;
    let (code, why) = get(address, "/readyz").await;
    assert_eq!(code, 503);
    assert!(why.contains("customresourcedefinition"), "{why}");
    assert_eq!(get(address, "/healthz").await.0, 200);
    assert!(actor.done().is_empty(), "nothing is done before all is listed");
    is_away.store(false, Ordering::Relaxed);
    rest(&front, &[&actor]).await;
    assert_eq!(get(address, "/readyz").await, (200, "ok\n".into()));
    let (code, text) = get(address, "/metrics").await;
    assert_eq!((code, metric(&text, "apibinding_lists_are_in")), (200, 1));
    samples(&text);
    assert_eq!(get(address, "/nothing").await.0, 404);
    actor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_has_stopped_answers_nobody() {
    let world = World::bootstrap();
    let front = world.front();
    let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout).probes(address)).await;
    let address = actor.handle.probes().unwrap();
    rest(&front, &[&actor]).await;
    let ask = |mut stream: TcpStream| {
        tokio::task::spawn_blocking(move || {
            let mut answer = [0; 512];
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
            let asked = stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n");
            let length = asked.and_then(|()| stream.read(&mut answer)).unwrap_or(0);
            (stream, length)
        })
    };
    // Over a connection that stays open.
    let (stream, length) = ask(TcpStream::connect(address).unwrap()).await.unwrap();
    assert!(length > 0);
    actor.stop().await;
    // A connection closes a moment later.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(ask(stream).await.unwrap().1, 0, "it is ready, though it has stopped");
}

fn write_status(front: &Front, status: &Value) {
    let request = Request::merge(Kind::ApiBinding, "root", "tenancy.kcp.io", json!({"status": status})).of_status();
    front.with(|kcp| kcp.handle(request.managed_by("kcp-apibinding"))).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_else_writes_of_ours_is_counted_once() {
    let world = World::bootstrap();
    let front = world.front();
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout)).await;
    rest(&front, &[&actor]).await;
    assert_eq!(actor.foreign_writes(), 0);
    write_status(&front, &json!({"phase": "Binding"}));
    until("a count", || actor.foreign_writes() > 0).await;
    rest(&front, &[&actor]).await;
    assert_eq!(actor.foreign_writes(), 1);
    // What is not ours may be written by whom it is.
    let note = json!({"metadata": {"annotations": {"example.com/note": "x"}}});
    front.with(|kcp| kcp.handle(Request::merge(Kind::ApiBinding, "root", "tenancy.kcp.io", note.clone()))).unwrap();
    front.with(|kcp| kcp.handle(Request::merge(Kind::LogicalCluster, "root", "cluster", note))).unwrap();
    rest(&front, &[&actor]).await;
    assert_eq!(actor.foreign_writes(), 1);
    actor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_writes_nothing() {
    let world = World::recorded(Layout::Split);
    let front = world.front();
    // The others write as well.
    front.rest().await;
    let version = front.with(|kcp| kcp.version());
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout).dry_run(true)).await;
    rest(&front, &[&actor]).await;
    assert!(asked(&front).iter().all(|asked| asked.contains(" GET ")), "{:?}", asked(&front));
    assert_eq!(front.with(|kcp| kcp.version()), version);
    assert_quiet(&front).await;
    actor.stop().await;
}

/// What a dump tells.
fn read(lists: &[Value], origin: Origin, snapshot: &mut Snapshot) {
    for list in lists {
        let name = list["kind"].as_str().unwrap().strip_suffix("List").unwrap();
        let kind = Kind::of(list["apiVersion"].as_str().unwrap(), name).unwrap();
        let objects = list["items"].as_array().unwrap().iter();
        let objects = objects.map(|object| Object::from_json(kind, &object.to_string()).unwrap()).collect();
        let resource_version = list["metadata"]["resourceVersion"].as_str().unwrap().into();
        snapshot.apply(Change::List { origin, kind, objects, resource_version });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_is_what_the_controller_knows() {
    let world = World::recorded(Layout::Split);
    let front = world.front();
    front.rest().await;
    let server = Server::from(client(&front));
    // Half-way, so that there is something to plan.
    let actor = Actor::start(Controller::new(server.clone()).layout(world.layout).dry_run(true)).await;
    rest(&front, &[&actor]).await;
    let dumped = dump(&server, Some(&server), DEADLINE).await.unwrap();
    assert_eq!(dumped.local.len() + dumped.global.len(), STREAMS.len());
    assert!(!json!(dumped.local).to_string().contains("managedFields"));
    let known = actor.handle.snapshot();
    let mut told = Snapshot::new(world.layout);
    told.set_now(known.now());
    read(&dumped.local, Origin::Local, &mut told);
    read(&dumped.global, Origin::Global, &mut told);
    assert!(told == known);
    let mut effects = 0;
    for list in dumped.local.iter().filter(|list| list["kind"] == "APIBindingList") {
        for binding in list["items"].as_array().unwrap() {
            let binding = ApiBinding::deserialize(binding).unwrap();
            let plan = reconcile(&told, &binding);
            effects += plan.1.len();
            assert_eq!(plan, reconcile(&known, &binding));
        }
    }
    assert!(effects > 28, "{effects} effects");
    // Without a cache server there are no global copies.
    assert!(dump(&server, None, DEADLINE).await.unwrap().global.is_empty());
    actor.stop().await;
}
