//! Objects as they were at some time, as far as exchanges tell.

use apibinding::api::{BindingKey, Kind};
use serde_json::{Value, json};

use super::exchange::{Exchange, data, unzip};

/// An object as it was at some time.
pub struct Known<'a> {
    pub file: &'a str,
    pub kind: Kind,
    pub key: BindingKey,
    pub version: u64,
    pub object: &'a Value,
}

/// LogicalClusters of the same servers, which no exchange shows as they were before.
pub fn objects_at_rest() -> Vec<(String, Kind, Vec<Value>)> {
    let read = |place: &str| {
        let path = data().join(format!("kcp/{place}/logicalclusters.json.gz"));
        let list = if path.exists() { unzip(&path) } else { json!({}) };
        (place.to_owned(), Kind::LogicalCluster, list["items"].as_array().cloned().unwrap_or_default())
    };
    vec![read("objects"), read("bootstrap")]
}

pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub fn version(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().unwrap_or(0)
}

pub fn state<'a>(file: &'a str, kind: Kind, object: &'a Value) -> Known<'a> {
    let key = BindingKey::new(text(object, "/metadata/annotations/kcp.io~1cluster"), text(object, "/metadata/name"));
    Known { file, kind, key, version: version(object), object }
}

/// The states of objects that an exchange shows.
pub fn states(exchange: &Exchange) -> Vec<Known<'_>> {
    let json = &exchange.json;
    let of = |object: &Value| Kind::of(text(object, "/apiVersion"), text(object, "/kind"));
    if let Some(kind) = of(&json["object"]) {
        return vec![state(&exchange.file, kind, &json["object"])];
    }
    // An answer to a dry run shows what never was.
    if text(json, "/request/path").contains("dryRun") {
        return Vec::new();
    }
    let body = &json["response"]["body"];
    let items = body["items"].as_array().into_iter().flatten();
    items.chain([body]).filter_map(|object| Some(state(&exchange.file, of(object)?, object))).collect()
}

/// The number and the series in a name such as `ssa-lc-07-owned-by-other`.
pub fn place(file: &str) -> Option<(&str, u32)> {
    let number = file.split('-').find(|part| part.len() == 2 && part.parse::<u32>().is_ok())?;
    let at = file.find(&format!("-{number}"))?;
    Some((&file[..at], number.parse().unwrap()))
}

/// The cluster of a path, or of what is the name of one already.
pub fn cluster_of(path: &str, known: &[Known]) -> String {
    let homes = known.iter().filter(|known| known.kind == Kind::LogicalCluster);
    let mut homes = homes.filter(|home| text(home.object, "/metadata/annotations/kcp.io~1path") == path);
    homes.next().map_or(path.to_owned(), |home| home.key.cluster.to_string())
}
