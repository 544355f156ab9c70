//! `/healthz`, `/readyz` and `/metrics`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::desk::Desk;
use super::failure::Failure;

/// The media type of what `/metrics` gives.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A place where it is answered how the controller is.
#[derive(Debug)]
pub(super) struct Probes {
    listener: TcpListener,
}

impl Probes {
    pub async fn bind(address: SocketAddr) -> Result<Self, Failure> {
        let listener = TcpListener::bind(address).await;
        let listener =
            listener.map_err(|why| Failure::Address { address: address.to_string(), why: why.to_string() })?;
        Ok(Self { listener })
    }

    /// Where that is.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Answers until the future is dropped.
    pub async fn serve(self, desk: Arc<Desk>) -> Infallible {
        // Connections end with it: who has stopped is not ready any more.
        let end = CancellationToken::new();
        let _guard = end.clone().drop_guard();
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(why) => {
                    // Of file handles, say, there are too few: they come back.
                    tracing::warn!(%why, "cannot take a connection");
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    continue;
                }
            };
            let desk = desk.clone();
            tokio::spawn(end.clone().run_until_cancelled_owned(async move {
                let service = service_fn(|request| std::future::ready(Ok::<_, Infallible>(answer(&desk, &request))));
                // Who leaves early, or talks nonsense, gets no answer.
                let _ = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            }));
        }
    }
}

fn answer(desk: &Desk, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let stuck = || desk.stuck();
    let (code, kind, text) = match request.uri().path() {
        "/metrics" => (StatusCode::OK, METRICS, desk.metrics.text(desk)),
        "/healthz" | "/livez" => told(stuck()),
        "/readyz" => {
            let missing: Vec<String> = desk
                .missing()
                .into_iter()
                .map(|(origin, kind)| format!("{kind} ({origin:?})").to_lowercase())
                .collect();
            told(match missing.is_empty() {
                true => stuck(),
                false => Some(format!("not listed yet: {}", missing.join(", "))),
            })
        }
        _ => (StatusCode::NOT_FOUND, "text/plain", "there are /healthz, /readyz and /metrics\n".into()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

fn told(trouble: Option<String>) -> (StatusCode, &'static str, String) {
    match trouble {
        None => (StatusCode::OK, "text/plain", "ok\n".into()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, "text/plain", format!("{why}\n")),
    }
}
