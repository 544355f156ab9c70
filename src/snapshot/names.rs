//! The names that resources take from each other (SPEC 6), as keys of indexes.

use equivalent::Equivalent;
use serde::Serialize;

use crate::api::{GroupResource, ResourceNames, Text};

/// A name of a resource, of one of the sorts that are compared with each other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name<'a> {
    /// Plural, singular, short: what stands in paths and what people type.
    Resource(&'a Text),
    /// Kinds of objects and of lists.
    Kind(&'a Text),
    /// The plural that a CRD asks for, granted or not.
    Asked(&'a Text),
}

impl<'a> Name<'a> {
    /// All names that are not empty.
    pub(crate) fn all(names: &'a ResourceNames) -> impl Iterator<Item = Name<'a>> {
        let resources = [&names.plural, &names.singular].into_iter().chain(&names.short_names).map(Name::Resource);
        let kinds = [&names.kind, &names.list_kind].into_iter().map(Name::Kind);
        resources.chain(kinds).filter(|name| !name.text().is_empty())
    }

    fn text(self) -> &'a Text {
        match self {
            Name::Resource(text) | Name::Kind(text) | Name::Asked(text) => text,
        }
    }

    fn sort(self) -> u8 {
        match self {
            Name::Resource(_) => b'r',
            Name::Kind(_) => b'k',
            Name::Asked(_) => b'a',
        }
    }
}

/// A name within its group, as the key of an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub(crate) struct NameKey {
    sort: u8,
    name: Text,
    group: Text,
}

impl NameKey {
    pub(crate) fn new(group: &str, name: Name<'_>) -> Self {
        Self { sort: name.sort(), name: name.text().clone(), group: group.into() }
    }
}

/// A [`NameKey`] to look something up with, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NameQuery<'a> {
    sort: u8,
    name: &'a str,
    group: &'a str,
}

impl<'a> NameQuery<'a> {
    pub(crate) fn new(group: &'a str, name: Name<'a>) -> Self {
        Self { sort: name.sort(), name: name.text(), group }
    }

    /// Finds the schemas of this resource.
    pub(crate) fn plural(resource: &'a GroupResource) -> Self {
        Self { sort: b'r', name: resource.resource(), group: resource.group() }
    }

    /// Finds the schemas that a CRD under this key has to do with: for one that asks for a resource,
    /// those of the resource.
    pub(crate) fn of_schemas(self) -> Self {
        Self { sort: if self.sort == b'a' { b'r' } else { self.sort }, ..self }
    }

    /// Finds the CRDs that ask for this resource.
    pub(crate) fn asked(resource: &'a GroupResource) -> Self {
        Self { sort: b'a', name: resource.resource(), group: resource.group() }
    }
}

impl<'a> From<&'a NameKey> for NameQuery<'a> {
    fn from(key: &'a NameKey) -> Self {
        Self { sort: key.sort, name: &key.name, group: &key.group }
    }
}

impl Equivalent<NameKey> for NameQuery<'_> {
    fn equivalent(&self, key: &NameKey) -> bool {
        *self == NameQuery::from(key)
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::hash;
    use super::*;

    #[test]
    fn a_query_is_its_key_and_no_other() {
        let (geese, ducks) = (Text::from("geese"), Text::from("ducks"));
        let keys = ["farm.test", "pond.test"].into_iter().flat_map(|group| {
            let names = [&geese, &ducks].into_iter().flat_map(|text| [Name::Resource(text), Name::Kind(text)]);
            names.map(move |name| NameKey::new(group, name))
        });
        let keys: Vec<NameKey> = keys.collect();
        for (at, query) in keys.iter().map(NameQuery::from).enumerate() {
            for (position, key) in keys.iter().enumerate() {
                assert_eq!(query.equivalent(key), at == position, "{query:?} {key:?}");
                assert_eq!(hash(&query) == hash(key), at == position, "{query:?} {key:?}");
            }
        }
    }
}
