//! Watches: what is told, from where on, and how each ends.

use std::sync::Arc;
use std::time::Duration;
use std::vec::IntoIter;

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::house::House;
use super::query::Query;
use super::refusal;
use super::reply::{Body, Reply, bookmark, line};
use super::selector::Selector;
use crate::api::{ClusterName, Kind};
use crate::sim::{Event, Happened, Owners};
use crate::snapshot::Origin;

/// How many bytes are told at a time, or one line.
const CHUNK: usize = 64 * 1024;

/// What a watch is asked for.
#[derive(Clone, Debug)]
pub(super) struct Start {
    version: u64,
    selector: Selector,
    wants_bookmarks: bool,
    /// Whether what there is comes first, and its end is told.
    wants_initial_events: bool,
    /// How long it lasts; `None`: as the server likes.
    limit: Option<Duration>,
}

/// A watch: a place in the history of a kind, and what is told from there on.
///
/// It keeps no events. Whoever reads slowly, or not at all, costs a place in the history, and is told in the
/// end that it is forgotten.
#[derive(Debug)]
pub struct Watch {
    origin: Origin,
    kind: Kind,
    cluster: Option<ClusterName>,
    selector: Selector,
    /// What happened up to this version has been told.
    cursor: u64,
    wants_bookmarks: bool,
    /// What is to be told before anything else.
    initial: IntoIter<(Arc<Value>, Owners)>,
    tells_owners: bool,
    /// Whether it is to be told that this was all there was.
    ends_initial_events: bool,
    limit: Option<Duration>,
    /// It waits for a version that is still to come.
    is_ahead: bool,
    is_over: bool,
}

impl Start {
    pub fn read(query: Query) -> Result<Self, Reply> {
        let (version, matching) = (query.text("resourceVersion"), query.text("resourceVersionMatch"));
        let wants_initial_events = query.find("sendInitialEvents");
        match (&wants_initial_events, matching.as_str()) {
            (Some(_), "NotOlderThan") | (None, "") => {}
            (Some(_), _) => {
                let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                return Err(refusal::forbidden_option("resourceVersionMatch", why));
            }
            (None, _) => {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                return Err(refusal::forbidden_option("resourceVersionMatch", why));
            }
        }
        let number = match version.as_str() {
            "" => 0,
            version => version.parse().map_err(|_| refusal::no_version(version))?,
        };
        Ok(Self {
            version: number,
            selector: Selector::read(&query.text("fieldSelector"), &query.text("labelSelector"))?,
            wants_bookmarks: query.is("allowWatchBookmarks"),
            wants_initial_events: query.is("sendInitialEvents"),
            limit: query.number("timeoutSeconds").filter(|limit| *limit > 0).map(Duration::from_secs),
        })
    }

    /// Begins.
    pub fn begin(self, house: &House, origin: Origin, kind: Kind, cluster: Option<ClusterName>) -> Reply {
        let current = house.kcp().version();
        let mut watch = Watch {
            origin,
            kind,
            cluster,
            selector: self.selector,
            cursor: self.version,
            wants_bookmarks: self.wants_bookmarks,
            initial: Vec::new().into_iter(),
            tells_owners: house.tells_owners(),
            ends_initial_events: self.wants_initial_events && self.wants_bookmarks,
            limit: self.limit,
            is_ahead: false,
            is_over: false,
        };
        if self.wants_initial_events && self.version > current {
            return refusal::too_new(self.version, current);
        }
        if self.version == 0 || self.wants_initial_events {
            watch.cursor = current;
            let mut all = house.kcp().list_at(origin, kind, watch.cluster.as_ref(), current).unwrap_or_default();
            all.retain(|(object, _)| watch.selector.takes(object));
            watch.initial = all.into_iter();
        }
        Reply::Watch(Box::new(watch))
    }
}

impl Watch {
    /// Which of the server's streams it follows.
    pub(super) fn stream(&self) -> (Origin, Kind) {
        (self.origin, self.kind)
    }

    /// How long it lasts, if the client said so.
    pub(super) fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// True if nothing more will be told.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// What there is to tell now, in whole lines; `None` if that is nothing, for now or, if it
    /// [is over](Self::is_over), for ever.
    pub fn more(&mut self, house: &mut House) -> Option<Bytes> {
        self.initial_lines().or_else(|| self.lines(house))
    }

    /// What there was when it began.
    pub(super) fn initial_lines(&mut self) -> Option<Bytes> {
        let mut chunk = Chunk::default();
        while !chunk.is_full() {
            let Some((object, owners)) = self.initial.next() else { break };
            let owners = self.tells_owners.then_some(owners);
            chunk.add(Body { object, owners }.line(Happened::Added.as_str()));
        }
        if self.initial.len() == 0 && std::mem::take(&mut self.ends_initial_events) {
            chunk.add(line("BOOKMARK", &bookmark(self.kind, self.cursor, true)));
        }
        chunk.bytes()
    }

    /// What happened since.
    pub(super) fn lines(&mut self, house: &mut House) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let mut chunk = Chunk::default();
        let told = house.tell(self.origin, self.kind, self.cursor, |event, lines| {
            self.cursor = event.version;
            if self.cluster.as_ref().is_none_or(|cluster| *cluster == event.key.cluster)
                && let Some(happened) = self.happened(event)
            {
                chunk.add(lines.line(event, happened));
            }
            !chunk.is_full()
        });
        match told {
            Ok(None) => {}
            Ok(Some(version)) => {
                // All of it: nothing happened to this kind up to now but what was told.
                self.is_ahead = self.cursor > version;
                self.cursor = self.cursor.max(version);
            }
            Err(status) => {
                self.is_over = true;
                chunk.add(line("ERROR", &*status));
            }
        }
        chunk.bytes()
    }

    /// What an event is to somebody who sees only some of the objects.
    fn happened(&self, event: &Event) -> Option<Happened> {
        if self.selector.is_empty() {
            return Some(event.happened);
        }
        let before = event.object_before().is_some_and(|before| self.selector.takes(before));
        let after = event.happened != Happened::Deleted && self.selector.takes(&event.object);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some(Happened::Added),
            (true, true) => Some(Happened::Modified),
            (true, false) => Some(Happened::Deleted),
        }
    }

    /// Tells how far the history has gone, if that is wanted. The cache server never does; and what waits for the
    /// future has nothing to tell.
    pub fn bookmark(&self) -> Option<Bytes> {
        let is_due = self.wants_bookmarks && self.origin == Origin::Local && !self.is_over && !self.is_ahead;
        is_due.then(|| line("BOOKMARK", &bookmark(self.kind, self.cursor, false)))
    }
}

/// Lines that are told together.
#[derive(Default)]
struct Chunk {
    first: Option<Bytes>,
    all: Option<BytesMut>,
    length: usize,
}

impl Chunk {
    fn add(&mut self, line: Bytes) {
        self.length += line.len();
        match (&mut self.all, self.first.take()) {
            (Some(all), _) => all.extend_from_slice(&line),
            // One line alone is shared with whoever else is told it.
            (None, None) => self.first = Some(line),
            (None, Some(first)) => {
                let mut all = BytesMut::with_capacity(CHUNK + line.len());
                all.extend_from_slice(&first);
                all.extend_from_slice(&line);
                self.all = Some(all);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.length >= CHUNK
    }

    fn bytes(self) -> Option<Bytes> {
        self.all.map(BytesMut::freeze).or(self.first)
    }
}
