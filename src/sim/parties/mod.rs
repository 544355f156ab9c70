//! The other parties: everybody but this controller who writes the objects that it reads (SPEC 13).
//!
//! They are clients of a [`Kcp`] like any other. What happens makes them look at an object after a
//! while ([`Parties::react`]); when they look, they do what is to be done about it, or find that nothing
//! is ([`Parties::act`]). So each look may be late, doubled or in vain, and when nothing happens any more
//! nothing is left to do. Every action is one party's, at one moment; what takes two moments, because it
//! decides on what it read before, is two chores, and the second carries what was read.

mod admission;
mod bindings;
mod chore;
mod crds;
mod exports;
mod homes;
#[cfg(test)]
mod tests;
mod unused;
mod uses;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Chance;
#[cfg(feature = "shell")]
use super::kcp::forbidden;
use super::kcp::{Event, Happened, Kcp, Request, at, text_at};
#[cfg(feature = "shell")]
use crate::api::Text;
use crate::api::{BindingKey, ClusterName, Kind};
use crate::snapshot::{HOME, Layout, Origin};
pub(crate) use chore::Chore;
use chore::Duty;
use uses::Uses;

/// The field manager of kcp's own controllers, but for those of SPEC 5.
const KCP: &str = "kcp";

/// How the others behave.
#[derive(Clone, Debug)]
pub(crate) struct Habits {
    /// The admission of CRDs decides on locks that it read some time before it applies its own. Off: it
    /// reads and applies at one moment.
    pub stale_admission: bool,
    /// Single layout: the clean-up decides on bindings that it read some time before it reads and
    /// writes the LogicalCluster. Off: all at one moment.
    pub stale_cleanup: bool,
    /// How many looks in a thousand take up to twenty times as long as the others.
    pub slow_permille: u64,
    /// The cache server is often as slow.
    pub slow_copies: bool,
    /// How long it takes a CRD from its names to being served.
    pub establishing: Duration,
    /// How old a bound CRD has to be to be deleted when nobody uses it. `None`: it never is.
    pub old: Option<Duration>,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            stale_admission: false,
            stale_cleanup: false,
            slow_permille: 20,
            slow_copies: false,
            establishing: Duration::from_secs(5),
            old: Some(Duration::from_secs(30 * 60)),
        }
    }
}

/// What the other parties are, and what they know.
#[derive(Clone, Debug)]
pub(crate) struct Parties {
    layout: Layout,
    pub habits: Habits,
    uses: Uses,
    due: BTreeMap<(Duty, BindingKey), Timestamp>,
}

/// What comes next, as it is found out.
struct Calls<'a> {
    habits: &'a Habits,
    /// The looks that will be taken anyway: no second one is asked for.
    due: &'a mut BTreeMap<(Duty, BindingKey), Timestamp>,
    chance: &'a mut Chance,
    now: Timestamp,
    next: Vec<(Duration, Chore)>,
}

impl Calls<'_> {
    /// Somebody will look at an object, after as long as that usually takes.
    fn look(&mut self, duty: Duty, key: BindingKey) {
        self.look_after(Duration::ZERO, duty, key);
    }

    /// The same, but so much later.
    fn look_after(&mut self, delay: Duration, duty: Duty, key: BindingKey) {
        let is_slow = matches!(duty, Duty::Copy(_)) && self.habits.slow_copies && self.chance.permille(300);
        let pace = if is_slow { slow(duty.pace()) } else { duty.pace() };
        let delay = delay.saturating_add(self.delay(pace));
        let due = after(self.now, delay);
        // A look that is overdue may have been lost, and does not count.
        let known = self.due.get(&(duty, key.clone()));
        if known.is_some_and(|known| (self.now..=due).contains(known)) {
            return;
        }
        self.due.insert((duty, key.clone()), due);
        self.then(delay, Chore::Look(duty, key));
    }

    fn then(&mut self, delay: Duration, chore: Chore) {
        self.next.push((delay, chore));
    }

    fn delay(&mut self, pace: Range<u64>) -> Duration {
        let is_slow = self.chance.permille(self.habits.slow_permille);
        let pace = if is_slow { slow(pace) } else { pace };
        Duration::from_millis(self.chance.within(pace))
    }
}

