//! The admission of CRDs: whoever creates one in a workspace takes its lock first (SPEC 13).

use std::fmt;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::tz::Offset;
use serde_json::json;

use super::chore::name_in;
use super::{Calls, Chore, after, home, text_at, words};
use crate::api::{ClusterName, GroupResource, Kind, Text};
use crate::sim::kcp::{Kcp, Request, Verb, annotation};
use crate::snapshot::{Annotation, HOME, Layer, Layout, Lock, Locks, Origin};

const MANAGER: &str = "kcp-crdnooverlappinggvr";
/// How often the lock is applied before the creation is given up.
const TRIES: u32 = 5;
/// The time limit of a request, which its admission is a part of.
const LIMIT: Duration = Duration::from_secs(60);

/// A CRD on its way through the admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Admission {
    request: Request,
    deadline: Timestamp,
    /// How often the lock was tried in vain.
    tries: u32,
    /// The locks to apply, if they were read before.
    decided: Option<Text>,
}

impl fmt::Display for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, .. } = self;
        write!(f, "admission of CRD {}|{}", request.cluster, name_in(request))?;
        if self.decided.is_some() { write!(f, ", as locks were read") } else { Ok(()) }
    }
}

/// Begins a CRD's way to the store.
pub(super) fn begin(layout: Layout, request: Request, calls: &mut Calls<'_>) {
    let delay = calls.delay(1..20);
    // Bound CRDs have no lock of their own, and in the single layout nobody admits (SPEC 13).
    let chore = if layout == Layout::Single || request.cluster.as_str() == ClusterName::BOUND_CRDS {
        Chore::Create(Box::new(request))
    } else {
        let deadline = after(calls.now, LIMIT);
        Chore::Admission(Box::new(Admission { request, deadline, tries: 0, decided: None }))
    };
    calls.then(delay, chore);
}

impl Admission {
    pub(super) fn go_on(mut self: Box<Self>, kcp: &mut Kcp, calls: &mut Calls<'_>) -> Option<String> {
        let name = format!("{}|{}", self.request.cluster, name_in(&self.request));
        if calls.now > self.deadline {
            return Some(format!("CRD {name} is not admitted in time"));
        }
        let locks = match self.decided.take() {
            Some(locks) => locks,
            None => match self.decide(kcp) {
                Ok(locks) if calls.habits.stale_admission => {
                    let delay = calls.delay(5..250);
                    self.decided = Some(locks);
                    calls.then(delay, Chore::Admission(self));
                    return Some(format!("the admission of CRD {name} has read the locks"));
                }
                Ok(locks) => locks,
                Err(why) => return Some(format!("CRD {name} is forbidden: {why}")),
            },
        };
        // No precondition: what was read may be long past.
        let body = json!({
            "apiVersion": Kind::LogicalCluster.api_version(),
            "kind": Kind::LogicalCluster.as_str(),
            "metadata": {"name": HOME, "annotations": {Layer::Pending.annotation(): locks}},
        });
        let cluster = self.request.cluster.clone();
        let request = Request::apply(Kind::LogicalCluster, cluster, HOME, body, false).managed_by(MANAGER);
        match kcp.handle(request) {
            Ok(_) => {
                // Usually at once, but only the time limit is promised.
                let pace = if calls.chance.permille(calls.habits.slow_permille) { 1_000..60_000 } else { 1..20 };
                let left = self.deadline.duration_since(calls.now).unsigned_abs();
                let delay = Duration::from_millis(calls.chance.within(pace)).min(left);
                calls.then(delay, Chore::Create(Box::new(self.request)));
                Some(format!("locks {name} for its CRD"))
            }
            Err(status) if status.code == Some(409) && self.tries + 1 < TRIES => {
                self.tries += 1;
                let delay = calls.delay(10..50);
                calls.then(delay, Chore::Admission(self));
                Some(format!("cannot lock {name} for its CRD: {}", words(&status)))
            }
            Err(status) => Some(format!("CRD {name} is not admitted: {}", words(&status))),
        }
    }

    /// The locks with that of the CRD; or who holds it. By the rule of SPEC 5, but CRDs are not looked
    /// for: a lock for a CRD is never another's, since the CRD can only be this one.
    fn decide(&self, kcp: &Kcp) -> Result<Text, String> {
        let home = kcp.get(Origin::Local, Kind::LogicalCluster, &home(&self.request.cluster));
        let home = home.ok_or("there is no LogicalCluster")?;
        let Verb::Create(body) = &self.request.verb else { return Err("it is not created".into()) };
        let spec = |path: &[&str]| body.get("spec").map_or("", |spec| text_at(spec, path));
        let resource = GroupResource::new(spec(&["group"]), spec(&["names", "plural"]));
        let mut pending = Vec::new();
        let mut holder = None;
        for layer in Layer::ALL {
            let found = match Annotation::read(annotation(home, layer.annotation())) {
                Annotation::Missing => continue,
                Annotation::Unreadable(why) => return Err(format!("{} is unreadable: {why}", layer.annotation())),
                Annotation::Locks(locks) => locks,
            };
            holder = holder.or_else(|| found.get(&resource).cloned());
            if layer == Layer::Pending {
                pending = found.iter().cloned().collect();
            }
        }
        if let Some(Lock { name, .. }) = holder.filter(|lock| !lock.crd) {
            return Err(format!("{resource} is held by APIBinding {name:?}"));
        }
        let expiry = Some(Offset::UTC.to_datetime(kcp.now()));
        pending.push((resource, Lock { crd: true, expiry, ..Lock::default() }));
        Ok(Locks::new(pending).to_text().into())
    }
}

/// The CRD comes to the store, which has the last word.
pub(super) fn create(kcp: &mut Kcp, request: Request) -> Option<String> {
    let what = format!("creates CRD {}|{}", request.cluster, name_in(&request));
    Some(super::told(kcp, request, what))
}
