//! An in-memory kcp, and a world around it in which everything that can go wrong goes wrong.
//!
//! * [`Kcp`] is what kcp's API server does with objects of the six kinds, without a network, a clock or
//!   chance: requests in, answers out.

mod chance;
mod kcp;

pub use chance::Chance;
pub use kcp::{Answer, Event, Happened, Kcp, Preconditions, Request, Verb};
