//! Every interleaving of small worlds: law `exclusive` in every state that can be reached, from every one a way to
//! rest without a fault, and other laws of all that can be known on the way.
//!
//! `EXPLORE=full` searches larger worlds as well, best with `--release`; `EXPLORE=<words>` those that have these
//! words in their names. A failure prints the shortest way there; the last lines count.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

#[path = "explore/lab.rs"]
mod lab;
#[path = "explore/model.rs"]
mod model;
#[path = "explore/scenario.rs"]
mod scenario;
#[path = "explore/search.rs"]
mod search;
#[path = "explore/tell.rs"]
mod tell;
#[path = "explore/world.rs"]
mod world;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use apibinding::snapshot::Layout;
use scenario::Scenario;

/// Fewer states than this are not all.
const MANY: usize = 2_000_000;

fn main() -> ExitCode {
    let wish = std::env::var("EXPLORE").unwrap_or_default();
    let is_wished = |scenario: &Scenario| match wish.as_str() {
        "" => !scenario.is_large,
        "full" => true,
        words => scenario.name.contains(words),
    };
    let scenarios = [Layout::Split, Layout::Single].into_iter().flat_map(scenario::all);
    let scenarios: Vec<Scenario> = scenarios.filter(is_wished).collect();
    assert!(!scenarios.is_empty(), "no world has {wish:?} in its name");
    let started = Instant::now();
    let [next, states, steps, passed, failed] = [0; 5].map(AtomicUsize::new);
    let work = || {
        while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begun = Instant::now();
            let name = format!("{} ({:?})", scenario.name, scenario.layout);
            match search::explore(scenario) {
                Ok(search::Report { states: found, steps: between, depth, rests }) => {
                    let seconds = begun.elapsed().as_secs_f32();
                    println!("{found:>9} states, {depth:>3} deep, {rests:>3} at rest, {seconds:>5.1} s: {name}");
                    states.fetch_add(found, Ordering::Relaxed);
                    steps.fetch_add(between, Ordering::Relaxed);
                    passed.fetch_add(1, Ordering::Relaxed);
                }
                Err(why) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    println!("FAILED: {name}: {why}");
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let [states, steps, passed, mut failed] = [states, steps, passed, failed].map(AtomicUsize::into_inner);
    println!("{states} states and {steps} steps in {:.1} s", started.elapsed().as_secs_f32());
    if wish.is_empty() && failed == 0 && states < MANY {
        failed += 1;
        println!("FAILED: that is not all: there should be more than {MANY} states");
    }
    println!("\n{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
