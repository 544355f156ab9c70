//! What stands behind the front: the simulated kcp, all who live in it, and what else a server keeps.
//!
//! It has no clock, no sockets and no tasks: whoever owns it tells it the time, and comes by when something
//! is due.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use k8s_openapi::jiff::Timestamp;

use super::access::Access;
use super::ask::{Ask, Place};
use super::call::Call;
use super::discovery;
use super::lines::Lines;
use super::refusal;
use super::reply::{Content, Reply};
use super::settings::Settings;
use super::stock::Stock;
use crate::api::Kind;
use crate::sim::{Agenda, Chance, Chore, Event, Habits, Kcp, Parties, happened_since};
use crate::snapshot::{Layout, Origin, STREAMS};

/// So much sooner than at the next version of this many, the history is cut again.
const CUT: u64 = 256;

/// A simulated kcp as HTTP sees it, without the network: requests in, answers out.
///
/// [`Front`](super::Front) puts sockets and a clock around it. Alone it is for tests that need neither:
///
/// ```
/// use apibinding::front::{House, Settings};
/// use apibinding::sim::Kcp;
///
/// let mut house = House::new(Kcp::new(7), &Settings::default());
/// let request = http::Request::get("/clusters/root/apis/apis.kcp.io/v1alpha2/apibindings/geese");
/// assert_eq!(house.answer(&request.body(Default::default())?).status(), 404);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug)]
pub struct House {
    pub(super) kcp: Kcp,
    pub(super) stock: Stock,
    pub(super) parties: Parties,
    pub(super) chance: Chance,
    pub(super) layout: Layout,
    access: Access,
    agenda: Agenda<Chore>,
    /// When the agenda begins.
    start: Timestamp,
    /// The version up to which the others were told.
    told: u64,
    lines: [Lines; STREAMS.len()],
    history: u64,
    tells_owners: bool,
    establishing: Duration,
    /// The streams to which something has happened, each as a bit.
    news: u16,
    /// When whoever looks after the agenda will look at it again.
    look: Option<Duration>,
}

impl House {
    /// All live in it who are to, and have seen what is there.
    pub fn new(kcp: Kcp, settings: &Settings) -> Self {
        let habits =
            Habits { slow_permille: 0, establishing: settings.establishing, old: settings.old, ..Habits::default() };
        let mut house = Self {
            stock: Stock::default(),
            parties: Parties::new(settings.layout, habits),
            chance: settings.seed.map_or_else(Chance::none, Chance::new),
            layout: settings.layout,
            access: Access::new(settings),
            agenda: Agenda::default(),
            start: kcp.now(),
            told: kcp.version(),
            lines: STREAMS.map(|(_, kind)| Lines::new(kind, settings.managed_fields)),
            history: settings.history,
            tells_owners: settings.managed_fields,
            establishing: settings.establishing,
            news: 0,
            look: None,
            kcp,
        };
        house.introduce();
        house
    }

    /// The simulated kcp.
    pub fn kcp(&self) -> &Kcp {
        &self.kcp
    }

    /// The simulated kcp, to be changed. Whoever did so [spreads](Self::spread) the news.
    pub fn kcp_mut(&mut self) -> &mut Kcp {
        &mut self.kcp
    }

    pub(super) fn tells_owners(&self) -> bool {
        self.tells_owners
    }

    /// Answers a request at once, as if it had come over the network.
    pub fn answer(&mut self, request: &Request<Bytes>) -> Response<Content> {
        let mut ask = Ask::of(request.method(), request.uri());
        let reply = match self.access.admit(&mut ask, request.headers()) {
            Err(reply) => reply,
            Ok(()) => match prepare(&ask, request) {
                Err(reply) => reply,
                Ok(call) => self.do_call(&ask, call),
            },
        };
        reply.encode()
    }

    /// Does what was asked, and tells the others what came of it.
    pub(super) fn do_call(&mut self, ask: &Ask, call: Call) -> Reply {
        let reply = match ask.place {
            Place::Objects(kind) => self.do_objects(ask, kind, call),
            Place::Stock(stocked) => self.do_stock(ask, stocked, call),
            _ => refusal::nowhere(),
        };
        self.spread();
        reply
    }

    /// Sets the time.
    pub fn set_now(&mut self, now: Timestamp) {
        self.kcp.set_now(now);
        if self.start == Timestamp::UNIX_EPOCH {
            self.start = now;
        }
    }

    /// The time since the agenda began.
    fn clock(&self) -> Duration {
        let since = self.kcp.now().duration_since(self.start);
        if since.is_negative() { Duration::ZERO } else { since.unsigned_abs() }
    }

    fn plan(&mut self, next: Vec<(Duration, Chore)>) {
        let now = self.clock();
        for (delay, chore) in next {
            self.agenda.add(now.saturating_add(delay), chore);
        }
    }

    /// The others see everything for the first time.
    fn introduce(&mut self) {
        for (origin, kind) in STREAMS {
            for event in self.kcp.arrivals(origin, kind) {
                self.react(origin, kind, &event);
            }
        }
        self.kcp.compact(self.kcp.version().saturating_sub(self.history));
    }

