//! Every interleaving of small worlds: law `exclusive` in every state that can be reached, and from every one
//! of them a way to rest without a fault.
//!
//! `EXPLORE=full` goes through larger worlds as well. The last lines count the states.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

#[path = "explore/lab.rs"]
mod lab;
#[path = "explore/model.rs"]
mod model;
#[path = "explore/search.rs"]
mod search;
#[path = "explore/world.rs"]
mod world;

use std::sync::Mutex;

use apibinding::snapshot::Layout;
use model::Scenario;
use world::Deed::*;

/// Two bindings that want one resource, and one controller with one worker; nobody does anything.
fn plain(name: &'static str) -> Scenario {
    Scenario {
        name,
        layout: Layout::Split,
        birds: 2,
        serves: true,
        settled: false,
        controllers: 1,
        workers: 1,
        clones: false,
        scripts: vec![],
        losses: 0,
        crashes: 0,
        patience: 4,
        ticks: 0,
    }
}

fn both(scenario: Scenario) -> [Scenario; 2] {
    let single = Scenario { layout: Layout::Single, scripts: scenario.scripts.clone(), ..scenario };
    [scenario, single]
}

fn recreation() -> Vec<Vec<world::Deed>> {
    vec![vec![Delete(0), Create(0)]]
}

fn scenarios() -> Vec<Scenario> {
    let every_day = [
        Scenario { workers: 2, clones: true, ..plain("two bindings, two workers on clones") },
        Scenario { birds: 3, workers: 2, clones: true, ..plain("three bindings, two workers on clones") },
        Scenario { birds: 3, scripts: recreation(), ..plain("three bindings, one created anew") },
        Scenario { workers: 2, settled: true, scripts: recreation(), ..plain("created anew when all is bound") },
        Scenario {
            workers: 2,
            clones: true,
            scripts: vec![vec![DropResource, OfferResource]],
            ..plain("dropped and offered again")
        },
        Scenario { controllers: 2, scripts: vec![vec![DropResource]], ..plain("dropped under two controllers") },
        Scenario { workers: 2, scripts: vec![vec![AdmitCrd, StoreCrd]], ticks: 2, ..plain("a CRD on its way") },
        Scenario { workers: 2, clones: true, serves: false, crashes: 1, ..plain("establishing, with a crash") },
        Scenario { controllers: 2, crashes: 1, losses: 1, ..plain("two controllers, a crash and a lost answer") },
    ];
    let mut scenarios: Vec<Scenario> = every_day.into_iter().flat_map(both).collect();
    scenarios.push(Scenario {
        workers: 2,
        clones: true,
        scripts: recreation(),
        ..plain("created anew under two workers on clones")
    });
    let crash = |layout| Scenario {
        layout,
        crashes: 1,
        losses: 1,
        scripts: recreation(),
        ..plain("created anew, with a crash and a lost answer")
    };
    scenarios.push(crash(Layout::Split));
    if std::env::var("EXPLORE").is_ok_and(|how| how == "full") {
        scenarios.push(crash(Layout::Single));
        scenarios.extend(both(Scenario {
            workers: 2,
            scripts: recreation(),
            ..plain("created anew under two workers")
        }));
        let scripts = vec![vec![AdmitCrd, StoreCrd, DeleteCrd]];
        scenarios.extend(both(Scenario { workers: 2, scripts, ticks: 2, ..plain("a CRD that comes and goes") }));
        scenarios.push(Scenario {
            controllers: 2,
            patience: 1,
            scripts: vec![vec![Delete(0)]],
            ..plain("deleted under two controllers")
        });
        scenarios.push(Scenario {
            layout: Layout::Single,
            workers: 2,
            clones: true,
            scripts: recreation(),
            ..plain("created anew under two workers on clones")
        });
    }
    scenarios
}

#[test]
fn exclusive_in_every_state_and_a_way_to_rest_from_each() {
    let mut ahead = scenarios();
    ahead.reverse();
    let (ahead, reports) = (Mutex::new(ahead), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |cores| cores.get()) {
            scope.spawn(|| {
                loop {
                    let Some(scenario) = ahead.lock().unwrap().pop() else { break };
                    let report = search::explore(&scenario);
                    reports.lock().unwrap().push((scenario.name, scenario.layout, report));
                }
            });
        }
    });
    let (mut states, mut failed) = (0, Vec::new());
    for (name, layout, report) in reports.into_inner().unwrap() {
        match report {
            Ok(report) => {
                states += report.states;
                println!("{name}, {layout:?}: {report}");
            }
            Err(why) => failed.push(format!("{name}, {layout:?}: {why}")),
        }
    }
    println!("{states} states in all");
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    assert!(states > 100_000, "that is not all: {states}");
}
