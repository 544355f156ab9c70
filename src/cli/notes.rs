//! What a person would want to know of the input: notes, for stderr.

use std::collections::{BTreeMap, BTreeSet};

use apibinding::api::{ClusterName, Kind};
use apibinding::snapshot::Snapshot;

/// How many notes of one sort are told, and how many names a note lists.
const SHOWN: usize = 5;

/// Notes of one sort: the first of them, and how many there are.
#[derive(Debug, Default)]
pub struct Few {
    shown: Vec<String>,
    count: usize,
}

impl Few {
    /// One more. It is made only if it is told.
    pub fn push(&mut self, note: impl FnOnce() -> String) {
        self.count += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(note());
        }
    }

    /// These and others, in this order.
    pub fn append(&mut self, more: Few) {
        self.count += more.count;
        self.shown.extend(more.shown);
        self.shown.truncate(SHOWN);
    }

    /// All, with a last one for those that are not told.
    pub fn told(self, what: &str) -> impl Iterator<Item = String> {
        let more = self.count - self.shown.len();
        let rest = (more > 0).then(|| format!("and {more} more {what}"));
        self.shown.into_iter().chain(rest)
    }
}

/// `1 binding`, `2 bindings`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// What is left out, by kind.
pub fn skipped(kinds: impl Iterator<Item = (String, usize)>, why: &str) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (kind, count) in kinds {
        *counts.entry(kind).or_default() += count;
    }
    let total: usize = counts.values().sum();
    let objects = counted(total, "object is of a kind", "objects are of kinds");
    let are = if total == 1 { "is" } else { "are" };
    let counts = counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect::<Vec<_>>().join(", ");
    (total > 0).then(|| format!("{objects} {why}, and {are} left out: {counts}"))
}

/// Kinds without which no answer means much: a list that failed, or was forgotten, looks the same.
pub fn missing(has: impl Fn(Kind) -> bool) -> Vec<String> {
    if !has(Kind::ApiBinding) {
        return vec!["no APIBindings in the input".to_owned()];
    }
    let needed = [Kind::ApiExport, Kind::ApiResourceSchema];
    let missing = needed.into_iter().filter(|kind| !has(*kind));
    missing.map(|kind| format!("no {kind} is given, though there are bindings: nothing new can be bound")).collect()
}

/// The most likely gap in a dump, which looks like a fault of the bindings. What is in no logical
/// cluster has a note of its own.
pub fn homeless(snapshot: &Snapshot) -> Option<String> {
    let clusters: BTreeSet<ClusterName> = snapshot.bindings().into_iter().map(|key| key.cluster).collect();
    let clusters = clusters.iter().filter(|cluster| !cluster.is_empty());
    let homeless = clusters.filter(|cluster| snapshot.logical_cluster(cluster).is_none());
    let homeless: Vec<&str> = homeless.map(ClusterName::as_str).collect();
    let shown = homeless.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let more = if homeless.len() > SHOWN { ", …" } else { "" };
    (!homeless.is_empty()).then(|| {
        format!(
            "no LogicalCluster is given for {} with bindings ({shown}{more}): nothing can be locked and bound there",
            counted(homeless.len(), "logical cluster", "logical clusters")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_told_and_the_others_counted() {
        let few = |range: std::ops::Range<usize>| {
            let mut few = Few::default();
            range.for_each(|number| few.push(|| number.to_string()));
            few
        };
        assert_eq!(few(0..5).told("numbers").collect::<Vec<_>>(), ["0", "1", "2", "3", "4"]);
        let mut both = few(0..3);
        both.append(few(3..10));
        assert_eq!(both.told("numbers").last().unwrap(), "and 5 more numbers");
        assert_eq!(few(0..0).told("numbers").count(), 0);
    }
}
