//! What a plan finds on its way, for those who want to know why.
//!
//! A plan is generic over its trace: the one that is not interested costs nothing.

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::names::Conflict;
use crate::api::{ClusterName, ClusterPath, GroupResource, IdentityHash, Text};
use crate::snapshot::{ExportKey, Layer, Origin};

/// Hears of what a plan finds.
pub(crate) trait Trace {
    fn note(&mut self, finding: impl FnOnce() -> Finding);
}

/// Not interested.
pub(crate) struct Untraced;

impl Trace for Untraced {
    fn note(&mut self, _: impl FnOnce() -> Finding) {}
}

/// What a plan finds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Finding {
    Export { path: ClusterPath, name: Text, found: ExportFound },
    Identity(IdentityHash),
    Schema { cluster: ClusterName, name: Text, found: Option<(GroupResource, Text)> },
    Home(HomeFound),
    Lock(GroupResource, LockFound),
    Conflict { resource: GroupResource, conflict: Conflict },
    Crd { resource: GroupResource, uid: Text, found: CrdFound },
    Claim { resource: GroupResource, identity: IdentityHash, found: ClaimFound },
}

/// What came of looking an export up.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ExportFound {
    /// One, in this set.
    One {
        /// The set that answered.
        origin: Origin,
        /// Which export.
        export: ExportKey,
    },
    /// None in either set.
    None,
    /// Several in the set that answered.
    Several {
        /// The set that answered.
        origin: Origin,
        /// Which exports.
        exports: Vec<ExportKey>,
    },
}

/// What came of looking for the locks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum HomeFound {
    /// They can be read.
    Readable,
    /// This controller's own annotation is no map of locks: it is written anew, from what is bound
    /// (D18).
    #[serde(rename_all = "camelCase")]
    WrittenAnew {
        /// Which annotation.
        annotation: Text,
        /// Why it cannot be read.
        message: Text,
    },
    /// There is no LogicalCluster, or one without resourceVersion.
    Missing,
    /// A lock annotation is missing (single layout) or is no map of locks.
    #[serde(rename_all = "camelCase")]
    Unreadable {
        /// Which annotation.
        annotation: Text,
        /// Why.
        message: String,
    },
}

/// Who holds a resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum LockFound {
    /// The binding itself, already.
    Own,
    /// Nobody: the binding takes it.
    Free,
    /// A binding that seems not to exist: the server is asked, and if it does not, the binding takes it.
    #[serde(rename_all = "camelCase")]
    Abandoned {
        /// The name of that binding.
        binding: Text,
    },
    /// The binding takes it over a CRD lock that is over, if the server knows no such CRD.
    #[serde(rename_all = "camelCase")]
    TakenOver {
        /// When that lock ended.
        ended: Timestamp,
    },
    /// Somebody else.
    #[serde(rename_all = "camelCase")]
    Held {
        /// The binding; empty if a CRD holds it.
        binding: Text,
        /// True if a CRD holds it.
        crd: bool,
        /// The annotation that says so; `None`: the status of the binding that holds it.
        layer: Option<Layer>,
        /// When the lock is over, if its CRD does not come.
        over: Option<Timestamp>,
        /// True if the CRD for which it is held exists.
        crd_exists: bool,
    },
}

/// The bound CRD of a resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum CrdFound {
    /// Established.
    Serving,
    /// There, but not established, or terminating.
    NotEstablished,
    /// Not there: it is created.
    Absent,
    /// It cannot be made; why.
    CannotBeMade(String),
    /// The server refused it as invalid; why.
    Invalid(Text),
    /// It could not be created.
    Failed,
}

/// What came of a claim.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ClaimFound {
    /// No export of that identity has the resource and its schema.
    NoSchema,
    /// The schema of one has.
    Schema {
        /// The schema's cluster.
        cluster: ClusterName,
        /// The schema's name.
        name: Text,
        /// The state of its bound CRD.
        crd: CrdFound,
    },
}
