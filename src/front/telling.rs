//! A watch over time: it waits for news, tells them as fast as they are read, and ends.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::outgoing::Cut;
use super::shared::Shared;
use super::watch::Watch;

/// A watch that is about to end tells so long before how far the history has gone.
const BEFORE_THE_END: Duration = Duration::from_secs(2);

/// A watch over time.
pub(super) struct Telling {
    shared: Arc<Shared>,
    watch: Box<Watch>,
    news: Option<watch::Receiver<()>>,
    ends: watch::Receiver<()>,
    end: Instant,
    bookmark: Option<Instant>,
    /// How many lines may still be told before the connection is cut; `None`: any number.
    left: Option<usize>,
    is_cut: bool,
}

impl Telling {
    pub fn new(shared: Arc<Shared>, watch: Box<Watch>, left: Option<usize>) -> Self {
        let (origin, kind) = watch.stream();
        let (news, ends) = (shared.news_of(origin, kind), shared.ends());
        let now = Instant::now();
        let end = now + watch.limit().unwrap_or(shared.settings.watch_limit).min(Duration::from_secs(1 << 30));
        let mut telling = Self { shared, watch, news, ends, end, bookmark: None, left, is_cut: false };
        telling.set_bookmark();
        telling
    }

    /// When the next bookmark is due.
    fn set_bookmark(&mut self) {
        let now = Instant::now();
        let last = self.end.checked_sub(BEFORE_THE_END).unwrap_or(now);
        self.bookmark =
            (last > now).then(|| now.checked_add(self.shared.settings.bookmarks).map_or(last, |next| last.min(next)));
    }

    /// The next lines, or the end of it.
    pub async fn next(&mut self) -> Option<Result<Bytes, Cut>> {
        if self.is_cut {
            // What was told so far goes out meanwhile.
            tokio::task::yield_now().await;
            return Some(Err(Cut));
        }
        loop {
            if let Some(lines) = self.watch.initial_lines() {
                return self.pass(lines);
            }
            // What happens after this look is news.
            if let Some(news) = &mut self.news {
                news.mark_unchanged();
            }
            if let Some(lines) = self.shared.look(|house| self.watch.lines(house)) {
                return self.pass(lines);
            }
            if self.watch.is_over() {
                return None;
            }
            tokio::select! {
                _ = self.ends.changed() => return None,
                () = changed(&mut self.news) => {}
                () = until(self.bookmark) => {
                    self.set_bookmark();
                    if let Some(line) = self.watch.bookmark() {
                        return self.pass(line);
                    }
                }
                () = sleep_until(self.end) => return None,
            }
        }
    }

    /// Lines, but no more than may be told.
    fn pass(&mut self, lines: Bytes) -> Option<Result<Bytes, Cut>> {
        let Some(left) = &mut self.left else { return Some(Ok(lines)) };
        let mut start = 0;
        for length in lines.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::len) {
            if *left == 0 {
                self.is_cut = true;
                return Some(Ok(lines.slice(..start + length / 2)));
            }
            *left -= 1;
            start += length;
        }
        Some(Ok(lines))
    }
}

async fn changed(news: &mut Option<watch::Receiver<()>>) {
    if let Some(news) = news
        && news.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
