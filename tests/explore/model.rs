//! A state of the whole world, and the steps that lead from it.
//!
//! What is left out, and why nothing is lost by it:
//!
//! * *Which worker.* Workers of a controller are alike, so they stand in order.
//! * *The order of the queue.* Any key that is queued may be taken next, which is more than a queue does.
//! * *Old news.* A watch tells the newest state of an object. It may do so late, so what would have told an
//!   older one is a watch that told that while it was the newest.
//! * *Taking without looking.* A worker that took a key plans at once. One that waits is one that takes
//!   later; all it misses is that the key may be queued again meanwhile, for a pass that has nothing to
//!   do (laws `woken` and `settles`).
//! * *Reading without hearing.* What a server answers to a read comes at once. An answer that is on its way
//!   changes nothing for anybody, and the worker may wait before it plans.
//! * *Hearing without planning*, where a controller has one worker. Nobody else looks at its snapshot, so a worker that
//!   waits before it plans is one that hears the answer later.
//! * *A standby.* A second controller that takes over on a stale list is one that runs from the start, and
//!   did not hear or do anything yet.

use apibinding::effect::Effect;
use apibinding::snapshot::{Layout, Snapshot};

use super::lab::{Answer, Id, Lab, Polled};
use super::world::{self, BIRDS, Deed, EXPORT, HOME, OWN, Party, SLOTS, Server};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    #[default]
    Idle,
    /// Its request is under way.
    Asks,
    /// The server has done it, and the answer is under way.
    Hears(Answer),
    /// It has heard, and is to plan.
    Plans,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Worker {
    pub phase: Phase,
    pass: Id,
    /// The snapshot that it has for its own. 0: it has none.
    own: Id,
    /// It planned on that one although there was a newer one. Then it may have seen, in an answer, what the shared
    /// snapshot never did, and nothing would wake the key: so it is looked at again.
    is_late: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Controller {
    runs: bool,
    snapshot: Id,
    queued: u8,
    /// Keys that wait for the clock.
    waiting: u8,
    workers: [Worker; 2],
}

/// What the search tells apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub server: Server,
    controllers: [Controller; 2],
    /// Requests of passes that nobody waits for any more, and that may reach the server yet. 0: none.
    orphans: [Id; 3],
    /// How far each script is.
    done: [u8; 2],
    pub clock: u8,
    losses: u8,
    crashes: u8,
}

/// One step of anybody.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// A controller hears of an object.
    Hear(u8, u8),
    /// A worker takes a key and plans.
    Take(u8, u8),
    /// The server does what a worker asks for.
    Serve(u8, u8),
    /// The answer reaches the worker.
    Answer(u8, u8),
    /// It plans, on the newest snapshot or on its own.
    Plan(u8, u8, bool),
    /// A worker gives up waiting.
    Lose(u8, u8),
    /// A request that nobody waits for reaches the server.
    Arrive(u8),
    /// A controller dies; the only one starts again.
    Crash(u8),
    /// The next deed of a script.
    Do(u8),
    /// What is under way of a script comes to nothing.
    Fail(u8),
    /// Another controller does its work.
    Act(u8),
    Tick,
}

pub struct Scenario {
    pub name: &'static str,
    pub layout: Layout,
    /// The bindings that are there at first. The others are made by scripts.
    pub birds: usize,
    /// The bound CRD is there and serves.
    pub serves: bool,
    /// Start where these bindings have come to rest, and the first controller with them.
    pub settled: bool,
    pub controllers: usize,
    pub workers: usize,
    /// Workers may also plan on their own snapshot: as it was when they planned last, and what they heard since.
    pub clones: bool,
    /// What users do, each script in its order, at any time.
    pub scripts: Vec<Vec<Deed>>,
    pub losses: u8,
    pub crashes: u8,
    /// After how many writes nobody takes a key any more who has not heard of all of them. Two that see different
    /// things, for as long as they do, undo each other's work.
    pub patience: u32,
    pub ticks: u8,
}

pub struct Model<'s> {
    pub scenario: &'s Scenario,
    pub lab: Lab,
    /// After how many writes nobody takes a key on old news.
    patience: u32,
}

impl<'s> Model<'s> {
    pub fn new(scenario: &'s Scenario) -> Self {
        let mut base = Snapshot::new(scenario.layout);
        base.apply(apibinding::snapshot::Change::put(world::schema()));
        let birds = (BIRDS..SLOTS).map(|slot| world::name(slot).1).collect();
        Self { scenario, lab: Lab::new(base, birds), patience: u32::MAX }
    }

