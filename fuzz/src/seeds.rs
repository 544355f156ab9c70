//! What the targets begin with, from the project's recorded data.

use std::io::Read;
use std::path::Path;

use apibinding::snapshot::Layer;
use flate2::read::GzDecoder;
use serde_json::Value;

/// Long seeds are slow, and show nothing that short ones do not.
const LONGEST: usize = 6_000;

fn unpack(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(path);
    let packed = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    text
}

const KINDS: [&str; 6] = [
    "apibindings",
    "apiexports",
    "apiresourceschemas",
    "apiconversions",
    "logicalclusters",
    "customresourcedefinitions",
];

/// The objects of a real kcp, some of each kind, each with its kind.
fn recorded() -> Vec<Value> {
    let mut objects = Vec::new();
    for kind in KINDS {
        let list: Value = serde_json::from_str(&unpack(&format!("kcp/objects/{kind}.json.gz"))).unwrap();
        for item in list["items"].as_array().into_iter().flatten().take(8) {
            let mut item = item.clone();
            for field in ["apiVersion", "kind"] {
                let of_list = list[field].as_str().unwrap_or_default().trim_end_matches("List").to_owned();
                item.as_object_mut().unwrap().entry(field).or_insert(of_list.into());
            }
            objects.push(item);
        }
    }
    objects
}

/// One object a line, and some lines with several.
pub fn objects() -> Vec<Vec<u8>> {
    let lines: Vec<String> = recorded().iter().map(Value::to_string).filter(|line| line.len() < LONGEST).collect();
    let together = lines.chunks(5).map(|lines| lines.join("\n"));
    lines.iter().cloned().chain(together).map(String::into_bytes).collect()
}

pub fn reader() -> Vec<Vec<u8>> {
    let example = include_str!("../../examples/world.yaml");
    let documents = example.split("\n---\n").map(str::to_owned);
    let list = format!("{{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{}]}}", {
        let items: Vec<String> = recorded().iter().map(Value::to_string).filter(|line| line.len() < 2_000).collect();
        items.into_iter().take(3).collect::<Vec<_>>().join(",")
    });
    let odd =
        ["&a [*a]", "a: &b {<<: *b}", "? [a]\n: b", "%YAML 1.2\n---\n!!binary x", "\u{feff}{}", "{\"a\":1}{\"b\":2}"];
    let lines = objects().into_iter().take(20);
    documents.chain([list]).chain(odd.map(str::to_owned)).map(String::into_bytes).chain(lines).collect()
}

pub fn locks() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = [
        r#"{"geese.farm.example":{"n":"alder","u":"uid-alder"}}"#,
        r#"{"geese.farm.example":{"n":"birch"},"ganders.farm.example":{"c":true,"e":"2026-06-01T11:58:00Z"}}"#,
        r#"{"geese.farm.example": {"c": true, "e": "2026-06-01T14:00:00.7+02:00"}, "eggs": null}"#,
        r#"{"geese.farm.example":{"n":"alder","u":"uid-of-yore"},"eggs":{"n":"yew","u":"uid-yew"},"a":{}}"#,
        "null",
        "",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    for home in recorded().iter().filter(|object| object["kind"] == "LogicalCluster") {
        let texts = Layer::ALL.iter().filter_map(|layer| home["metadata"]["annotations"][layer.annotation()].as_str());
        seeds.extend(texts.map(|text| text.as_bytes().to_vec()));
    }
    seeds
}

/// Any bytes do: they are choices, not text.
pub fn changes() -> Vec<Vec<u8>> {
    let mut chance = apibinding::sim::Chance::new(7);
    (0..40).map(|_| (0..chance.within(20..300)).map(|_| chance.any() as u8).collect()).collect()
}
