//! What is to be done, and what came of it: data, for others to carry out and to answer.
//!
//! # For executors
//!
//! | effect | request, below `/clusters/<cluster>` |
//! | --- | --- |
//! | [`CreateCrd`](Effect::CreateCrd) | `POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions` |
//! | [`ReadApiBinding`](Effect::ReadApiBinding) | `GET /apis/apis.kcp.io/v1alpha2/apibindings/<name>`, without `resourceVersion` |
//! | [`ReadCrd`](Effect::ReadCrd) | `GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/<name>`, the same |
//! | [`PatchLogicalCluster`](Effect::PatchLogicalCluster) | `PATCH /apis/core.kcp.io/v1alpha1/logicalclusters/<name>` |
//! | [`PatchApiBindingStatus`](Effect::PatchApiBindingStatus) | `PATCH /apis/apis.kcp.io/v1alpha2/apibindings/<name>/status` |
//!
//! A `PATCH` has the content type `application/apply-patch+yaml` and the parameters `fieldManager` and
//! `force`; bodies are sent as they are. [`Requeue`](Effect::Requeue) is only in what
//! [`reconcile`](crate::reconcile) gives; a pass ends in it and never asks for it.
//!
//! | answer | outcome |
//! | --- | --- |
//! | 200, 201 | [`Done`](Outcome::Done) with the object of the answer |
//! | 409 `Conflict` to a `PATCH` | [`Conflict`](Outcome::Conflict) with the object read again; 404 for that: `None` |
//! | the same, and that read fails | [`NoAnswer`](Outcome::NoAnswer) |
//! | any other refusal with a `Status`, 409 `AlreadyExists` among them | [`Refused`](Outcome::Refused) |
//! | a refusal without a `Status`, a time-out, a broken connection | [`NoAnswer`](Outcome::NoAnswer) |

use std::fmt;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::api::{BindingKey, ClusterName, GroupResource, Json, Object, Text};
use crate::queue::Next;

/// One thing to do. Nothing in it needs the snapshot to be carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Effect {
    /// Create a bound CRD in `system:bound-crds`.
    CreateCrd(CreateCrd),
    /// Ask the server, with a consistent read, whether a binding exists, and with which uid.
    ReadApiBinding(BindingKey),
    /// Ask the server, with a consistent read, whether a workspace has a CRD.
    ReadCrd(ReadCrd),
    /// Write locks: a server-side apply to a LogicalCluster.
    PatchLogicalCluster(Patch),
    /// Commit the status: a server-side apply to the status of a binding.
    PatchApiBindingStatus(Patch),
    /// Look at the binding again, although nothing may happen to it. Never `Forget`.
    Requeue(Retry),
}

impl Effect {
    /// True if it asks the server and changes nothing.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::ReadApiBinding(_) | Self::ReadCrd(_))
    }
}

/// The bound CRD to create.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateCrd {
    /// Where: always `system:bound-crds`.
    pub cluster: ClusterName,
    /// Its name: the uid of its schema.
    pub name: Text,
    /// The logical cluster of its schema.
    pub schema_cluster: ClusterName,
    /// The name of its schema.
    pub schema_name: Text,
    /// The whole object.
    pub body: Json,
}

/// The CRD to ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadCrd {
    /// The workspace.
    pub cluster: ClusterName,
    /// The CRD's name: `resource.group`, or `resource.core`.
    pub name: Text,
    /// The resource for which it is asked.
    pub resource: GroupResource,
}

/// A server-side apply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Patch {
    /// The logical cluster of the object.
    pub cluster: ClusterName,
    /// The object's name.
    pub name: Text,
    /// `status`, or empty for the object itself.
    #[serde(default, skip_serializing_if = "Text::is_empty")]
    pub subresource: Text,
    /// Under whose name the fields are written.
    pub field_manager: Text,
    /// Whether fields are taken from other managers.
    pub force: bool,
    /// The precondition: the resourceVersion on which this was planned, which also stands in the
    /// body. Empty: there is none, since the object was read without one.
    #[serde(default, skip_serializing_if = "Text::is_empty")]
    pub resource_version: Text,
    /// The body as it goes over the wire.
    pub body: Json,
}