    pub fn first(&mut self) -> State {
        let mut server = *self.lab.known(0);
        let birds = (0..self.scenario.birds)
            .map(|bird| (BIRDS + bird, world::binding(bird, &format!("bird-{bird}"), "Binding")));
        let bound = self.scenario.serves.then(|| (world::BOUND, world::bound_crd()));
        let others = [(HOME, world::home(self.scenario.layout)), (EXPORT, world::export(true))];
        for (slot, object) in others.into_iter().chain(birds).chain(bound) {
            server[slot] = self.lab.write(server[slot], Some(object));
        }
        let mut state = self.fresh(server, 1);
        if self.scenario.settled {
            while let Some(action) = self.actions(&state).into_iter().find(|action| self.is_fair(&state, *action)) {
                state = self.step(&state, action);
            }
        }
        self.patience = self.writes(&state.server) + self.scenario.patience;
        let mut state = self.fresh(state.server, self.scenario.controllers);
        if self.scenario.settled {
            state.controllers[0].queued = 0;
        }
        State { losses: self.scenario.losses, crashes: self.scenario.crashes, ..state }
    }

    fn fresh(&mut self, server: Server, controllers: usize) -> State {
        let mut state = State { server, ..State::default() };
        let (snapshot, queued) = self.lab.start(&server);
        for controller in state.controllers.iter_mut().take(controllers) {
            *controller = Controller { runs: true, snapshot, queued, ..Controller::default() };
        }
        state
    }

    /// All that may happen; what has to happen some day comes first, in the order in which it leads to rest.
    pub fn actions(&mut self, state: &State) -> Vec<Action> {
        let mut actions = Vec::with_capacity(16);
        actions.extend((0..3).filter(|orphan| state.orphans[*orphan as usize] != 0).map(Action::Arrive));
        let running = (0..2u8).filter(|c| state.controllers[usize::from(*c)].runs);
        for c in running.clone() {
            let controller = &state.controllers[usize::from(c)];
            for w in 0..2u8 {
                let worker = &controller.workers[usize::from(w)];
                match worker.phase {
                    Phase::Idle => {}
                    Phase::Asks => actions.push(Action::Serve(c, w)),
                    Phase::Hears(_) => actions.push(Action::Answer(c, w)),
                    Phase::Plans => {
                        actions.push(Action::Plan(c, w, true));
                        if self.scenario.clones && worker.own != controller.snapshot {
                            actions.push(Action::Plan(c, w, false));
                        }
                    }
                }
            }
        }
        for c in running.clone() {
            let known = self.lab.known(state.controllers[usize::from(c)].snapshot);
            actions.extend(
                (0..SLOTS).filter(|slot| known[*slot] != state.server[*slot]).map(|slot| Action::Hear(c, slot as u8)),
            );
        }
        for party in 0..Party::ALL.len() as u8 {
            let (slot, after) =
                Party::ALL[usize::from(party)].act(&mut self.lab, self.scenario.layout, &state.server, state.clock);
            if state.server[slot] != after {
                actions.push(Action::Act(party));
            }
        }
        for c in running.clone() {
            let controller = &state.controllers[usize::from(c)];
            let held = self.held(controller);
            if self.writes(&state.server) > self.patience && *self.lab.known(controller.snapshot) != state.server {
                continue;
            }
            let idle = controller.workers.iter().filter(|worker| worker.phase == Phase::Idle).count();
            if idle > 2 - self.scenario.workers {
                actions.extend(
                    (0..3).filter(|bird| controller.queued & !held & 1 << bird != 0).map(|bird| Action::Take(c, bird)),
                );
            }
        }
        let scripts = &self.scenario.scripts;
        let next =
            |script: u8| scripts.get(usize::from(script))?.get(usize::from(state.done[usize::from(script)])).copied();
        let scripts_ahead: Vec<u8> =
            (0..2).filter(|script| next(*script).is_some_and(|deed| self.may_be_done(state, deed))).collect();
        let under_way = |script: &u8| next(*script).is_some_and(Deed::is_under_way);
        actions.extend(scripts_ahead.into_iter().map(Action::Do));
        actions.extend((0..2).filter(under_way).map(Action::Fail));
        // A request ends, one way or the other, long before a clock's step is over.
        if state.clock < self.scenario.ticks && !(0..2).any(|script| under_way(&script)) {
            actions.push(Action::Tick);
        }
        if state.losses > 0 {
            for c in running.clone() {
                let workers = state.controllers[usize::from(c)].workers;
                let waits = |w: &u8| matches!(workers[usize::from(*w)].phase, Phase::Asks | Phase::Hears(_));
                actions.extend((0..2).filter(waits).map(|w| Action::Lose(c, w)));
            }
        }
        if state.crashes > 0 {
            actions.extend(running.map(Action::Crash));
        }
        actions
    }

