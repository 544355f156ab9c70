//! Watching one kind: a list, then what happens, for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout};

use super::desk::{Desk, MOST, Told};
use super::executor::encoded;
use super::failure::Failure;
use super::pages;
use super::server::{Refusal, Server};
use crate::api::{Kind, Object, Text, cluster_of};
use crate::snapshot::version::older;
use crate::snapshot::{Change, Layout, Origin};

/// How long a watch lasts, in seconds, before the server ends it. A server that is gone without a word is
/// noticed not much later.
const WATCH: u64 = 240;

/// What all streams of one server know of it.
#[derive(Debug, Default)]
pub(super) struct Sightings {
    /// Some kind was listed.
    served: AtomicBool,
}

/// The watching of one kind.
pub(super) struct Stream {
    pub server: Server,
    pub origin: Origin,
    pub kind: Kind,
    pub layout: Layout,
    pub limit: Duration,
    pub sightings: Arc<Sightings>,
    pub desk: Arc<Desk>,
    /// Why it could not be watched last, if it cannot be.
    pub trouble: Option<String>,
    /// The server may have been away.
    pub was_away: bool,
}

/// Why something did not go on.
enum Trouble {
    /// It may go on later.
    Wait(String, Option<Duration>),
    /// The same, and the server is away, or starts.
    Away(String, Option<Duration>),
    /// What happened since is forgotten, or has not happened: everything has to be listed again.
    Expired,
    Fatal(Failure),
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    resource_version: Text,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    what: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Told410 {
    code: Option<i64>,
    message: Option<String>,
}

impl Stream {
    /// Lists and watches until the future is dropped.
    ///
    /// # Errors
    /// What waiting does not mend.
    pub async fn run(mut self) -> Result<std::convert::Infallible, Failure> {
        let mut pace = pace();
        loop {
            match self.list().await {
                Ok(version) => {
                    // A list of which the server knows nothing any more when it comes to watching is followed by
                    // another one, but not for ever at once.
                    if self.watch_from(version).await? {
                        pace = self::pace();
                    }
                    self.wait(Trouble::Expired, &mut pace, "list").await?;
                }
                Err(trouble) => self.wait(trouble, &mut pace, "list").await?,
            }
        }
    }

    /// Watches on and on, until what happened since is forgotten. True: that was worth a list.
    async fn watch_from(&mut self, mut version: Text) -> Result<bool, Failure> {
        let mut pace = pace();
        let mut was_worth_a_list = false;
        loop {
            let (before, begun) = (version.clone(), Instant::now());
            let ended = self.watch(&mut version).await;
            let was_short = begun.elapsed() < SHORT;
            let was_worth_it = before != version || begun.elapsed() > LONGEST;
            if before != version {
                // As a bookmark says it, which not every server sends: what happened up to there has been told. So
                // deletions can be forgotten, and a list of before is known for one.
                let (origin, kind, resource_version) = (self.origin, self.kind, version.clone());
                self.desk.learn([Change::Bookmark { origin, kind, resource_version }], Told::Watch);
            }
            if was_worth_it {
                pace = self::pace();
                was_worth_a_list = true;
            }
            match ended {
                Ok(()) if was_worth_it && !was_short => self.desk.metrics.watch_ended(self.origin, self.kind, "over"),
                // One that ends at once, or before it told anything, may do so again and again.
                Ok(()) => self.wait(Trouble::Wait(String::new(), None), &mut pace, "quiet").await?,
                Err(Trouble::Expired) => return Ok(was_worth_a_list),
                Err(trouble) => {
                    // One that went well may have broken because the server went.
                    self.was_away |= was_worth_it;
                    self.wait(trouble, &mut pace, "broken").await?;
                }
            }
        }
    }

