//! The final state of a binding: what its status says is so.

use std::sync::Arc;

use super::{Model, Verdict, same};
use crate::api::{
    ApiBinding, ApiBindingStatus, ApiExport, ApiResourceSchema, BindingKey, ClusterName, Condition, ExportedResource,
    IdentityHash, Kind, Object, ObservedCrd, Phase, cluster_of, path_of,
};
use crate::snapshot::{Annotation, Home, Layer, Layout, Origin};

/// The paths under which an export is found, joined with its name.
fn is_found_at(export: &ApiExport, path: &str) -> bool {
    let name = export.metadata.name.as_deref().unwrap_or_default();
    let (cluster, by_path) = (cluster_of(&export.metadata).path().join(name), path_of(&export.metadata));
    cluster.as_str() == path || (!by_path.is_empty() && by_path.join(name).as_str() == path)
}

fn exports(model: &Model, origin: Origin) -> impl Iterator<Item = &ApiExport> {
    model.of_kind(origin, Kind::ApiExport).filter_map(|object| match &**object {
        Object::ApiExport(export) => Some(export),
        _ => None,
    })
}

/// A schema by its name: its local copy, else the global one.
fn schema<'a>(model: &'a Model, cluster: &ClusterName, name: &str) -> Option<&'a ApiResourceSchema> {
    let key = BindingKey::new(cluster.clone(), name);
    let mut copies = Origin::ALL.into_iter();
    match copies.find_map(|at| model.get(at, Kind::ApiResourceSchema, &key)).map(Arc::as_ref)? {
        Object::ApiResourceSchema(schema) => Some(schema),
        _ => None,
    }
}

fn bound_crd<'a>(model: &'a Model, schema: &ApiResourceSchema) -> Option<&'a ObservedCrd> {
    let uid = schema.metadata.uid.as_deref().unwrap_or_default();
    let key = BindingKey::new(ClusterName::from(ClusterName::BOUND_CRDS), uid);
    match &**model.get(Origin::Local, Kind::Crd, &key)? {
        Object::Crd(crd) => Some(crd),
        _ => None,
    }
}

fn serves(crd: &ObservedCrd) -> bool {
    let is = |kind, status| crd.status.conditions.iter().any(|found| found.kind == kind && found.status == status);
    is("Established", "True") && !is("Terminating", "True")
}

/// The one export of a binding, and what it offers; `None` where it cannot be bound.
fn offer<'a>(
    model: &'a Model,
    binding: &ApiBinding,
) -> Option<(&'a ApiExport, Vec<(&'a ExportedResource, &'a ApiResourceSchema)>)> {
    let reference = binding.spec.reference.export.as_ref()?;
    let path = match reference.path.is_empty() {
        true => cluster_of(&binding.metadata).path().join(&reference.name),
        false => reference.path.join(&reference.name),
    };
    let found = |origin| exports(model, origin).filter(|export| is_found_at(export, path.as_str()));
    let origin = Origin::ALL.into_iter().find(|origin| found(*origin).next().is_some())?;
    let mut found = found(origin);
    let (Some(export), None) = (found.next(), found.next()) else { return None };
    if export.status.identity_hash.is_empty() {
        return None;
    }
    let cluster = cluster_of(&export.metadata);
    let offered = export.spec.resources.iter().map(|entry| Some((entry, schema(model, &cluster, &entry.schema)?)));
    Some((export, offered.collect::<Option<Vec<_>>>()?))
}