    /// What `exclusive` cannot promise is left out (DEVIATIONS.md): in the single layout, where locks have no uid,
    /// a binding is not made again while its predecessor's lock, which is cleaned up, is still seen.
    fn may_be_done(&self, state: &State, deed: Deed) -> bool {
        let Deed::Create(bird) = deed else { return true };
        let has_lock = |thing: Id| self.lab.object(thing).is_some_and(|object| world::has_legacy_lock(object, bird));
        let sees = |snapshot: Id| has_lock(self.lab.known(snapshot)[HOME]);
        let running = state.controllers.iter().filter(|controller| controller.runs);
        let is_seen = running.clone().any(|controller| sees(controller.snapshot));
        let is_told = running.flat_map(|controller| &controller.workers).any(|worker| match worker.phase {
            Phase::Idle => false,
            Phase::Hears(Answer::Done(thing) | Answer::Conflict(thing)) => has_lock(thing) || sees(worker.own),
            _ => sees(worker.own),
        });
        has_lock(state.server[HOME]) || !is_seen && !is_told
    }

    /// True if an action will happen without a fault and without a user.
    pub fn is_fair(&self, state: &State, action: Action) -> bool {
        match action {
            Action::Plan(_, _, newest) => newest,
            Action::Lose(..) | Action::Crash(_) | Action::Fail(_) => false,
            Action::Do(script) => {
                let script = usize::from(script);
                self.scenario.scripts[script][usize::from(state.done[script])].is_under_way()
            }
            // Only if somebody waits for it.
            Action::Tick => state.controllers.iter().any(|controller| controller.runs && controller.waiting != 0),
            _ => true,
        }
    }

    fn writes(&self, server: &Server) -> u32 {
        server.iter().map(|thing| self.lab.things[*thing as usize].version).sum()
    }

    /// The keys that a controller's workers have.
    fn held(&self, controller: &Controller) -> u8 {
        let workers = controller.workers.iter().filter(|worker| worker.phase != Phase::Idle);
        workers.fold(0, |held, worker| held | 1 << self.lab.bird(self.lab.key(worker.pass)))
    }

    pub fn step(&mut self, state: &State, action: Action) -> State {
        let mut state = *state;
        match action {
            Action::Hear(c, slot) => self.hear(&mut state, c, slot),
            Action::Take(c, bird) => {
                let controller = &mut state.controllers[usize::from(c)];
                controller.queued &= !(1 << bird);
                let w = controller.workers.iter().position(|worker| worker.phase == Phase::Idle).unwrap();
                let pass = self.lab.begin(usize::from(bird));
                controller.workers[w] = Worker { phase: Phase::Plans, pass, ..Worker::default() };
                self.plan(&mut state, usize::from(c), w, true);
            }
            Action::Plan(c, w, newest) => self.plan(&mut state, usize::from(c), usize::from(w), newest),
            Action::Serve(c, w) => {
                let pass = state.controllers[usize::from(c)].workers[usize::from(w)].pass;
                let answer = self.lab.serve(pass, &mut state.server);
                if self.lab.effect(pass).is_read() {
                    self.answer(&mut state, c, w, answer);
                } else {
                    state.controllers[usize::from(c)].workers[usize::from(w)].phase = Phase::Hears(answer);
                }
            }
            Action::Answer(c, w) => {
                let Phase::Hears(answer) = state.controllers[usize::from(c)].workers[usize::from(w)].phase else {
                    panic!("there is no answer")
                };
                self.answer(&mut state, c, w, answer);
            }
            Action::Lose(c, w) => {
                state.losses -= 1;
                self.orphan(&mut state, c, w);
                self.answer(&mut state, c, w, Answer::Lost);
            }
            Action::Crash(c) => {
                state.crashes -= 1;
                (0..2).for_each(|w| self.orphan(&mut state, c, w));
                state.controllers[usize::from(c)] = Controller::default();
                if self.scenario.controllers == 1 {
                    let (snapshot, queued) = self.lab.start(&state.server);
                    state.controllers[0] = Controller { runs: true, snapshot, queued, ..Controller::default() };
                }
            }
            Action::Arrive(orphan) => {
                let pass = std::mem::take(&mut state.orphans[usize::from(orphan)]);
                self.lab.serve(pass, &mut state.server);
            }
            Action::Do(script) => {
                let script = usize::from(script);
                let deeds = &self.scenario.scripts[script];
                let deed = deeds[usize::from(state.done[script])];
                let is_allowed = deed.act(&mut self.lab, self.scenario.layout, &mut state.server, state.clock);
                // Who is refused gives up.
                state.done[script] = if is_allowed { state.done[script] + 1 } else { deeds.len() as u8 };
            }
            Action::Fail(script) => state.done[usize::from(script)] += 1,
            Action::Act(party) => {
                let party = Party::ALL[usize::from(party)];
                let (slot, after) = party.act(&mut self.lab, self.scenario.layout, &state.server, state.clock);
                state.server[slot] = after;
            }
            Action::Tick => {
                state.clock += 1;
                for controller in &mut state.controllers {
                    controller.queued |= std::mem::take(&mut controller.waiting);
                }
            }
        }
        state.controllers.iter_mut().for_each(|controller| controller.workers.sort());
        state.orphans.sort();
        state
    }

