//! `apibinding simulate`: worlds in which everything goes wrong, and whether all laws hold.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anstyle::Style;
use apibinding::sim::laws::Law;
use apibinding::sim::{Broken, Builder, Fault, Line, Play, Report, Scenario, play, shrink};
use apibinding::snapshot::Layout;
use serde::Serialize;

use super::args::{Format, LayoutChoice, SimulateArgs};
use super::failure::Failure;
use super::given::Given;
use super::notes::counted;
use super::{Verdict, report};

/// How often a smaller world is tried for one in which a law is broken.
const TRIES: usize = 400;

/// How often it is told how far things are.
const PROGRESS: Duration = Duration::from_secs(2);

/// What worlds are played: those of seeds, or one again and again.
struct Worlds<'a> {
    args: &'a SimulateArgs,
    input: Option<Given>,
}

/// One world, and what came of it.
struct Played {
    seed: u64,
    report: Report,
    /// The smallest found in which the same law is broken, and how much is left of it.
    smallest: Option<(Scenario, Report)>,
}

/// All of it as data.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    worlds: Vec<WorldData<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WorldData<'a> {
    seed: u64,
    steps: u64,
    passes: u64,
    requests: u64,
    seconds: f64,
    bindings: usize,
    bound: usize,
    shared: u64,
    faults: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<BrokenData<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trace: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BrokenData<'a> {
    law: &'static str,
    why: &'a str,
    shortest_trace: Vec<String>,
}

pub fn run(args: &SimulateArgs, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let worlds = Worlds { args, input: input(args)? };
    let begun = Instant::now();
    let played = worlds.play(|done, broken, steps| {
        let _ = writeln!(
            io::stderr(),
            "{done} of {} worlds, {steps} steps, {broken} with a broken law, {} s",
            args.worlds,
            begun.elapsed().as_secs()
        );
    });
    let is_broken = |played: &Played| played.report.broken.is_some();
    match args.output {
        Format::Text => tell(args, &played, out)?,
        format => report::data(out, format, &Data { worlds: played.iter().map(data).collect() })?,
    }
    let steps: u64 = played.iter().map(|played| played.report.counts.steps).sum();
    let seconds = begun.elapsed().as_secs_f64();
    let _ = writeln!(io::stderr(), "note: {seconds:.1} s, {:.0} steps a second", steps as f64 / seconds);
    Ok(if played.iter().any(is_broken) { Verdict::Open } else { Verdict::Fine })
}

fn input(args: &SimulateArgs) -> Result<Option<Given>, Failure> {
    if args.files.is_empty() {
        return Ok(None);
    }
    let now = args.now.unwrap_or(apibinding::sim::PRESENT);
    Given::read(&args.files, &args.global, args.layout, now).map(Some)
}

impl Worlds<'_> {
    fn scenario(&self, seed: u64) -> Scenario {
        let args = self.args;
        let mut scenario = match &self.input {
            Some(Given { layout, objects, global }) => {
                let mut scenario = Scenario::of(seed, *layout, objects.clone());
                scenario.global.clone_from(global);
                scenario
            }
            None => self.generated(seed),
        };
        scenario.start = args.now.unwrap_or(scenario.start);
        scenario.shards = args.shards.unwrap_or(scenario.shards);
        scenario.workers = args.workers;
        scenario.with_faults(args.faults)
    }

    fn generated(&self, seed: u64) -> Scenario {
        let args = self.args;
        let usual = Scenario::new(seed);
        let layout = match args.layout {
            LayoutChoice::Split => Layout::Split,
            LayoutChoice::Single => Layout::Single,
            LayoutChoice::Auto => usual.layout,
        };
        if layout == usual.layout && args.workspaces.is_none() && args.bindings.is_none() && args.deeds.is_none() {
            return usual;
        }
        let mut builder = Builder::new(seed).layout(layout);
        if let Some(count) = args.workspaces {
            builder = builder.workspaces(count);
        }
        if let Some(count) = args.bindings {
            builder = builder.bindings(count);
        }
        let mut scenario = Scenario::of(seed, layout, builder.build().collect());
        scenario.shards = usual.shards;
        scenario.deeds = builder.deeds(args.deeds.unwrap_or(12));
        scenario.vandals = builder.vandals(3);
        scenario
    }

    /// Plays all worlds, on all cores; sorted by seed.
    fn play(&self, tell: impl Fn(u64, u64, u64)) -> Vec<Played> {
        let (first, count) = (self.args.seed, self.args.worlds);
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64).min(count.max(1));
        let next = AtomicU64::new(0);
        let (sender, receiver) = mpsc::channel();
        let mut played = Vec::new();
        thread::scope(|scope| {
            for _ in 0..cores {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count || sender.send(self.one(first.wrapping_add(number))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let (mut told, mut steps, mut broken) = (Instant::now(), 0, 0);
            for one in receiver {
                steps += one.report.counts.steps;
                broken += u64::from(one.report.broken.is_some());
                played.push(one);
                if told.elapsed() > PROGRESS {
                    told = Instant::now();
                    tell(played.len() as u64, broken, steps);
                }
            }
        });
        played.sort_by_key(|played| played.seed);
        played
    }

    fn one(&self, seed: u64) -> Played {
        let scenario = self.scenario(seed);
        let how = Play { laws: !self.args.no_laws, trace: self.args.trace };
        let report = catch(&scenario, how);
        let law = report.broken.as_ref().map(|broken| broken.law);
        // A panic is told as it is: playing on would be one panic after the other.
        let law = law.filter(|law| *law != Law::Total && how.laws);
        let smallest = law.map(|law| shrink(&scenario, law, TRIES));
        Played { seed, report, smallest }
    }
}

