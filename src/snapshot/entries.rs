//! The entries of one lock annotation (SPEC 5).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use serde::de::MapAccess;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::index::hash;
use super::locks::Lock;
use crate::api::wire::without_position;
use crate::api::{GroupResource, Text};

/// The entries of one annotation, sorted by key.
#[derive(Clone, Default, PartialEq)]
pub struct Locks {
    entries: Arc<[(GroupResource, Lock)]>,
    /// None for a short list, which is faster gone through.
    finders: Option<Arc<Finders>>,
    /// True if the annotation's text is just what would be written for these entries.
    canonical: bool,
}

#[derive(PartialEq)]
struct Finders {
    resource: Slots,
    name: Finder,
}

/// Where in a list the item with a key is: an open hash table of positions, for keys that are all different.
#[derive(PartialEq)]
struct Slots(Box<[u32]>);

impl Slots {
    const EMPTY: u32 = u32::MAX;

    fn of(hashes: impl ExactSizeIterator<Item = u64>) -> Self {
        let size = (2 * hashes.len()).next_power_of_two();
        let mut slots = vec![Self::EMPTY; size];
        for (hash, position) in hashes.zip(0..) {
            let mut free = Self::order(hash, size).filter(|slot| slots.get(*slot) == Some(&Self::EMPTY));
            if let Some(slot) = free.next().and_then(|slot| slots.get_mut(slot)) {
                *slot = position;
            }
        }
        Self(slots.into())
    }

    /// Positions of items that may have that hash.
    fn find(&self, hash: u64) -> impl Iterator<Item = usize> + use<'_> {
        let positions = Self::order(hash, self.0.len()).filter_map(|slot| self.0.get(slot));
        positions.take_while(|position| **position != Self::EMPTY).map(|position| *position as usize)
    }

    /// The slots in which an item with that hash may be, the first choice first.
    fn order(hash: u64, size: usize) -> impl Iterator<Item = usize> {
        let first = hash as usize;
        (0..size).map(move |step| first.wrapping_add(step) & (size - 1))
    }
}

/// Where in a list the items with some hash are: pairs of hash and position in one number each, sorted.
#[derive(PartialEq)]
struct Finder(Box<[u64]>);

impl Finder {
    fn of(hashes: impl Iterator<Item = u64>) -> Self {
        let mut pairs: Box<[u64]> = hashes.zip(0..).map(|(hash, position)| Self::pair(hash, position)).collect();
        pairs.sort_unstable();
        Self(pairs)
    }

    fn pair(hash: u64, position: u32) -> u64 {
        hash << 32 | u64::from(position)
    }

    /// Positions of items that may have that hash, in order.
    fn find(&self, hash: u64) -> impl Iterator<Item = usize> + use<'_> {
        let start = self.0.partition_point(|pair| *pair < Self::pair(hash, 0));
        let end = Self::pair(hash, u32::MAX);
        let found = self.0.get(start..).unwrap_or_default().iter().take_while(move |pair| **pair <= end);
        found.map(|pair| (pair & u64::from(u32::MAX)) as usize)
    }
}

impl Locks {
    /// Locks that are about to be written.
    pub(crate) fn new(entries: impl IntoIterator<Item = (GroupResource, Lock)>) -> Self {
        Self::sorted(entries.into_iter().collect())
    }

    /// The annotation's text for locks that are about to be written.
    pub(crate) fn text_of(entries: impl IntoIterator<Item = (GroupResource, Lock)>) -> String {
        let entries = Self::in_order(entries.into_iter().collect()).into();
        Self { entries, finders: None, canonical: true }.to_text()
    }

    /// Sorts; of several entries with one key the last one counts.
    fn in_order(mut entries: Vec<(GroupResource, Lock)>) -> Vec<(GroupResource, Lock)> {
        fn key(entry: &(GroupResource, Lock)) -> &str {
            entry.0.as_str()
        }
        if !entries.is_sorted_by(|left, right| key(left) < key(right)) {
            entries.reverse();
            entries.sort_by(|left, right| key(left).cmp(key(right)));
            entries.dedup_by(|later, first| key(later) == key(first));
        }
        entries
    }

    fn sorted(entries: Vec<(GroupResource, Lock)>) -> Self {
        let entries = Self::in_order(entries);
        const FEW: usize = 16;
        let finders = (entries.len() > FEW).then(|| {
            let resource = Slots::of(entries.iter().map(|(resource, _)| hash(resource.as_str())));
            let name = Finder::of(entries.iter().map(|(_, lock)| hash(lock.name.as_str())));
            Arc::new(Finders { resource, name })
        });
        Self { entries: entries.into(), finders, canonical: true }
    }

