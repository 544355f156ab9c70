//! kcp's APIBinding controller as a pure function.

pub mod api;
pub mod effect;
pub mod explain;
pub mod pass;
pub mod queue;
mod reconcile;
pub mod snapshot;
pub mod wakeup;

pub use reconcile::{FIELD_MANAGER, reconcile, release};
