//! The loop around the plan: plan, act, observe, until nothing is left to do.

use std::sync::Arc;
use std::time::Duration;

use crate::api::{ApiBindingStatus, BindingKey, Kind, Text};
use crate::effect::{CreateCrd, Effect, Outcome, Patch, Retry};
use crate::reconcile::notes::{BindingRead, CrdRead, Creation, Notes};
use crate::reconcile::{Plan, plan_first};
use crate::snapshot::{Binding, Change, Origin, Snapshot};

/// How often a write is tried before the pass gives up (SPEC 4, 10).
const ATTEMPTS: u32 = 5;

/// What a [`Pass`] wants next.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Carry this out and tell [`Pass::observe`] what comes of it.
    Act(Effect),
    /// The pass is over; the key is to be looked at again then.
    Done(Retry),
}

/// One processing of a key (SPEC 11, 12): a machine that is polled.
///
/// It keeps what the rules want kept from one plan to the next: what came of creating CRDs and of
/// writing the lock, and what the server said when it was asked. None of that enters the snapshot,
/// and a pass that is dropped half-way leaves nothing to be cleaned up.
#[derive(Clone, Debug)]
pub struct Pass {
    key: BindingKey,
    notes: Notes,
    /// The effect that is being carried out.
    acting: Option<Effect>,
    /// The binding that was planned last, and the status that it should have had.
    planned: Option<(Arc<Binding>, Option<ApiBindingStatus>)>,
    /// When to look again, by the last plan.
    retry: Retry,
    is_over: bool,
    failure: Failure,
    /// The same, of claims while the binding had no phase.
    early_failure: Failure,
    /// Since the last commit that was tried.
    lock: LockAttempts,
    commit_conflicts: u32,
    /// The version of the LogicalCluster on which answers of reads count.
    asked_on: Text,
    /// How often this attempt lost its answers because the LogicalCluster changed.
    lost_answers: u32,
    /// The longest wait asked for by a read of this attempt that failed.
    read_wait: Option<Duration>,
}

/// Whether an effect other than a read failed, and the longest wait asked for.
#[derive(Clone, Debug, Default)]
struct Failure {
    happened: bool,
    wait: Option<Duration>,
}

#[derive(Clone, Debug, Default)]
struct LockAttempts {
    writes: u32,
    conflicts: u32,
    /// What the server said last.
    message: Text,
}

impl Pass {
    /// A pass over this key. There may be no such binding: then what it left is released.
    pub fn new(key: BindingKey) -> Self {
        Self {
            key,
            notes: Notes::default(),
            acting: None,
            planned: None,
            retry: Retry::Forget,
            is_over: false,
            failure: Failure::default(),
            early_failure: Failure::default(),
            lock: LockAttempts::default(),
            commit_conflicts: 0,
            asked_on: Text::default(),
            lost_answers: 0,
            read_wait: None,
        }
    }

    /// The key.
    pub fn key(&self) -> &BindingKey {
        &self.key
    }

    /// The status that the last plan of the binding wanted, committed or not. `None`: no plan has
    /// seen the binding.
    pub fn status(&self) -> Option<&ApiBindingStatus> {
        let (binding, status) = self.planned.as_ref()?;
        Some(status.as_ref().unwrap_or(&binding.status))
    }

    /// Plans on this snapshot: what to do first, or that nothing is left.
    ///
    /// The snapshot has to hold the changes that [`Pass::observe`] gave; a newer one is welcome.
    /// Polled again without an observation in between, it plans again.
    ///
    /// Best is the snapshot whose changes wake keys, or a clone made after that took in what was
    /// observed. A clone from before that took in the same is as safe, but it may know of something that
    /// the other has passed over, and then no event tells that it is over: whoever has planned on such
    /// a clone adds the key again when the pass is done (`DEVIATIONS.md`, "What no event tells").
    pub fn poll(&mut self, snapshot: &Snapshot) -> Step {
        self.acting = None;
        if self.is_over {
            return Step::Done(self.end());
        }
        self.check_answers(snapshot);
        let mut plan = self.plan(snapshot);
        if self.lock.writes == ATTEMPTS && matches!(plan.effects.first(), Some(Effect::PatchLogicalCluster(_))) {
            // Written as often as may be, and lost each time.
            self.failure.happened = true;
            self.notes.lock_failure = Some(self.lock.message.clone());
            plan = self.plan(snapshot);
        }
        self.retry = plan.retry;
        if let Some(binding) = plan.binding {
            self.planned = Some((binding, plan.status));
        }
        let Some(effect) = plan.effects.into_iter().next() else {
            self.is_over = true;
            return Step::Done(self.end());
        };
        if effect.is_read() {
            self.asked_on = self.home_version(snapshot);
        }
        self.acting = Some(effect.clone());
        Step::Act(effect)
    }

