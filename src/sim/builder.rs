//! Worlds, and what users do in them, from a seed.

mod deeds;
mod fleet;
mod locks;
mod objects;
mod plan;
mod pool;
mod settle;
#[cfg(test)]
mod tests;
mod vandals;

use std::fmt;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::{Chance, PRESENT as START, Request, Verb};
use crate::snapshot::Layout;
use deeds::{DEEDS, Drawing};
use plan::Plan;
use vandals::VANDALS;

/// A recipe for worlds: of workspaces with bindings and locks, and of providers with exports and
/// schemas.
///
/// There are two sorts. A *crowded* world is small and everybody in it is in somebody's way: exports
/// overlap, names clash, locks are left over, things are missing that come later or never. What is
/// not said of it is drawn. In the other sort every binding minds its own business, and there may be
/// a hundred thousand of them. In both, no two bindings of a workspace list one resource as bound.
///
/// The same recipe makes the same bytes. What is [done](Builder::deeds) in a world is drawn apart from
/// the world itself.
///
/// ```
/// use apibinding::sim::{Builder, Kcp};
/// use apibinding::snapshot::Origin;
///
/// let builder = Builder::new(7);
/// let mut kcp = Kcp::new(7);
/// kcp.set_now(Builder::START);
/// kcp.load(Origin::Local, builder.build());
/// for deed in builder.deeds(20) {
///     kcp.set_now(Builder::START + deed.after);
///     let refused = kcp.handle(deed.request.clone()).is_err();
///     println!("{deed}{}", if refused { " (refused)" } else { "" });
/// }
///
/// let fleet = Builder::new(7).crowded(false).bound(true).workspaces(20).bindings(200);
/// let is_binding = |object: &serde_json::Value| object["kind"] == "APIBinding";
/// assert_eq!(fleet.build().filter(is_binding).count(), 200);
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    seed: u64,
    layout: Layout,
    crowded: bool,
    bound: Option<bool>,
    workspaces: Option<usize>,
    bindings: Option<usize>,
    exports: Option<usize>,
    resources: Option<usize>,
    claims: Option<usize>,
    schema_bytes: usize,
}

impl Builder {
    /// When built worlds begin: 2026-06-01T12:00:00Z. Set a [`Kcp`](super::Kcp) to it before it is given
    /// their objects.
    pub const START: Timestamp = START;

    /// A crowded world of this seed, with the split layout of locks.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            layout: Layout::Split,
            crowded: true,
            bound: None,
            workspaces: None,
            bindings: None,
            exports: None,
            resources: None,
            claims: None,
            schema_bytes: 0,
        }
    }

    /// How lock annotations are laid out.
    #[must_use]
    pub fn layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }

    /// Whether names clash, or every binding minds its own business.
    #[must_use]
    pub fn crowded(self, crowded: bool) -> Self {
        Self { crowded, ..self }
    }

    /// True: the controller has been there and done all that it could; it finds nothing to do at
    /// [`Builder::START`]. Such a world has no schema whose CRD the server refuses: that would be tried
    /// with each look. False: it has not looked at any binding yet. Without a word a crowded world
    /// has bindings of both sorts and some that are half done, and the other one only new ones.
    #[must_use]
    pub fn bound(self, bound: bool) -> Self {
        Self { bound: Some(bound), ..self }
    }

    /// How many workspaces with bindings there are: else one to three, or ten.
    #[must_use]
    pub fn workspaces(self, workspaces: usize) -> Self {
        Self { workspaces: Some(workspaces.max(1)), ..self }
    }

    /// How many bindings there are in all, spread over the workspaces: else two to eight, or ten for
    /// each workspace. In a crowded world some come only later.
    #[must_use]
    pub fn bindings(self, bindings: usize) -> Self {
        Self { bindings: Some(bindings), ..self }
    }

    /// How many exports the bindings share: else one to four, or a hundred. An uncrowded world has at
    /// least as many as a workspace has bindings.
    #[must_use]
    pub fn exports(self, exports: usize) -> Self {
        Self { exports: Some(exports), ..self }
    }

    /// How many resources an export offers: else none to three, or three. In a crowded world there may
    /// not be as many to offer.
    #[must_use]
    pub fn resources(self, resources: usize) -> Self {
        Self { resources: Some(resources), ..self }
    }

    /// How many claims an export makes on what others offer: else none to two, or none.
    #[must_use]
    pub fn claims(self, claims: usize) -> Self {
        Self { claims: Some(claims), ..self }
    }

    /// About how large the OpenAPI schema of a version is: else as small as can be.
    #[must_use]
    pub fn schema_bytes(self, schema_bytes: usize) -> Self {
        Self { schema_bytes, ..self }
    }

    /// The objects of the world, as [`Kcp::load`](super::Kcp::load) takes them: with uids, versions and
    /// managed fields. They are written as they are asked for, except in a crowded world that is bound.
    pub fn build(&self) -> impl Iterator<Item = Value> + use<> {
        let objects = Plan::of(self).objects();
        let (settled, written) = match (self.crowded, self.bound) {
            // What stands in whose way, nobody knows better than the controller.
            (true, Some(true)) => {
                let seed = Chance::of(self.seed, "settle").any();
                (settle::settle(objects, self.layout, seed), None)
            }
            _ => (Vec::new(), Some(objects)),
        };
        settled.into_iter().chain(written.into_iter().flatten())
    }

    /// What users and providers do in the world, in the order of time.
    ///
    /// They know only what was there at the start and what they did themselves, so that some of it is
    /// refused, as it is with real ones. None touches a lock or a binding's status.
    pub fn deeds(&self, count: usize) -> Vec<Deed> {
        Drawing::run(Plan::of(self), Chance::of(self.seed, "deeds"), count, &DEEDS)
    }

    /// What breaks the ground that the laws stand on: locks edited, corrupted and removed by hand, and
    /// the status of bindings.
    pub fn vandals(&self, count: usize) -> Vec<Deed> {
        Drawing::run(Plan::of(self), Chance::of(self.seed, "vandals"), count, &VANDALS)
    }
}

/// What somebody wants of the server at some time.
///
/// ```
/// use std::time::Duration;
///
/// use apibinding::api::Kind;
/// use apibinding::sim::{Deed, Request};
///
/// let request = Request::delete(Kind::ApiBinding, "meadow", "geese");
/// let deed = Deed { after: Duration::from_secs(2), request };
/// assert_eq!(deed.to_string(), "delete APIBinding meadow|geese");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Deed {
    /// When, counted from the start.
    pub after: Duration,
    /// What is asked for.
    pub request: Request,
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { kind, cluster, name, subresource, verb, .. } = &self.request;
        let (what, body) = match verb {
            Verb::Get => ("get", None),
            Verb::List => ("list", None),
            Verb::Create(body) => ("create", Some(body)),
            Verb::Update(_) => ("update", None),
            Verb::Merge(patch) => ("merge", Some(patch)),
            Verb::Apply { .. } => ("apply", None),
            Verb::Delete(_) => ("delete", None),
        };
        let of = if subresource.is_empty() { "" } else { " of " };
        // What is created has its name in the body.
        let named = body.and_then(|body| body.pointer("/metadata/name")).and_then(Value::as_str);
        let name = if name.is_empty() { named.unwrap_or_default() } else { name };
        write!(f, "{what} {subresource}{of}{kind} {cluster}|{name}")?;
        match verb {
            Verb::Merge(patch) => write!(f, " {patch}"),
            _ => Ok(()),
        }
    }
}
