//! How many instructions things take, counted by callgrind: the same on a busy machine as on an idle one.
//!
//! `.ci/instructions` compares them with `benches/instructions.txt`. What a bench is given is made before counting
//! begins; what it gives back is dropped after counting ends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a bench may fail
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // its runner knows where it runs
#![allow(missing_docs)] // gungraun's macros make public modules

mod worlds;

use std::hint::black_box;

use apibinding::api::{ApiBinding, Kind, Object};
use apibinding::effect::Effect;
use apibinding::pass::{Pass, Step};
use apibinding::sim::Builder;
use apibinding::snapshot::{Applied, Change, Snapshot};
use apibinding::wakeup::wakeup;
use gungraun::{Callgrind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main};
use worlds::rehearsal::{Played, Rehearsal};
use worlds::turns::Turns;
use worlds::{World, fleet, fleet_with_spare_export, sample_text};

/// A thousand bindings, with as few others as can be: callgrind takes a hundred times as long to make a world as the
/// world's makers do.
fn small(each: usize) -> Builder {
    fleet(1000, each).exports(1).resources(1)
}

fn pass(each: usize) -> (Snapshot, Pass) {
    let world = World::of(&small(each));
    let key = world.keys()[0].clone();
    (world.snapshot, Pass::new(key))
}

#[library_benchmark]
#[bench::alone(args = (1), setup = pass)]
#[bench::among_1000(args = (1000), setup = pass)]
fn steady((snapshot, mut pass): (Snapshot, Pass)) -> (Snapshot, Pass, Step) {
    let step = black_box(pass.poll(&snapshot));
    (snapshot, pass, step)
}

fn given(each: usize) -> (Snapshot, ApiBinding) {
    let world = World::of(&small(each));
    let binding = world.sample_binding();
    (world.snapshot, binding)
}

#[library_benchmark]
#[bench::alone(args = (1), setup = given)]
fn reconcile((snapshot, binding): (Snapshot, ApiBinding)) -> (Snapshot, ApiBinding, (ApiBinding, Vec<Effect>)) {
    let plan = black_box(apibinding::reconcile(&snapshot, &binding));
    (snapshot, binding, plan)
}

fn new(each: usize) -> Rehearsal {
    let (builder, spare) = fleet_with_spare_export(100, each);
    Rehearsal::of(&builder.schema_bytes(300), spare)
}

#[library_benchmark]
#[bench::alone(args = (1), setup = new)]
fn bind(rehearsal: Rehearsal) -> (Rehearsal, Played) {
    black_box(rehearsal.play())
}

fn rival(each: usize) -> Rehearsal {
    Rehearsal::of(&small(each), 0)
}

#[library_benchmark]
#[bench::alone(args = (1), setup = rival)]
#[bench::among_1000(args = (1000), setup = rival)]
fn conflict(rehearsal: Rehearsal) -> (Rehearsal, Played) {
    black_box(rehearsal.play())
}

fn of_binding() -> (Snapshot, Change) {
    let world = World::of(&small(1));
    let change = Turns::binding(&world).change();
    (world.snapshot, change)
}

/// With a thousand locks.
fn of_home() -> (Snapshot, Change) {
    let world = World::of(&small(1000));
    let change = Turns::home(&world).change();
    (world.snapshot, change)
}

/// With a thousand bindings.
fn of_export() -> (Snapshot, Change) {
    let world = World::of(&small(1));
    let change = Turns::export(&world).change();
    (world.snapshot, change)
}

#[library_benchmark]
#[bench::binding(setup = of_binding)]
#[bench::home_with_1000_locks(setup = of_home)]
#[bench::export(setup = of_export)]
fn apply((mut snapshot, change): (Snapshot, Change)) -> (Snapshot, Applied) {
    let applied = black_box(snapshot.apply(change));
    (snapshot, applied)
}

fn taken_in((mut snapshot, change): (Snapshot, Change)) -> (Snapshot, Applied) {
    let applied = snapshot.apply(change);
    assert!(!applied.is_empty());
    (snapshot, applied)
}

fn news_of_binding() -> (Snapshot, Applied) {
    taken_in(of_binding())
}

fn news_of_export() -> (Snapshot, Applied) {
    taken_in(of_export())
}

#[library_benchmark]
#[bench::binding(setup = news_of_binding)]
#[bench::export_of_1000(setup = news_of_export)]
fn wake((snapshot, applied): (Snapshot, Applied)) -> (Snapshot, Applied, usize) {
    let woken = black_box(wakeup(&snapshot, &applied)).len();
    (snapshot, applied, woken)
}

fn snapshot() -> Snapshot {
    World::of(&small(1)).snapshot
}

#[library_benchmark]
#[bench::snapshot(setup = snapshot)]
fn clone(snapshot: Snapshot) -> (Snapshot, Snapshot) {
    let other = black_box(snapshot.clone());
    (snapshot, other)
}

fn text() -> String {
    sample_text(&fleet(10, 1), Kind::ApiBinding)
}

#[library_benchmark]
#[bench::binding(setup = text)]
fn parse(text: String) -> (String, Object) {
    let object = black_box(Object::from_json(Kind::ApiBinding, &text).expect("it can be read"));
    (text, object)
}

library_benchmark_group!(name = benches, benchmarks = [steady, reconcile, bind, conflict, apply, wake, clone, parse]);
main!(
    // What a cache would do is asked of real ones, in `time.rs`.
    config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--cache-sim=no"])),
    library_benchmark_groups = benches
);