impl Parties {
    /// Parties that know nothing yet. They have to be told of everything that is there.
    pub fn new(layout: Layout, habits: Habits) -> Self {
        Self { layout, habits, uses: Uses::default(), due: BTreeMap::new() }
    }

    /// What an event makes the others do, and after how long.
    pub fn react(
        &mut self,
        kcp: &Kcp,
        origin: Origin,
        kind: Kind,
        event: &Event,
        chance: &mut Chance,
    ) -> Vec<(Duration, Chore)> {
        let (layout, uses, mut calls) = self.parts(kcp, chance);
        if kind == Kind::ApiExport {
            unused::look_by_export(kcp, uses, &event.key, &mut calls);
        }
        // The cache server's copies are nobody else's business.
        if origin == Origin::Global {
            return calls.next;
        }
        match kind {
            Kind::ApiBinding => {
                // In the split layout the clean-up makes nothing of bindings.
                if layout == Layout::Single {
                    calls.look(Duty::CleanUp, home(&event.key.cluster));
                }
                bindings::react(kcp, uses, event, &mut calls);
            }
            Kind::Crd => {
                if event.key.cluster.as_str() != ClusterName::BOUND_CRDS {
                    calls.look(Duty::CleanUp, home(&event.key.cluster));
                }
                crds::react(kcp, uses, event, &mut calls);
            }
            Kind::LogicalCluster => homes::react(event, &mut calls),
            Kind::ApiExport => exports::react(event, &mut calls),
            Kind::ApiResourceSchema | Kind::ApiConversion => {}
        }
        if matches!(kind, Kind::ApiExport | Kind::ApiResourceSchema | Kind::ApiConversion) {
            calls.look(Duty::Copy(kind), event.key.clone());
        }
        calls.next
    }

    /// Does a chore. Tells what was done, `None` if nothing was to be done, and what comes next.
    pub fn act(
        &mut self,
        kcp: &mut Kcp,
        chore: Chore,
        chance: &mut Chance,
    ) -> (Option<String>, Vec<(Duration, Chore)>) {
        if let Chore::Look(duty, key) = &chore {
            let entry = (*duty, key.clone());
            if self.due.get(&entry).is_some_and(|due| *due <= kcp.now()) {
                self.due.remove(&entry);
            }
        }
        let (layout, uses, mut calls) = self.parts(kcp, chance);
        let done = match chore {
            Chore::Look(Duty::CleanUp | Duty::Expiry, key) => homes::clean_up(kcp, layout, &key.cluster, &mut calls),
            Chore::CleanUp(cluster, seen) => homes::clean_up_single(kcp, &cluster, &seen, &mut calls),
            Chore::Look(Duty::EndHome, key) => {
                take_off(kcp, Kind::LogicalCluster, &key, "core.kcp.io/logicalcluster-deletion")
            }
            Chore::Look(Duty::Names, key) => crds::accept_names(kcp, &key),
            Chore::Look(Duty::Establish, key) => crds::establish(kcp, &key),
            Chore::Look(Duty::EndCrd, key) => crds::end(kcp, &key),
            Chore::Look(Duty::Unused, key) => unused::delete(kcp, uses, &key, &mut calls),
            Chore::Look(Duty::EndBinding, key) => {
                take_off(kcp, Kind::ApiBinding, &key, "apis.kcp.io/apibinding-finalizer")
            }
            Chore::Look(Duty::Claims, key) => bindings::read_claims(kcp, uses, &key, &mut calls),
            Chore::Claims(key, patch) => bindings::write_claims(kcp, &key, *patch, &mut calls),
            Chore::Look(Duty::Identity, key) => exports::identify(kcp, &key),
            Chore::Look(Duty::Copy(kind), key) => exports::copy(kcp, kind, &key),
            Chore::Admission(admission) => admission.go_on(kcp, &mut calls),
            Chore::Create(request) => admission::create(kcp, *request),
        };
        (done, calls.next)
    }

