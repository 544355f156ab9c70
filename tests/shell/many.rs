//! Many bindings: what they cost in requests.

use std::time::Duration;

use apibinding::api::Phase;
use apibinding::front::{Fault, Front, Settings};
use apibinding::shell::Controller;
use apibinding::sim::Builder;
use apibinding::snapshot::Layout;

use crate::stage::{Actor, client, rest, until};
use crate::worlds::World;

/// As many as can be in a test that is built to be debugged, and as it is run otherwise.
const BINDINGS: usize = if cfg!(debug_assertions) { 1_000 } else { 10_000 };

async fn play(is_bound: bool) -> (Front, Actor) {
    let builder = Builder::new(2).crowded(false).bound(is_bound).workspaces(BINDINGS / 10).bindings(BINDINGS);
    let world = World::built(&builder.exports(20).resources(2), Layout::Single);
    let log = 40 * BINDINGS;
    let front = world.front_with(Settings { managed_fields: false, log, ..world.settings() });
    let actor = Actor::start(Controller::new(client(&front)).layout(world.layout).workers(16)).await;
    rest(&front, &[&actor]).await;
    let known = actor.handle.snapshot();
    let keys = known.bindings();
    assert_eq!(keys.len(), BINDINGS);
    assert!(keys.iter().all(|key| known.binding(key).unwrap().status.phase == Phase::Bound));
    (front, actor)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_on_many_that_are_bound_writes_nothing() {
    let (front, actor) = play(true).await;
    let asked = front.count(|entry| !["list", "watch"].contains(&entry.ask.verb));
    assert_eq!((actor.done().len(), asked), (0, 0));
    // Pages of five hundred, and as many watches as there are lists.
    assert!(front.requests() < 18 + BINDINGS as u64 / 100, "{} requests", front.requests());
    actor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_are_bound_with_a_few_requests_each() {
    let (front, actor) = play(false).await;
    let count = |verb: &str| front.count(|entry| entry.ask.verb == verb);
    let (patches, creates, gets) = (count("patch"), count("create"), count("get"));
    // Binding, lock, bound or waiting for its CRDs, bound; and now and then somebody else was faster.
    assert!(patches <= 6 * BINDINGS, "{patches} patches");
    // Twenty exports of two resources: each CRD once, or a few times where several wanted it at the same moment.
    assert!(creates < 40 * 16, "{creates} creations");
    assert!(gets <= BINDINGS, "{gets} reads");
    assert_eq!(actor.foreign_writes(), 0);
    actor.stop().await;
}

/// Whatever a server takes for an answer, so many keys wait for one side by side. How speed grows with that is what
/// `benches/workers.rs` measures.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_keys_are_worked_on_as_there_are_workers() {
    let world = World::built(&Builder::new(3).crowded(false).workspaces(64).bindings(64), Layout::Single);
    for workers in [1, 2, 8, 32] {
        let front = world.front();
        front.intercept(|ask| (ask.verb == "patch").then_some(Fault::Delay(Duration::from_secs(600))));
        let controller = Controller::new(client(&front)).layout(world.layout).grace(Duration::ZERO);
        let actor = Actor::start(controller.workers(workers)).await;
        let waiting = || front.count(|entry| entry.ask.verb == "patch");
        until("all workers to wait", || waiting() >= workers).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(waiting(), workers);
        actor.stop().await;
    }
}
