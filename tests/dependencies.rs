//! The core brings no I/O, no runtime and no clock into the build of whoever embeds it.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;
use std::process::Command;

/// All that the library depends on without features, and why.
const ALLOWED: &[&str] = &[
    // Errors.
    "thiserror",
    "thiserror-impl",
    // JSON, and where in it an error is.
    "itoa",
    "memchr",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_json",
    "serde_path_to_error",
    "zmij",
    // What derives are made with; nothing of it is in a program.
    "proc-macro2",
    "quote",
    "syn",
    "unicode-ident",
    // Kubernetes' own types: bytes in base64, and times, by jiff without its clock and time zones.
    "base64",
    "jiff",
    "jiff-core",
    "k8s-openapi",
    // Strings of one word, lists that need no allocation, a hash without a random key.
    "arcstr",
    "foldhash",
    "smallvec",
    // Persistent maps. Its random numbers are for sorting vectors, from a fixed seed.
    "archery",
    "bytemuck",
    "equivalent",
    "imbl",
    "imbl-sized-chunks",
    "rand_core",
    "rand_xoshiro",
    "safe_arch",
    "wide",
];

/// What must not get in, even where somebody makes the list above longer.
const FORBIDDEN: &str = "async-std chrono clap futures futures-core getrandom h2 hyper kube kube-client kube-core libc \
    log mio rand reqwest rustls smol socket2 time tokio tower tracing ureq";

#[test]
fn the_core_depends_on_what_it_says_and_nothing_else() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--frozen", "--edges=normal", "--no-default-features", "--prefix=none", "--format={p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo, which runs this test, runs");
    assert!(tree.status.success(), "cargo tree: {}", String::from_utf8_lossy(&tree.stderr));

    let tree = String::from_utf8(tree.stdout).expect("names of crates are text");
    let found: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| !["", "apibinding"].contains(name))
        .collect();
    let allowed: BTreeSet<&str> = ALLOWED.iter().copied().collect();

    let new: Vec<_> = found.difference(&allowed).collect();
    assert!(new.is_empty(), "the core has come to depend on {new:?}: see `cargo tree -e normal -i CRATE`");
    let gone: Vec<_> = allowed.difference(&found).collect();
    assert!(gone.is_empty(), "the core no longer depends on {gone:?}: take it off the list");

    assert!(allowed.len() < 40, "{} crates are too many for one function", allowed.len());
    let forbidden: Vec<_> = FORBIDDEN.split_whitespace().filter(|name| allowed.contains(name)).collect();
    assert!(forbidden.is_empty(), "{forbidden:?} has no place in the core");
}
