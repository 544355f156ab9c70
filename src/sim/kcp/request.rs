//! Requests and answers as data.

use std::sync::Arc;

use serde_json::Value;

use crate::api::{ClusterName, Kind, Text};
use crate::snapshot::Origin;

/// Something that a client wants of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The server itself, or its cache server, which only reads.
    pub origin: Origin,
    /// The kind.
    pub kind: Kind,
    /// The logical cluster, by its name; `*` for all, which only lists.
    pub cluster: ClusterName,
    /// The object; empty for lists and creations.
    pub name: Text,
    /// `status`, or empty for the object itself.
    pub subresource: Text,
    /// What to do.
    pub verb: Verb,
    /// Under whose name fields are written.
    pub field_manager: Text,
    /// Answer as if, and change nothing.
    pub dry_run: bool,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verb {
    /// Read the object.
    Get,
    /// Read all objects.
    List,
    /// Create this object.
    Create(Value),
    /// Put this in the place of the object.
    Update(Value),
    /// Change the object by a JSON merge patch.
    Merge(Value),
    /// Change the object by a server-side apply.
    Apply {
        /// What the applier wants.
        body: Value,
        /// Whether fields are taken from other managers.
        force: bool,
    },
    /// Delete the object.
    Delete(Preconditions),
}

/// What an object has to be to be deleted; empty: whatever it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// Its uid.
    pub uid: Text,
    /// Its resourceVersion.
    pub resource_version: Text,
}

/// What the server answers when it does not refuse.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// 200, or 201 for something new.
    pub code: u16,
    /// The object, or a list, or the `Status` of a deletion. Without `managedFields`.
    pub body: Arc<Value>,
}

impl Request {
    fn new(kind: Kind, cluster: impl Into<ClusterName>, name: impl Into<Text>, verb: Verb) -> Self {
        Self {
            origin: Origin::Local,
            kind,
            cluster: cluster.into(),
            name: name.into(),
            subresource: Text::default(),
            verb,
            field_manager: Text::default(),
            dry_run: false,
        }
    }

    /// Reads an object.
    pub fn get(kind: Kind, cluster: impl Into<ClusterName>, name: impl Into<Text>) -> Self {
        Self::new(kind, cluster, name, Verb::Get)
    }

    /// Lists the objects of a cluster; of all, if it is `*`.
    pub fn list(kind: Kind, cluster: impl Into<ClusterName>) -> Self {
        Self::new(kind, cluster, "", Verb::List)
    }

    /// Creates an object.
    pub fn create(kind: Kind, cluster: impl Into<ClusterName>, body: Value) -> Self {
        Self::new(kind, cluster, "", Verb::Create(body))
    }

    /// Replaces an object.
    pub fn update(kind: Kind, cluster: impl Into<ClusterName>, name: impl Into<Text>, body: Value) -> Self {
        Self::new(kind, cluster, name, Verb::Update(body))
    }

    /// Changes an object by a JSON merge patch.
    pub fn merge(kind: Kind, cluster: impl Into<ClusterName>, name: impl Into<Text>, patch: Value) -> Self {
        Self::new(kind, cluster, name, Verb::Merge(patch))
    }

    /// Changes an object by a server-side apply, for which a [field manager](Request::managed_by) is
    /// needed.
    pub fn apply(kind: Kind, cluster: impl Into<ClusterName>, name: impl Into<Text>, body: Value, force: bool) -> Self {
        Self::new(kind, cluster, name, Verb::Apply { body, force })
    }

    /// Deletes an object, whatever it is.
    pub fn delete(kind: Kind, cluster: impl Into<ClusterName>, name: impl Into<Text>) -> Self {
        Self::new(kind, cluster, name, Verb::Delete(Preconditions::default()))
    }

    /// The same under this field manager.
    pub fn managed_by(self, field_manager: impl Into<Text>) -> Self {
        Self { field_manager: field_manager.into(), ..self }
    }

    /// The same for the subresource `status`.
    pub fn of_status(self) -> Self {
        Self { subresource: "status".into(), ..self }
    }

    /// The same, but nothing is changed.
    pub fn dry_run(self) -> Self {
        Self { dry_run: true, ..self }
    }
}
