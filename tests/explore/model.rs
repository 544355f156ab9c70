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

use apibinding::sim::laws::{self, Verdict};
use apibinding::snapshot::{Layout, Snapshot};

use super::lab::{Answer, Id, Lab, Polled};
use super::scenario::Scenario;
use super::world::{self, BIRDS, Deed, EXPORT, HOME, OWN, SLOTS, Server};

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
    pub pass: Id,
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
    pub workers: [Worker; 2],
}

/// What the search tells apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub server: Server,
    pub controllers: [Controller; 2],
    /// Requests of passes that nobody waits for any more, and that may reach the server yet. 0: none.
    pub orphans: [Id; 3],
    /// How far each script is.
    pub done: [u8; 2],
    pub clock: u8,
    losses: u8,
    crashes: u8,
    /// The second controller has taken over, whatever the first is still at.
    is_taken_over: bool,
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
    /// The second controller takes keys from now on, the first none any more.
    TakeOver,
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
        if self.scenario.is_settled {
            while let Some(action) = self.actions(&state).into_iter().find(|action| self.is_fair(&state, *action)) {
                state = self.step(&state, action);
            }
        }
        self.patience = self.writes(&state.server) + self.scenario.patience;
        let mut state = self.fresh(state.server, self.scenario.controllers);
        if self.scenario.is_settled {
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
        let running: Vec<u8> = (0..2).filter(|c| state.controllers[usize::from(*c)].runs).collect();
        let mut actions = Vec::with_capacity(16);
        actions.extend((0..3).filter(|orphan| state.orphans[*orphan as usize] != 0).map(Action::Arrive));
        running.iter().for_each(|c| self.works(state, *c, &mut actions));
        running.iter().for_each(|c| self.news(state, *c, &mut actions));
        self.deeds_of_parties(state, &mut actions);
        running.iter().for_each(|c| self.takes(state, *c, &mut actions));
        self.deeds_of_users(state, &mut actions);
        if self.scenario.has_leader && !state.is_taken_over {
            actions.push(Action::TakeOver);
        }
        running.iter().for_each(|c| self.faults(state, *c, &mut actions));
        actions
    }

    fn works(&self, state: &State, c: u8, actions: &mut Vec<Action>) {
        let controller = &state.controllers[usize::from(c)];
        for (w, worker) in (0..).zip(&controller.workers) {
            match worker.phase {
                Phase::Idle => {}
                Phase::Asks => actions.push(Action::Serve(c, w)),
                Phase::Hears(_) => actions.push(Action::Answer(c, w)),
                Phase::Plans => {
                    actions.push(Action::Plan(c, w, true));
                    if self.scenario.has_clones && worker.own != controller.snapshot {
                        actions.push(Action::Plan(c, w, false));
                    }
                }
            }
        }
    }

    fn news(&self, state: &State, c: u8, actions: &mut Vec<Action>) {
        let known = self.lab.known(state.controllers[usize::from(c)].snapshot);
        let is_news = |slot: &usize| known[*slot] != state.server[*slot];
        actions.extend((0..SLOTS).filter(is_news).map(|slot| Action::Hear(c, slot as u8)));
    }

    fn takes(&self, state: &State, c: u8, actions: &mut Vec<Action>) {
        let controller = &state.controllers[usize::from(c)];
        let leads = !self.scenario.has_leader || state.is_taken_over == (c == 1);
        let is_patient = self.writes(&state.server) <= self.patience;
        let idle = controller.workers.iter().filter(|worker| worker.phase == Phase::Idle).count();
        if leads
            && idle > 2 - self.scenario.workers
            && (is_patient || *self.lab.known(controller.snapshot) == state.server)
        {
            let free = controller.queued & !self.held(controller);
            actions.extend((0..3).filter(|bird| free & 1 << bird != 0).map(|bird| Action::Take(c, bird)));
        }
    }

    fn deeds_of_parties(&mut self, state: &State, actions: &mut Vec<Action>) {
        let parties = (0..).zip(self.lab.parties(&state.server, state.clock));
        actions.extend(parties.filter(|(_, (slot, after))| state.server[*slot] != *after).map(|(n, _)| Action::Act(n)));
    }

    fn deeds_of_users(&self, state: &State, actions: &mut Vec<Action>) {
        let scripts = self.scenario.scripts.iter().zip(state.done);
        let next =
            (0..).zip(scripts).filter_map(|(script, (deeds, done))| Some((script, *deeds.get(usize::from(done))?)));
        let next: Vec<(u8, Deed)> = next.collect();
        let may_be_done = next.iter().filter(|(_, deed)| self.may_be_done(state, *deed));
        actions.extend(may_be_done.map(|(script, _)| Action::Do(*script)));
        let under_way = next.iter().filter(|(_, deed)| deed.is_under_way());
        actions.extend(under_way.clone().map(|(script, _)| Action::Fail(*script)));
        // A request ends, one way or the other, long before a clock's step is over.
        if state.clock < self.scenario.ticks && under_way.count() == 0 {
            actions.push(Action::Tick);
        }
    }

    fn faults(&self, state: &State, c: u8, actions: &mut Vec<Action>) {
        if state.losses > 0 {
            let workers = (0..).zip(&state.controllers[usize::from(c)].workers);
            let waiting = workers.filter(|(_, worker)| matches!(worker.phase, Phase::Asks | Phase::Hears(_)));
            actions.extend(waiting.map(|(w, _)| Action::Lose(c, w)));
        }
        if state.crashes > 0 && (c == 0 || !self.scenario.has_leader) {
            actions.push(Action::Crash(c));
        }
    }

    /// What `exclusive` cannot promise is left out (DEVIATIONS.md): in the single layout, where locks have no uid, a
    /// binding is not made again while its predecessor's lock, which is cleaned up, is still seen.
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
            Action::TakeOver => !state.controllers[0].runs,
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
                let (slot, after) = self.lab.parties(&state.server, state.clock)[usize::from(party)];
                state.server[slot] = after;
            }
            Action::TakeOver => state.is_taken_over = true,
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
        let (before, news) = (self.lab.known(controller.snapshot)[usize::from(slot)], state.server[usize::from(slot)]);
        let (snapshot, woken) = self.lab.learn(controller.snapshot, news);
        controller.snapshot = snapshot;
        controller.queued |= woken;
        // It came and went, so what tells is a list after a watch that broke: then all is processed (DEVIATIONS.md).
        if self.lab.object(before).is_none() && self.lab.object(news).is_none() {
            controller.queued |= self.lab.all(snapshot);
        }
    }

    fn answer(&mut self, state: &mut State, c: u8, w: u8, answer: Answer) {
        let (c, w) = (usize::from(c), usize::from(w));
        let controller = &mut state.controllers[c];
        let worker = &mut controller.workers[w];
        let (pass, told) = self.lab.observe(worker.pass, answer);
        (worker.phase, worker.pass) = (Phase::Plans, pass);
        if let Some(thing) = told {
            if self.scenario.has_clones {
                worker.own = self.lab.learn(worker.own, thing).0;
            }
            let (snapshot, woken) = self.lab.learn(controller.snapshot, thing);
            controller.snapshot = snapshot;
            controller.queued |= woken;
        }
        if self.scenario.workers == 1 && !self.scenario.has_clones {
            self.plan(state, c, w, true);
        }
    }

    fn plan(&mut self, state: &mut State, c: usize, w: usize, newest: bool) {
        let controller = &mut state.controllers[c];
        let worker = &mut controller.workers[w];
        let snapshot = if newest { controller.snapshot } else { worker.own };
        worker.own = if self.scenario.has_clones { snapshot } else { 0 };
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

    /// Law `exclusive`, on the server. With an admission of CRDs that reads fresh locks, as here in the split layout, a
    /// CRD of the workspace is a holder like any other.
    pub fn is_exclusive(&mut self, state: &State) -> Verdict {
        let [.., heron, egret, stork] = state.server;
        let is_listed = self.lab.is_listed([heron, egret, stork])?;
        let is_own = self.lab.object(state.server[OWN]).is_some();
        if is_listed && is_own && self.scenario.layout == Layout::Split {
            return Err("a binding lists the resource of a CRD".into());
        }
        Ok(())
    }

    /// What holds when nothing is left to happen.
    pub fn is_at_rest(&mut self, state: &State) -> Verdict {
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
        laws::rested(&self.lab.model(&state.server))?;
        let birds: Vec<_> = state.server[BIRDS..].iter().filter_map(|bird| self.lab.object(*bird)).collect();
        let bound = birds.iter().filter(|bird| world::is_bound(bird)).count();
        let is_offered = self.lab.object(state.server[EXPORT]).is_some_and(world::offers);
        let is_held = self.lab.object(state.server[HOME]).is_some_and(world::is_held_for_ever);
        let is_held = is_held || self.lab.object(state.server[OWN]).is_some();
        // What is waited for is a lock that time, which has come to its end here, would make past.
        let is_free = !is_held && fresh.controllers[0].waiting == 0;
        if is_offered && is_free && !birds.is_empty() && bound != 1 {
            return Err(format!("of {} bindings that want a resource that is free, {bound} have it", birds.len()));
        }
        Ok(())
    }
}
