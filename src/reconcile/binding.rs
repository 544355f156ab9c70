//! Binding what an export offers (SPEC 4).

use super::conditions::{Draft, Severity, Verdict};
use super::export::Offer;
use super::locks::{Holder, Skipped};
use super::trace::{CrdFound, Finding, Trace};
use super::{Planning, export, locks, names};
use crate::api::{BoundResource, BoundSchema, ExportedResource, IdentityHash, Text};
use crate::snapshot::Schema;

/// Step 2 of SPEC 3 for a binding that has a phase.
pub(crate) fn bind<'p, T: Trace>(planning: &mut Planning<'p, T>, draft: &mut Draft<'p>) {
    let offer = match export::find(planning, draft) {
        Ok(offer) => offer,
        Err(verdict) => return draft.export_is_invalid(verdict),
    };
    draft.export_is_valid();
    let skipped = match locks::take(planning, &offer.resources) {
        Ok(skipped) => skipped,
        Err(verdict) => return draft.fail_both(verdict),
    };
    match bind_resources(planning, draft, &offer, &skipped) {
        Err(Stop::Binding(verdict)) => draft.fail_both(verdict),
        Err(Stop::Export(verdict)) => draft.export_is_invalid(verdict),
        Ok(waiting) if !waiting.is_empty() => draft.fail_both(waiting_for(waiting)),
        Ok(_) if !skipped.is_empty() => draft.fail_both(held_by_others(&skipped)),
        Ok(_) => draft.complete(),
    }
}

/// Why binding stops at a resource, and what is not so.
enum Stop {
    /// Both conditions of the binding are False.
    Binding(Verdict),
    /// `APIExportValid` is False.
    Export(Verdict),
}

/// Step 8 of SPEC 4. Gives the names of the schemas whose CRDs are waited for.
fn bind_resources<T: Trace>(
    planning: &mut Planning<'_, T>,
    draft: &mut Draft<'_>,
    offer: &Offer<'_>,
    skipped: &Skipped,
) -> Result<Vec<Text>, Stop> {
    let mut waiting = Vec::new();
    for &(exported, schema) in &offer.resources {
        if skipped.contains_key(&schema.resource) {
            continue;
        }
        if let Some(conflict) = names::conflict(planning, draft, schema) {
            planning.trace.note(|| Finding::Conflict { resource: schema.resource.clone(), conflict: conflict.clone() });
            let message = format!("Unable to bind APIs: {}", conflict.message);
            return Err(Stop::Binding(Verdict::error("NamingConflicts", message)));
        }
        if schema.lacks_conversion {
            let why = || "it has several versions and no conversion".into();
            note_crd(planning, schema, || CrdFound::CannotBeMade(why()));
            return Err(Stop::Export(Verdict::error("InternalError", super::INVALID_EXPORT)));
        }
        let mut found = planning.bound_crd(schema);
        if found == CrdFound::Absent {
            found = planning.create(&offer.key.cluster, &exported.schema, schema);
        }
        note_crd(planning, schema, || found.clone());
        match found {
            CrdFound::Serving => {
                let stored = planning.observed_crd(schema).filter(|_| exported.storage.crd.is_some());
                let stored = stored.map(|crd| &*crd.stored_versions).unwrap_or_default();
                let entry = Entry { identity: offer.identity, exported, schema, stored };
                if !draft.bound(&schema.resource).is_some_and(|bound| entry.is(bound)) {
                    draft.set_bound(entry.bound(draft));
                }
            }
            CrdFound::NotEstablished | CrdFound::Absent => waiting.push(exported.schema.clone()),
            CrdFound::CannotBeMade(_) => {
                return Err(Stop::Export(Verdict::error("InternalError", super::INVALID_EXPORT)));
            }
            CrdFound::Invalid(causes) => {
                let which = format!("{}|{}", offer.key.cluster, exported.schema);
                let message = format!("APIResourceSchema {which} is invalid: {causes}");
                return Err(Stop::Binding(Verdict::error("APIResourceSchemaInvalid", message)));
            }
            CrdFound::Failed => {
                let message = "An internal error prevented the APIBinding process from completing. \
                               Please contact your system administrator for assistance";
                return Err(Stop::Binding(Verdict::error("InternalError", message)));
            }
        }
    }
    Ok(waiting)
}

fn note_crd<T: Trace>(planning: &mut Planning<'_, T>, schema: &Schema, found: impl FnOnce() -> CrdFound) {
    planning.trace.note(|| Finding::Crd {
        resource: schema.resource.clone(),
        uid: schema.meta.uid.clone(),
        found: found(),
    });
}

/// What the status has to list of a resource whose CRD serves.
struct Entry<'a> {
    identity: &'a IdentityHash,
    exported: &'a ExportedResource,
    schema: &'a Schema,
    /// The versions in which objects may be stored, by the CRD; none for what is stored elsewhere.
    stored: &'a [Text],
}

impl Entry<'_> {
    /// True if it is listed just so.
    fn is(&self, bound: &BoundResource) -> bool {
        let BoundSchema { name, uid, identity_hash, extra } = &bound.schema;
        let versions = &bound.storage_versions;
        let are_right = match self.exported.storage.crd.is_some() {
            true => self.stored.iter().all(|it| versions.contains(it)) && versions.is_sorted_by(|a, b| a < b),
            false => versions.is_empty(),
        };
        *uid == self.schema.meta.uid
            && *name == self.exported.schema
            && *identity_hash == *self.identity
            && are_right
            && (extra.is_empty() && bound.extra.is_empty())
    }

    fn bound(&self, draft: &Draft<'_>) -> BoundResource {
        let mut storage_versions = Vec::new();
        if self.exported.storage.crd.is_some() {
            let before = draft.bound(&self.schema.resource).into_iter().flat_map(|bound| &bound.storage_versions);
            storage_versions.extend(self.stored.iter().chain(before).cloned());
            storage_versions.sort();
            storage_versions.dedup();
        }
        BoundResource {
            group: self.schema.resource.group().into(),
            resource: self.schema.resource.resource().into(),
            schema: BoundSchema {
                name: self.exported.schema.clone(),
                uid: self.schema.meta.uid.clone(),
                identity_hash: self.identity.clone(),
                ..BoundSchema::default()
            },
            storage_versions,
            ..BoundResource::default()
        }
    }
}

fn waiting_for(mut schemas: Vec<Text>) -> Verdict {
    schemas.sort();
    let schemas: Vec<&str> = schemas.iter().map(Text::as_str).collect();
    let message = format!("{}: {}", super::WAITING, schemas.join(", "));
    Verdict { reason: "WaitingForEstablished", severity: Severity::Info, message }
}

fn held_by_others(skipped: &Skipped) -> Verdict {
    let holder = |holder: &Holder| match holder.crd {
        true => "CustomResourceDefinition".into(),
        false => format!("APIBinding \"{}\"", holder.binding),
    };
    let held: Vec<String> = skipped.iter().map(|(resource, held)| format!("{resource} ({})", holder(held))).collect();
    let message =
        format!("Unable to bind APIs because they are bound by other APIBindings or CRDs: {}", held.join(", "));
    Verdict::error("NamingConflicts", message)
}

#[cfg(test)]
mod tests;
