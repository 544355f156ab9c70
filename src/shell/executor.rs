//! Effects as requests, answers as outcomes.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::server::{Call, Refusal, Server};
use crate::api::{BindingKey, ClusterName, Kind, Object};
use crate::effect::{Effect, Outcome, Patch};

const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";

/// What stands in a path as it is.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':').remove(b'*');

/// The path of a kind in a logical cluster; `*` for all of them.
pub(super) fn path(cluster: &str, kind: Kind) -> String {
    format!("/clusters/{}{}", encoded(cluster), kind_path(kind))
}

/// What of a path tells the kind.
pub(super) fn kind_path(kind: Kind) -> String {
    format!("/apis/{}/{}", kind.api_version(), kind.plural())
}

pub(super) fn encoded(text: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(text, PATH)
}

/// Who carries effects out: for programs that have a loop of their own (`examples/kube_controller.rs`).
#[derive(Clone, Debug)]
pub struct Executor {
    server: Server,
    limit: Duration,
}

impl Executor {
    /// One that sends them to this server. A request may take so long; after that nobody knows what came of it.
    pub fn new(server: impl Into<Server>, limit: Duration) -> Self {
        Self { server: server.into(), limit }
    }

    /// Carries an effect out, as it stands there; what comes of it is what the table in [`crate::effect`] says.
    pub async fn execute(&self, effect: &Effect) -> Outcome {
        match effect {
            Effect::CreateCrd(create) => {
                let path = path(create.cluster.as_str(), Kind::Crd);
                let body = Bytes::copy_from_slice(create.body.as_str().as_bytes());
                let call = Call { method: Method::POST, path: &path, content_type: JSON, body };
                outcome(self.ask(Kind::Crd, &create.cluster, &create.name, call).await)
            }
            Effect::ReadApiBinding(key) => outcome(self.read(Kind::ApiBinding, &key.cluster, &key.name).await),
            Effect::ReadCrd(read) => outcome(self.read(Kind::Crd, &read.cluster, &read.name).await),
            Effect::PatchLogicalCluster(patch) => self.patch(Kind::LogicalCluster, patch).await,
            Effect::PatchApiBindingStatus(patch) => self.patch(Kind::ApiBinding, patch).await,
            Effect::Requeue(_) => Outcome::NoAnswer("nothing to carry out".into()),
        }
    }

    /// A consistent read: without `resourceVersion`.
    async fn read(&self, kind: Kind, cluster: &ClusterName, name: &str) -> Result<Object, Refusal> {
        let path = format!("{}/{}", path(cluster.as_str(), kind), encoded(name));
        self.ask(kind, cluster, name, Call::get(&path)).await
    }

    async fn patch(&self, kind: Kind, patch: &Patch) -> Outcome {
        let mut path = format!("{}/{}", path(patch.cluster.as_str(), kind), encoded(&patch.name));
        if !patch.subresource.is_empty() {
            path = format!("{path}/{}", patch.subresource);
        }
        path = format!("{path}?fieldManager={}&force={}", encoded(&patch.field_manager), patch.force);
        let body = Bytes::copy_from_slice(patch.body.as_str().as_bytes());
        let call = Call { method: Method::PATCH, path: &path, content_type: APPLY, body };
        match self.ask(kind, &patch.cluster, &patch.name, call).await {
            Err(Refusal::Status(status)) if status.code == Some(409) => {
                match self.read(kind, &patch.cluster, &patch.name).await {
                    Ok(current) => Outcome::Conflict { status, current: Some(Box::new(current)) },
                    Err(Refusal::Status(gone)) if gone.code == Some(404) => Outcome::Conflict { status, current: None },
                    Err(why) => Outcome::NoAnswer(format!("a conflict, and then: {why}")),
                }
            }
            answer => outcome(answer),
        }
    }

    /// Asks for something that is answered with this object, and no other one: it would be taken in as what is there.
    async fn ask(&self, kind: Kind, cluster: &ClusterName, name: &str, call: Call<'_>) -> Result<Object, Refusal> {
        let body = self.server.ask(call, self.limit).await?;
        let text = std::str::from_utf8(&body).map_err(Refusal::no_answer)?;
        let object = Object::from_json(kind, text)
            .map_err(|error| Refusal::no_answer(format!("an answer that cannot be read: {error}")))?;
        let (key, asked) = (object.key(), BindingKey::new(cluster.clone(), name));
        if key != asked {
            return Err(Refusal::no_answer(format!("an answer about {key}, not {asked}")));
        }
        Ok(object)
    }
}

fn outcome(answer: Result<Object, Refusal>) -> Outcome {
    match answer {
        Ok(object) => Outcome::done(object),
        Err(Refusal::Status(status)) => Outcome::Refused(status),
        Err(other) => Outcome::NoAnswer(other.to_string()),
    }
}
