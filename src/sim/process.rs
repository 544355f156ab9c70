//! A controller as it runs: what it watches, knows, and works on. All of it is gone when it crashes.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::{Event, Kcp};
use crate::api::BindingKey;
use crate::pass::Pass;
use crate::queue::{Config, Queue};
use crate::snapshot::{Layout, STREAMS, Snapshot};

/// What happened on a server after a version, in order, each with the number of its stream. What is
/// forgotten is left out.
pub(crate) fn happened_since(kcp: &Kcp, version: u64) -> Vec<(usize, Event)> {
    let mut happened: Vec<(usize, Event)> = Vec::new();
    for (stream, (origin, kind)) in STREAMS.into_iter().enumerate() {
        if let Ok(events) = kcp.events_since(origin, kind, version) {
            happened.extend(events.map(|event| (stream, event.clone())));
        }
    }
    happened.sort_by_key(|(_, event)| event.version);
    happened
}

/// One watch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stream {
    /// What happened up to this version has been told. `None`: it has to be listed.
    pub cursor: Option<u64>,
    /// It is about to tell something.
    pub is_due: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Worker {
    pub pass: Option<Pass>,
    /// What it plans on: a clone of what the controller knows.
    pub view: Snapshot,
    pub is_idle: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Process {
    /// The shard that it serves.
    pub shard: usize,
    /// How often it has died. What is under way from an earlier life concerns nobody.
    pub life: u32,
    pub snapshot: Snapshot,
    pub queue: Queue<BindingKey>,
    pub streams: [Stream; STREAMS.len()],
    pub workers: Vec<Worker>,
    /// Whether all kinds are listed, before which nothing is processed.
    pub is_started: bool,
    pub is_dead: bool,
    /// By how much its clock is wrong.
    pub skew: SignedDuration,
    /// When it is to be woken for keys that wait.
    pub alarm: Option<Duration>,
}

impl Process {
    pub fn new(shard: usize, layout: Layout, workers: usize, queue: Config) -> Self {
        let snapshot = Snapshot::new(layout);
        let worker = Worker { pass: None, view: snapshot.clone(), is_idle: true };
        Self {
            shard,
            life: 0,
            snapshot,
            queue: Queue::new(queue),
            streams: [Stream::default(); STREAMS.len()],
            workers: vec![worker; workers.max(1)],
            is_started: false,
            is_dead: true,
            skew: SignedDuration::ZERO,
            alarm: None,
        }
    }

    /// Ends this life; the next one starts with nothing but its place.
    pub fn die(&mut self, queue: Config) {
        let fresh = Self::new(self.shard, self.snapshot.layout(), self.workers.len(), queue);
        *self = Self { life: self.life + 1, skew: self.skew, ..fresh };
    }

    /// True once every kind was listed.
    pub fn has_lists(&self) -> bool {
        self.streams.iter().all(|stream| stream.cursor.is_some())
    }

    /// Its time, if this is the true one.
    pub fn time(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.skew).unwrap_or(now)
    }

    /// Hands the keys that are queued to workers that do nothing; gives those workers.
    pub fn rouse(&mut self) -> Vec<usize> {
        let idle = self.workers.iter_mut().enumerate().filter(|(_, worker)| worker.is_idle);
        let roused = idle.take(self.queue.len()).map(|(at, worker)| {
            worker.is_idle = false;
            at
        });
        roused.collect()
    }
}
