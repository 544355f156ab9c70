//! The front over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::io::{Read, Write};
use std::time::Duration;

use apibinding::api::{ApiBinding, BindingKey, Kind};
use apibinding::front::{Fault, Front, Rule, Settings, User};
use apibinding::sim::{Kcp, Request};
use apibinding::snapshot::{Layout, Origin};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

const BINDINGS: &str = "/clusters/meadow/apis/apis.kcp.io/v1alpha2/apibindings";

fn binding(name: &str) -> Value {
    json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": {"name": name},
        "spec": {"reference": {"export": {"name": "geese", "path": "root:farm"}}},
    })
}

fn front(settings: Settings) -> Front {
    let mut kcp = Kcp::new(1);
    let home = json!({
        "apiVersion": "core.kcp.io/v1alpha1",
        "kind": "LogicalCluster",
        "metadata": {"name": "cluster", "annotations": {"kcp.io/path": "root:meadow", "kcp.io/cluster": "meadow"}},
    });
    kcp.load(Origin::Local, [home]);
    Front::serve(kcp, settings).unwrap()
}

/// One connection, and what goes over it.
struct Client(hyper::client::conn::http1::SendRequest<Full<Bytes>>);

impl Client {
    async fn new(front: &Front) -> Self {
        let stream = TcpStream::connect(front.url().strip_prefix("http://").unwrap()).await.unwrap();
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    async fn send(
        &mut self,
        method: &str,
        path: &str,
        media: &str,
        body: String,
    ) -> hyper::Result<http::Response<hyper::body::Incoming>> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", media)
            .body(Full::from(body))
            .unwrap();
        self.0.ready().await?;
        self.0.send_request(request).await
    }

    async fn ask(&mut self, method: &str, path: &str, media: &str, body: String) -> (u16, Value) {
        let response = self.send(method, path, media, body).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body))))
    }

    async fn get(&mut self, path: &str) -> (u16, Value) {
        self.ask("GET", path, "", String::new()).await
    }
}

/// The lines of a watch, as they come.
struct Lines {
    body: hyper::body::Incoming,
    text: Vec<u8>,
}

impl Lines {
    async fn open(front: &Front, path: &str) -> Self {
        let response = Client::new(front).await.send("GET", path, "", String::new()).await.unwrap();
        assert_eq!(response.status(), 200);
        Self { body: response.into_body(), text: Vec::new() }
    }

    /// The next line; `Ok(None)` at the end.
    async fn next(&mut self) -> Result<Option<Value>, hyper::Error> {
        loop {
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line).unwrap()));
            }
            match timeout(Duration::from_secs(10), self.body.frame()).await.expect("something to come") {
                None => return Ok(None),
                Some(frame) => self.text.extend_from_slice(&frame?.into_data().unwrap()),
            }
        }
    }

    async fn next_type(&mut self) -> String {
        self.next().await.unwrap().unwrap()["type"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn what_one_client_writes_others_see() {
    let front = front(Settings::default());
    let mut watch = Lines::open(&front, &format!("{BINDINGS}?watch=1")).await;
    let mut client = Client::new(&front).await;
    let (code, created) = client.ask("POST", BINDINGS, "application/json", binding("geese").to_string()).await;
    assert_eq!((code, &created["metadata"]["generation"]), (201, &json!(1)), "{created}");
    assert!(created["metadata"]["managedFields"].is_array());
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!((&event["type"], &event["object"]), (&json!("ADDED"), &created));

    let status = json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": {"name": "geese"},
        "status": {"phase": "Binding"},
    });
    let path = format!("{BINDINGS}/geese/status?fieldManager=test&force=true");
    let (code, applied) = client.ask("PATCH", &path, "application/apply-patch+yaml", status.to_string()).await;
    assert_eq!((code, &applied["status"]["phase"]), (200, &json!("Binding")), "{applied}");
    assert_eq!(watch.next().await.unwrap().unwrap()["object"], applied);
    assert_eq!(client.get(&format!("{BINDINGS}/geese")).await, (200, applied));

    front.with(|kcp| kcp.handle(Request::delete(Kind::ApiBinding, "meadow", "geese"))).unwrap();
    assert_eq!(watch.next_type().await, "MODIFIED");
    // The finalizer goes in its own time.
    assert_eq!(watch.next_type().await, "DELETED");
    front.rest().await;
    assert!(front.with(|kcp| kcp.get(Origin::Local, Kind::ApiBinding, &BindingKey::new("meadow", "geese")).is_none()));
}

