//! `apibinding dump`, and the same for `--live`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use apibinding::shell::{self, Dump};
use serde_json::Value;

use super::Verdict;
use super::args::{ConnectArgs, DumpArgs, DumpFormat, Input};
use super::connect::connect;
use super::failure::Failure;
use super::read::{self, Found, STDIN};
use super::run::runtime;

/// How long a server may take for a page of a list.
const LIMIT: Duration = Duration::from_secs(30);

/// In which kubectl keeps what was applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How the server is called where the place of an object is told.
const LIVE: &str = "the server";

pub fn run(args: &DumpArgs, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let mut dump = take(&args.connect)?;
    dump.local.iter_mut().chain(&mut dump.global).for_each(|list| strip(list, args));
    write_to(&args.file, &dump.local, args.output, out)?;
    match &args.global {
        Some(path) => write_to(path, &dump.global, args.output, out)?,
        None => {
            let copies: usize = dump.global.iter().map(|list| items(list).count()).sum();
            if copies > 0 {
                let note = format!("the cache server's {copies} copies are left out: say --global PATH");
                let _ = writeln!(anstream::stderr(), "note: {note}");
            }
        }
    }
    Ok(Verdict::Fine)
}

fn take(args: &ConnectArgs) -> Result<Dump, Failure> {
    runtime()?.block_on(async {
        let (server, cache) = connect(args).await?;
        Ok(shell::dump(&server, cache.as_ref(), LIMIT).await?)
    })
}

/// What a server has, where that is asked for, as if it had been read of a file.
pub fn input(input: &Input) -> Result<Option<(Found, Found)>, Failure> {
    let ConnectArgs { kubeconfig, context, server, .. } = &input.connect;
    if !input.live {
        let given =
            [("--kubeconfig", kubeconfig.is_some()), ("--context", context.is_some()), ("--server", server.is_some())];
        return match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => {
                Err(Failure::Connection(format!("{name} is for --live, which reads from a server: say that too")))
            }
            None => Ok(None),
        };
    }
    let dump = take(&input.connect)?;
    Ok(Some((found(&dump.local)?, found(&dump.global)?)))
}

fn found(lists: &[Value]) -> Result<Found, Failure> {
    let text: String = lists.iter().map(|list| format!("{list}\n")).collect();
    Ok(read::read_text(LIVE, &text)?)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.get("items").and_then(Value::as_array).into_iter().flatten()
}

fn strip(list: &mut Value, args: &DumpArgs) {
    for item in list.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        if args.without_ca_bundles
            && let Some(webhook) =
                item.pointer_mut("/spec/conversion/webhook/clientConfig").and_then(Value::as_object_mut)
        {
            webhook.remove("caBundle");
        }
        if args.without_last_applied
            && let Some(annotations) = item.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
        {
            annotations.remove(LAST_APPLIED);
        }
    }
}

fn write_to(path: &Path, lists: &[Value], format: DumpFormat, out: &mut dyn Write) -> Result<(), Failure> {
    if path.as_os_str() == STDIN {
        return write(lists, format, out);
    }
    let named = |why: io::Error| io::Error::new(why.kind(), format!("{}: {why}", path.display()));
    let mut file = BufWriter::new(File::create(path).map_err(named)?);
    write(lists, format, &mut file)?;
    Ok(file.flush().map_err(named)?)
}

fn write(lists: &[Value], format: DumpFormat, out: &mut dyn Write) -> Result<(), Failure> {
    for list in lists {
        match format {
            DumpFormat::Json => writeln!(out, "{list}")?,
            DumpFormat::Yaml => {
                let yaml = serde_saphyr::to_string(list).map_err(io::Error::other)?;
                write!(out, "---\n{}\n", yaml.trim_end())?;
            }
        }
    }
    Ok(())
}
