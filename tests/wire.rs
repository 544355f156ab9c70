//! Exchanges recorded from a running kcp, replayed on the simulated one: the same code, reason, causes,
//! and effect on the object.
//!
//! `WIRE_EXCHANGES=/path/folder` replays the files of another folder. What an object was before a request
//! is taken from what other exchanges tell of it, those of the folder and those kept here. The last
//! line counts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use apibinding::api::{BindingKey, Kind};
use apibinding::sim::{Kcp, Request};
use apibinding::snapshot::Origin;
use serde_json::{Value, json};

const AUTHORISATION: &str = "who may do what is asked by the HTTP front";
const STARTING: &str = "a server that is still starting: the simulated one is there at once";
const CONTENT: &str = "content types and bodies that are no JSON are read by the HTTP front";
const ROUTING: &str = "a path that is not served: routing is the HTTP front's";
const WATCHES: &str = "watches are served by the HTTP front, from the history that is kept here";
const PAGES: &str = "pages and lists of the past are cut by the HTTP front";

/// The kept exchanges that are not replayed, by why.
const LEFT_OUT: &[(&str, &[&str])] = &[
    (
        AUTHORISATION,
        &[
            "err-401-bad-token",
            "err-403-anonymous",
            "err-403-create-crd",
            "err-403-kcp-admin",
            "err-403-no-rights",
            "ssa-ab-14-forbidden",
        ],
    ),
    (STARTING, &["early-404", "early-429"]),
    (CONTENT, &["crd-create-badjson", "ssa-lc-21-yaml-body", "ssa-lc-25-wrong-content-type"]),
    (ROUTING, &["err-no-cluster-in-path", "list-unknown-version"]),
    (
        WATCHES,
        &[
            "watch-apibindings-bookmarks",
            "watch-apiconversions-bookmarks",
            "watch-apiconversions-initial-events",
            "watch-cache-apiconversions",
            "watch-initial-events-no-match",
            "watch-logicalclusters-crd-lock",
            "watch-logicalclusters-initial-events",
            "watch-rv-future",
            "watch-rv-garbage",
            "watch-rv0",
            "watch-rv1-cache-apiexports",
            "watch-rv1-crds",
        ],
    ),
    (
        PAGES,
        &[
            "list-continue-garbage",
            "list-continue-rv1",
            "list-limit1-cache-apiexports-page1",
            "list-limit2-apibindings-page1",
            "list-limit2-crds-page1",
            "list-limit2-page1",
            "list-limit2-page2",
            "list-limit2-page3-last",
            "list-rv0",
            "list-rv1-exact",
            "list-rv1-notolder",
        ],
    ),
];

/// Kept exchanges before which another one changed the object that was not recorded.
const AFTER_GAPS: &[&str] = &["ssa-lc-19-creation-timestamp-null"];

/// An exchange, or (with `object` instead) an object as it was at some time.
struct Exchange {
    file: String,
    json: Value,
}

/// What a path asks for.
struct Target {
    origin: Origin,
    kind: Kind,
    /// As it stands in the path: a name, a path, or `*`.
    cluster: String,
    name: String,
    is_status: bool,
    query: BTreeMap<String, String>,
}

/// An object as it was at some time.
struct Known<'a> {
    file: &'a str,
    kind: Kind,
    key: BindingKey,
    version: u64,
    object: &'a Value,
}