fn create(front: &Front, names: std::ops::Range<u32>) {
    front.with(|kcp| {
        for name in names {
            kcp.handle(Request::create(Kind::ApiBinding, "meadow", binding(&format!("geese-{name:03}")))).unwrap();
        }
    });
}

/// What kube makes of it, which puts `/clusters/meadow` in front of all paths.
fn kube(front: &Front) -> kube::Api<ApiBinding> {
    let config = kube::Config::new(format!("{}/clusters/meadow", front.url()).parse().unwrap());
    kube::Api::all(kube::Client::try_from(config).unwrap())
}

#[tokio::test]
async fn kube_lists_in_pages_and_reads_what_it_expects() {
    let front = front(Settings::default());
    create(&front, 0..25);
    let bindings = kube(&front);
    let mut params = kube::api::ListParams::default().limit(10);
    let (mut names, mut version) = (Vec::new(), None);
    loop {
        let page = bindings.list(&params).await.unwrap();
        names.extend(page.items.iter().map(|binding| binding.metadata.name.clone().unwrap()));
        // What comes meanwhile is not of this list.
        create(&front, 500 + names.len() as u32..501 + names.len() as u32);
        assert_eq!(*version.get_or_insert(page.metadata.resource_version.clone()), page.metadata.resource_version);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names, (0..25).map(|name| format!("geese-{name:03}")).collect::<Vec<_>>());
    let missing = bindings.get("ducks").await.unwrap_err();
    assert!(matches!(missing, kube::Error::Api(status) if status.code == 404 && status.reason == "NotFound"));
    let found = bindings.list(&kube::api::ListParams::default().fields("metadata.name=geese-007")).await.unwrap();
    assert_eq!(found.items.len(), 1);
}

#[tokio::test]
async fn pages_of_a_forgotten_version_go_on_with_another_token() {
    let front = front(Settings::default());
    create(&front, 0..5);
    let mut client = Client::new(&front).await;
    let (_, page) = client.get(&format!("{BINDINGS}?limit=2")).await;
    assert_eq!(page["metadata"]["remainingItemCount"], 3);
    let token = page["metadata"]["continue"].as_str().unwrap().to_owned();
    create(&front, 5..6);
    front.forget_history();
    let (code, gone) = client.get(&format!("{BINDINGS}?limit=2&continue={token}")).await;
    assert_eq!((code, &gone["reason"]), (410, &json!("Expired")));
    let token = gone["metadata"]["continue"].as_str().unwrap();
    let (code, rest) = client.get(&format!("{BINDINGS}?continue={token}")).await;
    assert_eq!((code, rest["items"].as_array().unwrap().len()), (200, 4));
    assert_eq!(client.get(&format!("{BINDINGS}?resourceVersion=999999")).await.0, 504);
    assert_eq!(
        client.get(&format!("{BINDINGS}?limit=2&resourceVersion=0")).await.1["items"].as_array().unwrap().len(),
        6
    );
}

