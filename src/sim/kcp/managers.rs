//! The managers of an object: who wrote it, how, and which fields are theirs since.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::fields::{Difference, Fields};
use super::refusal::Cause;
use super::shape::Shape;
use super::{seconds, text_at};
use crate::api::{Kind, Text};

/// How fields came to be somebody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// By server-side apply: what is no longer sent goes.
    Apply,
    /// By any other write.
    Update,
}

/// Who writes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Writer {
    pub name: Text,
    pub operation: Operation,
    /// `status`, or empty.
    pub subresource: Text,
}

#[derive(Clone, Debug, PartialEq)]
struct Manager {
    writer: Writer,
    time: Timestamp,
    fields: Arc<Fields>,
}

/// All managers of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Managers(Arc<Vec<Manager>>);

/// The managers of an object of this kind, as `metadata.managedFields` tells of them.
#[derive(Clone, Debug)]
pub(crate) struct Owners {
    managers: Managers,
    kind: Kind,
}

/// Times are no difference: a write that changes nothing else is none.
impl PartialEq for Managers {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self.0.iter().all(|manager| other.find(&manager.writer) == Some(&manager.fields))
    }
}

impl Managers {
    fn find(&self, writer: &Writer) -> Option<&Arc<Fields>> {
        self.0.iter().find(|manager| manager.writer == *writer).map(|manager| &manager.fields)
    }

    /// What is this writer's.
    pub fn of(&self, writer: &Writer) -> Arc<Fields> {
        self.find(writer).cloned().unwrap_or_default()
    }

    /// Gives a writer this and nothing else.
    pub fn set(&mut self, writer: &Writer, fields: Fields, time: Timestamp) {
        let managers = Arc::make_mut(&mut self.0);
        if fields.is_empty() {
            managers.retain(|manager| manager.writer != *writer);
            return;
        }
        match managers.iter_mut().find(|manager| manager.writer == *writer) {
            Some(manager) => {
                manager.time = time;
                // The same set again is the rule: then it stays shared with earlier versions.
                if *manager.fields != fields {
                    manager.fields = Arc::new(fields);
                }
            }
            None => managers.push(Manager { writer: writer.clone(), time, fields: Arc::new(fields) }),
        }
    }

    /// Everything that anybody owns.
    pub fn all(&self) -> Fields {
        let mut all = Fields::default();
        for manager in &*self.0 {
            all.union(&manager.fields);
        }
        all
    }

    /// Why this writer may not make this change, by the owners that it would take fields from.
    pub fn conflicts(&self, writer: &Writer, difference: &Difference, kind: Kind) -> Vec<Cause> {
        let mut causes = Vec::new();
        for manager in self.0.iter().filter(|manager| manager.writer != *writer) {
            let paths = manager.fields.common(&difference.changed).paths();
            causes.extend(paths.into_iter().map(|path| Cause {
                reason: "FieldManagerConflict",
                message: format!("conflict with {}", manager.writer.described(kind)),
                field: path,
            }));
        }
        causes.sort_by(|one: &Cause, other| one.message.cmp(&other.message));
        causes
    }

    /// A change was made: what others own of it is theirs no more.
    pub fn lose(&mut self, writer: &Writer, difference: &Difference) {
        let managers = Arc::make_mut(&mut self.0);
        for manager in managers.iter_mut().filter(|manager| manager.writer != *writer) {
            let touches = |part: &Fields| !manager.fields.common(part).is_empty();
            if touches(&difference.changed) || touches(&difference.removed) {
                let fields = Arc::make_mut(&mut manager.fields);
                fields.remove(&difference.changed);
                fields.remove(&difference.removed);
            }
        }
        managers.retain(|manager| !manager.fields.is_empty());
    }

    /// A write that is no apply: what it changed is the writer's.
    pub fn update(&mut self, writer: &Writer, old: &Value, new: &Value, shape: &Shape, time: Timestamp) {
        let difference = Difference::between(old, new, shape);
        if difference.changed.is_empty() && difference.removed.is_empty() {
            return;
        }
        self.lose(writer, &difference);
        let mut own = Arc::unwrap_or_clone(self.of(writer));
        own.remove(&difference.removed);
        own.union(&difference.changed);
        self.set(writer, own, time);
    }

    /// As `metadata.managedFields`.
    pub fn to_json(&self, kind: Kind) -> Value {
        serde_json::to_value(self.of_kind(kind)).unwrap_or_default()
    }

    pub fn of_kind(&self, kind: Kind) -> Owners {
        Owners { managers: self.clone(), kind }
    }

    /// From `metadata.managedFields`.
    pub fn from_json(json: &Value) -> Self {
        let entries = json.as_array().into_iter().flatten();
        let managers = entries.map(|entry| Manager {
            writer: Writer {
                name: text_at(entry, &["manager"]).into(),
                operation: if text_at(entry, &["operation"]) == "Apply" { Operation::Apply } else { Operation::Update },
                subresource: text_at(entry, &["subresource"]).into(),
            },
            time: text_at(entry, &["time"]).parse().unwrap_or_default(),
            fields: Arc::new(entry.get("fieldsV1").map(Fields::from_json).unwrap_or_default()),
        });
        Self(Arc::new(managers.collect()))
    }
}

impl Owners {
    /// True if nobody owns anything.
    #[cfg(feature = "shell")]
    pub fn is_empty(&self) -> bool {
        self.managers.0.is_empty()
    }
}

/// Written out as it is, without a copy: it goes into every answer of a server.
impl Serialize for Owners {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.managers.0.iter().map(|manager| Entry { manager, kind: self.kind }))
    }
}

struct Entry<'a> {
    manager: &'a Manager,
    kind: Kind,
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Manager { writer, time, fields } = self.manager;
        let mut entry = serializer.serialize_map(None)?;
        entry.serialize_entry("apiVersion", self.kind.api_version())?;
        entry.serialize_entry("fieldsType", "FieldsV1")?;
        entry.serialize_entry("fieldsV1", &**fields)?;
        entry.serialize_entry("manager", &writer.name)?;
        entry.serialize_entry("operation", writer.operation.as_str())?;
        if !writer.subresource.is_empty() {
            entry.serialize_entry("subresource", &writer.subresource)?;
        }
        entry.serialize_entry("time", &seconds(*time))?;
        entry.end()
    }
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl Writer {
    /// As messages name a manager.
    fn described(&self, kind: Kind) -> String {
        let mut text = format!("{:?}", &*self.name);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", &*self.subresource));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", kind.api_version()));
        }
        text
    }
}
