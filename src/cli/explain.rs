//! `apibinding explain`.

use std::collections::BTreeSet;
use std::io::Write;

use super::args::{ExplainArgs, Format};
use super::failure::Failure;
use super::world::World;
use super::{Verdict, keys, report};

pub fn run(world: &World, args: &ExplainArgs, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let [binding] = &args.bindings[..] else {
        let problem = "say which binding, and only one: `explain -f PATH… CLUSTER/NAME`";
        return Err(Failure::Unknown(problem.to_owned()));
    };
    let known: BTreeSet<_> = apibinding::wakeup::all(&world.snapshot).into_iter().collect();
    let explanation = apibinding::explain::explain(&world.snapshot, &keys::find(world, &known, binding)?);
    match args.output {
        Format::Text => writeln!(out, "{explanation}")?,
        format => report::data(out, format, &explanation)?,
    }
    Ok(if explanation.is_bound() { Verdict::Fine } else { Verdict::Open })
}