/// When a key is to be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Retry {
    /// When something happens to it; its back-off starts anew.
    Forget,
    /// At once.
    Now,
    /// Just after this time.
    After(Timestamp),
    /// After its back-off, which has grown.
    #[serde(rename_all = "camelCase")]
    Backoff {
        /// Not sooner than this from now, because the server said so.
        at_least: Option<Duration>,
    },
}

impl Retry {
    /// The end of a pass as a [queue](crate::queue) takes it. `at` puts a time on the queue's clock.
    ///
    /// `After` means just after: at the very time nothing would have changed yet.
    pub fn next(self, at: impl FnOnce(Timestamp) -> Duration) -> Next {
        match self {
            Self::Forget => Next::Forget,
            Self::Now => Next::Now,
            Self::After(time) => Next::At(at(time).saturating_add(Duration::from_millis(1))),
            Self::Backoff { at_least } => Next::Backoff { at_least: at_least.unwrap_or_default() },
        }
    }
}

/// What came of an effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Outcome {
    /// It was done, or found; the object as it is now.
    Done(Box<Object>),
    /// 409 for an apply, and what the object was when it was read again.
    Conflict {
        /// The answer.
        status: Box<Status>,
        /// The object; `None` if it is gone.
        current: Option<Box<Object>>,
    },
    /// The server refused, with this answer. For a read, `NotFound` is the answer "no".
    Refused(Box<Status>),
    /// No answer came; nobody knows whether it was done.
    NoAnswer(String),
}

impl Outcome {
    /// It was done, or found.
    pub fn done(object: impl Into<Object>) -> Self {
        Self::Done(Box::new(object.into()))
    }

    /// The server's answer, if it was none of success.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Conflict { status, .. } | Self::Refused(status) => Some(status),
            Self::Done(_) | Self::NoAnswer(_) => None,
        }
    }

    /// True if the server gave this reason.
    pub fn has_reason(&self, reason: &str) -> bool {
        self.status().and_then(|status| status.reason.as_deref()) == Some(reason)
    }

    /// The server's words; empty if there are none.
    pub fn message(&self) -> Text {
        self.status().and_then(|status| status.message.as_deref()).unwrap_or_default().into()
    }

    /// How long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds?;
        u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).map(Duration::from_secs)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateCrd(create) => write!(
                f,
                "create CustomResourceDefinition {}|{} of APIResourceSchema {}|{}",
                create.cluster, create.name, create.schema_cluster, create.schema_name
            ),
            Self::ReadApiBinding(key) => write!(f, "ask whether APIBinding {key} exists"),
            Self::ReadCrd(read) => {
                write!(f, "ask whether CustomResourceDefinition {}|{} exists", read.cluster, read.name)
            }
            Self::PatchLogicalCluster(patch) => write!(f, "apply locks to LogicalCluster {patch}"),
            Self::PatchApiBindingStatus(patch) => write!(f, "apply status to APIBinding {patch}"),
            Self::Requeue(retry) => write!(f, "look again {retry}"),
        }
    }
}

impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|{} as {}", self.cluster, self.name, self.field_manager)?;
        if self.force {
            f.write_str(", forced")?;
        }
        if !self.resource_version.is_empty() {
            write!(f, ", at resourceVersion {}", self.resource_version)?;
        }
        Ok(())
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forget => f.write_str("when something happens"),
            Self::Now => f.write_str("at once"),
            Self::After(time) => write!(f, "just after {time}"),
            Self::Backoff { at_least: None } => f.write_str("after its back-off"),
            Self::Backoff { at_least: Some(wait) } => {
                write!(f, "after its back-off, not sooner than in {} s", wait.as_secs())
            }
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(object) => write!(f, "done: {} {}", object.kind(), object.key()),
            Self::Conflict { current, .. } => match current {
                Some(_) => write!(f, "conflict: {}", self.message()),
                None => write!(f, "conflict, and gone: {}", self.message()),
            },
            Self::Refused(status) => {
                write!(f, "refused: {}: {}", status.reason.as_deref().unwrap_or("no reason given"), self.message())
            }
            Self::NoAnswer(why) => write!(f, "no answer: {why}"),
        }
    }
}

#[cfg(test)]
mod tests;
