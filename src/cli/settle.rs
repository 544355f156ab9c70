//! `apibinding plan --settle`: what would be done until nothing is left to do, all bindings on one
//! world.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use apibinding::api::{BindingKey, Phase};
use apibinding::effect::{Effect, Retry};
use apibinding::pass::{Pass, Step};
use apibinding::wakeup::wakeup;
use serde::Serialize;

use super::args::{Format, PlanArgs};
use super::entry::{Entry, bindings};
use super::failure::Failure;
use super::notes::counted;
use super::world::World;
use super::{Verdict, report, server};

/// How often one binding may write its status and its locks. A handful is usual; without a limit, two
/// that undo what the other does would go on for ever.
const WRITES: usize = 100;

/// All of it as data.
#[derive(Serialize)]
struct Data<'a> {
    bindings: &'a [Entry],
    /// The effects of all bindings, in the order in which they were carried out.
    steps: &'a [Done],
    passes: usize,
}

/// One effect that was carried out.
#[derive(Serialize)]
struct Done {
    binding: BindingKey,
    effect: String,
}

/// What is kept of what was done.
#[derive(Default)]
struct Record {
    steps: Vec<Done>,
    effects: BTreeMap<BindingKey, Vec<Effect>>,
    /// The binding that is being told of.
    last: Option<BindingKey>,
    count: usize,
    /// What the server refused before, and was taken to succeed.
    refused: BTreeMap<BindingKey, String>,
}

pub fn run(
    mut world: World,
    keys: BTreeSet<BindingKey>,
    shown: &[BindingKey],
    args: &PlanArgs,
    out: &mut dyn Write,
) -> Result<Verdict, Failure> {
    let status = |world: &World, key: &BindingKey| world.binding(key).map(|binding| binding.status.clone());
    let before: Vec<_> = shown.iter().map(|key| status(&world, key)).collect();
    let wanted: BTreeSet<&BindingKey> = shown.iter().collect();

    let mut record = Record::default();
    let is_text = args.output == Format::Text;
    let rest = settle(&mut world, keys, args.establish, WRITES, |world, key, effect| {
        if !wanted.contains(key) {
            return Ok(());
        }
        record.count += 1;
        if let Some(refusal) = report::refusal(world, key, effect) {
            record.refused.insert(key.clone(), refusal);
        }
        if !is_text {
            // Locks of a large workspace are long: they are kept for data only.
            record.steps.push(Done { binding: key.clone(), effect: effect.to_string() });
            record.effects.entry(key.clone()).or_default().push(effect.clone());
            return Ok(());
        }
        if record.last.replace(key.clone()).as_ref() != Some(key) {
            report::header(out, world, key, "")?;
        }
        Ok(report::effect(out, world, key, effect)?)
    })?;

    let entries: Vec<Entry> = (shown.iter().zip(before))
        .map(|(key, before)| Entry {
            effects: record.effects.remove(key).unwrap_or_default(),
            retry: rest.later.get(key).copied().unwrap_or(Retry::Forget),
            ..Entry::new(key.clone(), before, status(&world, key))
        })
        .collect();
    match args.output {
        Format::Text => tell(&world, &entries, &rest, &record, out)?,
        format => report::data(out, format, &Data { bindings: &entries, steps: &record.steps, passes: rest.passes })?,
    }
    Ok(if record.count == 0 { Verdict::Fine } else { Verdict::Open })
}

fn tell(world: &World, entries: &[Entry], rest: &Rest, record: &Record, out: &mut dyn Write) -> Result<(), Failure> {
    if record.count > 0 {
        writeln!(out)?;
    }
    for entry in entries {
        let is_changed = entry.status.as_ref().is_some_and(|status| status.before != status.after);
        if is_changed || entry.retry != Retry::Forget {
            entry.header(out, world, "")?;
            if let Some(refusal) = record.refused.get(&entry.binding) {
                report::refused_before(out, "  ", refusal)?;
            }
            entry.status_change(out)?;
            entry.look_again(out)?;
            writeln!(out)?;
        }
    }
    let phases = || entries.iter().filter_map(|entry| entry.phase.as_ref());
    writeln!(
        out,
        "at rest after {} and {}: {} of {} bound, {} before",
        counted(rest.passes, "pass", "passes"),
        counted(record.count, "effect", "effects"),
        phases().filter(|phase| phase.after == Phase::Bound).count(),
        bindings(phases().count()),
        phases().filter(|phase| phase.before == Phase::Bound).count(),
    )?;
    Ok(())
}

/// How a world came to rest.
#[derive(Debug, Default)]
struct Rest {
    passes: usize,
    /// When keys are to be looked at again, though nothing may happen.
    later: BTreeMap<BindingKey, Retry>,
}

/// Processes keys, in their order, and those that are woken by it, until none is left.
///
/// `tell` hears of each effect before it is carried out. A binding that writes more often than
/// `writes` is an error.
fn settle(
    world: &mut World,
    mut queue: BTreeSet<BindingKey>,
    establish: bool,
    writes: usize,
    mut tell: impl FnMut(&World, &BindingKey, &Effect) -> Result<(), Failure>,
) -> Result<Rest, Failure> {
    let mut rest = Rest::default();
    let mut written: BTreeMap<BindingKey, usize> = BTreeMap::new();
    while let Some(key) = queue.pop_first() {
        rest.passes += 1;
        let mut pass = Pass::new(key.clone());
        let retry = loop {
            let effect = match pass.poll(&world.snapshot) {
                Step::Act(effect) => effect,
                Step::Done(retry) => break retry,
                // There is no other step yet.
                _ => break Retry::Forget,
            };
            tell(world, &key, &effect)?;
            if matches!(effect, Effect::PatchLogicalCluster(_) | Effect::PatchApiBindingStatus(_)) {
                let written = written.entry(key.clone()).or_default();
                *written += 1;
                if *written > writes {
                    return Err(Failure::Restless { key, writes });
                }
            }
            let outcome = server::answer(&mut world.objects, &effect, establish);
            for change in pass.observe(outcome) {
                let applied = world.snapshot.apply(change);
                queue.extend(wakeup(&world.snapshot, &applied));
            }
        };
        match retry {
            Retry::Forget => rest.later.remove(&key),
            Retry::Now => {
                queue.insert(key);
                None
            }
            later => rest.later.insert(key, later),
        };
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::LayoutChoice;
    use crate::cli::read;

    fn world() -> (World, BTreeSet<BindingKey>) {
        let text = include_bytes!("../../examples/world.yaml");
        let found = read::read(&[read::STDIN.into()], &[], &mut Some(&text[..])).unwrap();
        let now = "2026-06-01T12:00:00Z".parse().unwrap();
        let world = World::new(found, read::Found::default(), LayoutChoice::Auto, now).unwrap();
        let keys = world.snapshot.bindings().into_iter().collect();
        (world, keys)
    }

    #[test]
    fn a_world_that_does_not_rest_is_an_error() {
        let (mut world, keys) = world();
        // `dairy` writes a lock and its status.
        let settled = settle(&mut world, keys, true, 1, |_, _, _| Ok(()));
        let error = settled.unwrap_err().to_string();
        assert!(error.starts_with("the world does not come to rest: meadow|dairy has written 1 times"), "{error}");
    }

    #[test]
    fn a_world_at_rest_stays_so() {
        let (mut world, keys) = world();
        settle(&mut world, keys.clone(), true, WRITES, |_, _, _| Ok(())).unwrap();
        let rest = settle(&mut world, keys, true, WRITES, |_, _, effect| panic!("{effect}")).unwrap();
        assert_eq!(rest.passes, 4);
    }
}
