//! The command line: arguments in, text or data out, and an exit status.

mod args;
#[cfg(feature = "shell")]
mod connect;
#[cfg(feature = "shell")]
mod dump;
#[cfg(all(feature = "shell", feature = "sim"))]
mod embedded;
mod entry;
mod explain;
mod failure;
#[cfg(feature = "sim")]
mod given;
mod keys;
mod layout;
mod notes;
mod objects;
mod plan;
mod read;
mod report;
#[cfg(feature = "shell")]
mod run;
mod server;
mod settle;
#[cfg(feature = "sim")]
mod simulate;
mod unknown;
mod world;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Command, Input};
use failure::Failure;
use world::World;

/// What the exit status tells, if there is no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// 0: nothing to do; it is bound.
    Fine,
    /// 2: something to do; it is not bound.
    Open,
}

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // Nobody is left to be told if this fails.
            let _ = usage.print();
            return if usage.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let mut out = Output::new(BufWriter::new(anstream::stdout().lock()));
    let done = run(cli.command, &mut out).and_then(|verdict| Ok(out.flush().map(|()| verdict)?));
    match done {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Open) => ExitCode::from(2),
        Err(failure) => {
            let style = clap::builder::Styles::styled();
            let _ = writeln!(anstream::stderr(), "{0}error:{0:#} {failure}", style.get_error());
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command, out: &mut dyn Write) -> Result<Verdict, Failure> {
    match command {
        Command::Plan(mut args) => {
            args.bindings.extend(args.input.take_bindings());
            plan::run(world(&args.input)?, &args, out)
        }
        Command::Explain(mut args) => {
            args.bindings.extend(args.input.take_bindings());
            explain::run(&world(&args.input)?, &args, out)
        }
        #[cfg(feature = "shell")]
        Command::Dump(args) => dump::run(&args, out),
        #[cfg(feature = "shell")]
        Command::Run(args) => run::run(&args, out),
        #[cfg(feature = "sim")]
        Command::Simulate(args) => simulate::run(&args, out),
    }
}

/// Reads the input, and tells on stderr what a person would want to know of it.
fn world(input: &Input) -> Result<World, Failure> {
    #[cfg(feature = "shell")]
    let (local, global) = dump::input(input)?.map_or_else(|| files(input), Ok)?;
    #[cfg(not(feature = "shell"))]
    let (local, global) = files(input)?;
    let world = World::new(local, global, input.layout, input.now())?;
    for note in &world.notes {
        let _ = writeln!(anstream::stderr(), "note: {note}");
    }
    Ok(world)
}

/// What the files have: of the server, and of its cache server.
fn files(input: &Input) -> Result<(read::Found, read::Found), Failure> {
    let mut stdin = Some(io::stdin().lock());
    let local = read::read(&input.files, &input.global, &mut stdin)?;
    Ok((local, read::read(&input.global, &[], &mut stdin)?))
}

/// A writer whose reader may leave: after `| head` there is nothing left to do, and no error.
struct Output<W> {
    to: W,
    is_closed: bool,
}

impl<W: Write> Output<W> {
    fn new(to: W) -> Self {
        Self { to, is_closed: false }
    }

    fn unless_closed<T>(&mut self, done: io::Result<T>, instead: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(instead)
            }
            done => done,
        }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_closed {
            return Ok(bytes.len());
        }
        let done = self.to.write(bytes);
        self.unless_closed(done, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let done = self.to.flush();
        self.unless_closed(done, ())
    }
}
