//! The front over real sockets.

#![cfg(all(feature = "sim", feature = "shell"))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::time::Duration;

use apibinding::api::{BindingKey, Kind};
use apibinding::front::{Front, Settings};
use apibinding::sim::{Kcp, Request};
use apibinding::snapshot::Origin;
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
