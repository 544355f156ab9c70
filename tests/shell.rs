//! The controller that runs, against the front of a simulated kcp, over real sockets: whatever goes wrong between
//! the two, the end is the one to which the same world comes in a simulation.
//!
//! `SHELL_SEED` sets the seed of what is left to chance.

#![cfg(all(feature = "sim", feature = "shell"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

#[path = "shell/access.rs"]
mod access;
#[path = "shell/ends.rs"]
mod ends;
#[path = "shell/fatal.rs"]
mod fatal;
#[path = "shell/faults.rs"]
mod faults;
#[path = "shell/many.rs"]
mod many;
#[path = "shell/pairs.rs"]
mod pairs;
#[path = "shell/referee.rs"]
mod referee;
#[path = "shell/requests.rs"]
mod requests;
#[path = "shell/stage.rs"]
mod stage;
#[path = "shell/watched.rs"]
mod watched;
#[path = "shell/worlds.rs"]
mod worlds;