    /// Only the first effect is carried out, so there is no need to look past what is known.
    fn plan(&self, snapshot: &Snapshot) -> Plan {
        plan_first(snapshot, &self.key, &self.notes)
    }

    /// Takes in what came of the effect that was given last, and gives what that tells about the
    /// world, to be applied to the snapshot. Without such an effect nothing happens.
    ///
    /// Wake those whom these changes concern, as for any event: when a watch tells the same later, it
    /// is no news any more, and wakes nobody.
    pub fn observe(&mut self, outcome: Outcome) -> Vec<Change> {
        match self.acting.take() {
            Some(Effect::CreateCrd(create)) => self.observe_creation(&create, outcome),
            Some(Effect::ReadApiBinding(key)) => self.observe_binding_read(key.name, &outcome),
            Some(Effect::ReadCrd(read)) => {
                let answer = match &outcome {
                    Outcome::Done(_) => CrdRead::Present,
                    no if no.has_reason("NotFound") => CrdRead::Absent,
                    unknown => self.unknown(unknown, CrdRead::Unknown),
                };
                self.notes.crds.insert(read.resource, answer);
                Vec::new()
            }
            Some(Effect::PatchLogicalCluster(patch)) => self.observe_lock(&patch, outcome),
            Some(Effect::PatchApiBindingStatus(patch)) => self.observe_commit(&patch, outcome),
            Some(Effect::Requeue(_)) | None => Vec::new(),
        }
    }

    fn observe_creation(&mut self, create: &CreateCrd, outcome: Outcome) -> Vec<Change> {
        let creation = match &outcome {
            Outcome::Done(_) => Creation::There,
            there if there.has_reason("AlreadyExists") => Creation::There,
            invalid if invalid.has_reason("Invalid") => Creation::Invalid(causes(invalid)),
            failed => {
                // Over a binding without phase only claims create, and the key comes back at once
                // anyway: unless the binding has got a phase by the last plan, this is no failure.
                match self.retry {
                    Retry::Now => self.early_failure.note(failed),
                    _ => self.failure.note(failed),
                }
                Creation::Failed
            }
        };
        self.notes.creations.insert(create.name.clone(), creation);
        seen(outcome)
    }

    fn observe_binding_read(&mut self, name: Text, outcome: &Outcome) -> Vec<Change> {
        let answer = match outcome {
            Outcome::Done(object) => BindingRead::Present(object.metadata().uid.as_deref().unwrap_or_default().into()),
            no if no.has_reason("NotFound") => BindingRead::Absent,
            unknown => self.unknown(unknown, BindingRead::Unknown),
        };
        self.notes.bindings.insert(name, answer);
        Vec::new()
    }

    fn unknown<A>(&mut self, outcome: &Outcome, answer: A) -> A {
        self.read_wait = self.read_wait.max(outcome.retry_after());
        answer
    }

    fn observe_lock(&mut self, patch: &Patch, outcome: Outcome) -> Vec<Change> {
        self.lock.writes += 1;
        self.lock.message = outcome.message();
        match &outcome {
            Outcome::Done(object) => {
                // What this attempt itself made of the LogicalCluster leaves its answers standing.
                self.asked_on = object.metadata().resource_version.as_deref().unwrap_or_default().into();
            }
            Outcome::Conflict { status, .. } => {
                self.lock.conflicts += 1;
                let mut causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
                if causes.any(|cause| cause.reason.as_deref() == Some("FieldManagerConflict")) {
                    self.notes.force = true;
                }
                self.begin_attempt();
                if self.lock.conflicts == ATTEMPTS {
                    self.failure.note(&outcome);
                    self.notes.lock_failure = Some(outcome.message());
                }
            }
            refused => {
                if !refused.has_reason("Invalid") {
                    self.failure.note(refused);
                }
                self.notes.lock_failure = Some(refused.message());
            }
        }
        seen_or_gone(Kind::LogicalCluster, patch, outcome)
    }

