//! `apibinding plan`: what would be done next, each binding on its own.

use std::collections::BTreeSet;
use std::io::Write;

use apibinding::api::BindingKey;
use apibinding::effect::Effect;
use serde::Serialize;

use super::args::{Format, PlanArgs};
use super::entry::{Entry, bindings};
use super::failure::Failure;
use super::world::World;
use super::{Verdict, keys, report, settle};

/// All of it as data.
#[derive(Serialize)]
struct Data<'a> {
    bindings: &'a [Entry],
}

pub fn run(world: World, args: &PlanArgs, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let all = apibinding::wakeup::all(&world.snapshot);
    let known: BTreeSet<BindingKey> = all.iter().cloned().collect();
    let shown = match &args.bindings[..] {
        [] => all,
        asked => asked.iter().map(|text| keys::find(&world, &known, text)).collect::<Result<_, _>>()?,
    };
    if args.settle {
        return settle::run(world, known, &shown, args, out);
    }

    let entries: Vec<Entry> = shown.into_iter().map(|key| plan(&world, key)).collect();
    match args.output {
        Format::Text => tell(&world, &entries, args.verbose, out)?,
        format => report::data(out, format, &Data { bindings: &entries })?,
    }
    Ok(match entries.iter().all(|entry| entry.effects.is_empty()) {
        true => Verdict::Fine,
        false => Verdict::Open,
    })
}

fn plan(world: &World, key: BindingKey) -> Entry {
    let Some(binding) = world.binding(&key) else {
        let effects = apibinding::release(&world.snapshot, &key);
        return Entry { effects, ..Entry::new(key, None, None) };
    };
    let (after, mut effects) = apibinding::reconcile(&world.snapshot, binding);
    let mut entry = Entry::new(key, Some(binding.status.clone()), Some(after.status));
    if let Some(Effect::Requeue(retry)) = effects.pop_if(|last| matches!(last, Effect::Requeue(_))) {
        entry.retry = retry;
    }
    Entry { effects, ..entry }
}

fn tell(world: &World, entries: &[Entry], verbose: bool, out: &mut dyn Write) -> Result<(), Failure> {
    for entry in entries.iter().filter(|entry| !entry.is_quiet()) {
        entry.header(out, world, "")?;
        for effect in &entry.effects {
            report::effect(out, world, &entry.binding, effect)?;
            if matches!(effect, Effect::PatchApiBindingStatus(_)) {
                entry.status_change(out)?;
            }
        }
        entry.look_again(out)?;
        writeln!(out)?;
    }
    if verbose {
        for entry in entries.iter().filter(|entry| entry.is_quiet()) {
            entry.header(out, world, ", nothing to do")?;
        }
    }
    let busy = entries.iter().filter(|entry| !entry.effects.is_empty()).count();
    let later = entries.iter().filter(|entry| entry.effects.is_empty() && !entry.is_quiet()).count();
    let idle = entries.len() - busy - later;
    write!(out, "{}: {busy} with something to do, {idle} with nothing to do", bindings(entries.len()))?;
    if later > 0 {
        write!(out, ", {later} to look at later")?;
    }
    writeln!(out)?;
    Ok(())
}
