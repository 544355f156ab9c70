//! A world that runs: a kcp, its controllers, the other parties, users, and time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::agenda::Agenda;
use super::judge::Judge;
use super::kcp::{key_of, text_at};
use super::parties::{Chore, Habits, Parties};
use super::process::{Process, happened_since};
use super::shard::{Shard, is_everywhere, shard_of};
use super::work::{Reply, Sent, touches};
use super::{Answer, Broken, Chance, Fault, Faults, Kcp, Request, Scenario, Verb};
use crate::api::{BindingKey, Kind};
use crate::effect::Effect;
use crate::queue;
use crate::snapshot::{Layout, Origin, STREAMS, Snapshot};

/// Of how many versions the servers remember what happened: watches from before list again.
const HISTORY: u64 = 10_000;

/// What is on the agenda. Each is one party's one action: one step.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// A user does something: that of this number.
    Deed(usize),
    /// Another party does something, on this shard.
    Chore(usize, Chore),
    /// The cache server tells the other shards what one shard has.
    Copy(usize, Kind, BindingKey),
    /// A controller begins to run.
    Start(usize),
    /// A watch tells something.
    Watch { process: usize, life: u32, stream: usize },
    /// A worker plans.
    Work { process: usize, life: u32, worker: usize },
    /// A request comes to the server.
    Arrive(Box<Sent>),
    /// An answer comes back.
    Answer(Box<Reply>),
    /// Keys have waited long enough.
    Alarm { process: usize, life: u32 },
    /// A clock goes wrong.
    Skew(usize),
}

/// One line of what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// The number of the step.
    pub step: u64,
    /// When, since the start.
    pub at: Duration,
    /// Who did what.
    pub text: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>5} {:>10.3} s  {}", self.step, self.at.as_secs_f64(), self.text)
    }
}

/// What there was to count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Actions of one party each.
    pub steps: u64,
    /// Passes that came to their end.
    pub passes: u64,
    /// Requests of controllers that came to the server.
    pub requests: u64,
    /// How often each fault struck.
    pub faults: [u64; Fault::ALL.len()],
}

/// A simulated world: one party does one thing at each [`step`](Self::step), when its time has come.
///
/// ```
/// use apibinding::sim::{Faults, Scenario, Simulation};
///
/// let mut world = Simulation::new(&Scenario::new(7));
/// for _ in 0..200 {
///     world.step();
/// }
/// world.heal(); // nothing goes wrong any more
/// while world.step() {}
/// assert!(world.is_at_rest());
/// ```
#[derive(Clone, Debug)]
pub struct Simulation {
    pub(super) shards: Vec<Shard>,
    /// So many on each shard, one shard after the other.
    pub(super) processes: Vec<Process>,
    pub(super) agenda: Agenda<Task>,
    /// Since the start.
    pub(super) clock: Duration,
    start: Timestamp,
    pub(super) faults: Faults,
    pub(super) fault_rate: u64,
    pub(super) queue: queue::Config,
    /// Delays of what goes right.
    pub(super) pace: Chance,
    /// What goes wrong.
    pub(super) luck: Chance,
    deeds: Arc<[super::Deed]>,
    pub(super) counts: Counts,
    pub(super) trace: Option<Vec<Line>>,
    pub(super) judge: Option<Box<Judge>>,
    /// The last request of a controller, if it was done, and whose it was.
    pub(super) last: Option<(BindingKey, Effect)>,
}

