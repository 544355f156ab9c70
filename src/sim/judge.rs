//! The laws, asked of a world that runs.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::kcp::{at, text_at};
use super::laws::{self, Bounds, Broken, Law, Model, Owners, Reads, Verdict};
use super::process::Process;
use super::shard::Shard;
use super::{Chance, Event, Happened, Kcp};
use crate::api::{ApiBindingStatus, BindingKey, GroupResource, Kind, Text};
use crate::effect::{Effect, Outcome};
use crate::snapshot::{Change, Layout, Lock, Origin, STREAMS, Snapshot};

/// One step in so many is looked at closely.
const CLOSELY: u64 = 64;

/// A worker of a controller.
type Place = (usize, usize);

/// Who watches whether the laws hold. It stops at the first that does not.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    broken: Option<Broken>,
    /// What each controller should know.
    models: Vec<Model>,
    bounds: BTreeMap<Place, Bounds>,
    /// The version of the LogicalCluster on which each pass planned last.
    asked_on: BTreeMap<Place, Text>,
    owners: Owners,
    /// Something is on that nobody can promise anything against: then it is only counted how often two
    /// bindings list one resource.
    is_lenient: bool,
    shared: u64,
    /// Bindings that may list what another one lists. See [`Judge::excuse`].
    excused: BTreeSet<BindingKey>,
    /// The version at which the binding of a uid was created.
    created: BTreeMap<Text, u64>,
    chance: Chance,
    steps: u64,
    /// The next change is looked at closely.
    is_close: bool,
    /// At this step events are told anyhow.
    late_at: u64,
}

impl Judge {
    pub fn new(shards: &[Shard], processes: &[Process], is_lenient: bool, chance: Chance) -> Self {
        let models =
            processes.iter().map(|process| Model::new(process.snapshot.layout(), process.snapshot.now())).collect();
        let mut judge = Self {
            broken: None,
            models,
            bounds: BTreeMap::new(),
            asked_on: BTreeMap::new(),
            owners: Owners::default(),
            is_lenient,
            shared: 0,
            excused: BTreeSet::new(),
            created: BTreeMap::new(),
            chance,
            steps: 0,
            is_close: true,
            late_at: 0,
        };
        judge.late_at = judge.chance.within(20..400);
        for binding in shards.iter().flat_map(|shard| shard.kcp.list(Origin::Local, Kind::ApiBinding, None)) {
            judge.note_binding(&super::kcp::key_of(binding), Some(binding), 0);
        }
        judge
    }

    pub fn broken(&self) -> Option<&Broken> {
        self.broken.as_ref()
    }

    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// Takes note of what a law says.
    pub fn ask(&mut self, law: Law, verdict: Verdict) {
        if let (None, Err(why)) = (&self.broken, verdict) {
            self.broken = Some(Broken::new(law, why));
        }
    }

    fn note_binding(&mut self, key: &BindingKey, binding: Option<&Value>, version: u64) {
        let status = binding.map(|binding| ApiBindingStatus::deserialize(at(binding, &["status"])).unwrap_or_default());
        if let Some(binding) = binding {
            self.created.entry(text_at(binding, &["metadata", "uid"]).into()).or_insert(version);
        }
        let verdict = self.owners.note(key, status.as_ref());
        if status.is_none() {
            // Its successor needs an excuse of its own.
            self.excused.remove(key);
        }
        match verdict {
            Err(_) if self.is_lenient || self.excused.contains(key) => self.shared += 1,
            verdict => self.ask(Law::Exclusive, verdict),
        }
    }

    /// Something happened at the server.
    pub fn happened(&mut self, origin: Origin, kind: Kind, event: &Event) {
        if (origin, kind) == (Origin::Local, Kind::ApiBinding) {
            let binding = (event.happened != Happened::Deleted).then_some(&*event.object);
            self.note_binding(&event.key, binding, event.version);
        }
    }

    /// A controller took in a change.
    pub fn learned(&mut self, at: usize, before: &Snapshot, after: &Snapshot, change: &Change, woken: &[BindingKey]) {
        let Some(model) = self.models.get_mut(at) else { return };
        model.now = after.now();
        if !std::mem::take(&mut self.is_close) {
            return model.apply(change);
        }
        let known = model.clone();
        model.apply(change);
        let verdict = laws::woken((before, &known), (after, model), woken);
        self.ask(Law::Woken, verdict.map_err(|why| format!("by {change:?}: {why}")));
    }

    /// A worker has planned.
    pub fn planned(&mut self, place: Place, is_new: bool, key: &BindingKey, view: &Snapshot, effect: &Effect) {
        if is_new {
            self.bounds.remove(&place);
        }
        let home = view.logical_cluster(&key.cluster);
        let version = home.map(|home| home.meta.resource_version.clone()).unwrap_or_default();
        let bounds = self.bounds.entry(place).or_default();
        // Answers count only on the LogicalCluster that they were asked on.
        if self.asked_on.insert(place, version.clone()).as_ref() != Some(&version) {
            bounds.forget_questions();
        }
        let verdict = bounds.planned(effect);
        self.ask(Law::Bounded, verdict.map_err(|why| format!("{key}: {why}")));
        if let Effect::PatchApiBindingStatus(patch) = effect {
            let body = patch.body.to_value();
            let next = ApiBindingStatus::deserialize(at(&body, &["status"])).unwrap_or_default();
            self.ask(Law::Exclusive, laws::newly_listed(view, key, &next));
            self.ask(Law::Exclusive, laws::named_apart(view, key, &next));
            if let Some(known) = view.binding(key) {
                let verdict = laws::monotone(view, key, &known.status, &next);
                self.ask(Law::Monotone, verdict.map_err(|why| format!("{key}: {why}")));
            }
        }
    }

