//! `deterministic`, `predicts`, `settles`: what a plan is worth.

use serde::Serialize;

use super::{Model, Reads, Server, Verdict, run, same};
use crate::api::{ApiBinding, BindingKey, Kind, Object};
use crate::effect::{Effect, Outcome};
use crate::reconcile::reconcile;
use crate::sim::Chance;
use crate::snapshot::{Change, Origin, Snapshot};

fn binding<'a>(model: &'a Model, key: &BindingKey) -> Option<&'a ApiBinding> {
    match &**model.get(Origin::Local, Kind::ApiBinding, key)? {
        Object::ApiBinding(binding) => Some(binding),
        _ => None,
    }
}

fn bytes(value: &impl Serialize) -> Result<Vec<u8>, String> {
    serde_json::to_vec(value).map_err(|error| error.to_string())
}

/// One effect a line, with the body of a patch.
pub(super) fn lines(effects: &[Effect]) -> String {
    let line = |effect: &Effect| match effect {
        Effect::PatchLogicalCluster(patch) | Effect::PatchApiBindingStatus(patch) => {
            format!("    {effect} {}\n", patch.body.as_str())
        }
        _ => format!("    {effect}\n"),
    };
    effects.iter().map(line).collect()
}

/// The same arguments give the same bytes; in whatever order the snapshot was built.
///
/// # Errors
/// What differs.
pub fn deterministic(model: &Model, chance: &mut Chance) -> Verdict {
    let first = model.snapshot();
    let mut changes = model.changes();
    chance.shuffle(&mut changes);
    let second = model.snapshot_of(changes);
    same("the snapshot built in another order", &second, &first)?;
    same("its bytes", &bytes(&first)?, &bytes(&second)?)?;
    for key in model.bindings() {
        let Some(binding) = binding(model, &key) else { continue };
        let (left, right) = (reconcile(&first, binding), reconcile(&second, binding));
        same(format_args!("plan of {key}"), &left, &right)?;
        same(format_args!("bytes of the plan of {key}"), &bytes(&left)?, &bytes(&right)?)?;
    }
    Ok(())
}

/// Every effect answered as it expects, settling the original binding on what was observed gives the same
/// new binding, and no effect but reads, the commit and a later look; and what the pass really does is
/// what was planned.
///
/// # Errors
/// What was planned, and what came of it.
pub fn predicts(model: &Model, snapshot: &Snapshot, key: &BindingKey) -> Verdict {
    let Some(binding) = binding(model, key) else { return Ok(()) };
    let (planned, effects) = reconcile(snapshot, binding);
    if effects.iter().all(|effect| matches!(effect, Effect::Requeue(_))) {
        return Ok(());
    }
    let mut server = Server::new(model, Reads::Expected);
    let mut observed = snapshot.clone();
    for effect in &effects {
        if matches!(effect, Effect::Requeue(_) | Effect::PatchApiBindingStatus(_)) {
            continue;
        }
        match server.execute(key, effect) {
            Outcome::Done(object) if !effect.is_read() => drop(observed.apply(Change::put(*object))),
            other if !effect.is_read() => return Err(format!("{key}: {effect}: {other}")),
            _ => {}
        }
    }
    let again = run(&mut observed, &mut server, key)?;
    let told = || format!("{key}: planned\n{}then\n{}", lines(&effects), lines(&again.effects()));
    let allowed = |effect: &Effect| effect.is_read() || matches!(effect, Effect::PatchApiBindingStatus(_));
    if let Some(other) = again.effects().iter().find(|effect| !allowed(effect)) {
        return Err(format!("{}not expected: {other}", told()));
    }
    same(format_args!("{}status", told()), &again.status.unwrap_or_default(), &planned.status)?;
    let course = run(&mut snapshot.clone(), &mut Server::new(model, Reads::Expected), key)?;
    let carried_out = effects.iter().filter(|effect| !matches!(effect, Effect::Requeue(_)));
    let carried_out: Vec<Effect> = carried_out.cloned().collect();
    same(format_args!("{key}: what is done is not what was planned"), &course.effects(), &carried_out)
}

/// After a pass that started with a phase and in which every effect succeeded, the next gives no effect but
/// reads, and an equal binding.
///
/// # Errors
/// What the second pass did.
pub fn settles(model: &Model, snapshot: &Snapshot, key: &BindingKey, reads: Reads) -> Verdict {
    let is_new = snapshot.binding(key).is_some_and(|binding| binding.status.phase.as_str().is_empty());
    if is_new || shares_a_crd(snapshot, key) {
        return Ok(());
    }
    let (mut snapshot, mut server) = (snapshot.clone(), Server::new(model, reads));
    let first = run(&mut snapshot, &mut server, key)?;
    if first.exchanges.iter().all(|exchange| exchange.effect.is_read()) {
        return Ok(());
    }
    let second = run(&mut snapshot, &mut server, key)?;
    let told = || format!("{key}: first\n{}then\n{}", lines(&first.effects()), lines(&second.effects()));
    if let Some(other) = second.effects().iter().find(|effect| !effect.is_read()) {
        return Err(format!("{}not expected: {other}", told()));
    }
    same(format_args!("{}status", told()), &second.status, &first.status)
}

/// True if the binding and a neighbour list one bound CRD, which `exclusive` keeps from happening. While the
/// binding lists it, it is no rival (D9); when a pass has put another one in its place, it is. So what
/// this pass binds may be in conflict in the next.
fn shares_a_crd(snapshot: &Snapshot, key: &BindingKey) -> bool {
    let Some(binding) = snapshot.binding(key) else { return false };
    let neighbours = snapshot.bindings().into_iter().filter(|other| other.cluster == key.cluster && other != key);
    let mut neighbours = neighbours.filter_map(|other| snapshot.binding(&other));
    neighbours.any(|other| binding.status.bound_resources.iter().any(|bound| other.lists(&bound.schema.uid)))
}
