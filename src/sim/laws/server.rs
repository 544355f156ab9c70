//! A server of the smallest kind, for one pass at a time: objects, versions that count up, and answers that
//! may be replaced.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

use super::{Model, Verdict};
use serde_json::{Value, json};

use crate::api::{ApiBinding, ApiBindingStatus, BindingKey, CLUSTER_ANNOTATION, Kind, Object, annotation};
use crate::effect::{Effect, Outcome, Patch, Retry};
use crate::pass::{Pass, Step};
use crate::sim::kcp::at;
use crate::snapshot::{Change, Layer, Origin, Snapshot};

/// How reads are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reads {
    /// As plans expect: not found, but for the binding itself.
    Expected,
    /// As it is.
    True,
    /// Everything exists, with a uid that nobody knows.
    Found,
}

/// Local objects, and how it answers.
#[derive(Clone, Debug)]
pub struct Server {
    objects: BTreeMap<(Kind, BindingKey), Arc<Object>>,
    reads: Reads,
    version: u64,
    /// Whoever is asked for and not there comes right after that.
    has_newcomers: bool,
    /// Whoever a pass is for was created anew before it began.
    has_successors: bool,
    news: Vec<Change>,
}

/// One effect of a pass, and what came of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Exchange {
    /// The effect.
    pub effect: Effect,
    /// What came of it.
    pub outcome: Outcome,
    /// What the pass saw when it planned the effect.
    pub seen: Snapshot,
}

/// One pass, all of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Course {
    /// Its effects.
    pub exchanges: Vec<Exchange>,
    /// How it ended.
    pub retry: Retry,
    /// The status that it arrived at; `None` without a binding.
    pub status: Option<ApiBindingStatus>,
}

impl Course {
    /// Its effects alone.
    pub fn effects(&self) -> Vec<Effect> {
        self.exchanges.iter().map(|exchange| exchange.effect.clone()).collect()
    }
}

impl Server {
    /// A server of the local objects.
    pub fn new(model: &Model, reads: Reads) -> Self {
        let local = model.all().filter(|(origin, _)| *origin == Origin::Local);
        let objects = local.map(|(_, object)| ((object.kind(), object.key()), object.clone())).collect();
        Self { objects, reads, version: 1_000_000_000, has_newcomers: false, has_successors: false, news: Vec::new() }
    }

    /// The same, where a binding that is asked for and not there comes right after it was answered so, and makes
    /// the locks of its name its own. A pass hears of the locks at once, of the binding late.
    #[must_use]
    pub fn with_newcomers(self) -> Self {
        Self { has_newcomers: true, ..self }
    }

    /// The same, where the binding that a pass is for has been created anew and has made the locks of its name its
    /// own. A pass hears of the locks at once, of the binding late.
    #[must_use]
    pub fn with_successors(self) -> Self {
        Self { has_successors: true, ..self }
    }

    fn come(&mut self, key: &BindingKey) {
        let home = (Kind::LogicalCluster, BindingKey::new(key.cluster.clone(), "cluster"));
        let uid = format!("{}-new", key.name);
        let Some(Object::LogicalCluster(before)) = self.objects.get(&home).map(|home| &**home) else { return };
        let mut known = before.clone();
        let text = annotation(&known.metadata, Layer::Bindings.annotation());
        let Ok(Value::Object(mut locks)) = serde_json::from_str(&text) else { return };
        for lock in locks.values_mut().filter(|lock| at(lock, &["n"]) == &json!(key.name)) {
            *lock = json!({"n": key.name, "u": uid});
        }
        let text = Value::Object(locks).to_string();
        known.metadata.annotations.get_or_insert_default().insert(Layer::Bindings.annotation().into(), text);
        known.metadata.resource_version = Some(self.next_version());
        let mut binding = ApiBinding::default();
        binding.metadata.name = Some(key.name.to_string());
        binding.metadata.uid = Some(uid);
        binding.metadata.resource_version = Some(self.next_version());
        binding.metadata.annotations = Some([(CLUSTER_ANNOTATION.to_owned(), key.cluster.to_string())].into());
        self.objects.insert((Kind::ApiBinding, key.clone()), Arc::new(binding.into()));
        self.objects.insert(home, Arc::new(known.clone().into()));
        self.news.push(Change::put(known));
    }

