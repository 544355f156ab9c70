//! A kcp in which nothing fails: it answers effects from the world, and changes it.

use std::collections::BTreeMap;

use apibinding::api::{ApiBindingStatus, BindingKey, Kind, Object, ObservedCondition, ObservedCrd, Text};
use apibinding::effect::{CreateCrd, Effect, Outcome, Patch};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use serde::Deserialize;

use super::objects::{Objects, name_uid};

/// What of an apply's body changes an object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    metadata: Metadata,
    status: ApiBindingStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    annotations: BTreeMap<String, String>,
}

/// What of a CRD's body the server reads further than the controller does.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Crd {
    spec: CrdSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CrdSpec {
    versions: Vec<CrdVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CrdVersion {
    name: Text,
    storage: bool,
}

/// Carries an effect out.
pub fn answer(objects: &mut Objects, effect: &Effect, establish: bool) -> Outcome {
    match effect {
        Effect::ReadApiBinding(key) => found(objects.get(Kind::ApiBinding, key)),
        Effect::ReadCrd(read) => {
            found(objects.get(Kind::Crd, &BindingKey::new(read.cluster.clone(), read.name.clone())))
        }
        Effect::CreateCrd(create) => self::create(objects, create, establish),
        Effect::PatchLogicalCluster(patch) => apply(objects, Kind::LogicalCluster, patch),
        Effect::PatchApiBindingStatus(patch) => apply(objects, Kind::ApiBinding, patch),
        // A pass never asks for it to be carried out.
        _ => Outcome::NoAnswer(format!("this is nothing that a server does: {effect}")),
    }
}

fn found(object: Option<&Object>) -> Outcome {
    object.map_or_else(|| refused(404, "NotFound"), |object| Outcome::done(object.clone()))
}

fn refused(code: i32, reason: &str) -> Outcome {
    Outcome::Refused(Box::new(Status { code: Some(code), reason: Some(reason.to_owned()), ..Status::default() }))
}

/// Stores a CRD and, where it is to be established, what a server makes of it some seconds later.
fn create(objects: &mut Objects, create: &CreateCrd, establish: bool) -> Outcome {
    let key = BindingKey::new(create.cluster.clone(), create.name.clone());
    if objects.get(Kind::Crd, &key).is_some() {
        return refused(409, "AlreadyExists");
    }
    let body = create.body.as_str();
    let (Ok(mut crd), Ok(read)) = (serde_json::from_str::<ObservedCrd>(body), serde_json::from_str::<Crd>(body)) else {
        return refused(400, "BadRequest");
    };
    if establish {
        let holds = |kind: &str| ObservedCondition { kind: kind.into(), status: "True".into() };
        crd.status.accepted_names = crd.spec.names.clone();
        crd.status.conditions = ["NamesAccepted", "Established"].map(holds).into();
        let stored = read.spec.versions.into_iter().filter(|version| version.storage);
        crd.status.stored_versions = stored.map(|version| version.name).collect();
    }
    stored(objects, crd.into())
}

/// Merges an apply into the object.
fn apply(objects: &mut Objects, kind: Kind, patch: &Patch) -> Outcome {
    let key = BindingKey::new(patch.cluster.clone(), patch.name.clone());
    let Some(mut object) = objects.get(kind, &key).cloned() else { return refused(404, "NotFound") };
    let Ok(body) = serde_json::from_str::<Body>(patch.body.as_str()) else { return refused(400, "BadRequest") };
    match &mut object {
        Object::ApiBinding(binding) => binding.status = body.status,
        other => other.metadata_mut().annotations.get_or_insert_default().extend(body.metadata.annotations),
    }
    stored(objects, object)
}

fn stored(objects: &mut Objects, mut object: Object) -> Outcome {
    name_uid(&mut object);
    objects.renew_version(&mut object);
    objects.put(object.clone());
    Outcome::done(object)
}
