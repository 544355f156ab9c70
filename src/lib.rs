//! kcp's APIBinding controller as a pure function.

pub mod api;
pub mod snapshot;