    /// What a pass hears without having asked.
    fn take_news(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.news)
    }

    /// An object as it is now.
    pub fn get(&self, kind: Kind, key: &BindingKey) -> Option<&Object> {
        self.objects.get(&(kind, key.clone())).map(|object| &**object)
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn found(&self, kind: Kind, key: &BindingKey) -> Outcome {
        self.get(kind, key).map_or_else(not_found, |object| Outcome::done(object.clone()))
    }

    fn stranger(kind: Kind) -> Outcome {
        let json = r#"{"metadata":{"name":"x","uid":"nobody-knows"}}"#;
        Object::from_json(kind, json).map_or_else(|_| not_found(), Outcome::done)
    }

    /// Answers truly, or as expected; `owner` is the key of the pass.
    pub fn execute(&mut self, owner: &BindingKey, effect: &Effect) -> Outcome {
        match effect {
            Effect::CreateCrd(create) => {
                let key = BindingKey::new(create.cluster.clone(), create.name.clone());
                if self.get(Kind::Crd, &key).is_some() {
                    return refused(409, "AlreadyExists");
                }
                let Ok(mut crd) = Object::from_json(Kind::Crd, create.body.as_str()) else {
                    return refused(400, "BadRequest");
                };
                // A plan takes a CRD without a uid of its own yet for the last of all (D9): so this is.
                crd.metadata_mut().uid = Some(format!("~made-{}", create.name));
                crd.metadata_mut().resource_version = Some(self.next_version());
                self.objects.insert((Kind::Crd, key), Arc::new(crd.clone()));
                Outcome::done(crd)
            }
            Effect::ReadApiBinding(key) => match self.reads {
                Reads::Expected if key != owner => not_found(),
                Reads::Found if key != owner => Self::stranger(Kind::ApiBinding),
                _ => {
                    let found = self.found(Kind::ApiBinding, key);
                    if self.has_newcomers && self.get(Kind::ApiBinding, key).is_none() {
                        self.come(key);
                    }
                    found
                }
            },
            Effect::ReadCrd(read) => match self.reads {
                Reads::Expected => not_found(),
                Reads::True => self.found(Kind::Crd, &BindingKey::new(read.cluster.clone(), read.name.clone())),
                Reads::Found => Self::stranger(Kind::Crd),
            },
            Effect::PatchLogicalCluster(patch) => self.apply(Kind::LogicalCluster, patch),
            Effect::PatchApiBindingStatus(patch) => self.apply(Kind::ApiBinding, patch),
            Effect::Requeue(_) => Outcome::NoAnswer("nothing to carry out".into()),
        }
    }

    fn apply(&mut self, kind: Kind, patch: &Patch) -> Outcome {
        let place = (kind, BindingKey::new(patch.cluster.clone(), patch.name.clone()));
        let Some(before) = self.objects.get(&place) else { return not_found() };
        let mut object = Object::clone(before);
        let version = object.metadata().resource_version.clone().unwrap_or_default();
        if !patch.resource_version.is_empty() && version != *patch.resource_version {
            let status = status(409, "Conflict");
            return Outcome::Conflict { status, current: Some(Box::new(object)) };
        }
        let body = patch.body.to_value();
        match &mut object {
            Object::ApiBinding(binding) => {
                let Ok(status) = serde_json::from_value(at(&body, &["status"]).clone()) else {
                    return refused(400, "BadRequest");
                };
                binding.status = status;
            }
            other => {
                let texts = at(&body, &["metadata", "annotations"]).as_object().into_iter().flatten();
                let texts = texts.map(|(name, text)| (name.clone(), text.as_str().unwrap_or_default().to_owned()));
                other.metadata_mut().annotations.get_or_insert_default().extend(texts);
            }
        }
        if **before != object {
            object.metadata_mut().resource_version = Some(self.next_version());
        }
        self.objects.insert(place, Arc::new(object.clone()));
        Outcome::done(object)
    }

    /// A fault in the place of the true answer: what it says of objects is made to fit. `None`: no server
    /// would answer so.
    pub fn fail(&mut self, effect: &Effect, fault: Outcome) -> Option<Outcome> {
        let patch = match effect {
            Effect::PatchLogicalCluster(patch) => Some((Kind::LogicalCluster, patch)),
            Effect::PatchApiBindingStatus(patch) => Some((Kind::ApiBinding, patch)),
            _ => None,
        };
        let says_no = |status: &Status| status.reason.as_deref() == Some("NotFound");
        match (fault, patch) {
            // A server that says "no" of what exists is none whose reads are consistent.
            (Outcome::Refused(status), _) if effect.is_read() && says_no(&status) => None,
            (Outcome::Done(_), _) | (Outcome::Conflict { .. }, None) => None,
            (Outcome::Conflict { status, current }, Some((kind, patch))) => {
                let at = (kind, BindingKey::new(patch.cluster.clone(), patch.name.clone()));
                let version = self.next_version();
                match (current, self.objects.get_mut(&at)) {
                    (None, _) => drop(self.objects.remove(&at)),
                    // Somebody else was quicker; where the conflict came with such an object, it is
                    // that one's content.
                    (Some(other), Some(object)) => {
                        let mut next =
                            if other.kind() == kind && other.key() == at.1 { *other } else { Object::clone(object) };
                        next.metadata_mut().resource_version = Some(version);
                        *object = Arc::new(next);
                    }
                    (Some(_), None) => {}
                }
                let current = self.objects.get(&at).map(|object| Box::new(Object::clone(object)));
                Some(Outcome::Conflict { status, current })
            }
            (fault, _) => Some(fault),
        }
    }
}

