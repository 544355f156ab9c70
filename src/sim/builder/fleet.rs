//! Large worlds in which nobody is in anybody's way.

use std::collections::BTreeSet;

use super::plan::{Binding, Claim, Entry, Export, Form, Plan, Schema, home};
use super::pool::{Resource, path_of};
use super::{Builder, locks};

/// Any number of everything, and nobody in anybody's way.
pub(super) fn spread(builder: &Builder) -> Plan {
    let workspaces = builder.workspaces.unwrap_or(10).max(1);
    let bindings = builder.bindings.unwrap_or(workspaces * 10);
    let each = bindings.div_ceil(workspaces);
    // As many as make the bindings of one workspace bind different ones.
    let exports = builder.exports.unwrap_or(100).max(each).max(1);
    let (resources, claims) = (builder.resources.unwrap_or(3), builder.claims.unwrap_or(0));
    let is_bound = builder.bound.unwrap_or(false);
    let provider = "farm";
    let mut plan = Plan {
        layout: builder.layout,
        is_crowded: false,
        schema_bytes: builder.schema_bytes,
        homes: (0..workspaces).map(|at| home(format!("meadow-{at}"))).chain([home(provider)]).collect(),
        consumers: workspaces,
        resources: Vec::new(),
        schemas: Vec::new(),
        exports: Vec::new(),
        bindings: Vec::new(),
        crds: Vec::new(),
    };
    for export in 0..exports {
        let first = plan.schemas.len();
        for number in 0..resources {
            let resource = Resource::lonely(export, number);
            let name = format!("v1.{}", resource.key().crd_name());
            plan.resources.push(resource);
            plan.schemas.push(Schema {
                cluster: provider.into(),
                resource: first + number,
                uid: format!("{name}-0"),
                name,
                form: Form::Plain,
                is_there: true,
                has_conversion: false,
                has_crd: false,
            });
        }
        plan.exports.push(Export {
            cluster: provider.into(),
            name: format!("flock-{export}"),
            path: path_of(provider),
            identity: format!("id-flock-{export}"),
            entries: (first..first + resources).map(|schema| Entry { schema, is_virtual: false }).collect(),
            // On what the exports after this one offer.
            claims: (1..=claims.min(exports - 1))
                .map(|next| {
                    let next = (export + next) % exports;
                    let Resource { group, plural, .. } = Resource::lonely(next, 0);
                    Claim { group, resource: plural, identity: format!("id-flock-{next}") }
                })
                .collect(),
            is_there: true,
        });
    }
    for at in 0..bindings {
        let (home, export) = (at % workspaces, (at % workspaces + at / workspaces) % exports);
        let Some(it) = plan.exports.get(export) else { continue };
        plan.bindings.push(Binding {
            home,
            name: it.name.clone(),
            uid: format!("meadow-{home}-{}-0", it.name),
            reference: Some((it.path.clone(), it.name.clone())),
            export: Some(export),
            claims: it.claims.iter().map(|claim| (claim.clone(), true)).collect(),
            phase: if is_bound { "Bound" } else { "" },
            bound: if is_bound { it.entries.clone() } else { Vec::new() },
            age_minutes: 90,
            is_there: true,
        });
    }
    if is_bound {
        create_crds(&mut plan, claims.min(exports - 1));
    }
    plan.index_bindings();
    locks::write(&mut plan);
    plan
}

/// The bound CRDs of all that is bound, or claimed by that.
fn create_crds(plan: &mut Plan, claims: usize) {
    let exports: BTreeSet<usize> = plan.bindings.iter().filter_map(|it| it.export).collect();
    for export in exports {
        let claimed = (1..=claims).map(|next| (export + next) % plan.exports.len());
        let claimed = claimed.filter_map(|next| plan.exports.get(next)?.entries.first());
        let bound = plan.exports.get(export).into_iter().flat_map(|export| &export.entries);
        for entry in bound.chain(claimed) {
            if let Some(schema) = plan.schemas.get_mut(entry.schema) {
                schema.has_crd = true;
            }
        }
    }
}
