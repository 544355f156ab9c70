//! How a request and an object become the next object: server-side apply, JSON merge patch, and what
//! the server does to every object it takes in.

use std::mem::take;

use serde_json::{Map, Value};

use super::fields::{Fields, item_step};
use super::shape::Shape;

/// Puts what an applier sends over what there is.
pub(super) fn apply(live: &mut Value, sent: Value, shape: &Shape) {
    match (live, sent, shape) {
        (Value::Object(live), Value::Object(sent), Shape::Object(_) | Shape::Map(_)) => {
            for (name, value) in sent.into_iter().filter(|(name, _)| !shape.is_system(name)) {
                let Some(inner) = shape.field(&name) else { continue };
                match live.get_mut(&name) {
                    Some(live) => apply(live, value, inner),
                    None => drop(live.insert(name, value)),
                }
            }
        }
        (Value::Array(live), Value::Array(sent), Shape::Set | Shape::Keyed(..)) => {
            *live = apply_list(take(live), sent, shape);
        }
        (live, sent, _) => *live = sent,
    }
}

/// The sender's order, and what is not the sender's where it stood.
fn apply_list(live: Vec<Value>, sent: Vec<Value>, shape: &Shape) -> Vec<Value> {
    let mut merged = Vec::with_capacity(live.len() + sent.len());
    let steps: Vec<_> = sent.iter().map(|item| item_step(shape, item)).collect();
    let mut live: Vec<_> = live.into_iter().map(|item| (item_step(shape, &item), item)).collect();
    for (step, item) in steps.iter().zip(sent) {
        // What stands before the entry of this name, and is not sent, stays before it.
        let at = live.iter().position(|(other, _)| other == step);
        let before = live.iter().take(at.unwrap_or(0)).take_while(|(other, _)| !steps.contains(other)).count();
        merged.extend(live.drain(..before).map(|(_, item)| item));
        let known = live.iter().position(|(other, _)| other == step).map(|at| live.remove(at).1);
        merged.push(match (known, shape) {
            (Some(mut known), Shape::Keyed(_, each)) => {
                apply(&mut known, item, each);
                known
            }
            _ => item,
        });
    }
    merged.extend(live.into_iter().map(|(_, item)| item));
    merged
}

/// Takes away what an applier owned, no longer sends, and nobody else owns.
///
/// `last`: what it owned; `kept`: what anybody owns now.
pub(super) fn prune(value: &mut Value, shape: &Shape, last: &Fields, kept: Option<&Fields>) {
    match (value, shape) {
        (Value::Object(map), Shape::Object(_) | Shape::Map(_)) => {
            // A field that a type names is owned with whatever is below it.
            let by_name = matches!(shape, Shape::Object(_));
            for (step, last) in last.steps() {
                let Some(name) = step.strip_prefix("f:") else { continue };
                let kept = kept.and_then(|kept| kept.step(step));
                let goes = (last.owns() || by_name) && !kept.is_some_and(|kept| kept.owns() || by_name);
                if goes && !(by_name && name == "metadata") {
                    map.remove(name);
                } else if let (Some(value), Some(inner)) = (map.get_mut(name), shape.field(name)) {
                    prune(value, inner, last, kept);
                }
            }
        }
        (Value::Array(list), Shape::Set | Shape::Keyed(..)) => list.retain_mut(|item| {
            let step = item_step(shape, item);
            let Some(last) = last.step(&step) else { return true };
            let kept = kept.and_then(|kept| kept.step(&step));
            if last.owns() && !kept.is_some_and(Fields::owns) {
                return false;
            }
            if let Shape::Keyed(_, each) = shape {
                prune(item, each, last, kept);
            }
            true
        }),
        _ => {}
    }
}

