//! Naming conflicts (SPEC 6).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Planning;
use super::conditions::Draft;
use super::trace::Trace;
use crate::api::{ClusterName, ResourceNames, Text};
use crate::snapshot::names::{Name, NameQuery};
use crate::snapshot::{Cluster, Crd, Schema};

/// A name that is taken, and by whom.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Conflict {
    /// What the binding's conditions say of it.
    pub message: String,
    /// The binding whose bound CRD has the name; `None` for a CRD of the workspace itself.
    pub binding: Option<Text>,
    /// The CRD that has the name.
    pub crd: Text,
}

/// A CRD that takes a name from the schema.
struct Rival<'a> {
    crd: &'a Crd,
    cluster: &'a str,
    name: &'a Text,
    /// The binding that lists it; `None` for a CRD of the workspace itself.
    binding: Option<&'a Text>,
}

impl<'a> Rival<'a> {
    /// In which order rivals are asked (D9): by uid, one without uid last, then cluster and name.
    fn order(&self) -> (bool, &'a Text, &'a str, &'a Text) {
        (self.crd.meta.uid.is_empty(), &self.crd.meta.uid, self.cluster, self.name)
    }
}

/// The first conflict of a schema's names with what the workspace has, told as SPEC 6 does.
///
/// Only those CRDs are looked at that have one of the names: other neighbours cost nothing.
pub(crate) fn conflict<T: Trace>(planning: &Planning<'_, T>, draft: &Draft<'_>, schema: &Schema) -> Option<Conflict> {
    let workspace = planning.workspace?;
    let is_bound = draft.lists(&schema.meta.uid);
    let has_own = workspace.has_names();
    // Where the schema's own CRD is the only one with its names, only that one can be a rival.
    let uid = &schema.meta.uid;
    let is_rival = !is_bound && workspace.listing(uid).any(|name| *name != planning.key.name);
    let own = planning.observed_crd(schema).zip(planning.crds).filter(|_| !is_rival);
    let has_bound = workspace.listed_count() > 0 && !own.is_some_and(|(own, crds)| is_alone(crds, own, schema));
    if !has_own && !has_bound {
        return None;
    }
    let cluster = planning.key.cluster.as_str();
    let mut rivals = BTreeMap::new();
    for name in Name::all(&schema.names) {
        let query = NameQuery::new(schema.resource.group(), name);
        let own = workspace.named(query).map(|(name, crd)| Rival { crd, cluster, name, binding: None });
        let own = own.filter(|rival| cluster != ClusterName::BOUND_CRDS || !draft.lists(rival.name));
        let crds = planning.crds.filter(|_| has_bound);
        let bound = crds.into_iter().flat_map(|crds| bound_rivals(planning, workspace, crds, query));
        let bound = bound.filter(|rival| !draft.lists(rival.name) && rival.crd.group == *schema.resource.group());
        for rival in own.chain(bound) {
            rivals.entry(rival.order()).or_insert(rival);
        }
    }
    let mut rivals = rivals.into_values();
    let first = rivals.find_map(|rival| {
        let detail = clash(rival.crd.taken_names(is_bound), &schema.names)?;
        Some((rival, detail))
    });
    first.map(|(rival, detail)| Conflict {
        message: format!("naming conflict with {}: {detail}", describe(workspace, &rival)),
        binding: rival.binding.cloned(),
        crd: rival.name.clone(),
    })
}

/// True if a schema's own bound CRD has all names of the schema, and nobody else has one of them.
fn is_alone(crds: &Cluster, own: &Crd, schema: &Schema) -> bool {
    let names = if own.names_judged { &own.accepted_names } else { &own.names };
    own.group == *schema.resource.group() && *names == schema.names && !crds.is_crowded(&schema.meta.uid)
}

/// The bound CRDs that have a name and that other bindings of the workspace list. Of the two sets
/// the smaller one is gone through.
fn bound_rivals<'a, T: Trace>(
    planning: &Planning<'a, T>,
    workspace: &'a Cluster,
    crds: &'a Cluster,
    query: NameQuery<'_>,
) -> impl Iterator<Item = Rival<'a>> + use<'a, T> {
    let own_name = &planning.key.name;
    let few = crds.named_count(query) <= workspace.listed_count();
    let by_name = few.then(|| crds.named(query)).into_iter().flatten();
    let by_list = (!few).then(|| workspace.listed()).into_iter().flatten();
    let by_list = by_list.filter_map(|uid| Some((uid, crds.crd(uid)?)));
    by_name.chain(by_list).filter_map(move |(name, crd)| {
        let binding = workspace.listing(name).find(|name| *name != own_name)?;
        Some(Rival { crd, cluster: ClusterName::BOUND_CRDS, name, binding: Some(binding) })
    })
}

/// How the names that are taken forbid others; empty names never conflict (D4).
fn clash(taken: &ResourceNames, names: &ResourceNames) -> Option<String> {
    let is_taken = |name: &Text, by: &BTreeSet<&Text>| !name.is_empty() && by.contains(name);
    let mut resources = BTreeSet::from([&taken.plural, &taken.singular]);
    resources.extend(&taken.short_names);
    let kinds = BTreeSet::from([&taken.kind, &taken.list_kind]);
    let forbidden = |field, name: &dyn std::fmt::Display| Some(format!("spec.names.{field}={name} is forbidden"));
    if is_taken(&names.plural, &resources) {
        return forbidden("plural", &names.plural);
    }
    if is_taken(&names.singular, &resources) {
        return forbidden("singular", &names.singular);
    }
    if names.short_names.iter().any(|name| is_taken(name, &resources)) {
        let all: Vec<&str> = names.short_names.iter().map(Text::as_str).collect();
        return forbidden("shortNames", &format_args!("[{}]", all.join(" ")));
    }
    if is_taken(&names.kind, &kinds) {
        return forbidden("kind", &names.kind);
    }
    if is_taken(&names.list_kind, &kinds) {
        return forbidden("listKind", &names.list_kind);
    }
    None
}

fn describe(workspace: &Cluster, rival: &Rival<'_>) -> String {
    let Some(name) = rival.binding else {
        return format!("CustomResourceDefinition \"{}\"", rival.name);
    };
    match workspace.binding(name).and_then(|binding| binding.reference.as_ref()) {
        None => format!("APIBinding \"{name}\""),
        Some(export) if export.path.is_empty() => {
            format!("APIBinding \"{name}\" bound to local APIExport \"{}\"", export.name)
        }
        Some(export) => format!("APIBinding \"{name}\" bound to APIExport {}:{}", export.path, export.name),
    }
}

#[cfg(test)]
mod tests;