    /// Reads an annotation's text.
    ///
    /// # Errors
    /// What was expected, at which key (D25).
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let Read(entries) = serde_json::from_str(text).map_err(|_| Self::problem(text))?;
        let mut locks = Self::sorted(entries);
        locks.canonical = locks.is_written(text);
        Ok(locks)
    }

    /// What is wrong with a text, read once more with an eye on where one is.
    fn problem(text: &str) -> String {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let read: Result<Option<BTreeMap<Text, Option<Lock>>>, _> = serde_path_to_error::deserialize(&mut deserializer);
        match read {
            Ok(_) => deserializer.end().map_err(|error| without_position(&error)).err().unwrap_or_default(),
            Err(error) => match (error.path().to_string().as_str(), without_position(error.inner())) {
                (".", problem) => problem,
                (key, problem) => format!("at key {key}: {problem}"),
            },
        }
    }

    /// Replaces entries by others that are the same, and names by the one before, where that is the same.
    pub(super) fn share(&mut self, mut same: impl FnMut(&mut (GroupResource, Lock))) {
        let Some(entries) = Arc::get_mut(&mut self.entries) else { return };
        let mut before = Text::default();
        for entry in entries {
            same(entry);
            let name = &mut entry.1.name;
            if *name == before {
                *name = before;
            }
            before = name.clone();
        }
    }

    /// The resources whose entries differ.
    pub(crate) fn differing<'a>(&'a self, other: &'a Self) -> Vec<&'a GroupResource> {
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        let mut differing = Vec::new();
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some((key, _)), Some((other, _))) => key.as_text().cmp(other.as_text()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return differing,
            };
            let entry = left.next_if(|_| order.is_le());
            let other = right.next_if(|_| order.is_ge());
            if entry.map(|(_, lock)| lock) != other.map(|(_, lock)| lock) {
                differing.extend(entry.or(other).map(|(resource, _)| resource));
            }
        }
    }

    /// The annotation's text: compact JSON, sorted by key.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// True if that is what would be written.
    fn is_written(&self, text: &str) -> bool {
        let mut rest = Rest(text.as_bytes());
        serde_json::to_writer(&mut rest, self).is_ok() && rest.0.is_empty()
    }

    /// The entry of a resource.
    pub fn get(&self, resource: &GroupResource) -> Option<&Lock> {
        let is_it = |(known, _): &&(GroupResource, Lock)| known.as_text() == resource.as_text();
        let entry = match &self.finders {
            None => self.entries.iter().find(is_it),
            Some(finders) => {
                let found = finders.resource.find(hash(resource.as_str()));
                found.filter_map(|position| self.entries.get(position)).find(is_it)
            }
        };
        entry.map(|(_, lock)| lock)
    }

    /// All entries, sorted by the text of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &(GroupResource, Lock)> {
        self.entries.iter()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True if the annotation's text is just what would be written for these entries.
    pub(crate) fn is_canonical(&self) -> bool {
        self.canonical
    }

    /// The entries of bindings of that name.
    pub(crate) fn of_name<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a (GroupResource, Lock)> {
        let (few, many) = match &self.finders {
            None => (&self.entries[..], None),
            Some(finders) => (&[][..], Some(finders.name.find(hash(name)))),
        };
        let found = many.into_iter().flatten().filter_map(|position| self.entries.get(position));
        found.chain(few).filter(move |(_, lock)| lock.name == *name && !lock.crd)
    }
}

/// A map of locks in the order in which it was written; `null` is an empty one, a lock that is `null` one that
/// holds nothing.
struct Read(Vec<(GroupResource, Lock)>);

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Read;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of locks")
            }

            fn visit_none<E>(self) -> Result<Read, E> {
                Ok(Read(Vec::new()))
            }

            fn visit_unit<E>(self) -> Result<Read, E> {
                Ok(Read(Vec::new()))
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Read, D::Error> {
                deserializer.deserialize_map(self)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Read, A::Error> {
                let mut entries = Vec::new();
                while let Some((key, lock)) = map.next_entry::<Text, Option<Lock>>()? {
                    entries.push((GroupResource::from(key), lock.unwrap_or_default()));
                }
                Ok(Read(entries))
            }
        }

        deserializer.deserialize_option(Visitor)
    }
}

/// Takes only what is the beginning of the rest.
struct Rest<'a>(&'a [u8]);

impl Write for Rest<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl Serialize for Locks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (resource, lock) in self.iter() {
            map.serialize_entry(resource.as_str(), lock)?;
        }
        map.end()
    }
}
