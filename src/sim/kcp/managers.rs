//! The managers of an object: who wrote it, how, and which fields are theirs since.

use std::sync::Arc;

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

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
pub(super) struct Managers(Vec<Manager>);

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
        if fields.is_empty() {
            self.0.retain(|manager| manager.writer != *writer);
            return;
        }
        match self.0.iter_mut().find(|manager| manager.writer == *writer) {
            Some(manager) => {
                manager.time = time;
                // The same set again is the rule: then it stays shared with earlier versions.
                if *manager.fields != fields {
                    manager.fields = Arc::new(fields);
                }
            }
            None => self.0.push(Manager { writer: writer.clone(), time, fields: Arc::new(fields) }),
        }
    }

    /// Everything that anybody owns.
    pub fn all(&self) -> Fields {
        let mut all = Fields::default();
        for manager in &self.0 {
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
        for manager in self.0.iter_mut().filter(|manager| manager.writer != *writer) {
            let touches = |part: &Fields| !manager.fields.common(part).is_empty();
            if touches(&difference.changed) || touches(&difference.removed) {
                let fields = Arc::make_mut(&mut manager.fields);
                fields.remove(&difference.changed);
                fields.remove(&difference.removed);
            }
        }
        self.0.retain(|manager| !manager.fields.is_empty());
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
        let entries = self.0.iter().map(|manager| {
            let writer = &manager.writer;
            let operation = match writer.operation {
                Operation::Apply => "Apply",
                Operation::Update => "Update",
            };
            let mut entry = json!({
                "manager": writer.name,
                "operation": operation,
                "apiVersion": kind.api_version(),
                "time": seconds(manager.time),
                "fieldsType": "FieldsV1",
                "fieldsV1": manager.fields.to_json(),
            });
            if let (false, Some(entry)) = (writer.subresource.is_empty(), entry.as_object_mut()) {
                entry.insert("subresource".into(), json!(writer.subresource));
            }
            entry
        });
        Value::Array(entries.collect())
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
        Self(managers.collect())
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