    async fn wait(
        &mut self,
        trouble: Trouble,
        pace: &mut ExponentialBackoff,
        reason: &'static str,
    ) -> Result<(), Failure> {
        let (why, at_least, reason) = match trouble {
            Trouble::Fatal(failure) => return Err(failure),
            Trouble::Expired => (String::new(), None, "expired"),
            Trouble::Wait(why, at_least) => (why, at_least, reason),
            Trouble::Away(why, at_least) => {
                self.was_away = true;
                (why, at_least, reason)
            }
        };
        let asked = at_least.unwrap_or_default().min(MOST);
        let pause = pace.next().unwrap_or(LONGEST).max(asked);
        if !why.is_empty() {
            let what = self.what();
            // Said once: a server that starts, or is gone, would fill the log.
            if self.trouble.as_ref() == Some(&why) {
                tracing::debug!(%what, %why, ?pause, "still cannot watch");
            } else {
                tracing::info!(%what, %why, ?pause, "cannot watch: trying again");
            }
            self.trouble = Some(why);
        }
        self.desk.metrics.watch_ended(self.origin, self.kind, reason);
        sleep(pause).await;
        Ok(())
    }

    /// The server answers.
    fn is_up(&mut self) {
        self.sightings.served.store(true, Ordering::Relaxed);
        if self.trouble.take().is_some() {
            tracing::info!(what = %self.what(), "watching again");
        }
        // A watch that breaks, or is not let in for a while, is no reason to try at once all that fails. And to the
        // cache server nothing is written.
        if std::mem::take(&mut self.was_away) && self.origin == Origin::Local {
            self.desk.server_is_back();
        }
    }

    fn what(&self) -> String {
        match self.origin {
            Origin::Local => self.kind.to_string(),
            Origin::Global => format!("{} of the cache server", self.kind),
        }
    }

    /// Takes in all that is there; gives the version at which it was.
    async fn list(&mut self) -> Result<Text, Trouble> {
        let mut objects = Vec::new();
        let this = &*self;
        let listed = pages::list(&this.server, this.origin, this.kind, this.limit, |item| {
            objects.extend(this.read(item.get()));
        });
        let version = listed.await.map_err(|refusal| this.judge(refusal))?;
        self.check_layout(&objects).map_err(Trouble::Fatal)?;
        self.is_up();
        self.desk.listed(self.origin, self.kind, objects, version.clone());
        Ok(version)
    }

    /// Locks that are kept in another way would not be seen.
    fn check_layout(&self, objects: &[Object]) -> Result<(), Failure> {
        let wrong = objects.iter().find_map(|object| match object {
            Object::LogicalCluster(home) => {
                let found = Layout::of(home).filter(|found| *found != self.layout)?;
                Some(Failure::Layout { cluster: cluster_of(&home.metadata), found, wanted: self.layout })
            }
            _ => None,
        });
        wrong.map_or(Ok(()), Err)
    }

    /// An object that does not fit its kind is passed over: there is nothing that could be done about it.
    fn read(&self, json: &str) -> Option<Object> {
        match Object::from_json(self.kind, json) {
            Ok(object) => Some(object),
            Err(why) => {
                self.desk.metrics.unreadable.inc();
                tracing::warn!(%why, "passed over an object that cannot be read");
                None
            }
        }
    }