    fn hear(&mut self, state: &mut State, c: u8, slot: u8) {
        let controller = &mut state.controllers[usize::from(c)];
        let (snapshot, woken) = self.lab.learn(controller.snapshot, state.server[usize::from(slot)]);
        controller.snapshot = snapshot;
        controller.queued |= woken;
    }

    fn answer(&mut self, state: &mut State, c: u8, w: u8, answer: Answer) {
        let (c, w) = (usize::from(c), usize::from(w));
        let controller = &mut state.controllers[c];
        let worker = &mut controller.workers[w];
        let (pass, told) = self.lab.observe(worker.pass, answer);
        (worker.phase, worker.pass) = (Phase::Plans, pass);
        if let Some(thing) = told {
            if self.scenario.clones {
                worker.own = self.lab.learn(worker.own, thing).0;
            }
            let (snapshot, woken) = self.lab.learn(controller.snapshot, thing);
            controller.snapshot = snapshot;
            controller.queued |= woken;
        }
        if self.scenario.workers == 1 && !self.scenario.clones {
            self.plan(state, c, w, true);
        }
    }

    fn plan(&mut self, state: &mut State, c: usize, w: usize, newest: bool) {
        let controller = &mut state.controllers[c];
        let worker = &mut controller.workers[w];
        let snapshot = if newest { controller.snapshot } else { worker.own };
        worker.own = if self.scenario.clones { snapshot } else { 0 };
        worker.is_late |= snapshot != controller.snapshot;
        let bird = self.lab.bird(self.lab.key(worker.pass));
        match self.lab.poll(worker.pass, snapshot, state.clock) {
            Polled::Acts(pass) => {
                (worker.phase, worker.pass) = (Phase::Asks, pass);
                return;
            }
            Polled::Ends => {}
            Polled::EndsToReturn => controller.queued |= 1 << bird,
            Polled::EndsToWait => controller.waiting |= 1 << bird,
        }
        if worker.is_late {
            controller.queued |= 1 << bird;
        }
        *worker = Worker::default();
    }

    /// What a worker has asked for may still reach the server, when it waits no more. A read does nothing there.
    fn orphan(&mut self, state: &mut State, c: u8, w: u8) {
        let worker = state.controllers[usize::from(c)].workers[usize::from(w)];
        if worker.phase == Phase::Asks && !self.lab.effect(worker.pass).is_read() {
            *state.orphans.iter_mut().find(|orphan| **orphan == 0).expect("too many lost requests") = worker.pass;
        }
    }

    /// Law `exclusive`, on the server. With an admission of CRDs that reads fresh locks a CRD of the workspace is a holder
    /// like any other.
    pub fn is_exclusive(&self, state: &State) -> Result<(), String> {
        let birds = state.server[BIRDS..].iter().filter_map(|bird| self.lab.object(*bird));
        let listing = birds.filter(|bird| world::lists(bird)).count();
        let crd = self.lab.object(state.server[OWN]).is_some();
        if listing > 1 {
            return Err("two bindings list one resource".into());
        }
        if listing > 0 && crd && self.scenario.layout == Layout::Split {
            return Err("a binding lists the resource of a CRD".into());
        }
        Ok(())
    }

