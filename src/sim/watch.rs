//! Watches: what controllers hear of the server, when, and how garbled.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::jiff::SignedDuration;

use super::shard::Shard;
use super::simulation::{Simulation, Task};
use super::{Event, Fault, Kcp};
use crate::api::Kind;
use crate::snapshot::{Change, Origin, STREAMS};
use crate::wakeup;

/// By how much clocks are wrong at most, in milliseconds: with the time that a request may take, less than
/// what a CRD lock stays beyond its expiry (D24).
const SKEW: u64 = 7_000;

impl Simulation {
    /// A controller begins: it lists all kinds.
    pub(super) fn start(&mut self, at: usize) -> bool {
        let Some(process) = self.processes.get_mut(at).filter(|process| process.is_dead) else { return false };
        process.is_dead = false;
        for stream in 0..STREAMS.len() {
            self.announce(at, stream);
        }
        self.tell(format_args!("controller {at}: starts"));
        true
    }

    /// A controller dies, with all that it knew, and starts again.
    pub(super) fn crash(&mut self, at: usize) {
        let queue = self.queue;
        let Some(process) = self.processes.get_mut(at) else { return };
        process.die(queue);
        if let Some(judge) = &mut self.judge {
            judge.died(at);
        }
        self.tell(format_args!("controller {at}: crashes"));
        let delay = Duration::from_millis(self.luck.within(1..5_000));
        self.later(delay, Task::Start(at));
    }

    pub(super) fn skew(&mut self, at: usize) -> bool {
        if !self.faults.has(Fault::Clock) {
            return false;
        }
        let by = SignedDuration::from_millis(self.luck.within(0..2 * SKEW) as i64 - SKEW as i64);
        let Some(process) = self.processes.get_mut(at) else { return false };
        process.skew = by;
        self.count(Fault::Clock);
        self.tell(format_args!("controller {at}: its clock is wrong by {by:#}"));
        let delay = Duration::from_millis(self.luck.within(1_000..30_000));
        // As long as anybody does anything.
        if !self.is_at_rest() {
            self.later(delay, Task::Skew(at));
        }
        true
    }

    /// A watch will tell something, or a kind will be listed.
    pub(super) fn announce(&mut self, at: usize, stream: usize) {
        let lags = self.strikes(Fault::WatchLag);
        let delay = if lags { self.luck.within(100..20_000) } else { self.pace.within(1..30) };
        let Some(process) = self.processes.get_mut(at).filter(|process| !process.is_dead) else { return };
        let life = process.life;
        let Some(known) = process.streams.get_mut(stream).filter(|known| !known.is_due) else { return };
        known.is_due = true;
        self.later(Duration::from_millis(delay), Task::Watch { process: at, life, stream });
    }

    pub(super) fn watch(&mut self, at: usize, stream: usize) -> bool {
        let Some((origin, kind)) = STREAMS.get(stream).copied() else { return false };
        let Some(known) = self.processes.get_mut(at).and_then(|process| process.streams.get_mut(stream)) else {
            return false;
        };
        known.is_due = false;
        let told = known.cursor;
        let cursor = match told {
            None => self.list_all(at, origin, kind),
            Some(_) if self.strikes(Fault::WatchDrop) => {
                self.tell(format_args!("controller {at}: the watch of {} breaks", place(origin, kind)));
                self.set_cursor(at, stream, None);
                self.announce(at, stream);
                return true;
            }
            Some(_) if self.strikes(Fault::WatchPast) => self.list_the_past(at, origin, kind),
            Some(cursor) => match self.tell_events(at, origin, kind, cursor) {
                Some(cursor) => cursor,
                // What it would have to tell is forgotten: 410.
                None => self.list_all(at, origin, kind),
            },
        };
        self.set_cursor(at, stream, Some(cursor));
        let is_behind = self.kcp_of(at).is_some_and(|kcp| {
            kcp.events_since(origin, kind, cursor).map_or(true, |mut events| events.next().is_some())
        });
        if is_behind {
            self.announce(at, stream);
        }
        self.begin(at);
        true
    }

    /// The server that a controller talks to.
    fn kcp_of(&self, at: usize) -> Option<&Kcp> {
        self.shards.get(self.processes.get(at)?.shard).map(|shard| &shard.kcp)
    }

    fn set_cursor(&mut self, at: usize, stream: usize, cursor: Option<u64>) {
        let stream = self.processes.get_mut(at).and_then(|process| process.streams.get_mut(stream));
        if let Some(stream) = stream {
            stream.cursor = cursor;
        }
    }

