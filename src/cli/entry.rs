//! What is to be done about one key, as data and as text.

use std::io::{self, Write};

use apibinding::api::{ApiBindingStatus, BindingKey, Phase};
use apibinding::effect::{Effect, Retry};
use serde::Serialize;

use super::notes::counted;
use super::report;
use super::world::World;

/// What is to be done about one key, or was done.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub binding: BindingKey,
    /// The binding's; there is none for a key that only left locks behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Change<Phase>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Change<ApiBindingStatus>>,
    /// In order.
    pub effects: Vec<Effect>,
    /// When to look again.
    pub retry: Retry,
}

/// What something was, and what it becomes.
#[derive(Debug, Serialize)]
pub struct Change<T> {
    pub before: T,
    pub after: T,
}

impl Entry {
    pub fn new(binding: BindingKey, before: Option<ApiBindingStatus>, after: Option<ApiBindingStatus>) -> Self {
        let status = before.zip(after).map(|(before, after)| Change { before, after });
        let phase = status
            .as_ref()
            .map(|status| Change { before: status.before.phase.clone(), after: status.after.phase.clone() });
        Self { binding, phase, status, effects: Vec::new(), retry: Retry::Forget }
    }

    /// True if nothing is to be done, nor to be looked at later.
    pub fn is_quiet(&self) -> bool {
        self.effects.is_empty() && self.retry == Retry::Forget
    }

    /// The line above what is told of it.
    pub fn header(&self, out: &mut dyn Write, world: &World, rest: &str) -> io::Result<()> {
        let phases = match &self.phase {
            Some(phase) => report::phases(&phase.before, &phase.after),
            None => "gone, but it left locks behind".to_owned(),
        };
        report::header(out, world, &self.binding, &format!(": {phases}{rest}"))
    }

    pub fn status_change(&self, out: &mut dyn Write) -> io::Result<()> {
        match &self.status {
            Some(Change { before, after }) => report::status(out, before, after),
            None => Ok(()),
        }
    }

    pub fn look_again(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.retry {
            Retry::Forget => Ok(()),
            retry => writeln!(out, "  look again {retry}"),
        }
    }
}

/// `1 binding`, `2 bindings`.
pub fn bindings(count: usize) -> String {
    counted(count, "binding", "bindings")
}
