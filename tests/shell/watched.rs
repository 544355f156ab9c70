//! watched.
