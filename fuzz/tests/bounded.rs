//! Each target on its seeds, and on what is made of them: a bounded number of runs, the same each time.
//!
//! `FUZZ_RUNS` sets how many, `FUZZ_SEED` which ones, `FUZZ_TARGET` of which target alone. There is no feedback
//! from what was reached: for that, see `cargo fuzz`.

use std::panic::{AssertUnwindSafe, catch_unwind};

use apibinding::sim::Chance;
use apibinding_fuzz::{TARGETS, Target};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} has to be a number")))
}

/// Bytes that are something else than a seed, but not much.
fn mutated(seeds: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = chance.one_of(seeds).cloned().unwrap_or_default();
    for _ in 0..chance.within(1..5) {
        let at = chance.below(bytes.len() as u64 + 1) as usize;
        let end = (at + chance.below(24) as usize).min(bytes.len());
        match chance.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            3 => {
                let other = chance.one_of(seeds).cloned().unwrap_or_default();
                let from = chance.below(other.len() as u64 + 1) as usize;
                let part = &other[from..(from + chance.below(200) as usize).min(other.len())];
                bytes.splice(at..end, part.iter().copied());
            }
            4 => bytes.truncate(at),
            5 => {
                let tokens: [&[u8]; 12] = [
                    b"null", b"{}", b"[]", b"\"\"", b"true", b"-1", b"1e999", b",", b":", b"\\u0000", b"\xff",
                    b"\n---\n",
                ];
                let token = chance.one_of(&tokens).copied().unwrap_or_default();
                bytes.splice(at..at, token.iter().copied());
            }
            _ => bytes.insert(at, chance.any() as u8),
        }
    }
    bytes
}

fn run(target: &Target) -> u64 {
    let seeds = (target.seeds)();
    let mut chance = Chance::of(number("FUZZ_SEED").unwrap_or(1), target.name);
    let runs = number("FUZZ_RUNS").unwrap_or(target.runs);
    let inputs = seeds.clone().into_iter().chain((0..runs).map(|_| mutated(&seeds, &mut chance)));
    let mut count = 0;
    for input in inputs {
        count += 1;
        if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
            panic!("{}, run {count}: {}", target.name, String::from_utf8_lossy(&input));
        }
    }
    count
}

#[test]
fn targets_hold_on_what_is_made_of_their_seeds() {
    let wanted = std::env::var("FUZZ_TARGET").ok();
    let targets = TARGETS.iter().filter(|target| wanted.as_deref().is_none_or(|wanted| wanted == target.name));
    std::thread::scope(|scope| {
        let threads: Vec<_> = targets.map(|target| (target.name, scope.spawn(|| run(target)))).collect();
        for (name, thread) in threads {
            let count = thread.join().unwrap_or_else(|_| panic!("{name} failed"));
            println!("{name}: {count} runs");
        }
    });
}
