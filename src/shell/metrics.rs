//! What is counted, in Prometheus' text format.

use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use super::desk::Desk;
use crate::api::{Condition, Kind};
use crate::effect::{Effect, Outcome};
use crate::snapshot::{Origin, Snapshot};

/// The name of the work queue, and of the controller.
pub(super) const NAME: &str = "kcp-apibinding";

/// Milliseconds from a binding's creation until it is bound, as kcp counts them.
const READY: [f64; 10] = [100., 500., 1000., 2500., 5000., 10_000., 30_000., 60_000., 120_000., 300_000.];

/// What stands in labels is one of these, or `other`: what objects say must not make more of them.
const PHASES: [&str; 3] = ["", "Binding", "Bound"];
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];
const CONDITIONS: [&str; 6] = [
    Condition::READY,
    Condition::API_EXPORT_VALID,
    Condition::INITIAL_BINDING_COMPLETED,
    Condition::BINDING_UP_TO_DATE,
    "PermissionClaimsValid",
    "PermissionClaimsApplied",
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EffectLabels {
    effect: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StreamLabels {
    kind: &'static str,
    origin: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConditionLabels {
    condition: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SizeLabels {
    what: Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[allow(non_camel_case_types, reason = "they are labels as they are read")]
enum Size {
    bindings,
    logical_clusters,
}

/// All that is counted as it happens, and what is read off when somebody asks.
pub(super) struct Metrics {
    registry: Mutex<Registry>,
    pub adds: Counter,
    pub retries: Counter,
    pub queue_duration: Histogram,
    pub work_duration: Histogram,
    pub is_leader: Gauge,
    pub foreign_writes: Counter,
    pub unreadable: Counter,
    ready: Histogram,
    effects: Family<EffectLabels, Counter>,
    watches: Family<StreamLabels, Counter>,
    phases: Family<PhaseLabels, Gauge>,
    conditions: Family<ConditionLabels, Gauge>,
    sizes: Family<SizeLabels, Gauge>,
    depth: Gauge,
    waiting: Gauge,
    unfinished: Gauge<f64, std::sync::atomic::AtomicU64>,
    longest: Gauge<f64, std::sync::atomic::AtomicU64>,
    restless: Gauge,
    has_lists: Gauge,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    pub fn new(shard: &str) -> Self {
        let mut registry = Registry::default();
        let seconds = || Histogram::new(exponential_buckets(0.000_01, 10.0, 9));
        let metrics = Self {
            registry: Mutex::default(),
            adds: Counter::default(),
            retries: Counter::default(),
            queue_duration: seconds(),
            work_duration: seconds(),
            is_leader: Gauge::default(),
            foreign_writes: Counter::default(),
            unreadable: Counter::default(),
            ready: Histogram::new(READY),
            effects: Family::default(),
            watches: Family::default(),
            phases: Family::default(),
            conditions: Family::default(),
            sizes: Family::default(),
            depth: Gauge::default(),
            waiting: Gauge::default(),
            unfinished: Gauge::default(),
            longest: Gauge::default(),
            restless: Gauge::default(),
            has_lists: Gauge::default(),
        };
        let kcp = registry.sub_registry_with_prefix("kcp_apibinding");
        let kcp = kcp.sub_registry_with_label(("shard".into(), shard.to_owned().into()));
        kcp.register("phase", "Number of APIBindings in each phase", metrics.phases.clone());
        kcp.register(
            "condition_status",
            "Number of APIBindings with each condition type and status",
            metrics.conditions.clone(),
        );
        kcp.register(
            "ready_duration_ms",
            "Milliseconds from the creation of an APIBinding until it is Bound",
            metrics.ready.clone(),
        );
        let queue = registry.sub_registry_with_prefix("workqueue");
        let queue = queue.sub_registry_with_label(("name".into(), NAME.into()));
        queue.register("adds", "Keys that were queued", metrics.adds.clone());
        queue.register("depth", "Keys that are queued now", metrics.depth.clone());
        queue.register("retries", "Keys that came back by themselves", metrics.retries.clone());
        queue.register_with_unit(
            "queue_duration",
            "How long a key was queued",
            Unit::Seconds,
            metrics.queue_duration.clone(),
        );
        queue.register_with_unit(
            "work_duration",
            "How long a key was worked on",
            Unit::Seconds,
            metrics.work_duration.clone(),
        );
        queue.register_with_unit(
            "unfinished_work",
            "How long all keys together have been worked on that still are",
            Unit::Seconds,
            metrics.unfinished.clone(),
        );
        queue.register_with_unit(
            "longest_running_processor",
            "How long the key has been worked on that is worked on longest",
            Unit::Seconds,
            metrics.longest.clone(),
        );
        let own = registry.sub_registry_with_prefix("apibinding");
        own.register("effects", "Effects that were carried out, by what came of them", metrics.effects.clone());
        own.register("waiting_keys", "Keys that wait for their time", metrics.waiting.clone());
        own.register("restless_keys", "Keys that do not come to rest", metrics.restless.clone());
        own.register("watch_restarts", "Watches that ended, and why", metrics.watches.clone());
        own.register(
            "unreadable_objects",
            "Objects of the server that do not fit their kind",
            metrics.unreadable.clone(),
        );
        own.register(
            "foreign_writes",
            "Times that somebody else wrote what only this controller writes",
            metrics.foreign_writes.clone(),
        );
        own.register("snapshot_objects", "What is known", metrics.sizes.clone());
        own.register("lists_are_in", "1 once all kinds are listed", metrics.has_lists.clone());
        own.register("is_leader", "1 for the one that works", metrics.is_leader.clone());
        *metrics.registry.lock().unwrap_or_else(PoisonError::into_inner) = registry;
        metrics
    }

    /// An effect was carried out.
    pub fn effect(&self, effect: &Effect, outcome: &Outcome) {
        let labels = EffectLabels { effect: name(effect), outcome: outcome_name(outcome) };
        self.effects.get_or_create(&labels).inc();
    }

    /// A watch ended.
    pub fn watch_ended(&self, origin: Origin, kind: Kind, reason: &'static str) {
        let origin = if origin == Origin::Local { "server" } else { "cache" };
        self.watches.get_or_create(&StreamLabels { kind: kind.as_str(), origin, reason }).inc();
    }

    /// A binding was bound.
    pub fn ready(&self, took: Duration) {
        self.ready.observe(took.as_secs_f64() * 1000.0);
    }

    /// All of it as text.
    pub fn text(&self, desk: &Desk) -> String {
        // One at a time: what is read off would be counted twice.
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let (ready, waiting, _) = desk.load();
        self.depth.set(count(ready));
        self.waiting.set(count(waiting));
        self.restless.set(count(desk.restless()));
        self.has_lists.set(i64::from(desk.has_lists()));
        let works = desk.works();
        self.unfinished.set(works.iter().sum::<Duration>().as_secs_f64());
        self.longest.set(works.iter().max().copied().unwrap_or_default().as_secs_f64());
        self.read(&desk.view());
        let mut text = String::new();
        // Writing to a String does not fail.
        let _ = encode(&mut text, &registry);
        text
    }

    fn read(&self, known: &Snapshot) {
        self.phases.clear();
        self.conditions.clear();
        let bindings = known.bindings();
        for key in &bindings {
            let Some(binding) = known.binding(key) else { continue };
            let status = &binding.status;
            self.phases.get_or_create(&PhaseLabels { phase: one_of(&PHASES, status.phase.as_str()) }).inc();
            for condition in &status.conditions {
                let labels = ConditionLabels {
                    condition: one_of(&CONDITIONS, &condition.kind),
                    status: one_of(&STATUSES, &condition.status),
                };
                self.conditions.get_or_create(&labels).inc();
            }
        }
        self.sizes.get_or_create(&SizeLabels { what: Size::bindings }).set(count(bindings.len()));
        self.sizes.get_or_create(&SizeLabels { what: Size::logical_clusters }).set(count(known.clusters().len()));
    }
}

fn one_of(known: &[&'static str], text: &str) -> &'static str {
    known.iter().find(|known| **known == text).copied().unwrap_or("other")
}

fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// What an effect is called in labels and spans.
pub(super) fn name(effect: &Effect) -> &'static str {
    match effect {
        Effect::CreateCrd(_) => "create_crd",
        Effect::ReadApiBinding(_) => "read_binding",
        Effect::ReadCrd(_) => "read_crd",
        Effect::PatchLogicalCluster(_) => "patch_locks",
        Effect::PatchApiBindingStatus(_) => "patch_status",
        Effect::Requeue(_) => "requeue",
    }
}

fn outcome_name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "done",
        Outcome::Conflict { .. } => "conflict",
        Outcome::Refused(_) => "refused",
        Outcome::NoAnswer(_) => "no_answer",
    }
}
