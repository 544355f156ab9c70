//! The export of a binding, and its schemas: steps 1 to 6 of SPEC 4.

use smallvec::SmallVec;

use super::Planning;
use super::conditions::{Draft, Severity, Verdict};
use super::trace::{ExportFound, Finding, Trace};
use crate::api::{ExportedResource, IdentityHash};
use crate::snapshot::{Export, ExportKey, Origin, Schema};

/// What is to be bound.
pub(crate) struct Offer<'a> {
    pub(crate) key: &'a ExportKey,
    pub(crate) identity: &'a IdentityHash,
    pub(crate) resources: Offered<'a>,
}

/// Each resource with its schema. Most exports have a few.
pub(crate) type Offered<'a> = SmallVec<[(&'a ExportedResource, &'a Schema); 4]>;

/// Finds the export and all its schemas. `Err`: why `APIExportValid` is False.
pub(crate) fn find<'p, T: Trace>(planning: &mut Planning<'p, T>, draft: &mut Draft<'p>) -> Result<Offer<'p>, Verdict> {
    let binding = planning.binding;
    let (Some(reference), Some(target)) = (&binding.reference, &binding.target) else {
        return Err(Verdict::error("APIExportInvalidReference", "Missing APIExport reference"));
    };
    let path = match reference.path.is_empty() {
        true => planning.key.cluster.path(),
        false => reference.path.clone(),
    };
    let shown = || format!("{path}|{}", reference.name);
    let found =
        Origin::ALL.into_iter().find_map(|origin| Some((origin, planning.world.exports_at(origin, target.as_str())?)));
    planning.trace.note(|| Finding::Export {
        path: path.clone(),
        name: reference.name.clone(),
        found: match found {
            None => ExportFound::None,
            Some((origin, keys)) => match (keys.len(), keys.iter().next()) {
                (1, Some(key)) => ExportFound::One { origin, export: key.clone() },
                _ => ExportFound::Several { origin, exports: keys.iter().cloned().collect() },
            },
        },
    });
    let export = found.and_then(|(origin, keys)| Some((origin, keys.len(), keys.iter().next()?)));
    let Some((origin, count, key)) = export else {
        return Err(Verdict::error("APIExportNotFound", format!("APIExport {} not found", shown())));
    };
    if count > 1 {
        let problem = format!("multiple apiexports.apis.kcp.io found for {target}");
        return Err(Verdict::error("InternalError", format!("Error getting APIExport {}: {problem}", shown())));
    }
    let Some(export) = planning.world.export(origin, key) else {
        return Err(Verdict::error("APIExportNotFound", format!("APIExport {} not found", shown())));
    };
    draft.set_export_claims(&export.claims);
    if export.identity.is_empty() {
        let message = format!("APIExport {} is missing status.identityHash", shown());
        return Err(Verdict { reason: "MissingIdentityHash", severity: Severity::Warning, message });
    }
    planning.trace.note(|| Finding::Identity(export.identity.clone()));
    draft.set_export_cluster(&key.cluster);
    Ok(Offer { key, identity: &export.identity, resources: schemas(planning, key, export)? })
}

fn schemas<'p, T: Trace>(
    planning: &mut Planning<'p, T>,
    key: &'p ExportKey,
    export: &'p Export,
) -> Result<Offered<'p>, Verdict> {
    let provider = planning.world.cluster(&key.cluster);
    let mut found = Offered::with_capacity(export.resources.len());
    for resource in &export.resources {
        let schema = provider.and_then(|provider| provider.schema(&resource.schema)).map(|schema| &**schema);
        planning.trace.note(|| Finding::Schema {
            cluster: key.cluster.clone(),
            name: resource.schema.clone(),
            found: schema.map(|schema| (schema.resource.clone(), schema.meta.uid.clone())),
        });
        let Some(schema) = schema else {
            let message = format!("{}: APIResourceSchema \"{}\" not found", super::INVALID_EXPORT, resource.schema);
            return Err(Verdict::error("InternalError", message));
        };
        found.push((resource, schema));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
