//! The laws: what always holds, each as a function that says what is wrong where it does not.
//!
//! They are asked of generated worlds (`tests/laws.rs`), and of every step of a judged
//! [`Simulation`](super::Simulation). `ARCHITECTURE.md` says where the first wording of a law asked for
//! too much.

mod bounds;
mod confined;
mod exclusive;
mod known;
mod model;
mod monotone;
mod names;
mod plans;
mod reached;
mod server;
mod triggers;
mod woken;

use std::fmt::{self, Debug};

pub use bounds::Bounds;
pub use confined::confined;
pub use exclusive::{Owners, newly_listed};
pub use known::{indexed, late};
pub use model::Model;
pub use monotone::monotone;
pub use names::named_apart;
pub use plans::{deterministic, predicts, settles};
pub use reached::{claimed, reached, rested};
pub use server::{Course, Exchange, Reads, Server, run, run_with};
pub use woken::woken;

use crate::api::BindingKey;
use crate::snapshot::{Schema, Snapshot};

/// The laws by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Law {
    /// Nothing panics, whatever it is given.
    Total,
    /// The same arguments give the same bytes, in whatever order a snapshot was built.
    Deterministic,
    /// A plan foresees what its pass will do.
    Predicts,
    /// A pass that succeeded leaves nothing to do.
    Settles,
    /// A pass ends.
    Bounded,
    /// No two bindings of a workspace list one resource as bound.
    Exclusive,
    /// A pass writes only what is its own, and leaves alone what others hold.
    Confined,
    /// What was reached is not lost again.
    Monotone,
    /// Whom a change concerns is woken.
    Woken,
    /// Every index equals the one built from scratch.
    Indexed,
    /// Late, doubled, reordered and coalesced events end in the same snapshot.
    Late,
    /// A crash after whatever effect changes nothing of the end.
    Recovers,
    /// When faults stop and inputs rest, everything comes to rest.
    Stable,
}

impl Law {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Total,
        Self::Deterministic,
        Self::Predicts,
        Self::Settles,
        Self::Bounded,
        Self::Exclusive,
        Self::Confined,
        Self::Monotone,
        Self::Woken,
        Self::Indexed,
        Self::Late,
        Self::Recovers,
        Self::Stable,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Deterministic => "deterministic",
            Self::Predicts => "predicts",
            Self::Settles => "settles",
            Self::Bounded => "bounded",
            Self::Exclusive => "exclusive",
            Self::Confined => "confined",
            Self::Monotone => "monotone",
            Self::Woken => "woken",
            Self::Indexed => "indexed",
            Self::Late => "late",
            Self::Recovers => "recovers",
            Self::Stable => "stable",
        }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A law that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("law `{law}` is broken: {why}")]
#[non_exhaustive]
pub struct Broken {
    /// Which.
    pub law: Law,
    /// What was seen, and where.
    pub why: String,
}

impl Broken {
    /// That this law did not hold.
    pub fn new(law: Law, why: impl Into<String>) -> Self {
        Self { law, why: why.into() }
    }
}

/// What a law says of what it was asked of: nothing, or what is wrong.
pub type Verdict = Result<(), String>;

fn same<T: PartialEq + Debug + ?Sized>(what: impl fmt::Display, left: &T, right: &T) -> Verdict {
    if left == right { Ok(()) } else { Err(format!("{what}:\n  {left:?}\nis not\n  {right:?}")) }
}

/// The schemas that a binding's export offers, each with whether it is stored in its CRD.
fn offers<'a>(snapshot: &'a Snapshot, key: &BindingKey) -> Vec<(bool, &'a Schema)> {
    let target = snapshot.binding(key).and_then(|binding| binding.target.clone());
    let exports = target.map(|target| snapshot.exports_at(&target)).unwrap_or_default();
    let mut offered = Vec::new();
    for (origin, at) in exports {
        let export = snapshot.export(origin, &at.cluster, &at.name);
        for entry in export.into_iter().flat_map(|export| &export.resources) {
            let schema = snapshot.schema(&at.cluster, &entry.schema);
            offered.extend(schema.map(|schema| (entry.storage.crd.is_some(), schema)));
        }
    }
    offered
}
