//! How much memory a snapshot takes, as bytes that were asked for, not as pages. `BENCH_LARGE=1` measures a million
//! bindings in place of a hundred thousand.
//!
//!     cargo bench --features latest,sim --bench memory

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a bench may fail
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // it has an environment

mod worlds;

use std::collections::BTreeMap;

use allocation_counter::measure;
use apibinding::api::{Kind, Object};
use apibinding::pass::{Pass, Step};
use apibinding::sim::Builder;
use apibinding::snapshot::{Change, Layout, Snapshot};
use worlds::{fleet, texts};

/// What is left of the objects of one kind.
#[derive(Default)]
struct Kept {
    objects: usize,
    /// Of the objects as JSON.
    text: usize,
    bytes: i64,
    blocks: i64,
}

struct Loaded {
    snapshot: Snapshot,
    kinds: BTreeMap<Kind, Kept>,
    /// The most that there was at any time.
    peak: i64,
}

impl Loaded {
    fn kind(&self, kind: Kind) -> &Kept {
        &self.kinds[&kind]
    }

    fn bytes(&self) -> i64 {
        self.kinds.values().map(|kept| kept.bytes).sum()
    }
}

/// Takes objects in one by one, as a watch tells them, and sees what stays. Of what the world is made is not counted.
fn load(builder: &Builder) -> Loaded {
    let mut snapshot = Snapshot::new(Layout::Single);
    snapshot.set_now(Builder::START);
    let mut loaded = Loaded { snapshot, kinds: BTreeMap::new(), peak: 0 };
    let mut bytes = 0;
    for text in texts(builder) {
        let mut kind = None;
        let taken = measure(|| {
            let object = Object::from_typed_json(&text).expect("the builder writes objects");
            kind = Some(object.kind());
            drop(loaded.snapshot.apply(Change::put(object)));
        });
        let kept = loaded.kinds.entry(kind.expect("it was read")).or_default();
        kept.objects += 1;
        kept.text += text.len();
        kept.bytes += taken.bytes_current;
        kept.blocks += taken.count_current;
        loaded.peak = loaded.peak.max(bytes + i64::try_from(taken.bytes_max).unwrap_or(i64::MAX));
        bytes += taken.bytes_current;
    }
    loaded
}

/// Allocations of a pass with nothing to do, and their bytes.
fn steady(snapshot: &Snapshot) -> (u64, u64) {
    let key = snapshot.bindings().swap_remove(0);
    let mut pass = Pass::new(key);
    let mut step = None;
    let taken = measure(|| step = Some(pass.poll(snapshot)));
    assert!(matches!(step, Some(Step::Done(_))), "it is not steady");
    (taken.count_total, taken.bytes_total)
}

/// How many of them, as people write it.
fn grouped(number: impl TryInto<i128>) -> String {
    let digits = number.try_into().unwrap_or_default().to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.char_indices() {
        let left = digits.len() - at;
        if at > 0 && left.is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn per(total: i64, count: usize) -> f64 {
    total as f64 / count.max(1) as f64
}

fn row(what: &str, count: usize, text: usize, bytes: i64, blocks: i64) {
    let json = grouped(text / count.max(1));
    let (each, blocks) = (grouped(per(bytes, count).round() as i64), per(blocks, count));
    println!("| {what} | {} | {json} | {each} | {blocks:.1} |", grouped(count));
}

fn main() {
    let is_large = std::env::var_os("BENCH_LARGE").is_some_and(|value| value == "1");
    let bindings = if is_large { 1_000_000 } else { 100_000 };
    println!("| what | objects | JSON bytes each | bytes each | blocks each |");
    println!("| --- | ---: | ---: | ---: | ---: |");

    let alone = load(&fleet(bindings, 1));
    let (binding, home) = (alone.kind(Kind::ApiBinding), alone.kind(Kind::LogicalCluster));
    let (text, bytes) = (binding.text + home.text, binding.bytes + home.bytes);
    row("binding with its LogicalCluster", bindings, text, bytes, binding.blocks + home.blocks);
    row("… the binding", bindings, binding.text, binding.bytes, binding.blocks);
    row("… the LogicalCluster", bindings, home.text, home.bytes, home.blocks);

    let crowded = load(&fleet(bindings, 1000));
    let (binding, home) = (crowded.kind(Kind::ApiBinding), crowded.kind(Kind::LogicalCluster));
    let (text, bytes) = (binding.text + home.text, binding.bytes + home.bytes);
    row("the same, 1,000 in a workspace", bindings, text, bytes, binding.blocks + home.blocks);

    // As many exports as bindings, so that there are many schemas and CRDs.
    for schema_bytes in [0, 300, 15_000] {
        let varied = load(&fleet(3000, 1).exports(3000).schema_bytes(schema_bytes));
        let (crd, schema) = (varied.kind(Kind::Crd), varied.kind(Kind::ApiResourceSchema));
        row(&format!("bound CRD of {schema_bytes} B"), crd.objects, crd.text, crd.bytes, crd.blocks);
        row(&format!("schema of {schema_bytes} B"), schema.objects, schema.text, schema.bytes, schema.blocks);
    }

    println!();
    for (name, loaded) in [("one binding in a workspace", &alone), ("1,000 bindings in a workspace", &crowded)] {
        let (count, bytes) = steady(&loaded.snapshot);
        let (all, peak) = (grouped(loaded.bytes()), grouped(loaded.peak));
        println!("{} bindings, {name}: {all} bytes, at most {peak} while loading", grouped(bindings));
        println!("  a pass with nothing to do: {count} allocations, {bytes} bytes");
    }
}
