//! How plans are printed: a header, effects a line each, locks entry by entry, statuses as diffs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use apibinding::api::{ApiBindingStatus, BindingKey, Condition, Phase, Text};
use apibinding::effect::{Effect, Patch};
use apibinding::snapshot::{Annotation, Layer, Lock};
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use super::args::Format;
use super::world::World;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();

/// The line above what is told of one key.
pub fn header(out: &mut dyn Write, world: &World, key: &BindingKey, rest: &str) -> io::Result<()> {
    let path = world.paths.get(&key.cluster).filter(|path| path.as_str() != key.cluster.as_str());
    let path = path.map(|path| format!(" ({path})")).unwrap_or_default();
    writeln!(out, "{BOLD}{key}{BOLD:#}{path}{rest}")
}

/// A phase, or how it changes.
pub fn phases(before: &Phase, after: &Phase) -> String {
    let name = |phase: &Phase| match phase.as_str() {
        "" => "no phase".to_owned(),
        phase => phase.to_owned(),
    };
    if before == after { name(before) } else { format!("{} -> {}", name(before), name(after)) }
}

/// One effect, before it is carried out.
pub fn effect(out: &mut dyn Write, world: &World, key: &BindingKey, effect: &Effect) -> io::Result<()> {
    writeln!(out, "  {effect}")?;
    if let Some(refusal) = refusal(world, key, effect) {
        refused_before(out, "    ", &refusal)?;
    }
    if let Effect::PatchLogicalCluster(patch) = effect {
        locks(out, world, patch)?;
    }
    Ok(())
}

/// What the binding's status reports of an earlier try of this effect, if the server refused it for what
/// it is. A plan takes it to succeed; only the report knows better.
pub fn refusal(world: &World, key: &BindingKey, effect: &Effect) -> Option<String> {
    let Effect::CreateCrd(create) = effect else { return None };
    let reported = world.binding(key)?.status.condition(Condition::BINDING_UP_TO_DATE)?;
    // Of another schema it says nothing about this one.
    let which = format!("APIResourceSchema {}|{} is invalid", create.schema_cluster, create.schema_name);
    let is_it = reported.reason == "APIResourceSchemaInvalid" && reported.message.starts_with(&which);
    is_it.then(|| reported.message.replace('\n', " "))
}

/// The line that says so.
pub fn refused_before(out: &mut dyn Write, indent: &str, message: &str) -> io::Result<()> {
    writeln!(out, "{indent}{REMOVED}was refused before: {message}{REMOVED:#}")
}

/// Which entries an apply of locks adds, removes and changes.
fn locks(out: &mut dyn Write, world: &World, patch: &Patch) -> io::Result<()> {
    let body: Locking = serde_json::from_str(patch.body.as_str())?;
    let home = world.snapshot.logical_cluster(&patch.cluster);
    for layer in Layer::ALL {
        let Some(text) = body.metadata.annotations.get(layer.annotation()) else { continue };
        let after: BTreeMap<Text, Lock> = serde_json::from_str(text)?;
        let annotation = home.map(|home| home.layer(layer));
        if let Some(why) = annotation.and_then(Annotation::why) {
            writeln!(out, "    {DIM}written anew, since it cannot be read: {why}{DIM:#}")?;
        }
        let before: BTreeMap<&str, &Lock> = (annotation.and_then(Annotation::locks).into_iter())
            .flat_map(|locks| locks.iter().map(|(resource, lock)| (resource.as_str(), lock)))
            .collect();
        let removed = before.iter().filter(|(key, lock)| after.get(**key) != Some(**lock));
        let added = after.iter().filter(|(key, lock)| before.get(key.as_str()) != Some(lock));
        let removed = removed.map(|(key, lock)| (*key, '-', *lock));
        let mut changes: Vec<_> = removed.chain(added.map(|(key, lock)| (key.as_str(), '+', lock))).collect();
        // Stable, so what an entry was stays before what it is.
        changes.sort_by_key(|(key, ..)| *key);
        for (key, sign, lock) in &changes {
            changed(out, "    ", &format!("{sign} {key} {}", serde_json::to_string(lock)?))?;
        }
        if changes.is_empty() {
            writeln!(out, "    {DIM}the same entries, spelled as this controller writes them{DIM:#}")?;
        }
    }
    Ok(())
}

/// What of an apply's body tells of locks.
#[derive(Deserialize)]
struct Locking {
    metadata: LockingMetadata,
}

#[derive(Deserialize)]
struct LockingMetadata {
    annotations: BTreeMap<String, String>,
}

/// A line in the colour of its sign.
fn changed(out: &mut dyn Write, indent: &str, line: &str) -> io::Result<()> {
    let style = match line.as_bytes().first() {
        Some(b'+') => ADDED,
        Some(b'-') => REMOVED,
        Some(b'@') => DIM,
        _ => Style::new(),
    };
    writeln!(out, "{indent}{style}{line}{style:#}")
}

/// The change of a status, as a diff of YAML.
pub fn status(out: &mut dyn Write, before: &ApiBindingStatus, after: &ApiBindingStatus) -> io::Result<()> {
    let (before, after) = (status_text(before)?, status_text(after)?);
    let diff = TextDiff::from_lines(&before, &after);
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        for line in hunk.to_string().lines() {
            changed(out, "    ", line)?;
        }
    }
    Ok(())
}

fn status_text(status: &ApiBindingStatus) -> io::Result<String> {
    if *status == ApiBindingStatus::default() {
        return Ok(String::new());
    }
    to_yaml(status)
}

fn to_yaml(value: &impl Serialize) -> io::Result<String> {
    // A message stays on one line, however long: that is how it is searched for.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    serde_saphyr::to_string_with_options(value, options).map_err(io::Error::other)
}

/// A result as data.
pub fn data(out: &mut dyn Write, format: Format, value: &impl Serialize) -> io::Result<()> {
    // Bodies are JSON text, which only JSON's writer can put in as it is.
    let value = serde_json::to_value(value)?;
    match format {
        Format::Yaml => write!(out, "{}", to_yaml(&value)?),
        _ => {
            serde_json::to_writer_pretty(&mut *out, &value)?;
            writeln!(out)
        }
    }
}
