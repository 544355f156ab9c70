//! Persistent maps from a key to the set of things that have it.
//!
//! Nearly all sets have one member, which then costs no set; a set that a million bindings
//! share is a tree, so that adding one copies a narrow path.

use std::collections::hash_map::DefaultHasher;
use std::fmt;
use std::hash::{BuildHasherDefault, Hash};

use equivalent::Comparable;
use im::shared_ptr::DefaultSharedPtr;

/// Hashes without a random key: equal snapshots look alike in memory too.
pub(crate) type HashMap<K, V> = im::GenericHashMap<K, V, BuildHasherDefault<DefaultHasher>, DefaultSharedPtr>;
pub(crate) type OrdMap<K, V> = im::OrdMap<K, V>;

/// A set that is never empty.
#[derive(Clone, PartialEq)]
pub(crate) enum Set<T: Ord + Clone> {
    One(T),
    Many(im::OrdSet<T>),
}

impl<T: Ord + Clone> Set<T> {
    fn insert(&mut self, item: T) {
        match self {
            Self::One(one) if *one == item => {}
            Self::One(one) => *self = Self::Many([one.clone(), item].into_iter().collect()),
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
pub(crate) trait Map<K, V> {
    fn change(&mut self, key: &K) -> Option<&mut V>;
    fn put(&mut self, key: K, value: V);
    fn take(&mut self, key: &K);
}

impl<K: Hash + Eq + Clone, V: Clone> Map<K, V> for HashMap<K, V> {
    fn change(&mut self, key: &K) -> Option<&mut V> {
        self.get_mut(key)
    }

    fn put(&mut self, key: K, value: V) {
        self.insert(key, value);
    }

    fn take(&mut self, key: &K) {
        self.remove(key);
    }
}

impl<K: Ord + Clone, V: Clone> Map<K, V> for OrdMap<K, V> {
    fn change(&mut self, key: &K) -> Option<&mut V> {
        self.get_mut(key)
    }

    fn put(&mut self, key: K, value: V) {
        self.insert(key, value);
    }

    fn take(&mut self, key: &K) {
        self.remove(key);
    }
}

/// Puts `item` under the keys that are new and takes it from those that are gone. Keys that
/// stay are not touched, so most changes of an object cost an index nothing.
pub(crate) fn reindex<K, T, M>(index: &mut M, before: &[K], after: &[K], item: &T)
where
    K: Eq + Clone,
    T: Ord + Clone,
    M: Map<K, Set<T>>,
{
    if before == after {
        return;
    }
    for key in before.iter().filter(|key| !after.contains(key)) {
        if index.change(key).is_some_and(|set| set.remove(item)) {
            index.take(key);
        }
    }
    for key in after.iter().filter(|key| !before.contains(key)) {
        match index.change(key) {
            Some(set) => set.insert(item.clone()),
            None => index.put(key.clone(), Set::One(item.clone())),
        }
    }
}

/// The members under a key, in order; none if there is no such key.
pub(crate) fn members<'a, K, Q, T>(index: &'a OrdMap<K, Set<T>>, key: &Q) -> impl Iterator<Item = &'a T>
where
    K: Ord,
    Q: Comparable<K> + ?Sized,
    T: Ord + Clone + 'a,
{
    index.get(key).into_iter().flat_map(Set::iter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_shrink_back_to_one() {
        let mut index = OrdMap::<&str, Set<u8>>::new();
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
        let mut index = OrdMap::<&str, Set<u8>>::new();
        reindex(&mut index, &[], &["a", "a"], &1);
        assert_eq!(index.get("a").map(Set::len), Some(1));
        reindex(&mut index, &["a", "a"], &["a"], &1);
        assert_eq!(index.len(), 1);
    }

    /// Versions 7.0.0 and 7.0.1 of the library below lost entries here.
    #[test]
    fn maps_tell_differences_of_large_neighbours() {
        let whole: OrdMap<u32, u32> = (0..10_000_u32).map(|n| (n, n)).collect();
        for missing in [0, 17, 4_096, 9_999] {
            let less = whole.without(&missing);
            assert_ne!(whole, less);
            assert_eq!(whole.diff(&less).count(), 1, "without {missing}");
            assert_eq!(less, (0..10_000_u32).filter(|n| *n != missing).map(|n| (n, n)).collect());
        }
    }
}
