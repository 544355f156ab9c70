//! Keys that do not come to rest.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::api::{BindingKey, Text};
use crate::effect::{Effect, Outcome};

/// So many failures in a row, or commits within [`SPAN`], and a key is said not to come to rest.
const FAILURES: u32 = 6;
const COMMITS: u32 = 20;
const SPAN: Duration = Duration::from_secs(60);

/// A key that is being processed.
#[derive(Debug)]
pub(super) struct Work {
    pub since: Instant,
    /// What went wrong last in it.
    trouble: Option<Text>,
    commits: u32,
}

/// A key that does not come to rest.
#[derive(Debug)]
pub(super) struct Restless {
    failures: u32,
    /// Since when commits are counted, and how many there were.
    since: Instant,
    commits: u32,
    pub is_told: bool,
}

impl Work {
    pub fn new(now: Instant) -> Self {
        Self { since: now, trouble: None, commits: 0 }
    }

    /// Takes note of what came of an effect.
    pub fn note(&mut self, effect: &Effect, outcome: &Outcome) {
        match outcome {
            Outcome::Done(_) if matches!(effect, Effect::PatchApiBindingStatus(_)) => self.commits += 1,
            Outcome::Done(_) => {}
            other if effect.is_read() && other.has_reason("NotFound") => {}
            other => self.trouble = Some(format!("{effect}: {other}").into()),
        }
    }
}

impl Restless {
    /// Takes note of how the work on a key ended, and tells once if it does not come to rest.
    pub fn note(all: &mut BTreeMap<BindingKey, Self>, key: &BindingKey, failures: u32, work: Option<&Work>) {
        let commits = work.map_or(0, |work| work.commits);
        if failures == 0 && commits == 0 {
            // It has come to rest, unless it was written just before.
            if all.get(key).is_some_and(|restless| restless.since.elapsed() > SPAN || restless.commits < COMMITS) {
                all.remove(key);
            }
            return;
        }
        let now = Instant::now();
        let restless = all.entry(key.clone()).or_insert(Self { failures: 0, since: now, commits: 0, is_told: false });
        if restless.since.elapsed() > SPAN {
            (restless.since, restless.commits) = (now, 0);
        }
        restless.failures = failures;
        restless.commits += commits;
        let is_restless = failures >= FAILURES || restless.commits >= COMMITS;
        if is_restless && !restless.is_told {
            let why = work.and_then(|work| work.trouble.clone());
            match why.filter(|_| failures >= FAILURES) {
                Some(why) => tracing::warn!(%key, failures, %why, "does not come to rest"),
                None => tracing::warn!(
                    %key,
                    commits = restless.commits,
                    "does not come to rest: its status is written over and over, which is what two controllers do \
                     that know different things"
                ),
            }
        }
        restless.is_told = is_restless;
    }
}
