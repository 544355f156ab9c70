//! What ends the program with an error.

use std::io;

use apibinding::api::{BindingKey, Kind};
use thiserror::Error;

use super::read::{ReadError, Source};

/// What ends the program with an error.
#[derive(Debug, Error)]
pub enum Failure {
    /// The input cannot be read.
    #[error(transparent)]
    Input(#[from] ReadError),
    /// An object twice, and not the same.
    #[error(
        "{kind} {key} is given twice, with different content: {first}, and {second}: take one of them out (copies from a \
         cache server are given with --global)"
    )]
    Twice {
        /// What it is.
        kind: Kind,
        /// Which.
        key: BindingKey,
        /// Where it is first.
        first: Box<Source>,
        /// Where it is again.
        second: Box<Source>,
    },
    /// An object that cannot be looked up by its name.
    #[error("{at}: {kind} {key}: metadata.name: {problem}")]
    Name {
        /// What it is.
        kind: Kind,
        /// Which.
        key: BindingKey,
        /// Where.
        at: Box<Source>,
        /// What is wrong.
        problem: &'static str,
    },
    /// Both layouts of locks.
    #[error(
        "the LogicalClusters contradict each other on the layout of locks: {split} split, but {single} single (none of \
         the annotations internal.apis.kcp.io/locks-*): say --layout split or --layout single"
    )]
    Layout {
        /// The ones that have annotations of the split layout.
        split: String,
        /// The ones that have the single one's only.
        single: String,
    },
    /// No such binding.
    #[error("{0}")]
    Unknown(String),
    /// The world does not come to rest.
    #[error(
        "the world does not come to rest: {key} has written {writes} times. This is a fault of apibinding: please \
         report it with the input"
    )]
    Restless {
        /// The binding that writes and writes.
        key: BindingKey,
        /// How often it has.
        writes: usize,
    },
    /// No way to the server.
    #[cfg(feature = "shell")]
    #[error("{0}")]
    Connection(String),
    /// The controller cannot run.
    #[cfg(feature = "shell")]
    #[error(transparent)]
    Shell(#[from] apibinding::shell::Failure),
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Output(#[from] io::Error),
}