/// Plays one world. A panic is a broken law, too.
fn catch(scenario: &Scenario, how: Play) -> Report {
    catch_unwind(AssertUnwindSafe(|| play(scenario, how, |_| true))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
        let mut report = Report::default();
        report.broken = Some(Broken::new(Law::Total, format!("a panic: {text}")));
        report
    })
}

fn texts(trace: &[Line]) -> Vec<String> {
    trace.iter().map(ToString::to_string).collect()
}

fn faults(report: &Report) -> BTreeMap<&'static str, u64> {
    let counts = Fault::ALL.iter().map(|fault| (fault.as_str(), report.counts.faults.get(*fault as usize)));
    counts.filter_map(|(name, count)| Some((name, *count?))).filter(|(_, count)| *count > 0).collect()
}

fn data(played: &Played) -> WorldData<'_> {
    let Report { counts, elapsed, broken, trace, bindings, bound, shared, .. } = &played.report;
    let smallest = played.smallest.as_ref().map(|(_, report)| texts(&report.trace)).unwrap_or_default();
    WorldData {
        seed: played.seed,
        steps: counts.steps,
        passes: counts.passes,
        requests: counts.requests,
        seconds: elapsed.as_secs_f64(),
        bindings: *bindings,
        bound: *bound,
        shared: *shared,
        faults: faults(&played.report),
        broken: broken.as_ref().map(|broken| BrokenData {
            law: broken.law.as_str(),
            why: &broken.why,
            shortest_trace: smallest,
        }),
        trace: texts(trace),
    }
}

fn tell(args: &SimulateArgs, played: &[Played], out: &mut dyn Write) -> Result<(), Failure> {
    let bold = Style::new().bold();
    for Played { seed, report, smallest } in played {
        for line in &report.trace {
            writeln!(out, "{line}")?;
        }
        if let Some(broken) = &report.broken {
            writeln!(out, "{bold}seed {seed}{bold:#}: {broken}")?;
            if let Some((scenario, report)) = smallest {
                writeln!(
                    out,
                    "the shortest that shows it, with {}, {} and faults {}:",
                    counted(scenario.objects.len(), "object", "objects"),
                    counted(scenario.deeds.len(), "deed", "deeds"),
                    scenario.faults
                )?;
                for deed in &scenario.deeds {
                    writeln!(out, "  after {:.3} s: {deed}", deed.after.as_secs_f64())?;
                }
                for line in &report.trace {
                    writeln!(out, "{line}")?;
                }
                writeln!(out, "{}", report.broken.as_ref().map(ToString::to_string).unwrap_or_default())?;
            }
            writeln!(out)?;
        } else if played.len() == 1 || args.trace {
            writeln!(
                out,
                "{bold}seed {seed}{bold:#}: at rest after {} and {:.1} s: {}, {}, {} of {} bound",
                counted(report.counts.steps as usize, "step", "steps"),
                report.elapsed.as_secs_f64(),
                counted(report.counts.passes as usize, "pass", "passes"),
                counted(report.counts.requests as usize, "request", "requests"),
                report.bound,
                counted(report.bindings, "binding", "bindings"),
            )?;
            let faults = faults(report);
            if !faults.is_empty() {
                let faults: Vec<String> = faults.iter().map(|(name, count)| format!("{name} {count}")).collect();
                writeln!(out, "  went wrong: {}", faults.join(", "))?;
            }
        }
    }
    let broken = played.iter().filter(|played| played.report.broken.is_some()).count();
    let steps: u64 = played.iter().map(|played| played.report.counts.steps).sum();
    let shared: u64 = played.iter().map(|played| played.report.shared).sum();
    if shared > 0 {
        writeln!(out, "{shared} times two bindings came to list one resource, against which nothing can be promised")?;
    }
    let laws = match (broken, args.no_laws) {
        (0, true) => "all came to rest".to_owned(),
        (0, false) => "all laws held, all came to rest".to_owned(),
        _ => format!("a law was broken in {broken}"),
    };
    writeln!(out, "{} and {steps} steps: {laws}", counted(played.len(), "world", "worlds"))?;
    Ok(())
}
