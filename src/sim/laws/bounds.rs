//! `bounded`.

use std::collections::BTreeSet;

use super::Verdict;
use crate::api::Text;
use crate::effect::{Effect, Outcome};

/// What one pass has done so far: it may create each CRD once, ask each question once an attempt, write
/// the lock five times a commit, and commit five times.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    creates: BTreeSet<Text>,
    asked: BTreeSet<String>,
    locks: u32,
    commits: u32,
}

impl Bounds {
    /// Takes note of an effect that is about to be carried out.
    ///
    /// # Errors
    /// It is one too many.
    pub fn planned(&mut self, effect: &Effect) -> Verdict {
        match effect {
            Effect::CreateCrd(create) if !self.creates.insert(create.name.clone()) => {
                return Err(format!("{} is created twice", create.name));
            }
            Effect::CreateCrd(_) => {}
            Effect::PatchLogicalCluster(_) => {
                self.locks += 1;
                if self.locks > 5 {
                    return Err("six lock writes".into());
                }
            }
            Effect::PatchApiBindingStatus(_) => {
                self.commits += 1;
                if self.commits > 5 {
                    return Err("six commits".into());
                }
                self.locks = 0;
            }
            read => {
                if !self.asked.insert(read.to_string()) {
                    return Err(format!("twice in one attempt: {read}"));
                }
            }
        }
        Ok(())
    }

    /// Takes note of what came of it: a conflict begins a new attempt.
    pub fn answered(&mut self, outcome: &Outcome) {
        if matches!(outcome, Outcome::Conflict { .. }) {
            self.asked.clear();
        }
    }

    /// The LogicalCluster on which was asked has changed: what is known has to be asked anew.
    pub fn forget_questions(&mut self) {
        self.asked.clear();
    }
}
