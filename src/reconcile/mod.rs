//! What to do: SPEC sections 3 to 8, a file a step.
//!
//! [`reconcile`] is pure and total. It plans as far ahead as can be told: every effect is taken
//! to succeed, every read to find nothing. Only the first effect is to be carried out; what comes
//! of it makes the next plan. [`crate::pass::Pass`] does that.

mod binding;
mod claims;
mod commit;
mod conditions;
mod export;
mod locks;
pub(crate) mod names;
pub(crate) mod notes;
pub(crate) mod trace;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;

use crate::api::{ApiBinding, ApiBindingStatus, BindingKey, ClusterName, Phase, Text};
use crate::effect::{CreateCrd, Effect, Retry};
use crate::snapshot::world::World;
use crate::snapshot::{Binding, Cluster, Crd, Schema, Snapshot};
use conditions::{Draft, Severity, Verdict};
use notes::{Creation, Notes};
use trace::{CrdFound, Trace, Untraced};

/// The field manager under which this controller writes.
pub const FIELD_MANAGER: &str = "kcp-apibinding";

const WAITING: &str = "Waiting for API(s) to be established";
const INVALID_EXPORT: &str = "Invalid APIExport. Please contact the APIExport owner to resolve";

/// What the controller would do about a binding, all effects in order, and the binding as it would
/// then be.
///
/// `binding` stands in for the snapshot's object of that key. Nothing but the two arguments
/// is looked at; the same arguments give the same bytes. Carry out the *first* effect only, feed
/// its answer back into the snapshot, and plan again: [`Pass`](crate::pass::Pass) does so, and
/// keeps what the rules want kept between one plan and the next.
///
/// ```
/// use apibinding::api::{ApiBinding, Phase};
/// use apibinding::snapshot::{Layout, Snapshot};
///
/// let binding: ApiBinding = serde_json::from_str(r#"{
///     "metadata": {"name": "geese", "annotations": {"kcp.io/cluster": "meadow"}, "resourceVersion": "7"},
///     "spec": {"reference": {"export": {"path": "root:farm", "name": "geese"}}}
/// }"#)?;
/// let (bound, effects) = apibinding::reconcile(&Snapshot::new(Layout::Split), &binding);
/// assert_eq!(bound.status.phase, Phase::Binding);
/// let shown: Vec<String> = effects.iter().map(ToString::to_string).collect();
/// assert_eq!(shown, [
///     "apply status to APIBinding meadow|geese as kcp-apibinding, forced, at resourceVersion 7",
///     "look again at once",
/// ]);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn reconcile(snapshot: &Snapshot, binding: &ApiBinding) -> (ApiBinding, Vec<Effect>) {
    let key = binding.key();
    let snapshot = snapshot.with_binding(&key, binding);
    let plan = plan(&snapshot, &key, &Notes::default(), &mut Untraced);
    let mut binding = binding.clone();
    if let Some(status) = plan.status {
        binding.status = status;
    }
    let mut effects = plan.effects;
    if plan.retry != Retry::Forget {
        effects.push(Effect::Requeue(plan.retry));
    }
    (binding, effects)
}

/// What the controller would do about the key of a binding that does not exist: remove the locks
/// that it and others left behind, where the server knows no such binding (SPEC 11). For the key of
/// a binding that exists, see [`reconcile`].
pub fn release(snapshot: &Snapshot, key: &BindingKey) -> Vec<Effect> {
    if snapshot.binding(key).is_some() {
        return Vec::new();
    }
    plan(snapshot, key, &Notes::default(), &mut Untraced).effects
}

/// What is to be done about one key.
pub(crate) struct Plan {
    /// The binding that was planned; `None` if there is none.
    pub(crate) binding: Option<Arc<Binding>>,
    /// The status that it should have, if it is another than it has.
    pub(crate) status: Option<ApiBindingStatus>,
    /// Everything but the requeue.
    pub(crate) effects: Vec<Effect>,
    /// When to look again, if no effect fails.
    pub(crate) retry: Retry,
}

