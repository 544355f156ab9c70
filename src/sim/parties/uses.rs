//! Who uses which bound CRD, kept up to date by events, so that nobody has to search for it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::crds::{condition, resource_of};
use super::{field, is_gone, list_at};
use crate::api::{BindingKey, ClusterName, GroupResource, Text};
use crate::sim::kcp::{Event, annotation, text_at};

/// The logical cluster of the schema that a bound CRD was made of.
const SCHEMA_CLUSTER: &str = "apis.kcp.io/schema-cluster";

/// All uses of bound CRDs, and what else has to be found by something other than its key.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    bindings: BTreeMap<BindingKey, Use>,
    listed: BTreeMap<Text, BTreeSet<BindingKey>>,
    claimed: BTreeMap<GroupResource, BTreeSet<BindingKey>>,
    /// Bound CRDs by what they serve.
    serving: BTreeMap<GroupResource, BTreeSet<Text>>,
    /// Bound CRDs by the cluster of their schema.
    made_in: BTreeMap<ClusterName, BTreeSet<Text>>,
    /// CRDs of workspaces that do not have their names.
    nameless: BTreeMap<ClusterName, BTreeSet<Text>>,
}

/// What one binding uses.
#[derive(Clone, Debug, Default, PartialEq)]
struct Use {
    /// The bound CRDs that it lists.
    uids: BTreeSet<Text>,
    /// What it claims of others, and by which identity.
    claims: BTreeSet<(GroupResource, Text)>,
}

/// What a binding does not use any more, or only now.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub is_any: bool,
    pub lost_uids: Vec<Text>,
    pub lost_claims: Vec<GroupResource>,
}

impl Uses {
    /// Takes note of a binding.
    pub fn note_binding(&mut self, event: &Event) -> Change {
        let next = if is_gone(event) { Use::default() } else { Use::of(&event.object) };
        let before = self.bindings.get(&event.key);
        if before.is_some_and(|before| *before == next) || before.is_none() && next == Use::default() {
            return Change::default();
        }
        let before = before.cloned().unwrap_or_default();
        let resources = |uses: &Use| uses.claims.iter().map(|(resource, _)| resource.clone()).collect::<BTreeSet<_>>();
        let lost_uids: Vec<Text> = before.uids.difference(&next.uids).cloned().collect();
        lost_uids.iter().for_each(|uid| remove(&mut self.listed, uid, &event.key));
        for uid in &next.uids {
            self.listed.entry(uid.clone()).or_default().insert(event.key.clone());
        }
        let wanted = resources(&next);
        resources(&before).difference(&wanted).for_each(|lost| remove(&mut self.claimed, lost, &event.key));
        for resource in wanted {
            self.claimed.entry(resource).or_default().insert(event.key.clone());
        }
        let lost_claims = before.claims.difference(&next.claims).map(|(resource, _)| resource.clone()).collect();
        match is_gone(event) {
            true => drop(self.bindings.remove(&event.key)),
            false => drop(self.bindings.insert(event.key.clone(), next)),
        }
        Change { is_any: true, lost_uids, lost_claims }
    }

    /// Takes note of a bound CRD.
    pub fn note_bound(&mut self, event: &Event) {
        let (resource, name) = (resource_of(&event.object), event.key.name.clone());
        let made_in = annotation(&event.object, SCHEMA_CLUSTER).into();
        if is_gone(event) {
            remove(&mut self.serving, &resource, &name);
            remove(&mut self.made_in, &made_in, &name);
        } else {
            self.serving.entry(resource).or_default().insert(name.clone());
            self.made_in.entry(made_in).or_default().insert(name);
        }
    }

    /// Takes note of a workspace's CRD.
    pub fn note_crd(&mut self, event: &Event) {
        let is_nameless = !is_gone(event)
            && condition(&event.object, "NamesAccepted").is_some_and(|it| field(it, "status") == "False");
        if is_nameless {
            self.nameless.entry(event.key.cluster.clone()).or_default().insert(event.key.name.clone());
        } else {
            remove(&mut self.nameless, &event.key.cluster, &event.key.name);
        }
    }

    /// The bindings that list a bound CRD.
    pub fn listing(&self, uid: &str) -> impl Iterator<Item = &BindingKey> {
        self.listed.get(uid).into_iter().flatten()
    }

    /// The bindings that claim a resource of others.
    pub fn claiming(&self, resource: &GroupResource) -> impl Iterator<Item = &BindingKey> {
        self.claimed.get(resource).into_iter().flatten()
    }

    /// The identities by which a resource is claimed.
    pub fn identities(&self, resource: &GroupResource) -> impl Iterator<Item = &Text> {
        let claims = self.claiming(resource).filter_map(|key| self.bindings.get(key)).flat_map(|uses| &uses.claims);
        claims.filter(move |(claimed, _)| claimed == resource).map(|(_, identity)| identity)
    }

    /// The bound CRDs that serve a resource.
    pub fn serving(&self, resource: &GroupResource) -> impl Iterator<Item = &Text> {
        self.serving.get(resource).into_iter().flatten()
    }

    /// The bound CRDs of schemas of a cluster.
    pub fn made_in(&self, cluster: &ClusterName) -> impl Iterator<Item = &Text> {
        self.made_in.get(cluster).into_iter().flatten()
    }

    /// The CRDs of a workspace that do not have their names.
    pub fn nameless(&self, cluster: &ClusterName) -> impl Iterator<Item = &Text> {
        self.nameless.get(cluster).into_iter().flatten()
    }
}

impl Use {
    fn of(binding: &Value) -> Self {
        let bound = list_at(binding, &["status", "boundResources"]);
        let claims = list_at(binding, &["spec", "permissionClaims"]);
        let accepted =
            claims.filter(|claim| field(claim, "state") == "Accepted" && !field(claim, "identityHash").is_empty());
        Self {
            uids: bound.map(|bound| text_at(bound, &["schema", "UID"]).into()).collect(),
            claims: accepted
                .map(|claim| {
                    let resource = GroupResource::new(field(claim, "group"), field(claim, "resource"));
                    (resource, field(claim, "identityHash").into())
                })
                .collect(),
        }
    }
}

fn remove<K: Ord, V: Ord>(index: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(values) = index.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            index.remove(key);
        }
    }
}
