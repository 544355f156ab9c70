//! Carrying out effects as a real executor would.

use serde::Deserialize;
use serde_json::Value;

use super::refusal::Refusal;
use super::{Answer, Event, Happened, Kcp, Request};
use crate::api::{
    ApiBinding, ApiConversion, ApiExport, ApiResourceSchema, BindingKey, Kind, LogicalCluster, Object, ObservedCrd,
};
use crate::effect::{Effect, Outcome, Patch};
use crate::snapshot::{Change, Origin};

impl Kcp {
    /// Carries out an effect: the content as it stands there, the path by the cluster's name. After a
    /// 409 for an apply the object is read, and handed in.
    pub fn execute(&mut self, effect: &Effect) -> Outcome {
        match effect {
            Effect::CreateCrd(create) => {
                let request = Request::create(Kind::Crd, create.cluster.clone(), create.body.to_value());
                self.outcome(Kind::Crd, request)
            }
            Effect::ReadApiBinding(key) => self.read(Kind::ApiBinding, key),
            Effect::ReadCrd(read) => self.read(Kind::Crd, &BindingKey::new(read.cluster.clone(), read.name.clone())),
            Effect::PatchLogicalCluster(patch) => self.patch(Kind::LogicalCluster, patch),
            Effect::PatchApiBindingStatus(patch) => self.patch(Kind::ApiBinding, patch),
            Effect::Requeue(_) => Outcome::NoAnswer("nothing to carry out".into()),
        }
    }

    fn outcome(&mut self, kind: Kind, request: Request) -> Outcome {
        outcome(kind, self.handle(request))
    }

    fn read(&mut self, kind: Kind, key: &BindingKey) -> Outcome {
        self.outcome(kind, Request::get(kind, key.cluster.clone(), key.name.clone()))
    }

    fn patch(&mut self, kind: Kind, patch: &Patch) -> Outcome {
        let body = patch.body.to_value();
        let mut request = Request::apply(kind, patch.cluster.clone(), patch.name.clone(), body, patch.force)
            .managed_by(patch.field_manager.clone());
        request.subresource = patch.subresource.clone();
        match self.handle(request) {
            Err(status) if status.code == Some(409) => {
                let key = BindingKey::new(patch.cluster.clone(), patch.name.clone());
                match self.read(kind, &key) {
                    Outcome::Done(current) => Outcome::Conflict { status, current: Some(current) },
                    Outcome::Refused(gone) if gone.code == Some(404) => Outcome::Conflict { status, current: None },
                    other => other,
                }
            }
            answer => outcome(kind, answer),
        }
    }
}

fn outcome(kind: Kind, answer: Result<Answer, Refusal>) -> Outcome {
    match answer {
        Ok(answer) => match object(kind, &answer.body) {
            Ok(object) => Outcome::done(object),
            Err(problem) => Outcome::NoAnswer(format!("an answer that cannot be read: {problem}")),
        },
        Err(status) => Outcome::Refused(status),
    }
}

/// Reads a stored object without writing it out first.
fn object(kind: Kind, value: &Value) -> Result<Object, serde_json::Error> {
    Ok(match kind {
        Kind::ApiBinding => ApiBinding::deserialize(value)?.into(),
        Kind::ApiExport => ApiExport::deserialize(value)?.into(),
        Kind::ApiResourceSchema => ApiResourceSchema::deserialize(value)?.into(),
        Kind::ApiConversion => ApiConversion::deserialize(value)?.into(),
        Kind::LogicalCluster => LogicalCluster::deserialize(value)?.into(),
        Kind::Crd => ObservedCrd::deserialize(value)?.into(),
    })
}

impl Event {
    /// As a change of a snapshot. `None`: the object does not fit its kind, which no reader could tell.
    pub fn change(&self, origin: Origin, kind: Kind) -> Option<Change> {
        match self.happened {
            Happened::Added | Happened::Modified => {
                let object = Box::new(object(kind, &self.object).ok()?);
                Some(Change::Put { origin, object })
            }
            Happened::Deleted => {
                let resource_version = self.version.to_string().into();
                Some(Change::Delete { origin, kind, key: self.key.clone(), resource_version })
            }
        }
    }
}

impl Kcp {
    /// A list of a kind as a change of a snapshot: all that is there now.
    pub fn relist(&self, origin: Origin, kind: Kind) -> Change {
        let objects = self.list(origin, kind, None).filter_map(|value| object(kind, value).ok());
        Change::List { origin, kind, objects: objects.collect(), resource_version: self.version().to_string().into() }
    }

    /// A list of a kind as it was at a version.
    ///
    /// # Errors
    /// 410 if what happened since then was [forgotten](Kcp::compact).
    pub fn relist_at(&self, origin: Origin, kind: Kind, version: u64) -> Result<Change, Refusal> {
        let then = self.store.list_at(origin, kind, None, version)?;
        let objects = then.into_iter().filter_map(|stored| object(kind, &stored.object).ok()).collect();
        Ok(Change::List { origin, kind, objects, resource_version: version.to_string().into() })
    }
}