/// JSON merge patch: `null` takes away.
pub(super) fn merge_patch(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            target.remove(&name);
        } else {
            merge_patch(target.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// What the server makes of every object: unknown fields and nulls go, defaults come, times are cut.
pub(super) fn tidy(value: &mut Value, shape: &Shape) {
    match (value, shape) {
        (Value::Object(map), Shape::Object(fields)) => {
            map.retain(|name, value| !value.is_null() && shape.field(name).is_some());
            for field in *fields {
                match (map.get_mut(field.name), field.default) {
                    (Some(value), _) => tidy(value, &field.shape),
                    (None, Some(default)) => {
                        let mut value = default();
                        tidy(&mut value, &field.shape);
                        map.insert(field.name.into(), value);
                    }
                    (None, None) => {}
                }
            }
        }
        (Value::Object(map), Shape::Map(each)) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(|value| tidy(value, each));
        }
        (Value::Array(list), Shape::List(each) | Shape::Keyed(_, each)) => {
            list.iter_mut().for_each(|item| tidy(item, each));
        }
        (value, Shape::Whole(inner)) => tidy(value, inner),
        (Value::String(time), Shape::Time) => cut_fraction(time),
        _ => {}
    }
}

/// `12:00:00.25Z` is kept as `12:00:00Z`.
fn cut_fraction(time: &mut String) {
    if let Some((seconds, fraction)) = time.split_once('.') {
        *time = format!("{seconds}{}", fraction.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    }
}

/// The first thing in an applied body that does not fit its kind: where, and why.
pub(super) fn misfit(value: &Value, shape: &Shape) -> Option<(String, String)> {
    let expected = |what: &str| Some((String::new(), wrong(what, value)));
    match (value, shape) {
        (Value::Null, _) | (_, Shape::Any) => None,
        (Value::Object(map), Shape::Object(_) | Shape::Map(_)) => map.iter().find_map(|(name, value)| {
            let Some(inner) = shape.field(name) else {
                return Some((format!(".{name}"), "field not declared in schema".into()));
            };
            misfit(value, inner).map(|(path, why)| (format!(".{name}{path}"), why))
        }),
        (Value::Array(list), Shape::List(each) | Shape::Keyed(_, each)) => {
            list.iter().enumerate().find_map(|(at, item)| {
                misfit(item, each)
                    .map(|(path, why)| (format!("[{at}]{path}"), why))
                    .or_else(|| lacks_key(item, at, shape))
            })
        }
        (Value::Array(list), Shape::Set) => {
            let other = list.iter().enumerate().find(|(_, item)| !item.is_string());
            other.map(|(at, item)| (format!("[{at}]"), wrong("string", item)))
        }
        (value, Shape::Whole(inner)) => misfit(value, inner),
        (_, Shape::Object(_) | Shape::Map(_)) => expected("map"),
        (_, Shape::List(_) | Shape::Keyed(..) | Shape::Set) => expected("list"),
        (value, Shape::Boolean) => {
            if value.is_boolean() {
                None
            } else {
                expected("boolean")
            }
        }
        (value, Shape::Integer) => {
            if value.is_i64() {
                None
            } else {
                expected("integer")
            }
        }
        (value, _) => {
            if value.is_string() {
                None
            } else {
                expected("string")
            }
        }
    }
}

/// As the server writes it, in the words of its own data types.
fn wrong(expected: &str, found: &Value) -> String {
    match found {
        Value::String(text) => format!("expected {expected}, got &value.valueUnstructured{{Value:{text:?}}}"),
        other => format!("expected {expected}, got &value.valueUnstructured{{Value:{other}}}"),
    }
}

/// An entry that does not say which one it is.
fn lacks_key(item: &Value, at: usize, shape: &Shape) -> Option<(String, String)> {
    let Shape::Keyed(keys, each) = shape else { return None };
    let lacks = |key: &&&str| item.get(**key).is_none() && each.default(key).is_none();
    keys.iter().find(lacks).map(|key| {
        (format!("[{at}]"), format!("associative list with keys has an element that omits key field {key:?}"))
    })
}

/// Leaves of a body what an apply may write: the status, or all but the status.
pub(super) fn restrict(body: &mut Value, has_status: bool, is_status: bool) {
    if let Value::Object(body) = body {
        body.retain(|name, _| (name == "status") == is_status || !has_status);
    }
}
