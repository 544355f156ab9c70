//! Playing watches again: what happened is done again, line by line, and has to be told again.

use std::collections::BTreeSet;

use apibinding::api::{BindingKey, Kind};
use apibinding::front::{Content, House, Watch};
use apibinding::sim::{Kcp, Request};
use apibinding::snapshot::Origin;
use serde_json::{Value, json};

use super::compare::{bare, bare_owners, same};
use super::exchange::{Exchange, Target};
use super::known::{state, text, version};
use super::replay::{ask, house};

impl Exchange {
    pub fn replay_watch(&self, target: &Target) -> Result<(), String> {
        if self.code() != 200 {
            return self.same_answer(&ask(&mut house(self, Kcp::new(1)), self));
        }
        let lines = self.lines().unwrap();
        let start: u64 = target.query.get("resourceVersion").and_then(|start| start.parse().ok()).unwrap_or(0);
        let initial = self.initial(target, &lines);
        let mut kcp = Kcp::new(1);
        // What is changed while it watches was there before.
        let mut there = BTreeSet::new();
        for line in &lines {
            let key = key(line);
            if there.insert(key) && line["type"] != "ADDED" && line["type"] != "BOOKMARK" && line["type"] != "ERROR" {
                let mut object = line["object"].clone();
                object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
                kcp.load(target.origin, [object]);
            }
        }
        kcp.load(target.origin, lines[..initial].iter().map(|line| line["object"].clone()));
        if lines.iter().any(|line| line["type"] == "ERROR") {
            // The version at which the server that was recorded had begun.
            let begin = if target.origin == Origin::Local { "256" } else { "200" };
            kcp.load(
                Origin::Local,
                [json!({
                    "apiVersion": "apis.kcp.io/v1alpha2",
                    "kind": "APIExport",
                    "metadata": {"name": "a", "annotations": {"kcp.io/cluster": "a"}, "resourceVersion": begin},
                })],
            );
            kcp.compact(kcp.version());
        } else if start > kcp.version() && start < 1_000_000 {
            let kind = if target.kind == Kind::ApiExport { Kind::ApiConversion } else { Kind::ApiExport };
            kcp.load(Origin::Local, [json!({
                "apiVersion": kind.api_version(),
                "kind": kind.as_str(),
                "metadata": {"name": "a", "annotations": {"kcp.io/cluster": "a"}, "resourceVersion": start.to_string()},
            })]);
        }
        let mut house = house(self, kcp);
        let response = house.answer(&self.to_http());
        same("the code", &json!(self.code()), &json!(response.status().as_u16()))?;
        same(
            "the content type",
            &self.json["response"]["headers"]["content-type"],
            &json!(response.headers()["content-type"].to_str().unwrap()),
        )?;
        let Content::Watch(mut watch) = response.into_body() else { return Err("no watch".into()) };

        let mut told = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            if at >= initial {
                happen(&mut house, target, line);
            }
            more(&mut watch, &mut house, &mut told);
            if line["type"] == "BOOKMARK" && told.len() == at {
                let bookmark = watch.bookmark().ok_or("no bookmark where one was told")?;
                told.push(serde_json::from_slice(&bookmark).unwrap());
            }
        }
        more(&mut watch, &mut house, &mut told);
        let [recorded, replayed] = [&lines, &told].map(|lines| lines.iter().map(bare_line).collect::<Vec<_>>());
        same("what is told", &json!(recorded), &json!(replayed))?;
        let tells_bookmarks = lines.iter().any(|line| line["type"] == "BOOKMARK");
        if self.json["response"]["ended"] == "server closed" && !tells_bookmarks && watch.bookmark().is_some() {
            return Err("a bookmark where none was told".into());
        }
        let is_over = lines.last().is_some_and(|line| line["type"] == "ERROR");
        same("whether it is over", &json!(is_over), &json!(watch.is_over()))
    }

    /// How many lines tell of what was there.
    fn initial(&self, target: &Target, lines: &[Value]) -> usize {
        match lines
            .iter()
            .position(|line| line["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true")
        {
            Some(end) => end,
            None if target.query.get("resourceVersion").is_some_and(|version| version == "0") => 1,
            None => 0,
        }
    }
}

fn key(line: &Value) -> BindingKey {
    state("", Kind::ApiBinding, &line["object"]).key
}

/// What a line tells of is done again.
fn happen(house: &mut House, target: &Target, line: &Value) {
    let (object, key) = (&line["object"], key(line));
    let kcp = house.kcp_mut();
    match text(line, "/type") {
        "ADDED" | "MODIFIED" => kcp.load(target.origin, [object.clone()]),
        "DELETED" if target.origin == Origin::Global => kcp.set_copy(target.kind, &key, None),
        "DELETED" => {
            let finalizers = object["metadata"]["finalizers"].is_array();
            let request = match finalizers {
                true => {
                    let patch = json!({"metadata": {"finalizers": null}});
                    Request::merge(target.kind, key.cluster, key.name, patch)
                }
                false => Request::delete(target.kind, key.cluster, key.name),
            };
            kcp.handle(request).unwrap();
        }
        _ => {}
    }
    assert!(version(object) >= 1 || line["type"] == "ERROR");
    house.spread();
}

fn more(watch: &mut Watch, house: &mut House, told: &mut Vec<Value>) {
    while let Some(bytes) = watch.more(house) {
        assert!(bytes.ends_with(b"\n"));
        told.extend(
            bytes
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
                .map(|line| serde_json::from_slice::<Value>(line).unwrap()),
        );
    }
}

/// A line without what differs from server to server.
fn bare_line(line: &Value) -> Value {
    let object = &line["object"];
    json!({
        "type": line["type"],
        "object": bare(object),
        "owners": bare_owners(&object["metadata"]["managedFields"]),
    })
}
