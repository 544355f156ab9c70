//! JSON patch: a list of changes, each by the path to what it changes (RFC 6902).

use serde_json::Value;

/// An object with these changes made to it, all or none.
pub(super) fn apply(object: &Value, patch: &Value) -> Result<Value, String> {
    let mut next = object.clone();
    for change in patch.as_array().ok_or("a JSON patch is a list")? {
        let text = |name: &str| change.get(name).and_then(Value::as_str);
        let (kind, path) = (text("op").unwrap_or_default(), text("path").ok_or("a change without a path")?);
        let value = || change.get("value").cloned().ok_or_else(|| format!("{kind} without a value: {path}"));
        let from = || text("from").ok_or_else(|| format!("{kind} without from: {path}"));
        match kind {
            "add" => add(&mut next, path, value()?)?,
            "remove" => drop(remove(&mut next, path)?),
            "replace" => {
                let value = value()?;
                *next.pointer_mut(path).ok_or_else(|| missing(path))? = value;
            }
            "move" => {
                let value = remove(&mut next, from()?)?;
                add(&mut next, path, value)?;
            }
            "copy" => {
                let from = from()?;
                let value = next.pointer(from).cloned().ok_or_else(|| missing(from))?;
                add(&mut next, path, value)?;
            }
            "test" => {
                if next.pointer(path) != Some(&value()?) {
                    return Err(format!("testing value {path} failed: test failed"));
                }
            }
            other => return Err(format!("unexpected kind: {other}")),
        }
    }
    Ok(next)
}

fn missing(path: &str) -> String {
    format!("the path is missing: {path}")
}

/// What holds the value of a path, and its place there.
fn holder<'a>(object: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), String> {
    let (above, last) = path.rsplit_once('/').ok_or_else(|| missing(path))?;
    let holder = object.pointer_mut(above).ok_or_else(|| missing(path))?;
    Ok((holder, last.replace("~1", "/").replace("~0", "~")))
}

fn add(object: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        *object = value;
        return Ok(());
    }
    let (holder, place) = holder(object, path)?;
    match holder {
        Value::Object(map) => drop(map.insert(place, value)),
        Value::Array(list) if place == "-" => list.push(value),
        Value::Array(list) => match place.parse::<usize>() {
            Ok(at) if at <= list.len() => list.insert(at, value),
            _ => return Err(missing(path)),
        },
        _ => return Err(missing(path)),
    }
    Ok(())
}

fn remove(object: &mut Value, path: &str) -> Result<Value, String> {
    let (holder, place) = holder(object, path)?;
    let removed = match holder {
        Value::Object(map) => map.remove(&place),
        Value::Array(list) => place.parse().ok().filter(|at| *at < list.len()).map(|at| list.remove(at)),
        _ => None,
    };
    removed.ok_or_else(|| missing(path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(patch: Value, expect: Option<Value>) {
        let object = json!({"a": {"x/y": 1}, "list": [1, 2]});
        assert_eq!(apply(&object, &patch).ok(), expect);
    }

    #[test]
    fn changes_are_made_in_order_or_not_at_all() {
        check(
            json!([
                {"op": "test", "path": "/a/x~1y", "value": 1},
                {"op": "add", "path": "/list/-", "value": 3},
                {"op": "add", "path": "/list/0", "value": 0},
                {"op": "remove", "path": "/list/1"},
                {"op": "move", "from": "/a/x~1y", "path": "/b"},
                {"op": "copy", "from": "/b", "path": "/c"},
                {"op": "replace", "path": "/a", "value": null},
            ]),
            Some(json!({"a": null, "b": 1, "c": 1, "list": [0, 2, 3]})),
        );
        check(json!([{"op": "remove", "path": "/z"}]), None);
        check(json!([{"op": "add", "path": "/list/9", "value": 1}]), None);
        check(json!([{"op": "add", "path": "no", "value": 1}]), None);
        check(json!([{"op": "remove", "path": ""}]), None);
        check(json!([{"op": "test", "path": "/a", "value": 1}]), None);
        check(json!({"op": "remove"}), None);
    }
}
