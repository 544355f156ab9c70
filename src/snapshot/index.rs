//! Persistent maps, and sets of things that have a key in common.
//!
//! Nearly all workspaces have a handful of everything, and nearly all sets have one member: a few entries are a
//! list, and one member costs no set. What a million bindings share is a tree, so that adding one copies a
//! narrow path.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;
use foldhash::quality::FixedState;
use im::shared_ptr::DefaultSharedPtr;

/// A hash map without a random key: equal snapshots look alike in memory too. Nothing that anybody sees
/// may depend on its order.
pub(crate) type Table<K, V> = im::GenericHashMap<K, V, FixedState, DefaultSharedPtr>;

/// The hash by which things are found.
pub(crate) fn hash<K: Hash + ?Sized>(key: &K) -> u64 {
    FixedState::default().hash_one(key)
}

/// A map that is small where it has few entries. Its order means nothing.
#[derive(Clone)]
pub(crate) enum Map<K, V> {
    Few(Box<[(K, V)]>),
    Many(Box<Table<K, V>>),
}

/// So many entries are faster gone through than found.
const FEW: usize = 16;

impl<K: Hash + Eq + Clone, V: Clone> Map<K, V> {
    pub(crate) fn get<Q: Equivalent<K> + Hash + ?Sized>(&self, key: &Q) -> Option<&V> {
        match self {
            Self::Few(entries) => entries.iter().find(|(known, _)| key.equivalent(known)).map(|(_, value)| value),
            Self::Many(table) => table.get(key),
        }
    }

    pub(crate) fn get_key<Q: Equivalent<K> + Hash + ?Sized>(&self, key: &Q) -> Option<&K> {
        match self {
            Self::Few(entries) => entries.iter().map(|(known, _)| known).find(|known| key.equivalent(known)),
            Self::Many(table) => table.get_key_value(key).map(|(known, _)| known),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Few(entries) => entries.len(),
            Self::Many(table) => table.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let (few, many) = match self {
            Self::Few(entries) => (entries.iter(), None),
            Self::Many(table) => (Default::default(), Some(table.iter())),
        };
        few.map(|(key, value)| (key, value)).chain(many.into_iter().flatten())
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Puts a value; gives the one that was there.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let entries = match self {
            Self::Many(table) => return table.insert(key, value),
            Self::Few(entries) => entries,
        };
        if let Some((_, known)) = entries.iter_mut().find(|(known, _)| *known == key) {
            return Some(std::mem::replace(known, value));
        }
        let mut grown = std::mem::take(entries).into_vec();
        if grown.len() < FEW {
            grown.reserve_exact(1);
            grown.push((key, value));
            *self = Self::Few(grown.into());
        } else {
            *self = Self::Many(Box::new(grown.into_iter().chain([(key, value)]).collect()));
        }
        None
    }

    /// Takes a value out.
    pub(crate) fn remove<Q: Equivalent<K> + Hash + ?Sized>(&mut self, key: &Q) -> Option<V> {
        match self {
            Self::Few(entries) => {
                let position = entries.iter().position(|(known, _)| key.equivalent(known))?;
                let mut rest = std::mem::take(entries).into_vec();
                let (_, value) = rest.remove(position);
                *entries = rest.into();
                Some(value)
            }
            Self::Many(table) => {
                let value = table.remove(key)?;
                if table.len() <= FEW {
                    *self = Self::Few(table.iter().map(|(key, value)| (key.clone(), value.clone())).collect());
                }
                Some(value)
            }
        }
    }
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self::Few(Box::default())
    }
}

impl<K: Hash + Eq + Clone, V: Clone + PartialEq> PartialEq for Map<K, V> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Many(table), Self::Many(other)) => table == other,
            _ => self.len() == other.len() && self.iter().all(|(key, value)| other.get(key) == Some(value)),
        }
    }
}

impl<K: Hash + Eq + Clone + fmt::Debug, V: Clone + fmt::Debug> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A set that is never empty.
#[derive(Clone, PartialEq)]
pub(crate) enum Set<T: Ord + Clone> {
    One(T),
    Many(Box<im::OrdSet<T>>),
}

impl<T: Ord + Clone> Set<T> {
    fn insert(&mut self, item: T) {
        match self {
            Self::One(one) if *one == item => {}
            Self::One(one) => *self = Self::Many(Box::new([one.clone(), item].into_iter().collect())),
            Self::Many(many) => {
                many.insert(item);
            }
        }
    }

    /// Takes an item out; true if none is left.
    fn remove(&mut self, item: &T) -> bool {
        match self {
            Self::One(one) => one == item,
            Self::Many(many) => {
                many.remove(item);
                // Many are two at least, so one is left at least.
                if let (1, Some(last)) = (many.len(), many.get_min().cloned()) {
                    *self = Self::One(last);
                }
                false
            }
        }
    }

    pub(crate) fn contains(&self, item: &T) -> bool {
        match self {
            Self::One(one) => one == item,
            Self::Many(many) => many.contains(item),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(many) => many.len(),
        }
    }

