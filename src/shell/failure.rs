//! Why a controller cannot run.

use thiserror::Error;

use crate::api::{ClusterName, Kind};
use crate::snapshot::Layout;

/// What waiting does not mend.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Failure {
    /// 401 before anything was listed.
    #[error(
        "the server does not know who we are ({what}: {message}): check the credentials of the kubeconfig's context, \
         or the token file"
    )]
    Unauthorized {
        /// What was asked for.
        what: String,
        /// The server's words.
        message: String,
    },
    /// 403.
    #[error(
        "the server does not let us do that ({what}: {message}): the controller needs a user that may list over all \
         logical clusters, such as that of the context `shard-base` of kcp's admin kubeconfig, in the group \
         system:masters"
    )]
    Forbidden {
        /// What was asked for.
        what: String,
        /// The server's words.
        message: String,
    },
    /// 404 for one kind, where another one is served.
    #[error(
        "the server does not have {kind} ({what}: {message}), though it has others: is it a kcp, of a version that \
         serves {}, and is the address that of a shard, without /clusters/...?",
        kind.api_version()
    )]
    NotServed {
        /// The kind.
        kind: Kind,
        /// What was asked for.
        what: String,
        /// The server's words.
        message: String,
    },
    /// The server does not do what it is asked for, or does not answer.
    #[error("the server gave no answer that is of use ({what}: {message}): is it a kcp, and ready?")]
    NoAnswer {
        /// What was asked for.
        what: String,
        /// The server's words, or what went wrong.
        message: String,
    },
    /// Locks are kept in another way.
    #[error(
        "the LogicalCluster of {cluster} keeps its locks in the layout {found}, but this was started for the \
         layout {wanted}: start it with --layout {found} (the releases of kcp so far have the single one)",
        found = name(*found), wanted = name(*wanted)
    )]
    Layout {
        /// Whose LogicalCluster it is.
        cluster: ClusterName,
        /// What it shows.
        found: Layout,
        /// What was asked for.
        wanted: Layout,
    },
    /// The address at which it is to be watched cannot be had.
    #[error("cannot listen on {address} for metrics and probes: {why}")]
    Address {
        /// The address.
        address: String,
        /// The system's words.
        why: String,
    },
    /// Something that cannot be has happened.
    #[error("a part of the controller has ended: {0}; this is a fault of the program, which should be reported")]
    Broken(String),
}

fn name(layout: Layout) -> &'static str {
    match layout {
        Layout::Split => "split",
        Layout::Single => "single",
    }
}
