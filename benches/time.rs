//! How long things take. `BENCH_LARGE=1` adds fleets of a million bindings, each of which takes a minute to build.
//!
//!     cargo bench --features latest,sim --bench time
//!     cargo bench --features latest,sim --bench time -- steady

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a bench may fail
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // it has a clock and an environment

mod worlds;

use std::cell::{Cell, LazyCell, RefCell};
use std::hint::black_box;
use std::time::{Duration, Instant};

use apibinding::api::{Kind, Object, Phase};
use apibinding::pass::{Pass, Step};
use apibinding::snapshot::{Change, Layout, Snapshot};
use apibinding::wakeup::wakeup;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use worlds::rehearsal::Rehearsal;
use worlds::turns::Turns;
use worlds::{World, fleet, fleet_with_spare_export, sample_text, texts};

/// What is made when it is first measured, and not at all where a filter leaves its benches out.
type Lazy<'a, T> = LazyCell<T, Box<dyn FnOnce() -> T + 'a>>;
type MakeTurns = fn(&World) -> Turns;

const GROUPS: [&str; 9] = ["steady", "reconcile", "bind", "conflict", "apply", "clone", "wakeup", "parse", "load"];

/// Made at once where a filter names the group or none of them: what is made during the warm-up spoils the guess how
/// often a bench has to run.
fn lazy<'a, T>(group: &str, make: impl FnOnce() -> T + 'a) -> Lazy<'a, T> {
    let named = |group: &str| std::env::args().any(|argument| argument.split('/').next() == Some(group));
    let lazy: Lazy<'a, T> = LazyCell::new(Box::new(make));
    if named(group) || !GROUPS.into_iter().any(named) {
        LazyCell::force(&lazy);
    }
    lazy
}

/// How large fleets are.
fn sizes() -> Vec<usize> {
    let is_large = std::env::var_os("BENCH_LARGE").is_some_and(|value| value == "1");
    [1_000, 100_000, 1_000_000].into_iter().filter(|size| *size < 1_000_000 || is_large).collect()
}

/// A key with which nothing is to be done: what most of a controller's time goes into.
fn steady(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("steady");
    let mut bench = |name: &str, parameter: usize, world: Lazy<World>, is_hot: bool| {
        let keys = lazy("steady", || world.keys());
        let mut turn = 0;
        group.bench_function(BenchmarkId::new(name, parameter), |bencher| {
            bencher.iter_batched(
                || {
                    turn += usize::from(!is_hot);
                    Pass::new(keys[turn % keys.len()].clone())
                },
                |mut pass| {
                    let step = pass.poll(&world.snapshot);
                    assert!(matches!(step, Step::Done(_)), "{} is not steady", pass.key());
                    pass
                },
                BatchSize::SmallInput,
            );
        });
    };
    for each in [1, 10, 100, 1000] {
        bench("among", each, lazy("steady", || World::of(&fleet(100_000, each))), false);
    }
    bench("the same again among", 1000, lazy("steady", || World::of(&fleet(100_000, 1000))), true);
    for size in sizes() {
        bench("of", size, lazy("steady", || World::of(&fleet(size, 1))), false);
    }
    bench("the same again of", 100_000, lazy("steady", || World::of(&fleet(100_000, 1))), true);
}

/// The plan of a binding that is given as an object of the wire.
fn reconcile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reconcile");
    for each in [1, 1000] {
        let world = lazy("reconcile", || World::of(&fleet(10_000, each)));
        let binding = lazy("reconcile", || world.sample_binding());
        group.bench_function(BenchmarkId::new("among", each), |bencher| {
            bencher.iter(|| apibinding::reconcile(&world.snapshot, black_box(&*binding)));
        });
    }
}

fn play(bencher: &mut criterion::Bencher, rehearsal: &Rehearsal) {
    bencher.iter_batched(|| rehearsal.clone(), Rehearsal::play, BatchSize::SmallInput);
}

