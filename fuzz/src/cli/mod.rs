//! The command line's reader, and what it has around it in the program.

#![allow(dead_code, unused_imports)]

#[path = "../../../src/cli/notes.rs"]
mod notes;
#[path = "../../../src/cli/read/mod.rs"]
pub mod read;
#[path = "../../../src/cli/unknown.rs"]
mod unknown;
