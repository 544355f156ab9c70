//! A server, and what it answers.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Status, StatusDetails};
use kube::client::Body;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// How often credentials are read again at most.
const RENEWAL: Duration = Duration::from_secs(2);

/// No line of a watch is as long as this: a server has no objects of that size.
const LINE: usize = 64 << 20;

/// A client that came of reading credentials again, or why there is none.
type Renewed = Pin<Box<dyn Future<Output = Result<kube::Client, String>> + Send>>;

type Renewal = Box<dyn Fn() -> Renewed + Send + Sync>;

/// A server of a kcp, and how to reach it.
///
/// The client's address is that of the server itself, without `/clusters/…`. What it brings along of
/// credentials is kube's business; its own retries have to be off
/// ([`kube::Config::default_retry`]): when to try again is decided here.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

struct Inner {
    client: RwLock<kube::Client>,
    renewal: Option<Renewal>,
    renewed: Mutex<Option<Instant>>,
}

impl From<kube::Client> for Server {
    fn from(client: kube::Client) -> Self {
        Self::of(client, None)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

/// What a server says, or does not, when it does not do what it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Refusal {
    /// It says why.
    Status(Box<Status>),
    /// It says something that is no `Status`: it is still starting, or another program.
    Text {
        /// The code of the answer.
        code: u16,
        /// What it says.
        text: String,
        /// How long it asks to wait.
        wait: Option<Duration>,
    },
    /// Nothing came back, or not all of it.
    NoAnswer(String),
}

/// Something to ask a server for.
#[derive(Clone, Debug)]
pub(super) struct Call<'a> {
    pub method: Method,
    /// Path and query.
    pub path: &'a str,
    pub content_type: &'a str,
    pub body: Bytes,
}

impl<'a> Call<'a> {
    pub fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, content_type: "", body: Bytes::new() }
    }
}

impl Server {
    /// The same as of a client, but credentials are read again when the server knows them no more:
    /// with this, which gives a new client, or why it cannot.
    pub fn renewed_by<F, R>(client: kube::Client, renewal: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<kube::Client, String>> + Send + 'static,
    {
        Self::of(client, Some(Box::new(move || Box::pin(renewal()))))
    }

    fn of(client: kube::Client, renewal: Option<Renewal>) -> Self {
        Self { inner: Arc::new(Inner { client: RwLock::new(client), renewal, renewed: Mutex::new(None) }) }
    }

    /// Reads the credentials again.
    pub(super) async fn renew(&self) {
        let Some(renewal) = &self.inner.renewal else { return };
        let mut renewed = self.inner.renewed.lock().await;
        if renewed.is_some_and(|at| at.elapsed() < RENEWAL) {
            return;
        }
        *renewed = Some(Instant::now());
        match renewal().await {
            Ok(client) => *self.inner.client.write().unwrap_or_else(PoisonError::into_inner) = client,
            Err(why) => tracing::warn!(why, "cannot read the credentials again"),
        }
    }

    /// Asks, and gives the body of the answer.
    pub(super) async fn ask(&self, call: Call<'_>, limit: Duration) -> Result<Bytes, Refusal> {
        let answered = async {
            let response = self.send(call).await?;
            response.into_body().collect().await.map(http_body_util::Collected::to_bytes).map_err(broken)
        };
        timeout(limit, answered).await.unwrap_or_else(|_| Err(too_late(limit)))
    }

    /// Asks, and gives what comes line by line.
    pub(super) async fn listen(&self, path: &str, limit: Duration) -> Result<Lines, Refusal> {
        let answered = timeout(limit, self.send(Call::get(path)));
        let response = answered.await.unwrap_or_else(|_| Err(too_late(limit)))?;
        Ok(Lines { body: response.into_body(), buffer: BytesMut::new(), searched: 0 })
    }

    async fn send(&self, call: Call<'_>) -> Result<Response<Body>, Refusal> {
        let mut request = Request::builder().method(call.method).uri(call.path).header(ACCEPT, "application/json");
        if !call.content_type.is_empty() {
            request = request.header(CONTENT_TYPE, call.content_type);
        }
        let request = request.body(Body::from(call.body.to_vec())).map_err(broken)?;
        let client = self.inner.client.read().unwrap_or_else(PoisonError::into_inner).clone();
        let response = client.send(request).await.map_err(broken)?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(broken)?.to_bytes();
        let refusal = Refusal::read(head.status.as_u16(), &head.headers, &body);
        if refusal.code() == 401 {
            self.renew().await;
        }
        Err(refusal)
    }
}

/// The lines of an answer, as they come.
pub(super) struct Lines {
    body: Body,
    buffer: BytesMut,
    /// So many bytes of the buffer are known to have no end of a line.
    searched: usize,
}

impl Lines {
    /// The next one. `None`: the end; what was cut off in the middle of a line is left out.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let unknown = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(end) = unknown.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + end + 1).freeze();
                self.searched = 0;
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            if self.searched > LINE {
                return Err(Refusal::NoAnswer(format!("a line of more than {LINE} bytes")));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(why)) => return Err(broken(why)),
                Some(Ok(frame)) => self.buffer.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
            }
        }
    }
}

/// The error and what caused it, in one line.
fn broken(error: impl std::error::Error) -> Refusal {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    Refusal::NoAnswer(text)
}

fn too_late(limit: Duration) -> Refusal {
    Refusal::NoAnswer(format!("no answer within {limit:?}"))
}

impl Refusal {
    pub fn no_answer(why: impl fmt::Display) -> Self {
        Self::NoAnswer(why.to_string())
    }

    fn read(code: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let wait = headers.get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.parse().ok());
        match serde_json::from_slice::<Status>(body) {
            Ok(mut status) if status.status.as_deref() == Some("Failure") => {
                status.code.get_or_insert(i32::from(code));
                if let Some(seconds) = wait {
                    let details = status.details.get_or_insert_with(StatusDetails::default);
                    details.retry_after_seconds.get_or_insert(seconds);
                }
                Self::Status(Box::new(status))
            }
            _ => {
                let wait = wait.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
                Self::Text { code, text: String::from_utf8_lossy(body).trim().chars().take(200).collect(), wait }
            }
        }
    }

    /// The code of the answer; 0 where none came.
    pub fn code(&self) -> u16 {
        match self {
            Self::Status(status) => status.code.and_then(|code| u16::try_from(code).ok()).unwrap_or(0),
            Self::Text { code, .. } => *code,
            Self::NoAnswer(_) => 0,
        }
    }

    /// Whether the server was asked about a version that it has not come to.
    pub fn is_ahead(&self) -> bool {
        let Self::Status(status) = self else { return false };
        let mut causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
        causes.any(|cause| cause.reason.as_deref() == Some("ResourceVersionTooLarge"))
    }

    /// How long the server asks to wait.
    pub fn wait(&self) -> Option<Duration> {
        match self {
            Self::Status(status) => {
                let seconds = status.details.as_ref()?.retry_after_seconds?;
                u64::try_from(seconds).ok().map(Duration::from_secs)
            }
            Self::Text { wait, .. } => *wait,
            Self::NoAnswer(_) => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => {
                let code = status.code.unwrap_or_default();
                write!(f, "{code}: {}", status.message.as_deref().or(status.reason.as_deref()).unwrap_or("no reason"))
            }
            Self::Text { code, text, .. } if text.is_empty() => write!(f, "{code}"),
            Self::Text { code, text, .. } => write!(f, "{code}: {text}"),
            Self::NoAnswer(why) => f.write_str(why),
        }
    }
}
