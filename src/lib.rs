//! kcp's APIBinding controller as a pure, synchronous library.
//!
//! [kcp](https://www.kcp.io) is a control plane with many isolated workspaces, its logical clusters.
//! A provider offers APIs with an APIExport and APIResourceSchemas; a consumer gets them into its
//! workspace with an APIBinding. One controller makes that so: it takes locks, so that no two
//! bindings own the same resource, creates the shared CRDs behind the scenes, and reports in the
//! binding's status. This crate is that controller as a function over a snapshot. It does no I/O, has
//! no clock, and needs no runtime; it can be embedded, tested with properties, and asked why.
//!
//! # The contract: plan, act, observe
//!
//! 1. **Plan.** [`reconcile`] gives the new binding and all effects that lead there, in order. It is
//!    pure and total: the time and the layout of locks are properties of the [`snapshot::Snapshot`],
//!    the same arguments give the same bytes, and nothing that can be parsed makes it panic.
//! 2. **Act.** Carry out the *first* effect. Effects are data ([`effect::Effect`]): they hold the exact
//!    body, field manager, force flag and precondition, and need no snapshot to be carried out.
//! 3. **Observe.** Feed what came of it back, and plan again, until nothing is left to carry out.
//!
//! Planning anew after every observation is what makes it safe: a lock that was lost while it was
//! being taken, a CRD that somebody else created, a conflict, are just other snapshots. It also makes
//! a crash harmless: nothing is remembered but the snapshot, which watching rebuilds.
//!
//! [`pass::Pass`] is that loop as a machine that is polled, so that any executor can drive it,
//! synchronous or not. It keeps what has to be kept between two plans, and ends in when to look again:
//!
//! ```
//! use apibinding::api::{ApiBinding, Condition};
//! use apibinding::effect::{Effect, Outcome};
//! use apibinding::pass::{Pass, Step};
//! use apibinding::snapshot::{Change, Layout, Snapshot};
//!
//! // 0. A snapshot: here of one binding, whose export does not exist.
//! let mut binding: ApiBinding = serde_json::from_str(r#"{
//!     "metadata": {"name": "geese", "annotations": {"kcp.io/cluster": "meadow"}, "resourceVersion": "7"},
//!     "spec": {"reference": {"export": {"path": "root:farm", "name": "geese"}}},
//!     "status": {"phase": "Binding"}
//! }"#)?;
//! let mut snapshot = Snapshot::new(Layout::Split);
//! snapshot.set_unix_time(1_780_315_200);
//! snapshot.apply(Change::put(binding.clone()));
//!
//! let mut pass = Pass::new(binding.key());
//! let retry = loop {
//!     match pass.poll(&snapshot) {                                     // 1. plan
//!         Step::Act(effect) => {
//!             let outcome = match &effect {                            // 2. act
//!                 Effect::PatchApiBindingStatus(patch) => {
//!                     let body = patch.body.to_value();
//!                     binding.status = serde_json::from_value(body["status"].clone())?;
//!                     binding.metadata.resource_version = Some("8".into());
//!                     Outcome::done(binding.clone())
//!                 }
//!                 other => Outcome::NoAnswer(format!("nobody here does this: {other}")),
//!             };
//!             for change in pass.observe(outcome) {                    // 3. observe
//!                 snapshot.apply(change);
//!             }
//!         }
//!         Step::Done(retry) => break retry,
//!         _ => unreachable!("there are no other steps yet"),
//!     }
//! };
//!
//! let status = &snapshot.binding(&binding.key()).ok_or("gone")?.status;
//! let valid = status.condition(Condition::API_EXPORT_VALID).ok_or("not set")?;
//! assert_eq!(valid.message, "APIExport root:farm|geese not found");
//! assert_eq!(retry, apibinding::effect::Retry::Forget); // until an event wakes it
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! That is one key, alone. A change that a pass makes concerns others as well, so whoever processes
//! many keys passes what [`Snapshot::apply`](snapshot::Snapshot::apply) gives to [`wakeup::wakeup`], and
//! its keys to the work [`queue`]; this goes for changes that `observe` gives just as for watch events,
//! since when the watch tells the same later, it is no news any more. A start begins with the keys of
//! [`wakeup::all`], and so does a list after a watch that broke. `examples/embed.rs` puts them all
//! together. [`explain`] tells why a binding is not bound.
//!
//! # Features
//!
//! None is on by default, and the core brings serde, k8s-openapi and persistent maps, no I/O.
//!
//! * `cli`: the program `apibinding`, which plans and explains dumps of a kcp.
//! * `proptest`: generators of worlds for property tests, in `strategies`.
//! * `sim`: an in-memory kcp that answers effects and other requests as a real one does, in `sim`.
//! * `shell`: the controller that runs against a kcp, in `shell`.
//! * `latest`: k8s-openapi's newest Kubernetes version. k8s-openapi leaves that choice to the program:
//!   turn this on, or a feature like `v1_34` of a k8s-openapi dependency of your own.
//!
//! # Words
//!
//! "SPEC 4.8" in these documents is a section of the specification that this crate was written from. It
//! is not part of the repository; the recorded cases in `tests/data` say the same in data. "D6" is a
//! place where this crate deviates from the original on purpose: see `DEVIATIONS.md`.

pub mod api;
pub mod effect;
pub mod explain;
#[cfg(test)]
mod fixtures;
#[cfg(all(feature = "sim", feature = "shell"))]
pub mod front;
pub mod pass;
pub mod queue;
mod reconcile;
#[cfg(feature = "shell")]
pub mod shell;
#[cfg(feature = "sim")]
pub mod sim;
pub mod snapshot;
#[cfg(feature = "proptest")]
pub mod strategies;
pub mod wakeup;

/// Kubernetes' own types, of which some are in this crate's interface: times, statuses, metadata.
pub use k8s_openapi;
pub use reconcile::{FIELD_MANAGER, reconcile, release};