    /// Takes in what happens after a version, which moves on with it, until the watch ends.
    async fn watch(&mut self, version: &mut Text) -> Result<(), Trouble> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH}&resourceVersion={}",
            pages::path(self.origin, self.kind),
            encoded(version)
        );
        let mut lines = match self.server.listen(&path, self.limit).await {
            Ok(lines) => lines,
            Err(refusal) => return Err(self.judge(refusal)),
        };
        if self.trouble.is_some() && self.has_gone_back(version).await? {
            return Err(Trouble::Expired);
        }
        self.is_up();
        let end = Instant::now() + Duration::from_secs(WATCH) + self.limit;
        loop {
            let line = match timeout(end.saturating_duration_since(Instant::now()), lines.next()).await {
                Err(_) => return Err(Trouble::Wait("a watch that does not end".into(), None)),
                Ok(Err(why)) => return Err(Trouble::Wait(why.to_string(), None)),
                // What was cut off in the middle of a line will be told again.
                Ok(Ok(None)) => return Ok(()),
                Ok(Ok(Some(line))) => line,
            };
            let text = std::str::from_utf8(&line).map_err(|why| Trouble::Wait(why.to_string(), None))?;
            if !text.trim().is_empty() {
                self.event(text, version)?;
            }
        }
    }

    /// Whether the server knows less than it did: one that was gone may have come back from a copy of its data. A
    /// watch would wait, without a word, until it has caught up, and then miss what it had told before.
    async fn has_gone_back(&self, version: &str) -> Result<bool, Trouble> {
        let now = pages::version(&self.server, self.origin, self.kind, self.limit).await;
        let now = now.map_err(|refusal| self.judge(refusal))?;
        let is_behind = older(&now, version);
        if is_behind {
            tracing::warn!(what = %self.what(), known = %version, %now, "the server has gone back: listing again");
        }
        Ok(is_behind)
    }

    fn event(&self, line: &str, version: &mut Text) -> Result<(), Trouble> {
        let unreadable = |why: serde_json::Error| Trouble::Wait(format!("an event that cannot be read: {why}"), None);
        let event: Event = serde_json::from_str(line).map_err(unreadable)?;
        let (origin, kind, json) = (self.origin, self.kind, event.object.get());
        // Where none stands, the next watch would begin nowhere, and tell nothing of what is gone.
        let resource_version = || match serde_json::from_str::<Bookmark>(json).map_err(unreadable)?.metadata {
            Metadata { resource_version } if resource_version.is_empty() => {
                Err(Trouble::Wait(format!("an event without a version, of type {}", event.what), None))
            }
            Metadata { resource_version } => Ok(resource_version),
        };
        let change = match event.what {
            "ADDED" | "MODIFIED" => {
                let read = self.read(json);
                let told = read.as_ref().and_then(|object| object.metadata().resource_version.as_deref());
                *version = match told {
                    Some(told) if !told.is_empty() => told.into(),
                    _ => resource_version()?,
                };
                read.map(|object| Change::Put { origin, object: Box::new(object) })
            }
            "DELETED" => {
                *version = resource_version()?;
                let resource_version = version.clone();
                self.read(json).map(|object| Change::Delete { origin, kind, key: object.key(), resource_version })
            }
            "BOOKMARK" => {
                *version = resource_version()?;
                Some(Change::Bookmark { origin, kind, resource_version: version.clone() })
            }
            "ERROR" => {
                let told: Told410 = serde_json::from_str(json).map_err(unreadable)?;
                return Err(match told.code {
                    Some(410) => Trouble::Expired,
                    _ => Trouble::Wait(told.message.unwrap_or_else(|| "an error without a word".into()), None),
                });
            }
            other => return Err(Trouble::Wait(format!("an event of type {other}"), None)),
        };
        self.desk.learn(change, Told::Watch);
        Ok(())
    }

    /// Whether it helps to wait.
    fn judge(&self, refusal: Refusal) -> Trouble {
        let served = self.sightings.served.load(Ordering::Relaxed);
        let what = format!("GET {}", pages::path(self.origin, self.kind));
        let message = refusal.to_string();
        let is_status = matches!(refusal, Refusal::Status(_));
        match refusal.code() {
            _ if refusal.is_ahead() => Trouble::Expired,
            410 => Trouble::Expired,
            401 if !served => Trouble::Fatal(Failure::Unauthorized { what, message }),
            403 => Trouble::Fatal(Failure::Forbidden { what, message }),
            404 if is_status && served => Trouble::Fatal(Failure::NotServed { kind: self.kind, what, message }),
            0 | 404 | 500.. => Trouble::Away(message, refusal.wait()),
            _ => Trouble::Wait(message, refusal.wait()),
        }
    }
}

const LONGEST: Duration = Duration::from_secs(10);

/// A watch that ends sooner than this has hardly begun.
const SHORT: Duration = Duration::from_secs(1);

/// How long to wait before trying again: 200 ms, doubling to ten seconds, each with some chance in it.
fn pace() -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_min_delay(Duration::from_millis(200))
        .with_max_delay(LONGEST)
        .without_max_times()
        .with_jitter()
        .build()
}