/// One plan in the making.
pub(crate) struct Planning<'p, T> {
    pub(crate) world: &'p World,
    pub(crate) key: &'p BindingKey,
    /// What is known of the binding's logical cluster.
    pub(crate) workspace: Option<&'p Cluster>,
    /// The cluster of the bound CRDs.
    pub(crate) crds: Option<&'p Cluster>,
    /// The binding; an empty one if it does not exist.
    pub(crate) binding: &'p Binding,
    pub(crate) exists: bool,
    pub(crate) notes: &'p Notes,
    pub(crate) trace: &'p mut T,
    /// False if only the first effect counts.
    to_the_end: bool,
    effects: Vec<Effect>,
    /// The CRDs among them: each is created once (D21).
    created: BTreeSet<Text>,
    look_after: Option<Timestamp>,
}

/// Plans one key (SPEC 3), or, where there is no such binding, the release of dead locks (SPEC 11).
pub(crate) fn plan<T: Trace>(snapshot: &Snapshot, key: &BindingKey, notes: &Notes, trace: &mut T) -> Plan {
    let plan = plan_as_known(snapshot, key, notes, trace);
    if creates_for_neighbours(snapshot, key, &plan) { plan_beyond(snapshot, key, notes, plan) } else { plan }
}

/// True if a CRD is to be created that a neighbour lists: with that it takes its names from others,
/// this binding included (D9 speaks of such a one, without a uid of its own yet).
fn creates_for_neighbours(snapshot: &Snapshot, key: &BindingKey, plan: &Plan) -> bool {
    let workspace = snapshot.world().cluster(&key.cluster);
    let is_listed = |uid: &Text| workspace.is_some_and(|known| known.listing(uid).any(|name| *name != key.name));
    plan.creations().any(|create| is_listed(&create.name))
}

/// Plans again on what is known once CRDs are created. The first of them whose names stop the
/// binding is the last that is created; of a thousand it is found in ten plans.
fn plan_beyond(snapshot: &Snapshot, key: &BindingKey, notes: &Notes, mut plan: Plan) -> Plan {
    let creations: Vec<CreateCrd> = plan.creations().cloned().collect();
    let after = |count: usize| {
        let mut ahead = snapshot.clone();
        let created = creations.iter().take(count);
        created.for_each(|create| ahead.expect_crd(&create.schema_cluster, &create.schema_name));
        plan_as_known(&ahead, key, notes, &mut Untraced)
    };
    let goes_on = |count: usize| after(count).creations().count() == creations.len() - count;
    let (mut goes, mut stops) = (0, creations.len());
    while goes + 1 < stops {
        let middle = goes.midpoint(stops);
        if goes_on(middle) { goes = middle } else { stops = middle }
    }
    let mut beyond = after(stops);
    let last = creations.get(stops.saturating_sub(1)).map(|create| &create.name);
    let is_last = |effect: &Effect| matches!(effect, Effect::CreateCrd(create) if Some(&create.name) == last);
    let end = plan.effects.iter().position(is_last).map_or(0, |position| position + 1);
    plan.effects.truncate(end);
    // Reads and locks are planned again just so, before anything else.
    let is_lock = |effect: &Effect| matches!(effect, Effect::PatchLogicalCluster(_));
    let has_lock = plan.effects.iter().any(is_lock);
    beyond.effects.retain(|effect| match effect {
        Effect::PatchLogicalCluster(_) => !has_lock,
        effect if effect.is_read() => !plan.effects.contains(effect),
        _ => true,
    });
    plan.effects.append(&mut beyond.effects);
    Plan { effects: plan.effects, ..beyond }
}

/// Plans on what is known, and takes what is created for CRDs without names.
pub(crate) fn plan_as_known<T: Trace>(snapshot: &Snapshot, key: &BindingKey, notes: &Notes, trace: &mut T) -> Plan {
    plan_far(snapshot, key, notes, trace, true)
}

/// The same without any effect but the first, which is all that a pass carries out.
pub(crate) fn plan_first(snapshot: &Snapshot, key: &BindingKey, notes: &Notes) -> Plan {
    plan_far(snapshot, key, notes, &mut Untraced, false)
}

