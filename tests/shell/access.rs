//! What is used is what `deploy/rbac.yaml` allows, all of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apibinding::api::Kind;
use apibinding::front::{Ask, Rule, Settings};
use apibinding::shell::{Controller, Lease};
use apibinding::sim::Request;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::stage::{Actor, client, rest, told};
use crate::worlds::{End, World};

#[derive(Deserialize)]
struct Role {
    rules: Vec<Rule>,
}

/// The rules, each taken apart until it allows one thing.
fn rules() -> Vec<Rule> {
    let text = include_str!("../../deploy/rbac.yaml");
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let roles = documents.into_iter().filter(|document| document["kind"] == "ClusterRole");
    let rules = roles.flat_map(|role| Role::deserialize(role).unwrap().rules);
    let mut single = Vec::new();
    for rule in rules {
        assert!(rule.non_resource_urls.is_empty() && rule.resource_names.is_empty());
        for group in &rule.api_groups {
            for resource in &rule.resources {
                single.extend(rule.verbs.iter().map(|verb| Rule {
                    api_groups: vec![group.clone()],
                    resources: vec![resource.clone()],
                    verbs: vec![verb.clone()],
                    ..Rule::default()
                }));
            }
        }
    }
    single
}

/// The world of the README, in which somebody else had, or wanted, the cheeses before: a binding that is gone, and a
/// CRD that never came.
fn world() -> World {
    let mut world = World::example();
    for object in &mut world.objects {
        if object["kind"] == "LogicalCluster" && object["metadata"]["annotations"]["kcp.io/cluster"] == "meadow" {
            let locks = json!({
                "cheeses.dairy.example": {"n": "gone", "u": "gone-1"},
                "geese.farm.example": {"n": "poultry", "u": "poultry-1"},
            });
            let crds = json!({"cheeses.dairy.example": {"c": true, "e": "2020-01-01T00:00:00Z"}});
            let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
            annotations.insert("internal.apis.kcp.io/locks-bindings".into(), json!(locks.to_string()));
            annotations.insert("internal.apis.kcp.io/locks-pending".into(), json!(crds.to_string()));
        }
    }
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_what_is_allowed_is_used() {
    let (world, rules) = (world(), rules());
    let settings = Settings { allow: Some(rules.clone()), ..world.settings() };
    let front = Arc::new(world.front_with(settings));
    // Once, somebody else writes the locks first: a conflict, and what is there has to be read.
    let (weak, raced) = (Arc::downgrade(&front), AtomicBool::new(false));
    front.intercept(move |ask| {
        if ask.kind == Some(Kind::LogicalCluster) && ask.verb == "patch" && !raced.swap(true, Ordering::Relaxed) {
            let note = json!({"metadata": {"annotations": {"example.com/note": "x"}}});
            let request = Request::merge(Kind::LogicalCluster, ask.cluster.as_str(), ask.name.clone(), note);
            weak.upgrade()?.with(|kcp| kcp.handle(request)).unwrap();
        }
        None
    });
    let lease = Lease {
        cluster: "root".into(),
        namespace: "default".into(),
        name: "apibinding-root".into(),
        identity: "me".into(),
        duration: std::time::Duration::from_secs(3),
    };
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout).lease(lease)).await;
    rest(&front, &[&actor]).await;
    End::of_front(&front).assert_is(&world.simulated(), "with what is allowed");
    actor.stop().await;

    let log = front.log();
    let refused: Vec<String> = log.iter().filter(|entry| entry.status == Some(403)).map(told).collect();
    assert_eq!(refused, [""; 0]);
    // Without any of them something would have been refused.
    let is_needed = |rule: &Rule| {
        let is_allowed = |ask: &Ask| rules.iter().any(|other| other != rule && other.allows(ask));
        log.iter().any(|entry| !is_allowed(&entry.ask))
    };
    let unused: Vec<&Rule> = rules.iter().filter(|rule| !is_needed(rule)).collect();
    assert!(unused.is_empty(), "allowed, but not used: {unused:?}");
    assert!(rules.len() > 15, "{} rules", rules.len());
}
