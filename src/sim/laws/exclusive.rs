//! `exclusive`.

use std::collections::{BTreeMap, BTreeSet};

use super::Verdict;
use crate::api::{ApiBindingStatus, BindingKey, ClusterName, GroupResource, Text};
use crate::snapshot::Snapshot;

/// Who lists what as bound, at every moment.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    listed: BTreeMap<BindingKey, BTreeSet<GroupResource>>,
    owners: BTreeMap<(ClusterName, GroupResource), BTreeSet<Text>>,
}

impl Owners {
    /// Takes note of what a binding lists from now on: nothing, where it is gone.
    ///
    /// # Errors
    /// Another one of its workspace lists the same.
    pub fn note(&mut self, key: &BindingKey, status: Option<&ApiBindingStatus>) -> Verdict {
        let bound = status.into_iter().flat_map(|status| &status.bound_resources);
        let now: BTreeSet<GroupResource> = bound.map(|bound| bound.group_resource()).collect();
        let before = self.listed.insert(key.clone(), now.clone()).unwrap_or_default();
        for resource in before.difference(&now) {
            let at = (key.cluster.clone(), resource.clone());
            if let Some(owners) = self.owners.get_mut(&at) {
                owners.remove(&key.name);
            }
        }
        for resource in now.difference(&before) {
            let owners = self.owners.entry((key.cluster.clone(), resource.clone())).or_default();
            owners.insert(key.name.clone());
            if owners.len() > 1 {
                return Err(format!("{resource} in {} is bound by {owners:?}", key.cluster));
            }
        }
        Ok(())
    }
}

/// A binding lists nothing new that a CRD of its workspace has, or wants and may get.
///
/// # Errors
/// What it lists, and whose that is.
pub fn newly_listed(seen: &Snapshot, key: &BindingKey, next: &ApiBindingStatus) -> Verdict {
    let Some(known) = seen.binding(key) else { return Ok(()) };
    let new = next.bound_resources.iter().filter(|bound| known.status.bound(&bound.group_resource()).is_none());
    for bound in new {
        let resource = bound.group_resource();
        let Some(crd) = seen.crds(&key.cluster).into_iter().find(|(_, crd)| {
            // Told here on its own: asking the code that is judged would see no fault in it.
            let names = if crd.names_judged { &crd.accepted_names } else { &crd.names };
            crd.group == resource.group() && names.plural == resource.resource()
        }) else {
            continue;
        };
        return Err(format!("{key} newly lists {resource}, which CustomResourceDefinition {} has", crd.0));
    }
    Ok(())
}
