//! Hostile bytes, and what must hold whatever they are. Each target is a function of bytes that panics where it
//! does not.
//!
//! `cargo fuzz run TARGET --features libfuzzer` lets libFuzzer choose the bytes (nightly);
//! `tests/bounded.rs` makes them of the seeds, on any compiler.

mod changes;
mod cli;
mod locks;
mod objects;
mod reader;
mod seeds;

pub use changes::changes;
pub use locks::locks;
pub use objects::objects;
pub use reader::reader;

/// One target.
pub struct Target {
    pub name: &'static str,
    /// Panics where something does not hold.
    pub run: fn(&[u8]),
    /// Bytes to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// How many runs fit into a few seconds.
    pub runs: u64,
}

pub const TARGETS: [Target; 4] = [
    Target { name: "objects", run: objects, seeds: seeds::objects, runs: 4_000 },
    Target { name: "locks", run: locks, seeds: seeds::locks, runs: 8_000 },
    Target { name: "changes", run: changes, seeds: seeds::changes, runs: 1_000 },
    Target { name: "reader", run: reader, seeds: seeds::reader, runs: 4_000 },
];

/// Bytes that decide what is done next; zeros, when they are used up.
pub(crate) struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn next(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn below(&mut self, end: usize) -> usize {
        usize::from(self.next()) % end.max(1)
    }
}
