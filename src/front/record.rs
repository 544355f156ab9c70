//! What was asked, and what became of it.

use std::collections::VecDeque;

use super::ask::Ask;

/// A request, and how it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// What was asked.
    pub ask: Ask,
    /// The status of the answer. `None`: there is none yet, or the connection was cut.
    pub status: Option<u16>,
}

/// The last requests.
#[derive(Debug)]
pub(super) struct Record {
    entries: VecDeque<Entry>,
    most: usize,
    /// How many there were in all.
    count: u64,
}

impl Record {
    pub fn new(most: usize) -> Self {
        Self { entries: VecDeque::new(), most, count: 0 }
    }

    /// A request came: gives its number.
    pub fn begin(&mut self, ask: &mut Ask) -> u64 {
        self.count += 1;
        ask.number = self.count;
        if self.most > 0 {
            if self.entries.len() >= self.most {
                self.entries.pop_front();
            }
            self.entries.push_back(Entry { ask: ask.clone(), status: None });
        }
        self.count
    }

    /// It was answered.
    pub fn end(&mut self, number: u64, status: u16) {
        // They stand in the order of their numbers.
        let first = self.entries.front().map_or(0, |entry| entry.ask.number);
        let at = number.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        if let Some(entry) = at.and_then(|at| self.entries.get_mut(at)) {
            entry.status = Some(status);
        }
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }
}
