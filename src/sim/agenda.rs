//! What is to happen, and when.

use std::collections::BTreeMap;
use std::time::Duration;

/// Things in the order of their times, and of one time in the order in which they were added.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<T> {
    entries: BTreeMap<(Duration, u64), T>,
    serial: u64,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), serial: 0 }
    }
}

impl<T> Agenda<T> {
    pub fn add(&mut self, at: Duration, entry: T) {
        self.serial += 1;
        self.entries.insert((at, self.serial), entry);
    }

    /// The next one, with its time.
    pub fn take(&mut self) -> Option<(Duration, T)> {
        self.entries.pop_first().map(|((at, _), entry)| (at, entry))
    }

    /// When the next one is due.
    #[cfg(feature = "shell")]
    pub fn next(&self) -> Option<Duration> {
        self.entries.first_key_value().map(|((at, _), _)| *at)
    }

    pub fn entries(&self) -> impl Iterator<Item = &T> {
        self.entries.values()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps only these.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.entries.retain(|_, entry| keep(entry));
    }
}
