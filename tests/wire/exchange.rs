//! Exchanges, as they were recorded.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use apibinding::api::Kind;
use apibinding::snapshot::Origin;
use bytes::Bytes;
use serde_json::{Value, json};

use super::known::text;

/// An exchange, or (with `object` instead) an object as it was at some time.
pub struct Exchange {
    pub file: String,
    pub json: Value,
}

/// What a path asks for, as far as what has to be there before can be told from it.
pub struct Target {
    pub origin: Origin,
    pub kind: Kind,
    /// As it stands in the path: a name, a path, or `*`.
    pub cluster: String,
    pub name: String,
    pub query: BTreeMap<String, String>,
}

impl Exchange {
    /// True if all that happened to its object is known: true of none that others send, and of what the
    /// original controller sent while its neighbours were at work.
    pub fn is_of_series(&self) -> bool {
        self.json["file"].is_string() && !self.file.starts_with("request-")
    }

    pub fn request(&self) -> &Value {
        &self.json["request"]
    }

    pub fn method(&self) -> &str {
        text(self.request(), "/method")
    }

    /// What was answered.
    pub fn response(&self) -> &Value {
        &self.json["response"]["body"]
    }

    /// The lines of a watch.
    pub fn lines(&self) -> Option<Vec<Value>> {
        let lines = self.response().as_array()?;
        Some(lines.iter().map(|line| serde_json::from_str(line.as_str().unwrap()).unwrap()).collect())
    }

    pub fn code(&self) -> u64 {
        self.json["response"]["status"].as_u64().unwrap()
    }

    /// The request as it goes to a server.
    pub fn to_http(&self) -> http::Request<Bytes> {
        let headers = &self.request()["headers"];
        let mut request = http::Request::builder().method(self.method()).uri(text(self.request(), "/path"));
        for (name, value) in headers.as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            if !value.starts_with('(') {
                request = request.header(name, value);
            }
        }
        // Who does not say its name is called by its program, which is not recorded.
        let owners = self.response()["metadata"]["managedFields"].as_array().into_iter().flatten();
        let program = owners.map(|owner| text(owner, "/manager")).next();
        if let (Some(program), "POST") = (program, self.method()) {
            request = request.header("user-agent", program);
        }
        let body = match &self.request()["body"] {
            Value::Null => Bytes::new(),
            Value::String(text) => Bytes::copy_from_slice(text.as_bytes()),
            json => serde_json::to_vec(json).unwrap().into(),
        };
        request.body(body).unwrap()
    }
}

impl Target {
    pub fn of(path: &str) -> Option<Self> {
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
        let query = query.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Some(Self { origin, kind, cluster, name, query })
    }
}

pub fn unzip(path: &Path) -> Value {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub fn data() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

pub fn kept() -> Vec<Exchange> {
    let read = |name: &str| match unzip(&data().join(name)) {
        Value::Array(all) => all.into_iter(),
        other => panic!("{name}: expected a list of exchanges, got {other}"),
    };
    read("wire/exchanges.json.gz")
        .chain(read("wire/requests.json.gz"))
        .map(|json| Exchange { file: json["file"].as_str().unwrap().to_owned(), json })
        .collect()
}

pub fn read_folder(folder: &Path) -> Vec<Exchange> {
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
