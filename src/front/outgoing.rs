//! Bodies on their way out.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::telling::Telling;

/// The connection is to be cut.
#[derive(Debug)]
pub(super) struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is cut on purpose")
    }
}

impl std::error::Error for Cut {}

/// The next lines of a watch, and the watch.
type Next = Pin<Box<dyn Future<Output = (Option<Result<Bytes, Cut>>, Telling)> + Send>>;

/// A body on its way out.
pub(super) enum Outgoing {
    Whole(Bytes),
    /// This, and then nothing more, although more was to come.
    Half(Bytes),
    Flush,
    Fail,
    /// Whatever comes, as fast as it is read.
    Watch(Next),
    Over,
}

impl Outgoing {
    pub fn watch(telling: Telling) -> Self {
        Self::Watch(next(telling))
    }
}

fn next(mut telling: Telling) -> Next {
    Box::pin(async {
        let lines = telling.next().await;
        (lines, telling)
    })
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let frame = match std::mem::replace(&mut *self, Self::Over) {
            Self::Over => None,
            Self::Whole(body) if body.is_empty() => None,
            Self::Whole(body) => Some(Ok(body)),
            Self::Half(half) => {
                *self = Self::Flush;
                Some(Ok(half))
            }
            Self::Flush => {
                // What was sent so far goes out while nothing is ready.
                *self = Self::Fail;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Self::Fail => Some(Err(Cut)),
            Self::Watch(mut waiting) => match waiting.as_mut().poll(context) {
                Poll::Pending => {
                    *self = Self::Watch(waiting);
                    return Poll::Pending;
                }
                Poll::Ready((Some(Ok(lines)), telling)) => {
                    *self = Self::watch(telling);
                    Some(Ok(lines))
                }
                Poll::Ready((end, _)) => end,
            },
        };
        Poll::Ready(frame.map(|frame| frame.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Over => true,
            Self::Whole(body) => body.is_empty(),
            _ => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => SizeHint::with_exact(body.len() as u64),
            Self::Over => SizeHint::with_exact(0),
            _ => SizeHint::default(),
        }
    }
}