    /// What holds when nothing is left to happen.
    pub fn is_at_rest(&mut self, state: &State) -> Result<(), String> {
        let mut fresh = State { clock: state.clock, ..self.fresh(state.server, 1) };
        let server = fresh.server;
        loop {
            let actions = self.actions(&fresh);
            let next =
                actions.into_iter().find(|action| !matches!(action, Action::Tick) && self.is_fair(&fresh, *action));
            let Some(action) = next else { break };
            fresh = self.step(&fresh, action);
            if fresh.server != server {
                return Err("a controller that starts finds something to write".into());
            }
        }
        let birds: Vec<_> = state.server[BIRDS..].iter().filter_map(|bird| self.lab.object(*bird)).collect();
        let bound = birds.iter().filter(|bird| world::is_bound(bird)).count();
        let is_offered = self.lab.object(state.server[EXPORT]).is_some_and(world::offers);
        let is_free = self.lab.object(state.server[OWN]).is_none() && fresh.controllers[0].waiting == 0;
        if is_offered && is_free && !birds.is_empty() && bound != 1 {
            return Err(format!("of {} bindings that want a resource that is free, {bound} have it", birds.len()));
        }
        Ok(())
    }
}

impl Model<'_> {
    /// A line about a step, for people.
    pub fn tell(&mut self, state: &State, action: Action) -> String {
        let after = self.step(state, action);
        let worker = |c: u8, w: u8| state.controllers[usize::from(c)].workers[usize::from(w)];
        let who = |lab: &Lab, c: u8, w: u8| format!("controller {}, {}", c + 1, lab.key(worker(c, w).pass));
        let carried = |lab: &Lab, pass: Id| {
            let effect = lab.effect(pass);
            let locks = if matches!(effect, Effect::PatchLogicalCluster(_)) {
                format!(", now {}", world::show_locks(lab.object(after.server[HOME]).unwrap()))
            } else {
                String::new()
            };
            format!("{effect}{locks}")
        };
        match action {
            Action::Hear(c, slot) => {
                let thing = &self.lab.things[state.server[usize::from(slot)] as usize];
                let (kind, key) = world::name(usize::from(slot));
                let gone = if thing.object.is_none() { ", gone" } else { "" };
                format!("controller {} hears of {kind} {key} at {}{gone}", c + 1, thing.version)
            }
            Action::Take(c, bird) => {
                let (_, key) = world::name(BIRDS + usize::from(bird));
                format!("controller {} takes {key}{}", c + 1, self.asking(&after, c, &key))
            }
            Action::Plan(c, w, newest) => {
                let key = self.lab.key(worker(c, w).pass).clone();
                let on = if newest { "the newest snapshot" } else { "its own snapshot" };
                format!("{} plans on {on}{}", who(&self.lab, c, w), self.asking(&after, c, &key))
            }
            Action::Serve(c, w) => {
                let mut server = state.server;
                let answer = self.lab.serve(worker(c, w).pass, &mut server);
                let answer = match answer {
                    Answer::Done(_) => "done",
                    Answer::Conflict(_) => "conflict",
                    Answer::NotFound => "not found",
                    Answer::AlreadyExists => "already exists",
                    Answer::Lost => "lost",
                };
                format!("{}: {}: {answer}", who(&self.lab, c, w), carried(&self.lab, worker(c, w).pass))
            }
            Action::Answer(c, w) => format!("{} hears the answer", who(&self.lab, c, w)),
            Action::Lose(c, w) => format!("{} gives up waiting", who(&self.lab, c, w)),
            Action::Arrive(orphan) => {
                format!("nobody waits any more: {}", carried(&self.lab, state.orphans[usize::from(orphan)]))
            }
            Action::Crash(c) => format!("controller {} dies", c + 1),
            Action::Do(script) => {
                let deed = self.scenario.scripts[usize::from(script)][usize::from(state.done[usize::from(script)])];
                format!("a user: {deed:?}")
            }
            Action::Fail(_) => "what the user asked for fails".into(),
            Action::Act(party) => format!("another controller: {:?}", Party::ALL[usize::from(party)]),
            Action::Tick => "time passes".into(),
        }
    }

    fn asking(&self, after: &State, c: u8, key: &apibinding::api::BindingKey) -> String {
        let workers = after.controllers[usize::from(c)].workers;
        let asks = workers.iter().find(|worker| worker.phase == Phase::Asks && self.lab.key(worker.pass) == key);
        asks.map_or(", and is done".into(), |worker| format!(": {}", self.lab.effect(worker.pass)))
    }
}