/// A new binding until it is bound, with all that is answered and whom that wakes; the server takes no time.
fn bind(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("bind");
    for (each, schema_bytes) in [(1, 300), (1, 15_000), (1000, 300)] {
        let id = BenchmarkId::new(format!("schemas of {schema_bytes} B among"), each);
        let rehearsal = lazy("bind", || {
            let (builder, spare) = fleet_with_spare_export(1_000, each);
            let rehearsal = Rehearsal::of(&builder.schema_bytes(schema_bytes), spare);
            let (after, played) = rehearsal.clone().play();
            assert_eq!((after.phase(), played.effects), (&Phase::Bound, 6));
            rehearsal
        });
        group.bench_function(id, |bencher| play(bencher, &rehearsal));
    }
}

/// A binding all of whose resources another one holds, until it has said so.
fn conflict(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("conflict");
    for each in [1, 1000] {
        let rehearsal = lazy("conflict", || {
            let rehearsal = Rehearsal::of(&fleet(1_000, each), 0);
            let (after, _) = rehearsal.clone().play();
            assert_ne!(after.phase(), &Phase::Bound);
            rehearsal
        });
        group.bench_function(BenchmarkId::new("among", each), |bencher| play(bencher, &rehearsal));
    }
}

/// Whether somebody else still has the snapshot as it was, so that what changes has to be copied.
#[derive(Clone, Copy)]
enum Held {
    Alone,
    Shared,
}

/// The time of the changes alone, `before` each of which the snapshot may be told something else.
fn time_apply(
    world: &World,
    times: u64,
    held: Held,
    mut before: impl FnMut(&mut Snapshot),
    mut next: impl FnMut() -> Change,
) -> Duration {
    // Of the world's own clone all is copied once, on the way, which is what the first turn is for.
    let mut snapshot = world.snapshot.clone();
    let mut total = Duration::ZERO;
    for turn in 0..=times {
        before(&mut snapshot);
        let change = next();
        let other = matches!(held, Held::Shared).then(|| snapshot.clone());
        let start = Instant::now();
        let applied = black_box(snapshot.apply(change));
        let time = start.elapsed();
        assert!(!applied.is_empty(), "the change told nothing");
        total += if turn == 0 { Duration::ZERO } else { time };
        drop(other);
    }
    total
}

/// A change taken in.
fn apply(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("apply");
    let kinds: [(&str, MakeTurns); 5] = [
        ("binding", Turns::binding),
        ("export", Turns::export),
        ("schema", Turns::schema),
        ("crd", Turns::crd),
        ("home with 3 locks", Turns::home),
    ];
    let hold = [("alone", Held::Alone), ("shared", Held::Shared)];
    for size in sizes() {
        let world = lazy("apply", || World::of(&fleet(size, 1)));
        for (held_name, held) in hold {
            for (name, turns) in kinds {
                group.bench_function(BenchmarkId::new(format!("{name}, {held_name}, of"), size), |bencher| {
                    let mut turns = turns(&world);
                    bencher.iter_custom(|times| time_apply(&world, times, held, |_| {}, || turns.change()));
                });
            }
            // Each is told the other's turn in between, which is not measured.
            let put: fn(&mut Turns) -> Change = Turns::change;
            let delete: fn(&mut Turns) -> Change = |turns| Change::delete(&turns.object());
            for (name, before, measured) in [("binding new", delete, put), ("binding deleted", put, delete)] {
                group.bench_function(BenchmarkId::new(format!("{name}, {held_name}, of"), size), |bencher| {
                    let turns = RefCell::new(Turns::binding(&world));
                    let prepare = |snapshot: &mut Snapshot| drop(snapshot.apply(before(&mut turns.borrow_mut())));
                    let next = || measured(&mut turns.borrow_mut());
                    bencher.iter_custom(|times| time_apply(&world, times, held, prepare, next));
                });
            }
        }
    }
    let crowded = lazy("apply", || World::of(&fleet(100_000, 1000)));
    for (held_name, held) in hold {
        let id = BenchmarkId::new(format!("home with 3000 locks, {held_name}, of"), 100_000);
        group.bench_function(id, |bencher| {
            let mut turns = Turns::home(&crowded);
            bencher.iter_custom(|times| time_apply(&crowded, times, held, |_| {}, || turns.change()));
        });
    }
}