    fn react(&mut self, origin: Origin, kind: Kind, event: &Event) {
        let next = self.parties.react(&self.kcp, origin, kind, event, &mut self.chance);
        self.plan(next);
    }

    /// Lets the others hear of what happened since this was done last.
    pub fn spread(&mut self) {
        let version = self.kcp.version();
        if version == self.told {
            return;
        }
        let since = std::mem::replace(&mut self.told, version);
        for (stream, event) in happened_since(&self.kcp, since) {
            if let Some((origin, kind)) = STREAMS.get(stream) {
                self.news |= 1 << stream;
                self.react(*origin, *kind, &event);
            }
        }
        if version / CUT != since / CUT {
            self.kcp.compact(version.saturating_sub(self.history));
        }
    }

    /// How long it is until somebody does something; `None`: nobody will, of himself.
    pub fn next_chore(&self) -> Option<Duration> {
        self.agenda.next().map(|at| at.saturating_sub(self.clock()))
    }

    /// The streams to which something has happened since this was asked last.
    pub(super) fn take_news(&mut self) -> impl Iterator<Item = usize> + use<> {
        let news = std::mem::take(&mut self.news);
        (0..STREAMS.len()).filter(move |stream| news & (1 << stream) != 0)
    }

    /// How long whoever looks after the agenda may sleep.
    pub(super) fn next_look(&mut self) -> Option<Duration> {
        self.look = self.agenda.next();
        self.next_chore()
    }

    /// True, once, if something is due before anybody would look.
    pub(super) fn is_early(&mut self) -> bool {
        let next = self.agenda.next();
        let is_early = match (next, self.look) {
            (Some(next), Some(look)) => next < look,
            (next, None) => next.is_some(),
            (None, Some(_)) => false,
        };
        if is_early {
            self.look = next;
        }
        is_early
    }

    /// Lets one of the others do what is due. False if nothing is.
    pub fn do_chore(&mut self) -> bool {
        if self.next_chore().is_none_or(|left| !left.is_zero()) {
            return false;
        }
        let Some((_, chore)) = self.agenda.take() else { return false };
        let (_, next) = self.parties.act(&mut self.kcp, chore, &mut self.chance);
        self.plan(next);
        self.spread();
        true
    }

    /// True if nobody is about to do anything, but for what is minutes away, such as a look for CRDs that
    /// nobody uses any more.
    pub fn is_at_rest(&self) -> bool {
        let soon = self.establishing.saturating_add(Duration::from_secs(5));
        self.next_chore().is_none_or(|left| left > soon)
    }

    /// Forgets all that happened: who watches has to list again.
    pub fn forget_history(&mut self) {
        // A watch that has seen everything must not go on as if nothing were.
        self.kcp.tick();
        self.kcp.compact(self.kcp.version());
        self.told = self.kcp.version();
        self.lines.iter_mut().for_each(Lines::clear);
    }

    /// Tells what happened to a kind after a version, until the listener has enough. Gives the version up to
    /// which that was all; `None`, if the listener had enough before.
    pub(super) fn tell(
        &mut self,
        origin: Origin,
        kind: Kind,
        version: u64,
        mut listener: impl FnMut(&Event, &mut Lines) -> bool,
    ) -> Result<Option<u64>, Box<Status>> {
        let all = self.kcp.version();
        let events = self.kcp.events_since(origin, kind, version).map_err(|status| match origin {
            Origin::Local => status,
            Origin::Global => {
                let message = "The resourceVersion for the provided watch is too old.".to_owned();
                Box::new(Status { message: Some(message), ..*status })
            }
        })?;
        let Some(lines) = stream_of(origin, kind).and_then(|stream| self.lines.get_mut(stream)) else {
            return Ok(Some(all));
        };
        for event in events {
            if !listener(event, lines) {
                return Ok(None);
            }
        }
        Ok(Some(all))
    }

    /// A version after all others.
    pub(super) fn next_version(&mut self) -> u64 {
        self.kcp.tick()
    }

    /// The time, as objects have it.
    pub(super) fn now(&self) -> String {
        told(self.kcp.now())
    }

    /// When it began.
    pub(super) fn began(&self) -> String {
        told(self.start)
    }
}

fn told(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// The number of a kind's stream; `None` for what never changes.
pub(super) fn stream_of(origin: Origin, kind: Kind) -> Option<usize> {
    STREAMS.iter().position(|stream| *stream == (origin, kind))
}

/// Reads a request for objects. All others are answered with what everybody may know.
pub(super) fn prepare(ask: &Ask, request: &Request<Bytes>) -> Result<Call, Reply> {
    match ask.place {
        Place::Objects(_) | Place::Stock(_) => Call::read(ask, request.headers(), request.body()),
        Place::Nowhere => Err(refusal::nowhere()),
        Place::Homeless => Err(refusal::homeless(ask)),
        _ => Err(discovery::reply(ask)),
    }
}
