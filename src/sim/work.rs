//! Workers: they plan, send requests, and take in answers, some of which never come.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusDetails};
use serde_json::json;

use super::kcp::{annotation, key_of};
use super::process::Worker;
use super::shard::Shard;
use super::simulation::{Simulation, Task};
use super::{Fault, Kcp, Request};
use crate::api::{BindingKey, Kind};
use crate::effect::{Effect, Outcome};
use crate::pass::{Pass, Step};
use crate::snapshot::{Layer, Origin, Snapshot};

/// How long a client waits for an answer at most, in milliseconds.
const TIME_LIMIT: u64 = 60_000;

/// A request under way.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub process: usize,
    pub life: u32,
    pub worker: usize,
    pub key: BindingKey,
    pub effect: Effect,
    /// What it was planned on, where somebody wants to know.
    pub view: Option<Snapshot>,
    /// Somebody else is quicker.
    pub is_raced: bool,
    /// Nobody will hear of what comes of it.
    pub is_answer_lost: bool,
}

/// An answer under way.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub process: usize,
    pub life: u32,
    pub worker: usize,
    pub outcome: Outcome,
}

/// What can happen to a request.
const TROUBLES: [Fault; 12] = [
    Fault::RequestLost,
    Fault::AnswerLost,
    Fault::Conflict,
    Fault::AlreadyExists,
    Fault::Invalid,
    Fault::Forbidden,
    Fault::TooManyRequests,
    Fault::Timeout,
    Fault::Internal,
    Fault::Unavailable,
    Fault::Gone,
    Fault::Crash,
];

impl Simulation {
    /// Gives the keys that are queued to workers that have nothing to do.
    pub(super) fn rouse(&mut self, at: usize) {
        let Some(process) = self.processes.get_mut(at).filter(|process| process.is_started) else { return };
        let life = process.life;
        for worker in process.rouse() {
            let delay = Duration::from_millis(self.pace.within(0..4));
            self.later(delay, Task::Work { process: at, life, worker });
        }
    }

    /// Keys may have waited long enough.
    pub(super) fn ring(&mut self, at: usize) {
        let Some(process) = self.processes.get_mut(at) else { return };
        process.alarm = None;
        let idle = process.workers.iter().position(|worker| worker.is_idle);
        let (Some(worker), life) = (idle, process.life) else { return };
        if let Some(worker) = process.workers.get_mut(worker) {
            worker.is_idle = false;
        }
        self.later(Duration::ZERO, Task::Work { process: at, life, worker });
    }

    fn set_alarm(&mut self, at: usize) {
        let Some(process) = self.processes.get_mut(at) else { return };
        let (life, due) = (process.life, process.queue.next_due());
        if let Some(due) = due.filter(|due| process.alarm.is_none_or(|alarm| *due < alarm)) {
            process.alarm = Some(due);
            self.agenda.add(due.max(self.clock), Task::Alarm { process: at, life });
        }
    }

    /// A worker takes a key if it has none, plans, and sends what the plan wants done first.
    pub(super) fn work(&mut self, at: usize, which: usize) -> bool {
        let now = self.now();
        let is_stale = self.faults.has(Fault::StaleClones) && self.luck.permille(500);
        let Some(process) = self.processes.get_mut(at) else { return false };
        let (life, time) = (process.life, process.time(now));
        let Some(worker) = process.workers.get_mut(which) else { return false };
        let (mut pass, is_new) = match worker.pass.take() {
            Some(pass) => (pass, false),
            None => match process.queue.take(self.clock) {
                Some(key) => (Pass::new(key), true),
                None => {
                    worker.is_idle = true;
                    self.set_alarm(at);
                    return false;
                }
            },
        };
        if is_new || !is_stale {
            worker.view.clone_from(&process.snapshot);
        }
        worker.view.set_now(time);
        let step = pass.poll(&worker.view);
        let key = pass.key().clone();
        let view = self.judge.is_some().then(|| worker.view.clone());
        if is_stale && !is_new {
            self.count(Fault::StaleClones);
        }
        match step {
            Step::Act(effect) => {
                if let Some(worker) = self.processes.get_mut(at).and_then(|process| process.workers.get_mut(which)) {
                    worker.pass = Some(pass);
                }
                self.tell(format_args!("controller {at}, worker {which}: {key}: {effect}"));
                if let (Some(judge), Some(view)) = (&mut self.judge, &view) {
                    judge.planned((at, which), is_new, &key, view, &effect);
                }
                let sent = Sent {
                    process: at,
                    life,
                    worker: which,
                    key,
                    effect,
                    view,
                    is_raced: false,
                    is_answer_lost: false,
                };
                self.send(sent);
            }
            Step::Done(retry) => {
                self.counts.passes += 1;
                self.tell(format_args!("controller {at}, worker {which}: {key}: done, again {retry}"));
                let clock = self.clock;
                if let Some(process) = self.processes.get_mut(at) {
                    let next = retry.next(|time| {
                        let wait = time.duration_since(process.time(now));
                        clock.saturating_add(Duration::try_from(wait).unwrap_or_default())
                    });
                    process.queue.finish(&key, next, clock);
                }
                if let (Some(judge), Some(process)) = (&mut self.judge, self.processes.get(at)) {
                    judge.finished((at, which), &key, &process.snapshot);
                }
                self.later(Duration::ZERO, Task::Work { process: at, life, worker: which });
            }
        }
        true
    }

