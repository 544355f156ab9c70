//! Sets of fields: who owns what.
//!
//! A set is a tree in the spelling of `metadata.managedFields`, so that it can be read from there and
//! written there: `f:NAME` a field, `k:{…}` an entry of a keyed list, `v:…` an item of a set.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::shape::Shape;
use crate::api::Text;

/// A set of fields, each by its path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fields {
    /// True if the path that leads here is in the set.
    own: bool,
    below: BTreeMap<Text, Fields>,
}

/// What differs between two states of an object.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// Added, or with another value.
    pub changed: Fields,
    pub removed: Fields,
}

pub(super) fn field_step(name: &str) -> Text {
    Text::from(format_args!("f:{name}"))
}

/// How an entry of a list is told apart from its neighbours.
pub(super) fn item_step(shape: &Shape, item: &Value) -> Text {
    match shape {
        Shape::Keyed(keys, each) => {
            let mut step = String::from("k:{");
            for key in *keys {
                let value = item.get(key).map(Value::to_string).or_else(|| Some(each.default(key)?.to_string()));
                if let Some(value) = value {
                    let comma = if step.ends_with('{') { "" } else { "," };
                    step.push_str(&format!("{comma}\"{key}\":{value}"));
                }
            }
            Text::from(step + "}")
        }
        _ => Text::from(format_args!("v:{item}")),
    }
}

impl Fields {
    pub fn is_empty(&self) -> bool {
        !self.own && self.below.is_empty()
    }

    pub fn owns(&self) -> bool {
        self.own
    }

    pub fn step(&self, step: &str) -> Option<&Fields> {
        self.below.get(step)
    }

    pub fn steps(&self) -> impl Iterator<Item = (&Text, &Fields)> {
        self.below.iter()
    }

    /// The set without anything on the way to it.
    fn put(&mut self, step: Text, fields: Fields) {
        if !fields.is_empty() {
            self.below.insert(step, fields);
        }
    }

    /// What somebody owns who applies this.
    pub fn applied(value: &Value, shape: &Shape) -> Self {
        let mut fields = Self::default();
        match (value, shape) {
            (Value::Object(map), Shape::Object(_) | Shape::Map(_)) => {
                fields.own = map.is_empty();
                for (name, value) in map.iter().filter(|(name, _)| !shape.is_system(name)) {
                    let Some(inner) = shape.field(name) else { continue };
                    let mut inner_fields = Self::applied(value, inner);
                    // Entries that no type names are members, fields of a type only as their content.
                    inner_fields.own |= value.is_null() || matches!(shape, Shape::Map(_));
                    fields.put(field_step(name), inner_fields);
                }
            }
            (Value::Array(list), Shape::Set | Shape::Keyed(..)) => {
                for item in list {
                    let mut inner = match shape {
                        Shape::Keyed(_, each) => Self::applied(item, each),
                        _ => Self::default(),
                    };
                    inner.own = true;
                    fields.put(item_step(shape, item), inner);
                }
            }
            _ => fields.own = true,
        }
        fields
    }

    /// All of a value that has come, or has gone, as the difference tells it.
    fn whole(value: &Value, shape: &Shape) -> Self {
        let mut fields = Self { own: true, below: BTreeMap::new() };
        match (value, shape) {
            (Value::Object(map), Shape::Object(_) | Shape::Map(_)) => {
                for (name, value) in map.iter().filter(|(name, _)| !shape.is_system(name)) {
                    let Some(inner) = shape.field(name) else { continue };
                    fields.put(field_step(name), Self::whole(value, inner));
                }
            }
            (Value::Array(list), Shape::Set | Shape::Keyed(..)) => {
                for item in list {
                    let each = if let Shape::Keyed(_, each) = shape { each } else { &Shape::Text };
                    fields.put(item_step(shape, item), Self::whole(item, each));
                }
            }
            _ => {}
        }
        fields
    }

    pub fn union(&mut self, other: &Fields) {
        self.own |= other.own;
        for (step, fields) in &other.below {
            match self.below.get_mut(step) {
                Some(own) => own.union(fields),
                None => self.put(step.clone(), fields.clone()),
            }
        }
    }

    pub fn remove(&mut self, other: &Fields) {
        self.own &= !other.own;
        for (step, fields) in &other.below {
            if let Some(own) = self.below.get_mut(step) {
                own.remove(fields);
                if own.is_empty() {
                    self.below.remove(step);
                }
            }
        }
    }

