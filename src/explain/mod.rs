//! Why a binding is as it is: the trace of a plan as data.
//!
//! [`explain`] runs the very plan that [`reconcile`](crate::reconcile) runs, with a trace that
//! listens, so there is one telling of the rules.

mod advice;
mod tree;

use serde::Serialize;

pub use crate::reconcile::names::Conflict;
pub use crate::reconcile::trace::{ClaimFound, CrdFound, ExportFound, HomeFound, LockFound};

use crate::api::{
    ApiBindingStatus, BindingKey, ClusterName, ClusterPath, Condition, GroupResource, IdentityHash, Phase, Text,
};
use crate::effect::{Effect, Retry};
use crate::reconcile::notes::Notes;
use crate::reconcile::trace::{Finding, Trace, Untraced};
use crate::reconcile::{Plan, plan};
use crate::snapshot::Snapshot;

/// Everything between a binding and being bound, in the order in which the controller asks.
///
/// Printed, it is a tree for a person; serialised, it is the same as data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Explanation {
    /// The binding.
    pub binding: BindingKey,
    /// The path of its logical cluster, where it is known.
    #[serde(skip_serializing_if = "ClusterPath::is_empty")]
    pub path: ClusterPath,
    /// Its phase as it is; `None` if there is no such binding.
    pub phase: Option<Phase>,
    /// The export that it refers to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<ExportExplanation>,
    /// Whether the locks of its logical cluster can be read; `None` if that was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locks: Option<HomeFound>,
    /// What the export offers, in its order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceExplanation>,
    /// The claims that the binding accepts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimExplanation>,
    /// The conditions that are now reported as not True.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reported: Vec<Condition>,
    /// What comes of all that.
    pub verdict: Verdict,
    /// What the controller would do next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Effect>,
    /// Which events would change the verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// What only a person can do about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cures: Vec<String>,
}

impl Explanation {
    /// True if the binding is bound: its phase says so.
    pub fn is_bound(&self) -> bool {
        self.phase == Some(Phase::Bound)
    }
}

/// The export of a binding.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExportExplanation {
    /// The path under which it was looked up: the reference's, or the binding's own cluster.
    pub path: ClusterPath,
    /// Its name.
    pub name: Text,
    /// What was found there.
    pub found: ExportFound,
    /// Its identity; `None` if it has none yet.
    pub identity: Option<IdentityHash>,
}

/// One resource that the export offers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceExplanation {
    /// The logical cluster of its schema.
    pub schema_cluster: ClusterName,
    /// The name of its schema.
    pub schema: Text,
    /// The schema's uid, which is the name of the bound CRD; `None` if there is no such schema.
    pub uid: Option<Text>,
    /// The resource; `None` if there is no such schema.
    pub resource: Option<GroupResource>,
    /// Who holds it; `None` if that was not asked.
    pub lock: Option<LockFound>,
    /// Who has a name of it, if somebody has.
    pub conflict: Option<Conflict>,
    /// The state of its bound CRD; `None` if that was not asked.
    pub crd: Option<CrdFound>,
    /// True if the binding lists it as bound.
    pub bound: bool,
}

/// One claim that the binding accepts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClaimExplanation {
    /// What is claimed.
    pub resource: GroupResource,
    /// Whose it is.
    pub identity: IdentityHash,
    /// What came of it.
    pub found: ClaimFound,
}

/// How it stands with a binding.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Verdict {
    /// In one word.
    pub state: State,
    /// The reason that its conditions have, or will have next; empty where nothing is wrong.
    pub reason: Text,
    /// The message that goes with it.
    pub message: String,
}

/// How it stands with a binding, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum State {
    /// Bound, and nothing stands in the way.
    Bound,
    /// Bound, but not as the export now is.
    Outdated,
    /// Not bound yet; the controller and the servers are at it.
    Progressing,
    /// Not bound, and not before something happens.
    Stuck,
    /// There is no such binding.
    Absent,
    /// In a phase that this controller does not know, and leaves alone.
    Unknown,
}

/// Why a binding is as it is, and what would change that. There need not be such a binding.
pub fn explain(snapshot: &Snapshot, key: &BindingKey) -> Explanation {
    let home = snapshot.logical_cluster(&key.cluster);
    let mut explanation = Explanation {
        binding: key.clone(),
        path: home.map(|home| home.path.clone()).unwrap_or_default(),
        phase: None,
        export: None,
        locks: None,
        resources: Vec::new(),
        claims: Vec::new(),
        reported: Vec::new(),
        verdict: Verdict { state: State::Absent, reason: Text::default(), message: "there is no such binding".into() },
        next: Vec::new(),
        waits_for: Vec::new(),
        cures: Vec::new(),
    };
    let now = plan(snapshot, key, &Notes::default(), &mut Untraced);
    explanation.next = effects(&now);
    let Some(binding) = snapshot.binding(key) else { return explanation };
    let status = &binding.status;
    explanation.phase = Some(status.phase.clone());
    explanation.reported = status.conditions.iter().filter(|condition| !condition.is_true()).cloned().collect();
    // A binding without phase gets one first; what it will meet then is what one wants to know.
    let ahead = snapshot.with_phase(key, &Phase::New, Phase::Binding);
    let plan = plan(&ahead, key, &Notes::default(), &mut explanation);
    for resource in &mut explanation.resources {
        resource.bound = resource.uid.as_ref().is_some_and(|uid| binding.lists(uid));
    }
    explanation.verdict = verdict(&explanation, plan.status.as_ref().unwrap_or(status));
    (explanation.waits_for, explanation.cures) = advice::advice(&explanation, snapshot);
    explanation
}