    /// Sends a request, and decides what becomes of it.
    fn send(&mut self, mut sent: Sent) {
        let trouble = self.luck.permille(self.fault_rate * 3).then(|| self.luck.one_of(&TROUBLES).copied()).flatten();
        let trouble = trouble.filter(|trouble| self.faults.has(*trouble) && concerns(*trouble, &sent.effect));
        let delay = Duration::from_millis(self.pace.within(1..12));
        let Some(trouble) = trouble else { return self.later(delay, Task::Arrive(Box::new(sent))) };
        self.count(trouble);
        let refuse = |code, reason: &str, wait| Outcome::Refused(refusal(code, reason, wait));
        let outcome = match trouble {
            Fault::Crash => {
                // What was sent may arrive all the same, even long after.
                let (process, is_sent) = (sent.process, self.luck.permille(500));
                if is_sent {
                    let delay = Duration::from_millis(self.luck.within(1..5_000));
                    self.later(delay, Task::Arrive(Box::new(sent)));
                }
                return self.crash(process);
            }
            Fault::AnswerLost => {
                sent.is_answer_lost = true;
                return self.later(delay, Task::Arrive(Box::new(sent)));
            }
            Fault::Conflict | Fault::AlreadyExists => {
                sent.is_raced = true;
                return self.later(delay, Task::Arrive(Box::new(sent)));
            }
            Fault::RequestLost => {
                let delay = Duration::from_millis(self.luck.within(1..TIME_LIMIT));
                let outcome = Outcome::NoAnswer("the request was lost".into());
                return self.reply(&sent, delay, outcome);
            }
            Fault::Invalid => refuse(422, "Invalid", 0),
            Fault::Forbidden => refuse(403, "Forbidden", 0),
            Fault::TooManyRequests => refuse(429, "TooManyRequests", self.luck.within(1..5) as i32),
            Fault::Timeout => refuse(504, "Timeout", 0),
            Fault::Unavailable => refuse(503, "ServiceUnavailable", 1),
            Fault::Gone => refuse(410, "Gone", 0),
            _ => refuse(500, "InternalError", 0),
        };
        self.reply(&sent, delay, outcome);
    }

    fn reply(&mut self, sent: &Sent, delay: Duration, outcome: Outcome) {
        let Sent { process, life, worker, .. } = *sent;
        self.later(delay, Task::Answer(Box::new(Reply { process, life, worker, outcome })));
    }

    /// The server does what a request wants.
    pub(super) fn arrive(&mut self, sent: Sent) {
        self.counts.requests += 1;
        let shard = self.processes.get(sent.process).and_then(|process| self.shards.get_mut(process.shard));
        let Some(Shard { kcp, .. }) = shard else { return };
        if sent.is_raced {
            race(kcp, &sent.effect);
        }
        let written = sent.view.as_ref().and_then(|_| target(&sent.effect));
        let before = written.and_then(|(kind, key)| kcp.get(Origin::Local, kind, &key).cloned());
        let outcome = kcp.execute(&sent.effect);
        let is_done = matches!(outcome, Outcome::Done(_));
        if let (Some(judge), Some(view)) = (&mut self.judge, &sent.view) {
            judge.executed(kcp, &sent.key, view, before.as_deref(), &sent.effect, &outcome);
        }
        let Sent { process, worker, .. } = sent;
        self.tell(format_args!("server: of controller {process}, worker {worker}: {}: {outcome}", sent.effect));
        if sent.is_answer_lost {
            let delay = Duration::from_millis(self.luck.within(1..TIME_LIMIT));
            self.reply(&sent, delay, Outcome::NoAnswer("the answer was lost".into()));
        } else {
            let delay = Duration::from_millis(self.pace.within(1..12));
            self.reply(&sent, delay, outcome);
        }
        self.last = is_done.then_some((sent.key, sent.effect));
    }

