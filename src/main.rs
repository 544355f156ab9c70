//! `apibinding`: what kcp's APIBinding controller would do, and why.

// The command line reads files, arguments and the clock, so that the core need not.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
