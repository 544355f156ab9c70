//! Permission claims: the CRDs that providers claim exist (SPEC 7).

use super::Planning;
use super::trace::{ClaimFound, CrdFound, Finding, Trace};
use crate::api::ClusterName;
use crate::snapshot::{AcceptedClaim, Origin, Schema, world::World};

/// The bound CRD of every accepted claim is created where it is missing. Never fails, and never
/// changes the binding.
pub(crate) fn ensure<T: Trace>(planning: &mut Planning<'_, T>) {
    let binding = planning.binding;
    for claim in &binding.claims {
        let found = schema_of(planning.world, claim).map(|(cluster, name, schema)| {
            let crd = ensure_crd(planning, cluster, name, schema);
            (cluster, name, crd)
        });
        planning.trace.note(|| Finding::Claim {
            resource: claim.resource.clone(),
            identity: claim.identity.clone(),
            found: match found {
                Some((cluster, name, crd)) => ClaimFound::Schema { cluster: cluster.clone(), name: name.into(), crd },
                None => ClaimFound::NoSchema,
            },
        });
    }
}

/// The schema in the first export of the claimed identity that has one: all local exports, then
/// all global ones (D12).
fn schema_of<'a>(world: &'a World, claim: &AcceptedClaim) -> Option<(&'a ClusterName, &'a str, &'a Schema)> {
    Origin::ALL.into_iter().find_map(|origin| {
        world.exports_of(origin, &claim.identity)?.iter().find_map(|key| {
            let export = world.export(origin, key)?;
            let claimed = export.resources.iter().filter(|resource| {
                resource.name == *claim.resource.resource() && resource.group == *claim.resource.group()
            });
            claimed.into_iter().find_map(|resource| {
                let schema = world.schema(&key.cluster, &resource.schema)?;
                Some((&key.cluster, resource.schema.as_str(), &**schema))
            })
        })
    })
}

fn ensure_crd<T: Trace>(
    planning: &mut Planning<'_, T>,
    cluster: &ClusterName,
    name: &str,
    schema: &Schema,
) -> CrdFound {
    let found = planning.bound_crd(schema);
    if found == CrdFound::Absent {
        return planning.create(cluster, name, schema);
    }
    found
}

#[cfg(test)]
mod tests;
