//! A server of the smallest kind: objects, versions that count up, and answers that may be replaced.

use std::collections::BTreeMap;

use apibinding::api::{ApiBindingStatus, BindingKey, Kind, Object};
use apibinding::effect::{Effect, Outcome, Patch, Retry};
use apibinding::pass::{Pass, Step};
use apibinding::snapshot::{Origin, Snapshot};
use apibinding::strategies::World;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

/// How reads are answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reads {
    /// As plans expect: not found, but for the binding itself.
    Expected,
    /// As it is.
    True,
    /// Everything exists, with a uid that nobody knows.
    Found,
}

#[derive(Clone)]
pub struct Server {
    pub objects: BTreeMap<(Kind, BindingKey), Object>,
    pub reads: Reads,
    version: u64,
}

/// One effect of a pass, and what came of it.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub effect: Effect,
    pub outcome: Outcome,
    /// What the pass saw when it planned the effect.
    pub seen: Snapshot,
    /// What there was before the effect.
    #[allow(dead_code)]
    pub objects: BTreeMap<(Kind, BindingKey), Object>,
}

/// One pass, all of it.
#[derive(Debug)]
pub struct Course {
    pub exchanges: Vec<Exchange>,
    /// Not every file with this module asks for it.
    #[allow(dead_code)]
    pub retry: Retry,
    pub status: Option<ApiBindingStatus>,
}

impl Course {
    pub fn effects(&self) -> Vec<Effect> {
        self.exchanges.iter().map(|exchange| exchange.effect.clone()).collect()
    }
}