/// A clone, which is made for every pass.
fn clone(criterion: &mut Criterion) {
    let world = lazy("clone", || World::of(&fleet(100_000, 1)));
    criterion.bench_function("clone/of/100000", |bencher| bencher.iter(|| world.snapshot.clone()));
}

/// Whom an event concerns.
fn wakeup_by(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("wakeup");
    // Ten exports, so that each has ten thousand bindings.
    let shared = lazy("wakeup", || World::of(&fleet(100_000, 1).exports(10)));
    let crowded = lazy("wakeup", || World::of(&fleet(10_000, 1000)));
    let events: [(&str, &Lazy<World>, MakeTurns); 6] = [
        ("binding", &shared, Turns::binding),
        ("home", &shared, Turns::home),
        ("binding among 1000", &crowded, Turns::binding),
        ("home among 1000", &crowded, Turns::home),
        ("export of 10000", &shared, Turns::export),
        ("crd of 10000", &shared, Turns::crd),
    ];
    for (name, world, turns) in events {
        let event = lazy("wakeup", || {
            let mut snapshot = world.snapshot.clone();
            let applied = snapshot.apply(turns(world).change());
            println!("wakeup/{name}: {} keys", wakeup(&snapshot, &applied).len());
            (snapshot, applied)
        });
        group.bench_function(name, |bencher| {
            let (snapshot, applied) = &*event;
            bencher.iter(|| wakeup(snapshot, applied));
        });
    }
}

/// JSON to an object.
fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    let small = fleet(10, 1).schema_bytes(300);
    let texts = [
        ("binding", Kind::ApiBinding, small.clone()),
        ("export", Kind::ApiExport, small.clone()),
        ("schema of 300 B", Kind::ApiResourceSchema, small.clone()),
        ("schema of 15 kB", Kind::ApiResourceSchema, small.schema_bytes(15_000)),
        ("home with 5 locks", Kind::LogicalCluster, fleet(5, 5).resources(1)),
        ("home with 1000 locks", Kind::LogicalCluster, fleet(1000, 1000).resources(1)),
    ];
    for (name, kind, builder) in texts {
        let text = sample_text(&builder, kind);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| Object::from_json(kind, black_box(&text)).expect("it can be read"));
        });
    }
}

/// A whole list from JSON: read only, and read and taken in. Both are measured by turns, so that whatever else the
/// machine does meanwhile falls on both.
fn load(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    let texts = lazy("load", || texts(&fleet(10_000, 1)).collect::<Vec<String>>());
    let ratio = Cell::new(None);
    group.sample_size(10).throughput(Throughput::Elements(10_000));
    group.bench_function("read and taken in/10000", |bencher| {
        bencher.iter_custom(|times| {
            let (mut read, mut taken_in) = (Duration::ZERO, Duration::ZERO);
            let parse = |text: &String| Object::from_typed_json(text).expect("it can be read");
            for _ in 0..times {
                let start = Instant::now();
                texts.iter().for_each(|text| drop(black_box(parse(text))));
                read += start.elapsed();
                let start = Instant::now();
                let mut snapshot = Snapshot::new(Layout::Single);
                texts.iter().for_each(|text| drop(black_box(snapshot.apply(Change::put(parse(text))))));
                taken_in += start.elapsed();
            }
            ratio.set(Some((read / u32::try_from(times).unwrap_or(1), taken_in.as_secs_f64() / read.as_secs_f64())));
            taken_in
        });
    });
    if let Some((read, ratio)) = ratio.get() {
        println!("load: reading alone takes {read:.1?}; with taking in it is {ratio:.2} times that");
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = steady, reconcile, bind, conflict, apply, clone, wakeup_by, parse, load
}
criterion_main!(benches);
