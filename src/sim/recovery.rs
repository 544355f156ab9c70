//! `recovers`: what a crash does to the end of things.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::kcp::{annotation, at, key_of, text_at};
use super::laws::{Broken, Law};
use super::process::Process;
use super::simulation::{Simulation, Task};
use super::{Chance, Faults, Line};
use crate::api::{BindingKey, CLUSTER_ANNOTATION, Kind};
use crate::effect::Effect;
use crate::snapshot::Layer;

/// How many of the effects are followed by a crash, where there are more.
const CRASHES: u64 = 6;

/// How many things users do before it.
const DEEDS: usize = 1;

/// More steps than any small world takes to come to rest.
const STEPS: u64 = 20_000;

/// One course of things: how often what was written, and what stands there in the end.
#[derive(Debug, Default)]
struct Course {
    /// What happened.
    trace: Vec<Line>,
    writes: BTreeMap<String, u64>,
    effects: u64,
    end: Value,
}

impl Course {
    fn told(&self) -> String {
        self.trace.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// From here on nothing goes wrong any more, and when all rest, users do the next they have in mind. A crash
/// after whatever effect of what comes of that, with an empty memory: the end is the same as without it, and
/// nothing is written more than once more.
pub(super) fn recovers(world: &Simulation) -> Result<(), Broken> {
    let calm = calm(world)?;
    let whole = course(calm.clone(), None)?;
    let stride = (whole.effects / CRASHES).max(1);
    for effects in (0..=whole.effects).step_by(usize::try_from(stride).unwrap_or(1)) {
        let crashed = course(calm.clone(), Some(effects))?;
        let told = || format!("a crash after effect {effects} of {}", whole.effects);
        if !is_same(&crashed.end, &whole.end) {
            let (end, usual) = (&crashed.end, &whole.end);
            let why = format!("{} changes the end:\n{end:#}\ninstead of\n{usual:#}\n{}", told(), crashed.told());
            return Err(Broken::new(Law::Recovers, why));
        }
        for (what, count) in &crashed.writes {
            let usual = whole.writes.get(what).copied().unwrap_or(0);
            if *count > usual + 1 {
                let why = format!("{}: {count} times instead of {usual}: {what}\n{}", told(), crashed.told());
                return Err(Broken::new(Law::Recovers, why));
            }
        }
    }
    Ok(())
}

/// The same world, with one controller a shard that has one worker, when all of it rests; and with what users
/// do next.
fn calm(world: &Simulation) -> Result<(Simulation, Vec<usize>), Broken> {
    let mut world = world.clone();
    (world.judge, world.trace) = (None, None);
    (world.faults, world.pace) = (Faults::none(), Chance::none());
    // What takes CRDs away while a controller is down changes what is left to do.
    world.shards.iter_mut().for_each(|shard| shard.parties.habits.old = None);
    let (layout, queue) = (world.layout(), world.queue);
    world.processes = (0..world.shards.len()).map(|shard| Process::new(shard, layout, 1, queue)).collect();
    let mut deeds: Vec<usize> = world
        .agenda
        .entries()
        .filter_map(|task| match task {
            Task::Deed(number) => Some(*number),
            _ => None,
        })
        .collect();
    deeds.truncate(DEEDS);
    world.agenda.retain(|task| matches!(task, Task::Chore(..) | Task::Copy(..)));
    for process in 0..world.processes.len() {
        world.later(Duration::ZERO, Task::Start(process));
    }
    rest(&mut world, |_| {})?;
    Ok((world.traced(), deeds))
}

fn rest(world: &mut Simulation, mut watch: impl FnMut(&mut Simulation)) -> Result<(), Broken> {
    for _ in 0..STEPS {
        if !world.step() {
            return Ok(());
        }
        watch(world);
    }
    Err(Broken::new(Law::Recovers, "with nothing going wrong it does not come to rest"))
}

fn course((mut world, deeds): (Simulation, Vec<usize>), crash_after: Option<u64>) -> Result<Course, Broken> {
    let crash = |world: &mut Simulation| (0..world.processes.len()).for_each(|process| world.crash(process));
    let mut course = Course::default();
    deeds.into_iter().for_each(|deed| world.do_deed(deed));
    if crash_after == Some(0) {
        crash(&mut world);
    }
    rest(&mut world, |world| {
        let Some((key, effect)) = world.last.take() else { return };
        course.effects += 1;
        let written = match &effect {
            Effect::CreateCrd(create) => Some(format!("create {}", create.name)),
            Effect::PatchLogicalCluster(_) => Some(format!("locks of {key}")),
            Effect::PatchApiBindingStatus(_) => Some(format!("status of {key}")),
            _ => None,
        };
        if let Some(written) = written {
            *course.writes.entry(written).or_default() += 1;
        }
        if crash_after == Some(course.effects) {
            crash(world);
        }
    })?;
    (course.end, course.trace) = (end(&world), world.take_trace());
    Ok(course)
}

/// What stands there, by logical cluster, without times, versions and what depends on the order of uids. Bound
/// resources stand in the order in which they were bound, which is one of chance; they are a map by group and
/// resource.
fn end(world: &Simulation) -> Value {
    let mut end = serde_json::Map::new();
    let mut add = |cluster: &str, what: Value| {
        if let Value::Array(known) = end.entry(cluster).or_insert(json!([])) {
            known.push(what);
        }
    };
    for binding in world.list(Kind::ApiBinding) {
        let conditions = at(binding, &["status", "conditions"]).as_array().into_iter().flatten();
        let conditions = conditions
            .map(|condition| ["type", "status", "reason"].map(|field| text_at(condition, &[field])).join(" "));
        let bound = at(binding, &["status", "boundResources"]).as_array().into_iter().flatten();
        let bound: BTreeMap<_, _> = bound
            .map(|bound| (format!("{}.{}", text_at(bound, &["resource"]), text_at(bound, &["group"])), bound))
            .collect();
        let what = json!({
            "binding": key_of(binding).name,
            "phase": at(binding, &["status", "phase"]),
            "bound": bound,
            "conditions": conditions.collect::<Vec<_>>(),
        });
        add(annotation(binding, CLUSTER_ANNOTATION), what);
    }
    for home in world.list(Kind::LogicalCluster) {
        let cluster = annotation(home, CLUSTER_ANNOTATION);
        let layers = Layer::ALL.map(|layer| {
            let mut locks = serde_json::from_str(annotation(home, layer.annotation())).unwrap_or(Value::Null);
            if let Value::Object(locks) = &mut locks {
                locks.retain(|_, lock| !is_dead(world, cluster, lock));
            }
            locks
        });
        add(cluster, json!({"locks": layers}));
    }
    Value::Object(end)
}

/// True if two ends are the same, but for workspaces in both of which somebody lost against a neighbour: who
/// comes first is chance.
fn is_same(one: &Value, other: &Value) -> bool {
    let of = |end: &Value| end.as_object().cloned().unwrap_or_default();
    let (one, other) = (of(one), of(other));
    let is_contested = |workspace: &Value| workspace.to_string().contains("NamingConflicts");
    one.len() == other.len()
        && one.iter().all(|(name, workspace)| {
            other.get(name).is_some_and(|other| workspace == other || is_contested(workspace) && is_contested(other))
        })
}

/// True for the lock of a binding that is not there. Whether somebody has come by to remove it is a
/// matter of chance, since it holds nothing: whoever wants the resource does.
fn is_dead(world: &Simulation, cluster: &str, lock: &Value) -> bool {
    let (name, uid) = (text_at(lock, &["n"]), text_at(lock, &["u"]));
    let binding = world.get(Kind::ApiBinding, &BindingKey::new(cluster, name));
    let lives = binding.is_some_and(|binding| uid.is_empty() || uid == text_at(binding, &["metadata", "uid"]));
    !name.is_empty() && !lives
}
