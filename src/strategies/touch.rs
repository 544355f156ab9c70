//! Small changes of objects that are there.

use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

use super::binding;
use super::bindings::phase;
use super::exports::{CrdState, schema};
use super::locks::{AnnotationSpec, annotation_spec};
use super::pools::{IDENTITIES, PROVIDERS, RESOURCES, Resource, path_of};
use crate::api::{
    ApiBinding, ApiExport, ApiResourceSchema, CrdStorage, Object, ObservedCrd, PATH_ANNOTATION, PermissionClaim, Phase,
    ResourceStorage, cluster_of,
};
use crate::snapshot::Layer;

/// One small change: whatever kind of object it comes upon, it changes one thing of it. What wakes
/// a binding has to see each of them on its own.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    which: u8,
    bits: u8,
    resource: Resource,
    identity: Option<&'static str>,
    path: &'static str,
    phase: Phase,
    annotation: AnnotationSpec,
    state: CrdState,
    binding: ApiBinding,
    schema: ApiResourceSchema,
}

impl Touch {
    pub(super) fn apply(&self, object: &mut Object) {
        match object {
            Object::ApiBinding(binding) => self.binding(binding),
            Object::ApiExport(export) => self.export(export),
            Object::ApiResourceSchema(schema) => self.schema(schema),
            Object::Crd(crd) => self.crd(crd),
            Object::LogicalCluster(home) => {
                let Some(layer) = Layer::ALL.into_iter().nth(usize::from(self.which % 4)) else { return };
                let cluster = cluster_of(&home.metadata);
                let annotations = home.metadata.annotations.get_or_insert_default();
                if self.which >= 4 && self.bits & 1 == 0 {
                    // The same, written in another way.
                    if let Some(text) = annotations.get_mut(layer.annotation()) {
                        *text = match text.contains("\": ") {
                            true => text.replace("\": ", "\":"),
                            false => text.replace("\":", "\": "),
                        };
                    }
                    return;
                }
                match self.annotation.to_text(cluster.as_str(), &[]) {
                    Some(text) => annotations.insert(layer.annotation().into(), text),
                    None => annotations.remove(layer.annotation()),
                };
            }
            Object::ApiConversion(_) => {}
        }
    }

    fn binding(&self, binding: &mut ApiBinding) {
        let (metadata, like) = (&mut binding.metadata, &self.binding);
        match self.which {
            0 => binding.spec.reference = like.spec.reference.clone(),
            1 => binding.spec.permission_claims = like.spec.permission_claims.clone(),
            2 => binding.status.bound_resources = like.status.bound_resources.clone(),
            3 => binding.status.conditions = like.status.conditions.clone(),
            4 => binding.status.phase = self.phase.clone(),
            5 => metadata.creation_timestamp = like.metadata.creation_timestamp.clone(),
            6 => metadata.deletion_timestamp = like.metadata.creation_timestamp.clone(),
            _ => binding.status.extra = like.status.extra.clone(),
        }
    }

    fn export(&self, export: &mut ApiExport) {
        let annotations = export.metadata.annotations.get_or_insert_default();
        let resources = &mut export.spec.resources;
        match self.which {
            0 => {
                annotations.insert(PATH_ANNOTATION.into(), path_of(self.path));
            }
            1 => {
                annotations.remove(PATH_ANNOTATION);
            }
            2 | 3 => export.status.identity_hash = self.identity.unwrap_or_default().into(),
            4 => export.spec.permission_claims = [PermissionClaim::default()].into_iter().collect(),
            5 => {
                let mut bits = self.bits;
                resources.edit(|resources| {
                    resources.retain(|_| {
                        bits = bits.rotate_left(1);
                        bits & 1 == 0
                    });
                });
            }
            6 => {
                let crd = (self.bits & 1 == 0).then_some(CrdStorage {});
                resources.edit(|resources| {
                    for resource in resources.iter_mut().take(1) {
                        resource.storage = ResourceStorage { crd: crd.clone(), ..ResourceStorage::default() };
                    }
                });
            }
            _ => {
                resources.edit(|resources| {
                    for resource in resources.iter_mut().take(1) {
                        resource.schema = format!("v{}.{}", 1 + self.bits % 2, self.resource.key().crd_name()).into();
                    }
                });
            }
        }
    }

    /// Nobody can change a schema, but one that is created anew under its name may differ, and
    /// its deletion may go unseen.
    fn schema(&self, schema: &mut ApiResourceSchema) {
        match self.which {
            0 | 1 => schema.spec.names = self.schema.spec.names.clone(),
            2 => schema.spec.group = self.schema.spec.group.clone(),
            3 => schema.metadata.uid = schema.metadata.uid.as_deref().map(next_uid),
            _ => {
                schema.spec.versions = self.schema.spec.versions.clone();
                schema.spec.conversion = self.schema.spec.conversion.clone();
            }
        }
    }

    fn crd(&self, crd: &mut ObservedCrd) {
        match self.which {
            0 => crd.status.stored_versions = vec!["v1".into(), "v3".into()],
            1 => crd.spec.names = self.resource.names(),
            2 => crd.status.accepted_names = self.resource.names(),
            3 => crd.spec.group = self.resource.group.into(),
            4 => crd.metadata.uid = crd.metadata.uid.as_deref().map(next_uid),
            _ => crd.status.conditions = self.state.status(self.resource, &[]).conditions,
        }
    }
}

/// The uid of the next object of the same name.
pub(super) fn next_uid(uid: &str) -> String {
    let (head, generation) = uid.rsplit_once('-').unwrap_or((uid, "0"));
    format!("{head}-{}", generation.parse::<u32>().map_or(0, |generation| generation.wrapping_add(1)))
}

pub(super) fn touch() -> BoxedStrategy<Touch> {
    let state = select(&[
        CrdState::Serving,
        CrdState::New,
        CrdState::NamesAccepted,
        CrdState::NamesRefused,
        CrdState::Terminating,
    ]);
    let small = (0u8..8, any::<u8>(), select(&RESOURCES), weighted(0.8, select(&IDENTITIES)), select(&PROVIDERS));
    (small, phase(), annotation_spec(0), state, binding(), schema())
        .prop_map(|((which, bits, resource, identity, path), phase, annotation, state, binding, schema)| Touch {
            which,
            bits,
            resource,
            identity,
            path,
            phase,
            annotation,
            state,
            binding,
            schema,
        })
        .boxed()
}