    /// The server has done, or refused, what was planned on a view. `before`: the object that it was to be
    /// written to.
    pub fn executed(
        &mut self,
        kcp: &Kcp,
        key: &BindingKey,
        view: &Snapshot,
        before: Option<&Value>,
        effect: &Effect,
        outcome: &Outcome,
    ) {
        let Outcome::Done(_) = outcome else { return };
        if let Effect::PatchApiBindingStatus(_) = effect {
            self.excuse(key, view);
        }
        let written_at = before.map(|before| text_at(before, &["metadata", "resourceVersion"]).parse().unwrap_or(0));
        let lives = |lock: &Lock| {
            let holder =
                kcp.get(Origin::Local, Kind::ApiBinding, &BindingKey::new(key.cluster.clone(), lock.name.clone()));
            let uid = holder.map(|holder| text_at(holder, &["metadata", "uid"]));
            match uid {
                None => false,
                // One that has come since the locks were last written was not there to be seen.
                Some(uid) if lock.uid.is_empty() => {
                    self.created.get(uid).copied().unwrap_or(0) < written_at.unwrap_or(0)
                }
                Some(uid) => lock.uid == *uid,
            }
        };
        let exists = |resource: &GroupResource| {
            let crd = BindingKey::new(key.cluster.clone(), resource.crd_name());
            kcp.get(Origin::Local, Kind::Crd, &crd).is_some()
        };
        let verdict = laws::confined(key, view, effect, lives, exists);
        self.ask(Law::Confined, verdict.map_err(|why| format!("{key}: {effect}: {why}")));
    }

    /// Locks of the single layout have no uids. Where a controller knows a binding that was created anew, and
    /// a LogicalCluster from before that, the lock of the predecessor looks like its own: `exclusive`
    /// cannot promise anything then (DEVIATIONS.md).
    fn excuse(&mut self, key: &BindingKey, view: &Snapshot) {
        let home = view.logical_cluster(&key.cluster).map(|home| home.meta.resource_version.parse().unwrap_or(0));
        let created = view.binding(key).and_then(|binding| self.created.get(&binding.meta.uid).copied());
        if view.layout() == Layout::Single && created > home {
            self.excused.insert(key.clone());
        }
    }

    /// A worker has its answer.
    pub fn answered(&mut self, place: Place, outcome: &Outcome) {
        if let Some(bounds) = self.bounds.get_mut(&place) {
            bounds.answered(outcome);
        }
        if let Outcome::Done(object) = outcome
            && object.kind() == Kind::LogicalCluster
        {
            // What a pass itself made of the LogicalCluster leaves its answers standing.
            self.asked_on.insert(place, object.metadata().resource_version.as_deref().unwrap_or_default().into());
        }
    }

    /// A pass has come to its end; `snapshot` is what its controller knows.
    pub fn finished(&mut self, place: Place, key: &BindingKey, snapshot: &Snapshot) {
        self.bounds.remove(&place);
        self.asked_on.remove(&place);
        let Some(model) = self.models.get(place.0) else { return };
        let predicts = laws::predicts(model, snapshot, key);
        let reads = if self.steps.is_multiple_of(2) { Reads::Expected } else { Reads::True };
        let settles = laws::settles(model, snapshot, key, reads);
        self.ask(Law::Predicts, predicts);
        self.ask(Law::Settles, settles);
    }

    /// A controller has lost its memory.
    pub fn died(&mut self, at: usize) {
        if let Some(model) = self.models.get_mut(at) {
            *model = Model::new(model.layout, model.now);
        }
        self.bounds.retain(|(process, _), _| *process != at);
        self.asked_on.retain(|(process, _), _| *process != at);
    }

    /// A step is over.
    pub fn stepped(&mut self, shards: &[Shard], processes: &[Process], steps: u64) {
        self.steps = steps;
        if steps.is_multiple_of(CLOSELY) {
            self.is_close = true;
            self.look(processes);
        }
        if steps == self.late_at {
            shards.iter().for_each(|shard| self.tell_late(&shard.kcp));
        }
    }

    /// Looks closely at what every controller knows.
    pub fn look(&mut self, processes: &[Process]) {
        for (process, at) in processes.iter().zip(0..) {
            let Some(model) = self.models.get(at) else { continue };
            let indexed = laws::indexed(&process.snapshot, model);
            let deterministic = laws::deterministic(model, &mut self.chance);
            self.ask(Law::Indexed, indexed.map_err(|why| format!("controller {at}: {why}")));
            self.ask(Law::Deterministic, deterministic);
        }
    }

    /// Looks at what every controller knows when all rest.
    pub fn look_at_rest(&mut self) {
        let verdict = self.models.iter().try_for_each(laws::rested);
        self.ask(Law::Stable, verdict);
    }

    /// Tells all that has happened anyhow.
    fn tell_late(&mut self, kcp: &Kcp) {
        let Some(model) = self.models.first() else { return };
        let mut changes = Vec::new();
        for (origin, kind) in STREAMS {
            let Ok(events) = kcp.events_since(origin, kind, 0) else { return };
            changes.extend(events.filter_map(|event| event.change(origin, kind)));
        }
        let verdict = laws::late(&Model::new(model.layout, model.now), &changes, &mut self.chance);
        self.ask(Law::Late, verdict);
    }
}