    /// The items in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let (one, many) = match self {
            Self::One(one) => (Some(one), None),
            Self::Many(many) => (None, Some(many.iter())),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

impl<T: Ord + Clone + fmt::Debug> fmt::Debug for Set<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// What both kinds of map can do, as far as an index needs it.
pub(crate) trait Index<K, T: Ord + Clone> {
    fn change(&mut self, key: &K) -> Option<&mut Set<T>>;
    fn put(&mut self, key: K, set: Set<T>);
    fn take(&mut self, key: &K);
}

impl<K: Hash + Eq + Clone, T: Ord + Clone> Index<K, T> for Table<K, Set<T>> {
    fn change(&mut self, key: &K) -> Option<&mut Set<T>> {
        self.get_mut(key)
    }

    fn put(&mut self, key: K, set: Set<T>) {
        self.insert(key, set);
    }

    fn take(&mut self, key: &K) {
        self.remove(key);
    }
}

impl<K: Hash + Eq + Clone, T: Ord + Clone> Index<K, T> for Map<K, Set<T>> {
    fn change(&mut self, key: &K) -> Option<&mut Set<T>> {
        match self {
            Self::Few(entries) => entries.iter_mut().find(|(known, _)| known == key).map(|(_, set)| set),
            Self::Many(table) => table.get_mut(key),
        }
    }

    fn put(&mut self, key: K, set: Set<T>) {
        self.insert(key, set);
    }

    fn take(&mut self, key: &K) {
        self.remove(key);
    }
}

/// Puts `item` under a key.
pub(crate) fn file<K, T: Ord + Clone>(index: &mut impl Index<K, T>, key: K, item: &T) {
    match index.change(&key) {
        Some(set) => set.insert(item.clone()),
        None => index.put(key, Set::One(item.clone())),
    }
}

/// Takes `item` from under a key.
pub(crate) fn unfile<K, T: Ord + Clone>(index: &mut impl Index<K, T>, key: &K, item: &T) {
    if index.change(key).is_some_and(|set| set.remove(item)) {
        index.take(key);
    }
}

/// Puts `item` under the keys that are new and takes it from those that are gone. Keys that
/// stay are not touched, so most changes of an object cost an index nothing.
pub(crate) fn reindex<K: Ord + Clone, T: Ord + Clone>(
    index: &mut impl Index<K, T>,
    before: &[K],
    after: &[K],
    item: &T,
) {
    if before == after {
        return;
    }
    if before.len().max(after.len()) <= FEW {
        before.iter().filter(|key| !after.contains(key)).for_each(|key| unfile(index, key, item));
        after.iter().filter(|key| !before.contains(key)).for_each(|key| file(index, key.clone(), item));
        return;
    }
    let (had, has): (BTreeSet<&K>, BTreeSet<&K>) = (before.iter().collect(), after.iter().collect());
    had.difference(&has).for_each(|key| unfile(index, key, item));
    has.difference(&had).for_each(|key| file(index, (*key).clone(), item));
}

/// The members under a key, in order; none if there is no such key.
pub(crate) fn members<'a, K, Q, T>(index: &'a Map<K, Set<T>>, key: &Q) -> impl Iterator<Item = &'a T>
where
    K: Hash + Eq + Clone,
    Q: Equivalent<K> + Hash + ?Sized,
    T: Ord + Clone + 'a,
{
    index.get(key).into_iter().flat_map(Set::iter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_shrink_back_to_one() {
        let mut index = Map::<&str, Set<u8>>::default();
        reindex(&mut index, &[], &["a", "b"], &1);
        reindex(&mut index, &[], &["a"], &2);
        assert_eq!(members(&index, "a").copied().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(format!("{index:?}"), r#"{"a": {1, 2}, "b": {1}}"#);
        reindex(&mut index, &["a", "b"], &["b"], &1);
        assert_eq!(index.get("a"), Some(&Set::One(2)));
        reindex(&mut index, &["a"], &[], &2);
        assert_eq!(index.get("a"), None);
        assert_eq!(index.len(), 1);
    }

    #[test]
    fn repeated_keys_are_one() {
        let mut index = Map::<&str, Set<u8>>::default();
        reindex(&mut index, &[], &["a", "a"], &1);
        assert_eq!(index.get("a").map(Set::len), Some(1));
        reindex(&mut index, &["a", "a"], &["a"], &1);
        assert_eq!(index.len(), 1);
    }

    /// Versions 7.0.0 and 7.0.1 of the library below lost entries here.
    #[test]
    fn maps_tell_differences_of_large_neighbours() {
        let whole: im::OrdMap<u32, u32> = (0..10_000_u32).map(|n| (n, n)).collect();
        for missing in [0, 17, 4_096, 9_999] {
            let less = whole.without(&missing);
            assert_ne!(whole, less);
            assert_eq!(whole.diff(&less).count(), 1, "without {missing}");
            assert_eq!(less, (0..10_000_u32).filter(|n| *n != missing).map(|n| (n, n)).collect());
        }
    }
}
