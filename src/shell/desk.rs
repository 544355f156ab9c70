//! What all parts of a running controller share: what is known, what is to be done, and who does it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use k8s_openapi::jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::metrics::Metrics;
use super::others;
use super::rest::{Unrest, Work};
use crate::api::{BindingKey, Kind, Object, Phase, Text};
use crate::effect::{Effect, Outcome, Retry};
use crate::queue::{Config, Next, Queue};
use crate::snapshot::{Change, Layout, Origin, Snapshot};
use crate::wakeup;

/// No server keeps us waiting longer than this at a time: who asks for years is not taken at his word, since another
/// try costs little.
pub(super) const MOST: Duration = Duration::from_secs(60);

/// A pass in which nothing happens for longer than this hangs, and so does a queue of which nothing was taken for as
/// long.
const STUCK: Duration = Duration::from_secs(600);

/// The desk at which workers sit. No lock is held while anybody waits.
#[derive(Debug)]
pub(super) struct Desk {
    state: Mutex<State>,
    /// Somebody may take a key.
    ready: Notify,
    origin: Instant,
    pub metrics: Metrics,
}

#[derive(Debug)]
struct State {
    snapshot: Snapshot,
    queue: Queue<BindingKey>,
    /// What still has to be listed before anything is done.
    missing: BTreeSet<(Origin, Kind)>,
    is_leading: bool,
    /// Keys are handed out: all kinds are listed, and this one leads.
    is_open: bool,
    /// Since when the keys wait that were added: those that are queued, or will be when they have been worked on.
    queued: BTreeMap<BindingKey, Instant>,
    working: BTreeMap<BindingKey, Work>,
    /// Bindings of which nobody can tell whose the next change is: a request was under way, or its answer
    /// was lost.
    unsure: BTreeSet<BindingKey>,
    unrest: Unrest,
    taken_at: Instant,
}

