//! The second half of `exclusive`: a binding lists nothing new whose names another CRD has.

use std::collections::{BTreeMap, BTreeSet};

use super::{Verdict, offers};
use crate::api::{ApiBindingStatus, BindingKey, ClusterName, Condition, ResourceNames, Text};
use crate::snapshot::{Crd, Schema, Snapshot};

/// A CRD that may have a name: by its uid, one without last, then by cluster and name (D9).
type Order = (bool, Text, Text, Text);

/// Where a CRD is not listed by the binding itself, and whose it is.
struct Rival<'a> {
    crd: &'a Crd,
    owner: String,
}

/// All CRDs that can be in the way of a binding, those of the given names excepted: SPEC 6, told the long way.
fn rivals<'a>(seen: &'a Snapshot, key: &BindingKey, is_own: impl Fn(&str) -> bool) -> BTreeMap<Order, Rival<'a>> {
    let mut rivals = BTreeMap::new();
    let mut add = |crd: &'a Crd, cluster: &str, name: &Text, owner: String| {
        if cluster != ClusterName::BOUND_CRDS || !is_own(name) {
            let order = (crd.meta.uid.is_empty(), crd.meta.uid.clone(), cluster.into(), name.clone());
            rivals.entry(order).or_insert(Rival { crd, owner });
        }
    };
    for (name, crd) in seen.crds(&key.cluster) {
        add(crd, key.cluster.as_str(), name, format!("CustomResourceDefinition \"{name}\""));
    }
    for other in seen.bindings().into_iter().filter(|other| other.cluster == key.cluster && other != key) {
        let Some(binding) = seen.binding(&other) else { continue };
        let export = match &binding.reference {
            None => String::new(),
            Some(export) if export.path.is_empty() => format!(" bound to local APIExport \"{}\"", export.name),
            Some(export) => format!(" bound to APIExport {}:{}", export.path, export.name),
        };
        for bound in &binding.status.bound_resources {
            if let Some(crd) = seen.bound_crd(&bound.schema.uid) {
                let owner = format!("APIBinding \"{}\"{export}", other.name);
                add(crd, ClusterName::BOUND_CRDS, &bound.schema.uid, owner);
            }
        }
    }
    rivals
}

/// Which of a schema's names a CRD has. Until the server has judged the CRD's names it has those that it asks for,
/// but against what is bound already (D14).
fn clash(rival: &Crd, schema: &Schema, is_bound: bool) -> Option<String> {
    if rival.group != schema.resource.group() {
        return None;
    }
    let has = if rival.names_judged || is_bound { &rival.accepted_names } else { &rival.names };
    let ResourceNames { plural, singular, short_names, kind, list_kind } = &schema.names;
    let resources: Vec<&Text> = [&has.plural, &has.singular].into_iter().chain(&has.short_names).collect();
    let has_resource = |name: &Text| !name.is_empty() && resources.contains(&name);
    let has_kind = |name: &Text| !name.is_empty() && [&has.kind, &has.list_kind].contains(&name);
    let shorts: Vec<&str> = short_names.iter().map(Text::as_str).collect();
    let shorts = format!("[{}]", shorts.join(" "));
    let checks = [
        ("plural", plural.as_str(), has_resource(plural)),
        ("singular", singular.as_str(), has_resource(singular)),
        ("shortNames", shorts.as_str(), short_names.iter().any(has_resource)),
        ("kind", kind.as_str(), has_kind(kind)),
        ("listKind", list_kind.as_str(), has_kind(list_kind)),
    ];
    let first = checks.into_iter().find(|(.., is_taken)| *is_taken);
    first.map(|(field, name, _)| format!("spec.names.{field}={name} is forbidden"))
}

/// A binding lists nothing new that has a name of another CRD of its workspace; and where it says that a name
/// is taken, it is, by the one that it says.
///
/// `seen`: what a commit of `next` was planned on.
///
/// # Errors
/// What it lists or says, and what is so.
pub fn named_apart(seen: &Snapshot, key: &BindingKey, next: &ApiBindingStatus) -> Verdict {
    let Some(known) = seen.binding(key) else { return Ok(()) };
    let offered = offers(seen, key);
    let lists =
        |status: &ApiBindingStatus, uid: &str| status.bound_resources.iter().any(|bound| bound.schema.uid == *uid);
    let others = rivals(seen, key, |uid| known.lists(uid) || lists(next, uid));
    let new = next.bound_resources.iter().filter(|bound| !known.lists(&bound.schema.uid));
    for bound in new {
        let schemas = offered.iter().filter(|(_, schema)| schema.meta.uid == bound.schema.uid);
        for ((.., name), rival, (_, schema)) in
            schemas.flat_map(|schema| others.iter().map(move |(order, rival)| (order, rival, schema)))
        {
            if let Some(detail) = clash(rival.crd, schema, false) {
                let resource = bound.group_resource();
                return Err(format!("{key} newly lists {resource}, but for {} {name}: {detail}", rival.owner));
            }
        }
    }
    let says = |status: &ApiBindingStatus| {
        let condition = status.condition(Condition::BINDING_UP_TO_DATE)?;
        condition.message.strip_prefix("Unable to bind APIs: naming conflict with ").map(str::to_owned)
    };
    let Some(said) = says(next).filter(|said| says(&known.status).as_ref() != Some(said)) else { return Ok(()) };
    // A conflict is the last thing that is found, so what the binding lists then is what it lists in the end.
    let others = rivals(seen, key, |uid| lists(next, uid));
    let expected: BTreeSet<String> = offered
        .iter()
        .filter_map(|(_, schema)| {
            let is_bound = lists(next, &schema.meta.uid);
            let mut found = others.values().filter_map(|rival| {
                clash(rival.crd, schema, is_bound).map(|detail| format!("{}: {detail}", rival.owner))
            });
            found.next()
        })
        .collect();
    if expected.contains(&said) {
        Ok(())
    } else {
        Err(format!("{key} is said to be in conflict with {said}, of {expected:?}"))
    }
}