    /// A worker takes in an answer.
    pub(super) fn answer(&mut self, reply: Reply) -> bool {
        let Reply { process: at, life, worker: which, outcome } = reply;
        self.tell(format_args!("controller {at}, worker {which}: hears: {outcome}"));
        if let Some(judge) = &mut self.judge {
            judge.answered((at, which), &outcome);
        }
        let Some(worker) = self.worker(at, which) else { return false };
        let Some(pass) = &mut worker.pass else { return false };
        let changes = pass.observe(outcome);
        for change in changes {
            if let Some(worker) = self.worker(at, which) {
                worker.view.apply(change.clone());
            }
            self.learn(at, change);
        }
        let delay = Duration::from_millis(self.pace.within(0..3));
        self.later(delay, Task::Work { process: at, life, worker: which });
        true
    }

    fn worker(&mut self, at: usize, which: usize) -> Option<&mut Worker> {
        self.processes.get_mut(at)?.workers.get_mut(which)
    }
}

/// True if this can happen to a request for that.
fn concerns(trouble: Fault, effect: &Effect) -> bool {
    match trouble {
        Fault::AlreadyExists => matches!(effect, Effect::CreateCrd(_)),
        Fault::Conflict => matches!(effect, Effect::PatchLogicalCluster(_) | Effect::PatchApiBindingStatus(_)),
        Fault::Invalid => !effect.is_read(),
        _ => true,
    }
}

fn refusal(code: i32, reason: &str, wait: i32) -> Box<Status> {
    let details = StatusDetails { retry_after_seconds: Some(wait), ..StatusDetails::default() };
    Box::new(Status {
        code: Some(code),
        reason: Some(reason.to_owned()),
        message: Some(format!("{reason}, says the simulation")),
        details: (wait > 0).then_some(details),
        ..Status::default()
    })
}

/// The object that a lock or a commit is written to, as it is.
fn target(effect: &Effect) -> Option<(Kind, BindingKey)> {
    let (kind, patch) = match effect {
        Effect::PatchLogicalCluster(patch) => (Kind::LogicalCluster, patch),
        Effect::PatchApiBindingStatus(patch) => (Kind::ApiBinding, patch),
        _ => return None,
    };
    Some((kind, BindingKey::new(patch.cluster.clone(), patch.name.clone())))
}

fn touch(kcp: &Kcp, kind: Kind, key: &BindingKey) -> Request {
    let patch = json!({"metadata": {"annotations": {"example.com/touched": kcp.version().to_string()}}});
    Request::merge(kind, key.cluster.clone(), key.name.clone(), patch).managed_by("somebody")
}

/// What touches every binding; and every LogicalCluster, for bindings that are gone.
pub(super) fn touches(kcp: &Kcp) -> Vec<Request> {
    let of = |kind| kcp.list(Origin::Local, kind, None).map(move |object| touch(kcp, kind, &key_of(object)));
    of(Kind::ApiBinding).chain(of(Kind::LogicalCluster)).collect()
}

/// Somebody else is quicker: creates the CRD, or writes to the object.
fn race(kcp: &mut Kcp, effect: &Effect) {
    let request = match (effect, target(effect)) {
        (Effect::CreateCrd(create), _) => {
            Request::create(Kind::Crd, create.cluster.clone(), create.body.to_value()).managed_by("somebody")
        }
        (_, Some((kind, key))) => {
            if kind == Kind::LogicalCluster && kcp.version().is_multiple_of(3) {
                reformat(kcp, &key)
            } else {
                touch(kcp, kind, &key)
            }
        }
        _ => return,
    };
    // It may be refused or come too late: then nobody was quicker.
    let _ = kcp.handle(request);
}

/// Somebody edits the locks by hand, and changes nothing but the blanks in them: the field has another
/// manager then (D23).
fn reformat(kcp: &Kcp, key: &BindingKey) -> Request {
    let home = kcp.get(Origin::Local, Kind::LogicalCluster, key);
    let texts = [Layer::Bindings, Layer::Legacy].into_iter().filter_map(|layer| {
        let text = annotation(home?, layer.annotation());
        text.starts_with('{').then(|| (layer.annotation().to_owned(), json!(format!("{text} "))))
    });
    let texts: serde_json::Map<_, _> = texts.collect();
    let patch = json!({"metadata": {"annotations": texts}});
    Request::merge(Kind::LogicalCluster, key.cluster.clone(), key.name.clone(), patch).managed_by("somebody")
}
