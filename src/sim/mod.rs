//! An in-memory kcp, and the laws that hold whatever it answers.
//!
//! * [`Kcp`] is what kcp's API server does with objects of the six kinds, without a network, a clock or
//!   chance: requests in, answers out.
//! * [`laws`] are what always holds.

mod chance;
mod kcp;
pub mod laws;

pub use chance::Chance;
pub use kcp::{Answer, Event, Happened, Kcp, Preconditions, Request, Verb};
pub use laws::Broken;
