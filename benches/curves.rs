//! How times grow with the world, written to `benches/curves.csv`. `cargo run --example plot` draws them.
//! `BENCH_LARGE=1` adds a fleet of a million bindings.
//!
//!     BENCH_LARGE=1 cargo bench --features latest,sim --bench curves

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a bench may fail
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // it has a clock, an environment and a file

mod worlds;

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use apibinding::pass::{Pass, Step};
use apibinding::wakeup::wakeup;
use worlds::turns::Turns;
use worlds::{World, fleet};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/curves.csv");
/// How often a point is measured; an odd number, so that there is a middle one.
const ROUNDS: usize = 31;
/// About how long each time.
const ROUND: Duration = Duration::from_millis(20);

/// Points of curves: the name of one, where on it, and nanoseconds.
#[derive(Default)]
struct Curves(Vec<(&'static str, usize, f64)>);

impl Curves {
    /// The median of some rounds: whatever else the machine does makes single ones longer, and none shorter.
    ///
    /// `run` does it so many times and tells how long that took; each time counts as `parts`.
    fn point(&mut self, curve: &'static str, at: usize, parts: u32, mut run: impl FnMut(u32) -> Duration) {
        let once = run(10).max(Duration::from_nanos(10)) / 10;
        let times = u32::try_from(ROUND.as_nanos() / once.as_nanos().max(1)).unwrap_or(u32::MAX).clamp(1, 10_000);
        let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| run(times).as_secs_f64() * 1e9 / f64::from(times)).collect();
        rounds.sort_by(f64::total_cmp);
        let middle = rounds[ROUNDS / 2] / f64::from(parts);
        println!("{curve} {at}: {middle:.0} ns");
        self.0.push((curve, at, middle));
    }

    /// Passes over all keys in an order that no cache can guess, and over one again and again.
    fn steady(&mut self, [all, one]: [&'static str; 2], at: usize, world: &World) {
        let keys = world.keys();
        let mut keys = keys.iter().cycle();
        let pass_over = |keys: &mut dyn FnMut() -> Pass, times: u32| {
            in_chunks(times, |some| {
                let mut passes: Vec<Pass> = (0..some).map(|_| keys()).collect();
                let start = Instant::now();
                let done = passes.iter_mut().map(|pass| pass.poll(&world.snapshot)).filter(is_done).count();
                let time = start.elapsed();
                assert_eq!(done, passes.len(), "not all are steady");
                time
            })
        };
        let same = keys.next().expect("a fleet has bindings").clone();
        let mut next = || Pass::new(keys.next().expect("they never end").clone());
        self.point(all, at, 1, |times| pass_over(&mut next, times));
        self.point(one, at, 1, |times| pass_over(&mut || Pass::new(same.clone()), times));
    }

    /// Changes of one object.
    fn apply(&mut self, curve: &'static str, at: usize, world: &World, mut turns: Turns) {
        let mut snapshot = world.snapshot.clone();
        self.point(curve, at, 1, |times| {
            in_chunks(times, |some| {
                let changes: Vec<_> = (0..some).map(|_| turns.change()).collect();
                let start = Instant::now();
                for change in changes {
                    black_box(snapshot.apply(change));
                }
                start.elapsed()
            })
        });
    }

    /// A wake-up, for each key that is woken.
    fn wakeup(&mut self, curve: &'static str, at: usize, world: &World, mut turns: Turns) {
        let mut snapshot = world.snapshot.clone();
        let applied = snapshot.apply(turns.change());
        let keys = u32::try_from(wakeup(&snapshot, &applied).len()).unwrap_or(u32::MAX);
        assert_eq!(usize::try_from(keys).ok(), Some(at), "so many bindings has the export");
        self.point(curve, at, keys, |times| {
            let start = Instant::now();
            for _ in 0..times {
                black_box(wakeup(&snapshot, &applied));
            }
            start.elapsed()
        });
    }

    fn csv(&self) -> String {
        let mut csv = String::from("curve,at,nanoseconds\n");
        for (curve, at, time) in &self.0 {
            writeln!(csv, "{curve},{at},{time:.0}").expect("a string takes anything");
        }
        csv
    }
}

/// What is made beforehand is made a little at a time, so that it is still in a cache, as what was just read is.
fn in_chunks(times: u32, mut run: impl FnMut(u32) -> Duration) -> Duration {
    const CHUNK: u32 = 32;
    (0..times).step_by(CHUNK as usize).map(|done| run(CHUNK.min(times - done))).sum()
}

fn is_done(step: &Step) -> bool {
    matches!(step, Step::Done(_))
}

fn main() {
    let is_large = std::env::var_os("BENCH_LARGE").is_some_and(|value| value == "1");
    let mut curves = Curves::default();
    for each in [1, 3, 10, 30, 100, 300, 1000] {
        // Nearly a hundred thousand: as many as make workspaces of one size.
        let world = World::of(&fleet(100_000 / each * each, each));
        curves.steady(["steady by neighbours", "steady again by neighbours"], each, &world);
        curves.apply("binding applied by neighbours", each, &world, Turns::binding(&world));
        curves.apply("home applied by neighbours", each, &world, Turns::home(&world));
    }
    for size in [1_000, 10_000, 100_000, 1_000_000].into_iter().filter(|size| *size < 1_000_000 || is_large) {
        let world = World::of(&fleet(size, 1));
        curves.steady(["steady by fleet", "steady again by fleet"], size, &world);
        curves.apply("binding applied by fleet", size, &world, Turns::binding(&world));
        curves.apply("home applied by fleet", size, &world, Turns::home(&world));
        curves.apply("export applied by fleet", size, &world, Turns::export(&world));
    }
    for keys in [10, 100, 1_000, 10_000] {
        let world = World::of(&fleet(keys, 1).exports(1));
        curves.wakeup("woken by an export", keys, &world, Turns::export(&world));
        curves.wakeup("woken by a crd", keys, &world, Turns::crd(&world));
    }
    std::fs::write(FILE, curves.csv()).expect("benches is a folder that can be written to");
}