#[tokio::test]
async fn a_watch_of_everything_tells_when_that_was_all_and_ends_with_a_bookmark() {
    let front = front(Settings::default());
    create(&front, 0..3);
    let path = format!(
        "{BINDINGS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=3"
    );
    let mut watch = Lines::open(&front, &path).await;
    for _ in 0..3 {
        assert_eq!(watch.next_type().await, "ADDED");
    }
    let all = watch.next().await.unwrap().unwrap();
    assert_eq!(all["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    create(&front, 3..4);
    assert_eq!(watch.next_type().await, "ADDED");
    let bookmark = watch.next().await.unwrap().unwrap();
    assert_eq!(
        (&bookmark["type"], bookmark["object"].get("metadata").unwrap().get("name")),
        (&json!("BOOKMARK"), None)
    );
    assert!(watch.next().await.unwrap().is_none(), "time is over");
}

#[tokio::test]
async fn watches_see_what_comes_into_their_selection_and_leaves_it() {
    let front = front(Settings::default());
    create(&front, 0..2);
    let mut watch = Lines::open(&front, &format!("{BINDINGS}?watch=1&labelSelector=a%3Db")).await;
    let label = |name: &str, value: Value| {
        let patch = json!({"metadata": {"labels": {"a": value}}});
        front.with(|kcp| kcp.handle(Request::merge(Kind::ApiBinding, "meadow", name, patch))).unwrap();
    };
    label("geese-000", json!("c"));
    label("geese-001", json!("b"));
    label("geese-001", Value::Null);
    let line = watch.next().await.unwrap().unwrap();
    assert_eq!((&line["type"], &line["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("geese-001")));
    assert_eq!(watch.next_type().await, "DELETED");
}

#[tokio::test]
async fn a_history_that_is_forgotten_ends_watches_and_makes_them_list_again() {
    let front = front(Settings::default());
    create(&front, 0..1);
    let version = front.with(|kcp| kcp.version());
    let path = format!("{BINDINGS}?watch=1&resourceVersion={version}");
    let mut watch = Lines::open(&front, &path).await;
    create(&front, 1..2);
    assert_eq!(watch.next_type().await, "ADDED");
    front.forget_history();
    assert!(watch.next().await.unwrap().is_none());
    let mut again = Lines::open(&front, &path).await;
    let line = again.next().await.unwrap().unwrap();
    assert_eq!((&line["type"], &line["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert!(again.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_reader_that_does_not_read_is_told_that_it_is_too_late() {
    let front = front(Settings { history: 50, ..Settings::default() });
    create(&front, 0..1);
    let mut watch = Lines::open(&front, &format!("{BINDINGS}?watch=1&resourceVersion=1")).await;
    // More than sockets hold.
    let big = "x".repeat(100_000);
    for round in 0..600 {
        let patch = json!({"metadata": {"annotations": {"a": format!("{round}{big}")}}});
        front.with(|kcp| kcp.handle(Request::merge(Kind::ApiBinding, "meadow", "geese-000", patch))).unwrap();
        tokio::task::yield_now().await;
    }
    let mut last = Value::Null;
    while let Some(line) = watch.next().await.unwrap() {
        last = line;
    }
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[tokio::test]
async fn faults_strike_whom_they_are_meant_for() {
    let front = front(Settings::default());
    create(&front, 0..1);
    let path = format!("{BINDINGS}/geese-000");
    let mut faults = vec![
        Fault::status(429, "TooManyRequests", "storage is (re)initializing", Some(7)),
        Fault::text(404, "404 page not found\n"),
        Fault::Cut,
        Fault::Half,
        Fault::Delay(Duration::from_millis(30)),
    ];
    faults.reverse();
    front.intercept(move |ask| if ask.verb == "get" { faults.pop() } else { None });

    let mut client = Client::new(&front).await;
    let busy = client.send("GET", &path, "", String::new()).await.unwrap();
    assert_eq!((busy.status().as_u16(), &busy.headers()["retry-after"]), (429, &"7".parse().unwrap()));
    drop(busy);
    let mut client = Client::new(&front).await;
    assert_eq!(client.get(&path).await, (404, json!("404 page not found\n")));
    assert!(client.send("GET", &path, "", String::new()).await.is_err(), "cut");
    let mut client = Client::new(&front).await;
    let half = client.send("GET", &path, "", String::new()).await.unwrap();
    assert_eq!(half.status(), 200);
    assert!(half.into_body().collect().await.is_err(), "cut in the middle");
    let mut client = Client::new(&front).await;
    let begun = std::time::Instant::now();
    assert_eq!(client.get(&path).await.0, 200);
    assert!(begun.elapsed() >= Duration::from_millis(30));

    // Done, and nobody knows.
    front.intercept(|ask| (ask.verb == "create").then_some(Fault::Lose));
    assert!(client.send("POST", BINDINGS, "application/json", binding("ducks").to_string()).await.is_err());
    assert!(front.with(|kcp| kcp.get(Origin::Local, Kind::ApiBinding, &BindingKey::new("meadow", "ducks")).is_some()));
    let lost = front.log().pop().unwrap();
    assert_eq!((lost.ask.verb, lost.ask.kind, lost.status), ("create", Some(Kind::ApiBinding), None));

    front.intercept(|ask| (ask.verb == "watch").then_some(Fault::CutWatch { after: 1 }));
    let mut watch = Lines::open(&front, &format!("{BINDINGS}?watch=1")).await;
    assert_eq!(watch.next_type().await, "ADDED");
    assert!(watch.next().await.is_err(), "in the middle of a line");
    assert!(!watch.text.is_empty() && !watch.text.contains(&b'\n'));

    front.heal();
    assert_eq!(Client::new(&front).await.get(&path).await.0, 200);
    assert_eq!(front.count(|entry| entry.status == Some(429)), 1);
    assert_eq!(front.requests() as usize, front.log().len());
}

#[tokio::test]
async fn it_stops_and_starts_again_where_it_was() {
    let front = front(Settings::default());
    create(&front, 0..1);
    let mut watch = Lines::open(&front, &format!("{BINDINGS}?watch=1")).await;
    assert_eq!(watch.next_type().await, "ADDED");
    front.stop().await;
    assert!(watch.next().await.is_err(), "cut");
    assert!(TcpStream::connect(front.url().strip_prefix("http://").unwrap()).await.is_err());
    create(&front, 1..2);
    front.restart().await.unwrap();
    let (_, all) = Client::new(&front).await.get(BINDINGS).await;
    assert_eq!(all["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_others_do_their_part_in_time() {
    let front = front(Settings { establishing: Duration::ZERO, ..Settings::default() });
    let export = json!({"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "geese"}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "u-1"},
        "spec": {
            "group": "farm.test",
            "scope": "Cluster",
            "names": {"plural": "geese", "kind": "Goose"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    let mut client = Client::new(&front).await;
    let path = "/clusters/meadow/apis/apis.kcp.io/v1alpha2/apiexports";
    assert_eq!(client.ask("POST", path, "application/json", export.to_string()).await.0, 201);
    let path = "/clusters/system:bound-crds/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, created) = client.ask("POST", path, "application/json", crd.to_string()).await;
    assert_eq!((code, &created["status"]["conditions"]), (201, &Value::Null), "{created}");
    timeout(Duration::from_secs(10), front.rest()).await.unwrap();
    let (_, crd) = client.get(&format!("{path}/u-1")).await;
    let is_established = |it: &Value| it["type"] == "Established" && it["status"] == "True";
    assert!(crd["status"]["conditions"].as_array().unwrap().iter().any(is_established), "{crd}");
    let (_, copies) = client.get("/services/cache/shards/*/clusters/*/apis/apis.kcp.io/v1alpha2/apiexports").await;
    assert!(copies["items"][0]["status"]["identityHash"].is_string(), "{copies}");
}

#[tokio::test]
async fn in_the_split_layout_whoever_creates_a_crd_takes_its_lock() {
    let front = front(Settings { layout: Layout::Split, ..Settings::default() });
    let crd = |plural: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.farm.test")},
            "spec": {
                "group": "farm.test",
                "scope": "Cluster",
                "names": {"plural": plural, "kind": "Goose"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        })
        .to_string()
    };
    let held = json!({"metadata": {"annotations": {
        "internal.apis.kcp.io/locks-bindings": r#"{"ducks.farm.test":{"n":"ducks"}}"#,
    }}});
    front.with(|kcp| kcp.handle(Request::merge(Kind::LogicalCluster, "meadow", "cluster", held))).unwrap();
    let mut client = Client::new(&front).await;
    let path = "/clusters/meadow/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(client.ask("POST", path, "application/json", crd("geese")).await.0, 201);
    let key = BindingKey::new("meadow", "cluster");
    let home = front.with(|kcp| kcp.get(Origin::Local, Kind::LogicalCluster, &key).unwrap().clone());
    assert!(home.to_string().contains("geese.farm.test"), "{home}");
    let (code, refused) = client.ask("POST", path, "application/json", crd("ducks")).await;
    assert_eq!((code, &refused["reason"]), (403, &json!("Forbidden")), "{refused}");
}

#[tokio::test]
async fn leases_are_held_by_version() {
    let front = front(Settings::default());
    let path = "/clusters/root/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = |holder: &str, version: &str| {
        let mut metadata = json!({"name": "a"});
        if !version.is_empty() {
            metadata["resourceVersion"] = json!(version);
        }
        json!({"metadata": metadata, "spec": {"holderIdentity": holder}}).to_string()
    };
    let mut client = Client::new(&front).await;
    let one = format!("{path}/a");
    assert_eq!(client.get(&one).await.0, 404);
    let (code, created) = client.ask("POST", path, "application/json", lease("x", "")).await;
    assert_eq!((code, &created["kind"]), (201, &json!("Lease")));
    let version = created["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    assert_eq!(client.ask("POST", path, "application/json", lease("y", "")).await.1["reason"], "AlreadyExists");
    assert_eq!(client.ask("PUT", &one, "application/json", lease("x", &version)).await.0, 200);
    let (code, stale) = client.ask("PUT", &one, "application/json", lease("y", &version)).await;
    assert_eq!((code, &stale["reason"]), (409, &json!("Conflict")));
    assert_eq!(client.get(&one).await.1["spec"]["holderIdentity"], "x");
    assert_eq!(client.get(path).await.1["items"].as_array().unwrap().len(), 1);
    assert_eq!(client.ask("DELETE", &one, "", String::new()).await.0, 200);
    assert_eq!(client.get(&one).await.0, 404);
}

#[tokio::test]
async fn users_do_what_they_may() {
    let may_list: Rule = serde_json::from_value(json!({
        "apiGroups": ["apis.kcp.io"], "resources": ["apibindings"], "verbs": ["list"],
    }))
    .unwrap();
    let user = |name: &str, allow| User { name: name.into(), token: format!("{name}-token"), allow };
    let users = vec![user("admin", None), user("reader", Some(vec![may_list]))];
    let front = front(Settings { users: Some(users), ..Settings::default() });
    assert!(front.kubeconfig().contains("admin-token"));
    let mut client = Client::new(&front).await;
    let (code, refused) = client.get(BINDINGS).await;
    assert_eq!(code, 403);
    assert!(refused["message"].as_str().unwrap().contains("system:anonymous"));
    let ask = async |token: &str, method: &str, path: &str| {
        let mut client = Client::new(&front).await;
        let request =
            http::Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
        client.0.send_request(request.body(Full::default()).unwrap()).await.unwrap().status().as_u16()
    };
    assert_eq!(ask("reader-token", "GET", BINDINGS).await, 200);
    assert_eq!(ask("reader-token", "GET", &format!("{BINDINGS}/a")).await, 403);
    assert_eq!(ask("reader-token", "GET", "/clusters/meadow/apis").await, 403);
    assert_eq!(ask("reader-token", "GET", "/readyz").await, 200);
    assert_eq!(ask("admin-token", "GET", &format!("{BINDINGS}/a")).await, 404);
    assert_eq!(ask("nobody", "GET", BINDINGS).await, 401);
}

#[tokio::test]
async fn nothing_that_is_sent_brings_it_down() {
    let front = front(Settings::default());
    let address = front.url().strip_prefix("http://").unwrap().to_owned();
    let long = format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "a".repeat(1 << 20));
    let deep = format!("POST {BINDINGS} HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n{}", "[".repeat(100_000));
    let sent: Vec<Vec<u8>> = vec![
        b"".into(),
        b"\0\0\0\0".into(),
        b"GET".into(),
        b"GET / HTTP/9.9\r\n\r\n".into(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".into(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
        b"GET /clusters/%ff%00/apis/%e2%82/x/y?a=%zz&&=&limit=-1 HTTP/1.1\r\nhost: \xff\r\n\r\n".into(),
        b"POST / HTTP/1.1\r\ncontent-length: -5\r\n\r\n".into(),
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzzzz\r\n".into(),
        long.into_bytes(),
        deep.into_bytes(),
    ];
    for bytes in sent {
        let address = address.clone();
        let send = move || {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut answer = Vec::new();
            // It may be cut, but it has to end.
            let end = stream.read_to_end(&mut answer);
            assert!(!end.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock));
        };
        tokio::task::spawn_blocking(send).await.unwrap();
    }
    let mut client = Client::new(&front).await;
    let too_long = client.ask("POST", BINDINGS, "application/json", " ".repeat(4 << 20)).await;
    assert_eq!(too_long.0, 413);
    let bodies = [
        "null",
        "[]",
        "1",
        "{}",
        r#"{"metadata":1}"#,
        r#"{"kind":"APIBinding","apiVersion":"apis.kcp.io/v1alpha2","metadata":[]}"#,
        "\u{0}",
        "*a",
        "&a [*a]",
        "!!binary x",
    ];
    let medias = [
        "application/json",
        "application/yaml",
        "application/apply-patch+yaml",
        "application/merge-patch+json",
        "application/json-patch+json",
        "x",
    ];
    let one = format!("{BINDINGS}/geese-000");
    create(&front, 0..1);
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "FOO"] {
        for path in [
            BINDINGS,
            &one,
            &format!("{one}/status?fieldManager=a&force=1"),
            "/clusters/*/api/v1/namespaces/a/x/y/z",
            "/clusters/root/apis/coordination.k8s.io/v1/namespaces/a/leases/b",
        ] {
            for media in medias {
                for body in bodies {
                    let mut client = Client::new(&front).await;
                    let answer = client.send(method, path, media, body.into()).await;
                    assert!(answer.is_ok(), "{method} {path} {media} {body}");
                }
            }
        }
    }
    assert_eq!(Client::new(&front).await.get("/readyz").await, (200, json!("ok")));
}