impl Server {
    pub fn new(world: &World, reads: Reads) -> Self {
        let local = world.objects.iter().filter(|(origin, _)| *origin == Origin::Local);
        let objects = local.map(|(_, object)| ((object.kind(), object.key()), object.clone())).collect();
        Self { objects, reads, version: 1_000_000 }
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn found(&self, kind: Kind, key: &BindingKey) -> Outcome {
        match self.objects.get(&(kind, key.clone())) {
            Some(object) => Outcome::done(object.clone()),
            None => not_found(),
        }
    }

    /// Answers truly, or as expected; `owner` is the key of the pass.
    pub fn execute(&mut self, owner: &BindingKey, effect: &Effect) -> Outcome {
        match effect {
            Effect::CreateCrd(create) => {
                let key = BindingKey::new(create.cluster.clone(), create.name.clone());
                if self.objects.contains_key(&(Kind::Crd, key.clone())) {
                    return refused(409, "AlreadyExists");
                }
                let mut crd = Object::from_json(Kind::Crd, create.body.as_str()).unwrap();
                crd.metadata_mut().uid = Some(format!("made-{}", create.name));
                crd.metadata_mut().resource_version = Some(self.next_version());
                self.objects.insert((Kind::Crd, key), crd.clone());
                Outcome::done(crd)
            }
            Effect::ReadApiBinding(key) => match self.reads {
                Reads::Expected if key != owner => not_found(),
                Reads::Found if key != owner => {
                    let json = r#"{"metadata":{"name":"x","uid":"nobody-knows"}}"#;
                    Outcome::done(Object::from_json(Kind::ApiBinding, json).unwrap())
                }
                _ => self.found(Kind::ApiBinding, key),
            },
            Effect::ReadCrd(read) => match self.reads {
                Reads::Expected => not_found(),
                Reads::True => self.found(Kind::Crd, &BindingKey::new(read.cluster.clone(), read.name.clone())),
                Reads::Found => Outcome::done(Object::from_json(Kind::Crd, r#"{"metadata":{"name":"x"}}"#).unwrap()),
            },
            Effect::PatchLogicalCluster(patch) => self.apply(Kind::LogicalCluster, patch),
            Effect::PatchApiBindingStatus(patch) => self.apply(Kind::ApiBinding, patch),
            other => panic!("no effect to carry out: {other}"),
        }
    }

    fn apply(&mut self, kind: Kind, patch: &Patch) -> Outcome {
        let at = (kind, BindingKey::new(patch.cluster.clone(), patch.name.clone()));
        let Some(mut object) = self.objects.get(&at).cloned() else { return not_found() };
        let version = object.metadata().resource_version.clone().unwrap_or_default();
        if !patch.resource_version.is_empty() && version != *patch.resource_version {
            let Outcome::Refused(status) = refused(409, "Conflict") else { unreachable!() };
            return Outcome::Conflict { status, current: Some(Box::new(object)) };
        }
        let body = patch.body.to_value();
        match &mut object {
            Object::ApiBinding(binding) => binding.status = serde_json::from_value(body["status"].clone()).unwrap(),
            other => {
                for (name, text) in body["metadata"]["annotations"].as_object().unwrap() {
                    let annotations = other.metadata_mut().annotations.get_or_insert_default();
                    annotations.insert(name.clone(), text.as_str().unwrap().into());
                }
            }
        }
        if self.objects.get(&at) != Some(&object) {
            object.metadata_mut().resource_version = Some(self.next_version());
        }
        self.objects.insert(at, object.clone());
        Outcome::done(object)
    }

    /// A fault in the place of the true answer: what it says of objects is made to fit.
    pub fn fail(&mut self, effect: &Effect, fault: Outcome) -> Option<Outcome> {
        let (kind, patch) = match effect {
            Effect::PatchLogicalCluster(patch) => (Kind::LogicalCluster, Some(patch)),
            Effect::PatchApiBindingStatus(patch) => (Kind::ApiBinding, Some(patch)),
            _ => (Kind::Crd, None),
        };
        // A server that says "no" of what exists is none whose reads are consistent.
        let is_read = matches!(effect, Effect::ReadApiBinding(_) | Effect::ReadCrd(_));
        let says_no = |status: &Status| status.reason.as_deref() == Some("NotFound");
        match (fault, patch) {
            (Outcome::Refused(status), _) if is_read && says_no(&status) => None,
            (Outcome::Done(_), _) | (Outcome::Conflict { .. }, None) => None,
            (Outcome::Conflict { status, current }, Some(patch)) => {
                let at = (kind, BindingKey::new(patch.cluster.clone(), patch.name.clone()));
                let version = self.next_version();
                match current {
                    None => {
                        self.objects.remove(&at);
                    }
                    // Somebody else was quicker; where the conflict came with such an object, it is
                    // that one's content.
                    Some(other) => {
                        if let Some(object) = self.objects.get_mut(&at) {
                            if other.kind() == kind && other.key() == at.1 {
                                *object = *other;
                            }
                            object.metadata_mut().resource_version = Some(version);
                        }
                    }
                }
                let current = self.objects.get(&at).cloned().map(Box::new);
                Some(Outcome::Conflict { status, current })
            }
            (fault, _) => Some(fault),
        }
    }
}

pub fn refused(code: i32, reason: &str) -> Outcome {
    let status = serde_json::json!({"code": code, "reason": reason, "message": reason, "status": "Failure"});
    Outcome::Refused(serde_json::from_value(status).unwrap())
}

pub fn not_found() -> Outcome {
    refused(404, "NotFound")
}

/// Runs one pass to its end. `faults`: what comes in the place of the first answers.
pub fn run(snapshot: &mut Snapshot, server: &mut Server, key: &BindingKey, faults: &[Option<Outcome>]) -> Course {
    let mut faults = faults.iter().cloned();
    let mut pass = Pass::new(key.clone());
    let mut exchanges = Vec::new();
    let retry = loop {
        match pass.poll(snapshot) {
            Step::Done(retry) => break retry,
            Step::Act(effect) => {
                let (seen, objects) = (snapshot.clone(), server.objects.clone());
                let fault = faults.next().flatten().and_then(|fault| server.fail(&effect, fault));
                let outcome = fault.unwrap_or_else(|| server.execute(key, &effect));
                exchanges.push(Exchange { effect, outcome: outcome.clone(), seen, objects });
                for change in pass.observe(outcome) {
                    snapshot.apply(change);
                }
            }
            step => panic!("unknown step {step:?}"),
        }
        assert!(
            exchanges.len() < 1000,
            "no end: {:#?}",
            exchanges.iter().map(|e| e.effect.to_string()).collect::<Vec<_>>()
        );
    };
    Course { exchanges, retry, status: pass.status().cloned() }
}
