//! The laws in worlds that run: controllers, other parties, users, and everything going wrong.
//!
//! `SIMULATION_WORLDS` sets how many worlds, `SIMULATION_SEED` the first of them. A failure prints the seed, and
//! `apibinding simulate --seed N` shows what happened.

#![cfg(feature = "sim")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use apibinding::sim::{Fault, Faults, Play, Report, Scenario, Simulation, play};

fn number(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().unwrap_or_else(|_| panic!("{name} has to be a number")))
}

/// Plays worlds of these seeds, on all cores.
fn worlds(count: u64, scenario: impl Fn(u64) -> Scenario + Sync) -> Vec<(u64, Report)> {
    let (first, count) = (number("SIMULATION_SEED").unwrap_or(1), number("SIMULATION_WORLDS").unwrap_or(count));
    let (next, reports) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |cores| cores.get()) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    let report = play(&scenario(seed), Play::default(), |_| true);
                    reports.lock().unwrap().push((seed, report));
                }
            });
        }
    });
    let mut reports = reports.into_inner().unwrap();
    reports.sort_by_key(|(seed, _)| *seed);
    reports
}

/// All laws hold in all of them.
fn hold(reports: &[(u64, Report)]) {
    let broken: Vec<String> =
        reports.iter().filter_map(|(seed, report)| Some(format!("seed {seed}: {}", report.broken.as_ref()?))).collect();
    assert!(
        broken.is_empty(),
        "{} of {} worlds:\n{}",
        broken.len(),
        reports.len(),
        broken[..broken.len().min(3)].join("\n\n")
    );
}

#[test]
fn laws_hold_whatever_goes_wrong() {
    let reports = worlds(300, Scenario::new);
    hold(&reports);
    let steps: u64 = reports.iter().map(|(_, report)| report.counts.steps).sum();
    println!("{} worlds, {steps} steps", reports.len());
    // And everything did go wrong.
    for fault in Faults::all().iter().filter(|fault| !matches!(fault, Fault::TwoControllers | Fault::CacheLag)) {
        let count: u64 = reports.iter().map(|(_, report)| report.counts.faults[fault as usize]).sum();
        assert!(count > 0, "{fault} never struck");
    }
}

#[test]
fn laws_hold_when_nothing_goes_wrong() {
    let reports = worlds(100, |seed| Scenario::new(seed).with_faults(Faults::none()));
    hold(&reports);
    let bound: usize = reports.iter().map(|(_, report)| report.bound).sum();
    assert!(bound > 0, "nothing was ever bound");
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let trace = |seed| {
        let mut world = Simulation::new(&Scenario::new(seed)).traced();
        while world.counts().steps < 2_000 && world.step() {}
        let lines: Vec<String> = world.take_trace().iter().map(ToString::to_string).collect();
        lines.join("\n")
    };
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7), trace(8));
    assert!(trace(7).lines().count() > 100);
}
