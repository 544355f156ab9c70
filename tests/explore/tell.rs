//! Steps as people read them.

use apibinding::api::BindingKey;
use apibinding::effect::Effect;

use super::lab::{Answer, Id, Lab};
use super::model::{Action, Model, Phase, State};
use super::world::{self, BIRDS, HOME, Party};

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
            Action::TakeOver => "controller 2 takes over".into(),
        }
    }

    fn asking(&self, after: &State, c: u8, key: &BindingKey) -> String {
        let workers = after.controllers[usize::from(c)].workers;
        let asks = workers.iter().find(|worker| worker.phase == Phase::Asks && self.lab.key(worker.pass) == key);
        asks.map_or(", and is done".into(), |worker| format!(": {}", self.lab.effect(worker.pass)))
    }
}