    fn observe_commit(&mut self, patch: &Patch, outcome: Outcome) -> Vec<Change> {
        match &outcome {
            Outcome::Done(_) => self.is_over = true,
            Outcome::Conflict { .. } => {
                self.commit_conflicts += 1;
                if self.commit_conflicts == ATTEMPTS {
                    self.failure.note(&outcome);
                    self.is_over = true;
                } else {
                    self.begin_attempt();
                    self.lock = LockAttempts::default();
                    self.notes.lock_failure = None;
                }
            }
            gone if gone.has_reason("NotFound") => {
                self.is_over = true;
                self.retry = Retry::Forget;
            }
            failed => {
                self.failure.note(failed);
                self.is_over = true;
            }
        }
        seen_or_gone(Kind::ApiBinding, patch, outcome)
    }

    /// A new attempt asks the server anew.
    fn begin_attempt(&mut self) {
        self.notes.forget_answers();
        self.notes.ask_no_more = false;
        self.lost_answers = 0;
        self.read_wait = None;
    }

    /// Answers count only on the LogicalCluster that they were asked on (SPEC 11).
    fn check_answers(&mut self, snapshot: &Snapshot) {
        if self.notes.has_answers() && self.home_version(snapshot) != self.asked_on {
            self.notes.forget_answers();
            self.read_wait = None;
            self.lost_answers += 1;
            // A LogicalCluster that never rests must not keep the pass from its end.
            self.notes.ask_no_more = self.lost_answers == ATTEMPTS;
        }
    }

    fn home_version(&self, snapshot: &Snapshot) -> Text {
        snapshot.logical_cluster(&self.key.cluster).map(|home| home.meta.resource_version.clone()).unwrap_or_default()
    }

    /// SPEC 12: the first that applies.
    fn end(&self) -> Retry {
        let early = Some(&self.early_failure).filter(|early| early.happened && self.retry != Retry::Now);
        if self.failure.happened || early.is_some() || self.notes.lacks_answers() || self.notes.ask_no_more {
            let wait = self.failure.wait.max(early.and_then(|early| early.wait));
            return Retry::Backoff { at_least: wait.max(self.read_wait) };
        }
        self.retry
    }
}

impl Failure {
    fn note(&mut self, outcome: &Outcome) {
        self.happened = true;
        self.wait = self.wait.max(outcome.retry_after());
    }
}

/// Drives one pass to its end on a snapshot of the caller's, which takes in what is observed.
///
/// For one key alone, in tests and the like: whom else the changes concern is not told.
pub fn settle(snapshot: &mut Snapshot, key: BindingKey, mut execute: impl FnMut(&Effect) -> Outcome) -> Retry {
    let mut pass = Pass::new(key);
    loop {
        match pass.poll(snapshot) {
            Step::Done(retry) => return retry,
            Step::Act(effect) => {
                for change in pass.observe(execute(&effect)) {
                    snapshot.apply(change);
                }
            }
        }
    }
}

/// An object that an answer brought, done or read again after a conflict.
fn seen(outcome: Outcome) -> Vec<Change> {
    let object = match outcome {
        Outcome::Done(object) => Some(object),
        Outcome::Conflict { current, .. } => current,
        Outcome::Refused(_) | Outcome::NoAnswer(_) => None,
    };
    object.map(|object| Change::Put { origin: Origin::Local, object }).into_iter().collect()
}

/// As [`seen`], or that the object is gone.
fn seen_or_gone(kind: Kind, patch: &Patch, outcome: Outcome) -> Vec<Change> {
    if let Outcome::Conflict { current: None, .. } = outcome {
        let key = BindingKey::new(patch.cluster.clone(), patch.name.clone());
        return vec![Change::Delete {
            origin: Origin::Local,
            kind,
            key,
            resource_version: patch.resource_version.clone(),
        }];
    }
    seen(outcome)
}

/// Why a CRD is invalid, as a person reads it (D17).
fn causes(outcome: &Outcome) -> Text {
    let causes =
        outcome.status().and_then(|status| status.details.as_ref()).and_then(|details| details.causes.as_ref());
    let causes = causes.into_iter().flatten().map(|cause| {
        let message = cause.message.as_deref().unwrap_or_default();
        match cause.field.as_deref() {
            None | Some("") => message.to_owned(),
            Some(field) => format!("{field}: {message}"),
        }
    });
    match causes.collect::<Vec<_>>() {
        none if none.is_empty() => outcome.message(),
        causes => causes.join("; ").into(),
    }
}

#[cfg(test)]
mod tests;
