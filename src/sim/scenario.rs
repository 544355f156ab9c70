//! What a simulation starts from.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::{Builder, Deed, Fault, Faults};
use crate::queue;
use crate::snapshot::Layout;

/// All that decides what happens in a [`Simulation`](super::Simulation): the same scenario gives the
/// same trace, to the byte.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Scenario {
    /// Decides what is left to chance: delays, and which faults happen when.
    pub seed: u64,
    /// How the lock annotations are laid out.
    pub layout: Layout,
    /// When it begins.
    pub start: Timestamp,
    /// What is there at the beginning.
    pub objects: Vec<Value>,
    /// What the cache server has at the beginning, beside what it copies from `objects`.
    pub global: Vec<Value>,
    /// What users and providers do.
    pub deeds: Vec<Deed>,
    /// What people do who should not: only with [`Fault::Vandals`].
    pub vandals: Vec<Deed>,
    /// What goes wrong.
    pub faults: Faults,
    /// How many of a thousand requests, deliveries and the like go wrong.
    pub fault_rate: u64,
    /// On how many shards the logical clusters are. Each has a controller, or two; the cache server shows all
    /// exports to all.
    pub shards: usize,
    /// How many workers each controller has.
    pub workers: usize,
    /// How long keys that failed wait.
    pub queue: queue::Config,
}

impl Scenario {
    /// A small, crowded world, what is done in it, and all faults: everything as the seed decides.
    pub fn new(seed: u64) -> Self {
        let layout = if seed % 4 == 3 { Layout::Single } else { Layout::Split };
        let builder = Builder::new(seed).layout(layout);
        Self {
            deeds: builder.deeds(12),
            vandals: builder.vandals(3),
            faults: Faults::all(),
            ..Self::of(seed, layout, builder.build().collect())
        }
    }

    /// Only these objects; nobody does anything, and nothing goes wrong.
    pub fn of(seed: u64, layout: Layout, objects: Vec<Value>) -> Self {
        Self {
            seed,
            layout,
            start: super::PRESENT,
            objects,
            global: Vec::new(),
            deeds: Vec::new(),
            vandals: Vec::new(),
            faults: Faults::none(),
            fault_rate: 60,
            shards: 1,
            workers: 2,
            // What all failures share tells nothing here, and makes the end of a simulation wait.
            queue: queue::Config { bucket: None, max: Duration::from_secs(60), ..queue::Config::default() },
        }
    }

    /// The same with these faults.
    #[must_use]
    pub fn with_faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// How many controllers each shard has.
    pub(super) fn controllers(&self) -> usize {
        if self.faults.has(Fault::TwoControllers) { 2 } else { 1 }
    }
}
