//! Generated worlds, and what happens in them, for property tests: ours and those of whoever
//! embeds this crate.
//!
//! The names are few on purpose: two workspaces, three logical clusters with exports, three names
//! of bindings, resources whose names clash. So whatever is drawn meets something that was drawn
//! elsewhere: two bindings want one resource, a lock names a binding that is not there, a claim finds
//! its export. Objects are described by what they refer to, by position, and become objects with
//! names at the end; that keeps references whole while a failing case shrinks.
//!
//! * [`world`]: what can be seen at one moment.
//! * [`history`]: a world, and what those who live in it do, change by change.
//! * [`change`], [`outcome`]: events and answers that know nothing of the world that they meet.
//!
//! ```
//! use apibinding::strategies::world;
//! use proptest::strategy::{Strategy, ValueTree};
//! use proptest::test_runner::TestRunner;
//!
//! let world = world().new_tree(&mut TestRunner::deterministic()).map(|tree| tree.current());
//! assert!(world.is_ok_and(|world| world.snapshot().bindings() == world.bindings()));
//! ```

mod bindings;
mod events;
mod exports;
mod locks;
mod pools;
mod touch;
mod world;

pub use bindings::binding;
pub use events::{History, change, conflict, history, object, origin, outcome, refusal, resource_version};
pub use exports::{bound_crd, conversion, crd, export, schema};
pub use locks::lock_annotation;
pub use world::{PRESENT, World, logical_cluster, world};