fn main() -> ExitCode {
    let kept = kept();
    let exchanges = match std::env::var("WIRE_EXCHANGES") {
        Ok(folder) => read_folder(Path::new(&folder)),
        Err(_) => Vec::new(),
    };
    let objects = objects_at_rest();
    let all = || exchanges.iter().chain(&kept);
    let mut known: Vec<Known> = all().flat_map(states).collect();
    known.extend(objects.iter().flat_map(|(file, kind, list)| list.iter().map(|object| state(file, *kind, object))));

    let (mut passed, mut failed, mut left_out) = (0, 0, BTreeSet::new());
    for exchange in if exchanges.is_empty() { &kept } else { &exchanges } {
        if exchange.json["request"].is_null() {
            continue;
        }
        let target = match exchange.within() {
            Ok(target) => target,
            Err(why) => {
                println!("left out  {}: {why}", exchange.file);
                left_out.insert(exchange.file.as_str());
                continue;
            }
        };
        match exchange.replay(&target, &known) {
            Ok(from) => {
                passed += 1;
                println!("passed    {} (from {from})", exchange.file);
            }
            Err(problem) => {
                failed += 1;
                println!("FAILED    {}: {}\n{problem}", exchange.file, exchange.json["what"]);
            }
        }
    }
    if exchanges.is_empty() {
        let expected: BTreeSet<&str> = LEFT_OUT.iter().flat_map(|(_, files)| files.iter().copied()).collect();
        for file in left_out.symmetric_difference(&expected) {
            failed += 1;
            println!("FAILED    {file}: replayed or left out against the list");
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 && passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn unzip(path: &Path) -> Value {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn data() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn kept() -> Vec<Exchange> {
    let read = |name: &str| match unzip(&data().join(name)) {
        Value::Array(all) => all.into_iter(),
        other => panic!("{name}: expected a list of exchanges, got {other}"),
    };
    read("wire/exchanges.json.gz")
        .chain(read("wire/requests.json.gz"))
        .map(|json| Exchange { file: json["file"].as_str().unwrap().to_owned(), json })
        .collect()
}

fn read_folder(folder: &Path) -> Vec<Exchange> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    files.sort();
    let read = |path: std::path::PathBuf| {
        let json: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let json = if json["request"].is_null() { json!({"object": json}) } else { json };
        Exchange { file: path.file_stem().unwrap().to_string_lossy().into_owned(), json }
    };
    files.into_iter().map(read).collect()
}

/// LogicalClusters of the same servers, which no exchange shows as they were before.
fn objects_at_rest() -> Vec<(String, Kind, Vec<Value>)> {
    let read = |place: &str| {
        let path = data().join(format!("kcp/{place}/logicalclusters.json.gz"));
        let list = if path.exists() { unzip(&path) } else { json!({}) };
        (place.to_owned(), Kind::LogicalCluster, list["items"].as_array().cloned().unwrap_or_default())
    };
    vec![read("objects"), read("bootstrap")]
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn version(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().unwrap_or(0)
}

fn state<'a>(file: &'a str, kind: Kind, object: &'a Value) -> Known<'a> {
    let key = BindingKey::new(text(object, "/metadata/annotations/kcp.io~1cluster"), text(object, "/metadata/name"));
    Known { file, kind, key, version: version(object), object }
}

/// The states of objects that an exchange shows.
fn states(exchange: &Exchange) -> Vec<Known<'_>> {
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
fn place(file: &str) -> Option<(&str, u32)> {
    let number = file.split('-').find(|part| part.len() == 2 && part.parse::<u32>().is_ok())?;
    let at = file.find(&format!("-{number}"))?;
    Some((&file[..at], number.parse().unwrap()))
}

impl Exchange {
    /// True if all that happened to its object is known: true of none that others send, and of what the
    /// original controller sent while its neighbours were at work.
    fn is_of_series(&self) -> bool {
        self.json["file"].is_string() && !self.file.starts_with("request-")
    }

    fn request(&self) -> &Value {
        &self.json["request"]
    }

    fn response(&self) -> &Value {
        &self.json["response"]["body"]
    }

    fn code(&self) -> u64 {
        self.json["response"]["status"].as_u64().unwrap()
    }

    /// What is asked for, or why that is none of the simulated server's business.
    fn within(&self) -> Result<Target, &'static str> {
        let answer = text(self.response(), "/message");
        if self.code() == 401 || (self.code() == 403 && answer.contains("cannot")) {
            return Err(AUTHORISATION);
        }
        if self.code() == 429 || self.file.starts_with("early") {
            return Err(STARTING);
        }
        if self.code() == 415 || !matches!(self.request()["body"], Value::Object(_) | Value::Null) {
            return Err(CONTENT);
        }
        let target = Target::of(text(self.request(), "/path")).ok_or(ROUTING)?;
        if target.query.contains_key("watch") {
            return Err(WATCHES);
        }
        if ["limit", "continue", "resourceVersion"].iter().any(|key| target.query.contains_key(*key)) {
            return Err(PAGES);
        }
        Ok(target)
    }

    /// Replays it from every state that the object may have been in, the likeliest first. Tells from
    /// where it went well.
    fn replay(&self, target: &Target, known: &[Known]) -> Result<String, String> {
        let mut problems = Vec::new();
        for start in self.starts(target, known) {
            let from = start.map_or("nothing", |start| start.file);
            match self.replay_from(target, start, known) {
                Ok(()) => return Ok(from.to_owned()),
                Err(problem) => problems.push(format!("    from {from}: {problem}")),
            }
        }
        // The likeliest start says most.
        Err(problems.into_iter().next().unwrap_or_else(|| "    no state of the object is known".into()))
    }

    fn starts<'a>(&self, target: &Target, known: &'a [Known<'a>]) -> Vec<Option<&'a Known<'a>>> {
        let body = self.response();
        let name = if target.name.is_empty() { text(&self.request()["body"], "/metadata/name") } else { &target.name };
        let uid = text(body, "/metadata/uid");
        let cluster = cluster_of(&target.cluster, known);
        let same = |other: &&Known| {
            (other.kind, &*other.key.name, other.key.cluster.as_str()) == (target.kind, name, cluster.as_str())
                && (uid.is_empty() || text(other.object, "/metadata/uid") == uid)
        };
        let series = place(&self.file);
        let precedes = |other: &&Known| match (series, place(other.file)) {
            (Some((series, number)), Some((other, other_number))) => series == other && other_number < number,
            _ => false,
        };
        let has_gap = !self.is_of_series() || AFTER_GAPS.contains(&self.file.as_str());
        let may_be_own = has_gap || text(self.request(), "/method") == "GET";
        // Those that precede it in its series come first, the latest before the others.
        let mut same: Vec<&Known> = known.iter().filter(same).collect();
        same.sort_by_key(|other| (!precedes(other), std::cmp::Reverse((place(other.file), other.version))));
        match self.code() {
            201 | 404 => vec![None],
            200 if body["items"].is_array() => vec![None],
            200 if text(body, "/kind") != "Status" => {
                // A state before, and where an exchange in between is not known, the one after: to ask
                // for it again changes nothing.
                let (own, others): (Vec<_>, Vec<_>) = same.into_iter().partition(|other| other.file == self.file);
                let before = others.into_iter().filter(|other| other.version <= version(body));
                let own = own.into_iter().filter(|_| may_be_own);
                before.chain(own).map(Some).collect()
            }
            _ => same.into_iter().map(Some).chain([None]).collect(),
        }
    }

    fn replay_from(&self, target: &Target, start: Option<&Known>, known: &[Known]) -> Result<(), String> {
        let body = self.response();
        let mut kcp = Kcp::new(1);
        let now = ["/metadata/deletionTimestamp", "/metadata/creationTimestamp"].map(|field| text(body, field));
        if let Some(now) = now.iter().find_map(|now| now.parse().ok()) {
            kcp.set_now(now);
        }
        // Where paths lead.
        let homes = known.iter().filter(|known| known.kind == Kind::LogicalCluster);
        let start_key = start.map(|start| (start.kind, &start.key));
        let homes: BTreeMap<_, _> = homes
            .filter(|home| {
                start_key != Some((home.kind, &home.key)) && (self.code() != 201 || target.kind != Kind::LogicalCluster)
            })
            .map(|home| (&home.key, home.object))
            .collect();
        let homes = homes.into_values().map(|home| {
            let mut home = home.clone();
            home["metadata"].as_object_mut().unwrap().remove("resourceVersion");
            home
        });
        kcp.load(Origin::Local, homes);
        let is_list = body["items"].is_array();
        let items = body["items"].as_array().into_iter().flatten().cloned().map(|mut item| {
            item["apiVersion"] = json!(target.kind.api_version());
            item["kind"] = json!(target.kind.as_str());
            item
        });
        if is_list {
            kcp = Kcp::new(1);
            kcp.load(target.origin, items);
        }
        kcp.load(target.origin, start.map(|start| start.object.clone()));

        let cluster = kcp.resolve(&target.cluster);
        let answer = cluster.and_then(|cluster| {
            let key = BindingKey::new(cluster, &*target.name);
            let before = kcp.get(target.origin, target.kind, &key).cloned();
            let answer = kcp.handle(self.to_request(target, &key));
            let after = kcp.get(target.origin, target.kind, &key);
            if answer.is_err() || target.query.contains_key("dryRun") {
                assert_eq!(before.as_ref(), after, "nothing may have changed");
            }
            answer
        });
        let (code, answer) = match answer {
            Ok(answer) => (u64::from(answer.code), (*answer.body).clone()),
            Err(status) => (u64::try_from(status.code.unwrap()).unwrap(), serde_json::to_value(&status).unwrap()),
        };
        if code != self.code() {
            return Err(format!("{code} instead of {}: {answer}", self.code()));
        }
        if text(body, "/kind") == "Status" {
            return same("the status", &verdict(body), &verdict(&answer));
        }
        same("the object", &bare(body), &bare(&answer))?;
        if is_list {
            return Ok(());
        }
        let key =
            BindingKey::new(text(&answer, "/metadata/annotations/kcp.io~1cluster"), text(&answer, "/metadata/name"));
        if !target.query.contains_key("dryRun")
            && let Some(owners) = kcp.managed_fields(target.origin, target.kind, &key)
        {
            same("managedFields", &bare_owners(&body["metadata"]["managedFields"]), &bare_owners(&owners))?;
        }
        let Some(start) = start else { return Ok(()) };
        let (recorded, replayed) = (version(body) > start.version, version(&answer) > start.version);
        same("a new resourceVersion", &json!(recorded), &json!(replayed))
    }

    fn to_request(&self, target: &Target, key: &BindingKey) -> Request {
        let body = self.request()["body"].clone();
        let (kind, cluster, name) = (target.kind, key.cluster.clone(), key.name.clone());
        let force = target.query.get("force").is_some_and(|force| force == "true");
        let mut request = match (text(self.request(), "/method"), text(self.request(), "/headers/content-type")) {
            ("GET", _) if name.is_empty() => Request::list(kind, cluster),
            ("GET", _) => Request::get(kind, cluster, name),
            ("POST", _) => Request::create(kind, cluster, body),
            ("PUT", _) => Request::update(kind, cluster, name, body),
            ("DELETE", _) => Request::delete(kind, cluster, name),
            ("PATCH", "application/merge-patch+json") => Request::merge(kind, cluster, name, body),
            ("PATCH", "application/apply-patch+yaml") => Request::apply(kind, cluster, name, body, force),
            other => panic!("{other:?}"),
        };
        request.origin = target.origin;
        if target.is_status {
            request = request.of_status();
        }
        if target.query.contains_key("dryRun") {
            request = request.dry_run();
        }
        // Who does not say its name is called by its program, which is not recorded.
        let owners = self.response()["metadata"]["managedFields"].as_array().into_iter().flatten();
        let program = owners.map(|owner| text(owner, "/manager")).next();
        match (target.query.get("fieldManager"), text(self.request(), "/method")) {
            (Some(manager), _) => request.managed_by(manager.as_str()),
            (None, "POST") => request.managed_by(program.unwrap_or_default()),
            (None, _) => request,
        }
    }
}

fn cluster_of(path: &str, known: &[Known]) -> String {
    let homes = known.iter().filter(|known| known.kind == Kind::LogicalCluster);
    let mut homes = homes.filter(|home| text(home.object, "/metadata/annotations/kcp.io~1path") == path);
    homes.next().map_or(path.to_owned(), |home| home.key.cluster.to_string())
}

impl Target {
    fn of(path: &str) -> Option<Self> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let query = query.split('&').filter_map(|pair| pair.split_once('='));
        let (origin, path) = match path.strip_prefix("/services/cache/shards/*") {
            Some(path) => (Origin::Global, path),
            None => (Origin::Local, path),
        };
        let mut parts = path.strip_prefix("/clusters/")?.split('/');
        let cluster = parts.next()?.to_owned();
        let ("apis", group, served) = (parts.next()?, parts.next()?, parts.next()?) else { return None };
        let kind = Kind::of_plural(parts.next()?)?;
        (kind.api_version() == format!("{group}/{served}")).then_some(())?;
        let name = parts.next().unwrap_or_default().to_owned();
        let is_status = parts.next() == Some("status");
        let query = query.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Some(Self { origin, kind, cluster, name, is_status, query })
    }
}

fn same(what: &str, recorded: &Value, replayed: &Value) -> Result<(), String> {
    if recorded == replayed {
        return Ok(());
    }
    let (recorded, replayed) =
        (serde_json::to_string_pretty(recorded).unwrap(), serde_json::to_string_pretty(replayed).unwrap());
    let diff = similar::TextDiff::from_lines(&recorded, &replayed);
    Err(format!("{what}:\n{}", diff.unified_diff().context_radius(2).header("recorded", "replayed")))
}

/// What of a `Status` has to be the same.
fn verdict(status: &Value) -> Value {
    let details = &status["details"];
    let causes = details["causes"].as_array().into_iter().flatten();
    let causes: Vec<Value> = causes.map(|cause| json!([cause["reason"], cause["field"]])).collect();
    json!({
        "status": status["status"],
        "code": status["code"],
        "reason": status["reason"],
        "message": status["message"],
        "details": [details["name"], details["group"], details["kind"], details["retryAfterSeconds"]],
        "causes": causes,
    })
}

/// An object without what differs from server to server.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(items) = object["items"].as_array_mut() {
        items.iter_mut().for_each(|item| *item = bare(item));
    }
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return object };
    for field in ["managedFields", "uid", "resourceVersion", "creationTimestamp"] {
        metadata.remove(field);
    }
    if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
        // Hashes that kcp puts there for its own use, and nobody reads here.
        labels.retain(|name, _| !name.contains("internal.apis.kcp.io/"));
        if labels.is_empty() {
            metadata.remove("labels");
        }
    }
    object
}

/// Who owns what, without times, in one order.
fn bare_owners(owners: &Value) -> Value {
    let owners = owners.as_array().into_iter().flatten();
    let mut owners: Vec<String> = owners
        .map(|owner| json!([owner["manager"], owner["operation"], owner["subresource"], owner["fieldsV1"]]).to_string())
        .collect();
    owners.sort();
    json!(owners)
}
