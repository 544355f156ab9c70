//! A large world in which nobody is in anybody's way, as JSON, one object a line:
//!
//! ```sh
//! cargo run --release --example fleet --features latest,sim -- 10000 1000 > fleet.json
//! apibinding run --embedded fleet.json --establishing 0s
//! ```

use std::io::{self, BufWriter, Write};

use apibinding::sim::Builder;
use apibinding::snapshot::Layout;

// A program may look at its arguments.
#[allow(clippy::disallowed_methods)]
fn main() -> io::Result<()> {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|number| number.parse().ok()).collect();
    let (bindings, workspaces) = (numbers.first().copied().unwrap_or(1000), numbers.get(1).copied().unwrap_or(100));
    let fleet = Builder::new(1).layout(Layout::Single).crowded(false).workspaces(workspaces).bindings(bindings);
    let mut out = BufWriter::new(io::stdout().lock());
    for object in fleet.build() {
        writeln!(out, "{object}")?;
    }
    out.flush()
}
