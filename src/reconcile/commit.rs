//! Committing a status (SPEC 10).

use serde::Serialize;

use super::FIELD_MANAGER;
use crate::api::{ApiBindingStatus, BindingKey, Json, Kind, Text};
use crate::effect::{Effect, Patch};
use crate::snapshot::Binding;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Metadata<'a>,
    status: &'a ApiBindingStatus,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a Text,
    #[serde(skip_serializing_if = "Text::is_empty")]
    resource_version: &'a Text,
}

/// The apply that makes `status` the status of a binding: the whole of it, since an applier that
/// stops sending a field deletes it; and only if the binding is still as it was read (D8).
pub(crate) fn patch(key: &BindingKey, binding: &Binding, status: &ApiBindingStatus) -> Effect {
    let resource_version = &binding.meta.resource_version;
    let body = Body {
        api_version: Kind::ApiBinding.api_version(),
        kind: Kind::ApiBinding.as_str(),
        metadata: Metadata { name: &key.name, resource_version },
        status,
    };
    Effect::PatchApiBindingStatus(Patch {
        cluster: key.cluster.clone(),
        name: key.name.clone(),
        subresource: "status".into(),
        field_manager: FIELD_MANAGER.into(),
        force: true,
        resource_version: resource_version.clone(),
        body: Json::of(&body),
    })
}

#[cfg(test)]
mod tests;
