//! A list that costs nothing to copy.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// An immutable list that is shared when it is cloned, as [`Text`](super::Text) is a shared string.
///
/// It reads like a slice. To change one, [edit](List::edit) it, or make a new one of a `Vec` or an iterator:
///
/// ```
/// use apibinding::api::List;
///
/// let mut geese: List<u8> = [1, 2].into_iter().collect();
/// let before = geese.clone();
/// geese.edit(|geese| geese.push(3));
/// assert_eq!((&*before, &*geese), (&[1, 2][..], &[1, 2, 3][..]));
/// ```
pub struct List<T>(Arc<[T]>);

impl<T> List<T> {
    /// Changes a copy, which this list then is.
    pub fn edit(&mut self, change: impl FnOnce(&mut Vec<T>))
    where
        T: Clone,
    {
        let mut items = self.to_vec();
        change(&mut items);
        *self = items.into();
    }

    /// Changes each item, in place where nobody else has this list.
    pub(crate) fn each(&mut self, change: impl FnMut(&mut T))
    where
        T: Clone,
    {
        if !self.is_empty() {
            Arc::make_mut(&mut self.0).iter_mut().for_each(change);
        }
    }

    /// True if both are one list in memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// Shared copies are the same without a look at their items.
impl<T: PartialEq> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || self.0 == other.0
    }
}

impl<T: Eq> Eq for List<T> {}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        if items.is_empty() { Self::default() } else { Self(items.into()) }
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        items.into_iter().collect::<Vec<T>>().into()
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