    fn list_all(&mut self, at: usize, origin: Origin, kind: Kind) -> u64 {
        if self.strikes(Fault::WatchPast) {
            return self.list_the_past(at, origin, kind);
        }
        let Some(kcp) = self.kcp_of(at) else { return 0 };
        let (version, list) = (kcp.version(), kcp.relist(origin, kind));
        self.tell(format_args!("controller {at}: lists {} at {version}", place(origin, kind)));
        self.learn(at, list);
        version
    }

    /// Lists what was there some time ago, as a replica of the server would that is behind.
    fn list_the_past(&mut self, at: usize, origin: Origin, kind: Kind) -> u64 {
        let ago = self.luck.within(0..20);
        let shard = self.processes.get(at).and_then(|process| self.shards.get(process.shard));
        let Some(Shard { kcp, begin, .. }) = shard else { return 0 };
        let (now, then) = (kcp.version(), kcp.version().saturating_sub(ago).max(*begin));
        let (version, list) = match kcp.relist_at(origin, kind, then) {
            Ok(list) => (then, list),
            Err(_) => (now, kcp.relist(origin, kind)),
        };
        self.tell(format_args!("controller {at}: lists {} as it was at {version}", place(origin, kind)));
        self.learn(at, list);
        version
    }

    /// Tells what happened since; gives up to where. `None`: that is forgotten.
    fn tell_events(&mut self, at: usize, origin: Origin, kind: Kind, cursor: u64) -> Option<u64> {
        let (double, coalesce) = (self.strikes(Fault::WatchDouble), self.strikes(Fault::WatchCoalesce));
        let most = if coalesce { 8 } else { self.pace.within(1..4) as usize };
        let ago = self.luck.within(1..20);
        let kcp = self.kcp_of(at)?;
        let mut events: Vec<Event> = kcp.events_since(origin, kind, cursor).ok()?.take(most).cloned().collect();
        let Some(last) = events.last().map(|event| event.version) else {
            // Nothing happened to this kind: a bookmark says so.
            let version = kcp.version();
            let resource_version = version.to_string().into();
            self.learn(at, Change::Bookmark { origin, kind, resource_version });
            return Some(version);
        };
        if coalesce {
            let mut told = BTreeSet::new();
            events.reverse();
            events.retain(|event| told.insert(event.key.clone()));
            events.reverse();
        }
        if double {
            let from = cursor.saturating_sub(ago);
            if let Ok(again) = kcp.events_since(origin, kind, from) {
                let again: Vec<Event> = again.take_while(|event| event.version <= last).cloned().collect();
                events.extend(again);
            }
        }
        for event in events {
            self.tell(format_args!(
                "controller {at}: hears {} {} {} at {}",
                event.happened.as_str(),
                place(origin, kind),
                event.key,
                event.version
            ));
            if let Some(change) = event.change(origin, kind) {
                self.learn(at, change);
            }
        }
        Some(last)
    }

    /// A controller takes in a change, and queues whom it concerns.
    pub(super) fn learn(&mut self, at: usize, change: Change) {
        let now = self.now();
        let Some(process) = self.processes.get_mut(at) else { return };
        process.snapshot.set_now(process.time(now));
        let before = self.judge.is_some().then(|| (process.snapshot.clone(), change.clone()));
        let applied = process.snapshot.apply(change);
        let woken = wakeup::wakeup(&process.snapshot, &applied);
        if process.is_started {
            woken.iter().cloned().for_each(|key| process.queue.add(key));
        }
        if let (Some(judge), Some((before, change))) = (&mut self.judge, before) {
            judge.learned(at, &before, &process.snapshot, &change, &woken);
        }
        self.rouse(at);
    }

    /// Once all kinds are listed, everything is processed.
    fn begin(&mut self, at: usize) {
        let Some(process) = self.processes.get_mut(at).filter(|process| !process.is_started && process.has_lists())
        else {
            return;
        };
        process.is_started = true;
        wakeup::all(&process.snapshot).into_iter().for_each(|key| process.queue.add(key));
        self.rouse(at);
    }
}

/// A kind, and where.
fn place(origin: Origin, kind: Kind) -> String {
    match origin {
        Origin::Local => kind.to_string(),
        Origin::Global => format!("{kind} of the cache server"),
    }
}