    /// A user wants a CRD in a workspace: what its way to the store begins with.
    pub fn admit(&mut self, kcp: &Kcp, request: Request, chance: &mut Chance) -> Vec<(Duration, Chore)> {
        let (layout, _, mut calls) = self.parts(kcp, chance);
        admission::begin(layout, request, &mut calls);
        calls.next
    }

    /// The same, all at one moment, with the answer that the user gets.
    #[cfg(feature = "shell")]
    pub fn admit_at_once(
        &mut self,
        kcp: &mut Kcp,
        request: Request,
        chance: &mut Chance,
    ) -> Result<super::Answer, Box<Status>> {
        let name = Text::from(chore::name_in(&request));
        let mut next = self.admit(kcp, request, chance);
        let mut why = None;
        while let Some((_, chore)) = next.pop() {
            match chore {
                Chore::Create(request) => return kcp.handle(*request),
                chore => (why, next) = self.act(kcp, chore, chance),
            }
        }
        Err(forbidden(Kind::Crd, &name, &why.unwrap_or_default()))
    }

    fn parts<'a>(&'a mut self, kcp: &Kcp, chance: &'a mut Chance) -> (Layout, &'a mut Uses, Calls<'a>) {
        let calls = Calls { habits: &self.habits, due: &mut self.due, chance, now: kcp.now(), next: Vec::new() };
        (self.layout, &mut self.uses, calls)
    }
}

/// Up to twenty times as long.
fn slow(pace: Range<u64>) -> Range<u64> {
    pace.end..pace.end * 20
}

/// The key of a workspace's LogicalCluster.
fn home(cluster: &ClusterName) -> BindingKey {
    BindingKey::new(cluster.clone(), HOME)
}

fn bound(uid: &str) -> BindingKey {
    BindingKey::new(ClusterName::BOUND_CRDS, uid)
}

fn after(time: Timestamp, delay: Duration) -> Timestamp {
    time.saturating_add(SignedDuration::try_from(delay).unwrap_or(SignedDuration::MAX)).unwrap_or(Timestamp::MAX)
}

fn list_at<'a>(value: &'a Value, path: &[&str]) -> impl Iterator<Item = &'a Value> {
    at(value, path).as_array().into_iter().flatten()
}

fn is_ending(object: &Value) -> bool {
    !at(object, &["metadata", "deletionTimestamp"]).is_null()
}

/// The last party that an object waits for, before it goes, lets it go.
fn take_off(kcp: &mut Kcp, kind: Kind, key: &BindingKey, finalizer: &str) -> Option<String> {
    let object = kcp.get(Origin::Local, kind, key).filter(|object| is_ending(object))?;
    let finalizers: Vec<&Value> = list_at(object, &["metadata", "finalizers"]).collect();
    let rest: Vec<&&Value> = finalizers.iter().filter(|other| other.as_str() != Some(finalizer)).collect();
    if rest.len() == finalizers.len() {
        return None;
    }
    let patch = json!({"metadata": {"finalizers": rest}});
    let request = Request::merge(kind, key.cluster.clone(), key.name.clone(), patch).managed_by(KCP);
    Some(told(kcp, request, format!("takes the finalizer off {kind} {key}")))
}

/// Sends a request; what is told of it says so if it was refused.
fn told(kcp: &mut Kcp, request: Request, what: String) -> String {
    match kcp.handle(request) {
        Ok(_) => what,
        Err(status) => format!("{what}: {}", words(&status)),
    }
}

fn words(status: &Status) -> &str {
    status.message.as_deref().unwrap_or("refused")
}

fn is_gone(event: &Event) -> bool {
    event.happened == Happened::Deleted
}

/// The text of a field that says which of several things something is, empty where there is none.
fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    text_at(value, &[name])
}