/// What the status of a binding says is so, and what is so is said: SPEC 3 and 4, told the long way. Asked where
/// nothing failed.
///
/// # Errors
/// What it says, and what is so.
pub fn reached(model: &Model, key: &BindingKey, status: &ApiBindingStatus) -> Verdict {
    let binding = match model.get(Origin::Local, Kind::ApiBinding, key).map(Arc::as_ref) {
        Some(Object::ApiBinding(binding)) => binding,
        _ => return Ok(()),
    };
    let told = |why: Verdict| why.map_err(|why| format!("{key}: {why}"));
    let is_true = |kind| status.condition(kind).is_some_and(Condition::is_true);
    if !matches!(status.phase, Phase::Binding | Phase::Bound) {
        return Ok(());
    }
    if let (Some(initial), Some(ready)) =
        (status.condition(Condition::INITIAL_BINDING_COMPLETED), status.condition(Condition::READY))
    {
        let says =
            |condition: &Condition| (condition.status.clone(), condition.reason.clone(), condition.message.clone());
        if ["False", "Unknown"].contains(&initial.status.as_str()) {
            told(same("what Ready says", &says(ready), &says(initial)))?;
        }
        told(same("whether it is Ready", &ready.is_true(), &initial.is_true()))?;
    }
    let Some((export, offered)) = offer(model, binding) else {
        return told(same(
            "APIExportValid, of an export that cannot be bound",
            &is_true(Condition::API_EXPORT_VALID),
            &false,
        ));
    };
    told(same("the export's cluster", &status.api_export_cluster_name, &cluster_of(&export.metadata)))?;
    told(same("the export's claims", &status.export_permission_claims, &export.spec.permission_claims))?;
    let serving = |schema: &ApiResourceSchema| bound_crd(model, schema).is_some_and(serves);
    let up_to_date = status.condition(Condition::BINDING_UP_TO_DATE);
    if !up_to_date.is_some_and(Condition::is_true) {
        let waits = up_to_date.is_some_and(|condition| condition.reason == *"WaitingForEstablished");
        if waits && is_true(Condition::API_EXPORT_VALID) && offered.iter().all(|(_, schema)| serving(schema)) {
            return Err(format!("{key} waits, but all CRDs serve"));
        }
        return Ok(());
    }
    if !is_true(Condition::API_EXPORT_VALID) {
        // What came in the way says nothing of what was bound before.
        return Ok(());
    }
    told(same("InitialBindingCompleted", &is_true(Condition::INITIAL_BINDING_COMPLETED), &true))?;
    told(same("phase", &status.phase, &Phase::Bound))?;
    for (entry, schema) in &offered {
        let resource = schema.group_resource();
        let twins = offered.iter().filter(|(_, other)| other.group_resource() == resource);
        if twins.count() > 1 {
            continue;
        }
        let Some(bound) = status.bound(&resource) else {
            return Err(format!("{key} is up to date, but {resource} is not bound"));
        };
        let uid = schema.metadata.uid.as_deref().unwrap_or_default();
        told(same(format_args!("uid of {resource}"), bound.schema.uid.as_str(), uid))?;
        told(same(format_args!("schema of {resource}"), &bound.schema.name, &entry.schema))?;
        let identity: &IdentityHash = &export.status.identity_hash;
        told(same(format_args!("identity of {resource}"), &bound.schema.identity_hash, identity))?;
        let Some(crd) = bound_crd(model, schema).filter(|crd| serves(crd)) else {
            return Err(format!("{key} is up to date, but the CRD of {resource} does not serve"));
        };
        if schema.spec.versions.len() > 1 && schema.spec.conversion.is_none() {
            return Err(format!("{key} is up to date, but {resource} lacks a conversion"));
        }
        let missing = crd.status.stored_versions.iter().find(|version| !bound.storage_versions.contains(version));
        match (&entry.storage.crd, missing) {
            (Some(_), Some(version)) => return Err(format!("{key}: {resource} may be stored in {version}")),
            (None, _) if !bound.storage_versions.is_empty() => {
                return Err(format!("{key}: {resource} is not stored in its CRD"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The CRDs that a binding's accepted claims want are there (SPEC 7): of each, that of the first schema found.
/// Asked after a pass in which nothing failed. `can_be`: whether there can be such a CRD.
///
/// # Errors
/// Which CRD is missing.
pub fn claimed(model: &Model, key: &BindingKey, can_be: impl Fn(&ClusterName, &str) -> bool) -> Verdict {
    let Some(Object::ApiBinding(binding)) = model.get(Origin::Local, Kind::ApiBinding, key).map(Arc::as_ref) else {
        return Ok(());
    };
    for claim in binding.spec.permission_claims.iter().filter(|claim| claim.is_accepted()) {
        let candidates = Origin::ALL.into_iter().flat_map(|origin| {
            let mut found: Vec<&ApiExport> = exports(model, origin)
                .filter(|export| !claim.identity_hash.is_empty() && export.status.identity_hash == claim.identity_hash)
                .collect();
            found.sort_by_key(|export| {
                format!("{}/{}", cluster_of(&export.metadata), export.metadata.name.as_deref().unwrap_or_default())
            });
            found
        });
        let found = candidates.into_iter().find_map(|export| {
            let cluster = cluster_of(&export.metadata);
            let mut entries = export.spec.resources.iter();
            entries.find_map(|entry| {
                let is_it = entry.group == claim.group && entry.name == claim.resource;
                let found = schema(model, &cluster, &entry.schema).filter(|_| is_it)?;
                Some((cluster.clone(), entry.schema.clone(), found))
            })
        });
        if let Some((cluster, name, schema)) = found
            && bound_crd(model, schema).is_none()
            && can_be(&cluster, &name)
        {
            return Err(format!("{key} claims {}, but there is no CRD of {cluster}|{name}", claim.group_resource()));
        }
    }
    Ok(())
}

/// Where all rests and nothing fails any more: no binding is left with what once failed, and no lock with an owner
/// that is gone.
///
/// # Errors
/// Which, and what is wrong with it.
pub fn rested(model: &Model) -> Verdict {
    for object in model.of_kind(Origin::Local, Kind::ApiBinding) {
        let Object::ApiBinding(binding) = &**object else { continue };
        let key = binding.key();
        reached(model, &key, &binding.status)?;
        let (valid, up_to_date) = [Condition::API_EXPORT_VALID, Condition::BINDING_UP_TO_DATE]
            .map(|kind| binding.status.condition(kind))
            .into();
        // Where the export cannot be bound, what failed before is not tried again.
        let has_failed =
            valid.is_some_and(Condition::is_true) && up_to_date.is_some_and(|found| found.reason == *"InternalError");
        if binding.status.phase == Phase::New || has_failed {
            return Err(format!("{key} rests with {:?}, {up_to_date:?}", binding.status.phase));
        }
    }
    for object in model.of_kind(Origin::Local, Kind::LogicalCluster) {
        let (Object::LogicalCluster(home), Layout::Split) = (&**object, model.layout) else { continue };
        let (cluster, home) = (cluster_of(&home.metadata), Home::from(home));
        if Layer::ALL.into_iter().any(|layer| matches!(home.layer(layer), Annotation::Unreadable(_))) {
            continue;
        }
        let locks = home.bindings.locks().into_iter().flat_map(|locks| locks.iter());
        for (resource, lock) in locks.filter(|(_, lock)| !lock.crd && !lock.name.is_empty()) {
            let key = BindingKey::new(cluster.clone(), lock.name.clone());
            let uid = model.get(Origin::Local, Kind::ApiBinding, &key).map(|object| object.metadata().uid.clone());
            let is_wanted = || match model.get(Origin::Local, Kind::ApiBinding, &key).map(Arc::as_ref) {
                Some(Object::ApiBinding(binding)) => offer(model, binding)
                    .is_none_or(|(_, offered)| offered.iter().any(|(_, schema)| schema.group_resource() == *resource)),
                _ => false,
            };
            let is_left = match uid {
                None => true,
                Some(uid) => !lock.uid.is_empty() && uid.as_deref() != Some(lock.uid.as_str()) && !is_wanted(),
            };
            if is_left {
                return Err(format!("{cluster}: nobody takes away the lock of {resource}, {lock:?}"));
            }
        }
    }
    Ok(())
}
