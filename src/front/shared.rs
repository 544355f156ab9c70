//! What connections, watches and the clock share.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a server has a clock, and many clients")]

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::sync::{Notify, watch};

use super::access::Access;
use super::ask::Ask;
use super::fault::{Fault, Hook};
use super::house::{House, stream_of};
use super::record::Record;
use super::settings::Settings;
use crate::api::Kind;
use crate::sim::Kcp;
use crate::snapshot::{Origin, STREAMS};

/// What connections, watches and the clock share. No lock is held while anybody waits.
#[derive(Debug)]
pub(super) struct Shared {
    house: Mutex<House>,
    record: Mutex<Record>,
    hook: Mutex<Option<Hook>>,
    pub access: Access,
    pub settings: Settings,
    /// Who watches a kind is woken when something happens to it.
    news: [watch::Sender<()>; STREAMS.len()],
    /// Told when all watches end.
    ends: watch::Sender<()>,
    /// Wakes the clock, when something is due before it would look.
    pub alarm: Notify,
}

impl Shared {
    pub fn new(mut kcp: Kcp, settings: Settings) -> Self {
        kcp.set_now(now());
        Self {
            house: Mutex::new(House::new(kcp, &settings)),
            record: Mutex::new(Record::new(settings.log)),
            hook: Mutex::new(None),
            access: Access::new(&settings),
            settings,
            news: STREAMS.map(|_| watch::Sender::new(())),
            ends: watch::Sender::new(()),
            alarm: Notify::new(),
        }
    }

    /// Looks at what is there, without changing it.
    pub fn look<T>(&self, act: impl FnOnce(&mut House) -> T) -> T {
        act(&mut self.house.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Does something at this moment, and lets everybody know who has to.
    pub fn change<T>(&self, act: impl FnOnce(&mut House) -> T) -> T {
        let (done, news, is_early) = self.look(|house| {
            house.set_now(now());
            let done = act(house);
            house.spread();
            (done, house.take_news(), house.is_early())
        });
        for stream in news {
            if let Some(news) = self.news.get(stream) {
                news.send_replace(());
            }
        }
        if is_early {
            self.alarm.notify_one();
        }
        done
    }

    pub fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_hook(&self, hook: Option<Hook>) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = hook;
    }

    /// What goes wrong with a request.
    pub fn fault(&self, ask: &Ask) -> Option<Fault> {
        self.hook.lock().unwrap_or_else(PoisonError::into_inner).as_mut()?.decide(ask)
    }

    /// News of a kind; `None`: there never are any.
    pub fn news_of(&self, origin: Origin, kind: Kind) -> Option<watch::Receiver<()>> {
        self.news.get(stream_of(origin, kind)?).map(watch::Sender::subscribe)
    }

    /// The end of all watches.
    pub fn ends(&self) -> watch::Receiver<()> {
        self.ends.subscribe()
    }

    pub fn end_watches(&self) {
        self.ends.send_replace(());
    }
}

/// The time.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let since = SignedDuration::try_from(since).unwrap_or(SignedDuration::MAX);
    Timestamp::UNIX_EPOCH.saturating_add(since).unwrap_or(Timestamp::MAX)
}
