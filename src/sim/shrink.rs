//! From a scenario in which a law is broken to a small one in which it is broken too.

use super::laws::Law;
use super::trial::{Play, Report, play};
use super::{Faults, Scenario};

/// Looks for the smallest scenario in which this law is broken, by leaving out faults, workers, what users do, and
/// objects, and playing what is left, so many `tries` at most. Gives that scenario, and what came of it,
/// traced: the given one, if nothing can be left out.
pub fn shrink(scenario: &Scenario, law: Law, tries: usize) -> (Scenario, Report) {
    let mut search = Search { best: scenario.clone(), law, tries };
    loop {
        let before = search.tries;
        let size = search.size();
        search.faults();
        search.workers();
        search.leave_out(
            |scenario| scenario.deeds.len(),
            |scenario, at, count| drop(scenario.deeds.drain(at..at + count)),
        );
        search.leave_out(
            |scenario| scenario.objects.len(),
            |scenario, at, count| drop(scenario.objects.drain(at..at + count)),
        );
        if search.size() == size || search.tries == 0 || search.tries == before {
            let report = play(&search.best, Play { laws: true, trace: true }, |_| true);
            return (search.best, report);
        }
    }
}

struct Search {
    best: Scenario,
    law: Law,
    tries: usize,
}

impl Search {
    fn size(&self) -> usize {
        let Scenario { objects, deeds, faults, workers, .. } = &self.best;
        objects.len() + deeds.len() + faults.iter().count() + workers
    }

    /// Takes a scenario for the best if the law is broken in it.
    fn accept(&mut self, scenario: Scenario) -> bool {
        if self.tries == 0 {
            return false;
        }
        self.tries -= 1;
        let is_broken = play(&scenario, Play::default(), |_| true).broken.is_some_and(|broken| broken.law == self.law);
        if is_broken {
            self.best = scenario;
        }
        is_broken
    }

    fn faults(&mut self) {
        if self.best.faults == Faults::none() || self.accept(self.best.clone().with_faults(Faults::none())) {
            return;
        }
        for fault in self.best.faults.iter() {
            self.accept(self.best.clone().with_faults(self.best.faults.without(fault)));
        }
    }

    fn workers(&mut self) {
        if self.best.workers > 1 {
            self.accept(Scenario { workers: 1, ..self.best.clone() });
        }
    }

    /// Leaves out halves, then quarters, then ever smaller parts.
    fn leave_out(&mut self, count: impl Fn(&Scenario) -> usize, remove: impl Fn(&mut Scenario, usize, usize)) {
        let mut part = count(&self.best).div_ceil(2);
        while part > 0 && self.tries > 0 {
            let mut at = 0;
            while at < count(&self.best) {
                let mut less = self.best.clone();
                let end = part.min(count(&less) - at);
                remove(&mut less, at, end);
                if !self.accept(less) {
                    at += part;
                }
            }
            part /= 2;
        }
    }
}