fn status(code: i32, reason: &str) -> Box<Status> {
    let (reason, message) = (Some(reason.to_owned()), Some(reason.to_owned()));
    Box::new(Status { code: Some(code), reason, message, ..Status::default() })
}

fn refused(code: i32, reason: &str) -> Outcome {
    Outcome::Refused(status(code, reason))
}

fn not_found() -> Outcome {
    refused(404, "NotFound")
}

/// A pass that takes longer than this does not end.
const STEPS: usize = 1000;

/// Runs one pass to its end on a server where nothing fails.
///
/// # Errors
/// It does not end.
pub fn run(snapshot: &mut Snapshot, server: &mut Server, key: &BindingKey) -> Result<Course, String> {
    run_with(snapshot, server, key, &[], |_, _, _| Ok(()))
}

/// Runs one pass to its end. `faults`: what comes in the place of the first answers. `watch` sees each
/// effect before it is carried out, and what it was planned on.
///
/// # Errors
/// It does not end, or `watch` says so.
pub fn run_with(
    snapshot: &mut Snapshot,
    server: &mut Server,
    key: &BindingKey,
    faults: &[Option<Outcome>],
    mut watch: impl FnMut(&Snapshot, &Server, &Effect) -> Verdict,
) -> Result<Course, String> {
    let mut faults = faults.iter().cloned();
    let mut pass = Pass::new(key.clone());
    let mut exchanges = Vec::new();
    if server.has_successors && server.get(Kind::ApiBinding, key).is_some() {
        server.come(key);
    }
    for change in server.take_news() {
        snapshot.apply(change);
    }
    loop {
        match pass.poll(snapshot) {
            Step::Done(retry) => return Ok(Course { exchanges, retry, status: pass.status().cloned() }),
            Step::Act(effect) => {
                watch(snapshot, server, &effect)?;
                let fault = faults.next().flatten().and_then(|fault| server.fail(&effect, fault));
                let outcome = fault.unwrap_or_else(|| server.execute(key, &effect));
                exchanges.push(Exchange { effect, outcome: outcome.clone(), seen: snapshot.clone() });
                for change in pass.observe(outcome).into_iter().chain(server.take_news()) {
                    snapshot.apply(change);
                }
            }
        }
        if exchanges.len() > STEPS {
            let effects: Vec<String> =
                exchanges.iter().map(|exchange: &Exchange| exchange.effect.to_string()).collect();
            return Err(format!("no end:\n{}", effects.join("\n")));
        }
    }
}
