//! An in-memory kcp, and a world around it in which everything that can go wrong goes wrong.
//!
//! * [`Kcp`] is what kcp's API server does with objects of the six kinds, without a network, a clock or
//!   chance: requests in, answers out.
//! * [`Simulation`] is a whole world that runs: controllers with workers, the other parties, users, watches,
//!   and [faults](Fault). A [`Scenario`] decides all of it; the same one gives the same trace, to the byte.
//! * [`Builder`] makes worlds, and what users do in them.
//! * [`laws`] are what always holds. A [judged](Simulation::judged) simulation asks them at every step.

mod agenda;
mod builder;
mod chance;
mod faults;
mod judge;
mod kcp;
pub mod laws;
mod parties;
mod process;
mod recovery;
mod scenario;
mod shard;
mod shrink;
mod simulation;
mod trial;
mod watch;
mod work;

use k8s_openapi::jiff::Timestamp;

#[cfg(feature = "shell")]
pub(crate) use agenda::Agenda;
pub use builder::{Builder, Deed};
pub use chance::Chance;
pub use faults::{Fault, Faults, UnknownFault};
#[cfg(feature = "shell")]
pub(crate) use kcp::Owners;
pub use kcp::{Answer, Event, Happened, Kcp, Preconditions, Request, Verb};
pub use laws::Broken;
#[cfg(feature = "shell")]
pub(crate) use parties::{Chore, Habits, Parties};
#[cfg(feature = "shell")]
pub(crate) use process::happened_since;
pub use scenario::Scenario;
pub use shrink::shrink;
pub use simulation::{Counts, Line, Simulation};
pub use trial::{Play, Report, play};

/// When simulated worlds begin, unless said otherwise: 2026-06-01T12:00:00Z.
pub const PRESENT: Timestamp = Timestamp::constant(1_780_315_200, 0);
