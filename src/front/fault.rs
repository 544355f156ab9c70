//! What tests let go wrong between a client and the server.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use super::ask::Ask;
use super::refusal;

/// Something that goes wrong with one request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// This is answered instead, and nothing is done.
    Answer(Response<Bytes>),
    /// The connection is cut, and nothing is done.
    Cut,
    /// It is done, and the connection is cut.
    Lose,
    /// It is done, and half of the answer comes before the connection is cut.
    Half,
    /// It is done so much later; a request that gave up meanwhile is not done at all.
    Delay(Duration),
    /// It is done at once, but the answer comes so much later.
    Late(Duration),
    /// A watch tells so many lines, then half of the next one, and the connection is cut.
    CutWatch {
        /// How many lines come whole.
        after: usize,
    },
}

impl Fault {
    /// A `Status` is answered instead, with `Retry-After` if seconds are given.
    pub fn status(code: u16, reason: &str, message: &str, retry_after: Option<u32>) -> Self {
        let status = refusal::status(code.into(), reason, message);
        let body = serde_json::to_vec(&*status).unwrap_or_default();
        let mut fault = Self::raw(code, "application/json", body.into());
        if let (Self::Answer(response), Some(seconds)) = (&mut fault, retry_after) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        fault
    }

    /// Plain text is answered instead.
    pub fn text(code: u16, text: impl Into<String>) -> Self {
        Self::raw(code, "text/plain; charset=utf-8", text.into().into())
    }

    fn raw(code: u16, media: &'static str, body: Bytes) -> Self {
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
        Self::Answer(response)
    }
}

/// Decides of each request what goes wrong with it.
pub(super) struct Hook(Decide);

type Decide = Box<dyn FnMut(&Ask) -> Option<Fault> + Send>;

impl Hook {
    pub fn new(decide: impl FnMut(&Ask) -> Option<Fault> + Send + 'static) -> Self {
        Self(Box::new(decide))
    }

    pub fn decide(&mut self, ask: &Ask) -> Option<Fault> {
        (self.0)(ask)
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}