    /// True if nothing is in this set that is not in the other.
    pub fn is_within(&self, other: &Fields) -> bool {
        (!self.own || other.own)
            && self
                .below
                .iter()
                .all(|(step, fields)| other.below.get(step).is_some_and(|other| fields.is_within(other)))
    }

    /// What is in both.
    pub fn common(&self, other: &Fields) -> Fields {
        let mut common = Self { own: self.own && other.own, below: BTreeMap::new() };
        if !self.below.is_empty() {
            for (step, fields) in &other.below {
                if let Some(own) = self.below.get(step) {
                    common.put(step.clone(), own.common(fields));
                }
            }
        }
        common
    }

    /// Every path in the set, as messages print them.
    pub fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.collect(&mut String::new(), &mut found);
        found
    }

    fn collect(&self, path: &mut String, found: &mut Vec<String>) {
        if self.own {
            found.push(path.clone());
        }
        for (step, fields) in &self.below {
            let length = path.len();
            path.push_str(&printed(step));
            fields.collect(path, found);
            path.truncate(length);
        }
    }

    /// From `fieldsV1`.
    pub fn from_json(json: &Value) -> Self {
        let mut fields = Self::below_from_json(json);
        fields.own = false;
        fields
    }

    fn below_from_json(json: &Value) -> Self {
        let Some(map) = json.as_object() else { return Self::default() };
        let below = map.iter().filter(|(step, _)| *step != ".");
        Self {
            own: map.is_empty() || map.contains_key("."),
            below: below.map(|(step, json)| (step.into(), Self::below_from_json(json))).collect(),
        }
    }
}

/// As `fieldsV1`.
impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.own && !self.below.is_empty() {
            map.serialize_entry(".", &Value::Object(Map::new()))?;
        }
        for (step, fields) in &self.below {
            map.serialize_entry(step, fields)?;
        }
        map.end()
    }
}

/// A step as messages print it, with its separator: `.phase`, `[group="g",resource="r"]`, `[="v1"]`.
fn printed(step: &str) -> String {
    if let Some(name) = step.strip_prefix("f:") {
        return format!(".{name}");
    }
    if let Some(value) = step.strip_prefix("v:") {
        return format!("[={value}]");
    }
    let keys: Map<String, Value> =
        step.strip_prefix("k:").and_then(|keys| serde_json::from_str(keys).ok()).unwrap_or_default();
    let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("[{}]", keys.join(","))
}

impl Difference {
    /// What differs between two states of an object.
    pub fn between(old: &Value, new: &Value, shape: &Shape) -> Self {
        let mut difference = Self::default();
        if old == new {
            return difference;
        }
        match (old, new, shape) {
            (Value::Object(before), Value::Object(after), Shape::Object(_) | Shape::Map(_)) => {
                let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
                for name in names.filter(|name| !shape.is_system(name)) {
                    let Some(inner) = shape.field(name) else { continue };
                    difference.descend(|| field_step(name), before.get(name), after.get(name), inner);
                }
            }
            (Value::Array(before), Value::Array(after), Shape::Set | Shape::Keyed(..))
                if !(before.is_empty() && after.is_empty()) =>
            {
                let each = if let Shape::Keyed(_, each) = shape { each } else { &Shape::Text };
                let by_step = |list: &[Value]| -> BTreeMap<Text, usize> {
                    list.iter().enumerate().map(|(at, item)| (item_step(shape, item), at)).collect()
                };
                let (old_steps, new_steps) = (by_step(before), by_step(after));
                let gone = old_steps.iter().filter(|(step, _)| !new_steps.contains_key(*step));
                for (step, at) in gone {
                    difference.descend(|| step.clone(), before.get(*at), None, each);
                }
                for (step, at) in &new_steps {
                    let old = old_steps.get(step).and_then(|at| before.get(*at));
                    difference.descend(|| step.clone(), old, after.get(*at), each);
                }
            }
            _ => difference.changed.own = true,
        }
        difference
    }

    fn descend(&mut self, step: impl Fn() -> Text, old: Option<&Value>, new: Option<&Value>, shape: &Shape) {
        match (old, new) {
            (Some(old), Some(new)) => {
                if old != new {
                    let inner = Self::between(old, new, shape);
                    self.changed.put(step(), inner.changed);
                    self.removed.put(step(), inner.removed);
                }
            }
            (None, Some(new)) => self.changed.put(step(), Fields::whole(new, shape)),
            (Some(old), None) => self.removed.put(step(), Fields::whole(old, shape)),
            (None, None) => {}
        }
    }
}
