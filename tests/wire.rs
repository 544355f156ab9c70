//! Exchanges recorded from a running kcp, replayed on the front of the simulated one, method and path to status
//! and body: the same code, content type, reason, causes, lines, and effect on the object. Times, uids and versions
//! are each server's own.
//!
//! `WIRE_EXCHANGES=/path/folder` replays the files of another folder. What an object was before a request
//! is taken from what other exchanges tell of it, those of the folder and those kept here. The last
//! line counts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

#[path = "wire/compare.rs"]
mod compare;
#[path = "wire/exchange.rs"]
mod exchange;
#[path = "wire/known.rs"]
mod known;
#[path = "wire/replay.rs"]
mod replay;
#[path = "wire/watches.rs"]
mod watches;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use exchange::{Exchange, kept, read_folder};
use known::{Known, objects_at_rest, state, states};

/// The kept exchanges that are not replayed, and why.
const LEFT_OUT: &[(&str, &[&str])] =
    &[("a server that is still starting: this one is there at once", &["early-404", "early-429"])];

fn main() -> ExitCode {
    let kept = kept();
    let exchanges = match std::env::var("WIRE_EXCHANGES") {
        Ok(folder) => read_folder(Path::new(&folder)),
        Err(_) => Vec::new(),
    };
    let objects = objects_at_rest();
    let all = || exchanges.iter().chain(&kept);
    let mut known: Vec<Known> = all().flat_map(states).collect();
    known.extend(objects.iter().flat_map(|(file, kind, list)| list.iter().map(|object| state(file, *kind, object))));

    let (mut passed, mut failed, mut left_out) = (0, 0, BTreeSet::new());
    for exchange in if exchanges.is_empty() { &kept } else { &exchanges } {
        if exchange.json["request"].is_null() {
            continue;
        }
        if let Some(why) = exchange.is_left_out() {
            println!("left out  {}: {why}", exchange.file);
            left_out.insert(exchange.file.as_str());
            continue;
        }
        match exchange.replay(&known) {
            Ok(from) => {
                passed += 1;
                println!("passed    {} (from {from})", exchange.file);
            }
            Err(problem) => {
                failed += 1;
                println!("FAILED    {}: {}\n{problem}", exchange.file, exchange.json["what"]);
            }
        }
    }
    if exchanges.is_empty() {
        let expected: BTreeSet<&str> = LEFT_OUT.iter().flat_map(|(_, files)| files.iter().copied()).collect();
        for file in left_out.symmetric_difference(&expected) {
            failed += 1;
            println!("FAILED    {file}: replayed or left out against the list");
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Exchange {
    fn is_left_out(&self) -> Option<&'static str> {
        let is_starting = self.file.starts_with("early") || [429, 503].contains(&self.code());
        is_starting.then(|| LEFT_OUT[0].0)
    }
}
