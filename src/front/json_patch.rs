//! JSON patch: a list of changes, each by the path to what it changes (RFC 6902).

use serde_json::Value;

/// How deep an object may become: as deep as one that is read.
const DEPTH: usize = 128;
/// How many values may be copied in all: a few copies of copies would be more than there is room for.
const COPIES: usize = 100_000;

/// An object with these changes made to it, all or none.
pub(super) fn apply(object: &Value, patch: &Value) -> Result<Value, String> {
    let (mut next, mut copies) = (object.clone(), 0);
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
                check_depth(path, &value)?;
                *next.pointer_mut(path).ok_or_else(|| missing(path))? = value;
            }
            "move" => {
                let value = remove(&mut next, from()?)?;
                add(&mut next, path, value)?;
            }
            "copy" => {
                let from = from()?;
                let value = next.pointer(from).ok_or_else(|| missing(from))?;
                copies += count(value);
                if copies > COPIES {
                    return Err("too much is copied".into());
                }
                let value = value.clone();
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

/// Whatever goes through an object goes as deep as it is, so that has an end.
fn check_depth(path: &str, value: &Value) -> Result<(), String> {
    let is_deep = path.matches('/').count() + depth(value) > DEPTH;
    if is_deep { Err("this would be too deep".into()) } else { Ok(()) }
}

fn inner(value: &Value) -> impl Iterator<Item = &Value> {
    let fields = value.as_object().into_iter().flat_map(serde_json::Map::values);
    value.as_array().into_iter().flatten().chain(fields)
}

fn depth(value: &Value) -> usize {
    1 + inner(value).map(depth).max().unwrap_or(0)
}

fn count(value: &Value) -> usize {
    1 + inner(value).map(count).sum::<usize>()
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
    check_depth(path, &value)?;
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
    fn neither_depth_nor_size_gets_out_of_hand() {
        let deepest = json!({"op": "copy", "from": "", "path": "/a"});
        check(Value::Array(vec![deepest; 200]), None);
        let list = json!({"op": "copy", "from": "/list", "path": "/list/-"});
        check(Value::Array(vec![list; 100]), None);
        let deeper =
            (1..200).map(|depth| json!({"op": "add", "path": format!("/a{}", "/b".repeat(depth)), "value": {}}));
        check(deeper.collect(), None);
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