fn effects(plan: &Plan) -> Vec<Effect> {
    let requeue = Some(plan.retry).filter(|retry| *retry != Retry::Forget).map(Effect::Requeue);
    plan.effects.iter().cloned().chain(requeue).collect()
}

/// The verdict, by the status that the plan arrives at. Where that says only that the controller
/// tries, and it has tried before, what came of it then is the verdict.
fn verdict(explanation: &Explanation, planned: &ApiBindingStatus) -> Verdict {
    if let Some(Phase::Other(phase)) = &explanation.phase {
        let message = format!("phase {phase} is not one that this controller knows");
        return Verdict { state: State::Unknown, reason: Text::default(), message };
    }
    let wrong =
        |status: &ApiBindingStatus, kind: &str| status.condition(kind).filter(|found| !found.is_true()).cloned();
    let export = wrong(planned, Condition::API_EXPORT_VALID);
    let binding = wrong(planned, Condition::BINDING_UP_TO_DATE);
    let tried = explanation.failed_before();
    let is_stuck = export.is_some() || tried.is_some() || explanation.is_held();
    let state = match (explanation.is_bound(), export.is_some() || binding.is_some(), is_stuck) {
        (true, false, _) => State::Bound,
        (true, true, _) => State::Outdated,
        (false, _, true) => State::Stuck,
        (false, _, false) => State::Progressing,
    };
    match tried.or(export).or(binding) {
        Some(condition) => Verdict { state, reason: condition.reason.clone(), message: condition.message.to_string() },
        None => Verdict { state, reason: Text::default(), message: String::new() },
    }
}

impl Explanation {
    /// True if something stands in the way that the controller cannot do anything about.
    fn is_held(&self) -> bool {
        !matches!(self.locks, Some(HomeFound::Readable | HomeFound::WrittenAnew { .. }))
            || self.resources.iter().any(|resource| {
                resource.conflict.is_some()
                    || matches!(resource.lock, Some(LockFound::Held { .. }))
                    || matches!(resource.crd, Some(CrdFound::CannotBeMade(_)))
            })
    }

    /// What is reported of the last try of an effect that is to be tried again: a plan takes it to
    /// succeed, and only the report knows that it did not.
    fn failed_before(&self) -> Option<Condition> {
        let reported = self.reported.iter().find(|found| found.kind == Condition::BINDING_UP_TO_DATE)?;
        let creates = self.resources.iter().find(|resource| resource.crd == Some(CrdFound::Absent));
        let is_invalid = |resource: &ResourceExplanation| {
            let which = format!("APIResourceSchema {}|{} is invalid", resource.schema_cluster, resource.schema);
            reported.reason == "APIResourceSchemaInvalid" && reported.message.starts_with(&which)
        };
        let locks = self.next.iter().any(|effect| matches!(effect, Effect::PatchLogicalCluster(_)));
        let has_failed =
            creates.is_some_and(is_invalid) || (reported.reason == "InternalError" && (creates.is_some() || locks));
        has_failed.then(|| reported.clone())
    }

    fn of_resource(&mut self, resource: &GroupResource, set: impl Fn(&mut ResourceExplanation)) {
        self.resources.iter_mut().filter(|found| found.resource.as_ref() == Some(resource)).for_each(set);
    }
}

/// An explanation listens to the plan.
impl Trace for Explanation {
    fn note(&mut self, finding: impl FnOnce() -> Finding) {
        match finding() {
            Finding::Export { path, name, found } => {
                self.export = Some(ExportExplanation { path, name, found, identity: None });
            }
            Finding::Identity(identity) => {
                if let Some(export) = &mut self.export {
                    export.identity = Some(identity);
                }
            }
            Finding::Schema { cluster, name, found } => {
                let (resource, uid) = found.unzip();
                self.resources.push(ResourceExplanation {
                    schema_cluster: cluster,
                    schema: name,
                    uid,
                    resource,
                    lock: None,
                    conflict: None,
                    crd: None,
                    bound: false,
                });
            }
            Finding::Home(found) => self.locks = Some(found),
            Finding::Lock(resource, found) => self.of_resource(&resource, |known| known.lock = Some(found.clone())),
            Finding::Conflict { resource, conflict } => {
                self.of_resource(&resource, |known| known.conflict = Some(conflict.clone()));
            }
            Finding::Crd { resource, uid, found } => {
                self.of_resource(&resource, |known| {
                    if known.uid.as_ref() == Some(&uid) {
                        known.crd = Some(found.clone());
                    }
                });
            }
            Finding::Claim { resource, identity, found } => {
                self.claims.push(ClaimExplanation { resource, identity, found });
            }
        }
    }
}

#[cfg(test)]
mod tests;