impl Desk {
    pub fn new(
        layout: Layout,
        queue: Config,
        shard: &str,
        streams: BTreeSet<(Origin, Kind)>,
        is_leading: bool,
    ) -> Self {
        let state = State {
            snapshot: Snapshot::new(layout),
            queue: Queue::new(queue),
            missing: streams,
            is_leading,
            is_open: false,
            queued: BTreeMap::new(),
            working: BTreeMap::new(),
            unsure: BTreeSet::new(),
            unrest: Unrest::default(),
            taken_at: Instant::now(),
        };
        let metrics = Metrics::new(shard);
        metrics.is_leader.set(i64::from(is_leading));
        Self { state: Mutex::new(state), ready: Notify::new(), origin: Instant::now(), metrics }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What a panic left behind is whole: nothing is changed in two steps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// All that is known, as of now.
    pub fn view(&self) -> Snapshot {
        let mut view = self.lock().snapshot.clone();
        view.set_now(now());
        view
    }

    /// Whether keys are handed out.
    pub fn is_open(&self) -> bool {
        self.lock().is_open
    }

    /// Whether this one leads.
    pub fn is_leading(&self) -> bool {
        self.lock().is_leading
    }

    /// Which kinds are not listed yet, before which nothing is done.
    pub fn missing(&self) -> Vec<(Origin, Kind)> {
        self.lock().missing.iter().copied().collect()
    }

    /// True once all kinds are listed.
    pub fn has_lists(&self) -> bool {
        self.lock().missing.is_empty()
    }

    /// How the queue is: ready, waiting, being processed.
    pub fn load(&self) -> (usize, usize, usize) {
        let State { queue, .. } = &*self.lock();
        (queue.len(), queue.waiting(), queue.processing())
    }

    /// What hangs, if anything does.
    pub fn stuck(&self) -> Option<String> {
        let state = self.lock();
        let hangs = state.working.iter().find(|(_, work)| work.moved.elapsed() > STUCK);
        if let Some((key, work)) = hangs {
            return Some(format!("nothing has come of the work on APIBinding {key} for {:?}", work.moved.elapsed()));
        }
        let is_idle = state.is_open && !state.queue.is_empty() && state.taken_at.elapsed() > STUCK;
        is_idle.then(|| format!("nobody has taken a key for {:?}", state.taken_at.elapsed()))
    }

    /// Since when the keys are worked on that are.
    pub fn works(&self) -> Vec<Duration> {
        self.lock().working.values().map(|work| work.since.elapsed()).collect()
    }

    /// How many keys do not come to rest.
    pub fn restless(&self) -> usize {
        self.lock().unrest.count()
    }

    /// Takes in what a watch or an answer told.
    pub fn learn(&self, changes: impl IntoIterator<Item = Change>, source: Told) {
        let mut state = self.lock();
        for change in changes {
            self.take_in(&mut state, change, source);
        }
    }

    /// Takes in a whole list.
    ///
    /// What came and went while nobody watched is in no list, and wakes nobody; somebody may wait for it
    /// all the same, since a read can have seen it (DEVIATIONS.md, "What no event tells"). So all are looked at again.
    pub fn listed(&self, origin: Origin, kind: Kind, objects: Vec<Object>, resource_version: Text) {
        let mut state = self.lock();
        let state = &mut *state;
        self.take_in(state, Change::List { origin, kind, objects, resource_version }, Told::List);
        let is_again = !state.missing.remove(&(origin, kind));
        if state.is_open && is_again && matches!(kind, Kind::Crd | Kind::ApiBinding) {
            self.add_all(state);
        }
        self.open(state);
    }

    fn take_in(&self, state: &mut State, change: Change, source: Told) {
        let put = match &change {
            Change::Put { origin: Origin::Local, object } => Some((object.kind(), object.key(), creation(object))),
            _ => None,
        };
        if let Change::Delete { kind: Kind::ApiBinding | Kind::LogicalCluster, key, .. } = &change {
            // No other change is to come.
            state.unsure.remove(key);
        }
        let phase = put.as_ref().and_then(|(_, key, _)| Some(state.snapshot.binding(key)?.status.phase.clone()));
        let before = (source == Told::Watch && state.is_open && put.is_some()).then(|| state.snapshot.clone());
        let applied = state.snapshot.apply(change);
        if applied.is_empty() {
            return;
        }
        if let Some((kind, key, created)) = put {
            if kind == Kind::ApiBinding {
                self.note_phase(&state.snapshot, &key, phase, created);
            }
            if let Some(before) = before {
                self.suspect(state, &before, kind, &key);
            }
        }
        for key in wakeup::wakeup(&state.snapshot, &applied) {
            self.add(state, key);
        }
    }

    /// How long it took a binding to be bound.
    fn note_phase(&self, known: &Snapshot, key: &BindingKey, before: Option<Phase>, created: Option<Timestamp>) {
        let is_bound = known.binding(key).is_some_and(|binding| binding.status.phase == Phase::Bound);
        let was_unbound = before.is_some_and(|phase| phase != Phase::Bound);
        if let Some(created) = created.filter(|_| is_bound && was_unbound) {
            self.metrics.ready(Duration::try_from(now().duration_since(created)).unwrap_or_default());
        }
    }

    /// Whether somebody else writes what only this controller writes.
    fn suspect(&self, state: &mut State, before: &Snapshot, kind: Kind, key: &BindingKey) {
        // Of what is being worked on, and of what got no answer, nobody can tell who wrote it.
        let is_ours = match kind {
            Kind::ApiBinding => state.working.contains_key(key),
            _ => state.working.keys().any(|working| working.cluster == key.cluster),
        };
        if is_ours || state.unsure.remove(key) {
            return;
        }
        if let Some(what) = others::foreign(before, &state.snapshot, kind, key) {
            self.metrics.foreign_writes.inc();
            tracing::warn!(
                object = %format_args!("{kind} {key}"),
                "somebody else has written {what}: is the APIBinding controller that is built into kcp still on, or \
                 another one of this kind? No harm is done, but both work for nothing"
            );
        }
    }

    /// Queues a key.
    fn add(&self, state: &mut State, key: BindingKey) {
        if !state.is_open {
            return;
        }
        if state.queue.is_empty() {
            // So far there was nothing to take.
            state.taken_at = Instant::now();
        }
        if let Entry::Vacant(queued) = state.queued.entry(key.clone()) {
            queued.insert(Instant::now());
            self.metrics.adds.inc();
        }
        state.queue.add(key);
        self.ready.notify_one();
    }

    /// Begins to hand out keys, once it can: all of them are looked at.
    fn open(&self, state: &mut State) {
        if state.is_open || !state.is_leading || !state.missing.is_empty() {
            return;
        }
        state.is_open = true;
        state.taken_at = Instant::now();
        tracing::info!(bindings = state.snapshot.bindings().len(), "all lists are in: work begins");
        self.add_all(state);
    }

    fn add_all(&self, state: &mut State) {
        for key in wakeup::all(&state.snapshot) {
            self.add(state, key);
        }
    }

    /// This one leads from now on, or does not any more. Who does not lead knows all, and does nothing.
    pub fn lead(&self, leads: bool) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_leading, leads) == leads {
            return;
        }
        self.metrics.is_leader.set(i64::from(leads));
        if leads {
            self.open(&mut state);
        } else {
            state.is_open = false;
            state.queue.clear();
            state.queued.clear();
            state.unrest = Unrest::default();
            state.unsure.clear();
        }
    }

    /// A server that was gone is back: what failed for want of it need not wait any more.
    pub fn server_is_back(&self) {
        let mut state = self.lock();
        state.queue.forget_all_backoffs();
        let ready = state.queue.len();
        drop(state);
        (0..ready).for_each(|_| self.ready.notify_one());
        self.ready.notify_waiters();
    }

    /// The next key to work on. It waits until there is one.
    pub async fn next(&self) -> BindingKey {
        loop {
            let due = {
                let mut state = self.lock();
                if state.is_open
                    && let Some(key) = state.queue.take(self.now())
                {
                    let now = Instant::now();
                    state.taken_at = now;
                    let waited = state.queued.remove(&key).map(|since| now.duration_since(since));
                    if waited.is_none() {
                        // It came by itself.
                        self.metrics.adds.inc();
                    }
                    self.metrics.queue_duration.observe(waited.unwrap_or_default().as_secs_f64());
                    state.working.insert(key.clone(), Work::new(now));
                    return key;
                }
                if state.is_open { state.queue.next_due() } else { None }
            };
            match due {
                None => self.ready.notified().await,
                Some(due) => {
                    tokio::select! {
                        () = self.ready.notified() => {}
                        () = sleep_until(self.origin + due) => {}
                    }
                }
            }
        }
    }

    /// What came of an effect of this key.
    pub fn note(&self, key: &BindingKey, effect: &Effect, outcome: &Outcome) {
        self.metrics.effect(effect, outcome);
        let mut state = self.lock();
        if let Outcome::NoAnswer(_) = outcome {
            // It may have been done all the same, and the watch will tell.
            match effect {
                Effect::PatchApiBindingStatus(_) => state.unsure.insert(key.clone()),
                Effect::PatchLogicalCluster(patch) => {
                    state.unsure.insert(BindingKey::new(patch.cluster.clone(), patch.name.clone()))
                }
                _ => false,
            };
        }
        if let Some(work) = state.working.get_mut(key) {
            work.note(effect, outcome);
        }
    }

    /// The work on a key is over. `None`: it was given up.
    pub fn finish(&self, key: &BindingKey, retry: Option<Retry>) {
        let now = self.now();
        let time = self::now();
        let mut state = self.lock();
        let state = &mut *state;
        let work = state.working.remove(key);
        if let Some(work) = &work {
            self.metrics.work_duration.observe(work.since.elapsed().as_secs_f64());
        }
        let Some(retry) = retry else {
            return state.queue.done(key);
        };
        let retry = match retry {
            Retry::Backoff { at_least } => Retry::Backoff { at_least: at_least.map(|asked| asked.min(MOST)) },
            other => other,
        };
        let next = retry.next(|at| now.saturating_add(Duration::try_from(at.duration_since(time)).unwrap_or_default()));
        if next != Next::Forget {
            self.metrics.retries.inc();
        }
        state.queue.finish(key, next, now);
        let failures = state.queue.failures(key);
        state.unrest.note(key, failures, work.as_ref());
        // One who waits has to know of a new time.
        self.ready.notify_one();
    }
}

/// Who told something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Watch,
    List,
    Answer,
}

/// The time on the wall.
pub(super) fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or_default()
}

fn creation(object: &Object) -> Option<Timestamp> {
    Some(object.metadata().creation_timestamp.as_ref()?.0)
}

#[cfg(test)]
mod tests;