impl Simulation {
    /// The beginning of a scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let Scenario { seed, layout, start, faults, .. } = *scenario;
        let vandals = scenario.vandals.iter().filter(|_| faults.has(Fault::Vandals));
        let deeds: Vec<super::Deed> = scenario.deeds.iter().chain(vandals).cloned().collect();
        let count = scenario.shards.max(1);
        let shards = (0..count).map(|shard| {
            let mut kcp = Kcp::new(seed.wrapping_add(shard as u64));
            kcp.set_now(start);
            let is_here = |object: &&Value| {
                let key = key_of(object);
                is_everywhere(&key.cluster) || shard_of(&key, count) == shard
            };
            kcp.load(Origin::Local, scenario.objects.iter().filter(is_here).cloned());
            kcp.load(Origin::Global, scenario.global.iter().cloned());
            Shard { begin: kcp.version(), kcp, parties: Parties::new(layout, Habits::default()), told: 0 }
        });
        let shards: Vec<Shard> = shards.collect();
        let processes = (0..count).flat_map(|shard| {
            let process = Process::new(shard, layout, scenario.workers, scenario.queue);
            vec![process; scenario.controllers()]
        });
        let mut world = Self {
            processes: processes.collect(),
            shards,
            agenda: Agenda::default(),
            clock: Duration::ZERO,
            start,
            faults,
            fault_rate: scenario.fault_rate,
            queue: scenario.queue,
            pace: Chance::of(seed, "pace"),
            luck: Chance::of(seed, "luck"),
            deeds: deeds.into(),
            counts: Counts::default(),
            trace: None,
            judge: None,
            last: None,
        };
        world.set_switches();
        for number in 0..world.deeds.len() {
            let after = world.deeds.get(number).map_or(Duration::ZERO, |deed| deed.after);
            world.agenda.add(after, Task::Deed(number));
        }
        for process in 0..world.processes.len() {
            world.later(Duration::from_millis(process as u64 * 50), Task::Start(process));
            if faults.has(Fault::Clock) {
                world.later(Duration::ZERO, Task::Skew(process));
            }
        }
        world.spread();
        world
    }

    /// The same, with what happens kept as text.
    #[must_use]
    pub fn traced(self) -> Self {
        Self { trace: Some(Vec::new()), ..self }
    }

    /// The same, with all laws asked from now on.
    #[must_use]
    pub fn judged(self) -> Self {
        let is_lenient = self.faults.iter().any(Fault::is_beyond_promise);
        let judge = Judge::new(&self.shards, &self.processes, is_lenient, self.luck.clone());
        Self { judge: Some(Box::new(judge)), ..self }
    }

    /// Lets one party do one thing. False if there is nothing left that anybody would do.
    pub fn step(&mut self) -> bool {
        while let Some((at, task)) = self.agenda.take() {
            self.clock = self.clock.max(at);
            self.set_clocks();
            if self.act(task) {
                self.counts.steps += 1;
                self.spread();
                if let Some(judge) = &mut self.judge {
                    judge.stepped(&self.shards, &self.processes, self.counts.steps);
                }
                return true;
            }
        }
        false
    }

    /// Does what is due; false if it concerns nobody any more.
    fn act(&mut self, task: Task) -> bool {
        match task {
            Task::Deed(number) => self.do_deed(number),
            Task::Chore(shard, chore) => return self.do_chore(shard, chore),
            Task::Copy(shard, kind, key) => self.copy(shard, kind, &key),
            Task::Start(process) => return self.start(process),
            Task::Watch { process, life, stream } => return self.lives(process, life) && self.watch(process, stream),
            Task::Work { process, life, worker } => return self.lives(process, life) && self.work(process, worker),
            Task::Arrive(sent) => self.arrive(*sent),
            Task::Answer(reply) => {
                return self.lives(reply.process, reply.life) && self.answer(*reply);
            }
            Task::Alarm { process, life } => {
                if self.lives(process, life) {
                    self.ring(process);
                }
                return false;
            }
            Task::Skew(process) => return self.skew(process),
        }
        true
    }

    fn lives(&self, process: usize, life: u32) -> bool {
        self.processes.get(process).is_some_and(|process| process.life == life)
    }

    /// Puts something on the agenda.
    pub(super) fn later(&mut self, delay: Duration, task: Task) {
        self.agenda.add(self.clock.saturating_add(delay), task);
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        SignedDuration::try_from(self.clock)
            .ok()
            .and_then(|since| self.start.checked_add(since).ok())
            .unwrap_or(self.start)
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.clock
    }

    /// How the lock annotations are laid out.
    pub fn layout(&self) -> Layout {
        self.processes.first().map_or(Layout::Split, |process| process.snapshot.layout())
    }

    /// The servers, one a shard.
    pub fn shards(&self) -> impl Iterator<Item = &Kcp> {
        self.shards.iter().map(|shard| &shard.kcp)
    }

    /// An object as it is now, on whatever shard it is.
    pub fn get(&self, kind: Kind, key: &BindingKey) -> Option<&Arc<Value>> {
        self.shards().find_map(|kcp| kcp.get(Origin::Local, kind, key))
    }

    /// All objects of a kind, shard after shard.
    pub fn list(&self, kind: Kind) -> impl Iterator<Item = &Arc<Value>> {
        self.shards().flat_map(move |kcp| kcp.list(Origin::Local, kind, None))
    }

    /// What a controller knows, by its number.
    pub fn snapshot(&self, controller: usize) -> Option<&Snapshot> {
        self.processes.get(controller).map(|process| &process.snapshot)
    }

    /// What there was to count so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What happened since this was asked last; empty if nothing is [traced](Self::traced).
    pub fn take_trace(&mut self) -> Vec<Line> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The first law that was broken, if one was.
    pub fn broken(&self) -> Option<&Broken> {
        self.judge.as_ref()?.broken()
    }

    /// How often two bindings of a workspace came to list one resource, where nothing can be promised against
    /// that: with faults [beyond promise](Fault::is_beyond_promise), and in the single layout on a
    /// LogicalCluster older than the binding. Anywhere else law `exclusive` is broken.
    pub fn shared(&self) -> u64 {
        self.judge.as_ref().map_or(0, |judge| judge.shared())
    }

    /// True if nothing is left that anybody would do.
    pub fn is_at_rest(&self) -> bool {
        self.agenda.is_empty()
    }

    /// Kills all controllers. They start again with an empty memory.
    pub fn restart(&mut self) {
        for process in 0..self.processes.len() {
            self.crash(process);
        }
    }

    /// From now on nothing goes wrong, and what went wrong is over: clocks are right.
    ///
    /// What a server refused as invalid although it was not, nobody tries again before something
    /// happens to it; so somebody touches every binding, and every LogicalCluster for the locks of those
    /// that are gone.
    pub fn heal(&mut self) {
        let refused = self.faults.has(Fault::Invalid);
        self.faults = Faults::none();
        self.set_switches();
        for process in &mut self.processes {
            process.skew = SignedDuration::ZERO;
        }
        if refused {
            let touches: Vec<Request> = self.shards().flat_map(touches).collect();
            for request in touches {
                let _ = self.request(request);
            }
        }
    }

    /// Looks closely at what every controller knows.
    pub(super) fn look(&mut self) -> Result<(), Broken> {
        if let Some(judge) = &mut self.judge {
            judge.look(&self.processes);
        }
        self.broken().map_or(Ok(()), |broken| Err(broken.clone()))
    }

    /// Looks at what every controller knows when all rest.
    pub(super) fn look_at_rest(&mut self) -> Result<(), Broken> {
        if let Some(judge) = &mut self.judge {
            judge.look_at_rest();
        }
        self.look()
    }

    fn set_switches(&mut self) {
        for shard in &mut self.shards {
            shard.parties.habits.stale_admission = self.faults.has(Fault::StaleAdmission);
            shard.parties.habits.stale_cleanup = self.faults.has(Fault::StaleCleanup);
            shard.parties.habits.slow_copies = self.faults.has(Fault::CacheLag);
        }
    }

    /// Does what some other client wants, here and now. A CRD of a workspace is admitted first, if the
    /// layout has an admission for that; the answer is that to a dry run then.
    ///
    /// # Errors
    /// The server's refusal.
    pub fn request(&mut self, request: Request) -> Result<Answer, Box<Status>> {
        self.set_clocks();
        let (layout, count) = (self.layout(), self.shards.len());
        let name = match &request.verb {
            Verb::Create(body) => text_at(body, &["metadata", "name"]).into(),
            _ => request.name.clone(),
        };
        let at = shard_of(&BindingKey::new(request.cluster.clone(), name), count);
        let Some(shard) = self.shards.get_mut(at) else { return Err(Box::default()) };
        let is_crd = request.kind == Kind::Crd && matches!(request.verb, Verb::Create(_));
        if is_crd && !is_everywhere(&request.cluster) && layout == Layout::Split {
            let answer = shard.kcp.handle(request.clone().dry_run());
            for (delay, chore) in shard.parties.admit(&shard.kcp, request, &mut self.pace) {
                self.later(delay, Task::Chore(at, chore));
            }
            return answer;
        }
        let answer = shard.kcp.handle(request);
        self.spread();
        answer
    }

    pub(super) fn do_deed(&mut self, number: usize) {
        let Some(deed) = self.deeds.get(number).cloned() else { return };
        let text = self.trace.is_some().then(|| deed.to_string());
        let answer = self.request(deed.request);
        if let Some(text) = text {
            self.tell(format_args!("user: {text}: {}", outcome(&answer)));
        }
    }

    fn do_chore(&mut self, at: usize, chore: Chore) -> bool {
        let Some(shard) = self.shards.get_mut(at) else { return false };
        let (done, next) = shard.parties.act(&mut shard.kcp, chore, &mut self.pace);
        for (delay, chore) in next {
            self.later(delay, Task::Chore(at, chore));
        }
        if let Some(done) = &done {
            self.tell(format_args!("{done}"));
        }
        done.is_some()
    }

    /// The other shards see what the cache server has of this one.
    fn copy(&mut self, from: usize, kind: Kind, key: &BindingKey) {
        let copy = self.shards.get(from).and_then(|shard| shard.kcp.get(Origin::Global, kind, key)).cloned();
        for (at, shard) in self.shards.iter_mut().enumerate() {
            if at != from {
                shard.kcp.set_copy(kind, key, copy.as_deref());
            }
        }
        self.tell(format_args!("cache server: {kind} {key} for the other shards"));
    }

    /// Tells everybody that there is something to hear.
    fn spread(&mut self) {
        for shard in 0..self.shards.len() {
            self.spread_of(shard);
        }
    }

    fn spread_of(&mut self, at: usize) {
        let count = self.shards.len();
        let Some(shard) = self.shards.get_mut(at).filter(|shard| shard.kcp.version() != shard.told) else { return };
        let since = std::mem::replace(&mut shard.told, shard.kcp.version());
        let happened = happened_since(&shard.kcp, since);
        let version = shard.kcp.version();
        if version / HISTORY != since / HISTORY {
            shard.kcp.compact(version.saturating_sub(HISTORY));
        }
        let mut next = Vec::new();
        for (stream, event) in &happened {
            let Some((origin, kind)) = STREAMS.get(*stream).copied() else { continue };
            if let Some(judge) = &mut self.judge {
                judge.happened(origin, kind, event);
            }
            let reactions = shard.parties.react(&shard.kcp, origin, kind, event, &mut self.pace);
            next.extend(reactions.into_iter().map(|(delay, chore)| (delay, Task::Chore(at, chore))));
            if origin == Origin::Global && count > 1 && shard_of(&event.key, count) == at {
                next.push((Duration::from_millis(5), Task::Copy(at, kind, event.key.clone())));
            }
        }
        for (delay, task) in next {
            self.later(delay, task);
        }
        for (stream, _) in happened {
            for process in 0..self.processes.len() {
                if self.processes.get(process).is_some_and(|process| process.shard == at) {
                    self.announce(process, stream);
                }
            }
        }
    }

    fn set_clocks(&mut self) {
        let now = self.now();
        for shard in &mut self.shards {
            shard.kcp.set_now(now);
        }
    }

    /// Keeps a line of what happened.
    pub(super) fn tell(&mut self, text: fmt::Arguments<'_>) {
        if let Some(trace) = &mut self.trace {
            trace.push(Line { step: self.counts.steps, at: self.clock, text: text.to_string() });
        }
    }

    /// True if this fault is on, and strikes now.
    pub(super) fn strikes(&mut self, fault: Fault) -> bool {
        let strikes = self.faults.has(fault) && self.luck.permille(self.fault_rate);
        if strikes {
            self.count(fault);
        }
        strikes
    }

    pub(super) fn count(&mut self, fault: Fault) {
        if let Some(count) = self.counts.faults.get_mut(fault as usize) {
            *count += 1;
        }
    }
}

fn outcome(answer: &Result<Answer, Box<Status>>) -> String {
    match answer {
        Ok(answer) => answer.code.to_string(),
        Err(status) => format!(
            "{} {}",
            status.code.unwrap_or_default(),
            status.message.as_deref().or(status.reason.as_deref()).unwrap_or_default()
        ),
    }
}
