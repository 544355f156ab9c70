//! A scenario from its beginning to its end, with the laws asked all the way.

use std::time::Duration;

use super::kcp::text_at;
use super::laws::{Broken, Law};
use super::process::happened_since;
use super::{Chance, Counts, Kcp, Line, Scenario, Simulation, recovery};
use crate::api::Kind;
use crate::snapshot::STREAMS;

/// For how long things go wrong after the last that users do.
const AFTERMATH: Duration = Duration::from_secs(20);

/// What came of a scenario.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// What there was to count.
    pub counts: Counts,
    /// How long it took, in the time of the world.
    pub elapsed: Duration,
    /// The law that did not hold, if one did not.
    pub broken: Option<Broken>,
    /// What happened, if it was asked for.
    pub trace: Vec<Line>,
    /// How often two bindings came to list one resource where nothing can be promised against it: see
    /// [`Simulation::shared`].
    pub shared: u64,
    /// How many bindings there are at the end.
    pub bindings: usize,
    /// How many of them are bound.
    pub bound: usize,
}

/// How a scenario is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Play {
    /// Whether laws are asked. Without, only that all comes to rest is.
    pub laws: bool,
    /// Whether what happens is kept as text.
    pub trace: bool,
}

impl Default for Play {
    /// With laws, without trace.
    fn default() -> Self {
        Self { laws: true, trace: false }
    }
}

/// Plays a scenario: first with everything going wrong that is to go wrong, then until all rest; then it
/// makes sure that all do.
///
/// `watch` sees the world after each step; where it says no, that is the end.
pub fn play(scenario: &Scenario, how: Play, mut watch: impl FnMut(&Simulation) -> bool) -> Report {
    let mut world = Simulation::new(scenario);
    if how.laws {
        world = world.judged();
    }
    if how.trace {
        world = world.traced();
    }
    let broken = act(&mut world, scenario, how, &mut watch).err();
    let phases = world.list(Kind::ApiBinding).map(|binding| text_at(binding, &["status", "phase"]));
    let (bindings, bound) = phases.fold((0, 0), |(all, bound), phase| (all + 1, bound + usize::from(phase == "Bound")));
    Report {
        counts: world.counts().clone(),
        elapsed: world.elapsed(),
        broken,
        shared: world.shared(),
        bindings,
        bound,
        trace: world.take_trace(),
    }
}

fn act(
    world: &mut Simulation,
    scenario: &Scenario,
    how: Play,
    watch: &mut impl FnMut(&Simulation) -> bool,
) -> Result<(), Broken> {
    let last = scenario.deeds.iter().map(|deed| deed.after).max().unwrap_or_default();
    let storm = last + AFTERMATH;
    // At some moment it is asked what a crash would do.
    let crash_at = Chance::of(scenario.seed, "recovery").within(10..300);
    while world.elapsed() < storm && step(world, watch)? {
        if how.laws && world.counts().steps == crash_at {
            recovery::recovers(world)?;
        }
    }
    world.heal();
    rest(world, watch)?;
    world.look()?;
    // Who knows nothing of what was, and looks at everything, finds nothing to do.
    let before: Vec<u64> = world.shards().map(Kcp::version).collect();
    world.restart();
    rest(world, watch)?;
    if !world.shards().map(Kcp::version).eq(before.iter().copied()) {
        let why = format!("after all was at rest, a restart wrote:\n{}", since(world, &before));
        return Err(Broken::new(Law::Stable, why));
    }
    world.look_at_rest()
}

fn step(world: &mut Simulation, watch: &mut impl FnMut(&Simulation) -> bool) -> Result<bool, Broken> {
    let went_on = world.step();
    match world.broken() {
        Some(broken) => Err(broken.clone()),
        None => Ok(went_on && watch(world)),
    }
}

fn rest(world: &mut Simulation, watch: &mut impl FnMut(&Simulation) -> bool) -> Result<(), Broken> {
    let bindings = world.list(Kind::ApiBinding).count() as u64;
    // Two controllers that know different things undo each other's statuses as fast as they can, as long as
    // the last event that was late is on its way.
    let end = world.counts().steps + 100_000 + 500 * bindings;
    while step(world, watch)? {
        if world.counts().steps > end {
            let before: Vec<u64> = world.shards().map(|kcp| kcp.version().saturating_sub(20)).collect();
            let why = format!("it does not come to rest; the last that was written:\n{}", since(world, &before));
            return Err(Broken::new(Law::Stable, why));
        }
    }
    Ok(())
}

/// What was written after these versions, a shard each.
fn since(world: &Simulation, versions: &[u64]) -> String {
    let mut lines = Vec::new();
    for ((kcp, version), shard) in world.shards().zip(versions).zip(0..) {
        lines.extend(happened_since(kcp, *version).into_iter().filter_map(|(stream, event)| {
            let (origin, kind) = STREAMS.get(stream)?;
            let what = format!("{} {origin:?} {kind} {}: {}", event.happened.as_str(), event.key, event.object);
            Some((shard, event.version, what))
        }));
    }
    lines.into_iter().map(|(_, version, what)| format!("  {version} {what}\n")).collect()
}
