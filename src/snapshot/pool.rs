//! What many objects say alike, kept once.
//!
//! A million bindings name a hundred exports, and list what those offer. Without a pool each would keep its own
//! copy of that, since each was read from a text of its own.

use std::sync::Arc;

use super::cluster::Cluster;
use super::entries::Locks;
use super::facts::{Binding, Bound, Crd, Export, Schema};
use super::index::{Table, hash};
use crate::api::{BoundResource, ClusterPath, GroupResource, List, ResourceNames, Text};

/// Strings and lists that were seen. It says nothing about the world: a snapshot is the same without it.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    texts: Table<Text, ()>,
    /// By hash; of two lists with one hash the later one is not shared.
    bound: Table<u64, Arc<Bound>>,
    /// So many there may be before those that nobody uses any more are thrown away.
    limit: usize,
}

impl Pool {
    /// Makes a binding share what it has in common with what it was before, and with others.
    pub(super) fn share_binding(&mut self, new: &mut Binding, old: Option<&Binding>) {
        match old.filter(|old| old.reference == new.reference) {
            Some(old) => {
                new.reference.clone_from(&old.reference);
                new.target.clone_from(&old.target);
            }
            // What is in the own cluster, nobody else names.
            None => {
                if let Some(reference) = new.reference.as_mut().filter(|reference| !reference.path.is_empty()) {
                    reference.path = self.text(reference.path.as_text()).into();
                    self.share(&mut reference.name);
                    new.target = new.target.take().map(|target| ClusterPath::from(self.text(target.as_text())));
                }
            }
        }
        let list = &new.status.bound_resources;
        new.bound = match old.filter(|old| old.bound.list == *list) {
            Some(old) => old.bound.clone(),
            None => self.bound(list),
        };
        new.status.bound_resources = new.bound.list.clone();
        new.status.api_export_cluster_name = self.text(new.status.api_export_cluster_name.as_text()).into();
        // Nearly always all conditions became what they are at one or two moments.
        let mut times = Vec::new();
        new.status.conditions.each(|condition| {
            let time = &mut condition.last_transition_time;
            match times.iter().find(|known| *known == time) {
                Some(known) => time.clone_from(known),
                None => times.push(time.clone()),
            }
        });
    }

    pub(super) fn share_export(&mut self, new: &mut Export) {
        new.identity = self.text(new.identity.as_text()).into();
        new.resources.each(|resource| {
            for text in [&mut resource.name, &mut resource.group, &mut resource.schema] {
                self.share(text);
            }
        });
    }

    pub(super) fn share_schema(&mut self, new: &mut Schema) {
        self.share(&mut new.meta.uid);
        new.resource = new.resource.with_text(self.text(new.resource.as_text()));
        self.share_names(&mut new.names);
    }

    pub(super) fn share_crd(&mut self, new: &mut Crd) {
        self.share(&mut new.group);
        self.share_names(&mut new.names);
        self.share_names(&mut new.accepted_names);
        new.stored_versions.iter_mut().for_each(|version| self.share(version));
        if let Some((cluster, name)) = &mut new.schema {
            *cluster = self.text(cluster.as_text()).into();
            self.share(name);
        }
    }

    fn share_names(&mut self, names: &mut ResourceNames) {
        let ResourceNames { plural, singular, short_names, kind, list_kind } = names;
        for name in [plural, singular, kind, list_kind].into_iter().chain(short_names) {
            self.share(name);
        }
    }

    pub(super) fn share(&mut self, text: &mut Text) {
        *text = self.text(text);
    }

    /// The same for locks, which share the names of bindings as well.
    pub(super) fn share_locks(&mut self, new: &mut Locks, old: Option<&Locks>, cluster: Option<&Cluster>) {
        let mut old = old.into_iter().flat_map(Locks::iter).peekable();
        new.share(|entry| {
            // Both are sorted, and most entries are those of before.
            while old.next_if(|(known, _)| known.as_str() < entry.0.as_str()).is_some() {}
            match old.peek().filter(|(known, _)| known.as_text() == entry.0.as_text()) {
                Some((known, lock)) => {
                    entry.0 = known.clone();
                    if *lock == entry.1 {
                        entry.1 = lock.clone();
                    }
                }
                None => {
                    entry.0 = GroupResource::from(self.text(entry.0.as_text()));
                    if let Some(name) = cluster.and_then(|cluster| cluster.binding_name(&entry.1.name)) {
                        entry.1.name = name.clone();
                    }
                }
            }
        });
    }

    fn text(&mut self, text: &Text) -> Text {
        if text.is_empty() {
            return Text::default();
        }
        if let Some((known, ())) = self.texts.get_key_value(text) {
            return known.clone();
        }
        self.texts.insert(text.clone(), ());
        self.sweep();
        text.clone()
    }

    fn bound(&mut self, list: &List<BoundResource>) -> Arc<Bound> {
        if list.is_empty() {
            return Arc::default();
        }
        let key = hash(&ByTexts(list));
        if let Some(known) = self.bound.get(&key).filter(|known| known.list == *list) {
            return known.clone();
        }
        let mut list = list.clone();
        list.each(|bound| {
            let BoundResource { group, resource, schema, .. } = bound;
            for text in [group, resource, &mut schema.name, &mut schema.uid] {
                self.share(text);
            }
            schema.identity_hash = self.text(schema.identity_hash.as_text()).into();
        });
        let mut bound = Bound::from(&list);
        for resource in &mut bound.resources {
            *resource = resource.with_text(self.text(resource.as_text()));
        }
        let bound = Arc::new(bound);
        self.bound.insert(key, bound.clone());
        self.sweep();
        bound
    }

    /// Throws away what nobody uses, each time that there is twice as much as was left the last time.
    fn sweep(&mut self) {
        const FEW: usize = 1024;
        if self.texts.len() + self.bound.len() <= self.limit.max(FEW) {
            return;
        }
        self.texts.retain(|text, ()| !text.is_alone());
        self.bound.retain(|_, bound| Arc::strong_count(bound) > 1);
        self.limit = 2 * (self.texts.len() + self.bound.len());
    }
}

/// Bound resources, by their names alone.
struct ByTexts<'a>(&'a [BoundResource]);

impl std::hash::Hash for ByTexts<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        for bound in self.0 {
            (&bound.group, &bound.resource, &bound.schema.name, &bound.schema.uid).hash(state);
            bound.storage_versions.hash(state);
        }
    }
}
