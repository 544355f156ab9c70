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
    /// When it came on last: each request has its time, but nobody knows how many there will be.
    pub moved: Instant,
    /// What went wrong last in it.
    trouble: Option<Text>,
    commits: u32,
}

/// Keys that fail, or were written lately.
#[derive(Debug)]
pub(super) struct Unrest {
    keys: BTreeMap<BindingKey, Restless>,
    /// When those were last forgotten that have come to rest.
    swept: Instant,
}

#[derive(Debug)]
struct Restless {
    failures: u32,
    /// Since when commits are counted, and how many there were.
    since: Instant,
    commits: u32,
    is_told: bool,
}

impl Work {
    pub fn new(now: Instant) -> Self {
        Self { since: now, moved: now, trouble: None, commits: 0 }
    }

    /// Takes note of what came of an effect.
    pub fn note(&mut self, effect: &Effect, outcome: &Outcome) {
        self.moved = Instant::now();
        match outcome {
            Outcome::Done(_) if matches!(effect, Effect::PatchApiBindingStatus(_)) => self.commits += 1,
            Outcome::Done(_) => {}
            other if effect.is_read() && other.has_reason("NotFound") => {}
            other => self.trouble = Some(format!("{effect}: {other}").into()),
        }
    }
}

impl Default for Unrest {
    fn default() -> Self {
        Self { keys: BTreeMap::new(), swept: Instant::now() }
    }
}

impl Unrest {
    /// How many do not come to rest.
    pub fn count(&self) -> usize {
        self.keys.values().filter(|restless| restless.is_told && restless.is_current()).count()
    }

    /// Takes note of how the work on a key ended, and tells once if it does not come to rest.
    pub fn note(&mut self, key: &BindingKey, failures: u32, work: Option<&Work>) {
        if self.swept.elapsed() > SPAN {
            self.swept = Instant::now();
            self.keys.retain(|_, restless| restless.is_current());
        }
        let commits = work.map_or(0, |work| work.commits);
        if failures == 0 && commits == 0 {
            if let Some(restless) = self.keys.get_mut(key) {
                restless.failures = 0;
                restless.is_told &= restless.commits >= COMMITS;
            }
            return;
        }
        let now = Instant::now();
        let fresh = Restless { failures: 0, since: now, commits: 0, is_told: false };
        let restless = self.keys.entry(key.clone()).or_insert(fresh);
        if restless.since.elapsed() > SPAN {
            (restless.since, restless.commits) = (now, 0);
        }
        restless.failures = failures;
        restless.commits += commits;
        let is_restless = failures >= FAILURES || restless.commits >= COMMITS;
        if is_restless && !restless.is_told {
            restless.tell(key, work);
        }
        restless.is_told = is_restless;
    }
}

impl Restless {
    /// What was written long ago has come to rest since.
    fn is_current(&self) -> bool {
        self.failures > 0 || self.since.elapsed() <= SPAN
    }

    fn tell(&self, key: &BindingKey, work: Option<&Work>) {
        let why = work.and_then(|work| work.trouble.as_ref()).filter(|_| self.failures >= FAILURES);
        match why {
            Some(why) => tracing::warn!(%key, failures = self.failures, %why, "does not come to rest"),
            None => tracing::warn!(
                %key,
                commits = self.commits,
                "does not come to rest: its status is written over and over, which is what two controllers do that \
                 know different things"
            ),
        }
    }
}
