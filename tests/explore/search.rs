//! The search: breadth first, so that what it finds is the shortest way there.

use std::collections::VecDeque;
use std::fmt::Display;

use apibinding::sim::laws::{Broken, Law};

use super::lab::{Map, Mix};
use super::model::{Action, Model, State};
use super::scenario::Scenario;

/// What a search has seen.
#[derive(Debug)]
pub struct Report {
    pub states: usize,
    pub steps: usize,
    /// How many steps it takes to the last one.
    pub depth: u32,
    /// States in which nothing is left to happen.
    pub rests: usize,
}

/// How a state was reached first.
#[derive(Clone, Copy)]
struct Origin {
    before: u32,
    action: Action,
    depth: u32,
}

/// A world that has more states than this is too large.
const MOST: usize = 20_000_000;

/// Goes to every state that can be reached. `Err`: the shortest way to one in which a law does not hold.
pub fn explore(scenario: &Scenario) -> Result<Report, String> {
    let mut known = None;
    match (search(scenario, &mut known), known) {
        (Ok(report), None) => Ok(report),
        (searched, known) => Err(searched.err().into_iter().chain(known).collect::<Vec<_>>().join("\n")),
    }
}

/// `known`: the first law that does not hold of what can be known or learnt. That ends no search: what comes of it
/// may be worse.
fn search(scenario: &Scenario, known: &mut Option<String>) -> Result<Report, String> {
    let mut model = Model::new(scenario);
    let first = model.first();
    let mut numbers: Map<u128, u32> = Map::default();
    let mut origins = vec![Origin { before: 0, action: Action::Tick, depth: 0 }];
    // Where a fault-free schedule goes on from each state: one of the steps that are gone anyway.
    let mut onward = Vec::new();
    let mut ahead = VecDeque::from([first]);
    numbers.insert(Mix::of(&first), 0);
    let (mut steps, mut rests) = (0, 0);
    while let Some(state) = ahead.pop_front() {
        let number = onward.len() as u32;
        let fails = |model: &mut Model<'_>, origins: &[Origin], number, why: &dyn Display| {
            Err(format!("{why}:\n{}", way(model, first, origins, number).concat()))
        };
        onward.push(number);
        if origins.len() > MOST {
            return fails(&mut model, &origins, number, &"there is no end; so far");
        }
        let mut is_first = true;
        for action in model.actions(&state) {
            let next = model.step(&state, action);
            steps += 1;
            let reached = *numbers.entry(Mix::of(&next)).or_insert(origins.len() as u32);
            if reached as usize == origins.len() {
                origins.push(Origin { before: number, action, depth: origins[number as usize].depth + 1 });
                ahead.push_back(next);
                if let Err(why) = model.is_exclusive(&next) {
                    return fails(&mut model, &origins, reached, &Broken::new(Law::Exclusive, why));
                }
            }
            let broken = model.lab.broken.take();
            if let Some(broken) = broken.filter(|broken| known.is_none() || broken.law == Law::Exclusive) {
                let mut way = way(&mut model, first, &origins, number);
                way.push(format!("  {}\n", model.tell(&state, action)));
                let why = format!("{broken}:\n{}", way.concat());
                if broken.law == Law::Exclusive {
                    return Err(why);
                }
                known.get_or_insert(why);
            }
            if is_first && model.is_fair(&state, action) {
                (is_first, onward[number as usize]) = (false, reached);
            }
        }
        if is_first {
            rests += 1;
            if let Err(why) = model.is_at_rest(&state) {
                return fails(&mut model, &origins, number, &Broken::new(Law::Stable, why));
            }
        }
    }
    if let Some(broken) = model.lab.broken.take() {
        known.get_or_insert(format!("{broken}, where a controller starts"));
    }
    if let Some(lost) = restless(&onward) {
        let mut lines = way(&mut model, first, &origins, lost);
        lines.push("and then for ever, without a fault:\n".into());
        lines.extend(round(&mut model, first, &origins, lost));
        return Err(format!("{}:\n{}", Broken::new(Law::Stable, "no way to rest"), lines.concat()));
    }
    let depth = origins.last().map_or(0, |last| last.depth);
    Ok(Report { states: origins.len(), steps, depth, rests })
}

/// A state from which the fault-free schedule does not come to rest.
fn restless(onward: &[u32]) -> Option<u32> {
    let mut rests = vec![false; onward.len()];
    for start in 0..onward.len() {
        let mut path = Vec::new();
        let mut at = start;
        while !rests[at] && onward[at] as usize != at {
            path.push(at);
            at = onward[at] as usize;
            if path.len() > onward.len() {
                return Some(start as u32);
            }
        }
        rests[at] = true;
        path.into_iter().for_each(|state| rests[state] = true);
    }
    None
}

fn trail(origins: &[Origin], number: u32) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut at = number;
    while at != 0 {
        actions.push(origins[at as usize].action);
        at = origins[at as usize].before;
    }
    actions.reverse();
    actions
}

fn way(model: &mut Model<'_>, first: State, origins: &[Origin], number: u32) -> Vec<String> {
    let mut state = first;
    let actions = trail(origins, number).into_iter();
    actions
        .map(|action| {
            let line = format!("  {}\n", model.tell(&state, action));
            state = model.step(&state, action);
            line
        })
        .collect()
}

/// The first steps of a schedule that does not end.
fn round(model: &mut Model<'_>, first: State, origins: &[Origin], number: u32) -> Vec<String> {
    let mut state = trail(origins, number).into_iter().fold(first, |state, action| model.step(&state, action));
    let mut lines = Vec::new();
    for _ in 0..60 {
        let Some(action) = model.actions(&state).into_iter().find(|action| model.is_fair(&state, *action)) else {
            break;
        };
        lines.push(format!("  {}\n", model.tell(&state, action)));
        state = model.step(&state, action);
    }
    lines
}