fn plan_far<T: Trace>(snapshot: &Snapshot, key: &BindingKey, notes: &Notes, trace: &mut T, to_the_end: bool) -> Plan {
    let world = snapshot.world();
    let workspace = world.cluster(&key.cluster);
    let found = workspace.and_then(|known| known.binding(&key.name)).cloned();
    let nobody;
    let binding = match &found {
        Some(found) => &**found,
        None => {
            nobody = Binding::default();
            &nobody
        }
    };
    let mut planning = Planning {
        world,
        key,
        workspace,
        crds: world.bound_crds(),
        binding,
        exists: found.is_some(),
        notes,
        trace,
        to_the_end,
        effects: Vec::new(),
        created: BTreeSet::new(),
        look_after: None,
    };
    if !planning.exists {
        locks::release(&mut planning);
        let effects = planning.effects;
        return Plan { binding: None, status: None, effects, retry: Retry::Forget };
    }
    claims::ensure(&mut planning);
    let mut draft = Draft::new(&binding.status);
    let is_new = binding.status.phase == Phase::New;
    match binding.status.phase {
        Phase::New => {
            draft.begin(Verdict { reason: "WaitingForEstablished", severity: Severity::Info, message: WAITING.into() });
        }
        Phase::Binding | Phase::Bound => binding::bind(&mut planning, &mut draft),
        Phase::Other(_) => {}
    }
    if !(binding.is_well && draft.is_well()) {
        draft.set_verdicts(world.now());
        if !is_new {
            draft.summarise(world.now());
        }
    }
    let status = draft.finish();
    if let Some(status) = &status {
        planning.act(|| commit::patch(key, binding, status));
    }
    let Planning { effects, look_after, .. } = planning;
    let retry = match look_after {
        _ if is_new => Retry::Now,
        Some(time) => Retry::After(time),
        None => Retry::Forget,
    };
    Plan { binding: found, status, effects, retry }
}

impl Plan {
    fn creations(&self) -> impl Iterator<Item = &CreateCrd> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::CreateCrd(create) => Some(create),
            _ => None,
        })
    }
}

impl<'p, T: Trace> Planning<'p, T> {
    /// Asks for a look when a lock is over, if it is earlier than what was asked for before (D19).
    fn look_after(&mut self, time: Option<Timestamp>) {
        self.look_after = self.look_after.into_iter().chain(time).min();
    }

    /// Plans an effect. Its body is not made where only the first one counts, and there is one.
    fn act(&mut self, effect: impl FnOnce() -> Effect) {
        if self.wants_more() {
            self.effects.push(effect());
        }
    }

    fn wants_more(&self) -> bool {
        self.to_the_end || self.effects.is_empty()
    }

    /// A schema's bound CRD, if it is there.
    fn observed_crd(&self, schema: &Schema) -> Option<&'p Crd> {
        self.crds?.crd(&schema.meta.uid).map(|crd| &**crd)
    }

    /// The state of a schema's bound CRD, by the snapshot and what came of creating it.
    fn bound_crd(&self, schema: &Schema) -> CrdFound {
        match (self.observed_crd(schema), self.notes.creations.get(&schema.meta.uid)) {
            (_, Some(Creation::Invalid(causes))) => CrdFound::Invalid(causes.clone()),
            (_, Some(Creation::Failed)) => CrdFound::Failed,
            (Some(crd), _) if crd.serving => CrdFound::Serving,
            (Some(_), _) | (None, Some(Creation::There)) => CrdFound::NotEstablished,
            (None, None) => CrdFound::Absent,
        }
    }

    /// Plans to create a schema's bound CRD, once.
    fn create(&mut self, cluster: &ClusterName, name: &str, schema: &Schema) -> CrdFound {
        let body = match &schema.crd {
            Ok(body) => body,
            Err(why) => return CrdFound::CannotBeMade(why.clone()),
        };
        if self.created.insert(schema.meta.uid.clone()) {
            self.act(|| {
                Effect::CreateCrd(CreateCrd {
                    cluster: ClusterName::BOUND_CRDS.into(),
                    name: schema.meta.uid.clone(),
                    schema_cluster: cluster.clone(),
                    schema_name: name.into(),
                    body: body.clone(),
                })
            });
        }
        CrdFound::Absent
    }
}

#[cfg(test)]
mod tests;
