//! Worlds to play, of files.

use std::io::{self, Write};
use std::path::PathBuf;

use apibinding::api::Object;
use apibinding::snapshot::Layout;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::args::LayoutChoice;
use super::failure::Failure;
use super::read::{self, Source};
use super::world::World;

/// A world that was given.
pub struct Given {
    pub layout: Layout,
    pub objects: Vec<Value>,
    /// What the cache server has.
    pub global: Vec<Value>,
}

impl Given {
    /// Reads it, and tells on stderr what a person would want to know of it.
    pub fn read(files: &[PathBuf], global: &[PathBuf], layout: LayoutChoice, now: Timestamp) -> Result<Self, Failure> {
        let mut stdin = Some(io::stdin().lock());
        let local = read::read(files, global, &mut stdin)?;
        let global = read::read(global, &[], &mut stdin)?;
        let (objects, copies) = (values(&local.objects)?, values(&global.objects)?);
        let world = World::new(local, global, layout, now)?;
        for note in &world.notes {
            let _ = writeln!(anstream::stderr(), "note: {note}");
        }
        Ok(Self { layout: world.snapshot.layout(), objects, global: copies })
    }
}

fn values(objects: &[(Source, Object)]) -> Result<Vec<Value>, Failure> {
    let values = objects.iter().map(|(_, object)| serde_json::to_value(object));
    values.collect::<Result<_, _>>().map_err(|error| Failure::Output(error.into()))
}
