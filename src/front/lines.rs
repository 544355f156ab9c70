//! Events as lines, each written out once for all who are told it.

use std::collections::VecDeque;

use bytes::Bytes;

use super::reply::Body;
use crate::api::Kind;
use crate::sim::{Event, Happened};

/// How many lines of a kind are kept. Whoever is further behind has them written out for itself.
const KEPT: usize = 1024;

/// The last lines of a kind, oldest first.
#[derive(Debug)]
pub(super) struct Lines {
    kind: Kind,
    tells_owners: bool,
    lines: VecDeque<(u64, Bytes)>,
}

impl Lines {
    pub fn new(kind: Kind, tells_owners: bool) -> Self {
        Self { kind, tells_owners, lines: VecDeque::new() }
    }

    /// The line of an event, told as this. It is not what happened to who sees only some of the objects.
    pub fn line(&mut self, event: &Event, told_as: Happened) -> Bytes {
        if told_as != event.happened {
            return self.write(event, told_as);
        }
        let at = self.lines.partition_point(|(version, _)| *version < event.version);
        if let Some((version, line)) = self.lines.get(at)
            && *version == event.version
        {
            return line.clone();
        }
        let line = self.write(event, told_as);
        // Only what is newest is kept, so that slow readers do not drive out what the others want.
        if at == self.lines.len() {
            self.lines.push_back((event.version, line.clone()));
            if self.lines.len() > KEPT {
                self.lines.pop_front();
            }
        }
        line
    }

    fn write(&self, event: &Event, told_as: Happened) -> Bytes {
        let owners = self.tells_owners.then(|| event.owners(self.kind));
        Body { object: event.object.clone(), owners }.line(told_as.as_str())
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.lines.clear();
    }
}
