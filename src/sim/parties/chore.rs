//! What is about to be done.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::admission::Admission;
use super::homes::Seen;
use crate::api::{BindingKey, ClusterName, Kind};
use crate::sim::kcp::{Request, Verb, text_at};

/// Something that another party is about to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Chore {
    /// Somebody looks at an object, and does what is to be done about it.
    Look(Duty, BindingKey),
    /// The clean-up of the single layout goes on with what it saw of the bindings before.
    CleanUp(ClusterName, Arc<[Seen]>),
    /// The controller of claims sends what it made of a binding that it read before.
    Claims(BindingKey, Box<Value>),
    /// The admission of a CRD takes its next step.
    Admission(Box<Admission>),
    /// A CRD that was admitted comes to the store.
    Create(Box<Request>),
}

/// What is looked after. To look once more changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Duty {
    /// The locks in a LogicalCluster.
    CleanUp,
    /// The same, when the first of them ends.
    Expiry,
    /// The last step of a LogicalCluster's deletion.
    EndHome,
    /// The names of a CRD.
    Names,
    /// Whether a CRD is served.
    Establish,
    /// The steps of a CRD's deletion.
    EndCrd,
    /// Whether a bound CRD has users.
    Unused,
    /// The last step of a binding's deletion.
    EndBinding,
    /// The claims of a binding.
    Claims,
    /// The identity of an export.
    Identity,
    /// The cache server's copy of an object.
    Copy(Kind),
}

impl Duty {
    /// How many milliseconds it takes somebody to look.
    pub(super) fn pace(self) -> Range<u64> {
        match self {
            Self::Names => 1..20,
            Self::Establish | Self::Expiry | Self::Claims => 2..50,
            Self::CleanUp => 5..300,
            Self::Copy(_) => 10..1000,
            Self::Unused | Self::EndCrd => 10..2000,
            Self::Identity | Self::EndBinding | Self::EndHome => 50..3000,
        }
    }
}

impl fmt::Display for Chore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Look(duty, key) => match duty {
                Duty::CleanUp => write!(f, "clean-up of LogicalCluster {}", key.cluster),
                Duty::Expiry => write!(f, "clean-up of LogicalCluster {} at the end of a lock", key.cluster),
                Duty::EndHome => write!(f, "end of LogicalCluster {}", key.cluster),
                Duty::Names => write!(f, "names of CRD {key}"),
                Duty::Establish => write!(f, "establishing of CRD {key}"),
                Duty::EndCrd => write!(f, "end of CRD {key}"),
                Duty::Unused => write!(f, "look for users of CRD {key}"),
                Duty::EndBinding => write!(f, "end of APIBinding {key}"),
                Duty::Claims => write!(f, "claims of APIBinding {key}"),
                Duty::Identity => write!(f, "identity of APIExport {key}"),
                Duty::Copy(kind) => write!(f, "copy of {kind} {key} in the cache server"),
            },
            Self::CleanUp(cluster, _) => write!(f, "clean-up of LogicalCluster {cluster}, as bindings were read"),
            Self::Claims(key, _) => write!(f, "claims of APIBinding {key}, as they were read"),
            Self::Admission(admission) => admission.fmt(f),
            Self::Create(request) => write!(f, "creation of CRD {}|{}", request.cluster, name_in(request)),
        }
    }
}

/// The name of what a request creates.
pub(super) fn name_in(request: &Request) -> &str {
    match &request.verb {
        Verb::Create(body) => text_at(body, &["metadata", "name"]),
        _ => &request.name,
    }
}
