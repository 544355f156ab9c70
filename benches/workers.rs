//! How speed grows with the workers, where a server takes five milliseconds for each write: bindings a second from
//! nothing to `Bound`, server and controller in one process.
//!
//!     cargo bench --features latest,shell,sim --bench workers

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a bench may fail
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // it has a clock

use std::time::{Duration, Instant, SystemTime};

use apibinding::api::Phase;
use apibinding::front::{Fault, Front, Settings};
use apibinding::shell::Controller;
use apibinding::sim::{Builder, Kcp};
use apibinding::snapshot::Origin;
use k8s_openapi::jiff::Timestamp;
use kube::{Client, Config};
use tokio::time::sleep;

const BINDINGS: usize = 1_000;
const ANSWER: Duration = Duration::from_millis(5);

/// How long it takes until all are bound.
async fn bind(workers: usize) -> Duration {
    let builder = Builder::new(1).crowded(false).workspaces(BINDINGS / 10).bindings(BINDINGS).exports(20).resources(2);
    let mut kcp = Kcp::new(1);
    kcp.set_now(Timestamp::try_from(SystemTime::now()).unwrap());
    kcp.load(Origin::Local, builder.build());
    let settings = Settings { establishing: Duration::ZERO, managed_fields: false, log: 0, ..Settings::default() };
    let front = Front::serve(kcp, settings).unwrap();
    front.intercept(|ask| matches!(ask.verb, "patch" | "create").then_some(Fault::Late(ANSWER)));
    let mut config = Config::new(front.url().parse().unwrap());
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    let running = Controller::new(client).workers(workers).start().await.unwrap();
    let handle = running.handle();
    let start = Instant::now();
    let task = tokio::spawn(running.run(std::future::pending()));
    let is_bound = || {
        let known = handle.snapshot();
        let bound = |key| known.binding(key).is_some_and(|binding| binding.status.phase == Phase::Bound);
        known.bindings().len() == BINDINGS && known.bindings().iter().all(bound)
    };
    while !(handle.is_idle() && is_bound()) {
        sleep(Duration::from_millis(5)).await;
    }
    let time = start.elapsed();
    task.abort();
    time
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    println!("| workers | bindings a second | against one |\n| ---: | ---: | ---: |");
    let mut one = None;
    for workers in [1, 2, 4, 8, 16, 32] {
        let speed = BINDINGS as f64 / bind(workers).await.as_secs_f64();
        let ratio = speed / *one.get_or_insert(speed);
        println!("| {workers} | {speed:.0} | {ratio:.1} |");
    }
}
